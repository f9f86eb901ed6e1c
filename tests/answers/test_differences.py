"""Differences of two statistics: arithmetic, and all tables within the bound."""

from __future__ import annotations

import numpy as np
import pytest

from answering import SMALL, World, some_rows
from certsynth.answers import Answer, answer
from certsynth.errors import InputError
from within import Near

PAIR = World("a", "b")


def asked(basis, query: str) -> Answer:
    found = answer(basis, query)
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize(
    ("first", "second", "unit"),
    [
        ("mean(a)", "median(a)", "a"),
        ("mean(a | b > 1)", "mean(a | b <= 1)", "a"),
        ("sd(a)", "mean(a)", "a"),
        ("mean(a)", "mean(n)", "number"),
        ("mean(2*a)", "mean(a)", "number"),
        ("variance(a)", "variance(a | a > 0)", "a²"),
        ("covariance(a, n)", "variance(a)", "number"),
        ("correlation(a, n)", "correlation(a, m)", "number"),
        ("fraction(a > 0 | b > 1)", "fraction(a > 0 | b <= 1)", "share"),
        ("fraction(a > 0)", "cdf(n, 1)", "share"),
        ("mean(u)", "fraction(t)", "share"),
        ("mean(d - e)", "sd(d)", "days"),
    ],
)
def test_the_ends_of_intervals_are_subtracted(first, second, unit):
    """Or it is tighter, where both are shares of the same rows, or the same statistic of two groups."""
    try:
        one, other = asked(SMALL, first), asked(SMALL, second)
    except InputError:  # a statistic that has no groups yet, or needs all rows
        pytest.skip("not a statistic on its own")
    found = asked(SMALL, f"{first} - {second}")
    assert found.unit == unit
    assert found.estimate == pytest.approx(one.estimate - other.estimate)
    assert found.low >= one.low - other.high - 1e-6
    assert found.high <= one.high - other.low + 1e-6
    assert found.low <= found.estimate <= found.high
    if unit != "share" and first.split(" |")[0] != second.split(" |")[0]:
        assert (found.low, found.high) == pytest.approx((one.low - other.high, one.high - other.low), abs=1e-6)


def test_dates_differ_by_days():
    found = asked(SMALL, "mean(d) - mean(e)")
    assert found.unit == "days"
    assert isinstance(found.low, float)
    medians = asked(SMALL, "median(e) - quantile(e, 0.1)")
    assert medians.unit == "days"
    assert isinstance(medians.low, int)
    one, other = asked(SMALL, "median(e)"), asked(SMALL, "quantile(e, 0.1)")
    assert medians.estimate == (one.estimate - other.estimate).days
    assert (medians.low, medians.high) == ((one.low - other.high).days, (one.high - other.low).days)


def test_times_differ_by_seconds():
    assert asked(SMALL, "mean(s) - mean(w)").unit == "seconds"
    medians = asked(SMALL, "median(s) - quantile(s, 0.1)")
    assert medians.unit == "seconds"
    one, other = asked(SMALL, "median(s)"), asked(SMALL, "quantile(s, 0.1)")
    assert medians.estimate == (one.estimate - other.estimate).total_seconds()
    ends = (one.low - other.high).total_seconds(), (one.high - other.low).total_seconds()
    assert (medians.low, medians.high) == ends


def test_whole_numbers_differ_by_whole_numbers():
    for query in ("count(a > 0) - count(b > 1)", "median(a) - quantile(a, 0.9)", "quantile(a, 0.3) - median(b)"):
        assert isinstance(asked(SMALL, query).low, int)
    assert asked(SMALL, "count(a > 0) - count(b > 1)").unit == "rows"
    assert isinstance(asked(SMALL, "mean(a) - median(a)").low, float)


@pytest.mark.parametrize(
    "query", ["mean(a)", "fraction(a > 0 | b > 1)", "correlation(a, n)", "median(a)", "count(a > 0)", "mean(d)"]
)
def test_equal_statistics_differ_by_0(query):
    found = asked(SMALL, f"{query} - {query.upper().split('(')[0]}( {query.split('(', 1)[1]}")
    assert (found.low, found.estimate, found.high) == (0, 0, 0)
    assert found.says_nothing == ""


CONDITIONS = {
    "a > 0": lambda r: r["a"] > 0,
    "a >= -1": lambda r: r["a"] >= -1,
    "a between 0 and 1": lambda r: 0 <= r["a"] <= 1,
    "b >= 2": lambda r: r["b"] is not None and r["b"] >= 2,
    "b >= 1": lambda r: r["b"] is not None and r["b"] >= 1,
    "not b = 3": lambda r: r["b"] is not None and r["b"] != 3,
    "b is missing": lambda r: r["b"] is None,
    "a > 0 and b >= 2": lambda r: r["a"] > 0 and r["b"] is not None and r["b"] >= 2,
    "a > 0 or b is missing": lambda r: r["a"] > 0 or r["b"] is None,
}


