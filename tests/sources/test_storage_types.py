"""Every kind of column × every type of storage × every reader: the same integers, value by value."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import storage
from everything import shown
from nasty import as_in_json
from storage import (
    ENGINES,
    KINDS,
    READERS,
    READINGS,
    STORAGE,
    WRITTEN_OTHERWISE,
    arrow,
    columns_of_every_kind,
    columns_with_readings,
    held_by,
    seen,
)

from certsynth import evaluate
from certsynth.domain import Column, Ordered, Schema
from certsynth.domain.cells import Groups
from certsynth.domain.cleaning import as_labels
from certsynth.domain.reading import Reading
from certsynth.queries.coding import move_units
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.tally import tally_batches
from certsynth.sources import cleaned, codes, open_source, pushed_down, rows_of
from certsynth.sources.codes import cell_codes, lattice_codes, moved_units
from certsynth.sources.pushdown import PushedDown

READ_AT_ONCE = ("csv", "json lines", "excel", "parquet", "query")
"""Readers that clean columns on the way, with rules of their own for listed texts and for days."""

SOME_KINDS = [kind for j, kind in enumerate(KINDS) if j % 4 in (1, 2)]
"""Every kind, and both ways to treat missing values."""


@functools.cache
def columns(name: str) -> dict[str, Column]:
    return columns_of_every_kind(name) | columns_with_readings(name)


@functools.cache
def reference(name: str, kind: str, by: str) -> np.ndarray:
    values = seen(name, by="engines" if by == "json" else by)
    if by == "json":
        values = np.fromiter(as_in_json(values.tolist()), object, len(values))
    if by == "text" and kind in WRITTEN_OTHERWISE:
        values = np.fromiter((text or "" for text in as_labels(values)), object, len(values))
    return columns(name)[kind].clean(values)


def differing(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    assert found.shape == wanted.shape
    return np.flatnonzero((found != wanted) & ~((found != found) & (wanted != wanted)))


def differences(reader: str, kinds: Sequence[str], folder: Path) -> list[str]:
    """Where a reader does not give what `Column.clean` gives of the values themselves."""
    by, make = READERS[reader]
    by = "json" if reader == "json lines" else by
    names = held_by(reader)
    source = open_source(make(folder, arrow(names)))
    raw = [np.ma.concatenate(parts) for parts in zip(*source.batches(names, rows=50), strict=True)]
    found = []
    for kind in kinds:
        schema = Schema(columns=tuple(columns(name)[kind] for name in names))
        clean = [column.clean(values) for column, values in zip(schema, raw, strict=True)]
        ways = {"read": clean}
        if reader in READ_AT_ONCE:
            ways["cleaned"] = [np.concatenate(parts) for parts in zip(*cleaned(source, schema), strict=True)]
        for way, rows in ways.items():
            for name, values in zip(names, rows, strict=True):
                places = differing(values, reference(name, kind, by))
                if reader == "excel" and columns(name)[kind].reading.format:  # this sheet has texts for many times
                    held = raw[names.index(name)]
                    places = places[[not isinstance(held[i], str) for i in places]]
                for i in places[:1]:
                    found.append(f"{reader}, {way}: {name} as {kind}: value {i % len(STORAGE[name].values)}")
    return found


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_gives_the_same_integers(reader: str, tmp_path: Path) -> None:
    assert differences(reader, SOME_KINDS[1::3] if reader == "query" else SOME_KINDS, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_gives_the_same_integers_for_all_kinds(reader: str, tmp_path: Path) -> None:
    assert differences(reader, KINDS, tmp_path) == []


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_follows_the_options_for_texts(reader: str, tmp_path: Path) -> None:
    some = list(READERS).index(reader) % 3 if reader not in ("csv", "parquet") else 0
    step = 3 if reader not in ("csv", "parquet") else 1
    assert differences(reader, READINGS[some::step], tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_follows_all_options_for_texts(reader: str, tmp_path: Path) -> None:
    assert differences(reader, READINGS, tmp_path) == []


@pytest.mark.parametrize("kind", READINGS)
def test_every_reading_is_written_and_read_back(kind: str) -> None:
    column = columns("x")[kind]
    again = Schema.parse(Schema(columns=(column,)).to_toml())
    assert again.columns[0].reading == column.reading


@pytest.mark.parametrize("kind", [kind for kind in READINGS if kind not in WRITTEN_OTHERWISE])
def test_a_typed_value_is_read_as_its_text_with_options_too(kind: str) -> None:
    for name in STORAGE:
        typed = reference(name, kind, "text")
        texts = np.fromiter((text or "" for text in as_labels(seen(name, by="text"))), object, len(typed))
        assert len(differing(columns(name)[kind].clean(texts), typed)) == 0, name


def test_a_reader_that_rounds_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: floats of half the length, and days by another clock."""
    changed = {"float64": pa.float32(), "timestamp[us, elsewhere]": pa.timestamp("us", "UTC")}

    def cast(names: Sequence[str]) -> pa.Table:
        table = arrow(names)
        for name, kind in changed.items():
            table = table.set_column(names.index(name), name, table[name].cast(kind))
        return table

    monkeypatch.setitem(READERS, "pyarrow", ("frames", lambda folder, table: cast(table.column_names)))
    told = differences("pyarrow", SOME_KINDS, tmp_path)
    assert {name for name in STORAGE if any(f": {name} as" in each for each in told)} == set(changed)


