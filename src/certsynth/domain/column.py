"""Columns as metric spaces, and those on a line: their values, distances, cells and lattices; cleaning and decoding.

All of it is public knowledge from the schema; no bound, category or cell is ever taken from rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.base.clock import CLOCKS, Clock
from certsynth.domain import cleaning, ratios
from certsynth.domain.cells import UNIT_WEIGHT, Cells, Groups
from certsynth.domain.naming import UNNAMED, Naming
from certsynth.domain.reading import PLAIN, Reading

OrderedKind = Literal["integer", "number", "date", "datetime", "ordinal"]

MAX_NATIVE_STEPS = 1024
DETAIL_STEPS = 256
"""Steps from low to high at full detail: a column with at most MAX_NATIVE_STEPS keeps every value, any other gets a
grid of DETAIL_STEPS."""

MAX_LISTED_STEPS = 65_536
"""Steps from low to high up to which the values of a column on a grid are also counted one by one, and written."""

MIN_COMPILED_ROWS = 8_192
"""Rows from which a compiled loop is faster than array operations."""

MAX_LATTICE_STEPS = 4096
"""Most steps per unit length of the finest lattice."""

ROUNDING_PARTS = 25
"""A number at a lattice point is rounded to the largest power of ten that is at most a step divided by this."""

EXACT_DIGITS = 15
"""Significant decimal digits that a float keeps."""


@dataclass(frozen=True, slots=True)
class Column(ABC):
    """One column of the schema. With `missing`, a missing value is a point at distance `weight` from all others.

    `weight` multiplies all distances: the smaller it is, the less a certificate promises about the column.
    `reading` says how the texts of a table are written, and `naming` how column and labels are called on pages. Both
    change no value of the column and no distance.
    """

    name: str
    missing: bool = False
    weight: Fraction = UNIT_WEIGHT
    reading: Reading = PLAIN
    naming: Naming = UNNAMED

    @property
    def title(self) -> str:
        """The name for readers: the title of the schema, or else the name itself."""
        return self.naming.title or self.name

    @abstractmethod
    def clean(self, raw: cleaning.Raw) -> np.ndarray:
        """Values of a table as this column's own numbers (see the subclasses). Total: every value is accepted."""

    def encode(self, values: cleaning.Raw) -> np.ndarray:
        """Values as `decode` returns them, and as rules, queries and maps state them, in this column's own numbers.

        The reading is about texts of tables, so it does not apply here.
        """
        return self.plain.clean(values)

    @property
    def plain(self) -> Self:
        """The column without its reading."""
        return self if self.reading.is_plain else replace(self, reading=PLAIN)

    @property
    @abstractmethod
    def distinguished_texts(self) -> tuple[str, ...] | None:
        """Texts outside of which all texts are cleaned alike; None if there is no such list, as with a reading."""

    @property
    @abstractmethod
    def listed_texts(self) -> tuple[str, ...]:
        """The labels, words and codes that the column knows, as keys of its reading."""

    @abstractmethod
    def cells(self, resolution: int) -> Cells:
        """The measured cells: `resolution` per unit length, without those that no value falls into."""

    @abstractmethod
    def lattice(self, steps: int, *, native: bool = True) -> Cells:
        """A fine lattice: the column's own values if these span at most `steps` steps, else an even grid.

        With `native=False` the step is always 1/`steps`, so that several columns share it.
        """

    def detail(self) -> Cells:
        """The finest lattice that a release measures and writes."""
        native = self.lattice(MAX_NATIVE_STEPS)
        return (
            native
            if not self.covering_radius(native)
            else self.lattice(min(math.ceil(DETAIL_STEPS / self.weight), MAX_LATTICE_STEPS))
        )

    def points(self) -> Groups:
        """The finest cells that a release measures: the points of `detail`, each by itself."""
        return Groups.of(self.detail(), None)

    def values_below_points(self) -> Groups | None:
        """Every value by itself, if `points` are runs of values that are counted one by one as well; else None."""
        return None

    def to_cells(self, clean: np.ndarray, cells: Cells) -> Ints:
        """The code of the measured cell of each cleaned value."""
        if isinstance(cells, Groups):
            return cells.code(self.to_lattice(clean, cells.lattice)[0])
        return self._to_cells(clean, cells)

    def distance_to_centre(self, clean: np.ndarray, cells: Cells) -> Floats:
        """The distance of each cleaned value from the centre of its measured cell."""
        if isinstance(cells, Groups):
            return self._distance_to_middle(clean, cells)
        return self._distance_to_centre(clean, cells)

    def centres(self, cells: Cells) -> np.ndarray:
        """For each measured cell a cleaned value in it, at or next to its centre."""
        if isinstance(cells, Groups):
            return self.on_lattice(cells.lattice)[cells.middles()]
        return self._centres(cells)

    @abstractmethod
    def _to_cells(self, clean: np.ndarray, cells: Cells) -> Ints: ...

    @abstractmethod
    def _distance_to_centre(self, clean: np.ndarray, cells: Cells) -> Floats: ...

    @abstractmethod
    def _distance_to_middle(self, clean: np.ndarray, groups: Groups) -> Floats: ...

    @abstractmethod
    def _centres(self, cells: Cells) -> np.ndarray: ...

    @abstractmethod
    def to_lattice(self, clean: np.ndarray, lattice: Cells) -> tuple[Ints, Floats]:
        """The code of the nearest lattice point of each cleaned value, and its distance."""

    @abstractmethod
    def to_units(self, clean: np.ndarray, per: int) -> tuple[Ints, np.ndarray]:
        """Cleaned values as integers: on a line the nearest multiple of 1/`per`, −1 if missing; else the label's code.

        Also returns a mask of the values that were rounded, by less than 1/`per`.
        """

    @abstractmethod
    def on_lattice(self, lattice: Cells) -> np.ndarray:
        """For each lattice point the nearest cleaned value."""

    @abstractmethod
    def covering_radius(self, lattice: Cells) -> Fraction:
        """The largest distance of a value of the column from its nearest lattice point."""

    @abstractmethod
    def decode(self, clean: np.ndarray) -> np.ma.MaskedArray[Any, Any]:
        """Cleaned values as they are written to a table, missing ones masked."""


