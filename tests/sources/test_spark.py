"""Rows that stay in Spark: the same counts as anywhere else, whatever the partitions, and whatever fails meanwhile.

One session for all of it, in this process, so that at most one Java starts for each process of tests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import everything
import nasty as table
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import storage
from click.testing import CliRunner
from everything import Together, clean_rows, mixed_schema, nasty_schema, shown, tallies
from nasty import CANARY, TABLE, columns, expected, parquet_file
from neighbours import base, csv_file, farthest, folders, neighbours, read_or_none, schema_of, texts_parquet

from certsynth import Release, Schema, certify, check, evaluate, release
from certsynth.algorithm.release import COUNTING, DISPLACED
from certsynth.cli import main
from certsynth.domain import Category, Ordered
from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.queries.fine import PLACING_PHASE
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.tally import RowCount, tally_batches
from certsynth.sources import open_source, pushed_down, rows_of, spark
from certsynth.sources.persons import keep_rows
from certsynth.sources.pushdown import PushedDown
from certsynth.sources.spark import SparkTable, spark_table
from certsynth.sources.spark_persons import SparkKeptRows
from small import MIXED, FixedOutput, emitted, people, without_progress

pytestmark = [
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java, which is not here"
    ),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
]

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.driver.memory": "600m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.io.encryption.enabled": "true",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2,3]").appName("tests")  # a task may fail twice
        for key, value in {**SETTINGS, "spark.local.dir": folder, "spark.sql.warehouse.dir": folder}.items():
            builder = builder.config(key, str(value))
        spark = builder.getOrCreate()
        for module in (everything, table, storage, sys.modules[__name__]):  # executors do not have the tests
            cloudpickle.register_pickle_by_value(module)
        yield spark
        spark.stop()


@pytest.fixture(scope="module")
def nasty(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return session.read.parquet(str(parquet_file(tmp_path_factory.mktemp("nasty")))).cache()


def ask(data: Any, schema: Schema, tally: Any) -> Any:
    return rows_of(open_source(data), schema, "counting")(tally)


PARTITIONS: dict[str, Callable[[Any], Any]] = {
    "one": lambda frame: frame.coalesce(1),
    "some of them empty, in another order": lambda frame: frame.repartition(9, "truths").sortWithinPartitions("texts"),
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("parts", PARTITIONS)
def test_every_tally_says_the_same_whatever_the_partitions(parts: str, nasty: Any) -> None:
    schema = mixed_schema(list(PARTITIONS).index(parts) * 5)
    assert ask(PARTITIONS[parts](nasty), schema, Together.of(schema)) == tally_batches(
        [clean_rows(schema)], Together.of(schema)
    )


def test_one_row_more_is_seen() -> None:
    """The control of all comparisons here."""
    schema = mixed_schema()
    rows = clean_rows(schema)
    more = tally_batches([rows, [x[:1] for x in rows]], Together.of(schema))
    assert all(a != b for a, b in zip(more, tally_batches([rows], Together.of(schema)), strict=True))


def test_rows_that_are_brought_here_are_the_same(nasty: Any) -> None:
    batches = list(open_source(nasty).batches(list(TABLE), rows=17))
    assert max(len(batch[0]) for batch in batches) == 17
    for name, parts in zip(TABLE, zip(*batches, strict=True), strict=True):
        for column in columns(name):
            found = column.clean(np.concatenate(parts))
            np.testing.assert_array_equal(found, expected(column, TABLE[name]), err_msg=str(column))


SPARK_TYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "zero or one", "float64", "float32"),
    *(
        "decimal(9,2)",
        "decimal(9,0)",
        "decimal(18,1)",
        "decimal(38,0)",
        "decimal(38,10)",
        "text",
        "dictionary",
        "date32",
    ),
    *("timestamp[ms]", "timestamp[us]", "truths", "bytes", "maps", "lists", "records"),
]
"""Types of storage that Spark reads from Parquet. Instants are left out: it shows them by the clock of its session."""


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("turn", range(3))
def test_types_of_storage_are_counted_as_everywhere(turn: int, session: Any, tmp_path: Path) -> None:
    frame = session.read.parquet(str(storage.parquet_file(tmp_path, storage.arrow(SPARK_TYPES))))
    all_kinds = storage.READINGS if turn == 2 else storage.KINDS
    kinds = [all_kinds[(5 * j + 7 * turn) % len(all_kinds)] for j in range(len(SPARK_TYPES))]
    known = storage.columns_with_readings if turn == 2 else storage.columns_of_every_kind
    schema = Schema(columns=tuple(known(name)[kind] for name, kind in zip(SPARK_TYPES, kinds, strict=True)))
    rows = [column.clean(storage.seen(column.name, by="engines")) for column in schema]
    assert ask(frame, schema, Together.of(schema)) == tally_batches([rows], Together.of(schema))
    source = pushed_down(frame)
    assert isinstance(source, PushedDown)
    for j, column in enumerate(schema):
        alone = Schema(columns=(column,))
        tally = CellCounts(alone, Marginals.even(alone, [(0,)], resolution=40))
        if (turn == 2 or j % 3 == turn) and source.answers(tally, alone):
            assert shown(source.tallied(tally, alone)) == shown(tally_batches([rows[j : j + 1]], tally)), (
                column.name,
                kinds[j],
            )


def test_grouped_counts_in_spark_sql_are_those_of_the_rows(nasty: Any) -> None:
    """Where Python cannot run beside the rows."""
    source = pushed_down(nasty)
    assert isinstance(source, PushedDown)
    for kind, names in (
        (8, ["floats", "integers"]),
        (11, ["texts", "truths"]),
        (2, ["days"]),
        (16, ["days"]),
        (22, ["floats", "integers"]),
        (23, ["days"]),
    ):
        schema = nasty_schema(kind, names)
        tally = CellCounts(schema, Marginals.even(schema, [tuple(range(len(names)))], resolution=5))
        assert source.answers(tally, schema)
        assert shown(source.tallied(tally, schema)) == shown(tally_batches([clean_rows(schema)], tally)), names


def test_a_table_without_rows_says_nothing(session: Any, nasty: Any) -> None:
    schema = mixed_schema()
    empty = [x[:0] for x in clean_rows(schema)]
    assert ask(nasty.filter("false"), schema, Together.of(schema)) == tally_batches([empty], Together.of(schema))
    assert list(open_source(nasty.filter("false")).batches(["texts"])) == []


class Dying:
    """A tally that dies in its first attempt on each partition, after it has counted rows."""

    def __init__(self, tally: Any) -> None:
        self.tally = tally

    def begin(self) -> Any:
        return self.tally.begin()

    def add(self, sums: Any, batch: Any) -> None:
        from pyspark import TaskContext

        self.tally.add(sums, batch)
        context = TaskContext.get()
        if context is not None and context.attemptNumber() < 1:
            if context.partitionId():
                os._exit(1)
            raise ValueError(CANARY)

    def result(self, sums: Any) -> Any:
        return self.tally.result(sums)


@pytest.mark.slow
def test_a_task_that_fails_or_is_killed_and_tried_again_counts_once(nasty: Any) -> None:
    schema = mixed_schema(3)
    found = ask(nasty.repartition(2), schema, Dying(Together.of(schema)))
    assert found == tally_batches([clean_rows(schema)], Together.of(schema))


def test_rows_that_were_sent_before_their_query_died_count_once(nasty: Any) -> None:
    """The query under ours gives some of its rows, and is then killed."""

    def dying(batches: Any) -> Any:
        from pyspark import TaskContext

        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            if TaskContext.get().attemptNumber() < 1:
                os._exit(1)
            yield batch.slice(half)

    schema = nasty_schema(0, ["integers", "floats"])
    frame = nasty.select("integers", "floats").coalesce(1)
    about = SparkTable.open(frame, "data")  # a step of one's own is refused: here it stands for what Spark does
    table = dataclasses.replace(about, frame=frame.mapInArrow(dying, frame.schema))
    found = ask(table, schema, tallies(schema)["cells"])
    assert shown(found) == shown(tally_batches([clean_rows(schema)], tallies(schema)["cells"]))


@pytest.mark.slow
def test_columns_go_by_their_whole_names(session: Any) -> None:
    names = ["a.b", "`x`", "A", "a", "select", "ü n"]
    frame = session.createDataFrame([tuple(range(len(names)))], names)
    (batch,) = open_source(frame).batches(list(reversed(names)))
    assert [x.tolist() for x in batch] == [[i] for i in reversed(range(len(names)))]
    kept = [name for name in names if name != "A"]  # a schema has no names that differ in case only
    schema = Schema(columns=tuple(Ordered(name=name, kind="integer", low=0, high=9) for name in kept))
    told = ask(frame, schema, tallies(schema)["fine cells"])
    assert [np.flatnonzero(block).tolist() for block in told] == [[names.index(name)] for name in kept]
    with pytest.raises(InputError, match=r"^public data \(a Spark DataFrame\): no column 'B'; it has 'a.b'"):
        open_source(frame, what="public data").batches(["B"])
    with pytest.raises(InputError, match="two columns are called 'a'"):
        open_source(session.sql("SELECT 1 AS a, 2 AS a"))
    with pytest.raises(InputError, match="a stream does not end"):
        open_source(session.readStream.format("rate").load())


TYPES = {
    "timestamp '2020-02-28 23:30:00'": "2020-02-28 23:30:00",  # as Spark shows it, in the zone of its session
    "timestamp_ntz '2020-02-29 00:00:00'": "2020-02-29",
    "date '0001-01-01'": "0001-01-01",
    "cast(2.50 as decimal(9, 2))": "2.5",
    "cast('12345678901234567890123456789012345678' as decimal(38, 0))": "12345678901234567890123456789012345678",
    "cast(0.1 as float)": "0.10000000149011612",
    "interval '3' day": "INTERVAL '3' DAY",
    "9223372036854775807L": "9223372036854775807",
    "'two\\nlines'": "two\nlines",
    "true": "true",
    "cast('nan' as double)": None,
    "cast('inf' as double)": "inf",
    "-0.0D": "0",
    "array(1)": None,
    "named_struct('a', 1)": None,
    "map('a', 1)": None,
    "cast('x' as binary)": None,
    "parse_json('1')": None,
    "null": None,
}


def test_every_type_of_spark_can_be_read(session: Any) -> None:
    frame = session.sql("SELECT " + ", ".join(f"{value} AS x{j}" for j, value in enumerate(TYPES)))
    schema = Schema(
        columns=tuple(
            Category(name=f"x{j}", missing=True, values=(label or "-",), other=True)
            for j, label in enumerate(TYPES.values())
        )
    )
    codes = [0 if label else 2 for label in TYPES.values()]
    told = ask(frame, schema, tallies(schema)["fine cells"])
    assert [int(np.flatnonzero(block)[0]) for block in told] == codes
    ((*raw,),) = open_source(frame).batches(schema.names)
    assert [int(column.clean(x)[0]) for column, x in zip(schema, raw, strict=True)] == codes


def failing(session: Any) -> dict[str, Any]:
    return {
        "its query": session.sql(f"SELECT CAST(x AS INT) AS x FROM VALUES ('{CANARY}') AS t(x)"),
        "text that is not UTF-8": session.sql("SELECT CAST(x AS STRING) AS x FROM VALUES (X'63616E617279FF') AS t(x)"),
    }


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("case", ["its query", "text that is not UTF-8"])
def test_no_cell_in_the_message_of(case: str, session: Any, capfd: pytest.CaptureFixture[str]) -> None:
    frame = failing(session)[case]
    schema = Schema(columns=(Category(name="x", values=("a",)),))
    with pytest.raises(InputError) as caught:
        ask(frame, schema, RowCount())
    assert "canary" not in "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert "\n" not in str(caught.value)
    with contextlib.suppress(InputError):  # in a session of one's own Spark may read what is no text
        list(open_source(frame).batches(["x"]))
    assert "canary" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_another_version_in_the_executors_is_told(nasty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "version", lambda name: "0.0.1")
    with pytest.raises(
        InputError, match=r"the executors have a different version of certsynth\. Install the same version"
    ):
        ask(nasty.coalesce(1), nasty_schema(0, ["integers"]), RowCount())


class Heavy:
    """A question of some megabytes: PySpark sends it to each executor once."""

    def __init__(self) -> None:
        self.weight = np.random.default_rng(1).bytes(3_000_000)

    def begin(self) -> Any:
        return RowCount().begin()

    def add(self, sums: Any, batch: Any) -> None:
        sums.vectors[0] += len(batch[0]) * len(self.weight)

    def result(self, sums: Any) -> int:
        return RowCount().result(sums)


@pytest.mark.slow
def test_a_large_question_can_be_sent(nasty: Any) -> None:
    assert ask(nasty, nasty_schema(0, ["integers"]), Heavy()) == 60 * 3_000_000


# ------------------------------------------------------------------------------------------ tables that differ in a row


def spark_ways(session: Any) -> dict[str, Callable[[Path, Any], Any]]:
    def frame(folder: Path, rows: Any) -> Any:
        return session.read.parquet(str(texts_parquet(folder, rows)))

    def query(folder: Path, rows: Any) -> Any:
        frame(folder, rows).createOrReplaceTempView("neighbours")
        return spark_table("SELECT x, age FROM neighbours WHERE age > '0'", query=True)

    return {"frame": frame, "query": query, "pushed down": lambda *given: pushed_down(frame(*given))}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("way", ["frame", "query", "pushed down"])
def test_one_row_changes_the_integers_by_one_row(way: str, session: Any, tmp_path: Path) -> None:
    for name, cells in {"zeros in front": ["00X"], "date": ["01/13/2020"]}.items():
        found = {}
        for what, rows in neighbours(name, cells):
            inside = tmp_path / f"{name}{len(found)}"
            inside.mkdir()
            found[what] = read_or_none(spark_ways(session)[way], inside, rows, schema_of(name))
        assert None not in found.values()
        assert farthest(found) == {}


NOT_ROWWISE = {
    "SELECT count(*) AS x FROM t": "it has an aggregate, and one private row could change many rows",
    "SELECT DISTINCT x FROM t": "it has DISTINCT",
    "SELECT x FROM t GROUP BY x": "it has an aggregate",
    "SELECT x FROM t LIMIT 3": "it has LIMIT",
    "SELECT x FROM t UNION ALL SELECT x FROM t": "it has UNION",
    "SELECT t.x FROM t JOIN t AS u ON t.x = u.x": "it has a join",
    "SELECT x, row_number() OVER (ORDER BY x) AS r FROM t": "it has a window function",
    "SELECT explode(array(x, x)) AS x FROM t": "it has explode",
    "SELECT x FROM t WHERE x = (SELECT max(x) FROM t)": "a subquery among its expressions",
    "SELECT x FROM t TABLESAMPLE (10 PERCENT)": "it has a sample",
    "SELECT rand() AS x FROM t": "a function that depends on more than the values of one row",
    "SELECT monotonically_increasing_id() AS x FROM t": "a function that depends on more than the values of one row",
    "WITH u AS (SELECT DISTINCT x FROM t) SELECT x FROM u": "it has DISTINCT",
    "SELECT x FROM seen": "it has DISTINCT or dropDuplicates",
    "SELECT * FROM csv.`{csv}`": "how Spark reads a row of CSV depends on other rows",
    "SELECT * FROM json.`{json}`": "how Spark reads a row of Json depends on other rows",
    "SELECT * FROM parquet.`{folders}`": "guesses types from the names of its folders. Set spark.sql.sources.partition",
}


def test_what_is_not_row_wise_is_refused(session: Any, tmp_path: Path) -> None:
    rows = base("texts")
    frame = session.read.parquet(str(texts_parquet(tmp_path, rows)))
    frame.createOrReplaceTempView("t")
    frame.distinct().createOrReplaceTempView("seen")
    (tmp_path / "t.json").write_text('{"x": 1}')
    places = {"csv": csv_file(tmp_path, rows), "json": tmp_path / "t.json", "folders": folders(tmp_path, rows)}
    for text, says in NOT_ROWWISE.items():
        asked_for = text.format(**places)
        for data in (lambda q=asked_for: spark_table(q, query=True), lambda q=asked_for: open_source(session.sql(q))):
            with pytest.raises(InputError) as caught:
                data()
            assert says in str(caught.value), text
            assert "\n" not in str(caught.value)
    for frames in (frame.dropDuplicates(), frame.sample(0.5), frame.mapInArrow(lambda x: x, frame.schema)):
        with pytest.raises(InputError, match="one private row could change many rows"):
            open_source(frames)
    for text in ("SELECT upper(x) AS x FROM t WHERE age IN ('1', '20')", "WITH u AS (SELECT x FROM t) SELECT x FROM u"):
        assert spark_table(text, query=True).names == ("x",)


GROUPED = {
    "SELECT c AS id, count(*) AS n, sum(d) / count(d) AS m, max(b) AS t FROM t GROUP BY c HAVING max(i) > 0": "",
    "SELECT c AS id, sum(i) AS n FROM t GROUP BY c ORDER BY n": "",
    "WITH u AS (SELECT c AS k, sum(i) AS s FROM t WHERE i > 0 GROUP BY c) SELECT k AS id, s FROM u WHERE s > 0": "",
    "SELECT c AS id, median(i) AS m, percentile(i, 0.3) AS p, bool_and(i > 0) AS e FROM t GROUP BY c": "",
    "SELECT c AS id, count_if(i > 1) AS n, bool_or(i > 1) AS o FROM t GROUP BY c": "",
    "SELECT c AS id, count(DISTINCT b) FILTER (WHERE i > 0) AS n, min(d) AS m FROM t GROUP BY c": "",
    "SELECT c AS id, avg(d) AS n FROM t GROUP BY c": "the aggregate avg, and its last digits may depend on how rows",
    "SELECT c AS id, sum(x) AS n FROM t GROUP BY c": "sum of values of type double",
    "SELECT c AS id, 1 + max(x) AS n FROM t GROUP BY c": "Write max(CAST(… AS DECIMAL(18, 4)))",
    "SELECT c AS id, percentile(x, 0.5) AS n FROM t GROUP BY c": "percentile of values of type double",
    "SELECT c AS id, sum(CAST(i AS DECIMAL(38, 4))) AS n FROM t GROUP BY c": "sum of values of type decimal",
    "SELECT c AS id, max(b COLLATE UTF8_LCASE) AS n FROM t GROUP BY c": "max of values of type string collate",
    "SELECT c AS id, count(DISTINCT x) AS n FROM t GROUP BY c": "count of values of type double",
    "SELECT x AS id, count(*) AS n FROM t GROUP BY x": "a key of type double",
    "SELECT id, count(*) AS n FROM (SELECT b COLLATE UTF8_LCASE AS id FROM t) GROUP BY id": "a key of type string",
    "SELECT c AS id, try_sum(i) AS n FROM t GROUP BY c": "the aggregate try_sum",
    "SELECT c AS id, first(i) AS n FROM t GROUP BY c": "the aggregate first",
    "SELECT c AS id, any_value(i) AS n FROM t GROUP BY c": "the aggregate any_value",
    "SELECT c AS id, mode(i) AS n FROM t GROUP BY c": "the aggregate mode",
    "SELECT c AS id, stddev(i) AS n FROM t GROUP BY c": "the aggregate stddev",
    "SELECT c AS id, size(collect_list(i)) AS n FROM t GROUP BY c": "the aggregate collect_list",
    "SELECT c AS id, count(*) + rand() AS n FROM t GROUP BY c": "depends on more than the values",
    "SELECT c AS id, count(*) AS n FROM t GROUP BY c, i": "other keys than one column",
    "SELECT c % 2 AS id, count(*) AS n FROM t GROUP BY c % 2": "other keys than one column",
    "SELECT count(*) AS id FROM t": "other keys than one column",
    "SELECT c AS id, count(*) AS n FROM t GROUP BY ROLLUP (c)": "other keys than one column",
    "SELECT c + 0 AS id, count(*) AS n FROM t GROUP BY c": "does not have the key of each group as 'id'",
    "SELECT c, max(i) AS id FROM t GROUP BY c": "does not have the key of each group as 'id'",
    "SELECT id, count(*) AS n FROM (SELECT c AS id FROM t GROUP BY c, i) GROUP BY id": "several aggregations",
    "SELECT c AS id, count(*) AS n FROM t GROUP BY c LIMIT 2": "it has LIMIT",
    "SELECT c AS id, sum(count(*)) OVER () AS n FROM t GROUP BY c": "a window function",
    "SELECT DISTINCT c AS id FROM t": "it has DISTINCT",
    "SELECT t.c AS id, count(*) AS n FROM t JOIN t AS u ON t.c = u.c GROUP BY t.c": "a join",
}


def test_a_plan_may_group_by_the_column_that_names_persons(session: Any, tmp_path: Path) -> None:
    kinds = [("c", "bigint"), ("i", "int"), ("x", "double"), ("d", "decimal(18, 4)"), ("b", "string")]
    chosen = ", ".join(f"CAST({value} AS {kind}) AS {name}" for (name, kind), value in zip(kinds, "1231x", strict=True))
    session.sql(f"SELECT {chosen.replace('CAST(x AS', 'CAST(0 AS')}").write.parquet(f"{tmp_path}/t")
    session.read.parquet(f"{tmp_path}/t").createOrReplaceTempView("t")
    for text, says in GROUPED.items():
        if not says:
            table = spark_table(text, query=True, persons=Persons("id"))
            assert [column.tolist() for column in next(table.batches(["id"]))] == [[1]], text
            continue
        for data in (lambda q=text: spark_table(q, query=True, persons=Persons("id")), lambda q=text: session.sql(q)):
            with pytest.raises(InputError) as caught:
                open_source(data(), persons=Persons("id"))
            assert says in str(caught.value), text
            assert "\n" not in str(caught.value)
    frame = session.table("t").groupBy("c").agg({"i": "max"}).withColumnRenamed("c", "id")
    assert open_source(frame, persons=Persons("id")).names == ("id", "max(i)")
    for persons in (None, Persons("id", 2), Persons("id", missing="separate")):
        with pytest.raises(InputError, match=r"rows_per_person|missing_person"):
            open_source(frame, persons=persons)


EXACT = (
    "count(*)", "count(DISTINCT i)", "sum(i)", "sum(d)", "sum(d) / count(d)", "min(d)", "max(b)", "median(i)",
    "percentile(i, 0.3)", "bool_and(i > 0)", "count_if(i > 0)", "sum(CAST(x AS DECIMAL(18, 4))) / count(x)",
)  # fmt: skip


def test_no_person_changes_a_bit_of_the_row_of_another_in_spark(session: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import expr

    values = ("id % 40 AS c", "hash(id) AS i", "hash(id) / 7D AS x", "CAST(hash(id) / 9 AS DECIMAL(18, 4)) AS d")
    whole = session.range(4_000).selectExpr(*values, "substring(sha1(string(id)), 1, 3) AS b")
    odd = session.sql(
        "SELECT 0L AS c, 2147483647 AS i, 9e13D AS x, CAST(99999999999999.9999 AS DECIMAL(18, 4)) AS d, '' AS b"
    )
    others = whole.where("c > 0")
    found, inexact = [], []
    for j, frame in enumerate([whole, whole.repartition(7), others.coalesce(1), odd.union(others).repartition(3)]):
        frame.write.parquet(f"{tmp_path}/{j}")
        read = session.read.parquet(f"{tmp_path}/{j}")
        made = read.groupBy("c").agg(*(expr(f"{each} AS a{k}") for k, each in enumerate(EXACT)))
        source = open_source(made, persons=Persons("c"))
        rows = [row for batch in source.batches(source.names) for row in zip(*batch, strict=True)]
        found.append(sorted(map(repr, (row for row in rows if row[0] != 0))))
        refused = read.where("c > 0").groupBy("c").agg(expr("sum(x)")).collect()
        inexact.append(sorted(map(repr, refused)))
    assert all(each == found[0] for each in found)
    assert len(found[0]) == 39
    assert any(each != inexact[0] for each in inexact), "the comparison sees no last digits"


# ------------------------------------------------------------------------------------------------ whole releases


@pytest.fixture(scope="module")
def town(session: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    path = tmp_path_factory.mktemp("town") / "people.parquet"
    people(400).write_parquet(path)
    return path, session.read.parquet(str(path)).repartition(3)


PHASES = (COUNTING, PLACING_PHASE, DISPLACED)
ASKED: dict[str, dict[str, Any]] = {
    "pairs": {"epsilon": 2},
    "rows stay hidden": {"epsilon": 2, "neighbours": "add-remove", "certificate_share": 0},
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("case", ASKED)
def test_with_the_same_noise_the_release_is_that_of_the_file(case: str, town: tuple[Path, Any]) -> None:
    path, frame = town
    asked_for = {"resolution": 4, "mechanism": "identity", "columns": ["age", "sex", "income"], **ASKED[case]}
    said: dict[bool, list[tuple[str, int, int | None]]] = {True: [], False: []}
    tables = [
        emitted(
            release(
                data,
                MIXED,
                seed=1,
                rows=50,
                noise=FixedOutput(),
                progress=lambda *what, heard=said[data is frame]: heard.append(what),
                **asked_for,
            )
        )
        for data in (frame, path)
    ]
    assert tables[0].equals(tables[1])
    # While Spark counts nothing is known of how many rows there are.
    assert {(done, total) for phase, done, total in said[True] if phase in PHASES} == {(0, None)}
    assert any(done for phase, done, total in said[False] if phase in PHASES) == (case == "pairs")


def test_a_check_is_that_of_the_file(town: tuple[Path, Any]) -> None:
    path, frame = town
    narrow = MIXED.select(["age", "sex"])
    assert check(frame, narrow) == check(path, narrow)


@pytest.mark.slow
def test_certify_and_evaluate_are_those_of_the_file(town: tuple[Path, Any]) -> None:
    path, frame = town
    asked_for = {"columns": ["age", "sex", "income", "employed"], "subsets": [["age", "sex", "income", "employed"]]}
    theirs = people(60, seed=2)
    certified = [
        certify(data, theirs, MIXED, epsilon=5, noise=FixedOutput(), **asked_for).to_json() for data in (frame, path)
    ]
    assert certified[0] == certified[1]
    assert evaluate(frame, frame, MIXED, columns=["age", "sex"]).upper == 0
    losses = [evaluate(data, theirs, MIXED, **asked_for).to_json() for data in (frame, path)]
    assert losses[0] == losses[1]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, [*map(str, arguments), "--quiet"])


def test_the_command_line_reads_what_spark_knows(
    session: Any, town: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, frame = town
    Path("schema.toml").write_text(MIXED.select(["age", "sex"]).to_toml(), encoding="utf-8")
    frame.createOrReplaceTempView("people")
    pinned = ("--resolution", 4, "--mechanism", "identity", "--epsilon", 2)
    given = ("--schema", "schema.toml", "--engine", "spark")
    done = run("release", "SELECT age, sex FROM people WHERE age > 2;\n", "--sql", *given, *pinned, "--out", "release")
    assert done.exit_code == 0, done.output
    assert all(check["ok"] for check in Release.load("release").verify())
    made = "release/synthetic.csv"
    for command, data in (("certify", path), ("evaluate", "people")):
        budget = ("--epsilon", 1) if command == "certify" else ()
        done = run(command, data, made, *given, *budget)
        assert done.exit_code == 0, done.output
    for data, sql, says in [
        ("nowhere", (), "Spark knows no table 'nowhere'. Check the name"),
        ("nowhere.parquet", (), "nowhere.parquet: no such file. Check the path."),
        ("SELECT age, height FROM people", ("--sql",), "no column 'height' in what it reads. Check the query."),
        ("SELECT age FROM people, people AS others", ("--sql",), "column 'age' is in several tables. Say which one"),
        ("SELECT age FROM nowhere", ("--sql",), "Spark knows no table 'nowhere'"),
        ("people.csv", (), "Save it as Parquet"),
        ("DROP VIEW people", ("--sql",), "not a single SELECT"),
        ("SELECT 1; SELECT 2", ("--sql",), "not a single SELECT"),
        ("INSERT OVERWRITE DIRECTORY 'out' SELECT * FROM people", ("--sql",), "not a single SELECT"),
        (f"SELECT CAST('{CANARY}' AS INT) AS age, 'f' AS sex", ("--sql",), "Spark cannot run its query"),
    ]:
        done = run("evaluate", data, made, *given, *sql)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = without_progress(done.stderr).splitlines()
        assert says in line
        assert CANARY not in line
    assert not Path("out").exists()
    assert {p.name for p in tmp_path.iterdir()} == {"schema.toml", "release"}


def test_spark_is_known_without_being_imported() -> None:
    assert not spark.is_spark(pa.table({"x": [1]}))
    kind = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})
    assert spark.is_spark(kind())


# ------------------------------------------------------------------------------------------------------- persons


def spark_ids(kind: str) -> pa.Table:
    rows = 120
    ids: dict[str, Any] = {
        "texts": pa.array([None if i % 11 == 0 else ["", "p 1", " 7", "é", CANARY][i % 5] for i in range(rows)]),
        "numbers": pa.array([None if i % 7 == 0 else i * i % 17 for i in range(rows)], pa.int32()),
        "decimals": pa.array([Decimal(i % 5) / 2 for i in range(rows)], pa.decimal128(9, 2)),
        "instants": pa.array([10**15 + i % 9 for i in range(rows)], pa.timestamp("us", "UTC")),
        "days": pa.array([i % 9 for i in range(rows)], pa.date32()),
    }
    ages, sexes = [i * 7 % 60 for i in range(rows)], [("f", "m", None)[i % 3] for i in range(rows)]
    return pa.table({"who": ids[kind], "age": ages, "sex": sexes, "height": [i % 4 / 3 for i in range(rows)]})


VISITS = Schema(
    columns=(
        Ordered(name="age", kind="integer", low=0, high=60),
        Category(name="sex", values=("f", "m"), missing=True),
        Ordered(name="height", kind="number", low=0, high=1),
    )
)


def kept_sums(data: Any, who: Persons, columns: tuple[str, ...] = VISITS.names) -> list[Any]:
    kept, schema = keep_rows(open_source(data), VISITS, who), VISITS.select(columns)
    every = tuple(range(len(schema)))
    cells = kept.rows_of(schema, COUNTING)(CellCounts(schema, Marginals.even(schema, [every], resolution=9)))
    totals = kept.contributions()
    rows = sorted(str(row) for batch in kept.cleaned(schema) for row in zip(*batch, strict=True))
    numbers = (kept.count(), totals.over, totals.within, totals.kept, totals.dropped)
    return [*(np.asarray(block).tolist() for block in cells), numbers, rows]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("kind", "who"),
    [
        ("texts", Persons("who", 2, "persons", "separate")),
        ("numbers", Persons("who", 3)),
        ("decimals", Persons("who", 1)),
        ("instants", Persons("who", 2, "persons")),
        ("days", Persons("who", 2)),
    ],
    ids=str,
)
def test_spark_keeps_the_rows_of_persons_that_a_file_keeps(
    kind: str, who: Persons, session: Any, tmp_path: Path
) -> None:
    pa.parquet.write_table(spark_ids(kind), tmp_path / "visits.parquet")
    frame = session.read.parquet(str(tmp_path / "visits.parquet"))
    expected = kept_sums(tmp_path / "visits.parquet", who)
    kept = keep_rows(open_source(frame), VISITS, who)
    assert isinstance(kept, SparkKeptRows)
    assert kept_sums(frame.repartition(5), who) == expected
    some = ("height", "age")
    assert kept_sums(frame, who, some) == kept_sums(tmp_path / "visits.parquet", who, some)


@pytest.mark.quick_cases(1)
def test_spark_refuses_what_is_no_id_and_quotes_nothing(
    session: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ids = {"float": pa.array([1.0, 4711e18]), "bytes": pa.array([CANARY.encode(), None])}
    for name, values in ids.items():
        path = tmp_path / f"{name}.parquet"
        table = pa.table({"who": values, "age": [1, 2], "sex": ["f", "m"], "height": [0.0, 1.0]})
        pa.parquet.write_table(table, path)
        for ask in ("count", "contributions"):
            with pytest.raises(InputError, match=r"'who', which .table. person names") as found:
                getattr(keep_rows(open_source(session.read.parquet(str(path))), VISITS, Persons("who", 1)), ask)()
            seen = f"{found.value} {capfd.readouterr()}"
            assert "4711" not in seen
            assert CANARY not in seen
