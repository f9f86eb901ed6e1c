"""Rows from Excel workbooks (.xlsx): the first visible sheet, each cell by its own type and number format.

A workbook is a zip archive of XML. A cell holds a text, a number, a truth or an error; a number whose own format is one
of dates is a day or a time. Nothing is inferred about a column from its cells. Cells are read as they are stored, not
as they are shown: 7 % is 0.07. A formula is refused, since it may depend on other rows.
"""

from __future__ import annotations

import datetime
import math
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np

from certsynth.domain.cleaning import as_labels
from certsynth.errors import InputError
from certsynth.sources.caching import ParsedFile, is_small
from certsynth.sources.reading import CHUNK_ROWS, MAX_TEXT_ROWS, check_header, find_columns, gather_columns, objects

SUFFIXES = (".xlsx", ".xlsm")
WORKBOOK, SHARED_TEXTS, STYLES = "xl/workbook.xml", "xl/sharedStrings.xml", "xl/styles.xml"

MAX_SHEET_COLUMNS = 2**14
"""Columns of a sheet, by Excel's own limit."""

MAX_ELEMENT_BYTES = 2**24
"""Bytes of XML that may make up one row or one text, so that no file can fill the memory."""

MAX_SHARED_TEXT_BYTES = 2**29
"""Bytes of all shared texts, which are held in memory."""

_SPREADSHEET_FAULT = "cannot be read (it is damaged, or has a password). Save the sheet as CSV in UTF-8"
_FAULTS = (
    *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError),
    *(KeyError, IndexError, ValueError, RuntimeError),  # of this module's own steps, and of zipfile
)

_DATE_FORMATS = frozenset([*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)])
"""Numbers of the built-in formats for dates and times of day."""

_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_DATE_LETTER = re.compile(r"[ymdhs]", re.IGNORECASE)
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_PLACE = re.compile(r"([A-Z]{1,3})[0-9]+")

_FIRST_1900, _FIRST_1904 = datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1)
_LEAP_DAY_1900 = 60
"""The serial number of 29 February 1900, which Excel has and the calendar does not."""

_MILLISECONDS = 86_400_000

Cells = dict[int, Any]
"""The values of a row by their columns, counted from 0."""


@dataclass(frozen=True, slots=True)
class Book:
    """What cells refer to: the shared texts, the styles of dates, and the first day of the calendar."""

    sheet: str
    texts: Sequence[str]
    date_styles: frozenset[int]
    first_day: datetime.datetime


@dataclass(frozen=True, slots=True)
class Spreadsheet(ParsedFile):
    """The first visible sheet of a workbook, whose first row that is not blank names the columns."""

    names: tuple[str, ...]
    book: Book = field(compare=False, repr=False)

    @classmethod
    def open(cls, path: Path, where: str) -> Spreadsheet:
        with _reading(where), zipfile.ZipFile(path) as archive:
            book = _read_book(archive)
            header = next((cells for _, cells, _ in _rows(archive, book)), {})
            small = is_small(path)
        texts = as_labels(objects([header.get(i) for i in range(max(header, default=-1) + 1)]))
        names = tuple(text or "" for text in texts)
        check_header(names, where)
        return cls(path, where, names, book, is_small=small)

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        wanted = find_columns(names, self.names, self.where)
        return gather_columns(self._chunks(wanted), range(len(names)), min(rows, MAX_TEXT_ROWS))

    def _chunks(self, wanted: Sequence[int]) -> Iterator[list[list[Any]]]:
        chunk: list[list[Any]] = []
        with _reading(self.where), zipfile.ZipFile(self.path) as archive:
            for place, (number, cells, formulas) in enumerate(_rows(archive, self.book)):
                self._refuse_formulas([i for i in wanted if i in formulas], number)
                if place:  # the first row is the header
                    chunk.append([cells.get(i) for i in wanted])
                if len(chunk) == CHUNK_ROWS:
                    yield chunk
                    chunk = []
        yield chunk

    def _refuse_formulas(self, columns: Sequence[int], number: int) -> None:
        for column in columns:
            raise InputError(
                f"{self.where}: column {self.names[column]!r} has a formula in row {number:,}, which may depend on "
                "other rows. Paste the column as values."
            )


