"""What each column holds: noisy counts of single values, made better by coarser tables, and then non-negative.

Nothing here is linear in the noise, so it serves the synthetic rows, and no certificate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from certsynth.arrays import Floats, Ints, sums


def improved(
    values: Floats, variances: Floats, groups: Ints, totals: Floats, totals_variance: float
) -> tuple[Floats, Floats]:
    """Estimates of single values after estimates of sums over groups of them, and what variance is left.

    Both are weighed by their inverse variances, and what a group is off by goes to its members by theirs: least squares
    where all errors are independent. Covariances that this leaves inside a group are not kept.
    """
    size = len(totals)
    own, own_variance = sums(groups, values, size), sums(groups, variances, size)
    trust = own_variance / np.maximum(own_variance + totals_variance, 1e-300)
    share = variances / np.maximum(own_variance, 1e-300)[groups]
    better = values + share * (trust * (totals - own))[groups]
    return better, variances * (1 - share * trust[groups])


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest non-negative numbers that sum to `total`: all are lowered, or raised, by one amount, and cut at 0.

    >>> onto_simplex(np.array([3.0, 1.0, -2.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    if total <= 0:
        return np.zeros(len(values))
    falling = -np.sort(-values)
    cuts = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(falling > cuts)
    cut = cuts[kept[-1]] if len(kept) else cuts[0]  # none, where `total` is lost in the rounding of the largest
    return np.maximum(values - cut, 0.0)


def monotone(values: Floats, total: float) -> Floats:
    """Non-negative numbers that sum to `total`, whose running sums are the nearest rising ones.

    >>> monotone(np.array([1.0, -1.0, 2.0]), 2.0).tolist()
    [0.5, 0.0, 1.5]
    """
    if total <= 0:
        return np.zeros(len(values))
    running = np.clip(isotonic_regression(np.cumsum(values)).x, 0.0, total)
    running[-1] = total
    return np.diff(running, prepend=0.0)


def nonnegative(values: Floats, groups: Ints, inside: Callable[[Floats, float], Floats] = onto_simplex) -> Floats:
    """Probabilities near `values`: first the sums over groups, then what is inside each, so that mass moves little.

    `inside` makes the values of one group non-negative.
    """
    totals = onto_simplex(sums(groups, values, int(groups.max()) + 1), 1.0)
    result = np.zeros(len(values))
    for group, total in enumerate(totals):
        members = np.flatnonzero(groups == group)
        if len(members):
            result[members] = inside(values[members], total)
    return result / result.sum() if result.sum() > 0 else np.full(len(values), 1 / len(values))
