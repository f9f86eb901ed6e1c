"""Cheapest flows on a line with a hub, the network of most single columns, far faster than on a general network.

docs/explanation/proofs/transport.md proves that the result is optimal. Nothing relies on that: `flow` checks it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.transport.network import Network

_UNBOUNDED = 2**62
"""More than any flow: sums of masses stay below half of it."""

_ON, _BACK, _TO_HUB, _FROM_HUB = range(4)
"""Arcs of a node: to the next node, from there back, to the hub, from the hub."""


def solve_line(network: Network, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials, if every node has arcs to the hub and otherwise only to its neighbours on a line."""
    arcs = find_line_arcs(network.tails, network.heads, network.nodes)
    if not arcs.size:
        raise ValueError("the network is not a line with a hub")
    return solve_on_arcs(arcs, network.lengths, network.hub, supply)


@njit(cache=True, nogil=True)
def find_line_arcs(tails: Ints, heads: Ints, nodes: int) -> Ints:
    """The four arcs of each node (see `_ON`), −1 where there is none; empty if the network is not a line."""
    hub, none = nodes - 1, np.empty((4, 0), dtype=np.int64)
    if tails.shape[0] > 4 * hub:  # most other networks have more
        return none
    arcs = np.empty((4, hub), dtype=np.int64)
    for i in range(hub):
        for k in range(4):
            arcs[k, i] = -1
    for a in range(tails.shape[0]):
        tail, head = tails[a], heads[a]
        if head == hub:
            arcs[_TO_HUB, tail] = a
        elif tail == hub:
            arcs[_FROM_HUB, head] = a
        elif head == tail + 1:
            arcs[_ON, tail] = a
        elif tail == head + 1:
            arcs[_BACK, head] = a
        else:
            return none
    for i in range(hub):
        if arcs[_TO_HUB, i] < 0 or arcs[_FROM_HUB, i] < 0 or (arcs[_ON, i] < 0) != (arcs[_BACK, i] < 0):
            return none
    return arcs


@njit(cache=True, nogil=True)
def solve_on_arcs(arcs: Ints, lengths: Ints, hub: int, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials, given the result of `find_line_arcs`."""
    steps = np.empty(arcs.shape[1], dtype=np.int64)
    for i in range(len(steps)):
        steps[i] = 2 * hub + 1  # no arc: more than potentials can differ
        if arcs[_ON, i] >= 0:
            steps[i] = min(steps[i], lengths[arcs[_ON, i]])
    potentials = _potentials(steps, hub, supply)
    least, most = _flow_bounds(steps, hub, supply, potentials)
    flow = np.zeros(lengths.shape[0], dtype=np.int64)
    passed = 0
    for i in range(len(steps)):
        there = passed + supply[i]
        passed = min(max(there, least[i]), most[i])
        flow[arcs[_TO_HUB, i]] = max(there - passed, 0)
        flow[arcs[_FROM_HUB, i]] = max(passed - there, 0)
        if arcs[_ON, i] >= 0:
            flow[arcs[_ON, i]] = max(passed, 0)
            flow[arcs[_BACK, i]] = max(-passed, 0)
    return flow, potentials


@njit(cache=True, nogil=True)
def _potentials(steps: Ints, hub: int, supply: Ints) -> Ints:
    """The f with |f| ≤ hub and differences within `steps` that maximises Σ f·supply.

    The best sum up to a node is a concave function of f there. It is stored as the places where its slope drops, and by
    how much, in two stacks on the two sides of its peak: x on the right and −x on the left, so that both move up.
    """
    nodes = len(steps)
    places, falls = np.empty((2, nodes + 1), dtype=np.int64), np.empty((2, nodes + 1), dtype=np.int64)
    bottom, top = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    peaks, moved = np.empty(nodes, dtype=np.int64), 0
    for i in range(nodes):
        to = 1 if supply[i] < 0 else 0
        more = abs(supply[i])  # all slopes change by this: places cross to the other side of the peak
        while more > 0:
            place, fall = hub, more  # beyond ±hub the function is −∞
            last = top[1 - to] - 1
            if last >= bottom[1 - to]:
                place, fall = places[1 - to, last] + moved, min(falls[1 - to, last], more)
                falls[1 - to, last] -= fall
                if falls[1 - to, last] == 0:
                    top[1 - to] = last
            places[to, top[to]], falls[to, top[to]] = -place - moved, fall
            top[to] += 1
            more -= fall
        peak = places[to, top[to] - 1] + moved if top[to] > bottom[to] else hub
        peaks[i] = peak if to else -peak
        moved += steps[i]  # the next potential may differ by this much
        for side in range(2):
            while bottom[side] < top[side] and places[side, bottom[side]] + moved >= hub:
                bottom[side] += 1
    found = np.zeros(nodes + 1, dtype=np.int64)  # the potential of the hub is 0
    for i in range(nodes - 1, -1, -1):
        found[i] = peaks[i]
        if i < nodes - 1:
            found[i] = min(max(peaks[i], found[i + 1] - steps[i]), found[i + 1] + steps[i])
    return found


@njit(cache=True, nogil=True)
def _flow_bounds(steps: Ints, hub: int, supply: Ints, potentials: Ints) -> tuple[Ints, Ints]:
    """The least and most that each node may pass on, so that all flow is along arcs on which potentials are tight."""
    nodes = len(steps)
    least, most = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for i in range(nodes - 1, 0, -1):
        here, rise = potentials[i], potentials[i] - potentials[i - 1]
        low = -_UNBOUNDED if here == -hub else least[i] - supply[i]
        high = _UNBOUNDED if here == hub else most[i] - supply[i]
        least[i - 1] = low if rise == steps[i - 1] else max(low, 0)
        most[i - 1] = high if -rise == steps[i - 1] else min(high, 0)
    return least, most
