r"""Lifts: the largest gain of a row that moves into a group A, sup over z in A of value(z) − λ d(x, z).

The row is at distance δ from A and at place x in [0, 1] of a column of weight w. A row of A at place z is at distance
max(w|x − z|, δ) if A is a product of sets that allows every place, and at least that far otherwise. If x is missing,
δ ≥ w, so any place may be substituted for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from certsynth.answers.kernels import Lift
from certsynth.base.arrays import Floats, Ints


def convex(value: Callable[[Floats], Floats], place: Floats, distance: Floats, weight: float) -> Lift:
    """Lift of a convex function of the place: the best z is an end of the interval within δ, or of the column."""
    free = distance / weight
    ends = [np.clip(place - free, 0.0, 1.0), np.clip(place + free, 0.0, 1.0), np.zeros(1), np.ones(1)]
    reached = [(value(z), np.maximum(weight * np.abs(place - z), distance)) for z in ends]

    def lift(steepness: float) -> Floats:
        best = reached[0][0] - steepness * reached[0][1]
        for gain, cost in reached[1:]:
            best = np.maximum(best, gain - steepness * cost)
        return np.asarray(best)

    return lift


def towards(centre: float, place: Floats, distance: Floats, weight: float) -> Lift:
    """Lift of −(z − centre)²: a row moves towards the centre, freely within δ, then while the gain exceeds the cost
    (a Huber function)."""
    left = np.maximum(np.abs(place - centre) - distance / weight, 0.0)

    def lift(steepness: float) -> Floats:
        half = steepness * weight / 2
        rest = np.where(left <= half, left**2, half * (2 * left - half))
        return np.asarray(-rest - steepness * distance)

    return lift


def ranked(values: Floats, rank: Ints, distance: Floats, gap: float) -> Lift:
    """Lift of any function of the rank of a value: `values[j]` for rank j. Neighbouring ranks are `gap` apart.

    Ranks within δ cost δ. For each λ, the best of the others above is a running maximum from the end, and so below.
    """
    last = len(values) - 1
    free = np.minimum(np.floor(distance / gap * (1 + 1e-12)), last).astype(np.int64)
    left, right = np.maximum(rank - free, 0), np.minimum(rank + free, last)
    within, along = _largest_between(values, left, right), gap * np.arange(last + 1)

    def lift(steepness: float) -> Floats:
        ramp, at = steepness * along, steepness * gap * rank
        above = np.append(np.maximum.accumulate((values - ramp)[::-1])[::-1], -np.inf)[right + 1] + at
        below = np.append(-np.inf, np.maximum.accumulate(values + ramp))[left] - at
        return np.maximum(within - steepness * distance, np.maximum(above, below))

    return lift


def _largest_between(values: Floats, first: Ints, last: Ints) -> Floats:
    """The largest of `values[first : last + 1]`, from maxima over runs of 1, 2, 4, … values."""
    runs = [values]
    while 2 ** len(runs) <= len(values):
        half = 2 ** (len(runs) - 1)
        runs.append(np.append(np.maximum(runs[-1][:-half], runs[-1][half:]), np.full(half, -np.inf)))
    level = np.log2(last - first + 1).astype(np.int64)
    table = np.stack(runs)
    return np.maximum(table[level, first], table[level, last + 1 - 2**level])


def linear(places: Sequence[Floats], slopes: Sequence[float], distance: Floats, weights: Sequence[float]) -> Lift:
    """Lift of Σ slope·place over several columns: every place moves towards the end where its term is largest.

    The gain grows with the distance s, at a rate that falls wherever a place reaches its end. So the best s is δ or one
    of these points.
    """
    ends = [1.0 if slope > 0 else 0.0 for slope in slopes]
    to_ends = [weight * np.abs(end - place) for place, end, weight in zip(places, ends, weights, strict=True)]
    reached = []
    for s in (distance, *(np.maximum(distance, to_end) for to_end in to_ends)):
        total = np.zeros(len(distance))
        for place, slope, weight in zip(places, slopes, weights, strict=True):
            total += slope * np.clip(place + math.copysign(1.0, slope) * s / weight, 0.0, 1.0)
        reached.append((total, s))

    def lift(steepness: float) -> Floats:
        best = reached[0][0] - steepness * reached[0][1]
        for gain, cost in reached[1:]:
            best = np.maximum(best, gain - steepness * cost)
        return np.asarray(best)

    return lift


def indicator(inside: Floats, outside: Floats) -> Lift:
    """Lift of a value that is 1 on one part of A and 0 on the other, given the distances to both."""
    return lambda steepness: np.maximum(1.0 - steepness * inside, -steepness * outside)


def deviations(
    places: tuple[Floats, Floats], centres: tuple[float, float], distance: Floats, weights: tuple[float, float]
) -> Lift:
    """Lift of (x − a)(y − b) for places of two columns. Points within s form a rectangle, so the maximum is at a
    corner.

    Towards each of the four corners the value is quadratic in s until one place reaches its end, then linear until the
    other does, then constant. So the best s is δ, a point where a place reaches its end, or the vertex of a parabola.
    """
    (x, y), (a, b), (w, v) = places, centres, weights
    fixed: list[tuple[Floats, Floats]] = []
    arches: list[tuple[Floats, Floats, float]] = []
    for right in (-1.0, 1.0):
        for up in (-1.0, 1.0):
            to_x, to_y = (x if right < 0 else 1.0 - x) * w, (y if up < 0 else 1.0 - y) * v

            def at(s: Floats, right: float = right, up: float = up) -> Floats:
                moved = np.clip(x + right * s / w, 0.0, 1.0), np.clip(y + up * s / v, 0.0, 1.0)
                return np.asarray((moved[0] - a) * (moved[1] - b))

            for s in (distance, np.maximum(distance, to_x), np.maximum(distance, to_y)):
                fixed.append((at(s), s))
            if right * up < 0:  # (x − a)(y − b) + slope·s − bend·s², up to where a place is at its end
                slope = up * (x - a) / v + right * (y - b) / w
                arches.append((slope, np.minimum(to_x, to_y), 1.0 / (w * v)))
    product = (x - a) * (y - b)

    def lift(steepness: float) -> Floats:
        best = fixed[0][0] - steepness * fixed[0][1]
        for gain, cost in fixed[1:]:
            best = np.maximum(best, gain - steepness * cost)
        for slope, end, bend in arches:
            s = np.clip((slope - steepness) / (2 * bend), np.minimum(distance, end), end)
            inside = s >= distance
            best = np.where(inside, np.maximum(best, product + (slope - steepness) * s - bend * s**2), best)
        return np.asarray(best)

    return lift
