"""Appendix D of the paper as a method: one grid of all columns, as fine as the dimension of the rows allows."""
