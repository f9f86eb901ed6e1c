"""The synthetic values of an ordered column, counted in the cells whose shares are certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certsynth.answers.basis import raise_bound
from certsynth.answers.lattices import codes_of, figures_of_codes, has_monotone_codes
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Ordered
from certsynth.queries.fine import DEFAULT_STEPS
from certsynth.queries.statistics import share_cells

MAX_CELLS = 400
"""Cells of a column: the report carries them all. If more hold rows, neighbours are merged."""

PLACES = 10**6
"""Places of numbers are whole multiples of 1/PLACES, rounded outward."""


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedCells:
    """`counts` of rows in cells that hold any, each with the values from `first` to `last`, and the number of all
    `rows`. Values are offsets from the column's low, and for numbers places in [0, 1].

    The certified `error` of shares holds for every run of whole cells, with or without the missing values. A set of
    values contains its inner cells and lies within those that it meets: empty cells do not matter.
    """

    first: Floats
    last: Floats
    counts: Ints
    rows: int
    error: float

    def share(self, low: float, high: float) -> tuple[float, float]:
        """The least and the largest share of the real rows with a value from low to high."""
        inner = int(self.counts[(low <= self.first) & (self.last <= high)].sum())
        outer = int(self.counts[(low <= self.last) & (self.first <= high)].sum())
        error = raise_bound(self.error)
        return max(0.0, inner / self.rows - error), min(1.0, outer / self.rows + error)


def count_cells(column: Ordered, offsets: np.ndarray, absent: int, error: float) -> CertifiedCells | None:
    """Count cleaned values that are not missing; None if nothing is certified about shares of this column."""
    if error >= 1 or not has_monotone_codes(column) or not len(offsets) + absent:
        return None
    cells = share_cells(column, column.lattice(DEFAULT_STEPS[1]))
    counts = np.bincount(codes_of(column, offsets, cells), minlength=len(cells.places))
    there = np.flatnonzero(counts)
    first, last = (ends[there] - float(column.low) for ends in figures_of_codes(column, cells))
    if not column.whole:
        length = (float(column.high) - float(column.low)) / PLACES
        first, last = np.floor(first / length) / PLACES, np.ceil(last / length) / PLACES
    starts = np.unique(np.arange(MAX_CELLS) * len(there) // MAX_CELLS) if len(there) else there
    ends = np.append(starts[1:], len(there))[: len(starts)] - 1
    merged = np.add.reduceat(counts[there], starts) if len(there) else counts[:0]
    return CertifiedCells(first[starts], last[ends], merged, len(offsets) + absent, error)
