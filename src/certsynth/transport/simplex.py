"""A network simplex for symmetric networks that may stop before the optimum, once the flow is cheap enough.

It starts with all mass going through the hub and pivots on arcs that make the flow cheaper. The last tenth of the cost
takes most of the time, so a flow below a given cost is found in a fraction of it. On small networks it runs to the
optimum, and releases the lock meanwhile. Nothing relies on its result: `flow` checks it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.transport.network import Network

MAX_SIMPLEX_NODES = 2_000
"""Most nodes of a network on which it is as fast as any other method to the optimum."""

MAX_PIVOTS_PER_NODE = 6
"""Most pivots per node. Coming within a tenth of the optimum takes two or three per node of a lattice; so does the
optimum where there is mass everywhere, as with noise. With sparse mass it may take ten."""

_NO_NODE = np.uint32(2**32 - 1)
"""Stands for no node. Indices are unsigned, which saves a quarter of the time: none is tested for being negative."""

FLOAT_MARGIN = 1 - 1e-9
"""Factor on the target cost: the running cost is a float sum, and must be below the target in spite of rounding."""

_GOLDEN_RATIO = 0.6180339887
"""Stride of the order in which edges are examined, as a share of all: it mixes edges from everywhere."""


def solve_until(network: Network, supply: Ints, enough: int) -> tuple[Ints, Ints]:
    """A flow that costs at most `enough`, if one is found within the limit of pivots, and its potentials.

    The network must be symmetric (each arc has a counterpart of equal length), with an arc from each node to the hub.
    """
    ways = edges_of(network)
    if ways is None:
        raise ValueError("the network is not symmetric, or a node has no arc to the hub")
    return improve_flow(ways, supply, network.hub, enough * FLOAT_MARGIN, MAX_PIVOTS_PER_NODE * network.nodes)


class Edges(NamedTuple):
    """Undirected edges: arcs to a node with a higher number, which is the head, with their counterparts."""

    there: Ints
    back: Ints
    tails: np.ndarray
    heads: np.ndarray
    lengths: Ints

    @classmethod
    def of(cls, tails: Ints, heads: Ints, lengths: Ints, there: Ints, back: Ints) -> Edges:
        return cls(there, back, tails[there].astype(np.uint32), heads[there].astype(np.uint32), lengths[there])


NO_EDGES = Edges.of(*(np.empty(0, dtype=np.int64) for _ in range(5)))


def edges_of(network: Network) -> Edges | None:
    """The edges of a network; None if it is not symmetric or a node has no arc to the hub."""
    return _cached_edges(network) if network.nodes <= MAX_SIMPLEX_NODES else _find_edges(network)


def _find_edges(network: Network) -> Edges | None:
    there, back = _pair_arcs(network.tails, network.heads, network.lengths, network.nodes)
    return Edges.of(network.tails, network.heads, network.lengths, there, back) if len(there) else None


@lru_cache(maxsize=32)
def _cached_edges(network: Network) -> Edges | None:
    """Small networks are solved again and again."""
    return _find_edges(network)


@njit(cache=True, nogil=True)
def _pair_arcs(tails: Ints, heads: Ints, lengths: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Arcs to a node with a higher number, and their counterparts: first those to the hub, which is the last node, in
    the order of nodes, then the others in mixed order. Empty if an arc has no counterpart or a node no arc to the hub.
    """
    none = np.empty(0, dtype=np.int64)
    other, hub = counterparts(tails, heads, lengths, arc_starts(tails, nodes)), nodes - 1
    there, back = np.empty(len(other) // 2, dtype=np.int64), np.empty(len(other) // 2, dtype=np.int64)
    found, to_hub = hub, 0
    if len(there) < hub:
        return none, none
    for a in range(len(other)):
        tail, head = tails[a], heads[a]
        if tail > head:
            continue
        if head == hub:
            if to_hub != tail:
                return none, none
            there[tail], back[tail] = a, other[a]
            to_hub += 1
        else:
            if found == len(there):
                return none, none
            there[found], back[found] = a, other[a]
            found += 1
    if to_hub != hub or found != len(there):
        return none, none
    return _shuffle(there, hub), _shuffle(back, hub)


@njit(cache=True, nogil=True)
def arc_starts(tails: Ints, nodes: int) -> Ints:
    """Index of the first arc of each node, and the number of arcs; arcs are sorted by tail."""
    starts = np.zeros(nodes + 1, dtype=np.int64)
    for tail in tails:
        starts[tail + 1] += 1
    for node in range(nodes):
        starts[node + 1] += starts[node]
    return starts


@njit(cache=True, nogil=True)
def counterparts(tails: Ints, heads: Ints, lengths: Ints, starts: Ints) -> Ints:
    """For each arc the reverse arc of equal length; empty if some arc has none."""
    # Arcs are sorted by tail and head: those into a node come in the order in which it has arcs to their tails.
    reached, other = starts.copy(), np.empty(len(tails), np.int64)
    for a in range(len(tails)):
        b = reached[heads[a]]
        reached[heads[a]] += 1
        if b >= starts[heads[a] + 1] or heads[b] != tails[a] or lengths[b] != lengths[a]:
            return np.empty(0, dtype=np.int64)
        other[a] = b
    return other


@njit(cache=True, nogil=True)
def _shuffle(ways: Ints, first: int) -> Ints:
    """The arcs with all but the first `first` in a fixed mixed order."""
    rest = len(ways) - first
    step = max(int(rest * _GOLDEN_RATIO), 1)
    while _gcd(step, rest) > 1:
        step += 1
    mixed, at = ways.copy(), 0
    for i in range(first, len(ways)):
        mixed[i] = ways[first + at]
        at = (at + step) % rest
    return mixed


@njit(cache=True, nogil=True)
def _gcd(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


@njit(cache=True, nogil=True)
def improve_flow(ways: Edges, supply: Ints, far: int, enough: float, most: int) -> tuple[Ints, Ints]:
    """A flow along the arcs and its potentials, after at most `most` pivots. `far` is the distance to the hub."""
    there, back, tails, heads, lengths = ways
    tree = star_tree(supply, far)
    pivot(tree, tails, heads, lengths, tails.shape[0], enough, most)
    flow = np.zeros(2 * there.shape[0], dtype=np.int64)
    for node in range(supply.shape[0] - 1):
        way = tree.way[node]
        flow[there[way] if tree.up[node] == (tails[way] == node) else back[way]] = tree.mass[node]
    return flow, tree.potential


class Tree(NamedTuple):
    """A spanning tree that carries a flow. For each node but the hub, which is the last: its parent, the edge to it
    (`way`), whether mass goes up, and how much; with the resulting potentials. Children of a node are a linked list.
    """

    parent: np.ndarray
    way: Ints
    up: np.ndarray
    mass: Ints
    potential: Ints
    depth: np.ndarray
    child: np.ndarray
    after: np.ndarray
    before: np.ndarray


@njit(cache=True, nogil=True)
def star_tree(supply: Ints, far: int) -> Tree:
    """The tree in which all mass goes through the hub, along the first edges: those from each node to the hub."""
    nodes = supply.shape[0]
    hub = nodes - 1
    tree = Tree(
        np.empty(nodes, np.uint32),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.bool_),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.uint32),
        np.empty(nodes, np.uint32),
        np.empty(nodes, np.uint32),
    )
    for node in range(nodes):
        up = supply[node] >= 0
        tree.parent[node], tree.way[node], tree.up[node], tree.depth[node] = hub, node, up, 1
        tree.mass[node], tree.potential[node] = abs(supply[node]), far if up else -far
        tree.child[node], tree.after[node], tree.before[node] = _NO_NODE, _NO_NODE, _NO_NODE
    tree.depth[hub], tree.potential[hub], tree.mass[hub] = 0, 0, 0
    for node in range(1, hub):
        tree.before[node], tree.after[node - 1] = node - 1, node
    tree.child[hub] = 0
    return tree


