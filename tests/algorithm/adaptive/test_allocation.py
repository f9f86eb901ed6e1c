"""Which pairs are measured, against all numbers of pairs that are tried; most of this holds for any constants."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from certsynth.algorithm.adaptive import allocation
from certsynth.algorithm.adaptive.allocation import (
    CellSize,
    ColumnCells,
    LossModel,
    MeasuredPair,
    allocate,
    noise_levels,
)
from certsynth.algorithm.layers import MAX_TABLE_WEIGHT
from certsynth.domain import Cells

PAIRS = list(itertools.combinations(range(5), 2))
SIZES = (CellSize(24, 200), CellSize(24, 48), CellSize(12, 48), CellSize(6, 48))


def random_model(seed: int, *, gaussian: bool, least: float = 1e-3) -> LossModel:
    """Losses that grow with noise and with the number of groups, as they do."""
    rng = np.random.default_rng(seed)
    levels = noise_levels(least, len(PAIRS), gaussian=gaussian)
    slopes = rng.uniform(0.1, 2, len(PAIRS)) * rng.choice([0.1, 1, 10])
    fineness = np.array([size.line * math.sqrt(size.labels / 48) for size in SIZES])[:, None, None] / 12
    merged = rng.choice([0.0, 0.1], len(PAIRS)) * np.array([[size.labels < 200] for size in SIZES])
    return LossModel(rng.exponential(0.1, len(PAIRS)), SIZES, levels, fineness * levels[:, None] * slopes, merged)


def objective(model: LossModel, chosen: list[MeasuredPair], *, gaussian: bool) -> float:
    """The objective of a selection, pair by pair."""
    weights = [pair.weight for pair in chosen]
    norm = math.sqrt(sum(w * w for w in weights)) if gaussian else sum(weights)
    measured = {pair.subset: pair for pair in chosen}
    total = 0.0
    for p, subset in enumerate(PAIRS):
        loss = model.left_out[p]
        if subset in measured:
            pair = measured[subset]
            s = model.sizes.index(pair.size)
            level = float(model.levels[0]) * norm / pair.weight
            loss = np.interp(level, model.levels, model.noise[s, :, p]) + model.merged[s, p]
            loss += allocation.CELL_LOSS_FACTOR * model.dependence[p] / pair.size.line
        total += loss ** (allocation.GAUSSIAN_LOSS_POWER if gaussian else allocation.LOSS_POWER)
    return total


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_chosen_number_of_pairs_has_the_least_objective_of_all_that_are_tried(monkeypatch, seed, gaussian):
    model = random_model(seed, gaussian=gaussian)
    best = objective(model, allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False), gaussian=gaussian)
    tried = allocation._numbers(1, len(PAIRS))
    assert tried[0] == 1
    assert tried[-1] == len(PAIRS)
    others = []
    for number in tried:
        monkeypatch.setattr(allocation, "_numbers", lambda *_, number=number: [number])
        chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)
        assert len(chosen) == number
        others.append(objective(model, chosen, gaussian=gaussian))
    assert best == pytest.approx(min(others))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_chosen_pairs_are_some_of_those_offered_with_weights_and_sizes_that_can_be_measured(seed, gaussian):
    model = random_model(seed, gaussian=gaussian)
    chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)
    subsets = [pair.subset for pair in chosen]
    assert subsets == sorted(set(subsets))
    assert set(subsets) <= set(PAIRS)
    assert chosen
    assert all(isinstance(pair.weight, int) and 1 <= pair.weight <= MAX_TABLE_WEIGHT for pair in chosen)
    assert max(pair.weight for pair in chosen) == MAX_TABLE_WEIGHT
    assert {pair.size for pair in chosen} <= set(SIZES)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_size_of_the_cells_of_each_pair_is_the_best_at_its_noise(seed, gaussian):
    model = random_model(seed, gaussian=gaussian)
    chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)
    least = objective(model, chosen, gaussian=gaussian)
    for i, size in itertools.product(range(len(chosen)), SIZES):
        other = [*chosen]
        other[i] = MeasuredPair(chosen[i].subset, size, chosen[i].weight)
        assert objective(model, other, gaussian=gaussian) >= least * (1 - 1e-12)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("column", range(5))
def test_pairs_that_are_always_measured_are(column, gaussian):
    """Even if nothing depends on the column, and noise is large."""
    model = random_model(3, gaussian=gaussian, least=1.0)
    model.dependence[[column in pair for pair in PAIRS]] = 0.0
    chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: column in pair)
    assert {pair for pair in PAIRS if column in pair} <= {pair.subset for pair in chosen}


@pytest.mark.parametrize("gaussian", [False, True])
def test_independent_columns_have_one_pair_measured_and_certain_ones_have_all(gaussian):
    """Where noise is large and nothing depends on anything, and where there is no noise to speak of."""
    model = random_model(1, gaussian=gaussian, least=1.0)
    nothing = dataclasses.replace(model, dependence=np.zeros(len(PAIRS)))
    assert len(allocate(PAIRS, nothing, gaussian=gaussian, always=lambda pair: False)) == 1
    sure = random_model(1, gaussian=gaussian, least=1e-12)
    all_depend = dataclasses.replace(sure, dependence=np.full(len(PAIRS), 0.5))
    assert len(allocate(PAIRS, all_depend, gaussian=gaussian, always=lambda pair: False)) == len(PAIRS)


# ------------------------------------------------------------ many labels

LABELS = CellSize(24, 1024), CellSize(24, 48)


def labels_model(labels: int, rows_each: float, noise: float, *, other: int = 10, dependence: float = 0.3) -> LossModel:
    """A column of so many labels, each of as many rows, and one of `other` labels: apart, or merged by tens."""
    line = np.empty(0, np.int64)
    counts = np.full(other, labels * rows_each / other)
    second = ColumnCells(Cells(line, 1, other), counts, 0.0)
    apart = ColumnCells(Cells(line, 1, labels), np.full(labels, rows_each), 0.0)
    merged = ColumnCells(Cells(line, 1, labels // 10), np.full(labels // 10, 10 * rows_each), 0.9)
    columns = {LABELS[0]: [apart, second], LABELS[1]: [merged, second]}
    return LossModel.of([(0, 1)], np.array([dependence]), columns, np.array([noise, 2 * noise]), noise_loss_factor=0.2)


def size_of(model: LossModel) -> CellSize:
    ((best,),) = model.losses(model.levels[:1], np.array([0]))[1:]
    return model.sizes[best]


def test_labels_are_apart_where_noise_leaves_rows_to_read_and_merged_where_it_does_not() -> None:
    assert size_of(labels_model(480, rows_each=400, noise=5)) == LABELS[0]
    assert size_of(labels_model(480, rows_each=10, noise=50)) == LABELS[1]


def test_a_table_of_too_many_cells_is_not_measured_whatever_the_noise() -> None:
    small, large = (labels_model(labels, rows_each=4_000, noise=1, other=250) for labels in (790, 810))
    assert [size_of(small), size_of(large)] == [*LABELS]


@pytest.mark.parametrize("places", [2, 10, 51])
def test_noise_hides_as_many_rows_as_it_adds_elsewhere_above_the_threshold(places: int) -> None:
    """Laplace noise, drawn many times: above the threshold, noise in the other places sums up to the threshold."""
    spread = allocation._Spread(np.array([1e9]), 1, 1.0, 0.0, many=True)
    noise = 7.0
    threshold = float(spread.unread(np.array([noise]), places)[0]) * 1e9
    drawn = np.random.default_rng(places).laplace(scale=noise / math.sqrt(2), size=400_000)
    assert places * np.maximum(drawn - threshold, 0).mean() == pytest.approx(threshold, rel=0.05)


def test_rows_of_labels_below_the_threshold_are_not_read() -> None:
    spread = allocation._Spread(np.array([10.0, 30.0, 1_000.0, 0.0, -3.0]), 1, 1.0, 0.0, many=True)
    few = spread.unread(np.array([1e-9, 1e9]), 10)
    assert few.tolist() == pytest.approx([0, 1], abs=1e-9)
    (some,) = spread.unread(np.array([20.0]), 10)
    threshold = 20 / math.sqrt(2) * 1.3267246652422002  # the x with x·exp(x) = 5
    assert some == pytest.approx((10 + threshold + threshold) / 1_040)


@pytest.mark.parametrize("gaussian", [False, True])
def test_a_pair_whose_dependence_is_inside_groups_of_labels_is_measured_label_by_label(gaussian):
    """Scores are of merged labels, and see no more of this pair than of the others."""
    model = random_model(5, gaussian=gaussian, least=0.02)
    merged = np.zeros((len(SIZES), len(PAIRS)))
    merged[1:, 3] = 0.3
    noise = np.broadcast_to(model.levels[:, None], model.noise.shape)
    model = dataclasses.replace(model, dependence=np.full(len(PAIRS), 0.02), noise=noise, merged=merged)
    chosen = {pair.subset: pair for pair in allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)}
    assert chosen[PAIRS[3]].size == SIZES[0]
    assert len(chosen) < len(PAIRS)
