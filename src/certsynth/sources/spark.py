"""Rows that stay in Spark: its executors count, and only sums come back.

Nothing here is needed without Spark: PySpark is imported only by whoever has it.
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

from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.queries.tally import T, Tally
from certsynth.sources.frames import raw_columns
from certsynth.sources.reading import BITE, TEXT_ROWS, gathered, own_words, positions, refuse_twins
from certsynth.sources.spark_plan import refuse_other_plans

HELD_ROWS = 60_000
"""Rows that an executor gathers before they are counted: Spark hands over ten thousand at once, and counting so few
costs more than their share. A task has one core of its executor, and more rows would be counted by threads."""

SENT_ENTRIES = 100_000
"""Entries of a vector that an executor sends at once."""

_ENTRIES = "vector bigint, place bigint, value bigint"

_NATIVE = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp_ntz"}
_UNREADABLE = ("array", "map", "struct", "binary", "variant", "void", "udt", "geometry", "geography")

_FAILS = "Spark cannot run its query. Run it by itself, for example with .count(), to see why."
_WORKER = "certsynth cannot count these rows in an executor: a column cannot be read, or memory ran out."
_OTHER_VERSION = "the executors have another version of certsynth. Install the same one there."
_NEEDED = ("certsynth", "pyarrow", "pandas", "narwhals", "numpy", "numba", "duckdb", "scipy")
_NO_SPARK = "Spark is not installed. Run: pip install 'certsynth[spark]'"
_NO_JAVA = "Spark does not start. It needs Java 17 or newer: install it, or set JAVA_HOME. Check Spark's settings, too."


def is_spark(data: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or Connect; known by its class, so that nothing is imported."""
    homes = ("pyspark.sql.dataframe", "pyspark.sql.connect.dataframe")
    return any(kind.__name__ == "DataFrame" and kind.__module__ in homes for kind in type(data).__mro__)


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A DataFrame of Spark. Each reading is one run of its query."""

    frame: Any
    where: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def open(cls, frame: Any, what: str) -> SparkTable:
        where = f"{what} (a Spark DataFrame)"
        with _own_words(where):
            streams, about = bool(frame.isStreaming), list(frame.dtypes)
        if streams:
            raise InputError(f"{where}: a stream has no end. Give a table.")
        names, types = (tuple(str(each[j]) for each in about) for j in range(2))
        refuse_twins(names, where)
        with _own_words(where):
            refuse_other_plans(frame, where)
        return cls(frame, where, names, types)

    @property
    def runs_python(self) -> bool:
        """Whether PySpark has what it needs to hand rows to Python in the executors."""
        return find_spec("pyarrow") is not None and find_spec("pandas") is not None

    def size_hint(self) -> int | None:
        return None  # counting would run the query

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Rows that are brought here, partition by partition: what only needs sums asks by `tallied`."""
        wanted = positions(names, self.names, self.where)
        return gathered(self._bites(wanted), range(len(wanted)), min(rows, TEXT_ROWS))

    def _bites(self, wanted: Sequence[int]) -> Iterator[list[Any]]:
        bite: list[Any] = []
        with _own_words(self.where):
            for row in self.chosen(wanted).toLocalIterator():
                bite.append(row)
                if len(bite) == BITE:
                    yield bite
                    bite = []
        if bite:
            yield bite

    def chosen(self, wanted: Sequence[int]) -> Any:
        """These columns as x0, x1, …, of types that can be read. They go by their place: Spark's names ignore case."""
        placed = self.frame.toDF(*(f"c{i}" for i in range(len(self.names))))
        return placed.selectExpr(*(f"{readable(f'c{i}', self.types[i])} AS x{j}" for j, i in enumerate(wanted)))

    def answers(self, tally: Tally[Any, Any], schema: Schema) -> bool:
        """Whether executors can be asked."""
        return True

    def tallied(self, tally: Tally[Any, T], schema: Schema) -> T:
        """Ask the executors: each partition tells its entries, Spark adds them up, and the sums come here.

        Of a task that fails and is tried again, or that runs twice to be quicker, Spark keeps the output of one attempt
        only, so that no row counts twice. A tally of some megabytes is sent once to each executor: PySpark broadcasts
        functions that are that large.
        """
        wanted = positions(schema.names, self.names, self.where)
        sums = tally.begin()
        with _own_words(self.where):
            told = self.chosen(wanted).mapInArrow(_telling(tally, schema), _ENTRIES)
            found = told.groupBy("vector", "place").sum("value").toArrow()
            vectors, places, values = (column.to_numpy() for column in found.columns)
        order = np.argsort(vectors, kind="stable")
        starts = np.flatnonzero(np.diff(vectors[order], prepend=-1))
        for part in np.split(order, starts[1:]) if len(order) else []:
            sums.put(int(vectors[part[0]]), places[part], values[part])
        return tally.result(sums)


