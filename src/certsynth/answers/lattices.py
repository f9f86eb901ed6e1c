"""Synthetic rows on the lattices of bounds on shares, group totals and moments, and conditions as sets of points.

A point of a lattice stands for all values that have its code. It is an *inner* point of a condition that holds for all
of them, and an *outer* point of one that holds for some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from certsynth.answers.nearness import Box, Boxes
from certsynth.answers.places import OfLabels, OnLine
from certsynth.answers.spans import Spans
from certsynth.base.arrays import Floats, Ints, read_only
from certsynth.domain import Cells, Column, Groups, Ordered
from certsynth.queries.fine import DEFAULT_STEPS
from certsynth.queries.statistics import UNITS, band_cells, share_cells
from certsynth.queries.thresholds import least_floats

Points = np.ndarray
"""A flag for each point of a lattice, with one axis for each column."""


MAX_LISTED_VALUES = 2**20
"""Values of a column up to which the code of each is computed, to find the values that a point stands for."""

Code = Callable[[Column, np.ndarray, Cells], Ints]
"""Codes of cleaned values of a column on some cells; they never decrease along a line."""


def codes_of(column: Column, clean: np.ndarray, cells: Cells) -> Ints:
    """The codes of cleaned values on a lattice, or on groups of its points."""
    if isinstance(cells, Groups):
        return cells.code(column.to_lattice(clean, cells.lattice)[0])
    return column.to_lattice(clean, cells)[0]


def has_monotone_codes(column: Column) -> bool:
    """Whether codes never decrease with the value: on longer ranges their integers overflow."""
    steps = max(DEFAULT_STEPS[1], DEFAULT_STEPS[2])
    return not isinstance(column, Ordered) or 4 * column.reach * steps * column.weight.numerator < 2**62


def codes_of_cells(column: Column, clean: np.ndarray, cells: Cells) -> Ints:
    """The codes of cleaned values on measured cells."""
    return column.to_cells(clean, cells)


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The numbers of synthetic rows at the points of the lattice of one or two columns."""

    columns: tuple[Column, ...]
    cells: tuple[Cells, ...]
    counts: Ints

    @classmethod
    def of(cls, columns: Sequence[Column], clean: Mapping[str, np.ndarray]) -> Lattice:
        """The lattice of group totals and moments, and of shares of two columns."""
        return cls._count(columns, [column.lattice(DEFAULT_STEPS[len(columns)]) for column in columns], clean)

    @classmethod
    def of_shares(cls, column: Column, clean: Mapping[str, np.ndarray]) -> Lattice:
        """The points, or groups of points, whose sets are those of shares of one column."""
        return cls._count([column], [share_cells(column, column.lattice(DEFAULT_STEPS[1]))], clean)

    @classmethod
    def of_bands(cls, columns: Sequence[Column], clean: Mapping[str, np.ndarray]) -> Lattice:
        """The bands of columns, and their labels."""
        return cls._count(columns, [band_cells(column) for column in columns], clean)

    @classmethod
    def _count(cls, columns: Sequence[Column], cells: Sequence[Cells], clean: Mapping[str, np.ndarray]) -> Lattice:
        codes = [codes_of(column, clean[column.name], each) for column, each in zip(columns, cells, strict=True)]
        sizes = tuple(lattice.size for lattice in cells)
        flat = np.ravel_multi_index(tuple(codes), sizes)
        return cls(tuple(columns), tuple(cells), np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def native(self) -> tuple[bool, ...]:
        """For each column whether it has a point for each value, as it then has for shares of that column alone."""
        return tuple(not c.covering_radius(cells) for c, cells in zip(self.columns, self.cells, strict=True))

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def share(self, points: Points) -> float:
        """The share of synthetic rows at these points."""
        return float(self.counts[points].sum() / self.rows)

    def inner_and_outer(self, boxes: Boxes) -> tuple[Points, Points]:
        """The points where a condition holds for all values, and those where it holds for some."""
        return inner_and_outer(self.columns, self.cells, boxes, codes_of)


def inner_and_outer(
    columns: Sequence[Column], cells: Sequence[Cells], boxes: Boxes, code: Code
) -> tuple[Points, Points]:
    """The points of some cells where a condition holds for all values, and those where it holds for some."""
    return ~_touched(columns, cells, boxes.rest, code), _touched(columns, cells, boxes.satisfied, code)


def _touched(columns: Sequence[Column], cells: Sequence[Cells], boxes: Sequence[Box], code: Code) -> Points:
    """The points with a value in the union of the boxes."""
    shape = tuple(each.size for each in cells)
    found = np.zeros(shape, bool)
    for box in boxes:
        inside = np.ones(shape, bool)
        for axis, (column, each) in enumerate(zip(columns, cells, strict=True)):
            if column.name in box:
                members = _touched_by_set(box[column.name], each, code)
                inside &= np.expand_dims(members, tuple(i for i in range(len(shape)) if i != axis))
        found |= inside
    return found


def _touched_by_set(place: OnLine | OfLabels, cells: Cells, code: Code) -> np.ndarray:
    """The points of a column that stand for some value of the set."""
    found = np.zeros(cells.size, bool)
    if isinstance(place, OfLabels):
        found[code(place.column, np.flatnonzero(place.members), cells)] = True
        return found
    first, last = figures_of_codes(place.column, cells, code)
    for low, high in place.spans.pairs:
        found[: len(first)] |= (first <= high) & (low <= last)
    found[len(first) :] = place.missing
    return found


def round_outward(place: OnLine | OfLabels, cells: Cells) -> OnLine | OfLabels:
    """All values of a column whose points stand for some value of the set."""
    touched = _touched_by_set(place, cells, codes_of)
    if isinstance(place, OfLabels):
        return OfLabels(place.column, touched[codes_of(place.column, np.arange(len(place.members)), cells)])
    first, last = figures_of_codes(place.column, cells)
    padded = np.concatenate([[False], touched[: len(first)], [False]])
    starts, ends = np.flatnonzero(padded[1:] & ~padded[:-1]), np.flatnonzero(padded[:-1] & ~padded[1:]) - 1
    pairs = tuple(zip(first[starts].tolist(), last[ends].tolist(), strict=True))
    return OnLine(place.column, Spans(pairs, place.spans.whole), place.missing)


@lru_cache(maxsize=256)
def figures_of_codes(column: Ordered, cells: Cells, code: Code = codes_of) -> tuple[Floats, Floats]:
    """For each point on the line the least and the largest value that it stands for; for numbers a little beyond, as
    places of values are rounded."""
    line, reach = len(cells.places), float(column.reach)
    if column.last_index is not None and column.last_index < MAX_LISTED_VALUES:
        every = np.arange(column.last_index + 1)
        least = np.searchsorted(code(column, column.at_index(every), cells), np.arange(line))
        ends = least, np.append(least[1:] - 1, every[-1])
        return read_only(column.figures_at(ends[0])), read_only(column.figures_at(ends[1]))
    found = least_floats(lambda values: code(column, np.clip(values, 0.0, reach), cells), np.arange(1, line))
    least = np.append(0.0, np.maximum(found, 0.0))
    low, high = float(column.low), float(column.high)
    if column.whole:  # codes of fractions depend on how they are rounded
        whole: Floats = np.asarray(np.ceil(least), dtype=np.float64)
        return read_only(whole + low), read_only(np.append(whole[1:] - 1.0, reach) + low)
    slack = 1e-9 * (high - low) + 8 * float(np.spacing(max(abs(low), abs(high))))
    first, last = low + least * (high - low) - slack, low + np.append(least[1:], 1.0) * (high - low) + slack
    return read_only(np.maximum(first, low)), read_only(np.minimum(last, high))


def off_lattice(column: Ordered, cells: Cells) -> float:
    """The largest difference between the place of a value in [0, 1] and that of its point, or group of points."""
    if isinstance(cells, Groups):
        radius = cells.radius + column.covering_radius(cells.lattice)
    else:
        radius = column.covering_radius(cells)
    return float(radius / column.weight) + 1.0 / UNITS
