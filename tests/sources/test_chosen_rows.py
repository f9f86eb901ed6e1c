"""Which rows of a person are kept: by the definition, in plain Python, and by nothing else than the person's rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from certsynth.sources import chosen_rows
from certsynth.sources.chosen_rows import CANDIDATES_PER_ROW, Gathered, hash_rows, row_bytes

Row = tuple[int, int]
Table = list[tuple[int, Row]]
"""Hashes of persons, and rows of two packed columns."""

KINDS = (np.uint8, np.uint64)
MANY = 2**62


class TooMuchError(Exception):
    pass


def refuse() -> None:
    raise TooMuchError


def add(gathered: Gathered, people: Sequence[int], columns: Sequence[np.ndarray]) -> None:
    seeds = np.array(people, np.uint64)
    gathered.add(seeds.view(np.int64), seeds, columns)


def kept(table: Table, k: int, *, batch: int = 1000, memory: int = MANY) -> Counter[tuple[Row, int]]:
    """Kept rows, each with the number of rows that are kept of its person."""
    gathered = Gathered(k, memory=memory, refuse=refuse)
    for start in range(0, len(table), batch):
        part = table[start : start + batch]
        columns = [np.array([row[j] for _, row in part], kind) for j, kind in enumerate(KINDS)]
        add(gathered, [person for person, _ in part], columns)
    found: Counter[tuple[Row, int]] = Counter()
    for of_person, (a, b) in gathered.choose():
        found.update(zip(zip(a.tolist(), b.tolist(), strict=True), of_person.tolist(), strict=True))
    return found


def mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def by_definition(table: Table, k: int) -> Counter[tuple[Row, int]]:
    found: Counter[tuple[Row, int]] = Counter()
    for person in {person for person, _ in table}:
        copies = Counter(row for who, row in table if who == person)
        hashes = {row: mix(mix(person ^ row[0]) ^ row[1]) for row in copies}
        candidates = sorted(copies, key=hashes.__getitem__)[: CANDIDATES_PER_ROW * k]
        marks = [(mix(hashes[row] ^ mix(copy)), row) for row in candidates for copy in range(copies[row])]
        chosen = [row for _, row in sorted(marks)[:k]]
        found.update((row, len(chosen)) for row in chosen)
    return found


def some_table(rng: np.random.Generator, rows: int) -> Table:
    people = rng.integers(0, 2**64, 7, dtype=np.uint64).tolist()
    values = rng.choice([2, 3, 1000])
    return [
        (people[min(int(rng.exponential(2)), 6)], (int(rng.integers(values) % 256), int(rng.integers(values))))
        for _ in range(rows)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_the_rows_that_are_kept_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = some_table(rng, int(rng.integers(1, 200)))
    for k in (1, 2, 5):
        expected = by_definition(table, k)
        assert kept(table, k) == expected
        for batch in (1, 7):
            assert kept(table, k, batch=batch) == expected
        assert max(expected.values()) <= k * len({person for person, _ in table})


@pytest.mark.parametrize("divided", [False, True])
def test_order_batches_and_when_rows_are_sorted_do_not_matter(divided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_rows, "MIN_DIVIDED_ROWS", 16 if divided else MANY)
    monkeypatch.setattr(chosen_rows, "MAX_WAITING_BYTES", 500)
    rng = np.random.default_rng(5)
    for _ in range(15):
        table = some_table(rng, 150)
        expected = by_definition(table, 3)
        for batch in (1, 10, 33, 150):
            shuffled = [table[i] for i in rng.permutation(len(table))]
            assert kept(shuffled, 3, batch=batch) == expected


def test_all_orders_and_partitions_of_a_small_table() -> None:
    table = [(9, (0, 1)), (9, (0, 1)), (9, (2, 2)), (2**63, (0, 1)), (2**63, (1, 1))]
    expected = by_definition(table, 1)
    for order in itertools.permutations(table):
        for batch in (1, 2, 3, 5):
            assert kept(list(order), 1, batch=batch) == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_person_changes_the_rows_of_nobody_else(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_rows, "MAX_WAITING_BYTES", 500)
    rng = np.random.default_rng(seed)
    table = some_table(rng, 200)
    for person in {person for person, _ in table}:
        own, others = ([each for each in table if (each[0] == person) is mine] for mine in (True, False))
        assert kept(table, 2, batch=20) == kept(own, 2) + kept(others, 2)
        assert kept(own, 2).total() == min(len(own), 2)


def test_different_rows_with_one_hash_are_taken_alike_in_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody meets such rows by chance, but anybody can make them, since the hash is public."""

    def few_hashes(seeds: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray:
        return hash_rows(seeds, columns) % np.uint64(3)

    monkeypatch.setattr(chosen_rows, "hash_rows", few_hashes)
    monkeypatch.setattr(chosen_rows, "MAX_WAITING_BYTES", 500)
    rng = np.random.default_rng(3)
    for _ in range(20):
        table = some_table(rng, 60)
        first = kept(table, 2)
        for batch in (1, 5, 60):
            assert kept([table[i] for i in rng.permutation(60)], 2, batch=batch) == first


@pytest.mark.parametrize("equal", [True, False])
def test_one_person_with_a_million_rows(equal: bool) -> None:
    rows = 10**6
    gathered = Gathered(4, memory=2**22, refuse=refuse)  # far less than all of them
    for start in range(0, rows, 100_000):
        values = np.zeros(100_000, np.uint64) if equal else np.arange(start, start + 100_000, dtype=np.uint64)
        add(gathered, [5] * 100_000, [values])
    assert gathered.rows_of_persons().tolist() == [rows if equal else 16]
    ((of_person, (column,)),) = gathered.choose()
    assert of_person.tolist() == [4] * 4
    assert len(set(column.tolist())) == (1 if equal else 4)


def test_rows_of_persons_are_exact_up_to_the_number_of_candidates() -> None:
    """`Contributions` counts no more of a person."""
    from certsynth.queries.contributions import COUNTED_ROWS_FACTOR

    assert COUNTED_ROWS_FACTOR <= CANDIDATES_PER_ROW
    rng = np.random.default_rng(2)
    for _ in range(20):
        table = some_table(rng, 100)
        gathered = Gathered(2, memory=MANY, refuse=refuse)
        columns: list[Any] = [np.array([row[j] for _, row in table], kind) for j, kind in enumerate(KINDS)]
        add(gathered, [person for person, _ in table], columns)
        expected = Counter(person for person, _ in table)
        found = gathered.rows_of_persons().clip(max=8)
        assert sorted(found.tolist()) == sorted(min(rows, 8) for rows in expected.values())


def test_memory_that_does_not_suffice_is_refused() -> None:
    size = row_bytes([np.zeros(0, np.uint64)]) + chosen_rows.COUNT_BYTES
    persons = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)
    enough, less = (Gathered(1, memory=2 * 1000 * size - short, refuse=refuse) for short in (0, 1))
    add(enough, persons.tolist(), [persons])
    assert sum(len(each.of_person) for each in enough.choose()) == 1000
    with pytest.raises(TooMuchError):
        add(less, persons.tolist(), [persons])
