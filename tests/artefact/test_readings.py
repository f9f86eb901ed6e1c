"""Releases of tables with options for reading texts: written like the input, and read back to the same rows."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Release, certify, evaluate, release
from certsynth.artefact.table import read_table, write_table, written_as
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.report import render_report
from certsynth.sources import cleaned, open_source

TOML = """
[table]
name = "shop"
unit = "one row is one sale"

[[column]]
name = "work class"
kind = "category"
values = ["Private", "State-gov"]
missing = true
strip = true
case = "ignore"
missing_codes = ["?", "unknown"]

[[column]]
name = "day"
kind = "date"
low = 2020-01-01
high = 2020-12-31
missing = true
format = "%d.%m.%y"
missing_codes = ["never"]

[[column]]
name = "amount"
kind = "number"
low = 0
high = 5000
step = 0.5
missing = true
decimal = ","
thousands = "."
symbol = ["€", "EUR"]
missing_codes = ["-9", "N"]
missing_as = "N"

[[column]]
name = "again"
kind = "boolean"
missing = true
values = ["1", "2"]
missing_codes = ["9"]

[[column]]
name = "size"
kind = "ordinal"
values = ["S", "M", "L"]
case = "ignore"

[[column]]
name = "pieces"
kind = "integer"
low = 0
high = 9
missing = true
missing_codes = ["99"]
missing_as = ""

