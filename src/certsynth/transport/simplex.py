"""Cheap flows found quickly where every way leads both ways: a network simplex that may stop before the optimum.

It begins with all mass going through the hub, and takes one arc after the other that makes the flow cheaper. On the way
to the optimum the last tenth takes most of the time; who only wants to know that a flow costs no more than so much is
told in a fraction of it. On small networks it goes all the way, and lets other threads work meanwhile. Nobody relies on
what is found here: `flow` checks it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.transport.network import Network

SMALL = 2_000
"""Nodes of a network on which it is as quick as any other method, all the way to the optimum."""

MOST_PIVOTS = 6
"""Arcs that are taken for each node at most. To within a tenth of the optimum it takes two or three for a node of a
lattice; all the way as many where there is mass everywhere, as of noise, and up to ten where there is little."""

_NONE = np.uint32(2**32 - 1)
"""No node. Numbers of nodes and ways have no sign, which saves a quarter of the time: none has to be asked whether it
counts from the end of an array."""

MARGIN = 1 - 1e-9
"""What is summed up in floats on the way must be so much below what is enough."""

_MIXED = 0.6180339887
"""Arcs are looked at in an order that comes from everywhere: each so far, as a share of all, from the one before."""


def solve_until(network: Network, supply: Ints, enough: int) -> tuple[Ints, Ints]:
    """A flow that costs at most `enough` if it is found soon, and potentials, which prove it optimal where it is.

    Only where each arc has a counterpart of equal length, and each node one to the hub.
    """
    ways = ways_of(network)
    if ways is None:
        raise ValueError("not every way leads both ways, or to the hub")
    return improved(ways, supply, network.hub, enough * MARGIN, MOST_PIVOTS * network.nodes)


class Ways(NamedTuple):
    """Arcs in pairs: those to a node of a higher number, which is the head, and their counterparts."""

    there: Ints
    back: Ints
    tails: np.ndarray
    heads: np.ndarray
    lengths: Ints

    @classmethod
    def of(cls, tails: Ints, heads: Ints, lengths: Ints, there: Ints, back: Ints) -> Ways:
        return cls(there, back, tails[there].astype(np.uint32), heads[there].astype(np.uint32), lengths[there])


NO_WAYS = Ways.of(*(np.empty(0, dtype=np.int64) for _ in range(5)))


def ways_of(network: Network) -> Ways | None:
    """None where not every way leads both ways, or to the hub."""
    return _kept(network) if network.nodes <= SMALL else _made(network)


def _made(network: Network) -> Ways | None:
    there, back = _ways(network.tails, network.heads, network.lengths, network.nodes)
    return Ways.of(network.tails, network.heads, network.lengths, there, back) if len(there) else None


@lru_cache(maxsize=32)
def _kept(network: Network) -> Ways | None:
    """Small networks are asked again and again."""
    return _made(network)


@njit(cache=True, nogil=True)
def _ways(tails: Ints, heads: Ints, lengths: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Arcs to a node of a higher number, and their counterparts, in mixed order, those to the hub first and in the
    order of nodes. Nothing if some arc has no counterpart, or a node none to the hub, which has the highest number.
    """
    none = np.empty(0, dtype=np.int64)
    other, hub = counterparts(tails, heads, lengths, starts_of(tails, nodes)), nodes - 1
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
    return _mixed(there, hub), _mixed(back, hub)


@njit(cache=True, nogil=True)
def starts_of(tails: Ints, nodes: int) -> Ints:
    """Where the arcs of each node begin, and where the last ones end."""
    starts = np.zeros(nodes + 1, dtype=np.int64)
    for tail in tails:
        starts[tail + 1] += 1
    return np.cumsum(starts)


@njit(cache=True, nogil=True)
def counterparts(tails: Ints, heads: Ints, lengths: Ints, starts: Ints) -> Ints:
    """Of each arc the one that leads back and is as long. Nothing if one has none."""
    # Arcs are sorted by tail and head: those into a node come in the order in which it has arcs to their tails.
    reached, other = starts[:-1].copy(), np.empty_like(tails)
    for a in range(len(tails)):
        b = reached[heads[a]]
        reached[heads[a]] += 1
        if b >= starts[heads[a] + 1] or heads[b] != tails[a] or lengths[b] != lengths[a]:
            return np.empty(0, dtype=np.int64)
        other[a] = b
    return other


