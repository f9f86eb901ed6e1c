"""Whatever rows hold and however they come, each counts once, or all are refused in one line without a cell."""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import CANARY, FORMULAS, LENGTHS, check_refusal, hunt, texts, valid_schemas
from hypothesis import strategies as st

from certsynth import Release, release
from certsynth.domain import Ordered, Schema
from certsynth.errors import CertsynthError
from certsynth.queries import Marginals
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import all_subsets
from certsynth.sources import cleaned, open_source
from small import emitted

BERLIN = datetime.timezone(datetime.timedelta(hours=2))
ODD = [
    *(None, math.nan, math.inf, -math.inf, 1e30, -1e300, 5e-324, -0.0, True, False, 0, 1, -1, 2**63, 10**30, 10**400),
    *(b"", b"\xff", Decimal("1.50"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999999"), Fraction(1, 3), 1j, [], [1]),
    *({"a": 1}, datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime(2020, 2, 29, 23, 59)),
    *(datetime.datetime(2020, 1, 1, tzinfo=BERLIN), datetime.time(1), datetime.timedelta.max, pd.NaT, pd.NA),
    *(CANARY, f"={CANARY}", f"{CANARY}\n{CANARY}", f'"{CANARY}', f"{CANARY}\udc80", f"{CANARY}," * 20, "x" * 3_000),
]
cells = st.one_of(st.sampled_from(ODD), texts, st.integers(), st.floats(), st.dates(), st.datetimes(), st.decimals())

ARROW: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), st.floats()),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.sampled_from([CANARY, "", "1", "x", "2020-01-01", "true", "\x00", "NA"])),
    "large string": (pa.large_string(), st.sampled_from([CANARY, "", "nan", *FORMULAS])),
    "labels": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from([CANARY, "", "a", "b"])),
    "blob": (pa.binary(), st.binary(max_size=3)),
    "fixed blob": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "date32": (pa.date32(), st.dates()),
    "date64": (pa.date64(), st.dates()),
    "s": (pa.timestamp("s"), st.datetimes().map(lambda when: when.replace(microsecond=0))),
    "us": (pa.timestamp("us"), st.datetimes()),
    "ns": (pa.timestamp("ns"), st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))),
    "utc": (pa.timestamp("us", "UTC"), st.datetimes()),
    "time": (pa.time64("us"), st.times()),
    "duration": (pa.duration("us"), st.timedeltas()),
    "decimal": (pa.decimal128(20, 2), st.decimals(-(10**17), 10**17, places=2)),
    "wide decimal": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "list": (pa.list_(pa.string()), st.just([CANARY])),
    "record": (pa.struct([("a", pa.string())]), st.just({"a": CANARY})),
    "map": (pa.map_(pa.string(), pa.int64()), st.just([(CANARY, 1)])),
    "null": (pa.null(), st.none()),
}

Table = dict[str, list[Any]]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, Table]:
    """A schema, and rows of any Python objects for it."""
    schema, rows = draw(valid_schemas()), draw(st.integers(0, 12))
    return schema, {name: draw(st.lists(cells, min_size=rows, max_size=rows)) for name in schema.names}


@st.composite
def arrow_tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """A schema, and rows of any types of Arrow for it."""
    schema, rows = draw(valid_schemas()), draw(st.integers(0, 12))
    made = {}
    for name in schema.names:
        kind, values = ARROW[draw(st.sampled_from(sorted(ARROW)))]
        made[name] = pa.array(draw(st.lists(values | st.none(), min_size=rows, max_size=rows)), kind)
    return schema, pa.table(made)


def check_each_counts_once(data: Any, schema: Schema, rows: int | None) -> bool:
    """Every marginal, of cells and of lattices, holds every row once; or a refusal; whether it could be read."""
    try:
        batches = list(cleaned(open_source(data), schema, rows=5))
    except CertsynthError as error:
        check_refusal(error, hidden=CANARY)
        return False
    found = sum(len(batch[0]) for batch in batches)
    if rows is not None:
        assert found == rows
    for ways in range(1, min(2, len(schema)) + 1):
        even = Marginals.all_subsets(schema, sparsity=ways, resolution=4)
        coded = [[c.to_cells(x, g) for c, x, g in zip(schema, batch, even.cells, strict=True)] for batch in batches]
        for batch in coded:
            for codes, column_cells in zip(batch, even.cells, strict=True):
                assert ((codes >= 0) & (codes < column_cells.size)).all()
        fine = LatticeQuery.of(schema, all_subsets(schema, ways), steps=8)
        for counts in (even.count(coded), fine.count(batches).counts):
            assert [int(block.sum()) for block in counts] == [found] * len(counts.blocks)
    return True


