"""The true loss of a table, of all subsets of columns or of the worst one only."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from certsynth import Schema, evaluate
from certsynth.certificate import skipping
from certsynth.certificate.skipping import LOSS_UNITS

NUMBERS = Schema.parse(
    "\n".join(f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 40\n' for name in "abcd")
    + '[[column]]\nname = "e"\nkind = "category"\nvalues = ["x", "y"]\n'
    + '[[column]]\nname = "f"\nkind = "number"\nlow = 0\nhigh = 1\n'
)
ROWS = 60


def table(seed: int, spread: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {name: rng.integers(0, spread, ROWS) for name in "abc"}
    d = np.where(rng.random(ROWS) < 0.8, numbers["a"], rng.integers(0, 41, ROWS))
    return pl.DataFrame(numbers | {"d": d, "e": rng.choice(["x", "y"], ROWS), "f": rng.random(ROWS)})


@pytest.fixture(autouse=True)
def large_lattices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are tried on small lattices, too."""
    monkeypatch.setattr(skipping, "COARSE_BOUNDS", ((3, 300), (2, 1000)))


@pytest.mark.parametrize(("seed", "spread"), [(1, 41), (2, 20), (3, 5), (4, 1)])
def test_the_largest_loss_is_the_same_whether_others_are_skipped_or_not(seed: int, spread: int) -> None:
    ours, theirs = table(seed, 41), table(seed + 10, spread)
    whole, largest = (evaluate(ours, theirs, NUMBERS, lattice=64, largest=only) for only in (False, True))
    assert whole.upper <= largest.upper <= whole.upper + 1 / (LOSS_UNITS * ROWS) + 1e-12
    assert largest.lower <= whole.lower
    assert largest.value is not None
    assert whole.mean_upper <= largest.mean_upper
    skipped = 0
    for full, fast in zip(whole.subsets, largest.subsets, strict=True):
        assert full.columns == fast.columns
        assert full.value is not None
        if fast.value is not None:
            assert full == fast
            continue
        skipped += 1
        assert fast.lower <= full.lower
        assert full.upper <= fast.upper <= largest.upper
    assert skipped > 0
    worst = max(whole.subsets, key=lambda subset: subset.upper)
    assert next(fast.value for fast in largest.subsets if fast.columns == worst.columns) == worst.value


def test_equal_tables_have_no_loss_whatever_is_skipped() -> None:
    ours = table(1, 41)
    exact = ours.select("a", "b", "e")
    found = evaluate(exact, exact, NUMBERS.select(["a", "b", "e"]), largest=True)
    assert (found.upper, found.lower, found.value) == (0, 0, 0)


def repeated(rows: list[tuple[str | None, int, str]]) -> pl.DataFrame:
    """A table of persons with a number of equal rows each: whichever are kept, they are the same."""
    return pl.DataFrame(rows, schema={"who": pl.String, "a": pl.Int64, "e": pl.String}, orient="row")


@pytest.mark.parametrize("missing", ["drop", "separate"])
@pytest.mark.parametrize("weigh", ["rows", "persons"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_loss_with_persons_is_that_of_the_rows_which_are_kept(weigh: str, most: int, missing: str) -> None:
    rng = np.random.default_rng(5)
    persons = [(f"p{i}", int(rng.integers(0, 41)), str(rng.choice(["x", "y"])), i % 5 + 1) for i in range(12)]
    nobody = [(None, 7, "x"), (None, 9, "y"), (None, 7, "x")]
    ours = repeated([(who, a, e) for who, a, e, times in persons for _ in range(times)] + nobody)
    copies = [(who, a, e, 1 if weigh == "persons" else min(times, most)) for who, a, e, times in persons]
    kept = [(who, a, e) for who, a, e, times in copies for _ in range(times)] + nobody * (missing == "separate")
    schema, theirs = NUMBERS.select(["a", "e"]), table(3, 20)
    options = {"person": "who", "rows_per_person": most, "weigh": weigh, "missing_person": missing}
    found = evaluate(ours, theirs, schema, lattice=40, **options)  # type: ignore[arg-type]
    exact = evaluate(repeated(kept), theirs, schema, lattice=40)
    assert found.subsets == exact.subsets
    assert found.persons is not None
    assert (found.persons.rows, exact.persons) == (most, None)
    assert found != evaluate(ours, theirs, schema, lattice=40)
