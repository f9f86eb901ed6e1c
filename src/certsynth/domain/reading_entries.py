"""The entries of a column that say how its texts are written: read from the schema, checked, and written back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from certsynth.base.clock import SECONDS
from certsynth.domain import cleaning, date_format
from certsynth.domain.category import PATH_SEPARATOR, Category
from certsynth.domain.column import Column, Ordered
from certsynth.domain.labels import MAX_TEXT_CHARACTERS, check_flag, check_text, is_printable
from certsynth.domain.reading import FALSE_WORDS, PLAIN, SEPARATORS, TRUE_WORDS
from certsynth.errors import SchemaError

_MISSING = {"missing_codes", "missing_as"}
_LABELS = {"strip", "case"}
_NUMBERS = {"decimal", "thousands", "symbol"}

READING_ENTRIES: Mapping[str, frozenset[str]] = {
    "integer": frozenset(_MISSING | _NUMBERS),
    "number": frozenset(_MISSING | _NUMBERS),
    "date": frozenset(_MISSING | {"format"}),
    "datetime": frozenset(_MISSING | {"format"}),
    "ordinal": frozenset(_MISSING | _LABELS),
    "category": frozenset(_MISSING | _LABELS),
    "boolean": frozenset(_MISSING | {"values"}),
    "tree": frozenset(_MISSING | _LABELS),
    "metric": frozenset(_MISSING | _LABELS),
}
"""The entries about texts that columns of each kind may have."""

MAX_MISSING_CODES = 64
"""Most codes of missing values of a column."""

MAX_SYMBOLS = 16
"""Most symbols of a column of numbers."""


def with_reading(entry: Mapping[str, Any], kind: str, column: Column, where: str) -> Column:
    """The column with the reading that its entry states; texts must not be read in two ways."""
    stated = READING_ENTRIES[kind] & set(entry)
    if not stated:
        return column
    reading = replace(PLAIN, **{key: _READ[key](entry, where) for key in sorted(stated)})
    if reading.missing_codes and "missing_as" not in entry:
        reading = replace(reading, missing_as=reading.missing_codes[0])
    if reading.missing_codes and not column.missing:
        raise SchemaError(f"{where}: missing_codes needs missing = true.")
    if reading.missing_as and reading.missing_as not in reading.missing_codes:
        raise SchemaError(f'{where}: missing_as must be one of missing_codes, or "" for an empty field.')
    if reading.missing_as.strip("-"):  # dashes alone are no formula
        check_text(reading.missing_as, f"{where}: missing_as", empty=True)
    if reading.decimal == reading.thousands:
        raise SchemaError(f"{where}: decimal and thousands are the same sign; change one of them.")
    column = replace(column, reading=reading)
    if isinstance(column, Category) and column.kind == "boolean":
        _check_truths(column, where)
    elif isinstance(column, Category):
        _check_labels(column, {PATH_SEPARATOR.join(path): i for i, path in enumerate(column.paths)}, where)
    elif isinstance(column, Ordered) and column.kind == "ordinal":
        _check_labels(column, {}, where)
    elif isinstance(column, Ordered):
        _check_line(column, where)
    return column


def describe_reading(column: Column) -> dict[str, Any]:
    """The entries of a column's reading, as `with_reading` reads them."""
    reading = column.reading
    entries: dict[str, Any] = {}
    for key in ("strip", "case", "decimal", "thousands", "symbol", "format", "missing_codes", "values"):
        stated = getattr(reading, key)
        if stated != getattr(PLAIN, key):
            entries[key] = list(stated) if isinstance(stated, tuple) else stated
    if len(reading.symbol) == 1:
        entries["symbol"] = reading.symbol[0]
    if reading.missing_as != next(iter(reading.missing_codes), ""):
        entries["missing_as"] = reading.missing_as
    return entries


def _check_labels(column: Category | Ordered, paths: Mapping[str, int], where: str) -> None:
    labels = column.labels if isinstance(column, Category) else column.values
    keys: dict[str, str] = {}
    for label in labels:
        twin = keys.setdefault(column.reading.label_key(label), label)
        if twin != label:
            raise SchemaError(
                f"{where}: {twin!r} and {label!r} are the same with these options; remove one, or strip and case."
            )
    for path, i in paths.items():
        twin = keys.get(column.reading.label_key(path), labels[i])
        if twin != labels[i]:
            raise SchemaError(f"{where}: {twin!r} and the path {path!r} are the same with these options; rename one.")
    taken = {column.reading.code_key(label) for label in [*labels, *paths]}
    _refuse_codes(column, lambda code: column.reading.code_key(code) in taken, where)


def _check_truths(column: Category, where: str) -> None:
    words = [word.strip().lower() for word in column.reading.values]
    if len(set(words)) < len(words):
        raise SchemaError(f"{where}: values has the same word for false and true; change one.")
    if words and (words[0] == "true" or words[1] == "false" or (words[0] in TRUE_WORDS and words[1] in FALSE_WORDS)):
        raise SchemaError(f"{where}: values lists the word for false first, then the one for true; swap them.")
    taken = {"true", "false", *words}
    _refuse_codes(column, lambda code: code.lower() in taken, where)


