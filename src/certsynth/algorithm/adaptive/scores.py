"""Score pairs of columns by their dependence, relative to independent columns with the noisy distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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

SCORE_GROUPS, MAX_LABEL_GROUPS = 16, 48
"""Groups of a line in which pairs are scored, and the most groups of labels in which they are scored and measured."""


def cells_at(schema: Schema, singles: FullMeasurement, resolution: int) -> tuple[Cells, ...]:
    """Groups of each column's values by their noisy counts: at most `resolution` on a line."""
    noisy, _ = singles.estimate()
    return tuple(
        group_cells(column, points, points, counts, most_groups(column, line=resolution, labels=MAX_LABEL_GROUPS))
        for column, points, counts in zip(schema, singles.marginals.cells, noisy, strict=True)
    )


def expected_counts(singles: FullMeasurement, cells: Sequence[Cells]) -> list[Floats]:
    """Noisy counts of single columns in these cells, made non-negative."""
    noisy, rows = singles.estimate()
    return [
        project_to_simplex(sum_by_group(coarse_codes(points, own), counts, own.size), max(rows, 1.0))
        for points, own, counts in zip(singles.marginals.cells, cells, noisy, strict=True)
    ]


def scored_tables(schema: Schema, singles: FullMeasurement, pairs: tuple[Subset, ...]) -> Marginals:
    return Marginals(cells=cells_at(schema, singles, SCORE_GROUPS), subsets=pairs)


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
