"""Flows over all arcs, though few are written down: against the linear program, and with solvers that lie."""

from __future__ import annotations

import numpy as np
import ot  # type: ignore[import-untyped]
import pytest

import certsynth.transport.flow as flow
from certsynth.domain.ruler import UNITS_PER_LENGTH
from certsynth.queries.net import DISTANCE_LEVELS, Net
from certsynth.transport import complete
from certsynth.transport.complete import complete_bounds
from small import EVERY_KIND, workers


def net_and_counts(seed: int, rows: int = 60) -> tuple[Net, np.ndarray, np.ndarray]:
    """Counts at nodes, with some rows at every level and at the hub."""
    rng = np.random.default_rng(seed)
    frame = workers(rows, seed=seed)
    clean = [column.clean(frame[column.name].to_numpy()) for column in EVERY_KIND]
    net = Net.of(EVERY_KIND, (0, 1, 4, 6), clean)
    first, second = np.zeros(net.size, np.int64), np.zeros(net.size, np.int64)
    np.add.at(first, rng.integers(0, net.size, 50), 1)
    np.add.at(second, rng.integers(0, len(net.nodes), 40) * DISTANCE_LEVELS, 1)
    first[-1], second[-1] = seed % 3, (seed + 1) % 3
    return net, first, second


def by_definition(net: Net, first: np.ndarray, second: np.ndarray) -> float:
    """The cheapest way from each entry to each other one: straight, or through the hub."""
    ways = np.tile(net.hub_distances(), len(net.nodes))
    a, b = np.flatnonzero(first), np.flatnonzero(second)
    half, hub = net.ruler.half_diameter, net.size - 1
    cost = np.empty((len(a), len(b)))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            up, down = 0 if x == hub else ways[x], 0 if y == hub else half
            straight = np.inf
            if hub not in (x, y):
                straight = net.ruler.distance(net.nodes[[x // DISTANCE_LEVELS]], net.nodes[[y // DISTANCE_LEVELS]])[0]
            cost[i, j] = min(straight, up + down)
    return float(ot.emd2(first[a] / first.sum(), second[b] / second.sum(), cost / UNITS_PER_LENGTH))


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_over_all_arcs_is_found_and_proved(seed):
    net, first, second = net_and_counts(seed)
    upper, lower, per = complete_bounds(net.ruler, net.nodes, net.hub_distances(), first, second)
    assert upper == lower
    assert upper / per == pytest.approx(by_definition(net, first, second), abs=1e-9)


def lies() -> dict[str, object]:
    honest, rng = flow.solve, np.random.default_rng(3)

    def lazy(network, supply):
        found, potentials = honest(network, supply)
        return found, np.zeros_like(potentials)

    def shifted(network, supply):
        found, potentials = honest(network, supply)
        return np.roll(found, 1), potentials

    def steep(network, supply):
        found, potentials = honest(network, supply)
        return found, 2 * potentials

    def cheap(network, supply):
        found, potentials = honest(network, supply)
        return found // 2, potentials

    def noise(network, supply):
        return rng.integers(-9, 9, len(network.tails)), rng.integers(-UNITS_PER_LENGTH, UNITS_PER_LENGTH, network.nodes)

    def broken(network, supply):
        raise RuntimeError("no answer")

    return {"lazy": lazy, "shifted": shifted, "steep": steep, "cheap": cheap, "noise": noise, "broken": broken}


@pytest.mark.parametrize("lie", sorted(lies()))
def test_bounds_hold_whatever_the_solver_says(monkeypatch, lie):
    liar = lies()[lie]
    monkeypatch.setattr(flow, "solve", liar)
    with monkeypatch.context() as second_too:
        second_too.setattr(flow, "solve_fallback", liar)
        for seed in range(4):
            net, first, second = net_and_counts(seed)
            upper, lower, per = complete_bounds(net.ruler, net.nodes, net.hub_distances(), first, second)
            true = by_definition(net, first, second)
            assert lower / per <= true + 1e-9
            assert upper / per >= true - 1e-9
            assert upper > lower  # never taken for proved
    net, first, second = net_and_counts(0)
    upper, lower, _ = complete_bounds(net.ruler, net.nodes, net.hub_distances(), first, second)
    assert upper == lower  # an honest second solver steps in


def test_potentials_of_some_arcs_alone_would_claim_too_much(monkeypatch):
    """Without pricing all arcs the first flow would count as proved: what the test above sees is not for nothing."""

    def believing(problem, potentials):
        _, supply = complete._network(problem, complete._shortest_arcs(problem))
        return flow.exact_dot(supply, potentials), np.empty(0, np.int64)

    monkeypatch.setattr(complete, "ARCS_PER_NODE", 1)
    wrong = 0
    for seed in range(12):
        net, first, second = net_and_counts(seed)
        with monkeypatch.context() as believed:
            believed.setattr(complete, "_price_arcs", believing)
            _, lower, per = complete_bounds(net.ruler, net.nodes, net.hub_distances(), first, second)
        wrong += lower / per > by_definition(net, first, second) + 1e-9
    assert wrong


def test_tables_that_agree_cost_nothing_and_the_hub_is_a_way():
    net, first, _ = net_and_counts(1)
    first[:-1] = np.where(np.arange(net.size - 1) % DISTANCE_LEVELS, 0, first[:-1])
    assert complete_bounds(net.ruler, net.nodes, net.hub_distances(), first, first)[:2] == (0, 0)
    at_hub = np.zeros_like(first)
    at_hub[-1] = 1
    upper, lower, per = complete_bounds(net.ruler, net.nodes, net.hub_distances(), at_hub, first)
    share = 1 - first[-1] / first.sum()
    assert upper == lower
    assert upper / per == pytest.approx(share * net.ruler.half_diameter / UNITS_PER_LENGTH)
