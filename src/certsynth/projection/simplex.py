"""Euclidean projections that turn noisy counts into weights: onto a simplex, a solid simplex or an ℓ1 ball."""

from __future__ import annotations

import numpy as np

from certsynth.base.arrays import Floats, Ints


def project_to_simplex(values: Floats, total: float) -> Floats:
    """The nearest non-negative numbers that sum to `total`: subtract one number from all values and clip at 0.

    >>> project_to_simplex(np.array([3.0, 1.0, -2.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    if total <= 0:
        return np.zeros(len(values))
    falling = -np.sort(-values)
    cuts = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(falling > cuts)
    cut = cuts[kept[-1]] if len(kept) else cuts[0]  # empty if `total` is lost when the largest is rounded
    return np.maximum(values - cut, 0.0)


def soft_threshold(sizes: Ints, mass: int) -> float:
    r"""The smallest amount to subtract from all sizes so that the positive remainders sum to at most `mass`.

    .. math:: \tau = \min\Bigl\{t \ge 0 : \sum_i (x_i - t)^+ \le mass\Bigr\}

    Exact up to the last division, since sizes and their sums are whole numbers. Where the sizes sum to more than
    `mass`, this is the projection of `project_to_simplex` in exact arithmetic.
    """
    falling = np.sort(sizes[sizes > 0])[::-1]
    if int(falling.sum()) <= mass:
        return 0.0
    ranks = np.arange(1, len(falling) + 1)
    beyond = np.cumsum(falling) - mass
    last = int(np.flatnonzero(falling * ranks > beyond)[-1])  # sizes above the threshold come first
    return float(beyond[last]) / (last + 1)


def project_to_solid_simplex(values: Ints, mass: int) -> Floats:
    r"""The nearest vector of non-negative numbers that sum to at most `mass`: :math:`(x_i - \tau)^+`."""
    return np.maximum(values - soft_threshold(values, mass), 0.0)


def project_to_l1_ball(values: Ints, mass: int) -> Floats:
    r"""The nearest vector of ℓ1 norm at most `mass`: :math:`\mathrm{sign}(x_i)\,(|x_i| - \tau)^+`.

    Paper: Eq. (37) [l1-projection]
    """
    return np.sign(values) * project_to_solid_simplex(np.abs(values), mass)
