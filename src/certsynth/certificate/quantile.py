"""Quantile estimates with guaranteed coverage, by rank, over the noise and the draws jointly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Floats


def rank_quantile(draws: Floats, beta: Fraction) -> float:
    r"""The ⌈(1−β)(B+1)⌉-th smallest of B draws; infinite if there are too few.

    An independent value with the same distribution is at most that with probability at least 1 − β: it is equally
    likely to take any of the B + 1 ranks. The empirical (1−β)-quantile of the draws has less coverage.

    >>> rank_quantile(np.arange(1.0, 20.0), Fraction(1, 20)), rank_quantile(np.arange(1.0, 19.0), Fraction(1, 20))
    (19.0, inf)
    """
    rank = math.ceil((1 - beta) * (len(draws) + 1))
    return float(np.sort(draws)[rank - 1]) if rank <= len(draws) else math.inf


def joint_quantiles(draws: Floats, scales: Floats, beta: Fraction) -> Floats:
    r"""One bound for each column of `draws`, all valid simultaneously with probability 1 − β.

    .. math:: c_S \cdot q_{1-\beta}\bigl(\max_S Z_S / c_S\bigr)

    The scales c_S must not depend on the draws; equal scales give every column the same bound. A scale of 0 would claim
    that there is no noise: it is replaced by the smallest other one.

    >>> joint_quantiles(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 8.0]]), np.array([2.0, 0.0]), Fraction(1, 4))
    array([8., 8.])
    """
    positive = scales[scales > 0]
    scales = np.where(scales > 0, scales, positive.min() if len(positive) else 1.0)
    return scales * rank_quantile((draws / scales).max(axis=1), beta)
