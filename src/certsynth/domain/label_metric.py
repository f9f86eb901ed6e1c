"""Label metrics: integer distances among labels, along a tree of codes or from a matrix."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints, read_only

MAX_UNITS = 10_000
"""Most units per diameter of a metric from a matrix: distances that need more are rounded up, which keeps a metric."""

ArcBundle = tuple[Ints, Ints, int]
"""Arcs from each of the first nodes to each of the second, all of one length."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelMetric:
    """A metric on nodes, the first `size` of which are the labels; distances are multiples of 1/`unit`.

    Labels are at most 1 apart. In a tree, `parents` gives the parent of each node (−1 for the root), and the nodes
    after the labels are inner codes, which no row holds.
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
        """Number of nodes that are not labels."""
        return len(self.distances) - self.size

    @property
    def diameter(self) -> Fraction:
        return Fraction(int(self.distances[: self.size, : self.size].max(initial=0)), self.unit)

    def take(self, labels: Ints) -> LabelMetric:
        """The metric restricted to some labels, in that order; a tree keeps the nodes between them."""
        labels = np.asarray(labels, dtype=np.int64)
        if np.array_equal(labels, np.arange(self.size)):
            return self
        if self.parents is None:
            return LabelMetric(self.distances[np.ix_(labels, labels)], self.unit, len(labels))
        return self._subtree(labels)

    def _subtree(self, labels: Ints) -> LabelMetric:
        """The tree of some labels and the nodes between them."""
        assert self.parents is not None
        on_path = _nodes_between(self.distances, labels)
        nodes = np.concatenate([labels, np.setdiff1d(on_path, labels)])
        place = np.full(len(self.parents) + 1, -1)
        place[nodes] = np.arange(len(nodes))
        distances = self.distances[np.ix_(nodes, nodes)]
        return LabelMetric(distances, self.unit, len(labels), place[self.parents[nodes]])

    def arcs(self) -> Iterator[ArcBundle]:
        """Arcs whose shortest paths give all distances: tree edges, or pairs of labels without a third between them."""
        if self.parents is None:
            for a, b in zip(*np.nonzero(irreducible_pairs(self.distances)), strict=True):
                yield np.array([a]), np.array([b]), int(self.distances[a, b])
            return
        for parent in np.unique(self.parents[self.parents >= 0]):
            children = np.flatnonzero(self.parents == parent)
            lengths = self.distances[children, parent]
            for length in np.unique(lengths):
                some = children[lengths == length]
                yield some, np.array([parent]), int(length)
                yield np.array([parent]), some, int(length)


def tree_metric(paths: Sequence[tuple[str, ...]]) -> LabelMetric:
    """The metric of a tree of codes, each given by its path from the root; the longest path has length 1.

    >>> metric = tree_metric([("a",), ("a", "b"), ("a", "c"), ("d",)])
    >>> metric.unit, metric.distances[:4, :4].tolist()
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
    if (parents < 0).sum() > 1:  # join several trees at a new root
        parents[parents < 0] = len(parents)
        parents = np.append(parents, -1)
    distances, size = _tree_distances(parents), len(paths)
    unit = max(int(distances[:size, :size].max()), 1)
    return LabelMetric(distances, unit, size, parents)._subtree(np.arange(size))


def matrix_metric(distances: Sequence[Sequence[Fraction]]) -> LabelMetric:
    """The metric of given distances, divided by the largest."""
    largest = max((max(row) for row in distances), default=Fraction(0)) or Fraction(1)
    parts = {(distance / largest).denominator for distance in {distance for row in distances for distance in row}}
    unit = min(math.lcm(*parts), MAX_UNITS) if max(parts) <= MAX_UNITS else MAX_UNITS
    whole = [[math.ceil(unit * distance / largest) for distance in row] for row in distances]
    return LabelMetric(np.array(whole, dtype=np.int64).reshape(len(whole), len(whole)), unit, len(whole))


def irreducible_pairs(distances: Ints) -> np.ndarray:
    """Mask of the pairs without a third point exactly between them: arcs between those pairs give all distances."""
    count = len(distances)
    keep = ~np.eye(count, dtype=bool)
    for middle in range(count):
        through = distances[:, middle, None] + distances[None, middle, :]
        through[middle, :] = through[:, middle] = np.iinfo(np.int64).max
        keep &= through > distances
    return keep


def _tree_distances(parents: Ints) -> Ints:
    """Number of edges between all pairs of nodes, from the number of ancestors that two nodes share."""
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


def _nodes_between(distances: Ints, labels: Ints) -> Ints:
    """Nodes on the path from the first of some nodes of a tree to any other of them."""
    first = labels[0]
    on_way = np.zeros(len(distances), dtype=bool)
    for label in labels:
        on_way |= distances[first] + distances[:, label] == distances[first, label]
    return np.flatnonzero(on_way)


@functools.lru_cache(maxsize=64)
def cached_tree_metric(paths: tuple[tuple[str, ...], ...]) -> LabelMetric:
    """`tree_metric`, cached by its paths."""
    return tree_metric(paths)


@functools.lru_cache(maxsize=64)
def cached_matrix_metric(distances: tuple[tuple[Fraction, ...], ...]) -> LabelMetric:
    """`matrix_metric`, cached by its distances."""
    return matrix_metric(distances)
