"""The meaning of expressions: types are checked against the columns, and labels and dates become figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from certsynth.base.clock import DAYS, SECONDS, Clock
from certsynth.domain import expression
from certsynth.domain.category import Category
from certsynth.domain.column import Column, Ordered
from certsynth.domain.condition import Among, And, Comparison, Condition, Linear, Missing, Not, Or, SameLabel
from certsynth.domain.expression import BadExpression, Node, list_names
from certsynth.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class _Value:
    """A typed term: a literal, a column of labels, or a sum. `dates` counts the dates added minus those subtracted, by
    their `clock`: a sum with 0 is a number, and with 1 a date, or a time."""

    at: int
    sum: Linear
    dates: int = 0
    clock: Clock = DAYS
    labels: Column | None = None
    literal: str | bool | None = None

    @property
    def is_constant(self) -> bool:
        return not self.sum.weights


class Reader:
    """Turns expressions into conditions on rows with the given columns, if their types fit.

    >>> reader = Reader([Ordered("age", low=0, high=99, missing=True)])
    >>> reader.read("age < 16 or age is missing").holds({"age": np.array([3.0, 40.0, np.nan])}).tolist()
    [1, -1, 1]
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = {column.name: column for column in columns}
        self._ranks: dict[str, dict[str, int]] = {}
        self._pairs: dict[tuple[str, str], SameLabel] = {}

    def read(self, text: str) -> Condition:
        """The condition that a text expresses; raises `BadExpression` if it is invalid."""
        return self.condition(expression.parse(text))

    def read_sum(self, text: str, clock: Clock | None = None) -> tuple[Linear, Clock | None]:
        """The number, date or time that a text expresses, as a sum of columns, and the clock of a date or time.

        `clock` reads dates and times in quotes where no column among them does.
        """
        node = expression.parse(text)
        value = self.summand(node, self.clock_of(node, otherwise=clock or DAYS))
        if value.is_constant:
            raise BadExpression(value.at, "this is a constant; name a column.")
        if value.dates < 0:
            raise BadExpression(value.at, f"a {value.clock.word} cannot be negative; {_difference(value.clock)}.")
        return value.sum, value.clock if value.dates else None

    def condition(self, node: Node) -> Condition:
        match node:
            case expression.Not(part=part):
                return Not(self.condition(part))
            case expression.And(parts=parts):
                return And(tuple(map(self.condition, parts)))
            case expression.Or(parts=parts):
                return Or(tuple(map(self.condition, parts)))
            case expression.Chain(terms=terms, signs=signs):
                clock = self.clock_of(*terms)
                values = [self.value(term, clock) for term in terms]
                pairs = zip(values, signs, values[1:], strict=False)
                compared = tuple(self.comparison(*pair) for pair in pairs)
                return compared[0] if len(compared) == 1 else And(compared)
            case expression.Among(term=term, values=values):
                return self.among(self.value(term), values)
            case expression.Missing(term=expression.Name() as name):
                return Missing(self.column(name).name)
            case expression.Missing(at=at):
                raise BadExpression(at, "only a column can be missing; ask for each one by itself.")
            case expression.Name() if isinstance(column := self.column(node), Category) and column.kind == "boolean":
                return Comparison(Linear({column.name: 1.0}), "=", Linear({}, 1.0))
        raise BadExpression(node.at, "this is a value, not a condition; compare it with something, like x >= 0.")

    def value(self, node: Node, clock: Clock = DAYS) -> _Value:
        """A term; `clock` reads dates and times in quotes, in sums without a column that has a clock."""
        match node:
            case expression.Name(at=at):
                column = self.column(node)
                itself = Linear({column.name: 1.0})
                if isinstance(column, Ordered) and column.kind != "ordinal":
                    return _Value(at, itself, int(column.clock is not None), column.clock or DAYS)
                return _Value(at, itself, labels=column)
            case expression.Constant(at=at, value=float(number)):
                return _Value(at, Linear({}, number))
            case expression.Constant(at=at, value=bool(literal) | str(literal)):
                return _Value(at, Linear({}), literal=literal)
            case expression.Sum(at=at, terms=terms):
                clock = self.clock_of(node, otherwise=clock)
                parts = [self.summand(term, clock) for term in terms]
                total = reduce(Linear.plus, (part.sum for part in parts))
                clocks = {part.clock for part in parts if part.dates}
                if len(clocks) > 1:
                    raise BadExpression(at, "a sum holds dates or times, not both; make the columns of one kind.")
                return self.check(_Value(at, total, sum(part.dates for part in parts), next(iter(clocks), DAYS)))
            case expression.Product(at=at, factors=factors):
                return self.product(at, [self.summand(factor, clock) for factor in factors])
        raise BadExpression(node.at, "expected a value, found a condition; join conditions with 'and' or 'or'.")

    def summand(self, node: Node, clock: Clock) -> _Value:
        """A term of a sum, in which a text is a date or time."""
        value = self.value(node, clock)
        if value.labels is not None:
            raise BadExpression(value.at, f"{value.labels.name!r:.60} has labels; only numbers and dates can be added.")
        return value if value.literal is None else self.date(value, clock, f"a sum holds numbers and {clock.word}s")

    def clock_of(self, *nodes: Node, otherwise: Clock = DAYS) -> Clock:
        """The clock of the columns in these terms: seconds, if any column of times is among them."""
        found = set()
        waiting = list(nodes)
        while waiting:
            match waiting.pop():
                case expression.Sum(terms=parts) | expression.Product(factors=parts):
                    waiting.extend(parts)
                case expression.Name(name=name) if isinstance(column := self.columns.get(name), Ordered):
                    found.add(column.clock)
        return SECONDS if SECONDS in found else DAYS if DAYS in found else otherwise

    def product(self, at: int, factors: Sequence[_Value]) -> _Value:
        times, (*rest,) = 1.0, [factor for factor in factors if not factor.is_constant or factor.dates]
        for factor in factors:
            if factor.is_constant and not factor.dates:
                times *= factor.sum.constant
        if len(rest) > 1:
            raise BadExpression(at, "columns cannot be multiplied with each other; sums and multiples are allowed.")
        if not rest:
            return self.check(_Value(at, Linear({}, times)))
        clock = rest[0].clock
        if rest[0].dates and abs(times) != 1:
            raise BadExpression(at, f"a {clock.word} cannot be multiplied; the difference of two {clock.word}s can.")
        return self.check(_Value(at, Linear({}).plus(rest[0].sum, times), int(times) * rest[0].dates, clock))

    def check(self, value: _Value) -> _Value:
        if not np.isfinite([value.sum.constant, *value.sum.weights.values()]).all():
            raise BadExpression(value.at, "this number is too large.")
        if value.dates not in (-1, 0, 1):
            raise BadExpression(value.at, f"{value.clock.word}s cannot be added; {_difference(value.clock)}.")
        return value

    def date(self, value: _Value, clock: Clock, otherwise: str) -> _Value:
        """A text literal as a date or time; `otherwise` begins the message if it is none."""
        try:
            if not isinstance(value.literal, str):
                raise ValueError
            tick = clock.read(value.literal)
        except ValueError:
            raise BadExpression(value.at, f"{otherwise}; {_as_text(clock)}.") from None
        return _Value(value.at, Linear({}, float(tick)), dates=1, clock=clock)

    def comparison(self, left: _Value, sign: str, right: _Value) -> Condition:
        if left.is_constant and right.is_constant:
            raise self.without_column(left, right)
        if left.labels is not None and right.labels is not None:
            return self.same_label(left, sign, right)
        if left.labels is not None or right.labels is not None:
            column = left.labels or right.labels
            assert column is not None
            if sign not in ("=", "!=") and isinstance(column, Category):
                at = left.at if left.labels is not None else right.at
                raise BadExpression(at, f"{column.name!r:.60} has no order; compare it by = or != or 'in'.")
            return Comparison(self.rank(column, left), sign, self.rank(column, right))
        left, right = self.as_type_of(left, right), self.as_type_of(right, left)
        if left.dates != right.dates:
            raise _number_with_date(*((right, left) if left.dates else (left, right)))
        return Comparison(_in_ticks_of(right, left), sign, _in_ticks_of(left, right))

    def without_column(self, *constants: _Value) -> BadExpression:
        """The error of a comparison of constants, of which one may be the name of a column in quotes."""
        for each in constants:
            if isinstance(each.literal, str) and each.literal in self.columns:
                name = each.literal.replace("`", "``")
                return BadExpression(each.at, f"in quotes this is a text, not the column; write `{name:.60}`.")
        return BadExpression(constants[0].at, "both sides are constants; name a column.")

    def same_label(self, left: _Value, sign: str, right: _Value) -> Condition:
        """Compare two columns of labels."""
        first, second = left.labels, right.labels
        assert first is not None
        assert second is not None
        if isinstance(first, Ordered) and isinstance(second, Ordered) and first.values == second.values:
            return Comparison(left.sum, sign, right.sum)
        if not (isinstance(first, Category) and isinstance(second, Category)) or sign not in ("=", "!="):
            raise BadExpression(
                left.at,
                f"{first.name!r:.60} and {second.name!r:.60} cannot be compared like this: compare "
                "categories by = or !=, and ordinals if they list the same values.",
            )
        pair = first.name, second.name
        if pair not in self._pairs:  # lists of labels may be long, and rules many
            self._pairs[pair] = SameLabel.of(first, second)
        same = self._pairs[pair]
        return same if sign == "=" else Not(same)

    def among(self, term: _Value, values: Sequence[expression.Constant]) -> Condition:
        if term.is_constant:
            raise BadExpression(term.at, "both sides of 'in' are constants; name a column.")
        constants = []
        for value in map(self.value, values):
            if term.labels is not None:
                constants.append(self.rank(term.labels, value).constant)
                continue
            constant = self.as_type_of(value, term)
            if constant.dates != term.dates:
                raise _number_with_date(constant, term)
            constants.append(constant.sum.constant)
        return Among(term.sum, tuple(constants))

    def as_type_of(self, value: _Value, other: _Value) -> _Value:
        """A literal compared with a sum becomes a date if that is one; with a number it is refused."""
        if value.literal is None:
            return value
        if other.dates:
            return self.date(value, other.clock, f"a {other.clock.word} is compared with something else")
        if isinstance(value.literal, bool):
            raise BadExpression(
                value.at, "true or false is compared with a number; compare those with boolean columns."
            )
        raise BadExpression(value.at, "a text is compared with a number; write the number without quotes.")

    def rank(self, column: Column, value: _Value) -> Linear:
        """A label of a column as its index in the list; the column itself unchanged."""
        if value.labels is not None:
            return value.sum
        literal, boolean = value.literal, isinstance(column, Category) and column.kind == "boolean"
        if boolean and (isinstance(literal, bool) or literal is None):
            if literal is None:
                raise BadExpression(value.at, f"{column.name!r:.60} is true or false; write one of the two.")
            return Linear({}, float(literal))
        ranks = self.ranks(column)
        if literal is None and value.is_constant and (code := f"{value.sum.constant:.15g}") in ranks:
            literal = code  # labels may be codes: a number without quotes is the label of the same digits
        if not isinstance(literal, str):
            raise BadExpression(
                value.at, f"{column.name!r:.60} has labels, which are texts; choose from {list_names(ranks)}."
            )
        if literal not in ranks:
            raise BadExpression(
                value.at,
                f"{literal!r:.60} is not a label of {column.name!r:.60}, which has {list_names(ranks)}."
                f"{did_you_mean(literal, ranks)}",
            )
        return Linear({}, float(ranks[literal]))

    def ranks(self, column: Column) -> dict[str, int]:
        if column.name not in self._ranks:
            labels = column.labels if isinstance(column, Category) else column.values  # type: ignore[attr-defined]
            self._ranks[column.name] = {label: i for i, label in enumerate(labels)}
        return self._ranks[column.name]

    def column(self, node: expression.Name) -> Column:
        if node.name not in self.columns:
            raise BadExpression(
                node.at,
                f"no column is called {node.name!r:.60}; there are {list_names(self.columns)}, and texts are written "
                "in quotes."
                f"{did_you_mean(node.name, self.columns)}",
            )
        return self.columns[node.name]


def _difference(clock: Clock) -> str:
    return f"{clock.word} - {clock.word} is a number of {clock.unit}"


def _as_text(clock: Clock) -> str:
    return f"write a {clock.word} as a text, like '{clock.example}'"


def _number_with_date(number: _Value, date: _Value) -> BadExpression:
    return BadExpression(number.at, f"a number is compared with a {date.clock.word}; {_as_text(date.clock)}.")


def _in_ticks_of(other: _Value, value: _Value) -> Linear:
    """A date that is compared with a time is its midnight; every other value stays the same."""
    if not value.dates or value.clock.seconds <= other.clock.seconds:
        return value.sum
    return Linear({}).plus(value.sum, value.clock.seconds / other.clock.seconds)
