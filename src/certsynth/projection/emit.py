"""Turn weights into rows: how many rows each point gets, and which values they take inside their cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells, Column, Schema

Detail = Literal["centre", "spread"]


def multiplicities(weights: Floats, rows: int) -> Ints:
    r"""Number of rows for each point: `rows` times its weight, rounded by largest remainders.

    .. math:: \tfrac12 \sum_i |c_i / M - w_i| \le \frac{m}{4M}

    where m is the number of points with weight and M the number of rows: if R of m remainders f are rounded up, the sum
    of errors is Σ_up (1 − f) + Σ_down f ≤ 2R(m − R)/m ≤ m/2. The mean of a function of range 1 moves by no more
    (independent draws would err by about √(m/M)). The certificate is evaluated on the rows, so it includes this error.

    >>> multiplicities(np.array([0.5, 0.3, 0.2]), 7).tolist()
    [4, 2, 1]
    """
    ideal = weights * rows
    counts = np.floor(ideal).astype(np.int64)
    left = rows - int(counts.sum())
    # Stable sort: ties go to the first point on every machine.
    largest = np.argsort(-(ideal - counts), kind="stable")[:left]
    counts[largest] += 1
    return counts


def running_multiplicities(weights: Floats, rows: int) -> Ints:
    """Number of rows for each point, such that running sums are off by at most half a row.

    Of many points on a line with less than a row each, every so many get one.

    >>> running_multiplicities(np.full(6, 1 / 6), 2).tolist()
    [0, 1, 0, 0, 1, 0]
    """
    ideal = np.cumsum(weights) * rows
    ideal[-1] = rows
    running: Ints = np.floor(ideal + 0.5).astype(np.int64)
    return running - np.concatenate([[0], running[:-1]])


def emit(
    points: Ints,
    weights: Floats,
    rows: int,
    *,
    schema: Schema,
    cells: Sequence[Cells],
    detail: Detail,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Write `rows` rows in random order, as cleaned columns.

    `detail` places values at the centre of their cell, which the plug-in certificate favours, or spreads them evenly
    over the values of the cell, which is closer to the data.
    """
    codes = rng.permutation(np.repeat(points, multiplicities(weights, rows), axis=0), axis=0)
    columns = []
    for column, grid, code in zip(schema, cells, codes.T, strict=True):
        if detail == "centre":
            columns.append(column.centres(grid)[code])
        else:
            columns.append(spread_in_cells(column, grid, code, rng))
    return columns


def spread_in_cells(column: Column, cells: Cells, codes: Ints, rng: np.random.Generator) -> np.ndarray:
    """Give each row a value of its cell: every value equally often, independently of the other columns."""
    values = column.on_lattice(column.detail())
    home = column.to_cells(values, cells)
    centres = column.centres(cells)
    emitted = centres[codes]
    shuffled = rng.permutation(len(codes))
    by_cell = shuffled[np.argsort(codes[shuffled], kind="stable")]
    for members in np.split(by_cell, np.flatnonzero(np.diff(codes[by_cell])) + 1):
        if len(members):
            inside = values[home == codes[members[0]]]
            if len(inside):  # a cell between two lattice points keeps its centre
                pick = ((np.arange(len(members)) + 0.5) * len(inside) / len(members)).astype(np.int64)
                emitted[members] = inside[pick]
    return emitted
