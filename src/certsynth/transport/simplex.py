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

from certsynth.arrays import Ints
from certsynth.transport.network import Network

SMALL = 2_000
"""Nodes of a network on which it is as quick as any other method, all the way to the optimum."""

MOST_PIVOTS = 6
"""Arcs that are taken for each node at most. To within a tenth of the optimum it takes two or three for a node of a
lattice; all the way as many where there is mass everywhere, as of noise, and up to ten where there is little."""

_NONE = np.uint32(2**32 - 1)
"""No node. Numbers of nodes and ways have no sign, which saves a quarter of the time: none has to be asked whether it
counts from the end of an array."""

_MARGIN = 1 - 1e-9
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
    return improved(ways, supply, network.hub, enough * _MARGIN, MOST_PIVOTS * network.nodes)


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
    arcs, hub = tails.shape[0], nodes - 1
    starts = np.zeros(nodes + 1, dtype=np.int64)
    for a in range(arcs):
        starts[tails[a] + 1] += 1
    for node in range(nodes):
        starts[node + 1] += starts[node]
    # Arcs are sorted by tail and head: those into a node come in the order in which it has arcs to their tails.
    reached = starts[:nodes].copy()
    there, back = np.empty(arcs // 2, dtype=np.int64), np.empty(arcs // 2, dtype=np.int64)
    found, to_hub = hub, 0
    if len(there) < hub:
        return none, none
    for a in range(arcs):
        tail, head = tails[a], heads[a]
        b = reached[head]
        reached[head] += 1
        if b >= starts[head + 1] or heads[b] != tail or lengths[b] != lengths[a]:
            return none, none
        if tail > head:
            continue
        if head == hub:
            if to_hub != tail:
                return none, none
            there[tail], back[tail] = a, b
            to_hub += 1
        else:
            if found == len(there):
                return none, none
            there[found], back[found] = a, b
            found += 1
    if to_hub != hub or found != len(there):
        return none, none
    return _mixed(there, hub), _mixed(back, hub)


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
    tree, up, mass, potentials = _improved(tails, heads, lengths, supply, far, enough, most)
    flow = np.zeros(2 * there.shape[0], dtype=np.int64)
    for node in range(tree.shape[0]):
        way = tree[node]
        flow[there[way] if up[node] == (tails[way] == node) else back[way]] = mass[node]
    return flow, potentials


@njit(cache=True, nogil=True)
def _improved(
    tails: np.ndarray, heads: np.ndarray, lengths: Ints, supply: Ints, far: int, enough: float, most: int
) -> tuple[Ints, np.ndarray, Ints, Ints]:
    """Of each node but the hub the way of the tree to its parent, whether mass goes up there, how much; potentials.

    The first ways are those from each node to the hub. Every tree of ways carries a flow, since mass may go either way;
    a way without mass leads up, and stays so, which keeps the method from running in circles (Cunningham 1976).
    """
    nodes, count = supply.shape[0], np.uint64(tails.shape[0])
    hub = np.uint32(nodes - 1)
    parent, depth = np.full(nodes, hub, dtype=np.uint32), np.ones(nodes, dtype=np.int32)
    way, mass, up = np.arange(nodes, dtype=np.int64), np.abs(supply), supply >= 0
    child, after, before = np.full(nodes, _NONE), np.full(nodes, _NONE), np.full(nodes, _NONE)
    potential, todo = np.where(up, far, -far), np.empty(nodes, dtype=np.uint32)
    depth[hub], potential[hub], mass[hub] = 0, 0, 0
    cost = 0.0
    for node in range(hub):
        cost += float(mass[node]) * far
        if node > 0:
            before[node], after[node - 1] = node - 1, node
    child[hub] = 0
    block, at, pivots = np.uint64(max(np.sqrt(tails.shape[0]) / 2, 8)), np.uint64(0), 0
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
    return way[:hub], up[:hub], mass[:hub], potential
