"""`python -m tightness`, with benchmarks on the path."""

from tightness.run import main

main()
