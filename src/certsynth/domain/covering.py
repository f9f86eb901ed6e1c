"""Coverings: few points near all others, at every scale; they order paths and cut trees of noisy counts."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.cells import Cells
from certsynth.domain.label_metric import LabelMetric


def cover(metric: LabelMetric, radius: float) -> tuple[Ints, Ints]:
    """Centres such that every label is within `radius` (diameter 1) of one, and for each label its nearest centre.

    Paper: Eq. (26) [covering]
    """
    order, reach = farthest_first(metric)
    representatives = np.sort(order[: 1 + int((reach > radius * metric.unit).sum())])
    return representatives, np.argmin(metric.distances[: metric.size, representatives], axis=1)


@functools.lru_cache(maxsize=64)
def farthest_first(metric: LabelMetric) -> tuple[Ints, Ints]:
    """Farthest-first traversal: each label is as far as possible from those before it. Returns order and distances.

    The first label minimises the largest distance to the others. Entry i of the distances, which never increase, is
    that of label i + 1 in the order from the labels before it.
    """
    distances = metric.distances[: metric.size, : metric.size]
    order = [int(np.argmin(distances.max(axis=1)))]
    nearest = distances[order[0]].copy()
    reach: list[int] = []
    while len(order) < metric.size:
        order.append(int(np.argmax(nearest)))
        reach.append(int(nearest[order[-1]]))
        nearest = np.minimum(nearest, distances[order[-1]])
        nearest[order[-1]] = -1  # taken: labels at distance 0 must not be picked twice
    return np.array(order), np.array(reach, dtype=np.int64)


@functools.lru_cache(maxsize=64)
def covering_levels(metric: LabelMetric) -> tuple[Ints, ...]:
    """A covering tree as partitions of the labels, each finer than the one before, from one part to single labels.

    Level t has centres within 2^−t of all labels, among them the centres of level t − 1; the parent of a centre is the
    nearest centre of the level before.
    """
    order, reach = farthest_first(metric)
    sizes = [1]
    radius = metric.unit / 2
    while sizes[-1] < metric.size:
        sizes.append(max(sizes[-1], 1 + int((reach > radius).sum())))
        radius = radius / 2 if radius >= 0.5 else -1.0  # below one unit all labels become centres
    levels = [np.arange(metric.size)]  # indexed by position in the order
    for coarse, fine in zip(sizes[-2::-1], sizes[:0:-1], strict=True):
        hangs_on = np.argmin(metric.distances[np.ix_(order[:fine], order[:coarse])], axis=1)
        hangs_on[:coarse] = np.arange(coarse)
        levels.append(hangs_on[levels[-1]])
    place = np.empty(metric.size, dtype=np.int64)
    place[order] = np.arange(metric.size)
    return tuple(level[place] for level in reversed(levels))


def covering_level(cells: Cells, level: int) -> Ints:
    """The part of each label of a column's label metric at one level; empty if there is no such metric."""
    if cells.label_metric is None:
        return np.empty(0, np.int64)
    levels = covering_levels(cells.label_metric)
    return levels[min(level, len(levels) - 1)]


def tour(cells: Sequence[Cells]) -> Ints:
    """Block indices of a product of columns in depth-first order of its covering tree.

    Points that share a coarse part in every column are visited together, and within it those that share a finer one. A
    tree of codes is its own covering tree.

    Paper: Eq. (26) [covering]
    """
    if len(cells) == 1 and (metric := cells[0].label_metric) is not None and metric.parents is not None:
        return np.append(preorder_labels(metric), np.arange(metric.size, cells[0].size))
    shape = tuple(c.size for c in cells)
    codes = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    keys: list[Ints] = []
    for level in range(max(map(len, map(_levels, cells)))):
        keys += [_level(c, level)[code] for c, code in zip(cells, codes, strict=True)]
    return np.lexsort(keys[::-1])


def preorder_labels(metric: LabelMetric) -> list[int]:
    """Labels of a tree in depth-first order: a walk along them passes no edge more than twice."""
    assert metric.parents is not None
    children: list[list[int]] = [[] for _ in metric.parents]
    for node, parent in enumerate(metric.parents.tolist()):
        if parent >= 0:
            children[parent].append(node)
    order: list[int] = []
    stack = np.flatnonzero(metric.parents < 0).tolist()
    while stack:
        node = stack.pop()
        if node < metric.size:
            order.append(node)
        stack += children[node][::-1]
    return order


def _level(cells: Cells, level: int) -> Ints:
    levels = _levels(cells)
    return levels[min(level, len(levels) - 1)]


@functools.lru_cache(maxsize=256)
def _levels(cells: Cells) -> tuple[Ints, ...]:
    """Partitions of a column's points, each finer than the one before: parts of length 2^−t, down to single points."""
    line = cells.places - cells.places[0] if len(cells.places) else cells.places
    levels: list[Ints] = []
    parts = 1
    while True:
        if parts * cells.weight <= 1:
            level = np.zeros(cells.size, dtype=np.int64)  # at this scale the column is one part
        else:
            along = np.minimum(line * parts // cells.steps, parts - 1) if parts < 2 * cells.steps else line
            first = int(along[-1]) + 1 if len(along) else 0
            inside = covering_level(cells, int(parts * cells.weight).bit_length() - 1)
            first_isolated = first + (int(inside.max()) + 1 if len(inside) else 0)
            level = np.concatenate([along, first + inside, first_isolated + np.arange(cells.isolated)])
        levels.append(level)
        if len(np.unique(level)) == cells.size:
            return tuple(levels)
        parts *= 2
