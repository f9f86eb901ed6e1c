"""Which pairs are measured, against all sizes that are tried; nothing here depends on the values of the constants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from certsynth.algorithm.adaptive import allocation
from certsynth.algorithm.adaptive.allocation import LossModel, MeasuredPair, allocate, noise_levels
from certsynth.algorithm.layers import MAX_TABLE_WEIGHT

PAIRS = list(itertools.combinations(range(5), 2))
RESOLUTIONS = (24, 12, 6)


def random_model(seed: int, *, gaussian: bool, least: float = 1e-3) -> LossModel:
    """Losses that grow with noise and with the number of groups, as they do."""
    rng = np.random.default_rng(seed)
    levels = noise_levels(least, len(PAIRS), gaussian=gaussian)
    slopes = rng.uniform(0.1, 2, len(PAIRS)) * rng.choice([0.1, 1, 10])
    fineness = np.array(RESOLUTIONS)[:, None, None] / 12
    return LossModel(rng.exponential(0.1, len(PAIRS)), RESOLUTIONS, levels, fineness * levels[:, None] * slopes)


def objective(model: LossModel, chosen: list[MeasuredPair], *, gaussian: bool) -> float:
    """The objective of a selection, pair by pair."""
    weights = [pair.weight for pair in chosen]
    norm = math.sqrt(sum(w * w for w in weights)) if gaussian else sum(weights)
    measured = {pair.subset: pair for pair in chosen}
    total = 0.0
    for p, subset in enumerate(PAIRS):
        loss = model.dependence[p]
        if subset in measured:
            pair = measured[subset]
            r = model.resolutions.index(pair.resolution)
            level = float(model.levels[0]) * norm / pair.weight
            loss = np.interp(level, model.levels, model.noise[r, :, p])
            loss += allocation.CELL_LOSS_FACTOR * model.dependence[p] / pair.resolution
        total += loss**allocation.LOSS_POWER
    return total


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_chosen_number_of_pairs_has_the_least_objective_of_all_that_are_tried(monkeypatch, seed, gaussian):
    model = random_model(seed, gaussian=gaussian)
    best = objective(model, allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False), gaussian=gaussian)
    tried = allocation._sizes(1, len(PAIRS))
    assert tried[0] == 1
    assert tried[-1] == len(PAIRS)
    others = []
    for size in tried:
        monkeypatch.setattr(allocation, "_sizes", lambda *_, size=size: [size])
        chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)
        assert len(chosen) == size
        others.append(objective(model, chosen, gaussian=gaussian))
    assert best == pytest.approx(min(others))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_chosen_pairs_are_some_of_those_offered_with_weights_and_resolutions_that_can_be_measured(seed, gaussian):
    model = random_model(seed, gaussian=gaussian)
    chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)
    subsets = [pair.subset for pair in chosen]
    assert subsets == sorted(set(subsets))
    assert set(subsets) <= set(PAIRS)
    assert chosen
    assert all(isinstance(pair.weight, int) and 1 <= pair.weight <= MAX_TABLE_WEIGHT for pair in chosen)
    assert max(pair.weight for pair in chosen) == MAX_TABLE_WEIGHT
    assert {pair.resolution for pair in chosen} <= set(RESOLUTIONS)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_resolution_of_each_pair_is_the_best_at_its_noise(seed, gaussian):
    model = random_model(seed, gaussian=gaussian)
    chosen = allocate(PAIRS, model, gaussian=gaussian, always=lambda pair: False)
    least = objective(model, chosen, gaussian=gaussian)
    for i, resolution in itertools.product(range(len(chosen)), RESOLUTIONS):
        other = [*chosen]
        other[i] = MeasuredPair(chosen[i].subset, resolution, chosen[i].weight)
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
    nothing = LossModel(np.zeros(len(PAIRS)), RESOLUTIONS, model.levels, model.noise)
    assert len(allocate(PAIRS, nothing, gaussian=gaussian, always=lambda pair: False)) == 1
    sure = random_model(1, gaussian=gaussian, least=1e-12)
    all_depend = LossModel(np.full(len(PAIRS), 0.5), RESOLUTIONS, sure.levels, sure.noise)
    assert len(allocate(PAIRS, all_depend, gaussian=gaussian, always=lambda pair: False)) == len(PAIRS)
