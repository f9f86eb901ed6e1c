"""What the nodes of a net gain: the bound on W1 in five columns against their number, and the time it takes.

    python benchmarks/nets.py [nodes ...]

Two tables of 100,000 rows are drawn from the same law: on a curve, on a surface, or in the whole cube. In the last case
one of them is pushed to a side, so that mass has far to go. Seconds are of all cores' time, not of the clock.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from certsynth import Schema
from certsynth.certificate.comparison import distances
from certsynth.queries.fine import LatticeQuery

ROWS, COLUMNS = 100_000, 5
SCHEMA = Schema.parse(
    "".join(f'[[column]]\nname = "c{j}"\nkind = "number"\nlow = 0\nhigh = 1\n' for j in range(COLUMNS))
)


def table(kind: str, seed: int) -> list[np.ndarray]:
    """Rows of five numbers between 0 and 1."""
    rng = np.random.default_rng(seed)
    u, v = rng.random((2, ROWS))
    if kind == "curve":
        return [0.5 + 0.5 * np.sin(2 * (j + 1) * u + j) for j in range(COLUMNS)]
    if kind == "surface":
        return [0.5 + 0.5 * np.sin((j + 1) * u + (COLUMNS - j) * v) for j in range(COLUMNS)]
    return list(np.minimum(rng.random((COLUMNS, ROWS)) + (0.3 if kind == "pushed" and seed else 0.0), 1.0))


def measure(kind: str, nodes: int) -> None:
    private, synthetic = table(kind, 0), table(kind, 1)
    start = time.process_time()
    fine = LatticeQuery.of(SCHEMA, [tuple(range(COLUMNS))]).with_nets([synthetic], most=nodes)
    ours, theirs = fine.count([private]), fine.count([synthetic])
    placed = time.process_time() - start
    (found,) = distances(fine, ours, theirs)
    took = time.process_time() - start
    moved = [float(x) for x in (found.first_moved, found.second_moved)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{kind:8} {nodes:7,} nodes: flow {float(found.upper):.4f} + moved {moved[0]:.4f} and {moved[1]:.4f} = "
        f"{float(found.upper) + sum(moved):.4f}; {placed:.0f} s to place rows, {took:.0f} s in all, {memory:.2f} GB"
        + ("" if found.proved else "; NOT PROVED"),
        flush=True,
    )


if __name__ == "__main__":
    for count in [int(argument) for argument in sys.argv[1:]] or [2_500, 5_000, 10_000, 20_000]:
        for shape in ("curve", "surface", "cube", "pushed"):
            measure(shape, count)
