"""What a release can be used for: the margins of each kind of statistic, as `answers` gives them, and a verdict.

A margin is divided by the spread of what is averaged: 50 percentage points for a share, which is the largest standard
deviation of an indicator; the standard deviation of the synthetic values for the mean, the median and the standard
deviation of a column; 1 for a correlation. The mean of a random sample of m rows has a margin of 1.96/√m in these
units, at 95 % confidence, so a verdict compares the certificate with a survey.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.answers import Answer, Basis, TableAnswer, Unanswered, answer_or_reason
from certsynth.answers.answer import Value
from certsynth.answers.queries import written_name
from certsynth.domain import Category, Column, Ordered
from certsynth.report import numerals
from certsynth.report import use_words as words

GOOD_MARGIN, ROUGH_MARGIN = 0.062, 0.2
"""Largest margins of good and of rough statistics, in spreads: those of random samples of 1,000 and of 100 rows."""

GOOD, ROUGH, POOR, NOTHING = "good", "rough", "poor", "nothing"

MAX_COLUMNS = 6
"""Columns that each kind of statistic is tried on, at most: the first ones that have it."""

MAX_GROUPS = 12
"""Labels, with the missing value, of a column that makes groups: each group is a question of its own."""

POINTS = "points"
"""The unit of margins of shares, which are kept as fractions."""

_SHARE_SPREAD = 0.5
_NAME_CHARACTERS = 40

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A statistic of this table. `margins` has one margin, or one for each cell or group, in the unit of the statistic
    and infinite where nothing is certified. `spread` is what a margin is compared with."""

    name: str
    margins: tuple[float, ...]
    spread: float
    unit: str = ""

    @property
    def verdicts(self) -> list[str]:
        """The verdicts on its smallest and on its largest margin."""
        return [verdict(end(self.margins), self.spread) for end in (min, max)]

    @property
    def text(self) -> str:
        """
        >>> Example("age", (0.951,), 17.0, "years").text, Example("income by region", (151.0, 142.0), 1.0).text
        ('age ± 0.96 years', 'income by region ± 150 to ± 160')
        >>> Example("income by region", (1.0, math.inf), 17.0).text
        'income by region ± 1.0, nothing for 1 of 2'
        """
        known = [margin for margin in self.margins if margin < math.inf]
        if not known:
            return f"{self.name}: nothing"
        shown = numerals.margin_points if self.unit == POINTS else numerals.margin
        ends = dict.fromkeys(f"± {shown(end)}" for end in (min(known), max(known)))
        silent = len(self.margins) - len(known)
        nothing = f", nothing for {silent:,} of {len(self.margins):,}" if silent else ""
        return f"{self.name} {' to '.join(ends)} {self.unit}".rstrip() + nothing


def verdict(margin: float, spread: float) -> str:
    """The verdict on a margin.

    >>> [verdict(margin, 0.5) for margin in (0.031, 0.0311, 0.1, 0.1001, math.inf)]
    ['good', 'rough', 'rough', 'poor', 'nothing']
    """
    if margin == math.inf:
        return NOTHING
    return GOOD if margin <= GOOD_MARGIN * spread else ROUGH if margin <= ROUGH_MARGIN * spread else POOR


def uses_view(basis: Basis | None, columns: Sequence[Mapping[str, Any]], *, sparsity: int, named: bool) -> list[Json]:
    """Return each kind of statistic with examples of margins and a verdict; `columns` are the columns of the report."""
    tried = [] if basis is None else [*_of_one_column(basis, columns), *_of_two_columns(basis)]
    found = [_kind(what, examples) for what, examples in tried if examples]
    return found + [
        {"what": what, "examples": [], "verdict": NOTHING, "worst": NOTHING}
        for what in words.never_certified(sparsity, named=named)
    ]


