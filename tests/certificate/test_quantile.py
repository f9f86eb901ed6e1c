"""Quantiles by rank cover as they say, over noise and draws together; the plug-in ones do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

from certsynth.certificate.quantile import joint_quantiles, rank_quantile
from certsynth.mechanisms import Unit
from certsynth.mechanisms.samplers import simulate

FALSE_ALARM = 1e-7
TRIALS = 20_000
Quantile = Callable[[np.ndarray, Fraction], float]


def covers(hits: int, trials: int, beta: Fraction) -> bool:
    """Whether so many hits are no evidence against a coverage of 1 − β, at a false alarm of 1 in 10 million."""
    return bool(binomtest(hits, trials, float(1 - beta), alternative="less").pvalue > FALSE_ALARM)


def hits(
    quantile: Quantile, draws: int, beta: Fraction, sample: Callable[[np.random.Generator, int], np.ndarray]
) -> int:
    """How often a fresh value is at most the quantile of `draws` others, in 20,000 trials."""
    rng = np.random.default_rng(draws)
    values = sample(rng, TRIALS * (draws + 1)).reshape(TRIALS, draws + 1)
    return sum(bool(row[0] <= quantile(row[1:], beta)) for row in values)


def plug_in(draws: np.ndarray, beta: Fraction) -> float:
    return float(np.quantile(draws, float(1 - beta)))


CONTINUOUS = [(10, Fraction(1, 10)), (19, Fraction(1, 10)), (20, Fraction(1, 10)), (25, Fraction(1, 20))]


@pytest.mark.parametrize(("draws", "beta"), CONTINUOUS)
def test_rank_quantile_covers(draws: int, beta: Fraction) -> None:
    found = hits(rank_quantile, draws, beta, lambda rng, size: rng.exponential(size=size))
    assert covers(found, TRIALS, beta)
    # and by no more than the one rank that it must round up
    assert found / TRIALS < float(1 - beta) + 1 / (draws + 1) + 0.02


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("draws", "beta"), CONTINUOUS)
def test_plug_in_quantile_covers_less(draws: int, beta: Fraction) -> None:
    """Control: the same test refuses the empirical quantile of the draws (0.855 instead of 0.9 at B = 19)."""
    found = hits(plug_in, draws, beta, lambda rng, size: rng.exponential(size=size))
    assert not covers(found, TRIALS, beta)


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("scale", [0.2, 0.5, 3.0])
def test_rank_quantile_covers_values_with_ties(scale: float, unit: Unit) -> None:
    """Discrete noise: ties only help."""
    found = hits(rank_quantile, 19, Fraction(1, 10), lambda rng, size: np.abs(simulate(rng, unit, scale, (size,))))
    assert covers(found, TRIALS, Fraction(1, 10))


def test_rank_is_the_least_that_covers_for_every_number_of_draws() -> None:
    """Exactly: the value is the r-th smallest with r/(B+1) ≥ 1 − β > (r−1)/(B+1)."""
    for beta in (
        Fraction(1, 20),
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(1, 200),
        Fraction(9, 200),
        Fraction(999, 1000),
    ):
        for size in range(1, 260):
            draws = np.random.default_rng(size).permutation(size).astype(np.float64) + 1
            value = rank_quantile(draws, beta)
            if math.isinf(value):
                assert Fraction(size, size + 1) < 1 - beta
                assert size < 1 / beta - 1
            else:
                rank = int(value)
                assert Fraction(rank, size + 1) >= 1 - beta > Fraction(rank - 1, size + 1)


def test_binary_floats_would_take_a_wrong_rank() -> None:
    """Control, and why β is a fraction: 0.9 · 20 and the like are not what they seem."""
    wrong = [
        (b, size)
        for b in range(1, 100)
        for size in range(1, 400)
        if math.ceil((1 - b / 100) * (size + 1)) != math.ceil((1 - Fraction(b, 100)) * (size + 1))
    ]
    assert wrong


def test_too_few_draws_bound_nothing() -> None:
    assert rank_quantile(np.arange(18.0), Fraction(1, 20)) == math.inf
    assert rank_quantile(np.arange(19.0), Fraction(1, 20)) == 18.0
    assert rank_quantile(np.empty(0), Fraction(1, 20)) == math.inf


# ------------------------------------------------------------ several at once

SPREAD = np.geomspace(0.1, 10, 10)


def joint_hits(bounds: Callable[[np.ndarray], np.ndarray], draws: int = 99, trials: int = 4_000) -> int:
    """How often ten independent losses of very different size all stay below their bounds."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(trials):
        values = rng.exponential(size=(draws + 1, 10)) * SPREAD
        found += bool((values[0] <= bounds(values[1:])).all())
    return found


