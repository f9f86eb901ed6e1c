"""What all readers share: names of columns, batches of them, and messages without cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from certsynth.errors import InputError, did_you_mean

# Python's collector walks every list that is alive, again and again: a million rows at once take six times as
# long as a thousand times a thousand.
BITE = 1_000

# A text is an object of 50 bytes and more: half a million rows of ten columns would take 300 MB.
TEXT_ROWS = 100_000

_SHOWN = 20


def positions(names: Sequence[str], header: Sequence[str], where: str) -> list[int]:
    """Where `names` stand in `header`; says which one is missing, and what there is instead."""
    place = {name: i for i, name in enumerate(header)}
    for name in names:
        if name not in place:
            shown = ", ".join(map(repr, header[:_SHOWN])) + (", …" if len(header) > _SHOWN else "")
            remedy = "Correct the name in the schema or in the data."
            raise InputError(f"{where}: no column {name!r}; it has {shown}. {remedy}{did_you_mean(name, header)}")
    return [place[name] for name in names]


def refuse_twins(header: Iterable[str], where: str) -> None:
    """A name that stands twice is no name. Blank ones are not names, either: no schema can ask for them."""
    seen: set[str] = set()
    for name in header:
        if name and name in seen:
            raise InputError(f"{where}: two columns are called {name!r}. Rename or drop one of the two.")
        seen.add(name)


def gathered(bites: Iterable[Sequence[Sequence[Any]]], wanted: Sequence[int], rows: int) -> Iterator[list[np.ndarray]]:
    """Columns of at most `rows` values from short lists of rows.

    >>> [[column.tolist() for column in batch] for batch in gathered([["ab", "cd"], ["ef"]], [1, 0], 2)]
    [[['b', 'd'], ['a', 'c']], [['f'], ['e']]]
    """
    held: list[list[Any]] = [[] for _ in wanted]
    for bite in bites:
        for column, i in zip(held, wanted, strict=True):
            column.extend([row[i] for row in bite])
        while len(held[0]) >= rows:
            yield [objects(column[:rows]) for column in held]
            held = [column[rows:] for column in held]
    if held[0]:
        yield [objects(column) for column in held]


def objects(values: Sequence[Any]) -> np.ndarray:
    """A flat array of Python objects, whatever they are: `np.array` would stack lists to a matrix."""
    return np.fromiter(values, dtype=object, count=len(values))


@contextmanager
def own_words(message: str) -> Iterator[None]:
    """Errors of other libraries quote cells: whatever they say, `message` is said instead.

    A panic inside polars is no `Exception`, so that all are caught but what Python itself sends through a program.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:
        raise InputError(message) from None
