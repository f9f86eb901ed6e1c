"""Shares of the groups of a column: non-negative, and nearest to all measurements in the metric of their noise.

Counts of nested squares have less noise in sums over many cells than cells with independent noise would have. This is
not linear in the noise, so it shapes the synthetic rows and enters no certificate.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from certsynth.base.arrays import Floats, Ints

MAX_GROUPS = 256
"""Groups of a column up to which this is done: with more it would take seconds."""

TOTAL_WEIGHT = 1e3
"""Weight of the total of the shares, relative to that of the most exact sum: it is practically certain."""

MAX_TOTAL_ERROR = 0.01
"""Error of the total up to which a solution is used: it is larger only if noise exceeds the number of rows by far."""

LEAST_DEVIATION = 1e-9
"""The least standard deviation of a share: numbers stay finite without noise."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyShares:
    """Shares in unions of groups, and draws of their errors: `codes[g]` is the union that contains group g."""

    values: Floats
    errors: Floats
    codes: Ints


@functools.lru_cache(maxsize=64)
def halving_contrasts(size: int) -> tuple[Floats, Ints]:
    """Orthonormal differences between the halves of a line, of its halves, and so on, and the level of each.

    >>> contrasts, levels = halving_contrasts(3)
    >>> contrasts.round(2).tolist(), levels.tolist()
    ([[0.41, 0.41, -0.82], [0.71, -0.71, 0.0]], [0, 1])
    """
    contrasts, levels, parts = [np.empty((0, size))], [], [(0, size, 0)]
    while parts:
        start, end, level = parts.pop()
        if end - start < 2:
            continue
        middle = (start + end + 1) // 2
        row = np.zeros(size)
        row[start:middle], row[middle:end] = 1 / (middle - start), -1 / (end - middle)
        contrasts.append(row[None] / np.linalg.norm(row))
        levels.append(level)
        parts += [(start, middle, level + 1), (middle, end, level + 1)]
    return np.concatenate(contrasts), np.array(levels, np.int64)


def nearest_masses(values: Floats, deviations: Floats, others: Sequence[NoisyShares]) -> Floats | None:
    """Probabilities of groups, nearest to their noisy shares and to other noisy shares in unions of the groups.

    Errors of `values` are independent, with standard `deviations`. Those of the others are independent between
    contrasts of halves, with one variance for each level. None if no solution is found.
    """
    deviations = np.maximum(deviations, LEAST_DEVIATION)
    rows, aims = [np.diag(1 / deviations)], [values / deviations]
    for other in others:
        contrasts, levels = halving_contrasts(len(other.values))
        squares = np.mean((other.errors @ contrasts.T) ** 2, axis=0)
        variances = np.bincount(levels, squares) / np.bincount(levels)
        scaled = contrasts / np.maximum(np.sqrt(variances), LEAST_DEVIATION)[levels, None]
        rows.append(scaled[:, other.codes])
        aims.append(scaled @ other.values)
    scale = max(float(np.linalg.norm(block, axis=1).max(initial=0.0)) for block in rows)
    rows = [block / scale for block in rows] + [np.full((1, len(deviations)), TOTAL_WEIGHT)]
    aims = [block / scale for block in aims] + [np.array([TOTAL_WEIGHT])]
    try:
        found, _ = nnls(np.concatenate(rows), np.concatenate(aims), maxiter=100 * len(deviations))
    except RuntimeError:  # too many steps
        return None
    total = float(found.sum())
    return np.asarray(found / total) if abs(total - 1) <= MAX_TOTAL_ERROR else None
