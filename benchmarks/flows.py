"""Solvers of one flow side by side: few nodes with mass, or all of them; near or far. `python benchmarks/flows.py`

Pairs of columns of the survey on the lattice of `certify`, two halves of the table against each other; tables that are
far apart; and noise.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

import survey
from certsynth import Schema
from certsynth.domain import Cells
from certsynth.queries.fine import LatticeQuery
from certsynth.sources import cleaned, open_source
from certsynth.transport import Network
from certsynth.transport.flow import difference, flow_cost, potential_value, solve
from certsynth.transport.pricing import solve_priced
from certsynth.transport.simplex import solve_until

SOLVERS: dict[str, Callable[[Network, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "ways as wanted": lambda network, supply: solve_priced(network, supply, near=math.inf),
    "simplex on all nodes": lambda network, supply: solve_until(network, supply, 0),
    "LEMON": solve,
}
SIDES = (16, 48, 96)  # of lattices with noise


def survey_problems() -> Iterator[tuple[str, Network, np.ndarray]]:
    schema = Schema.parse(
        "\n".join(
            f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = {low}\nhigh = {high}'
            for name, (low, high) in survey.NUMBERS.items()
        )
    )
    rows = [np.concatenate(each) for each in zip(*cleaned(open_source(str(survey.CALIFORNIA)), schema), strict=True)]
    halves = [[column[start::2] for column in rows] for start in range(2)]
    fine = LatticeQuery.of(schema, list(itertools.combinations(range(len(schema.names)), 2)))
    ours, theirs = (fine.count([half]).counts.blocks for half in halves)
    for subset, one, other in zip(fine.marginals.subsets, ours, theirs, strict=True):
        network = Network.of(fine.marginals.of(subset))
        yield " × ".join(schema.names[j] for j in subset), network, network.supply(difference(one, other)[0])


def far_problems() -> Iterator[tuple[str, Network, np.ndarray]]:
    """Two tables of 6,000 rows on a lattice of 129 × 129: one in the left half or a corner, the other elsewhere."""
    rng, side, rows = np.random.default_rng(0), 129, 6_000
    network = Network.of([Cells(places=np.arange(side), steps=side - 1, off_line=0)] * 2)
    boxes = {"halves": ((0, 64, 0, 129), (65, 129, 0, 129)), "a corner and all": ((0, 20, 0, 20), (0, 129, 0, 129))}
    for name, (first, second) in boxes.items():
        measure = np.zeros((side, side), dtype=np.int64)
        for sign, (left, right, low, high) in ((1, first), (-1, second)):
            np.add.at(measure, (rng.integers(left, right, rows), rng.integers(low, high, rows)), sign)
        yield f"far: {name}", network, network.supply(measure.ravel())


def noise_problems() -> Iterator[tuple[str, Network, np.ndarray]]:
    rng = np.random.default_rng(0)
    for side in SIDES:
        network = Network.of([Cells(places=np.arange(side), steps=side, off_line=0)] * 2)
        yield f"noise, {side} × {side}", network, network.supply(rng.integers(-1000, 1001, network.cells))


def main() -> None:
    print("| problem | nodes | with mass | " + " | ".join(f"{name}, ms" for name in SOLVERS) + " |")
    print("|---|---|---|" + "---|" * len(SOLVERS))
    problems = itertools.chain(far_problems(), noise_problems())
    if survey.CALIFORNIA.exists():
        problems = itertools.chain(survey_problems(), problems)
    for solver in SOLVERS.values():  # compiled before it is timed
        solver(
            network := Network.of([Cells(places=np.arange(3), steps=2, off_line=0)] * 2), network.supply(np.arange(9))
        )
    for name, network, supply in problems:
        shown = []
        for solver in SOLVERS.values():
            begun = time.perf_counter()
            flow, potentials = solver(network, supply)
            seconds = time.perf_counter() - begun
            proved = flow_cost(network, supply, flow) == potential_value(network, supply, potentials)
            shown.append(f"{1000 * seconds:.0f}" + ("" if proved else " (not optimal)"))
        print(f"| {name} | {network.nodes:,} | {np.count_nonzero(supply):,} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
