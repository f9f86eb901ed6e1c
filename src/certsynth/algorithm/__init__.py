"""The algorithm, seen from outside: what can be asked of it."""
