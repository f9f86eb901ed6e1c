r"""Where shares, and medians, of the real rows must lie.

The real rows are synthetic rows that were moved by no more than the bound on average. So no set can hold more of them
than the synthetic rows in it, and those nearest to it, moved in until the bound is used up:

.. math:: P_D(A) \le \inf_\tau \; E_{syn} (1 - d(x, A)/\tau)^+ + b/\tau

and the infimum is that greedy sum. What a set must hold at least is 1 minus what its complement can hold at most.
"""

from __future__ import annotations

import itertools

import numpy as np

from certsynth.arrays import Floats
from certsynth.domain import Ordered
from certsynth.report.heap import Heap

MOST_STEPS = 96
"""Steps of a drawn band."""

_SLACK = 4e-9  # for numbers that are off their lattice by their last bits, and for sums of floats

Band = list[tuple[float, float, float, float]]


def budget(heap: Heap, bound: float) -> float:
    """How far rows may have been moved from the places of the heap, on average; `bound` is for the column."""
    return min(1.0, bound + heap.moved + _SLACK)


def most(gaps: Floats, counts: Floats, rows: int, budget: float) -> float:
    """The largest share that rows at these distances from a set can have in it, if moved by `budget` on average."""
    order = np.argsort(gaps, kind="stable")
    mass = counts[order] / max(rows, 1)
    cost = np.cumsum(gaps[order] * mass)
    done = int(np.searchsorted(cost, budget, side="right"))
    share = float(mass[:done].sum())
    if done < len(mass):
        left = budget - (float(cost[done - 1]) if done else 0.0)
        share += left / float(gaps[order][done])
    return min(1.0, share + _SLACK)


def at_most(heap: Heap, bound: float, t: float, step: float) -> tuple[float, float]:
    """Least and largest share of the real rows with a value up to t, out of all; missing ones are not.

    `step` is the distance of t to the next value of the column, and 0 where there is one right above.
    """
    places, counts = heap.places, np.array([*heap.counts, heap.absent], float)
    spent, inside = budget(heap, bound), places <= t + 1e-9
    up = np.append(np.where(inside, 0.0, places - t), 1.0)
    out = np.append(np.where(inside, t + step - places, 0.0), 0.0)
    if t >= 1:  # nothing lies above: only what is missing is not in the set
        if not heap.missing:
            return 1.0, 1.0
        out = np.append(np.ones(len(places)), 0.0)
    return 1 - most(np.maximum(out, 0.0), counts, heap.rows, spent), most(up, counts, heap.rows, spent)


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
    r"""Places between which the p-quantile of the values that are there lies in the real rows.

    high is the largest q with :math:`\int_0^q (F(u) - p F(1))^+ du \le b`, and low the smallest with
    :math:`\int_q^1 (p F(1) - F(u))^+ du \le b`, where F counts rows and leaves out those that are missing.
    """
    places, rows = heap.places, max(heap.rows, 1)
    spent = budget(heap, bound)
    shares = np.cumsum(heap.counts) / rows
    aim = p * (float(shares[-1]) if len(shares) else 0.0)
    edges = np.concatenate([[0.0], places, [1.0]])
    levels = np.concatenate([[0.0], shares])  # of F between two edges
    high, left = 1.0, spent
    for a, b, level in zip(edges[:-1], edges[1:], levels, strict=True):
        over = max(level - aim, 0.0) * (b - a)
        if over > left:
            high = a + left / (level - aim)
            break
        left -= over
    low, left = 0.0, spent
    for a, b, level in reversed(list(zip(edges[:-1], edges[1:], levels, strict=True))):
        under = max(aim - level, 0.0) * (b - a)
        if under > left:
            low = b - left / (aim - level)
            break
        left -= under
    return float(max(low, 0.0)), float(min(high, 1.0))
