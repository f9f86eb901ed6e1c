"""Distances among labels: along a tree of codes, or from a table. A finite metric, in whole numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints, read_only

MOST_UNITS = 10_000
"""Distances from a table are whole multiples of one over at most this; others are rounded up, which keeps a metric."""

Crossing = tuple[Ints, Ints, int]
"""From each of these nodes to each of those, at one length."""


@dataclass(frozen=True, slots=True, eq=False)
class Web:
    """Nodes, the first `size` of which are labels, and their distances in multiples of 1/`unit`: labels are at most 1
    apart.

    In a tree `parents` names the parent of each node (−1: the root). Nodes after the labels are codes that no row
    holds: what lies between others.
    """

    distances: Ints
    unit: int
    size: int
    parents: Ints | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "distances", read_only(self.distances))
        if self.parents is not None:
            object.__setattr__(self, "parents", read_only(self.parents))

    @property
    def inner(self) -> int:
        """Nodes that are no labels."""
        return len(self.distances) - self.size

    @property
    def diameter(self) -> Fraction:
        return Fraction(int(self.distances[: self.size, : self.size].max(initial=0)), self.unit)

    def take(self, labels: Ints) -> Web:
        """The web of some of its labels, in that order; in a tree, with what lies between them."""
        labels = np.asarray(labels, dtype=np.int64)
        if np.array_equal(labels, np.arange(self.size)):
            return self
        if self.parents is None:
            return Web(self.distances[np.ix_(labels, labels)], self.unit, len(labels))
        return self._pruned(labels)

    def _pruned(self, labels: Ints) -> Web:
        """A tree of some of its labels and what lies between them."""
        assert self.parents is not None
        on_path = _between(self.distances, labels)
        nodes = np.concatenate([labels, np.setdiff1d(on_path, labels)])
        place = np.full(len(self.parents) + 1, -1)
        place[nodes] = np.arange(len(nodes))
        distances = self.distances[np.ix_(nodes, nodes)]
        return Web(distances, self.unit, len(labels), place[self.parents[nodes]])

    def crossings(self) -> Iterator[Crossing]:
        """Arcs that make up all distances: between parents and children, or pairs of labels with none between them."""
        if self.parents is None:
            for a, b in zip(*np.nonzero(irreducible(self.distances)), strict=True):
                yield np.array([a]), np.array([b]), int(self.distances[a, b])
            return
        for parent in np.unique(self.parents[self.parents >= 0]):
            children = np.flatnonzero(self.parents == parent)
            lengths = self.distances[children, parent]
            for length in np.unique(lengths):
                some = children[lengths == length]
                yield some, np.array([parent]), int(length)
                yield np.array([parent]), some, int(length)


def tree(paths: Sequence[tuple[str, ...]]) -> Web:
    """The tree of codes that are given with all that is above them. An edge is one over the longest way.

    >>> web = tree([("a",), ("a", "b"), ("a", "c"), ("d",)])
    >>> web.unit, web.distances[:4, :4].tolist()
    (3, [[0, 1, 1, 2], [1, 0, 2, 3], [1, 2, 0, 3], [2, 3, 3, 0]])
    """
    node = {path: i for i, path in enumerate(paths)}
    for path in paths:
        for above in range(1, len(path)):
            node.setdefault(path[:above], len(node))
    parents = np.full(len(node), -1, dtype=np.int64)
    for path, i in node.items():
        if len(path) > 1:
            parents[i] = node[path[:-1]]
    if (parents < 0).sum() > 1:  # several trees hang on one root
        parents[parents < 0] = len(parents)
        parents = np.append(parents, -1)
    distances, size = _tree_distances(parents), len(paths)
    unit = max(int(distances[:size, :size].max()), 1)
    return Web(distances, unit, size, parents)._pruned(np.arange(size))


def table(distances: Sequence[Sequence[Fraction]]) -> Web:
    """A web of given distances, as shares of the largest one."""
    largest = max((max(row) for row in distances), default=Fraction(0)) or Fraction(1)
    parts = {(distance / largest).denominator for distance in {distance for row in distances for distance in row}}
    unit = min(math.lcm(*parts), MOST_UNITS) if max(parts) <= MOST_UNITS else MOST_UNITS
    whole = [[math.ceil(unit * distance / largest) for distance in row] for row in distances]
    return Web(np.array(whole, dtype=np.int64).reshape(len(whole), len(whole)), unit, len(whole))


def irreducible(distances: Ints) -> np.ndarray:
    """Pairs of points that have no third exactly between them: their arcs make up all other distances."""
    count = len(distances)
    keep = ~np.eye(count, dtype=bool)
    for middle in range(count):
        through = distances[:, middle, None] + distances[None, middle, :]
        through[middle, :] = through[:, middle] = np.iinfo(np.int64).max
        keep &= through > distances
    return keep


def _tree_distances(parents: Ints) -> Ints:
    """Edges between all nodes, by how many ancestors two nodes share."""
    above: list[Ints] = [np.arange(len(parents))]
    while (above[-1] >= 0).any():
        above.append(np.where(above[-1] >= 0, parents[above[-1]], -1))
    depth = np.sum([a >= 0 for a in above], axis=0)
    by_depth = np.full((int(depth.max()), len(parents)), -1)
    for a in above:
        known = np.flatnonzero(a >= 0)
        by_depth[depth[a[known]] - 1, known] = a[known]
    shared = np.zeros((len(parents), len(parents)), dtype=np.int64)
    for ancestors in by_depth:
        shared += (ancestors[:, None] == ancestors[None, :]) & (ancestors >= 0)
    return depth[:, None] + depth[None, :] - 2 * shared


def _between(distances: Ints, labels: Ints) -> Ints:
    """Nodes of a tree that lie between some of its nodes: on the way from the first to any other."""
    first = labels[0]
    on_way = np.zeros(len(distances), dtype=bool)
    for label in labels:
        on_way |= distances[first] + distances[:, label] == distances[first, label]
    return np.flatnonzero(on_way)


@functools.lru_cache(maxsize=64)
def tree_of(paths: tuple[tuple[str, ...], ...]) -> Web:
    """`tree`, remembered."""
    return tree(paths)


@functools.lru_cache(maxsize=64)
def table_of(distances: tuple[tuple[Fraction, ...], ...]) -> Web:
    """`table`, remembered."""
    return table(distances)
