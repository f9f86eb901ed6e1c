"""The schema file: what it says comes back; what it may not say is refused, with the column and a remedy."""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.base.clock import SECONDS
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.labels import MAX_TEXT_CHARACTERS, MAX_TREE_CODES, MAX_TREE_DEPTH, MAX_VALUES
from certsynth.domain.schema import KINDS, MAX_BYTES, MAX_COLUMNS, MAX_CUT_VALUES
from certsynth.errors import SchemaError
from work import calls_made

EPOCH = datetime.date(1970, 1, 1).toordinal()

plain = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=8)
safe = plain.filter(lambda text: not text.startswith(("=", "@", "+", "-")))
labels = st.lists(safe, min_size=1, max_size=5, unique=True).map(tuple)


weights = st.integers(1, 1_000).map(lambda parts: Fraction(parts, 1_000))
code = safe.filter(lambda text: text and "/" not in text)


@st.composite
def trees(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Labels and paths: last codes, or whole paths where last codes repeat."""
    path = st.lists(code, min_size=1, max_size=4).map(tuple)
    paths = tuple(draw(st.lists(path, min_size=1, max_size=6, unique=True)))
    last = tuple(path[-1] for path in paths)
    return (last if len(set(last)) == len(last) else tuple("/".join(path) for path in paths)), paths


@st.composite
def distances(draw: st.DrawFn, count: int) -> tuple[tuple[Fraction, ...], ...]:
    """Any numbers between some length and twice that are a metric; lengths from 10^−12 to 10^12."""
    unit = Fraction(10) ** draw(st.integers(-14, 8))
    chosen = {(i, j): unit * draw(st.integers(5_000, 10_000)) for i in range(count) for j in range(i)}
    return tuple(
        tuple(chosen[max(i, j), min(i, j)] if i != j else Fraction(0) for j in range(count)) for i in range(count)
    )


@st.composite
def stepped(draw: st.DrawFn, name: str, missing: bool, weight: Fraction, kind: str) -> Ordered:
    """A column with a step, of up to six decimals."""
    scale = 10 ** draw(st.integers(0, 6)) if kind == "number" else 1
    low, step, last = draw(st.integers(-(10**6), 10**6)), draw(st.integers(2, 10**4)), draw(st.integers(1, 10**4))
    ends: list[int | float] = [low, low + step * last]
    if kind == "number":
        ends = [end / scale for end in ends]
    column = Ordered(
        name=name, missing=missing, weight=weight, kind=kind, low=ends[0], high=ends[1], step=Fraction(step, scale)
    )
    return draw(cut(column))


@st.composite
def cut(draw: st.DrawFn, column: Ordered) -> Ordered:
    """The column with special values and bands."""
    last = column.last_index
    assert last is not None
    special = draw(st.sets(st.integers(0, last), max_size=3))
    bands = draw(st.sets(st.integers(1, last), max_size=3)) if last else set()
    at = [tuple(column.at_index(np.array(sorted(each), dtype=np.int64)).tolist()) for each in (special, bands)]
    return replace(column, special=at[0], bands=at[1])


@st.composite
def columns(draw: st.DrawFn) -> Column:
    name, missing, weight = draw(safe.filter(bool)), draw(st.booleans()), draw(st.just(Fraction(1)) | weights)
    kind = draw(st.sampled_from(KINDS))
    if kind == "boolean":
        return Category(name=name, missing=missing, weight=weight, kind="boolean", values=("false", "true"))
    if kind in ("category", "tree", "metric"):
        values, paths = draw(trees()) if kind == "tree" else (draw(labels), ())
        between = draw(distances(len(values))) if kind == "metric" else ()
        other = draw(st.booleans()) and "other" not in values
        return Category(
            name=name,
            missing=missing,
            weight=weight,
            kind=kind,
            values=values,
            other=other,
            paths=paths,
            distances=between,
        )
    if kind == "ordinal":
        values = draw(labels)
        high = len(values) - 1
        column = Ordered(name=name, missing=missing, weight=weight, kind="ordinal", low=0, high=high, values=values)
        return draw(cut(column))
    bound: st.SearchStrategy[int | float] = {
        "integer": st.integers(-(2**39), 2**39),
        "number": st.floats(-1e300, 1e300),
        "date": st.dates().map(lambda day: day.toordinal() - EPOCH),
        "datetime": st.datetimes().map(SECONDS.number),
    }[kind]
    if kind == "datetime" and draw(st.booleans()):
        step, last = draw(st.integers(2, 90_000)), draw(st.integers(1, 1_000))
        low = draw(st.datetimes(max_value=datetime.datetime(2020, 1, 1)).map(SECONDS.number))
        stepped_column = Ordered(
            name=name, missing=missing, weight=weight, kind=kind, low=low, high=low + step * last, step=Fraction(step)
        )
        return draw(cut(stepped_column))
    if kind in ("integer", "number") and draw(st.booleans()):
        return draw(stepped(name, missing, weight, kind))
    low, high = sorted(draw(st.tuples(bound, bound).filter(lambda ends: ends[0] != ends[1])))
    column = Ordered(name=name, missing=missing, weight=weight, kind=kind, low=low, high=high)
    return draw(cut(column)) if column.clock and column.reach <= MAX_CUT_VALUES else column


@settings(max_examples=200)
@given(
    st.lists(columns(), min_size=1, max_size=6, unique_by=lambda column: column.name.lower()),
    safe.filter(bool),
    st.booleans(),
)
def test_a_schema_comes_back_from_its_file(listed: list[Column], name: str, draft: bool) -> None:
    schema = Schema(columns=tuple(listed), name=name, unit=f"one row is one {name}", draft=draft)
    assert Schema.parse(schema.to_toml()) == schema


def test_every_weight_comes_back() -> None:
    light = [Ordered(name=f"c{i}", high=9, weight=Fraction(i, 1_000)) for i in range(1, 1_001)]
    assert Schema.parse(Schema(columns=tuple(light)).to_toml()).columns == tuple(light)


def test_a_matrix_of_many_decimals_comes_back() -> None:
    """Far more dots in a line than any key may have."""
    between = tuple(tuple(Fraction(abs(i - j), 10) for j in range(40)) for i in range(40))
    column = Category(name="m", kind="metric", values=tuple(f"v{i}" for i in range(40)), distances=between)
    assert Schema.parse(Schema(columns=(column,)).to_toml()).columns == (column,)


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
TREE = 'kind = "tree"\n'
METRIC = 'kind = "metric"\nvalues = ["a", "b", "c"]\n'
RULE_OF_WEIGHTS = "above 0 and at most 1, in at most 3 decimals, like 0.5"
RULE_OF_DISTANCES = "from 0 to 10^12 with at most 17 digits, like 0.5"


def paths(*values: str) -> str:
    return column(TREE + "values = " + json.dumps(values))


def between(a_b: str = "1", b_c: str = "1", a_c: str = "1", *, diagonal: str = "0") -> str:
    """Distances among a, b and c."""
    return f"distances = [[0, {a_b}, {a_c}], [{a_b}, {diagonal}, {b_c}], [{a_c}, {b_c}, 0]]"


REFUSED = {
    "low above high": (
        column('kind = "integer"\nlow = 9\nhigh = 3'),
        "column 'age'",
        "low must be below high",
    ),
    "low equal to high": (column('kind = "number"\nlow = 1.0\nhigh = 1'), "column 'age'", "code book"),
    "a step that misses high": (
        column('kind = "number"\nlow = 0\nhigh = 1\nstep = 0.3'),
        "column 'age'",
        "set it to 0.9 or 1.2",
    ),
    "half a step": (column('kind = "integer"\nlow = 0\nhigh = 9\nstep = 0.5'), "column 'age'", "like 100"),
    "a step of 0": (column('kind = "number"\nlow = 0\nhigh = 9\nstep = 0'), "column 'age'", "above 0, like 0.01"),
    "a step below 0": (column('kind = "integer"\nlow = 0\nhigh = 9\nstep = -3'), "column 'age'", "at least 1"),
    "a step as text": (column('kind = "number"\nlow = 0\nhigh = 9\nstep = "1"'), "column 'age'", "a number above 0"),
    "a step of no number": (column('kind = "number"\nlow = 0\nhigh = 9\nstep = nan'), "column 'age'", "above 0"),
    "a step beyond high": (column('kind = "integer"\nlow = 0\nhigh = 9\nstep = 10'), "column 'age'", "a smaller one"),
    "too small a step": (
        column('kind = "number"\nlow = 0\nhigh = 1\nstep = 1e-13'),
        "column 'age'",
        "choose a larger step",
    ),
    "too many digits": (
        column('kind = "number"\nlow = 100000000000.1\nhigh = 100000000000.5\nstep = 0.0001'),
        "column 'age'",
        "leave out step",
    ),
    "a step between days": (
        column('kind = "date"\nlow = 2020-01-01\nhigh = 2020-02-01\nstep = 7'),
        "column 'age'",
        "has no entry 'step'",
    ),
    "special values of an interval": (
        column('kind = "number"\nlow = 0\nhigh = 9\nspecial = [0]'),
        "column 'age'",
        "add a step",
    ),
    "special values of too many": (
        column('kind = "integer"\nlow = 0\nhigh = 1_000_000\nspecial = [0]'),
        "column 'age'",
        "at most 100,000 values between low and high; choose a step",
    ),
    "a special value between steps": (
        column('kind = "number"\nlow = 0\nhigh = 9\nstep = 0.5\nspecial = [0.7]'),
        "column 'age'",
        "special lists something that is not a value",
    ),
    "a special value beyond high": (
        column('kind = "integer"\nlow = 0\nhigh = 9\nspecial = [10]'),
        "column 'age'",
        "not a value of the column",
    ),
    "a special value twice": (
        column('kind = "integer"\nlow = 0\nhigh = 9\nspecial = [3, 3]'),
        "column 'age'",
        "twice",
    ),
    "a special value alone": (column('kind = "integer"\nlow = 0\nhigh = 9\nspecial = 3'), "column 'age'", "a list of"),
    "a special truth": (column('kind = "integer"\nlow = 0\nhigh = 9\nspecial = [true]'), "column 'age'", "of numbers"),
    "special values of labels": (
        column('kind = "category"\nvalues = ["a"]\nspecial = ["a"]'),
        "column 'age'",
        "has no entry 'special'",
    ),
    "a band from the lowest value on": (
        column('kind = "integer"\nlow = 0\nhigh = 9\nbands = [0, 5]'),
        "column 'age'",
        "remove the lowest value",
    ),
    "a band of no label": (
        column('kind = "ordinal"\nvalues = ["a", "b"]\nbands = ["c"]'),
        "column 'age'",
        "bands lists something that is not a value",
    ),
    "a band that is no day": (
        column('kind = "date"\nlow = 2020-01-01\nhigh = 2020-02-01\nbands = ["soon"]'),
        "column 'age'",
        "bands must be a date such as",
    ),
    "a band of a number in quotes": (
        column('kind = "ordinal"\nvalues = ["1", "2"]\nbands = [2]'),
        "column 'age'",
        "labels in quotes",
    ),
    "too many bands": (
        column(f'kind = "integer"\nlow = 0\nhigh = 99\nbands = {list(range(1, 90))}'),
        "column 'age'",
        "at most 64",
    ),
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
    "a time with a zone": (
        column('kind = "datetime"\nlow = 2020-01-01T00:00:00Z\nhigh = 2021-01-01T00:00:00'),
        "column 'age': low",
        "without a time zone",
    ),
    "a time in parts of seconds": (
        column('kind = "datetime"\nlow = "2020-01-01 00:00:00.5"\nhigh = 2021-01-01'),
        "column 'age': low",
        "in whole seconds",
    ),
    "a time that is none": (
        column('kind = "datetime"\nlow = "2020-01-01 24:00"\nhigh = 2021-01-01'),
        "column 'age': low",
        "must be a time such as 2024-12-31 18:30:00",
    ),
    "half a second as step": (
        column('kind = "datetime"\nlow = 2020-01-01\nhigh = 2021-01-01\nstep = 0.5'),
        "column 'age'",
        "a whole number of seconds, like 60 or 900",
    ),
    "a time between the steps": (
        column('kind = "datetime"\nlow = 2020-01-01\nhigh = "2020-01-01 23:59:59"\nstep = 900'),
        "column 'age'",
        "set it to 2020-01-01 23:45:00 or 2020-01-02 00:00:00, or change step",
    ),
    "a time at the end of the calendar": (
        column('kind = "datetime"\nlow = 9999-12-31\nhigh = "9999-12-31 23:59:59"\nstep = 900'),
        "column 'age'",
        "set it to 9999-12-31 23:45:00, or change step",
    ),
    "a band between the steps": (
        column('kind = "datetime"\nlow = 2020-01-01\nhigh = 2020-01-02\nstep = 900\nbands = ["2020-01-01 12:01"]'),
        "column 'age'",
        "bands lists something that is not a value",
    ),
    "a format without seconds": (
        column('kind = "datetime"\nlow = 2020-01-01\nhigh = 2020-01-02\nformat = "%d.%m.%Y %H:%M"'),
        "column 'age'",
        "format does not state the second",
    ),
    "a missing time that is a value": (
        column(
            'kind = "datetime"\nlow = 2020-01-01\nhigh = 2020-01-03\nmissing = true\nmissing_codes = ["2020-01-02"]'
        ),
        "column 'age'",
        "is also a value",
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
        "no entry 'max'; it may have bands, decimal, derived, high, low, missing",
    ),
    "values of an integer": (
        column(INTEGER + '\nvalues = ["a"]'),
        "column 'age'",
        "it may have bands, decimal, derived, high, low, missing",
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
    **{
        f"the weight {weight}": (column(INTEGER + f"\nweight = {weight}"), "column 'age'", RULE_OF_WEIGHTS)
        for weight in ("0", "0.0", "-0.5", "1.5", "2", "nan", "inf", "true", '"0.5"', "0.0005", "1e-9", "[1]")
    },
    "a path with an empty part": (paths("a//b"), "column 'age'", 'write "above/code"'),
    "a path that begins with a slash": (paths("/a"), "column 'age'", 'write "above/code"'),
    "a path that ends with a slash": (paths("a/"), "column 'age'", 'write "above/code"'),
    "an empty path": (paths(""), "column 'age'", 'write "above/code"'),
    "a path twice": (paths("a/b", "c", "a/b"), "column 'age'", "'a/b' is listed twice; remove"),
    "a path that is too long": (paths("/".join("a" * (MAX_TREE_DEPTH + 1))), "column 'age'", "shorten"),
    "too many codes": (paths(*(f"c{i}" for i in range(MAX_TREE_CODES + 1))), "column 'age'", "Leave out"),
    "too many codes above": (
        paths(*("/".join(f"{above}.{i}" for above in range(MAX_TREE_DEPTH)) for i in range(MAX_TREE_CODES))),
        "column 'age'",
        "Leave out",
    ),
    "a formula as code": (paths("a/=1+1"), "column 'age'", "start with a letter"),
    "a formula as path": (paths("=1/a"), "column 'age'", "start with a letter"),
    "other as code": (paths("a/other") + "other = true", "column 'age'", "rename it"),
    "no paths": (column(TREE), "column 'age'", "needs values = ["),
    "distances of a tree": (
        paths("a") + "distances = [[0]]",
        "column 'age'",
        "it may have case, derived, labels, missing",
    ),
    **{
        f"the distance {given:.20}": (column(METRIC + between(a_b=given)), "column 'age'", RULE_OF_DISTANCES)
        for given in (
            *("-1", "nan", "inf", "-inf", "1e300", "1e-300", "1000000000001", "true", "[]", '""'),
            *('"x"', '"NaN"', '"0x1"', '"1_0"', '"１"', '"٣"', '"1e-13"', '"1 2"', "0x" + "f" * 6_000, "2020-01-01"),
            *('"1' + " " * 50 + '2"', '"1e999999999"', '"0e999999999"', '"1.' + "0" * 60 + '"', "-1" + "0" * 4_000),
        )
    },
    "no distances": (column(METRIC), "column 'age'", 'matrix = "file.csv", or values and distances'),
    "distances in no rows": (column(METRIC + "distances = [0, 1]"), "column 'age'", "[[0, 1], [1, 0]]"),
    "distances of fewer labels": (column(METRIC + "distances = [[0, 1], [1, 0]]"), "column 'age'", "3 × 3"),
    "ragged distances": (column(METRIC + "distances = [[0, 1, 1], [1, 0], [1, 1, 0]]"), "'age'", "as many rows as"),
    "very wide distances": (column(METRIC + f"distances = [[{'0,' * 200_000}]]"), "'age'", "as many rows as"),
    "a distance to itself": (
        column(METRIC + between(diagonal="0.5")),
        "column 'age'",
        "the distance of 'b' to itself is 0.5, not 0",
    ),
    "no distance": (column(METRIC + between(b_c="0")), "column 'age'", "make them one label"),
    "two distances of one pair": (
        column(METRIC + "distances = [[0, 1, 1], [1, 0, 0.75], [1, 1, 0]]"),
        "column 'age'",
        "from 'b' to 'c' it is 0.75, and back 1; a metric has one distance for both",
    ),
    "a way that is a detour": (
        column(METRIC + between("1", "1.5", "2.6")),
        "column 'age'",
        "from 'a' to 'c' it is 2.6, but over 'b' only 1 + 1.5: not a metric. Lower the first to their sum",
    ),
    "a matrix and distances": (column(METRIC + between() + '\nmatrix = "m.csv"'), "column 'age'", "leave values"),
    "a matrix of a schema without a file": (
        column('kind = "metric"\nmatrix = "m.csv"'),
        "column 'age'",
        "write the values into it",
    ),
    "no column at all": ('[table]\nname = "x"', "names no column", "add at least one"),
    "an unknown section": ("[tabel]\n", "'tabel'", "[table] and [[column]]"),
    "an unknown entry of the table": ("[table]\nowner = 1", "'owner'", "name, unit and draft"),
    "table as a list": ("[[table]]\n", "[table] once", "[[column]] for each"),
    "column as a table": ("[column]\n", "[table] once", "[[column]] for each"),
    "columns that are numbers": ("column = [1]", "column 1", 'write name = "…"'),
    "a draft that is a word": ('[table]\ndraft = "yes"', "draft", "true or false"),
    "a target that is a word": (column(INTEGER + '\ntarget = "yes"'), "column 'age'", "true or false"),
    "two targets": (
        column(INTEGER + "\ntarget = true", name='"a"') + column(INTEGER + "\ntarget = true", name='"b"'),
        "'a', 'b'",
        "leave it at one",
    ),
    "a derived target": (
        column(INTEGER, name='"a"') + column(INTEGER + '\nderived = { expression = "a" }\ntarget = true', name='"b"'),
        "'b' is derived",
        "one of 'a'",
    ),
    "a unit with a control character": ('[table]\nunit = "\\u0000"\n' + column(INTEGER), "unit", "remove it"),
    "not TOML": ("[[column", "not valid TOML", "docs/reference/schema.md"),
    "a number of 5,000 digits": (f"column = {'9' * 5000}", "not valid TOML", "docs/reference/schema.md"),
    "deep nesting": ("column = " + "[" * 100_000, "not valid TOML", "docs/reference/schema.md"),
    "deep tables": ("column = " + "{a=" * 100_000, "not valid TOML", "docs/reference/schema.md"),
    "a key of many parts": ("a." * 1_000_000 + "a = 1", "dots", "keys have none"),
    "a header of many parts": ("[" + "a." * 1_000_000 + "a]", "dots", "keys have none"),
    "a key of many digits": ("1." * 1_000_000 + "1 = 1", "dots", "keys have none"),
    "a key of many digits and spaces": ("1.1 . " * 300_000 + "1 = 1", "dots", "keys have none"),
    "digits without end": ("1" * 10_000_000, "not valid TOML", "docs/reference/schema.md"),
    "an inline key of many parts": ("x = {" + "'a' . " * 300_000 + "a = 1}", "dots", "keys have none"),
    "quotes that hide a key": ('"\\"' * 100_000 + "\n" + "a." * 100_000 + "a = 1", "dots", "keys have none"),
    "too many columns": (
        "".join(column(INTEGER, name=f'"c{i}"') for i in range(MAX_COLUMNS + 1)),
        "1001 columns",
        "at most 1000",
    ),
    "names that differ in case": (
        column(INTEGER, name='"Age"') + column(INTEGER),
        "columns 'Age' and 'age' differ in case only",
        "rename one",
    ),
    "too many codes in all": (
        "".join(
            f'[[column]]\nname = "{c}"\nkind = "tree"\nvalues = {json.dumps([f"{c}/{i}" for i in range(4_000)])}\n'
            for c in range(7)
        ),
        "pairs of codes in all; 100,000,000 are supported",
        "Leave out",
    ),
    "a key without end": ("x" * 10_000 + " = 1", "unknown entry 'xxx", "a schema has"),
    "a header without end, twice": (f"[{'x' * 10_000}]\n" * 2, "not valid TOML", "docs/reference/schema.md"),
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
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    message = str(caught.value)
    assert names in message
    assert remedy in message
    assert "\n" not in message
    assert len(message) < 2_000


def test_a_target_comes_back_from_its_file_and_leaves_with_its_column() -> None:
    schema = Schema.parse(column(INTEGER, name='"a"') + column(INTEGER + "\ntarget = true", name='"b"'))
    assert schema.target == "b"
    assert Schema.parse(schema.to_toml()) == schema
    assert schema.select(["b"]).target == "b"
    assert schema.select(["a"]).target is None


def test_hostile_texts_are_refused_with_little_work() -> None:
    """A parser that copied or walked each part of a key would make millions of calls."""
    hostile = [case for case in REFUSED if case.startswith(("deep ", "a key of many", "a header of many"))]
    assert len(hostile) == 6
    for case in [*hostile, "an inline key of many parts", "digits without end", "quotes that hide a key"]:

        def parse(text: str = REFUSED[case][0]) -> None:
            with pytest.raises(SchemaError):
                Schema.parse(text)

        assert calls_made(parse) < 20_000, case


def test_dots_in_texts_and_comments_are_no_keys() -> None:
    dots = "." * 100
    schema = Schema.parse(f'# {dots}\n[table]\nname = "{dots}"\n' + column(CATEGORY + f'values = ["{dots}x", "y"]'))
    assert schema.name == dots


def test_the_longest_text_is_allowed() -> None:
    name = "x" * MAX_TEXT_CHARACTERS
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
    os.mkfifo(tmp_path / "pipe.toml")  # nobody writes to it: whoever waits for it waits forever
    for path, says in [
        (tmp_path / "none.toml", "no such file"),
        (tmp_path / "people.csv", "that is a table"),
        (tmp_path, "Is a directory"),
        (tmp_path / "binary.toml", "UTF-8"),
        (tmp_path / "pipe.toml", "Not a regular file"),
        ("/dev/null", "Not a regular file"),
        ("/dev/zero", "Not a regular file"),
        ("a\0b.toml", "Cannot be read"),
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


# ------------------------------------------------------------ matrices in files

PLAIN_MATRIX = ",a,b\na,0,2\nb,2,0\n"


def matrix_schema(folder: Path, name: str = "m.csv", rest: str = "") -> Path:
    file = folder / "schema.toml"
    file.write_text(column(f'kind = "metric"\nmatrix = {json.dumps(name)}\n{rest}'), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "matrix",
    {
        "plain": PLAIN_MATRIX.encode(),
        "a byte order mark": b"\xef\xbb\xbf" + PLAIN_MATRIX.encode(),
        "Windows lines": PLAIN_MATRIX.replace("\n", "\r\n").encode(),
        "no last line break": PLAIN_MATRIX.strip().encode(),
        "spaces": b" , a , b\n a,  0 , 2\nb , 2,0 \n",
        "quotes": b'"","a","b"\n"a","0","2"\n"b","2","0"\n',
        "spaces and quotes": b', "a", "b"\n"a", "0", "2"\n"b", "2", "0"\n',
        "empty lines": PLAIN_MATRIX.replace("\n", "\n\n").encode(),
        "a word in the corner": b"code" + PLAIN_MATRIX.encode(),
        "forms of numbers": b",a,b\na,-0.0,2.000\nb,.2e1,+0e0\n",
    }.items(),
    ids=lambda case: case[0],
)
def test_reads_a_matrix_beside_the_schema(matrix: tuple[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes(matrix[1])
    schema = Schema.load(matrix_schema(tmp_path, rest="other = true\nweight = 0.25"))
    assert schema.columns == (
        Category(
            name="age",
            kind="metric",
            weight=Fraction(1, 4),
            values=("a", "b"),
            other=True,
            distances=((Fraction(0), Fraction(2)), (Fraction(2), Fraction(0))),
        ),
    )
    assert "m.csv" not in schema.to_toml()
    assert Schema.parse(schema.to_toml()) == schema  # needs no other file


def test_labels_of_a_matrix_may_hold_commas_and_quotes(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(',"a, b","say ""c"""\n"a, b",0,1\n"say ""c""",1,0\n')
    (loaded,) = Schema.load(matrix_schema(tmp_path))
    assert isinstance(loaded, Category)
    assert loaded.values == ("a, b", 'say "c"')


def test_reads_a_matrix_in_a_folder_below_and_through_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "m.csv").write_text(PLAIN_MATRIX)
    (tmp_path / "link.csv").symlink_to(tmp_path / "below" / "m.csv")
    first, second = (Schema.load(matrix_schema(tmp_path, name)) for name in ("below/m.csv", "link.csv"))
    assert first == second


