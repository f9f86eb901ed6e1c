"""Tables of texts that differ in one row, and every way in which such a table comes to certsynth.

Cells that upset guessing are among them: dates of two formats, `007`, `True`, huge integers, one float among integers,
blanks. Each way writes the file, or makes the frame, as people's tools do.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import gzip
import io
import itertools
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from nasty import DAY, json_lines
from workbook import workbook_of

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.reading import Reading
from certsynth.errors import InputError
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.sources import Unopened, open_source, pushed_down, rows_of

Table = list[tuple[str, str]]
HEADER = ("x", "age")
ROWS = 12
PARTNER = Ordered(name="age", kind="integer", low=0, high=99)

_COMMON = ("", "x", "1", "1.5", "007", "True", "nan", "NA", "2020-01-13", "01/13/2020", "9007199254740993", " 2 ")
COLUMNS: dict[str, tuple[Column, Sequence[str], Sequence[str]]] = {
    "date": (Ordered(name="x", kind="date", low=DAY - 60, high=DAY, missing=True), ("2020-01-05", "2020-01-07"), ()),
    "integer": (Ordered(name="x", kind="integer", low=0, high=40, missing=True), ("7", "12", "0"), ("1e1", "-3")),
    "number": (Ordered(name="x", kind="number", low=0.0, high=40.0), ("2.5", "7", "12.25"), ("1_0", "inf", "٣")),
    "boolean": (Category(name="x", kind="boolean", values=("false", "true"), missing=True), ("true", "false"), ("0",)),
    "True and False": (
        Category(name="x", values=("True", "False", "maybe"), other=True),
        ("True", "False"),
        ("maybe", "true", "FALSE"),
    ),
    "zeros in front": (Category(name="x", values=("007", "012", "00X"), other=True), ("007", "012"), ("00X", "12")),
    "small codes": (Category(name="x", values=("7", "8", "-1"), missing=True), ("7", "8", "-1"), ("7.0", "8.5")),
    "huge codes": (
        Category(name="x", values=("9007199254740993", "9007199254740995", "1"), missing=True),
        ("9007199254740993", "9007199254740995"),
        ("99999999999999999999", "2.0"),
    ),
    "decimals": (Category(name="x", values=("1.50", "2.5", "3"), other=True), ("1.50", "2.5"), ("1e400",)),
    "ordinal": (Ordered(name="x", kind="ordinal", low=0, high=2, values=("1", "2", "3")), ("1", "3", "2"), ("02",)),
    "days as labels": (Category(name="x", values=("2020-01-05", "2020-01-06"), other=True), ("2020-01-05",), ("soon",)),
    "days otherwise": (Category(name="x", values=("05/01/2020", "06/01/2020"), other=True), ("05/01/2020",), ("13/1",)),
    "codes of integers": (
        Ordered(name="x", kind="integer", low=0, high=40, missing=True, reading=Reading(missing_codes=("-9", "99"))),
        ("7", "-9", "12", "99", "-9.0", "099"),
        ("-9 ", "9 9", "-9.5"),
    ),
    "German numbers": (
        Ordered(name="x", kind="number", low=0.0, high=4e3, missing=True, reading=Reading(decimal=",", thousands=".")),
        ("1.234", "7", "2.500"),
        ("1.234,5", "2,5", "12.34", "1.2345"),
    ),
    "decimal commas": (
        Ordered(name="x", kind="number", low=0.0, high=40.0, missing=True, reading=Reading(decimal=",")),
        ("7", "12", "3.5"),
        ("2,5", "1,2,3"),
    ),
    "thousands by commas": (
        Ordered(name="x", kind="number", low=0.0, high=4e3, missing=True, reading=Reading(thousands=",")),
        ("999.5", "7", "1e3"),
        ("1,234", "1,23", "12,34.5"),
    ),
    "symbols": (
        Ordered(name="x", kind="number", low=0.0, high=40.0, missing=True, reading=Reading(symbol=("%", "e", "n"))),
        ("7", "12.5", "true", "inf"),
        ("7%", "7 %", "%", "7e", "n 8"),
    ),
    "months first": (
        Ordered(name="x", kind="date", low=DAY - 60, high=DAY, missing=True, reading=Reading(format="%m/%d/%Y")),
        ("01/05/2020", "1/7/2020"),
        ("13/01/2020", "2020-01-05"),
    ),
    "days first": (
        Ordered(name="x", kind="date", low=DAY - 60, high=DAY, missing=True, reading=Reading(format="%d.%m.%Y")),
        ("05.01.2020", "07.01.2020"),
        ("13.01.2020", "01.13.2020"),
    ),
    "months by name": (
        Ordered(name="x", kind="date", low=DAY - 60, high=DAY, missing=True, reading=Reading(format="%d %b %Y")),
        ("05 Jan 2020", "7 Jan 2020"),
        ("30 Feb 2020",),
    ),
    "dates of digits": (
        Ordered(name="x", kind="date", low=DAY - 60, high=DAY, missing=True, reading=Reading(format="%d%m%Y")),
        ("05012020", "17012020"),
        ("soon",),
    ),
    "lax labels": (
        Category(
            name="x",
            values=("Private", "12", "True"),
            missing=True,
            other=True,
            reading=Reading(strip=True, case="ignore", missing_codes=("?", "-9")),
        ),
        (" private", "12", " 12", "-9", "TRUE"),
        ("?", "maybe", " - 9"),
    ),
    "words": (
        Category(
            name="x",
            kind="boolean",
            values=("false", "true"),
            missing=True,
            reading=Reading(values=("1", "2"), missing_codes=("9",)),
        ),
        ("1", "2", "9", "true"),
        ("yes", "0", "x"),
    ),
    "texts": (Category(name="x", values=("NA", "é", "a b", 'q"u', "a,b"), other=True), ("é", "a b", "a,b"), ("null",)),
    "datetime": (
        Ordered(
            name="x", kind="datetime", low=86_400 * DAY - 9_000, high=86_400 * DAY, step=Fraction(60), missing=True
        ),
        ("2020-02-27 22:00:00", "2020-02-27 23:59:59", "2020-02-28 00:00:00"),
        ("2020-02-27 22:30:00.9", "2020-02-27 24:00", "27.02.2020 22:00"),
    ),
}
"""For each: the column, cells as its schema writes them, and cells that upset it, besides those that upset any."""


def upsets(name: str) -> list[str]:
    return list(dict.fromkeys([*COLUMNS[name][2], *_COMMON]))


def base(name: str) -> Table:
    cells = itertools.cycle(COLUMNS[name][1])
    return [(cell, str(20 + i % 3)) for i, cell in zip(range(ROWS), cells, strict=False)]


def schema_of(name: str) -> Schema:
    return Schema(columns=(COLUMNS[name][0], PARTNER))


def neighbours(name: str, cells: Sequence[str]) -> Iterator[tuple[str, Table]]:
    """A table, tables with another row in place of one in the middle, and tables with a row more."""
    table, place = base(name), ROWS // 2
    yield "same", table
    for cell in cells:
        yield f"replaced by {cell!r}", [*table[:place], (cell, "35"), *table[place + 1 :]]
    for cell in cells:
        yield f"and {cell!r}", [*table, (cell, "35")]


# ------------------------------------------------------------------------------------------------------------- ways in


def csv_text(table: Table, delimiter: str = ",") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([HEADER, *table])
    return text.getvalue()


def csv_file(folder: Path, table: Table) -> Path:
    path = folder / "table.csv"
    path.write_text(csv_text(table), encoding="utf-8")
    return path


def packed(folder: Path, table: Table) -> Path:
    path = folder / "table.tsv.gz"
    path.write_bytes(gzip.compress(csv_text(table, "\t").encode()))
    return path


def semicolons(folder: Path, table: Table) -> Path:
    path = folder / "table.csv"
    path.write_text(csv_text(table, ";"), encoding="utf-8")
    return path


def archive(folder: Path, table: Table) -> Path:
    path = folder / "table.zip"
    with zipfile.ZipFile(path, "w") as packing:
        packing.writestr("table.csv", "sep=|\n" + csv_text(table, "|"))
    return path


def json_lines_of_texts(folder: Path, table: Table) -> Path:
    path = folder / "table.jsonl"
    path.write_text(json_lines(dict(zip(HEADER, zip(*table, strict=True), strict=True))), encoding="utf-8")
    return path


def json_lines_of_values(folder: Path, table: Table) -> Path:
    """What looks like a value of JSON is one: numbers, truths, and nothing for an empty text."""
    path = folder / "table.ndjson.gz"
    lines = []
    for row in table:
        fields = {name: text if is_json(text) else json.dumps(text) for name, text in zip(HEADER, row, strict=True)}
        lines.append("{" + ", ".join(f'"{name}": {text}' for name, text in fields.items() if text != '""') + "}")
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def excel_of_texts(folder: Path, table: Table) -> Path:
    return workbook_of(folder / "table.xlsx", dict(zip(HEADER, zip(*table, strict=True), strict=True)), inline=True)


def excel_as_typed(folder: Path, table: Table) -> Path:
    """Cells as Excel keeps what somebody types: numbers, truths and days where a text looks like one."""

    def kept(text: str) -> Any:
        if text in ("", "true", "True", "false", "FALSE"):
            return text.lower() == "true" if text else None
        with contextlib.suppress(ValueError):
            return datetime.date.fromisoformat(text)
        with contextlib.suppress(ValueError):
            return float(text)
        return text

    columns = [[kept(text) for text in column] for column in zip(*table, strict=True)]
    return workbook_of(folder / "table.xlsx", dict(zip(HEADER, columns, strict=True)))


def is_json(text: str) -> bool:
    try:
        return text == text.strip() and isinstance(json.loads(text), (int, float))
    except ValueError:
        return False


def arrow_texts(table: Table) -> pa.Table:
    return pa.table({name: pa.array([row[j] for row in table], pa.string()) for j, name in enumerate(HEADER)})


def texts_parquet(folder: Path, table: Table) -> Path:
    path = folder / "table.parquet"
    pq.write_table(arrow_texts(table), path)
    return path


def typed_parquet(folder: Path, table: Table, kind: str) -> Path:
    """The schema's own type for the column: whoever declares it loses the cells that are none of it."""
    path = folder / "table.parquet"
    held = duckdb.connect().from_arrow(arrow_texts(table))
    held.project(f"TRY_CAST(x AS {kind}) AS x, age::INTEGER AS age").write_parquet(str(path))
    return path


