"""Subsets that cannot be the largest are skipped, and what gets noise is the same integer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certsynth import Schema
from certsynth.certificate import skipping
from certsynth.certificate.comparison import Distance, distances
from certsynth.certificate.direct import Query, exact_query
from certsynth.certificate.passes import POINT_BYTES, compare_tables, network_bytes, passes_of, points_each
from certsynth.certificate.skipping import Largest, largest_distances
from certsynth.errors import InputError
from certsynth.mechanisms import Neighbours
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.tally import Batch, in_memory
from certsynth.transport import Estimate, Network, cheapest_flow, difference, stretch_of, transport_upper_bound

EVERY_KIND = Schema.parse(
    """
[[column]]
name = "whole"
kind = "integer"
low = 0
high = 40

[[column]]
name = "number"
kind = "number"
low = 0
high = 1
missing = true

[[column]]
name = "light"
kind = "number"
low = 0
high = 1
weight = 0.3
missing = true

[[column]]
name = "label"
kind = "category"
values = ["a", "b", "c"]
other = true

[[column]]
name = "light label"
kind = "category"
values = ["a", "b", "c", "d"]
weight = 0.4

[[column]]
name = "code"
kind = "tree"
values = ["north/a", "north/b", "south/a", "south/b/x", "south/b/y"]

