"""Cheapest flows on a line with a hub, which is what a single column mostly is: far quicker than on any network.

docs/explanation/proofs/transport.md proves that what is found is optimal. Nobody relies on that: `flow` checks it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.transport.network import Network

_FAR = 2**62
"""More than any flow: masses stay below half of it, and so do their sums."""

_ON, _BACK, _TO_HUB, _FROM_HUB = range(4)


def solve_line(network: Network, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials, if every node has arcs to the hub and at most to the one before and the one after it."""
    arcs = arcs_of_line(network.tails, network.heads, network.nodes)
    if not arcs.size:
        raise ValueError("the network is no line")
    return solved(arcs, network.lengths, network.hub, supply)


@njit(cache=True, nogil=True)
def arcs_of_line(tails: Ints, heads: Ints, nodes: int) -> Ints:
    """The arcs of each node on, back from there, to the hub and from it; −1 if there is none. Nothing if no line."""
    hub, none = nodes - 1, np.empty((4, 0), dtype=np.int64)
    if tails.shape[0] > 4 * hub:  # most other networks have more
        return none
    arcs = np.full((4, hub), -1, dtype=np.int64)
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
def solved(arcs: Ints, lengths: Ints, hub: int, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials where these are the `arcs_of_line`."""
    steps = np.full(arcs.shape[1], 2 * hub + 1)  # without an arc: more than potentials can differ
    for i in range(len(steps)):
        if arcs[_ON, i] >= 0:
            steps[i] = min(steps[i], lengths[arcs[_ON, i]])
    potentials = _potentials(steps, hub, supply)
    least, most = _passed_on(steps, hub, supply, potentials)
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
    """The f with |f| ≤ hub and differences within `steps` that has the largest Σ f·supply.

    The best sum up to a node, as a function of f there, is concave. It is kept as the places where its slope falls,
    and by how much, in two stacks on both sides of its peak: x on the right, −x on the left, so that both move up.
    """
    nodes = len(steps)
    places, falls = np.empty((2, nodes + 1), dtype=np.int64), np.empty((2, nodes + 1), dtype=np.int64)
    bottom, top = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    peaks, moved = np.empty(nodes, dtype=np.int64), 0
    for i in range(nodes):
        to = 1 if supply[i] < 0 else 0
        more = abs(supply[i])  # all slopes change by so much: places go to the other side of the peak
        while more > 0:
            place, fall = hub, more  # beyond the hub it falls without end
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
        moved += steps[i]  # the next node may be so much higher or lower
        for side in range(2):
            while bottom[side] < top[side] and places[side, bottom[side]] + moved >= hub:
                bottom[side] += 1
    found = np.zeros(nodes + 1, dtype=np.int64)  # the hub has 0
    for i in range(nodes - 1, -1, -1):
        found[i] = peaks[i]
        if i < nodes - 1:
            found[i] = min(max(peaks[i], found[i + 1] - steps[i]), found[i + 1] + steps[i])
    return found


@njit(cache=True, nogil=True)
def _passed_on(steps: Ints, hub: int, supply: Ints, potentials: Ints) -> tuple[Ints, Ints]:
    """How much each node may pass on at least and at most, so that all flow goes where potentials are steepest."""
    nodes = len(steps)
    least, most = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for i in range(nodes - 1, 0, -1):
        here, rise = potentials[i], potentials[i] - potentials[i - 1]
        low = -_FAR if here == -hub else least[i] - supply[i]
        high = _FAR if here == hub else most[i] - supply[i]
        least[i - 1] = low if rise == steps[i - 1] else max(low, 0)
        most[i - 1] = high if -rise == steps[i - 1] else min(high, 0)
    return least, most
