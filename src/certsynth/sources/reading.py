"""Helpers that all readers share: column names, batches, and messages that quote no cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from certsynth.errors import InputError, did_you_mean

CHUNK_ROWS = 1_000
"""Rows held as Python lists at a time. The garbage collector visits every live list repeatedly: a million rows at once
take six times as long as a thousand chunks of a thousand."""

MAX_TEXT_ROWS = 100_000
"""Most rows in a batch of Python objects. A text takes 50 bytes or more: half a million rows of ten columns would take
300 MB."""

_MAX_NAMES_SHOWN = 20
"""Most column names that a message lists."""


def positions(names: Sequence[str], header: Sequence[str], where: str) -> list[int]:
    """Indices of `names` in `header`; the error names the first missing one and lists the columns."""
    place = {name: i for i, name in enumerate(header)}
    for name in names:
        if name not in place:
            shown = ", ".join(map(repr, header[:_MAX_NAMES_SHOWN])) + (", …" if len(header) > _MAX_NAMES_SHOWN else "")
            remedy = "Correct the name in the schema or in the data."
            raise InputError(f"{where}: no column {name!r}; it has {shown}. {remedy}{did_you_mean(name, header)}")
    return [place[name] for name in names]


def refuse_duplicate_names(header: Iterable[str], where: str) -> None:
    """Refuse a header with a duplicate name. Blank names are ignored: no schema can ask for them."""
    seen: set[str] = set()
    for name in header:
        if name and name in seen:
            raise InputError(f"{where}: two columns are called {name!r}. Rename or drop one of the two.")
        seen.add(name)


def gather_columns(
    chunks: Iterable[Sequence[Sequence[Any]]], wanted: Sequence[int], rows: int
) -> Iterator[list[np.ndarray]]:
    """Yield the `wanted` columns, at most `rows` values at a time, from short lists of rows.

    >>> [[column.tolist() for column in batch] for batch in gather_columns([["ab", "cd"], ["ef"]], [1, 0], 2)]
    [[['b', 'd'], ['a', 'c']], [['f'], ['e']]]
    """
    held: list[list[Any]] = [[] for _ in wanted]
    for chunk in chunks:
        for column, i in zip(held, wanted, strict=True):
            column.extend([row[i] for row in chunk])
        while len(held[0]) >= rows:
            yield [objects(column[:rows]) for column in held]
            held = [column[rows:] for column in held]
    if held[0]:
        yield [objects(column) for column in held]


def objects(values: Sequence[Any]) -> np.ndarray:
    """A flat array of Python objects of any type; `np.array` would stack lists into a matrix."""
    return np.fromiter(values, dtype=object, count=len(values))


def is_text(values: Iterable[str]) -> bool:
    """Whether texts are free of lone surrogates, which stand for bytes that are not UTF-8."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def mask_errors(message: str) -> Iterator[None]:
    """Replace any error by an InputError with `message`: errors of other libraries may quote cells.

    A panic inside polars is not an `Exception`, so everything is caught except interrupts and exits.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:
        raise InputError(message) from None
