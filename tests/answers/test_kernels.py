"""The formulas against brute force: every width of a ramp, every place that a row can go to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.answers import lifts
from certsynth.answers.kernels import largest_mean, largest_share, merge_rows
from certsynth.answers.quantiles import quantile
from certsynth.answers.spans import Spans

seeds = st.integers(0, 2**32)
several = settings(max_examples=100, deadline=None, derandomize=True)


@given(seed=seeds, bound=st.floats(1e-6, 1))
@several
def test_no_width_of_the_ramp_is_better(seed, bound):
    rng = np.random.default_rng(seed)
    distance = rng.choice([0.0, 0.1, 0.25, 1.0, np.inf, *rng.random(3)], 30)
    found = largest_share(distance, bound)
    widths = np.geomspace(bound / 4, 100, 2_000)
    ramps = [np.mean(np.clip(1 - distance / width, 0, None)) + bound / width for width in widths]
    assert found <= min(*ramps, 1.0) + 1e-12
    assert found >= np.mean(distance == 0)
    candidates = [d for d in distance if 0 < d < np.inf]
    exact = [np.mean(np.clip(1 - distance / d, 0, None)) + bound / d for d in candidates]
    assert found == pytest.approx(min(*exact, np.mean(np.isfinite(distance)), 1.0, 1.0), abs=1e-12)


@given(seed=seeds, steepness=st.floats(0.01, 20), weight=st.sampled_from([1.0, 0.5, 0.1]))
@several
def test_what_a_row_can_gain_is_the_most_over_all_places(seed, steepness, weight):
    rng = np.random.default_rng(seed)
    x, distance = rng.random(20), rng.choice([0.0, 0.05, 0.3, 1.0], 20)
    places = np.linspace(0, 1, 4_001)
    cost = np.maximum(weight * np.abs(x[:, None] - places), distance[:, None])
    centre = rng.random()
    cases = [
        (lifts.convex(lambda z: z, x, distance, weight), places),
        (lifts.convex(lambda z: (z - centre) ** 2, x, distance, weight), (places - centre) ** 2),
        (lifts.towards(centre, x, distance, weight), -((places - centre) ** 2)),
    ]
    for lift, value in cases:
        best = (value - steepness * cost).max(axis=1)
        found = lift(steepness)
        assert (found >= best - 1e-12).all()
        assert found == pytest.approx(best, abs=(2 + steepness) / 4_000)


@given(seed=seeds, steepness=st.floats(0.01, 10), w=st.sampled_from([1.0, 0.4]), v=st.sampled_from([1.0, 0.7, 0.1]))
@several
def test_what_a_product_can_gain_is_the_most_over_all_places(seed, steepness, w, v):
    rng = np.random.default_rng(seed)
    x, y, distance = rng.random(8), rng.random(8), rng.choice([0.0, 0.05, 0.3, 1.0], 8)
    a, b = rng.random(2)
    grid = np.linspace(0, 1, 301)
    far_x, far_y = (weight * np.abs(place[:, None] - grid) for weight, place in ((w, x), (v, y)))
    cost = np.maximum(np.maximum(far_x[:, :, None], far_y[:, None, :]), distance[:, None, None])
    value = (grid[:, None] - a) * (grid[None, :] - b)
    best = (value - steepness * cost).reshape(8, -1).max(axis=1)
    found = lifts.deviations((x, y), (a, b), distance, (w, v))(steepness)
    assert (found >= best - 1e-12).all()
    assert found == pytest.approx(best, abs=(2 + steepness) / 300)


@pytest.mark.slow
def test_the_level_of_a_mean_is_the_least_over_all_slopes():
    rng = np.random.default_rng(0)
    for _ in range(40):
        x, near = rng.random(25), rng.choice([0.0, 0.0, 0.2, 0.7], 25)
        away = np.where(near == 0, rng.choice([0.1, 0.5, np.inf]), 0.0)
        weights, bound = rng.dirichlet(np.ones(25)), rng.choice([0.001, 0.01, 0.1])
        lift = lifts.convex(np.asarray, x, near, 1.0)
        found = largest_mean(lift, away, weights, bound, low=0.0, high=1.0)
        levels = np.linspace(0, 1, 401)
        steep = np.geomspace(1e-3, 1 / bound, 300)
        lifted = [(s, lift(s)) for s in steep]
        fits = [t for t in levels if any(s * bound + weights @ np.maximum(f - t, -s * away) <= 0 for s, f in lifted)]
        assert min([*fits, 1.0]) - 0.01 <= found <= min([*fits, 1.0]) + 1e-9


@given(seed=seeds, p=st.floats(0.01, 0.99), budget=st.floats(0, 1), absent=st.integers(0, 10))
@several
def test_a_quantile_is_where_its_integral_is_used_up(seed, p, budget, absent):
    rng = np.random.default_rng(seed)
    values = rng.choice(np.linspace(0, 1, 9), 15)
    places, counts = np.unique(values, return_counts=True)
    rows = len(values) + absent
    low, high = quantile(places, counts / rows, p, budget)
    grid = np.linspace(0, 1, 8_001)
    excess = np.sum(values[:, None] <= grid[:-1], axis=0) / rows - p * len(values) / rows
    above = np.append(0, np.cumsum(np.maximum(excess, 0)) / 8_000)
    below = np.append(0, np.cumsum(np.maximum(-excess, 0)[::-1]) / 8_000)
    assert high == pytest.approx(grid[above <= budget + 1e-9].max(), abs=1e-3)
    assert low == pytest.approx(1 - grid[below <= budget + 1e-9].max(), abs=1e-3)
    assert low - 1e-12 <= np.quantile(values, p, method="inverted_cdf") <= high + 1e-12


@given(
    signs=st.lists(st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(-12, 12)), max_size=5),
    joins=st.lists(st.booleans(), min_size=5, max_size=5),
)
@several
def test_spans_are_the_sets_that_they_say(signs, joins):
    compare = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    figures = np.arange(-10, 11).astype(float)
    known, spans = np.ones(21, bool), Spans.everything(whole=True)
    for (sign, twice), join in zip(signs, joins, strict=False):
        each, inside = Spans.of(sign, Fraction(twice, 2), whole=True), getattr(figures, compare[sign])(twice / 2)
        spans = spans.intersection(each if join else each.complement())
        spans, known = (spans, known & inside) if join else (spans.complement(), ~(known & ~inside))
    within = spans.within(-10, 10)
    assert ((within.distance(figures) == 0) == known).all()
    if known.any():
        assert within.distance(figures).tolist() == np.abs(figures[:, None] - figures[known]).min(axis=1).tolist()
    else:
        assert np.isinf(within.distance(figures)).all()
    assert np.isnan(within.distance(np.array([np.nan]))).all()


def test_rows_that_are_alike_are_made_one():
    first, second = np.array([1.0, 1.0, 2.0, 1.0]), np.array([np.inf, np.inf, 0.0, 3.0])
    (a, b), shares = merge_rows(first, second)
    assert sorted(zip(a, b, shares, strict=True)) == [(1.0, 3.0, 0.25), (1.0, np.inf, 0.5), (2.0, 0.0, 0.25)]
