r"""The largest value of a statistic over all tables within a given distance of the synthetic rows.

Let μ be the synthetic rows, D the private ones, and :math:`W_1(D, μ) ≤ b`. For every function g with
:math:`|g(x) − g(y)| ≤ λ d(x, y)` we have :math:`E_D g ≤ E_μ g + λ b`. So if g ≥ f everywhere,

.. math:: E_D f ≤ E_μ g + λ b .

The smallest such g is :math:`\sup_z f(z) − λ d(x, z)`, and λ may be chosen after seeing the synthetic rows, since the
inequality holds for all λ simultaneously. By duality the best λ gives the largest :math:`E_D f` over all tables D
within b, so no better bound follows from the certificate alone. Proofs are in `docs/explanation/proofs/answers.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from certsynth.base.arrays import Floats, Ints

Lift = Callable[[float], Floats]
"""Maps λ to the supremum over z in a group of value(z) − λ d(x, z), for each row x."""

_ROUNDING = 1e-12  # more than a sum of shares is off by
GRID_POINTS = 17  # of the search for the best λ, before it is refined
SECTION_STEPS = 20  # of the golden-section refinement
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
MAX_NEWTON_STEPS = 200

MAX_EXACT_ROWS = 20_000
"""Most distinct rows that are processed without rounding; more would take seconds for each answer."""

GRID_STEPS = {1: 8_192, 2: 512}
"""Steps of the grid to which places are rounded if there are more rows, by the number of columns."""


def largest_share(distance: Floats, bound: float, shares: Floats | None = None) -> float:
    r"""The largest share of rows in a set A over all tables within `bound`.

    .. math:: P_D(A) ≤ \min_τ E_μ (1 − d(x, A)/τ)^+ + b/τ

    The minimum is at the τ obtained by moving mass into A in order of increasing distance until b is used up: τ is the
    distance of the last mass moved. `distance` may be any 1-Lipschitz function that is 0 on A. `shares` are the shares
    of rows at each distance, by default equal.

    >>> largest_share(np.array([0.0, 0.25, 0.5, 1.0]), 0.125)
    0.625
    """
    if shares is None:
        shares = np.full(len(distance), 1.0 / len(distance))
    order = _nearest_first(distance)
    near, mass = distance[order], shares[order]
    last = int(np.searchsorted(np.cumsum(near * mass), bound, side="right"))
    if last == len(near):  # all mass at a finite distance is moved
        return min(1.0, float(mass.sum()))
    width = float(near[last])
    return min(1.0, float(np.dot(1.0 - near[:last] / width, mass[:last])) + bound / width)


def smallest_share(distance: Floats, bound: float, shares: Floats | None = None) -> float:
    """The smallest share of rows in a set over all tables within `bound`, given the distances to all other rows.

    Differences that are rounding errors count as 0: another claim may be that the share is 0, and must not contradict.
    """
    found = 1.0 - largest_share(distance, bound, shares)
    return found if found > _ROUNDING else 0.0


def _nearest_first(distance: Floats) -> Ints:
    """The rows at a finite distance, in ascending order. Most are often at distance 0, and need not be sorted."""
    at_zero, others = np.flatnonzero(distance == 0.0), np.flatnonzero((distance > 0.0) & (distance < np.inf))
    return np.concatenate([at_zero, others[np.argsort(distance[others], kind="stable")]])


def largest_mean(lift: Lift, away: Floats, weights: Floats, bound: float, *, low: float, high: float) -> float:
    r"""The largest mean of a value within a group A over all tables within `bound`, for values in [low, high].

    If for some λ

    .. math:: λ b + E_μ \max(\text{lift}_λ(x) − t,\; −λ\,\text{away}(x)) ≤ 0

    then :math:`E_D[(\text{value} − t) 1_A] ≤ 0`: the mean in A is at most t. Where `lift` is the supremum over z in A
    of value(z) − λ d(x, z), and `away` the distance to the rest of the rows (infinite if all rows are in A), the
    left side is the largest :math:`E_D[(\text{value} − t)1_A]`, for the best λ. For each λ the least such t is
    found by Newton's method; it is convex in λ.
    """
    span = high - low
    if span <= 0:
        return high
    most = span / bound
    least = span * 1e-3
    if least >= most:
        return high

    def at(exponent: float) -> float:
        return _least_level(lift(math.exp(exponent)), away, weights, math.exp(exponent), bound, low, high)

    return _smallest(at, math.log(least), math.log(most))


def largest_total(lift: Lift, away: Floats, weights: Floats, bound: float, *, span: float) -> float:
    """The largest E[value · 1_A]: as `largest_mean` with t = 0 and no division."""

    def at(exponent: float) -> float:
        steepness = math.exp(exponent)
        best = np.maximum(lift(steepness), -steepness * away)
        return float(steepness * bound + np.dot(weights, best))

    return _smallest(at, math.log(span * 1e-3), math.log(span / bound) + math.log(2))


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """Approximate minimum of a unimodal function: a grid search refined by golden sections."""
    points = np.linspace(low, high, GRID_POINTS)
    found = [function(point) for point in points]
    best = int(np.argmin(found))
    left, right = points[max(best - 1, 0)], points[min(best + 1, GRID_POINTS - 1)]
    a, b = right - GOLDEN_RATIO * (right - left), left + GOLDEN_RATIO * (right - left)
    at_a, at_b = function(a), function(b)
    least = min(found[best], at_a, at_b)
    for _ in range(SECTION_STEPS):
        if at_a < at_b:
            right, b, at_b = b, a, at_a
            a = right - GOLDEN_RATIO * (right - left)
            at_a = function(a)
        else:
            left, a, at_a = a, b, at_b
            b = left + GOLDEN_RATIO * (right - left)
            at_b = function(b)
        least = min(least, at_a, at_b)
    return least


def _least_level(
    lifted: Floats, away: Floats, weights: Floats, steepness: float, bound: float, low: float, high: float
) -> float:
    """The root t of a convex, decreasing, piecewise linear function, by Newton steps from the left."""
    floor = -steepness * away
    level, active = low, None
    for _ in range(MAX_NEWTON_STEPS):
        over = lifted - level
        now = over > floor
        if active is not None and np.array_equal(now, active):
            return level + 1e-12 * (high - low)  # the root lies on this piece
        excess = steepness * bound + float(np.dot(weights, np.where(now, over, floor)))
        slope = float(weights[now].sum())
        if excess <= 0 and level == low:
            return low
        if not slope or (level := level + excess / slope) >= high:
            return high
        active = now
    return high


def merge_rows(*arrays: Floats, shares: Floats | None = None) -> tuple[list[Floats], Floats]:
    """Merge rows that agree in all arrays; return the arrays and the share of each merged row."""
    code, size = np.zeros(len(arrays[0]), np.int64), 1
    for array in arrays:
        values, place = np.unique(array, return_inverse=True)
        code = code * len(values) + place
        size *= len(values)
        if size > 2**31:  # keep codes small, whatever comes next
            _, code = np.unique(code, return_inverse=True)
            size = len(arrays[0])
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return [array[first] for array in arrays], np.bincount(place, shares) / (len(code) if shares is None else 1.0)


def merge_onto_grid(
    places: Sequence[Floats], weights: Sequence[float], others: Sequence[Floats], shares: Floats
) -> tuple[list[Floats], list[Floats], Floats, float]:
    r"""Merge equal rows; if too many remain, round places to an even grid and merge again.

    The last number is the mean distance by which rows were moved, to be added to the bound. That suffices: each lift is
    λ-Lipschitz in the places for fixed distances to the group, so its mean grows by at most λ times that distance.
    """
    joined, shares = merge_rows(*places, *others, shares=shares)
    if len(shares) <= MAX_EXACT_ROWS:
        return joined[: len(places)], joined[len(places) :], shares, 0.0
    steps = GRID_STEPS[len(places)]
    moved = [np.floor(x * steps + 0.5) / steps for x in joined[: len(places)]]
    shifts = [w * np.abs(x - y) for w, x, y in zip(weights, joined, moved, strict=False)]
    far = float(np.dot(shares, np.max(shifts, axis=0))) * (1 + 1e-9)
    joined, shares = merge_rows(*moved, *joined[len(places) :], shares=shares)
    return joined[: len(places)], joined[len(places) :], shares, far
