"""The largest distance over all subsets of columns, without solving those that cannot be it.

A cheap bound that is too large costs time, and nothing else: what gets noise is the same integer as if all subsets were
solved (docs/explanation/proofs/direct.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from certsynth.arrays import Ints
from certsynth.certificate.comparison import (
    COMPARING,
    Distance,
    Task,
    mean_moved,
    solved,
    task_of,
    work_of,
)
from certsynth.domain import Cells
from certsynth.parallel import Made, run
from certsynth.progress import Progress, silent
from certsynth.queries.fine import MOVE_UNITS, FineCounts, FineMarginals
from certsynth.transport import stretch_of, upper_bound

SOLVING = "solving what may be the largest distance"
"""What is being done once there are bounds, in words."""

FINENESS = 2**16
"""Losses are queried in rows, rounded up to multiples of 1/FINENESS: little beside noise of at least one row."""

LEVELS = ((5, 1_000), (6, 8_000), (7, 16_000))
"""Bounds that are tried one after the other: lines in 2^level parts, for subsets of at least so many lattice points. On
256 × 256 points they take a hundredth, a thirtieth, a tenth of the time of the flow."""

FIRST, ROUND = 4, 16
"""Subsets that are solved before bounds of the next level are computed, and then at a time: the sooner the largest is
known the more are skipped, but workers want several to work on."""


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
    fine: FineMarginals,
    first: FineCounts,
    second: FineCounts,
    *,
    largest: Largest,
    total: int | None = None,
    progress: Progress = silent,
) -> list[Distance]:
    """One `Distance` for each subset, where those that do not exceed the largest loss may be `skipped`.

    `largest` is what other subsets have shown already, and is brought up to date. How many subsets are left after the
    first bounds depends on the rows: of that nothing is told as progress.
    """
    return _Race(fine, first, second, largest, total, progress).run()


class _Race:
    """All subsets of one group, with what is known of each."""

    def __init__(
        self,
        fine: FineMarginals,
        first: FineCounts,
        second: FineCounts,
        largest: Largest,
        total: int | None,
        progress: Progress,
    ) -> None:
        self.fine, self.first, self.second, self.largest = fine, first, second, largest
        self.grounds = fine.grounds()
        self.sizes = fine.marginals.sizes()
        self.ways = [
            (mean_moved(a, first.rows), mean_moved(b, second.rows))
            for a, b in zip(first.moved, second.moved, strict=True)
        ]
        self.bounds: dict[int, Fraction] = {}
        self.stretches: dict[int, Fraction] = {}
        self.found: dict[int, Distance] = {}
        self.total, self.tell = (len(self.sizes) if total is None else total), progress
        self.share = work_of(fine) // max(len(self.sizes), 1)

    def run(self) -> list[Distance]:
        # Nets have no cheap bound, and small lattices none that is cheaper than the flow.
        small = [j for j, size in enumerate(self.sizes) if self.grounds[j] is not None or size < LEVELS[0][1]]
        self._solve(small, self._told)
        left = [j for j in range(len(self.sizes)) if j not in self.found]
        self._bound(left, LEVELS[0][0], self._told)
        if left:
            self.tell(SOLVING, 0, None)
        for level, least in LEVELS:
            if level != LEVELS[0][0]:
                self._bound([j for j in left if self.sizes[j] >= least], level)
            left = self._promising(left)
            self._solve(left[:FIRST])
            left = self._promising(left)
        while left:
            self._solve(left[:ROUND])
            left = self._promising(left)
        return [self.found.get(j) or self._skipped(j) for j in range(len(self.sizes))]

    def _loss(self, j: int, upper: Fraction) -> int:
        return loss_in_units(upper + sum(self.ways[j]), self.first.rows)

    def _promising(self, left: Sequence[int]) -> list[int]:
        """Those that may exceed the largest loss, the largest bound first."""
        open_ = [j for j in left if j not in self.found]
        losses = {j: self._loss(j, self.bounds[j]) for j in open_}
        kept = sorted((j for j in open_ if losses[j] > self.largest.loss), key=lambda j: (-losses[j], j))
        self.largest.skips += len(open_) - len(kept)
        return kept

    def _bound(self, subsets: Sequence[int], level: int, progress: Progress = silent) -> None:
        tasks = Made(len(subsets), lambda i: (*self._task(subsets[i]), level))
        found = run(_upper, tasks, work=self.share * len(tasks) // 8, phase=COMPARING, progress=progress)
        for j, (upper, stretch) in zip(subsets, found, strict=True):
            self.bounds[j] = min(upper, self.bounds.get(j, upper))
            self.stretches[j] = stretch

    def _solve(self, subsets: Sequence[int], progress: Progress = silent) -> None:
        tasks = Made(len(subsets), lambda i: self._task(subsets[i]))
        found = run(solved, tasks, work=self.share * len(tasks), phase=COMPARING, progress=progress)
        for j, (upper, lower, stretch) in zip(subsets, found, strict=True):
            rounded = Fraction(self.grounds[j] is not None, MOVE_UNITS)
            self.found[j] = Distance(upper, lower, stretch, *self.ways[j], rounded)
            self.largest.loss = max(self.largest.loss, self._loss(j, upper))
        self.largest.solves += len(tasks)

    def _task(self, j: int) -> Task:
        return task_of(self.fine, self.first, self.second, j, self.grounds[j])

    def _skipped(self, j: int) -> Distance:
        return Distance(self.bounds[j], Fraction(0), self.stretches[j], *self.ways[j], skipped=True)

    def _told(self, phase: str, done: int, total: int | None) -> None:
        """Small subsets that were solved, and then bounds of all others: as many for any rows."""
        if done:
            self.largest.done += 1
        self.tell(phase, self.largest.done, self.total)


def _upper(cells: Sequence[Cells], places: Ints, values: Ints, per: int, level: int) -> tuple[Fraction, Fraction]:
    """A bound on the flow of a task, and the stretch of its network."""
    stretch = stretch_of(cells)
    return upper_bound(cells, places, values, level=level, stretch=stretch) / per, stretch
