"""Code many rows at once: evaluate each column's rule for its cells on every value beforehand, then look values up.

A column's own methods (`to_cells`, `to_lattice`, `distance_to_centre`) define which cell a value is in; this module
only evaluates them. A column with few values has a lookup table. On a longer line codes never decrease with the value,
so the least value of each code is found by bisection with the same methods. docs/explanation/counting.md has the
proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from certsynth.base.arrays import Floats, Ints
from certsynth.base.threads import in_threads
from certsynth.domain import Category, Cells, Column, Groups, Ordered
from certsynth.domain.ruler import UNITS_PER_LENGTH
from certsynth.queries.tally import Dense
from certsynth.queries.thresholds import least_floats

MIN_PREPARED_ROWS = 2**15
"""Rows coded in all before lookup tables pay for themselves. Until then the columns' own methods compute the same
codes."""

MAX_CODED_ROWS = 2**17
"""Rows coded at once, at most, which bounds memory."""

MAX_TABLE_VALUES = 2**16
"""Values of a column up to which it has a lookup table."""

LINE_BUCKETS = 2**12
"""Equal parts of a line for which the first code is stored, from which the search for a value's code starts."""

BLOCK_VALUES = 1_024
"""Values that pass through all loops before the next ones, so that intermediate results stay in the cache."""

MOVE_UNITS = UNITS_PER_LENGTH
"""Units per unit length. Distances are rounded up to whole units and summed in 64 bits, enough for 2^43 rows."""


def move_units(away: Floats, farthest: int) -> Ints:
    """Distances in units, rounded up by more than the error of floats, and at most `farthest`."""
    up = np.ceil(away * MOVE_UNITS + 2.0**-20 * (away > 0))
    return np.minimum(up.astype(np.int64), farthest)


Placed = tuple[Ints, Floats]
"""Codes of values, and the distances of the values to the positions of their cells."""


def in_cells(column: Column, clean: np.ndarray, cells: Cells) -> Placed:
    """Codes of the cells that values are in, and the distances to the centres of these."""
    return column.to_cells(clean, cells), column.distance_to_centre(clean, cells)


def on_lattice(column: Column, clean: np.ndarray, cells: Cells) -> Placed:
    """Codes of the nearest lattice points, and the distances to them."""
    return column.to_lattice(clean, cells)


Rule = Callable[[Column, np.ndarray, Cells], Placed]


@dataclass(frozen=True, slots=True, eq=False)
class LookupTable:
    """Codes and distances of every value of a column under a rule; the last entry is for missing values."""

    codes: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, column: Column, cells: Cells, rule: Rule, farthest: int) -> LookupTable:
        if isinstance(column, Ordered):
            values: np.ndarray = np.append(np.arange(column.reach + 1.0), np.nan)
        else:
            assert isinstance(column, Category)
            values = np.arange(len(column.labels) + column.missing)
        codes, away = rule(column, values, cells)
        return cls(codes.astype(np.uint32), move_units(away, farthest).astype(np.int32))

    def code(self, clean: np.ndarray, codes: np.ndarray, units: np.ndarray) -> bool:
        if clean.dtype.kind == "f":
            return bool(_look_up_floats(clean, self.codes, self.units, codes, units))
        return bool(_look_up_labels(clean, self.codes, self.units, codes, units))


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """A rule on a line, given by the least value of each code, and the position of each code's cell.

    `least[c]` is the least value whose code is c or more: `least[0]` is 0, and the NaN after the last code ends every
    search. `begins[b]` is at most the code of any value in part b of the line, and at least that code minus `most`.
    """

    least: Floats
    begins: np.ndarray
    most: int
    parts: float
    centres: Floats
    along: float
    per: float
    absent: int
    farthest: float

    @classmethod
    def of(cls, column: Ordered, cells: Cells, rule: Rule, farthest: int) -> StepFunction:
        line, reach = len(cells.places), float(column.reach)

        def code(values: Floats) -> Ints:
            return rule(column, np.clip(values, 0.0, reach), cells)[0]

        least = least_floats(code, np.arange(1, line))
        least = np.concatenate([[0.0], np.maximum(least, 0.0)])
        edges = np.arange(-1, LINE_BUCKETS + 3) * (reach / LINE_BUCKETS)
        reached = np.searchsorted(least, np.maximum(edges, 0.0), side="right") - 1
        begins, ends = reached[:-3], reached[3:]  # one more part on either side: rounding errors are smaller
        shift = 0.5 if rule is in_cells and not isinstance(cells, Groups) else 0.0
        if rule is on_lattice and not column.covering_radius(cells):
            farthest = 0
        return cls(
            least=np.append(least, np.nan),
            begins=begins.astype(np.uint32),
            most=int((ends - begins).max()),
            parts=LINE_BUCKETS / reach,
            centres=(cells.places + shift) / cells.steps,
            along=float(column.weight.numerator),
            per=float(column.weight.denominator * max(column.reach, 1)),
            absent=int(code(np.array([np.nan]))[0]),
            farthest=float(farthest),
        )

    def code(self, clean: Floats, codes: np.ndarray, units: np.ndarray) -> bool:
        line = (self.least, self.begins, self.most, self.parts)
        places = (self.centres, self.along, self.per, self.absent, self.farthest)
        return bool(_step_up(clean, *line, *places, codes, units))