@pytest.mark.parametrize("seed", range(12))
def test_no_table_within_the_bound_has_another_difference_of_shares(seed):
    """The largest difference is a linear program over all tables; nested conditions attain it."""
    rng = np.random.default_rng(seed)
    counts, bound = some_rows(rng, PAIR.size), float(rng.choice([0.0, 0.01, 0.05, 0.2]))
    basis = PAIR.basis(counts, bound)
    first, second = rng.choice(list(CONDITIONS), 2, replace=False)
    gain = PAIR.of(CONDITIONS[first]).astype(float) - PAIR.of(CONDITIONS[second])
    found = asked(basis, f"fraction({first}) - fraction({second})")
    most, least = PAIR.largest(gain, counts, bound), -PAIR.largest(-gain, counts, bound)
    assert found.low - 1e-7 <= least
    assert most <= found.high + 1e-7
    if (gain >= 0).all() or (gain <= 0).all():
        assert (found.low, found.high) == pytest.approx((least, most), abs=1e-6)


def test_nested_shares_are_one_share():
    counts = some_rows(np.random.default_rng(5), PAIR.size, rows=40)
    basis = PAIR.basis(counts, 0.02)
    for first, second, only, known in [
        ("a >= -1", "a > 0", "-1 <= a <= 0", "a"),
        ("b >= 1", "b >= 3", "1 <= b < 3", "b"),
        ("a >= -1 | b > 1", "a > 0 | b > 1", "-1 <= a <= 0 | b > 1", "a"),
    ]:
        found, one = asked(basis, f"fraction({first}) - fraction({second})"), asked(basis, f"fraction({only})")
        assert (found.low, found.estimate, found.high) == pytest.approx((one.low, one.estimate, one.high), abs=1e-6)
        assert known in found.query
        assert found.low >= 0


@pytest.mark.parametrize("seed", range(8))
def test_no_table_within_the_bound_has_another_difference_of_means(seed):
    """Tables on the way from the synthetic rows to the ones where either mean is extreme."""
    rng = np.random.default_rng(100 + seed)
    counts, bound = some_rows(rng, PAIR.size, rows=30), 0.02
    basis, near = PAIR.basis(counts, bound), Near.of(counts, PAIR.apart, bound)
    values = PAIR.clean["a"] - 2.0
    high = np.array([row["b"] is not None and row["b"] >= 2 for row in PAIR.rows])
    low = np.array([row["b"] is not None and row["b"] < 2 for row in PAIR.rows])
    if not (counts @ high and counts @ low):
        pytest.skip("an empty group")
    found = asked(basis, "mean(a | b >= 2) - mean(a | b < 2)")
    for _ in range(40):
        gain = rng.normal() * values * high - rng.normal() * values * low + rng.normal(size=PAIR.size) * 0.1
        table = near.best(gain)
        if table @ high > 1e-9 and table @ low > 1e-9:
            truth = (table * high) @ values / (table @ high) - (table * low) @ values / (table @ low)
            assert found.low - 1e-7 <= truth <= found.high + 1e-7


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("mean(a) -", "at character 10: a statistic must follow '-', like mean(income | sex = 'f') - mean(income |"),
        ("mean(a) - 3", "at character 10: a statistic must follow '-'"),
        ("mean(a) - a", "at character 10: a statistic must follow '-'"),
        ("mean(a) - meen(a)", "at character 11: 'meen' is not a statistic; did you mean 'mean'?"),
        ("mean(a) - mean(joob)", "at character 16: no column is called 'joob'; did you mean 'job'?"),
        ("mean(a) - mean(a", "at character 17: ')' is missing"),
        ("mean(a) - mean(b) - mean(a)", "at character 19: a difference has two statistics; ask for the others in"),
        ("mean(a) - mean(b) + mean(a)", "at character 19: a difference has two statistics"),
        ("mean(a) - mean(b) x", "at character 18: a query ends with its closing bracket"),
        ("mean(a) + mean(b)", "at character 9: statistics cannot be added, only subtracted; ask for each in a query of "
         "its own, or for the mean of a sum, like mean(income + rent)."),
        ("mean(a) / mean(b)", "at character 9: statistics cannot be multiplied or divided, only subtracted;"),
        ("mean(a) * 2", "statistics cannot be multiplied or divided"),
        ("mean(a) − mean(b)", "at character 9: this dash is not a minus; write '-'."),
        ("mean(a) – mean(b)", "this dash is not a minus; write '-'."),
        ("table(c) - table(c)", "at character 1: table has many cells, which cannot be subtracted; subtract shares"),
        ("mean(a) - histogram(a)", "at character 11: histogram has many cells"),
        ("mean(a) - fraction(a > 0)", "at character 11: a value (a) minus a share has no unit; subtract statistics of "
         "the same kind, like"),
        ("variance(a) - mean(a)", "a variance or covariance (a²) minus a value (a) has no unit"),
        ("mean(d) - mean(s)", "a date minus a time has no unit"),
        ("mean(d) - mean(a)", "a date minus a value (a) has no unit"),
        ("count(a > 1) - fraction(a > 1)", "a number of rows minus a share has no unit"),
        ("correlation(a, n) - mean(a)", "a correlation minus a value (a) has no unit"),
        ("median(o) - median(o)", "at character 1: labels cannot be subtracted; ask for each quantile by itself"),
        ("mean(a) - median(p)", "at character 11: labels cannot be subtracted"),
        ("mean(a) - mean(a | a > 99)", "no synthetic row satisfies the condition"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_remedy(query, complaint):
    with pytest.raises(InputError) as caught:
        answer(SMALL, query)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(query[:80])
    assert "\n" not in str(caught.value)
