"""Algorithm 1 of the paper: its options, its steps, and the methods that can run it."""
