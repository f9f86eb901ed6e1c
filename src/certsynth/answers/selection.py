"""The rows that a statistic refers to: those of its group that have values in its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certsynth.answers import shares
from certsynth.answers.basis import Basis, Distinct, place
from certsynth.answers.cumulative import CumulativeShares
from certsynth.answers.moments import Group
from certsynth.base.arrays import Floats
from certsynth.domain import Column, Ordered
from certsynth.domain.condition import And, Condition, Missing, Not


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows that satisfy `group` (None: all rows) and have values in `columns`."""

    basis: Basis
    columns: Sequence[Column]
    group: Condition | None = None

    @cached_property
    def condition(self) -> Condition | None:
        """The condition that selects these rows; None if it selects all."""
        parts: list[Condition] = [Not(Missing(column.name)) for column in self.columns if column.missing]
        parts += [self.group] if self.group is not None else []
        return And(tuple(parts)) if parts else None

    @cached_property
    def names(self) -> frozenset[str]:
        named = self.condition.columns if self.condition is not None else ()
        return frozenset([*(column.name for column in self.columns), *named])

    @cached_property
    def bound(self) -> float:
        """The bound on the distance of the private table from `rows`."""
        return min(1.0, self.basis.bound(self.names) + self.rows.moved)

    @cached_property
    def exact(self) -> Distinct:
        """The distinct synthetic rows, of the columns that matter."""
        return self.basis.distinct(self.names)

    @cached_property
    def inside(self) -> np.ndarray:
        """Which of `exact` are selected."""
        size, condition = len(self.exact.shares), self.condition
        found = np.ones(size, bool) if condition is None else condition.holds(self.exact.rows) > 0
        if not found.any():
            raise shares.UndefinedStatistic(shares.EMPTY)
        return found

    def average(self, values: Floats) -> float:
        """The synthetic mean of a function of the rows `exact` over the selected ones."""
        return float(np.average(values[self.inside], weights=self.exact.shares[self.inside]))

    def exact_places(self, column: Ordered) -> Floats:
        """The places in [0, 1] of the rows `exact`."""
        return place(column, self.exact.rows[column.name])

    @cached_property
    def rows(self) -> Distinct:
        """Few rows near the synthetic ones, from which distances are computed."""
        few, condition = self.basis.few_distinct(self.names), self.condition
        if condition is not None and self.inside.any() and not (condition.holds(few.rows) > 0).any():
            return self.exact  # rounding moved all rows out of the group
        return few

    @cached_property
    def near(self) -> Group:
        """The selected ones of `rows`, and the distances of all to them and to the rest."""
        size, shares, condition = len(self.rows.shares), self.rows.shares, self.condition
        if condition is None:
            return Group(shares, np.ones(size, bool), np.zeros(size), np.full(size, np.inf))
        near = self.rows.nearness
        return Group(shares, condition.holds(self.rows.rows) > 0, near.satisfied(condition), near.rest(condition))

    def places(self, column: Ordered) -> Floats:
        """The places in [0, 1] of `rows`."""
        return place(column, self.rows.rows[column.name])

    @cached_property
    def share(self) -> tuple[float, float]:
        """The certified range of the share of these rows among all."""
        if self.condition is None:
            return 1.0, 1.0
        claim = shares.share(self.basis, self.condition)[1]
        return claim.low, claim.high

    def ends(self, column: Ordered) -> tuple[float, float]:
        """The least and the largest value of the column that the group allows."""
        if self.group is None:
            return float(column.low), float(column.high)
        return self.basis.nearness.ends(self.group, column)

    @cached_property
    def _cumulative(self) -> dict[str, tuple[CumulativeShares, float] | None]:
        return {}

    def cumulative_shares(self, column: Ordered) -> tuple[CumulativeShares, float] | None:
        """The cumulative shares of a column among these rows, and the error of shares that they rest on."""
        if column.name not in self._cumulative:
            self._cumulative[column.name] = self._find_cumulative_shares(column)
        return self._cumulative[column.name]

    def _find_cumulative_shares(self, column: Ordered) -> tuple[CumulativeShares, float] | None:
        basis = self.basis
        condition = self.condition if self.condition is not None else Not(Missing(column.name))
        boxes = basis.boxes(condition)
        found = None if boxes is None else basis.points(boxes, first=column.name)
        if found is None:
            return None
        lattice, inner, outer = found
        errors = basis.errors(lattice.names)
        error = errors.one if len(lattice.columns) == 1 else errors.two
        return CumulativeShares.of(lattice, inner, outer, errors, self.share), error
