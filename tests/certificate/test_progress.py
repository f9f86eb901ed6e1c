"""What an onlooker sees of the work is the same for any private rows: progress, passes over the data, audit events."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Schema, certify, release
from certsynth.base.progress import ROWS_REPORTED, with_progress
from certsynth.certificate import passes, skipping
from certsynth.certificate.comparison import COMPARING_PHASE
from certsynth.certificate.passes import POINT_BYTES, network_bytes, passes_of, points_each
from certsynth.certificate.skipping import SOLVING_PHASE
from certsynth.mechanisms import Neighbours
from certsynth.planning.cache import CACHE_VARIABLE
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import all_subsets
from certsynth.sources import open_source
from small import FixedOutput

LINES = Schema.parse(
    "\n".join(f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 40\n' for name in "abcd")
    + '[[column]]\nname = "e"\nkind = "category"\nvalues = ["x", "y"]\n'
)
"""Pairs of lines are large enough for a bound, and pairs with labels are not."""


def lines(rows: int, seed: int, spread: int = 41) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    table: dict[str, Any] = {name: rng.integers(0, spread, rows) for name in "abcd"}
    return pl.DataFrame(table | {"e": rng.choice(["x", "y"], rows)})


PUBLIC = lines(30, seed=5)
TABLES = [lines(25, 1), lines(25, 2, spread=3), lines(25, 3, spread=1), PUBLIC.head(25)]
"""As many rows each, near to the public table and far from it."""

OTHER_LENGTHS = [lines(24, 1), lines(1, 1), lines(0, 1)]
"""Where the number of rows is hidden, no rows at all are a table like any other."""


class Watched:
    """A private table that writes down who reads it."""

    def __init__(self, data: Any, seen: list[Any]) -> None:
        self.source, self.seen = open_source(data), seen

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    def size_hint(self) -> int | None:
        return self.source.size_hint()

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        self.seen.append(("read", tuple(names)))
        return self.source.batches(names, rows=rows)


_audited: list[list[Any]] = []


@pytest.fixture(scope="module", autouse=True)
def audit() -> None:
    sys.addaudithook(lambda event, args: [s.append(event) for s in _audited] if event.startswith("certsynth") else None)


@pytest.fixture(autouse=True)
def large_lattices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are tried on small lattices, too, and nothing is remembered from one release to the next."""
    monkeypatch.setattr(skipping, "COARSE_BOUNDS", ((3, 300), (2, 1000)))
    monkeypatch.setenv(CACHE_VARIABLE, "off")


def memory_for(schema: Schema, parts: int) -> int:
    """Bytes that make so many passes, about."""
    fine = LatticeQuery.of(schema, all_subsets(schema, 2))
    points = points_each(fine)
    memory = network_bytes(points) + POINT_BYTES * max(max(points), sum(points) // parts)
    assert len(passes_of(fine, memory)) > 2
    return memory


def observed_certify(data: Any, neighbours: Neighbours, **options: Any) -> list[Any]:
    seen: list[Any] = []
    _audited.append(seen)
    options.setdefault("memory", memory_for(LINES, 4))
    made = certify(
        Watched(data, seen),
        PUBLIC,
        LINES,
        epsilon=1,
        neighbours=neighbours,
        noise=FixedOutput(),
        progress=lambda *event: seen.append(event),
        **options,
    )
    _audited.remove(seen)
    return [*seen, ("answer", made.to_json())]


def observed_release(data: Any, neighbours: Neighbours, **options: Any) -> list[Any]:
    seen: list[Any] = []
    _audited.append(seen)
    release(
        Watched(data, seen),
        LINES,
        epsilon=1,
        neighbours=neighbours,
        noise=FixedOutput(),
        rows=30,
        seed=1,
        resolution=4,
        mechanism="identity",
        progress=lambda *event: seen.append(event),
        **options,
    )
    _audited.remove(seen)
    return seen


def tables_of(neighbours: Neighbours) -> list[pl.DataFrame]:
    return TABLES + (OTHER_LENGTHS if neighbours is Neighbours.ADD_REMOVE else [])


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("per_subset", [False, True])
def test_certify_looks_the_same_for_any_rows_in_several_passes(neighbours: Neighbours, per_subset: bool) -> None:
    first, *others = (observed_certify(data, neighbours, per_subset=per_subset) for data in tables_of(neighbours))
    assert all(other == first for other in others)
    reports = [event for event in first if event[0] == COMPARING_PHASE]
    assert (COMPARING_PHASE, 10, 10) in reports
    assert all(done <= total for _, done, total in reports)
    assert sum(event[0] == "read" for event in first) > 4
    assert ((SOLVING_PHASE, 0, None) in first) is not per_subset


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("candidates", [1, 3])
def test_a_release_looks_the_same_for_any_rows(
    neighbours: Neighbours, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise that decides which candidate is taken is coupled as well."""
    monkeypatch.setattr("certsynth.algorithm.certify.choose_least", lambda losses, **_: 0)
    monkeypatch.setattr("certsynth.algorithm.certify.allowed_memory", lambda memory: memory_for(LINES, 4))
    tables = tables_of(neighbours)
    first, *others = (observed_release(data, neighbours, candidates=candidates) for data in tables[::2])
    assert all(other == first for other in others)
    assert (COMPARING_PHASE, 10, 10) in first
    assert {"certsynth.data.open", "certsynth.rows.fit", "certsynth.certificate.compute"} <= {
        event for event in first if isinstance(event, str)
    }


def test_progress_that_follows_the_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a bound is reported for every subset that the rows left unsolved."""
    search = skipping.WorstSubsetSearch

    class Revealing(search):  # type: ignore[misc, valid-type]
        def _solve(self, subsets: Sequence[int], progress: Any = None) -> None:
            super()._solve(subsets, *([progress] if progress else []))
            for j in subsets:
                if j not in self.found:
                    self.steps.report(COMPARING_PHASE, 1, 1)

    monkeypatch.setattr(skipping, "WorstSubsetSearch", Revealing)
    seen = [observed_certify(data, Neighbours.REPLACE_ONE) for data in TABLES]
    assert any(other != seen[0] for other in seen)


def test_progress_of_an_empty_table_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of tables without rows."""
    monkeypatch.setattr(passes, "report_as_if_compared", lambda *_, **__: None)
    seen = [observed_certify(data, Neighbours.ADD_REMOVE) for data in OTHER_LENGTHS]
    assert seen[0] == seen[1] != seen[2]


def test_rows_are_reported_at_the_same_places_whatever_the_batches() -> None:
    rows = 3 * ROWS_REPORTED + 100

    def reports(cuts: Sequence[int]) -> list[Any]:
        told: list[Any] = []
        batches = [[part] for part in np.split(np.zeros(rows), cuts)]
        seen = list(with_progress(batches, "counting", rows, hidden=False, progress=lambda *event: told.append(event)))
        assert sum(len(batch[0]) for batch in seen) == rows
        return told

    whole = reports([])
    assert [done for _, done, _ in whole] == [0, *(k * ROWS_REPORTED for k in (1, 2, 3)), rows]
    assert reports([5, 7, 2 * ROWS_REPORTED, 3 * ROWS_REPORTED + 1]) == reports([ROWS_REPORTED]) == whole
