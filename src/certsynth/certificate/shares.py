"""The largest error of a share: exact maxima over all intervals, sets of labels, and boxes of two columns.

A set of an ordered column is an interval of consecutive lattice points, with or without the missing value; a set of a
column of labels is any set of its points. A box is a product of two sets, of which one is a single point if both
columns have labels. docs/explanation/proofs/statistics.md proves that these maxima are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.domain import Cells
from certsynth.queries.statistics import is_line

FIRST_STRIDE = 16
"""Lattice points between the ends of the intervals tried first. They are few, and a large error found early lets most
others be skipped."""


def largest_share_error(cells: Cells, difference: Ints | Sequence[int]) -> int:
    """The largest |sum of `difference` over a set| of a column. Python integers may be of any size."""
    values = difference.tolist() if isinstance(difference, np.ndarray) else list(difference)
    line = len(cells.places)
    up = down = 0
    if is_line(cells):
        total = lowest = highest = 0
        for value in values[:line]:
            total += value
            lowest, highest = min(lowest, total), max(highest, total)
            up, down = max(up, total - lowest), max(down, highest - total)
    up += sum(value for value in values[line:] if value > 0)
    down -= sum(value for value in values[line:] if value < 0)
    return max(up, down)


def largest_box_error(first: Cells, second: Cells, difference: Ints, *, least: int = 0) -> int:
    """The largest |sum of `difference` over a box| of two columns, or `least` if that is larger.

    `difference` is a block of counts, the second column running fastest, from `transport.difference`: its absolute
    values sum to less than 2^61, so that no sum here exceeds 64 bits.
    """
    table = difference.reshape(first.size, second.size)
    negative = -int(table.sum(where=table < 0))
    if max(negative + int(table.sum()), negative) <= least:  # no set of cells has a larger sum
        return least
    if not is_line(first) and not is_line(second):
        return max(least, _largest_row_or_column(table))
    lines = len(first.places), len(second.places)
    if not lines[0] or 0 < lines[1] < lines[0]:  # the work grows with the square of the points on the first line
        table, lines = table.T, (lines[1], lines[0])
    if max(table.shape[0] - lines[0], table.shape[1] - lines[1] if lines[1] else 0) > 1:
        raise ValueError("an ordered column has at most one point off its line")
    return int(_largest_box(np.ascontiguousarray(table), lines[0], lines[1], least))


def _largest_row_or_column(table: Ints) -> int:
    """The largest |sum| over one point of one column and any set of points of the other."""
    positive = np.maximum(table, 0)
    negative = positive - table
    return max(int(part.sum(axis=axis).max()) for part in (positive, negative) for axis in (0, 1))


@njit(cache=True, nogil=True)
def _largest_box(table, line, second_line, least):  # type: ignore[no-untyped-def]
    """`line` rows are on the line of the first column, and `second_line` columns on that of the second (0 for labels).

    Every interval of rows is tried, without and with the missing row, and of each the best set of columns is found in
    one pass. The error of rows i to k is at most that of rows i to j plus those of the rows from j to k, so that
    intervals that cannot exceed the largest error so far are skipped.
    """
    sums = np.zeros((line + 1, table.shape[1] + (second_line > 0)), np.int64)
    single, zero = np.zeros(sums.shape[1], np.int64), np.zeros(sums.shape[1], np.int64)
    alone = np.zeros(line + 1, np.int64)  # errors of single rows, summed
    for i in range(line):
        _cumulate(table[i], second_line, single)
        for c in range(len(single)):
            sums[i + 1, c] = sums[i, c] + single[c]
        alone[i + 1] = alone[i] + _best_set(single, zero, zero, second_line, np.int64(0))
    best = least
    for missing in range(1 + table.shape[0] - line):
        other = zero
        if missing:
            _cumulate(table[line], second_line, single)
            other = single
        for i in range(0, line + 1, FIRST_STRIDE):
            for j in range(i, line + 1, FIRST_STRIDE):
                best = max(best, _best_set(sums[j], sums[i], other, second_line, best))
        for i in range(line + 1):
            j = i
            while j <= line:
                found = _best_set(sums[j], sums[i], other, second_line, best)
                best = max(best, found)
                tried = alone[j]
                j += 1
                while j <= line and found + alone[j] - tried <= best:
                    j += 1
    return best


@njit(cache=True, nogil=True)
def _cumulate(row, second_line, into):  # type: ignore[no-untyped-def]
    """Prefix sums along the line, beginning with 0, then the points off the line as they are."""
    shift = 1 if second_line else 0
    for c in range(len(row)):
        into[c + shift] = row[c] + (into[c] if c < second_line else 0)


@njit(cache=True, nogil=True)
def _best_set(end, start, other, second_line, enough):  # type: ignore[no-untyped-def]
    """The largest |sum of end − start + other| over a set of columns, or an upper bound that is at most `enough`."""
    if second_line == 0:
        positive = negative = 0
        for c in range(len(end)):
            value = end[c] - start[c] + other[c]
            positive += max(value, 0)
            negative -= min(value, 0)
        return max(positive, negative)
    lowest = highest = 0
    for c in range(second_line + 1):
        value = end[c] - start[c] + other[c]
        lowest = min(lowest, value)
        highest = max(highest, value)
    if len(end) == second_line + 1:
        return highest - lowest
    last = len(end) - 1
    absent = end[last] - start[last] + other[last]
    bound = highest - lowest + abs(absent)
    if absent == 0 or bound <= enough:
        return bound
    lowest = highest = up = down = 0
    for c in range(1, second_line + 1):
        value = end[c] - start[c] + other[c]
        lowest = min(lowest, value)
        highest = max(highest, value)
        up = max(up, value - lowest)
        down = max(down, highest - value)
    return max(up + max(absent, 0), down - min(absent, 0))
