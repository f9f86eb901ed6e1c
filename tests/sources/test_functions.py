"""Columns that are functions of others: the search agrees with a comparison of all pairs of rows."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.sources.functions import FunctionSearch
from certsynth.sources.reading import objects


def search(columns: list[list[Any]], size: int, *, typed: bool = False) -> FunctionSearch:
    found = FunctionSearch(len(columns))
    for start in range(0, len(columns[0]), size):
        parts = [column[start : start + size] for column in columns]
        found.add([np.array(part) if typed else objects(part) for part in parts])
    return found


def functions(columns: list[list[Any]]) -> set[tuple[int, int]]:
    """All pairs of which the second column is a function of the first, by comparing all rows."""
    return {
        (a, b)
        for a, b in permutations(range(len(columns)), 2)
        if len(set(zip(columns[a], columns[b], strict=True))) == len(set(columns[a]))
    }


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 30).flatmap(
        lambda rows: st.lists(st.lists(st.integers(0, 3), min_size=rows, max_size=rows), min_size=2, max_size=4)
    ),
    st.integers(1, 7),
    st.booleans(),
)
def test_finds_the_pairs_that_all_rows_confirm(columns: list[list[int]], size: int, typed: bool) -> None:
    assert set(search(columns, size, typed=typed).maps or {}) == functions(columns)


def test_takes_the_source_with_the_fewest_values() -> None:
    fine = [i % 12 for i in range(240)]
    found = search([fine, [i // 2 for i in fine], [i // 6 for i in fine]], 50).found()
    assert found == {1: 0, 2: 1}


def test_what_few_rows_suggest_is_no_function() -> None:
    rows = list(range(100))
    assert search([rows, [i % 3 for i in rows]], 50).found() == {}  # an identifier determines everything
    assert search([[i % 4 for i in rows], [int(i == 0) * 0 for i in rows]], 50).found() == {}  # a constant


def test_columns_with_many_values_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certsynth.sources.functions.MAX_VALUES", 10)
    many, few = [i % 11 for i in range(220)], [i % 11 // 6 for i in range(220)]
    for typed in (False, True):
        found = search([many, few], 5, typed=typed)
        assert found.found() == {}
        assert not found.columns[0].known
