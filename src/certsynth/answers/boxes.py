r"""Certified errors of shares of sets of lattice points: the error of one box, times the number of boxes.

The certificate bounds the error of every interval or label set of one column (:math:`J_1`) and of every box of two
columns (J). A set that is a disjoint union of r of them has at most r times the error, and so has its complement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from certsynth.answers.lattices import Lattice, Points
from certsynth.domain import Cells

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
    return _pieces(len(cells.places), members)


def _pieces(line: int, members: np.ndarray) -> int:
    """The same for a column with this number of points on its line; labels have none."""
    return max(int(members.any()), runs(members[:line]) if line else 0)


def error(lattice: Lattice, points: Points, errors: Errors) -> float:
    """The largest possible difference between the private and the synthetic share of these points."""
    if len(lattice.cells) == 1:
        (cells,) = lattice.cells
        return (
            errors.one * min(pieces(cells, points), pieces(cells, ~points)) if 0 < points.sum() < points.size else 0.0
        )
    points, lines = _merge_equal_neighbours(points, tuple(len(cells.places) for cells in lattice.cells))
    return _error_of_pairs(points.tobytes(), points.shape, lines, lattice.native, errors)


def product_errors(
    first: np.ndarray, second: np.ndarray, lines: tuple[int, ...], native: tuple[bool, ...], errors: Errors
) -> np.ndarray:
    """The errors of all products of a set of the first column with a set of the second; each row of an array is a set,
    with a flag for each point."""
    (few, number), (others, number_of_other) = (
        _distinct_forms(sets, line) for sets, line in zip((first, second), lines, strict=True)
    )
    off_line = [sets.shape[1] - line for sets, line in zip((first, second), lines, strict=True)]
    found = np.empty((len(few), len(others)))
    for i, one in enumerate(few):
        for j, other in enumerate(others):
            points, merged = np.outer(one, other), (len(one) - off_line[0], len(other) - off_line[1])
            found[i, j] = _error_of_pairs(points.tobytes(), points.shape, merged, native, errors)
    return np.asarray(found[np.ix_(number, number_of_other)])


def interval_errors(sets: np.ndarray, lines: tuple[int, ...], native: tuple[bool, ...], errors: Errors) -> np.ndarray:
    """The error of the product of any interval of the first column with each set of the second."""
    forms, number = _distinct_forms(sets, lines[1])
    first, off_line = np.arange(lines[0] + 1) == 0, sets.shape[1] - lines[1]
    found = [
        Products((lines[0], len(form) - off_line), native, errors).of_product(first, form) if form.any() else 0.0
        for form in forms
    ]
    return np.array(found)[number]


def _distinct_forms(sets: np.ndarray, line: int) -> tuple[list[np.ndarray], list[int]]:
    """The sets with equal neighbours on the line merged, or labels put in another order, which changes no error.

    Returns those that differ, and which of them each set is.
    """
    numbers: dict[bytes, int] = {}
    forms: list[np.ndarray] = []
    number = []
    for members in sets:
        form = np.sort(members)
        if line:
            keep = np.ones(len(members), bool)
            keep[1:line] = members[1:line] != members[: line - 1]
            form = members[keep]
        if (key := form.tobytes()) not in numbers:
            numbers[key] = len(forms)
            forms.append(form)
        number.append(numbers[key])
    return forms, number


def _merge_equal_neighbours(points: Points, lines: tuple[int, ...]) -> tuple[Points, tuple[int, ...]]:
    """Merge neighbours on a line that have the same set of the other column: this changes no number of intervals, and
    the cells of a table become alike. Nothing is merged if both columns have labels, which are counted."""
    merged = []
    for axis, line in enumerate(lines):
        keep = np.ones(points.shape[axis], bool)
        along = points if axis == 0 else points.T
        keep[1:line] = (along[1:line] != along[: line - 1]).any(axis=1) if line else True
        points = np.compress(keep, points, axis)
        merged.append(int(keep[:line].sum()))
    return points, tuple(merged)


@lru_cache(maxsize=512)
def _error_of_pairs(
    flat: bytes, shape: tuple[int, ...], lines: tuple[int, ...], native: tuple[bool, ...], errors: Errors
) -> float:
    points = np.frombuffer(flat, bool).reshape(shape)
    ways = [Products(lines, native, errors), Products(lines[::-1], native[::-1], errors)]
    return min(way.error(each) for way, some in zip(ways, (points, points.T), strict=True) for each in (some, ~some))


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Sets of points of two columns, cut along the first into groups of points with the same set of the second.

    `lines` are the numbers of points on the lines of the columns; labels have none.
    """

    lines: tuple[int, ...]
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
        line, kinds = self.lines[0], dict[bytes, int]()
        changes = np.flatnonzero((points[1:] != points[:-1]).any(axis=1)) + 1
        ends = np.concatenate([[0], changes, [len(points)]])  # of runs of points with the same set: there are few
        first = ends[:-1]
        kind_of_run = [kinds.setdefault(points[i].tobytes(), len(kinds)) for i in first]
        kind = np.repeat(kind_of_run, ends[1:] - first)
        for k in range(len(kinds)):
            members = kind == k
            pattern = points[first[kind_of_run.index(k)]]
            if not pattern.any():
                continue
            if not line:
                yield members, pattern
                continue
            padded = np.concatenate([[False], members[:line], [False]])
            starts = np.flatnonzero(padded[1:] != padded[:-1])
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
        return self.errors.two * _pieces(self.lines[0], first) * _pieces(self.lines[1], second)

    def _of_rest(self, first: np.ndarray, second: np.ndarray) -> float:
        """All of the second set, less the part outside of the first: worth it if few labels are outside."""
        return self._of_whole(1, second) + self._of_box(~first, second) if self._labels_only else math.inf

    def _of_whole(self, axis: int, members: np.ndarray) -> float:
        """The error of a set of one column: by the bound of one column if both lattices have the same points."""
        if members.all():
            return 0.0
        line = self.lines[axis]
        fewest = min(_pieces(line, members), _pieces(line, ~members))
        one = self.errors.one * fewest if self.native[axis] else math.inf
        two = math.inf if self._labels_only and members.sum() > 1 else self.errors.two * _pieces(line, members)
        return min(one, two)

    @property
    def _labels_only(self) -> bool:
        return not any(self.lines)
