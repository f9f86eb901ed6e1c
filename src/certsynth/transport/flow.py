"""Cheapest flows on a network: the proxy loss 𝒰_T, with its proof.

Solvers are not trusted: both the flow and the potentials that they return are checked in integers. A flow that cancels
the measure bounds the cost from above, and potentials that no arc violates bound it from below. If a solver returns
nonsense, the bounds get wider, never wrong.
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
from certsynth.transport.line import find_line_arcs, solve_line, solve_on_arcs
from certsynth.transport.network import Network
from certsynth.transport.pricing import solve_priced
from certsynth.transport.simplex import (
    MAX_PIVOTS_PER_NODE,
    MAX_SIMPLEX_NODES,
    NO_EDGES,
    Edges,
    edges_of,
    improve_flow,
    solve_until,
)

_MASS_LIMIT = 2**61
"""Total mass stays below this, so that flows fit into the solver's 64 bits. Costs are summed here, in Python integers
where necessary. For two tables the mass is at most twice the product of their numbers of rows."""


SPARSE_RATIO = 2
"""Nodes per node with mass from which a measure counts as sparse, and `pricing` is tried first. On a lattice of
256 × 256 points it takes a third to a sixth of the time of our simplex on all nodes if the tables are close; if
not, that simplex takes a third to a sixth of LEMON's time. With mass everywhere LEMON's is as fast as any."""

Solver = Callable[[Network, Ints], tuple[Ints, Ints]]
"""Maps a network and the supplies of its nodes to a flow and potentials."""


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

    The search stops at a flow that costs at most `enough`.
    """
    mass = _mass(measure)
    if mass < 0:
        raise TooLarge("the masses are too large for exact 64-bit transport; use fewer rows.")
    through_hub = network.hub * mass  # always feasible; and no cost is negative
    if not through_hub:
        return Flow(upper=0, lower=0)
    supply = network.supply(measure)
    # If all points are isolated, the hub is the only way, and the potentials sign · hub prove it.
    signs = np.sign(supply) * network.hub
    signs[-1] = 0
    found = Flow(upper=through_hub, lower=potential_value(network, supply, signs) or 0)
    solvers: list[Solver] = [solve_line, solve, solve_fallback]
    sparse = SPARSE_RATIO * np.count_nonzero(supply) <= network.nodes
    if enough > 0 or sparse or network.nodes <= MAX_SIMPLEX_NODES:
        solvers.insert(1, partial(solve_until, enough=enough))
    if sparse and network.nodes > MAX_SIMPLEX_NODES:
        solvers.insert(1, partial(solve_priced, enough=enough))
    for solver in solvers:
        if found.optimal or found.upper <= enough:
            break
        try:
            flow, potentials = solver(network, supply)
            cost, value = flow_cost(network, supply, flow), potential_value(network, supply, potentials)
        except Exception:  # the bounds hold without an answer
            continue
        found = Flow(
            upper=found.upper if cost is None else min(cost, found.upper),
            lower=found.lower if value is None else max(value, found.lower),
        )
    return found


def flow_cost(network: Network, supply: Ints, flow: Ints) -> int | None:
    """The cost of a valid flow: non-negative, with the supply of each node as its net outflow. Else None."""
    if flow.shape != network.tails.shape or flow.dtype != np.int64:
        return None
    ways, *parts = _cost(network.tails, network.heads, network.lengths, flow, supply)
    if not ways:
        return None
    return _join_digits(*parts) if ways == _COUNTED else _python_dot(flow, network.lengths)


