"""The graph that mass moves over: lattices of cells with arcs of true length, and a hub."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from certsynth.arrays import Floats, Ints, frozen
from certsynth.domain import Cells, Groups

Offset = tuple[int, ...]

MAX_OFFSETS = 40
"""Arcs from a node into one orthant. More are needed for an exact graph only when two steps are nearly, but not quite,
equal (255 and 256 to the unit); then some are left out, and `Network.stretch` says what that costs."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    r"""Nodes, arcs and a hub, for the product of some columns under the maximum metric.

    The cost of a signed measure is the cheapest flow that cancels it:

    .. math:: U(\omega) = \min_{x \ge 0} \sum_a length_a\,x_a \quad\text{s.t. at each node: out} - \text{in} = \omega

    where the hub takes up what does not sum to zero. It equals the supremum of ∫f dω over all f that are 1-Lipschitz
    along the arcs with |f| ≤ `hub`. Arcs are never shorter than the distance they span, so U is at least W1 on measures
    of equal mass, and equal to it where `stretch` is 1. Lengths are whole multiples of 1/`unit`.

    Columns with points apart fall into layers, one for each choice of those points, and what lies in different layers
    is at distance 1: the hub, at half the diameter from every node, is the way between them. Where the hub is further
    off, another node at half the diameter is, which takes up no mass.

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
    def of(cls, cells: Sequence[Cells], *, hub: Fraction | None = None) -> Network:
        """`hub`: how far the hub is from every node, by default half the diameter of the space.

        Any distance from half the diameter on leaves the cost of measures of mass zero unchanged.
        """
        diameter = max(c.diameter for c in cells)
        hub = diameter / 2 if hub is None else hub
        if hub < diameter / 2:
            raise ValueError("a hub closer than half the diameter would be a short cut")
        unit = 2 * math.lcm(hub.denominator, *(c.steps for c in cells if len(c.places)))
        node_of_cell = np.full([c.size for c in cells], -1, dtype=np.int64)
        tails: list[Ints] = []
        heads: list[Ints] = []
        lengths: list[Ints] = []
        nodes, layers, stretch = 0, 0, Fraction(1)
        for on_line in itertools.product((True, False), repeat=len(cells)):
            if any(not (len(c.places) if line else c.apart) for c, line in zip(cells, on_line, strict=True)):
                continue
            layer = (_Uneven if any(isinstance(c, Groups) for c in cells) else _Layers)(cells, on_line, unit)
            codes = [
                np.arange(len(c.places)) if line else len(c.places) + np.arange(c.apart)
                for c, line in zip(cells, on_line, strict=True)
            ]
            node_of_cell[np.ix_(*codes)] = nodes + layer.cell_nodes()
            for tail, head, length in layer.arcs():
                tails += [nodes + tail, nodes + head]
                heads += [nodes + head, nodes + tail]
                lengths += [np.broadcast_to(length, len(tail))] * 2
            nodes, layers = nodes + layer.size, layers + layer.copies
            stretch = max(stretch, layer.stretch)
        everywhere, ways = np.arange(nodes), [hub]
        if layers > 1 and hub > diameter / 2:  # a far hub is no way between layers
            ways.insert(0, diameter / 2)
        for way in ways:
            middle = np.full(len(everywhere), nodes)
            tails += [everywhere, middle]
            heads += [middle, everywhere]
            lengths += [np.full(2 * len(everywhere), int(way * unit))]
            nodes += 1
        all_tails, all_heads, all_lengths = map(np.concatenate, (tails, heads, lengths))
        by_tail = np.lexsort((all_heads, all_tails))  # the solver wants them so
        return cls(
            tails=frozen(all_tails[by_tail]),
            heads=frozen(all_heads[by_tail]),
            lengths=frozen(all_lengths[by_tail].astype(np.int64)),
            node_of_cell=frozen(node_of_cell.ravel()),
            nodes=nodes,
            unit=unit,
            hub=int(hub * unit),
            stretch=stretch,
        )

    @property
    def cells(self) -> int:
        return len(self.node_of_cell)

    def supply(self, measure: Ints) -> Ints:
        """A signed measure on cells as supplies of the nodes, the hub balancing them."""
        supply = np.zeros(self.nodes, dtype=np.int64)
        supply[self.node_of_cell] = measure
        supply[-1] = -measure.sum()
        return supply


