"""Counts of the occupied cells of a grid: a grid of all columns has far more cells than there are rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from certsynth.base.arrays import Ints, read_only
from certsynth.domain import Cells, Schema
from certsynth.queries.marginals import Counts, Marginals
from certsynth.queries.tally import Batch, tally_batches

MAX_GRID_CELLS = 2**62
"""Cells of a grid, at most, so that their positions fit into 64 bits."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OccupiedCells:
    """Exact counts of the cells that hold private rows. They never leave the process, and their repr shows nothing.

    `places` are the positions of those cells in the single block of `marginals`, ascending.
    """

    marginals: Marginals
    places: Ints
    counts: Ints
    rows: int

    def __repr__(self) -> str:
        return "OccupiedCells(<private>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are private and cannot be pickled")

    @property
    def size(self) -> int:
        """Number of cells of the grid."""
        return self.marginals.sizes()[0]

    def to_counts(self) -> Counts:
        """The counts of all cells, including empty ones."""
        block = np.zeros(self.size, dtype=np.int64)
        block[self.places] = self.counts
        return Counts(marginals=self.marginals, blocks=(read_only(block),), rows=self.rows)


def joint_grid(schema: Schema, resolution: int) -> Marginals:
    """The grid of all columns, `resolution` cells to the unit length."""
    return Marginals.even(schema, [tuple(range(len(schema)))], resolution=resolution)


def grid_cells(schema: Schema, resolution: int) -> int:
    """Number of cells of `joint_grid`."""
    return math.prod(column.cells(resolution).size for column in schema)


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Vectors with few non-zero entries. Equal positions are merged when more than `most` entries are stored."""

    parts: list[list[tuple[Ints, Ints]]]
    most: int

    def entries(self) -> Iterator[tuple[int, Ints, Ints]]:
        for vector, parts in enumerate(self.parts):
            yield vector, *_merge_entries(parts)

    def put(self, vector: int, places: Ints, values: Ints) -> None:
        parts = self.parts[vector]
        parts.append((places, values))
        if len(parts) > 1 and sum(len(each) for each, _ in parts) > self.most:
            parts[:] = [_merge_entries(parts)]


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """The tally of the occupied cells of each grid; the last vector is the number of rows."""

    schema: Schema
    grids: Sequence[Marginals]
    most: int = 4_000_000

    def begin(self) -> Sparse:
        return Sparse([[] for _ in range(len(self.grids) + 1)], self.most)

    def add(self, sums: Sparse, batch: Batch) -> None:
        for j, grid in enumerate(self.grids):
            codes = [column.to_cells(x, cells) for column, x, cells in zip(self.schema, batch, grid.cells, strict=True)]
            sums.put(j, *np.unique(grid.indices(codes, grid.subsets[0]), return_counts=True))
        sums.put(len(self.grids), np.zeros(1, np.int64), np.array([len(batch[0])]))

    def result(self, sums: Sparse) -> list[OccupiedCells]:
        *found, (_, _, rows) = sums.entries()
        return [
            OccupiedCells(marginals=grid, places=read_only(places), counts=read_only(counts), rows=int(rows.sum()))
            for grid, (_, places, counts) in zip(self.grids, found, strict=True)
        ]


def count_occupied(
    schema: Schema, grids: Sequence[Marginals], batches: Iterable[Batch], *, most: int = 4_000_000
) -> list[OccupiedCells]:
    """The result of `Occupancy` for cleaned rows that come in batches."""
    return tally_batches(batches, Occupancy(schema, grids, most))


def _merge_entries(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    places = np.concatenate([np.empty(0, np.int64), *(places for places, _ in parts)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in parts)])
    distinct, home = np.unique(places, return_inverse=True)
    together = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(together, home, counts)
    return distinct, together


def codes_of(cells: Sequence[Cells], places: Ints) -> Ints:
    """Codes of the cells at the given positions of a grid, one row for each cell and one column for each column."""
    return np.stack(np.unravel_index(places, tuple(c.size for c in cells)), axis=1).astype(np.int64)
