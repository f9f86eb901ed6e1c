"""Truths and distances are remembered, and the same as if they were computed again."""

from __future__ import annotations

import numpy as np
import pytest

from answering import World
from certsynth.answers import answer, remembered
from certsynth.answers.nearness import Nearness
from certsynth.answers.remembered import Arrays, Truths
from certsynth.domain.meaning import Reader
from questions import condition
from within import World as RandomWorld


def test_truths_and_distances_are_those_of_conditions() -> None:
    rng, pair = np.random.default_rng(1), World("b", "c")
    world = RandomWorld(pair.schema, rng)
    reader, truths = Reader(list(pair.schema)), Truths(world.figures)
    columns = {column.name: column for column in pair.schema}
    near = Nearness(columns, world.figures)
    for _ in range(200):
        text, truth, _ = condition(rng, world)
        read = reader.read(text)
        assert (truths.holds(read) == read.holds(world.figures)).all()
        assert (truths.holds(read) == truth).all()
        fresh = Nearness(columns, world.figures)
        assert np.array_equal(near.satisfied(read), fresh.satisfied(read))
        assert np.array_equal(near.rest(read), fresh.rest(read))


def test_remembered_arrays_cannot_be_changed_and_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, computed = Arrays(), []

    def compute() -> np.ndarray:
        computed.append(1)
        return np.zeros(8)

    monkeypatch.setattr(remembered, "MAX_BYTES", 100)
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            arrays.get("first", compute)[0] = 1
    assert len(computed) == 1
    for _ in range(3):
        arrays.get("second", compute)
    assert len(computed) == 4


def test_a_table_is_the_same_if_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("b", "c")
    counts = np.random.default_rng(2).multinomial(60, np.full(world.size, 1 / world.size))
    found = answer(world.basis(counts, 0.02), "table(b, c)")
    monkeypatch.setattr(remembered, "MAX_BYTES", 0)
    assert answer(world.basis(counts, 0.02), "table(b, c)") == found
