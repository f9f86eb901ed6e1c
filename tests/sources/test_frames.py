"""Rows from memory, and the nasty table from everywhere: the same codes whatever brought the rows (P7)."""

from __future__ import annotations

import datetime
import traceback
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from nasty import CANARY, FORMS, NESTED, OBJECTS, ROWS, TABLE, as_in_json, columns, expected

from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.cleaning import as_labels
from certsynth.errors import InputError
from certsynth.sources import cleaned, open_source


def read(data: Any, schema: Schema, *, rows: int = 500_000) -> list[np.ndarray]:
    batches = list(cleaned(open_source(data), schema, rows=rows))
    return [np.concatenate(column) for column in zip(*batches, strict=True)]


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    return request.param, FORMS[request.param](tmp_path_factory.mktemp("nasty"))


@pytest.mark.parametrize("name", TABLE)
def test_a_nasty_column_gives_the_same_codes_from_everywhere(form: tuple[str, Any], name: str) -> None:
    if form[0].startswith("csv") and name in NESTED:
        pytest.skip("a text file has no such values")
    values = TABLE[name]
    if form[0].startswith("csv"):
        values = [text or "" for text in as_labels(np.fromiter(values, object, len(values)))]  # a text has no nulls
    elif form[0] == "json lines":
        values = as_in_json(values)
    ((raw,),) = open_source(form[1]).batches([name])
    for column in columns(name):
        np.testing.assert_array_equal(column.clean(raw), expected(column, values), err_msg=str(column))


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("rows", [1, 7, 59, 60, 61])
def test_batches_of_any_size_make_the_same_table(form: tuple[str, Any], rows: int) -> None:
    names = ["texts", "integers", "days"]
    schema = Schema(columns=tuple(columns(name)[-2] for name in names))
    for whole, parts in zip(read(form[1], schema), read(form[1], schema, rows=rows), strict=True):
        np.testing.assert_array_equal(whole, parts)
    source = open_source(form[1])
    sizes = [len(batch[0]) for batch in source.batches(names, rows=rows)]
    assert max(sizes) <= rows
    assert sum(sizes) == ROWS
    assert source.size_hint() in (ROWS, None)


def test_columns_come_in_the_order_asked_for(form: tuple[str, Any]) -> None:
    (batch,) = open_source(form[1]).batches(["truths", "texts"])
    assert batch[1][4] == "NA"
    assert batch[0][0] in (True, "true")


def test_a_missing_column_is_named_before_any_row_is_read(form: tuple[str, Any]) -> None:
    if form[0] == "json lines":
        pytest.skip("it has no header, and no line decides which columns there are")
    source = open_source(form[1], what="public data")
    with pytest.raises(InputError, match=r"^public data .*no column 'TEXTS'; it has 'integers', .*schema"):
        source.batches(["integers", "TEXTS"])


def test_a_source_is_its_own_source(form: tuple[str, Any]) -> None:
    source = open_source(form[1])
    assert open_source(source) is source


def test_columns_may_be_called_like_methods_of_a_source() -> None:
    frame = pd.DataFrame({"batches": [1], "size_hint": [2], "names": [3]})
    for data in (frame, duckdb.sql("SELECT 1 AS batches, 2 AS size_hint, 3 AS names")):
        assert [column.tolist() for column in next(open_source(data).batches(["batches", "names"]))] == [[1], [3]]


def test_mixed_objects_of_pandas_are_passed_on_as_they_are() -> None:
    frame = pd.DataFrame({"x": pd.Series(OBJECTS, dtype=object)})
    for column in columns("x"):
        (codes,) = read(frame, Schema(columns=(column,)))
        np.testing.assert_array_equal(codes, expected(column, OBJECTS))


def labels(data: Any, *values: str) -> list[str | None]:
    (codes,) = read(data, Schema(columns=(Category(name="x", missing=True, values=values, other=True),)))
    return [(*values, "other", None)[code] for code in codes]


