"""How much each cell of a noisy table says: near 1 if its expected count exceeds the noise, near 0 far below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints, sum_by_group

LEAST_SHARE = 1e-9
"""The least expected share of a cell: without noise, even empty cells have the relevance 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """A table whose cells are merged: the place of each cell, the number of places, and the noise on all of them.

    `noise` is the root of the summed squares of the error, as in `particles.View`.
    """

    index: Ints
    places: int
    noise: float


def relevances(table: Floats, independent: Floats, scales: Sequence[Scale]) -> list[Floats]:
    r"""The relevance of every place of a noisy table at each scale, finest first.

    .. math:: relevance = e^2 / (e^2 + \sigma^2)

    where σ is the noise of a place and e its expected share: that of its place at the next coarser scale, divided as in
    the table of `independent` columns. It is the weight of the noisy share in the best linear estimate if true shares
    differ from the expected ones by about as much as these are large; with this estimate the next finer scale begins.

    >>> ends = Scale(np.array([0, 0, 1, 1]), 2, 0.01), Scale(np.arange(4), 4, 0.2)
    >>> fine, coarse = relevances(np.array([0.5, 0.4, 0.1, 0.0]), np.full(4, 0.25), ends[::-1])
    >>> coarse.round(2).tolist(), fine.round(2).tolist()
    ([1.0, 1.0], [0.95, 0.95, 0.2, 0.2])
    """
    found = []
    above, known, product_above = np.zeros(len(table), np.int64), np.ones(1), np.array([independent.sum()])
    for scale in reversed(scales):
        product = sum_by_group(scale.index, independent, scale.places)
        parent = np.zeros(scale.places, np.int64)
        parent[scale.index] = above
        whole = product_above[parent]
        expected = known[parent] * np.divide(product, whole, out=np.zeros(scale.places), where=whole > 0)
        square = np.maximum(expected, LEAST_SHARE) ** 2
        relevance = square / (square + scale.noise**2 / scale.places)
        noisy = sum_by_group(scale.index, table, scale.places)
        above, product_above = scale.index, product
        known = np.maximum(relevance * noisy + (1 - relevance) * expected, 0.0)
        found.append(relevance)
    return found[::-1]
