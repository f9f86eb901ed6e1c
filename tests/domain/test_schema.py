"""The schema file: what it says comes back; what it may not say is refused, with the column and a remedy."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.labels import MAX_TEXT, MAX_VALUES
from certsynth.domain.schema import MAX_BYTES, MAX_COLUMNS
from certsynth.errors import SchemaError

EPOCH = datetime.date(1970, 1, 1).toordinal()

plain = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=8)
safe = plain.filter(lambda text: not text.startswith(("=", "@", "+", "-")))
labels = st.lists(safe, min_size=1, max_size=5, unique=True).map(tuple)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    name, missing = draw(safe.filter(bool)), draw(st.booleans())
    kind = draw(st.sampled_from(["integer", "number", "date", "ordinal", "category", "boolean"]))
    if kind == "boolean":
        return Category(name=name, missing=missing, kind="boolean", values=("false", "true"))
    if kind == "category":
        other = draw(st.booleans())
        values = draw(labels.filter(lambda v: not (other and "other" in v)))
        return Category(name=name, missing=missing, values=values, other=other)
    if kind == "ordinal":
        values = draw(labels)
        return Ordered(name=name, missing=missing, kind="ordinal", low=0, high=len(values) - 1, values=values)
    bound: st.SearchStrategy[int | float] = {
        "integer": st.integers(-(2**39), 2**39),
        "number": st.floats(-1e300, 1e300),
        "date": st.dates().map(lambda day: day.toordinal() - EPOCH),
    }[kind]
    low, high = sorted(draw(st.tuples(bound, bound).filter(lambda ends: ends[0] != ends[1])))
    return Ordered(name=name, missing=missing, kind=kind, low=low, high=high)


@settings(max_examples=200)
@given(
    st.lists(columns(), min_size=1, max_size=6, unique_by=lambda column: column.name),
    safe.filter(bool),
    st.booleans(),
)
def test_a_schema_comes_back_from_its_file(listed: list[Column], name: str, draft: bool) -> None:
    schema = Schema(columns=tuple(listed), name=name, unit=f"one row is one {name}", draft=draft)
    assert Schema.parse(schema.to_toml()) == schema


def test_loads_the_file_of_the_design_page(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(
        """
        [table]
        name = "ACSIncome, California 2018"
        [[column]]
        name = "AGEP"
        kind = "integer"
        low = 17
        high = 99
        [[column]]
        name = "born"
        kind = "date"
        low = 1900-01-01
        high = "2018-12-31"
        [[column]]
        name = "MAR"
        kind = "category"
        values = ["-1", "+3.5", "", "x"]   # numbers with a sign are no formulas
        other = true
        missing = true
        """,
        encoding="utf-8",
    )
    schema = Schema.load(file)
    assert schema.names == ("AGEP", "born", "MAR")
    assert schema.unit == "one row is one person"
    age, born, status = schema
    assert age == Ordered(name="AGEP", kind="integer", low=17, high=99)
    assert isinstance(born, Ordered)
    assert born.low == datetime.date(1900, 1, 1).toordinal() - EPOCH
    assert status == Category(name="MAR", missing=True, values=("-1", "+3.5", "", "x"), other=True)


def column(body: str, name: str = '"age"') -> str:
    return f"[[column]]\nname = {name}\n{body}\n"


INTEGER = 'kind = "integer"\nlow = 0\nhigh = 9'
CATEGORY = 'kind = "category"\n'
REFUSED = {
    "low above high": (
        column('kind = "integer"\nlow = 9\nhigh = 3'),
        "column 'age'",
        "low must be below high",
    ),
    "low equal to high": (column('kind = "number"\nlow = 1.0\nhigh = 1'), "column 'age'", "code book"),
    "missing low": (column('kind = "integer"\nhigh = 3'), "column 'age'", "needs low"),
    "missing high": (column('kind = "date"\nlow = 2020-01-01'), "column 'age'", "needs high"),
    "bool as bound": (
        column('kind = "integer"\nlow = true\nhigh = 3'),
        "column 'age'",
        "low must be a number",
    ),
    "text as bound": (column('kind = "number"\nlow = "1"\nhigh = 3'), "column 'age'", "low must be a number"),
    "float as integer": (column('kind = "integer"\nlow = 0.5\nhigh = 3'), "column 'age'", "whole number"),
    "huge integer": (column(f'kind = "integer"\nlow = 0\nhigh = {2**53 + 1}'), "column 'age'", "2^53"),
    "wide integer": (column('kind = "integer"\nlow = 0\nhigh = 1099511627777'), "column 'age'", '"number"'),
    "infinite bound": (column('kind = "number"\nlow = -inf\nhigh = 3'), "column 'age'", "between −1e300"),
    "NaN as bound": (column('kind = "number"\nlow = nan\nhigh = 3'), "column 'age'", "between −1e300"),
    "a bound beyond floats": (
        column(f'kind = "number"\nlow = 0\nhigh = 1{"0" * 400}'),
        "'age'",
        "between −1e300",
    ),
    "a date that is none": (
        column('kind = "date"\nlow = "2020-02-30"\nhigh = 2020-03-01'),
        "'age'",
        "2024-12-31",
    ),
    "a number as date": (
        column('kind = "date"\nlow = 3\nhigh = 4'),
        "column 'age'",
        "must be a date such as",
    ),
    "a time as date": (
        column('kind = "date"\nlow = 2020-01-01T10:00:00\nhigh = 2021-01-01'),
        "'age'",
        "a date such",
    ),
    "repeated values": (
        column(CATEGORY + 'values = ["a", "b", "a"]'),
        "column 'age'",
        "'a' is listed twice; remove",
    ),
    "no values": (column(CATEGORY + "values = []"), "column 'age'", "needs values = ["),
    "values left out": (column('kind = "ordinal"'), "column 'age'", "needs values = ["),
    "values that are numbers": (
        column(CATEGORY + "values = [1, 2]"),
        "column 'age'",
        'write "1" rather than 1',
    ),
    "other listed": (column(CATEGORY + 'values = ["other"]\nother = true'), "column 'age'", "rename it"),
    "unknown kind": (column('kind = "text"'), "column 'age'", "kind must be one of integer, number, date"),
    "no kind": (column(""), "column 'age'", "kind must be one of"),
    "a list as kind": (column('kind = ["integer"]'), "column 'age'", "kind must be one of"),
    "unknown entry": (
        column(INTEGER + "\nmax = 3"),
        "column 'age'",
        "no entry 'max'; it may have high, low, missing",
    ),
    "values of an integer": (
        column(INTEGER + '\nvalues = ["a"]'),
        "column 'age'",
        "it may have high, low, missing",
    ),
    "missing that is a word": (
        column(INTEGER + '\nmissing = "yes"'),
        "column 'age'",
        "missing is true or false",
    ),
    "a name twice": (column(INTEGER) * 2, "column 'age'", "remove or rename one of the two"),
    "no name": ('[[column]]\nkind = "integer"', "column 1", 'write name = "…"'),
    "a number as name": (column(INTEGER, name="3"), "column 1", "must be a text"),
    "an empty name": (column(INTEGER, name='""'), "column 1", "must be a text"),
    "a long name": (
        column(INTEGER, name=f'"{"x" * 1001}"'),
        "column 1",
        "longer than 1000 characters; shorten",
    ),
    "a control character in a name": (
        column(INTEGER, name='"a\\tb"'),
        "column 1",
        "control character; remove",
    ),
    "a terminal's escape in a name": (
        column(INTEGER, name='"a\\u009bb"'),
        "column 1",
        "control character; remove",
    ),
    "a formula as name": (column(INTEGER, name='"=1+1"'), "column 1", "let it start with a letter"),
    "a long value": (column(CATEGORY + f'values = ["{"x" * 1001}"]'), "column 'age'", "shorten"),
    "a line break in a value": (column(CATEGORY + 'values = ["a\\nb"]'), "column 'age'", "control character"),
    **{
        f"the formula {label}": (
            column(CATEGORY + f'values = ["{label}"]'),
            "column 'age'",
            "start with a letter",
        )
        for label in ("=1+1", "@x", "+a", "-x", "=1", "@1", "-", "+.", "-1+1", "-1.2.3")
    },
    "no column at all": ('[table]\nname = "x"', "names no column", "add at least one"),
    "an unknown section": ("[tabel]\n", "'tabel'", "[table] and [[column]]"),
    "an unknown entry of the table": ("[table]\nowner = 1", "'owner'", "name, unit and draft"),
    "table as a list": ("[[table]]\n", "[table] once", "[[column]] for each"),
    "column as a table": ("[column]\n", "[table] once", "[[column]] for each"),
    "columns that are numbers": ("column = [1]", "column 1", 'write name = "…"'),
    "a draft that is a word": ('[table]\ndraft = "yes"', "draft", "true or false"),
    "a unit with a control character": ('[table]\nunit = "\\u0000"\n' + column(INTEGER), "unit", "remove it"),
    "not TOML": ("[[column", "not valid TOML", "README"),
    "a number of 5,000 digits": (f"column = {'9' * 5000}", "not valid TOML", "README"),
    "deep nesting": ("column = " + "[" * 100_000, "not valid TOML", "README"),
    "deep tables": ("column = " + "{a=" * 100_000, "not valid TOML", "README"),
    "a key of many parts": ("a." * 1_000_000 + "a = 1", "dots", "keys have none"),
    "a header of many parts": ("[" + "a." * 1_000_000 + "a]", "dots", "keys have none"),
    "an inline key of many parts": ("x = {" + "'a' . " * 300_000 + "a = 1}", "dots", "keys have none"),
    "quotes that hide a key": ('"\\"' * 100_000 + "\n" + "a." * 100_000 + "a = 1", "dots", "keys have none"),
    "too many columns": (
        "".join(column(INTEGER, name=f'"c{i}"') for i in range(MAX_COLUMNS + 1)),
        "1001 columns",
        "at most 1000",
    ),
    "too many values": (
        column(CATEGORY + "values = " + json.dumps(["a"] * (MAX_VALUES + 1))),
        "column 'age'",
        "at most 100000",
    ),
    "a repeated value far down": (
        column(CATEGORY + "values = " + json.dumps([f"v{i}" for i in range(MAX_VALUES - 1)] + ["v7"])),
        "column 'age'",
        "'v7' is listed twice",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    text, names, remedy = REFUSED[case]
    start = time.monotonic()
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    message = str(caught.value)
    assert names in message
    assert remedy in message
    assert "\n" not in message
    assert time.monotonic() - start < 5, "a hostile schema must not stop the machine"


def test_dots_in_texts_and_comments_are_no_keys() -> None:
    dots = "." * 100
    schema = Schema.parse(f'# {dots}\n[table]\nname = "{dots}"\n' + column(CATEGORY + f'values = ["{dots}x", "y"]'))
    assert schema.name == dots


def test_the_longest_text_is_allowed() -> None:
    name = "x" * MAX_TEXT
    assert Schema.parse(column(INTEGER, name=f'"{name}"')).names == (name,)


def test_refuses_a_file_of_20_megabytes_unread(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    with file.open("wb") as handle:
        handle.truncate(20 * 2**20)
    assert file.stat().st_size > MAX_BYTES
    with pytest.raises(SchemaError, match="larger than 16 MB"):
        Schema.load(file)


def test_refuses_what_is_no_text_file(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for path, says in [
        (tmp_path / "none.toml", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "binary.toml", "UTF-8"),
    ]:
        with pytest.raises(SchemaError, match=says):
            Schema.load(path)


def test_selects_columns_in_the_order_given() -> None:
    schema = Schema.parse(column(INTEGER, '"a"') + column(INTEGER, '"b"') + column(INTEGER, '"c"'))
    assert schema.select(["c", "a"]).names == ("c", "a")
    with pytest.raises(SchemaError, match="'d' is not in the schema, which has: a, b, c"):
        schema.select(["d"])
    with pytest.raises(SchemaError, match="'a' is listed twice"):
        schema.select(["a", "a"])
