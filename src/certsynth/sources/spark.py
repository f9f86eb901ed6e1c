"""Rows that stay in Spark: its executors count, and only sums come back.

PySpark is imported only inside functions that receive Spark objects or start a session.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.persons import Persons
from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.queries.tally import Sums, T, Tally
from certsynth.sources.frames import raw_columns
from certsynth.sources.reading import (
    CHUNK_ROWS,
    MAX_TEXT_ROWS,
    gather_columns,
    mask_errors,
    positions,
    refuse_duplicate_names,
)
from certsynth.sources.spark_plan import refuse_other_plans

ROWS_PER_COUNT = 60_000
"""Rows that an executor gathers before counting them. Spark passes ten thousand at a time, too few to amortise the
fixed cost of a count; a task has one core, and larger batches would be counted by several threads."""

ENTRIES_PER_BATCH = 100_000
"""Most entries of a vector in one Arrow batch that an executor returns."""

ENTRIES = "vector bigint, place bigint, value bigint"

_NATIVE = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp_ntz"}
_UNREADABLE = ("array", "map", "struct", "binary", "variant", "void", "udt", "geometry", "geography")

_FAILS = "Spark cannot run its query. Run it by itself, for example with .count(), to see why."
WORKER_FAILS = "certsynth cannot count these rows in an executor: a column cannot be read, or memory ran out."
OTHER_VERSION = "the executors have a different version of certsynth. Install the same version there."
_NEEDED = ("certsynth", "pyarrow", "pandas", "narwhals", "numpy", "numba", "duckdb", "scipy")
_NO_SPARK = "Spark is not installed. Run: pip install 'certsynth[spark]'"
_NO_JAVA = (
    "Spark does not start. It needs Java 17 or newer: install it, or set JAVA_HOME. Check Spark's settings as well."
)


def is_spark(data: Any) -> bool:
    """Whether `data` is a Spark DataFrame, classic or Connect, judged by its class so that nothing is imported."""
    homes = ("pyspark.sql.dataframe", "pyspark.sql.connect.dataframe")
    return any(kind.__name__ == "DataFrame" and kind.__module__ in homes for kind in type(data).__mro__)


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A Spark DataFrame. Each pass runs its query anew."""

    frame: Any
    where: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def open(cls, frame: Any, what: str, persons: Persons | None = None) -> SparkTable:
        """Open a DataFrame whose plan is row-wise; if a column names `persons`, it may group by that column."""
        where = f"{what} (a Spark DataFrame)"
        with mask_spark_errors(where):
            streams, about = bool(frame.isStreaming), list(frame.dtypes)
        if streams:
            raise InputError(f"{where}: a stream does not end. Give a table.")
        names, types = (tuple(str(each[j]) for each in about) for j in range(2))
        refuse_duplicate_names(names, where)
        with mask_spark_errors(where):
            refuse_other_plans(frame, where, persons)
        return cls(frame, where, names, types)

    @property
    def runs_python(self) -> bool:
        """Whether the packages that PySpark needs to run Python in executors are installed."""
        return find_spec("pyarrow") is not None and find_spec("pandas") is not None

    def size_hint(self) -> int | None:
        return None  # counting would run the query

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Fetch rows, partition by partition. For sums use `tallied`, which fetches no rows."""
        wanted = positions(names, self.names, self.where)
        return gather_columns(self._chunks(wanted), range(len(wanted)), min(rows, MAX_TEXT_ROWS))

    def _chunks(self, wanted: Sequence[int]) -> Iterator[list[Any]]:
        chunk: list[Any] = []
        with mask_spark_errors(self.where):
            for row in self.chosen(wanted).toLocalIterator():
                chunk.append(row)
                if len(chunk) == CHUNK_ROWS:
                    yield chunk
                    chunk = []
        if chunk:
            yield chunk

    def chosen(self, wanted: Sequence[int], *, ids: bool = False) -> Any:
        """These columns as x0, x1, … in readable types, addressed by position since Spark's names ignore case. With
        `ids` the first of them names persons."""
        placed = self.frame.toDF(*(f"c{i}" for i in range(len(self.names))))
        chosen = [readable(f"c{i}", self.types[i]) for i in wanted]
        if ids:
            chosen[0] = id_sql(f"c{wanted[0]}", self.types[wanted[0]])
        return placed.selectExpr(*(f"{each} AS x{j}" for j, each in enumerate(chosen)))

    def answers(self, tally: Tally[Any, Any], schema: Schema) -> bool:
        """Executors can evaluate every tally."""
        return True

    def tallied(self, tally: Tally[Any, T], schema: Schema) -> T:
        """Evaluate a tally in the executors: each partition emits its entries, and Spark returns their sums.

        If a task is retried or run speculatively, Spark keeps the output of one attempt only, so no row counts twice. A
        tally of some megabytes is sent once to each executor, since PySpark broadcasts large functions.
        """
        wanted = positions(schema.names, self.names, self.where)
        sums = tally.begin()
        with mask_spark_errors(self.where):
            entries = self.chosen(wanted).mapInArrow(_partition_counter(tally, schema), ENTRIES)
            found = add_up(entries)
        for vector, places, values in found:
            sums.put(vector, places, values)
        return tally.result(sums)


def add_up(entries: Any) -> list[tuple[int, Ints, Ints]]:
    """The sums of entries that partitions return: for each vector its number, positions and values."""
    found = entries.groupBy("vector", "place").sum("value").toArrow()
    vectors, places, values = (column.to_numpy() for column in found.columns)
    order = np.argsort(vectors, kind="stable")
    starts = np.flatnonzero(np.diff(vectors[order], prepend=vectors.min(initial=0) - 1))
    parts = np.split(order, starts[1:]) if len(order) else []
    return [(int(vectors[part[0]]), places[part], values[part]) for part in parts]


def is_unreadable(kind: str) -> bool:
    """Whether no schema can describe values of a Spark type."""
    return kind.lower().startswith(_UNREADABLE)


def id_sql(place: str, kind: str) -> str:
    """SQL for a column of ids: whole numbers and floats, times in UTC, or texts."""
    kind = kind.lower()
    if kind == "timestamp":
        return f"CAST(to_utc_timestamp({place}, current_timezone()) AS TIMESTAMP_NTZ)"
    return place if kind in _NATIVE - {"date"} else f"CAST({place} AS STRING)"


def readable(place: str, kind: str) -> str:
    """SQL for a column of Spark type `kind` that Arrow supports. Types that no schema can describe become null.

    An instant is read as wall-clock time in the session's time zone, as Spark shows it.

    >>> readable("c0", "bigint"), readable("c0", "timestamp"), readable("c0", "array<int>")
    ('c0', 'CAST(c0 AS TIMESTAMP_NTZ)', 'CAST(NULL AS STRING)')
    """
    kind = kind.lower()
    if is_unreadable(kind):
        return "CAST(NULL AS STRING)"
    if kind == "timestamp":
        return f"CAST({place} AS TIMESTAMP_NTZ)"
    return place if kind in _NATIVE or kind.startswith(("decimal", "time(")) else f"CAST({place} AS STRING)"


def _partition_counter(tally: Tally[Any, Any], schema: Schema) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function that counts a partition; it is sent to the executors."""
    ours = installed_version()

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        if installed_version() not in (ours, None):
            raise InputError(OTHER_VERSION)
        return _count_partition(batches, tally, schema)

    return count


