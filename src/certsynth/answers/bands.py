"""Bands: certified ranges of the share of a group's rows with a value above each threshold, and statistics that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certsynth.answers.boxes import Errors, Products
from certsynth.answers.claims import conditional
from certsynth.answers.lattices import Lattice, Points, figures_of_codes, off_lattice
from certsynth.base.arrays import Floats
from certsynth.domain import Ordered
from certsynth.queries.statistics import UNITS, places_in_units

SURE = 1e-12
"""By how much a share must differ from p before it decides on which side the quantile is."""


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """`low[i]` and `high[i]` bound the share of the group's rows at point i of the column's line or above it.

    `places` are the points in [0, 1]; a value is at most `off` from its point. Point i stands for the values from
    `first[i]` to `last[i]`.
    """

    places: Floats
    off: float
    first: Floats
    last: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, lattice: Lattice, inner: Points, outer: Points, errors: Errors, group: tuple[float, float]) -> Bands:
        """The bands of the lattice's first column among rows with a value in it. `inner` and `outer` are the points of
        the group, and `group` bounds its share of all rows with a value."""
        column, cells = lattice.columns[0], lattice.cells[0]
        assert isinstance(column, Ordered)
        line = len(cells.places)
        low_below, low_above = _cumulated(lattice, inner[:line].reshape(line, -1), errors, -1.0)
        high_below, high_above = _cumulated(lattice, outer[:line].reshape(line, -1), errors, 1.0)
        above = np.maximum(low_above, 0.0), np.minimum(high_above, group[1])
        below = np.maximum(low_below, 0.0), np.minimum(high_below, group[1])
        low, high = conditional(above, below, group)
        low[0] = high[0] = 1.0
        low[-1] = high[-1] = 0.0
        first, last = figures_of_codes(column, cells)
        return cls(
            places=places_in_units(cells) / UNITS,
            off=off_lattice(column, cells),
            first=first,
            last=last,
            low=np.maximum.accumulate(low[::-1])[::-1],
            high=np.minimum.accumulate(high),
        )

    def mean(self, function: Callable[[Floats], Floats] | None = None) -> tuple[float, float]:
        r"""The range of the mean of a function of the place of points, by default the place itself.

        .. math:: E f = f(p_0) + \sum_{i ≥ 1} (f(p_i) − f(p_{i−1})) P(\text{point } ≥ i)
        """
        values = self.places if function is None else function(self.places)
        steps = np.diff(values)
        low, high = self.low[1:-1], self.high[1:-1]
        least = float(np.dot(np.maximum(steps, 0.0), low) - np.dot(np.maximum(-steps, 0.0), high))
        most = float(np.dot(np.maximum(steps, 0.0), high) - np.dot(np.maximum(-steps, 0.0), low))
        return float(values[0]) + least, float(values[0]) + most

    def quantile(self, p: float) -> tuple[float, float]:
        """The lowest and the highest value that a p-quantile can be, under any convention."""
        under = np.flatnonzero(self.high < 1.0 - p - SURE)  # less than 1 − p of the rows is at these points or above
        over = np.flatnonzero(self.low > 1.0 - p + SURE)
        return float(self.first[over[-1]]), float(self.last[under[0] - 1])


def _cumulated(lattice: Lattice, points: Points, errors: Errors, sign: float) -> tuple[Floats, Floats]:
    """For i = 0, 1, …: the shares of the group's rows below point i of the line, and of those at it or above, plus `sign`
    times the error of each. A run of points with the same set of the other column is one product below every i."""
    counts = lattice.counts[: len(points)].reshape(points.shape)
    mass = np.append(0.0, np.cumsum(np.where(points, counts, 0).sum(axis=1))) / lattice.rows
    starts = np.flatnonzero(np.append(True, (points[1:] != points[:-1]).any(axis=1)))
    each = np.array([_interval_error(lattice, points[start], errors) for start in starts])
    begun = np.zeros(len(points) + 1)
    begun[starts + 1] = each
    ended = np.zeros(len(points) + 1)
    ended[np.append(starts[1:], len(points)) - 1] = each
    below = mass + sign * np.cumsum(begun)
    above = mass[-1] - mass + sign * np.cumsum(ended[::-1])[::-1]
    return below, above


def _interval_error(lattice: Lattice, pattern: np.ndarray, errors: Errors) -> float:
    """The error of the product of any interval of the first column with this set of the second."""
    if not pattern.any():
        return 0.0
    if len(lattice.cells) == 1:
        return errors.one
    interval = np.arange(lattice.cells[0].size) == 0
    return Products(lattice.cells, lattice.native, errors).of_product(interval, pattern)
