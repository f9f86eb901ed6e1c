"""Moves on a lattice whose shortest paths are the distances of the maximum metric."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from certsynth.base.arrays import Floats

Offset = tuple[int, ...]

MAX_OFFSETS = 40
"""Most arcs from a node into one orthant. An exact graph needs more only if two steps are nearly equal (255 and 256 per
unit length); then some are left out, and `Network.stretch` bounds the error."""


def lattice_offsets(spans: Sequence[int], steps: Sequence[int]) -> tuple[list[Offset], Fraction]:
    r"""Moves in the non-negative orthant whose copies in all orthants are the arcs of a graph, and its stretch.

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

    Only monotone paths from a corner are considered. Between any two nodes there is a mirrored copy of such a path, so
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
