"""The solver for lines against the one for any network, against all potentials there are, and with broken answers."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import generators as gen
from certsynth.base.arrays import read_only
from certsynth.transport import Network, flow
from certsynth.transport.flow import Flow, cheapest_flow, flow_cost, potential_value
from certsynth.transport.line import solve_line

Line = tuple[list[int | None], int, list[int]]


def network_of(steps: list[int | None], hub: int) -> Network:
    """Nodes one after the other, some with an arc to the next, all with one to the hub."""
    nodes = len(steps) + 1
    arcs = [(i, i + 1, step) for i, step in enumerate(steps) if step is not None]
    arcs += [(i, nodes, hub) for i in range(nodes)]
    both_ways = sorted(arcs + [(head, tail, length) for tail, head, length in arcs])
    tails, heads, lengths = (read_only(np.array(part, dtype=np.int64)) for part in zip(*both_ways, strict=True))
    return Network(
        tails=tails, heads=heads, lengths=lengths, node_of_cell=read_only(np.arange(nodes)), nodes=nodes + 1, unit=1,
        hub=hub, stretch=Fraction(1),
    )  # fmt: skip


@st.composite
def lines(draw: st.DrawFn, nodes: int = 30, hub: int = 200, bits: int = 56) -> Line:
    """Steps short and long beside the hub, or none; masses small, huge, or 0."""
    count = draw(st.integers(1, nodes))
    longest = draw(st.sampled_from([1, 3, 50, 10**6]))
    largest = draw(st.sampled_from([1, 3, 2 ** (bits // 2), 2**bits]))
    steps = st.lists(st.none() | st.integers(0, longest), min_size=count - 1, max_size=count - 1)
    masses = st.lists(st.just(0) | st.integers(-largest, largest), min_size=count, max_size=count)
    return draw(steps), draw(st.integers(1, hub)), draw(masses)


def proved(network: Network, measure: np.ndarray, solver: Any) -> tuple[int | None, int | None]:
    supply = network.supply(measure)
    found, potentials = solver(network, supply)
    return flow_cost(network, supply, found), potential_value(network, supply, potentials)


def without_other_solvers(network: Network, measure: np.ndarray) -> Flow:
    def asked(network: Network, supply: np.ndarray, **_: Any) -> Any:
        raise AssertionError("another solver was asked")

    with pytest.MonkeyPatch.context() as others:
        for name in ("solve_priced", "solve_until", "solve", "solve_fallback"):
            others.setattr(flow, name, asked)
        return cheapest_flow(network, measure)


@settings(max_examples=300, deadline=None)
@given(lines())
@example(([], 5, [3]))
@example(([None, None], 5, [3, 0, -2]))
@example(([1] * 3, 5, [0, 0, 0, 0]))
@example(([0] * 3, 5, [2, -1, 4, -9]))
@example(([1, 2], 2**20, [2**60, -(2**60) + 2, -1]))
@example(([1, 2], 1, [-(2**60), 2**59, 2**59 - 1]))
@example(([9, 10, 11, None], 5, [1, -1, 1, -1, 1]))
def test_a_line_is_solved_and_proved_without_another_solver(case: Line) -> None:
    steps, hub, masses = case
    network, measure = network_of(steps, hub), np.array(masses, dtype=np.int64)
    cost, value = proved(network, measure, flow.solve)
    assert cost == value
    assert proved(network, measure, solve_line) == (cost, cost)
    assert without_other_solvers(network, measure) == Flow(upper=cost, lower=cost)


@settings(max_examples=60, deadline=None)
@given(lines(nodes=5, hub=3))
def test_no_potentials_are_better(case: Line) -> None:
    steps, hub, masses = case
    f = np.array(list(itertools.product(range(-hub, hub + 1), repeat=len(masses))), dtype=object)
    allowed = np.ones(len(f), dtype=bool)
    for i, step in enumerate(steps):
        allowed &= np.abs(f[:, i + 1] - f[:, i]) <= (2 * hub if step is None else step)
    best = max(f[allowed] @ np.array(masses, dtype=object))
    assert proved(network_of(steps, hub), np.array(masses, dtype=np.int64), solve_line) == (best, best)


@pytest.mark.parametrize("hub", [None, Fraction(5, 7), Fraction(1)])
def test_single_columns_are_lines(hub: Fraction | None) -> None:
    """Even or not, with holes, with points apart, and of hundreds of values."""
    columns = [gen.line(1), gen.lattice(554), gen.holes([0, 1, 7, 9], 9), gen.merged(gen.lattice(40)), gen.labels(1)]
    if hub is None:
        columns += [gen.lattice(7, missing=True), gen.labels(4), gen.light(6, missing=True)]
    rng = np.random.default_rng(1)
    for column in columns:
        network = Network.of((column,), hub=hub)
        for measure in (
            np.rint(rng.laplace(size=column.size) * 2**44).astype(np.int64),
            np.diff(rng.integers(0, 2, size=column.size + 1)),
        ):
            cost, _ = proved(network, measure, flow.solve)
            assert without_other_solvers(network, measure) == Flow(upper=cost, lower=cost)


@pytest.mark.parametrize(
    ("columns", "hub"),
    [
        ([gen.line(2), gen.line(2)], None),
        ([gen.line(3), gen.labels(2)], None),
        ([gen.codes(5)], None),
        ([gen.line(1, missing=True)], Fraction(1)),
        ([gen.line(3, missing=True)], Fraction(1)),
        ([gen.Cells(places=np.arange(78), steps=256, off_line=1, weight=Fraction(3, 10))], None),
    ],
)
def test_other_networks_are_left_to_others(columns: list[gen.Cells], hub: Fraction | None) -> None:
    network = Network.of(columns, hub=hub)
    measure = np.arange(network.cells)
    with pytest.raises(ValueError, match="not a line"):
        solve_line(network, network.supply(measure))
    assert cheapest_flow(network, measure).optimal


def shorter(network: Network, supply: np.ndarray) -> Any:
    """Right on a line whose steps are all shorter by one."""
    inner = np.maximum(network.tails, network.heads) < network.nodes - 1
    return solve_line(dataclasses.replace(network, lengths=network.lengths - inner), supply)


def nearer(network: Network, supply: np.ndarray) -> Any:
    """Right for a hub that is nearer by one."""
    return solve_line(dataclasses.replace(network, hub=network.hub - 1), supply)


def loses_a_unit(network: Network, supply: np.ndarray) -> Any:
    found, potentials = solve_line(network, supply)
    found[np.argmax(found)] -= 1
    return found, potentials


def not_steep_enough(network: Network, supply: np.ndarray) -> Any:
    found, potentials = solve_line(network, supply)
    return found, potentials - np.sign(potentials)


@pytest.mark.parametrize("broken", [shorter, nearer, loses_a_unit, not_steep_enough])
def test_a_broken_answer_is_refused_and_the_next_solver_asked(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    network = network_of([int(step) for step in rng.integers(2, 9, size=39)], 30)
    measures = [np.rint(rng.laplace(size=40) * 1000).astype(np.int64) for _ in range(5)]
    truths = [cheapest_flow(network, measure) for measure in measures]
    asked = []
    honest = flow.solve_until
    monkeypatch.setattr(flow, "solve_line", broken)
    monkeypatch.setattr(flow, "solve_until", lambda *question, **how: (asked.append(1), honest(*question, **how))[1])
    assert [cheapest_flow(network, measure) for measure in measures] == truths
    assert len(asked) == len(measures)
