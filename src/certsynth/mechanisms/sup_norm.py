r"""Noise for several integers at once whose changes are bounded one by one, not in sum.

.. math:: P(z) \propto e^{-\max_i |z_i| / scale}, \quad z \in \mathbb{Z}^k

This is a mixture of uniform distributions on the cubes {−R, …, R}^k, where the radius R ≥ 0 has weight
(2R+1)^k·e^{−R/scale}. The radius is drawn by rejection from two geometric tails that meet at its mode, with exact
coins; the cube is then uniform. docs/explanation/proofs/sup-norm.md has the proofs.
"""

from __future__ import annotations

import decimal
import functools
import math
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.errors import UnsafeNoise
from certsynth.mechanisms.selection import flip

_SELF_TEST_DRAWS = 150
_GUARD_DIGITS = 20  # of the digits that decimals are computed with; many more than rounding can touch


@dataclass(frozen=True, slots=True)
class Radius:
    r"""The law of the radius, w_R ∝ (2R+1)^size·e^{−R·rate}, and the proposal that it is drawn from.

    The proposal is geometric on either side of the mode of the continuous law, at R + ½ = size/rate. Its rate is
    rate/(1 + ⌈√size⌉), and the acceptance probability is

    .. math:: \frac{w_R}{w_{top}}\, e^{\,rate' \cdot steps - 1/2}
    """

    size: int
    rate: Fraction

    def __post_init__(self) -> None:
        if self.size < 1 or self.rate <= 0:
            raise ValueError("sup-norm noise needs at least one integer and a positive rate")

    @property
    def right(self) -> int:
        """The smallest R with R + ½ ≥ size/rate: the right tail starts there, the left one just below it."""
        return max(0, math.ceil(self.size / self.rate - Fraction(1, 2)))

    @property
    def proposal_rate(self) -> Fraction:
        return self.rate / (2 + math.isqrt(self.size - 1))  # 1 + ⌈√size⌉

    def top(self) -> int:
        """The likelier of the two starts, up to an error in the logarithm of their weights that is far below 10^−9."""
        right = self.right
        if right == 0:
            return 0
        with _digits(40):
            return right if self.log_ratio(right, right - 1) > 0 else right - 1

    def log_ratio(self, radius: int, other: int) -> Decimal:
        """ln(w_radius/w_other), with the digits that are set."""
        return self.size * (Decimal(2 * radius + 1) / (2 * other + 1)).ln() - _decimal(self.rate * (radius - other))

    def log_acceptance(self, radius: int, steps: int, top: int) -> Decimal:
        """The logarithm of the probability of accepting a radius `steps` away from its start; never above 0."""
        return self.log_ratio(radius, top) + _decimal(self.proposal_rate * steps - Fraction(1, 2))


def draw_sup_norm(size: int, rate: Fraction) -> list[int]:
    """Draw one vector of `size` integers with P(z) ∝ exp(−rate·max|z|), exactly, from the operating system."""
    _self_test()
    return _draw(size, rate)


def _draw(size: int, rate: Fraction) -> list[int]:
    radius = draw_radius(Radius(size, rate))
    return [secrets.randbelow(2 * radius + 1) - radius for _ in range(size)]


def draw_radius(law: Radius) -> int:
    """Draw a radius: from one of two geometric tails, until it is accepted."""
    right, rate, top = law.right, law.proposal_rate, law.top()
    while True:
        upwards = right == 0 or secrets.randbits(1) == 1
        steps = draw_geometric(rate)
        radius = right + steps if upwards else right - 1 - steps
        if radius >= 0 and flip_logarithm(functools.partial(law.log_acceptance, radius, steps, top)):
            return radius


