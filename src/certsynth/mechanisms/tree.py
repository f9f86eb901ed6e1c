"""Least squares on a tree: make noisy counts of nested cells consistent across levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certsynth.base.arrays import Floats, Ints, sum_by_group


def fit_tree(noisy: Sequence[Floats], variances: Sequence[float], above: Sequence[Ints], total: Floats) -> list[Floats]:
    r"""Consistent counts of all levels, coarsest first: a cell's count is the sum of its parts, and all sum to `total`.

    `noisy[l]` has shape (draws, cells of level l) and independent errors of variance `variances[l]`; `above[l]` holds,
    for each cell of level l + 1, the cell of level l that it is part of. The result minimises the sum of squared
    corrections divided by their variances: from the finest level up, each count is averaged with the sum of its parts,
    with inverse variances as weights; from the top down, the remaining difference is divided among the parts in
    proportion to their variances. The map is linear, and true counts pass unchanged.
    """
    best, spread = [noisy[-1]], [np.full(noisy[-1].shape[-1], float(variances[-1]))]
    for level in range(len(noisy) - 2, -1, -1):
        size = noisy[level].shape[-1]
        inside, variance = sum_by_group(above[level], best[0], size), sum_by_group(above[level], spread[0], size)
        trust = variances[level] / (variances[level] + variance)
        best.insert(0, noisy[level] + (inside - noisy[level]) * trust)
        spread.insert(0, variance * trust)
    best[0] = best[0] + (total[:, None] - best[0].sum(axis=-1, keepdims=True)) * (spread[0] / spread[0].sum())
    for level, codes in enumerate(above):
        size = noisy[level].shape[-1]
        missing = best[level] - sum_by_group(codes, best[level + 1], size)
        share = spread[level + 1] / sum_by_group(codes, spread[level + 1], size)[codes]
        best[level + 1] = best[level + 1] + missing[:, codes] * share
    return best
