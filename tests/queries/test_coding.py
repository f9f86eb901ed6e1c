"""Codes and counts of many rows are those of the columns' own methods, row by row."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.domain import Category, Cells, Column, Groups, Ordered
from certsynth.queries.coding import MIN_PREPARED_ROWS, Coder, StepFunction, in_cells, on_lattice
from certsynth.queries.counting import count_rows, sum_largest_moves

WEIGHTS = st.fractions(Fraction(1, 50), 1, max_denominator=1000)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    kind = draw(st.sampled_from(["integer", "long", "number", "stepped", "cents", "category", "metric"]))
    common = {"name": "x", "missing": draw(st.booleans()), "weight": draw(WEIGHTS | st.just(Fraction(1)))}
    if kind == "category":
        values = tuple(map(str, range(draw(st.integers(1, 300)))))
        return Category(**common, values=values, other=draw(st.booleans()))
    if kind == "metric":
        places = draw(st.lists(st.integers(0, 50), min_size=2, max_size=6, unique=True))
        far = max(abs(a - b) for a in places for b in places)
        rows = tuple(tuple(Fraction(abs(a - b), far) for b in places) for a in places)
        return Category(**common, kind="metric", values=tuple(map(str, places)), distances=rows)
    if kind == "number":
        low = draw(st.floats(-1e9, 1e9))
        return Ordered(**common, kind="number", low=low, high=low + draw(st.floats(1e-3, 1e9)))
    if kind == "stepped":
        low, step, last = draw(st.integers(-(10**6), 10**6)), draw(st.integers(2, 1_000)), draw(st.integers(1, 10**5))
        return Ordered(**common, low=low, high=low + step * last, step=Fraction(step))
    if kind == "cents":
        low, step, last = draw(st.integers(-(10**6), 10**6)), draw(st.integers(1, 99)), draw(st.integers(1, 10**5))
        ends = {"low": low / 100, "high": (low + step * last) / 100}
        return Ordered(**common, kind="number", **ends, step=Fraction(step, 100))
    low = draw(st.integers(-(2**40), 2**40))
    return Ordered(**common, low=low, high=low + draw(st.integers(0, 200) if kind == "integer" else _LONG))


_LONG = st.integers(2**16 - 2, 2**17) | st.integers(2**16, 2**40)


@st.composite
def cells_of(draw: st.DrawFn, column: Column) -> Cells:
    how = draw(st.sampled_from(["cells", "lattice", "shared", "detail", "groups"]))
    if how == "cells":
        return column.cells(draw(st.integers(1, 70)))
    if how == "detail":
        return column.detail()
    lattice = column.lattice(draw(st.sampled_from([1, 2, 7, 32, 256, 1024])), native=how != "shared")
    if how != "groups":
        return lattice
    line = len(lattice.places)
    cuts = draw(st.lists(st.integers(1, max(line - 1, 1)), max_size=20, unique=True)) if line > 1 else []
    return Groups.of(lattice, np.array([0, *sorted(cuts)]) if line else None)


def values_of(column: Column, cells: Cells, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Cleaned values: anywhere, at both ends, missing, and where codes change or nearly so."""
    if isinstance(column, Category):
        return rng.integers(0, len(column.labels) + column.missing, rows)
    reach = column.reach
    some = rng.random(rows) * reach
    edges = np.arange(rows) % (4 * cells.steps + 1) / (4 * cells.steps * float(column.weight)) * reach
    some[::3] = np.clip(edges[::3], 0, reach)
    if not column.whole:
        some[1::6] = np.clip(np.nextafter(some[::6][: len(some[1::6])], rng.choice([-1.0, 2.0])), 0, reach)
    else:
        some = np.minimum(np.floor(some + rng.integers(0, 2, rows)), reach)
    some[:4] = [0.0, reach, reach, 0.0]
    if column.step is not None:
        some = column.at_index(column.index(some))
    some[rng.random(rows) < 0.1] = np.nan
    return some


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_codes_are_those_of_the_columns_own_methods(data: st.DataObject, seed: int) -> None:
    column = data.draw(columns())
    drawn = data.draw(cells_of(column))
    rng = np.random.default_rng(seed)
    clean = values_of(column, drawn, rng, MIN_PREPARED_ROWS + int(rng.integers(0, 5)))
    for rule in [in_cells] if isinstance(drawn, Groups) else [in_cells, on_lattice]:
        cells = drawn
        if rule is in_cells and not isinstance(cells, Groups) and len(cells.places):
            cells = column.cells(min(cells.steps, 4096))  # a lattice is no cells
        far = 2**20
        coder = Coder([column, column], [cells, cells], rule, far)
        codes, units = coder.code([clean, clean])
        own, away = coder._one_by_one([clean, clean], True)
        assert codes.dtype.itemsize < own.dtype.itemsize  # the control: it went the other way
        np.testing.assert_array_equal(codes, own)
        np.testing.assert_array_equal(units, away)
        np.testing.assert_array_equal(coder.code([clean, clean], distances=False)[0], own)


