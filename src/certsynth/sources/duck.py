"""Rows by way of DuckDB: Parquet files, and relations that a user has at hand."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from certsynth.base.paths import escape_glob
from certsynth.base.threads import in_threads, prefetch
from certsynth.domain import Column, Ordered, Schema
from certsynth.errors import InputError
from certsynth.sources.lookup import Found
from certsynth.sources.reading import BITE, TEXT_ROWS, gathered, objects, own_words, positions, refuse_twins
from certsynth.sources.rowwise import MADE, refuse_other_queries, refuse_other_sources
from certsynth.sources.stream import streamed

MOST_ROWS = 10**12  # what a file says of itself may be anything
MANY_ROWS = 2**20
"""Rows from which on a thread reads ahead, while others count."""

_OPTIONS = "hive_partitioning = false"  # folders called year=2020 are read here, and only where they are asked for
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",  # private rows do not spill to the disk
    "arrow_large_buffer_size": "true",  # texts of a batch may have more than 2 GB
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
    """Files that are read by one query: they have the same columns, and folders of the same names above them."""

    where: str
    files: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    above: tuple[tuple[str, str | None], ...]
    rows: int

    def column(self, name: str) -> tuple[str, str] | None:
        """SQL for a column and its type in DuckDB; None if it is the name of a folder.

        Columns go by their place, c0, c1, …: DuckDB's names ignore case.
        """
        return (f"c{self.names.index(name)}", self.types[self.names.index(name)]) if name in self.names else None

    def query(self, con: duckdb.DuckDBPyConnection, chosen: Sequence[str]) -> duckdb.DuckDBPyRelation:
        wanted = ", ".join(f"{each} AS x{j}" for j, each in enumerate(chosen))
        places = ", ".join(f"c{i}" for i in range(len(self.names)))
        sql = f"SELECT {wanted} FROM read_parquet(?, {_OPTIONS}) AS t({places})"
        return con.sql(sql, params=[list(self.files)])


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One Parquet file or many, read as one stream of rows: memory stays flat, and nothing but DuckDB is needed."""

    where: str
    names: tuple[str, ...]
    parts: tuple[Part, ...]

    @classmethod
    def open(cls, found: Sequence[Found], where: str) -> ParquetFiles:
        """Files that belong together. Of each only what it says of itself is read here."""
        alone = len(found) == 1
        places = [where if alone else f"{where}: {each.path}" for each in found]
        for each, place in zip(found, places, strict=True):
            if not _is_parquet(each.path, place):
                raise InputError(f"{place}: not a Parquet file. Check the file and its suffix.")
        files = [escape_glob(each.path, place) for each, place in zip(found, places, strict=True)]
        abouts: list[_About] = []
        with closing(connection()) as con:
            with suppress(Exception):
                abouts = _abouts(con, found, files)
            if not abouts:  # one by one, to tell which it is
                for each, file, place in zip(found, files, places, strict=True):
                    with own_words(f"{place}: {_DAMAGED}"):
                        abouts += _abouts(con, [each], [file])
        parts: list[Part] = []
        for each, file, place, about in zip(found, files, places, abouts, strict=True):
            refuse_twins(about.names, place)
            above = tuple((name, value) for name, value in each.above if name not in about.names)
            part = Part(place, (file,), about.names, about.types, above, about.rows)
            if parts:
                _refuse_differences(parts[0], part)
            if parts and _together(parts[-1], part):
                last = parts.pop()
                part = dataclasses.replace(part, where=where, files=last.files + part.files, rows=last.rows + part.rows)
            parts.append(part)
        names = (*parts[0].names, *(name for name, _ in parts[0].above))
        refuse_twins(names, where)
        if sum(part.rows for part in parts) >= MANY_ROWS:
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
                return [values.copy() if column else _same(above[name], values) for name, column, values in named]

            yield from evened(self._read(part, chosen, (), take), rows)

    def cleaned(self, schema: Schema, *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Batches of cleaned columns: what `Column.clean` makes of `batches`, sooner.

        Texts of a column that lists them are turned into numbers by DuckDB: a million texts would be a million objects.
        """
        positions(schema.names, self.names, self.where)
        batches = self._clean(tuple(schema))
        return evened(prefetch(batches) if self.size_hint() >= MANY_ROWS else batches, rows)

    def _clean(self, columns: Sequence[Column]) -> Generator[list[np.ndarray]]:
        for part in self.parts:
            above = dict(part.above)
            ways = [_way(column, part.column(column.name), j, above) for j, column in enumerate(columns)]
            yield from self._read(part, [way.sql for way in ways], ways, _cleaning(ways))

    def _read(
        self,
        part: Part,
        chosen: Sequence[str],
        ways: Sequence[_Way],
        take: Callable[[Sequence[np.ndarray]], list[np.ndarray]],
    ) -> Iterator[list[np.ndarray]]:
        seen = 0
        with own_words(f"{part.where}: {_DAMAGED}"), closing(connection()) as con:
            _list_texts(con, ways)
            with closing(streamed(part.query(con, chosen), take)) as stream:
                for batch in stream:
                    seen += len(batch[0])
                    yield batch
            if seen != part.rows:  # not as many as the files say that they have
                raise ValueError


@dataclass(frozen=True, slots=True)
class _Way:
    """How a column becomes a cleaned one: what DuckDB is asked, and what is done with its answer."""

    column: Column
    sql: str
    kind: str = ""
    texts: tuple[str, ...] = ()
    known: np.ndarray | None = None
    same: tuple[str | None, ...] = ()

    def clean(self, raw: np.ndarray) -> np.ndarray:
        if self.same:
            return self.column.clean(_same(self.same[0], raw[:1])).repeat(len(raw))
        if self.known is None:
            return self.column.clean(raw)
        # Cleaned is what stands for a text: a listed one, none at all, or any other.
        return self.known[np.ma.getdata(raw)]


def _way(column: Column, stands: tuple[str, str] | None, j: int, above: Mapping[str, str | None]) -> _Way:
    """`stands`: SQL for the column and its type. If there is none, it is the name of a folder `above`."""
    if stands is None:
        return _Way(column, "NULL::VARCHAR", same=(above[column.name],))
    place, kind = stands
    if kind == "DATE" and isinstance(column, Ordered) and column.kind == "date":
        return _Way(column, f"CASE WHEN isfinite({place}) THEN {place} END")
    texts = tuple(filter(_decodable, column.distinguished_texts or ()))
    if kind == "VARCHAR" and texts:
        other = "other"
        while other in texts:
            other += "?"
        known = column.clean(objects([*texts, None, other]))
        name, many = f"texts{j}", len(texts)
        unlisted = f"CASE WHEN {place} IS NULL THEN {many} ELSE {many + 1} END"
        sql = f"coalesce(enum_code(TRY_CAST({place} AS {name})), {unlisted})::UINTEGER"
        return _Way(column, sql, name, texts, known)
    return _Way(column, readable(place, kind))


def _cleaning(ways: Sequence[_Way]) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    def take(raw: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = list(zip(ways, raw, strict=True))
        return in_threads(lambda pair: pair[0].clean(pair[1]), pairs, rows=len(raw[0]), spare=1)

    return take


def _list_texts(con: duckdb.DuckDBPyConnection, ways: Sequence[_Way]) -> None:
    """Make the types that tell listed texts apart."""
    for way in ways:
        if way.texts:
            con.execute(f"CREATE OR REPLACE TYPE {way.kind} AS ENUM (SELECT unnest(?))", [list(way.texts)])


def _keep_freed_memory() -> None:
    """Let the memory of a batch be taken up by the next one, where the system's allocator can learn that.

    The C library of Linux hands freed memory back when there is twice as much as the largest block that was freed
    before, and each page of it that is asked for again is a fault: a tenth, or more, of what reading takes. A block
    that is freed unused, and never filled, moves that limit to 32 MB. Elsewhere this does nothing.
    """
    np.empty(2**24, np.uint8)


def _same(value: str | None, like: np.ndarray) -> np.ndarray:
    return objects([value] * len(like))


def _decodable(text: str) -> bool:
    """Whether a file can hold it at all."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def evened(batches: Iterable[list[np.ndarray]], rows: int) -> Iterator[list[np.ndarray]]:
    """The same rows in batches of at most `rows`, of which none is tiny but the last, where types allow it.

    >>> parts = [[np.arange(a, b)] for a, b in [(0, 1), (1, 3), (3, 10)]]
    >>> [batch.tolist() for (batch,) in evened(parts, 4)]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """
    held: list[list[np.ndarray]] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch[0])
        if size < min(rows, _TINY):
            continue
        whole, cut = _joined(held), size - size % rows if size > rows else size
        for start in range(0, cut, rows):
            yield [values[start : min(start + rows, cut)] for values in whole]
        held, size = [[values[cut:] for values in whole]] if cut < size else [], size - cut
    if size:
        yield _joined(held)


