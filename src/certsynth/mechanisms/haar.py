"""Strategy: noise on Haar wavelet coefficients along a path."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.mechanisms.guarantee import Neighbours, Sensitivity
from certsynth.mechanisms.strategy import Product, Strategy, level_weights, size_of
from certsynth.transport.path import Order, Path


@dataclass(frozen=True, slots=True)
class Haar(Strategy):
    r"""Noise on Haar coefficients along a path.

    .. math:: c_{l,i} = w_l\,\Bigl(\sum_{left\ half} v - \sum_{right\ half} v\Bigr)

    of the counts v in path order, padded with empty cells to a power of two 2^K. A row affects one coefficient on each
    of K levels. Under replace-one the old and the new row separate at some level: there one coefficient changes by 2w,
    on each finer level two change by w, on coarser ones none. The total is known, or measured once for all marginals;
    noise in the padding is subtracted evenly from all cells.

    With `noisy_total` each marginal's total gets noise like the other coefficients, as in the paper; under replace-one
    it is the same for neighbours and adds nothing to the sensitivity.

    Paper: Lemma 3 [haar-properties]
    """

    path: Order = "snake"
    noisy_total: bool = False

    @property
    def name(self) -> Literal["haar", "haar-hilbert", "haar-tour", "haar-weighted", "haar-noisy-total"]:
        if self.growth:
            return "haar-weighted"
        if self.noisy_total:
            return "haar-noisy-total"
        if self.path == "tour":
            return "haar-tour"
        return "haar-hilbert" if self.path == "hilbert" else "haar"

    @property
    def order(self) -> Order:
        return self.path

    @property
    def measures_total(self) -> bool:
        return self.noisy_total

    @property
    def shares_total(self) -> bool:
        return not self.noisy_total

    def sensitivity(self, product: Product) -> Sensitivity:
        weights = self._weights(product)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(sum(weights) + self.noisy_total, sum(w * w for w in weights) + self.noisy_total)
        parted = [4 * w * w + 2 * sum(v * v for v in weights[level + 1 :]) for level, w in enumerate(weights)]
        return Sensitivity(2 * sum(weights), max(parted, default=0))

    def length(self, product: Product) -> int:
        return (1 << _levels(product)) - (not self.noisy_total)

    def coefficients(self, counts: Ints, product: Product) -> Ints:
        """Coefficients from the coarsest level to the finest, after the total if that gets noise.

        >>> from certsynth.domain import Cells
        >>> line = [Cells(np.arange(3), 3, 0)]
        >>> Haar(Neighbours.REPLACE_ONE).coefficients(np.array([5, 1, 2]), line).tolist()
        [4, 4, 2]
        >>> Haar(Neighbours.REPLACE_ONE, noisy_total=True).coefficients(np.array([5, 1, 2]), line).tolist()
        [8, 4, 4, 2]
        """
        sums = np.zeros(1 << _levels(product), dtype=np.int64)
        sums[: len(counts)] = counts[_order(tuple(product), self.path)]
        levels: list[Ints] = []
        for weight in reversed(self._weights(product)):
            left, right = sums[0::2], sums[1::2]
            levels.append(weight * (left - right))
            sums = left + right
        return np.concatenate([sums[: int(self.noisy_total)], *reversed(levels)])

    def cells(self, coefficients: Floats, product: Product, total: Floats) -> Floats:
        if self.noisy_total:
            total, coefficients = coefficients[..., 0], coefficients[..., 1:]
        sums, start = total[..., None], 0
        for weight in self._weights(product):
            difference = coefficients[..., start : 2 * start + 1] / weight
            children = np.stack([(sums + difference) / 2, (sums - difference) / 2], axis=-1)
            sums = children.reshape(*children.shape[:-2], -1)
            start = 2 * start + 1
        size = size_of(product)
        block = np.empty((*sums.shape[:-1], size))
        block[..., _order(tuple(product), self.path)] = sums[..., :size]
        return block if self.noisy_total else block + (total - block.sum(axis=-1))[..., None] / size

    def total(self, coefficients: Floats) -> Floats:
        return coefficients[..., 0] if self.noisy_total else Strategy.total(self, coefficients)

    def _weights(self, product: Product) -> list[int]:
        return level_weights(_levels(product), self.growth)


@functools.lru_cache(maxsize=256)
def _order(product: tuple[Cells, ...], path: Order) -> Ints:
    return Path.along(product, path).order


def _levels(product: Product) -> int:
    return (size_of(product) - 1).bit_length()