@njit(cache=True, nogil=True)
def _mixed(ways: Ints, first: int) -> Ints:
    """The same ones, but for the first in another order, which is always the same."""
    rest = len(ways) - first
    step = max(int(rest * _MIXED), 1)
    while _divisor(step, rest) > 1:
        step += 1
    mixed, at = ways.copy(), 0
    for i in range(first, len(ways)):
        mixed[i] = ways[first + at]
        at = (at + step) % rest
    return mixed


@njit(cache=True, nogil=True)
def _divisor(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


@njit(cache=True, nogil=True)
def improved(ways: Ways, supply: Ints, far: int, enough: float, most: int) -> tuple[Ints, Ints]:
    """A flow along the arcs, and potentials, after at most so many steps. `far` is the way to the hub."""
    there, back, tails, heads, lengths = ways
    tree = star(supply, far)
    pivoted(tree, tails, heads, lengths, tails.shape[0], enough, most)
    flow = np.zeros(2 * there.shape[0], dtype=np.int64)
    for node in range(supply.shape[0] - 1):
        way = tree.way[node]
        flow[there[way] if tree.up[node] == (tails[way] == node) else back[way]] = tree.mass[node]
    return flow, tree.potential


class Tree(NamedTuple):
    """Ways that carry a flow: of each node but the hub, which is the last, the one to its parent, whether mass goes up
    there, and how much; with the potentials that follow. Children of a node are a list.
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
def star(supply: Ints, far: int) -> Tree:
    """All mass goes through the hub, along the first ways: those from each node to the hub."""
    nodes = supply.shape[0]
    hub = nodes - 1
    up = supply >= 0
    tree = Tree(
        np.full(nodes, hub, dtype=np.uint32),
        np.arange(nodes, dtype=np.int64),
        up,
        np.abs(supply),
        np.where(up, far, -far),
        np.ones(nodes, dtype=np.int32),
        np.full(nodes, _NONE),
        np.full(nodes, _NONE),
        np.full(nodes, _NONE),
    )
    tree.depth[hub], tree.potential[hub], tree.mass[hub] = 0, 0, 0
    for node in range(1, hub):
        tree.before[node], tree.after[node - 1] = node - 1, node
    tree.child[hub] = 0
    return tree


@njit(cache=True, nogil=True)
def pivoted(
    tree: Tree, tails: np.ndarray, heads: np.ndarray, lengths: Ints, ways: int, enough: float, most: int
) -> float:
    """Changes the tree, one of the first `ways` after the other, until its flow is the cheapest along them, or costs
    no more than `enough`, or after so many steps. Returns what it costs, as a float.

    Every tree of ways carries a flow, since mass may go either way; a way without mass leads up, and stays so, which
    keeps the method from running in circles (Cunningham 1976).
    """
    parent, way, up, mass, potential, depth, child, after, before = tree
    todo, count = np.empty(parent.shape[0], dtype=np.uint32), np.uint64(ways)
    cost = 0.0
    for node in range(parent.shape[0] - 1):
        cost += float(mass[node]) * lengths[way[node]]
    block, at, pivots = np.uint64(max(np.sqrt(ways) / 2, 8)), np.uint64(0), 0
    while cost > enough and pivots < most:
        pivots += 1
        # The way along which the potential falls most beyond its length, in the next block where there is one.
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
        # Mass goes around: from `high` to `low`, up to where both meet, and down. What goes against that can only be
        # taken back; the last of the least on the way leaves the tree.
        a, b, least, leave, above = high, low, np.int64(2) ** 62, _NONE, True
        while a != b:
            if depth[a] >= depth[b]:
                if up[a] and mass[a] < least:
                    least, leave, above = mass[a], a, True
                a = parent[a]
            else:
                if not up[b] and mass[b] <= least:
                    least, leave, above = mass[b], b, False
                b = parent[b]
        if leave == _NONE:
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
        # The part of the tree that is cut off hangs by the new way: what led down to it is turned around.
        top, onto, shift = (high, low, -gain) if above else (low, high, gain)
        node, by, carried, upwards = top, enter, least, above
        while True:
            last, last_by, last_mass, last_up = parent[node], way[node], mass[node], up[node]
            if before[node] != _NONE:
                after[before[node]] = after[node]
            else:
                child[last] = after[node]
            if after[node] != _NONE:
                before[after[node]] = before[node]
            parent[node], way[node], mass[node], up[node] = onto, by, carried, upwards
            after[node], before[node] = child[onto], _NONE
            if child[onto] != _NONE:
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
            while below != _NONE:
                todo[left] = below
                left += 1
                below = after[below]
    return cost
