"""Cheapest flows on a complete bipartite network, exact by column generation: few of its arcs are ever stored.

A flow is found on few arcs. The potentials of its sinks price all other arcs: for every source the cheapest sink is
searched among all of them. That gives the best potentials of the sources, hence a lower bound on the cost over *all*
arcs, whatever the solver returned; and the arcs that were missed. They are added until both bounds are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.ruler import UNITS_PER_LENGTH, Ruler
from certsynth.transport import flow
from certsynth.transport.network import Network

ARCS_PER_NODE = 8
"""Arcs offered to each node per round: the best one to each of this many parts of the other side."""

_NO_LIMIT = 2**62
"""More than any reduced cost."""

MAX_ROUNDS = 200
"""Most flows that are computed. Ten are usually enough."""


@dataclass(frozen=True, slots=True, eq=False)
class TransportProblem:
    """Mass to move from sources to sinks; `up` and `down` are their distances to the hub.

    `balance` is the supply of the hub itself, such that everything sums to zero.
    """

    ruler: Ruler
    sources: Ints
    supply: Ints
    up: Ints
    sinks: Ints
    demand: Ints
    down: int
    balance: int

    @property
    def through_hub(self) -> int:
        """The cost of moving everything through the hub, which is always feasible."""
        return flow.exact_dot(self.supply, self.up) + self.down * int(self.demand.sum())


def complete_flow(problem: TransportProblem) -> flow.Flow:
    """Proved bounds on the cheapest cost over all arcs from sources to sinks and through the hub."""
    found = flow.Flow(upper=problem.through_hub, lower=0)
    if not len(problem.supply) or not len(problem.demand):
        return flow.Flow(found.upper, found.upper)  # only the hub can be used
    arcs = _shortest_arcs(problem)
    solvers: list[Callable[[Network, Ints], tuple[Ints, Ints]]] = [flow.solve, flow.solve_fallback]
    for _ in range(MAX_ROUNDS):
        network, supply = _network(problem, arcs)
        again = None
        while solvers and again is None:
            upper, potentials = _try_solver(network, supply, solvers[0])
            if upper is not None:
                found = flow.Flow(min(found.upper, upper), found.lower)
            if potentials is not None:
                lower, missed = _price_arcs(problem, potentials)
                found = flow.Flow(found.upper, max(found.lower, lower))
                if found.optimal:
                    return found
                more = np.union1d(arcs, missed)
                again = more if len(more) > len(arcs) else None
            if again is None:
                solvers.pop(0)  # it did not prove its answer on these arcs, and would not with more
        if again is None:
            break
        arcs = again
    return found


def _try_solver(
    network: Network, supply: Ints, solver: Callable[[Network, Ints], tuple[Ints, Ints]]
) -> tuple[int | None, Ints | None]:
    """The cost of a solver's flow if it is valid, and its potentials if no arc of the network violates them."""
    try:
        moved, potentials = solver(network, supply)
        upper = flow.flow_cost(network, supply, moved)
        proved = flow.potential_value(network, supply, potentials)
    except Exception:  # the bounds hold without an answer
        return None, None
    return upper, potentials if proved is not None else None


def _price_arcs(problem: TransportProblem, potentials: Ints) -> tuple[int, Ints]:
    """A lower bound over all arcs from any potentials, and the arcs that violate them most, one for each part."""
    count = len(problem.supply)
    sources, sinks = potentials[:count], potentials[count:-1]
    hub = min(int(potentials[-1]), int(sinks.min()) + problem.down)
    outward = _from_sources(problem, sinks)
    best = np.minimum(outward[0].min(axis=1), hub + problem.up)
    lower = flow.exact_dot(problem.supply, best) - flow.exact_dot(problem.demand, sinks) + problem.balance * hub
    return lower, _arcs_below(problem, outward, _from_sinks(problem, sources), sources, -sinks)


def _from_sources(problem: TransportProblem, prices: Ints) -> tuple[Ints, Ints]:
    """The cheapest sinks of each source. Sources at one node are adjacent and have the same sinks."""
    new = np.append(True, (np.diff(problem.sources, axis=0) != 0).any(axis=1))
    least, which = problem.ruler.cheapest(problem.sources[new], problem.sinks, prices, ARCS_PER_NODE)
    node = np.cumsum(new) - 1
    return least[node], which[node]


