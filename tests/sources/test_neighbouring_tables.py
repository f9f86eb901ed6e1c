"""The way in adds no sensitivity (P25): tables that differ in one row give integers that differ by one row at most."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from neighbours import (
    COLUMNS,
    GUESSED,
    READ,
    REFUSED,
    base,
    counts,
    distance,
    farthest,
    neighbours,
    pandas_read,
    read_or_none,
    schema_of,
    upsets,
)

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.cleaning import as_days
from certsynth.domain.reading import Reading
from certsynth.errors import InputError
from certsynth.sources import Unopened, open_source
from certsynth.sources.storage import is_ambiguous

WAYS = {**READ, **GUESSED}
SHOWN = 3
"""Columns for each way in the short run, other ones for each, with one cell that upsets them."""


def check(way: str, name: str, cells: list[str], folder: Path) -> int:
    schema = schema_of(name)
    found = {}
    for j, (what, table) in enumerate(neighbours(name, cells)):
        inside = folder / f"{j}"
        inside.mkdir(parents=True)
        found[what] = read_or_none(WAYS[way], inside, table, schema)
    assert farthest(found) == {}
    if way in READ:
        assert None not in found.values()
    return sum(each is not None for each in found.values())


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("way", WAYS)
def test_one_row_changes_the_integers_by_one_row(way: str, tmp_path: Path) -> None:
    first, names = list(WAYS).index(way) * SHOWN, list(COLUMNS)
    for j in range(first, first + SHOWN):
        name = names[j % len(names)]
        many = upsets(name)
        check(way, name, [many[j // len(names) % len(many)]], tmp_path / f"{j}")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COLUMNS)
def test_no_cell_changes_how_other_rows_are_read(way: str, name: str, tmp_path: Path) -> None:
    check(way, name, upsets(name), tmp_path)


TEXT_FILES = (
    "TSV, packed",
    "CSV of semicolons",
    "CSV in a zip archive",
    "JSON lines of texts",
    "JSON lines of values",
    "Excel of texts",
)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("way", TEXT_FILES)
def test_other_text_files_give_the_integers_of_plain_csv(way: str, tmp_path: Path) -> None:
    for j, name in enumerate(COLUMNS):
        reading = COLUMNS[name][0].reading
        if way == "JSON lines of values" and (reading.decimal != "." or reading.thousands):
            continue  # there 1.5 is a number, and the schema is about texts
        for k, (_, table) in enumerate(neighbours(name, upsets(name)[j % 3 :: 3])):
            inside = tmp_path / f"{j}-{k}"
            inside.mkdir()
            plain, other = (counts(READ[each](inside, table), schema_of(name)) for each in ("CSV", way))
            assert distance(plain, other) == 0, name


@pytest.mark.parametrize("way", REFUSED)
def test_a_way_that_guesses_from_rows_is_refused(way: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="guesses") as caught:
        open_source(REFUSED[way](tmp_path, base("integer")))
    assert "\n" not in str(caught.value)


def test_guessed_types_are_read_where_they_can_be(tmp_path: Path) -> None:
    """The control: refusing all would pass the tests above."""
    for way in GUESSED:
        for name in ("date", "number", "boolean", "small codes", "texts"):
            if way == "pandas categories" and name == "boolean":
                continue
            assert read_or_none(GUESSED[way], tmp_path, base(name), schema_of(name)) is not None, (way, name)


def test_integers_of_a_reader_that_guesses_are_seen_to_differ() -> None:
    """The control of the comparison: labels as pandas reads them by itself."""
    schema = schema_of("zeros in front")
    tables = [table for what, table in neighbours("zeros in front", ["00X"]) if not what.startswith("and")]
    found = [counts(pandas_read(table).astype(str), schema) for table in tables]
    assert distance(*found) > 2


# -------------------------------------------------------------- four pairs of tables that were read far from each other

MANY = 4000


def far(make: Callable[[str | None], Any], schema: Schema, *cells: str | None) -> int | None:
    """How far the integers of two tables are from each other; None if one of them is refused."""
    try:
        ours, theirs = (counts(make(cell), schema) for cell in cells)
    except InputError:
        return None
    return distance(ours, theirs)


def one_column(name: str, table: list[str], last: str | None) -> str:
    return f"{name},n\n" + "".join(f"{cell},1\n" for cell in [*table[:-1], last or ""])


N = Ordered(name="n", kind="integer", low=0, high=9)


def test_dates_of_two_formats(tmp_path: Path) -> None:
    days = [f"{1 + j % 12:02}/{1 + j % 9:02}/2020" for j in range(MANY)]
    (low,) = as_days(pd.Series(["2020-01-01"], dtype=object).to_numpy())
    schema = Schema(columns=(Ordered(name="day", kind="date", low=int(low), high=int(low) + 365), N))

    def through_sql(last: str | None) -> Unopened:
        path = tmp_path / "D.csv"
        path.write_text(one_column("day", days, last))
        return Unopened(f"SELECT * FROM '{path}'")

    def by_itself(last: str | None) -> Path:
        path = tmp_path / "D.csv"
        path.write_text(one_column("day", days, last))
        return path

    assert far(through_sql, schema, "05/01/2020", "01/13/2020") is None
    assert far(by_itself, schema, "05/01/2020", "01/13/2020") == 0  # neither is a date as it is written here


def test_true_and_false_and_one_maybe(tmp_path: Path) -> None:
    truths = ["True", "False"] * (MANY // 2)
    schema = Schema(columns=(Category(name="flag", values=("True", "False"), other=True), N))
    path = tmp_path / "D.csv"

    def written(last: str | None) -> Path:
        path.write_text(one_column("flag", truths, last))
        return path

    assert far(lambda last: Unopened(f"SELECT * FROM '{written(last)}'"), schema, "True", "maybe") is None
    assert far(lambda last: pd.read_csv(written(last)), schema, "True", "maybe") is None
    assert far(written, schema, "True", "maybe") == 2


def test_labels_with_zeros_in_front_by_pandas() -> None:
    codes = ["007", "012"] * 500
    schema = Schema(columns=(Category(name="code", values=("007", "012", "00X"), other=True), N))

    def guessed(last: str | None, **options: Any) -> pd.DataFrame:
        return pd.read_csv(io.StringIO(one_column("code", codes, last)), **options)

    assert far(guessed, schema, "012", "00X") is None
    assert far(lambda last: guessed(last, dtype=str), schema, "012", "00X") == 2


def test_labels_beyond_the_whole_floats_and_one_none() -> None:
    codes = [str(2**53 + 1), str(2**53 + 3)] * 500
    schema = Schema(columns=(Category(name="code", values=(codes[0], codes[1], "7"), missing=True), N))

    def guessed(last: str | None, **options: Any) -> pd.DataFrame:
        return pd.read_csv(io.StringIO(one_column("code", codes, last)), **options)

    assert far(guessed, schema, codes[1], None) is None
    assert far(lambda last: guessed(last, dtype="Int64"), schema, codes[1], None) == 2
    with pytest.raises(InputError) as caught:
        counts(guessed(None), schema)
    assert str(caught.value) == (
        "data (pandas.DataFrame): column 'code' is stored as floats, which cannot tell its labels apart. "
        "Read it as text, as with dtype=str, or give the file itself."
    )


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        (("7", "8"), {"truths"}),
        (("2.5", "-1", "inf"), {"truths", "times"}),
        (("007", "8"), {"truths", "times", "whole numbers", "floats", "mixed objects"}),
        (("1.50",), {"truths", "times", "whole numbers", "floats", "mixed objects"}),
        ((str(2**53 + 1),), {"truths", "times", "floats", "mixed objects"}),
        (("true", "false"), {"truths", "mixed objects"}),
        (("a", "b", ""), {"truths"}),
        (("2020-01-05", "10:00:00", "2020-01-05 10:00:00"), {"truths"}),
        (("05/01/2020",), {"truths", "times"}),
    ],
)
def test_types_that_cannot_tell_labels_apart(labels: tuple[str, ...], refused: set[str]) -> None:
    column = Category(name="x", values=labels, other=True)
    kinds = ("whole numbers", "floats", "truths", "times", "mixed objects", "texts")
    found = {kind for kind in kinds if is_ambiguous(column, kind)}
    assert found == refused | ({"times"} if labels == ("7", "8") else set())
    assert not any(is_ambiguous(N, kind) for kind in kinds)


NUMBERS = {"whole numbers", "floats", "mixed objects"}


@pytest.mark.parametrize(
    ("kind", "options", "refused"),
    [
        ("number", {"decimal": ","}, {"floats", "mixed objects"}),
        ("integer", {"decimal": ",", "thousands": "."}, {"floats", "mixed objects"}),
        ("number", {"thousands": ",", "symbol": ("€",), "missing_codes": ("-9",)}, set()),
        ("date", {"missing_codes": ("9999-12-31",)}, set()),
        ("date", {"format": "%Y-%m-%d"}, set()),
        ("date", {"format": "%d %b %Y"}, set()),
        ("date", {"format": "%y %b %d"}, {"times"}),
        ("date", {"format": "%m/%d/%Y"}, {"times"}),
        ("date", {"format": "%d.%m.%Y"}, {"times"}),
        ("date", {"format": "%d.%m%Y"}, {"times", *NUMBERS}),
        ("date", {"format": "%Y%m%d"}, {"times", *NUMBERS}),
        ("boolean", {"values": ("1", "2"), "missing_codes": ("9",)}, set()),
        ("boolean", {"values": ("01", "02")}, NUMBERS),
        ("boolean", {"missing_codes": ("09",)}, NUMBERS),
        ("category", {"strip": True, "case": "ignore", "missing_codes": ("-9",)}, {"truths", "times"}),
        ("category", {"missing_codes": ("09",)}, {"truths", "times", *NUMBERS}),
        ("ordinal", {"missing_codes": ("1.50",)}, {"truths", "times", *NUMBERS}),
    ],
)
def test_types_that_cannot_tell_texts_apart(kind: Any, options: dict[str, Any], refused: set[str]) -> None:
    reading = Reading(**options)
    if kind in ("boolean", "category"):
        column: Column = Category(name="x", kind=kind, values=("a", "b"), missing=True, reading=reading)
    else:
        column = Ordered(name="x", kind=kind, low=0, high=1, values=("a", "b"), missing=True, reading=reading)
    kinds = ("whole numbers", "floats", "truths", "times", "mixed objects", "texts")
    assert {storage for storage in kinds if is_ambiguous(column, storage)} == refused
