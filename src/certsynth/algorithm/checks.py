"""Checks of single option values, each with an error message that states its rule.

Rules that relate several options are in `settings.py` and `request.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from certsynth.errors import InputError

Check = Callable[[str, Any], Any]
"""Takes the name and value of an option; returns the value in internal form, or raises an InputError that names it."""

MAX_EPSILON = 100
"""Largest ε or ρ: more gives no protection, and is almost always a typing error."""

MAX_DELTA = Fraction(1, 100)
"""Largest δ: the definition permits publishing each person's row with probability δ."""

_LONG_EXPONENT = re.compile(r"[eE][+-]?[\d_]{4}")  # 1e99999999 as a fraction would take all memory


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """A whole number in a range, or "auto" if allowed, which becomes None. Messages call the number `what`."""

    low: int
    high: int
    what: str = "a whole number"
    auto: bool = False

    def __call__(self, name: str, value: Any) -> int | None:
        if self.auto and (value is None or value == "auto"):
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            high = f"{self.high:,}" if self.high >= 10_000 else str(self.high)
            rule = f"{'auto or ' * self.auto}{self.what} from {self.low} to {high}"
            raise InputError(f"`{name}` must be {rule}; got {value!r:.20}.")
        return value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several words."""

    choices: tuple[str, ...]

    def __call__(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            few = len(self.choices) < 3
            rule = " or ".join(self.choices) if few else f"one of {', '.join(self.choices)}"
            raise InputError(f"`{name}` must be {rule}; got {value!r:.40}.")
        return str(value)


@dataclass(frozen=True, slots=True)
class Share:
    """A number of at least `low` and below 1, with at most nine decimals."""

    low: Fraction
    example: str

    def __call__(self, name: str, value: Any) -> Fraction:
        share = exact_rational(value)
        if share is None or not self.low <= share < 1:
            rule = f"at least {float(self.low):g} and below 1, for example {self.example}"
            raise InputError(f"`{name}` must be {rule}; got {value!r:.20}.")
        if share.denominator > 10**9:
            raise InputError(f"`{name}` may have at most 9 decimals; got {value!r:.20}.")
        return share


def column_names(name: str, value: Any) -> list[str]:
    """Check a list of column names. A text is not taken for the list of its letters.

    >>> column_names("columns", ("age", "income"))
    ['age', 'income']
    """
    if isinstance(value, str):
        raise InputError(f"`{name}` is a list of column names: write [{value!r:.60}] for a single column.")
    return _list_of_names(value, f"`{name}` is a list of column names, like ['age', 'income']")


def column_subsets(name: str, value: Any) -> list[list[str]]:
    """Check a list of subsets of columns, each a list of names."""
    rule = f"`{name}` is a list of subsets, each a list of column names, like [['age', 'income'], ['region']]"
    if isinstance(value, str):
        raise InputError(f"{rule}: write [[{value!r:.60}]] for a single column.")
    try:
        subsets = list(value)
    except TypeError:
        raise InputError(f"{rule}; got a {type(value).__name__}.") from None
    for each in subsets:
        if isinstance(each, str):
            raise InputError(f"a subset is a list of column names: write [[{each!r:.60}]] for a column alone.")
    return [_list_of_names(each, rule, least=0) for each in subsets]


def _list_of_names(value: Any, rule: str, least: int = 1) -> list[str]:
    try:
        names = list(value)
    except TypeError:
        raise InputError(f"{rule}; got a {type(value).__name__}.") from None
    if not all(isinstance(each, str) for each in names):
        raise InputError(f"{rule}; not all of these are texts.")
    if len(names) < least:
        raise InputError(f"{rule}; got none. Leave it out to use all columns.")
    return [str(each) for each in names]


def amount(name: str, value: Any) -> Fraction:
    """Convert an amount of ε or ρ to the rational of its decimal text: 0.1 is 1/10, not the nearest float.

    >>> amount("epsilon", 0.1), amount("epsilon", "1/3"), amount("rho", "2e-1")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 5))
    """
    rule = f"`{name}` must be a number above 0 and at most {MAX_EPSILON}, for example 1 or 0.5"
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Fraction, Decimal)):
        raise InputError(f"{rule}; got a {type(value).__name__}.")
    exact = exact_rational(value)
    try:
        shown = f"{value!r:.40}"
    except ValueError:
        shown = "a number with thousands of digits"  # Python refuses to print it
    if exact is None or not 0 < exact <= MAX_EPSILON:
        raise InputError(f"{rule}; got {shown}.")
    if exact.denominator > 10**12:
        raise InputError(f"`{name}` may have at most 12 decimals; got {shown}.")
    return exact


def failure_probability(name: str, value: Any) -> Fraction:
    """Check the δ of (ε, δ)-differential privacy."""
    exact = exact_rational(value)
    if exact is None or not 0 < exact <= MAX_DELTA or (exact * 10**12).denominator > 1:
        rule = "above 0 and at most 0.01, in at most 12 decimals, like 1e-6"
        raise InputError(f"`{name}` must be {rule}; got {value!r:.40}.")
    return exact


def exact_rational(value: Any) -> Fraction | None:
    """The rational of a number's decimal text; None if it is not a number or absurdly long."""
    if isinstance(value, bool):
        return None
    try:
        text = str(value) if isinstance(value, (str, Decimal)) else ""
        if len(text) > 40 or _LONG_EXPONENT.search(text):
            return None
        return Fraction(float.__repr__(value) if isinstance(value, float) else value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, InvalidOperation):
        return None
