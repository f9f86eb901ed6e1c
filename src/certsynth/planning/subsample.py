"""Many columns, planned on some of them: with as much noise on each table as all together would leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from certsynth.algorithm.layers import LayerSpec
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.queries.marginals import Subset

MAX_PLANNED_TABLES = 120
"""Tables beyond which plans look at some columns only: rehearsing all would take longer than the release."""


Subsample = tuple[Schema, tuple[LayerSpec, ...], tuple[Subset, ...]]
"""A schema, the layers of a release of it, and the subsets that it is for."""


def subsample(schema: Schema, layers: Sequence[LayerSpec], subsets: Sequence[Subset] = ()) -> Subsample:
    """Some columns of all kinds, with the tables and the subsets that lie in them.

    Budgets shrink as the tables do, so that each table has about the noise that it would have among all. What is the
    largest over all subsets is a little larger than the largest over these.
    """
    tables = max(len(layer.subsets) for layer in layers)
    if tables <= MAX_PLANNED_TABLES:
        return schema, tuple(layers), tuple(subsets)
    widest = max(len(layer.subsets[0]) for layer in layers)
    share = (MAX_PLANNED_TABLES / tables) ** (1 / max(widest, 1))
    count = max(widest + 1, round(share * len(schema)))
    kept = _spread_columns(schema, count)
    position = {column: j for j, column in enumerate(kept)}

    def within(some: Sequence[Subset]) -> tuple[Subset, ...]:
        return tuple(tuple(position[j] for j in subset) for subset in some if position.keys() >= set(subset))

    thin = [
        replace(layer, subsets=own, budget=layer.budget.share(Fraction(len(own), len(layer.subsets))))
        for layer in layers
        if (own := within(layer.subsets))
    ]
    wanted = within(subsets)
    if len(thin) < len(layers) or (subsets and not wanted):  # a workload that hardly has what lies in some columns
        return schema, tuple(layers), tuple(subsets)
    return schema.select([schema.names[j] for j in kept]), tuple(thin), wanted


def _spread_columns(schema: Schema, count: int) -> list[int]:
    """So many columns from the one with the fewest points to the one with the most, evenly among each kind."""
    by_size = sorted(range(len(schema)), key=lambda j: (*_kind_and_size(schema.columns[j]), j))
    chosen = np.unique(np.linspace(0, len(by_size) - 1, count).round().astype(int))
    return sorted(by_size[i] for i in chosen)


def _kind_and_size(column: Column) -> tuple[str, int]:
    if isinstance(column, Category):
        return "labels", len(column.labels)
    return "line", column.reach if isinstance(column, Ordered) and column.whole else 2**31