MATRIX_LAYOUT = "an empty field and all labels in its first line"
REFUSED_MATRICES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", MATRIX_LAYOUT),
    "only a header": (b",a,b\n", MATRIX_LAYOUT),
    "no header": (b"a,0,2\nb,2,0\n", MATRIX_LAYOUT),
    "no labels before rows": (b"a,b\n0,2\n2,0\n", MATRIX_LAYOUT),
    "labels in another order": (b",a,b\nb,2,0\na,0,2\n", MATRIX_LAYOUT),
    "ragged": (b",a,b\na,0\nb,2,0\n", MATRIX_LAYOUT),
    "not square": (b",a,b\na,0,2\n", MATRIX_LAYOUT),
    "semicolons": (b";a;b\na;0;2\nb;2;0\n", MATRIX_LAYOUT),
    "a label twice": (b",a,a\na,0,2\na,2,0\n", "'a' is listed twice; remove"),
    "a formula as label": (b",=1,a\n=1,0,2\na,2,0\n", "start with a letter"),
    "an empty distance": (b",a,b\na,0,\nb,2,0\n", RULE_OF_DISTANCES),
    "not a metric": (b",a,b,c\na,0,1,3\nb,1,0,1\nc,3,1,0\n", "over 'b' only 1 + 1: not a metric"),
    "not UTF-8": (b",\xff\n\xff,0\n", "not a CSV file in UTF-8; save it as one"),
    "a quote without end": (b',"a\na,0\n', "not a CSV file in UTF-8; save it as one"),
    "a very long field": (b"," + b"a" * 200_000 + b"\n", "not a CSV file"),
    "too many labels": (b",a\n" + b"a,0\n" * 501, "501 labels; at most 500"),
    "8 megabytes": (b"," * (8 * 2**20 + 1), "larger than 8 MB; list fewer"),
    **{
        f"the distance {given}": (f",a,b\na,0,{given}\nb,{given},0\n".encode(), RULE_OF_DISTANCES)
        for given in ("x", "NaN", "inf", "-1", "1e13", "1e-300", "0x1", "１", "٣", "1_0", "1e999999999", "true")
    },
}