def _from_sinks(problem: TransportProblem, potentials: Ints) -> tuple[Ints, Ints]:
    """The cheapest sources of each sink. Of sources at one node only that of highest potential counts."""
    new = np.append(True, (np.diff(problem.sources, axis=0) != 0).any(axis=1))
    node = np.cumsum(new) - 1
    by_node = np.lexsort((-potentials, node))
    highest = by_node[np.append(True, np.diff(node[by_node]) != 0)]
    least, which = problem.ruler.cheapest(problem.sinks, problem.sources[highest], -potentials[highest], ARCS_PER_NODE)
    return least, np.where(which >= 0, highest[which], -1)


def _shortest_arcs(problem: TransportProblem) -> Ints:
    """The shortest arcs of each source and each sink, to each part of the other side."""
    outward = _from_sources(problem, np.zeros_like(problem.demand))
    inward = _from_sinks(problem, np.zeros_like(problem.supply))
    return _arcs_below(
        problem, outward, inward, np.full_like(problem.supply, _NO_LIMIT), np.full_like(problem.demand, _NO_LIMIT)
    )


def _arcs_below(
    problem: TransportProblem, outward: tuple[Ints, Ints], inward: tuple[Ints, Ints], sources: Ints, sinks: Ints
) -> Ints:
    """The arcs below these prices, encoded as source × number of sinks + sink, sorted."""
    many = len(problem.sinks)
    i, part = np.nonzero((outward[0] < sources[:, None]) & (outward[1] >= 0))
    j, other = np.nonzero((inward[0] < sinks[:, None]) & (inward[1] >= 0))
    return np.unique(np.concatenate([i * many + outward[1][i, part], inward[1][j, other] * many + j]))


def _network(problem: TransportProblem, arcs: Ints) -> tuple[Network, Ints]:
    """The network of sources, sinks and the hub with the given arcs, and the supplies of its nodes."""
    count, many = len(problem.sources), len(problem.sinks)
    tails, heads = arcs // many, arcs % many
    hub = count + many
    lengths = problem.ruler.distance(problem.sources[tails], problem.sinks[heads])
    all_tails = np.concatenate([tails, np.arange(count), np.full(many, hub)])
    all_heads = np.concatenate([count + heads, np.full(count, hub), np.arange(count, hub)])
    all_lengths = np.concatenate([lengths, problem.up, np.full(many, problem.down)])
    by_tail = np.lexsort((all_heads, all_tails))
    network = Network(
        tails=all_tails[by_tail],
        heads=all_heads[by_tail],
        lengths=all_lengths[by_tail],
        node_of_cell=np.arange(hub),
        nodes=hub + 1,
        unit=UNITS_PER_LENGTH,
        hub=problem.down,
        stretch=Fraction(1),
    )
    return network, np.concatenate([problem.supply, -problem.demand, [problem.balance]])


def complete_bounds(ruler: Ruler, nodes: Ints, ways: Ints, first: Ints, second: Ints) -> tuple[int, int, int]:
    """Exact transport between counts on nodes, in the form of `transport_bounds`.

    Counts have an entry for each node and each level (`ways` are the levels' distances to the hub), and a last one for
    the hub.
    """
    measure, per = flow.difference(first, _merge_levels(second, len(ways)))
    levels = measure[:-1].reshape(len(nodes), len(ways))
    node, level = np.nonzero(levels > 0)
    sink = np.flatnonzero(levels[:, 0] < 0)
    problem = TransportProblem(
        ruler=ruler,
        sources=nodes[node],
        supply=levels[node, level],
        up=ways[level],
        sinks=nodes[sink],
        demand=-levels[sink, 0],
        down=ruler.half_diameter,
        balance=int(measure[-1]),
    )
    found = complete_flow(problem)
    return found.upper, found.lower, UNITS_PER_LENGTH * per


def _merge_levels(counts: Ints, levels: int) -> Ints:
    """Merge the levels of each node: the target has no shorter way from the hub."""
    moved = np.zeros_like(counts)
    moved[:-1:levels] = counts[:-1].reshape(-1, levels).sum(axis=1)
    moved[-1] = counts[-1]
    return moved
