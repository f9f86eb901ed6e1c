"""One table of odd values, written in every form that can be read.

Each column holds values of one type, as Parquet and most frames want; `OBJECTS` mixes types as Python does.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from workbook import workbook_of

from certsynth.domain import Category, Column, Ordered
from certsynth.domain.cleaning import as_labels
from certsynth.domain.ratios import ratio_values
from certsynth.domain.reading import Reading

CANARY = "canary-7f3a"
"""A cell that no message may show."""

SKEWED = ratio_values(Fraction(1, 2), Fraction(10**9), None) or ()
"""The many values of a column that is compared by ratios."""

DAY = datetime.date(2020, 2, 28).toordinal() - datetime.date(1970, 1, 1).toordinal()

_TEXTS = [
    *(
        "",
        "a",
        "A",
        " a",
        "NA",
        "00123",
        "123",
        "unseen",
        None,
        "é",
        'q"u',
        "two\nlines",
        "a,b",
        "\tx",
        "1.0",
    ),
    *(
        "1e999",
        "nan",
        "true",
        "No",
        "2020-02-29",
        "2020-02-29T10:07:29.9+02:00",
        "2020-02-30",
        "other",
        "null",
        "x" * 5000,
        "\x00",
        "'",
    ),
]
_TYPED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [0, 1, -7, 40, 41, 2**62, -(2**62), None, 20200229]),
    "small": (pa.uint8(), [0, 1, 255, None]),
    "floats": (pa.float64(), [math.nan, math.inf, -math.inf, 1e30, -0.0, 0.5, 2.0, 5e-324, None]),
    "texts": (pa.string(), _TEXTS),
    "truths": (pa.bool_(), [True, False, None]),
    "days": (
        pa.date32(),
        [datetime.date(1, 1, 1), datetime.date(2020, 2, 29), datetime.date(9999, 12, 31), None],
    ),
    "times": (
        pa.timestamp("us"),
        [
            datetime.datetime(1969, 12, 31, 23, 59),
            datetime.datetime(1969, 12, 31, 23, 59, 58, 999_000),
            datetime.datetime(2020, 2, 29),
            datetime.datetime(2020, 2, 29, 10, 7, 29, 999_000),
            datetime.datetime(2020, 2, 29, 10, 7, 30),
            None,
        ],
    ),
    "decimals": (
        pa.decimal128(20, 2),
        [Decimal("1.50"), Decimal("2.00"), Decimal("-99999999999999999.99"), None],
    ),
    "huge": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(1), Decimal("12345678901234567890"), None]),
    "labels": (pa.dictionary(pa.int32(), pa.string()), ["a", "NA", None, "unseen"]),
    "blobs": (pa.binary(), [b"a", b"\xff", None]),
    "lists": (pa.list_(pa.int64()), [[1], [], [1, 2], None]),
    "records": (pa.struct([("a", pa.int64())]), [{"a": 1}, None]),
    "nothing": (pa.null(), [None]),
}
NESTED = ("blobs", "lists", "records")  # a text file has no way to write them
ROWS = 60

TABLE: dict[str, list[Any]] = {
    name: [values[i % len(values)] for i in range(ROWS)] for name, (_, values) in _TYPED.items()
}

OBJECTS: list[Any] = [
    *(None, math.nan, math.inf, "x", "", b"x", 10**30, -(10**30), True, 1.5, [1], {"a": 1}, pd.NA, pd.NaT),
    *(
        datetime.date(2020, 2, 29),
        datetime.datetime(2020, 2, 29, 10),
        pd.Timestamp("2020-02-29"),
        Decimal("2"),
    ),
]


def columns(name: str) -> list[Column]:
    """One column of every kind, with and without places for what is missing or not listed."""
    return [
        column
        for missing in (False, True)
        for column in (
            Ordered(name=name, missing=missing, kind="integer", low=-3, high=40),
            Ordered(name=name, missing=missing, kind="number", low=-0.5, high=2.5),
            Ordered(name=name, missing=missing, kind="date", low=DAY, high=DAY + 20),
            Ordered(name=name, missing=missing, kind="ordinal", low=0, high=2, values=("a", "NA", "2")),
            Category(name=name, missing=missing, values=("a", "NA", "00123", "1.5", "2020-02-29", "two\nlines")),
            Category(name=name, missing=missing, values=("12345678901234567890", "", "true"), other=True),
            Category(name=name, missing=missing, kind="boolean", values=("false", "true")),
        )
    ] + [
        Ordered(name=name, kind="integer", low=-3, high=39, step=Fraction(7)),
        Ordered(name=name, missing=True, kind="datetime", low=-7, high=100),
        Ordered(name=name, kind="datetime", low=86_400 * DAY, high=86_400 * (DAY + 20), step=Fraction(900)),
        Ordered(name=name, missing=True, kind="number", low=-0.5, high=2.5, step=Fraction(1, 10)),
        Ordered(name=name, kind="integer", low=-40, high=41, grid=(-40.0, -7.0, 0.0, 1.0, 2.0, 5.0, 41.0)),
        Ordered(name=name, missing=True, kind="number", low=0.5, high=1e9, grid=SKEWED, weight=Fraction(1, 2)),
        Ordered(name=name, missing=True, kind="integer", low=0, high=255, grid=(0.0, 1.0, 2.0, 120.0, 255.0)),
        *columns_with_readings(name),
    ]


def columns_with_readings(name: str) -> list[Column]:
    """A column of every kind with every option that says how texts are written."""
    money = Reading(decimal=",", thousands=".", symbol=("€",), missing_codes=("-7", "1e30", "12.345.678.901"))
    days = Reading(format="%d.%m.%Y", missing_codes=("31.12.9999", "31.12.1969"))
    labels = Reading(strip=True, case="ignore", missing_codes=("null", "41", "-0"))
    return [
        Ordered(name=name, missing=True, kind="integer", low=-3, high=40, reading=money),
        Ordered(
            name=name, missing=True, kind="number", low=-0.5, high=2.5, reading=Reading(missing_codes=("1e30", "inf"))
        ),
        Ordered(name=name, missing=True, kind="date", low=DAY, high=DAY + 20, reading=days),
        Ordered(name=name, missing=True, kind="ordinal", low=0, high=2, values=(" A", "Na", "2"), reading=labels),
        Category(name=name, missing=True, values=("A", "NA", "1.5", "2020-02-29"), other=True, reading=labels),
        Category(
            name=name,
            missing=True,
            kind="boolean",
            values=("false", "true"),
            reading=Reading(values=("1", "2"), missing_codes=("0", "No")),
        ),
    ]


def expected(column: Column, values: list[Any]) -> np.ndarray:
    """The codes of Python values that no engine has touched."""
    return column.clean(np.fromiter(values, object, len(values)))


def arrow() -> pa.Table:
    return pa.table({name: pa.array(TABLE[name], kind) for name, (kind, _) in _TYPED.items()})


def csv_file(folder: Path) -> Path:
    path = folder / "nasty.csv"
    flat = [name for name in TABLE if name not in NESTED]
    texts = [as_labels(np.fromiter(TABLE[name], object, ROWS)) for name in flat]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(flat)
        writer.writerows([text or "" for text in row] for row in zip(*texts, strict=True))
    return path


def json_value(value: Any) -> str:
    """A value as JSON writes it: numbers and truths as such, what is nested as a list, anything else as its text."""
    (text,) = as_labels(np.fromiter([value], object, 1))
    if isinstance(value, (bytes, list, dict, tuple)):
        return '[{"nested": [1]}]'
    if text is None:
        return "null"
    number = isinstance(value, (int, float, Decimal, np.floating)) and math.isfinite(value)
    return text if number or isinstance(value, bool) else json.dumps(text)


def as_in_json(values: Sequence[Any]) -> list[Any]:
    """Values as JSON has them: what is no number and no truth is a text."""
    return [
        value if isinstance(value, (bool, int, float, Decimal, np.number)) else text
        for value, text in zip(values, as_labels(np.fromiter(values, object, len(values))), strict=True)
    ]


def json_lines(table: Mapping[str, Sequence[Any]]) -> str:
    """One object in each line; in every other one, what is null is left out."""
    lines = []
    for i, row in enumerate(zip(*table.values(), strict=True)):
        pairs = [(name, json_value(value)) for name, value in zip(table, row, strict=True)]
        pairs = [(name, value) for name, value in pairs[:: 1 - 2 * (i % 3 == 1)] if value != "null" or i % 2]
        lines.append("{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}\n")
    return "".join(lines)


def json_lines_file(folder: Path) -> Path:
    path = folder / "nasty.jsonl"
    path.write_text(json_lines(TABLE), encoding="utf-8")
    return path


def zip_file(folder: Path) -> Path:
    """As semicolons separate, in an archive."""
    path = folder / "nasty.zip"
    with csv_file(folder).open(newline="", encoding="utf-8") as file, zipfile.ZipFile(path, "w") as archive:
        text = io.StringIO()
        csv.writer(text, delimiter=";").writerows(csv.reader(file))
        archive.writestr("nasty.csv", text.getvalue())
    return path


def parquet_file(folder: Path) -> Path:
    path = folder / "nasty.parquet"
    pq.write_table(arrow(), path)
    return path


def relation(folder: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().sql(f"FROM read_parquet('{parquet_file(folder)}')")


def pandas_objects(folder: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in TABLE.items()})


def polars_frame(folder: Path) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(arrow()))


FORMS: dict[str, Callable[[Path], Any]] = {
    "csv": csv_file,
    "csv in a zip archive": zip_file,
    "json lines": json_lines_file,
    "excel": lambda folder: workbook_of(folder / "nasty.xlsx", TABLE),
    "parquet": parquet_file,
    "relation": relation,
    "pandas objects": pandas_objects,
    "pandas": lambda folder: arrow().to_pandas(),
    "pandas with arrow types": lambda folder: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars_frame,
    "polars lazy": lambda folder: polars_frame(folder).lazy(),
    "pyarrow": lambda folder: arrow(),
}