_TINY = 2**16


def _joined(batches: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    if len(batches) == 1:
        return batches[0]
    columns = zip(*batches, strict=True)
    return [np.ma.concatenate(c) if any(map(np.ma.isMaskedArray, c)) else np.concatenate(c) for c in columns]


@dataclass(frozen=True, slots=True)
class _About:
    """What a file says of itself."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int


def _abouts(con: duckdb.DuckDBPyConnection, found: Sequence[Found], files: Sequence[str]) -> list[_About]:
    """For each file, asked of all at once. Those whose schemas are alike in every word are described once."""
    trees: dict[str, list[Any]] = {}
    for name, *node in con.execute(f"SELECT file_name, {_TOLD} FROM parquet_schema(?)", [list(files)]).fetchall():
        trees.setdefault(name, []).append(tuple(node))
    counts = dict(con.execute("SELECT file_name, num_rows FROM parquet_file_metadata(?)", [list(files)]).fetchall())
    abouts, described = [], dict[Any, tuple[str, ...]]()
    for each, file in zip(found, files, strict=True):
        path = each.path.absolute().as_posix()
        tree, rows = tuple(trees[path]), counts[path]
        if tree not in described:
            about = con.execute(f"DESCRIBE SELECT * FROM read_parquet(?, {_OPTIONS})", [file]).fetchall()
            described[tree] = tuple(str(column[1]) for column in about)
        # DuckDB renames columns that differ in case alone, so the names come from the file's own schema.
        names = _roots([(name, children) for name, children, *_ in tree])
        if len(names) != len(described[tree]) or not 0 <= rows <= MOST_ROWS:
            raise ValueError
        abouts.append(_About(names, described[tree], int(rows)))
    return abouts


_TOLD = "name, num_children, type, type_length, converted_type, scale, precision, logical_type"


def _together(first: Part, second: Part) -> bool:
    """Whether one query can read both. DuckDB finds columns by their names there, whatever their case."""
    alike = first.names == second.names and first.types == second.types and first.above == second.above
    return alike and len({name.casefold() for name in first.names}) == len(first.names)


def _refuse_differences(first: Part, part: Part) -> None:
    """Columns must be the same in all files, and hold the same sort of values."""
    ours, theirs = ({**dict(zip(p.names, p.types, strict=True)), **dict(p.above)} for p in (first, part))
    for name in ours:
        if name not in theirs:
            raise InputError(f"{part.where}: no column {name!r}, which other files have. Write all files alike.")
    for name in theirs:
        if name not in ours:
            raise InputError(f"{part.where}: a column {name!r}, which other files have not. Write all files alike.")
    for name in part.names:
        if name in first.names:
            one, other = (_sort(p.types[p.names.index(name)]) for p in (first, part))
            if one != other and _NOTHING not in (one, other):
                raise InputError(f"{part.where}: column {name!r} holds {other}, in other files {one}. Write all alike.")


def _sort(kind: str) -> str:
    """Types that may stand for each other in several files, in a word.

    >>> [_sort(kind) for kind in ("TINYINT", "DECIMAL(9,2)", "VARCHAR", "TIMESTAMP WITH TIME ZONE", "INTEGER[]")]
    ['numbers', 'numbers', 'texts', 'times', 'lists or records']
    """
    if kind.endswith("]") or kind.startswith(_UNREADABLE):
        return "lists or records"
    if kind.startswith(("DATE", "TIMESTAMP")):
        return "times"
    if kind == "BOOLEAN":
        return "truths"
    if kind == _NOTHING:  # all values were absent when it was written
        return kind
    return "numbers" if kind.endswith("INT") or kind.startswith(_NUMERIC) else "texts"


_NOTHING = '"NULL"'
_NUMERIC = ("INTEGER", "UINTEGER", "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, slots=True)
class Relation:
    """A DuckDB relation. Each reading is one run of its query: two runs need not give the same order of rows.

    The engine holds the chosen columns while they are read, and its connection stays free for others.
    """

    relation: duckdb.DuckDBPyRelation
    where: str
    names: tuple[str, ...]
    types: tuple[str, ...]

    from_frame: bool = field(default=False, kw_only=True)

    @classmethod
    def open(cls, relation: duckdb.DuckDBPyRelation, where: str) -> Relation:
        """A relation whose query is row-wise, over a table with declared types. Nothing is run for it but its plan."""
        with own_words(f"{where}: {_FAILS}"):
            names, types = tuple(relation.columns), tuple(str(kind) for kind in relation.types)
        refuse_twins(names, where)
        return cls(relation, where, names, types, from_frame=_refuse_unless_rowwise(relation, where))

    fails = _FAILS

    def size_hint(self) -> int | None:
        return None  # counting would run the query

    def places(self, names: Sequence[str]) -> list[int]:
        return positions(names, self.names, self.where)

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        wanted = self.places(names)
        return gathered(self._bites(wanted), range(len(wanted)), min(rows, TEXT_ROWS))

    def _bites(self, wanted: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
        # Columns go by their place, #1, #2, …: DuckDB's names ignore case.
        chosen = [f"{readable(f'#{i + 1}', self.types[i])} AS x{j}" for j, i in enumerate(wanted)]
        with own_words(f"{self.where}: {self.fails}"):
            rows = self.relation.project(", ".join(chosen)).iter_rows(BITE)
            while bite := list(itertools.islice(rows, BITE)):
                yield bite


def _refuse_unless_rowwise(relation: duckdb.DuckDBPyRelation, where: str) -> bool:
    """Analyse the query of a relation; whether it reads a frame whose types are Arrow's."""

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with own_words(f"{where}: {_FAILS}"):
            found = relation.query("certsynth_relation", sql)
            return [] if found is None else found.fetchall()

    with own_words(f"{where}: its query cannot be shown. {_IN_A_TABLE}"):
        text = relation.sql_query()
    with closing(connection()) as con:
        seen = refuse_other_queries(text, parser(con), ask, where)
    ((_, plan),) = ask("EXPLAIN (FORMAT JSON) SELECT * FROM certsynth_relation")
    from_frame = refuse_other_sources(plan, where, logical=False)
    held = any(name.startswith(MADE) for *_, name in seen.tables)
    if held and not from_frame and relation.type != "VALUE_LIST_RELATION":
        raise InputError(f"{where}: it holds rows whose query cannot be seen. {_IN_A_TABLE}")
    return from_frame


def parser(con: duckdb.DuckDBPyConnection) -> Callable[[str], list[tuple[Any, ...]]]:
    """The syntax tree of a SELECT, as JSON. Nothing is run for it, and no table looked up."""
    return lambda text: con.execute("SELECT json_serialize_sql(?)", [text]).fetchall()


@dataclass(frozen=True, slots=True)
class Query(Relation):
    """A relation of a connection that nobody else uses: its rows come as a stream, as those of files do."""

    con: duckdb.DuckDBPyConnection

    fails = _QUERY_FAILS

    def places(self, names: Sequence[str]) -> list[int]:
        if not set(names) & set(self.names):  # a CSV without a header has its first row for names: they are not told
            remedy = "Check what the query selects; a CSV file needs a header."
            raise InputError(f"{self.where}: no column {names[0]!r}, nor any other of the schema. {remedy}")
        return positions(names, self.names, self.where)

    def cleaned(self, schema: Schema, *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Batches of cleaned columns: what `Column.clean` makes of `batches`, sooner."""
        named = zip(schema, self.places(schema.names), strict=True)
        ways = [_way(column, (f"#{i + 1}", self.types[i]), j, {}) for j, (column, i) in enumerate(named)]
        return evened(self._clean(ways), rows)

    def _clean(self, ways: Sequence[_Way]) -> Iterator[list[np.ndarray]]:
        chosen = ", ".join(f"{way.sql} AS x{j}" for j, way in enumerate(ways))
        with own_words(f"{self.where}: {self.fails}"):
            _list_texts(self.con, ways)
            with closing(streamed(self.relation.project(chosen), _cleaning(ways))) as stream:
                yield from stream


_NATIVE = {"BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR"} | {
    sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
}
_FIRST, _LAST = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
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
    if kind == "DATE":
        years = f"WHEN {place} > DATE '9999-12-31' THEN {_LAST} WHEN {place} < DATE '0001-01-01' THEN {_FIRST}"
        return f"CASE WHEN NOT isfinite({place}) THEN NULL {years} ELSE {place}::TIMESTAMP END"
    if kind in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        # Cut off to microseconds: DuckDB's own cast rounds, and the last nanosecond of a day would be the next day. All
        # of them are in Python's years, and an infinite one has no nanoseconds.
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
    """A database of its own that fetches no extensions and writes nothing to the disk."""
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