def installed_version() -> str | None:
    """The installed version of certsynth; None if the package was shipped with the job instead."""
    try:
        return version("certsynth")
    except PackageNotFoundError:
        return None


def _count_partition(batches: Iterable[Any], tally: Tally[Any, Any], schema: Schema) -> Iterator[Any]:
    """Yield the entries of a partition given as Arrow batches. No message quotes a cell: Spark would log it."""
    with mask_errors(WORKER_FAILS):
        sums = None
        make: Callable[[Any], Any] = dict
        for make, batch in _clean_partition(batches, schema):  # noqa: B007 (the last constructor makes the output)
            sums = tally.begin() if sums is None else sums
            tally.add(sums, batch)
        if sums is None:  # a partition without rows
            return
        yield from list_entries(sums, make)


def list_entries(sums: Sums, make: Callable[[Any], Any], weight: int = 1) -> Iterator[Any]:
    """Yield the entries of sums that are not 0, times a weight, as Arrow batches."""
    for vector, places, values in sums.entries():
        there = np.flatnonzero(values)
        for start in range(0, len(there), ENTRIES_PER_BATCH):
            part = there[start : start + ENTRIES_PER_BATCH]
            yield make({"vector": np.full(len(part), vector), "place": places[part], "value": values[part] * weight})


def _clean_partition(batches: Iterable[Any], schema: Schema) -> Iterator[tuple[Callable[[Any], Any], list[np.ndarray]]]:
    """Yield cleaned rows in large batches, each with a constructor of Arrow batches: pyarrow is not imported here."""
    held: list[list[np.ndarray]] = []
    make: Callable[[Any], Any] = dict
    for batch in batches:
        if not batch.num_rows:
            continue
        make = type(batch).from_pydict
        columns = raw_columns(nw.from_arrow(batch, backend="pyarrow"))
        held.append([column.clean(raw) for column, raw in zip(schema, columns, strict=True)])
        if sum(len(part[0]) for part in held) >= ROWS_PER_COUNT:
            yield make, [np.concatenate(parts) for parts in zip(*held, strict=True)]
            held = []
    if held:
        yield make, [np.concatenate(parts) for parts in zip(*held, strict=True)]


