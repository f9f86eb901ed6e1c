"""How well a schema fits a table: exact counts from every source, causes and remedies, and no text of the rows unless
asked for."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import certsynth
from certsynth import Schema, check, demo
from certsynth.cli import main
from certsynth.errors import InputError
from certsynth.sources.check import ColumnCheck, TableCheck
from certsynth.sources.reading import objects

DATA = Path(os.environ.get("CERTSYNTH_DATA", Path(__file__).parents[2] / "../shared/data"))
ADULT = DATA / "adult.parquet"

SCHEMA = Schema.parse(
    """
[table]
unit = "one row is one visit"

[[column]]
name = "job"
kind = "category"
values = ["Private", "State-gov", "Never-worked"]

[[column]]
name = "age"
kind = "integer"
low = 0
high = 120

[[column]]
name = "paid"
kind = "number"
low = 0
high = 10000

[[column]]
name = "day"
kind = "date"
low = 2020-01-01
high = 2020-12-31
"""
)
MESSY = {
    "job": [" Private", " State-gov", " Private", " Private"],
    "age": ["17", "N", "130", ""],
    "paid": ["€1.250,50", "€7,25", "€ 12", "€3"],
    "day": ["25/03/2020", "01/04/2020", "13/12/2020", "02/02/2020"],
}


def of(found: TableCheck, name: str) -> ColumnCheck:
    return next(column for column in found.columns if column.name == name)


def amended(schema: Schema, found: TableCheck) -> Schema:
    """The schema with the proposed lines in place of those with the same key."""
    text = schema.to_toml()
    head, *tables = text.split("[[column]]\n")
    parts = []
    for table, column in zip(tables, found.columns, strict=True):
        keys = {line.split(" = ")[0] for line in column.lines}
        kept = [line for line in table.split("\n") if line.split(" = ")[0] not in keys]
        parts.append("\n".join([kept[0], *column.lines, *kept[1:]]))
    return Schema.parse("[[column]]\n".join([head, *parts]))


def test_counts_names_the_cause_and_proposes_lines() -> None:
    found = check(pd.DataFrame(MESSY), SCHEMA)
    assert not found.fits
    job, age, paid, day = found.columns
    assert (job.unlisted, job.replaced, job.causes) == (4, 4, ("blanks around the labels",))
    assert job.lines == ("strip = true",)
    assert (age.above, age.unreadable, age.missing, age.replaced, age.clipped) == (1, 1, 1, 2, 1)
    assert age.lines == ("missing = true", 'missing_codes = ["N"]')
    assert "values outside low … high" in age.causes[-1]
    assert (paid.unreadable, paid.lines) == (4, ('decimal = ","', 'thousands = "."', 'symbol = "€"'))
    assert (day.unreadable, day.lines) == (4, ('format = "%d/%m/%Y"',))
    assert (job.share(job.unlisted), age.share(age.missing)) == (1.0, 0.25)


def test_fits_with_the_proposed_lines() -> None:
    table = {**MESSY, "age": ["17", "N", "-9", ""]}
    found = check(pd.DataFrame(table), SCHEMA)
    cured = amended(SCHEMA, found)
    assert check(pd.DataFrame(table), cured).fits
    assert [column.causes for column in check(pd.DataFrame(table), cured).columns] == [()] * 4


def in_every_form(table: dict[str, Sequence[str]], folder: Path) -> Iterator[Any]:
    demo.write_csv(table, folder / "t.csv")
    yield folder / "t.csv"
    frame = pl.DataFrame(table)
    frame.write_parquet(folder / "t.parquet")
    yield folder / "t.parquet"
    yield pd.DataFrame(table)
    yield frame
    yield frame.lazy()
    yield duckdb.read_parquet(str(folder / "t.parquet"))


def test_is_the_same_from_every_source(tmp_path: Path) -> None:
    wanted, *others = [check(form, SCHEMA) for form in in_every_form(MESSY, tmp_path)]
    assert others == [wanted] * len(others)


def test_typed_columns_are_checked_as_they_are_read(tmp_path: Path) -> None:
    schema = Schema.parse(
        SCHEMA.to_toml().replace('kind = "date"', 'kind = "date"\nformat = "%d/%m/%Y"').replace("missing = false", "")
    )
    table = pl.DataFrame(
        {
            "job": ["Private", "State-gov", "Never-worked"],
            "age": [17, None, -9],
            "paid": [0.5, float("nan"), 20_000.0],
            "day": pl.Series(["2020-03-25", "2021-01-01", None]).str.to_date(),
        }
    )
    table.write_parquet(tmp_path / "t.parquet")
    job, age, paid, day = check(tmp_path / "t.parquet", schema).columns
    assert job.fits
    assert (age.below, age.missing, age.lines) == (1, 1, ("missing = true", 'missing_codes = ["-9"]'))
    assert (paid.above, paid.missing, paid.unreadable) == (1, 1, 0)
    assert (day.above, day.missing, day.unreadable) == (1, 1, 0)
    assert all(column.causes for column in (age, paid, day))


def test_what_does_not_fit_has_a_cause_even_if_no_text_of_it_is_kept(tmp_path: Path) -> None:
    schema = Schema.parse(
        '[[column]]\nname = "x"\nkind = "date"\nlow = 2020-01-01\nhigh = 2020-12-31\nformat = "%d/%m/%Y"\n'
        '[[column]]\nname = "y"\nkind = "integer"\nlow = 0\nhigh = 9\n'
    )
    table = pl.DataFrame({"x": pl.Series(["2021-01-01"]).str.to_date(), "y": ["z" * 5_000]})
    table.write_parquet(tmp_path / "t.parquet")
    x, y = check(tmp_path / "t.parquet", schema).columns
    assert [cause.split(":")[0] for cause in (*x.causes, *y.causes)] == [
        "values outside low … high",
        "texts that are not numbers, or not all written alike",
    ]


class Batches:
    """A source that yields its rows in batches of any size."""

    def __init__(self, table: dict[str, list[Any]], size: int) -> None:
        self.table, self.size = table, size
        self.names = tuple(table)

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        length = len(self.table[names[0]])
        for start in range(0, length, self.size):
            yield [objects(self.table[name][start : start + self.size]) for name in names]

    def size_hint(self) -> int | None:
        return None


@pytest.mark.parametrize("size", [1, 3, 100])
def test_does_not_depend_on_batches(size: int) -> None:
    table = {name: values * 5 for name, values in MESSY.items()}
    assert check(Batches(table, size), SCHEMA) == check(pd.DataFrame(table), SCHEMA)


def test_counts_are_exact_even_if_not_all_texts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certsynth.sources.check.MAX_TEXTS", 3)
    table = {name: values * 25 for name, values in MESSY.items()} | {"age": [str(i) for i in range(100, 200)]}
    found = check(Batches(table, 10), SCHEMA)
    assert (of(found, "age").above, of(found, "job").unlisted, found.rows) == (79, 100, 100)


def test_quotes_rows_only_if_asked() -> None:
    table = {name: [f"{text}-secret" for text in values] for name, values in MESSY.items()}
    table["age"] = ["seventeen-secret"] * 4
    for_all, with_examples = (check(pd.DataFrame(table), SCHEMA, examples=each) for each in (False, True))
    assert "secret" not in json.dumps(for_all.to_dict()) + repr(for_all)
    assert of(for_all, "age").lines[-1] == "missing_codes = …  # these texts are shown with --examples"
    assert of(with_examples, "age").examples == ("seventeen-secret",)
    assert of(with_examples, "age").lines[-1] == 'missing_codes = ["seventeen-secret"]'
    assert all(len(column.examples) <= 3 for column in with_examples.columns)


def test_says_in_every_form_that_it_is_not_private() -> None:
    found = check(pd.DataFrame(MESSY), SCHEMA)
    assert "NOT private" in repr(found).splitlines()[0]
    assert "job: 4 unlisted (100 %); blanks around the labels: strip = true" in repr(found)
    said = found.to_dict()
    assert (said["private"], said["fits"], said["rows"]) == (False, False, 4)
    assert said["notice"].startswith("NOT private")
    assert said["columns"][0]["unlisted"] == {"rows": 4, "share": 1.0}


RULED = Schema.parse(
    """
