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

from certsynth.base.arrays import Floats
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

    The noise of a cell is divided by `weight`. All bounds of the table fail with probability at most `beta`.
    """

    columns: tuple[Column, ...]
    cells: tuple[Cells, ...]
    counts: Floats
    noise: CellNoise
    weight: int
    beta: float

    def rows(self, members: np.ndarray) -> tuple[float, float]:
        """The fewest and the most rows in a set of cells."""
        if not members.any():
            return 0.0, 0.0
        total, sets = float(self.counts[members].sum()), self._sets(members)
        if sets is None:  # not a box: add up the bounds of single cells
            slack = int(members.sum()) * self._slack(1, self.counts.size)
        else:
            slack = self._slack(int(members.sum()), sets)
        return max(total - slack, 0.0), max(total + slack, 0.0)

    def _slack(self, cells: int, sets: int) -> float:
        """The largest error of the number of rows in a box of that many cells, if there are `sets` of its shape."""
        log_odds = math.log(2 * sets * self.counts.size / self.beta)
        return self.noise.largest_sum(cells, log_odds) / self.weight

    def _sets(self, members: np.ndarray) -> int | None:
        """The number of boxes of the same shape; None if the set is not a box."""
        axes = range(members.ndim)
        sides = [np.asarray(members.any(axis=tuple(other for other in axes if other != axis))) for axis in axes]
        if members.sum() != math.prod(int(side.sum()) for side in sides):
            return None
        numbers = [_alike(cells, side) for cells, side in zip(self.cells, sides, strict=True)]
        return None if None in numbers else math.prod(number for number in numbers if number is not None)


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
