"""Codes of cells as an engine can say them: comparisons with values that are computed here, from the column itself.

Along a line codes never fall as values rise, so that it is enough to know where each begins: the least float, found by
bisection among all floats. Labels are looked up. What cannot be said exactly is None, and then rows have to be read.

Comparisons are alike everywhere, and arithmetic is not: polars divides by multiplying with the inverse. Where an engine
is known to round as Python does, the steps of `Ordered` are written as they are there, which is quicker.

docs/explanation/counting.md says why: an expression gives the integer that its row would give.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Literal

import narwhals as nw
import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells, Column, Ordered
from certsynth.domain.cells import Groups
from certsynth.domain.column import Category
from certsynth.queries.coding import MOVE_UNITS, move_units
from certsynth.queries.thresholds import least_floats

MOST_STEPS = 1024
"""Places where an expression may change its value: more make a text that no engine likes."""

FEW_STEPS = 32
"""With more, arithmetic is quicker, where it is exact."""

MOST_LABELS = 256
"""Labels that are compared one by one."""

_NUMBERS = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32, nw.Float64)
_WHOLE = _NUMBERS[:7]  # those that fit into 64 bits with a sign
_FLOATS = _NUMBERS[8:]
_EPOCH = datetime.date(1970, 1, 1)

Reading = Literal["truths", "labels", "days", "numbers"]
"""What the values of an engine are to a column."""


def reading(column: Column, dtype: nw.dtypes.DType) -> Reading | None:
    """What values of an engine's type are to a column, by its kind; None where only `Column.clean` can tell.

    Every expression is made by `_expression`, which asks here first: the number 20200229 is a place on the line of a
    column of numbers, a day to a column of dates, and a label to an ordinal.
    """
    if dtype == nw.Boolean:
        return "truths"
    if isinstance(column, Category) or (isinstance(column, Ordered) and column.kind == "ordinal"):
        if dtype == nw.String:  # any mixture of blanks and capitals reads as true
            return "labels" if column.distinguished_texts is not None else None
        return "labels" if dtype in _WHOLE or dtype in _FLOATS else None
    if isinstance(column, Ordered) and column.kind == "date":
        return "days" if dtype == nw.Date or dtype == nw.Datetime("us") else None
    if isinstance(column, Ordered) and column.kind in ("integer", "number"):
        return "numbers" if dtype in _NUMBERS else None
    return None


def cell_codes(
    name: str, dtype: nw.dtypes.DType, column: Column, cells: Cells, *, arithmetic: bool = False
) -> nw.Expr | None:
    """Codes of measured cells, for a column of the engine's type `dtype`; by `arithmetic`, if it is exact there."""

    def code(clean: np.ndarray) -> Ints:
        return column.to_cells(clean, cells)

    def compute(x: nw.Expr, line: Ordered) -> nw.Expr | None:
        many = len(cells.places) > FEW_STEPS and not isinstance(cells, Groups)
        return _place(x, line, cells, half=False) if many and _even(line, cells) else None

    return _expression(name, dtype, column, code, compute=compute if arithmetic else None)


def lattice_codes(
    name: str, dtype: nw.dtypes.DType, column: Column, lattice: Cells, *, arithmetic: bool = False
) -> nw.Expr | None:
    """Codes of lattice points."""

    def code(clean: np.ndarray) -> Ints:
        return column.to_lattice(clean, lattice)[0]

    def compute(x: nw.Expr, line: Ordered) -> nw.Expr | None:
        if len(lattice.places) <= FEW_STEPS:
            return None
        if line.whole and not line.covering_radius(lattice):
            return _offset(x, line)
        return _place(x, line, lattice, half=True) if _even(line, lattice) else None

    return _expression(name, dtype, column, code, compute=compute if arithmetic else None)


