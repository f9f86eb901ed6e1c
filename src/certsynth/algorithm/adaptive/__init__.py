"""The adaptive method: private scores decide which pairs of columns are measured, and how finely."""
