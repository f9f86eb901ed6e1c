"""Quantiles: the place that a share p of the values lies at or below."""

from __future__ import annotations

import numpy as np

from certsynth.base.arrays import Floats


def quantile(places: Floats, shares: Floats, p: float, budget: float) -> tuple[float, float]:
    r"""The lowest and the highest p-quantile that a table can have whose rows moved by `budget` on average.

    .. math::

        high = \sup\{q : ∫_0^q (F − p F(1))^+ ≤ budget\}, \qquad low = \inf\{q : ∫_q^1 (p F(1) − F)^+ ≤ budget\}

    where F(q) is the share of all rows that have a value at or below q: `shares` at ascending `places` in [0, 1]. They
    sum to less than 1 if values are missing; a missing value is at distance 1 from all places, and quantiles are those
    of the values that are there. Whatever convention is used for quantiles, they lie between.
    """
    below = np.cumsum(shares)
    edges = np.concatenate([[0.0], places, [1.0]])
    levels = np.concatenate([[0.0], below]) - p * below[-1]  # on the interval from edges[i] to edges[i + 1]
    high = _reach(edges, np.maximum(levels, 0.0), budget)
    low = 1.0 - _reach(1.0 - edges[::-1], np.maximum(-levels, 0.0)[::-1], budget)
    return low, high


def _reach(edges: Floats, height: Floats, budget: float) -> float:
    """The largest q up to which a step function has at most this integral."""
    area = np.concatenate([[0.0], np.cumsum(height * np.diff(edges))])
    last = int(np.searchsorted(area, budget, side="right")) - 1
    if last >= len(height):
        return 1.0
    return min(float(edges[last] + (budget - area[last]) / height[last]), float(edges[last + 1]))
