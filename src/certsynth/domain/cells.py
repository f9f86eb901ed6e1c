"""A column cut into finitely many points: the metric space that counting and transport work on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints, read_only
from certsynth.domain.web import Web

WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    r"""Points on a line, and points apart from it.

    The point with code c < `len(places)` sits at `places[c]` steps of length 1/`steps` on the line; every later code is
    a point at distance `weight` from all others (a category, a missing value). So

    .. math:: d(a, b) = |places_a - places_b| / steps, \quad\text{or } weight \text{ if either is apart and } a \ne b

    Where there is a `web`, it says instead how far its labels, the first points apart, are from each other, as shares
    of `weight`.

    `places` lists only the steps where some value of the column can fall: a step without one holds no row of any
    table, so it needs neither a counter nor noise.

    >>> few = Cells(places=np.array([0, 3]), steps=4, apart=1)
    >>> few.size, few.distance(np.array([0, 0, 2]), np.array([1, 2, 2])).tolist()
    (3, [0.75, 1.0, 0.0])
    """

    places: Ints
    steps: int
    apart: int
    weight: Fraction = WHOLE
    web: Web | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", read_only(np.asarray(self.places, dtype=np.int64)))
        if self.size < 1:
            raise ValueError("a column needs at least one cell")
        if self.web is not None and (len(self.places) or self.web.size > self.apart):
            raise ValueError("a web is for points apart, where there is no line")

    @property
    def size(self) -> int:
        return len(self.places) + self.apart

    @property
    def span(self) -> int:
        """Length of the line in steps."""
        return int(self.places[-1] - self.places[0]) if len(self.places) else 0

    @property
    def alone(self) -> int:
        """Points at `weight` from all others: those apart that are in no web."""
        return self.apart - (self.web.size if self.web is not None else 0)

    @property
    def diameter(self) -> Fraction:
        if self.alone and self.size > 1:
            return max(self.weight, Fraction(self.span, self.steps))
        return self.weight * self.web.diameter if self.web is not None else Fraction(self.span, self.steps)

    @property
    def grain(self) -> int:
        """A number of parts to the unit length such that all distances are whole numbers of them."""
        web = self.web.unit if self.web is not None else 1
        line = self.steps if len(self.places) else 1
        return math.lcm(line, (self.weight / web).denominator, self.weight.denominator)

    def distance(self, first: Ints, second: Ints) -> np.ndarray:
        """Distance between the points with the given codes, elementwise."""
        first, second = np.broadcast_arrays(first, second)
        far = np.where(first != second, float(self.weight), 0.0)
        line = len(self.places)
        if line:
            a, b = np.minimum(first, line - 1), np.minimum(second, line - 1)
            along = np.abs(self.places[a] - self.places[b]) / self.steps
            return np.where((first >= line) | (second >= line), far, along)
        if self.web is not None:
            last = self.web.size - 1
            inside = self.web.distances[np.minimum(first, last), np.minimum(second, last)] / self.web.unit
            return np.where((first > last) | (second > last), far, float(self.weight) * inside)
        return far


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Groups(Cells):
    """Points of a lattice taken together: neighbours on the line, and any points apart that go together.

    `starts` holds the lattice code of the first point of each group on the line. A group sits half-way between its
    first and its last point. `kin` holds, for each point apart, the number of its group among those apart, and `heads`
    for each such group the point that stands for it.
    """

    lattice: Cells
    starts: Ints
    kin: Ints
    heads: Ints

    @classmethod
    def of(cls, lattice: Cells, starts: Ints | None, kin: Ints | None = None, heads: Ints | None = None) -> Groups:
        """What is not said stays alone.

        >>> groups = Groups.of(Cells(places=np.arange(5), steps=4, apart=1), np.array([0, 1, 4]))
        >>> groups.places / groups.steps, groups.code(np.arange(6)).tolist()
        (array([0. , 0.5, 1. ]), [0, 1, 1, 1, 2, 3])
        """
        line = len(lattice.places)
        starts = np.arange(line) if starts is None else np.asarray(starts, dtype=np.int64)
        if line and (not len(starts) or starts[0] != 0 or starts[-1] >= line or (np.diff(starts) <= 0).any()):
            raise ValueError("groups must begin at the first point, each after the one before")
        if not line and len(starts):
            raise ValueError("there are no points on the line to group")
        kin = np.arange(lattice.apart) if kin is None else np.asarray(kin, dtype=np.int64)
        heads = np.arange(lattice.apart) if heads is None else np.asarray(heads, dtype=np.int64)
        if kin.shape != (lattice.apart,) or (heads < 0).any() or not np.array_equal(kin[heads], np.arange(len(heads))):
            raise ValueError("every group of points apart must hold the point that stands for it")
        if not ((kin >= 0) & (kin < len(heads))).all():
            raise ValueError("every point apart must be in a group")
        web = lattice.web
        if web is not None:
            woven = int(np.searchsorted(heads >= web.size, True))
            alone = np.flatnonzero(np.arange(lattice.apart) >= web.size)
            if (kin[: web.size] >= woven).any() or not np.array_equal(heads[woven:], alone):
                raise ValueError("points outside of a web stay alone, after its groups")
            web = web.take(heads[:woven])
        last = np.append(starts[1:], line)[: len(starts)] - 1
        return cls(
            places=lattice.places[starts] + lattice.places[last],
            steps=2 * lattice.steps,
            apart=len(heads),
            weight=lattice.weight,
            web=web,
            lattice=lattice,
            starts=read_only(starts),
            kin=read_only(kin),
            heads=read_only(heads),
        )

    def code(self, points: Ints) -> Ints:
        """Groups of the lattice points with the given codes."""
        line = len(self.lattice.places)
        on_line = np.searchsorted(self.starts, points, side="right") - 1
        if not self.lattice.apart:
            return np.asarray(on_line)
        apart = self.kin[np.maximum(points - line, 0)] + len(self.starts)
        return np.where(points < line, on_line, apart)

    def middles(self) -> Ints:
        """For each group a lattice point in it, at or next to where the group is."""
        ends = np.append(self.starts[1:], len(self.lattice.places))[: len(self.starts)]
        return np.concatenate([(self.starts + ends - 1) // 2, len(self.lattice.places) + self.heads])

    @property
    def widest(self) -> Fraction:
        """How far a lattice point can be from where its group is."""
        ends = np.append(self.starts[1:], len(self.lattice.places))[: len(self.starts)] - 1
        widths = self.lattice.places[ends] - self.lattice.places[self.starts]
        line = Fraction(int(widths.max(initial=0)), self.steps)
        points = np.arange(self.lattice.apart)
        merged = points != self.heads[self.kin]
        if not merged.any():
            return line
        web = self.lattice.web
        if web is None:
            return max(line, self.weight)
        away = web.distances[points[merged], self.heads[self.kin[merged]]].max()
        return max(line, self.weight * Fraction(int(away), web.unit))


def coarser(fine: Cells, coarse: Cells) -> Ints:
    """Code of the coarse cell that holds each fine one, where these are groups of one lattice or the same cells.

    >>> lattice = Cells(places=np.arange(4), steps=3, apart=1)
    >>> coarser(Groups.of(lattice, np.arange(4)), Groups.of(lattice, np.array([0, 2]))).tolist()
    [0, 0, 1, 1, 2]
    """
    if fine is coarse:
        return np.arange(fine.size)
    if not isinstance(fine, Groups) or not isinstance(coarse, Groups) or fine.lattice.size != coarse.lattice.size:
        raise ValueError("cells of different kinds are not parts of each other")
    return coarse.code(np.concatenate([fine.starts, len(fine.lattice.places) + fine.heads]))
