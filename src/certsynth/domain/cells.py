"""A column cut into finitely many points: the metric space that counting and transport work on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.arrays import Ints, frozen


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    r"""Points on a line, and points apart from it.

    The point with code c < `len(places)` sits at `places[c]` steps of length 1/`steps` on the line; every later
    code is a point at distance 1 from all others (a category, a missing value). So

    .. math:: d(a, b) = |places_a - places_b| / steps, \quad\text{or } 1 \text{ if either is apart and } a \ne b

    `places` lists only the steps where some value of the column can fall: a step without one holds no row of any
    table, so it needs neither a counter nor noise.

    >>> few = Cells(places=np.array([0, 3]), steps=4, apart=1)
    >>> few.size, few.distance(np.array([0, 0, 2]), np.array([1, 2, 2])).tolist()
    (3, [0.75, 1.0, 0.0])
    """

    places: Ints
    steps: int
    apart: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", frozen(np.asarray(self.places, dtype=np.int64)))
        if self.size < 1:
            raise ValueError("a column needs at least one cell")

    @property
    def size(self) -> int:
        return len(self.places) + self.apart

    @property
    def span(self) -> int:
        """Length of the line in steps."""
        return int(self.places[-1] - self.places[0]) if len(self.places) else 0

    @property
    def diameter(self) -> Fraction:
        if self.apart and self.size > 1:
            return Fraction(1)
        return Fraction(self.span, self.steps)

    def distance(self, first: Ints, second: Ints) -> np.ndarray:
        """Distance between the points with the given codes, elementwise."""
        first, second = np.broadcast_arrays(first, second)
        if not len(self.places):
            return (first != second).astype(float)
        line = len(self.places)
        a, b = np.minimum(first, line - 1), np.minimum(second, line - 1)
        along = np.abs(self.places[a] - self.places[b]) / self.steps
        crosses = (first >= line) | (second >= line)
        return np.where(crosses, (first != second).astype(float), along)


@dataclass(frozen=True, slots=True, eq=False)
class Groups(Cells):
    """Neighbouring points of a lattice taken together: cells of different widths. Points apart stay alone.

    `starts` holds the lattice code of the first point of each group on the line. A group sits half-way between its
    first and its last point.
    """

    lattice: Cells
    starts: Ints

    @classmethod
    def of(cls, lattice: Cells, starts: Ints) -> Groups:
        """
        >>> groups = Groups.of(Cells(places=np.arange(5), steps=4, apart=1), np.array([0, 1, 4]))
        >>> groups.places / groups.steps, groups.code(np.arange(6)).tolist()
        (array([0. , 0.5, 1. ]), [0, 1, 1, 1, 2, 3])
        """
        line, starts = len(lattice.places), np.asarray(starts, dtype=np.int64)
        if line and (not len(starts) or starts[0] != 0 or starts[-1] >= line or (np.diff(starts) <= 0).any()):
            raise ValueError("groups must begin at the first point, each after the one before")
        if not line and len(starts):
            raise ValueError("there are no points on the line to group")
        last = np.append(starts[1:], line)[: len(starts)] - 1
        return cls(
            places=lattice.places[starts] + lattice.places[last],
            steps=2 * lattice.steps,
            apart=lattice.apart,
            lattice=lattice,
            starts=frozen(starts),
        )

    def code(self, points: Ints) -> Ints:
        """Groups of the lattice points with the given codes."""
        line = len(self.lattice.places)
        on_line = np.searchsorted(self.starts, points, side="right") - 1
        return np.where(points < line, on_line, points - line + len(self.starts))

    @property
    def widest(self) -> Fraction:
        """How far a lattice point can be from the middle of its group."""
        ends = np.append(self.starts[1:], len(self.lattice.places))[: len(self.starts)] - 1
        widths = self.lattice.places[ends] - self.lattice.places[self.starts]
        return Fraction(int(widths.max(initial=0)), self.steps)


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
    apart = len(fine.lattice.places) + np.arange(fine.apart)
    return coarse.code(np.concatenate([fine.starts, apart]))
