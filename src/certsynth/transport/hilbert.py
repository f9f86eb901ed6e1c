"""A space-filling curve for rectangles of any size, after Hilbert."""

from __future__ import annotations

import functools

import numpy as np

from certsynth.base.arrays import Ints, read_only

_Vector = tuple[int, int]


@functools.lru_cache(maxsize=64)
def hilbert_order(rows: int, columns: int) -> Ints:
    """Block indices of a rows × columns rectangle in an order in which neighbours touch, at least at a corner.

    A rectangle is crossed along its longer side. A long one is cut across into two; any other into three, as in
    Hilbert's curve: up the first half of the near side, along the far half, and down again. Halves along the
    direction of travel are made even where possible, which is what lets the pieces meet.

    >>> hilbert_order(2, 2).tolist()
    [0, 2, 3, 1]
    """
    visited: list[int] = []
    along, across = ((0, columns), (rows, 0)) if columns >= rows else ((rows, 0), (0, columns))
    stack: list[tuple[_Vector, _Vector, _Vector]] = [((0, 0), along, across)]
    while stack:
        (r, c), (ar, ac), (br, bc) = stack.pop()
        length, width = abs(ar + ac), abs(br + bc)
        da, db = (_sign(ar), _sign(ac)), (_sign(br), _sign(bc))
        if width == 1 or length == 1:
            dr, dc = da if width == 1 else db
            visited += [(r + i * dr) * columns + c + i * dc for i in range(max(length, width))]
            continue
        half, low = length // 2, width // 2
        if 2 * length > 3 * width:
            half += half % 2 and length > 2
            first = half * da[0], half * da[1]
            rest = ar - first[0], ac - first[1]
            stack += [((r + first[0], c + first[1]), rest, (br, bc)), ((r, c), first, (br, bc))]
            continue
        low += low % 2 and width > 2
        near, far = (low * db[0], low * db[1]), (br - low * db[0], bc - low * db[1])
        first = half * da[0], half * da[1]
        rest = ar - first[0], ac - first[1]
        down = r + ar - da[0] + near[0] - db[0], c + ac - da[1] + near[1] - db[1]
        stack += [
            (down, (-near[0], -near[1]), (-rest[0], -rest[1])),
            ((r + near[0], c + near[1]), (ar, ac), far),
            ((r, c), near, first),
        ]
    return read_only(np.array(visited, dtype=np.int64))


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)
