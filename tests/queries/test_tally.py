"""Tallies: what two parts of a table say, added, is what the table says; and they can be sent to where rows are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from certsynth.domain import Schema
from certsynth.queries.displacement import Displacement
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.occupied import Occupancy, joint_grid
from certsynth.queries.tally import Dense, RowCount, Tally, in_memory, tally_batches
from certsynth.sources import cleaned, open_source

SCHEMA = Schema.parse(
    """
[[column]]
name = "age"
kind = "integer"
low = 0
high = 9
missing = true
[[column]]
name = "wage"
kind = "number"
low = 0
high = 1
[[column]]
name = "sex"
kind = "category"
values = ["f", "m"]
[[column]]
name = "born"
kind = "date"
low = 1970-01-01
high = 1975-01-01
[[column]]
name = "well"
kind = "boolean"
"""
)


def table(rows: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 10, rows).astype(float)
    age[rng.random(rows) < 0.2] = np.nan
    labels = rng.integers(0, 2, rows)
    return [age, rng.random(rows), labels, rng.integers(0, 1000, rows).astype(float), rng.integers(0, 2, rows)]


def tallies() -> dict[str, Tally[Any, Any]]:
    pairs = LatticeQuery.all_subsets(SCHEMA, sparsity=2, steps=7)
    wide = LatticeQuery.of(SCHEMA, [(0,), (0, 1, 2, 3)], steps=5).with_nets([table(60, seed=2)])
    marginals = Marginals.all_subsets(SCHEMA, sparsity=2, resolution=3)
    return {
        "rows": RowCount(),
        "cells": CellCounts(SCHEMA, marginals),
        "lattice": pairs,
        "net": wide,
        "occupied": Occupancy(SCHEMA, [joint_grid(SCHEMA, 2), joint_grid(SCHEMA, 5)], most=10),
        "displacement": Displacement(SCHEMA, marginals),
    }


def told(tally: Tally[Any, Any], *batches: list[np.ndarray]) -> list[tuple[int, int, int]]:
    """All entries that are not 0."""
    sums = tally.begin()
    for batch in batches:
        tally.add(sums, batch)
    found = ((v, places, values) for v, places, values in sums.entries())
    return sorted((v, int(p), int(x)) for v, places, values in found for p, x in zip(places, values, strict=True) if x)


@pytest.mark.parametrize("name", tallies())
def test_parts_in_any_order_add_up_to_the_whole(name: str) -> None:
    tally, rows = tallies()[name], table(200)
    whole = told(tally, rows)
    order = np.random.default_rng(3).permutation(200)
    mixed = [x[order] for x in rows]
    parts = [[x[:17] for x in mixed], [x[17:17] for x in mixed], [x[17:120] for x in mixed], [x[120:] for x in mixed]]
    assert told(tally, *parts) == whole
    # Each part by itself, somewhere else, and only its entries sent.
    together = tally.begin()
    for part in parts:
        sent = pickle.loads(pickle.dumps(tally))
        sums = sent.begin()
        sent.add(sums, part)
        for vector, places, values in sums.entries():
            together.put(vector, places, values)
    entries = [(v, p, x) for v, p, x in together.entries()]
    found = sorted((v, int(p), int(x)) for v, ps, xs in entries for p, x in zip(ps, xs, strict=True) if x)
    assert found == whole
    assert repr(tally.result(together)) == repr(tally_batches([rows], tally)) == repr(in_memory(rows)(tally))


@pytest.mark.parametrize("name", tallies())
def test_many_rows_at_once_say_what_few_say_in_turn(name: str) -> None:
    """Many go by compiled loops and threads, few by the columns' own methods."""
    tally, rows = tallies()[name], table(2**17 + 9_001)
    parts = [[x[start : start + 4_000] for x in rows] for start in range(0, len(rows[0]), 4_000)]
    assert told(tally, rows) == told(tally, *parts)


@pytest.mark.parametrize("name", tallies())
def test_one_row_more_changes_what_is_told(name: str) -> None:
    """The control of the test above."""
    tally, rows = tallies()[name], table(50)
    more = [np.append(x, y) for x, y in zip(rows, ([1.0], [0.91], [0], [99.0], [1]), strict=True)]
    assert told(tally, rows) != told(tally, more)


@pytest.mark.parametrize("name", tallies())
def test_a_table_without_rows_says_nothing(name: str) -> None:
    tally = tallies()[name]
    assert told(tally) == told(tally, table(0)) == []


def test_entries_that_come_twice_are_added() -> None:
    sums = Dense.of([3])
    sums.put(0, np.array([1, 1, 2]), np.array([5, 6, 7]))
    assert sums.vectors[0].tolist() == [0, 11, 7]


def test_counts_themselves_cannot_be_sent() -> None:
    """Tallies travel; exact counts as a type of their own do not."""
    for name in ("cells", "lattice", "occupied"):
        with pytest.raises(TypeError, match="private"):
            pickle.dumps(tally_batches([table(5)], tallies()[name]))


def test_rows_of_a_frame_are_cleaned_before_they_are_asked() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [3, 99], "wage": [0.5, None], "sex": ["f", "?"], "born": ["1971-01-01"] * 2})
    frame["well"] = ["yes", "no"]
    (batch,) = cleaned(open_source(frame), SCHEMA)
    assert tally_batches([batch], RowCount()) == 2
