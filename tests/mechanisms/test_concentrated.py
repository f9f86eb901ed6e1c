"""P2 for ρ: what it means in terms of (ε, δ), against dp-accounting, exact formulas and sums over the noise's law."""

from __future__ import annotations

import decimal
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import dp_accounting as accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

import oracles
from certsynth.mechanisms import Budget, Guarantee, Neighbours, Unit, concentrated
from certsynth.mechanisms.concentrated import Privacy, delta_of, epsilon_of, pure_epsilon, rho_of
from certsynth.mechanisms.guarantee import decimal_text

STEP = Fraction(1, 10**12)
RHOS = [Fraction(rho) for rho in ("1e-6", "1e-4", "0.001", "0.0244", "1/7", "0.5", "1", "3.7", "20", "100")]
DELTAS = [Fraction(delta) for delta in ("1e-12", "1e-9", "1e-6", "1e-5", "0.001", "0.01")]
GRID = [(rho, delta) for rho, delta in itertools.product(RHOS, DELTAS) if epsilon_of(rho, delta)]
EPSILONS = [Fraction(epsilon) for epsilon in ("0.0001", "0.01", "0.1", "1/3", "1", "2", "5", "10", "30", "100")]
grid = pytest.mark.parametrize(("rho", "delta"), GRID, ids=str)


def accountant(rho: Fraction, delta: Fraction) -> RdpAccountant:
    """dp-accounting's own search, over orders that lie close together around where the best one must be."""
    centre = math.sqrt(-math.log(delta) / rho)
    return RdpAccountant(orders=(1 + centre * np.geomspace(math.exp(-3), math.exp(3), 3_001)).tolist())


def gaussian_event(rho: Fraction) -> accounting.GaussianDpEvent:
    return accounting.GaussianDpEvent(math.sqrt(1 / (2 * rho)))


def log_gaussian_delta(rho: Fraction, epsilon: Fraction) -> float:
    """ln δ of normal noise, without any bound: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with μ = √(2ρ) (Balle and Wang)."""
    mu, e = math.sqrt(2 * rho), float(epsilon)
    first, second = float(log_ndtr(mu / 2 - e / mu)), e + float(log_ndtr(-mu / 2 - e / mu))
    return first + math.log(-math.expm1(second - first)) if second < first else -math.inf


# ------------------------------------------------------------ another library


@grid
def test_epsilon_is_what_another_accountant_finds(rho: Fraction, delta: Fraction) -> None:
    """Its orders lie on a grid, so ours is never above, and hardly below."""
    theirs = accountant(rho, delta).compose(gaussian_event(rho)).get_epsilon(float(delta))
    ours = float(epsilon_of(rho, delta))
    assert ours <= theirs * (1 + 1e-9)
    assert ours >= theirs * (1 - 1e-4)


def test_the_comparison_sees_a_rho_that_is_off_by_a_thousandth() -> None:
    """Control of the test above."""
    for rho, delta in GRID:
        theirs = accountant(rho, delta).compose(gaussian_event(rho)).get_epsilon(float(delta))
        assert float(epsilon_of(rho * Fraction(1001, 1000), delta)) > theirs * (1 + 1e-4)


@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_rhos_of_several_mechanisms_add_up(delta: Fraction) -> None:
    parts = [Fraction(1, 50), Fraction(1, 3), Fraction(1, 7), Fraction(1, 2)]
    cost = Guarantee.composed(Guarantee(Budget(rho, Unit.RHO), Neighbours.ADD_REMOVE) for rho in parts)
    theirs = accountant(cost.spent.amount, delta)
    for rho in parts:
        theirs.compose(gaussian_event(rho))
    found = theirs.get_epsilon(float(delta))
    assert found * (1 - 1e-4) <= float(epsilon_of(cost.spent.amount, delta)) <= found * (1 + 1e-9)


@pytest.mark.parametrize("parts", [["1"], ["0.05", "0.95"], ["1/3", "1/7", "2"], ["0.1"] * 10], ids=len)
def test_epsilons_of_several_mechanisms_add_up(parts: list[str]) -> None:
    """Laplace noise, by the law of its privacy loss: of which the sum is the largest, at δ = 0."""
    exact = [Fraction(part) for part in parts]
    cost = Guarantee.composed(Guarantee(Budget(epsilon), Neighbours.ADD_REMOVE) for epsilon in exact)
    theirs = PLDAccountant(value_discretization_interval=1e-4)
    for epsilon in exact:
        theirs.compose(accounting.LaplaceDpEvent(float(1 / epsilon)))
    assert theirs.get_epsilon(1e-12) == pytest.approx(float(cost.spent.amount), abs=2e-4 * len(parts))


# ------------------------------------------------------------ the truth