def folders(folder: Path, table: Table) -> Path:
    """As Spark writes partitions: the age is in the folders' names alone."""
    for age in {row[1] for row in table}:
        inside = folder / "parts" / f"age={age}"
        inside.mkdir(parents=True, exist_ok=True)
        rows = [row for row in table if row[1] == age]
        pq.write_table(arrow_texts(rows).select(["x"]), inside / "part-0.parquet")
    return folder / "parts"


def pattern(folder: Path, table: Table) -> Path:
    for j in range(2):
        pq.write_table(arrow_texts(table[j::2]), folder / f"part-{j}.parquet")
    return folder / "part-*.parquet"


def pandas_read(table: Table, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # dates of several formats
        return pd.read_csv(io.StringIO(csv_text(table)), **options)


def polars_read(table: Table, **options: Any) -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(csv_text(table).encode()), **options)


def arrow_read(table: Table, kinds: dict[str, Any] | None = None) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=kinds is None)
    return pyarrow.csv.read_csv(io.BytesIO(csv_text(table).encode()), convert_options=options)


def database(folder: Path, table: Table) -> Path:
    path = folder / "town.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE people (x VARCHAR, age VARCHAR)")
        con.executemany("INSERT INTO people VALUES (?, ?)", table)
    return path


def attached(folder: Path, table: Table) -> Unopened:
    return Unopened(
        "SELECT x, age FROM town.people WHERE age <> '0'", attached=(("town", str(database(folder, table))),)
    )


