"""What each column holds: noisy counts of single values, made non-negative.

Nothing here is linear in the noise, so it serves the synthetic rows, and no certificate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from certsynth.base.arrays import Floats, Ints, sum_by_group


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
    totals = onto_simplex(sum_by_group(groups, values, int(groups.max()) + 1), 1.0)
    result = np.zeros(len(values))
    for group, total in enumerate(totals):
        members = np.flatnonzero(groups == group)
        if len(members):
            result[members] = inside(values[members], total)
    return result / result.sum() if result.sum() > 0 else np.full(len(values), 1 / len(values))
