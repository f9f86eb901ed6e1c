"""Strategies: the integer linear map whose coefficients get noise, and the way back to cells.

A strategy acts on one marginal. Its coefficients are integers and change by at most `sensitivity` (in the L1 norm)
between neighbouring tables; noise is added to them, and `cells` maps noisy coefficients to an estimate of the counts
whose error is linear in the noise. docs/explanation/noise.md has the proofs; the tests check the sensitivities against
all pairs of neighbours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from certsynth.arrays import Floats, Ints
from certsynth.errors import InputError
from certsynth.mechanisms.guarantee import Neighbours
from certsynth.transport.path import Order


@dataclass(frozen=True, slots=True)
class Strategy(ABC):
    """`neighbours`: the relation that the sensitivity is meant for; `order`: how the cells are lined up."""

    neighbours: Neighbours
    order: Order = "snake"

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def measures_total(self) -> bool:
        """Whether the number of rows can be read off the coefficients of one marginal."""

    @abstractmethod
    def sensitivity(self, size: int) -> int:
        """Largest L1 change of `coefficients` between neighbours, for a marginal of `size` cells."""

    @abstractmethod
    def length(self, size: int) -> int:
        """Number of coefficients of a marginal of `size` cells."""

    @abstractmethod
    def coefficients(self, counts: Ints) -> Ints:
        """The integers that get noise, of counts in path order."""

    @abstractmethod
    def cells(self, coefficients: Floats, size: int, total: Floats) -> Floats:
        """Counts in path order from coefficients (any leading axes), exact if these carry no noise.

        Linear in (coefficients, total), so that the error is the image of the noise. `total` is the number of rows,
        known or estimated, with the same leading axes.
        """

    @abstractmethod
    def total(self, coefficients: Floats) -> Floats:
        """The number of rows as one marginal's coefficients have it, where they do."""


@dataclass(frozen=True, slots=True)
class Identity(Strategy):
    """Noise on every cell.

    A row is in one cell: the sensitivity is 1 under add/remove and 2 under replace-one (a row leaves one cell and
    enters another). The cells are then shifted evenly to sum to the total; under replace-one a single cell holds all
    rows, and needs no noise.
    """

    name = "identity"

    @property
    def measures_total(self) -> bool:
        return self.neighbours is Neighbours.ADD_REMOVE

    def sensitivity(self, size: int) -> int:
        if self.neighbours is Neighbours.ADD_REMOVE:
            return 1
        return 2 if size > 1 else 0

    def length(self, size: int) -> int:
        return 0 if size == 1 and not self.measures_total else size

    def coefficients(self, counts: Ints) -> Ints:
        return counts[: self.length(len(counts))]

    def cells(self, coefficients: Floats, size: int, total: Floats) -> Floats:
        if not coefficients.shape[-1]:
            return np.repeat(total[..., None], size, axis=-1)
        return coefficients + (total - coefficients.sum(axis=-1))[..., None] / size

    def total(self, coefficients: Floats) -> Floats:
        return np.asarray(coefficients.sum(axis=-1))


@dataclass(frozen=True, slots=True)
class Haar(Strategy):
    r"""Noise on Haar coefficients along a path.

    .. math:: c_{l,i} = \sum_{left\ half} v - \sum_{right\ half} v, \qquad v = \Phi c

    of the counts in path order, padded with empty cells to a power of two 2^K; c_0 is the total. A row touches one
    coefficient on each of K levels, so the sensitivity is K under add/remove and 2K under replace-one, attained by two
    cells in different halves. The total is known or measured once for all marginals. With `noisy_total` each marginal's
    own total gets noise like the other coefficients, as in the paper; under replace-one it is the same for neighbours,
    and adds nothing to the sensitivity.

    Paper: Lemma 3 [haar-properties]
    """

    noisy_total: bool = False

    @property
    def name(self) -> str:
        return "haar" + "-hilbert" * (self.order == "hilbert") + "-noisy-total" * self.noisy_total

    @property
    def measures_total(self) -> bool:
        return self.noisy_total

    def sensitivity(self, size: int) -> int:
        levels = (size - 1).bit_length()
        if self.neighbours is Neighbours.REPLACE_ONE:
            return 2 * levels
        return levels + self.noisy_total

    def length(self, size: int) -> int:
        return (1 << (size - 1).bit_length()) - (not self.noisy_total)

    def coefficients(self, counts: Ints) -> Ints:
        """From the coarsest level to the finest, after the total where that gets noise.

        >>> Haar(Neighbours.REPLACE_ONE).coefficients(np.array([5, 1, 2])).tolist()
        [4, 4, 2]
        >>> Haar(Neighbours.REPLACE_ONE, noisy_total=True).coefficients(np.array([5, 1, 2])).tolist()
        [8, 4, 4, 2]
        """
        sums = np.zeros(1 << (len(counts) - 1).bit_length(), dtype=np.int64)
        sums[: len(counts)] = counts
        levels: list[Ints] = []
        while len(sums) > 1:
            left, right = sums[0::2], sums[1::2]
            levels.append(left - right)
            sums = left + right
        return np.concatenate([sums[: int(self.noisy_total)], *reversed(levels)])

    def cells(self, coefficients: Floats, size: int, total: Floats) -> Floats:
        if self.noisy_total:
            total, coefficients = coefficients[..., 0], coefficients[..., 1:]
        sums, start = total[..., None], 0
        while start < coefficients.shape[-1]:
            difference = coefficients[..., start : 2 * start + 1]
            children = np.stack([(sums + difference) / 2, (sums - difference) / 2], axis=-1)
            sums = children.reshape(*children.shape[:-2], -1)
            start = 2 * start + 1
        return sums[..., :size]

    def total(self, coefficients: Floats) -> Floats:
        return coefficients[..., 0]


STRATEGIES = ("identity", "haar", "haar-hilbert", "haar-noisy-total")


def strategy_named(name: str, *, neighbours: Neighbours) -> Strategy:
    """The strategy with the given name."""
    if name == "identity":
        return Identity(neighbours)
    if name == "haar":
        return Haar(neighbours)
    if name == "haar-hilbert":
        return Haar(neighbours, "hilbert")
    if name == "haar-noisy-total":
        return Haar(neighbours, noisy_total=True)
    raise InputError(f"there is no mechanism {name!r:.40}; choose one of: {', '.join(STRATEGIES)}.")
