"""Sets of rows defined by a condition on one column or on a sum of columns, and distances of rows to them.

All distances are in the metric of the certificates: the maximum of the columns' own distances.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from certsynth.answers.spans import Spans
from certsynth.base.arrays import Floats
from certsynth.domain import Category, Ordered
from certsynth.domain.condition import Rows
from certsynth.domain.ratios import largest_gap
from certsynth.errors import InputError


def scale(column: Ordered) -> float:
    """The most by which values change over a distance of 1, in the column's own units: its range divided by its
    weight; by ratios, as if all gaps were the largest."""
    length = largest_gap(column.grid) * (len(column.grid) - 1) if column.grid else column.high - column.low
    return float(length / column.weight)


@dataclass(frozen=True, slots=True)
class OnLine:
    """Values of an ordered column in `spans`, optionally with missing values."""

    column: Ordered
    spans: Spans
    missing: bool

    @classmethod
    def make(cls, column: Ordered, spans: Spans, *, missing: bool) -> OnLine:
        return cls(column, spans.within(column.low, column.high), missing and column.missing)

    @property
    def empty(self) -> bool:
        return not self.spans.pairs and not self.missing

    @property
    def full(self) -> bool:
        """Whether every value of the column is in the set."""
        ends = ((float(self.column.low), float(self.column.high)),)
        return self.spans.pairs == ends and self.missing == self.column.missing

    @property
    def key(self) -> Hashable:
        """Sets with the same key are equal."""
        return self.column.name, self.spans.pairs, self.missing

    def intersection(self, other: OnLine) -> OnLine:
        return OnLine(self.column, self.spans.intersection(other.spans), self.missing and other.missing)

    def distance(self, rows: Rows) -> Floats:
        """Exact distances: along the line, and `weight` to and from missing values."""
        figures, weight = rows[self.column.name], float(self.column.weight)
        along = self._along(figures)
        if self.missing:
            along = np.minimum(along, weight)
        absent = 0.0 if self.missing else weight if self.spans.pairs else np.inf
        return np.where(np.isnan(figures), absent, along)

    def _along(self, figures: Floats) -> Floats:
        """Distances along the line; by ratios, from rank to rank."""
        column = self.column
        if column.grid:
            grid = np.array(column.grid)
            ranks = tuple(
                (float(np.searchsorted(grid, a)), float(np.searchsorted(grid, b))) for a, b in self.spans.pairs
            )
            found = np.where(np.isnan(figures), np.nan, np.searchsorted(grid, figures))
            return Spans(ranks, whole=True).distance(found) / (len(grid) - 1) * float(column.weight)
        return self.spans.distance(figures) / (scale(column) or 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class OfLabels:
    """Some labels of a category: `members` has a flag for each label, and one for missing values if declared."""

    column: Category
    members: np.ndarray

    @property
    def empty(self) -> bool:
        return not self.members.any()

    @property
    def full(self) -> bool:
        """Whether every label of the column is in the set, and missing values if there may be any."""
        return bool(self.members.all())

    @property
    def key(self) -> Hashable:
        """Sets with the same key are equal."""
        return self.column.name, self.members.tobytes()

    def intersection(self, other: OfLabels) -> OfLabels:
        return OfLabels(self.column, self.members & other.members)

    def distance(self, rows: Rows) -> Floats:
        """Exact distances: by the label metric if there is one, else `weight` to any other label."""
        figures, column = rows[self.column.name], self.column
        codes = np.where(np.isnan(figures), len(column.labels), figures).astype(np.int64)
        return self._by_code()[codes]

    def _by_code(self) -> Floats:
        if self.empty:
            return np.full(len(self.members), np.inf)
        column, weight = self.column, float(self.column.weight)
        away = np.where(self.members, 0.0, weight)
        metric = column.label_metric
        if metric is not None and (inside := np.flatnonzero(self.members[: metric.size])).size:
            nearest = metric.distances[: metric.size, inside].min(axis=1) / metric.unit * weight
            away[: metric.size] = np.minimum(away[: metric.size], nearest)
        return away


@dataclass(frozen=True, slots=True)
class Slab:
    """Rows in which a sum of columns, Σ weights·x, lies in `spans`; `missing` includes rows where a term is missing.

    The distance is a lower bound: over a distance of 1 a sum changes by at most `reach` = Σ |weight|·range/(weight of
    the column). It is 0 on the set and 1-Lipschitz.
    """

    columns: tuple[Ordered, ...]
    weights: Mapping[str, float]
    spans: Spans
    missing: bool

    @property
    def empty(self) -> bool:
        return not self.spans.pairs and not (self.missing and any(column.missing for column in self.columns))

    def distance(self, rows: Rows) -> Floats:
        reach = sum(abs(self.weights[c.name]) * scale(c) for c in self.columns)
        largest = sum(abs(self.weights[c.name]) * max(abs(float(c.low)), abs(float(c.high))) for c in self.columns)
        if not math.isfinite(reach + largest):
            raise InputError("a sum of columns is too large for a float; use smaller multiples.")
        total = sum((self.weights[c.name] * rows[c.name] for c in self.columns), np.zeros(()))
        away = self.spans.distance(total) / (reach or 1.0)
        absent = min((float(c.weight) for c in self.columns if c.missing), default=np.inf)
        # Rows with a missing value are at least `absent` from rows without. To stay 1-Lipschitz, the distance may be at
        # most `absent` here if it is 0 there, and at most twice that if it is `absent` there.
        away = np.minimum(away, absent if self.missing else 2 * absent)
        return np.where(np.isnan(total), 0.0 if self.missing else absent, away)


@dataclass(frozen=True, slots=True)
class KnownRows:
    """A set known only by its members: every other row is at least `step` away.

    `step` is the smallest distance between two rows that differ in the columns of the condition.
    """

    inside: np.ndarray
    step: float
    empty: bool = False

    def distance(self, rows: Rows) -> Floats:
        return np.where(self.inside, 0.0, self.step)
