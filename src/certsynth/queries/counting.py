"""Count coded rows and sum their distances, in compiled loops over integers.

Work is divided among threads by table, not by row: one thread counts each table, so no table is stored twice and the
result does not depend on timing. Counters have 64 bits throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.base.threads import in_threads

MIN_COMPILED_ROWS = 8_192
"""Rows from which compiled loops are faster than NumPy, which computes the same counts without compilation."""

MAX_TWIN_CELLS = 1_024
"""Cells of a table up to which each has four counters, since consecutive rows often fall into the same cell."""

BLOCK_ROWS = 1_024
"""Rows whose positions are computed before any is counted: the first loop vectorises, the second does not."""

Subset = tuple[int, ...]


def count_rows(blocks: Sequence[Ints], codes: np.ndarray, subsets: Sequence[Subset], sizes: Sequence[int]) -> None:
    """Add rows to the blocks of all subsets. `codes` has a line for each column, `sizes` its number of codes."""
    rows = codes.shape[1]
    used = {column for subset in subsets for column in subset}
    if rows and any(int(codes[j].max()) >= sizes[j] or int(codes[j].min()) < 0 for j in used):
        raise ValueError("a code is beyond the cells of its column")

    def work(j: int) -> None:
        columns, block = subsets[j], blocks[j]
        if rows >= MIN_COMPILED_ROWS and columns and len(block) < 2**32:
            _count(codes, np.array(columns), np.array([sizes[c] for c in columns]), block)
        else:
            shape = tuple(sizes[c] for c in columns)
            places = np.ravel_multi_index([codes[c] for c in columns], shape) if columns else np.zeros(rows, np.int64)
            block[:] += np.bincount(places, minlength=len(block))

    in_threads(work, range(len(subsets)), rows=rows)


def sum_largest_moves(units: np.ndarray, subsets: Sequence[Subset]) -> list[int]:
    """For each subset, the sum over rows of the largest of its columns' distances. `units` has a line for each column.

    No distance is negative, so a column whose sum is 0 can be skipped: most subsets have few other columns.
    """
    rows = units.shape[1]

    def largest(columns: Sequence[int]) -> int:
        if rows < MIN_COMPILED_ROWS:
            return int(units[columns].max(axis=0).sum(dtype=np.int64))
        return int(_largest(units, np.array(columns)))

    own_sums = in_threads(lambda column: largest([column, column]), range(len(units)), rows=rows)

    def work(subset: Subset) -> int:
        moving = [column for column in subset if own_sums[column]]
        if len(moving) < 2:
            return own_sums[moving[0]] if moving else 0
        return largest(moving)

    return in_threads(work, subsets, rows=rows)


@njit(cache=True, nogil=True)
def _count(codes, columns, shape, counters):  # type: ignore[no-untyped-def]
    """Count rows in one table. All codes must be below the shape.

    Incrementing a counter that was just incremented waits for the memory write, so small tables have twin counters.
    """
    rows, cells = codes.shape[1], len(counters)
    few = cells <= MAX_TWIN_CELLS
    twins = np.zeros((3, cells if few else 1), np.int64)
    places = np.empty(BLOCK_ROWS, np.uint32)
    # The cache still holds the counters of the previous table. Fetching this table's counters one by one takes longer
    # than counting in temporary ones of half the width and adding them in order at the end.
    aside = not few and cells <= rows and rows < 2**31
    own = np.zeros(cells if aside else 1, np.int32)
    for start in range(0, rows, BLOCK_ROWS):
        part = codes[columns[0]][start : start + BLOCK_ROWS]
        size = len(part)
        for i in range(size):
            places[i] = part[i]
        for j in range(1, len(columns)):
            part, many = codes[columns[j]][start : start + BLOCK_ROWS], np.uint32(shape[j])
            for i in range(len(part)):
                places[i] = np.uint32(places[i] * many) + np.uint32(part[i])
        fours = size // 4 * 4 if few else 0
        for i in range(0, fours, 4):
            counters[np.uintp(places[i])] += 1
            twins[0, np.uintp(places[i + 1])] += 1
            twins[1, np.uintp(places[i + 2])] += 1
            twins[2, np.uintp(places[i + 3])] += 1
        if aside:
            for i in range(size):
                own[np.uintp(places[i])] += 1
        else:
            for i in range(fours, size):
                counters[np.uintp(places[i])] += 1
    if few:
        for i in range(cells):
            counters[i] += twins[0, i] + twins[1, i] + twins[2, i]
    if aside:
        for i in range(cells):
            counters[i] += own[i]


@njit(cache=True, nogil=True)
def _largest(units, columns):  # type: ignore[no-untyped-def]
    total = 0
    largest = np.empty(BLOCK_ROWS, np.int32)
    for start in range(0, units.shape[1], BLOCK_ROWS):
        first, second = units[columns[0]][start : start + BLOCK_ROWS], units[columns[1]][start : start + BLOCK_ROWS]
        for i in range(len(first)):
            largest[i] = max(first[i], second[i])
        for j in range(2, len(columns)):
            part = units[columns[j]][start : start + BLOCK_ROWS]
            for i in range(len(part)):
                largest[i] = max(largest[i], part[i])
        for i in range(len(first)):
            total += largest[i]
    return total
