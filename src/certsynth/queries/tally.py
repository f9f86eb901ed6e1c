"""What is asked of each row by itself, so that answers add up: whoever has the rows, and in however many parts.

All that certsynth learns about private rows it learns by tallies. They are plain values that can be sent to where the
rows are; what comes back are vectors of whole numbers, and the vectors of two parts of a table, added, are those of
the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from certsynth.base.arrays import Ints

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="Sums")

Batch = Sequence[np.ndarray]
"""Cleaned rows: one array for each column of the schema."""


class Sums(Protocol):
    """Vectors of whole numbers that grow, and can be told as entries that are not 0."""

    def entries(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Number of a vector, places in it, and what is there."""
        ...

    def put(self, vector: int, places: Ints, values: Ints) -> None:
        """Add entries. A place may come more than once."""
        ...


class Tally(Protocol[S, T_co]):
    """A question to every row. `add` must not depend on how rows come in batches, or on their order."""

    def begin(self) -> S:
        """Sums of no rows."""
        ...

    def add(self, sums: S, batch: Batch) -> None:
        """Add what a batch of cleaned rows has to say."""
        ...

    def result(self, sums: S) -> T_co:
        """What all rows together say."""
        ...


class Rows(Protocol):
    """A table that can be asked, as often as one likes, wherever its rows are."""

    def __call__(self, tally: Tally[Any, T]) -> T: ...


def tally_batches(batches: Iterable[Batch], tally: Tally[Any, T]) -> T:
    """Put the question to rows that are read here.

    >>> tally_batches([[np.arange(3)], [np.arange(4)]], RowCount())
    7
    """
    sums = tally.begin()
    for batch in batches:
        tally.add(sums, batch)
    return tally.result(sums)


def in_memory(*batches: Batch) -> Rows:
    """A table in memory."""

    def ask(tally: Tally[Any, T]) -> T:
        return tally_batches(batches, tally)

    return ask


def zeros(sizes: Iterable[int]) -> list[Ints]:
    """Vectors of no rows. Every row adds at most 2^20 to an entry: 64 bits are enough for 2^43 rows."""
    return [np.zeros(size, dtype=np.int64) for size in sizes]


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """Vectors that have room for every entry."""

    vectors: list[Ints]

    @classmethod
    def of(cls, sizes: Iterable[int]) -> Dense:
        return cls(zeros(sizes))

    def entries(self) -> Iterator[tuple[int, Ints, Ints]]:
        for vector, values in enumerate(self.vectors):
            places = np.flatnonzero(values)
            yield vector, places, values[places]

    def put(self, vector: int, places: Ints, values: Ints) -> None:
        np.add.at(self.vectors[vector], places, values)


@dataclass(frozen=True, slots=True)
class RowCount:
    """The number of rows."""

    def begin(self) -> Dense:
        return Dense.of([1])

    def add(self, sums: Dense, batch: Batch) -> None:
        sums.vectors[0] += len(batch[0])

    def result(self, sums: Dense) -> int:
        return int(sums.vectors[0][0])
