"""Find the largest distance over all subsets of columns without solving those that cannot have it.

A loose bound costs only time: the integer that receives noise is the same as if all subsets were solved
(docs/explanation/proofs/direct.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from certsynth.base.arrays import Ints
from certsynth.base.parallel import LazyTasks, run
from certsynth.base.progress import Progress, silent
from certsynth.certificate.comparison import (
    COMPARING_PHASE,
    Distance,
    FlowBounds,
    Task,
    mean_moved,
    solve_flow,
    task_of,
    work_of,
)
from certsynth.domain import Cells
from certsynth.queries.fine import MOVE_UNITS, LatticeCounts, LatticeQuery
from certsynth.transport import coarse_points, finest_level, stretch_of, transport_upper_bound

SOLVING_PHASE = "solving what may be the largest distance"
"""Progress message once all subsets are bounded."""

LOSS_UNITS = 2**16
"""Losses are measured in rows and rounded up to multiples of 1/LOSS_UNITS, which is small compared with noise of at
least one row."""

COARSE_BOUNDS = ((3, 1_000), (2, 8_000))
"""Successive bounds, each as (levels by which the lattice is coarsened, least lattice points of a subset): the steps
are 8 and then 4 times as long. On 256 × 256 points they take 1/100 and 1/30 of the time of the flow."""

MIN_POINT_RATIO = 3
"""Least ratio of lattice points to coarse points at which a bound is worth computing: labels are not coarsened."""

SUBSETS_PER_ROUND = 16
"""Subsets solved between two updates of the largest loss: fewer skip more work, but keep fewer workers busy. The most
promising subset is solved first, alone."""

EARLY_STOP_SPEEDUP = 5
"""Estimated ratio of the work for an optimal flow to that for a flow that is cheap enough to skip the subset."""


def loss_in_units(distance: Fraction, rows: int) -> int:
    """The integer that receives noise: distance times rows, in multiples of 1/LOSS_UNITS, rounded up."""
    return math.ceil(LOSS_UNITS * rows * distance)


@dataclass(slots=True)
class Largest:
    """The largest loss over all groups of subsets so far, and the number of flows solved and skipped."""

    loss: int = -1
    solves: int = 0
    skips: int = 0
    done: int = field(default=0, repr=False)


def largest_distances(
    fine: LatticeQuery,
    first: LatticeCounts,
    second: LatticeCounts,
    *,
    largest: Largest,
    total: int | None = None,
    progress: Progress = silent,
) -> list[Distance]:
    """One `Distance` for each subset; those that do not exceed the largest loss may be `skipped`.

    `largest` carries the result of earlier groups and is updated. The number of subsets left after the first bounds
    depends on the rows, so it is not reported as progress.
    """
    return WorstSubsetSearch(fine, first, second, largest, _Steps(fine, largest, total, progress)).run()


def report_as_if_compared(
    fine: LatticeQuery, *, largest: Largest, total: int | None = None, progress: Progress = silent
) -> None:
    """Report the same progress as `largest_distances`, so that an empty table cannot be told from any other."""
    steps = _Steps(fine, largest, total, progress)
    for part in (steps.small, steps.large):
        for done in range(len(part) + 1):
            steps.report(COMPARING_PHASE, done, len(part))
    steps.report_solving()


class _Steps:
    """The reported steps of the search, which depend on the schema, the subsets and the nets alone.

    Small subsets are solved directly: nets have no cheap bound, and on small lattices no bound is cheaper than the
    flow. Large ones are bounded. Each is one step of `total`. Later work depends on the rows and is not reported.
    """

    def __init__(self, fine: LatticeQuery, largest: Largest, total: int | None, progress: Progress) -> None:
        self.fine, self.grounds, self.sizes = fine, fine.nets_by_subset(), fine.marginals.sizes()
        worth = [self.worth_bounding(j, *COARSE_BOUNDS[0]) for j in range(len(self.sizes))]
        self.small, self.large = ([j for j, each in enumerate(worth) if each is large] for large in (False, True))
        self.largest, self.progress = largest, progress
        self.total = len(self.sizes) if total is None else total

    def worth_bounding(self, j: int, coarser: int, least: int) -> bool:
        """Whether a bound is cheaper than the flow, whatever the rows."""
        if self.grounds[j] is not None or self.sizes[j] < least:
            return False
        cells = self.fine.marginals.of(self.fine.marginals.subsets[j])
        return MIN_POINT_RATIO * coarse_points(cells, _level(cells, coarser)) <= self.sizes[j]

    def report(self, phase: str, done: int, total: int | None) -> None:
        if done:
            self.largest.done += 1
        self.progress(phase, self.largest.done, self.total)

    def report_solving(self) -> None:
        if self.large:
            self.progress(SOLVING_PHASE, 0, None)


class WorstSubsetSearch:
    """A search for the subset of one group with the largest loss, with the bounds known so far."""

    def __init__(
        self,
        fine: LatticeQuery,
        first: LatticeCounts,
        second: LatticeCounts,
        largest: Largest,
        steps: _Steps,
    ) -> None:
        self.fine, self.first, self.second, self.largest, self.steps = fine, first, second, largest, steps
        self.grounds, self.sizes = steps.grounds, steps.sizes
        self.ways = [
            (mean_moved(a, first.rows), mean_moved(b, second.rows))
            for a, b in zip(first.moved, second.moved, strict=True)
        ]
        self.bounds: dict[int, Fraction] = {}
        self.guesses: dict[int, Fraction] = {}
        self.stretches: dict[int, Fraction] = {}
        self.found: dict[int, Distance] = {}
        self.share = work_of(fine) // max(len(self.sizes), 1)

    def run(self) -> list[Distance]:
        self._solve(self.steps.small, self.steps.report)  # those left unsolved do not exceed the largest
        left: Sequence[int] = self.steps.large
        self._bound(left, COARSE_BOUNDS[0][0], self.steps.report)
        self.steps.report_solving()
        self._solve(self._undecided(left)[:1])
        for coarser, least in COARSE_BOUNDS[1:]:
            self._bound([j for j in self._undecided(left) if self.steps.worth_bounding(j, coarser, least)], coarser)
        while left := self._undecided(left):
            self._solve(left[:SUBSETS_PER_ROUND])
        self.largest.skips += len(self.sizes) - len(self.found)
        return [self.found.get(j) or self._skipped(j) for j in range(len(self.sizes))]

    def _loss(self, j: int, upper: Fraction) -> int:
        return loss_in_units(upper + sum(self.ways[j]), self.first.rows)

    def _undecided(self, left: Sequence[int]) -> list[int]:
        """Subsets that may still exceed the largest loss, by decreasing estimate."""
        undecided = [j for j in left if j not in self.found and self._loss(j, self.bounds[j]) > self.largest.loss]
        return sorted(undecided, key=lambda j: (-self._loss(j, self.guesses[j]), j))

    def _allowance(self, j: int) -> Fraction:
        """The largest flow cost at which `_loss` of subset j does not exceed the largest loss."""
        return max(Fraction(self.largest.loss, LOSS_UNITS * self.first.rows) - sum(self.ways[j]), Fraction(0))

    def _bound(self, subsets: Sequence[int], coarser: int, progress: Progress = silent) -> None:
        tasks = LazyTasks(len(subsets), lambda i: (*self._task(subsets[i]), coarser))
        found = run(_estimate_flow, tasks, work=self.share * len(tasks) // 8, phase=COMPARING_PHASE, progress=progress)
        for j, (upper, about, stretch) in zip(subsets, found, strict=True):
            self.bounds[j] = min(upper, self.bounds.get(j, upper))
            self.guesses[j], self.stretches[j] = about, stretch

    def _solve(self, subsets: Sequence[int], progress: Progress = silent) -> None:
        allowances = [self._allowance(j) for j in subsets]
        tasks = LazyTasks(len(subsets), lambda i: (*self._task(subsets[i]), allowances[i]))
        work = self.share * len(tasks) // (EARLY_STOP_SPEEDUP if self.largest.loss > 0 else 1)
        found = run(solve_flow, tasks, work=work, phase=COMPARING_PHASE, progress=progress)
        for j, allowance, (upper, lower, stretch) in zip(subsets, allowances, found, strict=True):
            if upper <= allowance and upper > lower:
                self.bounds[j], self.stretches[j] = upper, stretch
                continue
            rounded = Fraction(self.grounds[j] is not None, MOVE_UNITS)
            self.found[j] = Distance(upper, lower, stretch, *self.ways[j], rounded)
            self.largest.loss = max(self.largest.loss, self._loss(j, upper))
            self.largest.solves += 1

    def _task(self, j: int) -> Task:
        return task_of(self.fine, self.first, self.second, j, self.grounds[j])

    def _skipped(self, j: int) -> Distance:
        return Distance(self.bounds[j], Fraction(0), self.stretches[j], *self.ways[j], skipped=True)


def _level(cells: Sequence[Cells], coarser: int) -> int:
    return max(finest_level(cells) - coarser, 0)


def _estimate_flow(cells: Sequence[Cells], places: Ints, values: Ints, per: int, coarser: int) -> FlowBounds:
    """An upper bound on the flow of a task, an estimate, and the stretch of its network."""
    stretch = stretch_of(cells)
    found = transport_upper_bound(cells, places, values, level=_level(cells, coarser), stretch=stretch)
    return found.upper / per, found.about / per, stretch
