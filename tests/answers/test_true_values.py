"""Two tables, the distance between them, and answers from one about the other: the truth is always inside."""

from __future__ import annotations

import datetime
import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answering import World, some_rows
from certsynth.answers import answer, answer_function, kernels
from certsynth.errors import InputError


def column(rows, name):
    return [row[name] for row in rows if row[name] is not None]


def numbers(rows, name):
    return np.array([as_figure(x) for x in column(rows, name)], dtype=float)


def pairs(rows, first, second):
    both = [row for row in rows if row[first] is not None and row[second] is not None]
    return numbers(both, first), numbers(both, second)


def nth(values, p):
    ordered = sorted(values)
    return ordered[max(math.ceil(p * len(ordered) - 1e-9), 1) - 1] if ordered else None


def cov(rows, first, second):
    x, y = pairs(rows, first, second)
    return float(np.mean((x - x.mean()) * (y - y.mean()))) if len(x) else None


def corr(rows, first, second):
    x, y = pairs(rows, first, second)
    return cov(rows, first, second) / math.sqrt(x.var() * y.var()) if len(x) and x.var() * y.var() > 0 else None


def mean(rows, name):
    values = numbers(rows, name)
    return float(values.mean()) if len(values) else None


def as_figure(value):
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(2020, 1, 1)).total_seconds()
    return value.toordinal() if isinstance(value, datetime.date) else value


LABELS = ("low", "middle", "high")

STATISTICS = {
    "mean(a)": (("a",), lambda rows: mean(rows, "a")),
    "mean(3 - 2*a)": (("a",), lambda rows: 3 - 2 * mean(rows, "a")),
    "mean(b)": (("b",), lambda rows: mean(rows, "b")),
    "mean(e)": (("e",), lambda rows: mean(rows, "e")),
    "mean(d)": (("d",), lambda rows: mean(rows, "d")),
    "mean(s)": (("s",), lambda rows: mean(rows, "s")),
    "mean(w - '2020-01-01')": (("w",), lambda rows: mean(rows, "w")),
    "median(s)": (("s",), lambda rows: nth(numbers(rows, "s"), 0.5)),
    "quantile(w, 0.3)": (("w",), lambda rows: nth(numbers(rows, "w"), 0.3)),
    "variance(w)": (("w",), lambda rows: numbers(rows, "w").var()),
    "covariance(a, s)": (("a", "s"), lambda rows: cov(rows, "a", "s")),
    "mean(s | a > 0)": (("a", "s"), lambda rows: mean([r for r in rows if r["a"] > 0], "s")),
    "fraction(s >= e)": (
        ("s", "e"),
        lambda rows: np.mean([r["s"] is not None and r["s"].date() >= r["e"] for r in rows]),
    ),
    "mean(t)": (("t",), lambda rows: mean(rows, "t")),
    "variance(a)": (("a",), lambda rows: numbers(rows, "a").var()),
    "variance(b)": (("b",), lambda rows: numbers(rows, "b").var() if column(rows, "b") else None),
    "sd(a)": (("a",), lambda rows: numbers(rows, "a").std()),
    "variance(e)": (("e",), lambda rows: numbers(rows, "e").var()),
    "sum(a)": (("a",), lambda rows: numbers(rows, "a").sum()),
    "sum(b - 2)": (("b",), lambda rows: (numbers(rows, "b") - 2).sum()),
    "count(b > 1)": (("b",), lambda rows: (numbers(rows, "b") > 1).sum()),
    "cdf(a, 1)": (("a",), lambda rows: np.mean(numbers(rows, "a") <= 1)),
    "cdf(b, 2)": (("b",), lambda rows: (numbers(rows, "b") <= 2).sum() / len(rows)),
    "cdf(o, 'middle')": (("o",), lambda rows: sum(x != "high" for x in column(rows, "o")) / len(rows)),
    "median(a)": (("a",), lambda rows: nth(column(rows, "a"), 0.5)),
    "quantile(a, 0.8)": (("a",), lambda rows: nth(column(rows, "a"), 0.8)),
    "quantile(b, 0.3)": (("b",), lambda rows: nth(column(rows, "b"), 0.3)),
    "median(e)": (("e",), lambda rows: nth(numbers(rows, "e"), 0.5)),
    "median(d)": (("d",), lambda rows: nth(numbers(rows, "d"), 0.5)),
    "quantile(p, 0.25)": (("p",), lambda rows: nth([LABELS.index(x) for x in column(rows, "p")], 0.25)),
    "median(o)": (("o",), lambda rows: nth([LABELS.index(x) for x in column(rows, "o")], 0.5)),
    "covariance(a, e)": (("a", "e"), lambda rows: cov(rows, "a", "e")),
    "covariance(a, b)": (("a", "b"), lambda rows: cov(rows, "a", "b")),
    "covariance(b, d)": (("b", "d"), lambda rows: cov(rows, "b", "d")),
    "correlation(a, e)": (("a", "e"), lambda rows: corr(rows, "a", "e")),
    "correlation(a, b)": (("a", "b"), lambda rows: corr(rows, "a", "b")),
    "mean(a | b > 1)": (("a", "b"), lambda rows: mean([r for r in rows if (r["b"] or 0) > 1], "a")),
    "mean(b | a > 0)": (("a", "b"), lambda rows: mean([r for r in rows if r["a"] > 0], "b")),
    "mean(d | a > 0)": (("a", "d"), lambda rows: mean([r for r in rows if r["a"] > 0], "d")),
    "mean(2*a - n + 1)": (("a", "n"), lambda rows: 2 * mean(rows, "a") - mean(rows, "n") + 1),
    "mean(n)": (("n",), lambda rows: mean(rows, "n")),
    "cdf(n, 0.5)": (("n",), lambda rows: np.mean(numbers(rows, "n") <= 0.5)),
    "median(n)": (("n",), lambda rows: nth(column(rows, "n"), 0.5)),
    "quantile(m, 0.6)": (("m",), lambda rows: nth(column(rows, "m"), 0.6)),
    "variance(m)": (("m",), lambda rows: numbers(rows, "m").var() if column(rows, "m") else None),
    "fraction(n > 0.2 and m <= 7)": (
        ("n", "m"),
        lambda rows: np.mean([r["n"] > 0.2 and r["m"] is not None and r["m"] <= 7 for r in rows]),
    ),
    "fraction(n + 0.1*m <= 1.2)": (
        ("n", "m"),
        lambda rows: np.mean([r["m"] is not None and r["n"] + 0.1 * r["m"] <= 1.2 for r in rows]),
    ),
    "mean(m | n <= 0.5)": (("n", "m"), lambda rows: mean([r for r in rows if r["n"] <= 0.5], "m")),
    "correlation(n, m)": (("n", "m"), lambda rows: corr(rows, "n", "m")),
}


