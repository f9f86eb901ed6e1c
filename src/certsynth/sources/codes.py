"""Codes of cells as an engine can say them: comparisons with values that are computed here, from the column itself.

Along a line codes never fall as values rise, so that it is enough to know where each begins: the least float, found by
bisection among all floats. Labels are looked up. What cannot be said exactly is None, and then rows have to be read.

Comparisons are alike everywhere, and arithmetic is not: polars divides by multiplying with the inverse. Where an engine
is known to round as Python does, the steps of `Ordered` are written as they are there, which is quicker.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells, Column, Ordered
from certsynth.domain.cells import Groups
from certsynth.domain.column import PATH_SEPARATOR, Category
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
_EPOCH = datetime.date(1970, 1, 1)


def cell_codes(
    name: str, kind: nw.dtypes.DType, column: Column, cells: Cells, *, arithmetic: bool = False
) -> nw.Expr | None:
    """Codes of measured cells, for a column of the engine's type `kind`; by `arithmetic`, if it is exact there."""

    def code(clean: np.ndarray) -> Ints:
        return column.to_cells(clean, cells)

    many = len(cells.places) > FEW_STEPS and not isinstance(cells, Groups)
    if arithmetic and many and kind in _NUMBERS and isinstance(column, Ordered) and _even(column, cells):
        return _unless_none(name, column, code, _place(nw.col(name), column, cells, half=False))
    return _said(name, kind, column, code)


def lattice_codes(
    name: str, kind: nw.dtypes.DType, column: Column, lattice: Cells, *, arithmetic: bool = False
) -> nw.Expr | None:
    """Codes of lattice points."""

    def code(clean: np.ndarray) -> Ints:
        return column.to_lattice(clean, lattice)[0]

    if arithmetic and len(lattice.places) > FEW_STEPS and kind in _NUMBERS and isinstance(column, Ordered):
        if column.whole and not column.covering_radius(lattice):
            return _unless_none(name, column, code, _offset(nw.col(name), column))
        if _even(column, lattice):
            return _unless_none(name, column, code, _place(nw.col(name), column, lattice, half=True))
    return _said(name, kind, column, code)


def moved_units(
    name: str, kind: nw.dtypes.DType, column: Column, lattice: Cells, farthest: int, *, arithmetic: bool = False
) -> nw.Expr | int | None:
    """How far a value is from its lattice point, as `move_units` has it; 0 where no value is."""
    if not column.covering_radius(lattice):
        return 0
    assert isinstance(column, Ordered)

    def units(clean: np.ndarray) -> Ints:
        return move_units(column.to_lattice(clean, lattice)[1], farthest)

    if arithmetic and kind in _NUMBERS and _even(column, lattice):
        there, place = _position(nw.col(name), column), _place(nw.col(name), column, lattice, half=True)
        away = (there - place / float(lattice.steps)).abs()
        up = nw.when(away > 0.0).then(away * float(MOVE_UNITS) + 2.0**-20).otherwise(nw.lit(0.0)).ceil()
        return _unless_none(name, column, units, _at_most(up, farthest))
    if column.whole and column.reach <= MOST_STEPS:
        return _said(name, kind, column, units, of_offset=units(np.arange(column.reach + 1.0)))
    return None


def _said(
    name: str,
    kind: nw.dtypes.DType,
    column: Column,
    code: Callable[[np.ndarray], Ints],
    *,
    of_offset: Ints | None = None,
) -> nw.Expr | None:
    """An expression for `code` of cleaned values. `of_offset` has it for each value of a line where it may rise and
    fall; else it must not fall."""
    x = nw.col(name)

    def of(*values: Any, dtype: Any = object) -> list[int]:
        return [int(c) for c in code(column.clean(np.array(values, dtype=dtype)))]

    (absent,) = of(None)
    if kind == nw.Boolean:
        yes, no = of(True, False)
        return _unless(x.is_null(), absent, nw.when(x).then(nw.lit(yes)).otherwise(nw.lit(no)))
    if not isinstance(column, Ordered) or column.kind == "ordinal":
        return _labelled(x, kind, column, of, absent)
    if column.kind == "date":
        if kind == nw.Date or kind == nw.Datetime("us"):
            return _unless(x.is_null(), absent, _of_days(x, kind, column, code, of_offset))
        return None
    if kind not in _NUMBERS:
        return None

    def clean(values: Floats) -> np.ndarray:
        return column.clean(values)

    rising = clean if of_offset is not None else lambda values: code(clean(values))
    first, last = (int(c) for c in rising(np.array([-np.inf, np.inf])))
    if last - first >= MOST_STEPS:
        return None
    levels = np.arange(first + 1, last + 1)
    starts = [float(start) for start in least_floats(rising, levels)]
    values = np.arange(first, last + 1) if of_offset is None else of_offset[first : last + 1]
    number = x.cast(nw.Float64)
    return _unless(x.is_null() | number.is_nan(), absent, _stepped(number, starts, values.tolist()))


def _of_days(
    x: nw.Expr,
    kind: nw.dtypes.DType,
    column: Ordered,
    code: Callable[[np.ndarray], Ints],
    of_offset: Ints | None,
) -> nw.Expr:
    """Codes by the day: all days of the column are tried."""
    codes = code(np.arange(column.reach + 1.0)) if of_offset is None else of_offset
    changes = np.flatnonzero(np.diff(codes)) + 1
    days = [_EPOCH + datetime.timedelta(int(column.low) + int(day)) for day in changes]
    starts: list[Any] = days
    if kind != nw.Date:
        starts = [datetime.datetime.combine(day, datetime.time()) for day in days]
    return _stepped(x, starts, codes[np.append(0, changes)].tolist())


def _labelled(
    x: nw.Expr, kind: nw.dtypes.DType, column: Column, of: Callable[..., list[int]], absent: int
) -> nw.Expr | None:
    """Codes of labels that are listed, and of all others. A label is tried as the value that would read like it."""
    texts: set[str] = {""}
    if isinstance(column, Category):
        if column.kind == "boolean" and kind == nw.String:
            return None  # any mixture of blanks and capitals reads as true
        texts |= {*column.labels, *(PATH_SEPARATOR.join(path) for path in column.paths)}
        texts |= {"0", "1"} if column.kind == "boolean" else set()
    elif isinstance(column, Ordered):
        texts |= set(column.values)
    none, number = x.is_null(), x
    values: list[Any]
    other: Any
    if kind == nw.String:
        values, other = sorted(texts), max(texts, key=len) + "\0"
    elif kind in _WHOLE:
        values = [value for value in map(_whole, texts) if value is not None]
        other, number = next(i for i in range(2, len(values) + 3) if i not in values), x.cast(nw.Int64)
    elif kind in (nw.Float32, nw.Float64):
        values = [value for value in map(_number, texts) if value is not None]
        other, number = next(i + 0.5 for i in range(len(values) + 1) if i + 0.5 not in values), x.cast(nw.Float64)
        none = none | number.is_nan()
    else:
        return None
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


def _unless_none(name: str, column: Column, code: Callable[[np.ndarray], Ints], otherwise: nw.Expr) -> nw.Expr:
    """For a column of numbers: `otherwise`, unless there is none."""
    x = nw.col(name)
    (absent,) = code(column.clean(np.array([None], dtype=object)))
    return _unless(x.is_null() | x.cast(nw.Float64).is_nan(), int(absent), otherwise)


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
