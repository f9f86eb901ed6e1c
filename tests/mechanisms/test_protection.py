"""P1 for persons: all tables of up to three persons with up to two rows each, from tables on, through the choice of
rows: no mechanism's integers change by more than is stated for a person, and some pair of tables attains it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from certsynth.algorithm.certify import direct_bounds
from certsynth.algorithm.exceptions import SCORE_SENSITIVITY, scoring_query
from certsynth.certificate.direct import choice_sensitivity, exact_query, flow_losses
from certsynth.certificate.passes import compare_tables
from certsynth.domain.persons import MAX_WEIGHED_ROWS, Persons
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit, strategy_named
from certsynth.mechanisms.dependence import SCORE_UNITS, Reference, measure_dependence
from certsynth.mechanisms.measure import coefficients, sensitivity
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.registry import GRID_STRATEGIES, TABLE_STRATEGIES
from certsynth.mechanisms.samplers import NoisyIntegers, calibrated_scale, is_enough
from certsynth.queries.displacement import Displacement, farthest
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.occupied import Occupancy, joint_grid
from certsynth.queries.tally import RowCount, Rows, in_memory
from certsynth.sources.persons import keep_rows
from small import TINY

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE

PLACES = [(0, "x"), (3, "y"), (3, "x"), (1, "x")]
"""Rows of the tables: in different cells of all marginals, in one of them, and between two points of a lattice."""

LIVES = [tuple(life) for size in (1, 2) for life in itertools.combinations_with_replacement(range(len(PLACES)), size)]
"""All rows that one person may have, as positions in PLACES: one row or two."""

ALONE = "k = 1, each person counts 1"
IDS = ("ann", "ben", "cem")
Table = tuple[tuple[int, ...] | None, ...]
"""For each of the IDS the rows of that person, or None if the table has none of them."""


@dataclass(frozen=True)
class Held:
    """A table in memory, as a source."""

    columns: dict[str, np.ndarray]

    def batches(self, names: Sequence[str]) -> Iterator[list[np.ndarray]]:
        return iter([[self.columns[name] for name in names]])


def held(table: Table) -> Held:
    rows = [(who, *PLACES[place]) for who, life in zip(IDS, table, strict=True) for place in life or ()]
    return Held({name: np.array([row[j] for row in rows], object) for j, name in enumerate(("id", "a", "b"))})


PERSONS = {
    "k = 1": Persons("id", 1),
    ALONE: Persons("id", 1, "persons"),
    "k = 2": Persons("id", 2),
    "k = 2, each person counts 1": Persons("id", 2, "persons"),
}


@dataclass(frozen=True)
class Tables:
    """All tables, by the exact counts of their kept rows in PLACES, which determine whatever is asked of them."""

    kept: dict[tuple[int, ...], Rows]
    neighbours: dict[Neighbours, np.ndarray]
    """Pairs of positions in `kept`: those of neighbouring tables."""


def joint_counts(rows: Rows) -> np.ndarray:
    """Exact counts of all rows that the schema allows."""
    (block,) = rows(LatticeQuery.of(TINY, [(0, 1)], steps=8)).counts
    return block


@functools.cache
def all_tables(case: str) -> Tables:
    """Every table goes through `keep_rows`; neighbours differ in all rows of one person."""
    kept: dict[tuple[int, ...], Rows] = {}
    places: dict[tuple[int, ...], int] = {}
    key_of: dict[Table, int] = {}
    several = PERSONS[case].rows > 1  # then nothing is left out, and it does not matter who is who
    for table in itertools.product((None, *LIVES), repeat=len(IDS)):
        if several and list(table) != sorted(table, key=str):
            continue
        rows = keep_rows(held(table), TINY, PERSONS[case]).rows_of(TINY, "")
        key = tuple(joint_counts(rows).tolist())
        kept.setdefault(key, rows)
        key_of[table] = places.setdefault(key, len(places))
    pairs: dict[Neighbours, set[tuple[int, int]]] = {REPLACE: set(), ADD: set()}
    for table, own in key_of.items():
        for who, life in enumerate(table):
            for other in () if life is None else (None, *LIVES):
                changed = (*table[:who], other, *table[who + 1 :])
                changed = tuple(sorted(changed, key=str)) if several else changed
                pairs[ADD if other is None else REPLACE].add((own, key_of[changed]))
    return Tables(kept, {relation: np.array(sorted(found)) for relation, found in pairs.items()})


# ------------------------------------------------------------ what gets noise


class Captured(Exception):
    """The exact integers that are about to get noise, and their sensitivity."""


class Capturing:
    """Takes the place of noise, and hands over what it was given."""

    releasable = False

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        raise Captured(values, sensitivity)


def captured(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[list[int], Sensitivity]:
    with pytest.raises(Captured) as caught:
        call(*arguments, budget=Budget(Fraction(1)), noise=Capturing(), **options)
    values, change = caught.value.args
    return list(values), change


ONE, PAIR = ((0,), (1,)), ((0, 1),)
SYNTHETIC = [[np.array([0.0, 3.0, 2.0]), np.array([0, 1, 1])], [np.array([2.0]), np.array([0])]]
"""Two public tables, as batches of cleaned rows."""


def marginals(rows: Rows, relation: Neighbours, name: str) -> tuple[list[int], Sensitivity]:
    """The coefficients of a strategy on single columns, and on the pair with another weight."""
    if name in GRID_STRATEGIES:
        tables = joint_grid(TINY, 2)
    else:
        tables = Marginals(cells=tuple(column.cells(4) for column in TINY), subsets=(*ONE, *PAIR), weights=(1, 1, 3))
    strategy = strategy_named(name, neighbours=relation)
    found = coefficients(rows(CellCounts(TINY, tables)), strategy)
    return np.concatenate(found).tolist(), sensitivity(tables, strategy)


def row_count(rows: Rows, relation: Neighbours) -> tuple[list[int], Sensitivity]:
    return [rows(RowCount())], Sensitivity(1, 1) if relation is ADD else Sensitivity(0, 0)


def displacement(rows: Rows, relation: Neighbours) -> tuple[list[int], Sensitivity]:
    tables = Marginals.all_subsets(TINY, sparsity=2, resolution=1)
    most = farthest(TINY, tables)
    return [rows(Displacement(TINY, tables))], Sensitivity(most, most**2)


def dependence(rows: Rows, relation: Neighbours) -> tuple[list[int], Sensitivity]:
    tables = Marginals.even(TINY, PAIR, resolution=4)
    weights = (SCORE_UNITS // 4, SCORE_UNITS - SCORE_UNITS // 4)
    reference = Reference(np.array([1, 0, 0, 2, 0, 0, 0, 1]), (np.arange(8), np.arange(8) // 4), weights)
    return captured(measure_dependence, rows(CellCounts(TINY, tables)), [reference], neighbours=relation)


def direct_losses(rows: Rows, relation: Neighbours, steps: int) -> tuple[list[int], Sensitivity]:
    """The losses, those of single columns, errors of statistics, and, if hidden, the number of rows."""
    fine = LatticeQuery.of(TINY, [(0,), (0, 1)], steps=steps)
    return captured(
        direct_bounds, fine, rows, lambda: [SYNTHETIC[0]], beta=Fraction(1, 20), neighbours=relation, per_subset=True
    )


def scores_of_exceptions(rows: Rows, relation: Neighbours) -> tuple[list[int], Sensitivity]:
    """Each score by itself is chosen by, so that the largest change of one counts."""
    query = scoring_query(LatticeQuery.of(TINY, [(0,), (1,), (0, 1)]))
    compared = compare_tables(query, rows, [in_memory(SYNTHETIC[0])], memory=2**30, every=True)
    scores = flow_losses(compared.found[0], compared.rows)
    return scores, Sensitivity(SCORE_SENSITIVITY.l1 * 3, SCORE_SENSITIVITY.l2_squared * 3, each=SCORE_SENSITIVITY.l1)


def losses_of_candidates(rows: Rows, relation: Neighbours) -> tuple[list[int], Sensitivity]:
    """As `choose_table` compares them."""
    fine = LatticeQuery.of(TINY, PAIR, steps=2)
    compared = compare_tables(fine, rows, [in_memory(each) for each in SYNTHETIC], memory=2**30)
    losses = [exact_query(fine, found, compared.rows, neighbours=relation).losses[0] for found in compared.found]
    return losses, Sensitivity.of_each(choice_sensitivity(fine, relation), 2)


def occupied_cells(rows: Rows, relation: Neighbours) -> tuple[list[int], Sensitivity]:
    grids = [joint_grid(TINY, resolution) for resolution in (1, 2, 4)]
    return [len(each.places) for each in rows(Occupancy(TINY, grids))], Sensitivity.of_each(1, 3)


MECHANISMS: dict[str, Callable[[Rows, Neighbours], tuple[list[int], Sensitivity]]] = {
    **{name: functools.partial(marginals, name=name) for name in (*TABLE_STRATEGIES, *GRID_STRATEGIES)},
    "number of rows": row_count,
    "displacement": displacement,
    "dependence": dependence,
    "direct losses off the lattice": functools.partial(direct_losses, steps=2),
    "direct losses": functools.partial(direct_losses, steps=8),
    "scores of exceptions": scores_of_exceptions,
    "losses of candidates": losses_of_candidates,
    "occupied cells": occupied_cells,
}


@functools.cache
def changes(mechanism: str, case: str, relation: Neighbours) -> tuple[np.ndarray, Sensitivity, Protection]:
    """The changes of a mechanism's integers between all neighbours, and its sensitivity for a row."""
    protection, tables = Protection(relation, PERSONS[case]), all_tables(case)
    vectors, stated = [], []
    empty = [rows for key, rows in tables.kept.items() if not sum(key)]
    for rows in tables.kept.values():
        if rows in empty and protection.of_rows is REPLACE:  # has no neighbours, and is refused
            vectors.append(None)
            continue
        values, change = MECHANISMS[mechanism](rows, protection.of_rows)
        vectors.append(values)
        stated.append(change)
    blank = [0] * max(len(values) for values in vectors if values is not None)
    exact = np.array([blank if values is None else values for values in vectors], dtype=object)
    pairs = tables.neighbours[relation]
    assert len(set(stated)) == 1, "the sensitivity depends on the rows"
    return exact[pairs[:, 0]] - exact[pairs[:, 1]], stated[0], protection


