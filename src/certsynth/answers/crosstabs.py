"""Shares of rows in all cells of a crosstab at once: what `shares.share` answers cell by cell, in few operations.

Every claim about a cell A × B is computed for all cells together, but for the one that follows from the bound b on the
distance. That is at least as wide as another claim, share ± e, if rows with a share of e are within b/e of the cell: to
move them all costs no more than b. For most cells this is known without sorting the rows by their distance.
docs/explanation/proofs/answers.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certsynth.answers import shares
from certsynth.answers.basis import Basis
from certsynth.answers.boxes import Errors, product_errors
from certsynth.answers.kernels import largest_share, smallest_share
from certsynth.answers.lattices import Lattice, codes_of_cells
from certsynth.answers.noisy_cells import CellTable
from certsynth.answers.sides import Side
from certsynth.base.arrays import Floats, Ints
from certsynth.domain.condition import And

_SLACK = 1e-9  # relative, and far more than sums of shares are off by

Points = tuple[np.ndarray, np.ndarray]
"""For each set of a side a flag for each of its inner points, and for each of its outer points."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Estimates of statistics, and the certified ends of each, as arrays of the same shape."""

    estimate: Floats
    low: Floats
    high: Floats

    def at(self, *place: int) -> tuple[float, float, float]:
        """Estimate, low and high of one of them."""
        return float(self.estimate[place]), float(self.low[place]), float(self.high[place])


