"""Step 2: turn exact counts into noisy integers. Nothing else computed from rows enters a release."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.mechanisms.agreement import AgreedLayer, Variances, combine_layers, reconcile
from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.samplers import ExactNoise, Noise, simulate, standard_deviation
from certsynth.mechanisms.strategy import Strategy
from certsynth.queries.marginals import Counts, Marginals, Subset

_VARIANCE_DRAWS = 16


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """The noisy integers of one table, its cells and its weight; `of_values`: a column counted value by value."""

    subset: Subset
    cells: tuple[Cells, ...]
    coefficients: Ints
    weight: int
    of_values: bool


@dataclass(frozen=True, slots=True, eq=False)
class ValueCounts:
    """Noisy counts of single values of some columns whose cells in the same measurement are runs of values.

    Noise is added to every count, as in `Identity`. The counts serve rows and answers; estimates do not use them.
    """

    marginals: Marginals
    coefficients: tuple[Ints, ...]

    def counts(self, column: int) -> Floats | None:
        """The noisy counts of the values of a column; None if they were not measured."""
        for j, (subset, block) in enumerate(zip(self.marginals.subsets, self.coefficients, strict=True)):
            if subset == (column,):
                return np.asarray(block / self.marginals.weight(j))
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    r"""Noisy coefficients of all marginals: ν = 𝕋μ_D + η up to the factor n, with the law of η.

    `coefficients` has one block for each marginal. `total` is the number of rows under replace-one; their noisy number
    times the strategy's `total_weight` if it was measured separately; and None if it is estimated from the marginals.
    `values` are noisy counts of single values, which have the same law, cost and scale. `releasable` is false for
    simulated noise.
    """

    marginals: Marginals
    strategy: Strategy
    coefficients: tuple[Ints, ...]
    total: int | None
    scale: float
    cost: Guarantee
    releasable: bool = True
    values: ValueCounts | None = None

    @property
    def tables(self) -> list[NoisyTable]:
        """All tables, those of single values last."""
        lists = [(self.marginals, self.coefficients, False)]
        if self.values is not None:
            lists.append((self.values.marginals, self.values.coefficients, True))
        return [
            NoisyTable(subset, marginals.of(subset), block, marginals.weight(j), of_values)
            for marginals, blocks, of_values in lists
            for j, (subset, block) in enumerate(zip(marginals.subsets, blocks, strict=True))
        ]

    @property
    def sensitivity(self) -> Sensitivity:
        """Largest change of all coefficients together between neighbours, those of single values included."""
        return sensitivity(self.marginals, self.strategy, None if self.values is None else self.values.marginals)


@dataclass(frozen=True, slots=True, eq=False)
class FullMeasurement(Measurement):
    """A measurement with all its coefficients, which determine estimates of the counts and the law of their errors."""

    def estimate(self) -> tuple[list[Floats], float]:
        """Estimated counts of each marginal (blocks as in `Marginals`), and the estimated number of rows."""
        known = self.total is None or self.strategy.neighbours is Neighbours.REPLACE_ONE
        total = self.total if known else np.asarray(self.total) / self.strategy.total_weight
        blocks, total = self._cells([c / self.marginals.weight(j) for j, c in enumerate(self.coefficients)], total)
        return blocks, float(total)

    def simulate(self, rng: np.random.Generator, draws: int) -> tuple[list[Floats], Floats]:
        """Fresh draws of the errors of `estimate`: blocks of shape (draws, cells), and errors of the number of rows."""
        unit = self.cost.spent.unit
        noise = [
            simulate(rng, unit, self.scale, (draws, len(c))) / self.marginals.weight(j)
            for j, c in enumerate(self.coefficients)
        ]
        if self.strategy.neighbours is Neighbours.REPLACE_ONE:
            total = np.zeros(draws)
        elif self.strategy.measures_total:
            total = None
        else:
            total = simulate(rng, unit, self.scale, (draws,)) / self.strategy.total_weight
        return self._cells(noise, total)

    @property
    def variance(self) -> float:
        """Variance of the noise on a coefficient, before weights."""
        return max(
            standard_deviation(self.scale, self.cost.spent.unit) ** 2, 1e-300
        )  # positive, since its inverse is a weight

    def _cells(self, coefficients: list[Floats], total: Floats | int | None) -> tuple[list[Floats], Floats]:
        """The linear map from coefficients to cells and their total."""
        strategy, marginals = self.strategy, self.marginals
        if total is None:
            weights = 1 / np.array(_own_total_variances(marginals, strategy))
            totals = np.array([strategy.total(c) for c in coefficients])
            total = np.tensordot(weights / weights.sum(), totals, axes=1)
        total = np.asarray(total, dtype=float)
        blocks = [
            strategy.cells(block, marginals.of(subset), total)
            for subset, block in zip(marginals.subsets, coefficients, strict=True)
        ]
        if strategy.shares_total:
            blocks = reconcile(blocks, marginals, unit_variances(marginals, strategy))
        return blocks, total


@functools.lru_cache(maxsize=32)
def unit_variances(marginals: Marginals, strategy: Strategy) -> Variances:
    """Variance of every sum over a block for noise of variance 1 on its coefficients. These are public.

    In closed form for noise on every cell; otherwise the mean over the cells of the sum, from a few draws of a fixed
    random stream.
    """
    found: dict[tuple[int, Subset], float] = {}
    rng = np.random.default_rng(0)
    for j, subset in enumerate(marginals.subsets):
        shape = marginals.shape(subset)
        size = math.prod(shape)
        block = None
        if not isinstance(strategy, Identity):
            shape_of_noise = (_VARIANCE_DRAWS, strategy.length(marginals.of(subset)))
            noise = np.where(rng.random(shape_of_noise) < 0.5, -1.0, 1.0)  # from uniform numbers, like all draws
            block = strategy.cells(noise, marginals.of(subset), np.zeros(_VARIANCE_DRAWS))
        for ways in range(1, len(subset) + 1):
            for shared in itertools.combinations(subset, ways):
                if block is None:
                    variance = size / math.prod(marginals.shape(shared))
                else:
                    outside = tuple(1 + axis for axis, column in enumerate(subset) if column not in shared)
                    variance = float(np.mean(block.reshape(-1, *shape).sum(axis=outside) ** 2)) or 1.0
                found[j, shared] = variance / marginals.weight(j) ** 2
    return found


def as_full_measurements(measurements: Sequence[Measurement]) -> tuple[FullMeasurement, ...] | None:
    """The measurements as full ones if all of them are; else None."""
    full = tuple(m for m in measurements if isinstance(m, FullMeasurement))
    return full if len(full) == len(measurements) else None


def estimate(measurements: Sequence[FullMeasurement]) -> tuple[list[list[Floats]], float]:
    """Consistent estimates from all measurements of one table: their own estimates, made to agree.

    The first measurement has the finest cells; cells of later ones are unions of cells of earlier ones.
    """
    own = [m.estimate() for m in measurements]
    blocks, total = _combine(
        measurements, [[b[None] for b in blocks] for blocks, _ in own], [np.array([t]) for _, t in own]
    )
    return [[b[0] for b in layer] for layer in blocks], float(total[0])


def simulate_all(
    measurements: Sequence[FullMeasurement], rng: np.random.Generator, draws: int
) -> tuple[list[list[Floats]], Floats]:
    """Fresh draws of the errors of `estimate`."""
    own = [m.simulate(rng, draws) for m in measurements]
    return _combine(measurements, [blocks for blocks, _ in own], [total for _, total in own])


def _combine(
    measurements: Sequence[FullMeasurement], blocks: Sequence[list[Floats]], totals: Sequence[Floats]
) -> tuple[list[list[Floats]], Floats]:
    """The linear map from the measurements' own estimates to consistent ones, and their total."""
    if len(measurements) == 1:
        return [blocks[0]], totals[0]
    weights = np.array([1 / _total_variance(m) for m in measurements])
    total = np.tensordot(weights / weights.sum(), totals, axes=1)
    layers = []
    for m, own in zip(measurements, blocks, strict=True):
        shifted = [b + (total - b.sum(axis=-1))[:, None] / b.shape[-1] for b in own]
        if not m.strategy.shares_total:  # its blocks did not agree before they had one total
            shifted = reconcile(shifted, m.marginals, unit_variances(m.marginals, m.strategy))
        variances = {key: m.variance * v for key, v in unit_variances(m.marginals, m.strategy).items()}
        layers.append(AgreedLayer(m.marginals, shifted, variances))
    combine_layers(layers, total)
    return [layer.blocks for layer in layers], total


