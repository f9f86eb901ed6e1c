"""Flows that are cheap enough are found, and optimal ones where nothing else is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import generators as gen
from certsynth.domain import Cells
from certsynth.transport import Network, simplex
from certsynth.transport.flow import cheapest_flow, flow_cost, potential_value
from certsynth.transport.simplex import solve_until


def square(size: int) -> list[Cells]:
    return [gen.spaced(size), gen.spaced(size)]


UNEQUAL = [gen.spaced(7), gen.spaced(20, off_line=1)]


@pytest.fixture
def no_limit(monkeypatch):
    monkeypatch.setattr(simplex, "MAX_PIVOTS_PER_NODE", 10**6)


def random_supply(rng: np.random.Generator, network: Network, *, zeros: float = 0.5) -> np.ndarray:
    """Many places without mass, and equal masses: ties at every step."""
    measure = rng.integers(-3, 4, size=network.cells) * (rng.random(network.cells) > zeros)
    return network.supply(measure.astype(np.int64))


def test_without_a_limit_it_finds_the_optimum_and_its_proof(no_limit) -> None:
    rng, tried = np.random.default_rng(1), 0
    shapes = [*gen.HARD_SHAPES.values(), *(gen.random_shape(rng, columns=1 + i % 3, most_cells=60) for i in range(60))]
    for shape in [*shapes, square(12), UNEQUAL]:
        network = Network.of(shape)
        for zeros in (0.0, 0.5, 0.9):
            supply = random_supply(rng, network, zeros=zeros)
            try:
                flow, potentials = solve_until(network, supply, 0)
            except ValueError:  # a network that is not two-way
                continue
            cost = flow_cost(network, supply, flow)
            assert cost == gen.least_cost(network, supply)
            assert cost == 0 or potential_value(network, supply, potentials) == cost
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("shape", [square(16), UNEQUAL], ids=["square", "unequal"])
def test_it_stops_where_a_flow_is_cheap_enough(shape, no_limit) -> None:
    rng, network, early = np.random.default_rng(2), Network.of(shape), 0
    for _ in range(10):
        supply = random_supply(rng, network)
        best = gen.least_cost(network, supply)
        for share in (Fraction(11, 10), Fraction(3, 2), Fraction(3)):
            enough = int(best * share)
            cost = flow_cost(network, supply, solve_until(network, supply, enough)[0])
            assert cost is not None
            assert best <= cost <= enough
            early += cost > best
    assert early > 20


def test_after_so_many_steps_it_returns_the_flow_that_it_has(monkeypatch) -> None:
    rng, network = np.random.default_rng(3), Network.of(square(16))
    supply = random_supply(rng, network)
    costs = []
    for most in (0, 1, 10):
        monkeypatch.setattr(simplex, "MAX_PIVOTS_PER_NODE", most)
        flow, potentials = solve_until(network, supply, 0)
        costs.append(flow_cost(network, supply, flow))
        proved = potential_value(network, supply, potentials)
        assert proved is None or proved <= costs[-1]
    assert costs[0] == network.hub * np.abs(supply[:-1]).sum() > costs[1] > costs[2] == gen.least_cost(network, supply)


def test_one_way_networks_and_nodes_without_a_hub_are_left_to_others() -> None:
    light = [gen.spaced(9), Cells(places=np.arange(0), steps=1, off_line=3, weight=Fraction(1, 3))]
    network = Network.of(light)
    with pytest.raises(ValueError, match="not symmetric"):
        solve_until(network, network.supply(np.zeros(network.cells, dtype=np.int64)), 0)


def test_arcs_are_mixed_but_all_there() -> None:
    for network in (Network.of(square(9)), Network.of(UNEQUAL), Network.of(square(1))):
        there, back = simplex._pair_arcs(network.tails, network.heads, network.lengths, network.nodes)
        assert sorted([*there, *back]) == list(range(len(network.tails)))
        assert (network.tails[there] == network.heads[back]).all()
        assert (network.heads[there] == network.tails[back]).all()
        assert (network.tails[there[: network.nodes - 1]] == np.arange(network.nodes - 1)).all()


def test_what_is_enough_is_a_flow_that_was_checked(monkeypatch) -> None:
    """A flow that says it is cheap, and is none, is not believed: the optimum is looked for."""
    rng, network = np.random.default_rng(4), Network.of(square(10))
    measure = random_supply(rng, network)[:-1]
    best = cheapest_flow(network, measure)
    assert best.optimal
    early = cheapest_flow(network, measure, enough=2 * best.upper)
    assert best.upper < early.upper <= 2 * best.upper
    assert early.lower <= best.upper
    nothing = np.zeros(len(network.tails), dtype=np.int64), np.zeros(network.nodes, dtype=np.int64)
    monkeypatch.setattr("certsynth.transport.flow.solve_until", lambda *_, **__: nothing)
    assert cheapest_flow(network, measure, enough=2 * best.upper) == best