[[rule]]
impossible = "amount > 4000 and day < '2020-02-01' and again"
"""
SCHEMA = Schema.parse(TOML)
OPTIONS = ("strip", "case", "decimal", "thousands", "symbol", "format", "missing_", 'values = ["1"')
PLAIN = Schema.parse("\n".join(line for line in TOML.splitlines() if not line.startswith(OPTIONS)))


def messy_rows(rows: int) -> list[dict[str, str]]:
    """Texts as people write them, for SCHEMA."""
    rng = np.random.default_rng(7)
    work = ["Private", " private", "STATE-GOV ", "?", " Unknown", ""]
    amounts = ["1.234,50 €", "€ 7", "7 EUR", "12", "-9", "-9,0", "N", "4.999,5", "", "3,0"]
    days = ["5.1.20", "25.03.20", "31.12.20", "never", ""]
    return [
        {
            "work class": str(rng.choice(work)),
            "day": str(rng.choice(days)),
            "amount": str(rng.choice(amounts)),
            "again": str(rng.choice(["1", "2", "9", " 2 "])),
            "size": str(rng.choice(["s", "M", "L"])),
            "pieces": str(rng.choice(["0", "3", "9", "99", "99.0"])),
        }
        for _ in range(rows)
    ]


def typed_rows(rows: list[dict[str, str]]) -> pl.DataFrame:
    """The same rows as a person would type them, for a schema without options."""
    work = {"private": "Private", "state-gov": "State-gov"}
    amounts = {"1.234,50 €": 1234.5, "€ 7": 7.0, "7 EUR": 7.0, "12": 12.0, "4.999,5": 4999.5, "3,0": 3.0}
    days = {"5.1.20": (1, 5), "25.03.20": (3, 25), "31.12.20": (12, 31)}
    return pl.DataFrame(
        {
            "work class": [work.get(row["work class"].strip().lower()) for row in rows],
            "day": [datetime.date(2020, *days[row["day"]]) if row["day"] in days else None for row in rows],
            "amount": [amounts.get(row["amount"]) for row in rows],
            "again": [{"1": False, "2": True}.get(row["again"].strip()) for row in rows],
            "size": [row["size"].upper() for row in rows],
            "pieces": [None if row["pieces"].startswith("99") else int(row["pieces"]) for row in rows],
        },
        schema_overrides={"day": pl.Date},
    )


def written(rows: list[dict[str, str]], path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, SCHEMA.names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def all_rows(data: Any, schema: Schema) -> list[list[float]]:
    parts = zip(*cleaned(open_source(data), schema), strict=True)
    return [np.nan_to_num(np.concatenate(part), nan=-1.0).tolist() for part in parts]


QUICK: dict[str, Any] = {"epsilon": 40, "sparsity": 1, "seed": 3, "mechanism": "identity"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("readings")
    return release(written(messy_rows(300), folder / "messy.csv"), SCHEMA, out=folder / "out", **QUICK)


def test_a_messy_file_is_the_table_that_its_schema_says(tmp_path: Path) -> None:
    rows = messy_rows(300)
    assert all_rows(written(rows, tmp_path / "messy.csv"), SCHEMA) == all_rows(typed_rows(rows), PLAIN)


def test_the_csv_is_written_like_the_input(made: Release) -> None:
    rows = list(csv.DictReader(io.StringIO((made.folder / "synthetic.csv").read_text("utf-8"))))
    assert tuple(rows[0]) == SCHEMA.names
    seen = {name: {row[name] for row in rows} for name in SCHEMA.names}
    assert seen["work class"] == {"Private", "State-gov", "?"}
    assert seen["again"] == {"1", "2", "9"}
    assert "never" in seen["day"]
    assert all(re.fullmatch(r"[0-9]{2}\.[0-9]{2}\.20|never", text) for text in seen["day"])
    assert "N" in seen["amount"]
    assert all(re.fullmatch(r"[0-9]+,[05]|N", text) for text in seen["amount"])
    assert {"", "3"} <= seen["pieces"] <= {"", *"0123456789"}


def test_both_files_and_frames_are_read_back_to_the_same_rows(made: Release) -> None:
    wanted = [np.nan_to_num(x, nan=-1.0).tolist() for x in made.rows]
    for name in ("synthetic.csv", "synthetic.parquet"):
        assert all_rows(made.folder / name, SCHEMA) == wanted, name
    assert evaluate(made.folder / "synthetic.csv", made.folder / "synthetic.parquet", SCHEMA).upper < 0.001
    assert certify(made.folder / "synthetic.parquet", made.folder / "synthetic.csv", SCHEMA, epsilon=50).bound < 0.1


def test_the_release_verifies_and_names_its_readings(made: Release) -> None:
    again = Release.load(made.folder)
    assert [check for check in again.verify() if not check["ok"]] == []
    stated = json.loads((made.folder / "certificate.json").read_text("utf-8"))["table"]["readings"]
    assert stated[0] == {"column": "work class", "options": ["strip", "case", "missing_codes"]}
    assert [each["column"] for each in stated] == list(SCHEMA.names)
    page = render_report(again.record, again.schema, again.table)
    assert "about the rows as the schema reads them" in page
    assert "amount (decimal, thousands, symbol, missing_codes, missing_as)" in page
    assert "readings" not in release(typed_rows(messy_rows(50)), PLAIN, **QUICK).document["table"]


def test_verify_sees_readings_that_are_left_out(made: Release) -> None:
    table = replace(made.record.table, readings=None)
    forged = replace(made, record=replace(made.record, table=table))
    assert "schema" in {check["name"] for check in forged.verify() if not check["ok"]}


def test_statistics_are_in_the_columns_own_values(made: Release) -> None:
    """Queries, like rules, name values and not texts of the file."""
    assert made.answer("fraction(again)").estimate == pytest.approx(np.mean(made.table["again"].filled(False)))
    assert made.answer("fraction(day < '2020-02-01')").estimate > 0
    shares = made.answer("fraction(size = 'S')").estimate + made.answer("fraction(size in ['M', 'L'])").estimate
    assert shares == pytest.approx(1)


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("day", "2020-01-05"),
        ("day", "5.1.20"),
        ("amount", "7.0"),
        ("amount", "7"),
        ("amount", ""),
        ("again", "true"),
        ("again", "?"),
        ("work class", "private"),
        ("work class", ""),
        ("pieces", "99"),
    ],
)
def test_verify_sees_a_text_that_is_written_otherwise(made: Release, column: str, wrong: str, tmp_path: Path) -> None:
    """Even where the schema would read it to the same value."""
    texts = dict(zip(SCHEMA.names, read_table(made.folder / "synthetic.csv", SCHEMA), strict=True))[column]
    texts = np.ma.masked_array(texts, mask=np.ma.getmaskarray(texts).copy(), copy=True)
    place = next(i for i, text in enumerate(np.ma.filled(texts.astype(object), "")) if text != wrong)
    texts[place] = np.ma.masked if wrong == "" else wrong
    (own,) = (each for each in SCHEMA if each.name == column)
    assert not written_as(own, texts, made.table[column])


def test_extreme_values_are_written_and_read(tmp_path: Path) -> None:
    schema = Schema.parse(
        '[[column]]\nname = "x"\nkind = "number"\nlow = -1e300\nhigh = 1e300\ndecimal = ","\nmissing = true\n'
        'missing_codes = ["it\'s, \\"gone\\""]\n'
        '[[column]]\nname = "d"\nkind = "date"\nlow = 0001-01-01\nhigh = 9999-12-31\nformat = "%Y%m%d"\n'
    )
    numbers = np.ma.masked_array([0.1, -1e300, 5e-324, 1e16, 123456.789, 0.0], mask=[0, 0, 0, 0, 0, 1])
    days = np.ma.masked_array(np.array(["0001-01-01", "9999-12-31", "2020-02-29"] * 2, dtype="datetime64[D]"))
    table = {"x": numbers, "d": days}
    write_table(table, parquet=tmp_path / "t.parquet", csv=tmp_path / "t.csv", schema=schema)
    for column, texts in zip(schema, read_table(tmp_path / "t.csv", schema), strict=True):
        assert written_as(column, texts, table[column.name])
        assert column.clean(texts).tolist()[:5] == column.encode(table[column.name]).tolist()[:5]
    assert all_rows(tmp_path / "t.csv", schema) == all_rows(tmp_path / "t.parquet", schema)


def test_frames_that_others_may_have_guessed_are_refused() -> None:
    frame = typed_rows(messy_rows(20)).select("day", "amount")
    for name in ("day", "amount"):
        with pytest.raises(InputError, match=r"cannot tell its texts apart\. Read it as text"):
            release(frame.select(name), SCHEMA.select([name]), **QUICK)


_VALIDATE = """
import json, sys
from frictionless import validate
report = validate(sys.argv[1])
print(json.dumps([report.valid, [e.message for task in report.tasks for e in task.errors][:5]]))
"""


def test_frictionless_reads_the_csv_as_described(made: Release) -> None:
    command = [sys.executable, "-c", _VALIDATE, str(made.folder / "datapackage.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=made.folder)
    assert json.loads(done.stdout.splitlines()[-1]) == [True, []], done.stderr[-500:]
    package = json.loads((made.folder / "datapackage.json").read_text("utf-8"))
    fields = {field["name"]: field for field in package["resources"][0]["schema"]["fields"]}
    assert fields["amount"]["decimalChar"] == ","
    assert fields["day"]["format"] == "%d.%m.%y"
    assert (fields["again"]["trueValues"], fields["again"]["falseValues"]) == (["2"], ["1"])
    assert fields["work class"]["missingValues"] == ["?"]