def _total_variance(measurement: FullMeasurement) -> float:
    """Variance of the number of rows as one measurement estimates it, if it is unknown."""
    strategy, marginals = measurement.strategy, measurement.marginals
    if not strategy.measures_total:
        return measurement.variance / strategy.total_weight**2
    return measurement.variance / sum(1 / v for v in _own_total_variances(marginals, strategy))


def _own_total_variances(marginals: Marginals, strategy: Strategy) -> list[float]:
    """Variance of each marginal's own estimate of the number of rows, for noise of variance 1."""
    return [
        strategy.total_variance(marginals.of(s)) / marginals.weight(j) ** 2 for j, s in enumerate(marginals.subsets)
    ]


def sensitivity(marginals: Marginals, strategy: Strategy, values: Marginals | None = None) -> Sensitivity:
    """Largest change of all coefficients together between neighbours: a row is counted in every marginal.

    `values` are marginals of single values, with noise on every count.

    Paper: appendix C [projections]
    """
    parts = [strategy.sensitivity(marginals.of(s)) * marginals.weight(j) for j, s in enumerate(marginals.subsets)]
    if values is not None:
        parts.append(sensitivity(values, Identity(strategy.neighbours)))
    separate_total = strategy.neighbours is Neighbours.ADD_REMOVE and not strategy.measures_total
    weight = strategy.total_weight if separate_total else 0
    return sum(parts, Sensitivity(weight, weight**2))