NUMERIC = [n for n in STORAGE if n.startswith(("int", "uint", "float", "timestamp", "date", "truths"))]
MANY_ROWS = 8_300
"""More than it takes to start a compiled loop."""


@pytest.mark.parametrize("reader", ["parquet", "pandas", "polars", "pyarrow"])
def test_many_rows_are_cleaned_as_few_are(reader: str, tmp_path: Path) -> None:
    """Without nulls, so that pandas has plain numbers too."""
    by, make = READERS[reader]
    source = open_source(make(tmp_path, arrow(NUMERIC, MANY_ROWS, nulls=False)))
    raw = [np.ma.concatenate(parts) for parts in zip(*source.batches(NUMERIC), strict=True)]
    typed = [name for name, values in zip(NUMERIC, raw, strict=True) if values.dtype.kind in "biufM"]
    assert set(NUMERIC) - set(typed) <= {"date32", "date64"}
    for kind in ("integer", "long number", "date", "codes of integers", "codes of dates"):
        for name, values in zip(NUMERIC, raw, strict=True):
            if "date" in kind and not name.startswith(("int32", "timestamp")):
                continue  # there is one compiled loop for all of them
            column = columns(name).get(f"{kind}, may be missing") or columns(name)[kind]
            distinct = len([value for value in STORAGE[name].values if value is not None])
            wanted = np.resize(column.clean(seen(name, by=by, rows=distinct, nulls=False)), MANY_ROWS)
            assert len(differing(column.clean(values), wanted)) == 0, (name, kind)


@pytest.mark.parametrize("codes", [("9999-12-31",), ("0001-01-01",), ("9999-12-30", "0001-01-02")])
def test_days_beyond_those_of_python_are_the_same_code_everywhere(codes: tuple[str, ...], tmp_path: Path) -> None:
    """DuckDB's rows are clamped to the years that Python has, and those of files and polars are not."""
    column = Ordered(
        name="x",
        kind="date",
        low=storage.day("2000-01-01"),
        high=storage.day("2001-01-01"),
        missing=True,
        reading=Reading(missing_codes=codes),
    )
    schema, con = Schema(columns=(column,)), duckdb.connect()
    days = ("20000-01-01", "9999-12-31", "9999-12-30", "0001-01-01", "0001-01-02", "0044-03-15 (BC)", "2000-05-05")
    con.execute("CREATE TABLE t AS SELECT unnest(?)::DATE AS x", [[*days, None]])
    con.table("t").write_parquet(str(path := tmp_path / "days.parquet"))
    tally = CellCounts(schema, Marginals.even(schema, [(0,)], resolution=5))
    ways = [open_source(con.table("t")), pushed_down(con.table("t")), open_source(path)]
    ways += [open_source(pl.read_parquet(path)), pushed_down(pl.scan_parquet(path))]
    found = [shown(rows_of(way, schema, "counting")(tally)) for way in ways]
    assert all(each == found[0] for each in found)
    assert found[0][0][0][-1] == 3  # the null, and two days: each code stands for two, or there are two codes


