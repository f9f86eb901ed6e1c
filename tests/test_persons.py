"""Whole releases that protect persons: what one changes in all steps together, and what a certificate speaks of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Release, Schema, certify, release
from certsynth.algorithm.low_dimensional import adaptation
from certsynth.algorithm.task import Task
from certsynth.algorithm.verify import verify
from certsynth.certificate.passes import compare_tables
from certsynth.domain.persons import Persons
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.samplers import NoisyIntegers, is_sup_norm
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.tally import in_memory
from certsynth.record.form import to_json
from certsynth.sources import open_source
from certsynth.sources.persons import keep_rows
from small import NATIVE, FixedOutput, LyingNoise, SeededNoise, cube, failures_allowed, native, settled

Row = tuple[int, int | None, str]
NAMES = ("a", "b", "c")
PERSONS = {
    "k = 1": Persons("id", 1),
    "k = 3": Persons("id", 3),
    "k = 3, each person counts 1": Persons("id", 3, "persons"),
    "k = 2, missing apart": Persons("id", 2, "persons", "separate"),
}


def protecting(persons: Persons, schema: Schema = NATIVE) -> Schema:
    return replace(schema, persons=persons)


def events(persons: int, *, seed: int = 0) -> dict[Any, list[Row]]:
    """The rows of each person: one to seven of them, and the more the larger their values are."""
    rng = np.random.default_rng(seed)
    count = np.minimum(rng.geometric(0.45, persons), 7)
    found = {}
    for who, rows in enumerate(count.tolist()):
        drawn = native(rows, seed=seed + 1_000 * who + 1).with_columns(pl.min_horizontal(pl.col("a") + rows - 1, 6))
        found[f"person {who}"] = drawn.rows()
    return found


def frame_of(table: Mapping[Any, list[Row]], *, shuffled: int | None = None) -> pl.DataFrame:
    rows = [(*row, who) for who, own in table.items() for row in own]
    if shuffled is not None:
        np.random.default_rng(shuffled).shuffle(rows)
    types = {"a": pl.Int64, "b": pl.Int64, "c": pl.String, "id": pl.String}
    return pl.DataFrame(rows, schema=types, orient="row")


# ------------------------------------------------------------ P1, all steps together


class Recording(FixedOutput):
    """The same noisy integers whatever the rows are, so that neighbours are asked the same; and what was exact."""

    def __init__(self) -> None:
        super().__init__(4)
        self.steps: list[tuple[np.ndarray, Sensitivity, Budget, float]] = []

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        found = super().add(values, sensitivity=sensitivity, budget=budget)
        self.steps.append((np.array(values, dtype=object), sensitivity, budget, found.scale))
        return found


def privacy_loss(first: Recording, second: Recording) -> Fraction:
    """The privacy loss between two tables, over all steps: ‖change‖/scale in the norm of the noise, or
    ‖change‖²/2scale²."""
    total = Fraction(0)
    for (ours, change, budget, scale), (theirs, *same) in zip(first.steps, second.steps, strict=True):
        assert (change, budget, scale) == tuple(same)
        sizes, exact = [abs(x - y) for x, y in zip(ours, theirs, strict=True)], Fraction(scale)
        if budget.unit is Unit.RHO:
            total += sum(int(size) ** 2 for size in sizes) / (2 * exact**2)
        else:
            total += int(max(sizes) if is_sup_norm(change, budget.unit) else sum(sizes)) / exact
    return total


def lives(k: int) -> list[list[Row]]:
    """Rows of one person that change much: as many equal ones as are kept, a single one, and far more than are kept."""
    return [[(6, 4, "x")] * k, [(0, None, "y")] * k, [(6, None, "x")], [(a, a % 5, "y") for a in range(7)] * 3]


def neighbouring(table: dict[Any, list[Row]], relation: str, k: int) -> Iterator[dict[Any, list[Row]]]:
    rest = dict(itertools.islice(table.items(), 1, None))
    if relation == "add-remove":
        yield rest
        for life in lives(k):
            yield {**table, "somebody": life}
    else:
        for life in lives(k):
            yield {**rest, "somebody": life}


ASKED: dict[str, dict[str, Any]] = {
    "identity": {"mechanism": "identity", "resolution": 3, "measure_dropped": True},
    "wavelets": {"mechanism": "haar-weighted", "resolution": 3},
    "trees, all certificates": {"mechanism": "quad-tree", "resolution": 3, "sparsity": 3},
    "plug-in": {"mechanism": "haar", "resolution": 3, "certificate_share": 0},
    "adaptive": {"mechanism": "adaptive"},
    "low-dimensional": {"mechanism": "low-dimensional", "resolution": 2},
    "named": {"mechanism": "identity", "resolution": 2, "subsets": [["a", "c"], ["b"]]},
}


def cases() -> list[Any]:
    """Quick ones: each way of asking once, in turn with the units."""
    found = []
    units = list(itertools.product(PERSONS, Neighbours, Unit))
    for j, (asked, (persons, relation, unit)) in enumerate(itertools.product(ASKED, units)):
        if (asked, unit) != ("low-dimensional", Unit.RHO):
            quick = j % len(units) == 5 * (j // len(units)) % len(units)
            found.append(pytest.param(asked, persons, str(relation), unit, marks=() if quick else pytest.mark.slow))
    return found


@pytest.mark.parametrize(("asked", "case", "relation", "unit"), cases())
def test_no_person_changes_a_release_by_more_than_the_budget(asked, case, relation, unit) -> None:
    """The exact integers of all steps, for neighbours that give the same noisy ones: their losses add up to at most ε
    or ρ of the person, and to more than 3/4 of it for some pair if nothing is lost (each step's worst pair is another).
    """
    persons = PERSONS[case]
    table = {"first": [(6, 4, "x")] * persons.rows, **events(10)}
    schema, options = protecting(persons), ASKED[asked] | {unit.value: 2, "neighbours": relation, "rows": 12, "seed": 1}

    def asked_of(rows: dict[Any, list[Row]]) -> Recording:
        recording = Recording()
        release(frame_of(rows), schema, noise=recording, **options)
        return recording

    first = asked_of(table)
    losses = [privacy_loss(first, asked_of(other)) for other in neighbouring(table, relation, persons.rows)]
    assert max(losses) <= 2
    lossless = Protection(Neighbours(relation), persons).of_rows == relation
    assert max(losses) > (Fraction(3, 2) if lossless else Fraction(1, 2))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", PERSONS)
def test_no_person_changes_a_certificate_by_more_than_the_budget(case, relation) -> None:
    persons = PERSONS[case]
    table, losses = {"first": [(6, 4, "x")] * persons.rows, **events(10)}, []
    first = Recording()
    asked = {"epsilon": 1, "neighbours": relation, "sparsity": 2}
    certify(frame_of(table), native(9), protecting(persons), noise=first, **asked)
    for other in neighbouring(table, relation, persons.rows):
        second = Recording()
        found = certify(frame_of(other), native(9), protecting(persons), noise=second, **asked)
        losses.append(privacy_loss(first, second))
        assert (found.cost.spent, found.cost.neighbours) == (Budget(Fraction(1)), relation)
    assert Fraction(1, 4) < max(losses) <= 1


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", PERSONS)
def test_a_grid_is_chosen_with_the_whole_share_of_a_person(monkeypatch, case, relation) -> None:
    """A person changes at most k occupied cells: ε for one of them is a k-th of the person's share."""
    seen = []

    def choose(losses: list[int], *, sensitivities: list[int], epsilon: Fraction) -> int:
        seen.append(epsilon)
        return 0

    monkeypatch.setattr(adaptation, "choose_by_ratio", choose)
    schema, spent = protecting(PERSONS[case], cube(3)), []
    settings = settled(schema, mechanism="low-dimensional", neighbours=relation)
    kept = in_memory(list(np.random.default_rng(1).random((3, 200))))
    spending: Any = SimpleNamespace(take=spent.append)
    chosen = adaptation.choose_grid(kept, Task(schema, settings, 50_000 * PERSONS[case].parts), spending=spending)
    (step,) = chosen.spent
    share = settings.protection.per_unit(step.cost.spent).amount
    assert (spent, share) == ([step.cost.spent], 2 * settings.choice_share)
    assert seen == [share / PERSONS[case].rows]


def test_rows_without_a_person_are_left_out_or_persons_of_their_own() -> None:
    rows = {"one": [(1, 1, "x")] * 5, None: [(2, 2, "y")] * 3, "": [(3, 3, "y")]}
    for missing, persons, kept in (("drop", 1, 2), ("separate", 5, 6)):
        found = keep_rows(open_source(frame_of(rows)), NATIVE, Persons("id", 2, "rows", missing)).contributions()
        assert (found.over + found.within, found.kept) == (persons, kept)


# ------------------------------------------------------------ one row to a person


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("weigh", ["rows", "persons"])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}], ids=["epsilon", "rho"])
def test_one_row_to_a_person_gives_the_release_of_a_table_without_persons(weigh, relation, budget) -> None:
    """Under the same noise, to the last byte: rows, measurements and record, but for the words about persons."""
    frame = native(300)
    ids = frame.with_columns(pl.Series("id", np.random.default_rng(1).permutation(300)))
    asked = {**budget, "neighbours": relation, "seed": 3, "mechanism": "identity", "resolution": 4}
    plain = release(frame, NATIVE, noise=SeededNoise(5), **asked)
    named = release(
        ids.sample(fraction=1, shuffle=True, seed=2), protecting(Persons("id", 1, weigh)), noise=SeededNoise(5), **asked
    )
    for ours, theirs in zip(plain.rows, named.rows, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    for ours, theirs in zip(plain.measurements, named.measurements, strict=True):
        assert [c.tobytes() for c in ours.coefficients] == [c.tobytes() for c in theirs.coefficients]
        assert (ours.total, ours.scale, ours.cost) == (theirs.total, theirs.scale, theirs.cost)
    first, second = to_json(plain.record), to_json(named.record)
    assert second["table"].pop("persons")["column"] == "id"
    assert (
        second["privacy"].pop("persons", None)
        == first["privacy"]["rows"]
        == (300 if relation == "replace-one" else None)
    )
    first["privacy"].pop("rows")
    assert second["privacy"].pop("rows") is None
    assert first == second


# ------------------------------------------------------------ what the certificate speaks of


def kept_truth(frame: pl.DataFrame, schema: Schema, made: Release) -> float:
    """The exact loss against the kept rows with their weights, all of which lie on the lattice."""
    assert schema.persons is not None
    kept = keep_rows(open_source(frame), schema, schema.persons).rows_of(schema, "")
    found = compare_tables(
        LatticeQuery.of(schema, made.subsets), kept, [in_memory(made.rows)], memory=2**30, every=True
    )
    return max(float(each.lower) for each in found.found[0])


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", PERSONS)
def test_the_bound_holds_for_the_kept_rows_as_often_as_it_says(case, relation) -> None:
    """80 releases at confidence 0.95; noise thirty times as wide as stated fails the same test."""
    schema, frame, runs = protecting(PERSONS[case]), frame_of(events(250)), 80

    def failures(lying: bool) -> int:
        count = 0
        for run in range(runs):
            noise = LyingNoise(30, seed=run) if lying else SeededNoise(run)
            asked = {"mechanism": "identity", "resolution": 4, "rows": 200, "seed": run, "confidence": 0.95}
            made = release(frame, schema, epsilon=4, neighbours=relation, noise=noise, **asked)
            count += kept_truth(frame, schema, made) > made.record.certificate.bound
        return count

    assert failures(False) <= failures_allowed(runs, 0.05)
    assert failures(True) > failures_allowed(runs, 0.05)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", PERSONS)
def test_a_release_of_persons_is_verified_and_states_their_costs(tmp_path, case, relation) -> None:
    """All costs in the record, those of the direct certificate too, are for a person and add up to the whole."""
    schema = protecting(PERSONS[case])
    asked = {"mechanism": "identity", "resolution": 3, "rows": 20, "neighbours": relation}
    made = release(frame_of(events(60)), schema, epsilon=1, out=tmp_path / "out", **asked)
    privacy, certificate = made.record.privacy, made.record.certificate
    assert all(check["ok"] for check in verify(made)), [check for check in verify(made) if not check["ok"]]
    assert sum(Fraction(step.epsilon) for step in privacy.spent) == 1
    (own,) = [step.epsilon for step in privacy.spent if step.on == "errors of the rows"]
    assert Fraction(certificate.direct.epsilon) >= own > Fraction(certificate.direct.epsilon) - Fraction(1, 10**11)
    public = relation == "replace-one" and schema.persons.weigh_alike
    assert (privacy.rows, privacy.persons) == (None, 60 if public else None)


@pytest.mark.parametrize("case", PERSONS)
def test_the_order_of_rows_does_not_matter(case) -> None:
    schema = protecting(PERSONS[case])
    asked = {"epsilon": 1, "mechanism": "identity", "resolution": 3, "rows": 20, "seed": 2}
    first, second = (
        release(frame_of(events(40), shuffled=turn), schema, noise=SeededNoise(1), **asked) for turn in (1, 2)
    )
    assert to_json(first.record) == to_json(second.record)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first.rows, second.rows, strict=True))
