"""Which cells of a grid hold rows, and how many: a grid of all columns has far more cells than there are rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from certsynth.arrays import Ints, frozen
from certsynth.domain import Cells, Schema
from certsynth.queries.marginals import Counts, Marginals

MOST_CELLS = 2**62
"""Cells of a grid that can be numbered."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Occupied:
    """Exact counts of the cells that hold private rows. They never leave the process, and do not show themselves.

    `places` are the positions of those cells in the one block of `marginals`, ascending.
    """

    marginals: Marginals
    places: Ints
    counts: Ints
    rows: int

    def __repr__(self) -> str:
        return "Occupied(<private>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are private and cannot be pickled")

    @property
    def size(self) -> int:
        """How many cells the grid has."""
        return self.marginals.sizes()[0]

    def in_full(self) -> Counts:
        """The counts of all cells, empty ones too."""
        block = np.zeros(self.size, dtype=np.int64)
        block[self.places] = self.counts
        return Counts(marginals=self.marginals, blocks=(frozen(block),), rows=self.rows)


def all_columns(schema: Schema, resolution: int) -> Marginals:
    """The grid of all columns, `resolution` cells to the unit length."""
    return Marginals.even(schema, [tuple(range(len(schema)))], resolution=resolution)


def grid_cells(schema: Schema, resolution: int) -> int:
    """How many cells it has."""
    return math.prod(column.cells(resolution).size for column in schema)


def occupied(
    schema: Schema, grids: Sequence[Marginals], batches: Iterable[Sequence[np.ndarray]], *, most: int = 4_000_000
) -> list[Occupied]:
    """The cells of each grid that hold cleaned rows, which come in batches. About `most` positions are held at once."""
    seen: list[list[tuple[Ints, Ints]]] = [[] for _ in grids]
    rows = 0
    for batch in batches:
        rows += len(batch[0])
        for grid, parts in zip(grids, seen, strict=True):
            codes = [column.to_cells(x, cells) for column, x, cells in zip(schema, batch, grid.cells, strict=True)]
            parts.append(np.unique(grid.indices(codes, grid.subsets[0]), return_counts=True))
            if len(parts) > 1 and sum(len(places) for places, _ in parts) > most:
                parts[:] = [_together(parts)]
    found = []
    for grid, parts in zip(grids, seen, strict=True):
        places, counts = _together(parts)
        found.append(Occupied(marginals=grid, places=frozen(places), counts=frozen(counts), rows=rows))
    return found


def _together(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    places = np.concatenate([np.empty(0, np.int64), *(places for places, _ in parts)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in parts)])
    distinct, home = np.unique(places, return_inverse=True)
    return distinct, np.bincount(home, weights=counts, minlength=len(distinct)).astype(np.int64)


def codes_of(cells: Sequence[Cells], places: Ints) -> Ints:
    """Codes of the cells at the given positions of a grid: one row for each, one column for each of the table's."""
    return np.stack(np.unravel_index(places, tuple(c.size for c in cells)), axis=1).astype(np.int64)