@contextmanager
def mask_spark_errors(where: str, text: str = "") -> Iterator[None]:
    """Replace Spark's errors, which quote cells and Java stack traces, by one line.

    `text` is the user's own query or path, parts of which a message may quote.
    """
    try:
        with warnings.catch_warnings(), _without_its_log():
            warnings.simplefilter("ignore", FutureWarning)  # PySpark's warnings about pandas versions
            yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InputError):
        raise
    except BaseException as error:
        raise InputError(f"{where}: {_explain_unknown_name(error, text) or _reason(str(error))}") from None


@contextmanager
def _without_its_log() -> Iterator[None]:
    """Silence PySpark's own logging of query errors: it quotes cells."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def _explain_unknown_name(error: BaseException, text: str) -> str | None:
    """Explain a name that Spark cannot resolve before it runs a query, if that name is part of `text`."""
    with suppress(Exception):
        condition = str(getattr(error, "getCondition", str)())
        parameters: dict[str, Any] = getattr(error, "getMessageParameters", dict)()
        for start, (key, words) in _UNKNOWN_NAMES.items():
            name = str(parameters.get(key, "")).replace("`", "")
            if condition.startswith(start) and (name in text or "{" not in words):
                return words.format(repr(name))
    return None


_UNKNOWN_NAMES = {
    "UNRESOLVED_COLUMN": ("objectName", "no column {} in what it reads. Check the query."),
    "AMBIGUOUS_REFERENCE": ("name", "column {} is in several tables. Say which one, like a.name."),
    "TABLE_OR_VIEW_NOT_FOUND": (
        "relationName",
        "Spark knows no table {}. Check the name; a path of Parquet files ends in .parquet or /.",
    ),
    "PATH_NOT_FOUND": ("path", "no such file. Check the path."),
}
"""Spark's error conditions, each with the parameter that holds the name and our message."""


def _reason(text: str) -> str:
    """Our message for an error of Spark.

    >>> _reason("… ModuleNotFoundError: No module named 'certsynth' …")[:45]
    "the executors' Python has no module certsynth"
    """
    for name in _NEEDED:
        if f"No module named '{name}" in text:
            remedy = "Install certsynth and pyarrow there, or set PYSPARK_PYTHON to a Python that has them."
            return f"the executors' Python has no module {name}. {remedy}"
    return next((words for words in (OTHER_VERSION, WORKER_FAILS) if words in text), _FAILS)


# -------------------------------------------------------------------------------------------- for the command line


def spark_table(data: str, *, query: bool = False, what: str = "data", persons: Persons | None = None) -> SparkTable:
    """Open a Parquet file or folder, a catalogue table or a query, in the active session or a new one."""
    where = f"{what} (by Spark)"
    spark = _session(where)
    if query:
        return SparkTable.open(_run_query(spark, data, where), what, persons)
    lower = data.lower()
    with mask_spark_errors(f"{where}: {data}", data):
        if lower.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
            frame = None
        elif lower.endswith((".parquet", ".pq", "/")) or set("*?[:") & set(data) or Path(data).is_dir():
            frame = spark.read.parquet(data)
        else:
            frame = spark.table(data)
    if frame is None:
        raise InputError(
            f"{where}: {data}: Spark's CSV reader guesses the meaning of malformed lines. Save it as Parquet."
        )
    return SparkTable.open(frame, what, persons)


def _run_query(spark: Any, text: str, where: str) -> Any:
    """Run a query that only reads. Spark's parser for queries does not accept a final semicolon."""
    text = text.rstrip().removesuffix(";")
    try:
        spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
    except Exception:
        raise InputError(f"{where}: not a single SELECT that Spark can read. Only queries are run.") from None
    with mask_spark_errors(where, text):
        return spark.sql(text)


def _session(where: str) -> Any:
    """The active session, or a new one with Spark's own settings, without UI and logs."""
    if find_spec("pyspark") is None:
        raise InputError(_NO_SPARK)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            from pyspark.sql import SparkSession

            running = SparkSession.getActiveSession()
            if running is not None:
                return running
            builder = SparkSession.builder.appName("certsynth")
            for key, value in _QUIET.items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
            context = spark.sparkContext
    except Exception:
        raise InputError(f"{where}: {_NO_JAVA}") from None
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # the default would be the first python3 on the path
    return spark


_QUIET = {
    "spark.ui.enabled": "false",  # it shows the number of rows
    "spark.eventLog.enabled": "false",  # so does this
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # errors quote cells
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # partition values are texts
    "spark.io.encryption.enabled": "true",  # sums are shuffled through files of the executors
}
