"""Counts and sums of many coded rows, by compiled loops over whole numbers.

Threads share the tables, and not the rows: each table is counted by one of them alone, so that none has to be held
twice, and nothing depends on which thread is faster. Counters have 64 bits throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.base.threads import in_threads

MIN_COMPILED_ROWS = 8_192
"""Rows from which on compiled loops pay: NumPy needs no warming up. The counts are the same."""

MAX_TWIN_CELLS = 1_024
"""Tables of up to so many cells have several counters for each: rows that follow each other are often alike."""

BLOCK_ROWS = 1_024
"""Rows whose places are found before they are counted: the one vectorises, the other does not."""

Subset = tuple[int, ...]


def count_rows(blocks: Sequence[Ints], codes: np.ndarray, subsets: Sequence[Subset], sizes: Sequence[int]) -> None:
    """Add rows to the blocks of their subsets. `codes` has a line for each column, `sizes` how many codes it has."""
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
    """For each subset the sum over rows of the largest of its columns' units. `units` has a line for each column.

    No unit is negative, so that a column whose sum is 0 has none: of most subsets little is left to do.
    """
    rows = units.shape[1]

    def largest(off: Sequence[int]) -> int:
        if rows < MIN_COMPILED_ROWS:
            return int(units[off].max(axis=0).sum(dtype=np.int64))
        return int(_largest(units, np.array(off)))

    alone = in_threads(lambda column: largest([column, column]), range(len(units)), rows=rows)

    def work(subset: Subset) -> int:
        off = [column for column in subset if alone[column]]
        if len(off) < 2:
            return alone[off[0]] if off else 0
        return largest(off)

    return in_threads(work, subsets, rows=rows)


@njit(cache=True, nogil=True)
def _count(codes, columns, shape, counters):  # type: ignore[no-untyped-def]
    """All codes must be below the shape. A counter that went up a moment ago is slow to go up again: few have twins."""
    rows, cells = codes.shape[1], len(counters)
    few = cells <= MAX_TWIN_CELLS
    twins = np.zeros((3, cells if few else 1), np.int64)
    places = np.empty(BLOCK_ROWS, np.uint32)
    # The cache holds the counters of the table before. To fetch these one by one takes longer than to count in others,
    # half as wide, that stay in the cache, and to add them at the end in their order.
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
