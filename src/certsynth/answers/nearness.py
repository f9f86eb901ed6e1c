"""Distances of rows to the set where a condition holds, and to its complement."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from certsynth.answers.places import KnownRows, OfLabels, OnLine, Slab
from certsynth.answers.remembered import Arrays, key_of
from certsynth.answers.spans import Spans, negated
from certsynth.base.arrays import Floats
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.condition import (
    Among,
    And,
    Atom,
    Comparison,
    Condition,
    Linear,
    Missing,
    Not,
    Or,
    Rows,
    SameLabel,
    Ternary,
)

MAX_TERMS = 64
"""Most conjunctions into which a condition is expanded; beyond that distances are lower bounds."""

Place = OnLine | OfLabels | Slab | KnownRows
Term = tuple[Place, ...]
Box = Mapping[str, OnLine | OfLabels]
"""A product of sets of single columns, by name; columns that are not named have any value."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The rows that satisfy a condition, and the rest, each as a union of boxes. Both contain their borders."""

    satisfied: tuple[Box, ...]
    rest: tuple[Box, ...]

    @property
    def names(self) -> frozenset[str]:
        """The columns on which the truth of the condition depends."""
        return frozenset(name for box in (*self.satisfied, *self.rest) for name in box)


@dataclass(frozen=True, slots=True)
class Rest(Condition):
    """True where `part` is false or unknown, and false elsewhere."""

    part: Condition

    def holds(self, rows: Rows) -> Ternary:
        return np.where(self.part.holds(rows) > 0, -1, 1).astype(np.int8)

    def atoms(self) -> Iterator[Atom]:
        return self.part.atoms()


