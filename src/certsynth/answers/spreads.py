"""Variances and covariances of places in [0, 1] among selected rows, from all bounds of the certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certsynth.answers import averages, by_ratio, moments
from certsynth.answers.claims import Claim, intersect, quotient
from certsynth.answers.lattices import Lattice, off_lattice
from certsynth.answers.selection import Selection
from certsynth.base.arrays import Ints
from certsynth.domain import Ordered
from certsynth.queries.statistics import UNITS, centre, offsets, oscillation, places_in_units, product

CENTRES = 9
"""Centres for which the mean square is bounded from above; the least bound is one for the variance."""

Range = tuple[float, float]


def variance(rows: Selection, column: Ordered) -> tuple[float, Claim]:
    """The variance of the synthetic rows, and a claim about that of the private rows."""
    where = rows.exact_places(column)
    estimate = rows.average((where - rows.average(where)) ** 2)
    mean = averages.mean(rows, column)[1]
    if column.grid:
        claims = [by_ratio.variance(rows, column, mean)]
    else:
        _, low, high = moments.variance(rows.places(column), rows.near, rows.bound, float(column.weight))
        claims = [Claim(low, high, rows.bound, by_ratio.HOW_VARIANCE)]
        claims += _by_moment(rows, column, mean) if rows.group is None else []
    claims += _by_cumulative_shares(rows, column, mean)
    return estimate, intersect([claim.cut(0.0, 0.25) for claim in claims])


def _by_moment(rows: Selection, column: Ordered, mean: Claim) -> list[Claim]:
    """E(x − a)² over the rows with a value, divided by their share, less the square of the mean of x − a."""
    lattice, error = rows.basis.lattice(column.name), rows.basis.moment_error
    if lattice is None or math.isinf(error):
        return []
    cells = lattice.cells[0]
    values = offsets(cells, lattice.counts)
    squares = _mean_product(lattice, product(values, values), error, rows.share)
    off = off_lattice(column, cells)
    away = _deviation(mean, centre(cells, lattice.counts), off)
    least, most = (
        squares[0] - max(x * x for x in away),
        squares[1] - (min(x * x for x in away) if away[0] * away[1] > 0 else 0),
    )
    return [_off_points(least, most, off, error, "the certified errors of means and of squares")]


def _by_cumulative_shares(rows: Selection, column: Ordered, mean: Claim) -> list[Claim]:
    """The mean square from any centre is certified as the sum of shares above and below each value."""
    found = rows.cumulative_shares(column)
    if found is None:
        return []
    cumulative, error = found
    ends = mean.low - cumulative.off, mean.high + cumulative.off
    centres = [float(c) for c in np.linspace(*ends, CENTRES)]
    squares = [cumulative.mean_square(c) for c in centres]
    most = min(high for _, high in squares)
    least = max(low - max((end - c) ** 2 for end in ends) for c, (low, _) in zip(centres, squares, strict=True))
    return [_off_points(least, most, cumulative.off, error, "the certified shares of rows above each value, added up")]


def _off_points(least: float, most: float, off: float, error: float, how: str) -> Claim:
    """From the variance of points to that of values, at most `off` away: standard deviations differ by at most that."""
    low, high = math.sqrt(max(least, 0.0)), math.sqrt(max(most, 0.0))
    return Claim(max(low - off, 0.0) ** 2, (high + off) ** 2, error, how)


def covariance(
    rows: Selection, first: Ordered, second: Ordered
) -> tuple[float, Claim, tuple[float, Claim], tuple[float, Claim]]:
    """The covariance of the synthetic rows, a claim about that of the private rows, and both variances."""
    columns = (first, second)
    places = rows.places(first), rows.places(second)
    weights = float(first.weight), float(second.weight)
    alone = [Selection(rows.basis, (column,)) if rows.condition is None else rows for column in columns]
    means = [averages.mean(each, column) for each, column in zip(alone, columns, strict=True)]
    spreads = [variance(each, column) for each, column in zip(alone, columns, strict=True)]
    middles = tuple((estimate, claim.low, claim.high) for estimate, claim in means)
    x, y = (rows.exact_places(column) for column in columns)
    estimate = rows.average((x - rows.average(x)) * (y - rows.average(y)))
    deviations = math.sqrt(spreads[0][1].high), math.sqrt(spreads[1][1].high)
    if first.grid or second.grid:
        most = deviations[0] * deviations[1]
        return estimate, Claim(-most, most, rows.bound, "the certified deviations, multiplied"), spreads[0], spreads[1]
    _, low, high = moments.covariance(places, rows.near, rows.bound, weights, middles)
    how = "the largest and the smallest covariance that a table within the bound can have, or a little beyond"
    claims = [Claim(low, high, rows.bound, how)]
    if rows.group is None:
        claims += _product_by_moment(rows, columns, (means[0][1], means[1][1]), deviations)
    else:
        claims += _product_by_group_totals(rows, columns, (means[0][1], means[1][1]), deviations)
        claims += _product_by_group_totals(rows, columns[::-1], (means[1][1], means[0][1]), deviations[::-1])
    most = deviations[0] * deviations[1]  # by the Cauchy–Schwarz inequality
    return estimate, intersect([claim.cut(-most, most) for claim in claims]), spreads[0], spreads[1]


def _product_by_moment(
    rows: Selection, columns: tuple[Ordered, Ordered], means: tuple[Claim, Claim], deviations: Range
) -> list[Claim]:
    """E(x − a)(y − b) over the rows with both values, divided by their share, less the product of the means."""
    lattice, error = rows.basis.lattice(*(column.name for column in columns)), rows.basis.moment_error
    if lattice is None or math.isinf(error):
        return []
    margins = lattice.counts.sum(axis=1), lattice.counts.sum(axis=0)
    values = [offsets(cells, counts) for cells, counts in zip(lattice.cells, margins, strict=True)]
    products = _mean_product(lattice, product(values[0][:, None], values[1][None, :]), error, rows.share)
    offs = [off_lattice(column, cells) for column, cells in zip(columns, lattice.cells, strict=True)]
    away = [
        _deviation(mean, centre(cells, counts), off)
        for mean, cells, counts, off in zip(means, lattice.cells, margins, offs, strict=True)
    ]
    return [_without_means(products, away, offs, deviations, error, "the certified errors of means and of products")]


def _product_by_group_totals(
    rows: Selection, columns: tuple[Ordered, Ordered], means: tuple[Claim, Claim], deviations: Range
) -> list[Claim]:
    """E[(x − c)(y − b) 1_A] for a group A of x: a weighted sum of group totals of y.

    On each run of A the function x − c rises. It is a sum of indicators of intervals that end with the run, whose
    weights add up to its positive part at the last point, less such a sum for intervals that begin with the run.
    """
    group, error = rows.group, rows.basis.group_error(column.name for column in columns)
    assert group is not None
    boxes = rows.basis.boxes(group)
    x, y = columns
    if boxes is None or boxes.names != {x.name} or math.isinf(error):
        return []
    lattice = rows.basis.lattice(x.name, y.name)
    if lattice is None:
        return []
    line = len(lattice.cells[0].places)
    inner, outer = (points[:line, 0] for points in lattice.inner_and_outer(boxes))
    if (inner != outer).any():
        return []
    middle = (means[0].low + means[0].high) / 2
    values = np.where(inner, places_in_units(lattice.cells[0]) / UNITS - middle, 0.0)
    starts, ends = inner & ~np.append(False, inner[:-1]), inner & ~np.append(inner[1:], False)
    weight = float(np.maximum(values[ends], 0.0).sum() + np.maximum(-values[starts], 0.0).sum())
    margin = lattice.counts.sum(axis=0)
    away = offsets(lattice.cells[1], margin) / UNITS
    found = float(values @ lattice.counts[:line] @ away / lattice.rows)
    products = quotient((found - weight * error, found + weight * error), rows.share)
    offs = [off_lattice(column, cells) for column, cells in zip(columns, lattice.cells, strict=True)]
    shifts = [
        (means[0].low - offs[0] - middle, means[0].high + offs[0] - middle),
        _deviation(means[1], centre(lattice.cells[1], margin), offs[1]),
    ]
    how = "the certified errors of group totals, added up, and of means"
    return [_without_means(products, shifts, offs, deviations, error, how)]


def _without_means(
    products: Range, away: Sequence[Range], offs: Sequence[float], deviations: Range, error: float, how: str
) -> Claim:
    """The covariance of values, from the mean product of points and the ranges of their means.

    |Cov(x, y) − Cov(x′, y′)| ≤ |Cov(x − x′, y)| + |Cov(x′, y − y′)|, with x′ and y′ the points.
    """
    shifts = [a * b for a in away[0] for b in away[1]]
    moved = offs[0] * deviations[1] + offs[1] * (deviations[0] + offs[0])
    return Claim(products[0] - max(shifts) - moved, products[1] - min(shifts) + moved, error, how)


def _mean_product(lattice: Lattice, values: Ints, error: float, share: Range) -> Range:
    """The range of the mean of a product that is rounded down to units, among the rows that have one.

    The certified error is that of functions of oscillation 1."""
    error *= oscillation(values) / UNITS
    found = float((values * lattice.counts).sum() / (lattice.rows * UNITS))
    return quotient((found - error, found + error + share[1] / UNITS), share)


def _deviation(mean: Claim, middle: int, off: float) -> Range:
    """The range of the mean of points, less the centre."""
    return mean.low - off - middle / UNITS, mean.high + off - middle / UNITS
