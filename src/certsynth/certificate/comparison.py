"""Two tables on one lattice or net: exact transport for every subset of columns, in parallel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.base.parallel import LazyTasks, run
from certsynth.base.progress import Progress, silent
from certsynth.domain import Cells
from certsynth.queries.fine import MOVE_UNITS, LatticeCounts, LatticeQuery
from certsynth.queries.net import Net
from certsynth.transport import Network, cheapest_flow, complete_bounds, difference

COMPARING = "comparing the tables"
"""What is being done, in words."""

Task = tuple[Net, Ints, Ints, int] | tuple[Sequence[Cells], Ints, Ints, int]
"""What a worker needs for one subset: both counts on a net; or what differs on a lattice (see `task_of`)."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two tables are in one subset of columns: exact bounds on the lattice, and how far rows are from it.

    `upper` and `lower` bound the cheapest flow (equal if optimality was proved), `stretch` is that of the network, and
    `rounded` how much too long distances may be besides. Of a `skipped` one it was enough to know a bound: it is not
    the largest.
    """

    upper: Fraction
    lower: Fraction
    stretch: Fraction
    first_moved: Fraction
    second_moved: Fraction
    rounded: Fraction = Fraction(0)
    skipped: bool = False

    @property
    def proved(self) -> bool:
        return self.upper == self.lower

    @property
    def all(self) -> Fraction:
        """What rows are off at most: the flow, and the ways of both tables' rows to the lattice."""
        return self.upper + self.first_moved + self.second_moved


def distances(
    fine: LatticeQuery, first: LatticeCounts, second: LatticeCounts, *, progress: Progress = silent
) -> list[Distance]:
    """One `Distance` for each subset, all of them solved. Both tables must have rows."""
    grounds = fine.nets_by_subset()
    tasks = LazyTasks(len(grounds), lambda j: task_of(fine, first, second, j, grounds[j]))
    answers = run(solved, tasks, work=work_of(fine), phase=COMPARING, progress=progress)
    moved = zip(first.moved, second.moved, grounds, strict=True)
    ways = [
        (mean_moved(a, first.rows), mean_moved(b, second.rows), Fraction(net is not None, MOVE_UNITS))
        for a, b, net in moved
    ]
    return [Distance(*answer, *way) for answer, way in zip(answers, ways, strict=True)]


def report_as_if_solved(fine: LatticeQuery, *, progress: Progress = silent) -> None:
    """Report what `distances` reports, without rows to compare: an empty table must look like any other."""
    subsets = len(fine.marginals.subsets)
    for done in range(subsets + 1):
        progress(COMPARING, done, subsets)


def work_of(fine: LatticeQuery) -> int:
    """What solving all subsets takes, in units of `parallel.MIN_PROCESS_WORK`."""
    return sum(20 * size for size in fine.on_lattices.sizes()) + sum(1000 * len(net.nodes) for net in fine.nets)


def task_of(fine: LatticeQuery, first: LatticeCounts, second: LatticeCounts, j: int, net: Net | None) -> Task:
    """The j-th subset for a worker. On a lattice only cells in which the tables differ are sent: places and by how
    much, as shares times a number, which comes last.
    """
    ours, theirs = first.counts.blocks[j], second.counts.blocks[j]
    if net is not None:
        return net, ours, theirs, 0
    measure, per = difference(ours, theirs)
    places = np.flatnonzero(measure)
    return fine.marginals.of(fine.marginals.subsets[j]), places, measure[places], per


Solved = tuple[Fraction, Fraction, Fraction]


def solved(
    ground: Net | Sequence[Cells], first: Ints, second: Ints, per: int, enough: Fraction = Fraction(0)
) -> Solved:
    """Bounds on the cheapest flow of a task, upper and lower, and the stretch of its network.

    Where it is at most `enough` it need not be the cheapest on a lattice.
    """
    if isinstance(ground, Net):
        upper, lower, per = complete_bounds(ground.ruler, ground.nodes, ground.hub_distances(), first, second)
        return Fraction(upper, per), Fraction(lower, per), Fraction(1)
    network = Network.of(ground)
    measure = np.zeros(network.cells, dtype=np.int64)
    measure[first] = second
    per *= network.unit
    flow = cheapest_flow(network, measure, enough=math.floor(enough * per))
    return Fraction(flow.upper, per), Fraction(flow.lower, per), network.stretch


def mean_moved(moved: int, rows: int) -> Fraction:
    return Fraction(moved, MOVE_UNITS * rows)
