"""Cheapest flows where every node has an arc to every other: exact, though few of these arcs are ever written down.

A flow is found on a few arcs. Potentials of its sinks price all others: for every source the cheapest sink is looked
for among all of them. That gives the best potentials for the sources, so a lower bound on the cost over *all* arcs,
whatever the solver said; and the arcs that were missed. They are added until both bounds are equal.
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

PARTS = 8
"""Each node is offered the best arc to so many parts of the others."""

_ANY = 2**62

MOST_ROUNDS = 200
"""Flows that are computed before giving up. Ten are many."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """What is to be moved: from sources to sinks, each with the length of its way to the hub.

    `balance` is what the hub itself gives (or takes, if negative), so that all sums to zero.
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
        """The cost of moving all of it through the hub, which can always be done."""
        return flow.exact_dot(self.supply, self.up) + self.down * int(self.demand.sum())


def complete_flow(exchange: Exchange) -> flow.Flow:
    """Proved bounds on the cheapest cost over all arcs from sources to sinks, and by way of the hub."""
    found = flow.Flow(upper=exchange.through_hub, lower=0)
    if not len(exchange.supply) or not len(exchange.demand):
        return flow.Flow(found.upper, found.upper)  # the hub is the only way
    arcs = _shortest(exchange)
    solvers: list[Callable[[Network, Ints], tuple[Ints, Ints]]] = [flow.solve, flow.solve_again]
    for _ in range(MOST_ROUNDS):
        network, supply = _network(exchange, arcs)
        again = None
        while solvers and again is None:
            upper, potentials = _answer(network, supply, solvers[0])
            if upper is not None:
                found = flow.Flow(min(found.upper, upper), found.lower)
            if potentials is not None:
                lower, missed = _priced(exchange, potentials)
                found = flow.Flow(found.upper, max(found.lower, lower))
                if found.optimal:
                    return found
                more = np.union1d(arcs, missed)
                again = more if len(more) > len(arcs) else None
            if again is None:
                solvers.pop(0)  # it could not prove its answer on these arcs, and would not with more
        if again is None:
            break
        arcs = again
    return found


def _answer(
    network: Network, supply: Ints, solver: Callable[[Network, Ints], tuple[Ints, Ints]]
) -> tuple[int | None, Ints | None]:
    """The cost of a solver's flow if it is one, and its potentials if no arc of the network violates them."""
    try:
        moved, potentials = solver(network, supply)
        upper = flow.flow_cost(network, supply, moved)
        proved = flow.potential_value(network, supply, potentials)
    except Exception:  # whatever it was, the bounds hold without an answer
        return None, None
    return upper, potentials if proved is not None else None


def _priced(exchange: Exchange, potentials: Ints) -> tuple[int, Ints]:
    """A lower bound over all arcs from any potentials, and the arcs that violate them, the best in each part."""
    count = len(exchange.supply)
    sources, sinks = potentials[:count], potentials[count:-1]
    hub = min(int(potentials[-1]), int(sinks.min()) + exchange.down)
    outward = _from_sources(exchange, sinks)
    best = np.minimum(outward[0].min(axis=1), hub + exchange.up)
    lower = flow.exact_dot(exchange.supply, best) - flow.exact_dot(exchange.demand, sinks) + exchange.balance * hub
    return lower, _arcs(exchange, outward, _from_sinks(exchange, sources), sources, -sinks)


def _from_sources(exchange: Exchange, prices: Ints) -> tuple[Ints, Ints]:
    """The cheapest sinks of each source: the same for all that are at one node, which follow each other."""
    new = np.append(True, (np.diff(exchange.sources, axis=0) != 0).any(axis=1))
    least, which = exchange.ruler.cheapest(exchange.sources[new], exchange.sinks, prices, PARTS)
    node = np.cumsum(new) - 1
    return least[node], which[node]


