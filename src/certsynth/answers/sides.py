"""One side of a crosstab: sets of values of a column, and what the cells of all crosstabs with it have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certsynth.answers import shares
from certsynth.answers.basis import Basis
from certsynth.answers.boxes import pieces
from certsynth.answers.claims import Claim
from certsynth.answers.lattices import Code, codes_of, codes_of_cells, inner_and_outer
from certsynth.answers.nearness import Boxes, Nearness
from certsynth.answers.tables import Bin, runs_of
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells, Column, Ordered
from certsynth.domain.condition import Condition, Missing, Not
from certsynth.domain.meaning import Reader
from certsynth.queries.fine import DEFAULT_STEPS


@dataclass(frozen=True, eq=False)
class Side:
    """The `sets` of one column: its bins or, with `runs`, all unions of consecutive bins. If values may be missing, the
    last set is that of all values that are present.

    `runs` is false if there is only one range. There are `bins` bins: `contains[s, k]` says that bin k is in set s,
    and `codes` has the bin of each row.
    """

    basis: Basis
    column: Column
    sets: Sequence[Bin]
    bins: int
    conditions: Sequence[Condition]
    boxes: Sequence[Boxes]
    contains: np.ndarray
    codes: np.ndarray
    runs: bool

    @classmethod
    def of(cls, basis: Basis, column: Column, bins: Sequence[Bin], *, runs: bool = False) -> Side | None:
        """The sets of a column; None if one of them has all values, or none that can be compared with cells."""
        reader, size = Reader(list(basis.schema)), len(bins)
        codes = np.zeros(basis.size, np.int16)
        for k, each in enumerate(bins):
            codes[reader.condition(each.condition).holds(basis.rows) > 0] = k
        sets, number = list(bins), np.arange(size)
        contains = np.eye(size, dtype=bool)
        joined = runs_of(column, bins) if runs and isinstance(column, Ordered) else []
        if joined:
            sets = [each for _, _, each in joined] + list(bins[size - column.missing :])
            rows = [(first <= number) & (number <= last) for first, last, _ in joined]
            contains = np.array(rows + [number == size - 1] * column.missing)
        conditions: list[Condition] = [reader.condition(each.condition) for each in sets]
        if column.missing:
            conditions.append(Not(Missing(column.name)))
            contains = np.vstack([contains, number < size - 1])
        boxes = [found for each in conditions if (found := basis.boxes(each)) is not None]
        usual = [len(each.satisfied) == 1 and each.names == {column.name} and bool(each.rest) for each in boxes]
        if len(boxes) < len(conditions) or not all(usual):
            return None
        return cls(basis, column, sets, size, conditions, boxes, contains, codes, bool(joined))

    @property
    def name(self) -> str:
        return self.column.name

    @cached_property
    def sizes(self) -> Ints:
        """The number of synthetic rows in each set."""
        return np.asarray(self.contains @ np.bincount(self.codes, minlength=self.bins))

    # ------------------------------------------------------------ sets of points

    @cached_property
    def lattice(self) -> Cells:
        """The lattice of shares of two columns."""
        return self.column.lattice(DEFAULT_STEPS[2])

    @cached_property
    def lattice_codes(self) -> Ints:
        """The point of each row on that lattice."""
        return codes_of(self.column, self.basis.clean[self.name], self.lattice).astype(np.int32)

    def points(self, cells: Cells, code: Code = codes_of) -> tuple[np.ndarray, np.ndarray]:
        """For each set its inner points on some cells, and its outer points."""
        found = [inner_and_outer((self.column,), (cells,), each, code) for each in self.boxes]
        return np.array([inner for inner, _ in found]), np.array([outer for _, outer in found])

    @cached_property
    def lattice_points(self) -> tuple[np.ndarray, np.ndarray]:
        return self.points(self.lattice)

    @cached_property
    def border_shares(self) -> tuple[Floats, Floats]:
        """For each set, what `shares.border_shares` adds for this side of a cell."""
        ends = np.array([shares.border_shares_of_side(self.basis, each) for each in self.boxes])
        return ends[:, 0], ends[:, 1]

    @cached_property
    def native(self) -> bool:
        """Whether the lattice has a point for each value."""
        return not self.column.covering_radius(self.lattice)

    # ------------------------------------------------------------ shares of this column alone

    @cached_property
    def claims(self) -> list[Claim]:
        """What is certified about the share of each set."""
        return [shares.share(self.basis, condition)[1] for condition in self.conditions]

    @cached_property
    def most(self) -> Floats:
        """The largest share of each set by the bounds on shares alone, which no part of the set exceeds."""
        lattice, errors = self.basis.lattice(self.name, shares=True), self.basis.errors([self.name])
        highs = [np.ones(len(self.conditions))]
        if lattice is not None:
            (cells,), (_, outer) = lattice.cells, self.points(lattice.cells[0])
            number = [
                min(pieces(cells, each), pieces(cells, ~each)) if 0 < each.sum() < each.size else 0 for each in outer
            ]
            highs.append(outer @ lattice.counts / lattice.rows + errors.one * np.array(number))
        for table in self.basis.noisy.tables_of([self.name]):
            inner, outer = self.points(table.cells[0], codes_of_cells)
            highs.append(np.array([self.basis.noisy.share(table, *each)[1] for each in zip(inner, outer, strict=True)]))
        return np.asarray(np.min(highs, axis=0))

    # ------------------------------------------------------------ distances

    @cached_property
    def _values(self) -> tuple[Floats, Ints]:
        values, inverse = np.unique(self.basis.rows[self.name], return_inverse=True)
        return values, inverse.astype(np.int32)

    @property
    def values(self) -> Floats:
        """The distinct values of the column, in order."""
        return self._values[0]

    @property
    def value_codes(self) -> Ints:
        """For each row the number of its value among the distinct ones."""
        return self._values[1]

    @cached_property
    def distances(self) -> tuple[Floats, Floats]:
        """The distances of each distinct value to each set, and to its complement."""
        near = Nearness(self.basis.columns, {self.name: self._values[0]})
        to = np.array([near.satisfied(each) for each in self.conditions])
        return to, np.array([near.rest(each) for each in self.conditions])