def inside(found, true, *, slack=1e-9) -> bool:
    if isinstance(found.low, str):
        low, high = LABELS.index(found.low), LABELS.index(found.high)
    else:
        low, high = as_figure(found.low), as_figure(found.high)
    return low - slack <= true <= high + slack


WORLDS = {names: World(*names) for names in {names for names, _ in STATISTICS.values()}}


def close(rng: np.random.Generator, world: World, counts: np.ndarray, moved: int) -> np.ndarray:
    """The same rows, of which a few went somewhere near."""
    rows = np.repeat(np.arange(world.size), counts)
    for i in rng.choice(len(rows), min(moved, len(rows)), replace=False):
        near = np.argsort(world.apart[rows[i]] + 1e-6 * rng.random(world.size))
        rows[i] = near[min(int(rng.geometric(0.3)), world.size - 1)]
    return np.bincount(rows, minlength=world.size)


TWO_TABLES = given(
    seed=st.integers(0, 2**32), rows=st.integers(2, 40), moved=st.integers(0, 12), anywhere=st.booleans()
)


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("query", STATISTICS)
@TWO_TABLES
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_truth_is_inside_if_the_bound_is_the_distance(query, seed, rows, moved, anywhere):
    check_the_truth_is_inside(query, seed, rows, moved, anywhere)


@pytest.mark.slow
@pytest.mark.parametrize("query", STATISTICS)
@TWO_TABLES
@settings(max_examples=250, deadline=None, derandomize=True)
def test_the_truth_is_inside_of_many_more_tables(query, seed, rows, moved, anywhere):
    check_the_truth_is_inside(query, seed, rows, moved, anywhere)


def check_the_truth_is_inside(query, seed, rows, moved, anywhere):
    """The tightest bound that a certificate could have."""
    names, truth = STATISTICS[query]
    world, rng = WORLDS[names], np.random.default_rng(seed)
    synthetic = some_rows(rng, world.size, rows=rows)
    private = some_rows(rng, world.size, rows=rows) if anywhere else close(rng, world, synthetic, moved)
    basis = world.basis(synthetic, world.cost(private, synthetic))
    true = truth([world.rows[i] for i in np.repeat(np.arange(world.size), private)])
    try:
        found = answer(basis, query)
    except InputError:
        return  # no synthetic row is in the group, or a column is constant
    if true is not None:
        assert inside(found, true), (found, true)
    estimate = truth([world.rows[i] for i in np.repeat(np.arange(world.size), synthetic)])
    assert inside(found, estimate), (found, estimate)
    if not isinstance(found.estimate, (str, datetime.date)):
        assert found.estimate == pytest.approx(estimate, abs=1e-9)