def draw_geometric(rate: Fraction) -> int:
    """Draw G ≥ 0 with P(G ≥ g) = exp(−rate·g), exactly.

    For rate = s/t, G = ⌊X/s⌋ where P(X ≥ x) = exp(−x/t): X mod t and ⌊X/t⌋ are independent (Canonne, Kamath and
    Steinke, "The discrete Gaussian for differential privacy", 2020, algorithm 2).
    """
    s, t = rate.numerator, rate.denominator
    remainder = secrets.randbelow(t)
    while not flip(Fraction(remainder, t)):
        remainder = secrets.randbelow(t)
    quotient = 0
    while flip(Fraction(1)):
        quotient += 1
    return (remainder + t * quotient) // s


def flip_logarithm(logarithm: Callable[[], Decimal]) -> bool:
    """A coin that is heads with probability e^x, exactly, for an x ≤ 0 that `logarithm` computes with the digits set.

    Heads if U < e^x for a uniform U, of which only as many bits are drawn as it takes to decide.
    """
    value, bits = 0, 0
    while True:
        value, bits = (value << 64) | secrets.randbits(64), bits + 64
        with _digits(bits // 2 + 20):  # more than bits · log₁₀ 2
            x = logarithm()
            slack = (1 + abs(x)) * Decimal(10) ** -(bits // 2)
            if (Decimal(value + 1) / Decimal(2) ** bits).ln() <= x - slack:
                return True
            if value and (Decimal(value) / Decimal(2) ** bits).ln() >= x + slack:
                return False


def _digits(count: int) -> AbstractContextManager[decimal.Context]:
    """A context for decimals of so many digits, and as many more as rounding could touch."""
    return decimal.localcontext(prec=count + _GUARD_DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def simulate_sup_norm(rng: np.random.Generator, size: int, scale: float) -> Ints:
    """Draw one vector of the same law in floats, for rehearsals. It gives no privacy."""
    law = Radius(size, 1 / Fraction(scale))
    right, rate, top = law.right, float(law.proposal_rate), law.top()
    while True:
        upwards = right == 0 or rng.random() < 0.5
        steps = math.floor(-math.log(1.0 - rng.random()) / rate)
        radius = right + steps if upwards else right - 1 - steps
        if radius < 0:
            continue
        with _digits(20):
            chance = float(law.log_acceptance(radius, steps, top).exp())
        if rng.random() < chance:
            return np.floor(rng.random(size) * (2 * radius + 1)).astype(np.int64) - radius


@functools.cache
def _self_test() -> None:
    """Look at a sample of each of two laws, once in a process."""
    for size, rate in ((2, Fraction(1, 8)), (24, Fraction(1, 3))):
        self_test([_draw(size, rate) for _ in range(_SELF_TEST_DRAWS)], size=size, rate=rate)


def self_test(draws: list[list[int]], *, size: int, rate: Fraction) -> None:
    """Refuse noise that is obviously wrong: constant, off centre, or of the wrong width.

    The bounds are eight standard errors wide: a correct sampler fails once in 10^14 starts.
    """
    values, n = np.array(draws, dtype=float), len(draws)
    radii = np.arange(math.ceil(4 * size / rate) + 400, dtype=float)  # further out there is less than 10^−15
    fall = np.exp(float(rate) * (radii[-1] - radii))
    cube, inner = (2 * radii + 1) ** size, (2 * np.maximum(radii, 0.5) - 1) ** size
    variance = np.average(radii * (radii + 1) / 3, weights=cube * fall)
    shell = (cube - inner) * fall  # vectors z with max|z| equal to a radius, times their probability
    mean = np.average(radii, weights=shell)
    spread = np.average((radii - mean) ** 2, weights=shell)
    # Written so that NaN fails.
    centred = n > 0 and (np.abs(values.mean(axis=0)) <= 8 * math.sqrt(variance / n)).all()
    if not (centred and abs(np.abs(values).max(axis=1).mean() - mean) <= 8 * math.sqrt(spread / n)):
        raise UnsafeNoise("noise for several integers at once failed its start-up test: nothing is released.")