@contextmanager
def _reading(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise InputError(f"{where}: cannot be read ({reason}). Check the file.") from None
    except _FAULTS:
        raise InputError(f"{where}: {_SPREADSHEET_FAULT}.") from None


def _local(tag: str) -> str:
    """A tag without its namespace, of which there are two for the same format."""
    return tag.rpartition("}")[2]


class _BoundedFile:
    """A file from which only so many bytes can be read between two elements."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.left = file, MAX_ELEMENT_BYTES

    def read(self, size: int = -1) -> bytes:
        content = self.file.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise ValueError("an element is too long")
        return content


def _ended(file: IO[bytes], tags: tuple[str, ...]) -> Iterator[Any]:
    """Yield each element with one of the tags when it is complete, and forget it then."""
    bounded, path = _BoundedFile(file), []
    for event, element in ElementTree.iterparse(bounded, events=("start", "end")):
        if event == "start":
            path.append(element)
            continue
        path.pop()
        if _local(element.tag) in tags:
            bounded.left = MAX_ELEMENT_BYTES
            yield element
            if path:
                path[-1].remove(element)


def _read_book(archive: zipfile.ZipFile) -> Book:
    with archive.open(WORKBOOK) as file:
        found = list(_ended(file, ("sheet", "workbookPr")))
    about = [each for each in found if _local(each.tag) == "workbookPr"]
    sheets = [each for each in found if _local(each.tag) == "sheet" and each.get("state", "visible") == "visible"]
    folder, name = posixpath.split(WORKBOOK)
    with archive.open(f"{folder}/_rels/{name}.rels") as file:
        targets = {
            each.get("Id"): posixpath.normpath(posixpath.join("/", folder, each.get("Target"))).lstrip("/")
            for each in _ended(file, ("Relationship",))
            if each.get("Type", "").endswith("/worksheet")
        }
    places = [value for each in sheets for key, value in each.attrib.items() if _local(key) == "id"]
    sheet = next(targets[place] for place in places if place in targets)
    is_1904 = any(each.get("date1904") in ("1", "true") for each in about)
    first_day = _FIRST_1904 if is_1904 else _FIRST_1900
    return Book(sheet, _shared_texts(archive), _date_styles(archive), first_day)


def _shared_texts(archive: zipfile.ZipFile) -> list[str]:
    if SHARED_TEXTS not in archive.namelist():
        return []
    if archive.getinfo(SHARED_TEXTS).file_size > MAX_SHARED_TEXT_BYTES:
        raise ValueError("too many texts")
    with archive.open(SHARED_TEXTS) as file:
        return [_text(each) for each in _ended(file, ("si",))]


def _text(element: Any) -> str:
    """The text of a cell: all its runs, without the phonetic ones."""
    parts = []
    for child in element:
        if _local(child.tag) == "t":
            parts.append(child.text or "")
        elif _local(child.tag) == "r":
            parts += [each.text or "" for each in child if _local(each.tag) == "t"]
    return _ESCAPED.sub(_unescaped, "".join(parts))


def _unescaped(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return found[0] if 0xD800 <= code < 0xE000 else chr(code)


def _date_styles(archive: zipfile.ZipFile) -> frozenset[int]:
    """The styles of cells whose numbers are shown as dates or times of day."""
    if STYLES not in archive.namelist():
        return frozenset()
    with archive.open(STYLES) as file:
        found = list(_ended(file, ("numFmts", "cellXfs")))
    own: dict[int, str] = {}
    styles: list[int] = []
    for each in found:
        if _local(each.tag) == "numFmts":
            own |= {int(child.get("numFmtId")): child.get("formatCode", "") for child in each}
        else:
            styles = [int(child.get("numFmtId", 0)) for child in each]
    return frozenset(i for i, style in enumerate(styles) if _shows_dates(style, own))


def _shows_dates(style: int, own: Mapping[int, str]) -> bool:
    if style not in own:
        return style in _DATE_FORMATS
    code = own[style].split(";")[0]
    return not _ELAPSED.search(code) and bool(_DATE_LETTER.search(_LITERAL.sub("", code)))


def _rows(archive: zipfile.ZipFile, book: Book) -> Iterator[tuple[int, Cells, set[int]]]:
    """The number, values and formulas of each row that is not blank."""
    number = 0
    with archive.open(book.sheet) as file:
        for row in _ended(file, ("row",)):
            number = int(row.get("r", number + 1))
            cells: Cells = {}
            formulas: set[int] = set()
            place = -1
            for cell in row:
                place = _column(cell.get("r"), place + 1)
                parts = {_local(child.tag): child for child in cell}
                if (formula := parts.get("f")) is not None:
                    formulas |= _spilled(formula, place)
                value = _value(cell, parts, book)
                if value is not None:
                    cells[place] = value
            if cells or formulas:
                yield number, cells, formulas


def _column(reference: str | None, following: int) -> int:
    """The column of a reference like B7, counted from 0. Cells without one follow each other."""
    if reference is None:
        return following
    letters = _PLACE.fullmatch(reference)
    if letters is None:
        raise ValueError("no reference to a cell")
    column = 0
    for letter in letters[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    if column > MAX_SHEET_COLUMNS:
        raise ValueError("beyond the last column")
    return column - 1


def _spilled(formula: Any, place: int) -> set[int]:
    """The columns into which a formula writes: its own, or those of its array."""
    first, _, last = (formula.get("ref") or "").partition(":")
    return {place} if not last else {place, *range(_column(first, place), _column(last, place) + 1)}


def _value(cell: Any, parts: Mapping[str, Any], book: Book) -> Any:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text(parts["is"]) if "is" in parts else None
    text = parts["v"].text if "v" in parts else None
    if not text:
        return None
    if kind == "s":
        return book.texts[int(text)]
    if kind == "b":
        return text.strip() in ("1", "true")
    if kind != "n":  # the result of a formula, an error such as #N/A, or a date of ISO 8601
        return _ESCAPED.sub(_unescaped, text)
    number = float(text)
    return _moment(number, book.first_day) if int(cell.get("s", 0)) in book.date_styles else number


def _moment(serial: float, first_day: datetime.datetime) -> datetime.date | datetime.time | None:
    """The day, the day and time or, below 1, the time of a serial number of Excel; None if there is none such."""
    if not 0 <= serial < 2_958_466:  # through the year 9999
        return None
    days = math.floor(serial)
    time = datetime.timedelta(milliseconds=round((serial - days) * _MILLISECONDS))
    if first_day == _FIRST_1900:
        if days == 0:
            return (first_day + time).time()
        if days == _LEAP_DAY_1900:
            return None
        days += days < _LEAP_DAY_1900
    elif days > 2_957_003:
        return None
    found = first_day + datetime.timedelta(days=days) + time
    return found.date() if not time else found
