r"""Shares from the noisy counts of the cells of a table, where noise was added cell by cell.

The number of rows in m cells is the sum of their noisy counts, less the sum of m independent noises. By Chernoff's
bound that sum exceeds

.. math:: t = \min_λ \frac{\ln(1/δ) + m \ln E e^{λZ}}{λ}

with probability at most δ, in either direction. δ is the failure probability of the table, divided by the number of
boxes of the same shape, and of shapes, so that all boxes of all tables hold together: questions may be chosen after
seeing the counts. This beats the certified errors of shares for few cells. docs/explanation/proofs/statistics.md has
the proof.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells, Column

_TRIED_RATES = 400  # values of λ, each of which gives a valid bound


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The distribution of the noise of one cell: `scale` is that of discrete Laplace noise, in ε, or of discrete
    Gaussian noise, in ρ."""

    unit: Literal["epsilon", "rho"]
    scale: float

    def largest_sum(self, cells: int, log_odds: float) -> float:
        """No sum of noise over that many cells exceeds this, in one direction, but with probability e^−log_odds."""
        return _largest_sum(self.unit, self.scale, cells, log_odds)


@functools.lru_cache(maxsize=4096)
def _largest_sum(unit: str, scale: float, cells: int, log_odds: float) -> float:
    if unit == "rho":
        if cells == 1 and log_odds < 700:  # P(Z > t) ≤ P(N ≥ t) for whole t and a normal variable N of the same scale
            return math.ceil(-NormalDist(0.0, scale).inv_cdf(math.exp(-log_odds)) * (1 + 1e-9))
        return scale * math.sqrt(2 * cells * log_odds) * (1 + 1e-9)  # discrete Gaussian noise is sub-Gaussian
    if cells == 1:  # P(Z > t) = p^(⌊t⌋+1)/(1 + p) < e^(−t/scale)
        return scale * log_odds * (1 + 1e-9)
    rates = np.arange(1, _TRIED_RATES) / (_TRIED_RATES * scale)
    p = math.exp(-1 / scale)
    # ln E e^{λZ} = 2 ln(1 − p) − ln(1 − p e^λ) − ln(1 − p e^−λ), with 1 − p e^±λ as expm1 for large scales
    moments = 2 * np.log(-np.expm1(-1 / scale)) - np.log(-np.expm1(rates - 1 / scale)) - np.log1p(-p * np.exp(-rates))
    return float(np.min((log_odds + cells * moments) / rates)) * (1 + 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class CellTable:
    """Noisy counts of the cells of one or two columns, with one axis for each.

    The noise of a cell is divided by `weight`. All bounds of the table fail with probability at most `beta`. A table
    that is used `one_by_one` has bounds for its cells only, which are tighter, and adds them up for sets of cells.
    """

    columns: tuple[Column, ...]
    cells: tuple[Cells, ...]
    counts: Floats
    noise: CellNoise
    weight: int
    beta: float
    one_by_one: bool = False

    def rows(self, members: np.ndarray) -> tuple[float, float]:
        """The fewest and the most rows in a set of cells."""
        if not members.any():
            return 0.0, 0.0
        total, sets = float(self.counts[members].sum()), self._sets(members)
        if sets is None or self.one_by_one:  # not a box: add up the bounds of single cells
            slack = int(members.sum()) * self._slack(1, self.counts.size)
        else:
            slack = self._slack(int(members.sum()), sets)
        return max(total - slack, 0.0), max(total + slack, 0.0)

    def rows_in_boxes(
        self, counts: Floats, cells: Sequence[Cells], first: np.ndarray, second: np.ndarray
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """As `rows`, the fewest and the most rows in all products of a set of one axis with a set of the other, and
        outside of each product. `counts` and `cells` are those of the table, with the axes in that order."""
        inside = first.astype(float) @ counts @ second.T.astype(float)
        number = np.outer(first.sum(axis=1), second.sum(axis=1))
        of_box, of_rest = np.zeros(inside.shape), np.zeros(inside.shape)
        (kinds, kind), (others, kind_of_other) = (_kinds(*each) for each in zip(cells, (first, second), strict=True))
        for i, one in enumerate(kinds):
            for j, other in enumerate(others):
                same = np.ix_(kind == i, kind_of_other == j)
                of_box[same] = self._slack_of(one.size * other.size, one.alike, other.alike)
                of_rest[same] = self._slack_of(self.counts.size - one.size * other.size, *_rest(one, other))
        outside = counts.sum() - inside
        there, left = number > 0, number < self.counts.size
        return (
            (np.maximum(inside - of_box, 0.0) * there, np.maximum(inside + of_box, 0.0) * there),
            (np.maximum(outside - of_rest, 0.0) * left, np.maximum(outside + of_rest, 0.0) * left),
        )

    def _slack_of(self, cells: int, first: int | None, second: int | None) -> float:
        """The largest error of the number of rows in that many cells, of as many products of sets of each axis."""
        if not cells:
            return 0.0
        if first is None or second is None or self.one_by_one:
            return cells * self._slack(1, self.counts.size)
        return self._slack(cells, first * second)

    def _slack(self, cells: int, sets: int) -> float:
        """The largest error of the number of rows in a box of that many cells, if there are `sets` of its shape."""
        shapes = 1 if self.one_by_one else self.counts.size
        log_odds = math.log(2 * sets * shapes / self.beta)
        return self.noise.largest_sum(cells, log_odds) / self.weight

    def _sets(self, members: np.ndarray) -> int | None:
        """The number of boxes of the same shape; None if the set is not a box."""
        axes = range(members.ndim)
        sides = [np.asarray(members.any(axis=tuple(other for other in axes if other != axis))) for axis in axes]
        if members.sum() != math.prod(int(side.sum()) for side in sides):
            return None
        numbers = [_alike(cells, side) for cells, side in zip(self.cells, sides, strict=True)]
        return None if None in numbers else math.prod(number for number in numbers if number is not None)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the error of a product depends on, for one of its sides: how many cells it has, whether these are all, and
    how many sets are like it, like its complement, and like the set of all cells."""

    size: int
    full: bool
    alike: int | None
    rest: int | None
    every: int | None


def _rest(one: _Kind, other: _Kind) -> tuple[int | None, int | None]:
    """The numbers of sets like the sides of all that is outside of a product; None if that is no product."""
    if not one.size or not other.size:
        return one.every, other.every
    if other.full:
        return one.rest, other.alike
    return (one.alike, other.rest) if one.full else (None, None)


def _kinds(cells: Cells, sets: np.ndarray) -> tuple[list[_Kind], Ints]:
    """The different kinds of sets, and the number of that of each."""
    every = _alike(cells, np.ones(sets.shape[1], bool))
    found = [
        _Kind(int(side.sum()), bool(side.all()), _alike(cells, side), _alike(cells, ~side), every) for side in sets
    ]
    kinds = list(dict.fromkeys(found))
    return kinds, np.array([kinds.index(each) for each in found])


def _alike(cells: Cells, side: np.ndarray) -> int | None:
    """The number of sets with as many points: intervals, with and without the missing value, or sets of labels.

    None if the set is no interval of an ordered column.
    """
    line, size = len(cells.places), int(side.sum())
    if not line:
        return math.comb(len(side), size)
    on_line = np.flatnonzero(side[:line])
    if len(on_line) and on_line[-1] - on_line[0] + 1 != len(on_line):
        return None
    return (line + 1) * (1 + len(side) - line)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCells:
    """The tables with bounds on their noisy counts, and bounds on the number of private rows."""

    tables: Sequence[CellTable] = ()
    fewest_rows: int = 0
    most_rows: int = 0

    def tables_of(self, names: Iterable[str]) -> list[CellTable]:
        """The tables of exactly these columns, if there are rows at all."""
        wanted = set(names)
        return [t for t in self.tables if {c.name for c in t.columns} == wanted] if self.fewest_rows >= 1 else []

    def share(self, table: CellTable, inner: np.ndarray, outer: np.ndarray) -> tuple[float, float]:
        """The least and the largest share of rows in a set that contains the inner cells and meets the outer ones.

        The rows of other cells are known as well, which is better for large sets.
        """
        fewest, most = self.fewest_rows, self.most_rows
        low = max(table.rows(inner)[0] / most, 1.0 - table.rows(~inner)[1] / fewest)
        high = min(table.rows(outer)[1] / fewest, 1.0 - table.rows(~outer)[0] / most)
        return max(0.0, low), min(1.0, high)
