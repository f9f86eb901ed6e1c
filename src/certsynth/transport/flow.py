"""Cheapest flows on a network: the proxy loss 𝒰_T, with its proof.

The solver is not trusted. What it returns is a flow and potentials; both are checked in integers here. A flow that
cancels the measure shows that the cost is at most what the flow costs; potentials that no arc violates show that it is
at least what they say. If the solver returns nonsense the bounds get wider, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pylmcf
from numba import njit

from certsynth.base.arrays import Floats, Ints
from certsynth.errors import TooLarge
from certsynth.transport.line import arcs_of_line, solve_line, solved
from certsynth.transport.network import Network
from certsynth.transport.pricing import solve_priced
from certsynth.transport.simplex import MOST_PIVOTS, NO_WAYS, SMALL, Ways, improved, solve_until, ways_of

_ROOM = 2**61
"""Masses stay below this: flows are sums of them, and fit into the solver's 64 bits. Costs are summed up here, in
Python's integers where need be. For two tables the mass is at most twice the product of their numbers of rows."""


FEW = 2
"""Where at most one node in so many has mass, ways between these are looked for: on a lattice of 256 × 256 points that
takes a third to a sixth of the time of a simplex on all nodes, if tables are near each other. If they are not, ours on
all nodes takes a third to a sixth of LEMON's time. With mass everywhere LEMON's is as quick as any."""

Solver = Callable[[Network, Ints], tuple[Ints, Ints]]
"""A network and the supplies of its nodes, to a flow and potentials."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Proved bounds on the cheapest cost, in units of the network: `lower` ≤ optimum ≤ `upper`."""

    upper: int
    lower: int

    @property
    def optimal(self) -> bool:
        return self.upper == self.lower


def cheapest_flow(network: Network, measure: Ints, *, enough: int = 0) -> Flow:
    """Proved bounds on the cost of cancelling an integer signed measure on the cells of `network`.

    Where a flow is found that costs at most `enough`, no cheaper one need be looked for.
    """
    mass = _mass(measure)
    if mass < 0:
        raise TooLarge("the masses are too large for exact 64-bit transport; use fewer rows.")
    through_hub = network.hub * mass  # always possible; and nothing costs less than 0
    if not through_hub:
        return Flow(upper=0, lower=0)
    supply = network.supply(measure)
    # Where all is apart from all else the way through the hub is the only one, and the signs prove it.
    signs = np.sign(supply) * network.hub
    signs[-1] = 0
    found = Flow(upper=through_hub, lower=potential_value(network, supply, signs) or 0)
    solvers: list[Solver] = [solve_line, solve, solve_again]
    few = FEW * np.count_nonzero(supply) <= network.nodes
    if enough > 0 or few or network.nodes <= SMALL:
        solvers.insert(1, partial(solve_until, enough=enough))
    if few and network.nodes > SMALL:
        solvers.insert(1, partial(solve_priced, enough=enough))
    for solver in solvers:
        if found.optimal or found.upper <= enough:
            break
        try:
            flow, potentials = solver(network, supply)
            cost, value = flow_cost(network, supply, flow), potential_value(network, supply, potentials)
        except Exception:  # whatever it was, the bounds hold without an answer
            continue
        found = Flow(
            upper=found.upper if cost is None else min(cost, found.upper),
            lower=found.lower if value is None else max(value, found.lower),
        )
    return found


def flow_cost(network: Network, supply: Ints, flow: Ints) -> int | None:
    """The cost of a flow if it is one: non-negative, and leaving each node by its supply. Else None."""
    if flow.shape != network.tails.shape or flow.dtype != np.int64:
        return None
    ways, *parts = _cost(network.tails, network.heads, network.lengths, flow, supply)
    if not ways:
        return None
    return _whole(*parts) if ways == _COUNTED else _python_dot(flow, network.lengths)


def potential_value(network: Network, supply: Ints, potentials: Ints) -> int | None:
    """What potentials prove the cost to be at least, if no arc violates them. Else None."""
    if potentials.shape != (network.nodes,) or potentials.dtype != np.int64:
        return None
    if _violated(network.tails, network.heads, network.lengths, potentials):
        return None
    return exact_dot(supply, potentials)


def transport_bounds(network: Network, first: Ints, second: Ints) -> tuple[int, int, int]:
    """Exact transport between two tables of counts as (upper, lower, per): W_U lies in [lower/per, upper/per].

    The counts are compared as shares of their sums, in integers throughout.
    """
    measure, per = difference(first, second)
    flow = cheapest_flow(network, measure)
    return flow.upper, flow.lower, network.unit * per


