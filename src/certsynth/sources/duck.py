"""Rows by way of DuckDB: Parquet files, and relations that a user has at hand."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from certsynth.errors import InputError
from certsynth.paths import literally
from certsynth.sources.reading import BITE, TEXT_ROWS, gathered, own_words, positions, refuse_twins

MOST_ROWS = 10**12  # what a file says of itself may be anything

_NUMBER = "file_row_number"
_OPTIONS = "hive_partitioning = false"  # or a folder called year=2020 would make a column
_DAMAGED = (
    "DuckDB cannot read it: it is damaged, or holds text that is not UTF-8, or memory ran out. Write the file again, "
    "or free memory."
)
_FAILS = "its query fails, or its connection is closed. Run it by itself to see why."


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A Parquet file, read by ranges of row numbers: memory stays flat, and nothing but DuckDB is needed."""

    path: Path
    where: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int

    @classmethod
    def open(cls, path: Path, where: str) -> ParquetFile:
        if not _is_parquet(path, where):
            raise InputError(f"{where}: not a Parquet file. Check the file and its suffix.")
        file = [literally(path, where)]
        with own_words(f"{where}: {_DAMAGED}"), closing(_connection()) as con:
            tree = con.execute("SELECT name, num_children FROM parquet_schema(?)", file).fetchall()
            about = con.execute(f"DESCRIBE SELECT * FROM read_parquet(?, {_OPTIONS})", file).fetchall()
            count = con.execute("SELECT num_rows FROM parquet_file_metadata(?)", file).fetchall()
            # DuckDB renames columns that differ in case alone, so the names come from the file's own schema.
            names, types = _roots(tree), tuple(str(column[1]) for column in about)
            if len(names) != len(types) or not 0 <= count[0][0] <= MOST_ROWS:
                raise ValueError
        refuse_twins(names, where)
        return cls(path, where, names, types, int(count[0][0]))

    def size_hint(self) -> int | None:
        return self.rows

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        return self._read(positions(names, self.names, self.where), rows)

    def _read(self, wanted: Sequence[int], rows: int) -> Iterator[list[np.ndarray]]:
        with closing(_connection()) as con:
            if _NUMBER in map(str.lower, self.names):
                # The name of the row numbers is taken. Rows come as Python objects, which is slower.
                yield from gathered(self._bites(con, wanted), range(len(wanted)), min(rows, TEXT_ROWS))
                return
            sql = f"{self._select(wanted, numbered=True)} WHERE number >= ? AND number < ?"
            file = literally(self.path, self.where)
            for start in range(0, self.rows, rows):
                with own_words(f"{self.where}: {_DAMAGED}"):
                    batch = con.execute(sql, [file, start, start + rows]).fetchnumpy()
                    columns: list[Any] = [batch[f"x{j}"] for j in range(len(wanted))]
                    if len(columns[0]) != min(rows, self.rows - start):  # fewer than the file says that it has
                        raise ValueError
                yield columns

    def _bites(self, con: duckdb.DuckDBPyConnection, wanted: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
        with own_words(f"{self.where}: {_DAMAGED}"):
            con.execute(self._select(wanted), [literally(self.path, self.where)])
            while bite := con.fetchmany(BITE):
                yield bite

    def _select(self, wanted: Sequence[int], *, numbered: bool = False) -> str:
        # Columns go by their place, c0, c1, …: DuckDB's names ignore case.
        places = [f"c{i}" for i in range(len(self.names))]
        chosen = [f"{readable(places[i], self.types[i])} AS x{j}" for j, i in enumerate(wanted)]
        options = f"{_OPTIONS}, {_NUMBER} = true" if numbered else _OPTIONS
        columns = [*places, "number"] if numbered else places
        return f"SELECT {', '.join(chosen)} FROM read_parquet(?, {options}) AS t({', '.join(columns)})"


@dataclass(frozen=True, slots=True)
class Relation:
    """A DuckDB relation. Each reading is one run of its query: two runs need not give the same order of rows.

    The engine holds the chosen columns while they are read, and its connection stays free for others.
    """

    relation: duckdb.DuckDBPyRelation
    where: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def open(cls, relation: duckdb.DuckDBPyRelation, what: str) -> Relation:
        where = f"{what} (a DuckDB relation)"
        with own_words(f"{where}: {_FAILS}"):
            names, types = tuple(relation.columns), tuple(str(kind) for kind in relation.types)
        refuse_twins(names, where)
        return cls(relation, where, names, types)

    def size_hint(self) -> int | None:
        return None  # counting would run the query

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        wanted = positions(names, self.names, self.where)
        return gathered(self._bites(wanted), range(len(wanted)), min(rows, TEXT_ROWS))

    def _bites(self, wanted: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
        # Columns go by their place, #1, #2, …: DuckDB's names ignore case.
        chosen = [f"{readable(f'#{i + 1}', self.types[i])} AS x{j}" for j, i in enumerate(wanted)]
        with own_words(f"{self.where}: {_FAILS}"):
            rows = self.relation.project(", ".join(chosen)).iter_rows(BITE)
            while bite := list(itertools.islice(rows, BITE)):
                yield bite


_NATIVE = {"BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR"} | {
    sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
}
_UNREADABLE = ("STRUCT", "MAP", "UNION", "BLOB", "VARIANT", "GEOMETRY")


def readable(place: str, kind: str) -> str:
    """SQL for a column of DuckDB type `kind` whose values can all be fetched, without pandas and pytz.

    Times are clamped to the years that Python has (a schema's dates lie there); an instant is read in UTC.
    What no schema can describe is absent, and not even read.

    >>> readable("c0", "INTEGER"), readable("c0", "HUGEINT"), readable("c0", "INTEGER[]")
    ('c0', 'c0::VARCHAR', 'NULL::VARCHAR')
    """
    kind = kind.upper()
    if kind.endswith("]") or kind.startswith(_UNREADABLE):
        return "NULL::VARCHAR"
    if kind.startswith(("DATE", "TIMESTAMP")):
        clamped = f"least(greatest(epoch_us({place}), -62135596800000000), 253402300799999999)"
        return f"CASE WHEN isfinite({place}) THEN make_timestamp({clamped}) END"
    if kind.startswith("DECIMAL") and not kind.endswith(",0)"):
        return f"{place}::DOUBLE"
    return place if kind in _NATIVE else f"{place}::VARCHAR"


def _connection() -> duckdb.DuckDBPyConnection:
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    con = duckdb.connect(config={**settings, "temp_directory": ""})  # private rows do not spill to the disk
    con.execute("SET enable_progress_bar = false")
    return con


def _is_parquet(path: Path, where: str) -> bool:
    try:
        with path.open("rb") as file:
            first = file.read(4)
            file.seek(-len(first), os.SEEK_END)
            return first == file.read(4) == b"PAR1"
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror}). Check the file.") from None


def _roots(tree: Sequence[tuple[str, int | None]]) -> tuple[str, ...]:
    """Names of the columns themselves, from a walk of the file's schema that lists parents before children.

    >>> _roots([("schema", 2), ("a", 1), ("list", 1), ("element", None), ("b", None)])
    ('a', 'b')
    """
    roots: list[str] = []
    inside = 0
    for name, children in tree[1:]:
        if inside == 0:
            roots.append(name)
            inside = 1
        inside += (children or 0) - 1
    return tuple(roots)
