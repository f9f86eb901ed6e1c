"""Rows read through DuckDB: Parquet files, and relations of the caller."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import duckdb
import numpy as np

from certsynth.base.paths import escape_glob
from certsynth.base.threads import in_threads, prefetch
from certsynth.domain import Column, Ordered, Schema
from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.sources.lookup import Found
from certsynth.sources.person_ids import IdReader
from certsynth.sources.reading import (
    CHUNK_ROWS,
    MAX_TEXT_ROWS,
    gather_columns,
    mask_errors,
    objects,
    positions,
    refuse_duplicate_names,
)
from certsynth.sources.rowwise import UNNAMED_PREFIX, refuse_other_queries, refuse_other_sources
from certsynth.sources.stream import stream_batches

MAX_PARQUET_ROWS = 10**12
"""Most rows that a file's metadata may claim: metadata may hold any number."""

MIN_PREFETCH_ROWS = 2**20
"""From this many rows on, one thread reads ahead while others count."""

_MIN_BATCH_ROWS = 2**16
"""Batches with fewer rows than this are joined."""

_OPTIONS = "hive_partitioning = false"  # partition folders such as year=2020 are read by `sources.lookup`
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",  # private rows must not spill to disk
    "arrow_large_buffer_size": "true",  # the texts of a batch may exceed 2 GB
}
_DAMAGED = (
    "DuckDB cannot read it: it is damaged, or holds text that is not UTF-8, or memory ran out. Write the file again, "
    "or free memory."
)
_FAILS = "its query fails, or its connection is closed. Run it by itself to see why."
_IN_A_TABLE = "Write its rows to a table or to a Parquet file, and give that."
_QUERY_FAILS = "the query fails while it runs, or needs more memory than there is. Run it in DuckDB itself to see why."