@dataclass(frozen=True, slots=True)
class Ordered(Column):
    """A column on a line: integers, dates, datetimes and ordinals by their offset from `low` (in days, in seconds),
    numbers by their place in [0, 1].

    A cleaned value is that offset as a float (exact: offsets stay below 2^53), or NaN if missing. The distance of two
    values is the difference of their offsets, divided by `reach` and multiplied by `weight`.

    With a `step`, in integers, numbers and datetimes, only low, low + step, … exist. Any other value is cleaned to the
    nearest of these; offsets and distances are the same as without a step.

    A column that is compared by ratios has a `grid`: the values that exist, in increasing order. Any other value is
    cleaned to the nearest of these by ratio, and the offset is its rank in the list; for numbers, its place in [0, 1].

    `special` values are measured and written by themselves, and groups of values do not extend across the first value
    of a band. Both are cleaned values in ascending order; they change no distance.
    """

    kind: OrderedKind = "integer"
    low: int | float = 0
    high: int | float = 1
    values: tuple[str, ...] = ()
    step: Fraction | None = None
    special: tuple[float, ...] = ()
    bands: tuple[float, ...] = ()
    grid: tuple[float, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether offsets are whole numbers rather than places in [0, 1]."""
        return self.kind != "number"

    @property
    def has_gaps(self) -> bool:
        """Whether only some of the integers or numbers from low to high exist."""
        return self.step is not None or bool(self.grid)

    @property
    def clock(self) -> Clock | None:
        """What numbers the values of dates and datetimes; None for other kinds."""
        return CLOCKS.get(self.kind)

    @property
    def last_index(self) -> int | None:
        """The index of the largest value, where values can be numbered from 0; None for an interval of numbers."""
        if self.grid:
            return len(self.grid) - 1
        if self.step is None:
            return self.reach if self.whole else None
        return int((exact_decimal(self.high) - exact_decimal(self.low)) / self.step)

    @property
    def reach(self) -> int:
        """The largest offset."""
        if not self.whole:
            return 1
        return len(self.grid) - 1 if self.grid else int(self.high) - int(self.low)

    def clean(self, raw: cleaning.Raw) -> Floats:
        if self.kind == "ordinal":
            found = cleaning.each_once(raw, self._ranks)
            return self.clean_figures(self._ranks(raw) if found is None else found)
        figures = self.figures(raw)
        if raw.dtype.kind in "biufM" and len(raw) >= MIN_COMPILED_ROWS and not self.grid:
            return self._clean_many(figures)
        return self.clean_figures(figures)

    def figures(self, raw: cleaning.Raw) -> Floats:
        """Raw values as numbers, days or seconds since 1970-01-01; NaN if absent. Not for ordinals."""
        if self.clock is not None:
            return cleaning.as_moments(raw, self.clock, self.reading)
        with np.errstate(over="ignore"):
            return cleaning.as_numbers(raw, self.reading)

    def clean_figures(self, figures: Floats) -> Floats:
        """The cleaned values of numbers, days, seconds or ranks; NaN is absent."""
        if self.grid:
            return self._clean_by_ratio(figures)
        with np.errstate(over="ignore"):
            offset = (figures - self.low) / self.unit
        absent = np.isnan(offset)
        last = self.last_index
        if last is not None:
            offset = np.floor(offset + 0.5)  # ±inf stays, and is clipped below
        offset = np.clip(offset, 0.0, 1.0 if last is None else float(last))
        times, per = self.index_scale
        offset = offset * times / per
        offset[absent] = np.nan if self.missing else 0.0
        return offset

    def _clean_many(self, numbers: Floats) -> Floats:
        """`clean_figures` in one compiled pass: eight passes over the arrays would take longer than DuckDB's scan."""
        absent = np.nan if self.missing else 0.0
        last = self.last_index
        end = 1.0 if last is None else float(last)
        times, per = self.index_scale
        cleaning.put_on_line(numbers, float(self.low), self.unit, last is not None, end, times, per, absent)
        return numbers

    def _clean_by_ratio(self, numbers: Floats) -> Floats:
        """Comparisons alone decide, so that every engine finds the same value."""
        found = self.at_index(np.searchsorted(ratios.borders(self.grid), numbers, side="right"))
        found[np.isnan(numbers)] = np.nan if self.missing else 0.0
        return found

    @property
    def unit(self) -> float:
        """What a value's distance from `low` is divided by: the gap between values, or the length of an interval."""
        if self.step is not None:
            return float(self.step)
        return 1.0 if self.whole else float(self.high - self.low)

    @property
    def index_scale(self) -> tuple[float, float]:
        """Factor and divisor from indices to offsets: index × factor / divisor, which floats compute exactly alike."""
        if not self.has_gaps:
            return 1.0, 1.0
        if not self.whole:
            return 1.0, float(self.last_index or 1)
        return (1.0 if self.grid else float(self.step or 1)), 1.0

    def at_index(self, index: Ints) -> Floats:
        """The cleaned values with these indices."""
        times, per = self.index_scale
        return np.asarray(index.astype(float) * times / per)

    def index(self, clean: Floats) -> Ints:
        """The indices of cleaned values that are not missing. An offset that no value has gets the nearest index."""
        times, per = self.index_scale
        return np.floor(clean * per / times + 0.5).astype(np.int64)

    def figures_at(self, index: Ints) -> Floats:
        """The numbers, days or seconds with these indices: the nearest float of each exact decimal."""
        if self.grid:
            return np.asarray(ratios.figures(self.grid)[index])
        if self.step is None:
            return np.asarray(index + float(self.low))
        low = exact_decimal(self.low)
        scale = math.lcm(low.denominator, self.step.denominator)  # both sides of the division are exact floats
        return np.asarray((int(low * scale) + index * int(self.step * scale)) / float(scale))

    @property
    def cuts(self) -> Ints:
        """The indices at which a group of values must begin: bands, special values, and those after special values."""
        if not self.special and not self.bands:
            return np.empty(0, np.int64)
        special, bands = (self.index(np.array(values, dtype=float)) for values in (self.special, self.bands))
        cuts = np.unique(np.concatenate([special, special + 1, bands]))
        return cuts[(cuts > 0) & (cuts <= (self.last_index or 0))]

    @property
    def listed_steps(self) -> int | None:
        """Steps from low to high of a column on a grid whose values are also counted one by one; else None."""
        last = self.last_index
        return last if last is not None and MAX_NATIVE_STEPS < last <= MAX_LISTED_STEPS else None

    def points(self) -> Groups:
        detail, cuts, last = self.detail(), self.cuts, self.last_index
        listed = self.listed_steps is not None
        if last is None or not (listed or len(cuts)) or not self.covering_radius(detail):
            return Groups.of(detail, None)
        starts, _ = self.nearest_indices(detail)
        return Groups.of(self.lattice(last), np.union1d(starts, cuts))

    def values_below_points(self) -> Groups | None:
        steps = self.listed_steps
        return None if steps is None else Groups.of(self.lattice(steps), None)

    def nearest_indices(self, lattice: Cells) -> tuple[Ints, Ints]:
        """For each lattice point on the line, the first and the last index of the values nearest to it."""
        last = self.last_index
        assert last is not None
        per, steps = max(last, 1) * self.weight.denominator, 2 * lattice.steps * self.weight.numerator
        first = [max(0, -((per - 2 * per * int(place)) // steps)) for place in lattice.places]
        return np.array(first, np.int64), np.array([*(index - 1 for index in first[1:]), last], np.int64)

    def nearest(self, figures: Floats) -> Floats:
        """The value of the column nearest to each number, day or second; NaN stays."""
        absent = np.isnan(figures)
        values = self.figures_at(self.index(np.nan_to_num(self.clean_figures(np.where(absent, self.low, figures)))))
        return np.where(absent, np.nan, values)

    @property
    def listed_texts(self) -> tuple[str, ...]:
        return tuple(map(self.reading.label_key, (*self.values, *self.reading.missing_codes)))

    @property
    def distinguished_texts(self) -> tuple[str, ...] | None:
        return self.values if self.kind == "ordinal" and self.reading.is_plain else None

    def _ranks(self, raw: cleaning.Raw) -> Floats:
        key = self.reading.label_key
        rank: dict[str | None, float] = {key(label): float(i) for i, label in enumerate(self.values)}
        return np.fromiter((rank.get(x, np.nan) for x in cleaning.as_labels(raw, self.reading)), float, len(raw))

    def cells(self, resolution: int) -> Cells:
        last = self.last_index
        if last is not None and last <= math.ceil(resolution * self.weight):
            places = np.unique(self._place(self.at_index(np.arange(last + 1)), resolution))
        else:  # cells are at least as wide as the gap between values, so none is empty
            places = np.arange(math.ceil(resolution * self.weight))
        return Cells(places=places, steps=resolution, off_line=int(self.missing), weight=self.weight)

    def lattice(self, steps: int, *, native: bool = True) -> Cells:
        last = self.last_index
        if last is not None and native and last <= steps:
            places = self.weight.numerator * np.arange(last + 1)
            steps = self.weight.denominator * max(last, 1)
        elif last is not None and last < steps:
            places = np.unique(self._nearest(np.arange(last + 1), steps))
        else:
            places = np.arange(math.floor(self.weight * steps + Fraction(1, 2)) + 1)
        return Cells(places=places, steps=steps, off_line=int(self.missing), weight=self.weight)

    def _to_cells(self, clean: Floats, cells: Cells) -> Ints:
        return self._codes(self._place(clean, cells.steps), clean, cells)

    def to_lattice(self, clean: Floats, lattice: Cells) -> tuple[Ints, Floats]:
        present = np.nan_to_num(clean)
        if self.last_index is not None:
            place = self._nearest(self.index(present), lattice.steps)
        else:
            place = np.floor(self._position(present) * lattice.steps + 0.5).astype(np.int64)
        place = np.minimum(place, lattice.places[-1])
        away = np.abs(self._position(present) - place / lattice.steps)
        away[np.isnan(clean) | (not self.covering_radius(lattice))] = 0.0  # a rounded quotient is no distance
        return self._codes(place, clean, lattice), away

    def to_units(self, clean: Floats, per: int) -> tuple[Ints, np.ndarray]:
        there = self._position(np.nan_to_num(clean)) * per
        place, absent = np.floor(there + 0.5), np.isnan(clean)
        return np.where(absent, -1, place.astype(np.int64)), (place != there) & ~absent

    def on_lattice(self, lattice: Cells) -> Floats:
        if (last := self.last_index) is not None:
            per = lattice.steps * self.weight.numerator
            index = (2 * lattice.places * (last * self.weight.denominator) + per) // (2 * per)
            values = self.at_index(np.minimum(index, last))
        else:
            steps = lattice.steps * float(self.weight)
            values = self._with_few_digits(np.minimum(lattice.places / steps, 1.0), 1 / (ROUNDING_PARTS * steps))
        return np.concatenate([values, np.full(lattice.off_line, np.nan)])

    def covering_radius(self, lattice: Cells) -> Fraction:
        last = self.last_index
        native = last is not None and lattice.steps == self.weight.denominator * max(last, 1)
        return Fraction(0) if native else Fraction(1, 2 * lattice.steps)

    def _position(self, offset: Floats) -> Floats:
        """Positions of offsets on a line of length `weight`."""
        return np.asarray(offset * self.weight.numerator / (self.weight.denominator * max(self.reach, 1)))

    def _nearest(self, index: Ints, steps: int) -> Ints:
        """The nearest multiple of 1/`steps` to the position of each index, in exact integers; ties round up."""
        per = max(self.last_index or 1, 1) * self.weight.denominator
        return (2 * index * (steps * self.weight.numerator) + per) // (2 * per)

    def _distance_to_centre(self, clean: Floats, cells: Cells) -> Floats:
        place = self._place(clean, cells.steps)
        away = np.abs(self._position(np.nan_to_num(clean)) - (place + 0.5) / cells.steps)
        away[np.isnan(clean)] = 0.0
        return away

    def _distance_to_middle(self, clean: Floats, groups: Groups) -> Floats:
        code = np.minimum(self.to_cells(clean, groups), len(groups.places) - 1)
        away = np.abs(self._position(np.nan_to_num(clean)) - groups.places[code] / groups.steps)
        away[np.isnan(clean)] = 0.0
        return away

    def _centres(self, cells: Cells) -> Floats:
        if (most := self.last_index) is None:
            inside = np.minimum((cells.places + 0.5) / (cells.steps * float(self.weight)), 1.0)
        else:
            # Python integers, since index · k may exceed 64 bits. The middle rounds half down, to stay in its cell.
            k, reach = cells.steps * self.weight.numerator, most * self.weight.denominator
            places = [int(i) for i in cells.places]
            middle = [-((k - reach * (2 * i + 1)) // (2 * k)) for i in places]
            first = [-(-i * reach // k) for i in places]
            last = [min(most, -(-(i + 1) * reach // k) - 1) for i in places]
            last[-1] = most  # the last cell is closed
            index = [max(a, min(m, b)) for a, m, b in zip(first, middle, last, strict=True)]
            inside = self.at_index(np.array(index, np.int64))
        return np.concatenate([inside, np.full(cells.off_line, np.nan)])

    def decode(self, clean: Floats) -> np.ma.MaskedArray[Any, Any]:
        absent = np.isnan(clean)
        offset = np.nan_to_num(clean)
        if self.has_gaps:
            values: np.ndarray = self.figures_at(self.index(offset))
            values = values.astype(np.int64) if self.whole else values
        elif self.kind == "number":
            values = self._numbers(offset, 2.0**-40)
        elif self.kind == "ordinal":
            values = np.array(self.values, dtype=object)[offset.astype(np.int64)]
        else:
            values = offset.astype(np.int64) + int(self.low)
        return np.ma.masked_array(values if self.clock is None else values.astype(self.clock.dtype), mask=absent)

    def _numbers(self, offset: Floats, tolerance: float) -> Floats:
        """Numbers at these places, rounded to the largest power of ten that is at most `tolerance` times the length.

        Both ends stay as they are; so does everything if floats have too few digits for it.
        """
        length, largest = float(self.high - self.low), max(abs(self.low), abs(self.high))
        digits = math.ceil(-math.log10(length) - math.log10(tolerance))
        most = EXACT_DIGITS - math.ceil(math.log10(largest))
        values = np.asarray(self.low + offset * length)
        if digits <= min(most, 22):  # up to 10^22 powers of ten are floats
            values = np.round(values, max(digits, -300))
        values = np.where(offset <= 0, self.low, np.where(offset >= 1, self.high, values))
        return np.clip(values, self.low, self.high)  # sums and products are rounded

    def _with_few_digits(self, offset: Floats, tolerance: float) -> Floats:
        return np.clip((self._numbers(offset, tolerance) - self.low) / float(self.high - self.low), 0.0, 1.0)

    def _place(self, clean: Floats, resolution: int) -> Ints:
        """Index of the cell on the line: ⌊position · resolution⌋, the last cell closed."""
        present = np.nan_to_num(clean)
        if (last := self.last_index) is not None:
            per = max(last, 1) * self.weight.denominator
            place = self.index(present) * (resolution * self.weight.numerator) // per
        else:
            place = np.floor(self._position(present) * resolution).astype(np.int64)
        return np.minimum(place, math.ceil(resolution * self.weight) - 1)

    def _codes(self, place: Ints, clean: Floats, cells: Cells) -> Ints:
        code = place if cells.span + 1 == len(cells.places) else np.searchsorted(cells.places, place)
        return np.where(np.isnan(clean), len(cells.places), code) if self.missing else np.asarray(code)


def exact_decimal(value: int | float) -> Fraction:
    """A number of the schema as the decimal that is written there.

    >>> exact_decimal(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def discretisation(column: Column, cells: Cells) -> Fraction:
    """The largest distance of a value from the centre of its measured cell: 1/2k on a line, 0 for categories."""
    if isinstance(cells, Groups):
        return cells.radius + column.covering_radius(cells.lattice)
    if not isinstance(column, Ordered):
        return Fraction(0)
    return Fraction(1, 2 * cells.steps)
