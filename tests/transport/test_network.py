"""Graph distances against the metric: never below it, equal to it where the network says so."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra, floyd_warshall

import generators as gen
import oracles
from certsynth.transport import Network
from certsynth.transport import network as module
from certsynth.transport.network import lattice_offsets

HUBS = (None, Fraction(3, 4), Fraction(1))


def graph_distances(network: Network) -> np.ndarray:
    """Shortest ways between the cells, in units of the network."""
    arcs = coo_array((network.lengths, (network.tails, network.heads)), shape=(network.nodes,) * 2)
    found = dijkstra(arcs.tocsr(), indices=network.node_of_cell)
    return found[:, network.node_of_cell]


def ratios(network: Network, shape: gen.Shape) -> tuple[Fraction, Fraction]:
    """Least and largest ratio of graph distance to distance, over all pairs of different cells."""
    true = oracles.metric(shape) * network.unit
    found = graph_distances(network)
    pairs = [
        Fraction(int(found[i, j])) / true[i, j] for i, j in itertools.permutations(range(len(true)), 2) if true[i, j]
    ]
    return (min(pairs), max(pairs)) if pairs else (Fraction(1), Fraction(1))


def random_shapes(seed: int, count: int, *, most_cells: int = 64) -> list[tuple[gen.Cells, ...]]:
    rng = np.random.default_rng(seed)
    return [gen.random_shape(rng, columns=1 + i % 3, most_cells=most_cells) for i in range(count)]


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("name", gen.HARD_SHAPES)
def test_hard_spaces_have_graph_distances_within_the_stretch(name: str, hub: Fraction | None) -> None:
    shape = gen.HARD_SHAPES[name]
    network = Network.of(shape, hub=hub)
    least, most = ratios(network, shape)
    assert least == 1 or gen.size(shape) == 1
    assert most <= network.stretch
    assert network.stretch == 1 or name == "three unequal steps"


def test_random_spaces_have_graph_distances_within_the_stretch() -> None:
    pairs = 0
    for shape in random_shapes(1, 150):
        network = Network.of(shape)
        least, most = ratios(network, shape)
        assert least >= 1
        assert most <= network.stretch
        assert network.stretch == 1 or len(shape) == 3
        pairs += gen.size(shape) * (gen.size(shape) - 1)
    assert pairs > 40_000


@pytest.mark.parametrize("steps", [(2, 3, 5), (4, 5, 6), (2, 7, 8), (3, 3, 7)])
def test_three_unequal_lines_are_within_the_stretch(steps: tuple[int, int, int]) -> None:
    shape = tuple(gen.lattice(n, missing=n == 3) for n in steps)
    network = Network.of(shape)
    least, most = ratios(network, shape)
    assert least == 1
    assert 1 < most <= network.stretch


@pytest.mark.slow
def test_larger_random_spaces_have_graph_distances_within_the_stretch() -> None:
    for shape in random_shapes(2, 60, most_cells=350):
        network = Network.of(shape)
        least, most = ratios(network, shape)
        assert least >= 1
        assert most <= network.stretch


def test_a_far_hub_is_no_detour_between_layers() -> None:
    """A hub at 1 bounds |f| by 1; two categories stay at distance 1, not 2."""
    network = Network.of((gen.labels(2),), hub=Fraction(1))
    assert graph_distances(network)[0, 1] == network.unit


def test_the_comparison_sees_a_short_cut() -> None:
    """Control: the hub of an invalid reading (half of w < 1, shared by all numeric values) is caught."""
    shape = gen.HARD_SHAPES["category by line"]
    network = Network.of(shape)
    at_hub = (network.tails == network.nodes - 1) | (network.heads == network.nodes - 1)
    teleport = replace(network, lengths=np.where(at_hub, network.hub // 2, network.lengths))
    assert ratios(teleport, shape)[0] < 1


def test_the_comparison_sees_a_missing_arc() -> None:
    """Control: without diagonal arcs a square is not exact."""
    shape = (gen.line(4), gen.line(4))
    network = Network.of(shape)
    cell = np.unravel_index(np.arange(16), (4, 4))
    inside = (network.tails < 16) & (network.heads < 16)
    tail, head = network.tails[inside], network.heads[inside]
    diagonal = np.zeros(len(network.tails), bool)
    diagonal[inside] = (cell[0][tail] != cell[0][head]) & (cell[1][tail] != cell[1][head])
    poorer = replace(
        network,
        tails=network.tails[~diagonal],
        heads=network.heads[~diagonal],
        lengths=network.lengths[~diagonal],
    )
    assert ratios(poorer, shape)[1] > 1


def test_a_hub_closer_than_half_the_diameter_is_refused() -> None:
    with pytest.raises(ValueError, match="half the diameter"):
        Network.of((gen.labels(2),), hub=Fraction(2, 5))


def test_the_default_hub_is_half_the_diameter() -> None:
    for shape in [*gen.HARD_SHAPES.values(), *random_shapes(3, 40)]:
        network = Network.of(shape)
        assert Fraction(network.hub, network.unit) == oracles.diameter(shape) / 2


def test_arcs_are_sorted_symmetric_and_single() -> None:
    for shape in [*gen.HARD_SHAPES.values(), *random_shapes(4, 40)]:
        for hub in HUBS:
            network = Network.of(shape, hub=hub)
            arcs = list(zip(network.tails.tolist(), network.heads.tolist(), network.lengths.tolist(), strict=True))
            assert [arc[:2] for arc in arcs] == sorted({arc[:2] for arc in arcs})
            assert {(head, tail, length) for tail, head, length in arcs} == set(arcs)
            assert all(length > 0 for *_, length in arcs) or oracles.diameter(shape) == 0


def test_every_cell_has_a_node_of_its_own_and_the_hub_balances() -> None:
    rng = np.random.default_rng(5)
    for shape in [*gen.HARD_SHAPES.values(), *random_shapes(5, 40)]:
        network = Network.of(shape, hub=Fraction(1))
        nodes = network.node_of_cell
        assert network.cells == gen.size(shape)
        assert len(set(nodes.tolist())) == len(nodes)
        assert nodes.min() >= 0
        assert nodes.max() < network.nodes - 1
        measure = rng.integers(-9, 10, size=network.cells)
        supply = network.supply(measure)
        assert supply.sum() == 0
        assert np.array_equal(supply[nodes], measure)
        assert np.count_nonzero(supply[:-1]) == np.count_nonzero(measure)


# ------------------------------------------------------------ moves on a lattice


def cheapest_by_moves(moves: list[tuple[int, ...]], spans: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    """Cost of reaching each point of a box from its corner by the moves, going only away from it; point by point."""
    cost = np.full([span + 1 for span in spans], math.inf)
    cost[(0,) * len(spans)] = 0
    for point in itertools.product(*(range(span + 1) for span in spans)):
        for move in moves:
            before = tuple(p - m for p, m in zip(point, move, strict=True))
            if min(before) >= 0:
                length = max(m * s for m, s in zip(move, steps, strict=True))
                cost[point] = min(cost[point], cost[before] + length)
    return cost


def distances_from_corner(spans: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    return np.max([i * s for i, s in zip(np.indices([n + 1 for n in spans]), steps, strict=True)], axis=0)


PAIRS_OF_STEPS = [*itertools.product(range(1, 15), repeat=2), (15, 22), (21, 34), (30, 7), (1, 40), (17, 16)]


def test_moves_on_two_lines_are_exact_for_any_steps() -> None:
    for steps in PAIRS_OF_STEPS:
        spans = (9, 9)
        moves, stretch = lattice_offsets(spans, steps)
        assert stretch == 1
        assert np.array_equal(cheapest_by_moves(moves, spans, steps), distances_from_corner(spans, steps)), steps


def test_moves_are_exact_on_boxes_of_any_spans() -> None:
    for spans in itertools.product((1, 2, 5, 12), repeat=2):
        for steps in [(1, 1), (2, 1), (3, 2), (5, 7), (8, 13), (1, 6)]:
            moves, stretch = lattice_offsets(spans, steps)
            assert stretch == 1
            assert np.array_equal(cheapest_by_moves(moves, spans, steps), distances_from_corner(spans, steps))


def test_leaving_out_any_move_is_seen() -> None:
    """Control, and thrift: every move of the Hilbert bases is needed."""
    spans, steps = (7, 11), (7, 5)
    moves, _ = lattice_offsets(spans, steps)
    assert len(moves) > 4
    for move in moves:
        fewer = [m for m in moves if m != move]
        assert not np.array_equal(cheapest_by_moves(fewer, spans, steps), distances_from_corner(spans, steps)), move


@pytest.mark.parametrize(("spans", "steps"), [((9, 9), (7, 8)), ((12, 10), (10, 12)), ((6, 13), (13, 6))])
@pytest.mark.parametrize("most", [2, 3, 4, 6])
def test_a_capped_set_of_moves_says_what_it_costs(
    monkeypatch: pytest.MonkeyPatch, spans: tuple[int, int], steps: tuple[int, int], most: int
) -> None:
    monkeypatch.setattr(module, "MAX_OFFSETS", most)
    moves, stretch = lattice_offsets(spans, steps)
    assert len(moves) == most
    true = distances_from_corner(spans, steps)
    found = cheapest_by_moves(moves, spans, steps)
    worst = max(Fraction(int(f), int(t)) for f, t in zip(found.ravel()[1:], true.ravel()[1:], strict=True))
    assert stretch == worst


@pytest.mark.parametrize("most", [2, 3, 5])
def test_a_capped_network_is_never_below_the_metric_nor_above_the_stretch(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(module, "MAX_OFFSETS", most)
    stretched = 0
    for shape in [
        (gen.lattice(7), gen.lattice(8)),
        (gen.lattice(5, missing=True), gen.lattice(7)),
        (gen.holes([0, 2, 5, 9], 10), gen.lattice(9, missing=True)),
        (gen.lattice(4), gen.labels(2), gen.lattice(7)),
    ]:
        network = Network.of(shape)
        least, largest = ratios(network, shape)
        assert least == 1
        assert largest <= network.stretch
        stretched += largest > 1
    assert stretched  # else nothing was tested


def test_three_unequal_steps_say_what_they_cost() -> None:
    for steps in [(1, 2, 3), (2, 3, 5), (1, 1, 7), (4, 5, 6), (3, 3, 5)]:
        spans = (4, 5, 3)
        moves, stretch = lattice_offsets(spans, steps)
        found, true = cheapest_by_moves(moves, spans, steps), distances_from_corner(spans, steps)
        worst = max(Fraction(int(f), int(t)) for f, t in zip(found.ravel()[1:], true.ravel()[1:], strict=True))
        assert stretch == worst


def test_nearly_equal_fine_steps_stay_within_few_arcs() -> None:
    """255 and 256 steps to the unit: 40 moves to an orthant, and the loss of exactness is small and said."""
    moves, stretch = lattice_offsets((255, 256), (256, 255))
    assert len(moves) == module.MAX_OFFSETS
    assert 1 < stretch < Fraction(103, 100)


def test_equal_steps_need_the_king_moves_only() -> None:
    for columns in (1, 2, 3, 4):
        moves, stretch = lattice_offsets((5,) * columns, (3,) * columns)
        assert sorted(moves) == sorted(m for m in itertools.product((0, 1), repeat=columns) if any(m))
        assert stretch == 1


def test_another_shortest_path_algorithm_agrees() -> None:
    """The comparison above rests on Dijkstra's: Floyd and Warshall's gives the same."""
    network = Network.of(gen.HARD_SHAPES["three kinds"])
    arcs = coo_array((network.lengths, (network.tails, network.heads)), shape=(network.nodes,) * 2)
    found = floyd_warshall(arcs.tocsr())[np.ix_(network.node_of_cell, network.node_of_cell)]
    assert np.array_equal(found, graph_distances(network))
