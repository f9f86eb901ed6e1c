"""Cell codes as engine expressions: comparisons with thresholds that are computed here from the column alone.

On a line, codes never decrease as values increase, so each code is given by the least float that has it, found by
bisection over all floats. Labels are looked up. A code without an exact expression is None, and then rows are read.

Comparisons agree between engines; arithmetic does not (polars divides by multiplying with the reciprocal). Where an
engine is known to round as Python does, the arithmetic of `Ordered` is written out instead, which is faster.

docs/explanation/counting.md proves that an expression yields the integer that `Column.clean` and the coding would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Literal

import narwhals as nw
import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.base.clock import DAYS, SECONDS, Clock
from certsynth.domain import Cells, Column, Ordered
from certsynth.domain.category import Category
from certsynth.domain.cells import Groups
from certsynth.domain.cleaning import figures_of_codes
from certsynth.queries.coding import MOVE_UNITS, move_units
from certsynth.queries.thresholds import least_floats

MAX_STEPS = 1024
"""Most steps of an expression, in thresholds: longer expressions are slow to compile or are rejected by engines."""

MAX_SEARCHED_STEPS = 32
"""Up to this many cells, a binary search by comparisons is faster than arithmetic."""

MAX_COMPARED_LABELS = 256
"""Most labels that one expression compares one by one."""

_NUMBERS = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32, nw.Float64)
_WHOLE = _NUMBERS[:7]  # those that fit into signed 64-bit integers
_FLOATS = _NUMBERS[8:]

Reading = Literal["truths", "labels", "moments", "numbers"]
"""How a column interprets the values of an engine."""


def reading(column: Column, dtype: nw.dtypes.DType) -> Reading | None:
    """How a column interprets values of an engine's type; None where only `Column.clean` can decide.

    `_expression` starts here for every expression: the number 20200229 is a position on the line for a numeric column,
    a day for a column of dates or times, and a label for an ordinal column.
    """
    if dtype == nw.Boolean:
        return "truths"
    if isinstance(column, Category) or (isinstance(column, Ordered) and column.kind == "ordinal"):
        if dtype == nw.String:  # booleans accept any blanks and capitals, and so may readings
            return "labels" if column.distinguished_texts is not None else None
        return "labels" if dtype in _WHOLE or dtype in _FLOATS else None
    if isinstance(column, Ordered) and column.clock is not None:
        return "moments" if dtype == nw.Date or dtype == nw.Datetime("us") else None
    return "numbers" if dtype in _NUMBERS else None


def cell_codes(
    name: str, dtype: nw.dtypes.DType, column: Column, cells: Cells, *, arithmetic: bool = False
) -> nw.Expr | None:
    """Codes of measured cells for a column of the engine's type `dtype`; `arithmetic` says that it is exact there."""

    def code(clean: np.ndarray) -> Ints:
        return column.to_cells(clean, cells)

    def compute(x: nw.Expr, line: Ordered) -> nw.Expr | None:
        if isinstance(cells, Groups) and len(cells.places) > MAX_STEPS:
            alone = cells.size == cells.lattice.size and not line.covering_radius(cells.lattice)
            return _index(x, line) if alone else None
        many = len(cells.places) > MAX_SEARCHED_STEPS and not isinstance(cells, Groups)
        return _line_place(x, line, cells, half=False) if many and _has_even_places(line, cells) else None

    return _expression(name, dtype, column, code, compute=compute if arithmetic else None)


def lattice_codes(
    name: str, dtype: nw.dtypes.DType, column: Column, lattice: Cells, *, arithmetic: bool = False
) -> nw.Expr | None:
    """Codes of lattice points."""

    def code(clean: np.ndarray) -> Ints:
        return column.to_lattice(clean, lattice)[0]

    def compute(x: nw.Expr, line: Ordered) -> nw.Expr | None:
        if len(lattice.places) <= MAX_SEARCHED_STEPS:
            return None
        if line.last_index is not None and not line.covering_radius(lattice):
            return _index(x, line)
        return _line_place(x, line, lattice, half=True) if _has_even_places(line, lattice) else None

    return _expression(name, dtype, column, code, compute=compute if arithmetic else None)


