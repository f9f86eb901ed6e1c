"""The largest errors are those over all sets and functions, and one row moves each by at most one row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from all_sets import largest_errors
from certsynth import Schema
from certsynth.certificate import statistics
from certsynth.certificate.shares import largest_share_error
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import STATISTICS_PHASE, StatisticMaxima
from certsynth.queries.fine import LatticeCounts, LatticeQuery
from certsynth.queries.marginals import all_subsets
from certsynth.queries.statistics import offsets
from certsynth.queries.tally import Batch

EVERY_KIND = Schema.parse(
    """
[[column]]
name = "whole"
kind = "integer"
low = 0
high = 4

[[column]]
name = "light"
kind = "number"
low = 0
high = 1
weight = 0.3
missing = true

[[column]]
name = "grade"
kind = "ordinal"
values = ["low", "middle", "high"]
missing = true

[[column]]
name = "day"
kind = "date"
low = 2020-01-01
high = 2024-12-31

[[column]]
name = "point"
kind = "ordinal"
values = ["only"]
missing = true

[[column]]
name = "label"
kind = "category"
values = ["a", "b"]
other = true
missing = true

[[column]]
name = "code"
kind = "tree"
values = ["north/a", "north/b", "south"]
weight = 0.5

[[column]]
name = "colour"
kind = "metric"
values = ["red", "orange", "blue"]
distances = [[0, 1, 5], [1, 0, 4], [5, 4, 0]]

[[column]]
name = "member"
kind = "boolean"
"""
)


def random_rows(rng: np.random.Generator, rows: int) -> Batch:
    """Rows that gather at random places."""
    table = []
    for column in EVERY_KIND:
        points = column.centres(column.detail())
        near = points[rng.integers(len(points), size=2)]
        anywhere = points[rng.integers(len(points), size=rows)]
        table.append(np.where(rng.random(rows) < 0.5, near[rng.integers(2, size=rows)], anywhere))
    return table


def compare(fine: LatticeQuery, private: Batch, synthetic: Batch) -> dict[str, int]:
    maxima = StatisticMaxima()
    maxima.update(fine, fine.count([private]), fine.count([synthetic]))
    return maxima.losses


@pytest.mark.parametrize("ways", [1, 2])
def test_maxima_are_those_over_all_functions_of_columns_of_every_kind(ways):
    rng = np.random.default_rng(ways)
    for steps in (2, 3, 7):
        for subset in all_subsets(EVERY_KIND, ways):
            fine = LatticeQuery.of(EVERY_KIND, [subset], steps=steps)
            private, synthetic = random_rows(rng, int(rng.integers(1, 9))), random_rows(rng, int(rng.integers(1, 9)))
            assert compare(fine, private, synthetic) == largest_errors(fine, private, synthetic), subset


SINGLES, PAIRS = all_subsets(EVERY_KIND, 1), all_subsets(EVERY_KIND, 2)


def test_groups_of_subsets_give_what_all_together_give():
    rng = np.random.default_rng(0)
    private, synthetic = random_rows(rng, 40), random_rows(rng, 30)
    expected: dict[str, int] = {}
    for subset in [*SINGLES, *PAIRS]:
        for name, loss in compare(LatticeQuery.of(EVERY_KIND, [subset], steps=40), private, synthetic).items():
            expected[name] = max(loss, expected.get(name, 0))
    for size in (1, 5, 100):
        maxima = StatisticMaxima()
        for subsets in (SINGLES, PAIRS[::-1]):
            for start in range(0, len(subsets), size):
                fine = LatticeQuery.of(EVERY_KIND, subsets[start : start + size], steps=40)
                maxima.update(fine, fine.count([private]), fine.count([synthetic]))
        assert maxima.losses == expected


def test_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    fine = LatticeQuery.of(EVERY_KIND, PAIRS)
    private, synthetic = random_rows(rng, 300), random_rows(rng, 200)
    together = compare(fine, private, synthetic)
    monkeypatch.setattr(statistics, "in_threads", lambda work, tasks, *, rows: [work(task) for task in tasks])
    monkeypatch.setattr(statistics, "SUBSETS_PER_ROUND", 1)
    assert compare(fine, private, synthetic) == together


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_progress_and_names_depend_on_the_subsets_alone(rows):
    rng, told = np.random.default_rng(2), []
    maxima = StatisticMaxima()
    for subsets in (SINGLES[:4], SINGLES[4:], PAIRS):
        fine = LatticeQuery.of(EVERY_KIND, subsets)
        tables = fine.count([random_rows(rng, rows)]), fine.count([random_rows(rng, 20)])
        maxima.update(fine, *tables, total=len(SINGLES + PAIRS), progress=lambda *step: told.append(step))
    assert sorted({done for _, done, _ in told}) == list(range(len(SINGLES + PAIRS) + 1))
    assert {(phase, total) for phase, _, total in told} == {(STATISTICS_PHASE, len(SINGLES + PAIRS))}
    assert list(maxima.losses) == ["share_of_one_column", "share_of_two_columns", "group_total", "moment"]
    assert rows or set(maxima.losses.values()) == {0}


def test_a_maximum_over_nothing_is_none():
    labels = EVERY_KIND.select(["label", "code", "day"])
    assert list(compare_any(labels, [(0,), (1,)])) == ["share_of_one_column"]
    assert list(compare_any(labels, [(0,), (2,)])) == ["share_of_one_column", "moment"]
    assert list(compare_any(labels, [(0, 1)])) == ["share_of_two_columns"]
    assert list(compare_any(labels, [(0, 1), (1, 2)])) == ["share_of_two_columns", "group_total"]
    with pytest.raises(ValueError, match="one or two columns"):
        compare_any(labels, [(0, 1, 2)])


def compare_any(schema: Schema, subsets: list[tuple[int, ...]]) -> dict[str, int]:
    fine = LatticeQuery.of(schema, subsets)
    return compare(fine, *([column.centres(column.detail())[:1] for column in schema] for _ in range(2)))


# ------------------------------------------------------------ sensitivity

TINY = {
    "line and labels": """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 2
