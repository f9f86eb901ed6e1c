"""Sets of numbers on a line as unions of closed intervals, of whole numbers or of reals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Floats

_INFINITE = math.inf
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Spans:
    """Disjoint closed intervals in increasing order. Unless values are `whole`, a set is represented by its closure,
    which has the same distances.

    >>> Spans.of(">", 3, whole=True).intersection(Spans.of("<=", 6.5, whole=True)).pairs
    ((4.0, 6.0),)
    """

    pairs: tuple[tuple[float, float], ...]
    whole: bool

    @classmethod
    def of(cls, sign: str, border: Fraction | float, *, whole: bool) -> Spans:
        """The values x with `x sign border`. A float border may have a rounding error, so the set is widened by
        that."""
        if sign == "!=":
            sure = whole and isinstance(border, (Fraction, int))
            return cls.of("=", border, whole=whole).complement() if sure else cls.everything(whole=whole)
        exact = Fraction(border)
        slack = Fraction(0) if isinstance(border, (Fraction, int)) else (1 + abs(exact)) / 10**9
        if not whole:
            at = float(exact)
            low, high = (-_INFINITE if sign[0] == "<" else at), (_INFINITE if sign[0] == ">" else at)
            return cls(((low, high),), whole)
        if sign == "=":
            near = round(exact)
            return cls(((float(near), float(near)),) if abs(near - exact) <= slack else (), whole)
        if sign[0] == "<":
            last = math.floor(exact + slack) if sign == "<=" else math.ceil(exact + slack) - 1
            return cls(((-_INFINITE, float(last)),), whole)
        first = math.ceil(exact - slack) if sign == ">=" else math.floor(exact - slack) + 1
        return cls(((float(first), _INFINITE),), whole)

    @classmethod
    def everything(cls, *, whole: bool) -> Spans:
        return cls(((-_INFINITE, _INFINITE),), whole)

    @classmethod
    def among(cls, borders: Iterable[Fraction | float], *, whole: bool) -> Spans:
        """The set of these values."""
        return cls._merged([pair for border in borders for pair in cls.of("=", border, whole=whole).pairs], whole)

    @classmethod
    def _merged(cls, pairs: Iterable[tuple[float, float]], whole: bool) -> Spans:
        merged: list[tuple[float, float]] = []
        for low, high in sorted(pairs):
            if merged and low <= merged[-1][1] + whole:
                merged[-1] = merged[-1][0], max(high, merged[-1][1])
            else:
                merged.append((low, high))
        return cls(tuple(merged), whole)

    def complement(self) -> Spans:
        step = 1.0 if self.whole else 0.0
        ends = [-_INFINITE, *(high + step for _, high in self.pairs)]
        starts = [*(low - step for low, _ in self.pairs), _INFINITE]
        gaps = zip(ends, starts, strict=True)
        # an interval that is unbounded on one side leaves nothing there
        return Spans._merged([(a, b) for a, b in gaps if a <= b and a < _INFINITE and b > -_INFINITE], self.whole)

    def intersection(self, other: Spans) -> Spans:
        found, i, j = [], 0, 0
        while i < len(self.pairs) and j < len(other.pairs):
            (a, b), (c, d) = self.pairs[i], other.pairs[j]
            if max(a, c) <= min(b, d):
                found.append((max(a, c), min(b, d)))
            i, j = (i + 1, j) if b < d else (i, j + 1)
        return Spans._merged(found, self.whole)

    def within(self, low: float, high: float) -> Spans:
        return self.intersection(Spans(((float(low), float(high)),), self.whole))

    def distance(self, figures: Floats) -> Floats:
        """Distances of values to the set; infinite if it is empty, NaN for NaN."""
        if not self.pairs:
            return np.where(np.isnan(figures), np.nan, np.inf)
        starts, ends = (np.array(each) for each in zip(*self.pairs, strict=True))
        below = np.searchsorted(starts, figures, side="right")  # the number of intervals that begin at or below a value
        left = figures - np.append(-np.inf, ends)[below]
        right = np.append(starts, np.inf)[below] - figures
        with np.errstate(invalid="ignore"):
            away = np.maximum(np.minimum(left, right), 0.0)
        return np.asarray(np.where(np.isnan(figures), np.nan, away))


def negated(sign: str) -> str:
    """The comparison sign that holds exactly where this one does not."""
    return _NEGATED[sign]
