"""Privacy costs as exact numbers."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_STORED = re.compile(r"\d{1,200}(/[1-9]\d{0,200})?", re.ASCII)


class Neighbours(enum.StrEnum):
    """Which tables count as neighbours: one row replaced (the number of rows is public), or one added or removed."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


class Unit(enum.StrEnum):
    """The unit of a privacy budget: ε of pure differential privacy, or ρ of zero-concentrated."""

    EPSILON = "epsilon"
    RHO = "rho"


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of privacy, exact. Amounts of one unit add up when mechanisms run on the same table."""

    amount: Fraction
    unit: Unit = Unit.EPSILON

    def share(self, part: Fraction) -> Budget:
        return Budget(self.amount * part, self.unit)

    def __str__(self) -> str:
        return f"{'ε' if self.unit is Unit.EPSILON else 'ρ'} = {decimal_text(self.amount)}"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of a vector of integers between neighbours: its L1 norm, and the square of its L2 norm.

    `each`, if given, bounds the change of every single integer, and asks for noise that is calibrated to it: sup-norm
    noise for ε. Sensitivities of several vectors computed from the same table add up; their sum has no `each`.
    """

    l1: int
    l2_squared: int
    each: int | None = None

    @classmethod
    def of_each(cls, change: int, count: int) -> Sensitivity:
        """The sensitivity of `count` integers, each of which changes by at most `change`: all may change at once."""
        return cls(count * change, count * change**2, each=change)

    def __add__(self, other: Sensitivity) -> Sensitivity:
        return Sensitivity(self.l1 + other.l1, self.l2_squared + other.l2_squared)

    def __mul__(self, weight: int) -> Sensitivity:
        """The sensitivity of the same integers, each multiplied by `weight`."""
        each = None if self.each is None else self.each * weight
        return Sensitivity(self.l1 * weight, self.l2_squared * weight**2, each)

    def __bool__(self) -> bool:
        return self.l1 > 0


@dataclass(frozen=True, slots=True)
class Guarantee:
    """An amount spent, and the neighbour relation that it holds for."""

    spent: Budget
    neighbours: Neighbours

    @classmethod
    def composed(cls, costs: Iterable[Guarantee]) -> Guarantee:
        """The cost of several mechanisms run on the same table: amounts add up."""
        costs = list(costs)
        relations, units = {cost.neighbours for cost in costs}, {cost.spent.unit for cost in costs}
        if len(relations) != 1 or len(units) != 1:
            raise ValueError("costs under different neighbour relations or in different units do not add up")
        amount = sum((cost.spent.amount for cost in costs), Fraction(0))
        return cls(spent=Budget(amount, units.pop()), neighbours=relations.pop())

    def __str__(self) -> str:
        return f"{self.spent} ({self.neighbours} neighbours)"


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of a release or certificate to a ledger: ε with a δ, or ρ.

    `person` is the column that names persons, if these are protected, and None if single rows are.
    """

    amount: Fraction
    unit: Unit
    neighbours: Neighbours
    delta: Fraction = Fraction(0)
    person: str | None = None

    def __str__(self) -> str:
        beside = f" and delta {decimal_text(self.delta)}" if self.delta else ""
        return f"{self.unit} {decimal_text(self.amount)}{beside}"


def stored_rational(text: Any) -> Fraction:
    """Parse a stored cost: digits, or digits over digits, of limited length.

    >>> stored_rational("19/20")
    Fraction(19, 20)
    """
    if not isinstance(text, str) or not _STORED.fullmatch(text):
        raise ValueError("not a stored rational")
    return Fraction(text)


def decimal_text(value: Fraction) -> str:
    """A short decimal that is never below `value`.

    >>> decimal_text(Fraction(19, 20)), decimal_text(Fraction(1, 3))
    ('0.95', '0.333333333334')
    """
    scaled = -((-value.numerator * 10**12) // value.denominator)
    text = f"{scaled // 10**12}.{scaled % 10**12:012d}".rstrip("0").rstrip(".")
    return text
