"""The largest distance over all subsets of columns, without solving those that cannot be it.

A cheap bound that is too large costs time, and nothing else: what gets noise is the same integer as if all subsets were
solved (docs/explanation/proofs/direct.md).
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
    COMPARING,
    Distance,
    Solved,
    Task,
    mean_moved,
    solved,
    task_of,
    work_of,
)
from certsynth.domain import Cells
from certsynth.queries.fine import MOVE_UNITS, LatticeCounts, LatticeQuery
from certsynth.transport import coarse_points, finest_level, stretch_of, transport_upper_bound

SOLVING = "solving what may be the largest distance"
"""What is being done once there are bounds, in words."""

FINENESS = 2**16
"""Losses are queried in rows, rounded up to multiples of 1/FINENESS: little beside noise of at least one row."""

COARSER = ((3, 1_000), (2, 8_000))
"""Bounds that are tried one after the other: on lattices of steps 8 and 4 times as long, for subsets of at least so
many lattice points. On 256 × 256 points they take a hundredth and a thirtieth of the time of the flow."""

LEAST_GAIN = 3
"""A bound is not tried where its lattice has more points than a third of all: labels stay as they are."""

ROUND = 16
"""Subsets that workers are given at a time: the sooner the largest is known the more are skipped, but they want several
to work on. First comes the one that is most likely the largest, by itself."""

SOON = 5
"""How much less work it is to find a flow that is cheap enough than the cheapest."""


def loss_in_units(distance: Fraction, rows: int) -> int:
    """What gets noise: a distance times the number of rows, in multiples of 1/FINENESS, rounded up."""
    return math.ceil(FINENESS * rows * distance)


@dataclass(slots=True)
class Largest:
    """The largest loss so far, over all groups of subsets that were looked at; and how many flows that took."""

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
    """One `Distance` for each subset, where those that do not exceed the largest loss may be `skipped`.

    `largest` is what other subsets have shown already, and is brought up to date. How many subsets are left after the
    first bounds depends on the rows: of that nothing is told as progress.
    """
    return _Race(fine, first, second, largest, _Steps(fine, largest, total, progress)).run()


def report_as_if_compared(
    fine: LatticeQuery, *, largest: Largest, total: int | None = None, progress: Progress = silent
) -> None:
    """Report what `largest_distances` reports, without rows to compare: an empty table must look like any other."""
    steps = _Steps(fine, largest, total, progress)
    for part in (steps.small, steps.large):
        for done in range(len(part) + 1):
            steps.report(COMPARING, done, len(part))
    steps.report_solving()


class _Steps:
    """The order of the work as far as it is reported. It follows from the schema, the subsets and the nets alone.

    Small subsets are solved at once: nets have no cheap bound, and small lattices none that is cheaper than the flow.
    Of large ones a bound is computed. Each is one step of `total`. The rest depends on the rows, and is silent.
    """

    def __init__(self, fine: LatticeQuery, largest: Largest, total: int | None, progress: Progress) -> None:
        self.fine, self.grounds, self.sizes = fine, fine.nets_by_subset(), fine.marginals.sizes()
        worth = [self.worth_bounding(j, *COARSER[0]) for j in range(len(self.sizes))]
        self.small, self.large = ([j for j, each in enumerate(worth) if each is large] for large in (False, True))
        self.largest, self.progress = largest, progress
        self.total = len(self.sizes) if total is None else total

    def worth_bounding(self, j: int, coarser: int, least: int) -> bool:
        """Whether a bound is cheaper than the flow: the same for any rows."""
        if self.grounds[j] is not None or self.sizes[j] < least:
            return False
        cells = self.fine.marginals.of(self.fine.marginals.subsets[j])
        return LEAST_GAIN * coarse_points(cells, _level(cells, coarser)) <= self.sizes[j]

    def report(self, phase: str, done: int, total: int | None) -> None:
        if done:
            self.largest.done += 1
        self.progress(phase, self.largest.done, self.total)

    def report_solving(self) -> None:
        if self.large:
            self.progress(SOLVING, 0, None)


class _Race:
    """All subsets of one group, with what is known of each."""

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
        self._solve(self.steps.small, self.steps.report)  # those left unsolved are no larger than the largest
        left: Sequence[int] = self.steps.large
        self._bound(left, COARSER[0][0], self.steps.report)
        self.steps.report_solving()
        self._solve(self._promising(left)[:1])
        for coarser, least in COARSER[1:]:
            self._bound([j for j in self._promising(left) if self.steps.worth_bounding(j, coarser, least)], coarser)
        while left := self._promising(left):
            self._solve(left[:ROUND])
        self.largest.skips += len(self.sizes) - len(self.found)
        return [self.found.get(j) or self._skipped(j) for j in range(len(self.sizes))]

    def _loss(self, j: int, upper: Fraction) -> int:
        return loss_in_units(upper + sum(self.ways[j]), self.first.rows)

    def _promising(self, left: Sequence[int]) -> list[int]:
        """Those that may exceed the largest loss, the one that is most likely the largest first."""
        open_to = [j for j in left if j not in self.found and self._loss(j, self.bounds[j]) > self.largest.loss]
        return sorted(open_to, key=lambda j: (-self._loss(j, self.guesses[j]), j))

    def _room(self, j: int) -> Fraction:
        """The largest distance that does not exceed the largest loss: `_loss` of it, and of no more, is that."""
        return max(Fraction(self.largest.loss, FINENESS * self.first.rows) - sum(self.ways[j]), Fraction(0))

    def _bound(self, subsets: Sequence[int], coarser: int, progress: Progress = silent) -> None:
        tasks = LazyTasks(len(subsets), lambda i: (*self._task(subsets[i]), coarser))
        found = run(_estimated, tasks, work=self.share * len(tasks) // 8, phase=COMPARING, progress=progress)
        for j, (upper, about, stretch) in zip(subsets, found, strict=True):
            self.bounds[j] = min(upper, self.bounds.get(j, upper))
            self.guesses[j], self.stretches[j] = about, stretch

    def _solve(self, subsets: Sequence[int], progress: Progress = silent) -> None:
        rooms = [self._room(j) for j in subsets]
        tasks = LazyTasks(len(subsets), lambda i: (*self._task(subsets[i]), rooms[i]))
        work = self.share * len(tasks) // (SOON if self.largest.loss > 0 else 1)
        found = run(solved, tasks, work=work, phase=COMPARING, progress=progress)
        for j, room, (upper, lower, stretch) in zip(subsets, rooms, found, strict=True):
            if upper <= room and upper > lower:
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


def _estimated(cells: Sequence[Cells], places: Ints, values: Ints, per: int, coarser: int) -> Solved:
    """A bound on the flow of a task, a guess, and the stretch of its network."""
    stretch = stretch_of(cells)
    found = transport_upper_bound(cells, places, values, level=_level(cells, coarser), stretch=stretch)
    return found.upper / per, found.about / per, stretch
