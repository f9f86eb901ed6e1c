"""Paths that are added in rounds lead to the cheapest flow, and to its proof."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import generators as gen
from certsynth.domain import Cells
from certsynth.transport import Network, flow, pricing
from certsynth.transport.flow import cheapest_flow, flow_cost, potential_value
from certsynth.transport.pricing import solve_priced

SHAPES = {
    "square": [gen.spaced(24), gen.spaced(24)],
    "unequal steps": [gen.spaced(7), gen.spaced(40, off_line=1)],
    "three columns": [gen.spaced(6), gen.spaced(7), gen.spaced(8)],
    "labels and a line": [Cells(places=np.arange(0), steps=1, off_line=6), gen.spaced(30)],
    "far hub": [gen.spaced(9, off_line=2), gen.spaced(12)],
}


anywhere = partial(solve_priced, near=math.inf)
"""On small networks nothing is near."""


def differing(rng: np.random.Generator, network: Network, share: float, most: int = 3) -> np.ndarray:
    """Supplies of few nodes, with ties at every step if the masses are small."""
    measure = rng.integers(-most, most + 1, size=network.cells) * (rng.random(network.cells) < share)
    return network.supply(measure.astype(np.int64))


def assert_solved(network: Network, supply: np.ndarray) -> None:
    found, potentials = anywhere(network, supply)
    assert flow_cost(network, supply, found) == potential_value(network, supply, potentials)
    assert flow_cost(network, supply, found) == gen.least_cost(network, supply)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_cheapest_flow_is_found_and_proved(shape: list[Cells], share: float) -> None:
    rng, network = np.random.default_rng(1), Network.of(shape)
    for most in (1, 3, 10**6):
        for _ in range(4):
            assert_solved(network, differing(rng, network, share, most))


def test_it_is_found_and_proved_on_every_network_that_leads_both_ways() -> None:
    rng, tried = np.random.default_rng(2), 0
    shapes = [*gen.HARD_SHAPES.values(), *(gen.random_shape(rng, columns=1 + i % 3, most_cells=60) for i in range(80))]
    for shape in shapes:
        network = Network.of(shape, hub=None if tried % 2 else Fraction(1))
        supply = differing(rng, network, 0.3)
        try:
            anywhere(network, supply)
        except ValueError:  # some way leads nowhere back
            continue
        assert_solved(network, supply)
        tried += 1
    assert tried > 60


@pytest.mark.parametrize("places", [[3], [3, 100], [3, -100]], ids=["one", "two", "both signs"])
def test_masses_that_are_far_apart_are_left_to_others(places: list[int]) -> None:
    network = Network.of(SHAPES["square"])
    measure = np.zeros(network.cells, dtype=np.int64)
    measure[np.abs(places)] = np.sign(places)
    supply = network.supply(measure)
    assert cheapest_flow(network, measure).optimal
    with pytest.raises(ValueError, match="far apart"):
        solve_priced(network, supply)


def test_ways_through_the_hub_and_long_ones_are_found_beside_short_ones() -> None:
    """Lists of arcs must grow to hold the long ones."""
    rng, network = np.random.default_rng(7), Network.of([gen.spaced(200), gen.spaced(200)])
    measure = np.zeros((200, 200), dtype=np.int64)
    measure[0, 0], measure[-1, -2:], measure[100, 100] = 50, -20, 3
    places = rng.integers(0, 199, (2, 2_000))
    np.add.at(measure, tuple(places), 1)
    np.add.at(measure, (places[0], places[1] + 1), -1)
    assert_solved(network, network.supply(measure.ravel()))


@pytest.mark.parametrize("shape", [SHAPES["square"], SHAPES["unequal steps"]], ids=["square", "unequal"])
def test_it_stops_where_a_flow_is_cheap_enough_and_what_it_proves_by_then_is_true(shape: list[Cells]) -> None:
    rng, network, early = np.random.default_rng(3), Network.of(shape), 0
    for _ in range(10):
        supply = differing(rng, network, 0.5, most=50)
        best = gen.least_cost(network, supply)
        for share in (Fraction(21, 20), Fraction(3, 2)):
            found, potentials = anywhere(network, supply, enough=int(best * share))
            cost, proved = flow_cost(network, supply, found), potential_value(network, supply, potentials)
            assert cost is not None
            assert proved is not None
            assert proved <= best <= cost <= best * share
            early += cost > best
    assert early > 10


def test_after_the_last_round_it_returns_the_flow_that_it_has() -> None:
    rng, network = np.random.default_rng(4), Network.of(SHAPES["square"])
    supply = differing(rng, network, 0.5, most=50)
    arguments = network.tails, network.heads, network.lengths, network.nodes, network.hub, supply, 0.0, math.inf
    slowly = pricing._solve.py_func  # compiled code has the number of rounds in it
    with pytest.MonkeyPatch.context() as few:
        few.setattr(pricing, "MAX_ROUNDS", 1)
        found, potentials = slowly(*arguments)
    cost, proved = flow_cost(network, supply, found), potential_value(network, supply, potentials)
    assert cost is not None
    assert proved is not None
    assert proved < gen.least_cost(network, supply) < cost < network.hub * np.abs(supply[:-1]).sum()


def test_one_way_networks_are_left_to_others() -> None:
    light = [gen.spaced(9), Cells(places=np.arange(0), steps=1, off_line=3, weight=Fraction(1, 3))]
    network = Network.of(light)
    with pytest.raises(ValueError, match="counterpart"):
        anywhere(network, differing(np.random.default_rng(5), network, 0.5))


def test_large_networks_with_little_mass_are_solved_so_and_a_lie_is_not_believed(monkeypatch) -> None:
    rng, network = np.random.default_rng(6), Network.of([gen.spaced(50), gen.spaced(50)])
    few, many = (differing(rng, network, share)[:-1] for share in (0.2, 0.9))
    asked: list[int] = []
    honest = flow.solve_priced
    monkeypatch.setattr(flow, "solve_priced", lambda *a, **k: (asked.append(1), honest(*a, **k))[1])
    want = cheapest_flow(network, few)
    assert want.optimal
    assert asked == [1]
    assert cheapest_flow(network, many).optimal
    assert asked == [1]  # with mass everywhere others are quicker
    nothing = np.zeros(len(network.tails), dtype=np.int64), np.zeros(network.nodes, dtype=np.int64)
    monkeypatch.setattr(flow, "solve_priced", lambda *_, **__: nothing)
    assert cheapest_flow(network, few) == want
    assert want.upper <= cheapest_flow(network, few, enough=2 * want.upper).upper <= 2 * want.upper
