"""Tables counted by their own engine: codes become engine expressions, grouped and summed where the rows are.

For engines that cannot run Python next to their rows. A tally without an exact expression is evaluated by reading rows.
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
from certsynth.sources.reading import mask_errors, positions
from certsynth.sources.spark import SparkTable, is_spark

Lazy = Relation | SparkTable | Frame

_DATABASES = ("bigquery", "clickhouse", "databricks", "duckdb", "postgres", "pyspark", "snowflake", "trino")
"""Ibis backends that compare texts byte by byte by default. In MySQL, 'a' and 'A ' are equal."""


def has_known_engine(source: Any) -> TypeGuard[Lazy]:
    """Whether the source has an engine that is known to compare values as Python does."""
    if not isinstance(source, Frame):
        return isinstance(source, (Relation, SparkTable))
    engine = source.frame.implementation.value
    return source.lazy and (engine in ("dask", "duckdb", "polars", "pyspark") or rows_are_remote(source))


def rows_are_remote(frame: Frame) -> bool:
    """Whether the rows of a lazy frame are in a remote database. Local rows are faster to read."""
    if not frame.lazy or frame.frame.implementation.value != "ibis":
        return False
    with suppress(Exception):
        return frame.frame.to_native().get_backend().name in _DATABASES
    return False


def _rounds_alike(frame: nw.LazyFrame[Any]) -> bool:
    """Whether the engine adds, multiplies and divides floats exactly as Python does: the tests compare bit by bit.

    Polars multiplies by the reciprocal. Spark's rounding returns integers and fails on numbers too large for one.
    """
    return frame.implementation.value == "duckdb"


@dataclass(frozen=True, slots=True)
class PushedDown:
    """A table whose engine computes grouped counts: one query for each marginal."""

    source: Lazy

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    def size_hint(self) -> int | None:
        return self.source.size_hint()

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        return self.source.batches(names, rows=rows)

    def answers(self, tally: Tally[Any, Any], schema: Schema) -> bool:
        """Whether every part of the tally has an exact engine expression."""
        return self._entries(tally, schema) is not None

    def tallied(self, tally: Tally[Any, T], schema: Schema) -> T:
        entries = self._entries(tally, schema)
        assert entries is not None
        sums = tally.begin()
        for vector, places, values in entries:
            sums.put(vector, places, values)
        return tally.result(sums)

    def _entries(self, tally: Tally[Any, Any], schema: Schema) -> Iterator[tuple[int, Ints, Ints]] | None:
        """The entries of a tally, each part queried when it is consumed; None if it has no exact expression."""
        frame = self._frame(schema)
        if isinstance(tally, RowCount):
            return iter([(0, np.zeros(1, np.int64), np.array([self._count_rows(frame)]))])
        if isinstance(tally, CellCounts):
            coded = self._code_expressions(frame, schema, tally.marginals, cell_codes)
            return None if coded is None else self._count_marginals(frame, tally.marginals, coded)
        if isinstance(tally, LatticeQuery) and not tally.wide:
            coded = self._code_expressions(frame, schema, tally.marginals, lattice_codes)
            moved = self._move_expressions(frame, schema, tally)
            return None if coded is None or moved is None else self._count_lattice(frame, tally, coded, moved)
        return None

    def _frame(self, schema: Schema) -> nw.LazyFrame[Any]:
        """The schema's columns as x0, x1, …, in readable types."""
        source = self.source
        wanted = positions(schema.names, source.names, source.where)
        with mask_errors(f"{source.where}: its query fails. Run it by itself to see why."):
            if isinstance(source, Relation):
                chosen = (f"{readable(f'#{i + 1}', source.types[i])} AS x{j}" for j, i in enumerate(wanted))
                return nw.from_native(source.relation.project(", ".join(chosen)))
            if isinstance(source, SparkTable):
                return nw.from_native(source.chosen(wanted))
            assert isinstance(source.frame, nw.LazyFrame)
            return source.frame.select(*(nw.col(source.names[i]).alias(f"x{j}") for j, i in enumerate(wanted)))

    def _kinds(self, frame: nw.LazyFrame[Any]) -> list[nw.dtypes.DType]:
        with mask_errors(f"{self.source.where}: its query fails. Run it by itself to see why."):
            return list(frame.collect_schema().dtypes())

    def _code_expressions(
        self, frame: nw.LazyFrame[Any], schema: Schema, marginals: Marginals, code: Any
    ) -> dict[int, nw.Expr] | None:
        """Code expressions of the counted columns, by their index in the schema."""
        columns, kinds = tuple(schema), self._kinds(frame)
        used = sorted({j for subset in marginals.subsets for j in subset})
        exact = _rounds_alike(frame)
        found = {j: code(f"x{j}", kinds[j], columns[j], marginals.cells[j], arithmetic=exact) for j in used}
        return None if any(expression is None for expression in found.values()) else found

    def _move_expressions(
        self, frame: nw.LazyFrame[Any], schema: Schema, fine: LatticeQuery
    ) -> dict[int, nw.Expr | int] | None:
        columns, kinds, farthest = tuple(schema), self._kinds(frame), fine.farthest()
        used = sorted({j for subset in fine.marginals.subsets for j in subset})
        cells, exact = fine.marginals.cells, _rounds_alike(frame)
        found = {j: moved_units(f"x{j}", kinds[j], columns[j], cells[j], farthest, arithmetic=exact) for j in used}
        if any(expression is None for expression in found.values()):
            return None
        return {j: expression for j, expression in found.items() if expression is not None}

    def _count_marginals(
        self, frame: nw.LazyFrame[Any], marginals: Marginals, coded: dict[int, nw.Expr]
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield one vector for each subset, then the number of rows."""
        rows: set[int] = set()
        for vector, subset in enumerate(marginals.subsets):
            places, counts = self._count_groups(frame, marginals, subset, coded)
            rows.add(int(counts.sum()))
            yield vector, places, counts
        if not rows:
            rows.add(self._count_rows(frame))
        if len(rows) > 1:
            raise InputError(f"{self.source.where}: it changes while it is read. Give a fixed copy.")
        yield len(marginals.subsets), np.zeros(1, np.int64), np.array([rows.pop()])

    def _count_lattice(
        self,
        frame: nw.LazyFrame[Any],
        fine: LatticeQuery,
        coded: dict[int, nw.Expr],
        moved: dict[int, nw.Expr | int],
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """As `_count_marginals`, with the summed distances to the lattice of each subset before the number of rows."""
        *blocks, (last, zero, rows) = self._count_marginals(frame, fine.marginals, coded)
        yield from blocks
        units = {c: unit.alias(f"u{c}") for c, unit in moved.items() if isinstance(unit, nw.Expr)}
        sums = {}
        for j, subset in enumerate(fine.marginals.subsets):
            if (off := [nw.col(f"u{c}") for c in subset if c in units]) and rows[0]:
                sums[j] = largest(off).sum().alias(f"m{j}")
        if sums:
            (fetched,) = self._fetch(frame.select(*units.values()).select(*sums.values()))
            yield last, np.array(list(sums)), np.array([int(value) for value in fetched])
        yield last + 1, zero, rows

    def _count_groups(
        self, frame: nw.LazyFrame[Any], marginals: Marginals, subset: Subset, coded: dict[int, nw.Expr]
    ) -> tuple[Ints, Ints]:
        place = coded[subset[0]]
        for j in subset[1:]:
            place = place * marginals.cells[j].size + coded[j]
        groups = frame.select(place.alias("place")).group_by("place").agg(nw.len().alias("rows"))
        found = np.array(self._fetch(groups), dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _count_rows(self, frame: nw.LazyFrame[Any]) -> int:
        ((rows,),) = self._fetch(frame.select(nw.len()))
        return int(rows)

    def _fetch(self, frame: nw.LazyFrame[Any]) -> list[tuple[Any, ...]]:
        with mask_errors(f"{self.source.where}: its query fails. Run it by itself to see why."):
            native = frame.to_native()
            if isinstance(native, duckdb.DuckDBPyRelation):
                return native.fetchall()  # narwhals would need pyarrow for it
            if is_spark(native):
                return [tuple(row) for row in native.collect()]
            return frame.collect().rows()