@pytest.mark.parametrize("which", ["least", "begins", "most"])
def test_a_wrong_step_would_be_seen(which: str) -> None:
    """The control: thresholds that are one float off, a start beyond the code, or too few steps give other codes."""
    column = Ordered("x", kind="number", low=0, high=1)
    cells = column.cells(16)
    coder = Coder([column], [cells], in_cells, 2**20)
    clean = np.append(np.arange(17) / 16, np.zeros(MIN_PREPARED_ROWS))
    np.testing.assert_array_equal(coder.code([clean])[0], coder._one_by_one([clean], True)[0])
    (right,) = coder._prepared
    assert isinstance(right, StepFunction)
    wrong = {"least": np.nextafter(right.least, 2), "begins": right.begins * 0 + right.begins[-1], "most": 0}
    coder._prepared[:] = [dataclasses.replace(right, **{which: wrong[which]})]
    assert (coder.code([clean])[0] != coder._one_by_one([clean], True)[0]).any()


def test_values_that_no_column_has_are_refused() -> None:
    line, long = Ordered("x", low=0, high=5), Ordered("x", low=0, high=10**6)
    labels = Category("x", values=("a", "b"))
    for column, bad in ((line, 6.0), (line, -1.0), (long, -1.0), (labels, 2), (labels, -1)):
        clean = np.zeros(MIN_PREPARED_ROWS, type(bad))
        clean[77] = bad
        with pytest.raises(ValueError, match="none that its column has"):
            Coder([column], [column.cells(4)], in_cells, 0).code([clean])


@settings(max_examples=25, deadline=None)
@given(
    rows=st.sampled_from([0, 1, 2, 8_191, 8_192, 8_193, 70_001]),
    sizes=st.lists(st.sampled_from([1, 2, 3, 17, 257, 70_000]), min_size=4, max_size=4),
    alike=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_counts_are_those_of_bincount(rows: int, sizes: list[int], alike: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wide = max(sizes) > 2**16
    codes = np.stack([rng.integers(0, 1 if alike else size, rows) for size in sizes])
    codes = codes.astype(np.uint32 if wide else np.uint16)
    units = rng.integers(0, 2**19, (4, rows)).astype(np.int32)
    units[rng.integers(0, 4)] = 0
    subsets = [s for ways in range(4) for s in itertools.combinations(range(4), ways)]
    subsets = [s for s in subsets if np.prod([sizes[j] for j in s]) < 2e6]
    blocks = [np.full(int(np.prod([sizes[j] for j in s])), 5, np.int64) for s in subsets]
    count_rows(blocks, codes, subsets, sizes)
    for block, s in zip(blocks, subsets, strict=True):
        index = np.zeros(rows, np.int64)
        for j in s:
            index = index * sizes[j] + codes[j]
        np.testing.assert_array_equal(block, 5 + np.bincount(index, minlength=len(block)))
    expected = [int(units[list(s)].astype(np.int64).max(axis=0).sum()) if s and rows else 0 for s in subsets]
    assert sum_largest_moves(units, subsets) == expected


def test_sums_beyond_32_bits_are_exact() -> None:
    units = np.full((2, 10_000), 2**20, np.int32)
    assert sum_largest_moves(units, [(0, 1), (0,)]) == [10_000 * 2**20] * 2
    block = np.array([2**40, 0])
    count_rows([block], np.zeros((1, MIN_PREPARED_ROWS), np.uint16), [(0,)], [2])
    assert block.tolist() == [2**40 + MIN_PREPARED_ROWS, 0]


def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    codes, subsets = rng.integers(0, 9, (4, 70_000)).astype(np.uint16), list(itertools.combinations(range(4), 2))
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        blocks = [np.zeros(81, np.int64) for _ in subsets]
        count_rows(blocks, codes, subsets, [9] * 4)
        found.append([block.tolist() for block in blocks])
    assert found[0] == found[1] == found[2]


def test_few_rows_are_not_worth_a_preparation() -> None:
    column = Ordered("x", low=0, high=5)
    coder = Coder([column], [column.cells(4)], in_cells, 0)
    coder.code([np.zeros(MIN_PREPARED_ROWS - 1)])
    assert not coder._prepared
    coder.code([np.zeros(1)])
    assert coder._prepared