@pytest.mark.parametrize("query", STATISTICS)
def test_a_fifth_of_the_distance_is_not_enough(query):
    """The control: with a bound that is too small the truth is outside now and then."""
    names, truth = STATISTICS[query]
    world, rng = WORLDS[names], np.random.default_rng(5)
    i = int(np.argmin([len([x for x in row.values() if x is None]) for row in world.rows]))
    missed = 0
    for _ in range(300):
        synthetic = some_rows(rng, world.size, rows=20)
        synthetic[i] += 1
        private = close(rng, world, synthetic, 8)
        distance = world.cost(private, synthetic)
        true = truth([world.rows[i] for i in np.repeat(np.arange(world.size), private)])
        try:
            found = answer(world.basis(synthetic, 0.2 * distance), query)
        except InputError:
            continue
        missed += true is not None and not inside(found, true)
        if missed:
            return
    assert missed


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), bound=st.floats(0, 1))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_the_largest_variance_is_no_more_than_tables_have(seed, bound):
    """min over c of the largest E(x − c)², by linear programs; the lower end is a little beyond what tables have."""
    world, rng = WORLDS[("a",)], np.random.default_rng(seed)
    counts = some_rows(rng, world.size)
    found = answer(world.basis(counts, bound), "variance(a)")
    values = world.of(lambda r: float(r["a"]))
    centres = np.linspace(-2, 3, 41)
    largest = functools.cache(lambda i: world.largest((values - centres[i]) ** 2, counts, bound))
    first, last = 0, len(centres) - 1
    while first < last:  # the largest of convex functions of c is convex: halves that rise hold no minimum
        middle = (first + last) // 2
        first, last = (first, middle) if largest(middle) <= largest(middle + 1) else (middle + 1, last)
    best = largest(first)
    assert found.high >= best - 0.02
    assert found.high <= 25 / 4
    smallest = [world.largest(-((values - c) ** 2), counts, bound) for c in centres]
    assert found.low <= -max(smallest) + 1e-6 or found.low == 0
    plain = 2 * bound * max(m := (values @ counts / counts.sum() + 2) / 5, 1 - m) * 25
    assert found.high <= found.estimate + plain + 1e-6
    assert found.low >= found.estimate - plain - bound**2 * 25 - 1e-6


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_functions_of_the_user_are_bounded_by_their_slopes(seed):
    world, rng = WORLDS[("a", "b")], np.random.default_rng(seed)
    synthetic = some_rows(rng, world.size, rows=20)
    private = close(rng, world, synthetic, 6)
    basis = world.basis(synthetic, world.cost(private, synthetic))

    def bent(a, b):
        return np.abs(a - 1) * 0.5 + np.minimum(np.ma.filled(b, 2.0), 3.0)

    found = answer_function(
        basis, bent, columns=("a", "b"), lipschitz=None, slopes={"a": 0.5, "b": 1}, bounds=(0, 4.5), row_by_row=False
    )
    rows = [world.rows[i] for i in np.repeat(np.arange(world.size), private)]
    true = np.mean([abs(r["a"] - 1) * 0.5 + min(2 if r["b"] is None else r["b"], 3) for r in rows])
    assert found.low - 1e-9 <= true <= found.high + 1e-9
    again = answer_function(
        basis,
        lambda a, b: float(abs(a - 1) * 0.5 + min(2 if b is None else b, 3)),
        columns=("a", "b"),
        lipschitz=0.5 * 5 + 4,
        slopes=None,
        bounds=None,
        row_by_row=True,
    )
    assert again.estimate == pytest.approx(found.estimate)
    assert again.low - 1e-9 <= true <= again.high + 1e-9


LONG = [pytest.param(query, marks=pytest.mark.slow) for query in ("variance(a)", "covariance(a, b)", "sum(b - 2)")]


@pytest.mark.parametrize("query", ["mean(b)", "quantile(b, 0.3)", *LONG])
def test_rows_that_were_moved_to_a_grid_are_paid_for(query, monkeypatch):
    """As if there were too many rows, and a very coarse grid."""
    monkeypatch.setattr(kernels, "MAX_EXACT_ROWS", 1)
    monkeypatch.setattr(kernels, "GRID_STEPS", {1: 3, 2: 3})
    names, truth = STATISTICS[query]
    world, rng = WORLDS[names], np.random.default_rng(8)
    for _ in range(150):
        synthetic = some_rows(rng, world.size, rows=20)
        private = close(rng, world, synthetic, 4)
        true = truth([world.rows[i] for i in np.repeat(np.arange(world.size), private)])
        if true is not None and any(
            world.rows[i]["b" if "b" in names else "a"] is not None for i in synthetic.nonzero()[0]
        ):
            assert inside(answer(world.basis(synthetic, world.cost(private, synthetic)), query), true)
