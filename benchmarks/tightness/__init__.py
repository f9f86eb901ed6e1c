"""Certified against true: the intervals of twenty statistics beside their errors, and models of synthetic rows."""