def _check_line(column: Ordered, where: str) -> None:
    reading = column.reading
    if column.clock is not None and date_format.has_short_year(reading.format):
        first, last = (column.clock.moment(int(end)).year for end in (column.low, column.high))
        if first < date_format.FIRST_SHORT_YEAR or last > date_format.LAST_SHORT_YEAR:
            raise SchemaError(
                f"{where}: %y in format can state the years {date_format.FIRST_SHORT_YEAR} to "
                f"{date_format.LAST_SHORT_YEAR} only; use %Y, or narrower bounds."
            )
    if column.clock is SECONDS and reading.format:
        field, seconds = date_format.first_unstated(reading.format)
        if int(column.low) % seconds or int(column.step or 1) % seconds:
            raise SchemaError(
                f"{where}: format does not state the {field}; add it, or choose low and step such that all values are "
                f"multiples of {seconds:,} seconds."
            )
    _refuse_codes(column, lambda code: _has_value(column, cleaning.figure_of_code(code, column.kind, reading)), where)


def _has_value(column: Ordered, figure: float) -> bool:
    """Whether a number, day or second is a value of the column."""
    if not column.low <= figure <= column.high:
        return False
    if column.last_index is None:
        return True
    return bool(column.nearest(np.array([float(figure)]))[0] == figure)


def _refuse_codes(column: Column, is_value: Callable[[str], bool], where: str) -> None:
    for code in column.reading.missing_codes:
        if is_value(code):
            raise SchemaError(
                f"{where}: the missing code {code!r} is also a value of the column; remove it from missing_codes, or "
                "change the values or bounds."
            )


def _read_case(entry: Mapping[str, Any], where: str) -> str:
    case = entry["case"]
    if case not in ("exact", "ignore"):
        raise SchemaError(f'{where}: case is "exact" or "ignore".')
    return str(case)


def _read_decimal(entry: Mapping[str, Any], where: str) -> str:
    decimal = entry["decimal"]
    if decimal not in SEPARATORS[:2]:
        raise SchemaError(f'{where}: decimal is "." or ",".')
    return str(decimal)


def _read_thousands(entry: Mapping[str, Any], where: str) -> str:
    thousands = entry["thousands"]
    if thousands not in SEPARATORS:
        raise SchemaError(f"{where}: thousands is one of . , ' _ and a space, which may be a no-break space.")
    return str(thousands)


def _read_symbols(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    symbols = entry["symbol"] if isinstance(entry["symbol"], list) else [entry["symbol"]]
    if not 0 < len(symbols) <= MAX_SYMBOLS:
        raise SchemaError(f"{where}: symbol is a text, or a list of 1 to {MAX_SYMBOLS}.")
    for symbol in symbols:
        if not _is_text(symbol):
            raise SchemaError(f"{where}: symbol must be a text without blanks around it.")
        if not symbol.strip("".join(SEPARATORS)) or any(c.isdecimal() or c in "+-" for c in symbol):
            raise SchemaError(f'{where}: a symbol has no digit or sign of a number in it; give a text such as "€".')
    # The longest first: of "US$" and "$", the text "7 US$" ends with both.
    return tuple(sorted(dict.fromkeys(symbols), key=lambda symbol: (-len(symbol), symbol)))


def _read_format(entry: Mapping[str, Any], where: str) -> str:
    format = check_text(entry["format"], f"{where}: format")
    if fault := date_format.fault_of(format):
        raise SchemaError(f'{where}: format {format!r:.60} is no date format: {fault}. Write it like "%m/%d/%Y".')
    if format != format.strip():
        raise SchemaError(f"{where}: format has blanks around it; remove them.")
    return format


def _read_missing_codes(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    codes = entry["missing_codes"]
    if not isinstance(codes, list) or not 0 < len(codes) <= MAX_MISSING_CODES:
        raise SchemaError(f'{where}: missing_codes is a list of 1 to {MAX_MISSING_CODES} texts, like ["N", "-9"].')
    for code in codes:
        if isinstance(code, (int, float)):
            raise SchemaError(f'{where}: missing_codes are texts; write "-9" rather than -9.')
        if code == "":
            raise SchemaError(f"{where}: an empty field is missing in any case; remove it from missing_codes.")
        if not _is_text(code):
            raise SchemaError(f"{where}: missing_codes are texts without blanks around them.")
    if len(set(codes)) < len(codes):
        raise SchemaError(f"{where}: missing_codes lists a code twice; remove one of the two.")
    return tuple(codes)


def _read_missing_as(entry: Mapping[str, Any], where: str) -> str:
    if not isinstance(entry["missing_as"], str):
        raise SchemaError(f"{where}: missing_as is a text.")
    return str(entry["missing_as"])


def _read_truths(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    words = entry["values"]
    if not isinstance(words, list) or len(words) != 2 or not all(map(_is_text, words)):
        raise SchemaError(f'{where}: values of a boolean are the words for false and true, like ["no", "yes"].')
    return tuple(check_text(word, f"{where}: value") for word in words)


def _is_text(value: Any) -> bool:
    """Whether a value is a text without blanks around it that is safe in a CSV file."""
    is_short = isinstance(value, str) and 0 < len(value) <= MAX_TEXT_CHARACTERS
    return is_short and value == value.strip() and is_printable(value)


_READ: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "strip": lambda entry, where: check_flag(entry, "strip", where),
    "case": _read_case,
    "decimal": _read_decimal,
    "thousands": _read_thousands,
    "symbol": _read_symbols,
    "format": _read_format,
    "missing_codes": _read_missing_codes,
    "missing_as": _read_missing_as,
    "values": _read_truths,
}
