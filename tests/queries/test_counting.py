"""Counts and sums by compiled loops are those of NumPy, and exact where numbers of 16 or 32 bits would not be."""

from __future__ import annotations

import numpy as np
import pytest

from certsynth.queries.counting import MAX_TWIN_CELLS, MIN_COMPILED_ROWS, count_rows, sum_largest_moves

ROWS = 2**17
SIZES = (300, 258, 2, 7)
SUBSETS = [(0, 1), (1, 2), (2, 3), (0,), (), (3, 2, 1)]


def beginning(start: int) -> list[np.ndarray]:
    return [np.full(int(np.prod([SIZES[j] for j in subset])), start, np.int64) for subset in SUBSETS]


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("rows", [0, 1, MIN_COMPILED_ROWS - 1, MIN_COMPILED_ROWS, MIN_COMPILED_ROWS + 1, ROWS])
@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.int64])
def test_counts_are_those_of_numpy(rows: int, kind: type) -> None:
    rng = np.random.default_rng(rows)
    codes = np.stack([rng.integers(0, size, rows) for size in SIZES]).astype(kind)
    blocks = beginning(0)
    count_rows(blocks, codes, SUBSETS, SIZES)
    for subset, block in zip(SUBSETS, blocks, strict=True):
        expected = np.zeros([SIZES[j] for j in subset], np.int64)
        for places in codes[list(subset)].T.tolist():
            expected[tuple(places)] += 1
        assert block.tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("start", [0, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**53 + 1])
def test_rows_that_all_fall_into_one_cell_overflow_nothing(start: int) -> None:
    """More rows than 16 bits can count, on top of what neither 32 bits nor a float can hold."""
    last = np.array([size - 1 for size in SIZES])
    codes = np.repeat(last[:, None], ROWS, axis=1).astype(np.uint16)
    blocks = beginning(start)
    assert min(map(len, blocks)) <= MAX_TWIN_CELLS < max(map(len, blocks)) <= ROWS  # counted with twins, and aside
    for _ in range(2):
        count_rows(blocks, codes, SUBSETS, SIZES)
    for block in blocks:
        assert block[-1] == start + 2 * ROWS
        assert (block[:-1] == start).all()


@pytest.mark.parametrize("rows", [1, MIN_COMPILED_ROWS - 1, MIN_COMPILED_ROWS, ROWS])
@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.int64])
def test_sums_of_the_largest_units_overflow_nothing(rows: int, kind: type) -> None:
    most = min(np.iinfo(kind).max, 2**20)
    units = np.stack([np.full(rows, most), np.zeros(rows), np.arange(rows) % 3, np.full(rows, most - 1)]).astype(kind)
    subsets = [(0,), (1,), (0, 1), (1, 2), (2, 3), (0, 3), (1, 2, 3), ()]
    wide = units.astype(object)
    expected = [sum(wide[list(subset)].max(axis=0).tolist()) if subset else 0 for subset in subsets]
    assert sum_largest_moves(units, subsets) == expected
    assert rows < ROWS or expected[0] > 2**32
