"""Score pairs of columns by their dependence, relative to independent columns with the noisy distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certsynth.algorithm.adaptive.allocation import CellSize, ColumnCells
from certsynth.algorithm.layers import group_cells
from certsynth.base.arrays import Floats, sum_by_group
from certsynth.domain import Cells, Schema
from certsynth.domain.cells import coarse_codes
from certsynth.mechanisms import FullMeasurement
from certsynth.mechanisms.dependence import SCORE_UNITS, Reference
from certsynth.projection.particles import count_places, scales
from certsynth.projection.simplex import project_to_simplex
from certsynth.queries import Marginals
from certsynth.queries.grouping import most_groups
from certsynth.queries.marginals import Subset

SCORE_SIZE = CellSize(line=16, labels=48)
"""The size of the cells in which pairs are scored."""


def cells_at(schema: Schema, singles: FullMeasurement, size: CellSize) -> tuple[Cells, ...]:
    """Groups of each column's values by their noisy counts."""
    noisy, _ = singles.estimate()
    return tuple(
        group_cells(column, points, points, counts, most_groups(column, line=size.line, labels=size.labels))
        for column, points, counts in zip(schema, singles.marginals.cells, noisy, strict=True)
    )


def expected_counts(singles: FullMeasurement, cells: Sequence[Cells]) -> list[Floats]:
    """Noisy counts of single columns in these cells, made non-negative."""
    noisy, rows = singles.estimate()
    return [
        project_to_simplex(sum_by_group(coarse_codes(points, own), counts, own.size), max(rows, 1.0))
        for points, own, counts in zip(singles.marginals.cells, cells, noisy, strict=True)
    ]


def columns_at(schema: Schema, singles: FullMeasurement, size: CellSize) -> list[ColumnCells]:
    """The groups of each column with what is expected in them, given noisy counts of single columns."""
    cells = cells_at(schema, singles, size)
    points = singles.marginals.cells
    found = []
    for known, own, values, counts in zip(
        points, cells, expected_counts(singles, points), expected_counts(singles, cells), strict=True
    ):
        commonest = np.zeros(own.size)
        np.maximum.at(commonest, coarse_codes(known, own), values)
        merged = 0.0 if len(own.places) else 1 - commonest.sum() / max(values.sum(), 1.0)
        found.append(ColumnCells(own, counts, max(merged, 0.0)))
    return found


def scored_tables(schema: Schema, singles: FullMeasurement, pairs: tuple[Subset, ...]) -> Marginals:
    return Marginals(cells=cells_at(schema, singles, SCORE_SIZE), subsets=pairs)


def references(singles: FullMeasurement, tables: Marginals) -> list[Reference]:
    """The counts of each pair if its columns were independent, at all scales.

    A coarse scale counts twice as much as the next finer one: a row in the wrong half is twice as far away.
    """
    columns = expected_counts(singles, tables.cells)
    rows = columns[0].sum()
    found = []
    for pair in tables.subsets:
        expected = np.rint(np.outer(*(columns[j] for j in pair)).ravel() / rows).astype(np.int64)
        codes = []
        for way in scales(tables.of(pair))[::-1]:
            shape = tuple(map(count_places, way))
            codes.append(np.ravel_multi_index(np.meshgrid(*way, indexing="ij"), shape).ravel())
        weights = [int(SCORE_UNITS * 2.0**-depth / (2 - 2.0 ** (1 - len(codes)))) for depth in range(len(codes))]
        weights[0] += SCORE_UNITS - sum(weights)
        found.append(Reference(expected, tuple(codes), tuple(weights)))
    return found