class _Layers:
    """All layers with the same columns on the line: copies of one lattice, one for each choice of points apart."""

    def __init__(self, cells: Sequence[Cells], on_line: Sequence[bool], unit: int) -> None:
        self.cells, self.on_line = cells, on_line
        self.shape = tuple(c.span + 1 if line else 1 for c, line in zip(cells, on_line, strict=True))
        self.copies = math.prod(1 if line else c.apart for c, line in zip(cells, on_line, strict=True))
        self.volume = math.prod(self.shape)
        self.size = self.copies * self.volume
        steps = [unit // c.steps if line else 0 for c, line in zip(cells, on_line, strict=True)]
        axes = [j for j, line in enumerate(on_line) if line and self.shape[j] > 1]
        spans, lengths = [self.shape[j] - 1 for j in axes], [steps[j] for j in axes]
        offsets, self.stretch = lattice_offsets(spans, lengths)
        self.offsets: list[tuple[Offset, int]] = []
        for offset in offsets:
            full = [0] * len(cells)
            for j, move in zip(axes, offset, strict=True):
                full[j] = move
            length = max(move * step for move, step in zip(offset, lengths, strict=True))
            self.offsets.append((tuple(full), length))

    def cell_nodes(self) -> Ints:
        """Node of each cell of these layers, as an array over the columns' cells."""
        lattice = np.arange(self.volume).reshape(self.shape)
        on = np.ix_(
            *(
                c.places - c.places[0] if line else np.zeros(1, np.int64)
                for c, line in zip(self.cells, self.on_line, strict=True)
            )
        )
        apart = [1 if line else c.apart for c, line in zip(self.cells, self.on_line, strict=True)]
        copy = np.arange(self.copies).reshape(apart)
        return np.asarray(copy * self.volume + lattice[on])

    def arcs(self) -> Iterator[tuple[Ints, Ints, int | Ints]]:
        """Arcs of all copies in one direction: tails, heads, and their lengths, or the one they share."""
        lattice = np.arange(self.volume).reshape(self.shape)
        start = np.arange(self.copies)[:, None] * self.volume
        for offset, length in self.offsets:
            moving = [j for j, move in enumerate(offset) if move]
            for signs in itertools.product((1, -1), repeat=len(moving) - 1):
                move = list(offset)
                for j, sign in zip(moving[1:], signs, strict=True):
                    move[j] *= sign
                tail = lattice[tuple(slice(max(0, -m), n - max(0, m)) for m, n in zip(move, self.shape, strict=True))]
                head = lattice[tuple(slice(max(0, m), n - max(0, -m)) for m, n in zip(move, self.shape, strict=True))]
                yield (start + tail.ravel()).ravel(), (start + head.ravel()).ravel(), length


class _Uneven(_Layers):
    """Layers of cells that are not evenly spaced: arcs of true length between neighbours in every direction.

    Along the axes alone a way is at most the sum over columns of what it needs to be, and the distance their maximum:
    so the graph stretches distances by at most the number of columns on the line.
    """

    def __init__(self, cells: Sequence[Cells], on_line: Sequence[bool], unit: int) -> None:
        self.cells, self.on_line = cells, on_line
        self.places = [
            c.places * (unit // c.steps) if line else np.zeros(1, np.int64)
            for c, line in zip(cells, on_line, strict=True)
        ]
        self.shape = tuple(len(places) for places in self.places)
        self.volume = math.prod(self.shape)
        self.copies = math.prod(c.apart for c, line in zip(cells, on_line, strict=True) if not line)
        self.size = self.volume * self.copies
        axes = [j for j, length in enumerate(self.shape) if length > 1]
        self.stretch = Fraction(max(1, len(axes)))
        self.offsets = [(move, 0) for move in itertools.product(*(range(2 if n > 1 else 1) for n in self.shape))][1:]

    def cell_nodes(self) -> Ints:
        apart = [1 if line else c.apart for c, line in zip(self.cells, self.on_line, strict=True)]
        copy = np.arange(self.copies).reshape(apart)
        return np.asarray(copy * self.volume + np.arange(self.volume).reshape(self.shape))

    def arcs(self) -> Iterator[tuple[Ints, Ints, int | Ints]]:
        for tail, head, _ in super().arcs():
            spans = [
                np.abs(places[a] - places[b])
                for places, a, b in zip(
                    self.places,
                    np.unravel_index(tail % self.volume, self.shape),
                    np.unravel_index(head % self.volume, self.shape),
                    strict=True,
                )
            ]
            yield tail, head, np.max(spans, axis=0)


def lattice_offsets(spans: Sequence[int], steps: Sequence[int]) -> tuple[list[Offset], Fraction]:
    r"""Moves in the non-negative orthant whose copies in all orthants make a graph on the lattice, and its stretch.

    Equal steps: all moves in {0, 1}^s, exact for the maximum metric. Two columns with steps a, b: the quadrant is the
    union of two cones, {a·i ≥ b·j} and {a·i ≤ b·j}, on each of which the distance max(a·i, b·j) is linear. Every
    lattice point of a cone is a sum of elements of its Hilbert basis, so that arcs along both bases give every distance
    exactly, by a path inside the rectangle between its ends. Otherwise moves up to the longest step, not always exact.

    >>> lattice_offsets([5, 5], [1, 1])
    ([(0, 1), (1, 0), (1, 1)], Fraction(1, 1))
    >>> lattice_offsets([3, 6], [2, 1])  # the other step is twice as long
    ([(0, 1), (1, 0), (1, 1), (1, 2)], Fraction(1, 1))
    """
    if len(set(steps)) <= 1:
        moves = [m for m in itertools.product((0, 1), repeat=len(steps)) if any(m)]
        return moves, Fraction(1)
    if len(steps) == 2:
        basis = set(_hilbert_basis(steps[0], steps[1], spans[0]))
        basis |= {(i, j) for j, i in _hilbert_basis(steps[1], steps[0], spans[1])}
        moves = sorted((i, j) for i, j in basis if i <= spans[0] and j <= spans[1])
        if len(moves) <= MAX_OFFSETS:
            return moves, Fraction(1)
        moves = sorted(sorted(moves, key=lambda m: (m[0] + m[1], m))[:MAX_OFFSETS])
    else:
        reach = [min(3, -(-max(steps) // step), span) for step, span in zip(steps, spans, strict=True)]
        moves = [m for m in itertools.product(*(range(r + 1) for r in reach)) if math.gcd(*m) == 1]
    return moves, _stretch(moves, spans, steps)


def _hilbert_basis(long: int, short: int, span: int) -> list[Offset]:
    """Hilbert basis of {(i, j) ≥ 0: long·i ≥ short·j}, up to i = span.

    Its elements are (1, t) for t ≤ long/short, and those points (i, ⌊i·long/short⌋) under the slanted side that are not
    sums of two others there.
    """
    top = [i * long // short for i in range(min(span, short // math.gcd(long, short)) + 1)]
    basis: list[Offset] = [(1, t) for t in range(top[1] + 1)] if span else []
    for i in range(2, len(top)):
        if all(top[h] + top[i - h] < top[i] for h in range(1, i // 2 + 1)):
            basis.append((i, top[i]))
    return basis


def _stretch(moves: Sequence[Offset], spans: Sequence[int], steps: Sequence[int]) -> Fraction:
    """Largest ratio of graph distance to distance, over all differences of lattice points.

    Shortest paths from a corner that never turn back: between any two nodes a mirrored copy of such a path exists, so
    the graph is never worse than this.
    """
    shape = tuple(span + 1 for span in spans)
    lattice = np.arange(math.prod(shape)).reshape(shape)
    tails, heads, lengths = [], [], []
    for move in moves:
        tail = lattice[tuple(slice(0, n - m) for m, n in zip(move, shape, strict=True))].ravel()
        head = lattice[tuple(slice(m, n) for m, n in zip(move, shape, strict=True))].ravel()
        tails.append(tail)
        heads.append(head)
        lengths.append(np.full(len(tail), max(m * s for m, s in zip(move, steps, strict=True))))
    arcs = (np.concatenate(lengths), (np.concatenate(tails), np.concatenate(heads)))
    found: Floats = dijkstra(coo_array(arcs, shape=(lattice.size,) * 2).tocsr(), indices=0)
    true = np.max([np.indices(shape)[j] * step for j, step in enumerate(steps)], axis=0).ravel()
    worst = np.argmax(found[1:] / true[1:]) + 1
    return Fraction(int(found[worst]), int(true[worst]))
