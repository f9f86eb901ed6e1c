"""Distributions of single columns: noisy counts of values, made non-negative.

Nothing here is linear in the noise, so the results shape the synthetic rows and enter no certificate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from certsynth.base.arrays import Floats, Ints, sum_by_group
from certsynth.projection.simplex import project_to_simplex


def project_running_sums(values: Floats, total: float) -> Floats:
    """Non-negative numbers that sum to `total`, whose running sums are the nearest non-decreasing ones to those given.

    >>> project_running_sums(np.array([1.0, -1.0, 2.0]), 2.0).tolist()
    [0.5, 0.0, 1.5]
    """
    if total <= 0:
        return np.zeros(len(values))
    running = np.clip(isotonic_regression(np.cumsum(values)).x, 0.0, total)
    running[-1] = total
    return np.diff(running, prepend=0.0)


def nearest_probabilities(
    values: Floats, groups: Ints, inside: Callable[[Floats, float], Floats] = project_to_simplex
) -> Floats:
    """Probabilities near `values`: project the sums over groups first, then each group, so that mass moves little.

    `inside` makes the values of one group non-negative, given their sum.
    """
    totals = project_to_simplex(sum_by_group(groups, values, int(groups.max()) + 1), 1.0)
    return within_groups(values, groups, totals, inside)


def within_groups(
    values: Floats, groups: Ints, totals: Floats, inside: Callable[[Floats, float], Floats] = project_to_simplex
) -> Floats:
    """Probabilities near `values` whose sums over groups are the given totals, up to a factor."""
    result = np.zeros(len(values))
    for group, total in enumerate(totals):
        members = np.flatnonzero(groups == group)
        if len(members):
            result[members] = inside(values[members], total)
    return result / result.sum() if result.sum() > 0 else np.full(len(values), 1 / len(values))
