"""Benchmarks of what outgrows one machine: `python -m scale.NAME`, with the folder `benchmarks` on the path."""
