r"""Certified errors of shares of sets of lattice points: the error of one box, times the number of boxes.

The certificate bounds the error of every interval or label set of one column (:math:`J_1`) and of every box of two
columns (J). A set that is a disjoint union of r of them has at most r times the error, and so has its complement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from certsynth.answers.lattices import Lattice, Points
from certsynth.domain import Cells
from certsynth.queries.statistics import is_line

MAX_BOXES = 64
"""Boxes beyond which a set is not cut into them: their errors would add up to more than is worth knowing."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Certified errors of shares: of a set of one column, and of a box of two (infinite if none is certified)."""

    one: float
    two: float


def runs(members: np.ndarray) -> int:
    """The number of maximal runs of true values.

    >>> runs(np.array([True, False, True, True]))
    2
    """
    return int(np.count_nonzero(members[1:] & ~members[:-1])) + int(members[:1].sum())


def pieces(cells: Cells, members: np.ndarray) -> int:
    """The fewest intervals, with or without the missing value, or label sets whose disjoint union is the set."""
    return max(int(members.any()), runs(members[: len(cells.places)]) if is_line(cells) else 0)


def error(lattice: Lattice, points: Points, errors: Errors) -> float:
    """The largest possible difference between the private and the synthetic share of these points."""
    if len(lattice.cells) == 1:
        (cells,) = lattice.cells
        return (
            errors.one * min(pieces(cells, points), pieces(cells, ~points)) if 0 < points.sum() < points.size else 0.0
        )
    ways = [
        Products(lattice.cells, lattice.native, errors),
        Products(lattice.cells[::-1], lattice.native[::-1], errors),
    ]
    return min(way.error(each) for way, flat in zip(ways, (points, points.T), strict=True) for each in (flat, ~flat))


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Sets of points of two columns, cut along the first into groups of points with the same set of the second."""

    cells: tuple[Cells, ...]
    native: tuple[bool, ...]
    errors: Errors

    def error(self, points: Points) -> float:
        total = 0.0
        for number, (members, pattern) in enumerate(self._groups(points)):
            if number == MAX_BOXES:
                return math.inf
            total += self.of_product(members, pattern)
        return total

    def _groups(self, points: Points) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Disjoint sets of the first column whose points have the same non-empty set of the second column."""
        line, kinds = len(self.cells[0].places), dict[bytes, int]()
        kind = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in np.packbits(points, axis=1)])
        for k in range(len(kinds)):
            members = kind == k
            pattern = points[int(np.argmax(members))]
            if not pattern.any():
                continue
            if not is_line(self.cells[0]):
                yield members, pattern
                continue
            starts = np.flatnonzero(np.diff(members[:line], prepend=False, append=False).astype(bool))
            spans = list(zip(starts[::2], starts[1::2], strict=True)) or [(0, 0)]
            for i, (start, end) in enumerate(spans):
                run = np.zeros(len(members), bool)
                run[start:end] = True
                if i == 0:
                    run[line:] = members[line:]
                yield run, pattern

    def of_product(self, first: np.ndarray, second: np.ndarray) -> float:
        """The error of first × second, where `first` is a set of the first column's class."""
        whole = self._of_whole(0, first)
        if second.all():
            return whole
        return min(self._of_box(first, second), whole + self._of_box(first, ~second), self._of_rest(first, second))

    def _of_box(self, first: np.ndarray, second: np.ndarray) -> float:
        if self._labels_only:
            return self.errors.two * min(int(first.sum()), int(second.sum()))
        return self.errors.two * pieces(self.cells[0], first) * pieces(self.cells[1], second)

    def _of_rest(self, first: np.ndarray, second: np.ndarray) -> float:
        """All of the second set, less the part outside of the first: worth it if few labels are outside."""
        return self._of_whole(1, second) + self._of_box(~first, second) if self._labels_only else math.inf

    def _of_whole(self, axis: int, members: np.ndarray) -> float:
        """The error of a set of one column: by the bound of one column if both lattices have the same points."""
        if members.all():
            return 0.0
        cells = self.cells[axis]
        fewest = min(pieces(cells, members), pieces(cells, ~members))
        one = self.errors.one * fewest if self.native[axis] else math.inf
        two = math.inf if self._labels_only and members.sum() > 1 else self.errors.two * pieces(cells, members)
        return min(one, two)

    @property
    def _labels_only(self) -> bool:
        return not any(map(is_line, self.cells))
