"""How far rows are from the centres of their cells, in all: what the discretisation term is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from certsynth.domain import Schema
from certsynth.domain.column import discretisation
from certsynth.queries.fine import MOVE_UNITS, move_units
from certsynth.queries.marginals import Marginals


def farthest(schema: Schema, marginals: Marginals) -> int:
    """How far a row can be from the centre of its cell at most, in units of 1/MOVE_UNITS."""
    away = max(discretisation(c, g) for c, g in zip(schema, marginals.cells, strict=True))
    return math.ceil(away * MOVE_UNITS)


def displacement(schema: Schema, marginals: Marginals, batches: Iterable[Sequence[np.ndarray]]) -> int:
    r"""The largest sum over all rows of their distances to the centres of their cells, in units.

    .. math:: \max_S \sum_i \max_{j \in S} |x_{ij} - centre_{ij}|

    A row adds at most `farthest` to each sum, whatever it holds: one row more, less or other changes the largest sum by
    no more than that. Exact counts stay in this function.
    """
    sums = np.zeros(len(marginals.subsets), dtype=np.int64)
    most = farthest(schema, marginals)
    for batch in batches:
        away = [move_units(c.from_centre(x, g), most) for c, x, g in zip(schema, batch, marginals.cells, strict=True)]
        sums += [np.max([away[j] for j in subset], axis=0).sum() for subset in marginals.subsets]
    return int(sums.max(initial=0))