# ------------------------------------------------------------------------------------- engines that count themselves


def questions(column: Column) -> Iterator[tuple[str, Callable[..., Any], Callable[[np.ndarray], np.ndarray]]]:
    """All that an engine may be asked of a column: the expression, and the integers that it has to give."""
    lattice = column.detail()
    if len(lattice.places):
        starts = np.unique(np.append(0, np.random.default_rng(2).integers(0, len(lattice.places), 20)))
        grouped = Groups.of(lattice, starts)
        yield "groups", ask_cells(grouped), lambda clean: column.to_cells(clean, grouped)
    for k in (5, 100):
        cells = column.cells(k)
        yield f"cells {k}", ask_cells(cells), lambda clean, cells=cells: column.to_cells(clean, cells)
    for steps, native in ((256, True), (7, True), (32, False)):
        lattice = column.lattice(steps, native=native)
        farthest = LatticeQuery.of(Schema(columns=(column,)), [(0,)], steps=steps).farthest() + 1

        def place(name: str, dtype: Any, column: Column, *, arithmetic: bool, lattice: Any = lattice) -> Any:
            return lattice_codes(name, dtype, column, lattice, arithmetic=arithmetic)

        def units(
            name: str, dtype: Any, column: Column, *, arithmetic: bool, lattice: Any = lattice, most: int = farthest
        ) -> Any:
            return moved_units(name, dtype, column, lattice, most, arithmetic=arithmetic)

        yield f"lattice {steps}", place, lambda clean, g=lattice: column.to_lattice(clean, g)[0]
        yield (
            f"moved {steps}",
            units,
            lambda clean, g=lattice, f=farthest: move_units(column.to_lattice(clean, g)[1], f),
        )


def ask_cells(cells: Any) -> Callable[..., Any]:
    return lambda name, dtype, column, *, arithmetic: cell_codes(name, dtype, column, cells, arithmetic=arithmetic)


FEW_QUESTIONS = ("cells 100", "lattice 256", "moved 7")
FEW_TYPES = ("int64", "float32", "decimal(9,2)", "text", "timestamp[us]", "timestamp[ns]", "truths")


