r"""Means, variances, covariances and correlations of places in [0, 1]; callers convert to units.

A *group* is the set of rows that a statistic refers to: those with values in its columns that satisfy its condition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.answers import lifts
from certsynth.answers.claims import Interval
from certsynth.answers.kernels import largest_mean, largest_total, merge_onto_grid
from certsynth.answers.shares import EMPTY, UndefinedStatistic
from certsynth.base.arrays import Floats

MIN_VARIANCE = 1e-24
"""Variances of places below this are rounding errors: the computed variance of a constant column need not be 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Distinct rows and their shares, which of them are in a group, and the distance of each row to the group (`near`)
    and to its complement (`away`, infinite if that is empty)."""

    shares: Floats
    inside: np.ndarray
    near: Floats
    away: Floats

    def __post_init__(self) -> None:
        if not self.inside.any():
            raise UndefinedStatistic(EMPTY)

    @property
    def whole(self) -> bool:
        """Whether the group contains every possible row."""
        return bool(np.isinf(self.away).all())

    def average(self, values: Floats) -> float:
        """The mean of a function of the rows over the group."""
        return float(np.average(values[self.inside], weights=self.shares[self.inside]))


def mean(place: Floats, group: Group, bound: float, weight: float) -> Interval:
    """The mean place in a group. For all rows the error is at most bound/weight: places are 1/weight-Lipschitz."""
    estimate = group.average(place)
    if group.whole:
        return estimate, max(0.0, estimate - bound / weight), min(1.0, estimate + bound / weight)
    (x,), (near, away), weights, moved = merge_onto_grid([place], [weight], [group.near, group.away], group.shares)
    bound += moved
    high = largest_mean(lifts.convex(np.asarray, x, near, weight), away, weights, bound, low=0.0, high=1.0)
    low = 1.0 - largest_mean(lifts.convex(np.asarray, 1.0 - x, near, weight), away, weights, bound, low=0.0, high=1.0)
    return estimate, max(0.0, low), min(1.0, high)


def mean_of_sum(
    places: Sequence[Floats], slopes: Sequence[float], group: Group, bound: float, weights: Sequence[float]
) -> tuple[float, float]:
    """The least and the largest mean of Σ slope·place in a group, over all tables within the bound."""
    low, high = sum(min(slope, 0.0) for slope in slopes), sum(max(slope, 0.0) for slope in slopes)
    ends = []
    for sign in (-1.0, 1.0):
        lift = lifts.linear(places, [sign * slope for slope in slopes], group.near, weights)
        least, most = (low, high) if sign > 0 else (-high, -low)
        ends.append(sign * largest_mean(lift, group.away, group.shares, bound, low=least, high=most))
    return max(low, ends[0]), min(high, ends[1])


def total(place: Floats, group: Group, bound: float, weight: float, *, ends: tuple[float, float]) -> Interval:
    """E[value · 1_group] for value = ends[0] + place·(ends[1] − ends[0]): rows outside the group count as 0.

    `ends` are the values at place 0 and at place 1, in that order; the value may decrease along the column.
    """
    least_value, most_value = min(*ends, 0.0), max(*ends, 0.0)
    size = max(-least_value, most_value)
    if not size:
        return 0.0, 0.0, 0.0
    first, last = (end / size for end in ends)
    (x,), (near, away), weights, moved = merge_onto_grid([place], [weight], [group.near, group.away], group.shares)
    bound += moved

    def value(z: Floats) -> Floats:
        return np.asarray(first + z * (last - first))

    most = largest_total(lifts.convex(value, x, near, weight), away, weights, bound, span=2.0)
    least = -largest_total(lifts.convex(lambda z: -value(z), x, near, weight), away, weights, bound, span=2.0)
    estimate = float(np.dot(group.shares, np.where(group.inside, value(place), 0.0)))
    return estimate * size, max(least * size, least_value), min(most * size, most_value)


def variance(place: Floats, group: Group, bound: float, weight: float) -> Interval:
    r"""The variance of places in a group.

    High: :math:`Var_D = \min_c E_D(x − c)^2`, so the largest :math:`E_D(x − c)^2` for any c is an upper bound. Low:
    :math:`Var_D = E_D(x − m)^2 − (m_D − m)^2`, with m the synthetic mean and :math:`m_D` the true one.
    """
    centre, low_mean, high_mean = mean(place, group, bound, weight)
    estimate = group.average((place - group.average(place)) ** 2)
    (x,), (near, away), weights, moved = merge_onto_grid([place], [weight], [group.near, group.away], group.shares)
    bound += moved
    inward = bound / weight if centre > 0.5 else -bound / weight
    centres = {centre, *(c for times in (0.5, 1.0, 1.5) if (c := centre - times * inward) and 0.0 <= c <= 1.0)}

    def above(c: float) -> float:
        top = max(c, 1.0 - c) ** 2
        return largest_mean(
            lifts.convex(lambda z: (z - c) ** 2, x, near, weight), away, weights, bound, low=0.0, high=top
        )

    high = min(above(c) for c in centres)
    top = max(centre, 1.0 - centre) ** 2
    least = -largest_mean(lifts.towards(centre, x, near, weight), away, weights, bound, low=-top, high=0.0)
    low = least - max(high_mean - centre, centre - low_mean) ** 2
    return estimate, max(0.0, low), min(0.25, high)


def covariance(
    places: tuple[Floats, Floats], group: Group, bound: float, weights: tuple[float, float], means: tuple[Interval, ...]
) -> Interval:
    r"""The covariance of places in a group, from the largest and smallest mean of :math:`(x − m_x)(y − m_y)` over all
    tables within the bound, with m the synthetic means.

    :math:`Cov_D = E_D (x − m_x)(y − m_y) − (m_{x,D} − m_x)(m_{y,D} − m_y)`, and `means` are certified: the second term
    is small, and extremal at their ends.
    """
    (m_x, *ends_x), (m_y, *ends_y) = means
    estimate = group.average((places[0] - m_x) * (places[1] - m_y))
    (x, y), (near, away), merged, moved = merge_onto_grid(places, weights, [group.near, group.away], group.shares)
    bound += moved
    corners = [(a - m_x) * (b - m_y) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    low, high = min(corners), max(corners)
    up = lifts.deviations((x, y), (m_x, m_y), near, weights)
    most = largest_mean(up, away, merged, bound, low=low, high=high)
    down = lifts.deviations((1.0 - x, y), (1.0 - m_x, m_y), near, weights)
    least = -largest_mean(down, away, merged, bound, low=-high, high=-low)
    shifts = [(a - m_x) * (b - m_y) for a in ends_x for b in ends_y]
    return estimate, max(-0.25, least - max(shifts)), min(0.25, most - min(shifts))


def correlation(covariance: Interval, first: Interval, second: Interval) -> Interval:
    """Covariance divided by the root of both variances, as interval arithmetic on one event; [−1, 1] if a variance may
    be 0."""
    (cov, cov_low, cov_high), (v, v_low, v_high), (u, u_low, u_high) = covariance, first, second
    if min(v, u) < MIN_VARIANCE:
        raise UndefinedStatistic("a column is constant in the synthetic rows, so a correlation with it is not defined.")
    estimate = cov / math.sqrt(v * u)
    small, large = math.sqrt(v_low * u_low), math.sqrt(v_high * u_high)
    if not small > 0:
        return estimate, -1.0, 1.0
    low = cov_low / (small if cov_low < 0 else large)
    high = cov_high / (small if cov_high > 0 else large)
    return min(1.0, max(-1.0, estimate)), max(-1.0, low), min(1.0, high)
