"""Sup-norm noise: its law, its cost, its sampler step by step, its tails, and a source without a seed."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from certsynth.errors import TooLarge, UnsafeNoise
from certsynth.mechanisms import Budget, Neighbours, NoisyScalars, Sensitivity, Unit, measure_together, sup_norm
from certsynth.mechanisms.samplers import ExactNoise, SimulatedNoise, calibrated_scale, is_enough, tail_quantile
from certsynth.mechanisms.scalars import is_calibrated
from certsynth.mechanisms.sup_norm import (
    Radius,
    draw_geometric,
    draw_radius,
    draw_sup_norm,
    flip_logarithm,
    self_test,
    simulate_sup_norm,
)
from certsynth.mechanisms.sup_norm_tail import sup_norm_quantile

ALARM = 1e-9
"""The chance that a χ² test of the true law fails; its controls pass with a chance below 10⁻⁹, too."""

DRAWS = 1_500
QUICK_LAWS = [(1, Fraction(1, 2)), (2, Fraction(1)), (12, Fraction(1, 3))]
MORE_LAWS = [(1, Fraction(3)), (3, Fraction(1)), (3, Fraction(4)), (91, Fraction(1, 10))]
laws = pytest.mark.parametrize(
    ("size", "rate"), [*QUICK_LAWS, *(pytest.param(*law, marks=pytest.mark.slow) for law in MORE_LAWS)], ids=str
)


# ------------------------------------------------------------ the law


def shells(size: int, rate: float) -> np.ndarray:
    """P(max|z| = m) for m = 0, 1, …, as far out as any draw can be."""
    m = np.arange(math.ceil(4 * size / rate + 60 / rate) + 2)
    with np.errstate(divide="ignore"):
        logarithm = (
            size * np.log(2 * m + 1.0) + np.log1p(-((np.maximum(2 * m - 1, 0) / (2 * m + 1)) ** size)) - rate * m
        )
    weights = np.exp(logarithm - logarithm.max())
    return weights / weights.sum()


def fit(found: np.ndarray, chances: np.ndarray) -> float:
    """p-value of χ² over bins of consecutive outcomes, each of which is expected to hold at least 10 draws."""
    expected, held, seen, counts = [], 0.0, 0, []
    for mass, count in zip(found.sum() * chances, found, strict=True):
        held, seen = held + mass, seen + count
        if held >= 10:
            expected.append(held)
            counts.append(seen)
            held, seen = 0.0, 0
    expected[-1] += held
    counts[-1] += seen
    return float(chisquare(counts, np.array(expected) * sum(counts) / sum(expected)).pvalue)


@functools.cache
def drawn(size: int, rate: Fraction) -> np.ndarray:
    return np.array([draw_sup_norm(size, rate) for _ in range(DRAWS)])


@functools.cache
def simulated(size: int, rate: Fraction) -> np.ndarray:
    rng = np.random.default_rng(size)
    return np.array([simulate_sup_norm(rng, size, float(1 / rate)) for _ in range(DRAWS)])


def fit_of_largest(draws: np.ndarray, rate: float) -> float:
    chances = shells(draws.shape[1], rate)
    return fit(np.bincount(np.abs(draws).max(axis=1), minlength=len(chances)), chances)


@pytest.mark.quick_cases(3)
@laws
@pytest.mark.parametrize("source", [drawn, simulated])
def test_the_largest_entry_has_the_stated_law(source, size, rate):
    """1,500 draws. Controls: a rate that is off by a half."""
    draws = source(size, rate)
    assert fit_of_largest(draws, float(rate)) > ALARM
    assert fit_of_largest(draws, float(rate) * 1.5) < ALARM
    assert fit_of_largest(draws, float(rate) / 1.5) < ALARM


def test_all_points_of_a_shell_are_equally_likely():
    """The 25 points around 0, against p^max|z|; a law that falls with |z₁| + |z₂| is refused."""
    rate = Fraction(1)
    seen = Counter(map(tuple, drawn(2, rate).tolist()))
    points = list(itertools.product(range(-2, 3), repeat=2))
    found = np.array([seen[point] for point in points])
    fits = []
    for norm in (lambda z: max(map(abs, z)), lambda z: sum(map(abs, z))):
        weights = np.array([math.exp(-float(rate) * norm(point)) for point in points])
        fits.append(float(chisquare(found, found.sum() * weights / weights.sum()).pvalue))
    assert fits[0] > ALARM
    assert fits[1] < ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("size", "rate"), [(2, Fraction(3, 5)), (91, Fraction(1, 20)), (1128, Fraction(2))], ids=str)
def test_many_draws_have_the_stated_law(size, rate):
    """40,000 radii; a rate that is off by a factor of 1 ± 0.15/√size is refused."""
    law = Radius(size, rate)
    radii = np.array([draw_radius(law) for _ in range(40_000)])
    for factor in (1.0, 1 + 0.15 / math.sqrt(size), 1 - 0.15 / math.sqrt(size)):
        r = np.arange(radii.max() * 2 + 10)
        logarithm = size * np.log(2 * r + 1.0) - float(rate) * factor * r
        weights = np.exp(logarithm - logarithm.max())
        p = fit(np.bincount(radii, minlength=len(r)), weights / weights.sum())
        assert (p > ALARM) == (factor == 1.0)


# ------------------------------------------------------------ the sampler, step by step


def proposals(law: Radius, reach: int, monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[Decimal, Decimal]]:
    """Of every radius that `draw_radius` can propose: the probability of the proposal, and of accepting it.

    `draw_radius` itself is run, with its three kinds of randomness replaced by a script.
    """
    found: dict[int, tuple[Decimal, Decimal]] = {}
    for side, steps in itertools.product((1, 0), range(reach)):
        sides = iter([side, 1])
        waiting = iter([steps, 0])
        asked: list[Decimal] = []

        def toss(logarithm, asked=asked):
            asked.append(logarithm())
            return True

        with monkeypatch.context() as patch:
            patch.setattr(sup_norm.secrets, "randbits", lambda _, sides=sides: next(sides))
            patch.setattr(sup_norm, "draw_geometric", lambda _, waiting=waiting: next(waiting))
            patch.setattr(sup_norm, "flip_logarithm", toss)
            radius = draw_radius(law)
        if side == 0 and law.right - 1 - steps < 0:
            continue  # there is no left side, or the proposal was thrown away and another made
        chance = (-_exact(law.proposal_rate) * steps).exp() * (1 - (-_exact(law.proposal_rate)).exp())
        found[radius] = chance / (1 if law.right == 0 else 2), asked[0].exp()
    return found


def _exact(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


@pytest.mark.parametrize(
    ("size", "rate"),
    [(1, Fraction(1)), (2, Fraction(2, 3)), (3, Fraction(1, 2)), (3, Fraction(9)), (5, Fraction(7, 4))],
    ids=str,
)
def test_the_rejection_scheme_gives_exactly_the_law_and_its_privacy(size, rate, monkeypatch):
    """All outcomes with 60 digits: P(z) falls by exactly e^rate from shell to shell, and by no more for neighbours."""
    with localcontext(prec=60):
        found = proposals(Radius(size, rate), 160, monkeypatch)
        accepted = {radius: chance * heads for radius, (chance, heads) in found.items()}
        whole = sum(accepted.values())
        assert all(heads <= 1 for _, heads in found.values())
        assert whole > Decimal(1) / 4
        p = (-_exact(rate)).exp()
        chance_of_point = [
            sum(accepted.get(r, 0) / (2 * r + 1) ** size for r in range(m, 160)) / whole for m in range(8)
        ]
        truncated = Decimal("1e-15")
        for m in range(7):
            assert abs(chance_of_point[m + 1] / chance_of_point[m] / p - 1) < truncated
        if size > 3:
            return
        change, epsilon = 2, 2 * rate  # every value changes by up to 2
        worst = max(
            chance_of_point[max(map(abs, z))] / chance_of_point[max(abs(a - b) for a, b in zip(z, shift, strict=True))]
            for z in itertools.product(range(-2, 3), repeat=size)
            for shift in itertools.product(range(-change, change + 1), repeat=size)
        )
        assert abs(worst / _exact(epsilon).exp() - 1) < truncated  # attained, and never more
        beyond = chance_of_point[0] / chance_of_point[change + 1]
        assert beyond > _exact(epsilon).exp() * Decimal("1.1")  # a larger change would not be covered


def test_for_one_integer_it_is_laplace_noise():
    for rate in (Fraction(1, 7), Fraction(2)):
        p = math.exp(-rate)
        chances = shells(1, float(rate))
        laplace = [(1 - p) / (1 + p) * p**m * (2 if m else 1) for m in range(len(chances))]
        assert chances == pytest.approx(laplace, rel=1e-9, abs=1e-15)
        for beta in (Fraction(1, 3), Fraction(1, 20), Fraction(1, 10**6)):
            assert sup_norm_quantile(1, float(1 / rate), beta) == tail_quantile(Unit.EPSILON, float(1 / rate), beta)


def test_acceptance_is_a_probability_and_no_law_takes_many_trials():
    """Sizes up to 20,000 and rates from 100 to 1/100: 1.3 to 3.5 trials on average, where 50 are proved."""
    trials = []
    for size, rate in itertools.product(
        (1, 2, 3, 7, 91, 1128, 4950, 20_000), map(Fraction, ("100", "30", "5", "1", "1/3", "1/100"))
    ):
        law = Radius(size, rate)
        top, spread = law.top(), math.sqrt(size) / float(rate)
        r = np.arange(max(0, top - math.ceil(12 * spread) - 2), top + math.ceil(12 * spread + 40 / float(rate)) + 3)
        steps = np.where(r >= law.right, r - law.right, law.right - 1 - r)
        log_ratio = size * np.log1p(2 * (r - top) / (2 * top + 1)) - float(rate) * (r - top)
        logarithm = log_ratio + float(law.proposal_rate) * steps - 0.5
        assert logarithm.max() <= 1e-9
        with localcontext(prec=40):
            for i in (0, len(r) // 3, len(r) - 1):
                assert float(law.log_acceptance(int(r[i]), int(steps[i]), top)) == pytest.approx(logarithm[i], abs=1e-7)
        tail = -math.expm1(-float(law.proposal_rate)) / (1 if law.right == 0 else 2)
        trials.append(1 / float((np.exp(logarithm - float(law.proposal_rate) * steps) * tail).sum()))
    assert 1 <= min(trials) < max(trials) < 3.6


@pytest.mark.parametrize("size", [1, 2, 9, 10, 4950, 10**6])
@pytest.mark.parametrize("rate", [Fraction(1, 3**40), Fraction(1, 1000), Fraction(1), Fraction(10**4)], ids=str)
def test_acceptance_is_below_one_wherever_it_is_largest(size, rate):
    """Where the tangents touch: R + ½ = size/(rate ± rate′), at R = 0, and at both starts."""
    law = Radius(size, rate)
    top = law.top()
    around = [size / (rate + law.proposal_rate), size / rate]
    if rate > law.proposal_rate:
        around.append(size / (rate - law.proposal_rate))
    radii = {max(0, math.floor(y) + shift) for y in around for shift in (-1, 0, 1)} | {0, law.right}
    with localcontext(prec=80):
        for radius in radii:
            steps = radius - law.right if radius >= law.right else law.right - 1 - radius
            assert law.log_acceptance(radius, steps, top) <= 0


def test_a_coin_near_its_border_draws_more_bits(monkeypatch):
    """The first 64 bits of 1/3 leave it open whether U is below 1/3: the next 64 decide."""
    third = (1 << 64) // 3
    for following, heads in ((third - 1, True), (third + 1, False)):
        words = iter([third, following])
        with monkeypatch.context() as patch:
            patch.setattr(sup_norm.secrets, "randbits", lambda _, words=words: next(words))
            assert flip_logarithm(lambda: -Decimal(3).ln()) is heads
            assert next(words, None) is None
    for word, heads in ((third - 1, True), (third + 1, False), (0, True)):
        with monkeypatch.context() as patch:
            patch.setattr(sup_norm.secrets, "randbits", lambda _, word=word: word)
            assert flip_logarithm(lambda: -Decimal(3).ln()) is heads


@pytest.mark.parametrize("rate", [Fraction(2, 7), Fraction(5, 2)], ids=str)
def test_geometric_numbers_have_their_law(rate):
    found = np.bincount([draw_geometric(rate) for _ in range(DRAWS)], minlength=400)[:400]
    fits = [fit(found, np.exp(-x * np.arange(400)) * -np.expm1(-x)) for x in (float(rate), 2 * float(rate))]
    assert fits[0] > ALARM
    assert fits[1] < ALARM


def test_geometric_numbers_of_tiny_rates_need_no_longer():
    drawn = [draw_geometric(Fraction(1, 10**30 + 7)) for _ in range(20)]
    assert 10**27 < max(drawn) < 10**33


# ------------------------------------------------------------ tails


def missed(size: int, scale: float, t: int, *, jointly: int, both_sides: bool) -> float:
    """P(one of the values exceeds t), by a sum over all radii."""
    r = np.arange(math.ceil(4 * size * scale + 80 * scale) + 2)
    logarithm = size * np.log(2 * r + 1.0) - r / scale
    weights = np.exp(logarithm - logarithm.max())
    share = (1 + both_sides) * np.maximum(r - t, 0) / (2 * r + 1)
    return float(weights @ -np.expm1(jointly * np.log1p(-np.minimum(share, 1 - 1e-16))) / weights.sum())


def every_point(size: int, scale: float, t: int, *, both_sides: bool) -> float:
    """The same by enumeration of all vectors."""
    reach = math.ceil(scale * (size + 30))
    axis = np.arange(-reach, reach + 1)
    largest = functools.reduce(np.maximum.outer, [np.abs(axis)] * size)
    signed = functools.reduce(np.maximum.outer, [axis] * size)
    weights = np.exp(-largest / scale)
    return float(weights[(largest if both_sides else signed) > t].sum() / weights.sum())


@pytest.mark.parametrize(("size", "scale"), [(1, 4.0), (2, 3.0), (3, 0.7), (3, 1.5)])
@pytest.mark.parametrize("both_sides", [False, True])
def test_tails_agree_with_enumeration_of_all_vectors(size, scale, both_sides):
    for t in range(0, 9, 2):
        found = missed(size, scale, t, jointly=size, both_sides=both_sides)
        assert found == pytest.approx(every_point(size, scale, t, both_sides=both_sides), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("size", "scale"), [(1, 0.05), (3, 0.3), (7, 1.0), (7, 20.0), (91, 3.0), (240, 2.0), (4950, 0.5)]
)
@pytest.mark.parametrize("beta", [Fraction(1, 4), Fraction(1, 20), Fraction(1, 10**9)], ids=str)
@pytest.mark.parametrize(("single", "both_sides"), [(True, False), (False, False), (False, True)])
def test_a_quantile_is_the_least_that_covers(size, scale, beta, single, both_sides):
    how = {"jointly": 1 if single else size, "both_sides": both_sides}
    t = sup_norm_quantile(size, scale, beta, **how)
    assert missed(size, scale, t, **how) <= beta
    assert t == 0 or missed(size, scale, t - 1, **how) > beta * (1 - Fraction(1, 10**7))


@pytest.mark.parametrize(("size", "scale"), [(1, 3000.0), (2, 2000.5), (7, 900.0), (91, 123.4), (1128, 55.0)])
@pytest.mark.parametrize("both_sides", [False, True])
def test_where_radii_come_in_blocks_a_quantile_covers_and_is_hardly_larger(size, scale, both_sides):
    for beta in (Fraction(1, 10), Fraction(1, 10**6)):
        t = sup_norm_quantile(size, scale, beta, both_sides=both_sides)
        assert missed(size, scale, t, jointly=size, both_sides=both_sides) <= beta
        assert missed(size, scale, math.floor(t * 0.99), jointly=size, both_sides=both_sides) > beta


@pytest.mark.parametrize("beta", [Fraction(1, 2), Fraction(1, 10**12), Fraction(1, 10**40)], ids=str)
def test_quantiles_of_extreme_scales_and_probabilities_are_found(beta):
    """At 10⁻⁴⁰ they lie beyond the blocks; for one integer the law is Laplace, which has a closed form."""
    for scale in (1e-3, 2.0, 1e9, 2.0**55):
        found, exact = sup_norm_quantile(1, scale, beta), tail_quantile(Unit.EPSILON, scale, beta)
        assert exact <= found <= exact * 1.03 + scale / 200 + 1
        assert sup_norm_quantile(2, scale, beta) >= found


def test_some_value_is_missed_as_often_as_stated():
    """1,500 vectors of twelve values at β = 0.2, within 6.5 standard errors, and no quantile of one value will do."""
    draws, scale, beta = drawn(12, Fraction(1, 3)), 3.0, Fraction(1, 5)
    noisy = NoisyScalars((0,) * 12, scale, _cost(), sensitivity=Sensitivity.of_each(3, 12))
    margin = 6.5 * math.sqrt(0.2 * 0.8 / DRAWS)
    assert np.mean(draws.max(axis=1) > noisy.joint_slack(beta)) <= 0.2 + margin
    assert np.mean(-draws.min(axis=1) > noisy.joint_slack(beta)) <= 0.2 + margin
    assert np.mean(np.abs(draws).max(axis=1) > noisy.joint_slack(beta, both_sides=True)) <= 0.2 + margin
    assert np.mean(draws[:, 0] > noisy.slack(beta)) <= 0.2 + margin
    assert np.mean(draws.max(axis=1) > noisy.slack(beta)) > 0.2 + margin
    assert np.mean(draws[:, 0] > tail_quantile(Unit.EPSILON, scale, beta)) > 0.2 + margin


def _cost():
    return measure_together([0], change=1, budget=Budget(Fraction(1)), neighbours=Neighbours.REPLACE_ONE).cost


# ------------------------------------------------------------ as a measurement


@pytest.mark.parametrize("unit", list(Unit))
def test_the_cost_is_an_exact_upper_bound(unit):
    for change, amount in itertools.product((1, 3, 32_561), map(Fraction, ("1/3", "1/7", "2", "19/200"))):
        sensitivity, budget = Sensitivity.of_each(change, 50), Budget(amount, unit)
        scale = calibrated_scale(sensitivity, budget)
        if unit is Unit.EPSILON:
            assert Fraction(change) / Fraction(scale) <= amount
        else:
            assert 50 * change**2 / (2 * Fraction(scale) ** 2) <= amount
        assert is_calibrated(scale, sensitivity, budget)
        assert not is_enough(scale * (1 - 1e-9), sensitivity, budget)
        assert not is_calibrated(scale * 1.001, sensitivity, budget)


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(np.random.default_rng(3))])
def test_values_are_measured_together_in_either_unit(unit, noise):
    """In ε the noise is far smaller than that of twenty Laplace measurements, and in ρ it is Gaussian."""
    values = [10**6 * i for i in range(20)]
    budget = Budget(Fraction(1, 2), unit)
    noisy = measure_together(values, change=4, budget=budget, neighbours=Neighbours.ADD_REMOVE, noise=noise)
    slack = noisy.joint_slack(Fraction(1, 10**9), both_sides=True)
    assert all(abs(a - b) <= slack for a, b in zip(values, noisy.values, strict=True))
    assert noisy.cost.spent == budget
    assert noisy.sup_norm is (unit is Unit.EPSILON)
    assert noisy.releasable is noise.releasable
    assert noisy.scale == pytest.approx(8 if unit is Unit.EPSILON else math.sqrt(20 * 16), rel=1e-12)
    split = tail_quantile(Unit.EPSILON, 20 * 8.0, Fraction(1, 400))
    assert noisy.joint_slack(Fraction(1, 20)) < split / 3


def test_what_makes_no_sense_is_refused():
    given = {"change": 1, "budget": Budget(Fraction(1)), "neighbours": Neighbours.REPLACE_ONE}
    for values, wrong in (
        ([], {}),
        ([1], {"change": 0}),
        ([1], {"budget": Budget(Fraction(0))}),
    ):
        with pytest.raises(ValueError, match="noise needs"):
            measure_together(values, **(given | wrong))
    with pytest.raises(ValueError, match="positive rate"):
        Radius(2, Fraction(0))
    with pytest.raises(ValueError, match="close to 0"):
        sup_norm_quantile(2, 1.0, Fraction(0))
    with pytest.raises(TooLarge, match="64 bits"):
        measure_together([0] * 4950, **(given | {"change": 2**45}))


def test_sums_beyond_64_bits_are_cut_at_the_ends():
    given = {"change": 2**50, "budget": Budget(Fraction(1)), "neighbours": Neighbours.REPLACE_ONE}
    noisy = measure_together([2**63 - 1, -(2**63)] * 8, **given).values
    assert all(-(2**63) <= value < 2**63 for value in noisy)
    assert {2**63 - 1, -(2**63)} & set(noisy)


def test_sensitivities_of_several_vectors_have_a_sum_without_a_bound_on_each():
    """Laplace noise on the sum is always enough, whichever vectors are put together."""
    together = Sensitivity.of_each(3, 4) + Sensitivity(2, 2)
    assert together == Sensitivity(14, 38)
    assert Sensitivity.of_each(3, 4) * 5 == Sensitivity.of_each(15, 4)


# ------------------------------------------------------------ no seed, and a start-up test


def test_seeds_of_other_generators_have_no_influence():
    found = set()
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  # on purpose: the old global state
        found.add(tuple(draw_sup_norm(40, Fraction(1, 1000))))
    assert len(found) == 2


def test_rehearsals_repeat_for_their_seed():
    draws = [simulate_sup_norm(np.random.default_rng(seed), 5, 1000.0).tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_the_start_up_test_refuses_broken_noise(monkeypatch):
    size, rate = 24, Fraction(1, 3)
    rng = np.random.default_rng(8)
    sound = [simulate_sup_norm(rng, size, 3.0).tolist() for _ in range(150)]
    self_test(sound, size=size, rate=rate)
    broken = [
        [],
        [[0] * size] * 150,
        [sound[0]] * 150,
        [[z + 40 for z in row] for row in sound],
        [[2 * z for z in row] for row in sound],
        [[z // 2 for z in row] for row in sound],
        [[abs(z) for z in row] for row in sound],
        [[math.nan] * size] * 150,
    ]
    for draws in broken:
        with pytest.raises(UnsafeNoise, match="start-up test"):
            self_test(draws, size=size, rate=rate)
    sup_norm._self_test.cache_clear()
    monkeypatch.setattr(sup_norm, "draw_radius", lambda law: 1)
    with pytest.raises(UnsafeNoise):
        draw_sup_norm(3, Fraction(1))
