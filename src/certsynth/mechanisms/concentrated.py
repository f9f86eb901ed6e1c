r"""Zero-concentrated differential privacy (ρ) in terms of (ε, δ), and back.

A mechanism is ρ-zCDP if its Rényi divergence of every order α between neighbours is at most αρ. It is then (ε, δ)-DP
for every ε with

.. math:: \delta = \min_{\alpha > 1} \frac{e^{(\alpha-1)(\alpha\rho-\varepsilon)}}{\alpha-1}
          \Bigl(1-\frac1\alpha\Bigr)^{\alpha}

(Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020, proposition 12), the best bound
from a single order. Every α gives a valid bound, so correctness does not depend on the search for the best one; results
are rounded outward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy.optimize import minimize_scalar

from certsynth.mechanisms.guarantee import Budget, Charge, Unit, decimal_text
from certsynth.mechanisms.protection import Protection

_RELATIVE_MARGIN = 1e-10  # exceeds the relative rounding error of the formulas
_STEPS_PER_UNIT = 10**12  # ε, δ and ρ are multiples of 1/_STEPS_PER_UNIT


@dataclass(frozen=True, slots=True)
class Privacy:
    """A budget and how it is reported: as ε, or as ρ with the (ε, δ) that it implies.

    `asked_in` is the unit of the request: a request in (ε, δ) is spent in ρ, too.
    """

    budget: Budget
    epsilon: Fraction
    delta: Fraction | None = None
    asked_in: Unit = Unit.EPSILON

    def charge(self, protection: Protection) -> Charge:
        """The charge to a ledger, in the unit of the request: ε with its δ, or ρ."""
        neighbours, persons = protection.neighbours, protection.persons
        person = None if persons is None else persons.column
        if self.asked_in is Unit.RHO:
            return Charge(self.budget.amount, Unit.RHO, neighbours, person=person)
        return Charge(self.epsilon, Unit.EPSILON, neighbours, self.delta or Fraction(0), person=person)

    def describe(self, spent: Budget) -> dict[str, str | None]:
        """The privacy definition and the amounts spent, as decimals rounded up."""
        if self.delta is None:
            definition, epsilon = "pure epsilon-differential privacy", spent.amount
        else:
            definition = "zero-concentrated differential privacy"
            epsilon = epsilon_of(spent.amount, self.delta)
            epsilon = self.epsilon if epsilon <= self.epsilon else epsilon
        return {
            "definition": definition,
            "epsilon": decimal_text(epsilon),
            "delta": None if self.delta is None else decimal_text(self.delta),
            "rho": None if self.delta is None else decimal_text(spent.amount),
        }


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε at which ρ-zCDP is (ε, δ)-DP, rounded up.

    >>> float(epsilon_of(Fraction(1, 2), Fraction(1, 10**6)))
    5.221534445053
    """
    log_delta = math.log(delta)
    if not rho:
        return Fraction(0)

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α − 1
        return (1 + excess) * float(rho) + (_log_factor(excess) - log_delta) / excess

    return _round_up(max(0.0, _minimise_over_orders(epsilon, rho, log_delta)))


def delta_of(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The δ at which ρ-zCDP is (ε, δ)-DP, rounded up to 12 decimals.

    >>> float(delta_of(Fraction(1, 50), Fraction(1)))
    8.8253e-08
    """

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return excess * ((1 + excess) * float(rho) - float(epsilon)) + _log_factor(excess)

    least = _minimise_over_orders(log_delta, rho, -(float(epsilon) ** 2) / (4 * float(rho)))
    return _round_up(min(1.0, max(math.exp(least), 1 / _STEPS_PER_UNIT)))  # Gaussian noise never has a δ of 0


def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, in steps of 10^-12, that is (ε, δ)-DP by `epsilon_of`; 0 if there is none.

    >>> rho = rho_of(Fraction(1), Fraction(1, 10**6))
    >>> float(rho), epsilon_of(rho, Fraction(1, 10**6)) <= 1
    (0.024355970354, True)
    """
    low, high = 0, math.floor(epsilon * _STEPS_PER_UNIT) + 1
    while epsilon_of(Fraction(high, _STEPS_PER_UNIT), delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_of(Fraction(middle, _STEPS_PER_UNIT), delta) <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(low, _STEPS_PER_UNIT)


def pure_epsilon(budget: Budget) -> Fraction:
    """An ε whose pure guarantee is within the budget: ε-DP is ε²/2-zCDP (Bun and Steinke, 2016, proposition 1.4)."""
    if budget.unit is Unit.EPSILON:
        return budget.amount
    twice = 2 * budget.amount
    return Fraction(math.isqrt(twice.numerator * _STEPS_PER_UNIT**2 // twice.denominator), _STEPS_PER_UNIT)


def _log_factor(excess: float) -> float:
    """ln of (1 − 1/α)^α / (α − 1), for α = 1 + excess; as 1 − 1/α = 1/(1 + 1/excess), nothing cancels for large α."""
    return -(1 + excess) * math.log1p(1 / excess) - math.log(excess)


def _minimise_over_orders(function: Callable[[float], float], rho: Fraction, log_delta: float) -> float:
    """The smallest value over orders α found by a search near √(ln(1/δ)/ρ)."""
    centre = 0.5 * math.log(max(-log_delta, 1e-3) / float(rho))
    found = minimize_scalar(function, bounds=(centre - 6, centre + 4), method="bounded", options={"xatol": 1e-10})
    return float(found.fun)


def _round_up(value: float) -> Fraction:
    return Fraction(math.ceil(Fraction(value) * _STEPS_PER_UNIT * Fraction(1 + _RELATIVE_MARGIN)), _STEPS_PER_UNIT)
