"""Choose the pairs of columns to measure, from noisy single columns and noisy scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from certsynth.algorithm.adaptive.allocation import CellSize, LossModel, allocate, noise_levels
from certsynth.algorithm.adaptive.scores import columns_at, references, scored_tables
from certsynth.algorithm.layers import LayerSpec, measure_layers
from certsynth.algorithm.settings import Settings
from certsynth.base.arrays import Floats
from certsynth.domain import Category, Schema
from certsynth.mechanisms import FullMeasurement, Neighbours, Sensitivity, Unit, strategy_named
from certsynth.mechanisms.dependence import excess_rows, measure_dependence
from certsynth.mechanisms.samplers import Noise, calibrated_scale, standard_deviation
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.planning.choice import Design
from certsynth.queries.marginals import CellCounts, Subset, subsets_within
from certsynth.queries.tally import Rows

SCORE_SHARES = {Unit.EPSILON: Fraction(1, 20), Unit.RHO: Fraction(3, 100)}
"""Share of the budget for the scores of pairs."""

SINGLE_PERCENT_SQUARED, MAX_SINGLE_PERCENT = {Unit.EPSILON: 90, Unit.RHO: 30}, 65
"""The square of the percentage of the measurement budget for single columns, for each of them; and the percentage, at
most. Twice as many columns get √2 times the share: noise on each grows in the end, but more slowly."""

NOISE_LOSS_FACTORS = {Unit.EPSILON: 0.25, Unit.RHO: 0.2}
"""The part of the noise, summed over cells, that remains as a loss after the fit."""

CAUTION = Fraction(1, 4)
"""Probability, at most, that a score is larger than the true one by more than is subtracted from all scores: with many
pairs, the largest scores are those with the largest noise."""

FALSE_PAIRS = 12
"""Expected number of pairs, at most, that noise alone makes seem dependent in ε. There the noise of a score is about
as likely to be large as small: pairs above the largest noise are dependent, and all others would be guesses."""

SIZES = (CellSize(24, 1024), CellSize(24, 48), CellSize(12, 48), CellSize(6, 48))
"""Sizes of cells among which each pair has its own. Each comes after those that divide its cells."""


def candidate_pairs(settings: Settings) -> tuple[Subset, ...]:
    """The pairs that are scored: those that the certificate covers."""
    return subsets_within(settings.subsets, 2)


def measure_scores(
    schema: Schema, settings: Settings, rows: Rows, *, noise: Noise
) -> tuple[FullMeasurement, NoisyScalars]:
    """Measure single columns, then the scores of all pairs relative to them."""
    (singles,) = measure_layers(rows, schema, [_single_columns(settings)], noise=noise)
    tables = scored_tables(schema, singles, candidate_pairs(settings))
    noisy = measure_dependence(
        rows(CellCounts(schema, tables)),
        references(singles, tables),
        budget=settings.budget.share(settings.choice_share),
        neighbours=settings.neighbours,
        noise=noise,
    )
    return singles, noisy


def _single_columns(settings: Settings) -> LayerSpec:
    plain = strategy_named("identity", neighbours=settings.neighbours)
    columns = subsets_within(settings.subsets, 1)
    return LayerSpec(columns, "points", None, plain, settings.measurement_budget.share(single_share(settings)))


def noisy_dependence(schema: Schema, settings: Settings, singles: FullMeasurement, scores: NoisyScalars) -> Floats:
    """The estimated share of the rows that are elsewhere than if the columns of each pair were independent: rather too
    small than too large.
    """
    tables = scored_tables(schema, singles, candidate_pairs(settings))
    cautious = np.array(scores.values) - scores.slack(_caution(len(scores.values), settings.budget.unit))
    share = excess_rows(cautious, references(singles, tables)) / max(singles.estimate()[1], 1.0)
    return np.minimum(share, 1.0)


def _caution(pairs: int, unit: Unit) -> Fraction:
    """The probability with which noise exceeds what is subtracted from the scores of this number of pairs."""
    return min(CAUTION, Fraction(FALSE_PAIRS, pairs)) if unit is Unit.EPSILON else CAUTION


def single_share(settings: Settings) -> Fraction:
    """Share of the measurement budget for single columns."""
    columns = len(subsets_within(settings.subsets, 1))
    return Fraction(min(MAX_SINGLE_PERCENT, math.isqrt(SINGLE_PERCENT_SQUARED[settings.budget.unit] * columns)), 100)


def choose_layers(
    schema: Schema, settings: Settings, singles: FullMeasurement, dependence: Floats
) -> tuple[LayerSpec, ...]:
    """The layers to measure: single columns, then the chosen pairs, those in finer cells first.

    This is a function of noisy numbers and the settings alone, so anybody can repeat it.
    """
    pairs, budget = candidate_pairs(settings), settings.measurement_budget.share(1 - single_share(settings))
    columns = {size: columns_at(schema, singles, size) for size in _sizes(schema)}
    gaussian, moves = budget.unit is Unit.RHO, 2 if settings.neighbours is Neighbours.REPLACE_ONE else 1
    least = standard_deviation(calibrated_scale(Sensitivity(moves, moves), budget), budget.unit)
    levels = noise_levels(least, len(pairs), gaussian=gaussian)
    model = LossModel.of(pairs, dependence, columns, levels, noise_loss_factor=NOISE_LOSS_FACTORS[budget.unit])
    chosen = allocate(pairs, model, gaussian=gaussian, always=lambda pair: settings.target in pair)
    plain = strategy_named("identity", neighbours=settings.neighbours)
    power = 2 if gaussian else 1
    whole = sum(pair.weight**power for pair in chosen)
    layers = [_single_columns(settings)]
    for size in SIZES:
        own = [pair for pair in chosen if pair.size == size]
        if own:
            share = Fraction(sum(pair.weight**power for pair in own), whole)
            subsets, weights = tuple(pair.subset for pair in own), tuple(pair.weight for pair in own)
            layers.append(LayerSpec(subsets, "groups", size.line, plain, budget.share(share), weights, size.labels))
    return tuple(layers)


def _sizes(schema: Schema) -> list[CellSize]:
    """The sizes that differ for this schema: with few labels in every column, nothing is gained by allowing more."""
    most = max((len(column.labels) for column in schema if isinstance(column, Category)), default=0)
    return [size for n, size in enumerate(SIZES) if n == len(SIZES) - 1 or _differs(size, SIZES[n + 1], most)]


def _differs(size: CellSize, coarser: CellSize, labels: int) -> bool:
    return size.line != coarser.line or labels > coarser.labels


def as_design(settings: Settings, layers: tuple[LayerSpec, ...]) -> Design:
    """The layers as the only design: its loss was weighed table by table, and is not predicted as a whole."""
    return Design(layers, single_share(settings), discretisation=0.0, privatisation=0.0, predicted=0.0)