@grid
def test_the_true_epsilon_of_gaussian_noise_is_never_above_ours(rho: Fraction, delta: Fraction) -> None:
    """At our ε its δ is below the one stated, and at half of our ε it is not: the bound is not idle."""
    ours = epsilon_of(rho, delta)
    assert log_gaussian_delta(rho, ours) <= math.log(delta)
    assert log_gaussian_delta(rho, ours / 2) > math.log(delta)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_true_delta_of_gaussian_noise_is_never_above_ours(epsilon: Fraction) -> None:
    for rho in RHOS:
        assert log_gaussian_delta(rho, epsilon) <= math.log(delta_of(rho, epsilon))


def shifted(scale: float, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """The law of the noise and the same law around another count."""
    reach = math.ceil(12 * scale) + shift
    law = np.array([oracles.gaussian_probability(scale, z) for z in range(-reach - shift, reach + 1)])
    return law[shift:], law[: len(law) - shift]


NEAR = [(scale, shift) for scale in (0.5, 1.0, 2.0, 7.5) for shift in (1, 2, 3) if shift <= 4 * scale]


@pytest.mark.parametrize(("scale", "shift"), NEAR)
def test_the_law_of_the_noise_is_as_concentrated_as_stated(scale: float, shift: int) -> None:
    """Rényi divergences of all orders are at most α·Δ²/(2·scale²), by summing; some attain it."""
    p, q = shifted(scale, shift)
    rho = shift**2 / (2 * scale**2)
    for alpha in (1.01, 1.5, 2.0, 5.0, 20.0):
        with np.errstate(divide="ignore"):
            logs = alpha * np.log(p) + (1 - alpha) * np.log(q)
        top = logs[np.isfinite(logs)].max()
        divergence = (top + math.log(np.exp(logs[np.isfinite(logs)] - top).sum())) / (alpha - 1)
        assert divergence <= alpha * rho * (1 + 1e-9)
        if alpha in (2.0, 5.0, 20.0) and alpha * shift < 8 * scale:
            assert divergence > 0.999 * alpha * rho


@pytest.mark.parametrize(("scale", "shift"), NEAR)
def test_the_law_of_the_noise_has_the_delta_stated_or_less(scale: float, shift: int) -> None:
    """δ = Σ max(0, P(z) − e^ε Q(z)), by summing, at the ρ of an exact rational."""
    p, q = shifted(scale, shift)
    rho = Fraction(shift**2) / (2 * Fraction(scale) ** 2)
    for epsilon in EPSILONS[:8]:
        true = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        assert true <= float(delta_of(rho, epsilon)) + 1e-15
    for delta in DELTAS:
        true = float(np.maximum(p - math.exp(epsilon_of(rho, delta)) * q, 0).sum())
        assert true <= float(delta) + 1e-15


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0])
def test_a_pure_epsilon_is_half_its_square_concentrated(epsilon: float) -> None:
    """Of the worst pure mechanism, a coin that lies with probability 1/(1 + e^ε); a smaller ρ would be refuted."""
    heads, tails = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    alphas = 1 + np.geomspace(1e-3, 1e3, 200)
    one, other = alphas * heads + (1 - alphas) * tails, alphas * tails + (1 - alphas) * heads
    ratios = np.logaddexp(one, other) / (alphas - 1) / alphas
    assert ratios.max() <= epsilon**2 / 2
    if epsilon <= 0.5:
        assert ratios.max() > 0.97 * epsilon**2 / 2


# ------------------------------------------------------------ there and back


@grid
def test_rho_of_an_epsilon_is_that_rho(rho: Fraction, delta: Fraction) -> None:
    assert float(rho_of(epsilon_of(rho, delta), delta)) == pytest.approx(float(rho), rel=1e-9, abs=2e-12)


@pytest.mark.parametrize("delta", DELTAS, ids=str)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_rho_is_the_largest_in_its_steps_that_keeps_epsilon(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    assert (rho * 10**12).denominator == 1
    assert rho > 0
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho + STEP, delta) > epsilon


def test_no_rho_is_left_where_epsilon_and_delta_are_too_small() -> None:
    assert rho_of(STEP, Fraction(1, 10**9)) == 0
    assert rho_of(STEP, Fraction(1, 100)) > STEP  # a large δ allows something at any ε


@grid
def test_delta_of_an_epsilon_is_that_delta(rho: Fraction, delta: Fraction) -> None:
    """ε was rounded up, which lowers δ by at most (∂ln δ/∂ε)·10^-10·ε; then δ is rounded up to 12 decimals."""
    epsilon = epsilon_of(rho, delta)
    found = delta_of(rho, epsilon)
    slope = float(epsilon / rho)
    assert float(found) >= float(delta) * (1 - 2e-10 * slope * float(epsilon)) - 1e-15
    assert float(found) <= float(delta) * (1 + 1e-9) + 1.1e-12


CALM = settings(deadline=None, derandomize=True, max_examples=40)
rhos = st.fractions(min_value=Fraction(1, 10**9), max_value=100, max_denominator=10**12)
deltas = st.integers(1, 10**10).map(lambda steps: Fraction(steps, 10**12))


