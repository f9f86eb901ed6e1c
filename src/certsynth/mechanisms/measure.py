"""Step 2: exact counts in, noisy integers out. Nothing else that is computed from rows goes on to a release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.arrays import Floats, Ints
from certsynth.mechanisms.agreement import agreed
from certsynth.mechanisms.guarantee import Guarantee, Neighbours
from certsynth.mechanisms.samplers import ExactNoise, Noise, simulate
from certsynth.mechanisms.strategy import Identity, Strategy
from certsynth.queries.marginals import Counts, Marginals
from certsynth.transport.path import Path


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    r"""Noisy coefficients of all marginals: ν = 𝕋μ_D + η up to the factor n, with the law of η.

    `coefficients` holds one block for each marginal. `total` is the number of rows under replace-one, the noisy number
    of rows where it was measured by itself, and None where it is read off the marginals. `releasable` is false for
    noise made up in a test.
    """

    marginals: Marginals
    strategy: Strategy
    coefficients: tuple[Ints, ...]
    total: int | None
    scale: float
    cost: Guarantee
    releasable: bool = True

    def estimate(self) -> tuple[list[Floats], float]:
        """Estimates of the counts of each marginal (blocks as in `Marginals`), and of the number of rows."""
        blocks, total = self._cells([c.astype(float) for c in self.coefficients], self.total)
        return blocks, float(total)

    def simulate(self, rng: np.random.Generator, draws: int) -> tuple[list[Floats], Floats]:
        """Fresh draws of the errors of `estimate`: blocks of shape (draws, cells), and errors of the number of rows."""
        noise = [simulate(rng, self.scale, (draws, len(c))).astype(float) for c in self.coefficients]
        if self.strategy.neighbours is Neighbours.REPLACE_ONE:
            total = np.zeros(draws)
        elif self.strategy.measures_total:
            total = None
        else:
            total = simulate(rng, self.scale, (draws,)).astype(float)
        return self._cells(noise, total)

    def _cells(self, coefficients: list[Floats], total: Floats | int | None) -> tuple[list[Floats], Floats]:
        """The linear map from coefficients to cells, and the total that goes with them."""
        strategy, sizes = self.strategy, self.marginals.sizes()
        if total is None:
            # The error of a block's total grows with its size: weigh the blocks by public precision.
            weights = 1 / np.array(sizes, dtype=float)
            totals = np.array([strategy.total(c) for c in coefficients])
            total = np.tensordot(weights / weights.sum(), totals, axes=1)
        total = np.asarray(total, dtype=float)
        blocks = []
        for subset, size, block in zip(self.marginals.subsets, sizes, coefficients, strict=True):
            along = strategy.cells(block, size, total)
            cells = np.empty_like(along)
            cells[..., Path.along(self.marginals.of(subset), strategy.order).order] = along
            blocks.append(cells)
        if isinstance(strategy, Identity):  # of the others the noise is not the same on all cells
            blocks = agreed(blocks, self.marginals)
        return blocks, total


def sensitivity(marginals: Marginals, strategy: Strategy) -> int:
    """Largest L1 change of all coefficients together between neighbours. Attained: one row is in every marginal."""
    shared_total = strategy.neighbours is Neighbours.ADD_REMOVE and not strategy.measures_total
    return sum(strategy.sensitivity(size) for size in marginals.sizes()) + shared_total


def coefficients(counts: Counts, strategy: Strategy) -> list[Ints]:
    """The integers that get noise, marginal by marginal; last the number of rows where it is measured by itself."""
    blocks = []
    for subset, block in zip(counts.marginals.subsets, counts, strict=True):
        order = Path.along(counts.marginals.of(subset), strategy.order).order
        blocks.append(strategy.coefficients(block[order]))
    if strategy.neighbours is Neighbours.ADD_REMOVE and not strategy.measures_total:
        blocks.append(np.array([counts.rows]))
    return blocks


def measure(counts: Counts, strategy: Strategy, *, epsilon: Fraction, noise: Noise | None = None) -> Measurement:
    """Noisy marginals at the cost of `epsilon`.

    Paper: Eq. (7) [noisy-vector], Eq. (8) [sensitivity], Lemma 2 [laplace-mechanism]
    """
    noise = noise or ExactNoise()
    neighbours = strategy.neighbours
    exact = coefficients(counts, strategy)
    flat, scale, cost = np.concatenate(exact), 1.0, Fraction(0)
    if change := sensitivity(counts.marginals, strategy):
        noised = noise.add(flat, sensitivity=change, epsilon=epsilon)
        flat, scale, cost = noised.values, noised.scale, noised.epsilon
    ends = np.cumsum([len(block) for block in exact])[:-1]
    blocks = np.split(flat, ends)
    total: int | None = None
    if neighbours is Neighbours.REPLACE_ONE:
        total = counts.rows
    elif not strategy.measures_total:
        total = int(blocks.pop()[0])
    return Measurement(
        marginals=counts.marginals,
        strategy=strategy,
        coefficients=tuple(blocks),
        total=total,
        scale=scale,
        cost=Guarantee(epsilon=cost, neighbours=neighbours),
        releasable=noise.releasable,
    )
