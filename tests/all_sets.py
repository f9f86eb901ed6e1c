"""Shares, group totals and moments by their definitions: every set of a column, every function, one row at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from certsynth import Schema
from certsynth.base.arrays import Ints
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.domain import Cells
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.statistics import UNITS
from certsynth.queries.tally import Batch

Function = dict[tuple[int, ...], int]
"""A function on the lattice points of a subset."""


def sets_of(cells: Cells) -> list[frozenset[int]]:
    """Intervals of the line, with or without the point off it; any set of points if there is no line."""
    line, points = len(cells.places), range(cells.size)
    if not line:
        return [frozenset(some) for size in range(cells.size + 1) for some in itertools.combinations(points, size)]
    intervals = {frozenset(range(i, j)) for i in range(line + 1) for j in range(i, line + 1)}
    return [interval | extra for interval in intervals for extra in {frozenset(), frozenset(points[line:])}]


def boxes_of(first: Cells, second: Cells) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """Products of two sets; of a point and a set if both columns have labels."""
    if len(first.places) or len(second.places):
        yield from itertools.product(sets_of(first), sets_of(second))
    else:
        yield from itertools.product([frozenset([a]) for a in range(first.size)], sets_of(second))
        yield from itertools.product(sets_of(first), [frozenset([b]) for b in range(second.size)])


def largest_sum(sets: Sequence[frozenset[int]], values: Sequence[int]) -> int:
    return max(abs(sum(values[c] for c in each)) for each in sets)


def largest_box_sum(first: Cells, second: Cells, table: Ints) -> int:
    """By matrix products, since there are many boxes."""

    def indicators(cells: Cells, sets: Sequence[frozenset[int]]) -> Ints:
        return np.array([[c in each for c in range(cells.size)] for each in sets], dtype=np.int64)

    rows, columns = (indicators(cells, sets_of(cells)) for cells in (first, second))
    if len(first.places) or len(second.places):
        return int(np.abs(rows @ table @ columns.T).max())
    return max(int(np.abs(table @ columns.T).max()), int(np.abs(rows @ table).max()))


def place_of(cells: Cells, code: int) -> int:
    """The place of a point on the line, in units."""
    return min(math.floor(UNITS * Fraction(int(cells.places[code])) / (cells.steps * cells.weight)), UNITS)


def offset_of(cells: Cells, codes: Sequence[int], code: int) -> int:
    """Place minus the mean place of the rows with these codes; 0 off the line."""
    if code >= len(cells.places):
        return 0
    present = [place_of(cells, c) for c in codes if c < len(cells.places)]
    return place_of(cells, code) - (sum(present) // len(present) if present else UNITS // 2)


def functions_of(cells: Sequence[Cells], synthetic: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, int, Function]]:
    """All functions of one or two columns with the name of their class and the units of their values."""
    points = list(itertools.product(*(range(each.size) for each in cells)))
    codes = list(zip(*synthetic, strict=True))
    away = [[offset_of(each, part, c) for c in range(each.size)] for each, part in zip(cells, codes, strict=True)]
    lines = [bool(len(each.places)) for each in cells]
    if len(cells) == 1:
        for some in sets_of(cells[0]):
            yield "share_of_one_column", 1, {(c,): int(c in some) for (c,) in points}
        if lines[0]:
            yield scaled_moment({(c,): away[0][c] for (c,) in points})
            yield scaled_moment({(c,): math.floor(Fraction(away[0][c] ** 2, UNITS)) for (c,) in points})
        return
    for first, second in boxes_of(*cells):
        yield "share_of_two_columns", 1, {p: int(p[0] in first and p[1] in second) for p in points}
    for own in (0, 1):
        if lines[own]:
            for some in sets_of(cells[1 - own]):
                yield "group_total", UNITS, {p: away[own][p[own]] * (p[1 - own] in some) for p in points}
    if all(lines):
        yield scaled_moment({p: math.floor(Fraction(away[0][p[0]] * away[1][p[1]], UNITS)) for p in points})


def scaled_moment(function: Function) -> tuple[str, int, Function]:
    """A function in units of the difference between its largest and its smallest value."""
    return "moment", max(function.values()) - min(function.values()) or 1, function


def codes_of(fine: LatticeQuery, table: Batch, subset: tuple[int, ...]) -> list[tuple[int, ...]]:
    """For each row its lattice point."""
    schema: Schema = fine.schema
    codes = [schema.columns[j].to_lattice(table[j], fine.marginals.cells[j])[0].tolist() for j in subset]
    return list(zip(*codes, strict=True))


def largest_errors(fine: LatticeQuery, private: Batch, synthetic: Batch) -> dict[str, int]:
    """What receives noise, by name, for all subsets of a query."""
    largest: dict[str, Fraction] = {}
    for subset in fine.marginals.subsets:
        ours, theirs = codes_of(fine, private, subset), codes_of(fine, synthetic, subset)
        for name, units, function in functions_of(fine.marginals.of(subset), theirs):
            mean = Fraction(sum(function[p] for p in theirs), len(theirs))
            error = abs(sum((function[p] - mean for p in ours), Fraction(0))) / units
            largest[name] = max(largest.get(name, error), error)
    return {name: math.ceil(LOSS_UNITS * error) for name, error in largest.items()}
