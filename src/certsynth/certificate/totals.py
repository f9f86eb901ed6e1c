"""The largest error of group totals and of moments: exact integers from the counts of both tables.

Sums over one table fit into 64 bits. Their cross difference, N·(sum over D) − n·(sum over the synthetic rows), may not,
and is computed in Python integers. docs/explanation/proofs/statistics.md has the definitions and proofs.
"""

from __future__ import annotations

from fractions import Fraction

from certsynth.base.arrays import Ints
from certsynth.certificate.shares import largest_share_error
from certsynth.domain import Cells
from certsynth.errors import TooLarge
from certsynth.queries.statistics import UNITS, is_line, offsets, oscillation, product

MAX_ROWS = 2**42
"""Most rows of a table: functions are at most 2^20 units, so that their sums stay below 2^63."""


def largest_total_error(first: Cells, second: Cells, private: Ints, synthetic: Ints) -> int:
    """The largest cross difference of the totals of one column's offsets over the rows in a set of the other column.

    Both ways round; at least one column must be ordered. The blocks are those of the pair, and the result is in units.
    """
    ours, theirs = (block.reshape(first.size, second.size) for block in (private, synthetic))
    largest = []
    for cells, group, a, b in ((first, second, ours, theirs), (second, first, ours.T, theirs.T)):
        if is_line(cells):
            away = offsets(cells, b.sum(axis=1))
            totals = zip((away @ a).tolist(), (away @ b).tolist(), strict=True)
            rows = _rows(private, synthetic)
            largest.append(largest_share_error(group, [cross_difference(*rows, *pair) for pair in totals]))
    return max(largest)


def largest_moment_error(cells: Cells, private: Ints, synthetic: Ints) -> Fraction:
    """The largest cross difference of the sums of offsets, and of their squares, of one ordered column, in units.

    Functions are scaled to oscillation 1, as for products: that of a square is often small, and noise should be, too.
    """
    away = offsets(cells, synthetic)
    return max(_scaled_error(function, private, synthetic) for function in (away, product(away, away)))


def product_moment_error(first: Cells, second: Cells, private: Ints, synthetic: Ints) -> Fraction:
    """The cross difference of the sums of products of the offsets of two ordered columns, in units."""
    theirs = synthetic.reshape(first.size, second.size)
    rows, columns = offsets(first, theirs.sum(axis=1)), offsets(second, theirs.sum(axis=0))
    return _scaled_error(product(rows[:, None], columns).ravel(), private, synthetic)


def cross_difference(rows: int, synthetic_rows: int, private_sum: int, synthetic_sum: int) -> int:
    """The difference of two means times both numbers of rows."""
    return synthetic_rows * private_sum - rows * synthetic_sum


def _scaled_error(function: Ints, private: Ints, synthetic: Ints) -> Fraction:
    error = abs(cross_difference(*_rows(private, synthetic), int(function @ private), int(function @ synthetic)))
    return Fraction(error * UNITS, oscillation(function) or 1)


def _rows(private: Ints, synthetic: Ints) -> tuple[int, int]:
    rows = int(private.sum()), int(synthetic.sum())
    if max(rows) > MAX_ROWS:
        raise TooLarge("the tables are too long for exact 64-bit sums; compare fewer rows.")
    return rows
