"""Parquet by the stream: cleaned rows are what `Column.clean` makes of raw ones, from one file or from many."""

from __future__ import annotations

import datetime
import gc
import math
import random
import time
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import CANARY, ROWS, TABLE, arrow, columns, expected

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.column import MIN_COMPILED_ROWS
from certsynth.errors import InputError
from certsynth.queries.tally import Batch
from certsynth.sources import cleaned, duck, open_source
from certsynth.sources.duck import ParquetFiles, connection
from certsynth.sources.stream import stream_batches

X = Schema(columns=(Ordered(name="x", low=0, high=9),))


def read(path: Path | str, schema: Schema, *, rows: int = 500_000) -> list[np.ndarray]:
    batches = list(cleaned(open_source(path), schema, rows=rows))
    assert max((len(batch[0]) for batch in batches), default=0) <= rows
    return [np.concatenate(column) for column in zip(*batches, strict=True)]


def numbers(path: Path | str, name: str = "x") -> list[Any]:
    return [value for (batch,) in open_source(path).batches([name]) for value in batch.tolist()]


def write(path: Path, **values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(values), path)
    return path


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("times", [1, MIN_COMPILED_ROWS // ROWS + 1])
def test_nasty_columns_are_cleaned_as_their_values_are(times: int, tmp_path: Path) -> None:
    """Few rows go by the columns' own methods, many by compiled loops and DuckDB's lists of texts."""
    path = tmp_path / "nasty.parquet"
    pq.write_table(pa.concat_tables([arrow()] * times), path, row_group_size=1_000)
    for kinds in zip(*map(columns, TABLE), strict=True):
        for column, found in zip(kinds, read(path, Schema(columns=kinds)), strict=True):
            wanted = np.tile(expected(column, TABLE[column.name]), times)
            np.testing.assert_array_equal(found, wanted, err_msg=str(column))


EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "int16": (pa.int16(), [-(2**15), 2**15 - 1, None]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1, -(2**53) - 1, None, 7]),
    "uint32": (pa.uint32(), [0, 2**32 - 1, None]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 2**63, 2**63 + 1, 2**53 + 1, None]),
    "high uint64": (pa.uint64(), [2**64 - 1, 2**64 - 3, None]),
    "float32": (pa.float32(), [math.nan, math.inf, -math.inf, 0.1, 3.4e38, 1e-45, -0.0, None]),
    "float64": (pa.float64(), [math.nan, math.inf, 1.7e308, -1.7e308, 0.5, 1.5, 2.5, -0.5, 5e-324, None]),
    "decimal": (pa.decimal128(38, 10), [Decimal("0.5"), Decimal("1.4999999999"), Decimal(10**27), None]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1), None]),
    "far dates": (pa.date32(), [2**31 - 1, -(2**31), 2**31 - 2, 3_000_000, -800_000, 18_000, None]),
    "ns": (pa.timestamp("ns"), [0, 2**63 - 1, -(2**62), 86_400 * 10**9 - 1, None]),
    "seconds": (pa.timestamp("s"), [0, 253402300799, -62135596800, 86_399, None]),
    "zoned": (pa.timestamp("us", tz="Asia/Tokyo"), [0, 86_400 * 10**6 - 1, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "all null": (pa.int32(), [None]),
}


def more_columns(name: str) -> list[Column]:
    texts = ("1", "-128", "18446744073709551615", "7", "true")
    return [
        *columns(name),
        Ordered(name=name, missing=True, low=-(2**39), high=2**39),
        Ordered(name=name, kind="number", low=-1e-3, high=1e-3),
        Category(name=name, missing=True, values=texts, other=True),
    ]


def test_extremes_are_cleaned_as_one_by_one(tmp_path: Path) -> None:
    path, rows = tmp_path / "x.parquet", MIN_COMPILED_ROWS + 3
    table = {name: pa.array([v[i % len(v)] for i in range(rows)], kind) for name, (kind, v) in EXTREMES.items()}
    pq.write_table(pa.table(table), path)
    raw = dict(zip(EXTREMES, next(open_source(path).batches(list(EXTREMES), rows=20)), strict=True))
    for kinds in zip(*map(more_columns, EXTREMES), strict=True):
        for column, found in zip(kinds, read(path, Schema(columns=kinds)), strict=True):
            first = raw[column.name][: len(EXTREMES[column.name][1])]
            one_by_one = np.concatenate([column.clean(first[i : i + 1]) for i in range(len(first))])
            np.testing.assert_array_equal(found, np.resize(one_by_one, rows), err_msg=str(column))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Column, list[Any]]:
    missing = draw(st.booleans())
    texts = st.text(alphabet="ab/ é?\x00", max_size=3) | st.sampled_from(["other", "other?", "", "unlisted", "null"])
    if draw(st.booleans()):
        values = tuple(draw(st.lists(texts, min_size=1, max_size=6, unique=True)))
        if draw(st.booleans()):
            return Ordered("x", missing, kind="ordinal", low=0, high=len(values) - 1, values=values), [texts, values]
        return Category("x", missing, values=values, other=draw(st.booleans()) and "other" not in values), [
            texts,
            values,
        ]
    low = draw(st.integers(-(2**53), 2**53))
    high = low + draw(st.integers(0, 2**40))
    near = st.integers(low - 3, low + 3) | st.integers(high - 3, high + 3) | st.integers(-(2**63), 2**63 - 1)
    return Ordered("x", missing, low=low, high=high), [near, ()]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "x.parquet"


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_column_is_cleaned_as_its_values_are(scratch: Path, data: st.DataObject) -> None:
    column, (values, listed) = data.draw(tables())
    some = data.draw(st.lists(st.none() | values | st.sampled_from(listed or (0,)), min_size=1, max_size=12))
    many = some * (MIN_COMPILED_ROWS // len(some) + 1)
    kind = pa.string() if any(isinstance(x, str) for x in some) else pa.int64()
    pq.write_table(pa.table({"x": pa.array(many, kind)}), scratch)
    (found,) = read(scratch, Schema(columns=(column,)))
    np.testing.assert_array_equal(found, np.tile(expected(column, some), len(many) // len(some)))


def test_a_list_of_texts_is_not_a_pattern_of_another(tmp_path: Path) -> None:
    """The control of what stands for all other texts: it may be listed itself."""
    path = write(tmp_path / "x.parquet", x=["other", "other?", "x", None, "", "other??"])
    column = Category("x", missing=True, values=("other", "other?", "a"))
    assert read(path, Schema(columns=(column,)))[0].tolist() == [0, 1, 3, 3, 3, 3]


def test_a_folder_is_one_table(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", x=[3, 4], y=["c", "d"])
    write(tmp_path / "a.parquet", x=[1, 2], y=["a", "b"])
    write(tmp_path / "c.pq", y=["e"], x=[5])  # columns in another order
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".a.parquet.crc").write_bytes(b"\0")
    write(tmp_path / "_temporary" / "0.parquet", z=[9])
    write(tmp_path / "_delta.parquet", z=[9])
    write(tmp_path / "archive" / "old.parquet", z=[9])  # no column=value: another table
    source = open_source(tmp_path)
    assert (source.names, source.size_hint()) == (("x", "y"), 5)
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]
    assert numbers(tmp_path, "y") == list("abcde")
    assert numbers(tmp_path / "*.parquet") == [1, 2, 3, 4]
    assert numbers(tmp_path / "[ac].p*") == [1, 2, 5]
    assert read(tmp_path, X)[0].tolist() == [1, 2, 3, 4, 5]
    assert read(tmp_path, X, rows=2)[0].tolist() == [1, 2, 3, 4, 5]


def test_folders_that_are_named_after_a_column_have_its_values(tmp_path: Path) -> None:
    top = tmp_path / "year=1999"  # above what is asked for: a folder like any other
    write(top / "year=2020" / "month=1" / "a.parquet", x=[1, 2])
    write(top / "year=2021" / "month=12" / "a.parquet", x=[3])
    write(top / "year=2021" / "month=__HIVE_DEFAULT_PARTITION__" / "b.parquet", x=[4])
    write(top / "year=New%20Year" / "month=1" / "c.parquet", x=[5])
    (top / "_SUCCESS").write_text("")
    schema = Schema(
        columns=(
            Ordered("x", low=0, high=9),
            Ordered("year", missing=True, low=2000, high=2030),
            Ordered("month", missing=True, low=1, high=12),
        )
    )
    for path in (top, top / "*", top / "**" / "*.parquet", top / "*" / "*" / "?.parquet"):
        assert open_source(path).names == ("x", "year", "month")
        np.testing.assert_array_equal(
            read(path, schema), [[1, 2, 3, 4, 5], [20, 20, 21, 21, np.nan], [0, 0, 11, np.nan, 0]]
        )
    assert numbers(top, "year") == ["2020", "2020", "2021", "2021", "New Year"]
    assert numbers(top, "month")[3] is None
    assert open_source(top / "year=2020" / "month=1" / "*").names == ("x",)


def test_a_column_of_the_file_is_read_from_the_file(tmp_path: Path) -> None:
    """Some tools write it twice."""
    write(tmp_path / "year=2020" / "a.parquet", x=[1], year=[2020])
    write(tmp_path / "year=2021" / "a.parquet", x=[2], year=[2021])
    assert numbers(tmp_path, "year") == [2020, 2021]


def test_what_is_there_under_a_name_is_meant_itself(tmp_path: Path) -> None:
    write(tmp_path / "t[1]" / "*.parquet", x=[1])
    write(tmp_path / "t[1]" / "b.parquet", x=[2])
    write(tmp_path / "t1" / "c.parquet", x=[3])
    assert numbers(tmp_path / "t[1]" / "*.parquet") == [1]
    assert numbers(tmp_path / "t[1]" / "?.parquet") == [1, 2]
    assert numbers(tmp_path / "t?" / "*.parquet") == [3]


def test_patterns_that_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a" / "b.parquet", x=[1])
    monkeypatch.chdir(tmp_path)
    assert numbers("a/*") == numbers("*/b.parquet") == numbers("a") == [1]


def different(folder: Path) -> dict[str, tuple[Path, str]]:
    def pair(name: str, **second: Any) -> Path:
        write(folder / name / "a.parquet", x=[1], y=["a"])
        write(folder / name / "b.parquet", **second)
        return folder / name

    (folder / "text").mkdir()
    (folder / "text" / "a.csv").write_text("x\n1\n")
    broken = pair("broken", x=[1], y=["a"])
    (broken / "b.parquet").write_bytes(CANARY.encode())
    hive = folder / "hive"
    write(hive / "x=1" / "a.parquet", y=[1])
    write(hive / "z=1" / "b.parquet", y=[1])
    deep = folder / "deep"
    write(deep / "a.parquet", y=[1])
    write(deep / "z=1" / "b.parquet", y=[1])
    return {
        "less": (pair("less", x=[1]), "b.parquet: no column 'y', which other files have"),
        "more": (pair("more", x=[1], y=["a"], z=[1]), "b.parquet: a column 'z', which other files do not have"),
        "case": (pair("case", X=[1], y=["a"]), "b.parquet: no column 'x'"),
        "types": (pair("types", x=[CANARY], y=["a"]), "b.parquet: column 'x' holds texts, in other files numbers"),
        "lists": (pair("lists", x=[[1]], y=["a"]), "column 'x' holds lists or records, in other files numbers"),
        "broken": (broken, "b.parquet: not a Parquet file"),
        "hive": (hive, "no column 'x', which other files have"),
        "deep": (deep, "a column 'z', which other files do not have"),
        "nothing": (
            folder / "none" / "*.parquet",
            "no such file. A pattern must match files whose names end in",
        ),
        "no such folder": (folder / "n?ne" / "a.parquet", "no such file. A pattern"),
        "csv": (folder / "text" / "*.csv", "the matching files are not Parquet"),
        "a folder of csv": (folder / "text", "this folder has no Parquet file in it"),
    }


def test_files_that_are_no_table_together_are_refused(tmp_path: Path) -> None:
    for case, (path, says) in different(tmp_path).items():
        with pytest.raises(InputError) as caught:
            open_source(path)
        assert says in str(caught.value), case
        assert str(path) in str(caught.value)
        assert CANARY not in repr(caught.value)


def test_types_of_one_sort_may_differ(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=pa.array([1, None], pa.int8()))
    write(tmp_path / "b.parquet", x=pa.array([2.4], pa.float64()))
    write(tmp_path / "c.parquet", x=pa.array([2**62], pa.int64()))
    assert read(tmp_path, X)[0].tolist() == [1, 0, 2, 9]
    assert sum(len(x) for (x,) in open_source(tmp_path).batches(["x"])) == 4


def test_names_that_differ_in_case_alone_in_many_files(tmp_path: Path) -> None:
    for j in range(3):
        write(tmp_path / f"{j}.parquet", a=[j], A=[10 * j])
    assert (numbers(tmp_path, "a"), numbers(tmp_path, "A")) == ([0, 1, 2], [0, 10, 20])


def test_many_tiny_files_come_in_few_batches(tmp_path: Path) -> None:
    for j in range(40):
        write(tmp_path / f"{j:02}.parquet", x=pa.array([j % 10] * (j % 3), pa.int64()))
    source = open_source(tmp_path)
    assert isinstance(source, ParquetFiles)
    assert len(source.parts) == 1
    batches = list(cleaned(source, X))
    assert len(batches) == 1
    assert batches[0][0].tolist() == [j % 10 for j in range(40) for _ in range(j % 3)]


def test_files_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=pa.array([], pa.int64()))
    assert list(cleaned(open_source(tmp_path), X)) == list(open_source(tmp_path).batches(["x"])) == []
    write(tmp_path / "b.parquet", x=[1])
    assert read(tmp_path, X)[0].tolist() == [1]


@pytest.mark.parametrize("many", [0, 10**6])
def test_a_file_that_changes_is_noticed(many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "MIN_PREFETCH_ROWS", many)  # 0: a thread reads ahead
    path = write(tmp_path / "a.parquet", x=[1, 2, 3])
    source = open_source(path)
    for other in ({"x": [1, 2]}, {"x": [1, 2, 3, 4]}, {"y": ["a"], "z": ["b"]}):
        write(path, **other)
        with pytest.raises(InputError, match="DuckDB cannot read it"):
            list(cleaned(source, X))
    path.unlink()
    with pytest.raises(InputError, match="DuckDB cannot read it"):
        list(source.batches(["x"]))


def test_large_row_groups_and_small_ones_come_in_order(tmp_path: Path) -> None:
    values = np.arange(300_000)
    for group in (777, 300_000):
        pq.write_table(pa.table({"x": values, "t": values.astype(str)}), tmp_path / "x.parquet", row_group_size=group)
        for rows in (70_001, 500_000):
            batches = list(open_source(tmp_path / "x.parquet").batches(["x", "t"], rows=rows))
            assert max(len(x) for x, _ in batches) <= rows
            assert min(len(x) for x, _ in batches[:-1]) >= 2**15 or rows < 2**16
            np.testing.assert_array_equal(np.concatenate([x for x, _ in batches]), values)
            assert np.concatenate([t for _, t in batches]).tolist() == values.astype(str).tolist()


def test_what_is_held_does_not_grow_with_rows(tmp_path: Path) -> None:
    """Peaks of what Python and NumPy hold. The control: all rows at once would be 5 times as much.

    Both tables are large enough for a thread that reads ahead, and rows are taken so slowly that it is always ahead.
    """

    def slowly(batch: Batch) -> int:
        time.sleep(0.01)
        return len(batch[0])

    peaks = []
    for rows in (duck.MIN_PREFETCH_ROWS, 5 * duck.MIN_PREFETCH_ROWS):
        path = tmp_path / f"{rows}.parquet"
        duckdb.execute(f"COPY (SELECT i % 10 AS x, i::DOUBLE AS y FROM range({rows}) AS t(i)) TO '{path}'")
        source = open_source(path)
        gc.collect()
        tracemalloc.start()
        seen = sum(slowly(batch) for batch in cleaned(source, X))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert seen == rows
    assert peaks[1] < 1.3 * peaks[0]


def test_a_stream_that_is_left_half_way_ends() -> None:
    con = connection()
    stream = stream_batches(con.sql("SELECT i FROM range(10_000_000) AS t(i)"), lambda columns: len(columns[0]))
    assert next(stream) > 0
    stream.close()
    assert con.execute("SELECT 1").fetchall() == [(1,)]
    con.close()


def test_a_query_that_fails_on_the_way_says_nothing_of_its_own() -> None:
    con = connection()
    bad = con.sql(f"SELECT CASE WHEN i = 900000 THEN error('{CANARY}') ELSE 'a' END AS x FROM range(1000000) AS t(i)")
    with pytest.raises(ValueError, match="the query fails") as caught:
        list(stream_batches(bad, lambda columns: len(columns[0])))
    assert CANARY not in repr(caught.value)


def test_texts_of_every_length_come_whole(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [None if rng.random() < 0.1 else "é\x00x"[: rng.randrange(4)] * rng.randrange(40) for _ in range(5_000)]
    path = write(tmp_path / "x.parquet", x=texts)
    assert numbers(path) == texts
