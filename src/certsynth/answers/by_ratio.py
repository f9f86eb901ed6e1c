"""Means and variances of a column that is compared by ratios, over all tables within the bound on the distance.

Its values are not Lipschitz in their rank with a useful constant, but there are few of them: the supremum that a lift
is made of is taken over all values, one by one. Values are places in [0, 1] between low and high, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certsynth.answers import lifts
from certsynth.answers.basis import place, rank
from certsynth.answers.claims import Claim
from certsynth.answers.kernels import Lift, largest_mean, largest_total, merge_rows
from certsynth.answers.selection import Selection
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Ordered

HOW_MEAN = "the largest and the smallest mean that a table within the bound can have"
HOW_VARIANCE = "the largest and the smallest variance that a table within the bound can have, or a little beyond"


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Distinct rows by the rank of their value: their shares, and their distances to the group and to the rest.

    `values` are the places of all values of the column, and `allowed` says which of them a row of the group can have.
    """

    ranks: Ints
    near: Floats
    away: Floats
    shares: Floats
    values: Floats
    allowed: np.ndarray
    gap: float
    bound: float

    @classmethod
    def of(cls, rows: Selection, column: Ordered) -> Ranked:
        figures = np.array(column.grid)
        low, high = rows.ends(column)
        group = rows.near
        (ranks, near, away), shares = merge_rows(
            rank(column, rows.rows.rows[column.name]), group.near, group.away, shares=group.shares
        )
        return cls(
            ranks=ranks.astype(np.int64),
            near=near,
            away=away,
            shares=shares,
            values=place(column, figures),
            allowed=(low <= figures) & (figures <= high),
            gap=float(column.weight) / (len(figures) - 1),
            bound=rows.bound,
        )

    def lift(self, function: Floats) -> Lift:
        return lifts.ranked(np.where(self.allowed, function, -np.inf), self.ranks, self.near, self.gap)

    def largest_mean(self, function: Floats) -> float:
        """The largest mean in the group of a function of the value."""
        possible = function[self.allowed]
        low, high = float(possible.min()), float(possible.max())
        return largest_mean(self.lift(function), self.away, self.shares, self.bound, low=low, high=high)

    def largest_total(self, function: Floats) -> float:
        """The largest mean over all rows of a function that is between −1 and 1, and 0 outside the group."""
        return largest_total(self.lift(function), self.away, self.shares, self.bound, span=2.0)


def mean(rows: Selection, column: Ordered) -> Claim:
    ranked = Ranked.of(rows, column)
    return Claim(-ranked.largest_mean(-ranked.values), ranked.largest_mean(ranked.values), rows.bound, HOW_MEAN)


def variance(rows: Selection, column: Ordered, mean: Claim) -> Claim:
    """Var = min over c of E(x − c)² = E(x − c)² − (mean − c)², where the mean is in a certified range."""
    ranked = Ranked.of(rows, column)
    centres = {rows.average(rows.exact_places(column)), mean.low, (mean.low + mean.high) / 2, mean.high}
    squares = {c: (ranked.values - c) ** 2 for c in centres}
    most = min(ranked.largest_mean(square) for square in squares.values())
    least = max(
        -ranked.largest_mean(-square) - max((mean.low - c) ** 2, (mean.high - c) ** 2) for c, square in squares.items()
    )
    return Claim(least, most, rows.bound, HOW_VARIANCE)


def total(rows: Selection, column: Ordered, *, ends: tuple[float, float]) -> tuple[float, float]:
    """The range of E[value · 1_rows], where value = ends[0] + place · (ends[1] − ends[0])."""
    ranked, size = Ranked.of(rows, column), max(map(abs, ends))
    if not size:
        return 0.0, 0.0
    value = (ends[0] + ranked.values * (ends[1] - ends[0])) / size
    return -size * ranked.largest_total(-value), size * ranked.largest_total(value)