def moved_units(
    name: str, dtype: nw.dtypes.DType, column: Column, lattice: Cells, farthest: int, *, arithmetic: bool = False
) -> nw.Expr | int | None:
    """How far a value is from its lattice point, as `move_units` has it; 0 where no value is."""
    if not column.covering_radius(lattice):
        return 0
    assert isinstance(column, Ordered)

    def units(clean: np.ndarray) -> Ints:
        return move_units(column.to_lattice(clean, lattice)[1], farthest)

    def compute(x: nw.Expr, line: Ordered) -> nw.Expr | None:
        if not _even(line, lattice):
            return None
        away = (_position(x, line) - _place(x, line, lattice, half=True) / float(lattice.steps)).abs()
        up = nw.when(away > 0.0).then(away * float(MOVE_UNITS) + 2.0**-20).otherwise(nw.lit(0.0)).ceil()
        return _at_most(up, farthest)

    return _expression(name, dtype, column, units, compute=compute if arithmetic else None, rising=False)


def _expression(
    name: str,
    dtype: nw.dtypes.DType,
    column: Column,
    code: Callable[[np.ndarray], Ints],
    *,
    compute: Callable[[nw.Expr, Ordered], nw.Expr | None] | None = None,
    rising: bool = True,
) -> nw.Expr | None:
    """An expression for `code` of cleaned values; None where there is none that is exact.

    Along a line `code` never falls, unless `rising` is false. `compute` writes it as arithmetic on numbers that are not
    missing, where the engine rounds as Python does.
    """
    x, way = nw.col(name), reading(column, dtype)

    def of(*values: Any) -> list[int]:
        return [int(c) for c in code(column.clean(np.array(values, dtype=object)))]

    (absent,) = of(None)
    if way == "truths":
        yes, no = of(True, False)
        return _unless(x.is_null(), absent, nw.when(x).then(nw.lit(yes)).otherwise(nw.lit(no)))
    if way == "labels":
        return _labelled(x, dtype, column, of, absent)
    if way == "days":
        assert isinstance(column, Ordered)
        found = _of_days(x, dtype, column, code)
        return None if found is None else _unless(x.is_null(), absent, found)
    if way == "numbers":
        assert isinstance(column, Ordered)
        computed = compute(x, column) if compute is not None else None
        found = computed if computed is not None else _of_numbers(x, column, code, rising)
        return None if found is None else _unless(x.is_null() | x.cast(nw.Float64).is_nan(), absent, found)
    return None


def _of_numbers(x: nw.Expr, column: Ordered, code: Callable[[np.ndarray], Ints], rising: bool) -> nw.Expr | None:
    """Codes by comparisons with the floats where they change; of a `code` that may fall, by the offset."""
    if not rising and not (column.whole and column.reach <= MOST_STEPS):
        return None

    def step(values: Floats) -> np.ndarray:
        return code(column.clean(values)) if rising else column.clean(values)

    first, last = (int(c) for c in step(np.array([-np.inf, np.inf])))
    if last - first > MOST_STEPS:
        return None
    values = np.arange(first, last + 1) if rising else code(np.arange(first, last + 1.0))
    starts = [float(start) for start in least_floats(step, np.arange(first + 1, last + 1))]
    return _stepped(x.cast(nw.Float64), starts, values.tolist())


def _of_days(x: nw.Expr, dtype: nw.dtypes.DType, column: Ordered, code: Callable[[np.ndarray], Ints]) -> nw.Expr | None:
    """Codes by the day: all days of the column are tried."""
    codes = code(np.arange(column.reach + 1.0))
    changes = np.flatnonzero(np.diff(codes)) + 1
    if len(changes) > MOST_STEPS:
        return None
    days = [_EPOCH + datetime.timedelta(int(column.low) + int(day)) for day in changes]
    starts: list[Any] = days
    if dtype != nw.Date:
        starts = [datetime.datetime.combine(day, datetime.time()) for day in days]
    return _stepped(x, starts, codes[np.append(0, changes)].tolist())


