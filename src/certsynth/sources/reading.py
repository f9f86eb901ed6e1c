"""Helpers that all readers share: column names, batches, and messages that quote no cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from certsynth.domain.cleaning import as_numbers
from certsynth.errors import InputError, did_you_mean

CHUNK_ROWS = 1_000
"""Rows held as Python lists at a time. The garbage collector visits every live list repeatedly: a million rows at once
take six times as long as a thousand chunks of a thousand."""

MAX_TEXT_ROWS = 100_000
"""Most rows in a batch of Python objects. A text takes 50 bytes or more: half a million rows of ten columns would take
300 MB."""

SAVE_AS_UTF8 = "Save the file as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8"
"""The remedy for text in another encoding. WINDOWS-1252 is the commonest, and contains printable Latin-1."""

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


def find_columns(names: Sequence[str], header: Sequence[str], where: str) -> list[int]:
    """As `positions`, for a header that is the first line of a file. If no name fits, it may be missing: no message
    quotes it then, since the first line is private."""
    if set(names) & set(header):
        return positions(names, header, where)
    alike = {name.strip().casefold() for name in header}
    if twin := next((name for name in names if name.strip().casefold() in alike), None):
        found = f"no column {twin!r}, but one that differs in case or in blanks. Write it alike in both"
    elif _looks_like_a_row(header):
        found = f"no column {names[0]!r}, and the first line looks like a row. Add a header"
    else:
        found = f"no column {names[0]!r}, nor any other of the schema. Its first line must name the columns"
    raise InputError(f"{where}: {found}.")


def check_header(header: Sequence[str], where: str) -> None:
    """Refuse a first line that cannot name columns. No message quotes it: it may be a private row."""
    if not any(header):
        raise InputError(f"{where}: empty, or without a header. The first line must name the columns.")
    # UTF-16 without a byte order mark contains NUL characters.
    if not is_text(header) or any("\0" in name for name in header):
        raise InputError(f"{where}: the header is not text in UTF-8. {SAVE_AS_UTF8}.")
    places: dict[str, int] = {}
    for place, name in enumerate(header, 1):
        if name and name in places:
            if _looks_like_a_row(header):
                found = "two columns have the same name, and the first line looks like a row. Add a header"
            else:
                found = f"columns {places[name]} and {place} have the same name. Rename or drop one of them"
            raise InputError(f"{where}: {found}.")
        places[name] = place


def _looks_like_a_row(header: Sequence[str]) -> bool:
    """Whether a name is a number: then the header is probably missing, and the first line is private."""
    return not np.isnan(as_numbers(objects(header))).all()


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
