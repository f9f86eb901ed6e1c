"""Rows from files: the choice of a reader by suffix, and the CSV reader.

CSV is read by Python's own parser. DuckDB's, even in strict mode with a stated format, silently drops the rest of a
file after an unclosed quote and accepts a row with a surplus delimiter. Python's refuses both, its line numbers are
exact, its errors quote no cell, and in small chunks it is as fast (2 million rows of 6 fields: 1.6 s).

Nothing is guessed from rows. A field is text until the schema interprets it: `NA` may be Namibia.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from certsynth.domain.cleaning import as_numbers
from certsynth.domain.schema import Schema
from certsynth.errors import InputError
from certsynth.sources.duck import ParquetFiles
from certsynth.sources.lookup import PARQUET, Found, files_in_folder, files_matching, is_pattern
from certsynth.sources.reading import CHUNK_ROWS, MAX_TEXT_ROWS, gather_columns, objects, positions

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
MAX_CACHED_BYTES = 2**26
"""Largest file, and largest set of cleaned rows, in bytes, that is kept in memory. Parsing text takes longer than
counting, and a release makes several passes over the rows."""

SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")

_SAVE_SHEET = "a spreadsheet, or packed like one. Save the sheet as CSV in UTF-8"
_FIRST_BYTES = {
    b"PK\x03\x04": _SAVE_SHEET,
    b"\xd0\xcf\x11\xe0": _SAVE_SHEET,
    b"\x1f\x8b": "compressed. Add .gz to its name",
    b"\xff\xfe": "text in UTF-16. Save it as UTF-8",
    b"\xfe\xff": "text in UTF-16. Save it as UTF-8",
}
"""First bytes of files that are not CSV whatever their names, with the remedy. No UTF-8 text begins like that."""

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}


def open_file(path: Path, what: str) -> CsvFile | ParquetFiles:
    """Open the file at `path` with the reader for its suffix. Only its header is read.

    A folder of Parquet files, or a pattern that matches several, is one table.
    """
    where = f"{what} {path}"
    try:
        found = _files_at(path, where)
    except (OSError, ValueError):
        raise InputError(f"{where}: the path cannot be used. Check it.") from None
    if found:
        return ParquetFiles.open(found, where)
    name = path.name.lower()
    if name.endswith(PARQUET):
        return ParquetFiles.open([Found(path)], where)
    for suffix, delimiter in DELIMITERS.items():
        if name.endswith(suffix):
            return CsvFile.open(path, where, delimiter)
    if name.endswith(SPREADSHEETS):
        raise InputError(f"{where}: a spreadsheet. Save the sheet as CSV in UTF-8.")
    if name.endswith(".toml"):
        raise InputError(f"{where}: this is a schema or a workload, not a table. Give a CSV or Parquet file here.")
    known = ", ".join([*DELIMITERS, *PARQUET])
    raise InputError(f"{where}: unknown suffix. Convert it to one of {known}.")


def _files_at(path: Path, where: str) -> list[Found]:
    """The files of a folder or a pattern; empty if the path is a single file."""
    if path.is_dir():
        return files_in_folder(path, where)
    if not path.exists():
        if is_pattern(path):
            return files_matching(path, where)
        raise InputError(f"{where}: no such file. Check the path.")
    if not path.is_file():
        raise InputError(f"{where}: not a regular file, and rows are read more than once. Save them to a file.")
    return []


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A delimited UTF-8 text file with a header line. Every field is read as text; an empty field is ""."""

    path: Path
    where: str
    delimiter: str
    names: tuple[str, ...]
    is_small: bool = False
    kept: dict[tuple[Schema, int], list[list[np.ndarray]]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def open(cls, path: Path, where: str, delimiter: str) -> CsvFile:
        unread = cls(path, where, delimiter, ())
        unread._refuse_other_formats()
        with unread._lines() as lines:
            small = path.stat().st_size <= MAX_CACHED_BYTES
            try:
                header: list[str] = next(unread._parsed(lines), [])
            except csv.Error:
                raise InputError(f"{where}: the header line has a quote out of place. Correct it.") from None
        if not any(header):
            raise InputError(f"{where}: empty, or without a header. The first line must name the columns.")
        # UTF-16 without a byte order mark contains NUL characters.
        if not _decodable(header) or any("\0" in name for name in header):
            raise InputError(f"{where}: the header is not text in UTF-8. Save the file as UTF-8.")
        # The message quotes no name: if the header is missing, the first line holds private values.
        named = [name for name in header if name]
        if len(set(named)) < len(named):
            twin = next(name for name in named if header.count(name) > 1)
            first = header.index(twin)
            second = header.index(twin, first + 1)
            if _looks_like_a_row(header):
                found = "two columns have the same name, and the first line looks like a row. Add a header"
            else:
                found = f"columns {first + 1} and {second + 1} have the same name. Rename or drop one of them"
            raise InputError(f"{where}: {found}.")
        return cls(path, where, delimiter, tuple(header), small)

    @property
    def other_separator(self) -> str | None:
        """The separator that the file seems to use, if the header is a single field that contains one."""
        if len(self.names) != 1:
            return None
        return next((sign for sign in _SEPARATORS if sign in self.names[0]), None)

    def check_separator(self) -> None:
        """Refuse a file whose header is a single field that contains another separator."""
        if separator := self.other_separator:
            raise InputError(self._separated_by(separator))

    def _separated_by(self, separator: str) -> str:
        here, found = _SEPARATORS[self.delimiter], _SEPARATORS[separator]
        point = ", and decimals with a point" if separator == ";" else ""
        return f"{self.where}: its fields seem to be separated by {found}. Save it with {here}{point}."

    def size_hint(self) -> int | None:
        return None

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        if not set(names) & set(self.names):  # the header may be missing: do not quote it
            if separator := self.other_separator:
                raise InputError(self._separated_by(separator))
            alike = {name.strip().casefold() for name in self.names}
            if twin := next((name for name in names if name.strip().casefold() in alike), None):
                found = f"no column {twin!r}, but one that differs in case or in blanks. Write it alike in both"
            elif _looks_like_a_row(self.names):
                found = f"no column {names[0]!r}, and the first line looks like a row. Add a header"
            else:
                found = f"no column {names[0]!r}, nor any other of the schema. Its first line must name the columns"
            raise InputError(f"{self.where}: {found}.")
        wanted = positions(names, self.names, self.where)
        return gather_columns(self._chunks(wanted), wanted, min(rows, MAX_TEXT_ROWS))

    def cleaned(self, schema: Schema, *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Batches of cleaned columns. Where a small file was read to its end, they come from memory again."""
        if kept := self.kept.get((schema, rows)):
            return iter(kept)
        batches = self.batches(schema.names, rows=rows)
        clean = ([column.clean(raw) for column, raw in zip(schema, batch, strict=True)] for batch in batches)
        return self._caching((schema, rows), clean) if self.is_small else clean

    def _caching(self, key: tuple[Schema, int], batches: Iterable[list[np.ndarray]]) -> Iterator[list[np.ndarray]]:
        held, room = [], MAX_CACHED_BYTES
        for batch in batches:
            room -= sum(column.nbytes for column in batch)
            if room >= 0:
                held.append(batch)
            else:  # the file is compressed, or numbers take more bytes than their texts
                held.clear()
            yield batch
        if room >= 0:
            self.kept[key] = held

    def _chunks(self, wanted: Sequence[int]) -> Iterator[list[list[str]]]:
        with self._lines() as lines:
            parsed = self._parsed(lines)
            try:
                next(parsed, None)
                while raw := list(itertools.islice(parsed, CHUNK_ROWS)):
                    chunk = self._without_blanks(raw)
                    if set(map(len, chunk)) - {len(self.names)}:
                        raise InputError(self._fault())
                    self._refuse_undecodable(chunk, wanted)
                    yield chunk
            except csv.Error:
                raise InputError(self._fault()) from None

    def _without_blanks(self, rows: list[list[str]]) -> list[list[str]]:
        """Drop blank lines; in a table of one column a blank line is an empty field."""
        return [row for row in rows if row] if len(self.names) > 1 else [row or [""] for row in rows]

    def _refuse_undecodable(self, rows: list[list[str]], wanted: Sequence[int]) -> None:
        for i in wanted:
            if not _decodable(row[i] for row in rows):
                name = self.names[i]
                raise InputError(f"{self.where}: column {name!r} is not text in UTF-8. Save the file as UTF-8.")

    def _refuse_other_formats(self) -> None:
        """Refuse a file whose first bytes contradict its suffix."""
        try:
            with self.path.open("rb") as file:
                first = file.read(4)
        except OSError:
            return  # reported when the file is read
        packed = self.path.suffix.lower() == ".gz"
        if packed and first and not first.startswith(b"\x1f\x8b"):
            raise InputError(f"{self.where}: not compressed. Remove .gz from its name.")
        for start, found in _FIRST_BYTES.items():
            if not packed and first.startswith(start):
                raise InputError(f"{self.where}: {found}.")

    def _fault(self) -> str:
        """Explain where a malformed file stops being a table, by reading it again row by row."""
        if separator := self.other_separator:
            return self._separated_by(separator)
        line = 1
        with self._lines() as lines:
            parsed = self._parsed(lines)
            try:
                for row in parsed:
                    if any(len(fields) != len(self.names) for fields in self._without_blanks([row])):
                        found = f"line {line} has more or fewer fields than the header"
                        return f"{self.where}: {found}. Correct it; a field with a delimiter in it needs quotes."
                    line = parsed.line_num + 1
            except csv.Error:
                limit = f"{csv.field_size_limit():,} characters"
                found = f"line {line} has a quote out of place or never closed, or a field of over {limit}"
                return f"{self.where}: {found}. Correct it; a quote inside a quoted field is doubled."
        return f"{self.where}: cannot be read. Did the file change meanwhile?"

    def _parsed(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, delimiter=self.delimiter, strict=True)

    @contextmanager
    def _lines(self) -> Iterator[IO[str]]:
        """Open the decoded file. Invalid UTF-8 is carried along, since its column may not be needed."""
        opened: Callable[..., Any] = gzip.open if self.path.suffix.lower() == ".gz" else Path.open
        try:
            with opened(self.path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
                yield lines
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or "it is damaged"
            raise InputError(f"{self.where}: cannot be read ({reason}). Check the file.") from None


def _looks_like_a_row(header: Sequence[str]) -> bool:
    """Whether a name is a number: then the header is probably missing, and the first line is private."""
    return not np.isnan(as_numbers(objects(header))).all()


def _decodable(texts: Iterable[str]) -> bool:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True
