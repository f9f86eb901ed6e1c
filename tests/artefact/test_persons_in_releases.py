"""Persons in a release: what `verify` sees of forged ones, and what it says that it cannot see."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from forging import Json, restated

from certsynth import Release, Schema, release
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.record.form import to_json

SCHEMA = Schema.parse(
    "\n".join(f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 5\n' for name in "ab")
).with_persons(person="who", rows_per_person=3)
ASKED: dict[str, dict[str, Any]] = {
    "rows": {"epsilon": 20},
    "persons": {"epsilon": 20, "weigh": "persons"},
    "hidden": {"rho": 10, "neighbours": "add-remove", "measure_dropped": True},
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Release]:
    here, made = tmp_path_factory.mktemp("persons"), {}
    rng = np.random.default_rng(0)
    who = [f"P{i}" for i in range(60) for _ in range(1 + i % 6)]
    table = pl.DataFrame({"who": who} | {name: rng.integers(0, 6, len(who)) for name in "ab"})

    def of(kind: str) -> Release:
        if kind not in made:
            made[kind] = release(table, SCHEMA, out=here / kind, rows=100, resolution=3, **ASKED[kind])
        return made[kind]

    return of


def refused(made: Release, folder: Path, change: Callable[[Json], Any], schema: Schema | None = None) -> set[str]:
    """Checks that fail for a folder that was written anew with a changed certificate, and perhaps another schema."""
    document = made.document
    change(document)
    forged = dataclasses.replace(restated(made, document), folder=None, schema=schema or made.schema)
    return {check["name"] for check in forged.save(folder).verify() if not check["ok"]}


@pytest.mark.parametrize("kind", ASKED)
def test_a_release_that_nobody_changed_verifies(releases: Callable[[str], Release], tmp_path: Path, kind: str) -> None:
    assert refused(releases(kind), tmp_path / "copy", lambda document: None) == set()


CHANGES: dict[str, Any] = {
    "column": "whom",
    "rows_per_person": 2,
    "missing_person": "separate",
    "certified_rows": "all rows",
}


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("key", [*CHANGES, "weigh"])
def test_each_entry_about_persons_is_that_of_the_schema(
    releases: Callable[[str], Release], tmp_path: Path, kind: str, key: str
) -> None:
    made = releases(kind)

    def change(document: Json) -> None:
        persons = document["table"]["persons"]
        persons[key] = CHANGES.get(key, "rows" if kind == "persons" else "persons")

    assert "schema" in refused(made, tmp_path / "copy", change)


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("entries", [{"rows_per_person": 2}, {"rows_per_person": 4}, {"weigh": "other"}, {}])
def test_other_persons_in_both_the_schema_and_the_certificate_do_not_fit_the_noise(
    releases: Callable[[str], Release], tmp_path: Path, kind: str, entries: dict[str, Any]
) -> None:
    """Without entries, persons are left out of both."""
    made = releases(kind)
    if "weigh" in entries:
        entries = {"weigh": "rows" if kind == "persons" else "persons"}
    schema = made.schema.with_persons(**entries) if entries else dataclasses.replace(made.schema, persons=None)

    def change(document: Json) -> None:
        persons = schema.persons
        if persons is None:
            del document["table"]["persons"]
            document["asked"].pop("measure_dropped", None)
            document["certificate"].pop("dropped", None)
            document["privacy"]["rows"] = document["privacy"].pop("persons", None)
            if kind == "rows":
                document["privacy"]["rows"] = 180
        else:
            document["table"]["persons"] |= {
                "rows_per_person": persons.rows,
                "weigh": persons.weigh,
                "certified_rows": persons.kept,
            }

    failed = refused(made, tmp_path / "copy", change, schema)
    assert failed & {"privacy", "certificate form", "measurements"}, failed


def test_the_number_of_persons_is_that_of_the_measurements(releases: Callable[[str], Release], tmp_path: Path) -> None:
    def one_more(document: Json) -> None:
        document["privacy"]["persons"] += 1

    assert "privacy" in refused(releases("persons"), tmp_path / "more", one_more) | refused(
        releases("persons"), tmp_path / "none", lambda document: document["privacy"].pop("persons")
    )
    assert refused(releases("rows"), tmp_path / "some", lambda document: document["privacy"].update(persons=60))


def test_shares_of_dropped_rows_are_recomputed(releases: Callable[[str], Release], tmp_path: Path) -> None:
    made = releases("hidden")
    for i, path in enumerate([("counted_rows",), ("rows", "lower"), ("persons", "upper"), ("rows", "estimate")]):

        def change(document: Json, path: tuple[str, ...] = path) -> None:
            part = document["certificate"]["dropped"]
            for key in path[:-1]:
                part = part[key]
            value = part[path[-1]]
            part[path[-1]] = (value + 0.9) / 2 if isinstance(value, float) else value + 1

        assert "direct certificate" in refused(made, tmp_path / str(i), change), path


def test_nobody_can_see_how_many_rows_were_kept_and_verify_says_so(
    releases: Callable[[str], Release], tmp_path: Path
) -> None:
    """A release of at most three rows, told as one of at most two at two thirds of the budget, has the same noise."""
    made, schema = releases("rows"), releases("rows").schema.with_persons(rows_per_person=2)

    def change(document: Json) -> None:
        persons, third = document["table"]["persons"], Fraction(2, 3)
        persons |= {"rows_per_person": 2, "certified_rows": "the rows that were kept: at most 2 of each person"}
        document["asked"]["epsilon"] = str(Fraction(document["asked"]["epsilon"]) * third)
        document["privacy"]["epsilon"] = decimal_text(Fraction(20) * third)
        for step in document["privacy"]["spent"]:
            step["epsilon"] = str(Fraction(step["epsilon"]) * third)
            changes = step["sensitivity"]
            changes |= {"l1": changes["l1"] * 2 // 3, "l2_squared": changes["l2_squared"] * 4 // 9}
            if "each" in changes:
                changes["each"] = changes["each"] * 2 // 3
        for part in (document["certificate"]["direct"], document["certificate"]["single_column"]):
            spent = next(each for each in document["privacy"]["spent"] if each["on"] == "errors of the rows")
            part["epsilon"] = decimal_text(Fraction(spent["epsilon"]))

    assert refused(made, tmp_path / "copy", change, schema) == set()
    said = "that the column 'who' says whose row it is, and that at most 3 rows of each person were kept"
    assert said in made.cannot_verify()
    assert to_json(made.record)["table"]["persons"]["rows_per_person"] == 3
