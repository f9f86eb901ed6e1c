"""Bound contributions: at most some rows of each person are kept, chosen by a keyed hash of their own rows alone.

Of each person, the CANDIDATES_PER_ROW · k different rows with the smallest hashes are candidates, with the number of
their copies; of all copies of these, the k with the smallest hashes of row and copy are kept. The result depends on the
set of a person's rows only, not on their order nor on any other person, and what has to be remembered does not grow
with the number of rows beyond that. docs/explanation/proofs/persons.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.base.progress import Progress, silent
from certsynth.domain.persons import Persons
from certsynth.domain.schema import Schema
from certsynth.queries.contributions import Contributions
from certsynth.queries.tally import Batch, Rows, T, Tally
from certsynth.sources.person_ids import NOBODY, PersonIds

CANDIDATES_PER_ROW = 4
"""Different rows of a person that are remembered for each row that can be kept. A person with no more different rows
than these is sampled evenly; of others, rows that occur often are kept a little too rarely."""

MIN_COMPACTED_ROWS = 2**20
"""Rows that are gathered, at least, before those that cannot be kept are thrown away."""

BATCH_ROWS = 500_000

PERSONS_PHASE = "choosing rows of each person"


@dataclass(slots=True, eq=False, repr=False)
class KeptRows:
    """The rows that are kept of a table, with their weights. They are chosen in one pass, when first needed."""

    source: Any
    schema: Schema
    persons: Persons
    memory: int | None = None
    progress: Progress = silent
    _groups: list[tuple[int, list[np.ndarray]]] | None = field(default=None, init=False)
    _totals: Contributions | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return "KeptRows(<private>)"

    def rows_of(self, schema: Schema, phase: str) -> Rows:
        """Return a function that evaluates tallies over the kept rows; `schema` has some of the columns."""
        places = [self.schema.names.index(name) for name in schema.names]

        def ask(tally: Tally[Any, T]) -> T:
            self.progress(phase, 0, None)
            sums = tally.begin()
            for weight, columns in self._kept():
                part = sums if weight == 1 else tally.begin()
                for start in range(0, len(columns[0]), BATCH_ROWS):
                    tally.add(part, [columns[j][start : start + BATCH_ROWS] for j in places])
                if part is not sums:
                    for vector, at, values in part.entries():
                        sums.put(vector, at, values * weight)
            return tally.result(sums)

        return ask

    def count(self) -> int:
        """The weight of all kept rows, in parts."""
        return sum(weight * len(columns[0]) for weight, columns in self._kept())

    def contributions(self) -> Contributions:
        self._kept()
        assert self._totals is not None
        return self._totals

    def _kept(self) -> list[tuple[int, list[np.ndarray]]]:
        """The kept rows by weight: rows of the same weight are together."""
        if self._groups is None:
            self._groups = list(self._choose())
        return self._groups

    def _choose(self) -> Iterator[tuple[int, list[np.ndarray]]]:
        k, gathered = self.persons.rows, Gathered(CANDIDATES_PER_ROW * self.persons.rows)
        ids = PersonIds()
        names = (self.persons.column, *self.schema.names)
        rows = np.zeros(0, np.int64)
        for raw, *columns in self.source.batches(names):
            clean = [column.clean(values) for column, values in zip(self.schema, columns, strict=True)]
            person = ids.number(raw)
            known = person != NOBODY
            if self.persons.missing == "separate":
                person[~known] = ids.add_separate(int((~known).sum()))
            else:
                person, clean = person[known], [values[known] for values in clean]
            hashes = ids.hashes
            rows = np.concatenate([rows, np.zeros(len(ids) - len(rows), np.int64)])
            rows += np.bincount(person, minlength=len(ids))
            gathered.add(person, hash_rows(hashes[person], clean), clean)
            self.progress(PERSONS_PHASE, 0, None)
        gathered.compact()
        copies = keep_copies(gathered.person, gathered.hashes, gathered.counts, k)
        kept = np.minimum(rows, k)
        self._totals = Contributions.of(rows, k)
        chosen = np.repeat(np.arange(len(copies)), copies)
        of_person = kept[gathered.person[chosen]]
        if self.persons.weigh == "rows":
            yield 1, [values[chosen] for values in gathered.columns]
            return
        for m in range(1, k + 1):
            part = chosen[of_person == m]
            yield self.persons.parts // m, [values[part] for values in gathered.columns]


def keep_rows(
    source: Any, schema: Schema, persons: Persons, *, memory: int | None = None, progress: Progress = silent
) -> KeptRows:
    """The rows of a table that are kept. A missing column is refused here, before any row is read."""
    source.batches((persons.column, *schema.names))
    return KeptRows(source, schema, persons, memory, progress)


class Gathered:
    """Different rows of persons with their hashes and numbers of copies, at most `most` of each person once compact."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.person = np.zeros(0, np.int64)
        self.hashes = np.zeros(0, np.uint64)
        self.counts = np.zeros(0, np.int64)
        self.columns: list[np.ndarray] = []
        self._waiting: list[tuple[Ints, np.ndarray, list[np.ndarray]]] = []
        self._room = MIN_COMPACTED_ROWS

    def add(self, person: Ints, hashes: np.ndarray, columns: list[np.ndarray]) -> None:
        self._waiting.append((person, hashes, columns))
        self._room -= len(person)
        if self._room < 0:
            self.compact()
            self._room = max(MIN_COMPACTED_ROWS, len(self.person))

    def compact(self) -> None:
        """Sort by person and hash, join equal rows, and forget all but the first of each person."""
        if not self._waiting:
            return
        people, marks, columns = zip(*self._waiting, strict=True)
        self._waiting = []
        person = np.concatenate([self.person, *people])
        hashes = np.concatenate([self.hashes, *marks])
        counts = np.concatenate([self.counts, np.ones(len(person) - len(self.person), np.int64)])
        held = [self.columns] if self.columns else []
        whole = [np.concatenate(parts) for parts in zip(*held, *columns, strict=True)]
        order = np.lexsort((hashes, person))
        person, hashes = person[order], hashes[order]
        new_person = np.ones(len(person), bool)
        new_person[1:] = person[1:] != person[:-1]
        new = new_person.copy()
        new[1:] |= hashes[1:] != hashes[:-1]
        firsts = np.flatnonzero(new)
        sums = np.add.reduceat(counts[order], firsts) if len(firsts) else counts[:0]
        starts = np.flatnonzero(new_person[firsts])
        rank = np.arange(len(firsts)) - np.repeat(starts, np.diff(np.append(starts, len(firsts))))
        stay = rank < self.most
        at = order[firsts[stay]]
        self.person, self.hashes, self.counts = person[firsts[stay]], hashes[firsts[stay]], sums[stay]
        self.columns = [values[at] for values in whole]


