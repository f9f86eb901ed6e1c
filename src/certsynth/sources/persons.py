"""Bound contributions: at most some rows of each person are kept, in one pass, and all sums are over these.

`chosen_rows` says which, from the person's own rows alone. The kept rows stay in memory, in the smallest exact types.
docs/explanation/proofs/persons.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.base.memory import allowed_memory
from certsynth.base.progress import Progress, silent
from certsynth.base.threads import in_threads
from certsynth.domain.persons import Persons
from certsynth.domain.schema import Schema
from certsynth.errors import InputError, TooLarge, did_you_mean
from certsynth.queries.contributions import Contributions
from certsynth.queries.tally import Rows, T, Tally
from certsynth.sources import Source, refuse_ambiguous_types, rows_of
from certsynth.sources.chosen_rows import CANDIDATES_PER_ROW, COUNT_BYTES, HASH_BYTES, Gathered
from certsynth.sources.duck import ParquetFiles, Query, Relation, even_batches, is_unreadable
from certsynth.sources.frames import Frame
from certsynth.sources.json_lines import JsonLines
from certsynth.sources.packed import PackedColumn, packed_columns
from certsynth.sources.person_ids import NOBODY, UNREADABLE, PersonTable
from certsynth.sources.pushdown import PushedDown
from certsynth.sources.spark import SparkTable
from certsynth.sources.spark import is_unreadable as is_unreadable_in_spark
from certsynth.sources.spark_persons import SparkKeptRows

BATCH_ROWS = 500_000

PERSONS_PHASE = "choosing rows of each person"


class KeptRows(Protocol):
    """The rows that are kept of a table, with their weights. They are chosen in one pass, when first needed."""

    def rows_of(self, schema: Schema, phase: str) -> Rows:
        """Return a function that evaluates tallies over the kept rows; `schema` has some of the columns."""
        ...

    def cleaned(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """Yield the kept rows in batches of cleaned columns, without their weights."""
        ...

    def count(self) -> int:
        """The weight of all kept rows, in parts."""
        ...

    def contributions(self) -> Contributions:
        """Exact totals of rows that are kept and dropped, which are private."""
        ...


def keep_rows(
    source: Source, schema: Schema, persons: Persons, *, memory: int | None = None, progress: Progress = silent
) -> KeptRows:
    """The rows of a table that are kept. A column that is missing or cannot be read is refused here, before any row is
    read.
    """
    source.batches(schema.names)
    _check_person_column(source, persons.column)
    refuse_ambiguous_types(source, schema)
    if isinstance(source, SparkTable) and source.runs_python:
        return SparkKeptRows(source, schema, persons, allowed_memory(memory), progress, no_id(source, persons.column))
    return HeldRows(source, schema, persons, allowed_memory(memory), progress)


def private_rows(
    source: Source,
    schema: Schema,
    phase: str,
    *,
    hidden: bool = False,
    memory: int | None = None,
    progress: Progress = silent,
) -> Rows:
    """Evaluate tallies over the rows of a table; if the schema names persons, over those that are kept of each."""
    if schema.persons is None:
        return rows_of(source, schema, phase, hidden=hidden, progress=progress)
    return keep_rows(source, schema, schema.persons, memory=memory, progress=progress).rows_of(schema, phase)


@dataclass(slots=True, eq=False, repr=False)
class HeldRows:
    """Kept rows in memory."""

    source: Source
    schema: Schema
    persons: Persons
    memory: int
    progress: Progress = silent
    _by_weight: dict[int, list[list[np.ndarray]]] | None = field(default=None, init=False)
    _totals: Contributions | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return "HeldRows(<private>)"

    def rows_of(self, schema: Schema, phase: str) -> Rows:
        def ask(tally: Tally[Any, T]) -> T:
            kept = self._kept()
            self.progress(phase, 0, None)
            sums = tally.begin()
            for weight in kept:
                part = sums if weight == 1 else tally.begin()
                for batch in self._batches(weight, schema):
                    tally.add(part, batch)
                if part is not sums:
                    for vector, at, values in part.entries():
                        sums.put(vector, at, values * weight)
            return tally.result(sums)

        return ask

    def cleaned(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        for weight in self._kept():
            yield from self._batches(weight, schema)

    def count(self) -> int:
        return sum(weight * sum(len(chunk[0]) for chunk in chunks) for weight, chunks in self._kept().items())

    def contributions(self) -> Contributions:
        self._kept()
        assert self._totals is not None
        return self._totals

    def _batches(self, weight: int, schema: Schema) -> Iterator[list[np.ndarray]]:
        """The cleaned columns of the kept rows of this weight."""
        places = [self.schema.names.index(name) for name in schema.names]
        columns = [PackedColumn.of(column) for column in schema]
        packed = ([chunk[j] for j in places] for chunk in self._kept()[weight])
        for batch in even_batches(packed, BATCH_ROWS):
            yield [column.unpack(codes) for column, codes in zip(columns, batch, strict=True)]

    def _kept(self) -> dict[int, list[list[np.ndarray]]]:
        """The packed columns of the kept rows by their weight, in chunks."""
        if self._by_weight is None:
            self._by_weight = self._choose()
        return self._by_weight

    def _choose(self) -> dict[int, list[list[np.ndarray]]]:
        persons, columns = self.persons, packed_columns(self.schema)
        gathered = Gathered(persons.rows, memory=self.memory, refuse=self._refuse)
        by_weight: dict[int, list[list[np.ndarray]]] = {}
        table, alone = PersonTable(), 0
        self.progress(PERSONS_PHASE, 0, None)  # once: how many batches there are is not reported
        for ids, packed in packed_batches(self.source, self.schema, persons.column, columns, table):
            missing = ids == NOBODY
            if missing.any():
                if persons.missing == "separate":
                    alone += int(missing.sum())
                    gathered.hold(int(missing.sum()) * sum(codes.itemsize for codes in packed))
                    by_weight.setdefault(persons.parts, []).append([codes[missing] for codes in packed])
                ids, packed = ids[~missing], [codes[~missing] for codes in packed]
            gathered.add(ids, table.hashes[ids], packed)
            gathered.check_memory(table.size)
        rows = np.concatenate([gathered.rows_of_persons(), np.ones(alone, np.int64)])
        self._totals = Contributions.of(rows, persons.rows)
        for chosen in gathered.choose():
            if persons.weigh == "rows":
                by_weight.setdefault(1, []).append(chosen.columns)
                continue
            for m in np.unique(chosen.of_person).tolist():
                here = chosen.of_person == m
                by_weight.setdefault(persons.parts // m, []).append([codes[here] for codes in chosen.columns])
        return by_weight

    def _refuse(self) -> None:
        bytes_per_row = HASH_BYTES + COUNT_BYTES + sum(column.kind.itemsize for column in packed_columns(self.schema))
        candidates = CANDIDATES_PER_ROW * self.persons.rows
        raise TooLarge(
            f"choosing rows of each person needs more than the {self.memory / 2**30:.2g} GB at hand: twice "
            f"{bytes_per_row} bytes for each of up to {candidates} different rows of a person. Lower "
            "`rows_per_person`, name fewer columns, or raise `memory`."
        )


def packed_batches(
    source: Source, schema: Schema, person: str, columns: tuple[PackedColumn, ...], table: PersonTable
) -> Iterator[tuple[Ints, list[np.ndarray]]]:
    """Yield the numbers of persons and the packed columns of each batch."""
    for ids, clean in _cleaned_batches(source, schema, person, table):
        refuse_unreadable_ids(ids, source, person)
        pairs = zip(columns, clean, strict=True)
        yield ids, in_threads(lambda pair: pair[0].pack(pair[1]), pairs, rows=len(ids), spare=1)


def _cleaned_batches(
    source: Source, schema: Schema, person: str, table: PersonTable
) -> Iterator[tuple[Ints, list[np.ndarray]]]:
    if isinstance(source, (ParquetFiles, Query)):
        for ids, *clean in source.cleaned(schema, ids=(person, table.number)):
            yield ids, clean
        return
    for raw, *columns in _raw_batches(source, schema, person):
        yield table.number(raw), [column.clean(values) for column, values in zip(schema, columns, strict=True)]


def batches_with_ids(source: Source, schema: Schema, person: str) -> Iterator[list[np.ndarray]]:
    """Raw ids and columns. A column that is missing or cannot be read is refused when this is called."""
    source.batches(schema.names)
    _check_person_column(source, person)
    return _raw_batches(source, schema, person)


def _raw_batches(source: Source, schema: Schema, person: str) -> Iterator[list[np.ndarray]]:
    names = (person, *schema.names)
    if isinstance(source, JsonLines):
        return source.batches(names, scalars=(person,))
    return (source.in_utc(person) if isinstance(source, Frame) else source).batches(names)


def refuse_unreadable_ids(ids: Ints, source: Source, person: str) -> None:
    if (ids == UNREADABLE).any():
        raise InputError(no_id(source, person))


def no_id(source: Any, person: str) -> str:
    """The message if a value of the person column is no id."""
    return (
        f"{_where(source)}: column {person!r}, which [table] person names, has a value that is no id: a list, bytes, "
        "or a float beyond 2^53, in which long numbers run together. Store ids as texts or whole numbers."
    )


def _where(source: Any) -> str:
    return str(getattr(getattr(source, "source", source), "where", "data"))


def _check_person_column(source: Any, person: str) -> None:
    """Refuse a person column that the table does not have, or whose type no id has. Names are quoted: the header is
    known to be one, since it has the columns of the schema.
    """
    table = source.source if isinstance(source, PushedDown) else source
    if isinstance(table, JsonLines) or not hasattr(table, "names"):
        return  # which keys occur is known from rows alone
    if person not in table.names:
        raise InputError(
            f"{_where(source)}: no column {person!r}, which [table] person names. Correct the name in the schema or in "
            f"the data.{did_you_mean(person, table.names)}"
        )
    at = table.names.index(person)
    if isinstance(table, ParquetFiles):
        kinds = [column[1] for part in table.parts if (column := part.column(person))]
        unreadable = any(map(is_unreadable, kinds))
    elif isinstance(table, Relation):
        unreadable = is_unreadable(table.types[at])
    elif isinstance(table, SparkTable):
        unreadable = is_unreadable_in_spark(table.types[at])
    else:
        unreadable = isinstance(table, Frame) and table.is_unreadable(person)
    if unreadable:
        raise InputError(
            f"{_where(source)}: column {person!r}, which [table] person names, holds lists, records or bytes. Store "
            "ids as texts or whole numbers."
        )
