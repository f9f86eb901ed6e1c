"""Graph distances against the metric: never below it, equal to it where the network says so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import ot  # type: ignore[import-untyped]
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra, floyd_warshall

import generators as gen
import oracles
from certsynth import evaluate
from certsynth.certificate.plug_in import PlugIn, plug_in
from certsynth.domain import Cells, Groups
from certsynth.mechanisms import Budget, Neighbours, Strategy, measure, strategy_named
from certsynth.queries import Marginals
from certsynth.transport import Network, shared_network, transport_bounds, transport_loss
from certsynth.transport import lattice as module
from certsynth.transport.lattice import lattice_offsets
from small import NATIVE, NoNoise, native

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


@pytest.mark.quick_cases(3)
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


def check_arcs(network: Network, shape: Sequence[Cells]) -> None:
    """Arcs are sorted, symmetric and single, and none is for nothing."""
    arcs = list(zip(network.tails.tolist(), network.heads.tolist(), network.lengths.tolist(), strict=True))
    assert [arc[:2] for arc in arcs] == sorted({arc[:2] for arc in arcs})
    assert {(head, tail, length) for tail, head, length in arcs} == set(arcs)
    assert all(length > 0 for *_, length in arcs) or oracles.diameter(shape) == 0


def test_arcs_are_sorted_symmetric_and_single() -> None:
    for shape in [*gen.HARD_SHAPES.values(), *random_shapes(4, 40)]:
        for hub in HUBS:
            network = Network.of(shape, hub=hub)
            check_arcs(network, shape)


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


# ------------------------------------------------------------ groups: cells that are not evenly spaced


def grouped(lattice: gen.Cells, starts: list[int]) -> Groups:
    return Groups.of(lattice, np.array(starts, np.int64))


GROUPED: dict[str, tuple[gen.Cells, ...]] = {
    "one group": (grouped(gen.lattice(5), [0]),),
    "one line": (grouped(gen.lattice(9), [0, 1, 2, 7]),),
    "one line that may be missing": (grouped(gen.lattice(9, missing=True), [0, 4, 5, 6]),),
    "categories as groups": (grouped(gen.labels(3), []),),
    "a point and a missing value": (grouped(gen.line(1, missing=True), [0]),),
    "two lines": (grouped(gen.lattice(9), [0, 1, 2, 7]), grouped(gen.lattice(7), [0, 3, 4, 5])),
    "groups by even cells": (grouped(gen.lattice(12), [0, 1, 6, 7, 12]), gen.line(4)),
    "groups by categories": (grouped(gen.lattice(6), [0, 1, 5]), gen.labels(3)),
    "groups by groups of categories": (grouped(gen.lattice(6, missing=True), [0, 1, 5]), grouped(gen.labels(3), [])),
    "both may be missing": (
        grouped(gen.lattice(6, missing=True), [0, 2, 3]),
        grouped(gen.lattice(10, missing=True), [0, 8, 9]),
    ),
    "three lines": (
        grouped(gen.lattice(8), [0, 1, 5]),
        grouped(gen.lattice(7), [0, 4, 6]),
        grouped(gen.lattice(5), [0, 1, 2]),
    ),
    "three kinds": (grouped(gen.lattice(8, missing=True), [0, 1, 6]), gen.labels(2), grouped(gen.lattice(5), [0, 4])),
}


def random_groups(rng: np.random.Generator, columns: int) -> tuple[gen.Cells, ...]:
    """Columns with groups of random widths, now and then one without; at most about 60 cells together."""
    most = {1: 12, 2: 7, 3: 4}[columns]
    made = []
    for _ in range(columns):
        column = gen.random_column(rng, most=3 * most)
        line = len(column.places)
        cuts = 1 + rng.permutation(max(line - 1, 0))[: int(rng.integers(0, most - 1))]
        starts = np.append(0, np.sort(cuts))[:line]
        apart = min(column.off_line, 3)
        made.append(Groups.of(replace(column, off_line=apart), starts))
    if columns > 1 and rng.random() < 0.3:
        made[0] = gen.random_column(rng, most=most)
    return tuple(made)


def lines(shape: gen.Shape) -> int:
    return max(1, sum(len(c.places) > 1 for c in shape))


def cheapest(first: np.ndarray, second: np.ndarray, shape: gen.Shape) -> float:
    """W1 by another solver, on the true metric."""
    return float(ot.emd2(first / first.sum(), second / second.sum(), oracles.metric(shape).astype(float)))


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("name", GROUPED)
def test_groups_have_graph_distances_within_the_stretch(name: str, hub: Fraction | None) -> None:
    shape = GROUPED[name]
    network = Network.of(shape, hub=hub)
    least, most = ratios(network, shape)
    assert least == 1
    assert most <= network.stretch == lines(shape)


def test_random_groups_have_graph_distances_within_the_stretch() -> None:
    rng = np.random.default_rng(11)
    stretched = 0
    for i in range(60):
        shape = random_groups(rng, 1 + i % 3)
        network = Network.of(shape)
        least, most = ratios(network, shape)
        assert least >= 1
        assert most <= network.stretch <= lines(shape)
        assert most == 1 or lines(shape) > 1
        stretched += most > 1
    assert stretched > 5  # else more could be said, and the bound were not tested


def test_neighbours_are_joined_by_arcs_of_their_true_distance() -> None:
    shape = GROUPED["two lines"]
    network = Network.of(shape)
    found, true = graph_distances(network), oracles.metric(shape) * network.unit
    cells = oracles.all_cells(shape)
    for (i, a), (j, b) in itertools.permutations(enumerate(cells), 2):
        if max(abs(x - y) for x, y in zip(a, b, strict=True)) == 1:
            assert found[i, j] == true[i, j]


@pytest.mark.parametrize("name", GROUPED)
def test_transport_between_groups_costs_at_least_w1_and_at_most_the_stretch_of_it(name: str) -> None:
    shape = GROUPED[name]
    rng = np.random.default_rng(12)
    network = Network.of(shape)
    for _ in range(4):
        first, second = (gen.random_counts(rng, gen.size(shape), rows) for rows in (60, 35))
        true = cheapest(first, second, shape)
        upper, lower, per = transport_bounds(network, first, second)
        assert upper == lower
        shares = [counts / counts.sum() for counts in (first, second)]
        for found in (upper / per, float(transport_loss(shares[0], shares[1], network))):
            assert found >= true - 1e-9
            assert found <= true * float(network.stretch) + 1e-9


def test_transport_between_random_groups_is_within_the_stretch_and_exact_on_one_line() -> None:
    rng = np.random.default_rng(13)
    dearer = 0
    for i in range(45):
        shape = random_groups(rng, 1 + i % 3)
        network = Network.of(shape, hub=HUBS[i % 2])
        first, second = (gen.random_counts(rng, gen.size(shape), 50) for _ in range(2))
        true = cheapest(first, second, shape)
        found = float(transport_loss(first / 50, second / 50, network))
        assert true - 1e-9 <= found <= true * float(network.stretch) + 1e-9
        if lines(shape) == 1:
            assert found == pytest.approx(true, abs=1e-9)
        dearer += found > true + 1e-6
    assert dearer > 3  # else the upper bound were not tested


@pytest.mark.parametrize("name", ["one line", "one line that may be missing", "two lines", "three kinds"])
def test_groups_of_unequal_masses_cost_what_lipschitz_functions_say_up_to_the_stretch(name: str) -> None:
    shape = GROUPED[name]
    rng = np.random.default_rng(14)
    for hub in (None, Fraction(1)):
        network = Network.of(shape, hub=hub)
        for _ in range(3):
            measure = gen.random_signed(rng, gen.size(shape))
            true, _ = oracles.lipschitz_supremum(measure, oracles.metric(shape), Fraction(network.hub, network.unit))
            found = float(transport_loss(measure, 0 * measure, network))
            assert true - 1e-7 <= found <= true * float(network.stretch) + 1e-7


def test_one_line_of_groups_is_the_area_between_distribution_functions() -> None:
    rng = np.random.default_rng(15)
    for _ in range(20):
        line = Groups.of(gen.lattice(40), np.append(0, 1 + np.sort(rng.permutation(40)[:9])))
        first, second = gen.random_counts(rng, 10, 30), gen.random_counts(rng, 10, 45)
        upper, lower, per = transport_bounds(Network.of((line,)), first, second)
        assert Fraction(upper, per) == Fraction(lower, per) == oracles.wasserstein_on_a_line(first, second, line)


def test_groups_taken_for_even_cells_would_cost_too_little() -> None:
    """Control: with one length for all arcs, as on a lattice, the cost falls below W1."""
    shape = (grouped(gen.lattice(9), [0, 1, 2, 3]),)  # at 0, 1/9, 2/9 and 6/9
    even = (gen.Cells(places=np.arange(4), steps=9, off_line=0),)
    first, second = np.array([0, 0, 1, 0]), np.array([0, 0, 0, 1])
    assert cheapest(first, second, shape) == pytest.approx(4 / 9)
    assert float(transport_loss(first / 1, second / 1, Network.of(shape))) == pytest.approx(4 / 9)
    assert float(transport_loss(first / 1, second / 1, Network.of(even))) == pytest.approx(1 / 9)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_groups_of_single_points_cost_what_their_lattice_costs(columns: int) -> None:
    """Equal steps: the moves of a king are exact, though the network of groups does not know."""
    rng = np.random.default_rng(16)
    lattice = gen.lattice(3, missing=True)
    points = Groups.of(lattice, np.arange(4))
    plain, fancy = Network.of((lattice,) * columns), Network.of((points,) * columns)
    assert (plain.stretch, fancy.stretch) == (1, columns)
    first, second = (gen.random_counts(rng, 5**columns, 40) for _ in range(2))
    costs = [transport_bounds(network, first, second) for network in (plain, fancy)]
    assert Fraction(costs[0][0], costs[0][2]) == Fraction(costs[1][0], costs[1][2])


def test_networks_of_groups_are_as_tidy_as_others() -> None:
    rng = np.random.default_rng(17)
    for shape in [*GROUPED.values(), *(random_groups(rng, 1 + i % 3) for i in range(20))]:
        for hub in HUBS:
            network = Network.of(shape, hub=hub)
            check_arcs(network, shape)
            assert sorted(set(network.node_of_cell.tolist())) == sorted(network.node_of_cell.tolist())
            assert network.cells == gen.size(shape)
            assert hub or Fraction(network.hub, network.unit) == oracles.diameter(shape) / 2


# ------------------------------------------------------------ certificates from counts in groups

STARTS = {"a": [0, 1, 4], "b": [0, 3], "c": []}


def in_groups(starts: dict[str, list[int]], sparsity: int) -> Marginals:
    cells = tuple(grouped(column.detail(), starts[column.name]) for column in NATIVE)
    return Marginals(cells=cells, subsets=tuple(itertools.combinations(range(3), sparsity)))


def certified(marginals: Marginals, strategy: Strategy) -> tuple[dict[str, PlugIn], dict[tuple[str, ...], float]]:
    """Certificates of one table for another, counted without noise, and the true losses."""
    frame, other = native(60), native(40, seed=9)
    clean, synthetic = ([column.clean(f[column.name].to_numpy()) for column in NATIVE] for f in (frame, other))
    codes = [c.to_cells(x, cells) for c, x, cells in zip(NATIVE, clean, marginals.cells, strict=True)]
    measured = measure(marginals.count([codes]), strategy, budget=Budget(Fraction(400)), noise=NoNoise())
    made = plug_in([measured], NATIVE, synthetic, beta=Fraction(1, 5), draws=20, seed=1)
    sparsity = len(marginals.subsets[0])
    return dict(made), {s.columns: s.upper for s in evaluate(frame, other, NATIVE, sparsity=sparsity).subsets}


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("mechanism", ["identity", "haar", "haar-weighted", "quad-tree"])
@pytest.mark.parametrize("sparsity", [1, 2, 3])
def test_certificates_from_counts_in_groups_hold_without_their_noise_term(
    sparsity: int, mechanism: str, neighbours: Neighbours
) -> None:
    """No noise was added: what groups lose, and how far rows are from the counts, must cover the true loss alone."""
    marginals = in_groups(STARTS, sparsity)
    made, true = certified(marginals, strategy_named(mechanism, neighbours=neighbours))
    assert set(made) == {"transport", "path"}
    for certificate in made.values():
        for columns, terms in zip(certificate.subsets, certificate.terms, strict=True):
            widths = {"a": Fraction(1, 6), "b": Fraction(1, 4), "c": Fraction(0)}  # half of 2 of 6, and of 2 of 4 steps
            assert terms.discretisation == pytest.approx(float(max(widths[c] for c in columns)), abs=1e-8)
            assert terms.discretisation + terms.projection >= true[columns] - 1e-9
            assert terms.projection < 1


def test_certificates_from_counts_at_full_detail_are_the_true_loss() -> None:
    """Control: with every value alone and no noise, nothing is lost on one line and its points apart."""
    marginals = in_groups({"a": list(range(7)), "b": list(range(5)), "c": []}, 2)
    made, true = certified(marginals, strategy_named("identity", neighbours=Neighbours.REPLACE_ONE))
    for columns, terms in zip(made["transport"].subsets, made["transport"].terms, strict=True):
        assert terms.discretisation == 0
        stretch = 1 if "c" in columns else 2
        assert true[columns] - 1e-7 <= terms.projection <= stretch * true[columns] + 1e-7


def test_a_shared_network_is_that_of_its_own_cells() -> None:
    """Columns that differ in anything that a network depends on never share one."""
    line = np.arange(4)
    forms = [
        Cells(line, 3, 0),
        Cells(line, 3, 1),
        Cells(line, 6, 0),
        Cells(np.array([0, 1, 2, 4]), 4, 0),
        Cells(line, 3, 0, weight=Fraction(1, 2)),
        Cells(line[:0], 1, 4),
    ]
    pairs = list(itertools.product(forms, repeat=2))
    for cells in [*pairs, *pairs[:3], *reversed(pairs)]:
        shared, own = shared_network(cells), Network.of(cells)
        for name in ("tails", "heads", "lengths", "node_of_cell"):
            assert np.array_equal(getattr(shared, name), getattr(own, name))
        assert (shared.nodes, shared.unit, shared.hub, shared.stretch) == (own.nodes, own.unit, own.hub, own.stretch)
    again = Cells(line.copy(), 3, 0)
    assert shared_network([again, again]) is shared_network([forms[0], forms[0]])
