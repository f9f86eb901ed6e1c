"""certsynth and its peers on the same tables: `make race`."""
