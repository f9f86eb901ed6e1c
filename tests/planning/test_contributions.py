"""What rows of a person cost: predictions for other numbers of rows per person agree with whole plans for these."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from certsynth import plan
from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.planning import choice as choosing
from certsynth.planning.cache import CACHE_VARIABLE
from certsynth.planning.contributions import COMPARED_ROWS_PER_PERSON, Table
from certsynth.planning.plan import Plan

PAIR = Schema((Ordered("a", low=0, high=40), Category("b", values=("x", "y"), missing=True)))
PLUG_IN = {"certificate_share": 0}
ASKED: dict[str, Any] = {"epsilon": 1, "mechanism": "identity", "resolution": 8}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "RESOLUTIONS", (4, 8, 16))
    monkeypatch.setenv(CACHE_VARIABLE, "off")


def planned(rows_per_person: int, weigh: Any = "rows", **asked: Any) -> Plan:
    schema = replace(PAIR, persons=Persons("id", rows_per_person, weigh))
    return plan(schema, **({"rows": 50_000, "persons": 10_000} | ASKED | asked))


CASES: dict[str, dict[str, Any]] = {
    "replace-one": {},
    "add-remove": {"neighbours": "add-remove"},
    "rho": {"epsilon": None, "rho": "0.05"},
    "plug-in": PLUG_IN,
    "adaptive": {"mechanism": "adaptive", "resolution": None},
    "low-dimensional": {"mechanism": "low-dimensional", "resolution": None},
}


SLOW = ("add-remove", "rho")


@pytest.mark.quick_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.slow) if c in SLOW else c for c in CASES])
def test_scaled_bounds_agree_with_whole_plans(case: str) -> None:
    asked = CASES[case]
    found = {(c.rows_per_person, c.weigh): c for c in planned(3, **asked).contributions}
    assert {k for k, _ in found} == {*COMPARED_ROWS_PER_PERSON, 3}
    for k, weigh in [(1, "rows"), (12, "rows"), (12, "persons")]:
        whole = planned(k, weigh, **asked)
        assert found[k, weigh].predicted_bound == pytest.approx(whole.choice.predicted_bound, rel=0.25)
        assert found[k, weigh].kept_rows == min(50_000, k * 10_000)
        assert whole.rows == (10_000 if weigh == "persons" else min(50_000, k * 10_000))
        own = [c for c in whole.contributions if (c.rows_per_person, c.weigh) == (k, weigh)]
        assert own[0].predicted_bound == whole.choice.predicted_bound
    rows = [found[k, "rows"].predicted_bound for k in (1, 4, 12)]
    persons = {found[k, "persons"].predicted_bound for k in COMPARED_ROWS_PER_PERSON}
    assert rows[0] < rows[2]
    assert persons == {rows[0]}, "a person who counts 1 needs the noise of one row"


def test_one_row_of_each_person_is_planned_like_a_table_of_rows() -> None:
    for weigh in ("rows", "persons"):
        found, plain = planned(1, weigh), plan(PAIR, rows=10_000, **ASKED)
        assert replace(found, persons=None, contributions=()) == plain


def test_more_rows_than_can_weigh_alike_have_one_bound() -> None:
    found = planned(20, **PLUG_IN)
    assert [c.weigh for c in found.contributions if c.rows_per_person == 20] == ["rows"]
    assert Plan.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_without_a_number_of_persons_each_has_the_most_rows() -> None:
    found = planned(4, persons=None, **PLUG_IN)
    assert (found.rows, found.contributions) == (50_000, ())
    assert planned(4, "persons", persons=None, **PLUG_IN).rows == 12_500


def test_kept_rows_are_counted_in_parts_if_persons_weigh_alike() -> None:
    table = Table(rows=100, persons=30)
    assert [table.weight(Persons("id", k)) for k in (1, 2, 4)] == [30, 60, 100]
    assert table.weight(Persons("id", 4, "persons")) == 30 * 12


def test_a_number_of_persons_needs_persons_and_rows_of_each() -> None:
    with pytest.raises(InputError, match=r"write \[table\] person in the schema"):
        plan(PAIR, rows=10, persons=5, **ASKED)
    with pytest.raises(InputError, match="every person has a row at least"):
        planned(2, rows=10, persons=11)


def test_the_number_of_rows_is_private_unless_persons_weigh_alike() -> None:
    hidden = {
        (k, weigh): planned(k, weigh, persons=None, **PLUG_IN).hides_its_rows
        for k in (1, 2)
        for weigh in ("rows", "persons")
    }
    assert hidden == {(1, "rows"): False, (1, "persons"): False, (2, "rows"): True, (2, "persons"): False}
    assert planned(2, "persons", persons=None, neighbours="add-remove", **PLUG_IN).hides_its_rows