@dataclass(frozen=True, slots=True)
class Part:
    """Files read by one query: they have the same columns and the same partition values."""

    where: str
    files: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    above: tuple[tuple[str, str | None], ...]
    rows: int

    def column(self, name: str) -> tuple[str, str] | None:
        """SQL for a column and its DuckDB type; None if it is a partition column.

        Columns are addressed by position, c0, c1, …: DuckDB's names ignore case.
        """
        return (f"c{self.names.index(name)}", self.types[self.names.index(name)]) if name in self.names else None

    def query(self, con: duckdb.DuckDBPyConnection, chosen: Sequence[str]) -> duckdb.DuckDBPyRelation:
        wanted = ", ".join(f"{each} AS x{j}" for j, each in enumerate(chosen))
        places = ", ".join(f"c{i}" for i in range(len(self.names)))
        sql = f"SELECT {wanted} FROM read_parquet(?, {_OPTIONS}) AS t({places})"
        return con.sql(sql, params=[list(self.files)])


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One or more Parquet files, read as one stream of rows in constant memory."""

    where: str
    names: tuple[str, ...]
    parts: tuple[Part, ...]

    @classmethod
    def open(cls, found: Sequence[Found], where: str) -> ParquetFiles:
        """Open files that form one table. Only their metadata are read here."""
        alone = len(found) == 1
        places = [where if alone else f"{where}: {each.path}" for each in found]
        for each, place in zip(found, places, strict=True):
            if not _is_parquet(each.path, place):
                raise InputError(f"{place}: not a Parquet file. Check the file and its suffix.")
        files = [escape_glob(each.path, place) for each, place in zip(found, places, strict=True)]
        metadata: list[_Metadata] = []
        with closing(connection()) as con:
            with suppress(Exception):
                metadata = _read_metadata(con, found, files)
            if not metadata:  # one by one, to name the faulty file
                for each, file, place in zip(found, files, places, strict=True):
                    with mask_errors(f"{place}: {_DAMAGED}"):
                        metadata += _read_metadata(con, [each], [file])
        parts: list[Part] = []
        for each, file, place, about in zip(found, files, places, metadata, strict=True):
            refuse_duplicate_names(about.names, place)
            above = tuple((name, value) for name, value in each.above if name not in about.names)
            part = Part(place, (file,), about.names, about.types, above, about.rows)
            if parts:
                _refuse_differences(parts[0], part)
            if parts and _share_a_query(parts[-1], part):
                last = parts.pop()
                part = dataclasses.replace(part, where=where, files=last.files + part.files, rows=last.rows + part.rows)
            parts.append(part)
        names = (*parts[0].names, *(name for name, _ in parts[0].above))
        refuse_duplicate_names(names, where)
        if sum(part.rows for part in parts) >= MIN_PREFETCH_ROWS:
            _keep_freed_memory()
        return cls(where, names, tuple(parts))

    def size_hint(self) -> int:
        return sum(part.rows for part in self.parts)

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        positions(names, self.names, self.where)
        return self._raw(tuple(names), rows)

    def _raw(self, names: Sequence[str], rows: int) -> Iterator[list[np.ndarray]]:
        for part in self.parts:
            columns = [part.column(name) for name in names]
            chosen = [readable(*column) if column else "NULL::VARCHAR" for column in columns]
            above = dict(part.above)

            def take(
                raw: Sequence[np.ndarray], above: dict[str, str | None] = above, columns: list[Any] = columns
            ) -> list[np.ndarray]:
                named = zip(names, columns, raw, strict=True)
                return [values.copy() if column else _repeat(above[name], values) for name, column, values in named]

            yield from even_batches(self._read(part, chosen, (), take), rows)

    def cleaned(
        self, schema: Schema, *, rows: int = 500_000, ids: tuple[str, IdReader] | None = None
    ) -> Iterator[list[np.ndarray]]:
        """Yield batches of cleaned columns: equal to `Column.clean` of `batches`, but faster. With `ids`, a column
        and its reader, the numbers of persons come first.

        DuckDB turns listed texts into codes: a million texts would otherwise become a million Python objects.
        """
        positions([*schema.names, *([ids[0]] if ids else [])], self.names, self.where)
        batches = self._clean(tuple(schema), ids)
        return even_batches(prefetch(batches) if self.size_hint() >= MIN_PREFETCH_ROWS else batches, rows)

    def _clean(self, columns: Sequence[Column], ids: tuple[str, IdReader] | None) -> Generator[list[np.ndarray]]:
        for part in self.parts:
            above = dict(part.above)
            conversions: list[_Converting] = [] if ids is None else [_id_conversion(*ids, part.column(ids[0]), above)]
            conversions += [_conversion(column, part.column(column.name), j, above) for j, column in enumerate(columns)]
            yield from self._read(part, [each.sql for each in conversions], conversions, _converter(conversions))

    def _read(
        self,
        part: Part,
        chosen: Sequence[str],
        conversions: Sequence[_Converting],
        take: Callable[[Sequence[np.ndarray]], list[np.ndarray]],
    ) -> Iterator[list[np.ndarray]]:
        seen = 0
        with mask_errors(f"{part.where}: {_DAMAGED}"), closing(connection()) as con:
            _create_enums(con, conversions)
            with closing(stream_batches(part.query(con, chosen), take)) as stream:
                for batch in stream:
                    seen += len(batch[0])
                    yield batch
            if seen != part.rows:  # differs from the number in the files' metadata
                raise ValueError


class _Converting(Protocol):
    """How a column is read: the SQL that DuckDB evaluates, with an ENUM of texts if there are any, and the rest."""

    @property
    def sql(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def texts(self) -> tuple[str, ...]: ...

    def clean(self, raw: Any) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class _IdConversion:
    """How ids become numbers; `same` is the id of all rows, if it is in the name of a folder."""

    sql: str
    read: IdReader
    same: tuple[str | None, ...] = ()
    kind: str = ""
    texts: tuple[str, ...] = ()

    def clean(self, raw: Any) -> np.ndarray:
        return self.read(objects(self.same)).repeat(len(raw)) if self.same else self.read(raw)


def _id_conversion(
    name: str, read: IdReader, source: tuple[str, str] | None, above: Mapping[str, str | None]
) -> _IdConversion:
    """How to read ids, given SQL for them and their type, or None if they are in the names of folders."""
    return _IdConversion("1", read, (above[name],)) if source is None else _IdConversion(id_sql(*source), read)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """How a column is cleaned: the SQL that DuckDB evaluates, and how its result is converted."""

    column: Column
    sql: str
    kind: str = ""
    texts: tuple[str, ...] = ()
    known: np.ndarray | None = None
    same: tuple[str | None, ...] = ()

    def clean(self, raw: np.ndarray) -> np.ndarray:
        if self.same:
            return self.column.clean(_repeat(self.same[0], raw[:1])).repeat(len(raw))
        if self.known is None:
            return self.column.clean(raw)
        # `raw` holds codes of listed texts, then of null and of any other text; `known` has their cleaned values.
        return self.known[np.ma.getdata(raw)]


def _conversion(column: Column, source: tuple[str, str] | None, j: int, above: Mapping[str, str | None]) -> _Conversion:
    """How to clean `column`, given SQL for it and its type, or None if it is a partition column of `above`."""
    if source is None:
        return _Conversion(column, "NULL::VARCHAR", same=(above[column.name],))
    place, kind = source
    if kind == "DATE" and isinstance(column, Ordered) and column.clock is not None:
        return _Conversion(column, f"CASE WHEN isfinite({place}) THEN {place} END")
    texts = tuple(filter(_decodable, column.distinguished_texts or ()))
    if kind == "VARCHAR" and texts:
        other = "other"
        while other in texts:
            other += "?"
        known = column.clean(objects([*texts, None, other]))
        name, many = f"texts{j}", len(texts)
        unlisted = f"CASE WHEN {place} IS NULL THEN {many} ELSE {many + 1} END"
        sql = f"coalesce(enum_code(TRY_CAST({place} AS {name})), {unlisted})::UINTEGER"
        return _Conversion(column, sql, name, texts, known)
    return _Conversion(column, readable(place, kind))


def _converter(conversions: Sequence[_Converting]) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    def take(raw: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = list(zip(conversions, raw, strict=True))
        return in_threads(lambda pair: pair[0].clean(pair[1]), pairs, rows=len(raw[-1]), spare=1)

    return take


def _create_enums(con: duckdb.DuckDBPyConnection, conversions: Sequence[_Converting]) -> None:
    """Create the ENUM types that encode listed texts."""
    for each in conversions:
        if each.texts:
            con.execute(f"CREATE OR REPLACE TYPE {each.kind} AS ENUM (SELECT unnest(?))", [list(each.texts)])


def _keep_freed_memory() -> None:
    """Let the next batch reuse the memory of the last, where the allocator adapts to that.

    glibc returns freed memory to the system once it exceeds twice the largest block freed so far, and every page
    requested again faults: a tenth or more of the reading time. Freeing one large, untouched block raises that limit
    to 32 MB. On other systems this has no effect.
    """
    np.empty(2**24, np.uint8)


def _repeat(value: str | None, like: np.ndarray) -> np.ndarray:
    return objects([value] * len(like))


def _decodable(text: str) -> bool:
    """Whether a text is valid Unicode, so that a file can hold it."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def even_batches(batches: Iterable[list[np.ndarray]], rows: int) -> Iterator[list[np.ndarray]]:
    """Regroup rows into batches of at most `rows`; only the last may be shorter than _MIN_BATCH_ROWS.

    >>> parts = [[np.arange(a, b)] for a, b in [(0, 1), (1, 3), (3, 10)]]
    >>> [batch.tolist() for (batch,) in even_batches(parts, 4)]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """
    held: list[list[np.ndarray]] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch[0])
        if size < min(rows, _MIN_BATCH_ROWS):
            continue
        whole, cut = _join(held), size - size % rows if size > rows else size
        for start in range(0, cut, rows):
            yield [values[start : min(start + rows, cut)] for values in whole]
        held, size = [[values[cut:] for values in whole]] if cut < size else [], size - cut
    if size:
        yield _join(held)