def moved_units(
    name: str, dtype: nw.dtypes.DType, column: Column, lattice: Cells, farthest: int, *, arithmetic: bool = False
) -> nw.Expr | int | None:
    """Distance of a value from its lattice point in units of `move_units`; 0 if all values are lattice points."""
    if not column.covering_radius(lattice):
        return 0
    assert isinstance(column, Ordered)

    def units(clean: np.ndarray) -> Ints:
        return move_units(column.to_lattice(clean, lattice)[1], farthest)

    def compute(x: nw.Expr, line: Ordered) -> nw.Expr | None:
        if not _has_even_places(line, lattice):
            return None
        away = (_position(x, line) - _line_place(x, line, lattice, half=True) / float(lattice.steps)).abs()
        up = nw.when(away > 0.0).then(away * float(MOVE_UNITS) + 2.0**-20).otherwise(nw.lit(0.0)).ceil()
        return _clamp_above(up, farthest)

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
    """An expression for `code` of cleaned values; None if no exact one exists.

    On a line, `code` is monotone unless `rising` is false. `compute` writes it as arithmetic on numbers that are not
    missing, for engines that round as Python does.
    """
    x, way = nw.col(name), reading(column, dtype)

    def of(*values: Any) -> list[int]:
        return [int(c) for c in code(column.clean(np.array(values, dtype=object)))]

    (absent,) = of(None)
    if way == "truths":
        yes, no = of(True, False)
        return _unless(x.is_null(), absent, nw.when(x).then(nw.lit(yes)).otherwise(nw.lit(no)))
    if way == "labels":
        return _label_codes(x, dtype, column, of, absent)
    if way == "moments":
        assert isinstance(column, Ordered)
        clock = DAYS if dtype == nw.Date else SECONDS
        found = _moment_codes(x, clock, column, code, rising)
        return None if found is None else _unless(_is_missing_code(x, clock, column), absent, found)
    if way == "numbers":
        assert isinstance(column, Ordered)
        computed = compute(x, column) if compute is not None and not column.grid else None
        found = computed if computed is not None else _number_codes(x, column, code, rising)
        number = x.cast(nw.Float64)
        none = x.is_null() | number.is_nan()
        for figure in figures_of_codes(column.kind, column.reading):
            none = none | (number == nw.lit(figure))
        return None if found is None else _unless(none, absent, found)
    return None


def _is_missing_code(x: nw.Expr, clock: Clock, column: Ordered) -> nw.Expr:
    """Whether a moment is null or a code of missing values, in the ticks of the engine's `clock`.

    Moments beyond Python's count as its ends.
    """
    assert column.clock is not None
    (first, last), (_, last_tick) = column.clock.ends, clock.ends

    def since(figure: float) -> nw.Expr:
        tick = _first_tick(figure, column, clock)
        return x >= nw.lit(clock.moment(tick)) if tick <= last_tick else x > nw.lit(clock.moment(last_tick))

    found = x.is_null()
    for figure in figures_of_codes(column.kind, column.reading):
        until = ~since(figure + 1) if figure < last else nw.lit(True)
        found = found | (until if figure == first else since(figure) & until)
    return found