@dataclass(frozen=True, eq=False)
class Crosstab:
    """All cells of two columns: the product of each set of the `first` side with each of the `second`."""

    first: Side
    second: Side

    @property
    def basis(self) -> Basis:
        return self.first.basis

    @property
    def names(self) -> tuple[str, str]:
        return self.first.name, self.second.name

    @cached_property
    def counts(self) -> Ints:
        """The number of synthetic rows in each cell."""
        a, b = self.first, self.second
        flat = a.codes.astype(np.int32) * b.bins + b.codes
        cells = np.bincount(flat, minlength=a.bins * b.bins).reshape(a.bins, b.bins)
        return np.asarray(a.contains @ cells @ b.contains.T)

    @cached_property
    def lattice(self) -> Lattice:
        """The synthetic rows on the lattice of shares of two columns."""
        a, b = self.first, self.second
        flat = a.lattice_codes * b.lattice.size + b.lattice_codes
        counts = np.bincount(flat, minlength=a.lattice.size * b.lattice.size)
        return Lattice((a.column, b.column), (a.lattice, b.lattice), counts.reshape(a.lattice.size, b.lattice.size))

    @cached_property
    def shares(self) -> Ranges:
        """The share of rows in each cell."""
        estimate = self.counts / self.basis.size
        lows, highs = [np.zeros(estimate.shape)], [np.ones(estimate.shape)]
        for low, high in (*self._by_boxes(), *self._by_bands(), *map(self._by_noisy_counts, self._noisy_tables)):
            lows.append(np.clip(low, 0.0, 1.0))
            highs.append(np.clip(high, 0.0, 1.0))
        highs += [np.broadcast_to(self.first.most[:, None], estimate.shape)]
        highs += [np.broadcast_to(self.second.most[None, :], estimate.shape)]
        return self._narrow_by_distance(estimate, np.max(lows, axis=0), np.min(highs, axis=0))

    # ------------------------------------------------------------ claims about all cells

    def _by_boxes(self) -> list[tuple[Floats, Floats]]:
        errors = self.basis.errors(self.names)
        if not np.isfinite(errors.two):
            return []
        lattice, native = self.lattice, (self.first.native, self.second.native)
        points = self.first.lattice_points, self.second.lattice_points
        sides = zip(self.first.border_shares, self.second.border_shares, strict=True)
        borders = [first[:, None] + second[None, :] for first, second in sides]
        return [_inner_less_and_outer_plus_error(lattice, points, errors, native, borders)]

    def _by_bands(self) -> list[tuple[Floats, Floats]]:
        found = self.basis.band_lattice(*self.names)
        if found is None:
            return []
        lattice, errors = found
        points = self.first.points(lattice.cells[0]), self.second.points(lattice.cells[1])
        return [_inner_less_and_outer_plus_error(lattice, points, errors, lattice.native)]

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.first, self.second

    @property
    def _noisy_tables(self) -> list[CellTable]:
        return self.basis.noisy.tables_of(self.names)

    def _by_noisy_counts(self, table: CellTable) -> tuple[Floats, Floats]:
        noisy, turned = self.basis.noisy, table.columns[0].name != self.first.name
        cells = table.cells[::-1] if turned else table.cells
        counts = table.counts.T if turned else table.counts
        points = [side.points(each, codes_of_cells) for side, each in zip(self._sides, cells, strict=True)]
        ends = []
        for which, sign in ((0, -1.0), (1, 1.0)):
            members = points[0][which], points[1][which]
            inside, outside = table.rows_in_boxes(counts, cells, *members)
            if sign < 0:
                ends.append(np.maximum(inside[0] / noisy.most_rows, 1.0 - outside[1] / noisy.fewest_rows))
            else:
                ends.append(np.minimum(inside[1] / noisy.fewest_rows, 1.0 - outside[0] / noisy.most_rows))
        return ends[0], ends[1]

    # ------------------------------------------------------------ the bound on the distance

    def _narrow_by_distance(self, estimate: Floats, low: Floats, high: Floats) -> Ranges:
        """The ranges, narrowed where the bound on the distance says more."""
        bound = self.basis.bound(self.names)
        certain = min(1.0, bound / float(max(self.first.column.weight, self.second.column.weight)))
        low_open, high_open = estimate - low > certain * (1 - _SLACK), high - estimate > certain * (1 - _SLACK)
        contradicts = low > high
        low, high = low.copy(), high.copy()
        if low_open.any() or high_open.any():
            self._sort_by_distance(bound, estimate, low, high, low_open, high_open)
        for i, j in np.argwhere(contradicts | (low > high)):
            both = And((self.first.conditions[i], self.second.conditions[j]))
            claim = shares.share(self.basis, both)[1]
            low[i, j], high[i, j] = claim.low, claim.high
        return Ranges(estimate, low, high)

    def _sort_by_distance(
        self, bound: float, estimate: Floats, low: Floats, high: Floats, low_open: np.ndarray, high_open: np.ndarray
    ) -> None:
        """Narrow the ends of cells that are `open`: first those to which many rows are near are left out."""
        a, b = self.first, self.second
        size = int(b.value_codes.max()) + 1
        flat, numbers = np.unique(a.value_codes.astype(np.int64) * size + b.value_codes, return_counts=True)
        one, other, part = flat // size, flat % size, numbers / self.basis.size
        (to_a, from_a), (to_b, from_b) = a.distances, b.distances
        if high_open.any():
            missing = np.where(high_open, high - estimate, 0.0)
            reach = bound / float(missing.max()) * (1 - _SLACK)
            near = ((to_a <= reach)[:, one] * part) @ (to_b <= reach)[:, other].T.astype(float)
            high_open = high_open & (near - estimate < missing * (1 + _SLACK) + 1e-12)
        if low_open.any():
            missing = np.where(low_open, estimate - low, 0.0)
            reach = bound / float(missing.max()) * (1 - _SLACK)
            stay = ((from_a > reach)[:, one] * part) @ (from_b > reach)[:, other].T.astype(float)
            low_open = low_open & (estimate - stay < missing * (1 + _SLACK) + 1e-12)
        for i, j in np.argwhere(high_open):
            distance = np.maximum(to_a[i][one], to_b[j][other])
            high[i, j] = min(high[i, j], largest_share(distance, bound, part))
        for i, j in np.argwhere(low_open):
            distance = np.minimum(from_a[i][one], from_b[j][other])
            low[i, j] = max(low[i, j], smallest_share(distance, bound, part))


def _inner_less_and_outer_plus_error(
    lattice: Lattice,
    points: tuple[Points, Points],
    errors: Errors,
    native: tuple[bool, ...],
    at_borders: Sequence[Floats] | None = None,
) -> tuple[Floats, Floats]:
    """For each cell the synthetic share of its inner points less its error, and of its outer points plus its error; or
    better, by the rows `at_borders`, as in `shares`."""
    (first_inner, first_outer), (second_inner, second_outer) = points
    lines = tuple(len(cells.places) for cells in lattice.cells)
    counts = lattice.counts.astype(float)  # exact: there are fewer than 2⁵³ rows

    def share(first: np.ndarray, second: np.ndarray) -> Floats:
        return np.asarray(first.astype(float) @ counts @ second.T.astype(float) / lattice.rows)

    off = product_errors(first_inner, second_inner, lines, native, errors)
    same = np.array_equal(first_inner, first_outer) and np.array_equal(second_inner, second_outer)
    off_outer = off if same else product_errors(first_outer, second_outer, lines, native, errors)
    inside, outside = share(first_inner, second_inner), share(first_outer, second_outer)
    low, high = inside - off, outside + off_outer
    if same or at_borders is None:
        return low, high
    missed, added = at_borders
    return np.maximum(low, outside - off_outer - added), np.minimum(high, inside + off + missed)
