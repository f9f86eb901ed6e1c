"""Claims: intervals that contain a statistic of the private rows, and their intersection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats

Interval = tuple[float, float, float]
"""Estimate, low and high."""


@dataclass(frozen=True, slots=True)
class Claim:
    """If the certificate holds, a statistic of the private rows lies between `low` and `high`. `bound` is the bound of
    the certificate that this follows from, and `how` explains it."""

    low: float
    high: float
    bound: float
    how: str

    def cut(self, least: float, most: float) -> Claim:
        """The same claim within the range of possible values."""
        return Claim(min(max(self.low, least), most), max(min(self.high, most), least), self.bound, self.how)

    def scaled(self, factor: float, shift: float = 0.0) -> Claim:
        """The claim about factor · value + shift."""
        ends = factor * self.low + shift, factor * self.high + shift
        return Claim(min(ends), max(ends), self.bound, self.how)

    def around(self, estimate: float) -> Interval:
        return estimate, self.low, self.high


def intersect(claims: Sequence[Claim]) -> Claim:
    """What all claims say together. All bounds of a certificate hold on one event, so every claim does.

    If two claims contradict each other, the certificate does not hold. The result is then an interval that contains all
    of them: an error would reveal that.

    >>> intersect([Claim(0.1, 0.5, 0.01, "one"), Claim(0.2, 0.6, 0.02, "two")])
    Claim(low=0.2, high=0.5, bound=0.02, how='low end: two; high end: one')
    """
    low, high = max(claims, key=lambda claim: claim.low), min(claims, key=lambda claim: claim.high)
    if low.low > high.high:
        first, last = min(claim.low for claim in claims), max(claim.high for claim in claims)
        return Claim(first, last, max(claim.bound for claim in claims), "bounds that do not agree, taken together")
    for claim in claims:
        if claim.low >= low.low and claim.high <= high.high:
            return claim
    how = f"low end: {low.how}; high end: {high.how}"
    return Claim(low.low, high.high, max(low.bound, high.bound), how)


Range = tuple[Floats, Floats]
"""Lowest and highest values, elementwise."""


def conditional(part: Range, rest: Range, whole: tuple[float, float] | Range) -> Range:
    r"""The range of a/(a + c) where a is in `part`, c in `rest` and a + c in `whole`, elementwise.

    The quotient rises with a and falls with c: it is largest at the largest a with the least c that the sum allows.
    Where a + c may be 0, it may be anything in [0, 1].
    """

    def largest(a: Range, c: Range) -> Floats:
        most = np.minimum(a[1], np.maximum(whole[1] - c[0], a[0]))
        least = np.maximum(c[0], whole[0] - most)
        total = most + least
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(a[1] <= 0, 0.0, np.where(total > 0, most / total, 1.0)))

    return 1.0 - largest(rest, part), largest(part, rest)


def quotient(total: tuple[float, float], share: tuple[float, float]) -> tuple[float, float]:
    """The range of total/share, infinite where the share may be 0."""

    def divide(value: float, by: float) -> float:
        return value / by if by > 0 else 0.0 if value == 0 else float(np.copysign(np.inf, value))

    low, high = total
    return divide(low, share[1] if low > 0 else share[0]), divide(high, share[0] if high > 0 else share[1])
