"""`python -m privpgd`, with benchmarks on the path."""

from privpgd.run import main

main()