def _from_sinks(exchange: Exchange, potentials: Ints) -> tuple[Ints, Ints]:
    """The cheapest sources of each sink: of those at one node the one with the highest potential."""
    new = np.append(True, (np.diff(exchange.sources, axis=0) != 0).any(axis=1))
    node = np.cumsum(new) - 1
    by_node = np.lexsort((-potentials, node))
    highest = by_node[np.append(True, np.diff(node[by_node]) != 0)]
    least, which = exchange.ruler.cheapest(exchange.sinks, exchange.sources[highest], -potentials[highest], PARTS)
    return least, np.where(which >= 0, highest[which], -1)


def _shortest(exchange: Exchange) -> Ints:
    """The shortest arcs from both ends, to each part of the other end."""
    outward = _from_sources(exchange, np.zeros_like(exchange.demand))
    inward = _from_sinks(exchange, np.zeros_like(exchange.supply))
    return _arcs(exchange, outward, inward, np.full_like(exchange.supply, _ANY), np.full_like(exchange.demand, _ANY))


def _arcs(
    exchange: Exchange, outward: tuple[Ints, Ints], inward: tuple[Ints, Ints], sources: Ints, sinks: Ints
) -> Ints:
    """What was found below these prices, as one number for each arc: those of a source follow each other."""
    many = len(exchange.sinks)
    i, part = np.nonzero((outward[0] < sources[:, None]) & (outward[1] >= 0))
    j, other = np.nonzero((inward[0] < sinks[:, None]) & (inward[1] >= 0))
    return np.unique(np.concatenate([i * many + outward[1][i, part], inward[1][j, other] * many + j]))


def _network(exchange: Exchange, arcs: Ints) -> tuple[Network, Ints]:
    """Sources, sinks and the hub with these arcs, sorted by tail and head."""
    count, many = len(exchange.sources), len(exchange.sinks)
    tails, heads = arcs // many, arcs % many
    hub = count + many
    lengths = exchange.ruler.distance(exchange.sources[tails], exchange.sinks[heads])
    all_tails = np.concatenate([tails, np.arange(count), np.full(many, hub)])
    all_heads = np.concatenate([count + heads, np.full(count, hub), np.arange(count, hub)])
    all_lengths = np.concatenate([lengths, exchange.up, np.full(many, exchange.down)])
    by_tail = np.lexsort((all_heads, all_tails))
    network = Network(
        tails=all_tails[by_tail],
        heads=all_heads[by_tail],
        lengths=all_lengths[by_tail],
        node_of_cell=np.arange(hub),
        nodes=hub + 1,
        unit=UNITS_PER_LENGTH,
        hub=exchange.down,
        stretch=Fraction(1),
    )
    return network, np.concatenate([exchange.supply, -exchange.demand, [exchange.balance]])


def complete_bounds(ruler: Ruler, nodes: Ints, ways: Ints, first: Ints, second: Ints) -> tuple[int, int, int]:
    """Exact transport between counts on nodes, as `transport_bounds` gives it.

    Counts have an entry for each node and each of the `ways` to the hub, and a last one for the hub itself.
    """
    measure, per = flow.difference(first, _at_nodes(second, len(ways)))
    levels = measure[:-1].reshape(len(nodes), len(ways))
    node, level = np.nonzero(levels > 0)
    sink = np.flatnonzero(levels[:, 0] < 0)
    exchange = Exchange(
        ruler=ruler,
        sources=nodes[node],
        supply=levels[node, level],
        up=ways[level],
        sinks=nodes[sink],
        demand=-levels[sink, 0],
        down=ruler.half_diameter,
        balance=int(measure[-1]),
    )
    found = complete_flow(exchange)
    return found.upper, found.lower, UNITS_PER_LENGTH * per


def _at_nodes(counts: Ints, levels: int) -> Ints:
    """All levels of a node as one: what is moved *to* has no short way from the hub."""
    moved = np.zeros_like(counts)
    moved[:-1:levels] = counts[:-1].reshape(-1, levels).sum(axis=1)
    moved[-1] = counts[-1]
    return moved
