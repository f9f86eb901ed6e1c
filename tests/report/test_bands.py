"""Bands are never too narrow: no table within the bound leaves them. And not too wide: one comes to their edge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from certsynth.domain import Category, Ordered
from certsynth.report import bands, charts
from certsynth.report.binned_counts import BinnedCounts, bin_counts
from certsynth.report.columns import column_view

REACH = 7
MISSING = Ordered(name="x", kind="integer", low=0, high=REACH, missing=True)


def extreme(counts: np.ndarray, bound: float, weights: np.ndarray) -> float:
    """The largest average of `weights` over tables within `bound`: the linear program of transport, written out.

    Places 0..REACH of a line of length 1, and the last one apart at distance 1 (missing), if it is there.
    """
    size = len(counts)
    cost = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / REACH
    cost[REACH + 1 :] = 1.0
    cost[:, REACH + 1 :] = 1.0
    np.fill_diagonal(cost, 0.0)
    gain = np.tile(weights, (size, 1))
    from_each = np.kron(np.eye(size), np.ones(size))
    answer = linprog(
        -gain.ravel(), A_ub=[cost.ravel()], b_ub=[bound], A_eq=from_each, b_eq=counts / counts.sum(), method="highs"
    )
    return -float(answer.fun)


def binned_counts(counts: np.ndarray, *, missing: bool) -> BinnedCounts:
    on = counts[: REACH + 1]
    there = np.flatnonzero(on)
    absent = int(counts[REACH + 1 :].sum())
    return BinnedCounts(
        codes=tuple(map(int, there)),
        counts=tuple(map(int, on[there])),
        per=float(REACH),
        absent=absent,
        missing=missing,
        moved=0.0,
    )


def cases(number: int = 25) -> list[tuple[np.ndarray, float, bool]]:
    rng = np.random.default_rng(5)
    made = []
    for i in range(number):
        missing = bool(i % 2)
        counts = rng.multinomial(90, rng.dirichlet(np.full(REACH + 1 + missing, 0.5)))
        made.append((counts, float(rng.choice([0.0, 0.004, 0.03, 0.1, 0.4, 1.0])), missing))
    return made


@pytest.mark.parametrize(("counts", "bound", "missing"), cases())
def test_shares_up_to_a_value_are_those_of_the_linear_program(counts: np.ndarray, bound: float, missing: bool) -> None:
    found = binned_counts(counts, missing=missing)
    for t in range(REACH + 1):
        inside = np.append(np.arange(REACH + 1) <= t, np.zeros(int(missing))).astype(float)
        least, largest = bands.share_up_to(found, bound, t / REACH, 1 / REACH)
        exact = 1 - extreme(counts, bound, 1 - inside), extreme(counts, bound, inside)
        assert least <= exact[0] + 1e-12
        assert exact[1] - 1e-12 <= largest
        assert (least, largest) == pytest.approx(exact, abs=1e-6)  # the slack of last bits, over a short way


@pytest.mark.parametrize(("counts", "bound", "missing"), cases())
def test_quantiles_are_where_the_linear_program_lets_them_be(counts: np.ndarray, bound: float, missing: bool) -> None:
    """q can be above the median iff some table in reach has less than half of its values up to q; likewise below."""
    found = binned_counts(counts, missing=missing)
    if not found.counts:
        return
    for p in (0.25, 0.5, 0.9):
        low, high = bands.quantile_range(found, bound, p)
        for t in range(REACH + 1):
            excess = np.append(np.where(np.arange(REACH + 1) <= t, 1 - p, -p), np.zeros(int(missing)))
            can_be_below = extreme(counts, bound, excess) > 1e-6  # more than p of the values are up to t
            can_be_above = extreme(counts, bound, -excess) > 1e-6  # less than p of them are
            if can_be_below:
                assert low <= t / REACH + 1e-9
            if can_be_above:
                assert high > t / REACH - 1e-9


@pytest.mark.parametrize(("counts", "bound", "missing"), cases())
def test_the_drawn_band_holds_the_certified_shares(counts: np.ndarray, bound: float, missing: bool) -> None:
    column = replace(MISSING, missing=missing)
    found = binned_counts(counts, missing=missing)
    steps = bands.share_band(column, found, bound)
    assert len(steps) == REACH + 1
    for t, (left, right, least, largest) in enumerate(steps):
        assert (left, right) == (t / (REACH + 1), (t + 1) / (REACH + 1))
        exact = bands.share_up_to(found, bound, t / REACH, 1 / REACH)
        assert least <= exact[0]
        assert exact[1] <= largest


@pytest.mark.parametrize(
    "column",
    [
        Ordered(name="x", kind="number", low=-3.0, high=7.0, missing=True),
        Ordered(name="x", kind="integer", low=0, high=5000),
        Ordered(name="x", kind="date", low=0, high=9000, missing=True),
        Ordered(name="x", kind="datetime", low=10**9, high=10**9 + 10**7, missing=True),
        Ordered(name="x", kind="number", low=0.0, high=1.0, weight=MISSING.weight / 3),
    ],
)
def test_many_values_are_put_together_and_the_band_is_wider_for_it(column: Ordered) -> None:
    """Against the shares of tables that are made by moving every row of the synthetic one: none leaves the band."""
    rng = np.random.default_rng(8)
    clean = rng.beta(2, 5, 3000)
    clean = np.floor(clean * column.reach + 0.5) if column.whole else clean
    found = bin_counts(column, clean, absent=0)
    assert len(found.codes) <= 401
    assert found.moved > 0
    bound = 0.02
    shift = np.floor(bound * column.reach) if column.whole else bound  # every row, by no more than the bound
    values = column.reach + 1 if column.whole else 1
    for way in (-1, 1):
        moved = np.clip(clean + way * shift, 0, column.reach)
        for left, right, least, largest in bands.share_band(column, found, bound):
            for part in (0.001, 0.3, 0.7, 0.999):
                t = (left + part * (right - left)) * values
                share = np.mean(moved <= (np.floor(t) if column.whole else t))
                assert least <= share <= largest


def test_a_band_that_is_too_narrow_would_be_seen() -> None:
    """The comparison with the linear program fails where the bound is taken for half of what it is."""
    counts, bound, missing = next(case for case in cases() if case[1] == 0.03)
    found = binned_counts(counts, missing=missing)
    gaps = []
    for t in range(REACH):
        inside = np.append(np.arange(REACH + 1) <= t, np.zeros(int(missing))).astype(float)
        gaps.append(extreme(counts, bound, inside) - bands.share_up_to(found, bound / 2, t / REACH, 1 / REACH)[1])
    assert max(gaps) > 0.01


@pytest.mark.parametrize(("counts", "bound", "missing"), cases(10))
def test_whiskers_hold_what_the_linear_program_reaches(counts: np.ndarray, bound: float, missing: bool) -> None:
    names = tuple("abcdefgh")
    ordinal = Ordered(name="x", kind="ordinal", low=0, high=REACH, values=names, missing=missing)
    codes = np.repeat(np.append(np.arange(REACH + 1.0), [np.nan] * missing), counts)
    bars = column_view(ordinal, ordinal.decode(codes), bound)["spread"]["bars"]
    for i, bar in enumerate(bars):
        only = np.eye(REACH + 1 + missing)[i]
        assert bar["least"] <= 1 - extreme(counts, bound, 1 - only) + 1e-9
        assert extreme(counts, bound, only) - 1e-9 <= bar["largest"]
        assert bar["largest"] == pytest.approx(extreme(counts, bound, only), abs=1e-6)
    category = Category(name="x", values=names, missing=missing)
    codes = np.repeat(np.arange(REACH + 1 + missing), counts)
    spread = column_view(category, category.decode(codes), bound)["spread"]
    for bar in [*spread["bars"], *([spread["missing"]] if missing else [])]:
        assert bar["least"] == max(0.0, bar["share"] - bound)
        assert bar["largest"] == min(1.0, bar["share"] + bound)


def test_paths_of_the_band_are_rounded_outward() -> None:
    steps = [{"from": 0.0, "to": 0.5, "least": 0.12345, "share": 0.3, "largest": 0.45678}]
    steps += [{"from": 0.5, "to": 1.0, "least": 0.9, "share": 1.0, "largest": 1.0}]
    drawn = charts._band(steps)
    assert drawn["area"] == "M0 54.3V54.3H500V0H1000V10H500V87.7H0z"
    assert drawn["line"] == "M0 100V70H500V0H1000"
