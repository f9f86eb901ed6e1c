"""Shares of rows that satisfy a condition, among all rows or within a group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from certsynth.answers import lifts
from certsynth.answers.basis import Basis
from certsynth.answers.boxes import Errors, error
from certsynth.answers.claims import Claim, conditional, intersect
from certsynth.answers.kernels import largest_mean, largest_share, merge_rows, smallest_share
from certsynth.answers.lattices import Lattice, Points, codes_of_cells, inner_and_outer, round_outward
from certsynth.answers.nearness import Box, Boxes, Rest
from certsynth.answers.places import OfLabels, OnLine
from certsynth.base.arrays import Floats
from certsynth.domain import Cells, Column
from certsynth.domain.condition import And, Condition
from certsynth.errors import InputError
from certsynth.queries.fine import DEFAULT_STEPS

NOTHING_KNOWN = math.inf, math.inf
"""No bounds on the shares of rows near borders."""

MAX_BORDERS = 16
"""Most pairs of a box of a condition and one of its complement whose common borders are looked at."""


class UndefinedStatistic(InputError):
    """A statistic that the synthetic rows do not have, such as the mean of a group without rows."""


EMPTY = (
    "no synthetic row satisfies the condition, so nothing can be said about the rows that do; ask for fraction(…) of "
    "it to see how rare they may be."
)
WITHIN_DISTANCE = "the largest and the smallest share that a table within the bound can have"
CERTIFIED = {
    1: "the synthetic share plus and minus the certified error of shares of one column",
    2: "the synthetic share plus and minus the certified error of shares of two columns",
}


def share(basis: Basis, condition: Condition) -> tuple[float, Claim]:
    """The synthetic share of rows that satisfy a condition, and a claim about the private one."""
    claims = [_by_distance(basis, condition)]
    boxes = basis.boxes(condition)
    if boxes is not None and boxes.names:
        claims += [*_by_boxes(basis, boxes), *_by_bands(basis, boxes), *_by_noisy_counts(basis, boxes)]
        for name in boxes.names if len(boxes.names) > 1 else ():
            claims += _by_larger_sets(basis, boxes, name)
    return float(np.mean(basis.truths.holds(condition) > 0)), intersect(claims)


def _by_distance(basis: Basis, condition: Condition) -> Claim:
    r"""P(condition): at most :math:`\min_τ E_μ (1 − d(x, A)/τ)^+ + b/τ` with A the rows that satisfy it; at least 1
    minus the same bound for all other rows, including those where it is unknown."""
    bound = basis.bound(condition.columns)
    rows = basis.distinct(condition.columns)
    high = largest_share(rows.nearness.satisfied(condition), bound, rows.shares)
    low = smallest_share(rows.nearness.rest(condition), bound, rows.shares)
    return Claim(low, high, bound, WITHIN_DISTANCE)


def _by_boxes(basis: Basis, boxes: Boxes) -> list[Claim]:
    """The share is between that of inner points less its error and that of outer points plus its error.

    A comparison of a sum of columns is no union of few boxes: only the distance bounds it.
    """
    found = basis.points(boxes)
    if found is None:
        return []
    lattice, inner, outer = found
    at_borders = NOTHING_KNOWN if np.array_equal(inner, outer) else border_shares(basis, boxes)
    errors, columns = basis.errors(lattice.names), len(lattice.columns)
    low, high = _inner_less_and_outer_plus_error(lattice, inner, outer, errors, at_borders)
    bound = errors.one if columns == 1 else errors.two
    return [Claim(low, high, bound, CERTIFIED[columns]).cut(0.0, 1.0)]


def _inner_less_and_outer_plus_error(
    lattice: Lattice,
    inner: Points,
    outer: Points,
    errors: Errors,
    at_borders: tuple[float, float] = NOTHING_KNOWN,
) -> tuple[float, float]:
    """The synthetic share of the inner points less its error, and that of the outer points plus its error. They are
    the same points if no border falls between two values of a point.

    Else the share of the outer points, less that of rows there that do not satisfy the condition, may be larger than
    the first; and the share of the inner points, plus that of rows elsewhere that satisfy it, less than the second.
    """
    off, inside = error(lattice, inner, errors), lattice.share(inner)
    if np.array_equal(inner, outer):
        return inside - off, inside + off
    off_outer, outside = error(lattice, outer, errors), lattice.share(outer)
    missed, added = at_borders
    return max(inside - off, outside - off_outer - added), min(outside + off_outer, inside + off + missed)


def border_shares(basis: Basis, boxes: Boxes) -> tuple[float, float]:
    """Bounds on the share of rows that satisfy a condition and are not at its inner points, and of those that do not
    and are at its outer points, for a condition on two columns.

    Such rows have values between a border and the end of its point. Of a column with more values than points in pairs,
    but a point for each by itself, these few values have a certified share. Infinite for other columns.
    """
    if len(boxes.names) != 2 or len(boxes.satisfied) * len(boxes.rest) > MAX_BORDERS:
        return NOTHING_KNOWN
    return border_shares_of_side(basis, boxes)


def border_shares_of_side(basis: Basis, boxes: Boxes) -> tuple[float, float]:
    """The same for any number of columns. For a product of sets it is the sum over its sides."""
    return _share_of_both(basis, boxes.rest, boxes.satisfied), _share_of_both(basis, boxes.satisfied, boxes.rest)


def _share_of_both(basis: Basis, rounded: Sequence[Box], others: Sequence[Box]) -> float:
    """The largest share of rows at a point of some boxes, and in some of the others: each of these has, in every column
    that both boxes name, a value at a point of the first and in the second."""
    total = 0.0
    for box, other in product(rounded, others):
        total += min((_share_at_border(basis, box[name], other[name]) for name in box if name in other), default=1.0)
        if total >= 1.0:
            return math.inf
    return total


@lru_cache(maxsize=256)
def _points_in_pairs(column: Column) -> Cells:
    """The points of a column in tables of two: one object for each column, so that what is known of it is looked up."""
    return column.lattice(DEFAULT_STEPS[2])


def _share_at_border(basis: Basis, rounded: OnLine | OfLabels, other: OnLine | OfLabels) -> float:
    column = rounded.column
    both = round_outward(rounded, _points_in_pairs(column)).intersection(other)  # type: ignore[arg-type]
    if both.empty:
        return 0.0
    by_itself = basis.lattice(column.name, shares=True)
    if by_itself is None or not by_itself.native[0]:
        return 1.0
    only = Boxes(({column.name: both},), ({},))
    return min(claim.high for claim in (*_by_boxes(basis, only), *_by_noisy_counts(basis, only)))


def _by_bands(basis: Basis, boxes: Boxes) -> list[Claim]:
    """The same for bands, whose certified error is smaller."""
    found = basis.band_lattice(*sorted(boxes.names, key=basis.schema.names.index))
    if found is None:
        return []
    lattice, errors = found
    inner, outer = lattice.inner_and_outer(boxes)
    low, high = _inner_less_and_outer_plus_error(lattice, inner, outer, errors)
    how = "the synthetic share plus and minus the certified error of shares of bands"
    return [Claim(low, high, min(errors.one, errors.two), how).cut(0.0, 1.0)]


def _by_noisy_counts(basis: Basis, boxes: Boxes) -> list[Claim]:
    """The share from the noisy counts of the cells where a condition holds for all values, and for some."""
    claims = []
    for table in basis.noisy.tables_of(sorted(boxes.names)):
        points = inner_and_outer(table.columns, table.cells, boxes, codes_of_cells)
        low, high = basis.noisy.share(table, *points)
        how = "the noisy counts of the cells, plus and minus the most that noise can be"
        claims.append(Claim(low, high, (high - low) / 2, how).cut(0.0, 1.0))
    return claims


def _by_larger_sets(basis: Basis, boxes: Boxes, name: str) -> list[Claim]:
    """The share is at most that of the values of one column that occur in some box; and so is that of the rest."""
    claims = []
    for sign, union in ((1.0, boxes.satisfied), (-1.0, boxes.rest)):
        if union and all(name in box for box in union):
            wide = Boxes(tuple({name: box[name]} for box in union), ({},))
            for claim in (*_by_boxes(basis, wide), *_by_noisy_counts(basis, wide)):
                least = Claim(0.0, claim.high, claim.bound, f"{claim.how}, for all rows with the same {name!r:.60}")
                claims.append(least if sign > 0 else least.scaled(-1.0, 1.0))
    return claims


def share_within(basis: Basis, condition: Condition, group: Condition) -> tuple[float, Claim]:
    """The synthetic share of a group's rows that satisfy a condition, and a claim about the private one."""
    inside, among = basis.truths.holds(condition) > 0, basis.truths.holds(group) > 0
    if not among.any():
        raise UndefinedStatistic(EMPTY)
    both, other = And((condition, group)), And((Rest(condition), group))
    rows = basis.few_distinct(both.columns)
    bound = min(1.0, basis.bound(both.columns) + rows.moved)
    distances = [rows.nearness.satisfied(both), rows.nearness.satisfied(other), rows.nearness.rest(group)]
    (to_both, to_other, away), weights = merge_rows(*distances, shares=rows.shares)

    def largest(to: Floats, elsewhere: Floats) -> float:
        """The largest share of the group's rows there; 0 if no row can be there."""
        if np.isinf(to).all():
            return 0.0
        return largest_mean(lifts.indicator(to, elsewhere), away, weights, bound, low=0.0, high=1.0)

    high, low = largest(to_both, to_other), 1.0 - largest(to_other, to_both)
    claims = [Claim(max(low, 0.0), min(high, 1.0), bound, f"{WITHIN_DISTANCE} of the group")]
    if basis.certificate.statistics is not None or basis.noisy.tables:
        parts = [share(basis, each)[1] for each in (both, other, group)]
        a, c, whole = ((np.array(claim.low), np.array(claim.high)) for claim in parts)
        least, most = conditional(a, c, (float(whole[0]), float(whole[1])))
        how = "the certified shares of the group's rows that satisfy the condition, and of those that do not"
        claims.append(Claim(float(least), float(most), parts[0].bound, how).cut(0.0, 1.0))
    return float(np.mean(inside[among])), intersect(claims)