def wrong_codes(
    engine: str, kinds: Sequence[str], folder: Path, names: Sequence[str] = tuple(STORAGE), few: bool = False
) -> tuple[list[str], int]:
    """Where an expression gives another integer than the rows do; and how many expressions were tried."""
    by, make = ENGINES[engine]
    source = pushed_down(make(folder, arrow()))
    assert isinstance(source, PushedDown)
    wrong, tried = [], 0
    for turn, (kind, name) in enumerate(itertools.product(kinds, names)):
        column = columns(name)[kind]
        frame = source._frame(Schema(columns=(column,)))
        (dtype,) = frame.collect_schema().dtypes()
        wanted: list[tuple[str, nw.Expr, np.ndarray]] = []
        for what, say, code in questions(column):
            if few and what not in (FEW_QUESTIONS if name == "int64" else FEW_QUESTIONS[turn % 3 :][:1]):
                continue
            expression = say("x0", dtype, column, arithmetic=engine.startswith("duckdb"))
            if expression is not None:
                rightly = code(reference(name, kind, by))
                expression = nw.col("x0").is_null().cast(nw.Int64) * 0 + expression  # a number is the same in each row
                wanted.append((f"{name} as {kind}: {what}", expression, rightly))
        tried += len(wanted)
        if wanted:
            answers = source._fetch(frame.select(*(e.alias(f"e{i}") for i, (_, e, _) in enumerate(wanted))))
            for (what, _, right), told in zip(wanted, np.array(answers, dtype=np.int64).T, strict=True):
                wrong += [what] if len(differing(told, right)) else []
    return wrong, tried


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_every_expression_gives_the_integer_of_the_row(engine: str, tmp_path: Path) -> None:
    wrong, tried = wrong_codes(engine, SOME_KINDS, tmp_path, FEW_TYPES, few=True)
    assert wrong == []
    assert tried >= 30


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_every_expression_follows_the_options_for_texts(engine: str, tmp_path: Path) -> None:
    wrong, tried = wrong_codes(engine, READINGS, tmp_path, FEW_TYPES, few=True)
    assert wrong == []
    assert tried >= 30


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_every_expression_gives_the_integer_of_the_row_for_all_kinds(engine: str, tmp_path: Path) -> None:
    wrong, tried = wrong_codes(engine, (*KINDS, *READINGS), tmp_path)
    assert wrong == []
    assert tried > 2000


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_an_engine_counts_pairs_of_any_types_as_rows_are_counted(engine: str, tmp_path: Path) -> None:
    """Marginals, lattices and how far rows are moved to them, by whoever can answer: the engine, or its rows."""
    by, make = ENGINES[engine]
    source = pushed_down(make(tmp_path, arrow()))
    chosen = {"int64": "long date", "int32": "long ordinal", "float64": "integer", "date32": "date", "text": "tree"}
    schema = Schema(columns=tuple(columns(name)[f"{kind}, may be missing"] for name, kind in chosen.items()))
    rows = [reference(name, f"{kind}, may be missing", by) for name, kind in chosen.items()]
    for subsets in ([(0,)], [(1,)], [(0, 1)], [(2, 3), (1, 4)]):
        marginals = Marginals.even(schema, subsets, resolution=100)
        for tally in (CellCounts(schema, marginals), LatticeQuery.of(schema, subsets, steps=48)):
            assert shown(rows_of(source, schema, "counting")(tally)) == shown(tally_batches([rows], tally))


def test_an_engine_that_takes_every_number_for_an_offset_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: days and labels that are stored as numbers are read as places on the line."""
    rightly = codes.reading

    def forgetful(column: Column, dtype: Any) -> Any:
        number = isinstance(column, Ordered) and dtype == nw.Int64
        return "numbers" if number else rightly(column, dtype)

    monkeypatch.setattr(codes, "reading", forgetful)
    kinds = [kind for kind in SOME_KINDS if "date" in kind or "ordinal" in kind]
    wrong, tried = wrong_codes("duckdb", kinds, tmp_path, ["int64"], few=True)
    assert len(kinds) == 6
    assert len(wrong) >= tried - 2 >= 8  # by chance some integers are the same


def test_the_loss_of_days_that_are_stored_as_numbers_is_true() -> None:
    """A table of one day against days all over the year: far apart, whoever counts."""
    year = Ordered(name="day", kind="date", low=storage.day("2020-01-01"), high=storage.day("2020-12-31"))
    schema = Schema(columns=(year,))
    private = pa.table({"day": pa.array([20200101 + 100 * month for month in range(12)] * 20, pa.int64())})
    synthetic = pa.table({"day": pa.array([20200630] * 50, pa.int64())})
    by_rows = evaluate(private, synthetic, schema).upper
    engine = duckdb.connect()
    pushed = evaluate(pushed_down(engine.from_arrow(private)), pushed_down(engine.from_arrow(synthetic)), schema).upper
    assert pushed == by_rows > 0.2
