r"""How much a value can rise when a row moves: sup over z in a group A of value(z) − λ d(x, z).

The row is at distance δ from A, and has the place x in [0, 1] on a column of weight w. A row of A whose place is z
is max(w|x − z|, δ) away if A is a product of sets and any place is allowed in it, and no nearer otherwise. Where x is
missing, δ ≥ w, so that any place will do for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certsynth.answers.kernels import Lift
from certsynth.arrays import Floats


def convex(value: Callable[[Floats], Floats], place: Floats, distance: Floats, weight: float) -> Lift:
    """For a convex function of the place. Within δ it is largest at an end, beyond at an end of the column."""
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
    """For −(z − centre)²: a row moves to the centre, at no cost as far as δ, then as long as it is worth it (Huber)."""
    left = np.maximum(np.abs(place - centre) - distance / weight, 0.0)

    def lift(steepness: float) -> Floats:
        half = steepness * weight / 2
        rest = np.where(left <= half, left**2, half * (2 * left - half))
        return np.asarray(-rest - steepness * distance)

    return lift


def indicator(inside: Floats, outside: Floats) -> Lift:
    """For 1 on one part of A and 0 on the other, at these distances."""
    return lambda steepness: np.maximum(1.0 - steepness * inside, -steepness * outside)


def steep(value: Floats, distance: Floats, slope: float, high: float) -> Lift:
    """For a function of which only its slope and its largest value are known; right for λ ≥ slope."""
    reached = np.minimum(high, value + slope * distance)
    return lambda steepness: np.asarray(reached - steepness * distance)