def potential_value(network: Network, supply: Ints, potentials: Ints) -> int | None:
    """The lower bound on the cost that potentials prove, if no arc violates them. Else None."""
    if potentials.shape != (network.nodes,) or potentials.dtype != np.int64:
        return None
    if _is_violated(network.tails, network.heads, network.lengths, potentials):
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
    """The difference of two tables of counts as shares of their sums: integers, and the number to divide them by."""
    n, m = int(first.sum()), int(second.sum())
    common = math.gcd(n, m)
    # The check must not depend on where rows lie, or on a common divisor: a refusal would disclose it.
    if 2 * n * m >= _MASS_LIMIT:
        raise TooLarge("the tables are too long for exact 64-bit transport; compare fewer rows.")
    return first * (m // common) - second * (n // common), n * m // common


def transport_loss(first: Floats, second: Floats, network: Network) -> Floats:
    r"""Cost of moving `first` onto `second` over the network, rounded outward: at least their W1.

    .. math:: U(v, u) = \sup \Bigl\{ \sum_z f(z)\,(v_z - u_z) : f \text{ is 1-Lipschitz}, \|f\|_\infty \le hub \Bigr\}

    The measures are rounded to multiples of a small unit, for which the flow is exact, and a bound on the effect of the
    rounding is added. Leading axes are kept.

    Paper: Eq. (17) [transport-loss]
    """
    difference = np.asarray(first - second, dtype=float)
    rows = difference.reshape(-1, difference.shape[-1])
    losses = np.zeros(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        masses = np.abs(rows).sum(axis=1)
    losses[~(masses <= 1e300)] = math.inf  # also where one is NaN
    some = np.flatnonzero((masses > 0) & (masses <= 1e300))
    # The largest power of two for which twice the cost through the hub stays below the limit.
    most = math.log2(_MASS_LIMIT / (8 * max(network.hub, 1)))
    exponents = np.minimum(np.floor(most - np.log2(masses[some])), 60).astype(np.int64)
    measures = np.rint(np.ldexp(rows[some], exponents[:, None])).astype(np.int64)
    rounding = network.cells * network.hub  # half a unit in each cell, through the hub, generously
    for j, exponent, cost in zip(some, exponents.tolist(), _upper_costs(network, measures), strict=True):
        losses[j] = math.ldexp((cost + rounding) / network.unit, -exponent) * (1 + 1e-12)
    return losses.reshape(difference.shape[:-1])


def _upper_costs(network: Network, measures: Ints) -> list[int]:
    """Upper bounds on the costs of many measures, by one compiled call where its proofs succeed."""
    line = find_line_arcs(network.tails, network.heads, network.nodes)
    ways = edges_of(network) if network.nodes <= MAX_SIMPLEX_NODES and not line.size else None
    if len(measures) < 2 or (not line.size and ways is None):
        return [cheapest_flow(network, measure).upper for measure in measures]
    arcs = network.tails, network.heads, network.lengths
    proved, digits = _prove_many(
        line, ways or NO_EDGES, arcs, network.node_of_cell, network.nodes, network.hub, measures
    )
    return [
        _join_digits(*each) if sure else cheapest_flow(network, measure).upper
        for sure, each, measure in zip(proved, digits, measures, strict=True)
    ]


def solve(network: Network, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials from LEMON's network simplex, unchecked."""
    graph = pylmcf.Graph(network.nodes, network.tails.astype(np.int32), network.heads.astype(np.int32))
    graph.set_edge_costs(network.lengths)
    graph.set_edge_capacities(np.full(len(network.tails), np.abs(supply).sum(), dtype=np.int64))
    graph.set_node_supply(supply)
    graph.solve()
    return np.asarray(graph.result(), dtype=np.int64), -np.asarray(graph.raw_potentials(), dtype=np.int64)


def solve_fallback(network: Network, supply: Ints) -> tuple[Ints, Ints]:
    """Flow and potentials from another implementation, twenty times slower: used if no other proved its answer."""
    capacities = np.full(len(network.tails), np.abs(supply).sum(), dtype=np.int64)
    graph = pylmcf.NetworkSimplexLCT(supply, network.tails, network.heads, capacities, network.lengths)
    graph.solve()
    return np.asarray(graph.result(), dtype=np.int64), -np.asarray(graph.raw_potentials(), dtype=np.int64)


def exact_dot(first: Ints, second: Ints) -> int:
    """A scalar product that cannot overflow."""
    counted, *parts = _dot(first, second)
    return _join_digits(*parts) if counted else _python_dot(first, second)


def _python_dot(first: Ints, second: Ints) -> int:
    return sum(int(x) * int(y) for x, y in zip(first, second, strict=True))


_DIGIT_BASE = 2**31
_COUNTED, _TOO_LONG = 1, 2


def _join_digits(top: int, middle: int, low: int) -> int:
    """The Python integer with the given digits in base 2^31."""
    return (int(top) * _DIGIT_BASE + int(middle)) * _DIGIT_BASE + int(low)


# The rest is compiled, because it runs for every draw of the noise. 64 bits suffice at every step.


@njit(cache=True, nogil=True)
def _prove_many(
    line: Ints,
    ways: Edges,
    arcs: tuple[Ints, Ints, Ints],
    node_of_cell: Ints,
    nodes: int,
    hub: int,
    measures: Ints,
) -> tuple[np.ndarray, Ints]:
    """For each measure whether an optimal flow was found and proved, and the digits of its cost.

    The solver is that for a line, if the network is one, and else the simplex. Neither is trusted: the flow is checked,
    and its cost is summed again and compared with the bound that the potentials prove.
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
            flow, potentials = solve_on_arcs(line, lengths, hub, supply)
        else:
            flow, potentials = improve_flow(ways, supply, hub, 0.0, MAX_PIVOTS_PER_NODE * nodes)
        if _is_violated(tails, heads, lengths, potentials):
            continue
        is_flow, top, middle, low = _cost(tails, heads, lengths, flow, supply)
        counted, a, b, c = _dot(supply, potentials)
        if is_flow == _COUNTED and counted and top == a and middle == b and low == c:
            proved[i] = True
            digits[i, 0], digits[i, 1], digits[i, 2] = top, middle, low
    return proved, digits


@njit(cache=True, nogil=True)
def _mass(measure: Ints) -> int:
    """The sum of absolute values, or −1 if it reaches the limit."""
    mass = 0
    for value in measure:
        if value >= _MASS_LIMIT or value <= -_MASS_LIMIT:  # first, since −2^63 has no absolute value
            return -1
        mass += abs(value)
        if mass >= _MASS_LIMIT:
            return -1
    return mass


@njit(cache=True, nogil=True)
def _dot(first: Ints, second: Ints) -> tuple[bool, int, int, int]:
    """Digits of the scalar product, if all |first| are below 2^61 and all |second| below 2^31."""
    top, middle, low = 0, 0, 0
    for i in range(first.shape[0]):
        x, y = first[i], second[i]
        if x >= _MASS_LIMIT or x <= -_MASS_LIMIT or y >= _DIGIT_BASE or y <= -_DIGIT_BASE:
            return False, 0, 0, 0
        low += (x & (_DIGIT_BASE - 1)) * y
        middle += (x >> 31) * y + (low >> 31)
        low &= _DIGIT_BASE - 1
        top += middle >> 31
        middle &= _DIGIT_BASE - 1
    return True, top, middle, low


@njit(cache=True, nogil=True)
def _cost(tails: Ints, heads: Ints, lengths: Ints, flow: Ints, supply: Ints) -> tuple[int, int, int, int]:
    """Whether it is a valid flow, and the digits of its cost unless an arc is too long for them.

    The two digits of the net outflow of a node are summed separately, so that the sums cannot overflow.
    """
    high, low = np.zeros(len(supply), dtype=np.int64), np.zeros(len(supply), dtype=np.int64)
    ways = _COUNTED
    first, second, third = 0, 0, 0
    for a in range(flow.shape[0]):
        moved = flow[a]
        if moved == 0:
            continue
        if moved < 0 or moved >= _MASS_LIMIT:
            return 0, 0, 0, 0
        length = lengths[a]
        if length >= _DIGIT_BASE or length < 0:
            ways = _TOO_LONG
        more, rest = moved >> 31, moved & (_DIGIT_BASE - 1)
        high[tails[a]] += more
        high[heads[a]] -= more
        low[tails[a]] += rest
        low[heads[a]] -= rest
        if ways == _COUNTED:
            third += rest * length
            second += more * length + (third >> 31)
            third &= _DIGIT_BASE - 1
            first += second >> 31
            second &= _DIGIT_BASE - 1
    for node in range(supply.shape[0]):
        if (
            low[node] & (_DIGIT_BASE - 1) != supply[node] & (_DIGIT_BASE - 1)
            or high[node] + (low[node] >> 31) != supply[node] >> 31
        ):
            return 0, 0, 0, 0
    return ways, first, second, third


@njit(cache=True, nogil=True)
def _is_violated(tails: Ints, heads: Ints, lengths: Ints, potentials: Ints) -> bool:
    """Whether potentials are too large for differences in 64 bits, or differ along an arc by more than its length."""
    for value in potentials:
        if value >= _MASS_LIMIT or value <= -_MASS_LIMIT:
            return True
    for a in range(tails.shape[0]):  # noqa: SIM110 — compiled
        if potentials[tails[a]] - potentials[heads[a]] > lengths[a]:
            return True
    return False
