"""The direct certificate: its sensitivity by exhaustion, its truth by hundreds of runs, its distrust of solvers."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import certsynth.algorithm.certify as certification
import certsynth.transport.flow as flow
from certsynth import certify, evaluate
from certsynth.algorithm.settings import CELL_BETA, PLUG_IN_BETA
from certsynth.certificate.comparison import Distance, distances
from certsynth.certificate.direct import (
    COUNT_WEIGHT,
    LOSS_UNITS,
    Direct,
    bounds,
    direct_certificate,
    distances_to_empty,
    exact_query,
    joint_sensitivity,
    moved_weight,
)
from certsynth.domain import Schema
from certsynth.errors import InputError, SolverFailed
from certsynth.mechanisms import Budget, Guarantee, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.samplers import ExactNoise
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries.fine import LatticeQuery
from certsynth.sources import Unopened
from nets import stop_solvers_early
from small import (
    MIXED,
    NATIVE,
    SURE,
    TINY,
    WOVEN,
    FixedOutput,
    LyingNoise,
    NoNoise,
    SeededNoise,
    failures_allowed,
    native,
    people,
    workers,
)

MISSING = float("nan")  # one object, so that rows that hold it are equal

TINY_WOVEN = Schema.parse(
    """
[[column]]
name = "code"
kind = "tree"
values = ["a", "a/b", "c"]

[[column]]
name = "light"
kind = "integer"
low = 0
high = 2
missing = true
weight = 0.3

