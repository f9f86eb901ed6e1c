"""Definitions shared by bounds on shares, group totals and moments and by the answers that use them, in integers.

Functions of rows are computed at lattice points and take integer values, in multiples of 1/UNITS. Claims and proofs are
in docs/explanation/proofs/statistics.md.
"""

from __future__ import annotations

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain import Cells, Column, Ordered
from certsynth.domain.cells import Groups

UNITS = 2**20
"""Units in which places on a line and the values of functions are measured: the whole line is this long."""


def is_line(cells: Cells) -> bool:
    """Whether the column is ordered: its sets are intervals, with or without the missing value, else any sets."""
    return len(cells.places) > 0


def share_cells(column: Column, lattice: Cells) -> Cells:
    """The cells whose intervals and sets are the sets of one column: lattice points, or groups of them.

    A column with more values than are measured one by one is measured on the coarser lattice of `Column.detail`. The
    share of a part of its cells depends on how values are spread inside, so that its sets consist of whole cells.
    """
    detail = column.detail()
    if not is_line(lattice) or not column.covering_radius(detail):
        return lattice
    codes = column.to_lattice(column.on_lattice(lattice), detail)[0][: len(lattice.places)]
    return Groups.of(lattice, np.flatnonzero(np.diff(codes, prepend=-1)))


def has_bands(column: Column) -> bool:
    """Whether the schema names borders of this column."""
    return isinstance(column, Ordered) and bool(column.bands)


def band_cells(column: Column) -> Cells:
    """The bands of an ordered column, as groups of its values; one group if it has none. Labels stay as they are."""
    if not isinstance(column, Ordered):
        return column.lattice(1)
    if not column.bands or column.last_index is None:
        return Groups.of(column.lattice(1), np.zeros(1, np.int64))
    borders = column.index(np.array(column.bands, dtype=float))
    return Groups.of(column.lattice(column.last_index), np.concatenate([[0], borders]))


def merge_points(cells: Cells, counts: Ints) -> Ints:
    """Counts of lattice points, added up in the groups of `share_cells`."""
    if not isinstance(cells, Groups):
        return counts
    merged = np.zeros(cells.size, dtype=np.int64)
    np.add.at(merged, cells.code(np.arange(cells.lattice.size)), counts)
    return merged


def places_in_units(cells: Cells) -> Ints:
    """For each point on the line its place, rounded down: 0 is the column's low, UNITS its high, whatever its weight.

    >>> places_in_units(Cells(places=np.arange(4), steps=3, off_line=1)).tolist()
    [0, 349525, 699050, 1048576]
    """
    # Weights are multiples of 1/1000 and lattices have at most 4096 steps, so this fits into 64 bits. The last point of
    # an even grid may lie just above the column's high.
    length = cells.steps * cells.weight.numerator
    return np.minimum(UNITS * cells.weight.denominator * cells.places // length, UNITS)


def centre(cells: Cells, counts: Ints) -> int:
    """The mean place of the synthetic rows that are on the line, rounded down; the middle if there are none."""
    on_line = counts[: len(cells.places)]
    rows = int(on_line.sum())
    return int(on_line @ places_in_units(cells)) // rows if rows else UNITS // 2


def offsets(cells: Cells, counts: Ints) -> Ints:
    """For each point, place − centre of these synthetic counts; 0 for the missing value."""
    found = np.zeros(cells.size, dtype=np.int64)
    found[: len(cells.places)] = places_in_units(cells) - centre(cells, counts)
    return found


def oscillation(function: Ints) -> int:
    """The difference between the largest and the smallest value of a function of lattice points, in units."""
    return int(function.max() - function.min())


def product(first: Ints, second: Ints) -> Ints:
    """The product of two functions in units, rounded down. It is 0 if either is.

    >>> product(np.array([-3, UNITS]), np.array([1, 5])).tolist()
    [-1, 5]
    """
    return np.asarray(first * second // UNITS)
