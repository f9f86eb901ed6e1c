r"""Means, variances, covariances and correlations. Places on a column go from 0 to 1 here; callers have the units.

A *group* is where rows are looked at: those with values in the columns that are asked for, and perhaps a condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certsynth.answers import lifts
from certsynth.answers.kernels import largest_mean, largest_total, merged
from certsynth.answers.shares import EMPTY, Interval
from certsynth.arrays import Floats
from certsynth.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Which rows are in it, how far each is from it (`near`) and from the rest (`away`, infinite if there is none)."""

    inside: np.ndarray
    near: Floats
    away: Floats

    def __post_init__(self) -> None:
        if not self.inside.any():
            raise InputError(EMPTY)

    @classmethod
    def all(cls, rows: int) -> Group:
        return cls(np.ones(rows, bool), np.zeros(rows), np.full(rows, np.inf))

    @property
    def whole(self) -> bool:
        """Whether every possible row is in it."""
        return bool(np.isinf(self.away).all())


def mean(place: Floats, group: Group, bound: float, weight: float) -> Interval:
    """The mean place in a group. Of all rows: off by at most bound/weight, since a place moves so much at most."""
    estimate = float(np.mean(place[group.inside]))
    if group.whole:
        return estimate, max(0.0, estimate - bound / weight), min(1.0, estimate + bound / weight)
    (x, near, away), weights = merged(place, group.near, group.away)
    high = largest_mean(lifts.convex(np.asarray, x, near, weight), away, weights, bound, low=0.0, high=1.0)
    low = 1.0 - largest_mean(lifts.convex(np.asarray, 1.0 - x, near, weight), away, weights, bound, low=0.0, high=1.0)
    return estimate, max(0.0, low), min(1.0, high)


def total(place: Floats, group: Group, bound: float, weight: float, *, low: float, high: float) -> Interval:
    """E[value · 1_group] for value = low + place·(high − low): rows outside of the group count as 0."""
    (x, near, away), weights = merged(place, group.near, group.away)
    size = max(abs(low), abs(high))

    def value(z: Floats) -> Floats:
        return np.asarray((low + z * (high - low)) / size)

    most = largest_total(lifts.convex(value, x, near, weight), away, weights, bound, span=2.0)
    least = -largest_total(lifts.convex(lambda z: -value(z), x, near, weight), away, weights, bound, span=2.0)
    estimate = float(np.mean(np.where(group.inside, value(place), 0.0)))
    least, most = max(least, min(low, 0.0) / size), min(most, max(high, 0.0) / size)
    return estimate * size, least * size, most * size


def variance(place: Floats, group: Group, bound: float, weight: float) -> Interval:
    r"""The variance of places in a group.

    High: :math:`Var_D = \min_c E_D(x − c)^2`, so the largest :math:`E_D(x − c)^2` for any c will do. Low:
    :math:`Var_D = E_D(x − m)^2 − (m_D − m)^2`, with m the synthetic mean and :math:`m_D` the true one.
    """
    centre, low_mean, high_mean = mean(place, group, bound, weight)
    estimate = float(np.var(place[group.inside]))
    (x, near, away), weights = merged(place, group.near, group.away)
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
    r"""The covariance of places in a group, from that of :math:`f = (x − m_x)(y − m_y)`, with m the synthetic means.

    f changes by at most :math:`L = M_y/w_x + M_x/w_y` over a distance of 1, where :math:`M = \max(m, 1 − m)`, and
    :math:`Cov_D = E_D f − (m_{x,D} − m_x)(m_{y,D} − m_y)`. `means` are the certified means in the group.
    """
    (x, y), ((m_x, *ends_x), (m_y, *ends_y)) = places, means
    f = (x - m_x) * (y - m_y)
    far_x, far_y = max(m_x, 1.0 - m_x), max(m_y, 1.0 - m_y)
    slope = far_y / weights[0] + far_x / weights[1]
    estimate = float(np.mean(f[group.inside]))
    corners = [(a - m_x) * (b - m_y) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    if group.whole:
        low, high = estimate - slope * bound, estimate + slope * bound
    else:
        (f, near, away), shares = merged(f, group.near, group.away)
        ends = {"low": min(corners), "high": max(corners)}
        # A row that lacks a value is at least the smaller weight from all others: λ must be worth that step, too.
        steepest = max(slope, (ends["high"] - ends["low"]) / min(weights))
        up = lifts.steep(f, near, steepest, ends["high"])
        high = largest_mean(up, away, shares, bound, **ends, within=steepest)
        down = lifts.steep(-f, near, steepest, -ends["low"])
        low = -largest_mean(down, away, shares, bound, low=-ends["high"], high=-ends["low"], within=steepest)
    shifts = [(a - m_x) * (b - m_y) for a in ends_x for b in ends_y]
    return estimate, max(-0.25, low - max(shifts)), min(0.25, high - min(shifts))


def correlation(covariance: Interval, first: Interval, second: Interval) -> Interval:
    """Covariance over the root of both variances: the ends of the quotient, all on one event. [−1, 1] if a variance
    may be 0."""
    (cov, cov_low, cov_high), (v, v_low, v_high), (u, u_low, u_high) = covariance, first, second
    if not v * u > 0:
        raise InputError("a column is constant in the synthetic rows, so a correlation with it is not defined.")
    estimate = cov / math.sqrt(v * u)
    small, large = math.sqrt(v_low * u_low), math.sqrt(v_high * u_high)
    if not small > 0:
        return estimate, -1.0, 1.0
    low = cov_low / (small if cov_low < 0 else large)
    high = cov_high / (small if cov_high > 0 else large)
    return min(1.0, max(-1.0, estimate)), max(-1.0, low), min(1.0, high)
