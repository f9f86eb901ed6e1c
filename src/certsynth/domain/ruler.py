"""Integer distances between rows of any columns, computed directly and without a lattice."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints, read_only
from certsynth.domain.category import Category
from certsynth.domain.column import Column

UNITS_PER_LENGTH = 2**20
"""Units of a ruler per unit length. A power of two, so that multiples of it are exact floats."""

LINE, LABELS, MATRIX = 0, 1, 2
"""Kinds of columns for the kernels: a line; labels at equal distances; labels with a matrix of distances."""

_UNREACHED = 2**62
"""More than any price plus distance."""


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """The maximum metric of some columns, in multiples of 1/UNITS_PER_LENGTH, on points as `place` returns them.

    A point has an integer for each column: on a line the place in units, or −1 if missing; otherwise the code of a
    label. Distances along lines are exact; all others are rounded up, which keeps a metric.
    """

    columns: tuple[Column, ...]
    kinds: Ints
    weights: Ints
    sizes: Ints
    starts: Ints
    matrices: Ints

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Ruler:
        kinds, weights, sizes, starts, matrices = [], [], [], [], [np.empty(0, np.int64)]
        for column in columns:
            metric = column.label_metric if isinstance(column, Category) else None
            kinds.append(MATRIX if metric is not None else LABELS if isinstance(column, Category) else LINE)
            weights.append(math.ceil(column.weight * UNITS_PER_LENGTH))
            starts.append(sum(map(len, matrices)))
            sizes.append(metric.size if metric is not None else 0)
            if metric is not None:
                inside, part = metric.distances[: metric.size, : metric.size], column.weight / metric.unit
                matrices.append(-(-inside.ravel() * (part.numerator * UNITS_PER_LENGTH) // part.denominator))
        whole = (
            read_only(np.array(each, dtype=np.int64))
            for each in (kinds, weights, sizes, starts, np.concatenate(matrices))
        )
        return cls(tuple(columns), *whole)

    @property
    def half_diameter(self) -> int:
        """Half the diameter in units, rounded up: no two points are farther apart than twice this."""
        return int(self.weights.max() + 1) // 2

    def place(self, clean: Sequence[np.ndarray]) -> tuple[Ints, Ints]:
        """Points of cleaned rows, and for each row a bound on its distance from its point, in units: 0 or 1."""
        placed = [column.to_units(values, UNITS_PER_LENGTH) for column, values in zip(self.columns, clean, strict=True)]
        points = np.stack([place for place, _ in placed], axis=1)
        return points, np.any([off for _, off in placed], axis=0).astype(np.int64)

    def distance(self, first: Ints, second: Ints) -> Ints:
        """Distances between the points at equal positions of two arrays."""
        far = np.empty(len(first), dtype=np.int64)
        _fill_distances(first, second, *self._kernel_arguments(), far)
        return far

    def sort_column(self, points: Ints) -> int:
        """The line with the most distinct places among the points, to sort them by; −1 if there is none."""
        places = [len(np.unique(points[:, j])) if kind == LINE else 0 for j, kind in enumerate(self.kinds)]
        return int(np.argmax(places)) if max(places) > 1 else -1

    def nearest(self, points: Ints, among: Ints, leading: int) -> tuple[Ints, Ints]:
        """For each point the index of the nearest of `among`, which is sorted by column `leading`, and its distance.

        If none is closer than half the diameter, the index is −1 and the distance half the diameter.
        """
        found = np.full(len(points), -1, dtype=np.int64)
        far = np.full(len(points), self.half_diameter, dtype=np.int64)
        _in_threads(
            len(points), lambda a, b: _nearest(points, among, leading, *self._kernel_arguments(), a, b, found, far)
        )
        return found, far

    def cheapest(self, points: Ints, others: Ints, prices: Ints, parts: int) -> tuple[Ints, Ints]:
        """For each point and each part of the others, the least price plus distance, and the index that attains it.

        Every `parts`-th of the others is in the same part, so that neighbours fall into different parts.
        """
        least = np.full((len(points), parts), _UNREACHED, dtype=np.int64)
        which = np.full((len(points), parts), -1, dtype=np.int64)
        _in_threads(
            len(points), lambda a, b: _cheapest(points, others, prices, *self._kernel_arguments(), a, b, least, which)
        )
        return least, which

    def _kernel_arguments(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.kinds, self.weights, self.sizes, self.starts, self.matrices


def _in_threads(count: int, work: Callable[[int, int], None]) -> None:
    """Run `work(low, high)` on ranges of positions on all cores: the kernels release the lock."""
    cores = os.cpu_count() or 1
    if count < 256 or cores < 2:
        work(0, count)
        return
    cuts = np.linspace(0, count, 8 * cores + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(work, cuts[:-1], cuts[1:]))


@njit(cache=True, nogil=True, inline="always")
def _distance(first, i, second, k, kinds, weights, sizes, starts, matrices):  # type: ignore[no-untyped-def]
    """The distance of two points, given by array and position: slicing out the rows would take far longer."""
    far = 0
    for j in range(len(kinds)):
        x, y = first[i, j], second[k, j]
        if x == y:
            continue
        gap = weights[j]
        if kinds[j] == LINE:
            if x >= 0 and y >= 0:
                gap = abs(x - y)
        elif kinds[j] == MATRIX and x < sizes[j] and y < sizes[j]:
            gap = matrices[starts[j] + x * sizes[j] + y]
        far = max(far, gap)  # branchless: stopping early costs more than it saves
    return far


@njit(cache=True, nogil=True)
def _fill_distances(first, second, kinds, weights, sizes, starts, matrices, far):  # type: ignore[no-untyped-def]
    for i in range(len(first)):
        far[i] = _distance(first, i, second, i, kinds, weights, sizes, starts, matrices)


@njit(cache=True, nogil=True)
def _nearest(points, among, leading, kinds, weights, sizes, starts, matrices, low, high, found, far):  # type: ignore[no-untyped-def]
    """Search outward from the point's position in the order while the leading column alone is closer than the best."""
    count = len(among)
    absent = int(np.searchsorted(among[:, leading], 0)) if leading >= 0 else 0
    for i in range(low, high):
        best, which = int(far[i]), -1
        place = points[i, leading] if leading >= 0 else -1
        if place < 0:
            for k in range(count):
                gap = _distance(points, i, among, k, kinds, weights, sizes, starts, matrices)
                if gap < best:
                    best, which = gap, k
        else:
            up = int(np.searchsorted(among[:, leading], place))
            down = up - 1
            while True:
                going = False
                if up < count and among[up, leading] - place < best:
                    gap = _distance(points, i, among, up, kinds, weights, sizes, starts, matrices)
                    if gap < best:
                        best, which = gap, up
                    up += 1
                    going = True
                if down >= absent and place - among[down, leading] < best:
                    gap = _distance(points, i, among, down, kinds, weights, sizes, starts, matrices)
                    if gap < best:
                        best, which = gap, down
                    down -= 1
                    going = True
                if not going:
                    break
            if weights[leading] < best:
                for k in range(absent):
                    gap = _distance(points, i, among, k, kinds, weights, sizes, starts, matrices)
                    if gap < best:
                        best, which = gap, k
        found[i], far[i] = which, best


@njit(cache=True, nogil=True)
def _cheapest(points, others, prices, kinds, weights, sizes, starts, matrices, low, high, least, which):  # type: ignore[no-untyped-def]
    parts, count = least.shape[1], len(others)
    for i in range(low, high):
        for part in range(parts):
            best, chosen = int(least[i, part]), -1
            for k in range(part, count, parts):
                room = best - prices[k]
                if room <= 0:
                    continue
                gap = _distance(points, i, others, k, kinds, weights, sizes, starts, matrices)
                if gap < room:
                    best, chosen = prices[k] + gap, k
            least[i, part], which[i, part] = best, chosen
