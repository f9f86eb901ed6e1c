"""Tables of different weights: what gets noise is multiplied, what comes back is not, and the sensitivity counts it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import generators as gen
from certsynth.algorithm.layers import LayerSpec, noise_costs, weighted_marginals
from certsynth.domain import Cells
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Strategy, Unit, measure, strategy_named
from certsynth.mechanisms.measure import coefficients, sensitivity
from certsynth.mechanisms.registry import TABLE_STRATEGIES
from certsynth.queries.marginals import Marginals
from certsynth.transport import Network, transport_loss
from small import NoNoise

EVERY = [strategy_named(name, neighbours=n) for name in TABLE_STRATEGIES for n in Neighbours]
"""All that measure several tables; those of one grid are in test_sparse.py."""
CELLS = (gen.line(3), gen.labels(4), gen.line(2, missing=True))
WEIGHED = Marginals(cells=CELLS, subsets=((0, 1), (1, 2), (2,)), weights=(7, 3, 64))


def named(strategy: Strategy) -> str:
    return f"{strategy.name}, {strategy.neighbours}"


def rows(*given: tuple[int, ...]) -> list[np.ndarray]:
    return [np.array([row[j] for row in given], dtype=np.int64) for j in range(len(CELLS))]


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_one_row_changes_no_more_than_stated_and_some_row_as_much(strategy: Strategy) -> None:
    stated = sensitivity(WEIGHED, strategy)
    domain = list(itertools.product(*(range(c.size) for c in CELLS)))
    seen = [np.concatenate(coefficients(WEIGHED.count([rows(row)]), strategy)) for row in domain]
    nothing = np.concatenate(coefficients(WEIGHED.count([rows()]), strategy))
    if strategy.neighbours is Neighbours.ADD_REMOVE:
        changes = [here - nothing for here in seen]
    else:
        changes = [a - b for a, b in itertools.combinations(seen, 2)]
    assert max(int(np.abs(change).sum()) for change in changes) == stated.l1
    assert max(int((change**2).sum()) for change in changes) <= stated.l2_squared


def test_without_weights_the_sensitivity_is_too_small() -> None:
    """Control: the exhaustive test would see weights that are not counted."""
    strategy = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    plain = sensitivity(replace(WEIGHED, weights=()), strategy)
    assert plain == Sensitivity(6, 6)
    assert sensitivity(WEIGHED, strategy) == Sensitivity(2 * (7 + 3 + 64), 2 * (7**2 + 3**2 + 64**2))


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_counts_come_back_unchanged_without_noise(strategy: Strategy) -> None:
    rng = np.random.default_rng(1)
    counts = WEIGHED.count([[rng.integers(c.size, size=50) for c in CELLS]])
    made = measure(counts, strategy, budget=Budget(Fraction(1)), noise=NoNoise())
    blocks, total = made.estimate()
    assert total == pytest.approx(50)
    for block, true in zip(blocks, counts, strict=True):
        assert block == pytest.approx(true)


@pytest.mark.parametrize("unit", list(Unit))
def test_a_table_of_more_weight_has_that_much_less_noise(unit: Unit) -> None:
    """Tables that do not overlap: draw by draw the noise of one scale, divided by the weight."""
    strategy = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    weights = (5, 1)
    found = []
    for given in ((), weights):
        marginals = Marginals(cells=CELLS, subsets=((0, 1), (2,)), weights=given)
        made = measure(marginals.count([rows()]), strategy, budget=Budget(Fraction(1), unit), noise=NoNoise())
        found.append(replace(made, scale=9.0).simulate(np.random.default_rng(3), 20)[0])
    for plain, divided, weight in zip(*found, weights, strict=True):
        assert divided * weight == pytest.approx(plain)


def layer(*subsets: tuple[int, ...], mechanism: str = "identity") -> LayerSpec:
    strategy = strategy_named(mechanism, neighbours=Neighbours.REPLACE_ONE)
    return LayerSpec(subsets=subsets, cells="points", resolution=None, strategy=strategy, budget=Budget(Fraction(1)))


def test_tables_that_noise_costs_more_on_weigh_more() -> None:
    cells = (gen.line(16), gen.line(16), gen.labels(200), gen.labels(2))
    marginals = weighted_marginals(cells, layer((0,), (1,), (2,), (3,)))
    assert marginals.weights[2] == max(marginals.weights) == 64
    assert marginals.weights[0] == marginals.weights[1] < 64
    assert 1 <= marginals.weights[3] <= marginals.weights[0]


def test_tables_of_one_shape_and_the_papers_mechanism_have_no_weights() -> None:
    same = tuple(gen.line(8) for _ in range(3))
    assert weighted_marginals(same, layer((0, 1), (0, 2), (1, 2))).weights == ()
    assert weighted_marginals(CELLS, layer((0,), (1,), mechanism="haar-noisy-total")).weights == ()


def test_costs_are_about_those_of_transport() -> None:
    """Within a factor of three of each other, over tables whose costs differ by a factor of fifty."""
    rng = np.random.default_rng(5)
    tables: list[tuple[Cells, ...]] = [
        (gen.line(64),),
        (gen.labels(40),),
        (gen.line(12), gen.line(12)),
        (gen.labels(30), gen.line(10)),
        (gen.labels(20), gen.labels(9)),
    ]
    ratios = []
    for cells in tables:
        network = Network.of(cells)
        noise = rng.laplace(size=(6, network.cells))
        noise -= noise.mean(axis=1, keepdims=True)
        true = float(np.mean(transport_loss(noise, np.zeros_like(noise), network)))
        ratios.append(true / noise_costs(cells, [tuple(range(len(cells)))])[0])
    assert max(ratios) < 3 * min(ratios)
