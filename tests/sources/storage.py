"""One corpus of values, in every type that a table may store them in, for every kind of column to read.

`STORAGE` has the types, each with values that are awkward for it; `columns_of_every_kind` the columns; `READERS` the
ways in. What a reader must give is what `Column.clean` gives of `Stored.seen`: plain Python values that no engine has
touched. Two readers may see different values where the forms that they read differ; each such case is listed here:

- An instant with a time zone: Parquet keeps only the instant, and DuckDB reads it in UTC. A frame shows the clock on
  the wall of its zone, and that is what is read.
- A CSV file has no types and no nulls: a missing value is an empty field. JSON lines have nulls.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import math
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
from nasty import json_lines
from workbook import workbook_of

from certsynth.domain import Category, Column, Ordered
from certsynth.domain.cleaning import as_labels
from certsynth.domain.reading import Reading
from certsynth.sources import Unopened

EPOCH = datetime.date(1970, 1, 1)
ZONE = "Asia/Kathmandu"
"""A clock that is 5:45 ahead of UTC: the day is another one for a quarter of all instants."""


def day(text: str) -> int:
    return (datetime.date.fromisoformat(text) - EPOCH).days


def second(text: str) -> int:
    return round((datetime.datetime.fromisoformat(text) - datetime.datetime(1970, 1, 1)).total_seconds())


# ------------------------------------------------------------------------------------------------------ columns

NUMERALS = tuple(str(number) for number in range(-2, 50))
YEARS = ("1999", "2.5", "20200229", "2020", "true", "7", "007", "0.1")
PRINTED = (
    *("a", "2020-02-29", "2020-02-29 10:00:00", "1969-12-31 23:59:59.999999", "10:00:00", "23:59:59.500000"),
    *("90071992547409.94", "4503599627370497.5", "1e+16", "10000000000000000", "9007199254740993", "1e+308", "5e-324"),
)
DISTANCES = tuple(tuple(Fraction(abs(i - j), 4) for j in range(5)) for i in range(5))
TREE = (("1", "7"), ("1", "1"), ("2", "2.5"), ("2", "20200229", "a"), ("2", "20200229", "true"))


def columns_of_every_kind(name: str) -> dict[str, Column]:
    """Columns that read `name`: short and long lines, lists of labels that look like numbers, all metrics."""

    def line(kind: Any, low: float, high: float, weight: Fraction = Fraction(1), **more: Any) -> Any:
        return lambda missing: Ordered(name=name, missing=missing, weight=weight, kind=kind, low=low, high=high, **more)

    def labels(kind: Any, values: tuple[str, ...], weight: Fraction = Fraction(1), **more: Any) -> Any:
        return lambda missing: Category(name=name, missing=missing, weight=weight, kind=kind, values=values, **more)

    made: dict[str, Callable[[bool], Column]] = {
        "integer": line("integer", -3, 40),
        "long integer": line("integer", -5, 3000, Fraction(2, 7)),
        "integer of many digits": line("integer", 20_000_000, 20_300_000),
        "number": line("number", 0.1, 0.7, Fraction(1, 3)),
        "long number": line("number", -3, 1000),
        "date": line("date", day("2020-02-01"), day("2020-03-15")),
        "long date": line("date", day("1900-01-01"), day("2100-01-01"), Fraction(1, 2)),
        "ordinal": line("ordinal", 0, len(YEARS) - 1, values=YEARS),
        "long ordinal": line("ordinal", 0, len(NUMERALS) - 1, Fraction(3, 4), values=NUMERALS),
        "category": labels("category", (*YEARS, *PRINTED)),
        "category with other": labels("category", ("1", "2.5", "", "inf"), Fraction(1, 2), other=True),
        "tree": labels("tree", tuple(path[-1] for path in TREE), paths=TREE),
        "metric": labels("metric", ("7", "1", "2.5", "true", "a"), distances=DISTANCES, other=True),
        "boolean": labels("boolean", ("false", "true")),
        "datetime": line("datetime", second("2020-02-28 23:59:50"), second("2020-03-01 00:00:00")),
        "long datetime": line(
            "datetime", second("1900-01-01"), second("2100-01-01"), Fraction(1, 2), step=Fraction(900)
        ),
    }
    return {
        f"{kind}, {'may be missing' if missing else 'never missing'}": make(missing)
        for kind, make in made.items()
        for missing in (False, True)
    }


def columns_with_readings(name: str) -> dict[str, Column]:
    """Columns that read `name` with options for texts: every kind with every option of it."""

    def line(kind: Any, low: float, high: float, values: tuple[str, ...] = (), **options: Any) -> Column:
        reading = Reading(**options)
        return Ordered(name=name, missing=True, kind=kind, low=low, high=high, values=values, reading=reading)

    def labels(kind: Any, values: tuple[str, ...], reading: Reading, **more: Any) -> Column:
        return Category(name=name, missing=True, kind=kind, values=values, reading=reading, **more)

    lax = Reading(strip=True, case="ignore", missing_codes=("2.5", "NULL", "1e+16", "10:00:00", "9007199254740993"))
    short, long = (day("2020-02-01"), day("2020-03-15")), (day("1900-01-01"), day("2100-01-01"))
    return {
        "codes of integers": line("integer", -3, 40, missing_codes=("-5", "100.0", "9007199254740993", "N")),
        "codes of numbers": line("number", 0.1, 0.7, missing_codes=("2.5", "inf", "-0", "197.6")),
        "German integers": line("integer", -5, 3000, decimal=",", thousands=".", missing_codes=("20.200.229",)),
        "German money": line(
            "number", -3, 1000, decimal=",", thousands=".", symbol=("%", "€"), missing_codes=("1.999",)
        ),
        "thousands by spaces": line("number", -3, 3000, thousands=" ", missing_codes=("40 000",)),
        "codes of dates": line("date", *short, missing_codes=("9999-12-31", "0001-01-01", "20200316", "2020-01-31")),
        "days first": line("date", *long, format="%d.%m.%Y", missing_codes=("9999-12-31", "31.12.1899")),
        "digits alone": line("date", *short, format="%Y%m%d", missing_codes=("20200316",)),
        "lax ordinal": line("ordinal", 0, 3, (" 7", "A", "True", "20200229"), strip=True, case="ignore"),
        "lax category": labels("category", ("A", "TRUE", " 7", "1999", "2020-02-29", "1E+308"), lax, other=True),
        "codes of labels": labels("category", ("a", "7", "true"), Reading(missing_codes=("1", "A", "2020-02-29"))),
        "lax tree": labels("tree", tuple(path[-1] for path in LAX_TREE), lax, paths=LAX_TREE),
        "lax metric": labels("metric", ("7", "1", "2", "TRUE", "A"), lax, distances=DISTANCES),
        "words": labels("boolean", ("false", "true"), Reading(values=("1", "2"), missing_codes=("7", "F", "0"))),
    }


LAX_TREE = (("1", "7"), ("1", "1"), ("2", "20200229", "A"), ("2", "20200229", "True"))
WRITTEN_OTHERWISE = ("German integers", "German money", "days first", "digits alone")
"""Typed values are read as they are, and their texts in a CSV file as the reading says."""

KINDS = tuple(columns_of_every_kind(""))
READINGS = tuple(columns_with_readings(""))

# ------------------------------------------------------------------------------------------------------- values


def around(values: Iterable[float], kind: Any = np.float64) -> list[float]:
    """Values with their neighbours among floats of a type."""
    there = np.array(list(values), dtype=kind)
    with np.errstate(over="ignore"):
        near = (there, np.nextafter(there, kind(-np.inf)), np.nextafter(there, kind(np.inf)))
    return np.unique(np.concatenate(near)).tolist()


_BORDERS = [
    *(low + (high - low) * k / steps for low, high in ((0.1, 0.7), (-3, 1000)) for steps in (5, 7) for k in range(8)),
    *(-3.5, -0.5, 0.5, 1.5, 39.5, 40.5, 2999.5, 19_999_999.5, 20_299_999.5),
]
_FLOATS = [0.0, -0.0, 1.0, 2.0, 2.5, 7.0, 2020.0, 1999.0, 20200229.0, 20200229.5, 20200230.0, 2.0**53, 2.0**63, 1e15]
_ENDLESS = [math.nan, math.inf, -math.inf, None]
_INTEGERS = [
    *(-5, -4, -3, -2, -1, 0, 1, 2, 7, 39, 40, 41, 49, 50, 100, 127, 128, 255, 1999, 2020, 3000, 3001, 2**15, 2**31),
    *(19991231, 20000000, 20200228, 20200229, 20200230, 20200301, 20200315, 20200316, 20300001, 99991231, 10000101),
    *(-20200229, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 3, 2**62 + 1, 2**63 - 513, 2**63 - 1, -(2**63), 2**63, 2**64 - 1),
]
_DECIMALS = [
    *(
        "0",
        "1",
        "2",
        "7",
        "2.5",
        "0.1",
        "0.5",
        "-0.5",
        "0.4",
        "1.5",
        "39.5",
        "40.4",
        "-3.5",
        "1999",
        "2020",
        "20200229",
    ),
    *(
        "20200229.5",
        "0.3",
        "0.22",
        "0.34",
        "0.7",
        "197.6",
        "9007199254740993",
        "9007199254740993.4",
        "72057594037927937",
    ),
    *(
        "90071992547409.93",
        "4503599627370497.5",
        "9999999999999999.9",
        "99999999999999999.99",
        "1234567890123456789012",
    ),
    *("0.1234567891", "-90071992547409.91", "12345678.9012345678", "9" * 28),
]
_TEXTS = [
    *(
        "7",
        " 7 ",
        "7.0",
        "7e0",
        "007",
        "+7",
        "1e3",
        "٣",
        "٧",
        "1_000",
        "0x7",
        "7,0",
        "-0",
        "0.1",
        ".1",
        "1e999",
        "-1e999",
    ),
    *(
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "true",
        "True",
        " TRUE ",
        "f",
        "No",
        "1",
        "0",
        "2.5",
        "2.50",
        "a",
        "A",
        "a ",
        "",
    ),
    *(
        "2020-02-29 10:07:29.999999",
        "2020-02-29 10:07:30+0545",
        " 2020-02-29T10:07 ",
        "2020-02-29 24:00",
        "2020-02-29 x",
    ),
    *("2020-02-29 10:07:30,5 UTC", "2020-02-29 10", "20200229 10:00", "2020-W09-6 10:00", "2020-02-29 10:00:60"),
    *("20200229", "2020-02-29", "2020-02-29 10:00", "2020-02-29T23:59:59Z", "2020-W09-6", "2020-060", "29.02.2020"),
    *(
        "2020-02-30",
        "2020",
        "1999",
        "other",
        "1/7",
        "2/20200229/a",
        "20200229/a",
        "null",
        "\x00",
        "ﬁ",
        *("1.999", "1.234,5 €", "-€7", "7 %", "12.34", "40 000", " NULL", "n", "-5", " 100", "31.12.1899", "1.3.2020"),
        "0.39999999999999997",
    ),
    None,
]
_DAYS = [
    *("0001-01-01", "1899-12-31", "1900-01-01", "1969-12-31", "1970-01-01", "2020-01-31", "2020-02-01", "2020-02-29"),
    *("2020-03-15", "2020-03-16", "2100-01-01", "2100-01-02", "9999-12-31", None),
]
_TIMES = [
    *("0001-01-01", "1900-01-01T00:00", "1969-12-31T23:59:59.999999", "1970-01-01", "2020-01-31T18:14:59.999999"),
    *("2020-01-31T18:15", "2020-01-31T23:59:59.999999", "2020-02-01", "2020-02-28T23:59:59.999999", "2020-02-29"),
    *("1969-12-31T23:59:58.999999", "2020-02-29T00:00:00.999999", "2020-02-29T10:07:29.999999", "2020-02-29T10:07:30"),
    *("2020-02-29T10:00", "2020-03-15T23:59:59.999999", "2020-03-16", "2100-01-01T23:59:59", "9999-12-31T12:00", None),
]
_NANOSECONDS = [
    *("1900-01-01", "1969-12-31T23:59:59.999999999", "1970-01-01T00:00:00.000000001", "2020-01-31T23:59:59.999999999"),
    *("1969-12-31T23:59:58.999999999", "2020-02-29T10:07:29.999999999", "2020-02-29T10:07:30"),
    *("2020-02-29", "2020-02-29T00:00:00.000000001", "2020-02-29T23:59:59.999999500", "2100-01-01", None),
]


@dataclass(frozen=True, slots=True)
class Stored:
    """Values in a column of one type, and what a reader sees of each."""

    type: pa.DataType
    values: list[Any]
    seen: list[Any]
    shown_by_clock: list[Any] | None = None

    def cycled(self, values: Sequence[Any], rows: int, nulls: bool) -> list[Any]:
        """So many rows of these values, or of those where something is stored."""
        there = [value for value, stored in zip(values, self.values, strict=True) if nulls or stored is not None]
        return [there[i % len(there)] for i in range(rows)]


def _plain(kind: pa.DataType, values: Iterable[Any]) -> Stored:
    values = list(values)
    return Stored(kind, values, values)


def _unseen(kind: pa.DataType, values: list[Any]) -> Stored:
    return Stored(kind, values, [None] * len(values))


def _integers(kind: pa.DataType, bits: int, signed: bool) -> Stored:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return _plain(kind, [*(value for value in _INTEGERS if low <= value <= high), low, high, None])


def _decimals(digits: int, scale: int) -> Stored:
    with decimal.localcontext(prec=60):
        values = [Decimal(text) for text in _DECIMALS if abs(Decimal(text)) < Decimal(10) ** (digits - scale)]
        there = [x.quantize(Decimal(1).scaleb(-scale)) for x in values if x.scaleb(scale) % 1 == 0]
    return _plain(pa.decimal128(digits, scale), [*there, None])


def _times(unit: str, zone: str | None = None) -> Stored:
    texts = _NANOSECONDS if unit == "ns" else _TIMES
    if zone:  # the first and the last day have no clock elsewhere
        texts = [text for text in texts if text is None or "0001" < text[:4] < "9999"]
    values = [None if text is None else np.datetime64(text, unit) for text in texts]
    seen = [None if value is None else np.datetime64(value) for value in values]
    clock = None
    if zone:
        clock = [None if v is None else v + _ahead(v, zone) for v in values]
    plain = [None if value is None else value.astype(np.int64).item() for value in values]
    return Stored(pa.timestamp(unit, zone), plain, seen, clock)


def _ahead(instant: np.datetime64, zone: str) -> np.timedelta64:
    """How far the clock of a zone is ahead of UTC."""
    there = instant.astype("datetime64[us]").item().replace(tzinfo=datetime.UTC).astimezone(zoneinfo.ZoneInfo(zone))
    offset = there.utcoffset()
    assert offset is not None
    return np.timedelta64(int(offset.total_seconds()), "s")


_days = [None if text is None else datetime.date.fromisoformat(text) for text in _DAYS]
_whole_floats = [*around([*_BORDERS, *_FLOATS[1:]]), 5e-324, 1e308, -1e308, *_ENDLESS]
_short_floats = [*around([*_BORDERS, *_FLOATS[1:]], np.float32), 1e-45, *_ENDLESS]

STORAGE: dict[str, Stored] = {
    **{f"int{b}": _integers(getattr(pa, f"int{b}")(), b, True) for b in (8, 16, 32, 64)},
    **{f"uint{b}": _integers(getattr(pa, f"uint{b}")(), b, False) for b in (8, 16, 32, 64)},
    "zero or one": _plain(pa.int8(), [0, 1, 1, 0, None]),
    "float64": _plain(pa.float64(), _whole_floats),
    "float32": _plain(pa.float32(), [None if x is None else float(np.float32(x)) for x in _short_floats]),
    **{
        f"decimal({d},{s})": _decimals(d, s)
        for d, s in ((4, 1), (9, 2), (9, 0), (18, 4), (18, 1), (20, 2), (38, 0), (38, 10))
    },
    "text": _plain(pa.string(), _TEXTS),
    "large text": _plain(pa.large_string(), _TEXTS),
    "dictionary": _plain(pa.dictionary(pa.int32(), pa.string()), _TEXTS),
    "text view": _plain(pa.string_view(), _TEXTS),
    "dictionary of numbers": _plain(
        pa.dictionary(pa.int8(), pa.int64()), [x for x in _INTEGERS if abs(x) < 2**63] + [None]
    ),
    "float16": _plain(pa.float16(), [*(np.float16(x) for x in (0.0, -0.0, 0.1, 0.5, 2.5, 7, 2020, 1999)), None]),
    "date32": _plain(pa.date32(), _days),
    "date64": _plain(pa.date64(), _days),
    **{f"timestamp[{unit}]": _times(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}, UTC]": _times(unit, "UTC") for unit in ("ms", "us", "ns")},
    "timestamp[us, elsewhere]": _times("us", ZONE),
    "truths": _plain(pa.bool_(), [True, False, None]),
    "times of day": _plain(pa.time64("us"), [datetime.time(10), datetime.time(23, 59, 59, 500_000), None]),
    "bytes of one length": _unseen(pa.binary(1), [b"7", b"a", None]),
    "maps": _unseen(pa.map_(pa.string(), pa.int64()), [[("a", 7)], [], None]),
    "bytes": _unseen(pa.binary(), [b"7", b"a", b"\xff", None]),
    "lists": _unseen(pa.list_(pa.int64()), [[7], [], None]),
    "records": _unseen(pa.struct([("a", pa.int64())]), [{"a": 7}, None]),
    "nothing": _plain(pa.null(), [None]),
}

ROWS = max(len(stored.values) for stored in STORAGE.values())
NO_TEXT = ("bytes", "bytes of one length", "maps", "lists", "records")  # a text file has no way to write them


def arrow(names: Sequence[str] = tuple(STORAGE), rows: int = ROWS, *, nulls: bool = True) -> pa.Table:
    stored = {name: STORAGE[name] for name in names}
    return pa.table({name: pa.array(s.cycled(s.values, rows, nulls), s.type) for name, s in stored.items()})


def seen(name: str, *, by: str, rows: int = ROWS, nulls: bool = True) -> np.ndarray:
    """The values of a column as a sort of reader sees them: "engines" in UTC, "frames" by the clock, or "text"."""
    stored = STORAGE[name]
    values = stored.shown_by_clock if by == "frames" and stored.shown_by_clock is not None else stored.seen
    if by == "text":
        values = ["" if x is None or (isinstance(x, float) and math.isnan(x)) else x for x in values]
    return np.fromiter(stored.cycled(values, rows, nulls), object, rows)


# ------------------------------------------------------------------------------------------------------ readers


def parquet_file(folder: Path, table: pa.Table) -> Path:
    path = folder / "storage.parquet"
    if not path.exists():
        pq.write_table(table, path)
    return path


def csv_file(folder: Path, table: pa.Table) -> Path:
    """Values as their labels: a typed value reads as its text does."""
    path = folder / "storage.csv"
    texts = [as_labels(seen(name, by="text", rows=table.num_rows)) for name in table.column_names]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows([text or "" for text in row] for row in zip(*texts, strict=True))
    return path


def json_lines_file(folder: Path, table: pa.Table) -> Path:
    path = folder / "storage.jsonl.gz"
    shown = {name: seen(name, by="engines", rows=table.num_rows).tolist() for name in table.column_names}
    path.write_bytes(gzip.compress(json_lines(shown).encode()))
    return path


def excel_file(folder: Path, table: pa.Table) -> Path:
    shown = {name: seen(name, by="engines", rows=table.num_rows).tolist() for name in table.column_names}
    return workbook_of(folder / "storage.xlsx", shown)


def duckdb_types(folder: Path, table: pa.Table) -> duckdb.DuckDBPyRelation:
    """Types that only DuckDB has."""
    con = duckdb.connect()
    con.execute("CREATE TYPE listed AS ENUM (SELECT unnest(?))", [[text for text in _TEXTS if text is not None]])
    casts = {"int64": "HUGEINT", "uint64": "UHUGEINT", "dictionary": "listed", "large text": "listed"}
    changed = ", ".join(f'"{name}"::{kind} AS "{name}"' for name, kind in casts.items())
    return con.sql(f"SELECT * REPLACE ({changed}) FROM read_parquet('{parquet_file(folder, table)}')")


def polars_types(folder: Path, table: pa.Table) -> pl.DataFrame:
    """Types that only polars has."""
    texts = pl.Enum([text for text in _TEXTS if text is not None])
    casts = {"int64": pl.Int128, "uint64": pl.Int128, "dictionary": texts, "large text": pl.Categorical}
    return pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col(name).cast(kind) for name, kind in casts.items())


def pandas_types(folder: Path, table: pa.Table) -> pd.DataFrame:
    """Categories of texts and of numbers, ordered ones, and objects."""
    frame = table.to_pandas(integer_object_nulls=True)
    kinds = {"text": "category", "int64": "category", "int8": pd.CategoricalDtype(range(-128, 128), ordered=True)}
    kinds |= {"float64": "category", "float32": object, "truths": "category", "date32": "category"}
    return frame.astype(kinds)


def _relation(folder: Path, table: pa.Table) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().sql(f"FROM read_parquet('{parquet_file(folder, table)}')")


def _polars(folder: Path, table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table))


_NULLABLE = {pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()} | {
    getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
}

READERS: dict[str, tuple[str, Callable[[Path, pa.Table], Any]]] = {
    "csv": ("text", csv_file),
    "json lines": ("engines", json_lines_file),
    "excel": ("engines", excel_file),
    "parquet": ("engines", parquet_file),
    "query": ("engines", lambda folder, t: Unopened(f"SELECT * FROM read_parquet('{parquet_file(folder, t)}')")),
    "relation": ("engines", _relation),
    "relation of DuckDB's own types": ("engines", duckdb_types),
    "relation over arrow": ("engines", lambda folder, table: duckdb.connect().from_arrow(table)),
    "pandas": ("frames", lambda folder, table: table.to_pandas(integer_object_nulls=True)),
    "pandas of its own types": ("frames", pandas_types),
    "pandas with masks": ("frames", lambda folder, table: table.to_pandas(types_mapper=_NULLABLE.get)),
    "pandas with arrow types": ("frames", lambda folder, table: table.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": ("frames", _polars),
    "polars of its own types": ("frames", polars_types),
    "polars lazy": ("frames", lambda folder, table: _polars(folder, table).lazy()),
    "pyarrow": ("frames", lambda folder, table: table),
}
"""How a reader sees values (see `seen`), and what it is given."""

ENGINES = {
    "duckdb": ("engines", _relation),
    "duckdb of its own types": ("engines", duckdb_types),
    "polars": ("frames", lambda folder, table: _polars(folder, table).lazy()),
    "polars of its own types": ("frames", lambda folder, table: polars_types(folder, table).lazy()),
}
"""The same for engines that count rows themselves."""

_CANNOT_HOLD = {"csv": NO_TEXT, "relation over arrow": ("float16",)}


def held_by(reader: str) -> list[str]:
    """The types that a reader can hold."""
    return [name for name in STORAGE if name not in _CANNOT_HOLD.get(reader, ())]
