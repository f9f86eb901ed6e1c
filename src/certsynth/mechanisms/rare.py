r"""Draw only the large noise among very many cells, from exactly the law that drawing all of it would have.

Cells without rows have independent noise Z of one law,

.. math:: P(Z > c) = \frac{p^{c+1}}{1 + p}, \quad p = e^{-1/scale}, \quad c \ge -1

so those whose noise is above c are a sequence of coin tosses, one for each cell, and the gaps between heads are
geometric. A gap, and what noise has beyond c, are drawn by inversion, in floats where these decide and else with as
many digits as it takes. docs/explanation/proofs/low-dimensional.md has the proof.
"""

from __future__ import annotations

import decimal
import itertools
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from certsynth.base.arrays import Ints

Words = Callable[[int], np.ndarray]
"""Returns the given number of 64-bit words of random bits."""

LARGEST = 2**62
"""Gaps, in cells, are cut off here: no grid has as many cells."""

_WORD = 2.0**64
_LOGARITHM = 4e-15  # the relative error of −ln U in floats, generously
_RATE = 2e-13  # and that of a rate; of one below 10⁻³⁰⁰ every gap is beyond all grids, or decided by digits


def secret_words(count: int) -> np.ndarray:
    """Words from the operating system."""
    return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Tail:
    """The event that noise is above `above` (or its size is, if `signed`), given that it is not above `before`.

    Without `before` nothing is known of it yet.
    """

    scale: float
    above: int
    before: int | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        if self.above < 0 or (self.before is not None and self.before <= self.above):
            raise ValueError("a tail begins at 0 or above it, and below what is known")

    def chance(self) -> float:
        """The probability of the event, about."""
        odds = self._odds()
        return odds / (1 + odds)

    def rate(self) -> float:
        """−ln(1 − chance), up to a relative error of _RATE, or below 10⁻³⁰⁰."""
        return math.log1p(self._odds())

    def _odds(self) -> float:
        r"""chance / (1 − chance), as sums, products and quotients of positive numbers, of which none cancel.

        .. math:: \frac{s\,p^a (1 - p^{b-a})}{1 + p - s\,p^a}, \quad
            1 + p - p^a = 1 + p(1 - p^{a-1}), \quad 1 + p - 2p^a = (1 - p^a) + p(1 - p^{a-1})

        with s = 2 for both signs and 1 for one, a = above + 1 and b = before + 1.
        """
        a, scale = self.above + 1, self.scale
        beyond = (1 + self.signed) * math.exp(-a / scale)
        if self.before is not None:
            beyond *= -math.expm1((self.above - self.before) / scale)
        first = -math.expm1(-a / scale) if self.signed else 1.0
        return beyond / (first - math.exp(-1 / scale) * math.expm1((1 - a) / scale))

    def exact_rate(self, digits: int) -> Decimal:
        """The same with so many digits."""
        with decimal.localcontext(prec=digits + 60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX) as context:
            step, sides = Decimal(1) / _exactly(self.scale), 1 + self.signed
            p, beyond = (-step).exp(), sides * (-(self.above + 1) * step).exp()
            band = 1 if self.before is None else 1 - ((self.above - self.before) * step).exp()
            odds = beyond * band / (1 + p - beyond)
            context.prec += max(-odds.adjusted(), 0)  # 1 + odds has to keep the digits of odds
            return (1 + odds).ln()


def _exactly(scale: float) -> Decimal:
    """A float in all its digits, at the precision that is set."""
    numerator, denominator = scale.as_integer_ratio()
    return Decimal(numerator) / Decimal(denominator)


def rare_noise(size: int, tail: Tail, words: Words = secret_words) -> tuple[Ints, Ints]:
    """Of `size` cells with independent noise, those for which the event of `tail` is true, and their noise."""
    places = rare_cells(size, tail, words)
    values = excess(len(places), tail, words)
    if tail.signed:
        values = np.where(words(len(places)) >> np.uint64(63) == 1, -values, values)
    return places, values