def _join(batches: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    if len(batches) == 1:
        return batches[0]
    columns = zip(*batches, strict=True)
    return [np.ma.concatenate(c) if any(map(np.ma.isMaskedArray, c)) else np.concatenate(c) for c in columns]


@dataclass(frozen=True, slots=True)
class _Metadata:
    """The metadata of a Parquet file."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int


def _read_metadata(con: duckdb.DuckDBPyConnection, found: Sequence[Found], files: Sequence[str]) -> list[_Metadata]:
    """Read the metadata of all files in one query. Files with identical schemas are described once."""
    trees: dict[str, list[Any]] = {}
    for name, *node in con.execute(
        f"SELECT file_name, {_SCHEMA_FIELDS} FROM parquet_schema(?)", [list(files)]
    ).fetchall():
        trees.setdefault(name, []).append(tuple(node))
    counts = dict(con.execute("SELECT file_name, num_rows FROM parquet_file_metadata(?)", [list(files)]).fetchall())
    metadata, described = [], dict[Any, tuple[str, ...]]()
    for each, file in zip(found, files, strict=True):
        path = each.path.absolute().as_posix()
        tree, rows = tuple(trees[path]), counts[path]
        if tree not in described:
            about = con.execute(f"DESCRIBE SELECT * FROM read_parquet(?, {_OPTIONS})", [file]).fetchall()
            described[tree] = tuple(str(column[1]) for column in about)
        # DuckDB renames columns that differ in case alone, so the names come from the file's own schema.
        names = _roots([(name, children) for name, children, *_ in tree])
        if len(names) != len(described[tree]) or not 0 <= rows <= MAX_PARQUET_ROWS:
            raise ValueError
        metadata.append(_Metadata(names, described[tree], int(rows)))
    return metadata


_SCHEMA_FIELDS = "name, num_children, type, type_length, converted_type, scale, precision, logical_type"


def _share_a_query(first: Part, second: Part) -> bool:
    """Whether one query can read both parts. Across files DuckDB matches columns by name, ignoring case."""
    alike = first.names == second.names and first.types == second.types and first.above == second.above
    return alike and len({name.casefold() for name in first.names}) == len(first.names)


def _refuse_differences(first: Part, part: Part) -> None:
    """Refuse files that differ in their columns or in the class of values of a column."""
    ours, theirs = ({**dict(zip(p.names, p.types, strict=True)), **dict(p.above)} for p in (first, part))
    for name in ours:
        if name not in theirs:
            raise InputError(f"{part.where}: no column {name!r}, which other files have. Write all files alike.")
    for name in theirs:
        if name not in ours:
            raise InputError(f"{part.where}: a column {name!r}, which other files do not have. Write all files alike.")
    for name in part.names:
        if name in first.names:
            one, other = (_value_class(p.types[p.names.index(name)]) for p in (first, part))
            if one != other and _NULL_TYPE not in (one, other):
                raise InputError(f"{part.where}: column {name!r} holds {other}, in other files {one}. Write all alike.")


def _value_class(kind: str) -> str:
    """The class of values of a DuckDB type: files of one table may mix types of the same class.

    >>> [_value_class(kind) for kind in ("TINYINT", "DECIMAL(9,2)", "VARCHAR", "TIMESTAMP WITH TIME ZONE", "INTEGER[]")]
    ['numbers', 'numbers', 'texts', 'times', 'lists or records']
    """
    if is_unreadable(kind):
        return "lists or records"
    if kind.startswith(("DATE", "TIMESTAMP")):
        return "times"
    if kind == "BOOLEAN":
        return "truths"
    if kind == _NULL_TYPE:  # the file was written with nulls only
        return kind
    return "numbers" if kind.endswith("INT") or kind.startswith(_NUMERIC) else "texts"


_NULL_TYPE = '"NULL"'
_NUMERIC = ("INTEGER", "UINTEGER", "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, slots=True)
class Relation:
    """A DuckDB relation. Each pass runs its query anew, and the order of rows may differ between passes.

    DuckDB holds the chosen columns while they are read, so its connection stays free for other queries.
    """

    relation: duckdb.DuckDBPyRelation
    where: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    from_frame: bool = field(default=False, kw_only=True)

    @classmethod
    def open(cls, relation: duckdb.DuckDBPyRelation, where: str, persons: Persons | None = None) -> Relation:
        """Open a relation whose query is row-wise over a table with declared types. Only its plan is computed.

        If a column names `persons`, the query may group by it.
        """
        with mask_errors(f"{where}: {_FAILS}"):
            names, types = tuple(relation.columns), tuple(str(kind) for kind in relation.types)
        refuse_duplicate_names(names, where)
        return cls(relation, where, names, types, from_frame=_refuse_unless_rowwise(relation, where, persons))

    fails = _FAILS

    def size_hint(self) -> int | None:
        return None  # counting would run the query

    def places(self, names: Sequence[str]) -> list[int]:
        return positions(names, self.names, self.where)

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        wanted = self.places(names)
        return gather_columns(self._chunks(wanted), range(len(wanted)), min(rows, MAX_TEXT_ROWS))

    def _chunks(self, wanted: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
        # Columns are addressed by position, #1, #2, …: DuckDB's names ignore case.
        chosen = [f"{readable(f'#{i + 1}', self.types[i])} AS x{j}" for j, i in enumerate(wanted)]
        with mask_errors(f"{self.where}: {self.fails}"):
            rows = self.relation.project(", ".join(chosen)).iter_rows(CHUNK_ROWS)
            while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
                yield chunk


def _refuse_unless_rowwise(relation: duckdb.DuckDBPyRelation, where: str, persons: Persons | None) -> bool:
    """Refuse a relation whose query is not row-wise; return whether it reads a frame with Arrow types."""

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with mask_errors(f"{where}: {_FAILS}"):
            found = relation.query("certsynth_relation", sql)
            return [] if found is None else found.fetchall()

    with mask_errors(f"{where}: its query cannot be shown. {_IN_A_TABLE}"):
        text = relation.sql_query()
    with closing(connection()) as con:
        seen = refuse_other_queries(text, parser(con), ask, where, persons)
    ((_, plan),) = ask("EXPLAIN (FORMAT JSON) SELECT * FROM certsynth_relation")
    from_frame = refuse_other_sources(plan, where, logical=False, grouped=seen.grouped)
    held = any(name.startswith(UNNAMED_PREFIX) for *_, name in seen.tables)
    if held and not from_frame and relation.type != "VALUE_LIST_RELATION":
        raise InputError(f"{where}: it holds rows whose query cannot be seen. {_IN_A_TABLE}")
    return from_frame


def parser(con: duckdb.DuckDBPyConnection) -> Callable[[str], list[tuple[Any, ...]]]:
    """Return a function from SQL to its syntax tree as JSON. It runs nothing and looks up no table."""
    return lambda text: con.execute("SELECT json_serialize_sql(?)", [text]).fetchall()


@dataclass(frozen=True, slots=True)
class Query(Relation):
    """A relation on a private connection, so its rows can be streamed like those of files."""

    con: duckdb.DuckDBPyConnection

    fails = _QUERY_FAILS

    def places(self, names: Sequence[str]) -> list[int]:
        if not set(names) & set(self.names):  # the names may be the first row of a CSV: do not quote them
            remedy = "Check what the query selects; a CSV file needs a header."
            raise InputError(f"{self.where}: no column {names[0]!r}, nor any other of the schema. {remedy}")
        return positions(names, self.names, self.where)

    def cleaned(
        self, schema: Schema, *, rows: int = 500_000, ids: tuple[str, IdReader] | None = None
    ) -> Iterator[list[np.ndarray]]:
        """Yield batches of cleaned columns: equal to `Column.clean` of `batches`, but faster. With `ids`, a column
        and its reader, the numbers of persons come first.
        """
        conversions: list[_Converting] = []
        if ids is not None:
            (i,) = self.places([ids[0]])
            conversions.append(_id_conversion(*ids, (f"#{i + 1}", self.types[i]), {}))
        for j, (column, i) in enumerate(zip(schema, self.places(schema.names), strict=True)):
            conversions.append(_conversion(column, (f"#{i + 1}", self.types[i]), j, {}))
        return even_batches(self._clean(conversions), rows)

    def _clean(self, conversions: Sequence[_Converting]) -> Iterator[list[np.ndarray]]:
        chosen = ", ".join(f"{each.sql} AS x{j}" for j, each in enumerate(conversions))
        with mask_errors(f"{self.where}: {self.fails}"):
            _create_enums(self.con, conversions)
            with closing(stream_batches(self.relation.project(chosen), _converter(conversions))) as stream:
                yield from stream


_NATIVE = {"BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR"} | {
    sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
}
_FIRST, _LAST = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_UNREADABLE = ("STRUCT", "MAP", "UNION", "BLOB", "VARIANT", "GEOMETRY")


def is_unreadable(kind: str) -> bool:
    """Whether no schema can describe values of a DuckDB type."""
    return kind.endswith("]") or kind.upper().startswith(_UNREADABLE)


def id_sql(place: str, kind: str) -> str:
    """SQL for a column of ids: as numbers, as times, or as the bytes of their texts.

    A time that `readable` has no value for is still somebody's, and not missing.
    """
    kind = kind.upper()
    if kind.startswith("TIMESTAMP"):
        return f"coalesce({readable(place, kind)}, CASE WHEN {place} IS NOT NULL THEN {_FIRST} END)"
    return place if kind in _NATIVE - {"BOOLEAN", "VARCHAR"} else f"encode({place}::VARCHAR)"


def readable(place: str, kind: str) -> str:
    """SQL for a column of DuckDB type `kind` whose values can all be fetched without pandas and pytz.

    Times are clamped to the years that Python supports, which contain every date of a schema; instants are read in UTC.
    Types that no schema can describe become null and are not read.

    >>> readable("c0", "INTEGER"), readable("c0", "HUGEINT"), readable("c0", "INTEGER[]")
    ('c0', 'c0::VARCHAR', 'NULL::VARCHAR')
    """
    kind = kind.upper()
    if is_unreadable(kind):
        return "NULL::VARCHAR"
    if kind == "DATE":
        years = f"WHEN {place} > DATE '9999-12-31' THEN {_LAST} WHEN {place} < DATE '0001-01-01' THEN {_FIRST}"
        return f"CASE WHEN NOT isfinite({place}) THEN NULL {years} ELSE {place}::TIMESTAMP END"
    if kind in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        # Truncate to microseconds: DuckDB's cast rounds, which would move the last nanosecond of a day to the next day.
        # All values lie in Python's years, and there are no infinite ones.
        return f"make_timestamp(epoch_ns({place}) // 1000 - (epoch_ns({place}) % 1000 < 0)::BIGINT)"
    if kind.startswith("TIMESTAMP"):
        clamped = f"least(greatest(epoch_us({place}), -62135596800000000), 253402300799999999)"
        return f"CASE WHEN isfinite({place}) THEN make_timestamp({clamped}) END"
    if kind == "TIME":  # with all six digits or none, as Python prints it
        text = f"{place}::VARCHAR"
        return f"CASE WHEN length({text}) > 8 THEN rpad({text}, 15, '0') ELSE {text} END"
    if kind.startswith("DECIMAL") and not kind.endswith(",0)"):
        return f"{place}::DOUBLE"
    return place if kind in _NATIVE else f"{place}::VARCHAR"


def connection() -> duckdb.DuckDBPyConnection:
    """Connect to a new in-memory database that fetches no extensions and writes nothing to disk."""
    con = duckdb.connect(config=_SETTINGS)
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
    """Names of the top-level columns, from a preorder listing of the file's schema.

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
