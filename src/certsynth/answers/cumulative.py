"""Cumulative shares: certified ranges of the share of a group's rows above each value, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certsynth.answers.basis import place
from certsynth.answers.boxes import Errors, Products
from certsynth.answers.claims import Range, conditional
from certsynth.answers.lattices import Lattice, Points, figures_of_codes, off_lattice
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Ordered
from certsynth.queries.statistics import UNITS, places_in_units

SURE = 1e-12
"""By how much a share must differ from p before it decides on which side the quantile is."""


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeShares:
    """`low[i]` and `high[i]` bound the share of the group's rows at point i of the column's line or above it.

    The values of point i are from `first[i]` to `last[i]`, and their places in [0, 1] from `least[i]` − `off` to
    `most[i]` + `off`. `inner` and `outer` are the group's points, and `group` bounds its share of all rows.
    """

    least: Floats
    most: Floats
    off: float
    first: Floats
    last: Floats
    low: Floats
    high: Floats
    inner: Cumulated
    outer: Cumulated
    group: tuple[float, float]

    @classmethod
    def of(
        cls, lattice: Lattice, inner: Points, outer: Points, errors: Errors, group: tuple[float, float]
    ) -> CumulativeShares:
        """The cumulative shares of the lattice's first column among rows with a value in it.

        `inner` and `outer` are the points of the group, and `group` bounds its share of all rows with a value.
        """
        column, cells = lattice.columns[0], lattice.cells[0]
        assert isinstance(column, Ordered)
        line = len(cells.places)
        sure, maybe = (Cumulated.of(lattice, each[:line].reshape(line, -1), errors) for each in (inner, outer))
        every = np.arange(line + 1)
        above = sure.between(every, line)[0], maybe.between(every, line)[1]
        below = sure.between(0, every)[0], maybe.between(0, every)[1]
        low, high = conditional(above, below, group)
        low[0] = high[0] = 1.0
        low[-1] = high[-1] = 0.0
        first, last = figures_of_codes(column, cells)
        places = places_in_units(cells) / UNITS
        return cls(
            least=place(column, first) if column.grid else places,
            most=place(column, last) if column.grid else places,
            off=0.0 if column.grid else off_lattice(column, cells),
            first=first,
            last=last,
            low=np.maximum.accumulate(low[::-1])[::-1],
            high=np.minimum.accumulate(high),
            inner=sure,
            outer=maybe,
            group=group,
        )

    def mean(self) -> tuple[float, float]:
        r"""The range of the mean place :math:`p_0 + \sum_{i ≥ 1} (p_i − p_{i−1}) P(\text{point } ≥ i)`, but for off."""
        low = self.least[0] + np.dot(np.diff(self.least), self.low[1:-1])
        return float(low), float(self.most[0] + np.dot(np.diff(self.most), self.high[1:-1]))

    def mean_square(self, centre: float) -> tuple[float, float]:
        """The range of the mean of (p − centre)² over places p, but for `off`."""
        nearest = np.maximum(np.maximum(self.least - centre, centre - self.most), 0.0)
        farthest = np.maximum(self.most - centre, centre - self.least)
        return self._mean_of_valley(nearest**2)[0], self._mean_of_valley(farthest**2)[1]

    def _mean_of_valley(self, values: Floats) -> tuple[float, float]:
        """The range of the mean of a function of points that falls, then rises.

        The points with the smallest values are an interval, however many: the share of rows outside of it is certified
        as that of an interval, and as the sum of those below and above.
        """
        order = np.argsort(values, kind="stable")
        squares = values[order]
        start, end = np.minimum.accumulate(order)[:-1], np.maximum.accumulate(order)[:-1] + 1
        inside = self.inner.between(start, end)[0], self.outer.between(start, end)[1]
        outside = self.inner.beyond(start, end)[0], self.outer.beyond(start, end)[1]
        low, high = conditional(outside, inside, self.group)
        low = np.maximum(low, self.low[end] + 1.0 - self.high[start])
        high = np.minimum(high, self.high[end] + 1.0 - self.low[start])
        steps = np.diff(squares)
        return float(squares[0] + np.dot(steps, low)), float(squares[0] + np.dot(steps, high))

    def quantile(self, p: float) -> tuple[float, float]:
        """The lowest and the highest value that a p-quantile can be, under any convention."""
        under = np.flatnonzero(self.high < 1.0 - p - SURE)  # less than 1 − p of the rows is at these points or above
        over = np.flatnonzero(self.low > 1.0 - p + SURE)
        return float(self.first[over[-1]]), float(self.last[under[0] - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Cumulated:
    """Shares of synthetic rows at some points, by intervals of the first column, and their errors.

    `mass[i]` is the share below point i of the line. A run of points with the same set of the other column is one
    product: `begun[i]` adds up the errors of the runs that begin below point i, `ended[i]` of those that end there.
    """

    mass: Floats
    begun: Floats
    ended: Floats

    @classmethod
    def of(cls, lattice: Lattice, points: Points, errors: Errors) -> Cumulated:
        counts = lattice.counts[: len(points)].reshape(points.shape)
        mass = np.append(0.0, np.cumsum(np.where(points, counts, 0).sum(axis=1))) / lattice.rows
        starts = np.flatnonzero(np.append(True, (points[1:] != points[:-1]).any(axis=1)))
        each = np.array([_interval_error(lattice, points[start], errors) for start in starts])
        begun, ended = np.zeros(len(points) + 1), np.zeros(len(points) + 1)
        begun[starts + 1] = each
        ended[np.append(starts[1:], len(points))] = each
        return cls(mass, np.cumsum(begun), np.cumsum(ended))

    def between(self, start: Ints | int, end: Ints | int) -> Range:
        """The range of the private share from point `start` to before point `end`."""
        found = self.mass[end] - self.mass[start]
        error = np.where(np.less(start, end), self.begun[end] - self.ended[start], 0.0)
        return np.maximum(found - error, 0.0), found + error

    def beyond(self, start: Ints, end: Ints) -> Range:
        """The range of the private share below point `start` and from point `end` on."""
        below, above = self.between(0, start), self.between(end, len(self.mass) - 1)
        return below[0] + above[0], below[1] + above[1]


def _interval_error(lattice: Lattice, pattern: np.ndarray, errors: Errors) -> float:
    """The error of the product of any interval of the first column with this set of the second."""
    if not pattern.any():
        return 0.0
    if len(lattice.cells) == 1:
        return errors.one
    interval = np.arange(lattice.cells[0].size) == 0
    lines = tuple(len(cells.places) for cells in lattice.cells)
    return Products(lines, lattice.native, errors).of_product(interval, pattern)
