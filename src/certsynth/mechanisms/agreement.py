"""Overlapping marginals made to agree: a fixed linear map, so that the law of the error stays known.

Every subset R of columns that lies in several counted subsets S is seen once in each: as the sum of the block of S over
the columns outside R. Under independent noise of one scale on all cells, the error of that sum has variance
proportional to the number of cells summed over, so the best combination weighs each by its inverse. Blocks then take it
over: what is missing is spread evenly over the cells summed. Small R come first; a later step changes no earlier sum.
docs/explanation/noise.md proves that this is the least-squares solution, and that true counts pass unchanged.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from certsynth.arrays import Floats
from certsynth.queries.marginals import Marginals, Subset


def agreed(blocks: Sequence[Floats], marginals: Marginals) -> list[Floats]:
    """Blocks with the same sums wherever they overlap. Leading axes are kept; blocks must have one total already."""
    lead = blocks[0].shape[:-1]
    shaped = [b.reshape(*lead, *marginals.shape(s)) for b, s in zip(blocks, marginals.subsets, strict=True)]
    for shared, holders in overlaps(marginals.subsets):
        sums, weights = [], []
        for j in holders:
            outside = _outside(marginals.subsets[j], shared, len(lead))
            sums.append(shaped[j].sum(axis=outside, keepdims=True))
            weights.append(sums[-1].size / shaped[j].size)
        best = np.tensordot(weights, [s.reshape(*lead, -1) for s in sums], axes=1) / sum(weights)
        for j, own, weight in zip(holders, sums, weights, strict=True):
            shaped[j] = shaped[j] + (best.reshape(own.shape) - own) * weight
    return [b.reshape(*lead, -1) for b in shaped]


def overlaps(subsets: Sequence[Subset]) -> list[tuple[Subset, list[int]]]:
    """Sets of columns that lie in several subsets, smallest first, with the positions of those subsets.

    >>> overlaps([(0, 1), (0, 2), (1, 2)])
    [((0,), [0, 1]), ((1,), [0, 2]), ((2,), [1, 2])]
    """
    found: dict[Subset, list[int]] = {}
    for j, subset in enumerate(subsets):
        for size in range(1, len(subset) + 1):
            for shared in itertools.combinations(subset, size):
                found.setdefault(shared, []).append(j)
    return sorted(((r, holders) for r, holders in found.items() if len(holders) > 1), key=lambda o: (len(o[0]), o[0]))


def _outside(subset: Subset, shared: Subset, lead: int) -> tuple[int, ...]:
    return tuple(lead + axis for axis, column in enumerate(subset) if column not in shared)