def hash_rows(seeds: np.ndarray, columns: Batch) -> np.ndarray:
    """A hash of each cleaned row, beginning with that of its person. Equal values have equal bits: there is one NaN,
    and one 0."""
    found = seeds.copy()
    for values in columns:
        if values.dtype.kind == "f":
            bits = np.where(np.isnan(values), np.nan, values.astype(np.float64) + 0.0).view(np.uint64)
        else:
            bits = values.astype(np.int64).view(np.uint64)
        found = mix(found ^ bits)
    return found


def mix(values: np.ndarray) -> np.ndarray:
    """A bijection of 64-bit integers whose results look random."""
    with np.errstate(over="ignore"):
        x = values + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


@njit(cache=True)
def _mix_one(x):  # type: ignore[no-untyped-def]
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def keep_copies(person, hashes, counts, k):  # type: ignore[no-untyped-def]
    """How many copies of each candidate are kept: those with the k smallest hashes of all copies of a person's."""
    kept = np.zeros(len(person), np.int64)
    best, owner = np.empty(k, np.uint64), np.empty(k, np.int64)
    i = 0
    while i < len(person):
        end, held = i, 0
        while end < len(person) and person[end] == person[i]:
            for copy in range(counts[end]):
                mark = _mix_one(hashes[end] ^ _mix_one(np.uint64(copy)))
                if held == k and mark >= best[k - 1]:
                    continue
                at = held if held < k else k - 1
                while at > 0 and best[at - 1] > mark:
                    best[at], owner[at] = best[at - 1], owner[at - 1]
                    at -= 1
                best[at], owner[at] = mark, end
                held = min(held + 1, k)
            end += 1
        for at in range(held):
            kept[owner[at]] += 1
        i = end
    return kept
