"""The only readers of private rows: files, data frames and DuckDB relations, as batches of raw columns.

No message from here quotes a cell. Names of columns are not private; everything below them is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import duckdb
import numpy as np

from certsynth.base.progress import Progress, silent, with_progress
from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.queries.tally import RowCount, Rows, T, Tally, tally_batches
from certsynth.sources.duck import ParquetFiles, Query, Relation
from certsynth.sources.files import CsvFile, open_file
from certsynth.sources.frames import Frame
from certsynth.sources.pushdown import PushedDown, can_be_asked, rows_would_travel
from certsynth.sources.spark import SparkTable, is_spark
from certsynth.sources.sql import Unopened
from certsynth.sources.storage import refuse_ambiguous, storage_of_sql

__all__ = ["NamedSource", "Source", "Unopened", "cleaned", "how_many", "open_source", "pushed_down", "rows_of"]


class Source(Protocol):
    """A table whose rows can be read, more than once, in batches."""

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Raw columns in the order of `names`, at most `rows` long; nulls masked, or None among objects.

        A missing column is refused at the call, before any row is read.
        """
        ...

    def size_hint(self) -> int | None:
        """The number of rows if known without reading them: for progress bars, never for a release."""
        ...


@runtime_checkable
class Answering(Protocol):
    """A source that can be asked where its rows are: they need not come here."""

    def answers(self, tally: Tally[Any, Any], schema: Schema) -> bool:
        """Whether this can be asked there."""
        ...

    def tallied(self, tally: Tally[Any, T], schema: Schema) -> T:
        """What all rows together say."""
        ...


class NamedSource(Source, Protocol):
    """A source that knows what columns it has."""

    @property
    def names(self) -> tuple[str, ...]: ...


def open_source(data: Any, *, what: str = "data") -> NamedSource:
    """Whatever a user calls a table. `what` is the word for it in messages.

    >>> table = open_source(duckdb.sql("SELECT 'NA' AS country, 7 AS age"))
    >>> table.names, [column.tolist() for column in next(table.batches(["age", "country"]))]
    (('country', 'age'), [[7], ['NA']])
    """
    if callable(getattr(type(data), "batches", None)):  # asked of the type: a frame may have a column of that name
        return data
    if isinstance(data, (str, os.PathLike)):
        return open_file(Path(os.fsdecode(data)), what)
    if isinstance(data, duckdb.DuckDBPyRelation):
        return Relation.open(data, f"{what} (a DuckDB relation)")
    if isinstance(data, Unopened):
        return data.opened(what)
    if is_spark(data):
        table = SparkTable.open(data, what)
        return table if table.runs_python else PushedDown(table)
    frame = Frame.open(data, what)
    return PushedDown(frame) if rows_would_travel(frame) else frame


def pushed_down(data: Any, *, what: str = "data") -> NamedSource:
    """A DuckDB relation, a Spark DataFrame or a lazy frame, to be counted in the engine's own language.

    >>> pushed_down(duckdb.sql("SELECT 'NA' AS country, 7 AS age")).names
    ('country', 'age')
    """
    source = open_source(data, what=what)
    if isinstance(source, PushedDown):
        return source
    if can_be_asked(source):
        return PushedDown(source)
    raise InputError(f"{what}: only a DuckDB relation, a Spark DataFrame or a lazy frame has an engine to count in.")


def cleaned(source: Source, schema: Schema, *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
    """Batches of cleaned columns, in the order of the schema; what the schema does not name is not read."""
    if isinstance(source, (CsvFile, ParquetFiles, Query)):
        return source.cleaned(schema, rows=rows)
    batches = source.batches(schema.names, rows=rows)
    return ([column.clean(raw) for column, raw in zip(schema, batch, strict=True)] for batch in batches)


def rows_of(source: Source, schema: Schema, phase: str, *, hidden: bool = False, progress: Progress = silent) -> Rows:
    """The table as something that can be asked. `phase` says what for; of its rows nothing is told if `hidden`.

    Types of a frame that cannot tell labels apart are refused at the call, before anything is asked or spent.
    """
    _refuse_ambiguous(source, schema)

    def ask(tally: Tally[Any, T]) -> T:
        if isinstance(source, Answering) and source.answers(tally, schema):
            progress(phase, 0, None)  # how far the engine is, only it knows
            return source.tallied(tally, schema)
        total = None if hidden else source.size_hint()
        return tally_batches(
            with_progress(cleaned(source, schema), phase, total, hidden=hidden, progress=progress), tally
        )

    return ask


def _refuse_ambiguous(source: Any, schema: Schema) -> None:
    """The types of a frame may have been guessed from its rows, also where DuckDB reads the frame."""
    table = source.source if isinstance(source, PushedDown) else source
    if isinstance(table, Frame):
        refuse_ambiguous(schema, table.storages(schema.names), table.where)
    elif isinstance(table, Relation) and table.from_frame:
        kinds = [table.types[i] for i in table.places(schema.names)]
        refuse_ambiguous(schema, map(storage_of_sql, kinds), table.where)


def how_many(source: Source, schema: Schema, phase: str) -> int:
    """The number of rows. It takes a reading where it is not known: of one column, unless all of them will be kept."""
    known = source.size_hint()
    if known is not None:
        return known
    kept = isinstance(source, CsvFile) and source.is_small
    return rows_of(source, schema if kept else schema.select(schema.names[:1]), phase)(RowCount())