def epsilon_by_order(rho: Fraction, delta: Fraction, log_excess: float) -> Decimal:
    """αρ + ln(1 − 1/α) − ln(αδ)/(α − 1): one order, in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        r, d = (Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, delta))
        a = 1 + Decimal(log_excess).exp()
        return a * r + (1 - 1 / a).ln() - (a * d).ln() / (a - 1)


def epsilon_by_search(rho: Fraction, delta: Fraction) -> Fraction:
    """The least over all orders: the best of a grid, and then closer and closer around it."""
    centre = math.log(-math.log(delta) / rho) / 2
    orders = [centre + x / 2 for x in range(-12, 13)]
    best = min(orders, key=lambda x: epsilon_by_order(rho, delta, x))
    width = 0.5
    for _ in range(30):
        best = min((best + width * k / 4 for k in range(-4, 5)), key=lambda x: epsilon_by_order(rho, delta, x))
        width /= 2
    return Fraction(epsilon_by_order(rho, delta, best))


@CALM
@given(rhos, deltas)
def test_epsilon_is_the_least_over_all_orders_rounded_up(rho: Fraction, delta: Fraction) -> None:
    ours, least = epsilon_of(rho, delta), epsilon_by_search(rho, delta)
    assert (ours * 10**12).denominator == 1
    assert ours >= least
    assert ours <= max(least, 0) * (1 + Fraction(3, 10**10)) + STEP


@CALM
@given(rhos, rhos, deltas)
def test_more_rho_is_never_a_smaller_epsilon(first: Fraction, second: Fraction, delta: Fraction) -> None:
    low, high = sorted((first, second))
    assert epsilon_of(low, delta) <= epsilon_of(high, delta) + STEP
    assert epsilon_of(low, delta) >= epsilon_of(low, min(2 * delta, Fraction(1, 100)))  # nor is more δ a larger one


def test_nothing_spent_is_an_epsilon_of_nothing() -> None:
    assert epsilon_of(Fraction(0), Fraction(1, 10**6)) == 0


def test_a_delta_too_small_for_a_float_is_not_told_as_nothing() -> None:
    """e^-800 is 0 to a float, and no Gaussian noise has a δ of 0; its logarithm is taken later."""
    assert STEP <= delta_of(Fraction(1, 1000), Fraction(100)) <= 2 * STEP


# ------------------------------------------------------------ pure choices from a concentrated budget

costs = st.fractions(min_value=0, max_value=100, max_denominator=10**15)


@given(costs)
def test_a_pure_epsilon_taken_from_rho_is_within_it_exactly(rho: Fraction) -> None:
    """ε²/2 ≤ ρ as rationals, and no larger ε in steps of 10^-12 would do."""
    epsilon = pure_epsilon(Budget(rho, Unit.RHO))
    assert epsilon**2 / 2 <= rho
    assert (epsilon + STEP) ** 2 / 2 > rho
    assert (epsilon * 10**12).denominator == 1


@given(costs)
def test_a_pure_epsilon_taken_from_epsilon_is_all_of_it(epsilon: Fraction) -> None:
    assert pure_epsilon(Budget(epsilon)) == epsilon


# ------------------------------------------------------------ what is told


@grid
def test_what_is_told_is_never_too_small(rho: Fraction, delta: Fraction) -> None:
    privacy = Privacy(Budget(rho, Unit.RHO), epsilon=epsilon_of(rho, delta), delta=delta)
    for part in (Fraction(1, 3), Fraction(1), Fraction(4, 3)):
        spent = Budget(rho * part, Unit.RHO)
        told = privacy.describe(spent)
        assert told["definition"] == "zero-concentrated differential privacy"
        assert Fraction(str(told["rho"])) >= spent.amount
        assert Fraction(str(told["epsilon"])) >= epsilon_of(spent.amount, delta)
        assert Fraction(str(told["delta"])) == delta
        assert (part > 1) == (Fraction(str(told["epsilon"])) > privacy.epsilon)


def test_a_pure_budget_is_told_without_delta_and_rho() -> None:
    privacy = Privacy(Budget(Fraction(1, 3)), epsilon=Fraction(1, 3))
    told = privacy.describe(Budget(Fraction(1, 3)))
    assert (told["delta"], told["rho"]) == (None, None)
    assert told["definition"] == "pure epsilon-differential privacy"
    assert told["epsilon"] == decimal_text(Fraction(1, 3))


@pytest.mark.parametrize("excess", [1e-6, 0.1, 1.0, 40.0, 1e4, 1e7, 1e9])
def test_the_factor_of_renyis_bound_keeps_its_digits_at_every_order(excess):
    """ln of (1 − 1/α)^α / (α − 1). For a small ρ the best α is large, and ln(α − 1) − ln α would cancel."""
    with decimal.localcontext(prec=60):
        order = 1 + decimal.Decimal(excess)
        exact = order * (1 - 1 / order).ln() - (order - 1).ln()
        assert abs(decimal.Decimal(concentrated._log_factor(excess)) - exact) < decimal.Decimal("2e-15") * (
            1 + abs(exact)
        )