[[column]]
name = "day"
kind = "date"
low = 2020-01-01
high = 2024-12-31
"""
)

PAIRS = [(i, j) for j in range(len(EVERY_KIND)) for i in range(j)]
TRIPLES = [(0, 1, 3), (1, 2, 6), (0, 4, 5)]


def random_rows(rng: np.random.Generator, rows: int) -> Batch:
    """Rows that gather at random places, so that tables are near to each other in some subsets and not in others."""
    table = []
    for column in EVERY_KIND:
        points = column.centres(column.detail())
        near = rng.integers(len(points), size=3)
        codes = np.where(rng.random(rows) < 0.6, near[rng.integers(3, size=rows)], rng.integers(len(points), size=rows))
        table.append(points[codes])
    return table


def lattices(subsets: list[tuple[int, ...]], steps: int = 32) -> LatticeQuery:
    return LatticeQuery.of(EVERY_KIND, subsets, steps=steps)


def query(fine: LatticeQuery, found: list[Distance], rows: int) -> Query:
    return exact_query(fine, found, rows, neighbours=Neighbours.ADD_REMOVE)


@pytest.fixture(autouse=True)
def bounds_for_all(monkeypatch):
    """Bounds are tried on the smallest lattices, too."""
    monkeypatch.setattr(skipping, "COARSE_BOUNDS", ((4, 0), (2, 0), (1, 50)))
    monkeypatch.setattr(skipping, "MIN_POINT_RATIO", 1)
    monkeypatch.setattr(skipping, "SUBSETS_PER_ROUND", 2)


@pytest.mark.parametrize("subsets", [PAIRS, TRIPLES], ids=["pairs", "triples"])
def test_a_cheap_bound_is_never_below_the_flow(subsets):
    rng, seen = np.random.default_rng(1), 0
    for seed in range(3):
        fine = lattices(subsets, steps=(32, 8, 11)[seed])
        first, second = (fine.count([random_rows(rng, rows)]) for rows in (60, 37))
        for subset, a, b in zip(subsets, first.counts, second.counts, strict=True):
            cells = fine.marginals.of(subset)
            network = Network.of(cells)
            assert stretch_of(cells) == network.stretch
            measure, _ = difference(a, b)
            flow = cheapest_flow(network, measure)
            assert flow.optimal
            exact, places = Fraction(flow.upper, network.unit), np.flatnonzero(measure)
            for level in range(6):
                bound = transport_upper_bound(cells, places, measure[places], level=level).upper
                assert exact <= bound <= int(np.abs(measure).sum()) * max(c.diameter for c in cells) / 2
                seen += bound < 2 * exact
    assert seen > 20  # and it is no worse than it must be


def test_what_gets_noise_is_the_same_integer_with_and_without_skipping():
    rng, skips = np.random.default_rng(2), 0
    for _ in range(6):
        rows = int(rng.integers(1, 80))
        fine = lattices(PAIRS)
        ours, theirs = fine.count([random_rows(rng, rows)]), fine.count([random_rows(rng, 50)])
        largest = Largest()
        found = largest_distances(fine, ours, theirs, largest=largest)
        assert query(fine, found, rows) == query(fine, distances(fine, ours, theirs), rows)
        assert largest.solves + largest.skips == len(PAIRS)
        skips += largest.skips
    assert skips > len(PAIRS)


def test_ties_and_equal_tables_change_nothing():
    """All columns alike: every pair has the same loss. And a table compared with itself."""
    text = '[[column]]\nname = "{}"\nkind = "integer"\nlow = 0\nhigh = 30\n'
    schema = Schema.parse("\n".join(text.format(name) for name in "abcde"))
    rng = np.random.default_rng(3)
    pairs = [(i, j) for j in range(5) for i in range(j)]
    fine = LatticeQuery.of(schema, pairs)
    one, other = rng.integers(31, size=40), rng.integers(31, size=60)
    ours, theirs = fine.count([[one] * 5]), fine.count([[other] * 5])
    for a, b in ((ours, theirs), (ours, ours)):
        largest = Largest()
        found = largest_distances(fine, a, b, largest=largest)
        assert query(fine, found, 40) == query(fine, distances(fine, a, b), 40)
    assert largest.solves == 1


def test_passes_give_what_one_gives():
    """In whatever groups subsets are counted, and whatever the tables before have shown."""
    rng = np.random.default_rng(4)
    fine = lattices(PAIRS)
    ours, theirs = random_rows(rng, 50), random_rows(rng, 70)
    all_at_once = compare_tables(fine, in_memory(ours), [in_memory(theirs)], memory=10**12)
    few = compare_tables(fine, in_memory(ours), [in_memory(theirs), in_memory(ours)], memory=0)
    points = points_each(fine)
    room = network_bytes(points) + POINT_BYTES * sum(points) // 4
    some = compare_tables(fine, in_memory(ours), [in_memory(theirs)], memory=room, every=True)
    assert (all_at_once.passes, few.passes) == (1, len(PAIRS))
    assert 1 < some.passes < len(PAIRS)
    expected = query(fine, distances(fine, fine.count([ours]), fine.count([theirs])), 50)
    for told in (all_at_once, few, some):
        assert told.rows == 50
        assert query(fine, list(told.found[0]), 50) == expected
    assert max(d.upper for d in few.found[1] if not d.skipped) == 0
    assert not any(d.skipped for d in some.found[0])
    assert [len(part.marginals.subsets) for part in passes_of(fine, 10**12)] == [len(PAIRS)]


def test_a_bound_that_is_too_small_is_seen(monkeypatch):
    """The control: halved bounds skip what they must not, and the integer is another."""
    honest = skipping.transport_upper_bound

    def too_small(*task, **how):
        found = honest(*task, **how)
        return Estimate(found.upper / 4, found.about)

    monkeypatch.setattr(skipping, "transport_upper_bound", too_small)
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(6):
        fine = lattices(PAIRS)
        ours, theirs = fine.count([random_rows(rng, 50)]), fine.count([random_rows(rng, 50)])
        found = largest_distances(fine, ours, theirs, largest=Largest())
        wrong += query(fine, found, 50) != query(fine, distances(fine, ours, theirs), 50)
    assert wrong


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("guess", [lambda found: found.about, lambda found: -found.about, lambda found: Fraction(0)])
def test_flows_that_are_cheap_enough_skip_as_bounds_do_whatever_is_guessed(monkeypatch, guess):
    """Bounds that say nothing: every subset is begun, and left where its flow cannot be the largest any more."""
    honest = skipping.transport_upper_bound

    def says_nothing(cells, places, values, **how):
        found = honest(cells, places, values, **how)
        return Estimate(int(np.abs(values).sum()) * max(c.diameter for c in cells) / 2, guess(found))

    monkeypatch.setattr(skipping, "transport_upper_bound", says_nothing)
    monkeypatch.setattr(skipping, "SUBSETS_PER_ROUND", 1)
    rng, left = np.random.default_rng(7), 0
    for _ in range(4):
        fine = lattices(PAIRS)
        ours, theirs = fine.count([random_rows(rng, 60)]), fine.count([random_rows(rng, 50)])
        largest = Largest()
        found = largest_distances(fine, ours, theirs, largest=largest)
        every = distances(fine, ours, theirs)
        assert query(fine, found, 60) == query(fine, every, 60)
        assert all(a.upper >= b.upper for a, b in zip(found, every, strict=True))
        left += sum(a.skipped and a.upper > b.upper for a, b in zip(found, every, strict=True))
    assert left > 4


def test_where_each_subset_counts_none_is_skipped():
    rng = np.random.default_rng(6)
    fine = lattices(PAIRS)
    ours, theirs = fine.count([random_rows(rng, 50)]), fine.count([random_rows(rng, 50)])
    found = largest_distances(fine, ours, theirs, largest=Largest())
    assert any(d.skipped for d in found)
    with pytest.raises(ValueError, match="no subset is skipped"):
        exact_query(fine, found, 50, neighbours=Neighbours.REPLACE_ONE, per_subset=True)


def test_a_table_that_changes_between_passes_is_refused():
    """What was computed of other rows would not belong to these."""
    fine = lattices(PAIRS)
    ours = random_rows(np.random.default_rng(6), 40)
    fewer, asked = [x[:-1] for x in ours], []

    def changing(tally):
        asked.append(tally)
        return in_memory(ours if len(asked) == 1 else fewer)(tally)

    with pytest.raises(InputError, match="changes while it is read"):
        compare_tables(fine, changing, [in_memory(ours)], memory=0)
    assert len(asked) == 2
