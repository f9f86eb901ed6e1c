"""Answers about columns that are compared by ratios: no private table within the bounds is outside of an interval."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import certified_errors
import intervals
from answering import World, some_rows, stated
from certsynth.answers import Basis, answer, by_ratio, lifts
from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.ratios import ratio_values
from questions import RATIO_KINDS

GRID = (0.0, 1.0, 2.0, 5.0, 20.0, 100.0)
X = Ordered("x", kind="integer", low=0, high=100, grid=GRID, missing=True, weight=Fraction(1, 2))
Y = Ordered("y", kind="number", low=-0.5, high=40.0, grid=(-0.5, 0.0, 0.1, 7.5, 40.0))
C = Category("c", values=("a", "b"), weight=Fraction(4, 5))
WORLD = Schema(columns=(X, Y, C))


def test_no_table_within_the_bound_is_outside() -> None:
    tally = intervals.run(200, seed=11, kinds=RATIO_KINDS)
    assert not tally.outside, tally.outside[:3]
    assert len(tally.answers) > 15
    assert sum(tally.attained.values()) > tally.total  # tables come to more than half of all ends


def test_no_mean_of_a_sum_is_outside() -> None:
    """Once the distance bounded the mean of a sum as if its columns were on linear scales."""
    tally = intervals.run(50, seed=93, kinds=RATIO_KINDS, keep=lambda each: each.form.startswith("mean of two"))
    assert not tally.outside, tally.outside[:3]


def test_no_private_table_has_a_statistic_outside() -> None:
    tally = certified_errors.run(100, seed=12, kinds=RATIO_KINDS)
    assert not tally.outside, tally.outside[:3]
    assert sum(tally.narrowed.values()) > 0.3 * tally.total


def test_bounds_a_fifth_too_small_are_noticed() -> None:
    assert intervals.run(60, seed=13, shrink=0.8, kinds=RATIO_KINDS).outside
    assert certified_errors.run(60, seed=20, shrink=0.8, kinds=RATIO_KINDS).outside


def test_the_range_as_a_lipschitz_constant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a distance of 1, values by ratios change by more than their range: answers that forget it are wrong."""
    monkeypatch.setattr("certsynth.answers.functions.scale", lambda c: float(c.high - c.low) / float(c.weight))
    assert intervals.run(40, seed=15, kinds=RATIO_KINDS, keep=lambda each: each.form == "function").outside


@pytest.mark.parametrize("form", ["mean", "sum", "variance"])
def test_ranks_that_are_too_far_apart_are_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = by_ratio.Ranked.of
    monkeypatch.setattr(by_ratio.Ranked, "of", lambda *a: replace(right(*a), gap=1.25 * right(*a).gap))
    assert intervals.run(40, seed=16, kinds=RATIO_KINDS, keep=lambda each: each.form == form).outside


@pytest.mark.slow
def test_no_table_is_outside_of_many_more_answers() -> None:
    assert not intervals.run(20_000, seed=17, kinds=RATIO_KINDS).outside
    assert not certified_errors.run(20_000, seed=18, kinds=RATIO_KINDS).outside


@pytest.mark.parametrize("size", [2, 3, 9, 40])
def test_a_lift_is_the_largest_gain_over_all_ranks(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(60):
        values = rng.normal(size=size)
        values[rng.random(size) < 0.2] = -np.inf
        values[rng.integers(size)] = 1.0
        gap = float(rng.choice([0.3, 1.0, 1 / 7])) / (size - 1)
        ranks = rng.integers(0, size, 30)
        away = np.where(rng.random(30) < 0.4, 0.0, rng.uniform(0, 1.2, 30) * gap * size)
        lift = lifts.ranked(values, ranks, away, gap)
        for steepness in (0.01, 1.0, 30.0):
            cost = np.maximum(gap * np.abs(np.subtract.outer(ranks, np.arange(size))), away[:, None])
            assert lift(steepness) == pytest.approx(np.max(values - steepness * cost, axis=1))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("x > 1", lambda r: r["x"] is not None and r["x"] > 1),
        ("x > 3", lambda r: r["x"] is not None and r["x"] > 3),
        ("x != 5", lambda r: r["x"] is not None and r["x"] != 5),
        ("x in [2, 20] or x is missing", lambda r: r["x"] in (2, 20, None)),
        ("not (2 <= x < 20)", lambda r: r["x"] is not None and not 2 <= r["x"] < 20),
        ("y > 0.1", lambda r: r["y"] > 0.1),
        ("y >= 0.1", lambda r: r["y"] >= 0.1),
        ("y = 0.1 or y < -0.4", lambda r: r["y"] in (0.1, -0.5)),
        ("-y < -7.5", lambda r: r["y"] > 7.5),
        ("2*x <= 9 and c = 'a'", lambda r: r["x"] is not None and 2 * r["x"] <= 9 and r["c"] == "a"),
    ],
)
def test_shares_are_those_of_the_best_and_the_worst_table(text, holds) -> None:
    names = [c.name for c in WORLD if c.name in text.replace("missing", "").replace("or", "").replace("and", "")]
    world, rng = World(*names, schema=WORLD), np.random.default_rng(1)
    inside = world.of(holds).astype(bool)
    for bound in (0.0, 0.003, 0.1, 0.3):
        counts = some_rows(rng, world.size)
        found = answer(world.basis(counts, bound), f"fraction({text})")
        assert found.high == pytest.approx(world.largest(inside.astype(float), counts, bound), abs=1e-6)
        assert found.low == pytest.approx(-world.largest(-inside.astype(float), counts, bound), abs=1e-6)


def long_column() -> Basis:
    grid = ratio_values(Fraction(0), Fraction(10**6), Fraction(1))
    assert grid is not None
    column = Ordered("income", kind="integer", low=0, high=10**6, grid=grid)
    rng = np.random.default_rng(5)
    clean = column.clean(np.exp(rng.normal(10.0, 1.0, 5_000)).round())
    certificate = stated([(("income",), 0.002)], single=0.002)
    schema = Schema(columns=(column,))
    return Basis(schema, {"income": column.decode(clean)}, {"income": clean}, certificate, 5_000)


def test_quantiles_of_a_skewed_column_are_certified_in_proportion() -> None:
    basis = long_column()
    for p in (0.1, 0.5, 0.9):
        found = answer(basis, f"quantile(income, {p})")
        assert isinstance(found.estimate, int)
        assert {found.low, found.estimate, found.high} <= set(map(int, basis.columns["income"].grid))
        assert found.high / found.low < 3


def test_a_histogram_has_bins_of_equal_ratio() -> None:
    basis = long_column()
    table = answer(basis, "histogram(income, 5)")
    assert table.rows[0][0][0].startswith("0 to ")
    assert table.rows[-1][0][0].endswith(" to 1000000")
    assert sum(cell.estimate for _, cell in table.rows) == pytest.approx(1.0)


def test_correlations_say_why_they_say_nothing() -> None:
    world = World("x", "y", schema=WORLD)
    found = answer(world.basis(np.ones(world.size, np.int64), 0.01), "correlation(x, y)")
    assert "'x', 'y' are compared by ratios" in found.says_nothing
    assert (found.low, found.high) == (-1.0, 1.0)