class Nearness:
    """Distances of rows to the sets that conditions define.

    A condition is true, false or unknown for a row. *Satisfied* means true; all other rows, including unknown ones, are
    the *rest*. Distances are exact for conditions that compare single columns with constants. For others they are lower
    bounds that vanish on the set and are 1-Lipschitz, which suffices for a valid bound.
    """

    def __init__(self, columns: Mapping[str, Column], rows: Rows) -> None:
        self.columns = columns
        self.rows = rows
        self._places: dict[Hashable, Place] = {}
        self._distances = Arrays()

    def satisfied(self, condition: Condition) -> Floats:
        return self._distance(condition, sign=True, rest=False)

    def rest(self, condition: Condition) -> Floats:
        return self._distance(condition, sign=True, rest=True)

    def boxes(self, condition: Condition) -> Boxes | None:
        """The condition as unions of boxes; None if it compares columns with each other, or has too many parts."""
        both = [self._terms(condition, sign=True, rest=rest) for rest in (False, True)]
        unions: list[tuple[Box, ...]] = []
        for terms in both:
            if terms is None:
                return None
            union = []
            for term in terms:
                sets = [place for place in term if isinstance(place, (OnLine, OfLabels))]
                if len(sets) < len(term):
                    return None
                union.append({place.column.name: place for place in sets if not place.full})
            unions.append(tuple(union))
        return Boxes(*unions)

    def ends(self, condition: Condition, column: Ordered) -> tuple[float, float]:
        """Bounds on the values of the column among rows that satisfy the condition."""
        low, high = float(column.low), float(column.high)
        pairs = []
        for term in self._terms(condition, sign=True, rest=False) or [()]:
            on_line = [p.spans.pairs for p in term if isinstance(p, OnLine) and p.column.name == column.name]
            pairs += list(on_line[0]) if on_line else [(low, high)]
        return min((a for a, _ in pairs), default=low), max((b for _, b in pairs), default=high)

    def _distance(self, condition: Condition, *, sign: bool, rest: bool) -> Floats:
        """Distance to the rows where the condition is true (`sign`) or false (not `sign`); with `rest`, to all
        others."""
        if isinstance(condition, Not):
            return self._distance(condition.part, sign=not sign, rest=rest)
        if isinstance(condition, Rest):
            return self._distance(condition.part, sign=True, rest=sign != rest)
        terms = self._terms(condition, sign=sign, rest=rest)
        if terms is not None:
            each = [self._to_term(term) for term in terms]
            return reduce(np.minimum, each) if each else np.full(self._length(condition), np.inf)
        assert isinstance(condition, (And, Or))
        parts = [self._distance(part, sign=sign, rest=rest) for part in condition.parts]
        return reduce(np.maximum if _all(condition, sign=sign, rest=rest) else np.minimum, parts)

    def _length(self, condition: Condition) -> int:
        return len(self.rows[condition.columns[0]])

    def _to_term(self, term: Term) -> Floats:
        return reduce(np.maximum, map(self._to_place, term))

    def _to_place(self, place: Place) -> Floats:
        if not isinstance(place, (OnLine, OfLabels)):
            return place.distance(self.rows)
        return self._distances.get(place.key, lambda: place.distance(self.rows))

    def _terms(self, condition: Condition, *, sign: bool, rest: bool) -> list[Term] | None:
        """The set as a union of products of sets, without empty ones; None if there are more than MAX_TERMS."""
        if isinstance(condition, Not):
            return self._terms(condition.part, sign=not sign, rest=rest)
        if isinstance(condition, Rest):
            return self._terms(condition.part, sign=True, rest=sign != rest)
        if isinstance(condition, Atom):
            place = self._known_place(condition, sign=sign, rest=rest)
            return [] if place.empty else [(place,)]
        assert isinstance(condition, (And, Or))
        parts = []
        for part in condition.parts:
            found = self._terms(part, sign=sign, rest=rest)
            if found is None:
                return None
            parts.append(found)
        if not _all(condition, sign=sign, rest=rest):
            terms = [term for part in parts for term in part]
            return terms if len(terms) <= MAX_TERMS else None
        joined: list[Term] = [()]
        for ways in parts:
            if len(joined) * len(ways) > MAX_TERMS:
                return None
            joined = [term for a, b in product(joined, ways) if (term := _intersect((*a, *b))) is not None]
        return joined

    def _known_place(self, atom: Atom, *, sign: bool, rest: bool) -> Place:
        if (atom_key := key_of(atom)) is None:
            return self.place(atom, sign=sign, rest=rest)
        key = atom_key, sign, rest
        if key not in self._places:
            self._places[key] = self.place(atom, sign=sign, rest=rest)
        return self._places[key]

    def place(self, atom: Atom, *, sign: bool, rest: bool) -> Place:
        """The set that one atom defines."""
        if isinstance(atom, Missing):
            return self._missing(self.columns[atom.name], is_missing=sign != rest)
        if isinstance(atom, SameLabel):
            first, second = (self.columns[name] for name in atom.names)
            assert isinstance(first, Category)
            assert isinstance(second, Category)
            holds = atom.holds(self.rows)
            inside = holds > 0 if sign else holds < 0
            return KnownRows(
                ~inside if rest else inside, float(min(first.min_label_distance, second.min_label_distance))
            )
        assert isinstance(atom, (Comparison, Among))
        place = self._comparison_set(atom, sign=sign != rest)
        return _with_missing(place) if rest else place

    def _missing(self, column: Column, *, is_missing: bool) -> Place:
        if isinstance(column, Ordered):
            spans = Spans((), column.whole) if is_missing else Spans.everything(whole=column.whole)
            return OnLine.make(column, spans, missing=is_missing)
        assert isinstance(column, Category)
        members = np.arange(len(column.labels) + column.missing) >= len(column.labels)
        return OfLabels(column, members if is_missing else ~members)

    def _comparison_set(self, atom: Comparison | Among, *, sign: bool) -> Place:
        """The rows without missing values where the comparison is true (`sign`) or false."""
        if isinstance(atom, Comparison):
            form, op = atom.left.plus(atom.right, -1.0), atom.sign if sign else negated(atom.sign)
            borders: Sequence[float] = (0.0,)
        else:
            form, op, borders = atom.term, "=" if sign else "!=", atom.values
        (name, weight), *others = form.weights.items()
        column = self.columns[name]
        if others or not weight:
            return self._sum(form, op, borders)
        if isinstance(column, Category):
            members = np.zeros(len(column.labels) + column.missing, bool)
            codes = [round((border - form.constant) / weight) for border in borders]
            members[: len(column.labels)] = op == "!="
            members[codes] = op == "="
            return OfLabels(column, members)
        assert isinstance(column, Ordered)
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op) if weight < 0 else op
        exact = [_border(border, form.constant, weight) for border in borders]
        if column.grid:
            added = isinstance(atom, Comparison) and atom.left.constant and atom.right.constant
            sure = abs(weight) == 1 and not added and (not form.constant or not any(borders))
            return OnLine.make(column, _spans_on_grid(column, flipped, exact, sure=sure), missing=False)
        spans = _spans(flipped, exact, whole=column.whole)
        if _is_outside(column, flipped, exact[0], sure=abs(weight) == 1 and not borders[0]):
            spans = Spans((), column.whole)
        return OnLine.make(column, spans, missing=False)

    def _sum(self, form: Linear, op: str, borders: Sequence[float]) -> Place:
        columns = tuple(column for name in form.weights if isinstance(column := self.columns[name], Ordered))
        whole = all(c.whole and float(form.weights[c.name]).is_integer() for c in columns)
        exact = [_border(border, form.constant, 1.0) for border in borders]
        return Slab(columns, form.weights, _spans(op, exact, whole=whole), missing=False)


