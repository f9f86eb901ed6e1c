"""Certified ranges of shares and medians for the report: the bounds of `answers/`, on binned counts."""

from __future__ import annotations

import itertools

import numpy as np

from certsynth.answers import quantiles
from certsynth.answers.basis import raise_bound
from certsynth.answers.claims import Claim, intersect
from certsynth.answers.kernels import largest_share
from certsynth.base.arrays import Floats
from certsynth.domain import Ordered
from certsynth.report.binned_counts import BinnedCounts
from certsynth.report.cell_counts import CertifiedCells

MAX_BAND_STEPS = 96
"""Steps of a drawn band: enough that each is a few pixels wide."""

_ROUNDING = 1e-12  # more than a sum of the shares of all bins is off by

Band = list[tuple[float, float, float, float]]


def max_mean_distance(binned: BinnedCounts, bound: float) -> float:
    """Bound the mean distance between the real rows and the binned values; `bound` is that of the column."""
    return min(1.0, raise_bound(bound) + binned.moved + binned.slack)


def max_share(gaps: Floats, binned: BinnedCounts, bound: float) -> float:
    """Return the largest share of the real rows that can lie in a set.

    `gaps` are the distances to the set from each bin, and last from a missing value.
    """
    shares = np.array([*binned.counts, binned.absent], float) / max(binned.rows, 1)
    return min(1.0, largest_share(gaps, max_mean_distance(binned, bound), shares) + _ROUNDING)


def share_up_to(binned: BinnedCounts, bound: float, t: float, step: float) -> tuple[float, float]:
    """Return the least and the largest share of all real rows that have a value up to t; missing values do not count.

    `step` is the distance from t to the next value of the column, and 0 if the column is continuous.
    """
    places = binned.places
    inside = places <= t + 1e-9
    up = np.append(np.where(inside, 0.0, places - t), 1.0)
    out = np.append(np.where(inside, t + step - places, 0.0), 0.0)
    if t >= 1:  # no value lies above: only missing values are outside the set
        if not binned.missing:
            return 1.0, 1.0
        out = np.append(np.ones(len(places)), 0.0)
    return 1 - max_share(np.maximum(out, 0.0), binned, bound), max_share(up, binned, bound)


def narrow(share: tuple[float, float], cells: CertifiedCells | None, low: float, high: float) -> tuple[float, float]:
    """Return what is left of the range of a share if the certified error of shares is taken into account.

    `low` and `high` are the ends of the set of values, in the units of `cells`.
    """
    if cells is None:
        return share
    claims = [Claim(least, largest, 0.0, "") for least, largest in (share, cells.share(low, high))]
    found = intersect(claims)
    return found.low, found.high


def share_band(column: Ordered, binned: BinnedCounts, bound: float, cells: CertifiedCells | None = None) -> Band:
    """Return steps (from, to, least, largest): the share of the real rows up to any point of the step is in this range.

    Points are fractions of the axis of the column's histogram, on which every whole number has a width.
    """
    reach = max(column.reach, 1)
    if column.whole:
        values = column.reach + 1
        width = -(-values // MAX_BAND_STEPS)
        edges = [*range(0, values, width), values]
        ends = [((a / reach), (b - 1) / reach, a / values, b / values) for a, b in itertools.pairwise(edges)]
        step = 1 / reach
    else:
        ends = [(i / MAX_BAND_STEPS, (i + 1) / MAX_BAND_STEPS) * 2 for i in range(MAX_BAND_STEPS)]
        step = 0.0

    def up_to(t: float) -> tuple[float, float]:
        found = share_up_to(binned, bound, t, step)
        if t >= 1 and not binned.missing:
            return found
        return narrow(found, cells, 0.0, float(round(t * reach)) if column.whole else t)

    return [(left, right, up_to(first)[0], up_to(last)[1]) for first, last, left, right in ends]


def quantile_range(binned: BinnedCounts, bound: float, p: float) -> tuple[float, float]:
    """Return the ends of the range that holds the p-quantile of the real rows' values; missing values do not count."""
    if not binned.counts:
        return 0.0, 1.0
    shares = np.array(binned.counts, float) / binned.rows
    low, high = quantiles.quantile(binned.places, shares, p, max_mean_distance(binned, bound))
    return max(low, 0.0), min(high, 1.0)
