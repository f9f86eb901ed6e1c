"""The largest mean of a column in a group over all tables within a bound: `kernels.largest_mean`, compiled for places.

A report states hundreds of such means. The search is the same, step by step, so that the digits are.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from certsynth.answers.kernels import GOLDEN_RATIO, GRID_POINTS, MAX_NEWTON_STEPS, SECTION_STEPS
from certsynth.base.arrays import Floats


def largest_group_mean(
    places: Floats, near: Floats, away: Floats, shares: Floats, weight: float, bound: float
) -> float:
    """The largest mean place in a group: rows at `places` in [0, 1] of a column of this weight are `near` to the group
    and `away` from the rest, by their distances."""
    points = np.linspace(math.log(1e-3), math.log(1.0 / bound), GRID_POINTS)
    return float(_smallest(*_ends(places, near, weight), away, shares, bound, points))


def _ends(places: Floats, near: Floats, weight: float) -> tuple[Floats, Floats]:
    """The place that a row may move to, freely once it is in the group, and its distance: up, or to the end."""
    free = near / weight
    up, end = np.clip(places + free, 0.0, 1.0), np.ones(len(places))
    gains = np.stack([up, end])
    return gains, np.maximum(weight * np.abs(places - gains), near)


@njit(cache=True, nogil=True)
def _least_level(
    gains: Floats, costs: Floats, away: Floats, shares: Floats, steepness: float, bound: float, lifted: Floats
) -> float:
    for i in range(len(shares)):
        lifted[i] = max(gains[0, i] - steepness * costs[0, i], gains[1, i] - steepness * costs[1, i])
    level, before = 0.0, -1
    for _ in range(MAX_NEWTON_STEPS):
        excess, slope, active = steepness * bound, 0.0, 0
        for i in range(len(shares)):
            over, floor = lifted[i] - level, -steepness * away[i]
            if over > floor:
                excess += shares[i] * over
                slope += shares[i]
                active += 1
            else:
                excess += shares[i] * floor
        if active == before:  # rows only become inactive as the level rises, so the piece is the same
            return level + 1e-12
        if excess <= 0 and level == 0.0:
            return 0.0
        if slope == 0.0:
            return 1.0
        level += excess / slope
        if level >= 1.0:
            return 1.0
        before = active
    return 1.0


@njit(cache=True, nogil=True)
def _smallest(gains: Floats, costs: Floats, away: Floats, shares: Floats, bound: float, points: Floats) -> float:
    lifted = np.empty(len(shares))
    best, least = 0, math.inf
    for k in range(GRID_POINTS):
        found = _least_level(gains, costs, away, shares, math.exp(points[k]), bound, lifted)
        if found < least:
            best, least = k, found
    left, right = points[max(best - 1, 0)], points[min(best + 1, GRID_POINTS - 1)]
    a, b = right - GOLDEN_RATIO * (right - left), left + GOLDEN_RATIO * (right - left)
    at_a = _least_level(gains, costs, away, shares, math.exp(a), bound, lifted)
    at_b = _least_level(gains, costs, away, shares, math.exp(b), bound, lifted)
    least = min(least, at_a, at_b)
    for _ in range(SECTION_STEPS):
        if at_a < at_b:
            right, b, at_b = b, a, at_a
            a = right - GOLDEN_RATIO * (right - left)
            at_a = _least_level(gains, costs, away, shares, math.exp(a), bound, lifted)
        else:
            left, a, at_a = a, b, at_b
            b = left + GOLDEN_RATIO * (right - left)
            at_b = _least_level(gains, costs, away, shares, math.exp(b), bound, lifted)
        least = min(least, at_a, at_b)
    return least