missing = true

[[column]]
name = "b"
kind = "boolean"
""",
    "two lines": """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 2

[[column]]
name = "b"
kind = "ordinal"
values = ["x", "y"]
missing = true
weight = 0.5
""",
    "labels": """
[[column]]
name = "a"
kind = "category"
values = ["x", "y"]
other = true

[[column]]
name = "b"
kind = "metric"
values = ["x", "y", "z"]
distances = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
""",
}
Row = tuple[float, ...]


def batch(schema: Schema, rows: tuple[Row, ...]) -> Batch:
    kinds = [column.centres(column.detail()).dtype for column in schema]
    return [np.array([row[j] for row in rows], dtype=kind) for j, kind in enumerate(kinds)]


def largest_changes(case: str, most: int, synthetic_sizes: tuple[int, ...], every: int) -> tuple[dict[str, int], int]:
    """The largest changes between neighbouring tables of at most `most` rows, and how many pairs there are.

    Neighbours under both relations. Of the synthetic tables of the given sizes only each `every`-th is tried.
    """
    schema = Schema.parse(TINY[case])
    domain = list(itertools.product(*(column.centres(column.detail()).tolist() for column in schema)))
    queries = [LatticeQuery.of(schema, subsets) for subsets in (((0,), (1,)), ((0, 1),))]
    tables = [
        rows for size in range(most + 1) for rows in itertools.combinations_with_replacement(range(len(domain)), size)
    ]
    synthetic_tables = [
        rows for size in synthetic_sizes for rows in itertools.combinations_with_replacement(range(len(domain)), size)
    ][::every]

    def count(rows: tuple[int, ...]) -> list[LatticeCounts]:
        return [fine.count([batch(schema, tuple(domain[i] for i in rows))]) for fine in queries]

    counts = {rows: count(rows) for rows in tables}
    changes: dict[str, int] = {}
    pairs = 0
    for synthetic in map(count, synthetic_tables):
        losses = {}
        for rows, private in counts.items():
            maxima = StatisticMaxima()
            for fine, ours, theirs in zip(queries, private, synthetic, strict=True):
                maxima.update(fine, ours, theirs)
            losses[rows] = maxima.losses
        for rows, found in losses.items():
            for i in range(len(rows)):
                rest = rows[:i] + rows[i + 1 :]
                others = [rest, *(tuple(sorted((*rest, new))) for new in range(len(domain)))]
                for other in others:
                    pairs += 1
                    for name, loss in found.items():
                        changes[name] = max(changes.get(name, 0), abs(loss - losses[other][name]))
    return changes, pairs


def assert_one_row_moves_by_one(case: str, changes: dict[str, int]) -> None:
    assert max(changes.values()) <= LOSS_UNITS
    assert changes["share_of_one_column"] == changes["share_of_two_columns"] == LOSS_UNITS  # it is not padded
    assert case == "labels" or min(changes["moment"], changes["group_total"]) > LOSS_UNITS // 4


@pytest.mark.parametrize("case", TINY)
def test_no_pair_of_neighbours_moves_a_maximum_by_more_than_one_row(case):
    changes, pairs = largest_changes(case, 3, (1, 3), 20)
    assert pairs > 20_000
    assert_one_row_moves_by_one(case, changes)


@pytest.mark.slow
@pytest.mark.parametrize("case", TINY)
def test_no_pair_of_many_neighbours_moves_a_maximum_by_more_than_one_row(case):
    changes, pairs = largest_changes(case, 4, (1, 2, 3), 3)
    assert pairs > 500_000
    assert_one_row_moves_by_one(case, changes)


def test_functions_that_depend_on_private_rows_are_seen(monkeypatch):
    """With a centre that is the mean of the private rows, a maximum moves by more than one row."""

    def with_private_centre(first, second, private, synthetic):
        ours, theirs = (block.reshape(first.size, second.size) for block in (private, synthetic))
        away = offsets(first, ours.sum(axis=1))
        return largest_share_error(second, synthetic.sum() * (away @ ours) - private.sum() * (away @ theirs))

    monkeypatch.setattr(statistics, "largest_total_error", with_private_centre)
    assert largest_changes("two lines", 3, (1, 3), 10)[0]["group_total"] > LOSS_UNITS