@pytest.mark.parametrize(
    ("series", "values", "shown"),
    [
        (pd.Series(pd.Categorical(["b", None, "a"])), ["a", "b"], ["b", None, "a"]),
        (pd.Series(pd.Categorical([1.0, None, 2.0])), ["1", "2"], ["1", None, "2"]),
        (pd.Series(pd.cut([1, 5], [0, 3, 9])), ["(0, 3]", "(3, 9]"], ["(0, 3]", "(3, 9]"]),
        (pd.Series(pd.period_range("2020-01", periods=2, freq="M")), ["2020-01"], ["2020-01", "other"]),
        (pd.Series([1, None, 300], dtype="Int64"), ["1", "300"], ["1", None, "300"]),
        (pd.Series([1, None, 300], dtype="int64[pyarrow]"), ["1", "300"], ["1", None, "300"]),
        (pd.Series([True, None], dtype="boolean"), ["true"], ["true", None]),
        (pd.Series([1.5, None], dtype="Float64"), ["1.5"], ["1.5", None]),
        (pd.Series(["NA", None, ""]), ["NA"], ["NA", None, None]),
        (pd.Series([1 + 1j]), ["1"], [None]),
        (pl.Series(["a", None], dtype=pl.Categorical), ["a"], ["a", None]),
        (pl.Series(["a", None], dtype=pl.Enum(["z", "a"])), ["a"], ["a", None]),
        (pl.Series([2**100, None], dtype=pl.Int128), [str(2**100)], [str(2**100), None]),
        (pl.Series([datetime.time(1, 2), None]), ["01:02:00"], ["01:02:00", None]),
        (pl.Series([object()], dtype=pl.Object), ["a"], [None]),
        (pl.Series([1, None], dtype=pl.UInt8), ["0", "1"], ["1", None]),
        (pl.Series([2**62 + 1, None]), [str(2**62 + 1)], [str(2**62 + 1), None]),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", "b"], ["a", None, "b"]),
        (pa.array([1.0, None], pa.float16()), ["1"], ["1", None]),
    ],
    ids=lambda x: str(getattr(x, "dtype", getattr(x, "type", ""))),
)
def test_labels_of_a_typed_column(series: Any, values: list[str], shown: list[str | None]) -> None:
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    make = frames[type(series).__module__.partition(".")[0]]
    assert labels(make({"x": series}), *values) == shown


def test_times_in_a_zone_count_for_the_day_they_show() -> None:
    late = pd.Series(pd.to_datetime(["2020-02-28 23:30", None])).dt.tz_localize("America/New_York")
    day = Ordered(name="x", missing=True, kind="date", low=18_000, high=19_000)
    frame = pd.DataFrame({"x": late})
    for data in (frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy(), pa.Table.from_pandas(frame)):
        (codes,) = read(data, Schema(columns=(day,)))
        assert day.decode(codes).tolist() == [datetime.date(2020, 2, 28), None]


def test_numbers_as_names_of_columns_are_found_by_their_text() -> None:
    frame = pd.DataFrame({0: [1, 2], "b": [3, 4]})
    assert [column.tolist() for column in next(open_source(frame).batches(["b", "0"]))] == [[3, 4], [1, 2]]


TWINS = {
    "pandas": lambda: pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
    "pandas, a number and its text": lambda: pd.DataFrame({1: [0], "1": [0]}),
    "pyarrow": lambda: pa.table([[1], [2]], names=["a", "a"]),
    "relation": lambda: duckdb.sql("SELECT 1 AS a, 2 AS a"),
}


@pytest.mark.parametrize("case", TWINS)
def test_refuses_two_columns_of_one_name(case: str) -> None:
    with pytest.raises(InputError, match=r"two columns are called '(a|1)'\. Rename or drop"):
        open_source(TWINS[case]())


def test_names_that_differ_in_case_are_different_columns() -> None:
    source = open_source(duckdb.sql("""SELECT 1 AS a, 2 AS "A", 3 AS "q""u", 4 AS "file_row_number" """))
    wanted = ["A", 'q"u', "a", "file_row_number"]
    assert [column.tolist() for column in next(source.batches(wanted))] == [[2], [3], [1], [4]]


@pytest.mark.parametrize(
    "data",
    [3, None, [1], {"a": [1]}, np.zeros((2, 2)), pd.Series([1]), pl.Series([1]), b"x.csv", object()],
    ids=lambda data: type(data).__name__,
)
def test_refuses_what_is_no_table(data: Any) -> None:
    with pytest.raises(InputError, match=r"^synthetic table \(.*Give a CSV or Parquet file, a DuckDB relation"):
        open_source(data, what="synthetic table")


def test_a_table_without_rows_has_no_batches() -> None:
    for frame in (pd.DataFrame({"x": []}), pl.DataFrame({"x": []}), duckdb.sql("SELECT 1 AS x WHERE false")):
        assert list(open_source(frame).batches(["x"])) == []