def a_relation(folder: Path, table: Table) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().read_parquet(str(texts_parquet(folder, table)))


READ: dict[str, Callable[[Path, Table], Any]] = {
    "CSV": csv_file,
    "TSV, packed": packed,
    "CSV of semicolons": semicolons,
    "CSV in a zip archive": archive,
    "JSON lines of texts": json_lines_of_texts,
    "JSON lines of values": json_lines_of_values,
    "Excel of texts": excel_of_texts,
    "Excel as typed": excel_as_typed,
    "Parquet of texts": texts_parquet,
    "Parquet of dates": lambda folder, table: typed_parquet(folder, table, "DATE"),
    "Parquet of floats": lambda folder, table: typed_parquet(folder, table, "DOUBLE"),
    "Parquet of integers": lambda folder, table: typed_parquet(folder, table, "BIGINT"),
    "folders": folders,
    "pattern": pattern,
    "relation of Parquet": a_relation,
    "relation of a table": lambda folder, table: duckdb.connect(str(database(folder, table))).table("people"),
    "relation, pushed down": lambda folder, table: pushed_down(a_relation(folder, table)),
    "SQL over Parquet": lambda folder, table: Unopened(f"SELECT x, age FROM '{texts_parquet(folder, table)}'"),
    "SQL over an attached database": attached,
    "pandas, all texts": lambda folder, table: pandas_read(table, dtype=str, keep_default_na=False),
    "polars, all texts": lambda folder, table: polars_read(table, infer_schema=False),
    "polars lazy, all texts": lambda folder, table: polars_read(table, infer_schema=False).lazy(),
    "polars lazy, pushed down": lambda folder, table: pushed_down(polars_read(table, infer_schema=False).lazy()),
    "pyarrow, all texts": lambda folder, table: arrow_read(table, dict.fromkeys(HEADER, pa.string())),
}
"""Nothing is guessed here, and no row is a reason to refuse the table."""