@njit(cache=True, nogil=True)
def pivot(
    tree: Tree, tails: np.ndarray, heads: np.ndarray, lengths: Ints, ways: int, enough: float, most: int
) -> float:
    """Pivot on the first `ways` edges until the flow is optimal on them or costs at most `enough`, or `most` times.
    Returns the cost as a float.

    Every spanning tree carries a flow, since mass may go both ways along an edge. An edge without mass points up and
    stays so, which prevents cycling (Cunningham 1976).
    """
    parent, way, up, mass, potential, depth, child, after, before = tree
    todo, count = np.empty(parent.shape[0], dtype=np.uint32), np.uint64(ways)
    cost = 0.0
    for node in range(parent.shape[0] - 1):
        cost += float(mass[node]) * lengths[way[node]]
    block, at, pivots = np.uint64(max(np.sqrt(ways) / 2, 8)), np.uint64(0), 0
    while cost > enough and pivots < most:
        pivots += 1
        # The entering edge: the one whose potential difference exceeds its length most, in the next block with one.
        gain, enter, seen = 0, count, np.uint64(0)
        while seen < count and enter == count:
            end = min(at + block, count)
            for a in range(at, end):
                more = abs(potential[tails[a]] - potential[heads[a]]) - lengths[a]
                if more > gain:
                    gain, enter = more, np.uint64(a)
            seen += end - at
            at = end if end < count else np.uint64(0)
        if enter == count:
            break
        high, low = tails[enter], heads[enter]
        if potential[high] < potential[low]:
            high, low = low, high
        # Mass goes around the cycle: from `high` to `low`, up to their common ancestor, and down. Flow against that
        # direction can only be reduced; the last edge with the least such flow leaves the tree.
        a, b, least, leave, above = high, low, np.int64(2) ** 62, _NO_NODE, True
        while a != b:
            if depth[a] >= depth[b]:
                if up[a] and mass[a] < least:
                    least, leave, above = mass[a], a, True
                a = parent[a]
            else:
                if not up[b] and mass[b] <= least:
                    least, leave, above = mass[b], b, False
                b = parent[b]
        if leave == _NO_NODE:
            break
        if least > 0:
            cost -= float(gain) * float(least)
            a, b = high, low
            while a != b:
                if depth[a] >= depth[b]:
                    mass[a] += -least if up[a] else least
                    a = parent[a]
                else:
                    mass[b] += least if up[b] else -least
                    b = parent[b]
        # The subtree that is cut off is attached by the entering edge: parents along the path to it are reversed.
        top, onto, shift = (high, low, -gain) if above else (low, high, gain)
        node, by, carried, upwards = top, enter, least, above
        while True:
            last, last_by, last_mass, last_up = parent[node], way[node], mass[node], up[node]
            if before[node] != _NO_NODE:
                after[before[node]] = after[node]
            else:
                child[last] = after[node]
            if after[node] != _NO_NODE:
                before[after[node]] = before[node]
            parent[node], way[node], mass[node], up[node] = onto, by, carried, upwards
            after[node], before[node] = child[onto], _NO_NODE
            if child[onto] != _NO_NODE:
                before[child[onto]] = node
            child[onto] = node
            if node == leave:
                break
            onto, by, carried, upwards, node = node, last_by, last_mass, not last_up, last
        todo[0], left = top, 1
        while left:
            left -= 1
            node = todo[left]
            potential[node] += shift
            depth[node] = depth[parent[node]] + 1
            below = child[node]
            while below != _NO_NODE:
                todo[left] = below
                left += 1
                below = after[below]
    return cost
