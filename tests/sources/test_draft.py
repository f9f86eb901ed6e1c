"""A drafted schema: sensible for tidy rows, and a schema that can be loaded whatever the rows hold."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import FORMS, OBJECTS

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.schema import describe, entry_lines
from certsynth.errors import InputError, SchemaError
from certsynth.sources import cleaned, open_source
from certsynth.sources.check import check
from certsynth.sources.diagnosis import SENTINELS
from certsynth.sources.draft import MAX_LISTED_LABELS, draft_schema, draft_table

EPOCH = datetime.date(1970, 1, 1).toordinal()


def drafted(values: Any) -> Column:
    frame = values if isinstance(values, pl.DataFrame) else pd.DataFrame({"x": pd.Series(values, dtype=object)})
    schema = draft_schema(frame)
    assert schema.draft
    assert Schema.parse(schema.to_toml()) == schema
    (column,) = schema
    return column


def integer(low: int, high: int, *, missing: bool = False) -> Ordered:
    return Ordered(name="x", missing=missing, kind="integer", low=low, high=high)


def number(low: float, high: float, *, missing: bool = False) -> Ordered:
    return Ordered(name="x", missing=missing, kind="number", low=low, high=high)


def date(low: str, high: str, *, missing: bool = False) -> Ordered:
    ends = (datetime.date.fromisoformat(day).toordinal() - EPOCH for day in (low, high))
    return Ordered(name="x", missing=missing, kind="date", low=next(ends), high=next(ends))


def category(*values: str, missing: bool = False, other: bool = False) -> Category:
    return Category(name="x", missing=missing, values=values, other=other)


def boolean(*, missing: bool = False) -> Category:
    return Category(name="x", missing=missing, kind="boolean", values=("false", "true"))


DRAFTS: dict[str, tuple[list[Any], Column]] = {
    "integers": (list(range(17, 99)), integer(17, 98)),
    "few integers": ([1, 2, 1], integer(1, 2)),
    "integers as text": (["3", " -4 ", "5.0"], integer(-4, 5)),
    "integers with holes": ([1.0, None, 3.0], integer(1, 3, missing=True)),
    "one integer": ([5, 5], integer(5, 6)),
    "the largest integer": ([2**53], integer(2**53 - 1, 2**53)),
    "an infinity among integers": ([1, 2, float("inf")], integer(1, 2)),
    "integers that are too far apart": ([0, 2**50], number(0.0, 2.0**50)),
    "integers that are too large": ([10**400, 0], integer(0, 1)),
    "numbers": (["0.5", "1e3"], number(0.5, 1000.0)),
    "one number": ([2.5], number(1.25, 2.5)),
    "one negative number": ([-0.5], number(-0.5, 0.5)),
    "enormous numbers": ([1.5e300, -2.5e300], number(-1e300, 1e300)),
    "only infinities": ([float("inf"), float("-inf")], integer(0, 1)),
    "codes with zeros": (["00123", "123"], category("00123", "123")),
    "a zero is no code": (["0", "0.5"], number(0.0, 0.5)),
    "dates": (["2020-02-29", "2019-01-01 10:00"], date("2019-01-01", "2020-02-29")),
    "date objects": ([datetime.date(2020, 2, 29), None], date("2020-02-29", "2020-03-01", missing=True)),
    "the last day": (["9999-12-31"], date("9999-12-30", "9999-12-31")),
    "not all dates": (["2020-02-29", "2020-02-30"], category("2020-02-29", "2020-02-30")),
    "truths": (["TRUE", "false"], boolean()),
    "bools": ([True, None], boolean(missing=True)),
    "bools and numbers": ([True, 2], integer(1, 2)),
    "labels": (["b", "a", "b"], category("a", "b")),
    "Namibia": (["NA", "CH"], category("CH", "NA")),
    "labels with holes": (["a", None, ""], category("a", missing=True)),
    "formulas": (["=1+1", "@x", "-x", "-1", "a"], category("-1", "a", other=True)),
    "only formulas": (["=1+1"], category("value", other=True)),
    "control characters": (["a\nb", "\x9b", "\udcff", "c"], category("c", other=True)),
    "long labels": (["x" * 1001, "y"], category("y", other=True)),
    "a label called other": (["other", "=1"], category("value", other=True)),
    "a label called other alone": (["other", "a"], category("a", "other")),
    "bytes and lists": ([b"x", [1], {"a": 1}], category("value", missing=True, other=True)),
    "nothing but holes": ([None, float("nan")], category("value", missing=True, other=True)),
    "no rows": ([], category("value", other=True)),
    "a word for holes and nothing else": (["NA", "NA"], category("NA")),
}


@pytest.mark.parametrize("case", DRAFTS)
def test_drafts(case: str) -> None:
    values, column = DRAFTS[case]
    assert drafted(values) == column


@pytest.mark.parametrize(
    ("series", "column"),
    [
        (pl.Series([3, None, 5], dtype=pl.UInt8), integer(3, 5, missing=True)),
        (pl.Series([0.5, float("nan")]), number(-0.5, 0.5, missing=True)),
        (pl.Series([True, False]), boolean()),
        (pl.Series([datetime.datetime(2020, 2, 29), None]), date("2020-02-29", "2020-03-01", missing=True)),
        (pl.Series(["b", "a"], dtype=pl.Categorical), category("a", "b")),
        (pl.Series([2**100], dtype=pl.Int128), number(2.0**99, 2.0**100)),
    ],
)
def test_drafts_from_typed_columns(series: pl.Series, column: Column) -> None:
    assert drafted(pl.DataFrame({"x": series})) == column


def test_of_many_labels_the_most_frequent_are_kept() -> None:
    many = [f"label {i}" for i in range(MAX_LISTED_LABELS + 20)]
    often = many[10 : 10 + MAX_LISTED_LABELS]
    assert drafted(many + often) == category(*sorted(often), other=True)
    assert drafted(often * 2) == category(*sorted(often))


def test_texts_without_end_are_not_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certsynth.sources.summary.MAX_DISTINCT_TEXTS", 3)
    assert drafted(["a", "b", "c", "d", "a"]) == category("a", "b", "c", other=True)


def test_columns_without_a_usable_name_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("=1+1,,a\n1,2,3\n")
    assert draft_schema(path).names == ("a",)
    path.write_text("=1+1,\n1,2\n")
    with pytest.raises(InputError, match="no column has a name that a schema could use"):
        draft_schema(path)


@pytest.mark.slow
def test_at_most_as_many_columns_as_a_schema_may_have() -> None:
    schema = draft_schema(pd.DataFrame({f"c{i}": [1] for i in range(1_001)}))
    assert len(Schema.parse(schema.to_toml())) == 1_000


@pytest.mark.parametrize(("name", "kept"), [("people 2020", "people 2020"), ("=x", "table"), ("", "table")])
def test_the_name_of_the_table_is_one_that_a_schema_may_have(name: str, kept: str) -> None:
    assert draft_schema(duckdb.sql("SELECT 1 AS a"), name).name == kept


def test_drafts_across_batches(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,x\n" * 150_000 + ",y\n0.5,x\n")
    a, b = draft_schema(open_source(path))
    assert (a.kind, a.low, a.high, a.missing) == ("number", 0.5, 1.0, True)  # type: ignore[attr-defined]
    assert b == Category(name="b", values=("x", "y"))


@pytest.mark.parametrize("form", FORMS)
def test_a_draft_of_the_nasty_table_describes_it(form: str, tmp_path: Path) -> None:
    data = FORMS[form](tmp_path)
    schema = draft_schema(data)
    assert Schema.parse(schema.to_toml()) == schema
    for batch in cleaned(open_source(data), schema):
        for column, clean in zip(schema, batch, strict=True):
            codes = column.to_cells(clean, column.cells(16))
            assert codes.min() >= 0
            assert codes.max() < column.cells(16).size


odd = st.one_of(st.sampled_from(OBJECTS), st.text(max_size=4), st.integers(), st.floats(), st.dates(), st.decimals())


@settings(max_examples=150, deadline=None)
@given(st.lists(odd, max_size=8))
def test_any_rows_give_a_schema_that_can_be_loaded(values: list[Any]) -> None:
    column = drafted(values)
    clean = column.clean(np.fromiter(values, object, len(values)))
    assert len(clean) == len(values)


def not_a_sentinel(value: int) -> bool:
    return str(value) not in SENTINELS


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-50, 50).filter(not_a_sentinel)), min_size=1, max_size=30))
def test_a_draft_clamps_no_row_that_it_has_seen(values: list[int | None]) -> None:
    column = drafted(values)
    written = column.decode(column.clean(np.fromiter(values, object, len(values))))
    if any(value is not None for value in values):
        assert written.tolist() == values


# ------------------------------------------------------------ options for reading

NUMBERS = [str(i) for i in range(20)]

READINGS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "a decimal comma": (["3,5", "4,25"], {"kind": "number", "low": 3.5, "high": 4.25, "decimal": ","}),
    "a thousands separator": (["1,234", "999"], {"kind": "integer", "low": 999, "high": 1234, "thousands": ","}),
    "euros": (
        ["€1.234,50", "7,25 €", "-€3"],
        {"kind": "number", "low": -3.0, "high": 1234.5, "decimal": ",", "thousands": ".", "symbol": "€"},
    ),
    "two spellings of one currency": (["7 EUR", "€8"], {"kind": "integer", "symbol": ["EUR", "€"]}),
    "two currencies": (["$7", "€8"], {"kind": "category"}),
    "percent": (["7%", "12.5 %"], {"kind": "number", "low": 7.0, "high": 12.5, "symbol": "%"}),
    "a letter is no unit": (["A7", "A8"], {"kind": "category"}),
    "groups that are not of three": (["1,23,456", "7"], {"kind": "category"}),
    "days first": (["25/03/2020", "1/4/2020"], {"kind": "date", "format": "%d/%m/%Y"}),
    "months first": (["03/25/2020", "4/1/2020"], {"kind": "date", "format": "%m/%d/%Y"}),
    "dotted dates": (["25.03.20", "01.04.21"], {"kind": "date", "format": "%d.%m.%y"}),
    "months in words": (["25 Mar 2020", "1 apr 2020"], {"kind": "date", "format": "%d %b %Y"}),
    "a code among integers": (
        ["7", "NA", "9"],
        {"kind": "integer", "low": 7, "high": 9, "missing": True, "missing_codes": ["NA"]},
    ),
    "codes among numbers": ([*NUMBERS, "0.5", "N", "?"], {"kind": "number", "missing_codes": ["?", "N"]}),
    "a code among dates": (["25/03/2020", "-"], {"kind": "date", "format": "%d/%m/%Y", "missing_codes": ["-"]}),
    "an unknown word among many numbers": ([*NUMBERS, "refused"], {"kind": "integer", "missing_codes": ["refused"]}),
    "an unknown word among few numbers": (["1", "2", "refused"], {"kind": "category"}),
    "a sentinel below": (
        [*NUMBERS, "-9"],
        {"kind": "integer", "low": 0, "high": 19, "missing": True, "missing_codes": ["-9"]},
    ),
    "a typed sentinel": ([*range(20), -9, -99], {"kind": "integer", "low": 0, "missing_codes": ["-9", "-99"]}),
    "a sentinel above": ([*NUMBERS, "999"], {"kind": "integer", "high": 19, "missing_codes": ["999"]}),
    "a sentinel within the bulk": ([str(i) for i in range(80, 105)], {"kind": "integer", "low": 80, "high": 104}),
    "a negative number among others": ([*NUMBERS, "-9", "-2"], {"kind": "integer", "low": -9}),
    "minus one": ([*NUMBERS, "-1"], {"kind": "integer", "low": -1, "missing": False}),
    "blanks": ([" b", "a", "b"], {"kind": "category", "values": ["a", "b"], "strip": True}),
    "blanks alone": ([" b", "  "], {"kind": "category", "values": ["b"], "strip": True, "missing": True}),
    "capitals": (["Male", "male", "Male"], {"kind": "category", "values": ["Male"], "case": "ignore"}),
    "letters": (["a", "A"], {"kind": "category", "values": ["A", "a"]}),
    "yes and no": (["yes", "no", "Yes"], {"kind": "boolean", "values": ["no", "Yes"]}),
    "zero and one": ([0, 1, 1], {"kind": "boolean", "values": ["0", "1"], "missing": False}),
    "ja and nein": (["ja", "nein", ""], {"kind": "boolean", "values": ["nein", "ja"], "missing": True}),
    "truths with a code": (["Y", "N", "U"], {"kind": "boolean", "values": ["N", "Y"], "missing_codes": ["U"]}),
}
OPTIONS = {"strip", "case", "decimal", "thousands", "symbol", "format", "missing_codes"}


@pytest.mark.parametrize("case", READINGS)
def test_proposes_options_with_which_all_texts_fit(case: str) -> None:
    values, expected = READINGS[case]
    entries = describe(drafted(values))
    assert {key: entries.get(key) for key in expected} == expected
    assert not (OPTIONS & entries.keys()) - expected.keys()
    assert check(pd.DataFrame({"x": pd.Series(values, dtype=object)}), draft_schema(frame_of(values))).fits


def frame_of(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(values, dtype=object)})


def test_options_hold_for_all_texts_also_when_these_are_too_many_to_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("certsynth.sources.summary.MAX_DISTINCT_TEXTS", 5)
    amounts = [f"{i}.{i:03},50 €" for i in range(1, 40)]
    path = tmp_path / "x.csv"
    rows = [f'"{amount}",{2 * i}/3/2020,{i},{i}' for i, amount in enumerate(amounts, start=1) if i < 16] * 9_000
    path.write_text("\n".join(["a,b,c,d", *rows, '"N",2/3/2020,2.5,7', '"999.999,50 €",7/3/2020,-7,007']) + "\n")
    a, b, c, d = map(describe, draft_schema(path))
    assert (a["low"], a["high"], a["decimal"], a["thousands"]) == (1001.5, 999999.5, ",", ".")
    assert a["missing_codes"] == ["N"]
    assert (b["kind"], b["format"]) == ("date", "%d/%m/%Y")
    assert (c["kind"], c["low"], c["high"]) == ("number", -7.0, 15.0)
    assert d["kind"] == "category"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(10**7), 10**7).filter(not_a_sentinel), min_size=1, max_size=20),
    st.sampled_from([("", ""), (",", ""), (".", ","), (",", "."), (",", " "), (".", "'")]),
    st.sampled_from(["{}", "€{}", "{} %", "$ {}"]),
    st.lists(st.sampled_from(["N", "NA", "?", ""]), max_size=3),
)
def test_a_draft_fits_the_rows_that_it_was_made_from(
    cents: list[int], signs: tuple[str, str], form: str, codes: list[str]
) -> None:
    decimal, thousands = signs
    values = [form.format(written_amount(each, decimal, thousands)) for each in cents] + codes
    found = check(frame_of(values), draft_schema(frame_of(values)))
    assert found.fits, (values, found)


def written_amount(cents: int, decimal: str, thousands: str) -> str:
    whole, rest = divmod(abs(cents), 100)
    groups = f"{whole:,}".replace(",", thousands)
    return f"{'-' * (cents < 0)}{groups}" + (f"{decimal}{rest:02}" if decimal else "")


# ------------------------------------------------------------ notes


def notes(values: Any, name: str = "x") -> str:
    draft = draft_table(pl.DataFrame({name: pl.Series(values, strict=False)}))
    assert Schema.parse(draft.to_toml()) == draft.schema
    return " ".join(draft.notes.get(name, ()))


NOTED: dict[str, tuple[Any, str]] = {
    "an identifier": ([f"p{i:05}" for i in range(100)], "Nearly every row has its own text"),
    "serial numbers": (list(range(1_000, 1_100)), "Nearly every row has its own number"),
    "free text": ([f"the {i} quick brown foxes" for i in range(60)] * 2, "Free text"),
    "a constant": (["a"] * 9, "All rows hold the same value"),
    "many labels": ([f"label {i % 70}" for i in range(210)], "70 labels: the 50 most frequent are listed"),
    "codes": ([1, 2] * 9, 'Codes rather than numbers? Then write:\nkind = "category"\nvalues = ["1", "2"]'),
    "skewed amounts": ([*range(1, 200), 10**6], "Skewed"),
    "times of day": (["2020-01-01 10:30", "2020-01-02 00:00"], "time of day"),
    "typed times of day": ([datetime.datetime(2020, 1, 1, 10), datetime.datetime(2020, 1, 2)], "time of day"),
    "either order of day and month": (["01/02/2020", "03/04/2020"], "Day first or month first"),
    "a word in a category": (["NA", "CH", "NA"], "Do some labels mean missing?"),
    "minus one": ([*range(20), -1], "-1 may mean missing"),
    "codes of missing values": (["7", "8", "N"], "Some texts are read as missing"),
    "truths": ([0, 1], "taken for false and true"),
}


@pytest.mark.parametrize("case", NOTED)
def test_notes_what_a_person_must_decide(case: str) -> None:
    values, says = NOTED[case]
    assert says in notes(values)


@pytest.mark.parametrize("values", [["a", "b"] * 9, list(range(17, 60)) * 2, ["2020-01-01", "2020-01-02"], [0.5, 0.7]])
def test_notes_nothing_about_an_ordinary_column(values: list[Any]) -> None:
    assert notes(values) == ""


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ([*range(1, 200), 10**6], {"scale": "log"}),
        (
            ["2020-01-01 10:30", "2020-01-02 00:00"],
            {"kind": "datetime", "high": datetime.datetime(2020, 1, 2, 23, 59, 59)},
        ),
        (
            ["25/01/2020 10:30", "26/01/2020 00:00"],
            {"kind": "datetime", "high": datetime.datetime(2020, 1, 26, 23, 59), "step": 60},
        ),
        ([1, 2] * 9, {"kind": "category", "values": ["1", "2"]}),
    ],
)
def test_a_suggestion_can_be_copied_into_the_schema(values: list[Any], lines: dict[str, Any]) -> None:
    (column,) = (draft := draft_table(pl.DataFrame({"x": values}))).schema
    (note,) = (note for note in draft.notes["x"] if "\n" in note)
    assert tomllib.loads(note.partition("\n")[2]) == lines
    dropped = {"low", "high"} if lines.get("kind") == "category" else set()
    entries = {key: value for key, value in describe(column).items() if key not in dropped}
    Schema.parse("\n".join(["[[column]]", *entry_lines(entries | lines)]))


def test_lists_no_texts_of_identifiers_and_free_text() -> None:
    for values in (NOTED["an identifier"][0], NOTED["free text"][0]):
        assert drafted(values) == category("value", other=True)


def test_notes_functions_of_other_columns() -> None:
    table = pl.DataFrame({"code": [i % 12 for i in range(300)], "group": [i % 12 // 4 for i in range(300)]})
    table = table.with_columns(free=pl.Series([(i * i) % 7 for i in range(300)]))
    found = draft_table(table).notes
    assert 'derived = { from = "code", map = "FILE.csv" }' in " ".join(found["group"])
    assert not any("derived" in note for name in ("code", "free") for note in found.get(name, ()))


def test_of_two_names_for_the_same_the_second_is_a_function() -> None:
    table = pl.DataFrame({"a": [f"a{i % 5}" for i in range(90)], "b": [f"b{i % 5}" for i in range(90)]})
    assert list(draft_table(table).notes) == ["b"]


def test_comments_are_ignored_by_the_parser_whatever_the_rows_hold() -> None:
    numbers = [str(i) for i in range(118)]
    columns = {'a"\\': ["[[column]]", "x # y"] * 60, "b": ["x\u2028y", "x\ny"] * 60}
    columns |= {"c": [f'"{i}' for i in range(120)], "d": [*numbers, "\x01", "a\nb"], "e": [*numbers, "]", "\u2028."]}
    table = pl.DataFrame(columns)
    draft = draft_table(table)
    assert Schema.parse(draft.to_toml()) == draft.schema


def test_a_draft_asks_for_the_unit() -> None:
    assert draft_schema(pl.DataFrame({"a": [1]})).unit.startswith("?")


# ------------------------------------------------------------ codes of a tree

CODES = ("1", "1/11", "1/12", "2", "2/NA")


def coded(values: Any, codes: tuple[str, ...] = CODES) -> Category:
    frame = values if isinstance(values, pl.DataFrame) else pd.DataFrame({"x": pd.Series(values)})
    schema = draft_schema(frame, trees={"x": codes})
    assert Schema.parse(schema.to_toml()) == schema
    (column,) = schema
    assert isinstance(column, Category)
    assert (column.kind, ["/".join(path) for path in column.paths]) == ("tree", list(codes))
    return column


CODED_ROWS: dict[str, tuple[Any, bool, bool]] = {  # rows, whether missing, whether other
    "texts": (["11", "2", "11"], False, False),
    "paths": (["1/11", "2/NA"], False, False),
    "integers": ([11, 12, 2], False, False),
    "floats": ([11.0, 2.0], False, False),
    "floats with holes": ([11.0, np.nan], True, False),
    "none": ([None, "11"], True, False),
    "empty texts": (["", "11"], True, False),
    "no rows": ([], False, False),
    "an unlisted text": (["11", "13"], False, True),
    "an unlisted integer": ([11, 13], False, True),
    "an unlisted float": ([11.0, 11.5], False, True),
    "an unlisted date": (pd.to_datetime(["2020-01-01"]), False, True),
    "an unlisted truth": ([True, False], False, True),
    "a code that is a word for holes elsewhere": (["11", "NA"], False, False),
    "a word for holes": (["11", "n/a"], True, False),
    "a word for holes in capitals": (["11", "NULL"], True, False),
    "holes of both kinds and others": (["11", "NULL", "", "13"], True, True),
    "categories of pandas": (pd.Categorical(["11", "2"]), False, False),
    "categories of pandas that are integers": (pd.Categorical([11, 13]), False, True),
    "integers of Arrow": (pd.array([11, None], dtype="int64[pyarrow]"), True, False),
    "categories of polars": (pl.DataFrame({"x": pl.Series(["11", "2"], dtype=pl.Categorical)}), False, False),
    "an enumeration of polars": (pl.DataFrame({"x": pl.Series(["13"], dtype=pl.Enum(["11", "13"]))}), False, True),
}


@pytest.mark.parametrize("case", CODED_ROWS)
def test_drafts_a_tree_with_room_for_what_was_seen(case: str) -> None:
    values, missing, other = CODED_ROWS[case]
    column = coded(values)
    assert (column.values, column.missing, column.other) == (("1", "11", "12", "2", "NA"), missing, other)


def test_unlisted_codes_without_end_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certsynth.sources.summary.MAX_DISTINCT_TEXTS", 1)
    assert coded(["11", "13"]).other


def test_other_columns_are_drafted_as_ever() -> None:
    first, second = draft_schema(pd.DataFrame({"x": [11, 12], "y": [11, 12]}), trees={"x": CODES})
    assert (getattr(first, "kind", ""), getattr(second, "kind", "")) == ("tree", "integer")


@pytest.mark.parametrize(
    ("column", "codes", "says"),
    [
        ("z", CODES, "column 'z' is not in the data, which has: x"),
        ("x", (), "column 'x': needs values"),
        ("x", ("a", "a"), "column 'x': the value 'a' is listed twice; remove one"),
        ("x", ("a//b",), "column 'x': the path 'a//b' has an empty part"),
        ("x", ("=1",), "column 'x': value '=1' would run as a formula"),
        ("x", ("1", "other"), "column 'x': with other = true the label \"other\" is taken; rename it"),
    ],
)
def test_refuses_codes_that_no_schema_may_have(column: str, codes: tuple[str, ...], says: str) -> None:
    with pytest.raises((InputError, SchemaError), match=says) as caught:
        draft_schema(pd.DataFrame({"x": [1, 99]}), trees={column: codes})
    assert "\n" not in str(caught.value)


def test_of_names_that_differ_in_case_the_first_is_kept() -> None:
    drafted = draft_schema(pl.DataFrame({"Age": [1, 2], "x": [1, 2], "age": ["a", "b"]}))
    assert drafted.names == ("Age", "x")


def test_a_draft_of_times_suggests_bounds_that_hold_them(tmp_path: Path) -> None:
    """Times of the last day lie after its midnight."""
    data = tmp_path / "times.csv"
    data.write_text("at,when\n2020-03-01 10:00:05,01.03.2020 10:15\n2020-03-05 23:10:00,25.03.2020 11:20\n")
    text = draft_table(data).to_toml()
    for line in ('kind = "datetime"', "high = 2020-03-05T23:59:59", "high = 2020-03-25T23:59:00", "step = 60"):
        assert f"# {line}" in text, text


def test_an_identifier_with_repeats_may_name_persons() -> None:
    visits = pd.DataFrame({"age": [30] * 100, "patient_id": [f"p{i % 40}" for i in range(100)]})
    text = draft_table(visits).to_toml()
    note = ('# person = "patient_id"', "# rows_per_person = …", "")
    assert "\n".join(note) in text.partition("\n[[column]]")[0]
    assert Schema.parse(text).persons is None


@pytest.mark.parametrize(
    ("name", "ids"),
    [("patient_id", range(100)), ("patient_id", [1, 2] * 50), ("height", [i % 40 for i in range(100)])],
    ids=["one row each", "two values", "no identifier"],
)
def test_other_columns_name_no_persons(name: str, ids: Any) -> None:
    assert not draft_table(pd.DataFrame({name: list(ids), "age": 1})).table_notes
