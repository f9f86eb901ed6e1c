"""Coverings: few points that are near to all others, at every scale. What a tour visits, and a tree of noise cuts."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.cells import Cells
from certsynth.domain.web import Web


def cover(web: Web, radius: float) -> tuple[Ints, Ints]:
    """Labels so that every other is within `radius` (a share of the diameter 1) of one: and for each label its nearest.

    Paper: Eq. (26) [covering]
    """
    order, reach = farthest_first(web)
    heads = np.sort(order[: 1 + int((reach > radius * web.unit).sum())])
    return heads, np.argmin(web.distances[: web.size, heads], axis=1)


@functools.lru_cache(maxsize=64)
def farthest_first(web: Web) -> tuple[Ints, Ints]:
    """Labels in an order in which each is as far as can be from those before, and how far: a falling sequence.

    The first is one of smallest greatest distance. Entry i of the second tells how far label i + 1 of the order is.
    """
    distances = web.distances[: web.size, : web.size]
    order = [int(np.argmin(distances.max(axis=1)))]
    nearest = distances[order[0]].copy()
    reach: list[int] = []
    while len(order) < web.size:
        order.append(int(np.argmax(nearest)))
        reach.append(int(nearest[order[-1]]))
        nearest = np.minimum(nearest, distances[order[-1]])
        nearest[order[-1]] = -1  # never again, should two labels be at one place
    return np.array(order), np.array(reach, dtype=np.int64)


@functools.lru_cache(maxsize=64)
def web_levels(web: Web) -> tuple[Ints, ...]:
    """Partitions of the labels, each finer than the one before: all together at first, each alone at last.

    A covering tree: a level has centres within 2^−t of all labels, those of the level before among them, and a centre
    hangs on the nearest one of the level before.
    """
    order, reach = farthest_first(web)
    sizes = [1]
    radius = web.unit / 2
    while sizes[-1] < web.size:
        sizes.append(max(sizes[-1], 1 + int((reach > radius).sum())))
        radius = radius / 2 if radius >= 0.5 else -1.0  # distances are whole: at last all labels are centres
    levels = [np.arange(web.size)]  # by place in the order
    for coarse, fine in zip(sizes[-2::-1], sizes[:0:-1], strict=True):
        hangs_on = np.argmin(web.distances[np.ix_(order[:fine], order[:coarse])], axis=1)
        hangs_on[:coarse] = np.arange(coarse)
        levels.append(hangs_on[levels[-1]])
    place = np.empty(web.size, dtype=np.int64)
    place[order] = np.arange(web.size)
    return tuple(level[place] for level in reversed(levels))


def woven_level(cells: Cells, level: int) -> Ints:
    """The partition of the labels of a column's web at some level; nothing where there is none."""
    if cells.web is None:
        return np.empty(0, np.int64)
    levels = web_levels(cells.web)
    return levels[min(level, len(levels) - 1)]


def tour(cells: Sequence[Cells]) -> Ints:
    """Block indices of a product of columns in the order of a walk around its covering tree, leaves as they come.

    Points that share a coarse piece in every column are visited together, and inside it those that share a finer one.
    A tree of codes is its own covering tree.

    Paper: Eq. (26) [covering]
    """
    if len(cells) == 1 and (web := cells[0].web) is not None and web.parents is not None:
        return np.append(walk(web), np.arange(web.size, cells[0].size))
    shape = tuple(c.size for c in cells)
    codes = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    keys: list[Ints] = []
    for level in range(max(map(len, map(_levels, cells)))):
        keys += [_level(c, level)[code] for c, code in zip(cells, codes, strict=True)]
    return np.lexsort(keys[::-1])


def walk(web: Web) -> list[int]:
    """Labels of a tree in the order of a walk around it: no edge is passed more than twice."""
    assert web.parents is not None
    below: list[list[int]] = [[] for _ in web.parents]
    for node, parent in enumerate(web.parents.tolist()):
        if parent >= 0:
            below[parent].append(node)
    order: list[int] = []
    ahead = np.flatnonzero(web.parents < 0).tolist()
    while ahead:
        node = ahead.pop()
        if node < web.size:
            order.append(node)
        ahead += below[node][::-1]
    return order


def _level(cells: Cells, level: int) -> Ints:
    levels = _levels(cells)
    return levels[min(level, len(levels) - 1)]


@functools.lru_cache(maxsize=256)
def _levels(cells: Cells) -> tuple[Ints, ...]:
    """Partitions of a column's points, each finer than the one before: pieces of length 2^−t, then single points."""
    line = cells.places - cells.places[0] if len(cells.places) else cells.places
    levels: list[Ints] = []
    parts = 1
    while True:
        if parts * cells.weight <= 1:
            level = np.zeros(cells.size, dtype=np.int64)  # at this scale all is one piece
        else:
            along = np.minimum(line * parts // cells.steps, parts - 1) if parts < 2 * cells.steps else line
            first = int(along[-1]) + 1 if len(along) else 0
            inside = woven_level(cells, int(parts * cells.weight).bit_length() - 1)
            first_alone = first + (int(inside.max()) + 1 if len(inside) else 0)
            level = np.concatenate([along, first + inside, first_alone + np.arange(cells.alone)])
        levels.append(level)
        if len(np.unique(level)) == cells.size:
            return tuple(levels)
        parts *= 2
