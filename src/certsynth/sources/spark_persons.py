"""Rows of persons that stay in Spark: each executor chooses among the rows of its own persons, and only sums come back.

Rows are shuffled by the id of their person, so that all rows of a person meet in one partition. The number of
partitions is stated, since Spark may otherwise divide one of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from certsynth.base.progress import Progress, silent
from certsynth.domain.persons import Persons
from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.queries.contributions import Contributions
from certsynth.queries.tally import RowCount, Rows, Sums, T, Tally
from certsynth.sources.chosen_rows import Gathered, hash_rows
from certsynth.sources.frames import raw_columns
from certsynth.sources.packed import PackedColumn, packed_columns
from certsynth.sources.person_ids import NOBODY, UNREADABLE, PersonTable
from certsynth.sources.reading import mask_errors, objects, positions
from certsynth.sources.spark import (
    ENTRIES,
    OTHER_VERSION,
    WORKER_FAILS,
    SparkTable,
    add_up,
    installed_version,
    list_entries,
    mask_spark_errors,
)

DEFAULT_PARTITIONS = 200
"""Spark's own number of partitions of a shuffle, where its setting cannot be read."""

EMITTED_ROWS = 100_000
"""Most rows of an Arrow batch that an executor hands on."""

PERSON, ALONE, NO_ID = 0, 1, 2
"""What the id of a row is: a person's, missing where such rows are persons of their own, or no id at all."""

FAULT = -1
"""The weight of the row, and the number of the vector, that say that there is a value that is no id."""

_STORED = {1: ("smallint", np.int16), 2: ("int", np.int32), 4: ("bigint", np.int64), 8: ("bigint", np.int64)}
"""Signed types that hold packed columns, by their bytes: Spark has no unsigned ones."""

_TOTALS = ("over", "within", "kept", "dropped")

Batches = Iterable[Any]
"""Arrow batches: pyarrow is not imported here."""


@dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class SparkKeptRows:
    """Kept rows in Spark. They are chosen when first needed, and executors keep them until this object is gone."""

    table: SparkTable
    schema: Schema
    persons: Persons
    memory: int
    progress: Progress = silent
    no_id: str = ""
    """The message if a value is no id."""
    _frame: Any = field(default=None, init=False)

    def __repr__(self) -> str:
        return "SparkKeptRows(<private>)"

    def rows_of(self, schema: Schema, phase: str) -> Rows:
        def ask(tally: Tally[Any, T]) -> T:
            self.progress(phase, 0, None)
            sums = tally.begin()
            for vector, places, values in self._add_up(tally, schema):
                sums.put(vector, places, values)
            return tally.result(sums)

        return ask

    def cleaned(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """Fetch the kept rows."""
        columns, places = packed_columns(schema), [self.schema.names.index(name) for name in schema.names]
        held: list[list[np.ndarray]] = []
        with mask_spark_errors(self.table.where):
            found = self._kept().toArrow()
            for batch in found.to_batches():
                weights, *codes = (column.to_numpy() for column in batch.columns)
                if len(weights) and weights.min() < 0:
                    raise InputError(self.no_id)
                held.append(_unpack(columns, [codes[j] for j in places]))
        yield from (batch for batch in held if len(batch[0]))

    def count(self) -> int:
        return sum(int(values.sum()) for _, _, values in self._add_up(RowCount(), self.schema))

    def contributions(self) -> Contributions:
        with mask_spark_errors(self.table.where):
            totals = self._grouped(()).mapInArrow(_in_executors(_count_persons, self.persons), ENTRIES)
            found = add_up(totals)
        sums = np.zeros(len(_TOTALS), np.int64)
        for vector, places, values in found:
            if vector == FAULT:
                raise InputError(self.no_id)
            sums[places] = values
        return Contributions(*sums.tolist())

    def _add_up(self, tally: Tally[Any, Any], schema: Schema) -> list[tuple[int, Any, Any]]:
        names = [f"x{self.schema.names.index(name)}" for name in schema.names]
        with mask_spark_errors(self.table.where):
            chosen = self._kept().select("weight", *names)
            found = add_up(chosen.mapInArrow(_in_executors(_count_kept, tally, packed_columns(schema)), ENTRIES))
        if any(vector == FAULT for vector, _, _ in found):
            raise InputError(self.no_id)
        return found

    def _kept(self) -> Any:
        if self._frame is None:
            columns = packed_columns(self.schema)
            kinds = ", ".join(f"x{j} {_STORED[each.kind.itemsize][0]}" for j, each in enumerate(columns))
            choose = _in_executors(_choose_rows, self.persons, columns, self.memory)
            self._frame = self._grouped(columns).mapInArrow(choose, f"weight bigint, {kinds}").persist()
            weakref.finalize(self, _forget, self._frame)
        return self._frame

    def _grouped(self, columns: tuple[PackedColumn, ...]) -> Any:
        """Ids and packed columns of all rows, those of each person in one partition."""
        names = self.schema.names[: len(columns)]
        wanted = positions([self.persons.column, *names], self.table.names, self.table.where)
        rows = self.table.chosen(wanted, ids=True)
        kinds = "".join(f", x{j} {_STORED[each.kind.itemsize][0]}" for j, each in enumerate(columns))
        pack = _in_executors(_pack_rows, self.persons.missing == "drop", columns)
        packed = rows.mapInArrow(pack, f"person string, state tinyint{kinds}")
        return packed.repartition(_partitions(self.table.frame), "person")


def _forget(frame: Any) -> None:
    with suppress(Exception):  # the session may be stopped
        frame.unpersist()


def _partitions(frame: Any) -> int:
    with suppress(Exception):
        return max(1, int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return DEFAULT_PARTITIONS


def _in_executors(work: Callable[..., Iterator[Any]], *arguments: Any) -> Callable[[Batches], Iterator[Any]]:
    """A function of the Arrow batches of a partition, sent to the executors. No message quotes a cell: Spark would log
    it."""
    ours = installed_version()

    def run(batches: Batches) -> Iterator[Any]:
        if installed_version() not in (ours, None):
            raise InputError(OTHER_VERSION)
        with mask_errors(WORKER_FAILS):
            yield from work(batches, *arguments)

    return run


def _pack_rows(batches: Batches, drop: bool, columns: tuple[PackedColumn, ...]) -> Iterator[Any]:
    for batch in batches:
        if not batch.num_rows:
            continue
        raw, *values = raw_columns(nw.from_arrow(batch, backend="pyarrow"))
        table = PersonTable()
        ids = table.number(raw)
        packed = [each.pack(each.column.clean(v)) for each, v in zip(columns, values, strict=True)]
        state = np.full(len(ids), PERSON, np.int8)
        missing = ids == NOBODY
        state[missing], state[ids == UNREADABLE] = ALONE, NO_ID
        texts = np.array(table.texts(), object)[ids]
        texts[missing] = hash_rows(table.hashes[ids[missing]], [codes[missing] for codes in packed])  # to any partition
        stay = ~missing if drop else slice(None)
        stored = [codes.astype(_STORED[codes.itemsize][1]) for codes in packed]
        named = {f"x{j}": codes[stay] for j, codes in enumerate(stored)}
        yield type(batch).from_pydict({"person": [str(text) for text in texts[stay]], "state": state[stay], **named})


def _grouped_rows(
    batches: Batches, columns: tuple[PackedColumn, ...]
) -> Iterator[tuple[Callable[[Any], Any], list[str], np.ndarray, list[np.ndarray]]]:
    for batch in batches:
        if batch.num_rows:
            ids = batch.columns[0].to_pylist()
            state, *stored = (column.to_numpy() for column in batch.columns[1:])
            packed = [codes.astype(each.kind) for each, codes in zip(columns, stored, strict=True)]
            yield type(batch).from_pydict, ids, state, packed


def _choose_rows(batches: Batches, persons: Persons, columns: tuple[PackedColumn, ...], memory: int) -> Iterator[Any]:
    """Yield the kept rows of a partition with their weights."""
    gathered, table = Gathered(persons.rows, memory=memory, refuse=_refuse), PersonTable()
    make: Callable[[Any], Any] = dict

    def emit(weights: np.ndarray, packed: list[np.ndarray]) -> Iterator[Any]:
        stored = [codes.astype(_STORED[codes.itemsize][1]) for codes in packed]
        for start in range(0, len(weights), EMITTED_ROWS):
            here = slice(start, start + EMITTED_ROWS)
            yield make({"weight": weights[here], **{f"x{j}": codes[here] for j, codes in enumerate(stored)}})

    for make, ids, state, packed in _grouped_rows(batches, columns):  # noqa: B007 (`emit` calls it)
        if (state == NO_ID).any():
            yield from emit(np.array([FAULT]), [codes[:1] for codes in packed])
            return
        alone = state == ALONE
        if alone.any():
            rows = [codes[alone] for codes in packed]
            yield from emit(np.full(len(rows[0]), persons.parts), rows)
        numbers = table.number(objects(ids)[~alone])
        gathered.add(numbers, table.hashes[numbers], [codes[~alone] for codes in packed])
    for chosen in gathered.choose():
        weights = np.ones_like(chosen.of_person) if persons.weigh == "rows" else persons.parts // chosen.of_person
        yield from emit(weights, chosen.columns)


def _refuse() -> None:
    raise MemoryError


def _count_persons(batches: Batches, persons: Persons) -> Iterator[Any]:
    """Yield the contributions of the persons of a partition, as entries of one vector."""
    gathered, table = Gathered(persons.rows, memory=2**62, refuse=_refuse), PersonTable()
    make: Callable[[Any], Any] | None = None
    alone = 0
    for make, ids, state, _ in _grouped_rows(batches, ()):
        if (state == NO_ID).any():
            yield make({"vector": np.array([FAULT]), "place": np.array([0]), "value": np.array([1])})
            return
        alone += int((state == ALONE).sum())
        numbers = table.number(objects(ids)[state == PERSON])
        gathered.add(numbers, np.zeros(len(numbers), np.uint64), [])
    if make is not None:
        rows = np.concatenate([gathered.rows_of_persons(), np.ones(alone, np.int64)])
        found = Contributions.of(rows, persons.rows)
        values = np.array([getattr(found, name) for name in _TOTALS])
        yield make({"vector": np.zeros_like(values), "place": np.arange(len(values)), "value": values})


def _count_kept(batches: Batches, tally: Tally[Any, Any], columns: tuple[PackedColumn, ...]) -> Iterator[Any]:
    """Yield the entries of a tally over the kept rows of a partition, times their weights."""
    by_weight: dict[int, Sums] = {}
    make: Callable[[Any], Any] = dict
    for batch in batches:
        if not batch.num_rows:
            continue
        make = type(batch).from_pydict
        weights, *stored = (column.to_numpy() for column in batch.columns)
        for weight in np.unique(weights).tolist():
            if weight == FAULT:
                yield make({"vector": np.array([FAULT]), "place": np.array([0]), "value": np.array([1])})
                return
            if weight not in by_weight:
                by_weight[weight] = tally.begin()
            here = weights == weight
            tally.add(by_weight[weight], _unpack(columns, [codes[here] for codes in stored]))
    for weight, sums in by_weight.items():
        yield from list_entries(sums, make, weight)


def _unpack(columns: tuple[PackedColumn, ...], stored: list[np.ndarray]) -> list[np.ndarray]:
    return [each.unpack(codes.astype(each.kind)) for each, codes in zip(columns, stored, strict=True)]
