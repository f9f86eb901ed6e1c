"""Means of places in [0, 1] among selected rows, from all bounds of the certificate; callers convert to units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certsynth.answers import by_ratio, moments
from certsynth.answers.basis import Basis, place, span
from certsynth.answers.boxes import pieces
from certsynth.answers.claims import Claim, intersect, quotient
from certsynth.answers.lattices import Lattice, Points, off_lattice
from certsynth.answers.selection import Selection
from certsynth.answers.shares import border_shares_of_side
from certsynth.domain import Ordered
from certsynth.domain.condition import And, Condition, Missing, Not
from certsynth.queries.statistics import UNITS, centre, offsets, oscillation

Range = tuple[float, float]


def mean(rows: Selection, column: Ordered) -> tuple[float, Claim]:
    """The mean place of the synthetic rows, and a claim about that of the private rows."""
    low, high = (float(end) for end in place(column, np.array(rows.ends(column))))
    claims = [_by_distance(rows, column)]
    claims += _by_moment(rows, column) if rows.group is None else _by_group_total(rows, column)
    if (cumulative := rows.cumulative_shares(column)) is not None:
        found, error = cumulative
        least, most = found.mean()
        how = "the certified shares of rows above each value, added up"
        claims.append(Claim(least - found.off, most + found.off, error, how))
    return rows.average(rows.exact_places(column)), intersect([claim.cut(low, high) for claim in claims])


def mean_of_sum(
    basis: Basis, terms: Sequence[tuple[Ordered, float]], group: Condition | None
) -> tuple[float, Claim, Range]:
    """The mean of Σ factor·(column − low) over the rows of the group that have values in all columns, in own units:
    that of the synthetic rows, a claim about that of the private rows, and its possible range.

    Without the lower bounds, which may be large and cancel: the seconds of a time are 10⁹, those between two are few.
    """
    estimate, low, high, bound, least, most = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for column, factor in terms:
        present = [Not(Missing(other.name)) for other, _ in terms if other.missing and other.name != column.name]
        conditions = (*present, *([] if group is None else [group]))
        rows = Selection(basis, (column,), And(conditions) if conditions else None)
        place_mean, claim = mean(rows, column)
        slope, start = factor * span(column), float(column.low)
        own, ends = claim.scaled(slope, 0.0), sorted(factor * (end - start) for end in rows.ends(column))
        estimate, bound = estimate + slope * place_mean, max(bound, own.bound)
        low, high, least, most = low + own.low, high + own.high, least + ends[0], most + ends[1]
    selected = Selection(basis, [column for column, _ in terms], group)
    among = "" if selected.condition is None else ", each over the rows with values in all of them"
    claims = [Claim(low, high, bound, f"the certified means of the single columns{among}, added up")]
    by_ratios = any(column.grid for column, _ in terms)  # places of these are not Lipschitz in the distance
    if selected.condition is not None and basis.covers(selected.names) and not by_ratios:
        claims.append(_sum_by_distance(selected, terms))
    return estimate, intersect([claim.cut(least, most) for claim in claims]), (least, most)


def _sum_by_distance(rows: Selection, terms: Sequence[tuple[Ordered, float]]) -> Claim:
    """The mean of the sum itself: a row that enters or leaves the group does so with all its terms."""
    slopes = [factor * span(column) for column, factor in terms]
    scale = sum(map(abs, slopes))
    how = (
        "the largest and the smallest mean over rows with values in all columns that a table within the bound can have"
    )
    if not 0 < scale < math.inf:
        return Claim(-math.inf, math.inf, rows.bound, how)
    low, high = moments.mean_of_sum(
        [rows.places(column) for column, _ in terms],
        [slope / scale for slope in slopes],
        rows.near,
        rows.bound,
        [float(column.weight) for column, _ in terms],
    )
    return Claim(low, high, rows.bound, how).scaled(scale, 0.0)


def _by_distance(rows: Selection, column: Ordered) -> Claim:
    """Places are Lipschitz functions. In a group that allows only part of the range the column is that much shorter."""
    if column.grid:
        return by_ratio.mean(rows, column)
    figures, (low, high) = rows.rows.rows[column.name], rows.ends(column)
    width, length = high - low, span(column) or 1.0
    shift = (low - float(column.low)) / length
    whole = rows.near.whole
    how = "the bound times the column's range"
    if not whole:
        among = "the group's rows" if rows.group is not None else "rows"
        how = f"the largest and the smallest mean over {among} with a value that a table within the bound can have"
    if not width > 0:
        return Claim(shift, shift, rows.bound, how)
    where = np.where(np.isnan(figures), 0.5, np.clip((figures - low) / width, 0.0, 1.0))
    _, least, most = moments.mean(where, rows.near, rows.bound, float(column.weight) * width / length)
    return Claim(least, most, rows.bound, how).scaled(width / length, shift)


def _by_moment(rows: Selection, column: Ordered) -> list[Claim]:
    """E(x − a) over the rows with a value, divided by their share."""
    lattice, error = rows.basis.lattice(column.name), rows.basis.moment_error
    if lattice is None or math.isinf(error) or column.grid:  # moments of a column by ratios are those of its ranks
        return []
    values = offsets(lattice.cells[0], lattice.counts)
    total, error = _average(lattice, values), error * oscillation(values) / UNITS
    how = "the certified error of means" + (", divided by the share of rows with a value" if rows.condition else "")
    return [_around_centre(lattice, column, quotient((total - error, total + error), rows.share), error, how)]


def _by_group_total(rows: Selection, column: Ordered) -> list[Claim]:
    """E[(y − b) 1_A], divided by P(A), for a group A of one other column."""
    group = rows.group
    assert group is not None
    if column.grid:
        return []
    boxes = rows.basis.boxes(group)
    if boxes is None or column.name in boxes.names or len(boxes.names) != 1:
        return []
    error = rows.basis.group_error({column.name, *boxes.names})
    if math.isinf(error):
        return []
    lattice = rows.basis.lattice(column.name, *boxes.names)
    if lattice is None:
        return []
    inner, outer = (points[0] for points in lattice.inner_and_outer(boxes))
    total = _group_total(rows.basis, lattice, inner, outer, error, border_shares_of_side(rows.basis, boxes))
    how = "the certified error of group totals, divided by the certified share of the group"
    return [_around_centre(lattice, column, quotient(total, rows.share), error, how)]


def _group_total(
    basis: Basis, lattice: Lattice, inner: Points, outer: Points, error: float, at_borders: Range
) -> Range:
    """The range of E[(y − b) 1_A] for a set A of the second column between the points `inner` and `outer`.

    A differs from either by rows of the points between, of which each changes the total by at most b or 1 − b. Shares
    of these rows are known from the points, or `at_borders` (see `shares.border_shares`).
    """
    cells, other = lattice.cells
    values = offsets(cells, lattice.counts.sum(axis=1))
    middle = centre(cells, lattice.counts.sum(axis=1)) / UNITS
    between = outer & ~inner
    unsure = 0.0
    if between.any():
        inside = lattice.counts[: len(cells.places), between].sum() / lattice.rows
        unsure = min(1.0, float(inside) + basis.errors(lattice.names).two * pieces(other, between))
    ranges = []
    missed, extra = (min(unsure, each) for each in at_borders)
    for members, added, removed in ((inner, missed, 0.0), (outer, 0.0, extra)):
        total = _average(lattice, values[:, None] * members[None, :])
        off = error * min(pieces(other, members), 1 + pieces(other, ~members))
        low, high = middle * added + (1 - middle) * removed, (1 - middle) * added + middle * removed
        ranges.append((total - off - low, total + off + high))
    return max(low for low, _ in ranges), min(high for _, high in ranges)


def _average(lattice: Lattice, values: np.ndarray) -> float:
    """The synthetic mean of a function in units, for all rows."""
    return float((values * lattice.counts).sum() / (lattice.rows * UNITS))


def _around_centre(lattice: Lattice, column: Ordered, deviation: Range, error: float, how: str) -> Claim:
    counts = lattice.counts if lattice.counts.ndim == 1 else lattice.counts.sum(axis=1)
    middle, off = centre(lattice.cells[0], counts) / UNITS, off_lattice(column, lattice.cells[0])
    return Claim(middle + deviation[0] - off, middle + deviation[1] + off, error, how)


def total(rows: Selection, column: Ordered, *, ends: Range) -> tuple[float, Claim]:
    """E[value · 1_rows] for all rows with a value, where value = ends[0] + place · (ends[1] − ends[0])."""
    value = ends[0] + rows.exact_places(column) * (ends[1] - ends[0])
    estimate = float(np.dot(rows.exact.shares, np.where(rows.inside, value, 0.0)))
    how = "the mean of the column, with 0 for missing values, that a table within the bound can have"
    if column.grid:
        claims = [
            Claim(*by_ratio.total(rows, column, ends=ends), rows.bound, how),
            _share_times_mean(rows, column, ends),
        ]
        return estimate, intersect([claim.cut(min(*ends, 0.0), max(*ends, 0.0)) for claim in claims])
    _, low, high = moments.total(rows.places(column), rows.near, rows.bound, float(column.weight), ends=ends)
    claims = [Claim(low, high, rows.bound, how)]
    lattice, error = rows.basis.lattice(column.name), rows.basis.moment_error
    if lattice is not None and math.isfinite(error):
        cells, slope = lattice.cells[0], ends[1] - ends[0]
        middle = centre(cells, lattice.counts) / UNITS
        values, off = offsets(cells, lattice.counts), off_lattice(column, cells) * rows.share[1]
        found, error = _average(lattice, values), error * oscillation(values) / UNITS
        centred = Claim(found - error - off, found + error + off, error, "").scaled(slope)
        level = Claim(*rows.share, error, "").scaled(ends[0] + middle * slope)
        how = "the certified errors of the mean and of the share of rows with a value"
        claims.append(Claim(centred.low + level.low, centred.high + level.high, error, how))
    least, most = min(*ends, 0.0), max(*ends, 0.0)
    return estimate, intersect([claim.cut(least, most) for claim in claims])


def _share_times_mean(rows: Selection, column: Ordered, ends: Range) -> Claim:
    """E[value · 1_rows] as the share of the rows times their mean."""
    found = mean(rows, column)[1].scaled(ends[1] - ends[0], ends[0])
    products = [share * end for share in rows.share for end in (found.low, found.high)]
    return Claim(
        min(products), max(products), found.bound, f"the share of rows with a value times their mean: {found.how}"
    )
