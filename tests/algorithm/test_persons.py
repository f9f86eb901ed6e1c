"""Options that name persons, in every function that takes them, and what results say of the rows that were kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import CertifiedSynthesizer, Release, Schema, certify, check, evaluate, plan, release
from certsynth.algorithm.sample import sample
from certsynth.errors import InputError
from small import VISITS

SCHEMA = Schema.parse(f'[table]\nname = "visits"\n{VISITS}')
NAMED = SCHEMA.with_persons(person="patient", rows_per_person=3)
KEPT = "the rows that were kept: at most 3 of each person"

RNG = np.random.default_rng(3)
VISITS = pl.DataFrame(
    {
        "patient": [f"P{i}" for i in range(40) for _ in range(1 + i % 6)][:120],
        "age": RNG.integers(0, 10, 120),
        "ward": RNG.choice(["north", "south"], 120),
    }
)
OTHER = pl.DataFrame({"age": [1, 2, 9], "ward": ["north", "south", "south"]})

Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    "release": lambda schema, **options: release(VISITS, schema, epsilon=1, **options),
    "fit": lambda schema, **options: CertifiedSynthesizer(schema, epsilon=1, **options).fit(VISITS),
    "plan": lambda schema, **options: plan(schema, rows=100, epsilon=1, **options),
    "certify": lambda schema, **options: certify(VISITS, OTHER, schema, epsilon=1, **options),
    "evaluate": lambda schema, **options: evaluate(VISITS, OTHER, schema, **options),
    "check": lambda schema, **options: check(VISITS, schema, **options),
}
WITH_COLUMNS = [name for name in CALLS if name != "check"]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows_per_person": 3}, "`rows_per_person` is about persons, and the schema names none"),
        ({"person": "patient"}, "`person` needs `rows_per_person` as well"),
        ({"person": "patient", "rows_per_person": 0}, "`rows_per_person` must be a whole number from 1 to 1,000"),
        ({"person": "patient", "rows_per_person": True}, "`rows_per_person` must be a whole number from 1 to 1,000"),
        ({"person": "patient", "rows_per_person": 13, "weigh": "persons"}, "can be at most 12"),
        ({"person": "patient", "rows_per_person": 3, "weigh": "all"}, "`weigh` must be rows or persons"),
        ({"person": "patient", "rows_per_person": 3, "missing_person": 1}, "`missing_person` must be drop or separate"),
        ({"person": "ward", "rows_per_person": 3}, "column 'ward' names persons and is never released"),
    ],
)
def test_every_function_refuses_the_same_mistakes(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        CALLS[name](SCHEMA, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_the_column_that_names_persons_is_neither_chosen_nor_in_a_workload(name: str) -> None:
    persons = {"person": "patient", "rows_per_person": 3}
    with pytest.raises(InputError, match="'patient' names persons and is never released: leave it out of `columns`"):
        CALLS[name](SCHEMA, columns=["age", "patient"], **persons)
    with pytest.raises(InputError, match=r"'patient' names persons.* Leave it out of the list"):
        CALLS[name](NAMED, columns=["age", "patient"])
    with pytest.raises(InputError, match=r"'patient' names persons.* Leave it out of the list"):
        CALLS[name](NAMED, subsets=[["age", "patient"]])


@pytest.mark.parametrize("restriction", [{"columns": ["age"]}, {"subsets": [["age"]]}])
def test_a_column_of_the_schema_can_name_persons_if_it_is_left_out(restriction: dict[str, Any]) -> None:
    found = evaluate(VISITS, OTHER, SCHEMA, person="ward", rows_per_person=1, **restriction)
    assert found.persons is not None
    assert found.persons.column == "ward"


@pytest.fixture(scope="module")
def made() -> Release:
    return (
        CertifiedSynthesizer(SCHEMA, epsilon=20, person="patient", rows_per_person=3, resolution=4).fit(VISITS).release_
    )


def test_the_estimator_protects_persons(made: Release) -> None:
    assert made.schema == NAMED
    assert made.record.table.persons is not None
    assert made.record.privacy.rows is None


def test_a_release_and_a_sample_say_which_rows_they_are_about(made: Release) -> None:
    assert repr(made).endswith(f", about {KEPT})")
    assert f"The certificate is about {KEPT}." in made._repr_html_()
    assert "one person protected." in made._repr_html_()
    more = sample(made, 50, seed=1, frame="dict")
    assert more.about == KEPT
    assert f"; the bounds are about {KEPT})" in repr(more)
    assert f"The bounds are about {KEPT}." in more._repr_html_()


def test_an_answer_says_which_rows_it_is_about(made: Release) -> None:
    for query in ("mean(age)", "table(ward)", "mean(age) by ward", "mean(age | ward = 'north') - mean(age)"):
        found = made.answer(query)
        assert found.about == KEPT
        assert found.to_json()["about"] == KEPT
        assert f"of {KEPT}" in str(found)
    assert made.answer(lambda age: age, columns=["age"], slopes={"age": 1.0}, bounds=(0.0, 9.0)).about == KEPT