@pytest.mark.parametrize("case", REFUSED_MATRICES)
def test_refuses_a_matrix(case: str, tmp_path: Path) -> None:
    matrix, remedy = REFUSED_MATRICES[case]
    (tmp_path / "m.csv").write_bytes(matrix)
    with pytest.raises(SchemaError) as caught:
        Schema.load(matrix_schema(tmp_path))
    message = str(caught.value)
    assert message.startswith("column 'age': ")
    assert remedy in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.csv", "No such file or directory. Check the name"),
        ("folder", "Is a directory. Check the name"),
        (".", "Is a directory. Check the name"),
        ("x" * 900, "File name too long. Check the name"),
        ("m.csv/m.csv", "Not a directory. Check the name"),
        ("pipe.csv", "Not a regular file. Check the name"),
        ("../outside.csv", "must be a file in the schema's folder"),
        ("folder/../m.csv", "must be a file in the schema's folder"),
        ("/outside.csv", "must be a file in the schema's folder"),
        ("out.csv", "must be a file in the schema's folder"),
        ("out/outside.csv", "must be a file in the schema's folder"),
        ("circle.csv", "must be a file in the schema's folder"),
        ("", "matrix must be a text"),
        ("a\x00b", "control character; remove it"),
    ],
)
def test_refuses_a_matrix_that_is_not_a_file_beside_the_schema(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "outside.csv").write_text(PLAIN_MATRIX)
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    (home / "m.csv").write_text(PLAIN_MATRIX)
    (home / "out.csv").symlink_to(tmp_path / "outside.csv")
    (home / "out").symlink_to(tmp_path)
    (home / "circle.csv").symlink_to(home / "circle.csv")
    os.mkfifo(home / "pipe.csv")
    name = str(tmp_path) + name if name.startswith("/") else name
    with pytest.raises(SchemaError) as caught:
        Schema.load(matrix_schema(home, name))
    message = str(caught.value)
    assert message.startswith("column 'age': matrix")
    assert says in message
    assert "\n" not in message


def test_refuses_a_matrix_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.csv").write_text(PLAIN_MATRIX)

    def denied(path: Path, *, max_bytes: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("certsynth.domain.labels.read_small_file", denied)  # by hand: for root every file may be read
    with pytest.raises(SchemaError, match=r"column 'age': matrix: 'm\.csv': Permission denied\. Check the name"):
        Schema.load(matrix_schema(tmp_path))