def difference(first: Ints, second: Ints) -> tuple[Ints, int]:
    """Two tables of counts as shares of their sums, subtracted, in multiples of one over the second answer."""
    n, m = int(first.sum()), int(second.sum())
    common = math.gcd(n, m)
    # Whether there is room must not depend on where rows lie, or on a common divisor: a refusal would tell.
    if 2 * n * m >= _ROOM:
        raise TooLarge("the tables are too long for exact 64-bit transport; compare fewer rows.")
    return first * (m // common) - second * (n // common), n * m // common


def transport_loss(first: Floats, second: Floats, network: Network) -> Floats:
    r"""Cost of moving `first` onto `second` over the network, rounded outward: at least their W1.

    .. math:: U(v, u) = \sup \Bigl\{ \sum_z f(z)\,(v_z - u_z) : f \text{ is 1-Lipschitz}, \|f\|_\infty \le hub \Bigr\}

    The measures are rounded to whole multiples of a small unit, for which the flow is exact; what the rounding can have
    hidden is added. Leading axes are kept.

    Paper: Eq. (17) [transport-loss]
    """
    difference = np.asarray(first - second, dtype=float)
    rows = difference.reshape(-1, difference.shape[-1])
    losses = np.zeros(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        masses = np.abs(rows).sum(axis=1)
    losses[~(masses <= 1e300)] = math.inf  # also where one is not a number
    some = np.flatnonzero((masses > 0) & (masses <= 1e300))
    # The largest power of two that leaves room for twice the way through the hub.
    most = math.log2(_ROOM / (8 * max(network.hub, 1)))
    exponents = np.minimum(np.floor(most - np.log2(masses[some])), 60).astype(np.int64)
    measures = np.rint(np.ldexp(rows[some], exponents[:, None])).astype(np.int64)
    hidden = network.cells * network.hub  # half a unit in each cell, through the hub, generously
    for j, exponent, cost in zip(some, exponents.tolist(), _least_costs(network, measures), strict=True):
        losses[j] = math.ldexp((cost + hidden) / network.unit, -exponent) * (1 + 1e-12)
    return losses.reshape(difference.shape[:-1])


def _least_costs(network: Network, measures: Ints) -> list[int]:
    """What flows cost at most, for many measures: in one go where a compiled method proves all it finds."""
    line = arcs_of_line(network.tails, network.heads, network.nodes)
    ways = ways_of(network) if network.nodes <= SMALL and not line.size else None
    if len(measures) < 2 or (not line.size and ways is None):
        return [cheapest_flow(network, measure).upper for measure in measures]
    arcs = network.tails, network.heads, network.lengths
    proved, digits = _many(line, ways or NO_WAYS, arcs, network.node_of_cell, network.nodes, network.hub, measures)
    return [
        _whole(*each) if sure else cheapest_flow(network, measure).upper
        for sure, each, measure in zip(proved, digits, measures, strict=True)
    ]


def solve(network: Network, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials from LEMON's network simplex, as they come."""
    graph = pylmcf.Graph(network.nodes, network.tails.astype(np.int32), network.heads.astype(np.int32))
    graph.set_edge_costs(network.lengths)
    graph.set_edge_capacities(np.full(len(network.tails), np.abs(supply).sum(), dtype=np.int64))
    graph.set_node_supply(supply)
    graph.solve()
    return np.asarray(graph.result(), dtype=np.int64), -np.asarray(graph.raw_potentials(), dtype=np.int64)


def solve_again(network: Network, supply: Ints) -> tuple[Ints, Ints]:
    """The same from another implementation, twenty times slower: asked only if the first did not prove its answer."""
    capacities = np.full(len(network.tails), np.abs(supply).sum(), dtype=np.int64)
    graph = pylmcf.NetworkSimplexLCT(supply, network.tails, network.heads, capacities, network.lengths)
    graph.solve()
    return np.asarray(graph.result(), dtype=np.int64), -np.asarray(graph.raw_potentials(), dtype=np.int64)


def exact_dot(first: Ints, second: Ints) -> int:
    """A scalar product that cannot overflow."""
    counted, *parts = _dot(first, second)
    return _whole(*parts) if counted else _python_dot(first, second)


def _python_dot(first: Ints, second: Ints) -> int:
    return sum(int(x) * int(y) for x, y in zip(first, second, strict=True))


_HALF = 2**31
_COUNTED, _TOO_LONG = 1, 2


def _whole(top: int, middle: int, low: int) -> int:
    """A sum whose digits to the base 2^31 were kept apart: a Python integer."""
    return (int(top) * _HALF + int(middle)) * _HALF + int(low)


# What follows is compiled, because it is asked for every draw of the noise. 64 bits are enough at every step.


@njit(cache=True, nogil=True)
def _many(
    line: Ints,
    ways: Ways,
    arcs: tuple[Ints, Ints, Ints],
    node_of_cell: Ints,
    nodes: int,
    hub: int,
    measures: Ints,
) -> tuple[np.ndarray, Ints]:
    """For each measure whether an optimal flow was found and proved, and the digits of its cost.

    The methods are those for a line, if it is one, and for ways that lead both ways, and they are trusted no more than
    any other: the flow is checked, and its cost is counted again and compared with what the potentials prove.
    """
    tails, heads, lengths = arcs
    count = measures.shape[0]
    proved, digits = np.zeros(count, dtype=np.bool_), np.zeros((count, 3), dtype=np.int64)
    for i in range(count):
        if _mass(measures[i]) < 0:
            continue
        supply = np.zeros(nodes, dtype=np.int64)
        for j in range(node_of_cell.shape[0]):
            supply[node_of_cell[j]] = measures[i, j]
            supply[nodes - 1] -= measures[i, j]
        if line.size:
            flow, potentials = solved(line, lengths, hub, supply)
        else:
            flow, potentials = improved(ways, supply, hub, 0.0, MOST_PIVOTS * nodes)
        if _violated(tails, heads, lengths, potentials):
            continue
        is_flow, top, middle, low = _cost(tails, heads, lengths, flow, supply)
        counted, a, b, c = _dot(supply, potentials)
        if is_flow == _COUNTED and counted and top == a and middle == b and low == c:
            proved[i] = True
            digits[i, 0], digits[i, 1], digits[i, 2] = top, middle, low
    return proved, digits


@njit(cache=True, nogil=True)
def _mass(measure: Ints) -> int:
    """The sum of absolute values, or −1 if there is no room for it."""
    mass = 0
    for value in measure:
        if value >= _ROOM or value <= -_ROOM:  # before the absolute value: that of −2^63 is none
            return -1
        mass += abs(value)
        if mass >= _ROOM:
            return -1
    return mass


@njit(cache=True, nogil=True)
def _dot(first: Ints, second: Ints) -> tuple[bool, int, int, int]:
    """Digits of the scalar product, if up to signs all of `first` are below 2^61 and all of `second` below 2^31."""
    top, middle, low = 0, 0, 0
    for i in range(first.shape[0]):
        x, y = first[i], second[i]
        if x >= _ROOM or x <= -_ROOM or y >= _HALF or y <= -_HALF:
            return False, 0, 0, 0
        low += (x & (_HALF - 1)) * y
        middle += (x >> 31) * y + (low >> 31)
        low &= _HALF - 1
        top += middle >> 31
        middle &= _HALF - 1
    return True, top, middle, low


@njit(cache=True, nogil=True)
def _cost(tails: Ints, heads: Ints, lengths: Ints, flow: Ints, supply: Ints) -> tuple[int, int, int, int]:
    """Whether it is a flow, and the digits of its cost unless an arc is too long for them.

    Halves of the digits of what leaves a node are summed up apart: the sums cannot overflow.
    """
    high, low = np.zeros_like(supply), np.zeros_like(supply)
    ways = _COUNTED
    first, second, third = 0, 0, 0
    for a in range(flow.shape[0]):
        moved = flow[a]
        if moved == 0:
            continue
        if moved < 0 or moved >= _ROOM:
            return 0, 0, 0, 0
        length = lengths[a]
        if length >= _HALF or length < 0:
            ways = _TOO_LONG
        more, rest = moved >> 31, moved & (_HALF - 1)
        high[tails[a]] += more
        high[heads[a]] -= more
        low[tails[a]] += rest
        low[heads[a]] -= rest
        if ways == _COUNTED:
            third += rest * length
            second += more * length + (third >> 31)
            third &= _HALF - 1
            first += second >> 31
            second &= _HALF - 1
    for node in range(supply.shape[0]):
        if (
            low[node] & (_HALF - 1) != supply[node] & (_HALF - 1)
            or high[node] + (low[node] >> 31) != supply[node] >> 31
        ):
            return 0, 0, 0, 0
    return ways, first, second, third


@njit(cache=True, nogil=True)
def _violated(tails: Ints, heads: Ints, lengths: Ints, potentials: Ints) -> bool:
    """Whether potentials are too large for differences in 64 bits, or differ along an arc by more than its length."""
    for value in potentials:
        if value >= _ROOM or value <= -_ROOM:
            return True
    for a in range(tails.shape[0]):  # noqa: SIM110 — compiled
        if potentials[tails[a]] - potentials[heads[a]] > lengths[a]:
            return True
    return False
