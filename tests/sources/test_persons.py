"""Rows of persons: every reader keeps the same ones, nobody changes those of others, and nothing private is shown."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from neighbours import GUESSED, READ, Table
from workbook import workbook_of

from certsynth import Schema, check, release
from certsynth.domain import Category, Ordered
from certsynth.domain.persons import Persons
from certsynth.errors import InputError, TooLarge
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.sources import open_source, persons, pushed_down
from certsynth.sources.packed import PackedColumn
from certsynth.sources.persons import keep_rows
from certsynth.sources.sql import Unopened

CANARY = "zaphod-4711"

AGE = Ordered(name="age", kind="integer", low=0, high=60)
SCHEMA = Schema(columns=(AGE,))


def counts(data: Any, who: Persons, schema: Schema = SCHEMA, **options: Any) -> list[int]:
    """Exact integers of the kept rows: of every column, and of all together."""
    every = tuple(range(len(schema)))
    subsets = [*((j,) for j in every), every] if len(schema) > 1 else [(0,)]
    marginals = Marginals.even(schema, subsets, resolution=60)
    kept = keep_rows(open_source(data), schema, who, **options)
    blocks = kept.rows_of(schema, "counting")(CellCounts(schema, marginals))
    found = [int(count) for block in blocks for count in np.asarray(block).ravel()]
    totals = kept.contributions()
    return [*found, kept.count(), totals.over, totals.within, totals.kept, totals.dropped]


# ----------------------------------------------------------------------------------------- guesses of types and readers

WRITTEN = {
    "whole numbers": ["7", "12", "300", "12", "7", "7", "4"],
    "whole numbers with zeros in front": ["007", "012", "300", "12", "7", "7", "004"],
    "long numbers": ["10000000000000001", "10000000000000002", "10000000000000003", "10000000000000001"],
    "very long numbers": ["9" * 30, "8" * 30, "9" * 29 + "8", "9" * 30],
    "texts": ["P-1", "P-2", "P-1", "q", "P-1", "P-1"],
    "decimals": ["7.5", "7.50", "8.25", "7.5", "9.0", "9"],
    "exponents": ["12e2", "1200", "3e5", "12e2", "4e1"],
    "dates": ["2020-01-05", "2020-02-05", "2020-01-05", "2021-01-05"],
    "truths": ["true", "false", "true", "true"],
}
WAYS = {**READ, **GUESSED}
UPSETS = ["", "NA", "X", "7.25", "1e9", "2020-03-05", "False", "-1", "99999999999999999999", "inf", "nan", "maybe"]


def table_of(name: str) -> Table:
    ids = WRITTEN[name]
    return [(ids[i % len(ids)], str(1 + i % 50)) for i in range(30)]


def counts_or_none(way: Callable[[Path, Table], Any], folder: Path, table: Table, who: Persons) -> list[int] | None:
    folder.mkdir()
    try:
        return counts(way(folder, table), who)
    except (InputError, OverflowError, pa.ArrowInvalid, pl.exceptions.ComputeError):
        return None


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("way", WAYS)
def test_one_more_person_changes_no_other_persons_rows(way: str, tmp_path: Path) -> None:
    """Even where the type of the ids was guessed from all of them: then long numbers, as floats, are refused."""
    first = list(WAYS).index(way)
    name = list(WRITTEN)[first % len(WRITTEN)]
    compare_with_one_person_more(way, name, [UPSETS[first % len(UPSETS)]], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("way", WAYS)
def test_no_cell_changes_other_persons_rows(way: str, name: str, tmp_path: Path) -> None:
    compare_with_one_person_more(way, name, UPSETS, tmp_path)


def compare_with_one_person_more(way: str, name: str, upsets: Sequence[str], tmp_path: Path) -> None:
    who, reader = Persons("x", 2), WAYS[way]
    base = counts_or_none(reader, tmp_path / "base", table_of(name), who)
    for j, cell in enumerate(upsets):
        if cell in WRITTEN[name]:
            continue
        more = [*table_of(name)[:10], *((cell, str(50 + i)) for i in range(3)), *table_of(name)[10:]]
        found = counts_or_none(reader, tmp_path / str(j), more, who)
        if base is not None and found is not None:
            changes = np.array(found[:-5]) - np.array(base[:-5])
            assert np.abs(changes).sum() <= 2, (way, name, cell)


@pytest.mark.parametrize(
    "name", [each if "zeros" in each else pytest.param(each, marks=pytest.mark.slow) for each in WRITTEN]
)
def test_all_readers_keep_the_same_rows(name: str, tmp_path: Path) -> None:
    table, who = table_of(name), Persons("x", 2, "persons")
    expected = counts(READ["CSV"](tmp_path, table), who)
    for number, (way, reader) in enumerate(WAYS.items()):
        found = counts_or_none(reader, tmp_path / str(number), table, who)
        typed = way in ("Parquet of dates", "Parquet of floats", "Parquet of integers")
        if found is not None and not (typed and name != way.removeprefix("Parquet of ")):
            assert found == expected, (way, name)
        if way in READ and not typed and not (way == "Excel as typed" and "long" in name):  # it has floats only
            assert found is not None, (way, name)


# ------------------------------------------------------------------------------------------------- typed ids by readers

ZONE = datetime.timezone(datetime.timedelta(hours=-5))
MOMENT = datetime.datetime(2020, 5, 1, 10, 30)
TYPED: dict[str, tuple[Sequence[Any], pa.DataType]] = {
    "int8": ([1, 2, None, -3], pa.int8()),
    "uint64": ([1, 2**64 - 1, None, 3], pa.uint64()),
    "double": ([1.0, 2.5, None, float("nan"), -0.0], pa.float64()),
    "float": ([1.0, 2.5, None, 1e6], pa.float32()),
    "text": (["a", " b", None, "", "é", "7"], pa.string()),
    "large text": (["a", "b", None, CANARY], pa.large_string()),
    "truth": ([True, False, None], pa.bool_()),
    "date": ([datetime.date(2020, 1, 5), datetime.date(1900, 1, 5), None], pa.date32()),
    "time in microseconds": ([MOMENT, datetime.datetime(2020, 5, 1), None], pa.timestamp("us")),
    "time in nanoseconds": ([MOMENT, datetime.datetime(2020, 5, 1), None], pa.timestamp("ns")),
    "instant": (
        [MOMENT.replace(tzinfo=ZONE), MOMENT.replace(tzinfo=datetime.UTC), None],
        pa.timestamp("us", "Asia/Kolkata"),
    ),
    "decimal": ([Decimal("7.50"), Decimal("8.00"), None], pa.decimal128(9, 2)),
    "whole decimal": ([Decimal(7), Decimal(10**20), None], pa.decimal128(25, 0)),
    "dictionary": (["a", "b", None, "a"], pa.dictionary(pa.int8(), pa.string())),
    "time of day": ([datetime.time(10, 30), datetime.time(10, 30, 1), None], pa.time64("us")),
}
TYPED_CASES = [
    pytest.param(name, missing, marks=[pytest.mark.slow] if (i + j) % 2 else [])
    for i, name in enumerate(TYPED)
    for j, missing in enumerate(("drop", "separate"))
]
PAIR = Schema(columns=(AGE, Category(name="sex", values=("f", "m"), missing=True)))


def typed_table(name: str) -> pa.Table:
    ids, kind = TYPED[name]
    rows = [(ids[i % len(ids)], i % 60, ("f", "m", None)[i % 3]) for i in range(40)]
    who = pa.array([row[0] for row in rows], pa.string() if name == "dictionary" else kind)
    return pa.table(
        {
            "who": who.dictionary_encode() if name == "dictionary" else who,
            "age": pa.array([row[1] for row in rows]),
            "sex": pa.array([row[2] for row in rows]),
        }
    )


def forms(name: str, folder: Path) -> Iterator[tuple[str, Any]]:
    table = typed_table(name)
    file = folder / "typed.parquet"
    pyarrow.parquet.write_table(table, file)
    yield "Parquet", file
    yield "relation", duckdb.connect().read_parquet(str(file))
    yield "relation, pushed down", pushed_down(duckdb.connect().read_parquet(str(file)))
    yield "SQL", Unopened(f"SELECT who, age, sex FROM '{file}'")
    yield "pyarrow", table
    yield "polars", pl.from_arrow(table)
    yield "polars lazy", pl.from_arrow(table).lazy()
    yield "pandas with Arrow's types", table.to_pandas(types_mapper=pd.ArrowDtype)
    values = table.column("who").to_pylist()
    rest = {column: table.column(column).to_pylist() for column in ("age", "sex")}
    objects = pd.Series(values, dtype=object)
    yield "pandas objects", pd.DataFrame({"who": objects, **rest})
    if name not in ("uint64", "whole decimal", "time of day"):  # pandas has no such type
        yield "pandas", table.to_pandas()
    if name != "instant":  # what a sheet or a text shows has no zone
        texts = ["" if value is None or value != value else str(value) for value in values]
        pd.DataFrame({"who": texts, **rest}).to_csv(folder / "typed.csv", index=False)
        yield "CSV", folder / "typed.csv"
        plain = [json_value(value) for value in values]
        lines = [{"who": who, "age": a, "sex": s} for who, a, s in zip(plain, rest["age"], rest["sex"], strict=True)]
        (folder / "typed.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        yield "JSON lines", folder / "typed.jsonl"
        present = [None if value is None or value != value else value for value in values]
        yield "Excel", workbook_of(folder / "typed.xlsx", {"who": present, **rest})


def json_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return None if value != value else value
    return str(value)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize(("name", "missing"), TYPED_CASES)
def test_ids_of_any_type_are_the_same_persons_in_every_form(name: str, missing: Any, tmp_path: Path) -> None:
    who = Persons("who", 2, "persons", missing)
    found = {form: counts(data, who, PAIR) for form, data in forms(name, tmp_path)}
    assert len(set(map(tuple, found.values()))) == 1, found
    ids = {value for value in TYPED[name][0] if value is not None and value == value and value != ""}
    absent = sum(value in (None, "") or value != value for value in typed_table(name).column("who").to_pylist())
    assert found["Parquet"][-5] == 2 * (len(ids) + (absent if missing == "separate" else 0))


def test_ids_in_names_of_folders_are_ids(tmp_path: Path) -> None:
    for who, ages in {"7": [1, 2, 3], "8": [4]}.items():
        (tmp_path / f"who={who}").mkdir()
        pyarrow.parquet.write_table(pa.table({"age": ages}), tmp_path / f"who={who}" / "part.parquet")
    assert counts(tmp_path, Persons("who", 1))[-5] == 2


# --------------------------------------------------------------------------------------------------- refusals and words

NESTED = {
    "lists": pa.array([[CANARY], [CANARY]]),
    "records": pa.array([{"a": CANARY}, None]),
    "bytes": pa.array([CANARY.encode(), None]),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("missing", ["drop", "separate"])
def test_ids_of_a_type_that_no_id_has_are_refused_before_rows_are_read(kind: str, missing: Any, tmp_path: Path) -> None:
    table = pa.table({"who": NESTED[kind], "age": [1, 2]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    relation = duckdb.connect().read_parquet(str(tmp_path / "t.parquet"))
    for data in (table, pl.from_arrow(table), tmp_path / "t.parquet", relation):
        with pytest.raises(
            InputError, match=r"'who', which .table. person names, holds lists, records or bytes"
        ) as found:
            keep_rows(open_source(data), SCHEMA, Persons("who", 1, missing=missing))
        assert CANARY not in str(found.value)


@pytest.mark.parametrize(
    "value", [[CANARY], {"a": CANARY}, CANARY.encode(), 1e17], ids=["list", "dict", "bytes", "float"]
)
@pytest.mark.parametrize("missing", ["drop", "separate"])
def test_a_single_value_that_is_no_id_is_refused(value: Any, missing: Any, tmp_path: Path) -> None:
    who = Persons("who", 1, missing=missing)
    tables: list[Any] = [pd.DataFrame({"who": pd.Series(["a", value], dtype=object), "age": [1, 2]})]
    if isinstance(value, (list, dict)):
        lines = [{"who": "a", "age": 1}, {"who": value, "age": 2}]
        (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        tables.append(tmp_path / "t.jsonl")
    if isinstance(value, float):
        pyarrow.parquet.write_table(pa.table({"who": [1.0, value], "age": [1, 2]}), tmp_path / "t.parquet")
        tables += [tmp_path / "t.parquet", Unopened(f"SELECT * FROM '{tmp_path / 't.parquet'}'")]
    for data in tables:
        with pytest.raises(InputError) as found:
            counts(data, who)
        assert "'who'" in str(found.value)
        assert "\n" not in str(found.value)
        assert CANARY not in str(found.value)
        with pytest.raises(InputError):
            check(data, dataclasses.replace(SCHEMA, persons=who))


def test_a_person_column_that_the_table_lacks_is_named(tmp_path: Path) -> None:
    table = pa.table({"patient": ["a"], "age": [1]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pd.DataFrame({"patient": ["a"], "age": [1]}).to_csv(tmp_path / "t.csv", index=False)
    schema = dataclasses.replace(SCHEMA, persons=Persons("patiant", 1))
    for data in (table, tmp_path / "t.parquet", tmp_path / "t.csv", Unopened(f"SELECT * FROM '{tmp_path}/t.parquet'")):
        for use in (
            lambda data: release(data, schema, epsilon=1, out=tmp_path / "out"),
            lambda data: check(data, schema),
        ):
            with pytest.raises(InputError, match=r"no column 'patiant', which \[table\] person names.*'patient'\?"):
                use(data)


def test_the_first_line_of_a_file_without_a_header_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{CANARY},31\n{CANARY},32\n", encoding="utf-8")
    with pytest.raises(InputError) as found:
        keep_rows(open_source(tmp_path / "t.csv"), SCHEMA, Persons("who", 1))
    assert CANARY not in str(found.value)


def test_memory_is_refused_with_the_numbers_before_anything_is_spent(tmp_path: Path) -> None:
    schema = dataclasses.replace(PAIR, persons=Persons("who", 2))
    people = pd.DataFrame({"who": np.arange(60_000), "age": 1, "sex": "f"})
    with pytest.raises(
        TooLarge, match=r"needs more than the .* GB at hand: twice 22 bytes for each of up to 8"
    ) as found:
        release(people, schema, epsilon=1, memory=2**21, ledger=tmp_path / "ledger.jsonl", cap=2, sparsity=1)
    assert "60" not in str(found.value)
    assert found.value.__notes__ == ["Nothing was spent."]


def test_progress_shows_no_number_of_rows() -> None:
    seen: list[tuple[str, int, int | None]] = []
    people = pd.DataFrame({"who": np.arange(300_000) % 1000, "age": 1})
    counts(people, Persons("who", 1), progress=lambda phase, done, total: seen.append((phase, done, total)))
    assert seen == [(persons.PERSONS_PHASE, 0, None), ("counting", 0, None)]


def test_kept_rows_show_nothing() -> None:
    kept = keep_rows(open_source(pd.DataFrame({"who": [CANARY], "age": [31]})), SCHEMA, Persons("who", 1))
    assert kept.count() == 1
    assert repr(kept) == "HeldRows(<private>)"


# ------------------------------------------------------------------------------------------------------- packed columns

COLUMNS = [
    Ordered(name="x", kind="integer", low=-3, high=250, missing=True),
    Ordered(name="x", kind="integer", low=0, high=2**40),
    Ordered(name="x", kind="number", low=-1, high=2, missing=True),
    Ordered(name="x", kind="ordinal", low=0, high=2, values=("a", "b", "c")),
    Ordered(name="x", kind="date", low=0, high=30_000, missing=True),
    Category(name="x", values=tuple(map(str, range(300))), other=True, missing=True),
    *Schema.parse(
        '[[column]]\nname = "a"\nkind = "number"\nlow = 0\nhigh = 1\nstep = 0.01\nmissing = true\n'
        '[[column]]\nname = "b"\nkind = "integer"\nlow = 0\nhigh = 100\nstep = 5\n'
        '[[column]]\nname = "c"\nkind = "number"\nlow = 1\nhigh = 100000\nscale = "log"\nmissing = true\n'
    ),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.kind} {PackedColumn.of(column).kind}")
def test_packed_values_come_back_bit_by_bit(column: Any) -> None:
    rng = np.random.default_rng(1)
    raw = np.concatenate([rng.uniform(-5, 400, 3000), rng.integers(-5, 2**41, 300).astype(float), [np.nan] * 3])
    clean = column.clean(raw)
    packed = PackedColumn.of(column)
    codes = packed.pack(clean)
    assert codes.dtype == packed.kind
    back = packed.unpack(codes)
    assert back.dtype == clean.dtype
    assert np.array_equal(back, clean, equal_nan=back.dtype.kind == "f")
