"""Queries as tables: a single SELECT run by DuckDB or Spark, and tables of Spark's catalogue."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb

from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.sources.duck import Query, connection, parser
from certsynth.sources.reading import refuse_duplicate_names
from certsynth.sources.rowwise import refuse_other_queries, refuse_other_sources
from certsynth.sources.spark import SparkTable, spark_table

Engine = Literal["duckdb", "spark"]

_READS = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Node types allowed in a query. DuckDB classifies a WITH that contains an INSERT or a COPY as a SELECT."""

_ONE_SELECT = "only a single SELECT is run"
_FAILS = "DuckDB cannot run the query. Try it in DuckDB itself: a file, a column or a function may not be there."
_REMOTE = ("postgres", "mysql")
_TAKEN = ("main", "memory", "system", "temp")
"""Names that DuckDB reserves for its own databases."""

_MEANINGS = {
    r'Referenced column "([^"]+)" not found': "no column {!r} in what it reads. Check the query.",
    r'"[^"]+" does not have a column named "([^"]+)"': "no column {!r} in that table. Check the query.",
    r'Column "([^"]+)" in \w+ list not found': "no column {!r} in what it reads. Check the query.",
    r'Referenced table "([^"]+)" not found': "no table {!r} after its FROM. Check the query.",
    r'Ambiguous reference to column name "([^"]+)"': "column {!r} is in several tables. Say which one, like a.name.",
    r'column "([^"]+)" must appear in the GROUP BY': "column {!r} is neither grouped by nor aggregated. Do either.",
    r'No files found that match the pattern "([^"]+)"': "no file {!r}. Check the path.",
    r"File (\S+) requires the extension": "{!r} needs an extension of DuckDB that is not loaded. Fetch the file first.",
}
"""Patterns of DuckDB's binder errors with our messages. A name is quoted only if it is part of the query."""


@dataclass(frozen=True, slots=True)
class Unopened:
    """A table that an engine opens only when rows are needed: `text` is a query, a name or a path."""

    text: str
    engine: Engine = "duckdb"
    query: bool = True
    attached: tuple[tuple[str, str], ...] = ()

    def opened(self, what: str, persons: Persons | None = None) -> Query | SparkTable:
        if self.engine == "spark":
            return spark_table(self.text, query=self.query, what=what, persons=persons)
        return open_query(self.text, self.attached, what=what, persons=persons)


def open_query(
    text: str, attached: Sequence[tuple[str, str]] = (), *, what: str = "data", persons: Persons | None = None
) -> Query:
    """Open a row-wise query in a private DuckDB that writes nothing, not even temporary files.

    `attached` lists names and locations of databases, which are opened read-only. If a column names `persons`, the
    query may group by it.
    """
    where = f"{what} (a SQL query)"
    con = connection()
    con.execute("SET python_enable_replacements = false")  # else a table name could resolve to a Python variable
    statement = _refuse_writers(con, text, where)
    names_of_databases = set(_TAKEN)
    for name, database in attached:
        if name.lower() in names_of_databases:
            raise InputError(f"--attach {name}: this name is already taken. Choose another.")
        names_of_databases.add(name.lower())
        _attach(con, name, database)

    def ask(sql: str) -> list[tuple[Any, ...]]:
        try:
            return con.execute(sql).fetchall()
        except Exception as error:
            raise InputError(f"{where}: {_meaning(error, text)}") from None

    seen = refuse_other_queries(statement, parser(con), ask, where, persons)
    try:
        relation = con.sql(text)
    except duckdb.CatalogException as error:
        raise InputError(f"{where}: {_first_line(error)}. Check the query.") from None
    except Exception as error:
        raise InputError(f"{where}: {_meaning(error, text)}") from None
    con.execute("SET explain_output = 'all'")
    plans = dict(ask(f"EXPLAIN (FORMAT JSON) {statement}"))
    refuse_other_sources(plans["logical_plan"], where, logical=True, grouped=seen.grouped)
    names, types = tuple(relation.columns), tuple(str(kind) for kind in relation.types)
    refuse_duplicate_names(names, where)
    return Query(relation=relation, where=where, names=names, types=types, con=con)


def _meaning(error: Exception, text: str) -> str:
    """Our message for a DuckDB error, as far as it concerns the query's own text.

    >>> _meaning(duckdb.BinderException('Binder Error: Referenced column "b" not found in FROM clause!'), "SELECT b")
    "no column 'b' in what it reads. Check the query."
    """
    for pattern, words in _MEANINGS.items():
        if (found := re.search(pattern, str(error))) and found[1] in text:
            return words.format(found[1])
    return _FAILS


