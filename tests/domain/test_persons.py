"""Persons with several rows: the entries of a schema, and options that set or replace them."""

from __future__ import annotations

import pytest

from certsynth import Schema
from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from small import VISITS


def schema(entries: str = "") -> Schema:
    return Schema.parse(f"[table]\n{entries}\n{VISITS}")


NAMED = 'person = "patient"\nrows_per_person = 4'


def test_entries_of_a_schema_are_read_and_written_back() -> None:
    made = schema(f'{NAMED}\nweigh = "persons"\nmissing_person = "separate"')
    assert made.persons == Persons("patient", 4, "persons", "separate")
    assert Schema.parse(made.to_toml()) == made
    assert schema().persons is None


def test_a_schema_with_persons_is_not_said_to_have_one_row_for_each() -> None:
    assert schema().unit == schema('person = "patient"\nrows_per_person = 1').unit == "one row is one person"
    assert schema(NAMED).unit == "one row is one record of a person"
    assert schema().with_persons(person="patient", rows_per_person=4).unit == "one row is one record of a person"
    assert schema('unit = "one row is one visit"').with_persons(person="p", rows_per_person=4).unit.endswith("visit")


def test_options_set_all_entries() -> None:
    made = schema().with_persons(person="patient", rows_per_person=4, weigh="persons", missing_person="separate")
    assert made == schema(f'{NAMED}\nweigh = "persons"\nmissing_person = "separate"')


def test_options_replace_single_entries_and_keep_the_others() -> None:
    declared = schema(f'{NAMED}\nmissing_person = "separate"')
    assert declared.with_persons() is declared
    assert declared.with_persons(rows_per_person=4) is declared
    assert declared.with_persons(rows_per_person=2).persons == Persons("patient", 2, "rows", "separate")
    assert declared.with_persons(person="family").persons == Persons("family", 4, "rows", "separate")
    assert declared.with_persons(weigh="persons").persons == Persons("patient", 4, "persons", "separate")
    weighed = declared.with_persons(weigh="persons").with_persons(weigh="rows", missing_person="drop")
    assert weighed.persons == Persons("patient", 4)


BAD_ENTRIES = {
    "rows_per_person = 3": "[table] has rows_per_person but no person: name the column that says whose row it is.",
    'person = "patient"': "[table] has person but no rows_per_person: say how many rows of each person are kept",
    'person = "patient"\nrows_per_person = 0': "[table] rows_per_person must be a whole number from 1 to 1,000",
    'person = "patient"\nrows_per_person = 1001': "[table] rows_per_person must be a whole number from 1 to 1,000",
    'person = "patient"\nrows_per_person = true': "[table] rows_per_person must be a whole number from 1 to 1,000",
    'person = "patient"\nrows_per_person = 2.5': "[table] rows_per_person must be a whole number from 1 to 1,000",
    'person = "patient"\nrows_per_person = 13\nweigh = "persons"': "[table] rows_per_person can be at most 12 if",
    'person = "patient"\nrows_per_person = 3\nweigh = "person"': "[table] weigh must be 'rows'",
    'person = "patient"\nrows_per_person = 3\nmissing_person = "keep"': "[table] missing_person must be 'drop'",
    "person = 3\nrows_per_person = 3": "[table] person must be a text",
    'person = ""\nrows_per_person = 3': "[table] person must be a text",
    'person = "age"\nrows_per_person = 3': "column 'age' names persons and is never released: remove its [[column]].",
    'person = "AGE"\nrows_per_person = 3': "column 'AGE' names persons and is never released: remove its [[column]].",
}


@pytest.mark.parametrize("entries", BAD_ENTRIES)
def test_a_bad_entry_is_one_line_without_backquotes(entries: str) -> None:
    with pytest.raises(InputError) as refused:
        schema(entries)
    assert BAD_ENTRIES[entries] in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "`" not in str(refused.value)


BAD_OPTIONS: list[tuple[dict[str, object], str]] = [
    ({"rows_per_person": 3}, "`rows_per_person` is about persons, and the schema names none: give `person`"),
    ({"weigh": "persons"}, "`weigh` is about persons, and the schema names none: give `person`"),
    ({"missing_person": "drop"}, "`missing_person` is about persons, and the schema names none"),
    ({"person": "patient"}, "`person` needs `rows_per_person` as well"),
    ({"person": "patient", "rows_per_person": 0}, "`rows_per_person` must be a whole number from 1 to 1,000"),
    ({"person": "patient", "rows_per_person": 1_001}, "`rows_per_person` must be a whole number from 1 to 1,000"),
    ({"person": "patient", "rows_per_person": 13, "weigh": "persons"}, "`rows_per_person` can be at most 12"),
    ({"person": "ward", "rows_per_person": 2}, "column 'ward' names persons and is never released"),
    ({"person": "", "rows_per_person": 2}, "`person` must be a text."),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_a_bad_option_is_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as refused:
        schema().with_persons(**options)  # type: ignore[arg-type]
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_column_of_persons_cannot_be_selected() -> None:
    with pytest.raises(InputError, match=r"'patient' names persons.* Leave it out of the list"):
        schema(NAMED).select(["age", "patient"])


def test_a_part_of_the_columns_has_the_same_persons() -> None:
    assert schema(NAMED).select(["ward"]).persons == Persons("patient", 4)
