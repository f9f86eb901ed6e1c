"""Distances between rows of any columns, in whole multiples of one small unit: fast, and with no lattice to fill."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints, read_only
from certsynth.domain.column import Category, Column

UNITS = 2**20
"""Parts to the unit length."""

LINE, LABELS, WEB = 0, 1, 2

_FAR = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """The maximum metric of some columns on points: rows of integers, one for each column, as `place` writes them.

    On a line a point is a whole multiple of 1/UNITS, or −1 if it is missing; else it is the code of a label. Distances
    on lines are exact; those to points apart and among labels are rounded up, which keeps a metric.
    """

    columns: tuple[Column, ...]
    kinds: Ints
    weights: Ints
    sizes: Ints
    starts: Ints
    webs: Ints

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Ruler:
        kinds, weights, sizes, starts, webs = [], [], [], [], [np.empty(0, np.int64)]
        for column in columns:
            web = column.web if isinstance(column, Category) else None
            kinds.append(WEB if web is not None else LABELS if isinstance(column, Category) else LINE)
            weights.append(math.ceil(column.weight * UNITS))
            starts.append(sum(map(len, webs)))
            sizes.append(web.size if web is not None else 0)
            if web is not None:
                inside, part = web.distances[: web.size, : web.size], column.weight / web.unit
                webs.append(-(-inside.ravel() * (part.numerator * UNITS) // part.denominator))
        whole = (
            read_only(np.array(each, dtype=np.int64)) for each in (kinds, weights, sizes, starts, np.concatenate(webs))
        )
        return cls(tuple(columns), *whole)

    @property
    def half(self) -> int:
        """Half the diameter, rounded up: nothing is further apart than twice this."""
        return int(self.weights.max() + 1) // 2

    def place(self, clean: Sequence[np.ndarray]) -> tuple[Ints, Ints]:
        """Points of cleaned rows, and for each row at most how far it is from its point: 0 or 1."""
        placed = [column.placed(values, UNITS) for column, values in zip(self.columns, clean, strict=True)]
        points = np.stack([place for place, _ in placed], axis=1)
        return points, np.any([off for _, off in placed], axis=0).astype(np.int64)

    def distance(self, first: Ints, second: Ints) -> Ints:
        """From each point to the other one at the same position."""
        far = np.empty(len(first), dtype=np.int64)
        _pairs(first, second, *self._how(), far)
        return far

    def leading(self, points: Ints) -> int:
        """The line that has the most places among the points, to sort them by; −1 if there is no line."""
        places = [len(np.unique(points[:, j])) if kind == LINE else 0 for j, kind in enumerate(self.kinds)]
        return int(np.argmax(places)) if max(places) > 1 else -1

    def nearest(self, points: Ints, among: Ints, leading: int) -> tuple[Ints, Ints]:
        """For each point the nearest of others that are sorted by the `leading` column, and how far it is.

        −1 where none is closer than half the diameter, which is then the distance. Each point is looked up by itself.
        """
        found = np.full(len(points), -1, dtype=np.int64)
        far = np.full(len(points), self.half, dtype=np.int64)
        _in_threads(len(points), lambda a, b: _nearest(points, among, leading, *self._how(), a, b, found, far))
        return found, far

    def cheapest(self, points: Ints, others: Ints, prices: Ints, parts: int) -> tuple[Ints, Ints]:
        """For each point the least of price plus distance, and which of the others has it, in each part of these.

        Every `parts`-th is in the same part, so that those that are near each other are in different ones.
        """
        least = np.full((len(points), parts), _FAR, dtype=np.int64)
        which = np.full((len(points), parts), -1, dtype=np.int64)
        _in_threads(len(points), lambda a, b: _cheapest(points, others, prices, *self._how(), a, b, least, which))
        return least, which

    def _how(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.kinds, self.weights, self.sizes, self.starts, self.webs


def _in_threads(count: int, work: Callable[[int, int], None]) -> None:
    """Ranges of positions on all cores: the kernels hold no lock."""
    cores = os.cpu_count() or 1
    if count < 256 or cores < 2:
        work(0, count)
        return
    cuts = np.linspace(0, count, 8 * cores + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(work, cuts[:-1], cuts[1:]))


@njit(cache=True, nogil=True, inline="always")
def _far(first, i, second, k, kinds, weights, sizes, starts, webs):  # type: ignore[no-untyped-def]
    """The distance of two points.

    They are named by their positions: a view of each would take far longer than the distance.
    """
    far = 0
    for j in range(len(kinds)):
        x, y = first[i, j], second[k, j]
        if x == y:
            continue
        gap = weights[j]
        if kinds[j] == LINE:
            if x >= 0 and y >= 0:
                gap = abs(x - y)
        elif kinds[j] == WEB and x < sizes[j] and y < sizes[j]:
            gap = webs[starts[j] + x * sizes[j] + y]
        far = max(far, gap)  # without a branch: to stop early costs more than it saves
    return far


@njit(cache=True, nogil=True)
def _pairs(first, second, kinds, weights, sizes, starts, webs, far):  # type: ignore[no-untyped-def]
    for i in range(len(first)):
        far[i] = _far(first, i, second, i, kinds, weights, sizes, starts, webs)


@njit(cache=True, nogil=True)
def _nearest(points, among, leading, kinds, weights, sizes, starts, webs, low, high, found, far):  # type: ignore[no-untyped-def]
    """Outward from where a point would stand in the order, as long as the leading column alone is not too far."""
    count = len(among)
    absent = int(np.searchsorted(among[:, leading], 0)) if leading >= 0 else 0
    for i in range(low, high):
        best, which = int(far[i]), -1
        place = points[i, leading] if leading >= 0 else -1
        if place < 0:
            for k in range(count):
                gap = _far(points, i, among, k, kinds, weights, sizes, starts, webs)
                if gap < best:
                    best, which = gap, k
        else:
            up = int(np.searchsorted(among[:, leading], place))
            down = up - 1
            while True:
                going = False
                if up < count and among[up, leading] - place < best:
                    gap = _far(points, i, among, up, kinds, weights, sizes, starts, webs)
                    if gap < best:
                        best, which = gap, up
                    up += 1
                    going = True
                if down >= absent and place - among[down, leading] < best:
                    gap = _far(points, i, among, down, kinds, weights, sizes, starts, webs)
                    if gap < best:
                        best, which = gap, down
                    down -= 1
                    going = True
                if not going:
                    break
            if weights[leading] < best:
                for k in range(absent):
                    gap = _far(points, i, among, k, kinds, weights, sizes, starts, webs)
                    if gap < best:
                        best, which = gap, k
        found[i], far[i] = which, best


@njit(cache=True, nogil=True)
def _cheapest(points, others, prices, kinds, weights, sizes, starts, webs, low, high, least, which):  # type: ignore[no-untyped-def]
    parts, count = least.shape[1], len(others)
    for i in range(low, high):
        for part in range(parts):
            best, chosen = int(least[i, part]), -1
            for k in range(part, count, parts):
                room = best - prices[k]
                if room <= 0:
                    continue
                gap = _far(points, i, others, k, kinds, weights, sizes, starts, webs)
                if gap < room:
                    best, chosen = prices[k] + gap, k
            least[i, part], which[i, part] = best, chosen