[[column]]
name = "place"
kind = "metric"
values = ["x", "y", "z"]
distances = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
weight = 0.75
"""
)


def _values(column):
    """All cleaned values of a column."""
    return [MISSING if value != value else value for value in column.on_lattice(column.lattice(1024)).tolist()]


def _sorted(rows):
    """A table as its rows in one order, whatever is missing."""
    return tuple(sorted(rows, key=lambda row: [(value != value, value) for value in row]))


def _query(fine, rows, synthetic, neighbours, *, per_subset=False, two_sided=True):
    ours = fine.count([[np.array(column) for column in zip(*rows, strict=True)]] if rows else [])
    found = distances(fine, ours, synthetic) if rows else distances_to_empty(fine, synthetic)
    return exact_query(fine, found, len(rows), neighbours=neighbours, per_subset=per_subset, two_sided=two_sided)


TABLES = {
    "one row": (TINY, [(0.0, 0)], 3),
    "three rows": (TINY, [(0.0, 0), (3.0, 1), (1.0, 1)], 3),
    "tree, light line and metric": (TINY_WOVEN, [(2, MISSING, 0)], 2),
}
"""Schemas, synthetic tables, and how many rows the private tables have at most."""


@functools.cache
def _all_distances(case, steps):
    """Of all private tables, on the first column and on all of them."""
    schema, synthetic, most = TABLES[case]
    fine = LatticeQuery.of(schema, [(0,), tuple(range(len(schema)))], steps=steps)
    theirs = fine.count([[np.array(column) for column in zip(*synthetic, strict=True)]])
    found = {(): distances_to_empty(fine, theirs)}
    for size in range(1, most + 1):
        for rows in itertools.combinations_with_replacement(itertools.product(*map(_values, schema)), size):
            ours = fine.count([[np.array(column) for column in zip(*rows, strict=True)]])
            found[_sorted(rows)] = distances(fine, ours, theirs)
    return found


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("per_subset", [False, True])
@pytest.mark.parametrize("steps", [2, 8])  # off the lattice, and on it
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("case", TABLES)
def test_no_pair_of_neighbours_moves_the_query_by_more_than_its_sensitivity(case, neighbours, steps, per_subset):
    schema, _, most = TABLES[case]
    subsets = [(0,), tuple(range(len(schema)))][not per_subset :]
    fine = LatticeQuery.of(schema, subsets, steps=steps)
    domain = list(itertools.product(*map(_values, schema)))
    largest, pairs = 0, 0
    tables = {size: {} for size in range(most + 1)}
    for rows, found in _all_distances(case, steps).items():
        asked = {"neighbours": neighbours, "per_subset": per_subset, "two_sided": True}
        tables[len(rows)][rows] = exact_query(fine, found[-len(subsets) :], len(rows), **asked)
    for size in range(1, most + 1):
        for rows, query in tables[size].items():
            for i in range(size):
                rest = rows[:i] + rows[i + 1 :]
                if neighbours is Neighbours.ADD_REMOVE:
                    others = [tables[size - 1][rest]]
                else:
                    others = [tables[size][_sorted((*rest, new))] for new in domain]
                for other in others:
                    changes = [abs(x - y) for x, y in zip(query.values, other.values, strict=True)]
                    losses = [abs(x - y) for x, y in zip(query.losses, other.losses, strict=True)]
                    assert sum(changes) <= query.sensitivity.l1
                    assert sum(change**2 for change in changes) <= query.sensitivity.l2_squared
                    assert all(change <= most for change, most in zip(changes, query.changes, strict=True))
                    largest, pairs = max(largest, *losses), pairs + 1
    assert pairs > 200
    assert largest >= LOSS_UNITS  # one row can move the loss by a whole row: the sensitivity is not padded


def test_the_stated_sensitivity_counts_every_coordinate():
    fine = LatticeQuery.of(TINY, [(0,), (0, 1)], steps=2)  # half a step of 1/2: rows move by up to 1/4
    theirs = fine.count([[np.array([0.0]), np.array([0])]])
    query = _query(fine, [(1.0, 0)], theirs, Neighbours.REPLACE_ONE, per_subset=True)
    assert moved_weight(fine) == 1
    loss, moved = LOSS_UNITS + LOSS_UNITS // 4, LOSS_UNITS // 4
    assert query.sensitivity == Sensitivity(2 * loss + moved, 2 * loss**2 + moved**2, each=loss)
    upper = _query(fine, [(1.0, 0)], theirs, Neighbours.REPLACE_ONE, per_subset=True, two_sided=False)
    assert upper.sensitivity == Sensitivity(2 * loss, 2 * loss**2, each=loss)
    assert upper.values == query.losses


QUICK = [(NATIVE, Neighbours.REPLACE_ONE, "epsilon"), (NATIVE, Neighbours.ADD_REMOVE, "rho")]
QUICK += [(WOVEN, Neighbours.ADD_REMOVE, "epsilon")]
COVERED = [
    pytest.param(schema, table, relation, budget, marks=[pytest.mark.slow] * ((schema, relation, *budget) not in QUICK))
    for schema, table in ((NATIVE, native), (WOVEN, workers))
    for relation in Neighbours
    for budget in ({"epsilon": 1}, {"rho": "0.5"})
]


@pytest.mark.parametrize(("schema", "table", "neighbours", "budget"), COVERED)
def test_both_bounds_hold_as_often_as_they_say(monkeypatch, schema, table, neighbours, budget):
    """All bounds together, for 200 draws of noise at confidence 0.8; noise forty times as wide must fail the same test.

    The tables are compared once.
    """
    private, synthetic = table(80), table(60, seed=5)
    true = evaluate(private, synthetic, schema)
    assert true.upper == pytest.approx(true.lower)  # the lattice is native: the truth is known

    asked = budget | {"neighbours": neighbours, "confidence": 0.8, "lattice": 8}
    given: list[functools.partial[Direct]] = []

    def certified(*arguments: Any, **options: Any) -> Direct:
        given.append(functools.partial(direct_certificate, *arguments, **options))
        return given[0]()

    monkeypatch.setattr(certification, "direct_certificate", certified)
    exact = certify(private, synthetic, schema, noise=NoNoise(), **asked).direct
    allowed = failures_allowed(200, 0.2)

    def holds(direct: Direct) -> bool:
        pairs = [(direct.whole, exact.whole), (direct.single, exact.single)]
        pairs += [(direct.statistics[name], figure) for name, figure in exact.statistics.items()]
        return direct.lower <= true.upper + 1e-9 and all(
            found.lower - 1e-9 <= known.estimate <= found.bound + 1e-9 for found, known in pairs
        )

    def failures(noise=None) -> int:
        """Of 200 runs; what comes after too many is not tried."""
        count = 0
        for _ in range(200):
            count += not holds(given[0](noise=noise))
            if count > allowed:
                break
        return count

    assert failures() <= allowed
    assert failures(LyingNoise(40)) > allowed


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("runs", [2_000, pytest.param(50_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_some_bound_of_a_release_is_too_low_no_more_often_than_it_says(neighbours, unit, runs):
    """The noise alone, many times; where the number of rows is known the slack is no larger than it must be in ε."""
    rows, beta = 600, Fraction(1, 20) * (1 - CELL_BETA - PLUG_IN_BETA)
    fine = LatticeQuery.of(WOVEN, [(0, 1)])
    hidden = neighbours is Neighbours.ADD_REMOVE
    count = int(LOSS_UNITS * COUNT_WEIGHT)
    exact = np.array([LOSS_UNITS * rows * 3 // 10] * 4 + [count * rows] * hidden)
    change = joint_sensitivity([LOSS_UNITS] * 4 + [count] * hidden)
    budget = Budget(Fraction(1, 10), unit)
    failures = 0
    noise = ExactNoise()
    for _ in range(runs):
        noised = noise.add(exact, sensitivity=change, budget=budget)
        noisy = NoisyScalars(
            tuple(noised.values.tolist()), noised.scale, Guarantee(budget, neighbours), sensitivity=change
        )
        made = bounds(
            fine,
            None,
            noisy,
            rows=rows,
            beta=beta,
            losses=1,
            stretch=Fraction(1),
            two_sided=False,
            single=True,
            statistics=("share_of_one_column", "moment"),
        )
        failures += min(made.bound, made.single.bound, *(each.bound for each in made.statistics.values())) < 0.3
    assert failures <= failures_allowed(runs, float(beta))
    if unit is Unit.EPSILON and not hidden:
        assert runs - failures <= failures_allowed(runs, float(1 - beta))


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("narrower", [1, 8])
def test_a_number_of_rows_from_before_serves_as_well(unit, narrower):
    """With noise as stated the bound is too low no more often than it says; control: with less slack than noise."""
    rows, runs, beta = 600, 4_000, Fraction(1, 5)
    fine, loss = LatticeQuery.of(WOVEN, [(0, 1)]), LOSS_UNITS * 600 * 3 // 10
    budgets = Budget(Fraction(1, 10), unit), Budget(Fraction(1, 200), unit)
    changes = Sensitivity(LOSS_UNITS, LOSS_UNITS**2), Sensitivity(1, 1)
    losses, counts = (
        ExactNoise().add(np.repeat(value, runs), sensitivity=change, budget=budget)
        for value, change, budget in zip((loss, rows), changes, budgets, strict=True)
    )
    failures = 0
    for noisy_loss, noisy_count in zip(losses.values.tolist(), counts.values.tolist(), strict=True):
        guarantees = [Guarantee(budget, Neighbours.ADD_REMOVE) for budget in budgets]
        noisy = NoisyScalars((noisy_loss,), losses.scale / narrower, guarantees[0])
        counted = NoisyScalars((noisy_count,), counts.scale / narrower, guarantees[1])
        made = bounds(
            fine, None, noisy, rows=0, beta=beta, losses=1, stretch=Fraction(1), two_sided=False, counted=counted
        )
        failures += made.bound < 0.3
    assert (failures <= failures_allowed(runs, float(beta))) == (narrower == 1)


def test_a_number_of_rows_from_before_is_not_asked_for_again():
    query = functools.partial(exact_query, LatticeQuery.of(WOVEN, [(0, 1)]), [Distance(*[Fraction(0)] * 5)], 100)
    alone, known, again = (
        query(neighbours=neighbours, two_sided=False, counted=counted)
        for neighbours, counted in (
            (Neighbours.REPLACE_ONE, False),
            (Neighbours.ADD_REMOVE, True),
            (Neighbours.ADD_REMOVE, False),
        )
    )
    assert len(alone.values) == len(known.values) == 1
    assert alone.sensitivity == known.sensitivity
    assert len(again.values) == 2
    assert again.sensitivity.l1 == known.sensitivity.l1 * (1 + COUNT_WEIGHT)


def test_the_query_without_noise_is_the_true_loss():
    private, synthetic = people(400), people(300, seed=7)
    true = evaluate(private, synthetic, MIXED)
    made = certify(private, synthetic, MIXED, epsilon=1, noise=NoNoise())
    assert made.direct.whole.estimate == pytest.approx(true.upper, abs=2e-5)
    assert made.bound > true.upper
    assert made.lower < true.lower


def test_each_subset_gets_its_own_bound():
    private, synthetic = native(400), native(300, seed=3)
    true = evaluate(private, synthetic, NATIVE)
    made = certify(private, synthetic, NATIVE, epsilon=20, per_subset=True, confidence=SURE)
    assert [s["columns"] for s in made.to_json()["subsets"]] == [list(s.columns) for s in true.subsets]
    for mine, truth in zip(made.to_json()["subsets"], true.subsets, strict=True):
        assert mine["lower"] <= truth.upper
        assert mine["bound"] >= truth.lower
    assert len({s["bound"] for s in made.to_json()["subsets"]}) == 3


def test_brackets_tables_that_are_broken_in_different_ways():
    private, schema = people(2000), MIXED.select(["age", "education", "employed", "since"])
    rng = np.random.default_rng(1)
    broken = {
        "shuffled": private.select(pl.all().shuffle(seed=3)).with_columns(
            *(pl.Series(name, rng.permutation(private[name].to_numpy())) for name in ("age", "education"))
        ),
        "one column corrupted": private.with_columns(pl.lit(20).alias("age")),
        "rows duplicated": pl.concat([private, private.head(1000)]),
        "a hundred rows": private.head(100),
        "its copy": private.clone(),
    }
    true = {name: evaluate(private, synthetic, schema) for name, synthetic in broken.items()}
    for name, neighbours in itertools.product(broken, Neighbours):
        made = certify(private, broken[name], schema, epsilon=5, confidence=SURE, neighbours=neighbours)
        assert made.lower <= true[name].upper, (name, neighbours)
        assert made.bound >= true[name].lower, (name, neighbours)
        assert made.bound - true[name].upper < 0.02, (name, neighbours)
    assert true["one column corrupted"].lower > 0.3


def test_a_single_column_is_never_bounded_worse_than_a_pair_that_holds_it():
    """Its own noise may say more: then the bound of the pairs serves."""
    for seed in range(20):
        made = certify(native(30), native(20, seed=2), NATIVE, epsilon=2, noise=SeededNoise(seed))
        assert made.single_column_bound == min(made.direct.single.bound, made.bound)


def test_a_solver_that_stops_early_is_caught_before_the_noise(monkeypatch):
    stop_solvers_early(monkeypatch)
    with pytest.raises(SolverFailed, match="budget of the certificate counts as spent"):
        certify(native(30), native(20, seed=2), NATIVE, epsilon=1)


def test_a_second_solver_steps_in(monkeypatch):
    want = certify(native(30), native(20, seed=2), NATIVE, epsilon=1, noise=NoNoise())
    for name in ("solve_priced", "solve_until", "solve"):
        monkeypatch.setattr(flow, name, lambda network, supply, **_: 1 / 0)
    again = certify(native(30), native(20, seed=2), NATIVE, epsilon=1, noise=NoNoise())
    assert again.bound == want.bound


def test_nodes_and_arcs_do_not_depend_on_private_rows():
    fine = LatticeQuery.of(MIXED, [(0, 2)])
    few, many = (fine.count([[c.clean(people(n)[c.name].to_numpy()) for c in MIXED]]) for n in (1, 500))
    assert [len(b) for b in few.counts] == [len(b) for b in many.counts]


@pytest.mark.parametrize(("rows", "neighbours"), [(1, "replace-one"), (1, "add-remove"), (0, "add-remove")])
def test_hardly_any_private_rows_give_a_true_and_useless_bound(rows, neighbours):
    made = certify(native(rows), native(5), NATIVE, epsilon="0.01", neighbours=neighbours, noise=NoNoise())
    assert made.bound == 1.0


@pytest.mark.parametrize("asked", [{}, {"exceptions": 1}, {"per_subset": True}], ids=str)
def test_refuses_a_private_table_without_rows_where_their_number_is_public(asked, tmp_path):
    with pytest.raises(InputError, match=r"nothing to certify\.\nNothing was spent\.$"):
        certify(native(0), native(5), NATIVE, epsilon=1, ledger=tmp_path / "ledger", cap=1, **asked)
    assert not (tmp_path / "ledger").exists()


def test_refuses_to_certify_the_private_table_itself(tmp_path):
    """Before anything is read or spent; a copy of it cannot be seen without looking at rows."""
    frame, path, link = native(5), tmp_path / "t.parquet", tmp_path / "other.parquet"
    frame.write_parquet(path)
    link.symlink_to(path)
    for ours, theirs in ((frame, frame), (path, str(path)), (path, link), (Unopened("SELECT 1"), Unopened("SELECT 1"))):
        with pytest.raises(
            InputError, match=r"the private data and the synthetic table are the same: .* nothing was spent"
        ):
            certify(ours, theirs, NATIVE, epsilon=1, ledger=tmp_path / "ledger", cap=1)
    assert not (tmp_path / "ledger").exists()
    certify(frame, path, NATIVE, epsilon=1)


def test_refuses_a_synthetic_table_without_rows():
    with pytest.raises(InputError, match="synthetic table has no rows"):
        certify(native(5), native(0), NATIVE, epsilon=1)


def test_the_budget_is_the_sum_of_what_the_mechanisms_returned():
    made = certify(native(30), native(20), NATIVE, epsilon="0.7")
    assert made.cost.spent == Budget(Fraction(7, 10))
    gaussian = certify(native(30), native(20), NATIVE, rho="0.7")
    assert gaussian.cost.spent == Budget(Fraction(7, 10), Unit.RHO)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_nothing_but_the_noisy_integers_decides_what_is_printed(neighbours):
    """Private tables that share nothing but their length, coupled noise: the same answer, the same progress."""
    seen = []
    for private in (native(40), native(40, seed=8)):
        told = []
        made = certify(
            private,
            native(20, seed=2),
            NATIVE,
            epsilon=1,
            neighbours=neighbours,
            noise=FixedOutput(),
            progress=lambda *event, told=told: told.append(event),
        )
        seen.append((made.to_json(), told))
    assert seen[0] == seen[1]
