"""From weights to rows: the right number, close to the weights, in the right cells."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certsynth.domain import Category, Ordered, Schema
from certsynth.projection.emit import emit, multiplicities, spread_in_cells
from certsynth.projection.target import as_probabilities


def error(counts: np.ndarray, weights: np.ndarray, rows: int) -> float:
    """Total variation between what is emitted and what was meant."""
    return float(np.abs(counts / rows - weights).sum() / 2)


weights_of_points = st.lists(
    st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1), st.integers(0, 9).map(float)), min_size=1, max_size=60
)


@given(weights_of_points, st.integers(0, 100_000))
@example([1.0], 0)
@example([0.0], 7)
@example([1.0, 1.0], 1)
@example([1.0] * 3, 100_000)
@example([0.1] * 10, 10)
@example([0.3, 0.3, 0.4], 1)
@example([1e-300, 1.0], 100_000)
def test_rows_are_all_given_out_and_close_to_the_weights(raw: list[float], rows: int) -> None:
    weights = as_probabilities(np.array(raw), len(raw))
    counts = multiplicities(weights, rows)
    assert counts.dtype == np.int64
    assert counts.min() >= 0
    assert counts.sum() == rows
    assert np.abs(counts - weights * rows).max() < 1 + 1e-9
    assert not counts[weights == 0].any()
    if rows:
        assert error(counts, weights, rows) <= np.count_nonzero(weights) / (4 * rows) + 1e-12


@pytest.mark.parametrize(("points", "rows"), [(2, 1), (4, 2), (10, 5), (10, 15), (100, 50), (1000, 1500)])
def test_the_bound_is_attained_where_all_remainders_are_a_half(points: int, rows: int) -> None:
    weights = np.full(points, 1 / points)
    assert error(multiplicities(weights, rows), weights, rows) == pytest.approx(points / (4 * rows), rel=1e-9)


@pytest.mark.parametrize(("points", "rows"), [(7, 3), (9, 100), (1000, 1001)])
def test_equal_weights_give_equal_counts_up_to_one_and_the_first_get_more(points: int, rows: int) -> None:
    counts = multiplicities(np.full(points, 1 / points), rows)
    assert counts.tolist() == sorted(counts.tolist(), reverse=True)
    assert np.ptp(counts) <= 1


def test_independent_draws_would_break_the_bound() -> None:
    """Control: the same number of rows drawn from the weights is many times further away."""
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(50))
    drawn = rng.multinomial(10_000, weights)
    assert error(drawn, weights, 10_000) > 50 / (4 * 10_000)
    assert error(multiplicities(weights, 10_000), weights, 10_000) <= 50 / (4 * 10_000)


def test_a_point_with_all_the_weight_gets_all_rows() -> None:
    assert multiplicities(np.array([0.0, 1.0, 0.0]), 10**9).tolist() == [0, 10**9, 0]


# ------------------------------------------------------------ rows

SCHEMA = Schema(
    columns=(
        Ordered("age", kind="integer", low=17, high=99),
        Ordered("share", kind="number", low=0.0, high=1.0, missing=True),
        Category("kind", values=("a", "b", "c"), missing=True),
        Ordered("grade", kind="ordinal", low=0, high=2, values=("x", "y", "z")),
    )
)
RESOLUTION = 8
CELLS = tuple(column.cells(RESOLUTION) for column in SCHEMA)


def random_points(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = np.unique(np.column_stack([rng.integers(c.size, size=count) for c in CELLS]), axis=0)
    return points, rng.dirichlet(np.full(len(points), 0.5))


@pytest.mark.parametrize("detail", ["centre", "spread"])
@pytest.mark.parametrize("rows", [0, 1, 2_000])
def test_emitted_rows_fall_into_the_cells_they_were_meant_for(detail: str, rows: int) -> None:
    points, weights = random_points(2, 60)
    rng = np.random.default_rng(3)
    table = emit(points, weights, rows, schema=SCHEMA, cells=CELLS, detail=detail, rng=rng)  # type: ignore[arg-type]
    codes = [c.to_cells(x, g) for c, x, g in zip(SCHEMA, table, CELLS, strict=True)]
    found = Counter(zip(*(code.tolist() for code in codes), strict=True))
    wanted = {
        tuple(point.tolist()): int(times)
        for point, times in zip(points, multiplicities(weights, rows), strict=True)
        if times
    }
    assert dict(found) == wanted


def test_rows_come_in_random_order() -> None:
    points, weights = random_points(2, 60)
    first, second, again = (
        emit(points, weights, 500, schema=SCHEMA, cells=CELLS, detail="centre", rng=np.random.default_rng(seed))
        for seed in (1, 2, 1)
    )
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], np.sort(first[0]))


@pytest.mark.parametrize("rows", [1, 5, 10, 11, 1_000])
def test_values_of_a_cell_are_used_equally_often(rows: int) -> None:
    """Ages 17–99 in 8 cells: about ten to a cell, each as often as the others up to one."""
    column, cells = SCHEMA.columns[0], CELLS[0]
    codes = np.full(rows, 3)
    values = spread_in_cells(column, cells, codes, np.random.default_rng(4))
    inside = [v for v in range(83) if column.to_cells(np.array([float(v)]), cells)[0] == 3]
    used = Counter(values.tolist())
    assert set(used) <= set(map(float, inside))
    times = [used[float(v)] for v in inside]
    assert max(times) - min(times) <= 1


def test_spreading_moves_rows_off_the_centre() -> None:
    """Control of the tests above: at the centre only one value of a cell is used."""
    column, cells = SCHEMA.columns[0], CELLS[0]
    codes = np.full(100, 3)
    spread = spread_in_cells(column, cells, codes, np.random.default_rng(5))
    assert len(set(spread.tolist())) > 5
    assert len(set(column.centres(cells)[codes].tolist())) == 1


def test_columns_are_spread_independently() -> None:
    """Inside one cell of two columns the values are not paired up by rank."""
    schema = Schema(columns=(SCHEMA.columns[0], Ordered("other", low=0, high=82)))
    cells = tuple(c.cells(2) for c in schema)
    points, weights = np.array([[0, 0]]), np.ones(1)
    table = emit(points, weights, 2_000, schema=schema, cells=cells, detail="spread", rng=np.random.default_rng(6))
    assert abs(np.corrcoef(table[0], table[1])[0, 1]) < 6 / np.sqrt(2_000)
