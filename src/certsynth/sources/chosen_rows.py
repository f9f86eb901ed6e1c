"""The choice among the rows of each person: an exact function of the set of the person's own rows, with copies.

Of each person, the CANDIDATES_PER_ROW · k different rows with the smallest hashes are candidates, with the number of
their copies; of all copies of these, the k with the smallest hashes of row and copy are kept. Neither the order of rows
nor any other person matters. docs/explanation/proofs/persons.md has the proofs.

Rows are gathered in parts by the first bits of the person's number, spread at random. From time to time each part is
sorted, and rows that can no longer be kept are thrown away: a row that is not among the first of some rows is not among
the first of more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.base.threads import in_threads
from certsynth.sources.person_ids import mix_bits

CANDIDATES_PER_ROW = 4
"""Different rows of a person that are remembered for each row that can be kept. A person with no more different rows
than these is sampled evenly; of others, rows that occur often are kept a little too rarely."""

MAX_COPIES = 2**32 - 1
"""Copies of a row that are counted, at most."""

MAX_WAITING_BYTES = 2**28
"""Bytes of rows that are gathered before the first sort; later ones wait until they take as much as the candidates."""

PART_BITS = 8
"""Bits of a person, as the parts of large tables are numbered: a part fits into the cache while it is sorted."""

MIN_DIVIDED_ROWS = 2**17
"""Rows from which a table is divided."""

HASH_BYTES, COUNT_BYTES = 16, 4
"""Bytes of each gathered row for the person and the hash of the row, and for the number of copies of a candidate."""


class Part(NamedTuple):
    """Candidates of some persons, those of a person together and sorted by the hashes of rows."""

    person: np.ndarray
    hashes: np.ndarray
    counts: np.ndarray
    columns: list[np.ndarray]


class Chosen(NamedTuple):
    """The rows that are kept of a part: for each, the number of rows that are kept of its person."""

    of_person: Ints
    columns: list[np.ndarray]


class Gathered:
    """Rows of persons, of which those that can still be kept are remembered.

    `refuse` is called if they take more than `memory` bytes.
    """

    def __init__(self, kept: int, *, memory: int, refuse: Callable[[], None]) -> None:
        self.kept, self.memory, self.refuse = kept, memory, refuse
        self._waiting: list[_Divided] = []
        self._parts: list[Part | None] = [None]
        self._waiting_bytes = self._part_bytes = self._other_bytes = 0

    def add(self, numbers: Ints, seeds: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        """Add rows of packed columns, given the numbers of their persons, and hashes that begin those of the rows."""
        person = spread_numbers(numbers)
        if not len(person):
            return
        rows = _Divided(np.array([0, len(person)]), person, hash_rows(seeds, columns), list(columns))
        self._waiting.append(_divide(rows) if len(self._parts) > 1 or len(person) >= MIN_DIVIDED_ROWS else rows)
        self._waiting_bytes += row_bytes(columns) * len(person)
        if self._waiting_bytes > max(min(MAX_WAITING_BYTES, self.memory // 8), self._part_bytes):
            self._compact()

    def hold(self, size: int) -> None:
        """Count bytes of other rows that are kept in memory."""
        self._other_bytes += size
        self.check_memory()

    def choose(self) -> Iterator[Chosen]:
        """Yield the rows that are kept, part by part, and forget all of them."""
        self._compact()
        for i, part in enumerate(self._parts):
            self._parts[i] = None
            if part is not None:
                copies, of_person = keep_copies(part.person, part.hashes, part.counts, self.kept)
                chosen = np.repeat(np.arange(len(copies)), copies)
                yield Chosen(of_person[chosen], [values[chosen] for values in part.columns])

    def rows_of_persons(self) -> Ints:
        """The number of rows of each person: exact up to the number of candidates, and at least that beyond."""
        self._compact()
        parts = [_sum_by_person(part) for part in self._parts if part is not None]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _compact(self) -> None:
        """Sort the rows that wait into their parts, and forget those that cannot be kept."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        rows = sum(len(each.person) for each in waiting)
        if not rows:
            return
        if len(self._parts) == 1 and self._parts[0] is None and rows >= MIN_DIVIDED_ROWS:
            self._parts = [None] * 2**PART_BITS
        if len(self._parts) > 1:
            waiting = [each if len(each.starts) > 2 else _divide(each) for each in waiting]
        else:
            waiting = [each._replace(starts=np.array([0, len(each.person)])) for each in waiting]

        def compact(i: int) -> None:
            self._parts[i] = self._join(self._parts[i], [each.part(i) for each in waiting])

        in_threads(compact, range(len(self._parts)), rows=rows)
        held = [part for part in self._parts if part is not None]
        self._part_bytes = sum((row_bytes(part.columns) + COUNT_BYTES) * len(part.person) for part in held)
        self.check_memory()

    def check_memory(self, more: int = 0) -> None:
        """Refuse the rows if they, with `more` bytes, take too much memory."""
        if 2 * self._part_bytes + self._other_bytes + more > self.memory:
            self.refuse()

    def _join(
        self, part: Part | None, slices: Sequence[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]
    ) -> Part | None:
        """The candidates among those of a part and more rows."""
        more = [each for each in slices if len(each[0])]
        if not more:
            return part
        held = [] if part is None else [(part.person, part.hashes, part.columns)]
        every = held + more
        person, hashes = (np.concatenate([each[j] for each in every]) for j in range(2))
        columns = [np.concatenate(values) for values in zip(*(each[2] for each in every), strict=True)]
        old = 0 if part is None else len(part.person)
        counts = np.ones(len(person), np.uint32)
        if part is not None:
            counts[:old] = part.counts
        order = _sort_rows(person, hashes)
        firsts, sums, twins = _join_rows(person, hashes, counts, order, CANDIDATES_PER_ROW * self.kept)
        if any((values[twins[:, 0]] != values[twins[:, 1]]).any() for values in columns):
            # Different rows with one hash, which chance does not bring about: the least of them stands for all.
            order = np.lexsort((*columns, hashes, person))
            firsts, sums, _ = _join_rows(person, hashes, counts, order, CANDIDATES_PER_ROW * self.kept)
        return Part(person[firsts], hashes[firsts], sums, [values[firsts] for values in columns])


