"""Means of a column in all groups of another at once: what `averages.mean` answers group by group.

The claim that follows from the bound b on the distance takes a search for each group. It cannot be narrower than
± b/(w p), where the group is a share p of all rows and w the column's weight: tables within b move the values of its
rows up or down by that much. It is left out where another claim is narrower. docs/explanation/proofs/answers.md has the
proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certsynth.answers import averages
from certsynth.answers.basis import Basis, Distinct, place
from certsynth.answers.boxes import interval_errors, pieces
from certsynth.answers.claims import conditional, quotient
from certsynth.answers.compiled_means import largest_group_mean
from certsynth.answers.crosstabs import Crosstab, Ranges
from certsynth.answers.kernels import merge_rows
from certsynth.answers.lattices import Lattice, off_lattice
from certsynth.answers.selection import Selection
from certsynth.answers.sides import Side
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Ordered
from certsynth.queries.statistics import UNITS, centre, offsets, places_in_units

_SLACK = 1e-9  # relative, and far more than sums of shares are off by

Ends = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Mean places in [0, 1] of an ordered column in the groups of a crosstab's other column.

    The column is the first of the crosstab if `first`, else the second.
    """

    crosstab: Crosstab
    first: bool

    @property
    def basis(self) -> Basis:
        return self.crosstab.basis

    @property
    def line(self) -> Side:
        return self.crosstab.first if self.first else self.crosstab.second

    @property
    def groups(self) -> Side:
        return self.crosstab.second if self.first else self.crosstab.first

    @property
    def column(self) -> Ordered:
        column = self.line.column
        assert isinstance(column, Ordered)
        return column

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice with the column as its first."""
        found = self.crosstab.lattice
        return found if self.first else Lattice(found.columns[::-1], found.cells[::-1], found.counts.T)

    @cached_property
    def present(self) -> Ints:
        """The number of synthetic rows with a value, by group."""
        if self.column.missing:
            return np.asarray((self.crosstab.counts if self.first else self.crosstab.counts.T)[-1])
        return self.groups.sizes

    @cached_property
    def share(self) -> Ends:
        """The certified range of the share of each group's rows with a value."""
        if self.column.missing:
            found = self.crosstab.shares
            low, high = (found.low, found.high) if self.first else (found.low.T, found.high.T)
            return low[-1], high[-1]
        claims = self.groups.claims
        return np.array([claim.low for claim in claims]), np.array([claim.high for claim in claims])

    @cached_property
    def estimate(self) -> Floats:
        """The mean place of the synthetic values in each group; not a number where there are none."""
        where = self.basis.rows[self.line.name]
        there, bins = ~np.isnan(where), self.groups.bins
        sums = np.bincount(self.groups.codes[there], place(self.column, where[there]), minlength=bins)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.groups.contains @ sums / self.present)

    @cached_property
    def means(self) -> Ranges:
        claims = [self._by_group_total(), self._by_cumulative_shares()]
        claims = [(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)) for low, high in claims]
        low, high = np.max([low for low, _ in claims], axis=0), np.min([high for _, high in claims], axis=0)
        weight, share = float(self.column.weight), self.present / self.basis.size
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = self.basis.bound(self.crosstab.names) / (weight * share) * (1 - _SLACK)
            wide = (high - self.estimate <= certain) & (self.estimate - low <= certain) & (low <= high)
        low, high = low.copy(), high.copy()
        for group in np.flatnonzero(~wide & (self.present > 0)):
            ends = self._by_distance(int(group))
            if ends is None or max(low[group], ends[0]) > min(high[group], ends[1]):
                claim = averages.mean(self._selection(int(group)), self.column)[1]
                ends = claim.low, claim.high
                low[group], high[group] = ends
            low[group], high[group] = max(low[group], ends[0]), min(high[group], ends[1])
        return Ranges(self.estimate, low, high)

    def _selection(self, group: int) -> Selection:
        return Selection(self.basis, (self.column,), self.groups.conditions[group])

    # ------------------------------------------------------------ claims about all groups

    def _by_group_total(self) -> Ends:
        """As `averages` has it: E[(y − b) 1_A], divided by P(A)."""
        names, (cells, other), counts = self.lattice.names, self.lattice.cells, self.lattice.counts
        error, share_error = self.basis.group_error(names), self.basis.errors(names).two
        groups = len(self.groups.conditions)
        if math.isinf(error):
            return np.zeros(groups), np.ones(groups)
        margin, rows = counts.sum(axis=1), self.lattice.rows
        middle, off = centre(cells, margin) / UNITS, off_lattice(self.column, cells)
        by_point = offsets(cells, margin) @ counts / (rows * UNITS)
        on_line = counts[: len(cells.places)].sum(axis=0)
        inner, outer = self.groups.lattice_points
        lows, highs = [], []
        borders = np.transpose(self.groups.border_shares)
        for one, two, low_share, high_share, at_borders in zip(inner, outer, *self.share, borders, strict=True):
            between = two & ~one
            unsure = 0.0
            if between.any():
                unsure = min(1.0, float(on_line[between].sum() / rows) + share_error * pieces(other, between))
            low, high = -math.inf, math.inf
            missed, extra = np.minimum(unsure, at_borders)
            for members, added, removed in ((one, missed, 0.0), (two, 0.0, extra)):
                total = float(by_point[members].sum())
                away = error * min(pieces(other, members), 1 + pieces(other, ~members))
                low = max(low, total - away - middle * added - (1 - middle) * removed)
                high = min(high, total + away + (1 - middle) * added + middle * removed)
            ends = quotient((low, high), (float(low_share), float(high_share)))
            lows.append(middle + ends[0] - off)
            highs.append(middle + ends[1] + off)
        return np.array(lows), np.array(highs)

    def _by_cumulative_shares(self) -> Ends:
        """As `CumulativeShares` has it: the shares of rows above each value, added up."""
        cells, errors = self.lattice.cells[0], self.basis.errors(self.lattice.names)
        line, native = len(cells.places), (self.line.native, self.groups.native)
        lines = line, len(self.lattice.cells[1].places)
        counts = self.lattice.counts[:line].astype(float)
        ends = []
        for members in self.groups.lattice_points:
            mass = np.zeros((len(members), line + 1))
            np.cumsum(members.astype(float) @ counts.T / self.lattice.rows, axis=1, out=mass[:, 1:])
            ends.append((mass, interval_errors(members, lines, native, errors)[:, None]))
        (inner, off_inner), (outer, off_outer) = ends
        every = np.arange(line + 1)
        some_above, some_below = every < line, every > 0
        above = (
            np.maximum(inner[:, -1:] - inner - off_inner * some_above, 0.0),
            outer[:, -1:] - outer + off_outer * some_above,
        )
        below = np.maximum(inner - off_inner * some_below, 0.0), outer + off_outer * some_below
        low, high = conditional(above, below, (self.share[0][:, None], self.share[1][:, None]))
        low[:, 0], high[:, 0], low[:, -1], high[:, -1] = 1.0, 1.0, 0.0, 0.0
        low, high = np.maximum.accumulate(low[:, ::-1], axis=1)[:, ::-1], np.minimum.accumulate(high, axis=1)
        places, off = places_in_units(cells) / UNITS, off_lattice(self.column, cells)
        steps = np.diff(places)
        return places[0] + low[:, 1:-1] @ steps - off, places[0] + high[:, 1:-1] @ steps + off

    # ------------------------------------------------------------ the bound on the distance

    @cached_property
    def _rows(self) -> Distinct:
        """Few rows near the synthetic ones, as `Selection` has them."""
        a, b = self.line, self.groups
        size = int(b.value_codes.max()) + 1
        flat, numbers = np.unique(a.value_codes.astype(np.int64) * size + b.value_codes, return_counts=True)
        rows = {a.name: a.values[flat // size], b.name: b.values[flat % size]}
        return self.basis.fewer(Distinct(self.basis.columns, rows, numbers / self.basis.size))

    def _by_distance(self, group: int) -> tuple[float, float] | None:
        """The least and the largest mean over a group that a table within the bound can have; None if rounding moved
        all rows out of the group."""
        rows, column = self._rows, self.column
        condition = self._selection(group).condition
        assert condition is not None
        if not (condition.holds(rows.rows) > 0).any():
            return None
        bound = min(1.0, self.basis.bound(self.crosstab.names) + rows.moved)
        x = place(column, rows.rows[self.line.name])
        near, away = rows.nearness.satisfied(condition), rows.nearness.rest(condition)
        (x, near, away), shares = merge_rows(x, near, away, shares=rows.shares)
        high = largest_group_mean(x, near, away, shares, float(column.weight), bound)
        low = 1.0 - largest_group_mean(1.0 - x, near, away, shares, float(column.weight), bound)
        return max(0.0, low), min(1.0, high)