def _all(condition: Condition, *, sign: bool, rest: bool) -> bool:
    """Whether the set is the intersection of the sets of the parts, rather than their union."""
    return isinstance(condition, And) == (sign != rest)


def _spans(op: str, borders: Sequence[Fraction | float], *, whole: bool) -> Spans:
    if op in ("=", "!="):
        among = Spans.among(borders, whole=whole)
        return among if op == "=" else _complement_of(borders, whole=whole)
    return Spans.of(op, borders[0], whole=whole)


def _spans_on_grid(column: Ordered, op: str, borders: Sequence[Fraction | float], *, sure: bool) -> Spans:
    """The values of a column with a grid that fulfil a comparison. Values at a border that may be off by rounding
    fulfil it as well, unless floats are `sure`."""
    figures = np.array(column.grid)
    found = np.full(len(figures), op == "!=")
    for border in borders:
        at = float(border)
        slack = 0.0 if (sure or isinstance(border, Fraction)) and at == border else (1 + abs(at)) * 1e-9
        below, above = figures < at - slack, figures > at + slack
        if op == "!=":
            found &= below | above | (slack > 0)
        else:
            found |= {"<": below, "<=": ~above, ">": above, ">=": ~below, "=": ~below & ~above}[op] | (
                ~below & ~above & (slack > 0)
            )
    edges = np.flatnonzero(np.diff(np.concatenate([[False], found, [False]]).astype(np.int8)))
    return Spans(tuple((float(figures[a]), float(figures[b - 1])) for a, b in edges.reshape(-1, 2)), whole=False)


def _is_outside(column: Ordered, op: str, border: Fraction | float, *, sure: bool) -> bool:
    """Whether the comparison excludes the whole range: `Spans` would keep an end of it, since it takes closures.

    `sure` says that a float border is exact.
    """
    if not sure and not isinstance(border, Fraction):
        return False
    return (op == "<" and border <= column.low) or (op == ">" and border >= column.high)


def _complement_of(borders: Sequence[Fraction | float], *, whole: bool) -> Spans:
    """All values but these. A border that may be a whole number only after rounding is not removed."""
    sure = [border for border in borders if isinstance(border, Fraction)] if whole else []
    return Spans.among(sure, whole=whole).complement()


def _border(border: float, constant: float, weight: float) -> Fraction | float:
    """(border − constant)/weight: exact if all are whole numbers, else a float that may be off by rounding."""
    if all(float(x).is_integer() for x in (border, constant, weight)):
        return Fraction(int(border) - int(constant), int(weight))
    return float((border - constant) / weight)


def _with_missing(place: Place) -> Place:
    """The set extended by the rows with missing values."""
    if isinstance(place, OnLine):
        return OnLine.make(place.column, place.spans, missing=True)
    if isinstance(place, OfLabels):
        absent = np.arange(len(place.members)) >= len(place.column.labels)
        return OfLabels(place.column, place.members | absent)
    assert isinstance(place, Slab)
    return Slab(place.columns, place.weights, place.spans, missing=True)


def _intersect(places: Sequence[Place]) -> Term | None:
    """Intersect sets on the same column and return the product; None if it is empty."""
    found: dict[str, Place] = {}
    others: list[Place] = []
    for place in places:
        if not isinstance(place, (OnLine, OfLabels)):
            others.append(place)
            continue
        known = found.get(place.column.name)
        found[place.column.name] = place if known is None else known.intersection(place)  # type: ignore[arg-type,union-attr]
    term = (*found.values(), *others)
    return None if any(place.empty for place in term) else term