def test_a_relation_leaves_its_connection_free() -> None:
    con = duckdb.connect()
    source = open_source(con.sql("SELECT range + 1 AS x FROM range(5000)"))
    seen = []
    for batch in source.batches(["x"], rows=999):
        assert con.execute("SELECT 1").fetchall() == [(1,)]
        seen += batch[0].tolist()
    assert seen == list(range(1, 5001))


TYPES = {
    "170141183460469231731687303715884105727::HUGEINT": "170141183460469231731687303715884105727",
    "1::UHUGEINT": "1",
    "123456789012345678901234567890::BIGNUM": "123456789012345678901234567890",
    "2.50::DECIMAL(9, 2)": "2.5",
    "7::DECIMAL(9, 0)": "7",
    "'b'::ENUM('a', 'b')": "b",
    "'b'::ENUM('STRUCT', 'b')": "b",
    "'00000000-0000-0000-0000-000000000001'::UUID": "00000000-0000-0000-0000-000000000001",
    "TIME '10:00'": "10:00:00",
    "INTERVAL 3 DAY": "3 days",
    "'101'::BIT": "101",
    "DATE '2020-02-29'": "2020-02-29",
    "TIMESTAMP_S '2020-02-29 00:00:01'": "2020-02-29 00:00:01",
    "TIMESTAMP_NS '2020-02-29 00:00:01'": "2020-02-29 00:00:01",
    "TIMESTAMPTZ '2020-02-29 03:00:00+05'": "2020-02-28 22:00:00",
    "DATE '20000-01-01'": "9999-12-31 23:59:59.999999",
    "DATE '0044-03-15 (BC)'": "0001-01-01",
    "'infinity'::DATE": None,
    "'-infinity'::TIMESTAMP": None,
    "[1, 2]": None,
    "[1, 2]::INTEGER[2]": None,
    "{'a': 1}": None,
    "MAP {'a': 1}": None,
    "union_value(k := 1)": None,
    "'x'::BLOB": None,
    "1::VARIANT": None,
    "NULL": None,
}


@pytest.mark.parametrize("value", TYPES)
def test_every_type_of_duckdb_can_be_read(value: str, tmp_path: Path) -> None:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'Asia/Tokyo'")  # the clock of whoever runs it must not matter
    con.execute(f"CREATE TABLE t AS SELECT {value} AS x UNION ALL SELECT NULL")
    relation = con.table("t")
    label = TYPES[value]
    assert labels(relation, *filter(None, [label])) == [label, None]


def refuse(data: Any, name: str) -> InputError:
    with pytest.raises(InputError) as caught:
        list(open_source(data).batches([name]))
    return caught.value


def closed_relation() -> duckdb.DuckDBPyRelation:
    con = duckdb.connect()
    relation = con.sql(f"SELECT '{CANARY}' AS x")
    con.close()
    return relation


FAILING = {
    "relation": lambda: duckdb.sql(f"SELECT x::INTEGER AS x FROM (VALUES ('{CANARY}')) AS t(x)"),
    "closed relation": closed_relation,
    "lazy frame": lambda: pl.LazyFrame({"x": [CANARY]}).select(pl.col("x").cast(pl.Int64)),
    "lazy frame without its column": lambda: pl.LazyFrame({"y": [CANARY]}).select("x"),
    "missing column": lambda: pd.DataFrame({"y": [CANARY]}),
    "text that is not UTF-8": lambda: pa.table(
        {"x": pa.Array.from_buffers(pa.string(), 1, pa.array([CANARY.encode() + b"\xff"]).buffers())}
    ),
}


def test_a_lazy_frame_whose_query_fails_is_a_table_all_the_same(tmp_path: Path) -> None:
    """Its columns are not known, and asking polars for them once more would warn."""
    for lazy in (pl.scan_parquet(tmp_path / "nowhere.parquet"), pl.LazyFrame({"y": [1]}).select("x")):
        with pytest.raises(InputError, match=r"data \(polars\.LazyFrame\): its query fails\. Collect it by itself"):
            open_source(lazy)


@pytest.mark.parametrize("case", FAILING)
def test_no_cell_in_the_message_of(case: str) -> None:
    error = refuse(FAILING[case](), "x")
    shown = f"{error}{error!r}{''.join(traceback.format_exception(error))}"
    assert CANARY not in shown
    assert "\n" not in str(error)
