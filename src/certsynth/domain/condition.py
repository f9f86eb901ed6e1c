"""Conditions on rows: each is true, false or unknown for a row, and is evaluated on whole columns.

Rows are columns of *figures*, the floats by which values are compared: a number itself, the days of a date or the
seconds of a datetime since 1970-01-01, the rank of an ordinal, the index of any other label; NaN is missing. Figures
come from values as they are written, so that conditions are checked on what a reader sees.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsynth.base.arrays import Floats
from certsynth.domain import cleaning
from certsynth.domain.category import Category
from certsynth.domain.column import Column, Ordered

Rows = Mapping[str, Floats]
"""Columns of figures by name. Conditions on a column that is absent are unknown."""

Ternary = NDArray[np.int8]
"""1 where true, −1 where false, 0 where unknown: `and` is the minimum, `or` the maximum, `not` the negative."""

_UNKNOWN = np.zeros((), np.int8)
_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def figures(column: Column, written: cleaning.Raw) -> Floats:
    """The figures of values as they are written."""
    if isinstance(column, Category):
        clean = column.encode(written)
        return np.where(clean == len(column.labels), np.nan, clean)
    assert isinstance(column, Ordered)
    return column.encode(written) if column.kind == "ordinal" else column.plain.figures(written)


def written(column: Column, figures: Floats) -> np.ma.MaskedArray[Any, Any]:
    """The values to write for given figures: numbers stay the same to the last bit."""
    absent = np.isnan(figures)
    if isinstance(column, Category):
        return column.decode(np.where(absent, len(column.labels), figures).astype(np.int64))
    assert isinstance(column, Ordered)
    if column.whole:
        return column.decode(column.clean_figures(figures) if column.grid else figures - column.low)
    return np.ma.masked_array(np.where(absent, column.low, figures), mask=absent)


class Condition(ABC):
    """A predicate that is true, false or unknown for each row."""

    __slots__ = ()

    @abstractmethod
    def holds(self, rows: Rows) -> Ternary: ...

    @abstractmethod
    def atoms(self) -> Iterator[Atom]:
        """The atomic conditions that it is made of."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it reads, in order of first use."""
        return tuple(dict.fromkeys(name for atom in self.atoms() for name in atom.names))


class Atom(Condition):
    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...

    @abstractmethod
    def borders(self, name: str, rows: Rows) -> list[Floats]:
        """Figures of the column `name` at which the truth may change, given the other columns of each row."""

    def atoms(self) -> Iterator[Atom]:
        yield self


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear combination of columns, plus a constant."""

    weights: Mapping[str, float]
    constant: float = 0.0

    def of(self, rows: Rows) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # NaN counts as unknown
            scaled = (weight * rows[name] for name, weight in self.weights.items())
            return sum(scaled, np.asarray(self.constant))

    def plus(self, other: Linear, times: float = 1.0) -> Linear:
        weights = dict(self.weights)
        for name, weight in other.weights.items():
            weights[name] = weights.get(name, 0.0) + times * weight
        return Linear(weights, self.constant + times * other.constant)


@dataclass(frozen=True, slots=True)
class Comparison(Atom):
    left: Linear
    sign: str
    right: Linear

    @property
    def names(self) -> tuple[str, ...]:
        return tuple({**self.left.weights, **self.right.weights})

    def holds(self, rows: Rows) -> Ternary:
        if any(name not in rows for name in self.names):
            return _UNKNOWN
        left, right = self.left.of(rows), self.right.of(rows)
        answer = np.where(_COMPARE[self.sign](left, right), 1, -1).astype(np.int8)
        return np.where(np.isnan(left) | np.isnan(right), _UNKNOWN, answer)

    def borders(self, name: str, rows: Rows) -> list[Floats]:
        difference = self.left.plus(self.right, -1.0)
        weight = difference.weights.get(name, 0.0)
        others = Linear({n: w for n, w in difference.weights.items() if n != name}, difference.constant)
        if not weight or any(n not in rows for n in others.weights):
            return []
        with np.errstate(over="ignore", invalid="ignore"):
            return [np.asarray(others.of(rows) / -weight)]


@dataclass(frozen=True, slots=True)
class Among(Atom):
    term: Linear
    values: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.term.weights)

    def holds(self, rows: Rows) -> Ternary:
        if any(name not in rows for name in self.names):
            return _UNKNOWN
        term = self.term.of(rows)
        return np.where(np.isnan(term), _UNKNOWN, np.where(np.isin(term, self.values), 1, -1).astype(np.int8))

    def borders(self, name: str, rows: Rows) -> list[Floats]:
        each = (Comparison(self.term, "=", Linear({}, value)) for value in self.values)
        return [border for comparison in each for border in comparison.borders(name, rows)]


@dataclass(frozen=True, slots=True, eq=False)
class SameLabel(Atom):
    """Two columns hold the same text. `there[i]` is the index in the second column of label i of the first, NaN if it
    is not listed; `here` is the reverse. Both end with NaN, for missing values."""

    first: str
    second: str
    there: Floats
    here: Floats

    @classmethod
    def of(cls, first: Category, second: Category) -> SameLabel:
        return cls(first.name, second.name, _places(first.labels, second.labels), _places(second.labels, first.labels))

    @property
    def names(self) -> tuple[str, ...]:
        return self.first, self.second

    def holds(self, rows: Rows) -> Ternary:
        if any(name not in rows for name in self.names):
            return _UNKNOWN
        first, second = rows[self.first], rows[self.second]
        same = np.where(_look_up(first, self.there) == second, 1, -1).astype(np.int8)
        return np.where(np.isnan(first) | np.isnan(second), _UNKNOWN, same)

    def borders(self, name: str, rows: Rows) -> list[Floats]:
        other, places = (self.second, self.here) if name == self.first else (self.first, self.there)
        return [_look_up(rows[other], places)] if other in rows else []


def _places(labels: Sequence[str], among: Sequence[str]) -> Floats:
    place = {label: float(i) for i, label in enumerate(among)}
    return np.array([*(place.get(label, np.nan) for label in labels), np.nan])


def _look_up(figures: Floats, places: Floats) -> Floats:
    return np.asarray(places[np.where(np.isnan(figures), -1, figures).astype(np.int64)])


@dataclass(frozen=True, slots=True)
class Missing(Atom):
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def holds(self, rows: Rows) -> Ternary:
        return np.where(np.isnan(rows[self.name]), 1, -1).astype(np.int8) if self.name in rows else _UNKNOWN

    def borders(self, name: str, rows: Rows) -> list[Floats]:
        return []


@dataclass(frozen=True, slots=True)
class Not(Condition):
    part: Condition

    def holds(self, rows: Rows) -> Ternary:
        return -self.part.holds(rows)

    def atoms(self) -> Iterator[Atom]:
        return self.part.atoms()


@dataclass(frozen=True, slots=True)
class _Joined(Condition):
    parts: tuple[Condition, ...]

    def atoms(self) -> Iterator[Atom]:
        for part in self.parts:
            yield from part.atoms()


@dataclass(frozen=True, slots=True)
class And(_Joined):
    def holds(self, rows: Rows) -> Ternary:
        return reduce(np.minimum, (part.holds(rows) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Or(_Joined):
    def holds(self, rows: Rows) -> Ternary:
        return reduce(np.maximum, (part.holds(rows) for part in self.parts))