def quick(mechanism: str, case: str, relation: Neighbours) -> bool:
    """With one row to a person both weights are the same, and strategies are linear, each like the others."""
    return case != ALONE and (mechanism not in LINEAR or mechanism in ("identity", "haar-weighted", "low-dimensional"))


LINEAR = (*TABLE_STRATEGIES, *GRID_STRATEGIES)
EVERY = [
    pytest.param(mechanism, case, relation, marks=() if quick(mechanism, case, relation) else pytest.mark.slow)
    for mechanism, case, relation in itertools.product(MECHANISMS, PERSONS, Neighbours)
    if mechanism != "number of rows" or Protection(relation, PERSONS[case]).of_rows is ADD
]


def largest(found: np.ndarray) -> Sensitivity:
    sizes = abs(found)
    return Sensitivity(int(sizes.sum(axis=1).max()), int((sizes**2).sum(axis=1).max()), each=int(sizes.max()))


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize(("mechanism", "case", "relation"), EVERY)
def test_no_person_changes_a_mechanism_by_more_than_is_stated(mechanism: str, case: str, relation: Neighbours) -> None:
    """And where the proof says that nothing is lost, some person changes it by as much."""
    found, of_row, protection = changes(mechanism, case, relation)
    most, seen = protection.sensitivity_of_unit(of_row), largest(found)
    assert len(found) >= 60
    assert seen.l1 <= most.l1
    assert seen.l2_squared <= most.l2_squared
    assert most.each is None or (seen.each or 0) <= most.each
    if protection.of_rows is relation:
        if mechanism in LINEAR or (mechanism == "number of rows"):
            assert (seen.l1, seen.l2_squared) == (most.l1, most.l2_squared)
        if mechanism in ("direct losses", "scores of exceptions"):
            assert seen.each == most.each


