"""The only readers of private rows: files, data frames, DuckDB relations and Spark, as batches of raw columns.

No message raised here quotes a cell. Column names are public; the values in the columns are private.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import duckdb
import numpy as np

from certsynth.base.progress import Progress, silent, with_progress
from certsynth.domain.persons import Persons
from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.queries.tally import RowCount, Rows, T, Tally, tally_batches
from certsynth.sources.caching import ParsedFile
from certsynth.sources.duck import ParquetFiles, Query, Relation
from certsynth.sources.files import open_file
from certsynth.sources.frames import Frame
from certsynth.sources.pushdown import PushedDown, has_known_engine, rows_are_remote
from certsynth.sources.spark import SparkTable, is_spark
from certsynth.sources.sql import Unopened
from certsynth.sources.storage import refuse_ambiguous, storage_of_sql

__all__ = [
    "NamedSource",
    "Source",
    "Unopened",
    "cleaned",
    "count_rows",
    "is_same_table",
    "open_source",
    "pushed_down",
    "refuse_ambiguous_types",
    "rows_of",
]


class Source(Protocol):
    """A table whose rows can be read, more than once, in batches."""

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Yield raw columns in the order of `names`, at most `rows` long; nulls are masked, or None among objects.

        A missing column is refused when this is called, before any row is read.
        """
        ...

    def size_hint(self) -> int | None:
        """Return the number of rows if it is known without reading them: for progress bars, never for a release."""
        ...


@runtime_checkable
class TallyEngine(Protocol):
    """A source that can evaluate tallies in its own engine, so that rows need not be transferred."""

    def answers(self, tally: Tally[Any, Any], schema: Schema) -> bool:
        """Whether the engine can evaluate this tally exactly."""
        ...

    def tallied(self, tally: Tally[Any, T], schema: Schema) -> T:
        """Evaluate the tally over all rows."""
        ...


class NamedSource(Source, Protocol):
    """A source that lists its columns."""

    @property
    def names(self) -> tuple[str, ...]: ...


def open_source(data: Any, *, what: str = "data", persons: Persons | None = None) -> NamedSource:
    """Open a table in any of the supported forms. Messages call it `what`. A query may group by a column of `persons`.

    >>> table = open_source(duckdb.sql("SELECT 'NA' AS country, 7 AS age"))
    >>> table.names, [column.tolist() for column in next(table.batches(["age", "country"]))]
    (('country', 'age'), [[7], ['NA']])
    """
    if callable(getattr(type(data), "batches", None)):  # look at the type: a frame may have a column of that name
        return data
    if isinstance(data, (str, os.PathLike)):
        return open_file(Path(os.fsdecode(data)), what)
    if isinstance(data, duckdb.DuckDBPyRelation):
        return Relation.open(data, f"{what} (a DuckDB relation)", persons)
    if isinstance(data, Unopened):
        return data.opened(what, persons)
    if is_spark(data):
        table = SparkTable.open(data, what, persons)
        return table if table.runs_python else PushedDown(table)
    frame = Frame.open(data, what)
    return PushedDown(frame) if rows_are_remote(frame) else frame


def is_same_table(first: Any, second: Any) -> bool:
    """Whether two tables are one: the same object, or paths of the same file. No row is read."""
    if isinstance(first, (str, os.PathLike)) and isinstance(second, (str, os.PathLike)):
        with suppress(OSError, ValueError):
            return Path(os.fsdecode(first)).samefile(os.fsdecode(second))
        return os.fsdecode(first) == os.fsdecode(second)
    return first is second or (isinstance(first, Unopened) and first == second)


def pushed_down(data: Any, *, what: str = "data") -> NamedSource:
    """Open a DuckDB relation, a Spark DataFrame or a lazy frame so that its own engine counts its rows.

    >>> pushed_down(duckdb.sql("SELECT 'NA' AS country, 7 AS age")).names
    ('country', 'age')
    """
    source = open_source(data, what=what)
    if isinstance(source, PushedDown):
        return source
    if has_known_engine(source):
        return PushedDown(source)
    raise InputError(f"{what}: only a DuckDB relation, a Spark DataFrame or a lazy frame has an engine to count in.")


def cleaned(source: Source, schema: Schema, *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
    """Yield batches of cleaned columns in schema order; columns that the schema does not name are not read."""
    if isinstance(source, (ParsedFile, ParquetFiles, Query)):
        return source.cleaned(schema, rows=rows)
    batches = source.batches(schema.names, rows=rows)
    return ([column.clean(raw) for column, raw in zip(schema, batch, strict=True)] for batch in batches)


def rows_of(source: Source, schema: Schema, phase: str, *, hidden: bool = False, progress: Progress = silent) -> Rows:
    """Return a function that evaluates tallies over the table, reporting progress under `phase`.

    If `hidden`, progress does not reveal the number of rows. Column types that cannot distinguish the schema's labels
    are refused when this is called, before any row is read or any budget spent.
    """
    refuse_ambiguous_types(source, schema)

    def ask(tally: Tally[Any, T]) -> T:
        if isinstance(source, TallyEngine) and source.answers(tally, schema):
            progress(phase, 0, None)  # only the engine knows how far it is
            return source.tallied(tally, schema)
        total = None if hidden else source.size_hint()
        return tally_batches(
            with_progress(cleaned(source, schema), phase, total, hidden=hidden, progress=progress), tally
        )

    return ask


def refuse_ambiguous_types(source: Any, schema: Schema) -> None:
    """Refuse ambiguous types of a frame, read directly or by DuckDB: they may have been guessed from its rows."""
    table = source.source if isinstance(source, PushedDown) else source
    if isinstance(table, Frame):
        refuse_ambiguous(schema, table.storages(schema.names), table.where)
    elif isinstance(table, Relation) and table.from_frame:
        kinds = [table.types[i] for i in table.places(schema.names)]
        refuse_ambiguous(schema, map(storage_of_sql, kinds), table.where)


def count_rows(source: Source, schema: Schema, phase: str) -> int:
    """Count the rows. Unless the number is known, one column is read, or all columns if they will be cached."""
    known = source.size_hint()
    if known is not None:
        return known
    kept = isinstance(source, ParsedFile) and source.is_small
    return rows_of(source, schema if kept else schema.select(schema.names[:1]), phase)(RowCount())
