"""Summed distances of rows to the centres of their cells, from which the discretisation term is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from certsynth.domain import Schema
from certsynth.domain.column import discretisation
from certsynth.queries.coding import MOVE_UNITS, Coded, Coder, in_cells
from certsynth.queries.counting import sum_largest_moves
from certsynth.queries.marginals import Marginals
from certsynth.queries.tally import Batch, tally_batches, zeros


def farthest(schema: Schema, marginals: Marginals) -> int:
    """The largest possible distance of a row to the centre of its cell, in units of 1/MOVE_UNITS, rounded up."""
    away = max(discretisation(c, g) for c, g in zip(schema, marginals.cells, strict=True))
    return math.ceil(away * MOVE_UNITS)


@dataclass(frozen=True, slots=True, eq=False)
class Displacement:
    r"""The tally of the largest summed distance to the centres of cells over all subsets, in units of 1/MOVE_UNITS.

    .. math:: \max_S \sum_i \max_{j \in S} |x_{ij} - centre_{ij}|

    A row adds at most `farthest` to each sum, so adding, removing or replacing one row changes the largest sum by no
    more than that.
    """

    schema: Schema
    marginals: Marginals

    def begin(self) -> Coded:
        most = farthest(self.schema, self.marginals)
        coder = Coder(tuple(self.schema), self.marginals.cells, in_cells, most)
        return Coded(zeros([len(self.marginals.subsets)]), coder)

    def add(self, sums: Coded, batch: Batch) -> None:
        for _, units in sums.coder.code_in_chunks(batch):
            sums.vectors[0] += sum_largest_moves(units, self.marginals.subsets)

    def result(self, sums: Coded) -> int:
        return int(sums.vectors[0].max(initial=0))


def sum_displacement(schema: Schema, marginals: Marginals, batches: Iterable[Batch]) -> int:
    """The result of `Displacement` for cleaned rows that come in batches."""
    return tally_batches(batches, Displacement(schema, marginals))
