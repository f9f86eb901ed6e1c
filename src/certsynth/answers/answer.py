"""An answer: an estimate, and the interval that is certified to contain the true value."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

Value = float | int | str | datetime.date

_MAX_DECIMALS = 12
"""Most decimal places that are shown."""

_MAX_SHOWN_CHARACTERS = 80
"""Most characters of a query that are repeated in an error message."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`estimate` is the statistic of the synthetic rows. That of the private rows, as cleaned by the schema, lies
    between `low` and `high` with the `confidence` of the certificate, simultaneously for all answers of one release.

    Values are numbers in the column's own units, shares from 0 to 1, dates, times, or labels of an ordinal; `unit` says
    which. `how` explains the interval, and `bound` is the bound of the certificate that was used. Where the interval
    holds all possible values, `says_nothing` states why, and what would help; else it is empty. An interval that is
    `alone` is valid for this question only, not together with other answers. `about` says which private rows are meant,
    if these are not all.
    """

    query: str
    estimate: Value
    low: Value
    high: Value
    confidence: float
    how: str
    unit: str
    bound: float
    says_nothing: str = ""
    alone: bool = False
    about: str = ""

    def shown(self) -> tuple[str, str, str]:
        """Estimate, low and high as texts, with the precision that the width justifies; the interval is rounded
        outward."""
        return self.shown_with(self.last_digit)

    @property
    def last_digit(self) -> Decimal:
        """The last digit that the width justifies: a power of ten; 1 for values that are not floats."""
        if not isinstance(self.low, (int, float)) or not isinstance(self.high, (int, float)):
            return Decimal(1)
        low, high = Decimal(repr(self.low)), Decimal(repr(self.high))
        return _digits(high - low, high)

    def shown_with(self, digits: Decimal) -> tuple[str, str, str]:
        """As `shown`, with these digits.

        >>> [Answer("q", mean, 2.0, 2.2, 0.95, "", "", 0.1).shown()[0] for mean in (2.125, 2.1250000000000004)]
        ['2.12', '2.12']
        """
        values = self.estimate, self.low, self.high
        if not any(isinstance(value, float) for value in values):
            return str(self.estimate), str(self.low), str(self.high)
        estimate, low_number, high_number = (Decimal(repr(value)) for value in values)
        if isinstance(self.estimate, float):  # a tie is one even if the order of additions changed the last bits
            estimate = Decimal(f"{self.estimate:.12g}")
        near = estimate.quantize(digits, ROUND_HALF_EVEN) if digits < 1 else estimate.to_integral_value()
        down, up = _rounded(low_number, digits, ROUND_FLOOR), _rounded(high_number, digits, ROUND_CEILING)
        return f"{near:f}", f"{down:f}", f"{up:f}"

    def __str__(self) -> str:
        """The answer as a sentence.

        >>> print(Answer("mean(age)", 42.8123, 42.41, 43.21, 0.95, "", "age", 0.005))
        mean(age) = 42.81, between 42.41 and 43.21 with confidence 95 %
        """
        estimate, low, high = self.shown()
        if self.says_nothing:
            return f"{self.query} = {estimate}, but the certificate says nothing about it: {self.says_nothing}"
        also = (", valid for this question alone" if self.alone else "") + (f", of {self.about}" if self.about else "")
        return f"{self.query} = {estimate}, between {low} and {high} with confidence {percent(self.confidence)}{also}"

    @property
    def error(self) -> str:
        """Empty: there is an answer. That of a query without one says why."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Plain values; dates and times as texts."""
        return {
            "query": self.query,
            "estimate": plain(self.estimate),
            "low": plain(self.low),
            "high": plain(self.high),
            "confidence": self.confidence,
            "unit": self.unit,
            "how": self.how,
            "bound": self.bound,
            "says_nothing": self.says_nothing or None,
            "alone": self.alone,
            **({"about": self.about} if self.about else {}),
        }


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A query that has no answer, or a group of rows about which there is none, and the reason in one line.

    Its `estimate`, `low` and `high` are None.
    """

    query: str
    error: str

    @property
    def estimate(self) -> None:
        return None

    @property
    def low(self) -> None:
        return None

    @property
    def high(self) -> None:
        return None

    @property
    def says_nothing(self) -> str:
        """The reason, as in an answer whose interval holds all possible values."""
        return self.error

    def __str__(self) -> str:
        return f"{self.query[:_MAX_SHOWN_CHARACTERS]}: {self.error}"

    def to_json(self) -> dict[str, Any]:
        return {"query": self.query, "error": self.error}


def plain(value: Value | None) -> float | int | str | None:
    """A value for JSON: dates as ISO texts."""
    return str(value) if isinstance(value, datetime.date) else value


def percent(confidence: float) -> str:
    """A confidence as a percentage, never rounded up.

    >>> percent(0.95), percent(0.9999999999999)
    ('95 %', '99.99999999 %')
    """
    exact = Decimal(repr(float(confidence))) * 100
    return f"{exact.quantize(Decimal('1e-8'), ROUND_FLOOR).normalize():f} %"


def _digits(width: Decimal, largest: Decimal) -> Decimal:
    """The last digit to show: two significant digits of the width."""
    size = width if width > 0 else abs(largest)
    places = 1 - (size.adjusted() if size else 0) if width > 0 else 3 - (size.adjusted() if size else 0)
    return Decimal(1).scaleb(-max(0, min(places, _MAX_DECIMALS)))


def _rounded(value: Decimal, digits: Decimal, rounding: str) -> Decimal:
    """Round `value` to these digits; very large numbers are rounded to integers."""
    if value.adjusted() > 20:
        return value.to_integral_value(rounding)
    return value.quantize(digits, rounding) + 0  # −0 becomes 0


def outward(low: float, high: float, *, least: float, most: float) -> tuple[float, float]:
    """Widen an interval by the rounding error of floats, within the range [least, most] of possible values."""
    slack = 1e-9 * max(abs(low), abs(high), (most - least) if math.isfinite(most - least) else 0.0)
    return max(least, low - slack), min(most, high + slack)
