r"""The mean or share of one group of rows minus that of another, from the bound on the distance.

Each alone may be off by what the whole bound allows. Together they share it: a row that moves in the first group does
not move in the second. With any centres α and β, and u and w the reciprocals of the groups' shares of all rows,

.. math:: m_A − m_B − (α − β) = E_D f, \qquad f = u (v − α) 1_A − w (v − β) 1_B .

For each u and w the kernels bound E_D f over all tables within the bound. It is linear in u and in w, so the largest of
its bounds at the four corners of their certified ranges holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import numpy as np

from certsynth.answers import lifts, shares
from certsynth.answers.basis import Basis, Distinct, place
from certsynth.answers.claims import Claim
from certsynth.answers.kernels import Lift, largest_total
from certsynth.answers.nearness import Rest
from certsynth.base.arrays import Floats
from certsynth.domain import Ordered
from certsynth.domain.condition import And, Condition, Missing, Not, Or

Group = Condition | None
"""The condition of a group; None: all rows."""

HOW = "the largest and the smallest difference of the two groups that a table within the bound can have"


def difference_of_means(basis: Basis, column: Ordered, first: Group, second: Group) -> Claim | None:
    """The mean place of the first group's rows with a value minus that of the second's.

    None if the certificate does not cover the columns together, or a group may be empty.
    """
    if column.grid:  # places of values that are compared by ratios are not Lipschitz in the distance
        return None
    if column.missing:
        present = Not(Missing(column.name))
        first, second = (present if group is None else And((present, group)) for group in (first, second))
    rows = _few_rows(basis, first, second, column.name)
    if rows is None:
        return None
    places, weight = place(column, rows.rows[column.name]), float(column.weight)
    parts = [_Part(rows, where, one, other, places, weight) for where, one, other in _parts(first, second)]
    return _claim(basis, rows, (first, second), parts)


def difference_of_shares(basis: Basis, condition: Condition, first: Group, second: Group) -> Claim | None:
    """The share of the first group's rows that satisfy a condition minus that of the second's, as above."""
    rows = _few_rows(basis, first, second, *condition.columns)
    if rows is None:
        return None
    parts = [
        _Part(rows, And((side, where)), one, other, np.array(value))
        for where, one, other in _parts(first, second)
        for side, value in ((condition, 1.0), (Rest(condition), 0.0))
    ]
    return _claim(basis, rows, (first, second), parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Rows that satisfy a condition, whether these are in the first and in the second group, and the value of each row.

    The value is a place on a column of some weight, or, if `weight` is 0, the same for all rows of the part.
    """

    rows: Distinct
    where: Condition
    in_first: bool
    in_second: bool
    values: Floats
    weight: float = 0.0

    @property
    def distance(self) -> Floats:
        return self.rows.nearness.satisfied(self.where)

    def moments(self) -> tuple[float, float]:
        """The share of rows in the part, and their sum of values."""
        inside = self.rows.shares * (self.where.holds(self.rows.rows) > 0)
        return float(inside.sum()), float(np.sum(inside * self.values))

    def lift(self, u: float, w: float, centres: tuple[float, float]) -> Lift:
        """The lift of u·(value − α) − w·(value − β), where u counts in the first group and w in the second."""
        u, w = u * self.in_first, w * self.in_second

        def gain(values: Floats) -> Floats:
            return np.asarray(u * (values - centres[0]) - w * (values - centres[1]))

        distance = self.distance
        if self.weight:
            return lifts.convex(gain, self.values, distance, self.weight)
        return lambda steepness: gain(self.values) - steepness * distance

    def swapped(self) -> _Part:
        return replace(self, in_first=self.in_second, in_second=self.in_first)


def _few_rows(basis: Basis, first: Group, second: Group, *names: str) -> Distinct | None:
    """The synthetic rows of all columns, few enough for distances."""
    wanted = {*names, *(name for group in (first, second) if group is not None for name in group.columns)}
    return basis.few_distinct(wanted) if basis.covers(wanted) else None


def _parts(first: Group, second: Group) -> Iterator[tuple[Condition, bool, bool]]:
    """The rows of both groups, of the first alone and of the second alone, as far as there may be any."""
    if first is not None and second is not None:
        yield And((first, second)), True, True
        yield And((first, Rest(second))), True, False
        yield And((Rest(first), second)), False, True
    elif first is not None:
        yield first, True, True
        yield Rest(first), False, True
    elif second is not None:
        yield second, True, True
        yield Rest(second), True, False


def _claim(basis: Basis, rows: Distinct, groups: tuple[Group, Group], parts: Sequence[_Part]) -> Claim | None:
    names = {*rows.rows}
    bound = min(1.0, basis.bound(names) + rows.moved)
    ranges = [(1.0, 1.0) if group is None else _share(basis, group) for group in groups]
    if bound >= 1.0 or min(low for low, _ in ranges) <= 0.0:
        return None
    first, second = groups
    away = np.full(len(rows.shares), np.inf)
    if first is not None and second is not None:
        away = rows.nearness.rest(Or((first, second)))
    centres = _mean([part for part in parts if part.in_first]), _mean([part for part in parts if part.in_second])
    parts = [part for part in parts if np.isfinite(part.distance).any()]
    high = _largest(parts, rows.shares, away, bound, ranges, centres)
    swapped = [part.swapped() for part in parts]
    low = -_largest(swapped, rows.shares, away, bound, ranges[::-1], centres[::-1])
    middle = centres[0] - centres[1]
    return Claim(middle + low, middle + high, bound, HOW)


def _share(basis: Basis, group: Condition) -> tuple[float, float]:
    claim = shares.share(basis, group)[1]
    return claim.low, claim.high


def _mean(parts: Sequence[_Part]) -> float:
    """The mean of the values in these parts; any number if they are empty."""
    share, total = (sum(each) for each in zip(*(part.moments() for part in parts), strict=True))
    return total / share if share > 0 else 0.5


def _largest(
    parts: Sequence[_Part],
    weights: Floats,
    away: Floats,
    bound: float,
    ranges: Sequence[tuple[float, float]],
    centres: tuple[float, float],
) -> float:
    """The largest m_A − m_B − (α − β), given the ranges of the shares of A and B."""
    found = []
    for u, w in product(*((1.0 / high, 1.0 / low) for low, high in ranges)):
        each = [part.lift(u / (u + w), w / (u + w), centres) for part in parts]

        def lift(steepness: float, each: Sequence[Lift] = each) -> Floats:
            return reduce(np.maximum, (one(steepness) for one in each))

        found.append((u + w) * largest_total(lift, away, weights, bound, span=2.0))
    return max(found)
