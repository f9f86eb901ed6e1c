"""Synthetic tables on disk, by DuckDB. Only files that certsynth wrote are read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from certsynth.domain import Schema
from certsynth.domain.cleaning import Raw
from certsynth.errors import InputError
from certsynth.paths import literally
from certsynth.request import MAX_ROWS

Table = Mapping[str, np.ma.MaskedArray[Any, Any]]


def decoded_table(schema: Schema, clean: Sequence[np.ndarray]) -> Table:
    """Cleaned columns as the values that are written."""
    return {column.name: column.decode(x) for column, x in zip(schema, clean, strict=True)}


def cleaned_table(schema: Schema, table: Table) -> list[np.ndarray]:
    """Written values as whoever reads them cleans them: a number may come back different in its last bit."""
    return [column.clean(table[column.name]) for column in schema]


def as_table(schema: Schema, raw: Sequence[Raw]) -> Table:
    """Columns of a Parquet file that `write_table` made, as they were before: days are days again."""
    columns = [x.astype("datetime64[D]") if x.dtype.kind == "M" else x for x in raw]
    masked = [np.ma.masked_array(x, mask=np.ma.getmaskarray(x)) for x in columns]
    return dict(zip(schema.names, masked, strict=True))


def write_table(table: Table, *, parquet: Path, csv: Path) -> None:
    """Write the same rows to both files. Missing values are null, dates are dates."""
    columns: dict[str, np.ndarray] = {}
    selected = []
    for i, (name, column) in enumerate(table.items()):
        values, kind = column.data, ""
        if values.dtype.kind == "M":
            values, kind = values.astype("datetime64[us]"), "::DATE"
        columns[f"v{i}"], columns[f"m{i}"] = values, np.ma.getmaskarray(column)
        selected.append(f"CASE WHEN m{i} THEN NULL ELSE v{i}{kind} END AS {_quoted(name)}")
    with _connection() as connection:
        query = f"COPY (SELECT {', '.join(selected)} FROM columns) TO "
        connection.execute(query + "$path (FORMAT parquet, COMPRESSION zstd)", {"path": str(parquet)})
        connection.execute(query + "$path (FORMAT csv, HEADER)", {"path": str(csv)})


def read_table(path: Path, names: Sequence[str]) -> list[Raw]:
    """The named columns of a file that `write_table` made; a CSV as text.

    It may be somebody else's file all the same: a pipe is not waited for, a pattern is not followed, and rows without
    end are not read.
    """
    wrong = InputError(f"{path.name} is not a table with the schema's columns.")
    if not path.is_file():
        raise wrong
    columns = ", ".join(_quoted(name) for name in names)
    reader = "read_parquet($path, hive_partitioning = false)"
    if path.suffix == ".csv":
        kinds = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names)
        reader = f"read_csv($path, auto_detect=false, header=true, delim=',', quote='\"', columns={{{kinds}}})"
    try:
        with _connection() as connection:
            query = f"SELECT {columns} FROM {reader} LIMIT {MAX_ROWS + 1}"
            fetched = connection.execute(query, {"path": literally(path, path.name)}).fetchnumpy()
            read = [np.asanyarray(fetched[name]) for name in names]
    except InputError:
        raise
    except Exception:  # DuckDB's own, and what it needs from others for types that no release has
        raise wrong from None
    if read and len(read[0]) > MAX_ROWS:
        raise InputError(f"{path.name} has more than {MAX_ROWS:,} rows; no release has.")
    return read


def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false; SET autoinstall_known_extensions = false")
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
