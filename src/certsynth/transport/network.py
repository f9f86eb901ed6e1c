"""The graph that mass moves over: nodes for all combinations of cells, arcs at least as long as distances, a hub."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints, read_only
from certsynth.domain import Cells
from certsynth.domain.label_metric import irreducible_pairs
from certsynth.transport.axis import MAX_ALL_PAIRS_NODES, Axis, Move
from certsynth.transport.lattice import lattice_offsets

MAX_COMPLETE_CELLS = 400
"""Most cells of a product for which an inexact sparse graph is replaced by arcs between all pairs."""

MAX_FREE_ARCS = 500_000
"""Most arcs for free moves of other columns along the arcs of a label metric; beyond, a stride leaves some out."""

MAX_SHARED_CELLS = 2**17
"""Most cells of a network that is kept for other columns. It takes about 300 bytes per cell."""

SHARED_NETWORKS = 4
"""Networks that are kept: numbers with and without missing values give four."""

Arcs = tuple[Ints, Ints, Ints]
"""Tails, heads and lengths."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    r"""Nodes, arcs and a hub for a product of columns under the maximum metric.

    The cost of a signed measure is the cheapest flow that cancels it:

    .. math:: U(\omega) = \min_{x \ge 0} \sum_a length_a\,x_a \quad\text{s.t. at each node: out} - \text{in} = \omega

    where the hub absorbs the total mass. It equals the supremum of ∫f dω over all f that are 1-Lipschitz along the arcs
    with |f| ≤ `hub`. Arcs are never shorter than the distance they span, so on measures of mass zero U is at least W1
    and at most `stretch` times W1. Lengths are multiples of 1/`unit`. docs/explanation/proofs/transport.md proves which
    graphs are exact.

    Isolated points are connected through the hub at half the diameter or, if the hub is farther away, through another
    node at half the diameter that absorbs no mass. Lighter columns have arcs of their own for this.

    Paper: Eq. (2) [duality], Eq. (17) [transport-loss]
    """

    tails: Ints
    heads: Ints
    lengths: Ints
    node_of_cell: Ints
    nodes: int
    unit: int
    hub: int
    stretch: Fraction

    @classmethod
    def of(
        cls, cells: Sequence[Cells], *, hub: Fraction | None = None, max_complete: int = MAX_COMPLETE_CELLS
    ) -> Network:
        """The network of a product of columns, with the hub at distance `hub` (half the diameter) from every node.

        Any distance of at least half the diameter gives measures of mass zero the same cost. With at most
        `max_complete` cells, a sparse graph that is not exact is replaced by one of all pairs.
        """
        diameter = max(c.diameter for c in cells)
        hub = diameter / 2 if hub is None else hub
        if hub < diameter / 2:
            raise ValueError("a hub closer than half the diameter would be a short cut")
        unit = 2 * math.lcm(hub.denominator, diameter.denominator, *(c.denominator for c in cells))
        axes = [Axis.of(c, unit, every_step=len(cells) > 2) for c in cells]
        graph: _Graph = _Sparse(axes, int(diameter * unit))
        if graph.stretch > 1 and _may_be_complete(cells, max_complete):
            graph = _Complete(axes, int(diameter * unit))
        return graph.network(unit, int(hub * unit))

    @property
    def cells(self) -> int:
        return len(self.node_of_cell)

    def supply(self, measure: Ints) -> Ints:
        """A signed measure on cells as supplies of the nodes; the hub balances them."""
        supply = np.zeros(self.nodes, dtype=np.int64)
        supply[self.node_of_cell] = measure
        supply[-1] = -measure.sum()
        return supply


def shared_network(cells: Sequence[Cells]) -> Network:
    """`Network.of(cells)`, kept for other columns with the same cells: many pairs of columns have few forms."""
    if math.prod(c.size for c in cells) > MAX_SHARED_CELLS or any(c.label_metric is not None for c in cells):
        return Network.of(cells)
    return _network_of_form(_Form(tuple((c.places.tobytes(), c.steps, c.off_line, c.weight) for c in cells), cells))


@dataclass(frozen=True, slots=True)
class _Form:
    """Columns of cells, equal if their networks are."""

    description: tuple[tuple[bytes, int, int, Fraction], ...]
    cells: Sequence[Cells] = field(compare=False)


@lru_cache(maxsize=SHARED_NETWORKS)
def _network_of_form(form: _Form) -> Network:
    return Network.of(form.cells)


def stretch_of(cells: Sequence[Cells]) -> Fraction:
    """The stretch of `Network.of(cells)`, without making its arcs."""
    diameter = max(c.diameter for c in cells)
    unit = 2 * math.lcm(2 * diameter.denominator, *(c.denominator for c in cells))
    graph = _StretchOnly([Axis.of(c, unit, every_step=len(cells) > 2) for c in cells], int(diameter * unit))
    return Fraction(1) if _may_be_complete(cells, MAX_COMPLETE_CELLS) else graph.stretch


def _may_be_complete(cells: Sequence[Cells], max_complete: int) -> bool:
    """Whether a sparse graph that is not exact may be replaced by one of all pairs."""
    inexact = len({c.weight for c in cells}) > 1 or any(c.label_metric is not None for c in cells)
    return inexact and math.prod(c.size for c in cells) <= max_complete


class _Graph:
    """Nodes for all combinations of some nodes of each axis, with arcs between them."""

    def __init__(self, axes: Sequence[Axis], diameter: int, nodes_of_axes: Sequence[Ints]) -> None:
        self.axes, self.diameter = axes, diameter
        self.grid = np.arange(math.prod(map(len, nodes_of_axes))).reshape([len(nodes) for nodes in nodes_of_axes])
        self.nodes = self.grid.size
        self.arcs: list[Arcs] = []
        self.stretch = Fraction(1)
        self.has_isolated = False

    def cells(self) -> Ints:
        """The node of each cell."""
        return self.grid.ravel()

    def network(self, unit: int, hub: int) -> Network:
        """Add the hub, and sort the arcs by tail and head."""
        tails, heads, lengths = ([arcs[part] for arcs in self.arcs] for part in range(3))
        everywhere, nodes = np.arange(self.grid.size), self.nodes
        ways = [self.diameter // 2, hub] if self.has_isolated and 2 * hub > self.diameter else [hub]
        for way in ways:  # a far hub does not connect isolated points
            middle = np.full(len(everywhere), nodes)
            tails += [everywhere, middle]
            heads += [middle, everywhere]
            lengths += [np.full(2 * len(everywhere), way)]
            nodes += 1
        arcs = _sort_arcs(np.concatenate(tails), np.concatenate(heads), np.concatenate(lengths), nodes)
        return Network(
            tails=read_only(arcs[0]),
            heads=read_only(arcs[1]),
            lengths=read_only(arcs[2]),
            node_of_cell=read_only(self.cells()),
            nodes=nodes,
            unit=unit,
            hub=hub,
            stretch=self.stretch,
        )


class _Sparse(_Graph):
    """Few arcs, on all nodes of the axes.

    Along lines it is a lattice. While one axis moves from an isolated point, or along an arc of a label metric, the
    other axes may move equally far at no cost, through copies of their nodes.
    """

    def __init__(self, axes: Sequence[Axis], diameter: int) -> None:
        super().__init__(axes, diameter, [np.arange(axis.size) for axis in axes])
        self.free_moves: dict[tuple[int, int, int], tuple[Ints, Ints, Ints]] = {}
        for on_line in itertools.product((True, False), repeat=len(axes)):
            if any(on_line) and all(axis.line or not line for axis, line in zip(axes, on_line, strict=True)):
                self._add_line_arcs(on_line)
        for j, axis in enumerate(axes):
            self._add_star_arcs(j, axis)
            self._add_metric_arcs(j, axis)

    def cells(self) -> Ints:
        return self.grid[np.ix_(*(axis.codes for axis in self.axes))].ravel()

    def _add_line_arcs(self, on_line: Sequence[bool]) -> None:
        """Add the arcs along the lines of some axes, for each combination of nodes off the line of the others."""
        block = self.grid[
            tuple(
                slice(0, axis.line) if line else slice(axis.line, None)
                for axis, line in zip(self.axes, on_line, strict=True)
            )
        ]
        moving = [j for j, line in enumerate(on_line) if line and self.axes[j].line > 1]
        if not moving or not block.size:
            return
        spans, steps = [self.axes[j].line - 1 for j in moving], [self.axes[j].step for j in moving]
        if all(self.axes[j].even for j in moving):
            offsets, stretch = lattice_offsets(spans, steps)
        else:
            # A path along one axis after the other is at most the sum of the distances in the columns.
            offsets = [move for move in itertools.product((0, 1), repeat=len(moving)) if any(move)]
            stretch = Fraction(len(moving))
        self.stretch = max(self.stretch, stretch)
        for offset in offsets:
            moved = [j for j, move in zip(moving, offset, strict=True) if move]
            for signs in itertools.product((1, -1), repeat=len(moved) - 1):
                move = dict.fromkeys(range(len(self.axes)), 0) | dict(zip(moving, offset, strict=True))
                for j, sign in zip(moved[1:], signs, strict=True):
                    move[j] *= sign
                tail = [slice(max(0, -move[j]), n - max(0, move[j])) for j, n in enumerate(block.shape)]
                head = [slice(max(0, move[j]), n - max(0, -move[j])) for j, n in enumerate(block.shape)]
                lengths = [
                    np.abs(self.axes[j].positions[tail[j]] - self.axes[j].positions[head[j]]).reshape(
                        [-1 if i == j else 1 for i in range(len(self.axes))]
                    )
                    for j in moved
                ]
                length = np.maximum.reduce(np.broadcast_arrays(*lengths))
                self._connect(block[tuple(tail)], block[tuple(head)], length)
                self._connect(block[tuple(head)], block[tuple(tail)], length)

    def _add_star_arcs(self, j: int, axis: Axis) -> None:
        star = axis.star()
        if star is None:
            return
        if star.length == self.diameter:
            self.has_isolated = True  # the hub connects them
            return
        self._add_move(j, star)
        heavier = [other for i, other in enumerate(self.axes) if i != j and other.diameter > star.length]
        if len(heavier) > 1 and any(
            other.cells.label_metric is not None or other.lost_share(star.length) for other in heavier
        ):
            self.stretch = max(self.stretch, Fraction(len(self.axes)))
        elif len(heavier) == 1 and heavier[0].cells.label_metric is not None and heavier[0].size > MAX_ALL_PAIRS_NODES:
            self.stretch = max(self.stretch, 1 + heavier[0].lost_share(star.length))

    def _add_metric_arcs(self, j: int, axis: Axis) -> None:
        moves, others = list(axis.metric_moves()), [other for i, other in enumerate(self.axes) if i != j]
        if not moves or not others:
            for move in moves:
                self._add_move(j, move)
            return
        pairs = sum(2 * o.line**2 * move.length / o.diameter for o in others if o.diameter for move in moves)
        stride = 1 + int(pairs / MAX_FREE_ARCS)
        for move in moves:
            self._add_move(j, move, stride=stride)
        by_columns = Fraction(len(self.axes))  # moving one column after the other
        if len(others) > 1:
            self.stretch = by_columns
        else:
            lost = max(others[0].lost_share(move.length, stride) for move in moves)
            self.stretch = max(self.stretch, min(by_columns, 1 + lost))

    def _add_move(self, j: int, move: Move, *, stride: int = 0) -> None:
        """Add the arcs for a move of one axis, during which the others move equally far at no cost.

        An axis that can reach any node meanwhile is collapsed to one node during the move; the others have copies of
        their nodes.
        """
        kept, free = [], {}
        for i, other in enumerate(self.axes):
            if i != j and other.diameter > move.length:
                kept.append(i)
                ways = self._cached_free_moves(i, move.length, stride)
                if len(ways[0]) > other.size:
                    free[i] = ways
        here, there = self.grid.take(move.froms, axis=j), self.grid.take(move.tos, axis=j)
        apart = len(kept) == len(self.axes) - 1
        if apart and not free and 1 in (len(move.froms), len(move.tos)):
            self._connect(here, there, move.length)
            return
        cost = move.length if free else move.length // 2
        if len(move.froms) > 1 or not apart:
            here = self._connect(here, self._copies(kept), 0 if free else cost)
        for i, (tails, heads, more) in free.items():
            last = i == max(free) and len(move.tos) == 1 and apart
            then = there if last else self._copies(kept)
            shape = [-1 if axis == i else 1 for axis in range(len(self.axes))]
            self._connect(here.take(tails, axis=i), then.take(heads, axis=i), (more + cost).reshape(shape))
            here, cost = then, 0
            if last:
                return
        self._connect(here, there, 0 if free else move.length - cost)

    def _cached_free_moves(self, i: int, length: int, stride: int) -> tuple[Ints, Ints, Ints]:
        key = i, length, stride
        if key not in self.free_moves:
            self.free_moves[key] = self.axes[i].free_moves(length, stride)
        return self.free_moves[key]

    def _connect(self, froms: Ints, tos: Ints, length: Ints | int) -> Ints:
        tails, heads, lengths = np.broadcast_arrays(froms, tos, length)
        self.arcs.append((tails.ravel(), heads.ravel(), lengths.ravel()))
        return tos

    def _copies(self, kept: Sequence[int]) -> Ints:
        """New nodes for all combinations of nodes of the `kept` axes."""
        shape = [axis.size if i in kept else 1 for i, axis in enumerate(self.axes)]
        count = math.prod(shape)
        self.nodes += count
        return np.arange(self.nodes - count, self.nodes).reshape(shape)


class _StretchOnly(_Sparse):
    """The sparse graph without its arcs, for its stretch."""

    def _connect(self, froms: Ints, tos: Ints, length: Ints | int) -> Ints:
        return tos


class _Complete(_Graph):
    """Arcs between all pairs of cells without a third exactly between them."""

    def __init__(self, axes: Sequence[Axis], diameter: int) -> None:
        super().__init__(axes, diameter, [axis.codes for axis in axes])
        codes = np.unravel_index(self.cells(), self.grid.shape)
        each = [axis.distances()[np.ix_(axis.codes, axis.codes)] for axis in axes]
        far = np.maximum.reduce([d[np.ix_(c, c)] for d, c in zip(each, codes, strict=True)])
        tails, heads = np.nonzero(irreducible_pairs(far))
        self.arcs.append((tails, heads, far[tails, heads]))


@njit(cache=True, nogil=True)
def _sort_arcs(tails: Ints, heads: Ints, lengths: Ints, nodes: int) -> Arcs:
    """Arcs sorted by tail and head, as the solvers need them; of parallel arcs the shortest."""
    order = np.empty(len(heads), dtype=np.int64)
    for i in range(len(order)):
        order[i] = i
    order = _sort_by(tails, _sort_by(heads, order, nodes), nodes)
    kept = 0
    found = np.empty((3, len(order)), dtype=np.int64)
    for a in order:
        if kept and found[0, kept - 1] == tails[a] and found[1, kept - 1] == heads[a]:
            found[2, kept - 1] = min(found[2, kept - 1], lengths[a])
            continue
        found[0, kept], found[1, kept], found[2, kept] = tails[a], heads[a], lengths[a]
        kept += 1
    return found[0, :kept].copy(), found[1, :kept].copy(), found[2, :kept].copy()


@njit(cache=True, nogil=True)
def _sort_by(ends: Ints, order: Ints, nodes: int) -> Ints:
    """Stable counting sort of the arcs in `order` by one of their ends."""
    places = np.zeros(nodes + 1, dtype=np.int64)
    for end in ends:
        places[end + 1] += 1
    for node in range(nodes):
        places[node + 1] += places[node]
    found = np.empty(len(order), dtype=np.int64)
    for a in order:
        found[places[ends[a]]] = a
        places[ends[a]] += 1
    return found
