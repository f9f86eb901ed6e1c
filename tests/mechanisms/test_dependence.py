"""Scores of tables: their literal meaning, and how far one row moves them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from certsynth.algorithm.adaptive.choice import candidate_pairs, measure_scores
from certsynth.algorithm.adaptive.scores import references, scored_tables
from certsynth.algorithm.task import Task
from certsynth.domain import Schema
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.mechanisms.dependence import (
    SCORE_UNITS,
    Reference,
    excess_rows,
    measure_dependence,
    score_change,
)
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.tally import in_memory
from certsynth.sources import cleaned, open_source
from small import NoNoise, SeededNoise, settled

TINY = Schema.parse(
    """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 2

[[column]]
name = "b"
kind = "category"
values = ["x", "y"]
missing = true

[[column]]
name = "c"
kind = "boolean"
"""
)

LINES = [",".join(line) for line in itertools.product("012", ["x", "y", ""], ["true", "false"])]
"""All rows that the schema allows."""


def literal_score(reference: Reference, counts: list[int]) -> int:
    """The score as its definition reads, place by place."""
    found = 0
    for codes, weight in zip(reference.scales, reference.weights, strict=True):
        for place in set(codes.tolist()):
            inside = [i for i, code in enumerate(codes.tolist()) if code == place]
            found += weight * abs(sum(counts[i] - int(reference.expected[i]) for i in inside))
    return found


def scores(reference: Reference, tables: list[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    return {table: reference.score(np.array(table, np.int64)) for table in tables}


def random_reference(rng: np.random.Generator, cells: int) -> Reference:
    """Expected counts and scales that need not be nested, with any weights."""
    weights = rng.multinomial(SCORE_UNITS, rng.dirichlet([1, 1, 1])).tolist()
    codes = [np.arange(cells), rng.integers(0, 2, cells), np.zeros(cells, np.int64)]
    codes[1] = np.unique(codes[1], return_inverse=True)[1]
    return Reference(rng.integers(0, 3, cells), tuple(codes), tuple(weights))


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_the_score_is_what_its_definition_says(cells: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, cells])
        reference = random_reference(rng, cells)
        counts = rng.integers(0, 5, cells)
        assert reference.score(counts) == literal_score(reference, counts.tolist())


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_no_row_changes_a_score_by_more_than_is_said_and_some_row_by_as_much(neighbours: Neighbours) -> None:
    """All tables of up to three rows in up to four cells, all their neighbours, and many references."""
    largest = 0
    for cells, seed in itertools.product((1, 2, 3, 4), range(15)):
        reference = random_reference(np.random.default_rng([seed, cells]), cells)
        tables = [table for table in itertools.product(range(4), repeat=cells) if sum(table) <= 3]
        known = scores(reference, tables)
        for table, own in known.items():
            for other in neighbours_of(table, neighbours):
                if other in known:
                    largest = max(largest, abs(own - known[other]))
    assert largest == score_change(neighbours)


def neighbours_of(table: tuple[int, ...], neighbours: Neighbours) -> Iterator[tuple[int, ...]]:
    """Counts after one row was added, or replaced by another."""
    for i in range(len(table)):
        more = (*table[:i], table[i] + 1, *table[i + 1 :])
        if neighbours is Neighbours.ADD_REMOVE:
            yield more
        else:
            yield from ((*more[:j], more[j] - 1, *more[j + 1 :]) for j in range(len(more)) if more[j] > 0)


def scores_of(known: list[Reference], tables: Marginals, batches: list[list[np.ndarray]]) -> np.ndarray:
    counts = in_memory(*batches)(CellCounts(TINY, tables))
    return np.array([reference.score(block) for reference, block in zip(known, counts, strict=True)])


def rows_from(*lines: str, folder: Path) -> list[list[np.ndarray]]:
    """Lines of a file as the reader cleans them."""
    path = folder / "rows.csv"
    path.write_text("\n".join(["a,b,c", *lines]) + "\n")
    return list(cleaned(open_source(path), TINY))


def public_part(neighbours: Neighbours, folder: Path) -> tuple[list[Reference], Marginals]:
    """Expected counts as a release computes them, from noisy counts of single columns."""
    settings = settled(TINY, epsilon=1, mechanism="adaptive", neighbours=neighbours)
    rows = in_memory(*rows_from(*(LINES[i] for i in (0, 4, 4, 9, 13, 17)), folder=folder))
    singles, _ = measure_scores(Task(TINY, settings, 6), rows, noise=SeededNoise(3))
    tables = scored_tables(TINY, singles, candidate_pairs(settings))
    return references(singles, tables), tables


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_rows_of_a_schema_change_no_score_by_more(tmp_path: Path, neighbours: Neighbours) -> None:
    """All tables of one row and all their neighbours: other rows, or one row more."""
    known, tables = public_part(neighbours, tmp_path)
    batches = {line: rows_from(line, folder=tmp_path) for line in LINES}
    own = {line: scores_of(known, tables, batches[line]) for line in LINES}
    largest = 0
    for first, second in itertools.product(LINES, repeat=2):
        other = own[second]
        if neighbours is Neighbours.ADD_REMOVE:
            other = scores_of(known, tables, [*batches[first], *batches[second]])
        largest = max(largest, int(abs(own[first] - other).max()))
    assert score_change(neighbours) / 4 < largest <= score_change(neighbours)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_from_the_file_on_one_line_changes_no_score_by_more(tmp_path: Path, neighbours: Neighbours) -> None:
    """Lines that the schema does not allow, empty ones and nonsense among them."""
    lines = ["0,x,true", "2,y,false", "1,,true", "99,nonsense,", ",,", "2,x,maybe"]
    known, tables = public_part(neighbours, tmp_path)
    own = scores_of(known, tables, rows_from(*lines, folder=tmp_path))
    for line in ["0,y,false", "-7,,?", "2,x,true", ",,"]:
        others = [[*lines, line]]
        if neighbours is Neighbours.REPLACE_ONE:
            others = [[*lines[:i], line, *lines[i + 1 :]] for i in range(len(lines))]
        for other in others:
            found = scores_of(known, tables, rows_from(*other, folder=tmp_path))
            assert abs(own - found).max() <= score_change(neighbours)


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_all_scores_together_cost_the_budget_exactly(neighbours: Neighbours, unit: Unit) -> None:
    rng = np.random.default_rng(1)
    known = [random_reference(rng, cells) for cells in (2, 3, 4)]
    counts = [rng.integers(0, 4, len(reference.expected)) for reference in known]
    budget = Budget(Fraction(1, 7), unit)
    made = measure_dependence(counts, known, budget=budget, neighbours=neighbours, noise=NoNoise())
    assert made.cost.spent == budget
    assert made.values == tuple(reference.score(block) for reference, block in zip(known, counts, strict=True))
    assert made.sensitivity is not None
    assert made.sensitivity.l1 == 3 * score_change(neighbours)


def test_excess_rows_are_rows_beyond_chance() -> None:
    """A table whose rows lie all elsewhere than expected has as many excess rows as rows, less what chance explains."""
    reference = Reference(np.array([1000, 0]), (np.arange(2),), (SCORE_UNITS,))
    assert reference.score(np.array([0, 1000])) == 2 * 1000 * SCORE_UNITS
    (found,) = excess_rows(np.array([reference.score(np.array([0, 1000]))]), [reference])
    assert found == pytest.approx(1000 - reference.chance() / (2 * SCORE_UNITS))
    (found,) = excess_rows(np.array([-64]), [reference])
    assert found == pytest.approx(-0.5 - reference.chance() / (2 * SCORE_UNITS))


@pytest.mark.parametrize("weights", [(SCORE_UNITS - 1,), (SCORE_UNITS + 1,), (-1, SCORE_UNITS + 1)])
def test_weights_of_another_sum_are_refused(weights: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="SCORE_UNITS"):
        Reference(np.array([1, 2]), (np.arange(2),) * len(weights), weights)
