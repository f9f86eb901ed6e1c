"""Group neighbouring points of a lattice so that little detail is lost."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Category, Column

MAX_EXACT_POINTS = 1_100
"""Points up to which the optimal runs are computed, in quadratic time; more points are cut into runs of about equal
mass."""

LONG_COLUMN_FACTOR = 2
"""Groups of a line whose values are also counted one by one below runs, as a multiple of those of other lines: most of
the error of shares of two columns is in the detail inside its groups."""


def most_groups(column: Column, *, line: int, labels: int) -> int:
    """The most groups of a column in tables of several columns, given those of lines and those of labels."""
    if isinstance(column, Category):
        return labels
    return line * (1 if column.values_below_points() is None else LONG_COLUMN_FACTOR)


def best_groups(places: Ints, mass: Floats, groups: int, *, begins: NDArray[np.bool_] | None = None) -> Ints:
    r"""Starts of at most `groups` runs of points that minimise mass × distance to the median of the run.

    .. math:: \min \sum_{runs} \min_m \sum_{i \in run} mass_i\,|places_i - m|

    `mass` must be public, such as noisy counts. A little is added to every point, so that empty stretches of the line
    are divided as well. A run starts at every point that `begins` marks, even if there are more of them than `groups`.

    >>> best_groups(np.array([0, 1, 2, 10, 11]), np.array([5.0, 1, 1, 4, 4]), 3).tolist()
    [0, 3, 4]
    """
    count = len(places)
    if begins is None:
        begins = np.zeros(count, dtype=bool)
    groups = max(groups, 1 + int(begins[1:].sum()))
    if count <= groups:
        return np.arange(count)
    mass = np.maximum(mass, 0.0)
    floor = max(float(mass.sum()), 1e-300) * 1e-6 / count
    if count > MAX_EXACT_POINTS:
        below = np.cumsum(mass + floor)
        cuts = np.searchsorted(below, below[-1] * np.arange(1, groups) / groups, side="right")
        return np.unique(np.concatenate([[0], np.minimum(cuts, count - 1), np.flatnonzero(begins)]))
    return _best_runs(places.astype(np.float64), mass + floor, groups, np.cumsum(begins))


def best_representatives(distances: Ints, mass: Floats, groups: int) -> Ints:
    r"""At most `groups` points, ascending, chosen greedily: each one more lowers the mass × distance the most.

    .. math:: \sum_i mass_i\,\min_{r \in chosen} distance(i, r)

    `mass` must be public.

    >>> best_representatives(np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]]), np.array([1.0, 2.0, 1.0]), 2).tolist()
    [1, 2]
    """
    mass = np.maximum(mass, 0.0)
    mass = mass + max(float(mass.sum()), 1e-300) * 1e-6 / len(mass)
    chosen = [int(np.argmin(distances @ mass))]
    nearest = distances[chosen[0]].astype(np.float64)
    while len(chosen) < min(groups, len(mass)):
        gains = mass @ np.maximum(nearest[:, None] - distances, 0.0)
        chosen.append(int(np.argmax(gains)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return np.unique(chosen)


@njit(cache=True)
def _best_runs(places: Floats, mass: Floats, groups: int, part: Ints) -> Ints:
    """Dynamic programming over the last run: O(groups · points²). Points of a run are in the same part."""
    n = len(places)
    weight, moment = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        weight[i + 1] = weight[i] + mass[i]
        moment[i + 1] = moment[i] + mass[i] * places[i]
    cost = np.zeros((n, n))
    for i in range(n):
        m = i
        for j in range(i, n):
            while weight[m + 1] - weight[i] < 0.5 * (weight[j + 1] - weight[i]):
                m += 1
            below = places[m] * (weight[m] - weight[i]) - (moment[m] - moment[i])
            above = moment[j + 1] - moment[m] - places[m] * (weight[j + 1] - weight[m])
            cost[i, j] = below + above if part[i] == part[j] else np.inf
    best, longer = np.empty(n + 1), np.empty(n + 1)
    for j in range(n + 1):
        best[j] = np.inf if j else 0.0
    begins = np.zeros((groups + 1, n + 1), np.int64)
    for g in range(1, groups + 1):
        for j in range(n + 1):
            longer[j] = np.inf
            for i in range(g - 1, j):
                total = best[i] + cost[i, j - 1]
                if total < longer[j]:
                    longer[j] = total
                    begins[g, j] = i
        best, longer = longer, best
    starts = np.zeros(groups, np.int64)
    end = n
    for g in range(groups, 0, -1):
        end = begins[g, end]
        starts[g - 1] = end
    return starts
