"""Tables whose engine counts: codes are said in its own language, and grouped and summed where the rows are.

For engines that cannot run Python beside their rows. What cannot be said exactly is answered by reading rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeGuard

import duckdb
import narwhals as nw
import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals, Subset
from certsynth.queries.tally import RowCount, T, Tally
from certsynth.sources.codes import cell_codes, largest, lattice_codes, moved_units
from certsynth.sources.duck import Relation, readable
from certsynth.sources.frames import Frame
from certsynth.sources.reading import own_words, positions
from certsynth.sources.spark import SparkTable, is_spark

Lazy = Relation | SparkTable | Frame

_DATABASES = ("bigquery", "clickhouse", "databricks", "duckdb", "postgres", "pyspark", "snowflake", "trino")
"""Databases behind Ibis that compare texts byte by byte, unless told otherwise. To MySQL, 'a' and 'A ' are the same."""


def can_be_asked(source: Any) -> TypeGuard[Lazy]:
    """Whether it has an engine that is known to compare as Python does."""
    if not isinstance(source, Frame):
        return isinstance(source, (Relation, SparkTable))
    engine = source.frame.implementation.value
    return source.lazy and (engine in ("dask", "duckdb", "polars", "pyspark") or rows_would_travel(source))


def rows_would_travel(frame: Frame) -> bool:
    """Whether the rows of a lazy frame are elsewhere. For those that are here, reading them is quicker."""
    if not frame.lazy or frame.frame.implementation.value != "ibis":
        return False
    with suppress(Exception):
        return frame.frame.to_native().get_backend().name in _DATABASES
    return False


def _rounds_alike(frame: nw.LazyFrame[Any]) -> bool:
    """Whether floats are added, multiplied and divided as in Python: the tests compare them bit by bit.

    Polars multiplies with the inverse. Spark rounds to integers, and refuses numbers that are too large for one.
    """
    return frame.implementation.value == "duckdb"


@dataclass(frozen=True, slots=True)
class PushedDown:
    """A table with an engine of its own, which is asked for grouped counts: a query for each marginal."""

    source: Lazy

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    def size_hint(self) -> int | None:
        return self.source.size_hint()

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        return self.source.batches(names, rows=rows)

    def answers(self, tally: Tally[Any, Any], schema: Schema) -> bool:
        """Whether all of this can be said exactly in the engine's language."""
        return self._asking(tally, schema) is not None

    def tallied(self, tally: Tally[Any, T], schema: Schema) -> T:
        asking = self._asking(tally, schema)
        assert asking is not None
        sums = tally.begin()
        for vector, places, values in asking:
            sums.put(vector, places, values)
        return tally.result(sums)

    def _asking(self, tally: Tally[Any, Any], schema: Schema) -> Iterator[tuple[int, Ints, Ints]] | None:
        """The entries of a tally, each part by a query when it is asked for."""
        frame = self._frame(schema)
        if isinstance(tally, RowCount):
            return iter([(0, np.zeros(1, np.int64), np.array([self._rows(frame)]))])
        if isinstance(tally, CellCounts):
            coded = self._coded(frame, schema, tally.marginals, cell_codes)
            return None if coded is None else self._counted(frame, tally.marginals, coded)
        if isinstance(tally, LatticeQuery) and not tally.wide:
            coded = self._coded(frame, schema, tally.marginals, lattice_codes)
            moved = self._moved(frame, schema, tally)
            return None if coded is None or moved is None else self._placed(frame, tally, coded, moved)
        return None

    def _frame(self, schema: Schema) -> nw.LazyFrame[Any]:
        """The schema's columns as x0, x1, …, of types that can be read."""
        source = self.source
        wanted = positions(schema.names, source.names, source.where)
        with own_words(f"{source.where}: its query fails. Run it by itself to see why."):
            if isinstance(source, Relation):
                chosen = (f"{readable(f'#{i + 1}', source.types[i])} AS x{j}" for j, i in enumerate(wanted))
                return nw.from_native(source.relation.project(", ".join(chosen)))
            if isinstance(source, SparkTable):
                return nw.from_native(source.chosen(wanted))
            assert isinstance(source.frame, nw.LazyFrame)
            return source.frame.select(*(nw.col(source.names[i]).alias(f"x{j}") for j, i in enumerate(wanted)))

    def _kinds(self, frame: nw.LazyFrame[Any]) -> list[nw.dtypes.DType]:
        with own_words(f"{self.source.where}: its query fails. Run it by itself to see why."):
            return list(frame.collect_schema().dtypes())

    def _coded(
        self, frame: nw.LazyFrame[Any], schema: Schema, marginals: Marginals, code: Any
    ) -> dict[int, nw.Expr] | None:
        """Codes of the columns that are counted, by their place in the schema."""
        columns, kinds = tuple(schema), self._kinds(frame)
        used = sorted({j for subset in marginals.subsets for j in subset})
        exact = _rounds_alike(frame)
        found = {j: code(f"x{j}", kinds[j], columns[j], marginals.cells[j], arithmetic=exact) for j in used}
        return None if any(expression is None for expression in found.values()) else found

    def _moved(self, frame: nw.LazyFrame[Any], schema: Schema, fine: LatticeQuery) -> dict[int, nw.Expr | int] | None:
        columns, kinds, farthest = tuple(schema), self._kinds(frame), fine.farthest()
        used = sorted({j for subset in fine.marginals.subsets for j in subset})
        cells, exact = fine.marginals.cells, _rounds_alike(frame)
        found = {j: moved_units(f"x{j}", kinds[j], columns[j], cells[j], farthest, arithmetic=exact) for j in used}
        if any(expression is None for expression in found.values()):
            return None
        return {j: expression for j, expression in found.items() if expression is not None}

    def _counted(
        self, frame: nw.LazyFrame[Any], marginals: Marginals, coded: dict[int, nw.Expr]
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """One vector for each subset, and the number of rows."""
        rows: set[int] = set()
        for vector, subset in enumerate(marginals.subsets):
            places, counts = self._grouped(frame, marginals, subset, coded)
            rows.add(int(counts.sum()))
            yield vector, places, counts
        if not rows:
            rows.add(self._rows(frame))
        if len(rows) > 1:
            raise InputError(f"{self.source.where}: it changes while it is read. Give a copy that stays as it is.")
        yield len(marginals.subsets), np.zeros(1, np.int64), np.array([rows.pop()])

    def _placed(
        self,
        frame: nw.LazyFrame[Any],
        fine: LatticeQuery,
        coded: dict[int, nw.Expr],
        moved: dict[int, nw.Expr | int],
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """The same, and before the number of rows how far rows were moved for each subset."""
        *blocks, (last, zero, rows) = self._counted(frame, fine.marginals, coded)
        yield from blocks
        units = {c: unit.alias(f"u{c}") for c, unit in moved.items() if isinstance(unit, nw.Expr)}
        sums = {}
        for j, subset in enumerate(fine.marginals.subsets):
            if (off := [nw.col(f"u{c}") for c in subset if c in units]) and rows[0]:
                sums[j] = largest(off).sum().alias(f"m{j}")
        if sums:
            (told,) = self._fetched(frame.select(*units.values()).select(*sums.values()))
            yield last, np.array(list(sums)), np.array([int(value) for value in told])
        yield last + 1, zero, rows

    def _grouped(
        self, frame: nw.LazyFrame[Any], marginals: Marginals, subset: Subset, coded: dict[int, nw.Expr]
    ) -> tuple[Ints, Ints]:
        place = coded[subset[0]]
        for j in subset[1:]:
            place = place * marginals.cells[j].size + coded[j]
        groups = frame.select(place.alias("place")).group_by("place").agg(nw.len().alias("rows"))
        found = np.array(self._fetched(groups), dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _rows(self, frame: nw.LazyFrame[Any]) -> int:
        ((rows,),) = self._fetched(frame.select(nw.len()))
        return int(rows)

    def _fetched(self, frame: nw.LazyFrame[Any]) -> list[tuple[Any, ...]]:
        with own_words(f"{self.source.where}: its query fails. Run it by itself to see why."):
            native = frame.to_native()
            if isinstance(native, duckdb.DuckDBPyRelation):
                return native.fetchall()  # narwhals would need pyarrow for it
            if is_spark(native):
                return [tuple(row) for row in native.collect()]
            return frame.collect().rows()