def readable(place: str, kind: str) -> str:
    """SQL for a column of Spark type `kind` that Arrow can carry. What no schema can describe is absent.

    An instant is read as the clock on the wall of the session's time zone, as Spark shows it.

    >>> readable("c0", "bigint"), readable("c0", "timestamp"), readable("c0", "array<int>")
    ('c0', 'CAST(c0 AS TIMESTAMP_NTZ)', 'CAST(NULL AS STRING)')
    """
    kind = kind.lower()
    if kind.startswith(_UNREADABLE):
        return "CAST(NULL AS STRING)"
    if kind == "timestamp":
        return f"CAST({place} AS TIMESTAMP_NTZ)"
    return place if kind in _NATIVE or kind.startswith(("decimal", "time(")) else f"CAST({place} AS STRING)"


def _telling(tally: Tally[Any, Any], schema: Schema) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What an executor does with a partition, to be sent there."""
    ours = _version()

    def told(batches: Iterable[Any]) -> Iterator[Any]:
        if _version() not in (ours, None):
            raise InputError(_OTHER_VERSION)
        return _told(batches, tally, schema)

    return told


def _version() -> str | None:
    """Which certsynth this is; None where it was not installed, but sent along with the job."""
    try:
        return version("certsynth")
    except PackageNotFoundError:
        return None


def _told(batches: Iterable[Any], tally: Tally[Any, Any], schema: Schema) -> Iterator[Any]:
    """The entries of a partition that comes as batches of Arrow. No message quotes a cell: Spark would log it."""
    with own_words(_WORKER):
        sums = None
        make: Callable[[Any], Any] = dict
        for make, batch in _cleaned(batches, schema):  # noqa: B007 (the last one makes what is sent)
            sums = tally.begin() if sums is None else sums
            tally.add(sums, batch)
        if sums is None:  # a partition without rows
            return
        for vector, places, values in sums.entries():
            there = np.flatnonzero(values)
            for start in range(0, len(there), SENT_ENTRIES):
                part = there[start : start + SENT_ENTRIES]
                yield make({"vector": np.full(len(part), vector), "place": places[part], "value": values[part]})


def _cleaned(batches: Iterable[Any], schema: Schema) -> Iterator[tuple[Callable[[Any], Any], list[np.ndarray]]]:
    """Cleaned rows, many at once, each with what makes a batch of Arrow: nobody here imports it."""
    held: list[list[np.ndarray]] = []
    make: Callable[[Any], Any] = dict
    for batch in batches:
        if not batch.num_rows:
            continue
        make = type(batch).from_pydict
        columns = raw_columns(nw.from_arrow(batch, backend="pyarrow"))
        held.append([column.clean(raw) for column, raw in zip(schema, columns, strict=True)])
        if sum(len(part[0]) for part in held) >= HELD_ROWS:
            yield make, [np.concatenate(parts) for parts in zip(*held, strict=True)]
            held = []
    if held:
        yield make, [np.concatenate(parts) for parts in zip(*held, strict=True)]


@contextmanager
def _own_words(where: str, text: str = "") -> Iterator[None]:
    """Spark's errors quote cells and come with pages of Java: one line in place of them.

    `text`: what a user wrote, of which parts may be told.
    """
    try:
        with warnings.catch_warnings(), _without_its_log():
            warnings.simplefilter("ignore", FutureWarning)  # PySpark on versions of pandas, which is not used here
            yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InputError):
        raise
    except BaseException as error:
        raise InputError(f"{where}: {_unknown(error, text) or _reason(str(error))}") from None


@contextmanager
def _without_its_log() -> Iterator[None]:
    """PySpark itself prints the message of an error that comes from a query, with the cells that are in it."""
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


def _unknown(error: BaseException, text: str) -> str | None:
    """What Spark does not know, if it says so before a query runs; a name only if it stands in `text`."""
    with suppress(Exception):
        condition = str(getattr(error, "getCondition", str)())
        told: dict[str, Any] = getattr(error, "getMessageParameters", dict)()
        for start, (key, words) in _UNKNOWN.items():
            name = str(told.get(key, "")).replace("`", "")
            if condition.startswith(start) and (name in text or "{" not in words):
                return words.format(repr(name))
    return None


_UNKNOWN = {
    "UNRESOLVED_COLUMN": ("objectName", "no column {} in what it reads. Check the query."),
    "AMBIGUOUS_REFERENCE": ("name", "column {} is in several tables. Say which one, like a.name."),
    "TABLE_OR_VIEW_NOT_FOUND": (
        "relationName",
        "Spark knows no table {}. Check the name; a path of Parquet files ends in .parquet or /.",
    ),
    "PATH_NOT_FOUND": ("path", "no such file. Check the path."),
}
"""Spark's conditions, each with what it calls the name and what we say."""