@pytest.mark.parametrize("case", PERSONS)
@pytest.mark.parametrize("relation", list(Neighbours))
def test_a_group_one_step_smaller_would_be_refuted(case: str, relation: Neighbours) -> None:
    """Control: the test above sees a sensitivity that is too small, for every weight and relation."""
    found, of_row, protection = changes("identity", case, relation)
    assert largest(found).l1 > (of_row * (protection.group - 1)).l1


def test_what_replacing_persons_loses_where_rows_count_the_same() -> None:
    """Rows are added and removed one by one, 2k of them, though k rows that move are a smaller change in most norms."""
    case, k = "k = 2", 2
    found, of_row, protection = changes("identity", case, REPLACE)
    most, seen = protection.sensitivity_of_unit(of_row), largest(found)
    assert protection.group == 2 * k
    assert (seen.l1, 2 * seen.l2_squared) == (most.l1, most.l2_squared)
    for mechanism in ("direct losses", "scores of exceptions"):
        found, of_row, _ = changes(mechanism, case, REPLACE)
        assert 2 * (largest(found).each or 0) == protection.sensitivity_of_unit(of_row).each
    found, _, _ = changes("number of rows", case, REPLACE)
    assert largest(found).l1 == k - 1


@pytest.mark.parametrize("case", ["k = 1", "k = 2", "k = 2, each person counts 1"])
def test_no_person_changes_more_occupied_cells_than_it_has_rows(case: str) -> None:
    """Parts of a row are in one cell. Where persons come and go, some change as many as they have rows."""
    for relation in Neighbours:
        found, _, protection = changes("occupied cells", case, relation)
        assert (largest(found).each or 0) <= protection.changed_cells == PERSONS[case].rows
    assert largest(changes("occupied cells", case, ADD)[0]).each == PERSONS[case].rows


