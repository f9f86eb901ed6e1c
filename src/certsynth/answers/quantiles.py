"""Quantiles: the figure that a share p of the rows lies at or below."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certsynth.answers import kernels, lifts
from certsynth.answers.kernels import largest_mean
from certsynth.arrays import Floats


def quantile(values: Floats, p: float, bound: float, weight: float) -> tuple[float, float, float]:
    r"""Estimate, low and high of the p-quantile of places in [0, 1], all of them there.

    .. math::

        high = \sup\{q : w ∫_0^q (F − p)^+ ≤ b\}, \qquad low = \inf\{q : w ∫_q^1 (p − F)^+ ≤ b\}

    F is the share of synthetic rows at or below a place. :math:`W_1 = w ∫ |F_D − F|` on a line. If the quantile of D is
    above q, F_D is at most p below q, which costs the first integral; if it is below q, the second one. Whatever
    convention is used for quantiles, they lie between.
    """
    places, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts) / len(values)
    estimate = float(places[np.searchsorted(below, p - 1e-12)])
    edges = np.concatenate([[0.0], places, [1.0]])
    shares = np.concatenate([[0.0], below])  # on the interval from edges[i] to edges[i + 1]
    high = _reach(edges, np.maximum(shares - p, 0.0), bound / weight)
    low = 1.0 - _reach(1.0 - edges[::-1], np.maximum(p - shares, 0.0)[::-1], bound / weight)
    return estimate, min(low, estimate), max(high, estimate)


def _reach(edges: Floats, height: Floats, budget: float) -> float:
    """The largest q up to which a step function has at most this integral."""
    area = np.concatenate([[0.0], np.cumsum(height * np.diff(edges))])
    last = int(np.searchsorted(area, budget, side="right")) - 1
    if last >= len(height):
        return 1.0
    return min(float(edges[last] + (budget - area[last]) / height[last]), float(edges[last + 1]))


def quantile_of_present(
    figures: Floats, p: float, bound: float, *, low: float, high: float, weight: float, whole: bool
) -> tuple[float, float]:
    """Low and high of the p-quantile among figures that are there, where some may be missing.

    Whether a figure is too low or too high is decided by the certified share at or below it, by bisection: shares grow
    with the figure, and each step is certain by itself.
    """
    present = figures[~np.isnan(figures)]
    values, counts = np.unique(present, return_counts=True)
    if len(values) > kernels.MOST_ROWS:  # moved to a grid; how far, on average over all rows, is added to the bound
        step = (high - low) / kernels.GRID_STEPS[1]
        moved = low + step * np.floor((present - low) / step + 0.5)
        bound += weight * float(np.sum(np.abs(moved - present))) / (high - low) / len(figures) * (1 + 1e-9)
        values, counts = np.unique(moved, return_counts=True)
    weights = np.append(counts, len(figures) - len(present)) / len(figures)
    away = np.append(np.full(len(values), weight), 0.0)

    def distance(beyond: Floats) -> Floats:
        return np.append(weight * np.maximum(beyond, 0.0) / (high - low), weight)

    def most(share_of: Floats, other: Floats) -> float:
        return largest_mean(lifts.indicator(share_of, other), away, weights, bound, low=0.0, high=1.0)

    def ends(figure: float) -> tuple[float, float]:
        """Of the share at or below a figure."""
        below, above = distance(values - figure), distance(figure + whole - values)
        return 1.0 - most(above, below), most(below, above)

    grain = 1.0 if whole else (high - low) * 2.0**-20
    most_certain = _bisected(lambda figure: ends(figure)[0] > p + 1e-9, low, high, grain)[1]
    too_low, possible = _bisected(lambda figure: ends(figure)[1] >= p - 1e-9, low, high, grain)
    return (possible if whole else max(low, too_low)), most_certain


def _bisected(holds: Callable[[float], bool], low: float, high: float, grain: float) -> tuple[float, float]:
    """Two figures at most `grain` apart: of the first it is false (or it is below `low`), of the second it is true."""
    first, last = low - grain, high
    while last - first > grain:
        middle = first + grain * ((last - first) / grain // 2) if grain == 1.0 else (first + last) / 2
        first, last = (first, middle) if holds(middle) else (middle, last)
    return first, last