[[column]]
name = "hours"
kind = "integer"
low = 0
high = 99

[[column]]
name = "weeks"
kind = "number"
low = 0
high = 100
derived = { expression = "hours * 0.5" }

[[column]]
name = "worked"
kind = "boolean"

[[column]]
name = "level"
kind = "category"
values = ["a", "b", "c"]
derived = { from = "worked", map = { "true" = "a", "false" = "b" } }

[[rule]]
impossible = "hours > 0 and worked = false"
"""
)


def test_counts_rows_that_break_rules_and_derived_columns() -> None:
    table = pl.DataFrame(
        {"hours": [0, 7, 8], "weeks": [0.0, 3.5, 4.25], "worked": [False, False, True], "level": ["b", "b", "b"]}
    )
    found = check(table, RULED)
    assert [(rule.broken, rule.share) for rule in found.rules] == [(1, 1 / 3)]
    assert "hours > 0 and worked = false" in found.rules[0].what
    assert [(each.what, each.broken) for each in found.derived] == [
        ("weeks, derived from 'hours'", 1),
        ("level, derived from 'worked'", 1),
    ]
    assert not found.fits
    assert not found.misfits


def test_notes_constants_unused_labels_and_other_columns() -> None:
    table = pl.DataFrame({"job": ["Private"] * 3, "age": [1, 2, 3], "paid": [1.0] * 3, "day": ["2020-01-01"] * 3})
    found = check(table.with_columns(name=pl.lit("x"), street=pl.lit("y")), SCHEMA)
    assert found.fits
    assert [column.name for column in found.columns if column.constant] == ["job", "paid", "day"]
    assert of(found, "job").unused_labels == ("State-gov", "Never-worked")
    assert found.not_in_schema == ("name", "street")


def test_unlisted_labels_fit_other_unless_none_is_listed() -> None:
    schema = Schema.parse('[[column]]\nname = "x"\nkind = "category"\nvalues = ["a", "b"]\nother = true\n')
    assert check(pd.DataFrame({"x": ["a", "z"]}), schema).fits
    (nothing,) = check(pd.DataFrame({"x": ["y", "z"]}), schema).columns
    assert not nothing.fits
    assert nothing.causes == ("no listed label occurs: is this the right column, or the right list?",)
    (blanks,) = check(pd.DataFrame({"x": ["a", " a", "z"]}), schema).columns
    assert (blanks.fits, blanks.lines) == (False, ("strip = true",))


def test_truths_in_unknown_words_are_asked_for() -> None:
    (column,) = check(
        pd.DataFrame({"x": ["1", "2"]}), Schema.parse('[[column]]\nname = "x"\nkind = "boolean"\n')
    ).columns
    assert (column.unlisted, column.fits, column.lines) == (1, False, ())
    assert column.causes == (
        "words other than true and false: write the word for false and the one for true in values",
    )


def test_rounded_values_are_counted_and_fit() -> None:
    found = check(
        pd.DataFrame({"x": [1.5, 2.0]}), Schema.parse('[[column]]\nname="x"\nkind="integer"\nlow=0\nhigh=9\n')
    )
    assert (found.fits, found.columns[0].rounded) == (True, 1)


def test_a_table_without_rows_does_not_fit() -> None:
    assert not check(pd.DataFrame({name: pd.Series([], dtype=object) for name in MESSY}), SCHEMA).fits


def test_a_draft_and_an_open_question_can_be_checked() -> None:
    draft = Schema.parse(
        SCHEMA.to_toml().replace("one row is", "? one row is").replace("\n\n", "\ndraft = true\n\n", 1)
    )
    assert draft.draft
    assert len(check(pd.DataFrame(MESSY), draft).misfits) == 4


def test_refuses_what_release_refuses() -> None:
    with pytest.raises(InputError, match=r"no column 'job'; it has 'Job', 'age'.* Did you mean 'Job'"):
        check(pd.DataFrame({"Job": ["a"], "age": [1], "paid": [1], "day": [1]}), SCHEMA)
    schema = Schema.parse('[[column]]\nname = "x"\nkind = "category"\nvalues = ["007"]\n')
    with pytest.raises(InputError, match="stored as whole numbers"):
        check(pd.DataFrame({"x": [7]}), schema)
    with pytest.raises(TypeError, match="unexpected keyword"):
        check(pd.DataFrame(MESSY), SCHEMA, epsilon=1)  # type: ignore[call-arg]


def test_reports_progress() -> None:
    said: list[tuple[str, int, int | None]] = []
    check(pd.DataFrame(MESSY), SCHEMA, progress=lambda *each: said.append(each))
    assert said[-1] == ("checking rows", 4, 4)


def test_is_a_public_name() -> None:
    assert certsynth.check is check
    assert "check" in certsynth.__all__


@pytest.mark.skipif(not ADULT.exists(), reason="adult.parquet is not in the folder that CERTSYNTH_DATA names")
def test_blanks_before_the_labels_of_adult_are_found_and_cured(tmp_path: Path) -> None:
    """The original file separates fields by a comma and a blank."""
    path, labels = tmp_path / "adult.csv", [f"class {i}" for i in range(9)]
    query = f"""SELECT age, ' ' || {labels!r}[workclass + 1] AS workclass, sex FROM read_parquet('{ADULT}')"""
    duckdb.execute(f"COPY ({query}) TO '{path}' (HEADER)")
    listed = ", ".join(f'"{label}"' for label in labels)
    schema = Schema.parse(
        '[[column]]\nname = "age"\nkind = "integer"\nlow = 0\nhigh = 84\n'
        f'[[column]]\nname = "workclass"\nkind = "category"\nvalues = [{listed}]\n'
    )
    found = check(path, schema)
    assert (found.rows, of(found, "workclass").unlisted, of(found, "age").fits) == (48_842, 48_842, True)
    assert (of(found, "workclass").causes, of(found, "workclass").lines) == (
        ("blanks around the labels",),
        ("strip = true",),
    )
    assert check(path, amended(schema, found)).fits


def test_rows_of_persons_are_counted() -> None:
    schema = Schema.parse(
        '[table]\nperson = "who"\nrows_per_person = 3\n[[column]]\nname = "age"\nkind = "integer"\nlow = 0\nhigh = 60\n'
    )
    ids = ["a", " a", "b", None, "", *["c"] * 7, *(str(i) for i in range(86))]
    found = check(pd.DataFrame({"who": ids, "age": 30, "other": 1}), schema)
    assert found.persons is not None
    about = found.persons
    assert (about.persons, about.rows, about.rows_without_person) == (89, 98, 2)
    assert (about.median, about.most_of_90, about.most_of_99, about.largest) == (1, 1, 7, 7)
    assert dict(about.kept_shares) == {k: (87 + min(k, 2) + min(k, 7)) / 98 for k in (1, 2, 3, 4, 8, 12)}
    assert found.not_in_schema == ("other",)
    assert found.to_dict()["persons"]["rows_of_a_person"]["largest"] == 7
    assert schema.persons is not None
    alone = dataclasses.replace(schema, persons=dataclasses.replace(schema.persons, missing="separate"))
    again = check(pd.DataFrame({"who": ids, "age": 30}), alone).persons
    assert again is not None
    assert dict(again.kept_shares)[12] == 1


def test_the_command_shows_rows_of_persons(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(
        '[table]\nperson = "who"\nrows_per_person = 3\n[[column]]\nname = "age"\nkind = "integer"\nlow = 0\nhigh = 60\n'
    )
    (tmp_path / "visits.csv").write_text("who,age\nzaphod,1\nzaphod,2\n,3\nford,4\n")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "visits.csv"), "--schema", str(tmp_path / "schema.toml")])
    assert done.exit_code == 0, done.output
    assert "who: 2 persons." in done.output
    assert "1 row (25.0 %) without a person." in done.output
    assert "3 (this schema)" in done.output
    assert "zaphod" not in done.output
