"""Tallies: sums over rows, to which each row contributes by itself.

certsynth learns everything it knows about private rows through tallies. Rows stay at their source; only sums come back.
A tally is a plain value that can be sent to the rows, and its result is a set of integer vectors. The vectors of a
table are the sums of the vectors of its parts, however it is divided.
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
    """Integer vectors that accumulate, and can be listed by their non-zero entries."""

    def entries(self) -> Iterator[tuple[int, Ints, Ints]]:
        """For each vector its number, and the positions and values of its non-zero entries."""
        ...

    def put(self, vector: int, places: Ints, values: Ints) -> None:
        """Add values at positions of a vector; positions may repeat."""
        ...


class Tally(Protocol[S, T_co]):
    """A sum over rows. `add` must not depend on the order of rows or on how they are divided into batches."""

    def begin(self) -> S:
        """Sums of no rows."""
        ...

    def add(self, sums: S, batch: Batch) -> None:
        """Add the contributions of a batch of cleaned rows."""
        ...

    def result(self, sums: S) -> T_co:
        """The result for all rows, from their sums."""
        ...


class Rows(Protocol):
    """A table that evaluates tallies, any number of times, wherever its rows are."""

    def __call__(self, tally: Tally[Any, T]) -> T: ...


def tally_batches(batches: Iterable[Batch], tally: Tally[Any, T]) -> T:
    """Evaluate a tally on cleaned rows that come in batches.

    >>> tally_batches([[np.arange(3)], [np.arange(4)]], RowCount())
    7
    """
    sums = tally.begin()
    for batch in batches:
        tally.add(sums, batch)
    return tally.result(sums)


def in_memory(*batches: Batch) -> Rows:
    """A table held in memory."""

    def evaluate(tally: Tally[Any, T]) -> T:
        return tally_batches(batches, tally)

    return evaluate


def zeros(sizes: Iterable[int]) -> list[Ints]:
    """Vectors of the given sizes, all 0. A row adds at most 2^20 to an entry, so 64 bits suffice for 2^43 rows."""
    return [np.zeros(size, dtype=np.int64) for size in sizes]


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """Vectors that store every entry."""

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
    """The tally of the number of rows."""

    def begin(self) -> Dense:
        return Dense.of([1])

    def add(self, sums: Dense, batch: Batch) -> None:
        sums.vectors[0] += len(batch[0])

    def result(self, sums: Dense) -> int:
        return int(sums.vectors[0][0])
