"""Counts of single values below runs of values: what a row changes, what gets noise, and what is kept of it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from certsynth.algorithm.layers import LayerSpec, measure_layers, value_weights, values_below
from certsynth.domain import Cells, Groups, Ordered, Schema
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit, measure
from certsynth.mechanisms.haar import Haar
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.measure import coefficients, sensitivity
from certsynth.mechanisms.samplers import SimulatedNoise
from certsynth.mechanisms.strategy import Strategy
from certsynth.queries.marginals import CellCounts, Counts, Marginals
from certsynth.queries.tally import in_memory
from small import NoNoise

LATTICE = Cells(places=np.arange(7), steps=6, off_line=1)
VALUES, RUNS = Groups.of(LATTICE, None), Groups.of(LATTICE, np.array([0, 2, 3]))
OTHER = Groups.of(Cells(places=np.arange(3), steps=2, off_line=0), None)
OF_RUNS = Marginals(cells=(RUNS, OTHER), subsets=((0,), (1,)), weights=(3, 5))
OF_VALUES = Marginals(cells=(VALUES, OTHER), subsets=((0,),), weights=(2,))
STRATEGIES = [kind(relation) for relation in Neighbours for kind in (Identity, Haar)]


def counts(rows: np.ndarray) -> tuple[Counts, Counts]:
    """Counts of runs and other columns, and of values, of rows of lattice points and codes of the other column."""
    of_runs = OF_RUNS.count([[RUNS.code(rows[:, 0]), rows[:, 1]]])
    return of_runs, OF_VALUES.count([list(rows.T)])


def changes(strategy: Strategy) -> list[np.ndarray]:
    """What every pair of neighbours of one row changes in all integers that get noise."""
    rows = [np.array([pair]) for pair in itertools.product(range(8), range(3))]
    each = []
    for row in rows:
        of_runs, of_values = counts(row)
        parts = coefficients(of_runs, strategy) + coefficients(of_values, Identity(strategy.neighbours))
        each.append(np.concatenate(parts))
    if strategy.neighbours is Neighbours.ADD_REMOVE:
        return each
    return [a - b for a, b in itertools.combinations(each, 2)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: f"{s.name}, {s.neighbours}")
def test_no_pair_of_neighbours_changes_runs_and_values_by_more_than_the_sensitivity(strategy: Strategy) -> None:
    found = changes(strategy)
    largest = Sensitivity(
        max(int(np.abs(change).sum()) for change in found), max(int(change @ change) for change in found)
    )
    stated = sensitivity(OF_RUNS, strategy, OF_VALUES)
    assert (stated.l1, stated.l2_squared) >= (largest.l1, largest.l2_squared)
    if isinstance(strategy, Identity):
        assert stated == largest
    assert sensitivity(OF_RUNS, strategy).l1 < largest.l1, "the control: without the values it would be too small"


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: f"{s.name}, {s.neighbours}")
def test_noise_is_asked_for_runs_and_values_together(strategy: Strategy) -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, 8, 400), rng.integers(0, 3, 400)])
    of_runs, of_values = counts(rows)
    made = measure(of_runs, strategy, budget=Budget(1, Unit.EPSILON), noise=NoNoise(), values=of_values)
    assert made.sensitivity == sensitivity(OF_RUNS, strategy, OF_VALUES)
    assert made.values is not None
    truth = np.bincount(rows[:, 0], minlength=8)
    assert made.values.counts(0).tolist() == truth.tolist()
    assert made.values.counts(1) is None
    estimates, total = made.estimate()
    np.testing.assert_allclose(estimates[0], np.bincount(RUNS.code(rows[:, 0])), atol=1e-8)
    np.testing.assert_allclose(estimates[1], np.bincount(rows[:, 1]), atol=1e-8)
    assert total == pytest.approx(400)
    assert [(t.subset, t.of_values, t.weight) for t in made.tables] == [
        ((0,), False, 3),
        ((1,), False, 5),
        ((0,), True, 2),
    ]


def test_noise_on_values_leaves_estimates_alone() -> None:
    of_runs, of_values = counts(np.column_stack([np.arange(8), np.arange(8) % 3]))
    noise = SimulatedNoise(np.random.default_rng(2))
    made = measure(
        of_runs, Identity(Neighbours.REPLACE_ONE), budget=Budget(1, Unit.EPSILON), noise=noise, values=of_values
    )
    alone = [block / OF_RUNS.weight(j) for j, block in enumerate(made.coefficients)]
    shifted = [block + (8 - block.sum()) / len(block) for block in alone]
    for found, wanted in zip(made.estimate()[0], shifted, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_runs_are_counted_by_adding_up_values() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, 8, 300), rng.integers(0, 3, 300)])
    of_runs, _ = counts(rows)
    finest = Marginals(cells=(VALUES, OTHER), subsets=((0,), (1,))).count([list(rows.T)])
    merged = finest.merged(OF_RUNS)
    assert [block.tolist() for block in merged] == [block.tolist() for block in of_runs]
    assert [block.tolist() for block in finest.part(OF_VALUES)] == [np.bincount(rows[:, 0], minlength=8).tolist()]


LONG = Schema((Ordered("code", high=2_000, missing=True), Ordered("age", high=9), Ordered("when", high=10**6)))


def layer(unit: Unit = Unit.EPSILON, **changes: object) -> LayerSpec:
    spec = {"subsets": ((0,), (1,), (2,)), "cells": "points", "resolution": None} | changes
    return LayerSpec(strategy=Identity(Neighbours.REPLACE_ONE), budget=Budget(1, unit), **spec)  # type: ignore[arg-type]


def test_values_are_counted_of_columns_with_a_stated_number_of_them() -> None:
    """A column of a million values has a grid as its finest cells, so that memory is bounded."""
    values = values_below(LONG, layer())
    assert values is not None
    assert values.subsets == ((0,),)
    assert values.shape((0,)) == (2_002,)
    assert LONG.columns[2].values_below_points() is None
    assert LONG.columns[2].points().size == LONG.columns[2].detail().size == 257
    assert values_below(LONG, layer(cells="groups", resolution=8)) is None
    assert values_below(LONG, layer(resolution=8)) is None
    assert values_below(LONG, layer(subsets=((0, 1),))) is None
    assert values_below(LONG, layer(subsets=((1,), (2,)))) is None


@pytest.mark.parametrize("unit", Unit)
def test_all_columns_pay_a_little_for_counts_of_values(unit: Unit) -> None:
    spec = layer(unit)
    values = values_below(LONG, spec)
    assert values is not None
    whole = Marginals(cells=tuple(c.points() for c in LONG), subsets=spec.subsets, weights=(60, 30, 64))
    runs, below = value_weights(whole, values, spec)
    assert runs.weights == whole.weights
    assert below.weights == (20,)
    before, after = sensitivity(whole, spec.strategy), sensitivity(runs, spec.strategy, below)
    assert (after.l1, after.l2_squared) == (before.l1 + 2 * 20, before.l2_squared + 2 * 20**2)


def test_a_layer_counts_values_and_runs_in_one_pass() -> None:
    rng = np.random.default_rng(4)
    rows = [
        rng.integers(0, 2_001, 500).astype(float),
        rng.integers(0, 10, 500).astype(float),
        rng.integers(0, 10**6, 500) * 1.0,
    ]
    rows[0][:50] = np.nan
    asked = []

    def spy(tally: CellCounts) -> Counts:
        asked.append(tally)
        return in_memory(rows)(tally)

    (made,) = measure_layers(spy, LONG, [layer()], noise=NoNoise())  # type: ignore[arg-type]
    assert len(asked) == 1
    assert made.values is not None
    truth = np.bincount(np.where(np.isnan(rows[0]), 2_001, rows[0]).astype(int), minlength=2_002)
    assert made.values.counts(0).tolist() == truth.tolist()
    own = LONG.columns[0].points()
    assert (
        made.coefficients[0].tolist()
        == (made.marginals.weight(0) * np.bincount(LONG.columns[0].to_cells(rows[0], own), minlength=own.size)).tolist()
    )
    assert made.cost.spent.amount == Fraction(1)
