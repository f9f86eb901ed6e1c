"""Values of a column that is compared by ratios: round numbers whose gaps grow with them, and the borders between them.

Claims and proofs are in docs/explanation/proofs/ratios.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from certsynth.base.arrays import Floats, read_only

MAX_VALUES = 1025
"""Most values of a column: a release measures each of them."""

FINEST_PARTS, COARSEST_PARTS = 100, 5
"""A gap is at most the value divided by this: 1 % of it, or up to 20 % if there would be too many values."""

DIGITS = 3
"""Decimal digits after the first one of `low` that values have, if there is no step."""


@lru_cache(maxsize=256)
def ratio_values(
    low: Fraction, high: Fraction, step: Fraction | None, named: frozenset[Fraction] = frozenset()
) -> tuple[float, ...] | None:
    """The values from low to high, in increasing order; None if even the largest gaps leave too many.

    All but low and high are multiples of `step`; without one, which needs low > 0, of a power of ten. The gap after
    a value is the largest 1, 2 or 5 times a power of ten of these multiples that is at most 1/parts of it, or one
    multiple. The `named` values are in the list as well. Exact integers decide: the list is the same everywhere.

    >>> values = ratio_values(Fraction(0), Fraction(10**6), Fraction(1))
    >>> len(values), values[:3], values[-503:-500], values[-3:]
    (1025, (0.0, 1.0, 2.0), (6300.0, 6350.0, 6400.0), (980000.0, 990000.0, 1000000.0))
    """
    multiple = step if step is not None else _power_of_ten(low)
    kept = {low, high, *named}
    first, last = COARSEST_PARTS - 1, FINEST_PARTS + 1  # `first` parts would do, `last` parts would be too many
    found: list[Fraction] = []
    while last - first > 1:
        parts = (first + last) // 2
        values = _values(low, high, multiple, parts, kept)
        if len(values) > MAX_VALUES:
            last = parts
        else:
            first, found = parts, values
    distinct = sorted({float(value) for value in found})
    return tuple(distinct) or None


def _values(low: Fraction, high: Fraction, multiple: Fraction, parts: int, kept: set[Fraction]) -> list[Fraction]:
    """The values for this number of parts; too many of them if there are more than MAX_VALUES."""
    start, end = math.floor(low / multiple), math.ceil(high / multiple)
    numbers = _numbers(max(start, 0), end, parts)
    if start < 0:
        numbers += [-number for number in _numbers(0, -start, parts)]
    return sorted(kept | {number * multiple for number in numbers if start < number})


def _numbers(number: int, end: int, parts: int) -> list[int]:
    """Whole numbers before `end`, each the next multiple of the gap after the one before it."""
    found: list[int] = []
    while number < end and len(found) <= MAX_VALUES:
        found.append(number)
        gap = _round_down(number // parts)
        number = (number // gap + 1) * gap
    return found


def _round_down(number: int) -> int:
    """The largest 1, 2 or 5 times a power of ten that is at most this number, and at least 1."""
    if number < 2:
        return 1
    power = 10 ** (len(str(number)) - 1)
    return next(times * power for times in (5, 2, 1) if times * power <= number)


def _power_of_ten(low: Fraction) -> Fraction:
    exponent = len(str(low.numerator)) - len(str(low.denominator))
    exponent -= Fraction(10) ** exponent > low
    return Fraction(10) ** (exponent - DIGITS)


@lru_cache(maxsize=256)
def borders(values: tuple[float, ...]) -> Floats:
    """For each value but the first, the least number that is cleaned to it or to a larger one: the geometric mean of
    it and the value before it; the middle, if these are 0 or have different signs."""
    found = []
    for a, b in pairwise(values):
        border = math.copysign(math.sqrt(abs(a)) * math.sqrt(abs(b)), b) if a * b > 0 else a / 2 + b / 2
        found.append(border if a < border <= b else b)
    return read_only(np.array(found))


@lru_cache(maxsize=256)
def figures(values: tuple[float, ...]) -> Floats:
    """The values as an array."""
    return read_only(np.array(values))


def largest_gap(values: tuple[float, ...]) -> float:
    """The largest difference between neighbouring values."""
    return float(np.diff(figures(values)).max())


def precision(values: tuple[float, ...]) -> tuple[float, float]:
    """The smallest gap p and a share q such that no gap is larger than p, or than q times the smaller of its ends."""
    ends = figures(values)
    gaps, sizes = np.diff(ends), np.minimum(np.abs(ends[1:]), np.abs(ends[:-1]))
    least = float(gaps[:-1].min(initial=gaps[-1]))  # the last gap may be a part of one
    wide = gaps > least * (1 + 1e-9)
    return least, float((gaps[wide] / sizes[wide]).max(initial=0.0))