def _kind(what: str, examples: Sequence[Example]) -> Json:
    order = (GOOD, ROUGH, POOR, NOTHING)
    given = sorted({order.index(each) for example in examples for each in example.verdicts})
    ends = dict.fromkeys((order[given[0]], order[given[-1]]))
    return {
        "what": what,
        "examples": [example.text for example in examples],
        "verdict": " to ".join(ends),
        "worst": order[given[-1]],
    }


def _of_one_column(basis: Basis, columns: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Example]]]:
    covered = {name for subset in basis.certificate.subsets for name in subset.columns}
    shown = [(column, view) for column, view in zip(basis.schema, columns, strict=True) if column.name in covered]
    bars = [(column, view["spread"]["bars"]) for column, view in shown if view["spread"]["form"] == "bars"]
    yield words.KINDS["label"], [_share(column, _bar_margin(each)) for column, each in bars[:MAX_COLUMNS]]
    lines = [column for column, _ in shown if isinstance(column, Ordered) and column.kind != "ordinal"][:MAX_COLUMNS]
    yield words.KINDS["range"], [_up_to_median(basis, column) for column in lines]
    yield words.KINDS["mean"], [_value(basis, "mean", column) for column in lines]
    yield words.KINDS["median"], [_value(basis, "median", column) for column in lines]
    numbers = [column for column in lines if column.clock is None]
    yield words.KINDS["sd"], [_value(basis, "sd", column) for column in numbers]


def _of_two_columns(basis: Basis) -> Iterator[tuple[str, list[Example]]]:
    """One example of each kind: the first pair of columns that a subset of the certificate contains and that has it."""
    place = {name: i for i, name in enumerate(basis.schema.names)}
    chosen = {
        tuple(sorted(pair, key=place.__getitem__))
        for subset in basis.certificate.subsets
        for pair in itertools.combinations(subset.columns, 2)
    }
    pairs = [
        (basis.columns[a], basis.columns[b]) for a, b in sorted(chosen, key=lambda ab: [place[name] for name in ab])
    ]
    labelled = [(a, b) for a, b in pairs if _is_labelled(a) and _is_labelled(b)]
    few = [(a, b) for a, b in labelled if max(_groups(a), _groups(b)) <= MAX_GROUPS][:1]
    yield words.KINDS["cell"], [_cells(basis, a, b) for a, b in few]
    yield words.KINDS["share_in_group"], [_shares_by(basis, b, a) for a, b in few]
    mixed = [(a, b) if _is_labelled(b) else (b, a) for a, b in pairs if _is_labelled(a) != _is_labelled(b)]
    means = [(value, group) for value, group in mixed if _is_number(value) and _groups(group) <= MAX_GROUPS]
    yield words.KINDS["mean_in_group"], [_means_by(basis, value, group) for value, group in means[:1]]
    numbers = [(a, b) for a, b in pairs if _is_number(a) and _is_number(b)]
    numbers.sort(key=lambda pair: pair[0].missing or pair[1].missing)  # a correlation takes long with missing values
    yield words.KINDS["correlation"], [_correlation(basis, a, b) for a, b in numbers[:1]]


def _is_labelled(column: Column) -> bool:
    return isinstance(column, Category)


def _is_number(column: Column) -> bool:
    return isinstance(column, Ordered) and column.kind in ("integer", "number")


def _groups(column: Column) -> int:
    return len(column.labels) + column.missing if isinstance(column, Category) else 0


def _name(*columns: Column, between: str = "") -> str:
    return between.join(numerals.text(column.title) for column in columns)


def _share(column: Column, margin: float) -> Example:
    return Example(_name(column), (margin,), _SHARE_SPREAD, POINTS)


def _bar_margin(bars: Sequence[Mapping[str, float]]) -> float:
    """The largest margin of a label's share; infinite if any share is possible."""
    if any(bar["least"] <= 0 and bar["largest"] >= 1 for bar in bars):
        return math.inf
    return max(max(bar["largest"] - bar["share"], bar["share"] - bar["least"]) for bar in bars)


