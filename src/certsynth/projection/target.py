"""Input of a projection: noisy marginals as signed measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from certsynth.base.arrays import Floats, Ints
from certsynth.mechanisms.measure import FullMeasurement
from certsynth.queries.marginals import Marginals


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """ν: one signed measure for each marginal, of total mass about 1."""

    marginals: Marginals
    blocks: tuple[Floats, ...]

    @classmethod
    def of(cls, measurement: FullMeasurement) -> Target:
        """The measured marginals as shares of the rows, of which at least one is assumed so that shares are finite."""
        blocks, rows = measurement.estimate()
        return cls(marginals=measurement.marginals, blocks=tuple(block / max(rows, 1.0) for block in blocks))

    def incidence(self, points: Ints) -> list[csr_array]:
        """For each marginal, the matrix that maps weights on `points` (one row of codes each) to cells."""
        count = len(points)
        matrices = []
        for subset, size in zip(self.marginals.subsets, self.marginals.sizes(), strict=True):
            cell = self.marginals.indices(list(points.T), subset)
            matrices.append(csr_array((np.ones(count), (cell, np.arange(count))), shape=(size, count)))
        return matrices


class Projection(Protocol):
    """A solver of Step 3 on a given support."""

    def weights(self, target: Target, points: Ints) -> Floats:
        """Probabilities of the points, chosen so that their marginals are close to the target."""
        ...


def as_probabilities(weights: Floats, count: int) -> Floats:
    """Turn whatever a solver returned into probabilities; uniform ones if nothing of it can be used.

    >>> as_probabilities(np.array([2.0, -1.0, np.nan, 2.0]), 4).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (count,):
        weights = np.zeros(count)
    weights = np.where(np.isfinite(weights) & (weights > 0), weights, 0.0)
    with np.errstate(over="ignore"):
        total = weights.sum()
    return weights / total if 0 < total < np.inf else np.full(count, 1 / count)
