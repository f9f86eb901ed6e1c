"""Strategies: integer linear maps whose coefficients get noise, and the estimates of cells from them.

A strategy acts on one marginal, a block of counts over a product of columns. Its coefficients are integers; noise is
added to them, and `cells` maps noisy coefficients to an estimate of the counts whose error is linear in the noise.
docs/explanation/proofs/sensitivity.md has the proofs; the tests check sensitivities against all pairs of neighbours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.mechanisms.guarantee import Neighbours, Sensitivity
from certsynth.transport.path import Order

Product = Sequence[Cells]
"""The columns of a marginal. Blocks run over all combinations of their cells, the last column fastest."""

_FINEST_LEVEL_WEIGHT = 64  # large, so that rounding the smaller weights of coarser levels to integers matters little


@dataclass(frozen=True, slots=True)
class Strategy(ABC):
    """How the counts of one marginal get noise, under the relation `neighbours`.

    `growth`: log2 of the ratio of a level's weight to that of the next coarser level, for strategies with levels.
    """

    neighbours: Neighbours
    growth: Fraction = Fraction(0)

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def order(self) -> Order:
        """The order of cells along a path, for the strategy or the path loss."""
        return "snake"

    @property
    def measures_total(self) -> bool:
        """Whether the coefficients of one marginal determine an estimate of the number of rows."""
        return False

    @property
    def total_weight(self) -> int:
        """Weight of the number of rows if it is measured separately: that of cells, for equal precision."""
        return _FINEST_LEVEL_WEIGHT if self.growth else 1

    @property
    def shares_total(self) -> bool:
        """Whether the estimates of all marginals have the same total, so that they can be made to agree."""
        return True

    @abstractmethod
    def sensitivity(self, product: Product) -> Sensitivity:
        """Largest change of the `coefficients` of one marginal between neighbours."""

    @abstractmethod
    def length(self, product: Product) -> int:
        """Number of coefficients of a marginal."""

    @abstractmethod
    def coefficients(self, counts: Ints, product: Product) -> Ints:
        """The integers that get noise, computed from a block of counts."""

    @abstractmethod
    def cells(self, coefficients: Floats, product: Product, total: Floats) -> Floats:
        """Estimate a block of counts from coefficients (with any leading axes); exact if these have no noise.

        Linear in (coefficients, total), so the error is the image of the noise. `total` is the number of rows, known or
        estimated, with the same leading axes.
        """

    def total(self, coefficients: Floats) -> Floats:
        """The number of rows as estimated from one marginal's coefficients, if `measures_total`."""
        raise ValueError("the number of rows is not among these coefficients")

    def total_variance(self, product: Product) -> float:
        """Variance of `total` for noise of variance 1 on the coefficients."""
        return 1.0


def size_of(product: Product) -> int:
    """Number of cells of a marginal, as a Python integer, since it may exceed 64 bits."""
    return math.prod(cells.size for cells in product)


def level_weights(levels: int, growth: Fraction) -> list[int]:
    """Integer weights of levels, coarsest first, each about 2^growth times the one before.

    The last level's weight does not depend on their number, so cells of small and large tables get the same noise.

    >>> level_weights(4, Fraction(0)), level_weights(3, Fraction(1)), level_weights(1, Fraction(1))
    ([1, 1, 1, 1], [16, 32, 64], [64])
    """
    if not growth:
        return [1] * levels
    return [max(1, round(_FINEST_LEVEL_WEIGHT * 2 ** float(-growth * below))) for below in reversed(range(levels))]
