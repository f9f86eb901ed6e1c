"""Strategies: the integer linear map whose coefficients get noise, and the way back to cells.

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

_FINEST_LEVEL_WEIGHT = (
    64  # the weight of cells: large, so that those of coarser levels can be whole numbers close to what is wanted
)


@dataclass(frozen=True, slots=True)
class Strategy(ABC):
    """`neighbours`: the relation that the sensitivity is meant for.

    `growth`: by which power of 2 the weight of a level exceeds that of the next coarser one, where there are levels.
    """

    neighbours: Neighbours
    growth: Fraction = Fraction(0)

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def order(self) -> Order:
        """The path that cells are lined up along, by the strategy or for the path loss."""
        return "snake"

    @property
    def measures_total(self) -> bool:
        """Whether the number of rows can be read off the coefficients of one marginal."""
        return False

    @property
    def total_weight(self) -> int:
        """The weight of the number of rows where it is measured by itself: that of cells, so that it is as exact."""
        return _FINEST_LEVEL_WEIGHT if self.growth else 1

    @property
    def shares_total(self) -> bool:
        """Whether all marginals come back with the same total, so that they can be made to agree."""
        return True

    @abstractmethod
    def sensitivity(self, product: Product) -> Sensitivity:
        """Largest change of the `coefficients` of one marginal between neighbours."""

    @abstractmethod
    def length(self, product: Product) -> int:
        """Number of coefficients of a marginal."""

    @abstractmethod
    def coefficients(self, counts: Ints, product: Product) -> Ints:
        """The integers that get noise, of a block of counts."""

    @abstractmethod
    def cells(self, coefficients: Floats, product: Product, total: Floats) -> Floats:
        """A block of counts from coefficients (any leading axes), exact if these carry no noise.

        Linear in (coefficients, total), so that the error is the image of the noise. `total` is the number of rows,
        known or estimated, with the same leading axes.
        """

    def total(self, coefficients: Floats) -> Floats:
        """The number of rows as one marginal's coefficients have it, where they do."""
        raise ValueError("the number of rows is not among these coefficients")

    def total_variance(self, product: Product) -> float:
        """Variance of `total` for noise of variance 1 on the coefficients."""
        return 1.0


def size_of(product: Product) -> int:
    """Number of cells of a marginal, in Python's integers: it may be larger than any machine word."""
    return math.prod(cells.size for cells in product)


def level_weights(levels: int, growth: Fraction) -> list[int]:
    """Whole weights of levels, coarsest first, that grow by a factor of about 2^growth each.

    The last level has the same weight however many there are: cells of small and large tables get the same noise.

    >>> level_weights(4, Fraction(0)), level_weights(3, Fraction(1)), level_weights(1, Fraction(1))
    ([1, 1, 1, 1], [16, 32, 64], [64])
    """
    if not growth:
        return [1] * levels
    return [max(1, round(_FINEST_LEVEL_WEIGHT * 2 ** float(-growth * below))) for below in reversed(range(levels))]