def _first_tick(figure: float, column: Ordered, clock: Clock) -> int:
    """The first tick of a clock at or after a figure of a column of dates or times."""
    assert column.clock is not None
    return -(-math.ceil(figure) * column.clock.seconds // clock.seconds)


def _number_codes(x: nw.Expr, column: Ordered, code: Callable[[np.ndarray], Ints], rising: bool) -> nw.Expr | None:
    """Codes by comparison with the floats where they change."""
    steps = _steps(column, code, rising)
    return None if steps is None else _step_function(x.cast(nw.Float64), *steps)


def _moment_codes(
    x: nw.Expr, clock: Clock, column: Ordered, code: Callable[[np.ndarray], Ints], rising: bool
) -> nw.Expr | None:
    """Codes by comparison with the first moments that have them, in the ticks of the engine's `clock`."""
    steps = _steps(column, code, rising)
    if steps is None:
        return None
    ticks = [_first_tick(start, column, clock) for start in steps[0]]
    if ticks and ticks[-1] > clock.ends[1]:  # later than any date that can be stated
        return None
    return _step_function(x, list(map(clock.moment, ticks)), steps[1])


def _steps(column: Ordered, code: Callable[[np.ndarray], Ints], rising: bool) -> tuple[list[float], list[int]] | None:
    """The figures where codes change, and all codes; None if there are too many of them.

    If `code` is not monotone, there is one step for each value.
    """
    if not rising and (column.last_index is None or column.last_index > MAX_STEPS):
        return None

    def step(figures: Floats) -> np.ndarray:
        clean = column.clean_figures(figures)
        return code(clean) if rising else column.index(clean)

    first, last = (int(c) for c in step(np.array([-np.inf, np.inf])))
    if last - first > MAX_STEPS:
        return None
    steps = np.arange(first, last + 1)
    values = steps if rising else code(column.at_index(steps))
    starts = least_floats(step, np.arange(first + 1, last + 1))
    return [float(start) for start in starts], values.tolist()


def _label_codes(
    x: nw.Expr, dtype: nw.dtypes.DType, column: Column, of: Callable[..., list[int]], absent: int
) -> nw.Expr | None:
    """Codes of listed labels, and one for all others. A label is compared as the engine value that reads like it."""
    texts = {"", *column.listed_texts}
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
    if len(values) > MAX_COMPARED_LABELS:
        return None
    return _unless(none, absent, _look_up(number, values, of(*values), of(other)[0]))


def _look_up(x: nw.Expr, values: Sequence[Any], codes: Sequence[int], unlisted: int) -> nw.Expr:
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


# The arithmetic of `Ordered`, step by step.


def _index(x: nw.Expr, column: Ordered) -> nw.Expr:
    """The index of the nearest value; in an interval of numbers, the offset."""
    index, last = (x.cast(nw.Float64) - float(column.low)) / column.unit, column.last_index
    index = index if last is None else (index + 0.5).floor()
    return _clamp_above(nw.when(index < 0.0).then(nw.lit(0.0)).otherwise(index), 1 if last is None else last)


def _position(x: nw.Expr, column: Ordered) -> nw.Expr:
    weight, (times, per) = column.weight, column.index_scale
    offset = _index(x, column) if column.step is None else _index(x, column) * times / per
    return offset * float(weight.numerator) / float(weight.denominator * max(column.reach, 1))


def _has_even_places(column: Ordered, cells: Cells) -> bool:
    """Whether codes are evenly spaced positions on the line that floats represent exactly."""
    if not len(cells.places) or cells.places[0] != 0 or cells.span + 1 != len(cells.places):
        return False
    if (last := column.last_index) is None:
        return True
    per = max(last, 1) * column.weight.denominator
    return 2 * last * cells.steps * column.weight.numerator + 3 * per < 2**52


def _line_place(x: nw.Expr, column: Ordered, cells: Cells, *, half: bool) -> nw.Expr:
    """The position on the line: of the cell, or with `half` (half a step added), of the nearest lattice point.

    For numbered values it is a quotient of integers, rounded down. Below 2^52, rounding a quotient to the nearest float
    never carries it past the next integer.
    """
    if (last := column.last_index) is not None:
        per = max(last, 1) * column.weight.denominator
        over = _index(x, column) * float((1 + half) * cells.steps * column.weight.numerator)
        place = ((over + float(half * per)) / float((1 + half) * per)).floor()
    else:
        place = _position(x, column) * float(cells.steps)
        place = (place + 0.5).floor() if half else place.floor()
    return _clamp_above(place, int(cells.places[-1]))


def _clamp_above(x: nw.Expr, most: int) -> nw.Expr:
    return nw.when(x > float(most)).then(nw.lit(float(most))).otherwise(x)


def _step_function(x: nw.Expr, starts: Sequence[Any], values: Sequence[float]) -> nw.Expr:
    """`values[i]` from `starts[i − 1]` up to `starts[i]`, as nested comparisons of a binary search."""
    if not starts:
        return nw.lit(values[0])
    middle = len(starts) // 2
    return (
        nw.when(x < nw.lit(starts[middle]))
        .then(_step_function(x, starts[:middle], values[: middle + 1]))
        .otherwise(_step_function(x, starts[middle + 1 :], values[middle + 1 :]))
    )


def _unless(absent: nw.Expr, code: int, otherwise: nw.Expr) -> nw.Expr:
    return nw.when(absent).then(nw.lit(code)).otherwise(otherwise).cast(nw.Int64)


def largest(units: Sequence[nw.Expr]) -> nw.Expr:
    """The largest of several expressions, none of which is ever null."""
    return reduce(lambda a, b: nw.when(a < b).then(b).otherwise(a), units)