def _reason(text: str) -> str:
    """What Spark's error means, in our own words.

    >>> _reason("… ModuleNotFoundError: No module named 'certsynth' …")[:45]
    "the executors' Python has no module certsynth"
    """
    for name in _NEEDED:
        if f"No module named '{name}" in text:
            remedy = "Install certsynth and pyarrow there, or set PYSPARK_PYTHON to a Python that has them."
            return f"the executors' Python has no module {name}. {remedy}"
    return next((words for words in (_OTHER_VERSION, _WORKER) if words in text), _FAILS)


# -------------------------------------------------------------------------------------------- for the command line


def spark_table(data: str, *, query: bool = False, what: str = "data") -> SparkTable:
    """A Parquet file or folder, a table that Spark knows, or a query, in a session of one's own or that is running."""
    where = f"{what} (by Spark)"
    spark = _session(where)
    if query:
        return SparkTable.open(_queried(spark, data, where), what)
    lower = data.lower()
    with _own_words(f"{where}: {data}", data):
        if lower.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
            frame = None
        elif lower.endswith((".parquet", ".pq", "/")) or set("*?[:") & set(data) or Path(data).is_dir():
            frame = spark.read.parquet(data)
        else:
            frame = spark.table(data)
    if frame is None:
        raise InputError(f"{where}: {data}: Spark's reader guesses what broken lines of CSV mean. Save it as Parquet.")
    return SparkTable.open(frame, what)


def _queried(spark: Any, text: str, where: str) -> Any:
    """A query that only reads. Spark's parser has a rule for those, to which a semicolon at the end is one too many."""
    text = text.rstrip().removesuffix(";")
    try:
        spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
    except Exception:
        raise InputError(f"{where}: not a single SELECT that Spark can read. Only queries are run.") from None
    with _own_words(where, text):
        return spark.sql(text)


def _session(where: str) -> Any:
    """The session that runs, or a new one as Spark's own settings say; a new one tells nobody what it does."""
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
        context.pythonExec = sys.executable  # or it would be the first python3 on the path
    return spark


_QUIET = {
    "spark.ui.enabled": "false",  # it shows how many rows there are
    "spark.eventLog.enabled": "false",  # so does this
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # errors quote cells
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # names of folders are texts
    "spark.io.encryption.enabled": "true",  # sums pass through files of the executors on their way
}
