"""Titles, units, names of labels and publishers: read from the schema, checked, and written back."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.naming import Naming, Publication
from certsynth.domain.naming_entries import MAX_NAME_CHARACTERS
from certsynth.errors import SchemaError

NAMED = """
[table]
publisher = "The office"
published = 2026-11-18

[[column]]
name = "COW"
kind = "category"
values = ["1", "2", "x.y"]
other = true
title = "class of worker"
labels = { "x.y" = "other sorts", "1" = "private \\"company\\"" }

[[column]]
name = "AGEP"
kind = "integer"
low = 17
high = 99
title = "age"
unit = "years"

[[column]]
name = "DIS"
kind = "boolean"
[column.labels]
true = "with"
"""


def test_names_come_back_from_their_file() -> None:
    schema = Schema.parse(NAMED)
    assert schema.publication == Publication("The office", datetime.date(2026, 11, 18))
    worker, age, disability = schema
    assert worker.naming == Naming(title="class of worker", labels=(("1", 'private "company"'), ("x.y", "other sorts")))
    assert (age.title, age.naming.unit) == ("age", "years")
    assert (disability.title, disability.naming.labels) == ("DIS", (("true", "with"),))
    assert Schema.parse(schema.to_toml()) == schema
    assert Schema.parse(schema.select(["AGEP"]).to_toml()) == schema.select(["AGEP"])


def test_names_change_no_value_and_no_distance() -> None:
    named = Schema.parse(NAMED)
    plain = Schema.parse("\n".join(line for line in NAMED.splitlines() if not line.startswith(("title", "labels"))))
    raw = np.array(["1", "x.y", "other sorts", "", 'private "company"'], dtype=object)
    for first, second in zip(named, plain, strict=True):
        assert (first.clean(raw) == second.clean(raw)).all()
        assert first.listed_texts == second.listed_texts
        assert str(first.detail()) == str(second.detail())


def test_a_column_is_unnamed_unless_the_schema_names_it() -> None:
    for column in (Ordered(name="age", kind="integer", low=0, high=9), Category(name="age", values=("1",))):
        assert (column.title, column.naming) == ("age", Naming())
        assert "title" not in Schema(columns=(column,)).to_toml()
        assert "publish" not in Schema(columns=(column,)).to_toml()


CATEGORY = '[[column]]\nname = "COW"\nkind = "category"\nvalues = ["1", "2"]\n'
LONG = "x" * (MAX_NAME_CHARACTERS + 1)

REFUSED = {
    "a label that is not listed": (f'{CATEGORY}labels = {{ "3" = "c" }}', "column 'COW'", "not among the values"),
    "a misspelt label": (f'{CATEGORY}labels = {{ "1 " = "c" }}', "column 'COW'", "mean '1'"),
    "two labels of one name": (f'{CATEGORY}labels = {{ "1" = "c", "2" = "c" }}', "'1' and '2'", "change one"),
    "the name of another label": (f'{CATEGORY}labels = {{ "1" = "2" }}', "'1' and '2'", "change one"),
    "a list of names": (f'{CATEGORY}labels = ["a", "b"]', "column 'COW'", 'like { "1" = "private company" }'),
    "a number for a name": (f'{CATEGORY}labels = {{ "1" = 1 }}', "the name of '1'", "must be a text"),
    "an empty title": (f'{CATEGORY}title = ""', "column 'COW': title", "must be a text"),
    "a long title": (f'{CATEGORY}title = "{LONG}"', "column 'COW': title", "shorten it"),
    "a title with a line break": (f'{CATEGORY}title = "a\\nb"', "column 'COW': title", "control character"),
    "the unit of a label": (f'{CATEGORY}unit = "years"', "column 'COW'", "has no entry 'unit'"),
    "labels of numbers": (
        '[[column]]\nname = "x"\nkind = "number"\nlow = 0\nhigh = 1\nlabels = { "0" = "zero" }',
        "column 'x'",
        "has no entry 'labels'",
    ),
    "a publisher without a name": (f"[table]\npublisher = 7\n{CATEGORY}", "[table] publisher", "must be a text"),
    "a date in quotes": (f'[table]\npublished = "2026-11-18"\n{CATEGORY}', "[table] published", "without quotes"),
    "a time for a date": (f"[table]\npublished = 2026-11-18T10:00:00\n{CATEGORY}", "[table] published", "a date"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    text, names, remedy = REFUSED[case]
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    message = str(caught.value)
    assert names in message
    assert remedy in message
    assert "\n" not in message
    assert len(message) < 500
