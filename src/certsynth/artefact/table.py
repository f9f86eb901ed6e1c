"""Synthetic tables on disk, written and read by DuckDB. Only files that certsynth wrote are accepted."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from certsynth.algorithm.options import MAX_ROWS
from certsynth.base.clock import CLOCKS
from certsynth.base.paths import escape_glob
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.cleaning import Raw
from certsynth.domain.date_format import write_moment
from certsynth.domain.derivation import derive_columns
from certsynth.domain.reading import PLAIN
from certsynth.errors import InputError

_NUMBER = re.compile(r"-?[0-9]+([.][0-9]+(e[+-]?[0-9]+)?|e[+-]?[0-9]+)")  # 7.0 or 7e+20, but not 7

Table = Mapping[str, np.ma.MaskedArray[Any, Any]]


def decoded_table(schema: Schema, clean: Sequence[np.ndarray]) -> Table:
    """Convert cleaned columns to the values that are written."""
    return {column.name: column.decode(x) for column, x in zip(schema, clean, strict=True)}


def with_derived(schema: Schema, table: Table) -> Table:
    """Complete a table of the measured columns by the derived ones, in the order of the schema."""
    if not schema.derivations:
        return table
    whole = {**table, **derive_columns(schema.formulas, schema.columns, table)}
    return {name: whole[name] for name in schema.names}


def cleaned_table(schema: Schema, table: Table) -> list[np.ndarray]:
    """Encode written values as a reader of the files does: the last bit of a number may differ from before."""
    return [column.encode(table[column.name]) for column in schema]


def as_table(schema: Schema, raw: Sequence[Raw]) -> Table:
    """Convert columns of a Parquet file back to the table that `write_table` was given: dates are days again, and times
    seconds."""
    clocks = [column.clock if isinstance(column, Ordered) else None for column in schema]
    columns = [x if clock is None else x.astype(clock.dtype) for x, clock in zip(raw, clocks, strict=True)]
    masked = [np.ma.masked_array(x, mask=np.ma.getmaskarray(x)) for x in columns]
    return dict(zip(schema.names, masked, strict=True))


def write_table(table: Table, *, parquet: Path, csv: Path, schema: Iterable[Column] = ()) -> None:
    """Write the same rows to both files. Missing values are null, dates are dates, and times timestamps.

    The CSV file is written so that the readings of the schema's columns read it back to the same values.
    """
    columns: dict[str, np.ndarray] = {}
    readings = {column.name: column.reading for column in schema}
    typed, texts = [], []
    for i, (name, column) in enumerate(table.items()):
        values, kind, reading = column.data, "", readings.get(name, PLAIN)
        clock = next((clock for clock in CLOCKS.values() if values.dtype == clock.dtype), None)
        if clock is not None:
            if reading.format:
                columns[f"t{i}"] = _formatted(values, reading.format)
            values, kind = values.astype("datetime64[us]"), f"::{clock.sql_type}"
        columns[f"v{i}"], columns[f"m{i}"] = values, np.ma.getmaskarray(column)
        typed.append(f"CASE WHEN m{i} THEN NULL ELSE v{i}{kind} END AS {_quoted(name)}")
        text, absent = f"v{i}{kind}", "NULL"
        if f"t{i}" in columns:
            text = f"t{i}"
        elif values.dtype.kind == "b" and reading.values:
            text = f"CASE WHEN v{i} THEN {_literal(reading.values[1])} ELSE {_literal(reading.values[0])} END"
        elif values.dtype.kind == "f" and reading.decimal != ".":
            text = f"replace(v{i}::VARCHAR, '.', {_literal(reading.decimal)})"
        if reading.missing_as:
            text, absent = f"({text})::VARCHAR", _literal(reading.missing_as)
        texts.append(f"CASE WHEN m{i} THEN {absent} ELSE {text} END AS {_quoted(name)}")
    try:
        with _connection() as connection:
            for selected, path, form in (
                (typed, parquet, "FORMAT parquet, COMPRESSION zstd"),
                (texts, csv, "FORMAT csv, HEADER"),
            ):
                query = f"COPY (SELECT {', '.join(selected)} FROM columns) TO $path ({form})"
                connection.execute(query, {"path": str(path)})
    except duckdb.IOException:  # it has no details and is not an OSError
        raise OSError(errno.EIO, "the disk may be full, or a limit on the size of files was reached") from None


def read_table(path: Path, schema: Schema) -> list[Raw]:
    """Read the columns of a file that `write_table` wrote, as text if it is a CSV; other columns raise InputError.

    Parquet metadata is refused, because some readers would act on it. The file is untrusted: pipes are refused, glob
    patterns in its name are escaped, and the number of rows is limited.
    """
    names, wrong = schema.names, f"{path.name} is not a table with the schema's columns."
    if not path.is_file():
        raise InputError(wrong)
    place = {"path": escape_glob(path, path.name)}
    try:
        with _connection() as connection:
            if path.suffix == ".csv":
                kinds = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(names)))
                reader = f"read_csv($path, auto_detect=false, header=false, delim=',', quote='\"', columns={{{kinds}}})"
            else:
                reader = "read_parquet($path, hive_partitioning = false)"
                found = connection.execute(f"DESCRIBE SELECT * FROM {reader}", place).fetchall()
                if [(row[0], row[1]) for row in found] != [(column.name, _kind(column)) for column in schema]:
                    raise InputError(wrong)
                if connection.execute("SELECT 1 FROM parquet_kv_metadata($path) LIMIT 1", place).fetchall():
                    raise InputError(f"{path.name} carries notes beside the table, which no release does.")
            query = f"SELECT * FROM {reader} LIMIT {MAX_ROWS + 2}"
            fetched = list(connection.execute(query, place).fetchnumpy().values())
    except InputError:
        raise
    except Exception:  # errors of DuckDB, and of libraries it needs for types that no release has
        raise InputError(wrong) from None
    columns = [np.asanyarray(values) for values in fetched]
    if path.suffix == ".csv":
        if not len(columns[0]) or [x[0] for x in columns] != list(names):
            raise InputError(wrong)
        columns = [x[1:] for x in columns]
    if not 0 < len(columns[0]) <= MAX_ROWS:
        raise InputError(f"{path.name} has {'more' if len(columns[0]) else 'fewer'} rows than any release.")
    return columns


def written_as(column: Column, texts: Raw, values: np.ma.MaskedArray[Any, Any]) -> bool:
    """Whether the texts of a CSV file represent `values`: labels character by character, numbers to the last bit."""
    missing, reading = np.ma.getmaskarray(values), column.reading
    absent = np.ma.getmaskarray(texts)
    if reading.missing_as:
        if absent.any() or not (np.ma.getdata(texts)[missing] == reading.missing_as).all():
            return False
    elif not np.array_equal(absent, missing):
        return False
    said, meant = np.ma.getdata(texts)[~missing], values.data[~missing]
    if isinstance(column, Ordered) and column.kind == "number":  # in DuckDB's number format
        plain = [text.translate({ord(reading.decimal): ".", ord("."): reading.decimal}) for text in said.tolist()]
        return all(map(_NUMBER.fullmatch, plain)) and bool((np.array(plain, float) == meant).all())
    if isinstance(column, Category) and column.kind == "boolean":
        no, yes = reading.values or ("false", "true")
        meant = np.where(meant, yes, no)
    elif isinstance(column, Ordered) and reading.format:
        meant = _formatted(meant, reading.format)
    elif isinstance(column, Ordered) and column.kind != "ordinal":
        meant = np.char.replace(meant.astype(str), "T", " ")
    return bool((said.astype(object) == meant.astype(object)).all())


def _kind(column: Column) -> str:
    """Return the DuckDB type of a column."""
    if isinstance(column, Category):
        return "BOOLEAN" if column.kind == "boolean" else "VARCHAR"
    assert isinstance(column, Ordered)
    if column.clock is not None:
        return column.clock.sql_type
    return {"integer": "BIGINT", "number": "DOUBLE", "ordinal": "VARCHAR"}[column.kind]


def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false; SET autoinstall_known_extensions = false")
    return connection


def _formatted(moments: np.ndarray, format: str) -> np.ndarray:
    """The texts of dates or times in a date format."""
    distinct, places = np.unique(moments.astype("datetime64[s]"), return_inverse=True)
    return np.array([write_moment(moment, format) for moment in distinct.tolist()], dtype=object)[places]


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
