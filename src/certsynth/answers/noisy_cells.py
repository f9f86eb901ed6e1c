"""Shares from the noisy counts of the cells of a table, where noise was added cell by cell.

They beat the certified errors of shares for single labels and single values; those of sets of many cells add up.
docs/explanation/proofs/statistics.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.domain import Cells, Column


@dataclass(frozen=True, slots=True, eq=False)
class CellTable:
    """Noisy counts of the cells of one or more columns, with one axis for each, none of which is off by more than
    `slack`."""

    columns: tuple[Column, ...]
    cells: tuple[Cells, ...]
    counts: Floats
    slack: float


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCells:
    """The tables with bounds on their noisy counts, and bounds on the number of private rows."""

    tables: Sequence[CellTable] = ()
    fewest_rows: int = 0
    most_rows: int = 0

    def tables_of(self, names: Sequence[str]) -> list[CellTable]:
        """The tables of exactly these columns, if there are rows at all."""
        wanted = set(names)
        return [t for t in self.tables if {c.name for c in t.columns} == wanted] if self.fewest_rows >= 1 else []

    def share(self, table: CellTable, inner: np.ndarray, outer: np.ndarray) -> tuple[float, float]:
        """The least and the largest share of rows in a set that contains the inner cells and meets the outer ones."""
        least, most = np.maximum(table.counts - table.slack, 0.0), np.maximum(table.counts + table.slack, 0.0)
        low = max(least[inner].sum() / self.most_rows, 1.0 - most[~inner].sum() / self.fewest_rows)
        high = min(most[outer].sum() / self.fewest_rows, 1.0 - least[~outer].sum() / self.most_rows)
        return max(0.0, float(low)), min(1.0, float(high))
