"""Cheapest flows on large networks with sparse mass, by column generation: paths between the nodes with mass.

A lattice has far more nodes than two tables have cells in which they differ. So a simplex works on those nodes alone,
and is given paths in rounds: for each node the shortest path to where its mass has the best price. All are found at
once, by sweeps over the network that look at each arc a few times. When no path makes the flow cheaper, it is the
cheapest on the whole network, and the prices at all nodes prove it. Nothing relies on that: `flow` checks it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.transport.network import Network
from certsynth.transport.simplex import FLOAT_MARGIN, Tree, arc_starts, counterparts, pivot, star_tree

MAX_ROUNDS = 40
"""Most rounds of pricing. Two tables that are close to each other take a dozen."""

MAX_MEAN_DISTANCE = 1 / 8
"""Largest mean distance of mass from the nearest mass of the other sign, as a share of the distance to the hub. Tables
that are farther apart have many paths of nearly equal length, which takes hundreds of rounds."""

_INITIAL_PATHS_PER_NODE = 8
"""Paths per node with mass for which memory is allocated at first."""


def solve_priced(
    network: Network, supply: Ints, *, enough: int = 0, near: float = MAX_MEAN_DISTANCE
) -> tuple[Ints, Ints]:
    """Flow and potentials. The search stops at a flow that costs at most `enough`.

    The network must be symmetric, and masses of both signs `near` each other (see `MAX_MEAN_DISTANCE`).
    """
    arcs = network.tails, network.heads, network.lengths
    found = _solve(*arcs, network.nodes, network.hub, supply, enough * FLOAT_MARGIN, near)
    if not len(found[0]):
        raise ValueError("some arc has no counterpart, or masses are far apart")
    return found


@njit(cache=True, nogil=True)
def _solve(
    tails: Ints, heads: Ints, lengths: Ints, nodes: int, far: int, supply: Ints, enough: float, near: float
) -> tuple[Ints, Ints]:
    """Flow and potentials, empty if the method does not apply. `far` is the distance to the hub, the last node."""
    starts = arc_starts(tails, nodes)
    back = counterparts(tails, heads, lengths, starts)
    if not len(back):
        return back, back
    count, number = 0, np.empty(nodes, dtype=np.int64)
    for node in range(nodes - 1):
        number[node] = -1
        if supply[node] != 0:
            number[node] = count
            count += 1
    node_of, own = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    hub = len(node_of)
    own[hub] = supply[nodes - 1]
    for node in range(nodes - 1):
        if number[node] >= 0:
            node_of[number[node]], own[number[node]] = node, supply[node]
    tree = star_tree(own, far)
    # Paths: their two ends, length, and the end of their arcs in `arcs`. The first paths lead to the hub.
    room = _INITIAL_PATHS_PER_NODE * (hub + 1)
    froms, tos = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
    far_off, ends = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    for i in range(hub):
        froms[i], tos[i], far_off[i], ends[i] = i, hub, far, 0
    ways, arcs, used = hub, np.empty(room, dtype=np.int32), 0
    worth = np.empty((2, nodes), dtype=np.int64)  # prices: bounds on potentials from above, and (negated) from below
    via = np.empty(nodes, dtype=np.int64)
    for sweeps in range(MAX_ROUNDS):
        known = ways
        for side in range(2):
            sign = 1 - 2 * side
            for node in range(nodes):
                worth[side, node], via[node] = far, -1
            for i in range(hub):
                if (own[i] < 0) == (side == 0):
                    worth[side, node_of[i]] = sign * tree.potential[i]
            _sweep(starts, heads, lengths, worth[side], via)
            if sweeps == 0 and _are_far(own, node_of, worth[side], far, sign, near * far):
                return back[:0], back[:0]
            for i in range(hub):
                node = node_of[i]
                if (own[i] < 0) == (side == 0) or worth[side, node] >= sign * tree.potential[i]:
                    continue
                if ways == len(froms):
                    froms, tos, far_off, ends = _double(froms), _double(tos), _double(far_off), _double(ends)
                length = 0
                while via[node] >= 0:
                    if used == len(arcs):
                        arcs = _double(arcs)
                    arcs[used], used = via[node], used + 1
                    length += lengths[via[node]]
                    node = heads[via[node]]
                froms[ways], tos[ways], far_off[ways], ends[ways] = i, number[node], length, used
                ways += 1
        if ways == known:
            break
        # New paths gain more than the last pivots towards the optimum on these, so there are at most `hub` pivots.
        if pivot(tree, froms, tos, far_off, ways, enough, hub) <= enough:
            break
    flow = _expand_paths(tree, froms, ends, arcs, back, starts, node_of)
    potentials = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        potentials[node] = max(worth[0, node], -far)  # until the flow is optimal this is all that can be proved
    potentials[nodes - 1] = 0
    return flow, potentials


@njit(cache=True, nogil=True)
def _sweep(starts: Ints, heads: Ints, lengths: Ints, worth: Ints, via: Ints) -> None:
    """Lower the prices `worth` until none exceeds that of a neighbour by more than the arc; `via` is the arc used.

    Sweeps go through the nodes forwards and backwards, and use values of the same sweep: on a lattice two suffice.
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
def _are_far(own: Ints, node_of: Ints, worth: Ints, far: int, sign: int, near: float) -> bool:
    """Whether masses of one sign are farther than `near`, on average, from the nearest mass of the other sign. Prices
    at the masses of that other sign are −far."""
    excess = 0.0
    for i in range(len(node_of)):
        if sign * own[i] > 0:
            excess += float(abs(own[i])) * (worth[node_of[i]] + far - near)
    return excess > 0


@njit(cache=True, nogil=True)
def _expand_paths(
    tree: Tree, froms: np.ndarray, ends: Ints, arcs: np.ndarray, back: Ints, starts: Ints, node_of: Ints
) -> Ints:
    """The flow of the tree's paths, expanded to the arcs of the network.

    The first paths are the arcs to the hub, which is the last arc of each node.
    """
    flow = np.zeros(len(back), dtype=np.int64)
    for i in range(len(node_of)):
        way, mass = tree.way[i], tree.mass[i]
        if mass == 0:
            continue
        as_found = tree.up[i] == (froms[way] == i)
        if way < len(node_of):
            to_hub = starts[node_of[way] + 1] - 1
            flow[to_hub if as_found else back[to_hub]] += mass
            continue
        for k in range(ends[way - 1], ends[way]):
            flow[arcs[k] if as_found else back[arcs[k]]] += mass
    return flow


@njit(cache=True, nogil=True)
def _double(kept: np.ndarray) -> np.ndarray:
    """A copy of twice the length."""
    longer = np.empty(2 * len(kept), dtype=kept.dtype)
    for i in range(len(kept)):
        longer[i] = kept[i]
    return longer
