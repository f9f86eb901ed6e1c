"""Private scores of tables: how far their counts are from expected ones, at several scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.mechanisms.guarantee import Budget, Neighbours
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_together
from certsynth.queries.marginals import Counts

SCORE_UNITS = 64
"""The integer weights of the scales of a table sum to this, so that all scores have the same sensitivity."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What a table is compared with: expected counts of its cells, which must be public, at some scales.

    Each of the `scales` maps cells to places; its entry of `weights` is what an unexpected row adds to the score there.
    """

    expected: Ints
    scales: tuple[Ints, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(self.weights) != SCORE_UNITS or min(self.weights) < 0:
            raise ValueError("the weights of the scales do not sum to SCORE_UNITS")

    def score(self, counts: Ints) -> int:
        """The weighted sum over scales of the absolute differences between counts and expected counts."""
        found = 0
        for codes, weight in zip(self.scales, self.weights, strict=True):
            off = np.zeros(int(codes.max()) + 1, np.int64)
            np.add.at(off, codes, counts - self.expected)
            found += weight * int(np.abs(off).sum())
        return found

    def chance(self) -> float:
        """The score to expect of rows that are drawn at random as expected: about √(2t/π) for each expected count t."""
        found = 0.0
        for codes, weight in zip(self.scales, self.weights, strict=True):
            counts = np.bincount(codes, weights=self.expected)
            found += weight * float(np.sqrt(2 / np.pi * counts).sum())
        return found


def score_change(neighbours: Neighbours) -> int:
    """The most by which a score changes between neighbours.

    One row is in one place of each scale: adding it changes one difference by 1, replacing it changes two. The expected
    counts do not depend on rows.
    """
    return SCORE_UNITS * (2 if neighbours is Neighbours.REPLACE_ONE else 1)


def measure_dependence(
    counts: Counts, references: Sequence[Reference], *, budget: Budget, neighbours: Neighbours, noise: Noise
) -> NoisyScalars:
    """Measure the scores of all tables together, at the cost of `budget`."""
    return measure_together(
        [reference.score(block) for reference, block in zip(references, counts, strict=True)],
        change=score_change(neighbours),
        budget=budget,
        neighbours=neighbours,
        noise=noise,
    )


def excess_rows(noisy: Ints, references: Sequence[Reference]) -> Floats:
    """Estimate how many rows of each table are elsewhere than expected, beyond chance. Noise may make it negative."""
    chance = np.array([reference.chance() for reference in references])
    return (noisy - chance) / (2 * SCORE_UNITS)
