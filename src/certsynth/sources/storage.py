"""Storage types of frame columns, and the schema labels that such a type cannot distinguish.

The types of a frame were often guessed from its rows: a reader turns `007` into 7 unless some row holds `00X`. The
frame does not show how its types were chosen. So a type is refused if a label of the schema would be read differently
from it than from text. That depends on the schema and the type alone, never on a value.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import narwhals as nw
import numpy as np

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.cleaning import as_labels, as_numbers
from certsynth.domain.date_format import has_month_name, has_short_year, write_moment
from certsynth.domain.reading import Reading
from certsynth.errors import InputError

Storage = Literal["whole numbers", "floats", "truths", "times", "mixed objects", "texts"]

MAX_EXACT_FLOAT = 2**53
"""Every whole number up to this magnitude is represented exactly by a float."""


def storage_of(kind: nw.dtypes.DType) -> Storage:
    """The storage class of a narwhals type."""
    if kind == nw.Boolean:
        return "truths"
    if kind == nw.Object:
        return "mixed objects"
    if kind.is_float():
        return "floats"
    if kind.is_numeric():
        return "whole numbers"
    return "times" if kind.is_temporal() else "texts"


def storage_of_sql(kind: str) -> Storage:
    """The storage class of a DuckDB type.

    >>> [storage_of_sql(kind) for kind in ("BIGINT", "DECIMAL(9,2)", "DOUBLE", "TIMESTAMP_S", "VARCHAR", "INTEGER[]")]
    ['whole numbers', 'whole numbers', 'floats', 'times', 'texts', 'texts']
    """
    kind = kind.upper()
    if kind.endswith("]"):
        return "texts"
    if kind == "BOOLEAN":
        return "truths"
    if kind in ("FLOAT", "DOUBLE"):
        return "floats"
    if kind.startswith("DECIMAL") or kind.endswith(("INT", "INTEGER")):
        return "whole numbers"
    return "times" if kind.startswith(("DATE", "TIME")) else "texts"


def storage_of_arrow(kind: str) -> Storage:
    """The storage class of an Arrow type.

    >>> [storage_of_arrow(kind) for kind in ("int64", "double", "bool", "date32[day]", "string", "decimal128(9, 2)")]
    ['whole numbers', 'floats', 'truths', 'times', 'texts', 'whole numbers']
    """
    if kind == "bool":
        return "truths"
    if kind in ("halffloat", "float", "double"):
        return "floats"
    if kind.startswith(("int", "uint", "decimal")):
        return "whole numbers"
    return "times" if kind.startswith(("date", "time", "duration")) else "texts"


def refuse_ambiguous(schema: Schema, storages: Iterable[Storage], where: str) -> None:
    """Refuse columns whose listed labels would be read differently if they were stored as text."""
    for column, storage in zip(schema, storages, strict=True):
        if is_ambiguous(column, storage):
            boolean = ' or make it a column of kind "boolean"' if storage == "truths" else ""
            what = "texts" if column.distinguished_texts is None else "labels"
            found = f"column {column.name!r} is stored as {storage}, which cannot tell its {what} apart"
            raise InputError(f"{where}: {found}. Read it as text, as with dtype=str{boolean}, or give the file itself.")


def is_ambiguous(column: Column, storage: Storage) -> bool:
    """Whether some label is read differently from this storage type than from text.

    >>> from certsynth.domain import Category
    >>> codes = Category(name="code", values=("007", "12"))
    >>> is_ambiguous(codes, "whole numbers"), is_ambiguous(codes, "texts")
    (True, False)
    """
    if storage == "texts":
        return False
    if isinstance(column, Ordered) and column.clock is not None:
        return _has_other_days(column.reading.format, storage)
    if isinstance(column, Ordered) and column.kind != "ordinal":
        return storage in ("floats", "mixed objects") and _has_other_floats(column.reading)
    labels = column.listed_texts
    if isinstance(column, Category) and column.kind == "boolean":
        return storage in _NUMERIC_STORAGES and any(_reads_otherwise(word, exact=True) for word in labels)
    if storage == "truths":
        return True  # True, TRUE and true are one value, but three texts
    if storage == "mixed objects" and any(label.strip().lower() in ("true", "false") for label in labels):
        return True
    if storage == "times":
        return any(any(letter.isdigit() for letter in label) and not _is_time(label) for label in labels)
    return any(_reads_otherwise(label, exact=storage == "whole numbers") for label in labels)


_NUMERIC_STORAGES = ("whole numbers", "floats", "mixed objects")


def _has_other_floats(reading: Reading) -> bool:
    """Whether a text such as 1.234 is another number, or none, to the reading than to a tool that guesses types."""
    return reading.decimal != "." or reading.thousands == "."


def _has_other_days(format: str, storage: Storage) -> bool:
    """Whether a tool that guesses types may take texts in a date format for other days, or for numbers.

    Tools guess the order of day, month and year from the first rows, unless a year of four digits comes first or the
    month has a name. A date that is written as digits alone loses its leading zeros as a number.
    """
    if not format or storage == "truths":
        return False
    if storage == "times":
        named = has_month_name(format) and not has_short_year(format)
        return not named and not format.startswith(("%Y-%m-%d", "%Y/%m/%d"))
    return not np.isnan(as_numbers(np.array([write_moment(_SOME_DAY, format)]))[0])


_SOME_DAY = datetime.datetime(2001, 2, 3)


def _reads_otherwise(label: str, *, exact: bool) -> bool:
    """Whether a label is a number in a non-canonical spelling (007, 1.50, 1e3) or too large for an exact float."""
    value: Any
    try:
        value = int(label)
    except ValueError:
        try:
            value = float(label)
        except ValueError:
            return False
    if not exact and math.isfinite(value) and abs(value) > MAX_EXACT_FLOAT:
        return True
    return as_labels(np.array([value], dtype=object)) != [label]


def _is_time(label: str) -> bool:
    """Whether a label is the canonical spelling of a date or time."""
    for kind in (datetime.date, datetime.datetime, datetime.time):
        with suppress(ValueError):
            if as_labels(np.array([kind.fromisoformat(label)], dtype=object)) == [label]:
                return True
    return False
