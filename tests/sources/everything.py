"""Every tally at once over the nasty table, so that an engine is asked once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from nasty import TABLE, as_in_json, columns, expected

from certsynth.domain import Column, Schema
from certsynth.domain.cleaning import as_labels
from certsynth.queries.displacement import Displacement
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.occupied import Occupancy, joint_grid
from certsynth.queries.tally import RowCount, Tally

KINDS = range(len(columns("x")))
"""The nasty table has a schema for each: all its columns as one and the same kind."""


def nasty_schema(kind: int, names: Sequence[str] = tuple(TABLE)) -> Schema:
    return Schema(columns=tuple(columns(name)[kind] for name in names))


def mixed_schema(first: int = 0) -> Schema:
    """Each column as another kind."""
    return Schema(columns=tuple(columns(name)[(first + 3 * j) % len(KINDS)] for j, name in enumerate(TABLE)))


def clean_rows(schema: Schema, *, as_text: bool = False, as_json: bool = False) -> list[np.ndarray]:
    """The nasty table as no engine has touched it; a text has no nulls."""
    rows = [as_in_json(TABLE[column.name]) if as_json else TABLE[column.name] for column in schema]
    if as_text:
        rows = [[text or "" for text in as_labels(np.fromiter(values, object, len(values)))] for values in rows]
    return [expected(column, values) for column, values in zip(schema, rows, strict=True)]


def tallies(schema: Schema) -> dict[str, Tally[Any, Any]]:
    """One of every kind."""
    pairs = [(j, j + 1) for j in range(len(schema) - 1)]
    marginals = Marginals.even(schema, pairs, resolution=5)
    wide = [tuple(range(4)), tuple(range(len(schema)))] if len(schema) > 3 else [(0, 1)]
    known = {column.name for column in schema} <= set(TABLE)
    nodes = [x[:9] for x in clean_rows(schema)] if known else []
    return {
        "rows": RowCount(),
        "cells": CellCounts(schema, marginals),
        "fine cells": CellCounts(schema, Marginals.all_subsets(schema, sparsity=1, resolution=100)),
        "lattice": LatticeQuery.of(schema, pairs),
        "three columns": LatticeQuery.of(schema, [(0, 1, 2), (1, 2), (1,)], steps=9),
        "nets": LatticeQuery.of(schema, wide if known else pairs).with_nets([nodes]),
        "occupied": Occupancy(schema, [joint_grid(schema, 2)], most=10),
        "displacement": Displacement(schema, marginals),
    }


@dataclass(frozen=True)
class Together:
    """Several tallies as one: the vectors of each come after those of the one before it."""

    parts: tuple[Tally[Any, Any], ...]

    @classmethod
    def of(cls, schema: Schema) -> Together:
        return cls(tuple(tallies(schema).values()))

    def begin(self) -> Shelf:
        return Shelf([tally.begin() for tally in self.parts])

    def add(self, sums: Shelf, batch: Sequence[np.ndarray]) -> None:
        for tally, part in zip(self.parts, sums.sums, strict=True):
            tally.add(part, batch)

    def result(self, sums: Shelf) -> list[Any]:
        return [shown(tally.result(part)) for tally, part in zip(self.parts, sums.sums, strict=True)]


@dataclass(frozen=True)
class Shelf:
    sums: list[Any]

    def entries(self) -> Iterator[tuple[int, Any, Any]]:
        for j, part in enumerate(self.sums):
            yield from ((vector * len(self.sums) + j, places, values) for vector, places, values in part.entries())

    def put(self, vector: int, places: Any, values: Any) -> None:
        self.sums[vector % len(self.sums)].put(vector // len(self.sums), places, values)


def shown(result: Any) -> Any:
    """What a tally says, as plain integers that can be compared."""
    if isinstance(result, int):
        return result
    if isinstance(result, list):
        return [(each.places.tolist(), each.counts.tolist(), each.rows) for each in result]
    if hasattr(result, "moved"):
        return [block.tolist() for block in result.counts], result.moved, result.rows
    return [block.tolist() for block in result], result.rows


def named(column: Column) -> str:
    return f"{column.name} as {getattr(column, 'kind', '')}"