def _labelled(
    x: nw.Expr, dtype: nw.dtypes.DType, column: Column, of: Callable[..., list[int]], absent: int
) -> nw.Expr | None:
    """Codes of labels that are listed, and of all others. A label is tried as the value that would read like it."""
    texts = {"", *(("0", "1") if column.distinguished_texts is None else column.distinguished_texts)}
    none, number = x.is_null(), x
    values: list[Any]
    other: Any
    if dtype == nw.String:
        values, other = sorted(texts), max(texts, key=len) + "\0"
    elif dtype in _WHOLE:
        values = [value for value in map(_whole, texts) if value is not None]
        other, number = next(i for i in range(2, len(values) + 3) if i not in values), x.cast(nw.Int64)
    else:
        values = [value for value in map(_number, texts) if value is not None]
        other, number = next(i + 0.5 for i in range(len(values) + 1) if i + 0.5 not in values), x.cast(nw.Float64)
        none = none | number.is_nan()
    if len(values) > MOST_LABELS:
        return None
    return _unless(none, absent, _looked_up(number, values, of(*values), of(other)[0]))


def _looked_up(x: nw.Expr, values: Sequence[Any], codes: Sequence[int], unlisted: int) -> nw.Expr:
    """Codes of listed values; all others are `unlisted`."""
    listed = [(value, code) for value, code in zip(values, codes, strict=True) if code != unlisted]
    found = [nw.when(x == nw.lit(value)).then(nw.lit(code)) for value, code in listed]
    return nw.coalesce(*found, nw.lit(unlisted)) if found else nw.lit(unlisted)


def _whole(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -(2**63) <= value < 2**63 else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if value != value else value


# What follows are the steps of `Ordered`, one by one.


def _offset(x: nw.Expr, column: Ordered) -> nw.Expr:
    offset = (x.cast(nw.Float64) - float(column.low)) / float(1 if column.whole else column.high - column.low)
    offset = (offset + 0.5).floor() if column.whole else offset
    return _at_most(nw.when(offset < 0.0).then(nw.lit(0.0)).otherwise(offset), column.reach)


def _position(x: nw.Expr, column: Ordered) -> nw.Expr:
    weight = column.weight
    return _offset(x, column) * float(weight.numerator) / float(weight.denominator * max(column.reach, 1))


def _even(column: Ordered, cells: Cells) -> bool:
    """Whether codes are places on the line, in numbers that floats have."""
    if not len(cells.places) or cells.places[0] != 0 or cells.span + 1 != len(cells.places):
        return False
    per = max(column.reach, 1) * column.weight.denominator
    return not column.whole or 2 * column.reach * cells.steps * column.weight.numerator + 3 * per < 2**52


def _place(x: nw.Expr, column: Ordered, cells: Cells, *, half: bool) -> nw.Expr:
    """The place on the line: of a cell, or by `half` a step more, of the nearest point.

    Of whole numbers a quotient of integers, rounded down. Below 2^52 the float next to a quotient is not above an
    integer that the quotient is below.
    """
    if column.whole:
        per = max(column.reach, 1) * column.weight.denominator
        over = _offset(x, column) * float((1 + half) * cells.steps * column.weight.numerator)
        place = ((over + float(half * per)) / float((1 + half) * per)).floor()
    else:
        place = _position(x, column) * float(cells.steps)
        place = (place + 0.5).floor() if half else place.floor()
    return _at_most(place, int(cells.places[-1]))


def _at_most(x: nw.Expr, most: int) -> nw.Expr:
    return nw.when(x > float(most)).then(nw.lit(float(most))).otherwise(x)


def _stepped(x: nw.Expr, starts: Sequence[Any], values: Sequence[float]) -> nw.Expr:
    """`values[i]` from `starts[i − 1]` up to `starts[i]`, in as few comparisons as a search needs."""
    if not starts:
        return nw.lit(values[0])
    middle = len(starts) // 2
    return (
        nw.when(x < nw.lit(starts[middle]))
        .then(_stepped(x, starts[:middle], values[: middle + 1]))
        .otherwise(_stepped(x, starts[middle + 1 :], values[middle + 1 :]))
    )


def _unless(absent: nw.Expr, code: int, otherwise: nw.Expr) -> nw.Expr:
    return nw.when(absent).then(nw.lit(code)).otherwise(otherwise).cast(nw.Int64)


def largest(units: Sequence[nw.Expr]) -> nw.Expr:
    """The largest of some expressions that are never absent."""
    return reduce(lambda a, b: nw.when(a < b).then(b).otherwise(a), units)
