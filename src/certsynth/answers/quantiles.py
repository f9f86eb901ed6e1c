"""Quantiles: the place at or below which a share p of the values lies."""

from __future__ import annotations

import numpy as np

from certsynth.base.arrays import Floats


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
