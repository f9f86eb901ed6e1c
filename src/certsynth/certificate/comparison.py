"""Compare two tables on a lattice or net: exact transport for every subset of columns, in parallel."""

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
from certsynth.transport import cheapest_flow, complete_bounds, difference, shared_network

COMPARING_PHASE = "comparing the tables"
"""Progress message while subsets are bounded or solved."""

Task = tuple[Net, Ints, Ints, int] | tuple[Sequence[Cells], Ints, Ints, int]
"""Input of a worker for one subset: both counts on a net, or their difference on a lattice (see `task_of`)."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Distance of two tables in one subset of columns: bounds on the lattice, and mean distances of rows to it.

    `upper` and `lower` bound the cost of the cheapest flow (equal if optimality was proved), `stretch` is the network's
    factor over true distances, and `rounded` bounds the additional rounding of distances upwards. A `skipped` subset
    has only an upper bound, which shows that it is not the largest.
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
        """Upper bound on W1: the flow plus the mean distances of both tables' rows to the lattice."""
        return self.upper + self.first_moved + self.second_moved


def distances(
    fine: LatticeQuery, first: LatticeCounts, second: LatticeCounts, *, progress: Progress = silent
) -> list[Distance]:
    """Solve every subset and return one `Distance` for each. Both tables must have rows."""
    grounds = fine.nets_by_subset()
    tasks = LazyTasks(len(grounds), lambda j: task_of(fine, first, second, j, grounds[j]))
    answers = run(solve_flow, tasks, work=work_of(fine), phase=COMPARING_PHASE, progress=progress)
    moved = zip(first.moved, second.moved, grounds, strict=True)
    ways = [
        (mean_moved(a, first.rows), mean_moved(b, second.rows), Fraction(net is not None, MOVE_UNITS))
        for a, b, net in moved
    ]
    return [Distance(*answer, *way) for answer, way in zip(answers, ways, strict=True)]


def report_as_if_solved(fine: LatticeQuery, *, progress: Progress = silent) -> None:
    """Report the same progress as `distances`, so that an empty table cannot be told from any other."""
    subsets = len(fine.marginals.subsets)
    for done in range(subsets + 1):
        progress(COMPARING_PHASE, done, subsets)


def work_of(fine: LatticeQuery) -> int:
    """Estimated work of solving all subsets, in the units of `parallel.MIN_PROCESS_WORK`."""
    return sum(20 * size for size in fine.on_lattices.sizes()) + sum(1000 * len(net.nodes) for net in fine.nets)


def task_of(fine: LatticeQuery, first: LatticeCounts, second: LatticeCounts, j: int, net: Net | None) -> Task:
    """The worker's input for the j-th subset. On a lattice only cells in which the tables differ are sent: their
    indices and the differences, as integers over the common denominator that comes last.
    """
    ours, theirs = first.counts.blocks[j], second.counts.blocks[j]
    if net is not None:
        return net, ours, theirs, 0
    measure, per = difference(ours, theirs)
    places = np.flatnonzero(measure)
    return fine.marginals.of(fine.marginals.subsets[j]), places, measure[places], per


FlowBounds = tuple[Fraction, Fraction, Fraction]
"""Upper bound, lower bound (or an estimate), and stretch."""


def solve_flow(
    ground: Net | Sequence[Cells], first: Ints, second: Ints, per: int, enough: Fraction = Fraction(0)
) -> FlowBounds:
    """Upper and lower bounds on the cheapest flow of a task, and the stretch of its network.

    On a lattice, the solver may stop as soon as the flow costs at most `enough`.
    """
    if isinstance(ground, Net):
        upper, lower, per = complete_bounds(ground.ruler, ground.nodes, ground.hub_distances(), first, second)
        return Fraction(upper, per), Fraction(lower, per), Fraction(1)
    network = shared_network(ground)
    measure = np.zeros(network.cells, dtype=np.int64)
    measure[first] = second
    per *= network.unit
    flow = cheapest_flow(network, measure, enough=math.floor(enough * per))
    return Fraction(flow.upper, per), Fraction(flow.lower, per), network.stretch


def mean_moved(moved: int, rows: int) -> Fraction:
    return Fraction(moved, MOVE_UNITS * rows)
