"""Quantiles: the place at or below which a share p of the values lies."""

from __future__ import annotations

import math

import numpy as np

from certsynth.answers.basis import place, rank
from certsynth.answers.claims import Claim, intersect
from certsynth.answers.kernels import largest_total
from certsynth.answers.selection import Selection
from certsynth.base.arrays import Floats
from certsynth.domain import Ordered
from certsynth.domain.condition import And, Comparison, Condition, Linear

THRESHOLDS = 1_024
"""Values at which quantiles of a group may end, if there are more."""


def quantile_of(rows: Selection, column: Ordered, p: float) -> tuple[float, Claim]:
    """The p-quantile of the synthetic rows in the column's own units, and a claim about that of the private rows."""
    values, which = np.unique(rows.exact.rows[column.name][rows.inside], return_inverse=True)
    mass = np.cumsum(np.bincount(which, rows.exact.shares[rows.inside]))
    estimate = float(values[min(np.searchsorted(mass, (p - 1e-12) * mass[-1]), len(values) - 1)])
    how = "the lowest and the highest quantile that a table within the bound can have"
    ends = _of_all(rows, column, p) if rows.group is None else _within(rows, column, p)
    claims = [Claim(*ends, rows.bound, how)]
    if (cumulative := rows.cumulative_shares(column)) is not None:
        found, error = cumulative
        how = "the values at which the certified shares of rows below and above decide"
        claims.append(Claim(*found.quantile(p), error, how))
    least, most = rows.ends(column)
    return estimate, intersect([claim.cut(least, most) for claim in claims])


def _of_all(rows: Selection, column: Ordered, p: float) -> tuple[float, float]:
    figures, low, high = rows.rows.rows[column.name], float(column.low), float(column.high)
    order = np.argsort(figures)[: np.count_nonzero(~np.isnan(figures))]  # missing values come last
    shares, last = rows.rows.shares[order], max(len(column.grid) - 1, 1)
    where = rank(column, figures[order]) / last if column.grid else place(column, figures[order])
    ends = quantile(where, shares, p, rows.bound / float(column.weight))
    if column.grid:
        found = column.figures_at(np.array([math.ceil(ends[0] * last - 1e-6), math.floor(ends[1] * last + 1e-6)]))
        return float(found[0]), float(found[1])
    least, most = (low + x * (high - low) for x in ends)
    if column.whole:
        slack = 1e-6 + 1e-15 * (high - low + abs(low))  # converting to a place and back may change the last bits
        least, most = math.ceil(least - slack), math.floor(most + slack)
    return float(least), float(most)


def _within(rows: Selection, column: Ordered, p: float) -> tuple[float, float]:
    r"""The quantiles of tables within the bound in a group A: at most v if no table has
    :math:`E[(1_{y > v} − (1 − p)) 1_A] ≥ 0`, and at least v alike."""
    condition = rows.condition
    assert condition is not None
    near, weights, away = rows.rows.nearness, rows.near.shares, rows.near.away
    first, last = _thresholds(column)

    def possible(sign: str, value: float, gain: float) -> bool:
        """Whether some table has at least a share 1 − `gain` of the group's rows on that side of the value."""
        beyond: Condition = Comparison(Linear({column.name: 1.0}), sign, Linear({}, value))
        there, other = (near.satisfied(And((each, condition))) for each in (beyond, _opposite(beyond)))

        def lift(steepness: float) -> Floats:
            return np.maximum(gain - steepness * there, gain - 1.0 - steepness * other)

        return largest_total(lift, away, weights, rows.bound, span=1.0) >= 0.0

    high = _bisect(len(last), lambda i: possible(">", float(last[i]), p))
    low = _bisect(len(first), lambda i: possible("<", float(first[len(first) - 1 - i]), 1.0 - p))
    return float(first[len(first) - 1 - low]), float(last[high])


def _thresholds(column: Ordered) -> tuple[Floats, Floats]:
    """The first and the last value of each part of the column's range: its values, or equal parts if there are many."""
    low, high = float(column.low), float(column.high)
    if column.grid:
        return np.array(column.grid), np.array(column.grid)
    if not column.whole:
        edges = np.linspace(low, high, THRESHOLDS + 1)
        return edges[:-1], edges[1:]
    parts = max(min(column.reach, THRESHOLDS), 1)
    first = low + np.unique(np.floor(np.arange(parts + 1.0) * column.reach / parts))
    return first, np.append(first[1:] - 1.0, high)


def _opposite(comparison: Condition) -> Condition:
    assert isinstance(comparison, Comparison)
    return Comparison(comparison.left, "<=" if comparison.sign == ">" else ">=", comparison.right)


def _bisect(size: int, possible: object) -> int:
    """The least index at which a monotone test fails; the last index must fail."""
    assert callable(possible)
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if possible(middle) else (low, middle)
    return low


def quantile(places: Floats, shares: Floats, p: float, budget: float) -> tuple[float, float]:
    r"""The lowest and highest p-quantile over all tables whose rows moved by at most `budget` on average.

    .. math::

        high = \sup\{q : ∫_0^q (F − p F(1))^+ ≤ budget\}, \qquad low = \inf\{q : ∫_q^1 (p F(1) − F)^+ ≤ budget\}

    where F(q) is the share of all rows with a value at or below q, given by `shares` at ascending `places` in [0, 1].
    They sum to less than 1 if values are missing; a missing value is at distance 1 from all places, and quantiles refer
    to the values present. The interval holds for every convention of quantiles.
    """
    below = np.cumsum(shares)
    edges = np.concatenate([[0.0], places, [1.0]])
    levels = np.concatenate([[0.0], below]) - p * below[-1]  # on the interval from edges[i] to edges[i + 1]
    high = _reach(edges, np.maximum(levels, 0.0), budget)
    low = 1.0 - _reach(1.0 - edges[::-1], np.maximum(-levels, 0.0)[::-1], budget)
    return low, high


def _reach(edges: Floats, height: Floats, budget: float) -> float:
    """The largest q up to which the integral of a step function is at most `budget`."""
    area = np.concatenate([[0.0], np.cumsum(height * np.diff(edges))])
    last = int(np.searchsorted(area, budget, side="right")) - 1
    if last >= len(height):
        return 1.0
    return min(float(edges[last] + (budget - area[last]) / height[last]), float(edges[last + 1]))
