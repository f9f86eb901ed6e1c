"""Strategy: noise on every cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.mechanisms.guarantee import Neighbours, Sensitivity
from certsynth.mechanisms.strategy import Product, Strategy, size_of


@dataclass(frozen=True, slots=True)
class Identity(Strategy):
    """Noise on every cell.

    A row is in one cell: one count changes by 1 under add/remove, two under replace-one (a row leaves one cell and
    enters another). The noisy cells are shifted evenly to sum to the total. Under replace-one a marginal of a single
    cell is known and needs no noise.
    """

    name = "identity"

    @property
    def measures_total(self) -> bool:
        return self.neighbours is Neighbours.ADD_REMOVE

    def sensitivity(self, product: Product) -> Sensitivity:
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(1, 1)
        return Sensitivity(2, 2) if size_of(product) > 1 else Sensitivity(0, 0)

    def length(self, product: Product) -> int:
        size = size_of(product)
        return 0 if size == 1 and not self.measures_total else size

    def coefficients(self, counts: Ints, product: Product) -> Ints:
        return counts[: self.length(product)]

    def cells(self, coefficients: Floats, product: Product, total: Floats) -> Floats:
        if not coefficients.shape[-1]:
            return np.repeat(total[..., None], size_of(product), axis=-1)
        return coefficients + (total - coefficients.sum(axis=-1))[..., None] / size_of(product)

    def total(self, coefficients: Floats) -> Floats:
        return np.asarray(coefficients.sum(axis=-1))

    def total_variance(self, product: Product) -> float:
        return float(size_of(product))
