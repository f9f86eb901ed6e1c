"""Types that a column of a frame is stored in, and labels that such a type cannot tell apart.

Somebody chose the types of a frame, and often it was a reader that guessed them from rows: `007` is read as 7, until
one row has `00X`. How a frame came to be cannot be seen. So a type is refused where labels that the schema lists would
be read otherwise than as texts. That depends on the schema and on the type alone, never on a value.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import narwhals as nw
import numpy as np

from certsynth.domain import Column, Schema
from certsynth.domain.cleaning import as_labels
from certsynth.errors import InputError

Storage = Literal["whole numbers", "floats", "truths", "times", "mixed objects", "texts"]

EXACT_FLOATS = 2**53
"""Up to here every whole number is a float of its own."""


def storage_of(kind: nw.dtypes.DType) -> Storage:
    """What a column of a frame holds, by its type."""
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
    """The same for a type of DuckDB.

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
    """The same for a type of Arrow.

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
    """Refuse columns whose listed labels would be read otherwise if they were stored as texts."""
    for column, storage in zip(schema, storages, strict=True):
        if is_ambiguous(column, storage):
            boolean = ' or make it a column of kind "boolean"' if storage == "truths" else ""
            found = f"column {column.name!r} is stored as {storage}, which cannot tell its labels apart"
            raise InputError(f"{where}: {found}. Read it as text, as with dtype=str{boolean}, or give the file itself.")


def is_ambiguous(column: Column, storage: Storage) -> bool:
    """Whether one of the labels is read otherwise from this type than from a text.

    >>> from certsynth.domain import Category
    >>> codes = Category(name="code", values=("007", "12"))
    >>> is_ambiguous(codes, "whole numbers"), is_ambiguous(codes, "texts")
    (True, False)
    """
    labels = column.distinguished_texts
    if labels is None or storage == "texts":
        return False
    if storage == "truths":
        return True  # True, TRUE and true are one value, but three texts
    if storage == "mixed objects" and any(label.strip().lower() in ("true", "false") for label in labels):
        return True
    if storage == "times":
        return any(any(letter.isdigit() for letter in label) and not _is_time(label) for label in labels)
    return any(_reads_otherwise(label, exact=storage == "whole numbers") for label in labels)


def _reads_otherwise(label: str, *, exact: bool) -> bool:
    """Whether a label is a number that is not written as that number is: 007, 1.50, 1e3, or too large for a float."""
    value: Any
    try:
        value = int(label)
    except ValueError:
        try:
            value = float(label)
        except ValueError:
            return False
    if not exact and math.isfinite(value) and abs(value) > EXACT_FLOATS:
        return True
    return as_labels(np.array([value], dtype=object)) != [label]


def _is_time(label: str) -> bool:
    """Whether it is written as a date or time of that value is."""
    for kind in (datetime.date, datetime.datetime, datetime.time):
        with suppress(ValueError):
            if as_labels(np.array([kind.fromisoformat(label)], dtype=object)) == [label]:
                return True
    return False