def rare_cells(size: int, tail: Tail, words: Words) -> Ints:
    """Positions of heads among `size` independent tosses: between two of them lies a geometric number of tails."""
    if not 0 <= size < LARGEST:
        raise ValueError("there are more cells than can be numbered")
    rate, chance = tail.rate(), tail.chance()
    found: list[int] = []
    last = -1
    while last < size:
        expected = (size - max(last, 0)) * chance
        gaps = geometric(rate, tail.exact_rate, 16 + int(expected + 4 * math.sqrt(expected)), words)
        found.extend(itertools.accumulate((gap + 1 for gap in gaps.tolist()), initial=last))
        last = found[-1]
    inside = [place for place in found if 0 <= place < size]
    return np.array(sorted(set(inside)), dtype=np.int64)  # the last of one batch begins the next


def excess(count: int, tail: Tail, words: Words) -> Ints:
    """Sizes of noise for which the event is true: above + 1 + a geometric number, cut off where it is known to end."""
    scale, room = tail.scale, math.inf if tail.before is None else tail.before - tail.above
    drawn = geometric(1 / scale, lambda digits: _inverse(scale, digits), count, words)
    while (out := np.flatnonzero(drawn >= room)).size:  # again, until it fits: that is the law given that it does
        drawn[out] = geometric(1 / scale, lambda digits: _inverse(scale, digits), len(out), words)
    return tail.above + 1 + drawn


def _inverse(scale: float, digits: int) -> Decimal:
    with decimal.localcontext(prec=digits + 20, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX):
        return 1 / _exactly(scale)


def geometric(rate: float, exact_rate: Callable[[int], Decimal], count: int, words: Words) -> Ints:
    r"""Draw `count` independent G with P(G ≥ g) = e^{−rate·g}, exactly, for the rate that `exact_rate` computes.

    What is LARGEST or more is returned as LARGEST.

    .. math:: G = \lfloor -\ln U / rate \rfloor

    for uniform U. A word of bits puts U into an interval; where both of its ends, with all errors of floats, give one
    answer, it is that. Else bits and digits are added until they do.
    """
    drawn = words(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = drawn.astype(float)
        # Near 1 the logarithm is taken of what is missing, which keeps its digits.
        missing = (np.uint64(0) - drawn).astype(float)
        logarithm = np.where(drawn >= np.uint64(2**63), -np.log1p(-missing / _WORD), -np.log(share / _WORD))
        error = _LOGARITHM * logarithm + 2 / share
        low = np.floor((logarithm - error) / (rate * (1 + _RATE)))
        high = np.floor((logarithm + error) / (rate * (1 - _RATE)))
    clear = (low == high) & (low >= 0)
    answers = np.where(clear & (low < LARGEST), low, LARGEST).astype(np.int64)
    beyond = (low >= LARGEST) & np.isfinite(low)
    for i in np.flatnonzero(~clear & ~beyond).tolist():
        answers[i] = _decided(int(drawn[i]), exact_rate, words)
    return answers


def _decided(word: int, exact_rate: Callable[[int], Decimal], words: Words) -> int:
    """One geometric number whose first word of bits is given."""
    value, bits = word, 64
    while True:
        value, bits = (value << 64) | int(words(1)[0]), bits + 64
        digits = 40 + bits * 31 // 100  # more decimals than the bits have: an end of the interval is no end of U's
        with decimal.localcontext(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX):
            rate, whole, slack = exact_rate(digits), Decimal(2) ** bits, Decimal(10) ** -30
            low = -(Decimal(value + 1) / whole).ln() / rate
            if not value:
                continue
            high = -(Decimal(value) / whole).ln() / rate
            below, above = math.floor(low - abs(low) * slack), math.floor(high + abs(high) * slack)
        if min(max(below, 0), LARGEST) == min(above, LARGEST):  # beyond LARGEST no more digits are needed
            return min(above, LARGEST)
