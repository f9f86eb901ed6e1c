"""𝕋: counting, exactly, with counts that keep to themselves."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from collections import Counter

import joblib
import numpy as np
import pytest

import generators as gen
import oracles
from certsynth.domain import Category, Ordered, Schema
from certsynth.queries.marginals import Counts, Marginals

COLUMNS = (gen.line(3, missing=True), gen.labels(1), gen.holes([1, 4], 6), gen.labels(4))


def marginals(sparsity: int) -> Marginals:
    return Marginals(cells=COLUMNS, subsets=tuple(itertools.combinations(range(len(COLUMNS)), sparsity)))


def random_rows(rows: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(c.size, size=rows) for c in COLUMNS]


@pytest.mark.parametrize("sparsity", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [0, 1, 2, 500])
def test_counts_are_what_counting_by_hand_gives(sparsity: int, rows: int) -> None:
    codes = random_rows(rows)
    counts = marginals(sparsity).count([codes])
    table = list(zip(*(column.tolist() for column in codes), strict=True))
    assert counts.rows == rows
    for subset, block in zip(counts.marginals.subsets, counts, strict=True):
        by_hand = Counter(tuple(row[j] for j in subset) for row in table)
        cells = oracles.all_cells([COLUMNS[j] for j in subset])
        assert block.tolist() == [by_hand[cell] for cell in cells]


def test_batches_do_not_matter() -> None:
    codes = random_rows(100)
    whole = marginals(2).count([codes])
    parts = marginals(2).count([[c[a:b] for c in codes] for a, b in [(0, 1), (1, 1), (1, 60), (60, 100)]])
    assert parts.rows == whole.rows == 100
    assert all(np.array_equal(a, b) for a, b in zip(parts, whole, strict=True))


def test_no_batches_are_no_rows() -> None:
    counts = marginals(2).count([])
    assert counts.rows == 0
    assert all(block.sum() == 0 and len(block) for block in counts)


def test_a_cell_that_does_not_exist_is_not_counted_elsewhere() -> None:
    codes = random_rows(5)
    codes[0][2] = COLUMNS[0].size
    with pytest.raises(ValueError, match="beyond"):
        marginals(1).count([codes])


def test_indices_run_fastest_in_the_last_column() -> None:
    codes = random_rows(50)
    for subset in ((0,), (0, 3), (1, 2, 3), (0, 1, 2, 3)):
        expected = np.ravel_multi_index([codes[j] for j in subset], [COLUMNS[j].size for j in subset])
        assert np.array_equal(marginals(1).indices(codes, subset), expected)


def test_all_subsets_of_a_schema_are_listed_once() -> None:
    schema = Schema(
        columns=(Ordered("a", low=0, high=9), Ordered("b", kind="number"), Category("c", values=("x", "y")))
    )
    listed = Marginals.all_subsets(schema, sparsity=2, resolution=4)
    assert listed.subsets == ((0, 1), (0, 2), (1, 2))
    assert listed.sizes() == [16, 8, 8]
    assert listed.shape((1, 2)) == (4, 2)


def test_sizes_are_exact_beyond_any_machine_word() -> None:
    """P18."""
    wide = Marginals(cells=(gen.line(1000),) * 40, subsets=(tuple(range(40)), (0, 1), ()))
    assert wide.sizes() == [1000**40, 10**6, 1]
    assert all(type(size) is int for size in wide.sizes())
    assert int(np.prod(np.full(40, 1000))) != 1000**40  # control: machine words wrap around


def test_exact_counts_do_not_show_themselves() -> None:
    counts = Counts(marginals=marginals(2), blocks=(np.array([918273, 645546]),), rows=918273)
    for text in (repr(counts), str(counts), f"{counts}", f"{[counts]}", f"{counts!a}", repr({"x": counts})):
        assert not re.search(r"\d{2}", text)
        assert "private" in text


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_exact_counts_cannot_be_pickled(protocol: int) -> None:
    counts = marginals(1).count([random_rows(3)])
    for held in (counts, [counts], {"counts": counts}):
        with pytest.raises(TypeError, match="private"):
            pickle.dumps(held, protocol=protocol)


def test_exact_counts_cannot_be_copied_or_dumped() -> None:
    counts = marginals(1).count([random_rows(3)])
    for function in (copy.copy, copy.deepcopy, joblib.hash):
        with pytest.raises((TypeError, pickle.PicklingError), match="private"):
            function(counts)


def test_exact_counts_cannot_be_changed() -> None:
    counts = marginals(1).count([random_rows(3)])
    with pytest.raises(ValueError, match="read-only"):
        counts.blocks[0][0] = 7
    with pytest.raises(AttributeError):
        counts.rows = 7  # type: ignore[misc]
