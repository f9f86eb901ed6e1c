"""Cheapest flows on large networks, by ways between the few nodes that have mass to give or to take.

A lattice has far more nodes than two tables have cells in which they differ. So a simplex on those nodes alone is given
one way after the other: for each node the shortest to where its mass is worth most. All of these are found at once, by
sweeps over the network that cost no more than looking at each arc a few times. When none is left that would make the
flow cheaper it is the cheapest on the whole network, and how much mass is worth everywhere proves it. Nobody relies on
that: `flow` checks it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.transport.network import Network
from certsynth.transport.simplex import MARGIN, Tree, counterparts, pivoted, star, starts_of

MOST_ROUNDS = 40
"""Times that ways are looked for. Between two tables that are near each other it takes a dozen."""

NEAR = 1 / 8
"""Of the way to the hub, how far mass is from the nearest of the other sign, on average, if tables are near each other.
Between others there are many ways of about the same length, and hundreds of rounds."""

_FIRST_ROOM = 8
"""Ways for each node with mass that there is room for at first."""


def solve_priced(network: Network, supply: Ints, *, enough: int = 0, near: float = NEAR) -> tuple[Ints, Ints]:
    """Flow and potentials. A flow that costs at most `enough` need not be the cheapest.

    Only where each arc has a counterpart of equal length, and masses of both signs are as `near` each other.
    """
    arcs = network.tails, network.heads, network.lengths
    found = _solved(*arcs, network.nodes, network.hub, supply, enough * MARGIN, near)
    if not len(found[0]):
        raise ValueError("some arc has no counterpart, or masses are far apart")
    return found


@njit(cache=True, nogil=True)
def _solved(
    tails: Ints, heads: Ints, lengths: Ints, nodes: int, far: int, supply: Ints, enough: float, near: float
) -> tuple[Ints, Ints]:
    """Flow and potentials, or nothing if this is no problem for it. `far` is the way to the hub, the last node."""
    starts = starts_of(tails, nodes)
    back = counterparts(tails, heads, lengths, starts)
    if not len(back):
        return back, back
    node_of = np.flatnonzero(supply[: nodes - 1])
    hub = len(node_of)
    own = np.append(supply[node_of], supply[nodes - 1])
    number = np.full(nodes, -1, dtype=np.int64)
    number[node_of] = np.arange(hub)
    tree = star(own, far)
    # The first ways lead to the hub. Of each, its nodes, its length, and where its arcs end in the list of all.
    room = _FIRST_ROOM * (hub + 1)
    froms, tos = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
    far_off, ends = np.empty(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    froms[:hub], tos[:hub], far_off[:hub] = np.arange(hub), hub, far
    ways, arcs, used = hub, np.empty(room, dtype=np.int32), 0
    worth = np.empty((2, nodes), dtype=np.int64)  # what mass is worth there at most, and at least with the other sign
    via = np.empty(nodes, dtype=np.int64)
    for sweeps in range(MOST_ROUNDS):
        known = ways
        for side in range(2):
            sign = 1 - 2 * side
            worth[side, :], via[:] = far, -1
            for i in range(hub):
                if (own[i] < 0) == (side == 0):
                    worth[side, node_of[i]] = sign * tree.potential[i]
            _sweep(starts, heads, lengths, worth[side], via)
            if sweeps == 0 and _are_far(own, worth[side][node_of] + far, sign, near * far):  # the others are worth −far
                return back[:0], back[:0]
            for i in range(hub):
                node = node_of[i]
                if (own[i] < 0) == (side == 0) or worth[side, node] >= sign * tree.potential[i]:
                    continue
                if ways == len(froms):
                    froms, tos, far_off, ends = _doubled(froms), _doubled(tos), _doubled(far_off), _doubled(ends)
                length = 0
                while via[node] >= 0:
                    if used == len(arcs):
                        arcs = _doubled(arcs)
                    arcs[used], used = via[node], used + 1
                    length += lengths[via[node]]
                    node = heads[via[node]]
                froms[ways], tos[ways], far_off[ways], ends[ways] = i, number[node], length, used
                ways += 1
        if ways == known:
            break
        # The next ways are worth more than the last steps to what is best along these.
        if pivoted(tree, froms, tos, far_off, ways, enough, hub) <= enough:
            break
    flow = _along_arcs(tree, froms, ends, arcs, back, starts[node_of + 1] - 1)
    potentials = np.maximum(worth[0], -far)  # no more can be proved before the flow is the cheapest
    potentials[nodes - 1] = 0
    return flow, potentials


@njit(cache=True, nogil=True)
def _sweep(starts: Ints, heads: Ints, lengths: Ints, worth: Ints, via: Ints) -> None:
    """Lower `worth` until it falls along no arc by more than its length; `via` is the arc that it came by.

    Nodes in their order, and back, see what the others got in the same sweep: on a lattice two sweeps do.
    """
    hub, changed, sweeps = len(worth) - 1, True, 0
    while changed:
        changed = False
        for i in range(hub):
            node = i if sweeps % 2 == 0 else hub - 1 - i
            least, by = worth[node], via[node]
            for a in range(starts[node], starts[node + 1]):
                if heads[a] != hub and worth[heads[a]] + lengths[a] < least:
                    least, by = worth[heads[a]] + lengths[a], a
            if least < worth[node]:
                worth[node], via[node], changed = least, by, True
        sweeps += 1
        changed = changed or sweeps < 2


@njit(cache=True, nogil=True)
def _are_far(own: Ints, ways: Ints, sign: int, near: float) -> bool:
    """Whether masses of one sign have a way to the nearest of the others that is longer than `near` on average."""
    excess = 0.0
    for i in range(len(ways)):
        if sign * own[i] > 0:
            excess += float(abs(own[i])) * (ways[i] - near)
    return excess > 0


@njit(cache=True, nogil=True)
def _along_arcs(tree: Tree, froms: np.ndarray, ends: Ints, arcs: np.ndarray, back: Ints, to_hub: Ints) -> Ints:
    """The flow of the tree's ways, along the arcs that they are made of, one way or the other.

    The first ways are the arcs to the hub, which come last of the arcs of a node.
    """
    flow = np.zeros(len(back), dtype=np.int64)
    for i in range(len(to_hub)):
        way, mass = tree.way[i], tree.mass[i]
        if mass == 0:
            continue
        as_found = tree.up[i] == (froms[way] == i)
        if way < len(to_hub):
            flow[to_hub[way] if as_found else back[to_hub[way]]] += mass
            continue
        for a in arcs[ends[way - 1] : ends[way]]:
            flow[a if as_found else back[a]] += mass
    return flow


@njit(cache=True, nogil=True)
def _doubled(kept: np.ndarray) -> np.ndarray:
    """With room for as much again."""
    return np.append(kept, np.empty_like(kept))
