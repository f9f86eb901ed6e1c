"""What to expect of a release, before any row is read."""
