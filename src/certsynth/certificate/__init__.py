"""Certificates: bounds on how far emitted rows are from the private ones."""