class _Divided(NamedTuple):
    """Rows in the order of their parts; part i begins at `starts[i]`. At first, all rows are one part."""

    starts: Ints
    person: np.ndarray
    hashes: np.ndarray
    columns: list[np.ndarray]

    def part(self, i: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        here = slice(self.starts[i], self.starts[i + 1])
        return self.person[here], self.hashes[here], [values[here] for values in self.columns]


def _divide(rows: _Divided) -> _Divided:
    order, starts = _order_by_bits(rows.person, 0, PART_BITS)
    return _Divided(starts, rows.person[order], rows.hashes[order], [values[order] for values in rows.columns])


def row_bytes(columns: Sequence[np.ndarray]) -> int:
    """Bytes of one gathered row."""
    return HASH_BYTES + sum(values.itemsize for values in columns)


def hash_rows(seeds: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray:
    """A hash of each row of packed columns, which begins with that of its person."""
    found = seeds.copy()
    for values in columns:
        _mix_in(found, values)
    return found


@njit(cache=True, nogil=True)
def spread_numbers(numbers):  # type: ignore[no-untyped-def]
    """Numbers of persons, one to one, as 64-bit integers that look random."""
    found = np.empty(len(numbers), np.uint64)
    for i in range(len(numbers)):
        found[i] = mix_bits(np.uint64(numbers[i]))
    return found


@njit(cache=True, nogil=True)
def _mix_in(found, values):  # type: ignore[no-untyped-def]
    for i in range(len(found)):
        found[i] = mix_bits(found[i] ^ np.uint64(values[i]))


@njit(cache=True, nogil=True)
def _order_by_bits(keys, skipped, bits):  # type: ignore[no-untyped-def]
    """A stable order by `bits` bits of the keys, after the first `skipped`; and where each value of them begins."""
    starts = np.zeros((1 << bits) + 1, np.int64)
    left, right = np.uint64(skipped), np.uint64(64 - bits)
    for key in keys:
        starts[np.int64((key << left) >> right) + 1] += 1
    for i in range(1 << bits):
        starts[i + 1] += starts[i]
    places, order = starts[:-1].copy(), np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        bucket = np.int64((keys[i] << left) >> right)
        order[places[bucket]] = i
        places[bucket] += 1
    return order, starts


@njit(cache=True, nogil=True)
def _sort_rows(person, hashes):  # type: ignore[no-untyped-def]
    """The order by person and hash: persons by their next bits, then within each bucket."""
    bits = 1
    while bits < 16 and len(person) >> bits > 4:
        bits += 1
    order, starts = _order_by_bits(person, PART_BITS, bits)  # small tables may have more in a bucket
    for bucket in range(1 << bits):
        start, end = starts[bucket], starts[bucket + 1]
        if end - start > 48:
            inside = order[start:end].copy()
            inside = inside[np.argsort(hashes[inside], kind="mergesort")]
            order[start:end] = inside[np.argsort(person[inside], kind="mergesort")]
            continue
        for i in range(start + 1, end):
            row, at = order[i], i
            p, h = person[row], hashes[row]
            while at > start:
                before = order[at - 1]
                if person[before] < p or (person[before] == p and hashes[before] <= h):
                    break
                order[at] = before
                at -= 1
            order[at] = row
    return order


@njit(cache=True, nogil=True)
def _join_rows(person, hashes, counts, order, most):  # type: ignore[no-untyped-def]
    """The first rows of each person with their numbers of copies, and pairs of rows that were taken for equal."""
    firsts, sums = np.empty(len(order), np.int64), np.empty(len(order), np.uint32)
    twins = np.empty((len(order), 2), np.int64)
    found = rank = pairs = 0
    for i in range(len(order)):
        row = order[i]
        before = order[i - 1] if i else row
        if i and person[row] == person[before]:
            if hashes[row] == hashes[before]:
                if rank <= most:
                    total = np.int64(sums[found - 1]) + np.int64(counts[row])
                    sums[found - 1] = total if total < MAX_COPIES else MAX_COPIES
                    twins[pairs, 0], twins[pairs, 1] = firsts[found - 1], row
                    pairs += 1
                continue
        else:
            rank = 0
        rank += 1
        if rank <= most:
            firsts[found], sums[found] = row, counts[row]
            found += 1
    return firsts[:found].copy(), sums[:found].copy(), twins[:pairs].copy()


@njit(cache=True, nogil=True)
def keep_copies(person, hashes, counts, k):  # type: ignore[no-untyped-def]
    """How many copies of each candidate are kept: those with the k smallest hashes of all copies of a person's. Also
    returns, for each candidate, how many rows are kept of its person."""
    kept, of_person = np.zeros(len(person), np.int64), np.empty(len(person), np.int64)
    best, owner = np.empty(k, np.uint64), np.empty(k, np.int64)
    i = 0
    while i < len(person):
        end, held = i, 0
        while end < len(person) and person[end] == person[i]:
            for copy in range(counts[end]):
                mark = mix_bits(hashes[end] ^ mix_bits(np.uint64(copy)))
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
        of_person[i:end] = held
        i = end
    return kept, of_person


def _sum_by_person(part: Part) -> Ints:
    new = np.ones(len(part.person), bool)
    new[1:] = part.person[1:] != part.person[:-1]
    starts = np.flatnonzero(new)
    return np.add.reduceat(part.counts.astype(np.int64), starts) if len(starts) else starts