# ------------------------------------------------------------ from a row to a person


UNITS = [Persons("id", k, weigh) for k in (1, 2, 3, 7, 12) for weigh in ("rows", "persons")] + [Persons("id", 1_000)]
CHANGES = [
    Sensitivity(1, 1),
    Sensitivity(7, 19),
    Sensitivity.of_each(65_537, 5),
    Sensitivity(2**30 + 1, 2**58 + 3),
]


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("persons", UNITS, ids=str)
def test_noise_for_the_budget_of_a_row_is_enough_for_a_person(persons: Persons, relation: Neighbours) -> None:
    """In exact arithmetic, and a scale that is smaller by one part in 10^9 is not enough: the budgets match."""
    protection = Protection(relation, persons)
    for of_row, unit in itertools.product(CHANGES, Unit):
        for amount in (Fraction(1), Fraction(1, 3), Fraction(7, 1000)):
            budget = Budget(amount, unit)
            scale = calibrated_scale(of_row, protection.per_row(budget))
            of_person = protection.sensitivity_of_unit(of_row)
            assert is_enough(scale, of_person, budget)
            assert not is_enough(scale * (1 - 1e-9), of_person, budget)
            assert protection.per_unit(protection.per_row(budget)) == budget
            assert protection.sensitivity_of_row(of_person) == of_row


@pytest.mark.parametrize("rows", range(1, MAX_WEIGHED_ROWS + 1))
def test_every_person_has_the_same_weight_however_many_rows_are_kept(rows: int) -> None:
    """The parts of a person's rows are whole numbers, and all persons have as many: that is the size of the group."""
    persons = Persons("id", rows, "persons")
    for kept in range(1, rows + 1):
        assert kept * (persons.parts // kept) == persons.parts
    assert {Protection(relation, persons).group for relation in Neighbours} == {persons.parts}
    assert Protection(REPLACE, persons).of_rows is REPLACE
    assert Protection(ADD, persons).of_rows is ADD


def test_with_one_row_to_a_person_a_person_is_a_row() -> None:
    for relation in Neighbours:
        for persons in (None, Persons("id", 1), Persons("id", 1, "persons")):
            protection = Protection(relation, persons)
            assert (protection.group, protection.parts, protection.of_rows) == (1, 1, relation)
    first, second = (all_tables(case) for case in list(PERSONS)[:2])
    assert list(first.kept) == list(second.kept)


# ------------------------------------------------------------ weights as rows


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("weigh", ["rows", "persons"])
def test_tallies_of_kept_rows_are_those_of_as_many_rows_as_their_parts(k: int, weigh: Any) -> None:
    """A row of weight L/m counts as L/m equal rows do, for every tally: this is what the proof rests on."""
    rng = np.random.default_rng([k, weigh == "rows"])
    persons = Persons("id", k, weigh)
    who = rng.integers(0, 40, 200)
    a, b = rng.integers(0, 4, 200), rng.choice(["x", "y"], 200)
    kept = keep_rows(Held({"id": who.astype(object), "a": a.astype(object), "b": b.astype(object)}), TINY, persons)
    rows = kept.rows_of(TINY, "")
    joint = joint_counts(rows)
    assert joint.sum() == kept.count() == rows(RowCount())
    count = np.unique(who, return_counts=True)[1]
    assert kept.count() == (len(count) * persons.parts if persons.weigh_alike else np.minimum(count, k).sum())
    literal = in_memory([np.repeat(np.arange(8) // 2, joint).astype(float), np.repeat(np.arange(8) % 2, joint)])
    for name, mechanism in MECHANISMS.items():
        for relation in Neighbours:
            assert mechanism(rows, relation) == mechanism(literal, relation), name
