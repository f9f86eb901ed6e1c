"""Choose the pairs of columns to measure, from noisy single columns and noisy scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from certsynth.algorithm.adaptive.allocation import CellSize, LossModel, allocate, noise_levels
from certsynth.algorithm.adaptive.scores import columns_at, references, scored_tables
from certsynth.algorithm.layers import LayerSpec, measure_layers
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.base.arrays import Floats
from certsynth.domain import Category, Schema
from certsynth.mechanisms import Budget, FullMeasurement, Neighbours, Sensitivity, Unit, strategy_named
from certsynth.mechanisms.dependence import excess_rows, measure_dependence
from certsynth.mechanisms.samplers import Noise, calibrated_scale, standard_deviation
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.planning.choice import Design
from certsynth.queries.marginals import CellCounts, Subset, subsets_within
from certsynth.queries.tally import Rows

SCORE_SHARES = {Unit.EPSILON: Fraction(1, 20), Unit.RHO: Fraction(3, 100)}
"""Share of the budget for the scores of pairs."""

SINGLE_FACTORS = {Unit.EPSILON: 2.8, Unit.RHO: 2.5}
MIN_SINGLE_PERCENT, MAX_SINGLE_PERCENT = 10, 90
"""The share of the measurement budget for single columns is the factor times √(columns · noise / rows), where `noise`
is that on a count if single columns got everything; and the percentage, at least and at most. The fewer rows there are
to a column, the more is lost by noise on single columns, and the less can be learnt about pairs."""

SINGLE_NOISE_COST_POWER = 0.5
"""Weights of single columns grow with this power of the cost of noise: each column is part of as many pairs as every
other, so that the mean of their losses counts, which is least so in ε."""

NOISE_LOSS_FACTORS = {Unit.EPSILON: 0.25, Unit.RHO: 0.2}
"""The part of the noise, summed over cells, that remains as a loss after the fit."""

CAUTION = Fraction(1, 4)
"""Probability, at most, that a score is larger than the true one by more than is subtracted from all scores: with many
pairs, the largest scores are those with the largest noise."""

FALSE_PAIRS = 12
"""Expected number of pairs, at most, that noise alone makes seem dependent in ε. There the noise of a score is about
as likely to be large as small: pairs above the largest noise are dependent, and all others would be guesses."""

UNSEEN_DEPENDENCE = {Unit.EPSILON: 0.35, Unit.RHO: 0.0}
"""Dependence of a pair in whose score nothing stands out from noise, as a part of the mean over all pairs. A few pairs
hold most of the dependence, so that a typical pair has less than the mean. With Gaussian noise, scores are more exact,
and show weak dependence as well."""

SIZES = (CellSize(24, 1024), CellSize(24, 48), CellSize(12, 48), CellSize(6, 48))
"""Sizes of cells among which each pair has its own. Each comes after those that divide its cells."""


def candidate_pairs(settings: Settings) -> tuple[Subset, ...]:
    """The pairs that are scored: those that the certificate covers."""
    return subsets_within(settings.subsets, 2)


def measure_scores(task: Task, private: Rows, *, noise: Noise) -> tuple[FullMeasurement, NoisyScalars]:
    """Measure single columns, then the scores of all pairs relative to them."""
    schema, settings = task.schema, task.settings
    budget = settings.measurement_budget.share(single_share(task))
    (singles,) = measure_layers(private, schema, [_single_columns(settings, budget)], noise=noise)
    tables = scored_tables(schema, singles, candidate_pairs(settings))
    noisy = measure_dependence(
        private(CellCounts(schema, tables)),
        references(singles, tables),
        budget=settings.budget.share(settings.choice_share),
        neighbours=settings.neighbours,
        noise=noise,
    )
    return singles, noisy


def _single_columns(settings: Settings, budget: Budget) -> LayerSpec:
    plain = strategy_named("identity", neighbours=settings.neighbours)
    columns = subsets_within(settings.subsets, 1)
    return LayerSpec(columns, "points", None, plain, budget, noise_cost_power=SINGLE_NOISE_COST_POWER)


def noisy_dependence(schema: Schema, settings: Settings, singles: FullMeasurement, scores: NoisyScalars) -> Floats:
    """The estimated share of the rows that are elsewhere than if the columns of each pair were independent.

    It is rather too small than too large, but at least a part of the mean over all pairs, which is known far better
    than the dependence of any of them: what noise hides is small, not absent.
    """
    unit = settings.budget.unit
    values, slack = np.array(scores.values), scores.slack(_caution(len(scores.values), unit))
    expected = references(singles, scored_tables(schema, singles, candidate_pairs(settings)))
    likely, surely = (
        excess_rows(each, expected) / max(singles.estimate()[1], 1.0) for each in (values, values - slack)
    )
    least = UNSEEN_DEPENDENCE[unit] * max(float(likely.mean()), 0.0)
    return np.clip(surely, min(least, 1.0), 1.0)


def _caution(pairs: int, unit: Unit) -> Fraction:
    """The probability with which noise exceeds what is subtracted from the scores of this number of pairs."""
    return min(CAUTION, Fraction(FALSE_PAIRS, pairs)) if unit is Unit.EPSILON else CAUTION


def single_share(task: Task) -> Fraction:
    """Share of the measurement budget for single columns, by their number and the public number of rows."""
    columns = len(subsets_within(task.settings.subsets, 1))
    noise = columns * _noise_of(columns, task.settings.measurement_budget, task.settings)
    percent = round(100 * SINGLE_FACTORS[task.settings.budget.unit] * math.sqrt(noise / max(task.rows, 1)))
    return Fraction(min(max(percent, MIN_SINGLE_PERCENT), MAX_SINGLE_PERCENT), 100)


def _noise_of(tables: int, budget: Budget, settings: Settings) -> float:
    """The standard deviation of noise on a count, if so many tables of equal weight share the budget."""
    moves = tables * (2 if settings.neighbours is Neighbours.REPLACE_ONE else 1)
    return standard_deviation(calibrated_scale(Sensitivity(moves, moves), budget), budget.unit)


def choose_layers(
    schema: Schema, settings: Settings, singles: FullMeasurement, dependence: Floats
) -> tuple[LayerSpec, ...]:
    """The layers to measure: single columns, then the chosen pairs, those in finer cells first.

    This is a function of noisy numbers and the settings alone, so anybody can repeat it. Pairs share what single
    columns have left of the budget.
    """
    spent, whole_budget = singles.cost.spent, settings.measurement_budget
    pairs, budget = candidate_pairs(settings), whole_budget.share(1 - spent.amount / whole_budget.amount)
    columns = {size: columns_at(schema, singles, size) for size in _sizes(schema)}
    gaussian = budget.unit is Unit.RHO
    levels = noise_levels(_noise_of(1, budget, settings), len(pairs), gaussian=gaussian)
    model = LossModel.of(pairs, dependence, columns, levels, noise_loss_factor=NOISE_LOSS_FACTORS[budget.unit])
    chosen = allocate(pairs, model, gaussian=gaussian, always=lambda pair: settings.target in pair)
    plain = strategy_named("identity", neighbours=settings.neighbours)
    power = 2 if gaussian else 1
    whole = sum(pair.weight**power for pair in chosen)
    layers = [_single_columns(settings, spent)]
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
    split = layers[0].budget.amount / settings.measurement_budget.amount
    return Design(layers, split, discretisation=0.0, privatisation=0.0, predicted=0.0)
