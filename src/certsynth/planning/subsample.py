"""Plan many columns on a subsample of them, with as much noise on each table as in the full release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from certsynth.algorithm.layers import LayerSpec
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.queries.marginals import Subset

MAX_PLANNED_TABLES = 120
"""Tables of a layer beyond which only some columns are planned on: rehearsing all would take longer than the
release."""


class Subsample(NamedTuple):
    """A schema, the layers of a release of it, and the subsets that the release is for."""

    schema: Schema
    layers: tuple[LayerSpec, ...]
    subsets: tuple[Subset, ...]


def subsample(schema: Schema, layers: Sequence[LayerSpec], subsets: Sequence[Subset] = ()) -> Subsample:
    """Select some columns of all kinds, with the tables and the subsets that they contain; all of them if they are few.

    Budgets shrink with the number of tables, so that each table has about the noise of the full release. The largest
    loss over all subsets is a little larger than that over the selected ones.
    """
    tables = max(len(layer.subsets) for layer in layers)
    if tables <= MAX_PLANNED_TABLES:
        return Subsample(schema, tuple(layers), tuple(subsets))
    widest = max(len(layer.subsets[0]) for layer in layers)
    share = (MAX_PLANNED_TABLES / tables) ** (1 / max(widest, 1))
    count = max(widest + 1, round(share * len(schema)))
    kept = _spread_columns(schema, count)
    position = {column: j for j, column in enumerate(kept)}

    def contained(some: Sequence[Subset]) -> tuple[Subset, ...]:
        return tuple(tuple(position[j] for j in subset) for subset in some if position.keys() >= set(subset))

    selected = [
        replace(layer, subsets=own, budget=layer.budget.share(Fraction(len(own), len(layer.subsets))))
        for layer in layers
        if (own := contained(layer.subsets))
    ]
    wanted = contained(subsets)
    if len(selected) < len(layers) or (subsets and not wanted):  # a workload with too few tables in these columns
        return Subsample(schema, tuple(layers), tuple(subsets))
    return Subsample(schema.select([schema.names[j] for j in kept]), tuple(selected), wanted)


def _spread_columns(schema: Schema, count: int) -> list[int]:
    """Select `count` columns evenly, sorted by kind and number of points."""
    by_size = sorted(range(len(schema)), key=lambda j: (*_kind_and_size(schema.columns[j]), j))
    chosen = np.unique(np.linspace(0, len(by_size) - 1, count).round().astype(int))
    return sorted(by_size[i] for i in chosen)


def _kind_and_size(column: Column) -> tuple[str, int]:
    if isinstance(column, Category):
        return "labels", len(column.labels)
    last = column.last_index if isinstance(column, Ordered) else None
    return "line", 2**31 if last is None else last
