"""How far rows are from the centres of their cells, in all: what the discretisation term is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from certsynth.domain import Schema
from certsynth.domain.column import discretisation
from certsynth.queries.fine import MOVE_UNITS, move_units
from certsynth.queries.marginals import Marginals
from certsynth.queries.tally import Batch, Dense, asked


def farthest(schema: Schema, marginals: Marginals) -> int:
    """How far a row can be from the centre of its cell at most, in units of 1/MOVE_UNITS."""
    away = max(discretisation(c, g) for c, g in zip(schema, marginals.cells, strict=True))
    return math.ceil(away * MOVE_UNITS)


@dataclass(frozen=True, slots=True, eq=False)
class Displacement:
    r"""The tally of how far rows are from the centres of their cells: the largest sum over all rows, in units.

    .. math:: \max_S \sum_i \max_{j \in S} |x_{ij} - centre_{ij}|

    A row adds at most `farthest` to each sum, whatever it holds: one row more, less or other changes the largest sum by
    no more than that.
    """

    schema: Schema
    marginals: Marginals

    def begin(self) -> Dense:
        return Dense.of([len(self.marginals.subsets)])

    def add(self, sums: Dense, batch: Batch) -> None:
        schema, marginals = self.schema, self.marginals
        most = farthest(schema, marginals)
        away = [move_units(c.from_centre(x, g), most) for c, x, g in zip(schema, batch, marginals.cells, strict=True)]
        sums.vectors[0] += [np.max([away[j] for j in subset], axis=0).sum() for subset in marginals.subsets]

    def result(self, sums: Dense) -> int:
        return int(sums.vectors[0].max(initial=0))


def displacement(schema: Schema, marginals: Marginals, batches: Iterable[Batch]) -> int:
    """The same of cleaned rows that come in batches."""
    return asked(batches, Displacement(schema, marginals))
