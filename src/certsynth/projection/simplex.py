"""Counts made into weights: the nearest point of a simplex, or of an ℓ1 ball, in the Euclidean norm."""

from __future__ import annotations

import numpy as np

from certsynth.base.arrays import Floats, Ints


def threshold(sizes: Ints, mass: int) -> float:
    r"""What all sizes are lowered by so that what is left of them weighs no more than `mass`: 0 if they do not.

    .. math:: \tau = \min\Bigl\{t \ge 0 : \sum_i (x_i - t)^+ \le mass\Bigr\}

    Exact up to the last division: sizes and their sums are whole numbers.
    """
    falling = np.sort(sizes[sizes > 0])[::-1]
    if int(falling.sum()) <= mass:
        return 0.0
    ranks = np.arange(1, len(falling) + 1)
    beyond = np.cumsum(falling) - mass
    last = int(np.flatnonzero(falling * ranks > beyond)[-1])  # those that stay above the threshold come first
    return float(beyond[last]) / (last + 1)


def onto_simplex(values: Ints, mass: int) -> Floats:
    r"""The nearest vector of non-negative numbers that weighs at most `mass`: :math:`(x_i - \tau)^+`."""
    return np.maximum(values - threshold(values, mass), 0.0)


def onto_ball(values: Ints, mass: int) -> Floats:
    r"""The nearest vector of ℓ1 norm at most `mass`: :math:`\mathrm{sign}(x_i)\,(|x_i| - \tau)^+`.

    Paper: Eq. (37) [l1-projection]
    """
    return np.sign(values) * onto_simplex(np.abs(values), mass)