@pytest.mark.parametrize("scales", [SPREAD, np.ones(10), SPREAD[::-1].copy()], ids=["apt", "equal", "inept"])
def test_joint_quantiles_are_valid_together_whatever_the_scales(scales: np.ndarray) -> None:
    beta = Fraction(1, 10)
    assert covers(joint_hits(lambda draws: joint_quantiles(draws, scales, beta)), 4_000, beta)


def test_quantiles_of_each_column_are_not_valid_together() -> None:
    """Control: about 0.9^10 = 0.35 instead of 0.9."""
    beta = Fraction(1, 10)
    found = joint_hits(lambda draws: np.array([rank_quantile(column, beta) for column in draws.T]))
    assert not covers(found, 4_000, beta)
    assert found / 4_000 < 0.5


def test_scales_taken_from_the_same_draws_are_not_allowed() -> None:
    """Control: with few draws, scales that look at them make bounds that cover less than was promised."""
    beta = Fraction(1, 10)
    found = joint_hits(lambda draws: joint_quantiles(draws, draws.max(axis=0), beta), draws=9)
    assert not covers(found, 4_000, beta)


def test_apt_scales_make_small_losses_small_bounds() -> None:
    draws = np.random.default_rng(8).exponential(size=(199, 10)) * SPREAD
    bounds = joint_quantiles(draws, SPREAD, Fraction(1, 10))
    assert bounds == pytest.approx(bounds[0] * SPREAD / SPREAD[0])
    assert (joint_quantiles(draws, np.ones(10), Fraction(1, 10)) >= bounds[-1] * 0.5).all()


def test_one_column_is_the_rank_quantile() -> None:
    draws = np.random.default_rng(9).exponential(size=(99, 1))
    assert joint_quantiles(draws, np.array([3.0]), Fraction(1, 10)) == pytest.approx(
        rank_quantile(draws[:, 0], Fraction(1, 10))
    )


def test_a_scale_of_zero_counts_as_the_smallest_other() -> None:
    """It may be chance: nothing says that the loss is always 0."""
    draws = np.random.default_rng(10).exponential(size=(99, 3))
    found = joint_quantiles(draws, np.array([0.0, 2.0, 1.0]), Fraction(1, 10))
    assert found.tolist() == joint_quantiles(draws, np.array([1.0, 2.0, 1.0]), Fraction(1, 10)).tolist()
    alone = joint_quantiles(draws, np.zeros(3), Fraction(1, 10))
    assert alone.tolist() == joint_quantiles(draws, np.ones(3), Fraction(1, 10)).tolist()


def test_where_there_is_no_noise_at_all_the_bounds_are_zero() -> None:
    assert joint_quantiles(np.zeros((99, 2)), np.zeros(2), Fraction(1, 10)).tolist() == [0.0, 0.0]


def test_too_few_draws_bound_no_column() -> None:
    assert np.isinf(joint_quantiles(np.ones((8, 2)), np.ones(2), Fraction(1, 10))).all()


def rarely_above_zero(bounds: Callable[[np.ndarray, np.ndarray, Fraction], np.ndarray]) -> bool:
    """Whether a loss that is 0 with probability 20/21 is covered at β = 0.01 by bounds with a scale from 20 draws."""
    rng, beta = np.random.default_rng(11), Fraction(1, 100)
    trials, found = 12_000, 0
    for _ in range(trials):
        losses = (rng.random(1 + 20 + 199) < 1 / 21).astype(float)[:, None]
        found += bool(losses[0, 0] <= bounds(losses[21:], losses[1:21].mean(axis=0), beta)[0])
    return covers(found, trials, beta)


def test_a_loss_that_is_rarely_above_zero_is_still_covered() -> None:
    assert rarely_above_zero(joint_quantiles)


def test_taking_a_scale_of_zero_at_its_word_would_not_cover() -> None:
    """Control: it is 0 in 38 % of all pilots, and 1.8 % of all bounds fail, however small β is."""

    def credulous(draws: np.ndarray, scales: np.ndarray, beta: Fraction) -> np.ndarray:
        return joint_quantiles(draws, scales, beta) if scales.any() else np.zeros(len(scales))

    assert not rarely_above_zero(credulous)