@dataclass(frozen=True, slots=True, eq=False)
class Coder:
    """Codes rows: the columns, their cells, and the rule that places values. `farthest` is in units of 1/MOVE_UNITS."""

    columns: Sequence[Column]
    cells: Sequence[Cells]
    rule: Rule
    farthest: int
    _prepared: list[LookupTable | StepFunction | None] = field(default_factory=list, init=False)
    _seen: list[int] = field(default_factory=lambda: [0], init=False)
    _room: dict[str, np.ndarray] = field(default_factory=dict, init=False)

    def code_in_chunks(
        self, batch: Sequence[np.ndarray], *, distances: bool = True
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Results of `code` for successive parts of at most MAX_CODED_ROWS rows."""
        for start in range(0, len(batch[0]), MAX_CODED_ROWS):
            yield self.code([values[start : start + MAX_CODED_ROWS] for values in batch], distances=distances)

    def code(self, batch: Sequence[np.ndarray], *, distances: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Codes of cleaned rows, and their distances to the positions of their cells in units: one line per column.

        Without `distances` the second array is empty. The arrays are overwritten by the next call, since allocating new
        ones would take longer than filling them.
        """
        rows = len(batch[0])
        self._seen[0] += rows
        if self._seen[0] < MIN_PREPARED_ROWS:
            return self._one_by_one(batch, distances)
        if not self._prepared:
            self._prepared.extend(map(self._prepare, self.columns, self.cells))
        widest = max(cells.size for cells in self.cells)
        codes = self._empty("codes", widest - 1, rows)
        units = self._empty("units", self.farthest, rows if distances else 0)

        def work(j: int) -> None:
            how, clean = self._prepared[j], np.ascontiguousarray(batch[j])
            if how is None:
                found, away = self.rule(self.columns[j], clean, self.cells[j])
                codes[j] = found
                if distances:
                    units[j] = move_units(away, self.farthest)
            elif not how.code(clean, codes[j], units[j]):
                raise ValueError("a cleaned value is none that its column has")

        in_threads(work, range(len(batch)), rows=rows)
        return codes, units

    def _empty(self, what: str, most: int, rows: int) -> np.ndarray:
        """A reused buffer for whole numbers up to `most`, in 16 bits where these suffice: half the memory traffic."""
        size, kind = len(self.columns) * rows, np.uint16 if most < 2**16 else np.uint32
        if what not in self._room or len(self._room[what]) < size:
            self._room[what] = np.empty(size, kind)
        return self._room[what][:size].reshape(len(self.columns), rows)

    def _one_by_one(self, batch: Sequence[np.ndarray], distances: bool) -> tuple[np.ndarray, np.ndarray]:
        each = zip(self.columns, batch, self.cells, strict=True)
        if self.rule is in_cells and not distances:
            return np.stack([column.to_cells(clean, cells) for column, clean, cells in each]), np.empty((0, 0))
        coded = [self.rule(*one) for one in each]
        return np.stack([codes for codes, _ in coded]), np.stack([move_units(a, self.farthest) for _, a in coded])

    def _prepare(self, column: Column, cells: Cells) -> LookupTable | StepFunction | None:
        if not isinstance(column, Ordered):
            return LookupTable.of(column, cells, self.rule, self.farthest)
        if column.whole and column.reach < MAX_TABLE_VALUES:
            return LookupTable.of(column, cells, self.rule, self.farthest)
        lattice = cells.lattice if isinstance(cells, Groups) else cells
        fits = 4 * column.reach * lattice.steps * column.weight.numerator < 2**62  # else codes may decrease
        return StepFunction.of(column, cells, self.rule, self.farthest) if fits and len(cells.places) > 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class Coded(Dense):
    """Dense vectors with the coder of their rows, whose preparation serves all batches."""

    coder: Coder


# Each loop below does one thing, without branches, over a block that stays in the cache, so that the compiler can
# vectorise it.


@njit(cache=True, nogil=True)
def _look_up_floats(clean, table, moves, codes, units):  # type: ignore[no-untyped-def]
    """Look up values; missing ones have the last entry. Returns false if some value has no entry."""
    last, unknown = float(len(table) - 1), False
    places = np.empty(BLOCK_VALUES, np.int32)
    for start in range(0, len(clean), BLOCK_VALUES):
        part, out, far = (
            clean[start : start + BLOCK_VALUES],
            codes[start : start + BLOCK_VALUES],
            units[start : start + BLOCK_VALUES],
        )
        for i in range(len(part)):
            x = part[i]
            there = (x >= 0.0) & (x < last)
            unknown |= not (there | (x != x))
            places[i] = np.int32(x if there else last)
        for i in range(len(part)):
            out[i] = table[np.uintp(places[i])]
        for i in range(len(far)):
            far[i] = moves[np.uintp(places[i])]
    return not unknown


@njit(cache=True, nogil=True)
def _look_up_labels(clean, table, moves, codes, units):  # type: ignore[no-untyped-def]
    known, distances = True, len(units) > 0
    for i in range(len(clean)):
        place = clean[i]
        if not 0 <= place < len(table):
            known = False
            continue
        codes[i] = table[place]
        if distances:
            units[i] = moves[place]
    return known


@njit(cache=True, nogil=True)
def _step_up(clean, least, begins, most, parts, centres, along, per, absent, farthest, codes, units):  # type: ignore[no-untyped-def]
    """Search the code of each value; missing ones have the code `absent`. Returns false if some value is negative."""
    last, negative = float(len(begins) - 1), False
    found, centre = np.empty(BLOCK_VALUES, np.uint32), np.empty(BLOCK_VALUES)
    for start in range(0, len(clean), BLOCK_VALUES):
        part, out = clean[start : start + BLOCK_VALUES], codes[start : start + BLOCK_VALUES]
        for i in range(len(part)):
            x = part[i] * parts
            negative |= x < 0.0
            x = x if x > 0.0 else 0.0
            found[i] = begins[np.uintp(x if x < last else last)]
        for _ in range(most):
            for i in range(len(part)):
                found[i] += np.uint32(part[i] >= least[np.uintp(found[i]) + np.uintp(1)])
        for i in range(len(part)):
            out[i] = found[i] if part[i] == part[i] else absent
        far = units[start : start + BLOCK_VALUES]
        for i in range(len(far)):
            centre[i] = centres[np.uintp(found[i])]
        for i in range(len(far)):
            # The column's own operations in their order: `_position`, `distance_to_centre`, `move_units`.
            away = abs(part[i] * along / per - centre[i])
            up = np.ceil(away * MOVE_UNITS + (2.0**-20 if away > 0.0 else 0.0))
            up = up if up < farthest else farthest
            far[i] = np.int32(up if part[i] == part[i] else 0.0)
    return not negative
