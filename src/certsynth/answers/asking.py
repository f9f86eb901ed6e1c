"""Evaluate a query: select columns, bound and kernel, and convert the result to the column's own units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.answers import averages, functions, moments, quantiles, shares, silence, spreads
from certsynth.answers.answer import Answer, Value, outward
from certsynth.answers.basis import Basis, span
from certsynth.answers.claims import Claim, Interval
from certsynth.answers.queries import Difference, Query, written_name
from certsynth.answers.selection import Selection
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.condition import Comparison, Condition, Linear
from certsynth.domain.expression import BadExpression, Chain, Constant, Name, Node, list_names
from certsynth.domain.meaning import Reader
from certsynth.errors import InputError


@dataclass(frozen=True, slots=True)
class Found:
    """An interval, its unit and its possible range [least, most].

    `column` is set if the values are converted to its dates, labels or whole numbers; `counted` if they are whole.
    `nothing` says why the interval is the whole range, if the evaluation knows a reason. `widened`: the interval allows
    for rounding errors already.
    """

    interval: Interval
    bound: float
    how: str
    unit: str
    least: float = -math.inf
    most: float = math.inf
    column: Ordered | None = None
    counted: bool = False
    nothing: str = ""
    widened: bool = False


def evaluate(basis: Basis, query: Query) -> Found:
    """Evaluate one statistic, or raise an `InputError` that says what to write instead."""
    return finite(lambda: getattr(_Evaluator(basis, query), query.statistic)())


def evaluate_share(basis: Basis, condition: Condition, group: Node | None) -> Found:
    """The share of rows that satisfy a condition, as `fraction` evaluates it."""
    return finite(lambda: _Evaluator(basis, Query("fraction", (), group)).share_of(condition))


def finite(evaluation: Callable[[], Found]) -> Found:
    with np.errstate(over="ignore", invalid="ignore"):  # results that are not finite are refused below
        found = evaluation()
    if not all(map(math.isfinite, found.interval)):
        raise InputError("the answer is too large for a float; ask for a smaller multiple of the column.")
    return found


def to_answer(basis: Basis, query: Query | Difference, found: Found, shown: str) -> Answer:
    """The answer in its own units; `shown` is the text of the query."""
    estimate, low, high = in_units(found)
    nothing = ""
    if silence.is_whole_range(found.interval, found.least, found.most):
        nothing = found.nothing or silence.reason(basis, query, found.bound)
    return Answer(shown, estimate, low, high, basis.confidence, found.how, found.unit, found.bound, nothing)


def answer_function(
    basis: Basis,
    function: functions.Function,
    *,
    columns: Sequence[str],
    lipschitz: float | None,
    slopes: Mapping[str, float] | None,
    bounds: tuple[float, float] | None,
    row_by_row: bool,
) -> Answer:
    """Answer the mean of a function that the user supplies."""
    estimate, low, high, bound = functions.average(
        basis, function, columns, lipschitz=lipschitz, slopes=slopes, bounds=bounds, row_by_row=row_by_row
    )
    least, most = bounds or (-math.inf, math.inf)
    low, high = outward(low, high, least=float(least), most=float(most))
    name = getattr(function, "__name__", "function")
    query = f"{'function' if name == '<lambda>' else name}({', '.join(columns)})"
    how = "the bound times the Lipschitz constant that you state"
    return Answer(query, estimate, low, high, basis.confidence, how, "number", bound)


def widened(found: Found) -> tuple[float, float]:
    """Both ends, widened by rounding errors. A share that is 0 in all tables stays 0: sums of nothing have no error."""
    _, low, high = found.interval
    if found.widened:
        return low, high
    low, widened_high = outward(low, high, least=found.least, most=found.most)
    return low, 0.0 if found.unit == "share" and high == 0.0 else widened_high


def in_units(found: Found) -> tuple[Value, Value, Value]:
    """Convert estimate, low and high to the units of the answer, rounding the interval outward."""
    estimate, (low, high) = found.interval[0], widened(found)
    if found.counted:
        first, last = math.ceil(low - 1e-6), math.floor(high + 1e-6)
        return min(max(round(estimate), first), last), first, last
    column = found.column
    if column is None:
        return float(min(max(estimate, low), high)), float(low), float(high)
    if column.clock is not None:
        ticks = math.floor(estimate + 0.5), math.floor(low), math.ceil(high)
        return tuple(map(column.clock.moment, ticks))  # type: ignore[return-value]
    if column.kind == "ordinal":
        return tuple(column.values[round(x)] for x in (estimate, low, high))  # type: ignore[return-value]
    return round(estimate), round(low), round(high)


class _Evaluator:
    """Evaluates one query. Each statistic is a method of the same name."""

    def __init__(self, basis: Basis, query: Query) -> None:
        self.basis = basis
        self.query = query
        self.reader = Reader(list(basis.schema))
        self.group = self.reader.condition(query.group) if query.group else None

    # ------------------------------------------------------------ shares

    def fraction(self) -> Found:
        return self.share_of(self.reader.condition(self.query.arguments[0]))

    def share_of(self, condition: Condition) -> Found:
        if self.group is None:
            return self._share(shares.share(self.basis, condition))
        return self._share(shares.share_within(self.basis, condition, self.group))

    def count(self) -> Found:
        rows = self._private_rows("count", "fraction")
        found = self._share(shares.share(self.basis, self.reader.condition(self.query.arguments[0])))
        what, persons = self.basis.counted, self.basis.schema.persons
        whole = what == "rows" or (persons is not None and persons.rows == 1)  # else a row counts a part of a person
        how = f"the number of {what} times {found.how}"
        return Found(_times(found.interval, rows), found.bound, how, what, 0.0, float(rows), counted=whole)

    def cdf(self) -> Found:
        first, second = self.query.arguments
        column = self._column(first)
        if isinstance(column, Category):
            raise BadExpression(first.at, _no(column, "has no order", f"fraction({written_name(column.name)} = …)"))
        condition = self.reader.condition(Chain(first.at, (first, second), ("<=",)))
        also = "; rows without a value count as above it" if column.missing else ""
        return self._share(shares.share(self.basis, condition), also)

    def _share(self, found: tuple[float, Claim], also: str = "") -> Found:
        estimate, claim = found
        return Found(claim.around(estimate), claim.bound, claim.how + also, "share", 0.0, 1.0)

    # ------------------------------------------------------------ means

    def mean(self) -> Found:
        node = self.query.arguments[0]
        if isinstance(node, Name) and isinstance(column := self._column(node), Category):
            if column.kind != "boolean":
                raise BadExpression(node.at, _no(column, "has labels", f"fraction({written_name(column.name)} = …)"))
            return self._share_of_true(column)
        form, dates = self._linear(node)
        if len(form.weights) > 1:
            return self._mean_of_sum(node, form)
        (name, factor), *_ = form.weights.items()
        column = self.basis.columns[name]
        assert isinstance(column, Ordered)
        rows = self._select(column)
        estimate, claim = averages.mean(rows, column)
        shift = _rounded_once(form.constant, (factor, column.low))
        estimate, claim = factor * span(column) * estimate + shift, claim.scaled(factor * span(column), shift)
        least, most = sorted(_rounded_once(form.constant, (factor, x)) for x in rows.ends(column))
        unit = str(column.kind) if dates else _unit(form, self.basis.columns)
        column_of_dates = column if dates else None
        return Found(claim.around(estimate), claim.bound, claim.how, unit, least, most, column_of_dates)

    def _mean_of_sum(self, node: Node, form: Linear) -> Found:
        """The mean of a sum, over the rows that have values in all of its columns."""
        terms = [(column, form.weights[column.name]) for column in self._ordered(form)]
        try:
            estimate, claim, (least, most) = averages.mean_of_sum(self.basis, terms, self.group)
        except shares.UndefinedStatistic:
            if self.group is not None:
                raise
            raise shares.UndefinedStatistic(
                f"no synthetic row has values in all of {list_names(form.weights)}, so nothing can be said about rows "
                "that do; ask column by column."
            ) from None
        shift = _rounded_once(form.constant, *((factor, column.low) for column, factor in terms))
        ends = [each + shift for each in (estimate, claim.low, claim.high, least, most)]
        if not all(map(math.isfinite, ends)):
            raise BadExpression(node.at, "this number is too large.")
        estimate, low, high, least, most = ends
        unit = _unit(form, self.basis.columns)
        return Found((estimate, low, high), claim.bound, claim.how, unit, least, most)

    def _ordered(self, form: Linear) -> list[Ordered]:
        """The columns of a sum."""
        return [column for name in form.weights if isinstance(column := self.basis.columns[name], Ordered)]

    def _share_of_true(self, column: Category) -> Found:
        group = self._select(column).condition
        if group is None:
            return self._share(shares.share(self.basis, _is_true(column)))
        return self._share(shares.share_within(self.basis, _is_true(column), group))

    def sum(self) -> Found:
        rows = self._private_rows("sum", "mean")
        node = self.query.arguments[0]
        if isinstance(node, Name) and isinstance(column := self._column(node), Category):
            raise BadExpression(node.at, _no(column, "has labels", f"count({written_name(column.name)} = …)"))
        form, dates = self._linear(node)
        if dates:
            raise BadExpression(node.at, "dates have no sum; ask for the mean.")
        columns = self._ordered(form)
        if any(column.missing for column in columns):
            if len(columns) == 1:
                return self._sum_of_present(form, rows)
            raise BadExpression(
                node.at,
                "a sum over several columns needs columns without missing values; ask for the sum of each column, or "
                "for the mean, which is over rows with values in all of them.",
            )
        found = self.mean()
        how = f"the number of {self.basis.counted} times the mean: {found.how}"
        return Found(_times(found.interval, rows), found.bound, how, found.unit, rows * found.least, rows * found.most)

    def _sum_of_present(self, form: Linear, rows: int) -> Found:
        ((name, factor),) = form.weights.items()
        column = self.basis.columns[name]
        assert isinstance(column, Ordered)
        first, last = (_rounded_once(form.constant, (factor, end)) for end in (column.low, column.high))
        estimate, claim = averages.total(self._select(column), column, ends=(first, last))
        least, most = rows * min(first, last, 0.0), rows * max(first, last, 0.0)
        how = f"the number of {self.basis.counted} times {claim.how}"
        interval = _times(claim.around(estimate), rows)
        return Found(interval, claim.bound, how, _unit(form, self.basis.columns), least, most)

    # ------------------------------------------------------------ spread

    def variance(self) -> Found:
        column = self._number(self.query.arguments[0])
        estimate, claim = spreads.variance(self._select(column), column)
        square = span(column) * span(column)
        unit = f"{column.name if column.clock is None else column.clock.unit}²"
        return Found(_times(claim.around(estimate), square), claim.bound, claim.how, unit, 0.0, square / 4)

    def sd(self) -> Found:
        found = self.variance()
        roots = tuple(math.sqrt(max(x, 0.0)) for x in found.interval)
        how, unit = f"the root of the variance: {found.how}", found.unit.removesuffix("²")
        return Found(roots, found.bound, how, unit, 0.0, math.sqrt(found.most))  # type: ignore[arg-type]

    def covariance(self) -> Found:
        first, second = self._pair()
        estimate, claim, *_ = spreads.covariance(self._select(first, second), first, second)
        units = span(first) * span(second)
        unit, how = f"{first.name} × {second.name}", claim.how + self._pairwise(first, second)
        return Found(_times(claim.around(estimate), units), claim.bound, how, unit, -units / 4, units / 4)

    def correlation(self) -> Found:
        first, second = self._pair()
        estimate, claim, *spread = spreads.covariance(self._select(first, second), first, second)
        interval = moments.correlation(claim.around(estimate), *(each.around(known) for known, each in spread))
        how = "the certified covariance divided by the certified deviations" + self._pairwise(first, second)
        return Found(interval, claim.bound, how, "number", -1.0, 1.0)

    def _pairwise(self, first: Ordered, second: Ordered) -> str:
        return "; over rows with both values" if first.missing or second.missing else ""

    # ------------------------------------------------------------ quantiles

    def median(self) -> Found:
        return self._quantile(0.5)

    def quantile(self) -> Found:
        node = self.query.arguments[1]
        if not isinstance(node, Constant) or not isinstance(node.value, float) or not 0 < node.value < 1:
            raise BadExpression(node.at, "a share between 0 and 1 must follow, like quantile(age, 0.9).")
        return self._quantile(node.value)

    def _quantile(self, p: float) -> Found:
        node = self.query.arguments[0]
        column = self._column(node)
        if not isinstance(column, Ordered):
            raise BadExpression(node.at, _no(column, "has no order", f"fraction({written_name(column.name)} = …)"))
        rows = self._select(column)
        estimate, claim = quantiles.quantile_of(rows, column, p)
        interval: Interval = estimate, min(claim.low, estimate), max(claim.high, estimate)
        how = claim.how + ("; over rows with a value" if column.missing else "")
        unit = f"label of {column.name}" if column.kind == "ordinal" else column.kind if column.clock else column.name
        whole = column if column.whole else None  # both ends are values of the column, which floats hold exactly
        return Found(interval, claim.bound, how, unit, *rows.ends(column), whole, widened=column.whole)

    # ------------------------------------------------------------ parts

    def _column(self, node: Node) -> Column:
        if not isinstance(node, Name):
            raise BadExpression(node.at, "this must be a column, and nothing else.")
        return self.basis.columns[node.name]

    def _number(self, node: Node) -> Ordered:
        column = self._column(node)
        if not isinstance(column, Ordered) or column.kind == "ordinal":
            raise BadExpression(node.at, _no(column, "has labels", f"fraction({written_name(column.name)} = …)"))
        return column

    def _pair(self) -> tuple[Ordered, Ordered]:
        first, second = map(self._number, self.query.arguments)
        if first.name == second.name:
            raise BadExpression(self.query.arguments[1].at, "the same column twice; ask for its variance.")
        return first, second

    def _linear(self, node: Node) -> tuple[Linear, int]:
        """A column or a sum of columns, and the number of dates in it (1: the result is a date)."""
        value = self.reader.value(node)
        if value.labels is not None:
            asked = (
                f"quantile({written_name(value.labels.name)}, 0.5) or fraction({written_name(value.labels.name)} = …)"
            )
            raise BadExpression(node.at, _no(value.labels, "has labels", asked))
        weights = {name: weight for name, weight in value.sum.weights.items() if weight}
        if value.literal is not None or not weights:
            raise BadExpression(node.at, "a constant needs no answer; name a column.")
        if len(weights) < len(value.sum.weights):
            raise BadExpression(node.at, "a column cancels out; leave it out.")
        if value.dates < 0 or (value.dates and len(weights) > 1):
            word = value.clock.word
            raise BadExpression(
                node.at, f"the negative of a {word}, or a sum with one, has no mean; {word} - {word} does."
            )
        return Linear(weights, value.sum.constant), value.dates

    def _select(self, *columns: Column) -> Selection:
        return Selection(self.basis, columns, self.group)

    def _private_rows(self, statistic: str, instead: str) -> int:
        if self.basis.private_rows is None:
            which = "private rows" if self.basis.schema.persons is None else "rows that were kept"
            raise InputError(f"the number of {which} is hidden, so there is no {statistic}; ask for {instead}(…).")
        return self.basis.private_rows


def _is_true(column: Category) -> Condition:
    return Comparison(Linear({column.name: 1.0}), "=", Linear({}, 1.0))


def _rounded_once(constant: float, *products: tuple[float, float]) -> float:
    """The constant plus the products, without the rounding errors of large terms that cancel."""
    try:
        return float(Fraction(constant) + sum(Fraction(a) * Fraction(b) for a, b in products))
    except OverflowError:
        return math.inf


def _times(interval: Interval, factor: float) -> Interval:
    estimate, low, high = interval
    return factor * estimate, factor * low, factor * high


def _unit(form: Linear, columns: Mapping[str, Column]) -> str:
    """The unit of a linear form: the column's name if it is that column, days or seconds between dates or times, else
    number."""
    lines = [column for name in form.weights if isinstance(column := columns[name], Ordered)]
    units = {column.clock.unit for column in lines if column.clock is not None}
    if units:
        return units.pop() if len(units) == 1 else "number"
    ((name, factor), *others) = form.weights.items()
    return name if not others and factor == 1 and not form.constant else "number"


def _no(column: Column, why: str, instead: str) -> str:
    return f"{column.name!r:.60} {why}; ask for {instead[:150]}."
