"""What a newcomer gets wrong: one line each, which names the column or the file and says what to do."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from certsynth import CertifiedSynthesizer, Schema, certify, evaluate, plan, release
from certsynth.errors import InputError, SchemaError

OPTIONS = ("--schema", "schema.toml", "--epsilon", "1", "--out", "out")
SHEET = "cannot be read (it is damaged, or has a password). Save the sheet as CSV in UTF-8."
EPSILON = "--epsilon must be a number above 0 and at most 100, for example 1 or 0.5; got "

TABLES = {
    "nowhere.csv": (None, "no such file. Check the path."),
    "empty.csv": (b"", "empty, or without a header. The first line must name the columns."),
    "people.xlsx": (b"PK\x03\x04", SHEET),
    "people.xls": (b"\xd0\xcf\x11\xe0", "a spreadsheet. Save the sheet as CSV in UTF-8."),
    "people.sav": (
        b"$FL2",
        "a table of SPSS. Save it as CSV in UTF-8 or as Parquet, with codes instead of labels if the schema lists "
        "codes.",
    ),
    "renamed.csv": (
        b"PK\x03\x04",
        "a zip archive or a spreadsheet. Give it the suffix of its format, .zip or .xlsx.",
    ),
    "packed.csv": (gzip.compress(b"age\n30\n"), "compressed. Add .gz to its name."),
    "unpacked.csv.gz": (b"age\n30\n", "not compressed. Remove .gz from its name."),
    "wide.csv": ("age,region\n30,hills\n".encode("utf-16"), "text in UTF-16. Save it as UTF-8."),
    "schema.toml": (None, "this is a schema or a workload, not a table. Give a CSV or Parquet file here."),
    ".": (None, "this folder has no Parquet file in it. Give a CSV or Parquet file."),
    "typo.csv": (
        b"age,regoin,employed\n30,hills,true\n",
        "no column 'region'; it has 'age', 'regoin', 'employed'. Correct the name in the schema or in the data. Did "
        "you mean 'regoin'?",
    ),
    "capitals.csv": (
        b"AGE,REGION,EMPLOYED\n30,hills,true\n",
        "no column 'age', but one that differs in case or in blanks. Write it alike in both.",
    ),
    "headless.csv": (b"30,hills,true\n", "no column 'age', and the first line looks like a row. Add a header."),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_none_is_told_by_its_name(town, run, name):
    content, message = TABLES[name]
    if content is not None:
        (town / name).write_bytes(content)
    assert run("release", name, *OPTIONS).error == f"data {name}: {message}"
    assert not (town / "out").exists()


@pytest.mark.parametrize("name", ["people.sav", "people.xlsx", "wide.csv", "schema.toml", "packed.csv"])
def test_no_schema_is_drafted_from_what_is_no_table(town, run, name):
    content, message = TABLES[name]
    if content is not None:
        (town / name).write_bytes(content)
    assert run("schema", name, "--out", "draft.toml").error == f"data {name}: {message}"


def test_a_draft_does_not_take_decimal_commas_for_labels(town, run):
    rows = "\n".join(f'"{i},5",a' for i in range(60))
    (town / "commas.csv").write_text(f"income,x\n{rows}\n")
    assert run("schema", "commas.csv", "--out", "draft.toml").code == 0
    assert (
        'kind = "number"\nlow = 0.5\nhigh = 59.5\nmissing = false\ndecimal = ","' in (town / "draft.toml").read_text()
    )
    (town / "codes.csv").write_text('several,x\n"1,2",a\n"2,3,4",b\n')  # lists of codes
    assert run("schema", "codes.csv", "--out", "codes.toml").code == 0
    assert 'values = ["1,2", "2,3,4"]' in (town / "codes.toml").read_text()


def test_a_column_may_have_any_name_that_a_schema_has(town, run):
    """A semicolon in the only name separates two, unless the name is in quotes."""
    (town / "odd.csv").write_text('"a;b"\n1\n2\n')
    (town / "odd.toml").write_text('[[column]]\nname = "a;b"\nkind = "integer"\nlow = 0\nhigh = 9\n')
    done = run("release", "odd.csv", "--schema", "odd.toml", "--epsilon", "1", "--out", "out", "--resolution", "4")
    assert done.code == 0, done.err
    (town / "odd.csv").write_text("a;b\n1\n2\n")
    done = run("release", "odd.csv", "--schema", "odd.toml", "--epsilon", "1", "--out", "other", "--resolution", "4")
    assert done.error == (
        "data odd.csv: its fields seem to be separated by commas, with semicolons in a name of a column. Rename that "
        "column, here and in the schema."
    )


def test_other_ways_to_write_a_table_give_the_same_draft_and_are_released(town, run):
    rows = [line.split(",") for line in (town / "people.csv").read_text().splitlines()]
    header, *body = rows
    (town / "semicolons.csv").write_text("\n".join(map(";".join, rows)))
    (town / "tabs.csv").write_text("\n".join(map("\t".join, rows)))
    lines = [json.dumps(dict(zip(header, row, strict=True))) for row in body]
    (town / "lines.jsonl").write_text("\n".join(lines))
    with zipfile.ZipFile(town / "packed.zip", "w") as archive:
        archive.write(town / "tabs.csv", "people.csv")
    plain = run("schema", "people.csv").out
    pinned = (*OPTIONS[:4], "--resolution", "4", "--mechanism", "identity", "--quiet")
    for i, name in enumerate(("semicolons.csv", "tabs.csv", "lines.jsonl", "packed.zip")):
        assert run("schema", name).out.splitlines()[3:] == plain.splitlines()[3:]
        done = run("release", name, *pinned, "--out", f"out{i}")
        assert done.code == 0, done.err
        assert f"{len(body)} row" in done.out


@pytest.mark.parametrize("epsilon", ["0", "-1", "abc", "1e9", "1,5", "nan"])
def test_a_wrong_epsilon_is_told_with_its_rule(town, run, epsilon):
    assert run("release", "people.csv", *OPTIONS[:2], "--epsilon", epsilon, "--out", "out").error == (
        f"{EPSILON}{epsilon!r}."
    )


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("--columns=age,regoin", "column 'regoin' is not in the schema, which has: age, region, employed."),
        (
            "--workload=workload.toml",
            "the workload names 'regoin', which is not a column of the schema: choose from age, region, employed.",
        ),
    ],
)
def test_a_column_that_is_misspelt_is_told_with_the_one_that_is_like_it(town, run, added, message):
    (town / "workload.toml").write_text('subsets = [["age", "regoin"]]\n')
    assert run("release", "people.csv", *OPTIONS, added).error == f"{message} Did you mean 'region'?"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"integer"',
            '"interger"',
            "column 'age': kind must be one of integer, number, date, datetime, ordinal, category, boolean, tree, "
            "metric. Did you mean 'integer'?",
        ),
        (
            "low =",
            "lo =",
            "column 'age': a column of kind integer has no entry 'lo'; it may have bands, decimal, derived, high, low, "
            "missing, missing_as, missing_codes, scale, special, step, symbol, target, thousands, title, unit, "
            "weight. Did you mean 'low'?",
        ),
        (
            "[table]",
            "[[rule]]\nrequire = 'aeg > 3'\n[table]",
            "rule 1, require, at character 1: no column is called 'aeg'; there are 'age', 'region', 'employed', and "
            "texts are written in quotes. Did you mean 'age'?",
        ),
    ],
)
def test_a_slip_in_the_schema_is_told_with_what_may_be_meant(town, run, old, new, message):
    text = (town / "schema.toml").read_text()
    (town / "schema.toml").write_text(text.replace(old, new, 1))
    assert run("release", "people.csv", *OPTIONS).error == message


def test_a_table_in_place_of_the_schema_is_told(town, run):
    assert run("release", "people.csv", "--schema", "people.csv", *OPTIONS[2:]).error == (
        "schema people.csv: that is a table. A schema is a TOML file that you write; `certsynth schema DATA` drafts "
        "one."
    )


def test_a_name_that_is_no_text_is_told_like_any_other(town):
    """From Python, where anything can be given."""
    schema = Schema.load("schema.toml")
    for wrong in (5, None, ("age",), "x" * 10_000):
        with pytest.raises(SchemaError, match="is not in the schema"):
            schema.select([wrong])
        with pytest.raises(InputError, match=r"not a column of the schema|not all of these are texts"):
            certify("people.csv", "copy.csv", schema, epsilon=1, subsets=[[wrong]])


CALLS: dict[str, Callable[..., Any]] = {
    "release": lambda schema, **asked: release("people.csv", schema, epsilon=1, **asked),
    "plan": lambda schema, **asked: plan(schema, epsilon=1, rows=9, **asked),
    "certify": lambda schema, **asked: certify("people.csv", "copy.csv", schema, epsilon=1, **asked),
    "evaluate": lambda schema, **asked: evaluate("people.csv", "copy.csv", schema, **asked),
    "fit": lambda schema, **asked: CertifiedSynthesizer(schema=schema, epsilon=1, **asked).fit("people.csv"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_text_is_not_taken_for_the_list_of_its_letters(town, call):
    schema = Schema.load("schema.toml")
    for asked, message in (
        ({"columns": "age"}, "`columns` is a list of column names: write ['age'] for a single column."),
        ({"columns": 5}, "`columns` is a list of column names, like ['age', 'income']; got a int."),
        ({"columns": []}, "`columns` is a list of column names, like ['age', 'income']; got none. Leave it out"),
        ({"subsets": "age"}, "`subsets` is a list of subsets, each a list of column names, like [['age', 'income'], "),
        ({"subsets": ["age"]}, "a subset is a list of column names: write [['age']] for a column alone."),
        ({"subsets": [["age"], 5]}, "`subsets` is a list of subsets, each a list of column names, like [['age', "),
    ):
        with pytest.raises(InputError) as caught:
            CALLS[call](schema, **asked)
        assert str(caught.value).startswith(message)
    with pytest.raises(SchemaError, match=r"give a list of column names: \['age'\] for a single column"):
        schema.select("age")


def test_a_ledger_in_no_folder_or_that_is_none_is_told(town, run):
    spent = (*OPTIONS, "--cap", "1", "--ledger")
    assert run("release", "people.csv", *spent, "no/l").error == (
        "no is not a folder; make it first, or choose another --ledger."
    )
    assert run("release", "people.csv", *spent, "people.csv").error == (
        "people.csv is not a ledger of certsynth; it is left as it is. Choose another file."
    )
