"""Strategy: noise on the counts of nested squares at every scale."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.domain.covering import covering_level
from certsynth.mechanisms.guarantee import Neighbours, Sensitivity
from certsynth.mechanisms.strategy import Product, Strategy, level_weights, size_of
from certsynth.mechanisms.tree import fit_tree


@dataclass(frozen=True, slots=True)
class QuadTree(Strategy):
    r"""Noise on counts at every scale: the points of each line in 2, 4, 8, … equal parts, down to the cells.

    .. math:: c_{l,i} = w_l \sum_{square\ i\ of\ level\ l} v

    A point off the line is a part of its own on every level, unless its column has a metric, whose coverings define the
    parts. A level with a single square, or with no more squares than the previous level, is left out. A row is in one
    square on each level, so on each level one coefficient changes by w under add/remove, and up to two under
    replace-one. Cells are estimated by least squares on the tree, with the total known.
    """

    name = "quad-tree"

    def sensitivity(self, product: Product) -> Sensitivity:
        weights = level_weights(len(_levels(product)), self.growth)
        moves = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        return Sensitivity(moves * sum(weights), moves * sum(w * w for w in weights))

    def length(self, product: Product) -> int:
        return sum(size for _, size in _levels(product))

    def coefficients(self, counts: Ints, product: Product) -> Ints:
        levels = _levels(product)
        blocks = [np.empty(0, np.int64)]
        for (squares, size), weight in zip(levels, level_weights(len(levels), self.growth), strict=True):
            sums = np.zeros(size, dtype=np.int64)
            np.add.at(sums, squares, counts)
            blocks.append(weight * sums)
        return np.concatenate(blocks)

    def cells(self, coefficients: Floats, product: Product, total: Floats) -> Floats:
        levels = _levels(product)
        if not levels:
            return np.repeat(total[..., None], size_of(product), axis=-1)
        lead = coefficients.shape[:-1]
        flat = coefficients.reshape(-1, coefficients.shape[-1])
        ends = list(itertools.accumulate(size for _, size in levels))
        weights = level_weights(len(levels), self.growth)
        noisy = [flat[:, e - size : e] / w for e, w, (_, size) in zip(ends, weights, levels, strict=True)]
        best = fit_tree(noisy, [1 / w**2 for w in weights], _parents(levels), total.reshape(-1))
        return best[-1][:, levels[-1][0]].reshape(*lead, -1)


def _levels(product: Product) -> list[tuple[Ints, int]]:
    """For each level, coarsest first, the square of every cell and the number of squares."""
    return _levels_of(tuple(product))


@functools.lru_cache(maxsize=256)
def _levels_of(product: tuple[Cells, ...]) -> list[tuple[Ints, int]]:
    levels: list[tuple[Ints, int]] = []
    squares, parts = 1, 2
    while squares < size_of(product):
        codes = [_split(cells, parts) for cells in product]
        shape = [int(code.max()) + 1 for code in codes]
        if math.prod(shape) > squares:
            squares = math.prod(shape)
            levels.append((np.ravel_multi_index(np.meshgrid(*codes, indexing="ij"), shape).ravel(), squares))
        parts *= 2
    return levels


def _split(cells: Cells, parts: int) -> Ints:
    """Codes after the line is divided into `parts` parts with equally many points, and labels with a metric into those
    of its covering; other points off the line stay separate.
    """
    line, woven = len(cells.places), covering_level(cells, parts.bit_length() - 1)
    runs = np.arange(line) * min(parts, line) // max(line, 1)
    first = min(parts, line)
    alone = first + (int(woven.max()) + 1 if len(woven) else 0)
    return np.concatenate([runs, first + woven, alone + np.arange(cells.isolated)])


def _parents(levels: list[tuple[Ints, int]]) -> list[Ints]:
    """For each level but the first, the square of the previous level that each square is part of."""
    codes = []
    for (coarse, _), (fine, parts) in itertools.pairwise(levels):
        above = np.zeros(parts, dtype=np.int64)
        above[fine] = coarse
        codes.append(above)
    return codes
