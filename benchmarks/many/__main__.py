"""`python -m many`, with benchmarks on the path."""

from many.run import main

main()