def _up_to_median(basis: Basis, column: Ordered) -> Example:
    """The share of rows up to the synthetic median, where it is as uncertain as in any range, or almost."""
    figures = basis.rows[column.name]
    there = np.sort(figures[~np.isnan(figures)])
    margins: tuple[float, ...] = (math.inf,)
    if len(there):
        middle = there[(len(there) - 1) // 2]
        written = f"'{column.clock.text(int(middle))}'" if column.clock else f"{float(middle)!r}"
        margins = _margins(answer_or_reason(basis, f"fraction({written_name(column.name)} <= {written})"))
    return Example(_name(column), margins, _SHARE_SPREAD, POINTS)


def _value(basis: Basis, statistic: str, column: Ordered) -> Example:
    found = answer_or_reason(basis, f"{statistic}({written_name(column.name)})")
    unit = column.clock.unit if column.clock else numerals.text(column.naming.unit, most=_NAME_CHARACTERS)
    return Example(_name(column), _margins(found), _spread(basis, column), unit)


def _cells(basis: Basis, first: Column, second: Column) -> Example:
    found = answer_or_reason(basis, f"table({written_name(first.name)}, {written_name(second.name)})")
    return Example(_name(first, second, between=" × "), _margins(found), _SHARE_SPREAD, POINTS)


def _shares_by(basis: Basis, column: Column, group: Column) -> Example:
    """The share of the most frequent label of a column, in every group."""
    assert isinstance(column, Category)
    codes = basis.clean[column.name].astype(np.int64)
    label = column.labels[int(np.bincount(codes, minlength=len(column.labels))[: len(column.labels)].argmax())]
    written = label if column.kind == "boolean" else "'" + label.replace("'", "''") + "'"
    query = f"fraction({written_name(column.name)} = {written}) by {written_name(group.name)}"
    return Example(
        _name(column, group, between=" by "), _margins(answer_or_reason(basis, query)), _SHARE_SPREAD, POINTS
    )


def _means_by(basis: Basis, column: Column, group: Column) -> Example:
    query = f"mean({written_name(column.name)}) by {written_name(group.name)}"
    name, unit = _name(column, group, between=" by "), numerals.text(column.naming.unit, most=_NAME_CHARACTERS)
    return Example(name, _margins(answer_or_reason(basis, query)), _spread(basis, column), unit)


def _correlation(basis: Basis, first: Column, second: Column) -> Example:
    query = f"correlation({written_name(first.name)}, {written_name(second.name)})"
    return Example(_name(first, second, between=" and "), _margins(answer_or_reason(basis, query)), 1.0)


def _spread(basis: Basis, column: Column) -> float:
    """The standard deviation of the synthetic values."""
    figures = basis.rows[column.name]
    there = figures[~np.isnan(figures)]
    largest = float(np.abs(there).max()) if len(there) else 0.0
    return float(np.std(there / largest)) * largest if largest else 0.0  # squares of large numbers would overflow


def _margins(found: Answer | TableAnswer | Unanswered) -> tuple[float, ...]:
    """The margin of an answer, or of each cell or group that has synthetic rows."""
    if isinstance(found, TableAnswer):
        there = [_margin(each) for _, each in found.rows if isinstance(each, Answer)]
        return tuple(there) or (math.inf,)
    return (_margin(found) if isinstance(found, Answer) else math.inf,)


def _margin(found: Answer) -> float:
    """The longer distance from the estimate to an end of the interval."""
    if found.says_nothing:
        return math.inf
    exact = max(_distance(found.high, found.estimate), _distance(found.estimate, found.low))
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def _distance(high: Value, low: Value) -> Fraction:
    """The difference of two numbers, in days of two dates, and in seconds of two times."""
    if isinstance(high, datetime.datetime) and isinstance(low, datetime.datetime):
        return Fraction(round((high - low).total_seconds()))
    if isinstance(high, datetime.date) and isinstance(low, datetime.date):
        return Fraction((high - low).days)
    return Fraction(repr(float(high))) - Fraction(repr(float(low)))  # type: ignore[arg-type]
