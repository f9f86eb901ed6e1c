"""The certificate in the columns' own units: margins of shares and of means, for the top of a report or an output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.answers import Answer, Basis, answer_or_reason
from certsynth.answers.basis import raise_bound, span
from certsynth.answers.queries import written_name
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.record.record import CertificateRecord, ExceptionsRecord, Record, StatisticsRecord
from certsynth.report import numerals
from certsynth.report.persons import protected_unit
from certsynth.report.statistics import all_but, share_bounds

MAX_MEANS = 3
"""Columns whose means a headline states, at most: the first ones of the schema that have numbers."""

NUMBERS = ("integer", "number")
"""Kinds of columns whose means are stated."""

OF_TWO = "shares of two columns"
"""How a margin of shares of two columns begins; exceptions are mentioned after it."""

POINTS = "points"
"""The unit of margins of shares: percentage points."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The margin of a kind of statistic, in its own unit: `off` as a number, `margin` as the text after "±".

    The unit is empty if the schema names none.
    """

    what: str
    off: float
    margin: str
    unit: str = ""

    @property
    def text(self) -> str:
        """
        >>> Statement("mean age", 1.43, "1.5", "years").text
        'mean age within ± 1.5 years'
        """
        return f"{self.what} within ± {self.margin} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Headline:
    """Margins of `shares`, first of one column and then of two, and of `means`; and the terms on which they hold.

    `protected` names the unit of privacy, such as "one row". A margin that says nothing is left out.
    """

    shares: tuple[Statement, ...]
    means: tuple[Statement, ...]
    confidence: float
    epsilon: str
    delta: str | None = None
    protected: str = protected_unit(None)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.shares + self.means

    @property
    def budget(self) -> str:
        """ε, and δ if there is one."""
        return f"ε = {self.epsilon}" + ("" if self.delta is None else f", δ = {self.delta}")

    @property
    def margins(self) -> str:
        """All margins, in half a sentence; empty if there are none.

        >>> one, two = Statement("shares", 0.0108, "1.1", "points"), Statement("shares of two columns", 0.0163, "1.7")
        >>> Headline((one, two), (Statement("mean age", 1.43, "1.5", "years"),), 0.95, "1").margins
        'shares within ± 1.1 points (two columns ± 1.7), mean age within ± 1.5 years'
        >>> Headline((one, Statement("shares of two columns, all but 9 pairs", 0.0163, "1.7")), (), 0.95, "1").margins
        'shares within ± 1.1 points (two columns ± 1.7, all but 9 pairs)'
        """
        parts = [each.text for each in self.means]
        if self.shares:
            first, *others = self.shares
            of_two = "".join(f" (two columns ± {other.margin}{other.what.partition(OF_TWO)[2]})" for other in others)
            parts.insert(0, first.text + of_two)
        return ", ".join(parts)

    def sentence(self, *, percent: Callable[[float], str] = numerals.confidence) -> str:
        """The margins with their confidence, the budget, and what it protects; `percent` formats the confidence.

        >>> Headline((Statement("shares", 0.0108, "1.1", "points"),), (), 0.95, "1").sentence()
        'Shares within ± 1.1 points; 95% confidence; ε = 1, one row protected.'
        >>> Headline((), (), 0.95, "1", "0.000001").sentence()
        'No share of rows and no mean has a bound that says anything; ε = 1, δ = 0.000001, one row protected.'
        """
        terms = f"{self.budget}, {self.protected} protected."
        if not self.margins:
            return f"No share of rows and no mean has a bound that says anything; {terms}"
        margins = self.margins
        return f"{margins[0].upper()}{margins[1:]}; {percent(self.confidence)} confidence; {terms}"


def certified(
    record: Record,
    schema: Schema,
    table: Mapping[str, Any],
    rows: Sequence[np.ndarray] | None = None,
) -> Headline:
    """The headline of a release: its margins are never smaller than those of `certsynth answer`.

    `table` holds the synthetic values as written, and `rows` the same after cleaning, if that is known.
    """
    certificate, privacy = record.certificate, record.privacy
    means: tuple[Statement, ...] = ()
    if len(table[schema.names[0]]):
        if rows is None:
            rows = [column.encode(np.ma.asarray(table[column.name])) for column in schema]
        means = _certified_means(Basis.read(schema, table, dict(zip(schema.names, rows, strict=True)), record))
    if certificate.statistics is None:
        shares = _shares_of_labels(certificate, schema)
    else:
        shares = _shares(certificate.statistics, raise_bound, certificate.exceptions)
    return Headline(
        shares, means, certificate.confidence, privacy.epsilon, privacy.delta, protected_unit(schema.persons)
    )


def expected(
    schema: Schema,
    bound: float,
    statistics: StatisticsRecord | None,
    *,
    confidence: float,
    epsilon: str,
    delta: str | None = None,
) -> Headline:
    """The headline to expect of a release, from its predicted `bound` and the predicted bounds of shares and moments.

    Without these, only shares of labels follow from the bound. Means are predicted as if no value were missing; those
    of columns that are compared by ratios do not follow from the bound, and are left out.
    """
    means, moment = [], None if statistics is None else statistics.moment
    for column in _number_columns(schema):
        if not column.grid:
            share = min(bound / float(column.weight), 1.0 if moment is None else moment)
            means.append(_mean_within(column, float(f"{share * span(column):.12g}")))
    shares = _shares(statistics, float) if statistics else _labels_within(schema, bound, None)
    return Headline(
        shares,
        tuple(means[:MAX_MEANS]) if bound < 1 else (),
        confidence,
        epsilon,
        delta,
        protected_unit(schema.persons),
    )


def _certified_means(basis: Basis) -> tuple[Statement, ...]:
    """The margins of the first means about which the certificate says something."""
    found: list[Statement] = []
    for column in _number_columns(basis.schema):
        if len(found) == MAX_MEANS:
            break
        mean = answer_or_reason(basis, f"mean({written_name(column.name)})")
        if isinstance(mean, Answer) and not mean.says_nothing:
            found.append(_mean_within(column, _margin(mean)))
    return tuple(found)


def _margin(found: Answer) -> float:
    """The longer distance from the estimate to an end of the interval, rounded up."""
    estimate, low, high = (Fraction(repr(float(x))) for x in (found.estimate, found.low, found.high))  # type: ignore[arg-type]
    return math.nextafter(float(max(high - estimate, estimate - low)), math.inf)


def _number_columns(schema: Schema) -> list[Ordered]:
    return [column for column in schema if isinstance(column, Ordered) and column.kind in NUMBERS]


def _mean_within(column: Ordered, off: float) -> Statement:
    unit = numerals.text(column.naming.unit, most=40)
    return Statement(f"mean {numerals.text(column.title)}", off, numerals.margin(off), unit)


def _shares(
    bounds: StatisticsRecord, raised: Callable[[float], float], exceptions: ExceptionsRecord | None = None
) -> tuple[Statement, ...]:
    """The margins of shares of one column and of two; `raised` allows for rounding errors, as answers do."""
    one, two, own = share_bounds(bounds, exceptions)
    found = [("shares", one), (f"{OF_TWO}{all_but(exceptions) if own else ''}", two)]
    return _shares_within([(what, None if off is None else raised(off)) for what, off in found])


def _shares_of_labels(certificate: CertificateRecord, schema: Schema) -> tuple[Statement, ...]:
    """The margins of shares that follow from the distance alone: the indicator of some labels changes by 1 over at
    least the smallest distance between two labels."""
    covered = {name for subset in certificate.subsets for name in subset.columns}
    pairs = [subset.bound for subset in certificate.subsets if len(subset.columns) > 1]
    columns = [column for column in schema if column.name in covered]
    of_two = raise_bound(max(pairs)) if pairs else None
    return _labels_within(columns, raise_bound(certificate.single_column_bound), of_two)


def _labels_within(columns: Iterable[Column], of_one: float, of_two: float | None) -> tuple[Statement, ...]:
    distances = [column.min_label_distance for column in columns if isinstance(column, Category)]
    if not distances:
        return ()
    bounds = [("shares of labels", of_one), ("shares of labels of two columns", of_two if len(distances) > 1 else None)]
    least = min(distances)
    return _shares_within(
        [(what, None if bound is None else float(Fraction(repr(bound)) / least)) for what, bound in bounds]
    )


def _shares_within(found: Sequence[tuple[str, float | None]]) -> tuple[Statement, ...]:
    """Statements up to the first margin that says nothing."""
    said: list[Statement] = []
    for what, off in found:
        if off is None or off >= 1:
            break
        said.append(Statement(what, off, numerals.margin_points(off), POINTS))
    return tuple(said)
