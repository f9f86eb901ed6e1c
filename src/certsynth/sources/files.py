"""Rows from files: the choice of a reader by suffix, and the CSV reader.

CSV is read by Python's own parser. DuckDB's, even in strict mode with a stated format, silently drops the rest of a
file after an unclosed quote and accepts a row with a surplus delimiter. Python's refuses both, its line numbers are
exact, its errors quote no cell, and in small chunks it is as fast (2 million rows of 6 fields: 1.6 s).

Nothing is guessed from rows. A field is text until the schema interprets it: `NA` may be Namibia. The header line is
public, and may decide the delimiter.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from certsynth.errors import InputError
from certsynth.sources.caching import ParsedFile, is_small
from certsynth.sources.duck import ParquetFiles
from certsynth.sources.json_lines import SUFFIXES as JSON_LINES
from certsynth.sources.json_lines import JsonLines
from certsynth.sources.lookup import PARQUET, Found, files_in_folder, files_matching, is_pattern
from certsynth.sources.packing import TextFile, reading
from certsynth.sources.reading import (
    CHUNK_ROWS,
    MAX_TEXT_ROWS,
    SAVE_AS_UTF8,
    check_header,
    find_columns,
    gather_columns,
    is_text,
)
from certsynth.sources.spreadsheet import SUFFIXES as SPREADSHEETS
from certsynth.sources.spreadsheet import Spreadsheet

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""The delimiter of a file, unless its header line says otherwise."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_DECLARATION = re.compile(r"sep=([,;\t|])[\r\n]+", re.IGNORECASE)
"""A line in front of the header, by which Excel is told the delimiter."""

_SAVE_SHEET = "Save the sheet as CSV in UTF-8"
_SAVE_FROM_STATISTICS = "Save it as CSV in UTF-8 or as Parquet, with codes instead of labels if the schema lists codes"
_ATTACH = "Select from one of its tables with --sql and --attach, or in Python through a DuckDB relation"
OTHER_FORMATS = {
    (".xls", ".xlsb", ".ods", ".numbers"): ("a spreadsheet", _SAVE_SHEET),
    (".sas7bdat", ".xpt"): ("a table of SAS", _SAVE_FROM_STATISTICS),
    (".dta",): ("a table of Stata", _SAVE_FROM_STATISTICS),
    (".sav", ".zsav", ".por"): ("a table of SPSS", _SAVE_FROM_STATISTICS),
    (".rds", ".rda", ".rdata"): ("a table of R", "Save it as Parquet, or as CSV in UTF-8"),
    (".feather", ".arrow", ".arrows", ".ipc"): (
        "an Arrow file",
        "Save it as Parquet, or give `pyarrow.feather.read_table(path)` in Python",
    ),
    (".orc", ".avro"): ("a file of Hadoop", "Save it as Parquet"),
    (".json", ".json.gz", ".geojson"): ("JSON as a whole", "Write one object in each line (.jsonl): jq -c '.[]'"),
    (".db", ".duckdb", ".sqlite", ".sqlite3"): ("a database", _ATTACH),
    (".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz", ".tar.gz"): ("packed", "Unpack it, or pack it as .gz"),
    (".toml",): ("this is a schema or a workload, not a table", "Give a CSV or Parquet file here"),
}
"""Suffixes of formats that are not read: what they are, and the safe way in."""


def open_file(path: Path, what: str) -> CsvFile | JsonLines | ParquetFiles | Spreadsheet:
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
    if text := TextFile.find(path, where, (*DELIMITERS, *JSON_LINES)):
        return JsonLines.open(text) if text.suffix in JSON_LINES else CsvFile.open(text)
    if name.endswith(SPREADSHEETS):
        return Spreadsheet.open(path, where)
    for suffixes, (found_to_be, remedy) in OTHER_FORMATS.items():
        if name.endswith(suffixes):
            raise InputError(f"{where}: {found_to_be}. {remedy}.")
    known = ", ".join([*DELIMITERS, *JSON_LINES, *SPREADSHEETS, *PARQUET])
    raise InputError(f"{where}: unknown suffix. Convert it to one of {known}; text may be packed as .gz or .zip.")


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
class CsvFile(ParsedFile):
    """A delimited UTF-8 text file with a header line. Every field is read as text; an empty field is "".

    `declared` says whether a line in front of the header states the delimiter.
    """

    file: TextFile
    delimiter: str
    names: tuple[str, ...]
    declared: bool = False

    @classmethod
    def open(cls, file: TextFile) -> CsvFile:
        where = file.where
        with reading(where):
            small = is_small(file.path)
        unread = cls(file.path, where, file, DELIMITERS[file.suffix], (), is_small=small)
        with unread._lines() as lines:
            stated = _DECLARATION.fullmatch(lines.readline(10))
        if stated:
            unread = replace(unread, delimiter=stated[1], declared=True)
        else:
            unread = replace(unread, delimiter=unread._delimiter())
        with unread._lines() as lines:
            try:
                header: list[str] = next(unread._parsed(lines), [])
            except csv.Error:
                raise InputError(f"{where}: the header line has a quote out of place. Correct it.") from None
        check_header(header, where)
        return replace(unread, names=tuple(header))

    def _delimiter(self) -> str:
        """The delimiter of the suffix, unless only another one cuts the first line into several names. No other line
        is looked at: a header whose names have line breaks needs the delimiter of the suffix."""
        signs = [self.delimiter, *_SEPARATORS]
        return next((sign for sign in signs if len(self._first_line(sign)) > 1), self.delimiter)

    def _first_line(self, delimiter: str) -> list[str]:
        """The fields of the first line; none if a quote is out of place in it."""
        with self._lines() as lines:
            try:
                return next(csv.reader([lines.readline()], delimiter=delimiter, strict=True), [])
            except csv.Error:
                return []

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        if not set(names) & set(self.names):  # the header may be missing: do not quote it
            for sign, signs in _SEPARATORS.items():
                if set(names) & set(self._first_line(sign)):
                    here = _SEPARATORS.get(self.delimiter, "the stated sign")
                    found = f"its fields seem to be separated by {signs}, with {here} in a name of a column"
                    raise InputError(f"{self.where}: {found}. Rename that column, here and in the schema.")
        wanted = find_columns(names, self.names, self.where)
        return gather_columns(self._chunks(wanted), wanted, min(rows, MAX_TEXT_ROWS))

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
            if not is_text(row[i] for row in rows):
                name = self.names[i]
                raise InputError(f"{self.where}: column {name!r} is not text in UTF-8. {SAVE_AS_UTF8}.")

    def _fault(self) -> str:
        """Explain where a malformed file stops being a table, by reading it again row by row."""
        before = line = 2 if self.declared else 1
        with self._lines() as lines:
            parsed = self._parsed(lines)
            try:
                for row in parsed:
                    if any(len(fields) != len(self.names) for fields in self._without_blanks([row])):
                        found = f"line {line} has more or fewer fields than the header"
                        return f"{self.where}: {found}. Correct it; a field with a delimiter in it needs quotes."
                    line = parsed.line_num + before
            except csv.Error:
                limit = f"{csv.field_size_limit():,} characters"
                found = f"line {line} has a quote out of place or never closed, or a field of over {limit}"
                return f"{self.where}: {found}. Correct it; a quote inside a quoted field is doubled."
        return f"{self.where}: cannot be read. Did the file change meanwhile?"

    def _parsed(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, delimiter=self.delimiter, strict=True)

    @contextmanager
    def _lines(self) -> Iterator[IO[str]]:
        """The decoded text from the header on."""
        with self.file.lines("") as lines:
            if self.declared:
                lines.readline()
            yield lines
