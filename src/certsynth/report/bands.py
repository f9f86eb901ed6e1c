"""Where shares, and medians, of the real rows must lie, for the page: what `answers/` computes, on few places."""

from __future__ import annotations

import itertools

import numpy as np

from certsynth.answers import quantiles
from certsynth.answers.kernels import largest_share
from certsynth.base.arrays import Floats
from certsynth.domain import Ordered
from certsynth.report.heap import Heap

MOST_STEPS = 96
"""Steps of a drawn band."""

_SLACK = 4e-9  # for numbers that are off their lattice by their last bits, and for sums of floats

Band = list[tuple[float, float, float, float]]


def budget(heap: Heap, bound: float) -> float:
    """How far rows may have been moved from the places of the heap, on average; `bound` is for the column."""
    return min(1.0, bound + heap.moved + _SLACK)


def most(gaps: Floats, heap: Heap, bound: float) -> float:
    """The largest share of the real rows in a set that rows have these distances from: those of the places of the
    heap, and last of what is missing."""
    shares = np.array([*heap.counts, heap.absent], float) / max(heap.rows, 1)
    return min(1.0, largest_share(gaps, budget(heap, bound), shares) + _SLACK)


def at_most(heap: Heap, bound: float, t: float, step: float) -> tuple[float, float]:
    """Least and largest share of the real rows with a value up to t, out of all; missing ones are not.

    `step` is the distance of t to the next value of the column, and 0 where there is one right above.
    """
    places = heap.places
    inside = places <= t + 1e-9
    up = np.append(np.where(inside, 0.0, places - t), 1.0)
    out = np.append(np.where(inside, t + step - places, 0.0), 0.0)
    if t >= 1:  # nothing lies above: only what is missing is not in the set
        if not heap.missing:
            return 1.0, 1.0
        out = np.append(np.ones(len(places)), 0.0)
    return 1 - most(np.maximum(out, 0.0), heap, bound), most(up, heap, bound)


def band(column: Ordered, heap: Heap, bound: float) -> Band:
    """Steps (from, to, least, largest): between two places of the axis, the share up to there is between two shares.

    Places are parts of the axis of the column's histogram, on which every whole number has a length.
    """
    if column.whole:
        values, reach = column.reach + 1, max(column.reach, 1)
        width = -(-values // MOST_STEPS)
        edges = [*range(0, values, width), values]
        ends = [((a / reach), (b - 1) / reach, a / values, b / values) for a, b in itertools.pairwise(edges)]
        step = 1 / reach
    else:
        ends = [(i / MOST_STEPS, (i + 1) / MOST_STEPS) * 2 for i in range(MOST_STEPS)]
        step = 0.0
    steps = []
    for first, last, left, right in ends:
        least = at_most(heap, bound, first, step)[0]
        largest = at_most(heap, bound, last, step)[1]
        steps.append((left, right, least, largest))
    return steps


def quantile(heap: Heap, bound: float, p: float) -> tuple[float, float]:
    """Places between which the p-quantile of the values that are there lies in the real rows."""
    if not heap.counts:
        return 0.0, 1.0
    shares = np.array(heap.counts, float) / heap.rows
    low, high = quantiles.quantile(heap.places, shares, p, budget(heap, bound))
    return max(low, 0.0), min(high, 1.0)
