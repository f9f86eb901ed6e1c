"""Small tools with no knowledge of the theory: arrays, files, progress, threads and processes."""