GUESSED: dict[str, Callable[[Path, Table], Any]] = {
    "pandas.read_csv": lambda folder, table: pandas_read(table),
    "pandas.read_csv with dates": lambda folder, table: pandas_read(table, parse_dates=["x"]),
    "pandas.read_csv, Arrow's types": lambda folder, table: pandas_read(table, dtype_backend="pyarrow"),
    "pandas.read_csv, nullable types": lambda folder, table: pandas_read(table, dtype_backend="numpy_nullable"),
    "pandas categories": lambda folder, table: pandas_read(table).astype({"x": "category"}),
    "polars.read_csv": lambda folder, table: polars_read(table, infer_schema_length=None),
    "polars.read_csv with dates": lambda folder, table: polars_read(
        table, infer_schema_length=None, try_parse_dates=True
    ),
    "polars.read_csv, lazy and pushed down": lambda folder, table: pushed_down(
        polars_read(table, infer_schema_length=None).lazy()
    ),
    "pyarrow.csv.read_csv": lambda folder, table: arrow_read(table),
    "relation of pyarrow": lambda folder, table: duckdb.connect().from_arrow(arrow_read(table)),
    "relation of pyarrow, pushed down": lambda folder, table: pushed_down(
        duckdb.connect().from_arrow(arrow_read(table))
    ),
}
"""Somebody else has guessed types. Either a cell is read alike whatever the type, or the type is refused."""

REFUSED: dict[str, Callable[[Path, Table], Any]] = {
    "SQL over CSV": lambda folder, table: Unopened(f"SELECT * FROM '{csv_file(folder, table)}'"),
    "SQL over read_csv": lambda folder, table: Unopened(
        f"SELECT * FROM read_csv('{csv_file(folder, table)}', all_varchar = true, header = true)"
    ),
    "relation of CSV": lambda folder, table: duckdb.connect().read_csv(str(csv_file(folder, table))),
    "relation of pandas": lambda folder, table: duckdb.connect().from_df(pandas_read(table)),
    "polars.scan_csv": lambda folder, table: pl.scan_csv(csv_file(folder, table)),
    "SQL over folders": lambda folder, table: Unopened(f"SELECT * FROM '{folders(folder, table)}/*/*.parquet'"),
}
"""Types come from rows, and that can be seen."""


def counts(data: Any, schema: Schema) -> list[np.ndarray]:
    """Exact integers of a table: of each column, and of both."""
    marginals = Marginals.even(schema, [(0,), (1,), (0, 1)], resolution=40)
    found = rows_of(open_source(data), schema, "counting")(CellCounts(schema, marginals))
    return [np.asarray(block) for block in found]


def distance(ours: list[np.ndarray], theirs: list[np.ndarray]) -> int:
    return max(int(np.abs(a - b).sum()) for a, b in zip(ours, theirs, strict=True))


def read_or_none(way: Callable[[Path, Table], Any], folder: Path, table: Table, schema: Schema) -> Any:
    """The integers of a table; None where it is refused, or where the tool that guesses gives up."""
    try:
        data = way(folder, table)
    except (InputError, OverflowError, pa.ArrowInvalid, pl.exceptions.ComputeError):
        return None
    try:
        return counts(data, schema)
    except InputError:
        return None


def farthest(found: dict[str, list[np.ndarray] | None]) -> dict[tuple[str, str], int]:
    """Pairs of tables whose integers differ by more than one row makes: 2 where it is replaced, 1 where it is added."""
    there = {what: blocks for what, blocks in found.items() if blocks is not None}
    wrong = {}
    for (a, ours), (b, theirs) in itertools.combinations(there.items(), 2):
        one, other = (what.startswith("and") for what in (a, b))
        if one != other and "same" not in (a, b):
            continue  # these differ in two rows
        allowed = 1 if one != other else 2
        if (off := distance(ours, theirs)) > allowed:
            wrong[a, b] = off
    return wrong
