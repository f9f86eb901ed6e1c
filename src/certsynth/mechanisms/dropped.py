r"""The share of rows that are dropped because their person has too many, measured with noise.

A person has at most k kept rows and 3k dropped ones that count. The four integers

.. math:: 3 \cdot kept, \quad dropped, \quad 3k \cdot over, \quad 3k \cdot within

(`over` and `within` count the persons with more than k rows and with at most k) each change by at most 3k when a person
is added, removed or replaced, so that they get noise together. They are multiplied by `Protection.group`, since budgets
are those of a single row: the noise is then that of a change by 3k at the budget of a person.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from certsynth.domain.persons import Persons
from certsynth.mechanisms.guarantee import Budget
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_together
from certsynth.queries.contributions import COUNTED_ROWS_FACTOR, Contributions

DROPPED_NUMBERS = 4
"""How many integers are measured."""

_DROPPED_FACTOR = COUNTED_ROWS_FACTOR - 1


def largest_change(persons: Persons) -> int:
    """The most by which one person changes each of the integers."""
    return _DROPPED_FACTOR * persons.rows


def measure_dropped(
    found: Contributions, protection: Protection, persons: Persons, *, budget: Budget, noise: Noise | None = None
) -> NoisyScalars:
    """Measure the contributions of persons at the cost of `budget` for a single row."""
    change = largest_change(persons)
    integers = (_DROPPED_FACTOR * found.kept, found.dropped, change * found.over, change * found.within)
    return measure_together(
        [protection.group * each for each in integers],
        change=change,
        budget=budget,
        neighbours=protection.of_rows,
        noise=noise,
    )


@dataclass(frozen=True, slots=True)
class ShareInterval:
    """A share: an estimate, and the interval that contains the true one."""

    estimate: float
    lower: float
    upper: float


def dropped_shares(
    noisy: NoisyScalars, protection: Protection, persons: Persons, beta: Fraction
) -> tuple[ShareInterval, ShareInterval]:
    """The shares of dropped rows among all that count, and of persons with dropped rows, with probability 1 − β."""
    slack = noisy.joint_slack(beta, both_sides=True)
    change = largest_change(persons)
    kept, dropped, over, within = (
        [Fraction(max(each, 0), protection.group * worth) for each in (value - slack, value, value + slack)]
        for value, worth in zip(noisy.values, (_DROPPED_FACTOR, 1, change, change), strict=True)
    )
    return _share(dropped, kept), _share(over, within)


def _share(part: Sequence[Fraction], rest: Sequence[Fraction]) -> ShareInterval:
    """The share of a part in the whole, given the least, the estimated and the largest values of part and rest."""
    lower = part[0] / (part[0] + rest[2]) if part[0] else Fraction(0)
    upper = part[2] / (part[2] + rest[0]) if part[2] else Fraction(0)
    middle = part[1] / (part[1] + rest[1]) if part[1] else Fraction(0)
    down, up = math.nextafter(float(lower), 0.0), min(1.0, math.nextafter(float(upper), 1.0))
    return ShareInterval(min(max(float(middle), down), up), down, up)