def coefficients(counts: Counts, strategy: Strategy) -> list[Ints]:
    """The integers that get noise, marginal by marginal, then the weighted number of rows if measured separately."""
    marginals = counts.marginals
    blocks = [
        marginals.weight(j) * strategy.coefficients(block, marginals.of(subset))
        for j, (subset, block) in enumerate(zip(marginals.subsets, counts, strict=True))
    ]
    if strategy.neighbours is Neighbours.ADD_REMOVE and not strategy.measures_total:
        blocks.append(np.array([strategy.total_weight * counts.rows]))
    return blocks


def measure(
    counts: Counts,
    strategy: Strategy,
    *,
    budget: Budget,
    noise: Noise | None = None,
    values: Counts | None = None,
) -> FullMeasurement:
    """Measure marginals with noise, at the cost of `budget`; `values` are exact counts of single values.

    Paper: Eq. (7) [noisy-vector], Eq. (8) [sensitivity], Lemma 2 [laplace-mechanism]
    """
    noise = noise or ExactNoise()
    neighbours = strategy.neighbours
    exact = coefficients(counts, strategy)
    below = [] if values is None else coefficients(values, Identity(neighbours))
    flat, scale, spent = np.concatenate([*below, *exact]), 1.0, budget.share(Fraction(0))
    if change := sensitivity(counts.marginals, strategy, None if values is None else values.marginals):
        noised = noise.add(flat, sensitivity=change, budget=budget)
        flat, scale, spent = noised.values, noised.scale, noised.spent
    ends = np.cumsum([len(block) for block in (*below, *exact)])[:-1]
    blocks = np.split(flat, ends)
    of_values, blocks = blocks[: len(below)], blocks[len(below) :]
    total: int | None = None
    if neighbours is Neighbours.REPLACE_ONE:
        total = counts.rows
    elif not strategy.measures_total:
        total = int(blocks.pop()[0])
    return FullMeasurement(
        marginals=counts.marginals,
        strategy=strategy,
        coefficients=tuple(blocks),
        total=total,
        scale=scale,
        cost=Guarantee(spent=spent, neighbours=neighbours),
        releasable=noise.releasable,
        values=None if values is None else ValueCounts(values.marginals, tuple(of_values)),
    )