def as_csv(table: Table, folder: Path) -> Path:
    path = folder / "rows.csv"
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table)
    writer.writerows([["" if x is None else _text(x) for x in row] for row in zip(*table.values(), strict=True)])
    path.write_bytes(text.getvalue().encode(errors="surrogateescape"))
    return path


def _text(value: Any) -> str:
    try:
        return str(value).encode(errors="surrogateescape").decode(errors="surrogateescape")
    except ValueError:  # more digits than Python prints, or half a character
        return CANARY


OBJECTS: dict[str, Callable[[Table, Path], Any]] = {
    "csv": as_csv,
    "pandas": lambda table, folder: pd.DataFrame({name: pd.Series(x, dtype=object) for name, x in table.items()}),
    "polars": lambda table, folder: pl.DataFrame({name: pl.Series(x, dtype=pl.Object) for name, x in table.items()}),
}


@LENGTHS
@pytest.mark.parametrize("form", OBJECTS)
def test_rows_of_any_objects_count_once(form, scratch, times):
    seen = {True: 0, False: 0}

    def check(drawn: tuple[Schema, Table]) -> None:
        schema, table = drawn
        rows = len(next(iter(table.values())))
        blank = form == "csv" and len(table) > 1  # a line of empty fields has delimiters: it is a row
        seen[
            check_each_counts_once(OBJECTS[form](table, scratch), schema, rows if form != "csv" or blank else None)
        ] += 1

    hunt(check, examples=40, times=times, drawn=tables())
    assert seen[True] > 10, seen


def as_parquet(table: pa.Table, folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(table, path)
    return path


def as_relation(table: pa.Table, folder: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().from_parquet(str(as_parquet(table, folder)))


TYPED: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": as_parquet,
    "relation": as_relation,
    "arrow": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_arrow(table),
    "polars lazy": lambda table, folder: pl.DataFrame(pl.from_arrow(table)).lazy(),
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas with arrow types": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.quick_cases(4)
@LENGTHS
@pytest.mark.parametrize("form", TYPED)
def test_rows_of_any_types_count_once(form, scratch, times):
    seen = {True: 0, False: 0}

    def check(drawn: tuple[Schema, pa.Table]) -> None:
        schema, table = drawn
        try:
            data = TYPED[form](table, scratch)
        except Exception:  # what a library cannot hold itself does not come to us
            return
        seen[check_each_counts_once(data, schema, table.num_rows)] += 1

    hunt(check, examples=20, times=times, drawn=arrow_tables())
    assert seen[True] > 10, seen


def check_allowed(schema: Schema, table: Any, content: str) -> None:
    """Values of the schema only, and no field of the CSV file that a spreadsheet would run."""
    for column in schema:
        values = [value for value in table[column.name].to_list() if value is not None]
        if isinstance(column, Ordered) and column.kind in ("integer", "number"):
            assert all(column.low <= value <= column.high for value in values)
        elif not isinstance(column, Ordered) and column.kind != "boolean":
            assert set(values) <= set(column.labels)
    for row in csv.reader(io.StringIO(content, newline=""), strict=True):
        for field in row:
            if field.startswith(("=", "+", "-", "@", "\t", "\r")):
                float(field)


@LENGTHS
def test_a_release_of_any_rows_verifies_and_is_safe_to_open(scratch, times):
    made = []

    def check(drawn: tuple[Schema, Table], asked: dict[str, Any]) -> None:
        schema, table = drawn
        frame = pd.DataFrame({name: pd.Series(x, dtype=object) for name, x in table.items()})
        out = scratch / f"release-{len(made)}"
        try:
            result = release(frame, schema, out=out, resolution=2, mechanism="identity", rows=7, **asked)
        except CertsynthError as error:
            check_refusal(error, hidden=CANARY)
            if " apart" in str(error) or "the table has no rows" in str(error):
                return
            raise  # nothing else may be refused
        made.append(out)
        checks = Release.load(out).verify()
        assert all(check["ok"] for check in checks), checks
        files = {path.name: path.read_bytes() for path in out.iterdir()}
        assert not any(CANARY.encode() in content for content in files.values())
        check_allowed(schema, emitted(result), files["synthetic.csv"].decode())

    asked = st.sampled_from(
        [
            {"epsilon": 1},
            {"rho": "0.5"},
            {"epsilon": 2, "neighbours": "add-remove"},
            {"epsilon": 5, "certificate_share": 0},
        ]
    )
    hunt(check, examples=6, times=times, drawn=tables(), asked=asked)
