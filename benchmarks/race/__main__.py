"""`python -m race`, with benchmarks on the path."""

from race.run import main

main()
