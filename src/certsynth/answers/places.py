"""Sets of rows that a condition on one column, or on a sum of columns, makes; and how far rows are from them.

All distances here are of the metric that certificates speak of: the largest of the columns' own distances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from certsynth.answers.spans import Spans
from certsynth.base.arrays import Floats
from certsynth.domain import Category, Ordered
from certsynth.domain.condition import Rows
from certsynth.errors import InputError


def scale(column: Ordered) -> float:
    """How far in the column's own units a step of length 1 in the metric leads: its range, divided by its weight."""
    return float((column.high - column.low) / column.weight)


@dataclass(frozen=True, slots=True)
class OnLine:
    """Values of an ordered column in `spans`, and perhaps missing ones."""

    column: Ordered
    spans: Spans
    missing: bool

    @classmethod
    def make(cls, column: Ordered, spans: Spans, *, missing: bool) -> OnLine:
        return cls(column, spans.within(column.low, column.high), missing and column.missing)

    @property
    def empty(self) -> bool:
        return not self.spans.pairs and not self.missing

    def intersection(self, other: OnLine) -> OnLine:
        return OnLine(self.column, self.spans.intersection(other.spans), self.missing and other.missing)

    def distance(self, rows: Rows) -> Floats:
        """Exact: along the line, or `weight` to and from what is missing."""
        figures, weight = rows[self.column.name], float(self.column.weight)
        reach = scale(self.column)
        along = self.spans.distance(figures) / reach if reach else self.spans.distance(figures)
        if self.missing:
            along = np.minimum(along, weight)
        absent = 0.0 if self.missing else weight if self.spans.pairs else np.inf
        return np.where(np.isnan(figures), absent, along)


@dataclass(frozen=True, slots=True, eq=False)
class OfLabels:
    """Some labels of a category: `members` has a flag for each, and one for missing where that is declared."""

    column: Category
    members: np.ndarray

    @property
    def empty(self) -> bool:
        return not self.members.any()

    def intersection(self, other: OfLabels) -> OfLabels:
        return OfLabels(self.column, self.members & other.members)

    def distance(self, rows: Rows) -> Floats:
        """Exact: by the label metric where there is one, else `weight` from any other label."""
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
    """Rows in which a sum of several columns, Σ weights·x, lies in `spans`; `missing` takes in rows that lack one.

    The distance is a lower bound: a sum moves by at most `reach` = Σ |weight|·range/(weight of the column) over a
    distance of 1. It is 0 on the set, and no two rows differ in it by more than they are apart.
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
            raise InputError("a sum of columns becomes too large for a number; use smaller multiples.")
        total = sum((self.weights[c.name] * rows[c.name] for c in self.columns), np.zeros(()))
        away = self.spans.distance(total) / (reach or 1.0)
        absent = min((float(c.weight) for c in self.columns if c.missing), default=np.inf)
        # Rows that lack a value are at least `absent` from rows that do not. So 0 there allows up to `absent` here,
        # and `absent` there allows up to twice as much.
        away = np.minimum(away, absent if self.missing else 2 * absent)
        return np.where(np.isnan(total), 0.0 if self.missing else absent, away)


@dataclass(frozen=True, slots=True)
class Apart:
    """A set of which only its rows are known, not how far others are: any other is `step` away, at least.

    `step` is the smallest distance of two rows that differ in the columns that decide.
    """

    inside: np.ndarray
    step: float
    empty: bool = False

    def distance(self, rows: Rows) -> Floats:
        return np.where(self.inside, 0.0, self.step)