def _refuse_writers(con: duckdb.DuckDBPyConnection, text: str, where: str) -> str:
    """Refuse anything but a single read-only SELECT, at any depth, and return it. Nothing is run."""
    try:
        statements = con.extract_statements(text)
    except duckdb.Error as error:
        remedy = "That is a file: leave out --sql" if os.path.lexists(text) else "Check the query"
        raise InputError(f"{where}: {_first_line(error)}. {remedy}.") from None
    except Exception:
        raise InputError(f"{where}: it cannot be read. Check the query.") from None
    if not statements:
        raise InputError(f"{where}: it is empty, and {_ONE_SELECT}. Write one.")
    if len(statements) > 1 or statements[0].type == duckdb.StatementType.MULTI:
        # A PIVOT without a list of values is split in two as well: its columns would be named after cells.
        raise InputError(f"{where}: {_ONE_SELECT}. Remove the other statements; a PIVOT must list its values.")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(f"{where}: {_ONE_SELECT}, and this is another statement. Select rows, and change nothing.")
    if statements[0].named_parameters:
        raise InputError(f"{where}: it has a parameter without a value. Write the value into the query.")
    try:
        serialized = con.execute("SELECT json_serialize_sql(?)", [statements[0].query]).fetchall()[0][0]
        kinds = set(_kinds(json.loads(serialized)["statements"]))
    except Exception:
        kinds = {""}
    if not kinds or not kinds <= _READS:
        raise InputError(f"{where}: {_ONE_SELECT}, with nothing in it that writes.")
    return str(statements[0].query).strip().rstrip(";")


def _kinds(tree: Any) -> Iterator[str]:
    """The types of all nodes of a query, at any depth."""
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    if isinstance(tree, dict) and str(tree.get("type", "")).endswith("_NODE"):
        yield str(tree["type"])
    for each in inner:
        yield from _kinds(each)


def _attach(con: duckdb.DuckDBPyConnection, name: str, database: str) -> None:
    """Attach a database read-only. Its location may contain a password, so messages do not quote it."""
    where = f"--attach {name}"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", name):
        raise InputError(f"--attach needs NAME=DATABASE with a name like town; got {name!r:.60}.")
    kind, colon, _ = database.partition(":")
    if not colon or kind.lower() not in _REMOTE:
        kind = _kind_of_file(Path(database), where)
    kind = kind.lower()
    if kind != "duckdb":
        try:
            con.execute(f"LOAD {kind}")
        except Exception:
            remedy = f"Install it once, with: python -c \"import duckdb; duckdb.sql('INSTALL {kind}')\""
            raise InputError(f"{where}: DuckDB's extension {kind} is not installed here. {remedy}") from None
    place = database.replace("'", "''").removeprefix(f"{kind}:")
    try:
        if kind == "sqlite":  # values need not have the declared type: read all as text
            con.execute("SET GLOBAL sqlite_all_varchar = true")
        con.execute(f"ATTACH '{place}' AS \"{name}\" (READ_ONLY, TYPE {kind})")
    except Exception:
        raise InputError(f"{where}: DuckDB cannot open this database. Check its location.") from None


def _kind_of_file(path: Path, where: str) -> str:
    try:
        if path.exists() and not path.is_file():  # reading a pipe would block
            raise InputError(f"{where}: not a regular file. Give a file, or postgres:… or mysql:….")
        with path.open("rb") as file:
            first = file.read(16)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path cannot be used"
        raise InputError(f"{where}: cannot be read ({reason}). Give a file, or postgres:… or mysql:….") from None
    if first.startswith(b"SQLite format 3"):
        return "sqlite"
    if first[8:12] == b"DUCK":
        return "duckdb"
    raise InputError(f"{where}: neither a DuckDB nor a SQLite file. Give one of these, or postgres:… or mysql:….")


def _first_line(error: Exception) -> str:
    """The first line of a DuckDB error: later lines may quote tables.

    >>> _first_line(duckdb.ParserException('Parser Error: syntax error at or near "SELEC"\\n\\nLINE 1: SELEC'))
    'syntax error at or near "SELEC"'
    """
    line = str(error).partition("\n")[0].partition(": ")[2]
    return line.rstrip(".! ")[:200] or "it cannot be read"
