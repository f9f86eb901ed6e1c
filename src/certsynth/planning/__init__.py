"""Planning: choose what a release measures and predict its quality, before any row is read."""
