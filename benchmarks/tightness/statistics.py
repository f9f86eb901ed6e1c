"""Twenty statistics of a table by a public rule, with their true values.

The rule looks at the schema and at the real rows, which are public here, but at no release:

- Columns take turns, in an order drawn once with a fixed seed. A column in which one value has more than nine tenths
  of the rows is left out. A table without labels has whole numbers with few values in their place.
- A frequent label is the most frequent one, and a rare label the one whose share is nearest to 5 %.
- Thresholds are quantiles of the real rows, rounded to three digits as a person would write them.

True values are computed here with NumPy, and not by the code that answers queries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from many.tables import Column, Table

ORDER_SEED = 29
LARGEST_SHARE = 0.9
"""Of one value: a column in which one value has more rows has little to estimate."""
RARE_SHARE = 0.05
MAX_LABEL_LIKE_VALUES = 100

Floats = np.ndarray
Mask = np.ndarray


@dataclass(frozen=True, slots=True)
class Statistic:
    """A query with its true value. `unit` is the standard deviation of the column, or 1 for shares and correlations."""

    kind: str
    query: str
    truth: float
    unit: float = 1.0


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a query, and the rows that satisfy it. The rest are the rows for which it is false."""

    text: str
    holds: Mask
    rest_text: str
    rest: Mask


@dataclass(frozen=True, slots=True)
class Value:
    """A column as a query writes it, and its values; missing ones are NaN."""

    name: str
    values: Floats

    @property
    def unit(self) -> float:
        return float(np.nanstd(self.values))

    def mean(self, rows: Mask | None = None) -> float:
        return float(np.nanmean(self.values if rows is None else self.values[rows]))

    def quantile(self, share: float, rows: Mask | None = None) -> float:
        """The smallest value that at least this share of the rows with a value does not exceed."""
        values = self.values if rows is None else self.values[rows]
        return float(np.quantile(values[~np.isnan(values)], share, method="inverted_cdf"))

    def threshold(self, share: float) -> float:
        """A quantile as a person would write it."""
        return float(f"{self.quantile(share):.3g}")

    def at_least(self, share: float) -> Condition:
        border = self.threshold(share)
        return Condition(
            f"{self.name} >= {border:g}", self.values >= border, f"{self.name} < {border:g}", self.values < border
        )

    def between(self, low: float, high: float) -> Condition:
        first, last = self.threshold(low), self.threshold(high)
        inside = (first <= self.values) & (self.values <= last)
        text = f"{first:g} <= {self.name} <= {last:g}"
        return Condition(text, inside, f"not {text}", ~inside & ~np.isnan(self.values))


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of labels as a query writes it, with the literal of each label that occurs."""

    name: str
    rows: np.ndarray
    literal: Callable[[str], str]

    def shares(self) -> dict[str, float]:
        found, counts = np.unique(self.rows, return_counts=True)
        return dict(zip(found.tolist(), (counts / len(self.rows)).tolist(), strict=True))

    def frequent(self) -> Condition:
        shares = self.shares()
        return self._equal(max(shares, key=lambda label: (shares[label], label)))

    def rare(self) -> Condition:
        shares = self.shares()
        return self._equal(min(shares, key=lambda label: (abs(shares[label] - RARE_SHARE), label)))

    def _equal(self, label: str) -> Condition:
        text = f"{self.name} = {self.literal(label)}"
        return Condition(text, self.rows == label, f"not {text}", self.rows != label)


class Turns:
    """Columns that take turns; one that a statistic uses already is passed over."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def take(self, *used: str) -> str:
        name = next(name for name in self.names if name not in used)
        self.names.remove(name)
        self.names.append(name)
        return name


def statistics_of(table: Table, rows: pd.DataFrame) -> list[Statistic]:
    """The twenty statistics of a table."""
    return list(_Asker(table, rows).statistics())


class _Asker:
    def __init__(self, table: Table, rows: pd.DataFrame) -> None:
        self.rows = rows
        drawn = np.random.default_rng(ORDER_SEED).permutation(len(table.columns))
        columns = [table.columns[place] for place in drawn]
        self.columns = {column.name: column for column in columns if self._varies(column)}
        ordered = [name for name, column in self.columns.items() if not column.values]
        labels = [name for name, column in self.columns.items() if column.values]
        self.ordered = Turns(ordered)
        self.labels = Turns(labels or [name for name in ordered if self._is_label_like(self.columns[name])])

    def statistics(self) -> Iterator[Statistic]:
        """In the order of the page."""
        a = self.label()
        yield self.share("share of a frequent label", a.frequent())
        a = self.label()
        yield self.share("share of a rare label", a.rare())
        x = self.value()
        yield self.share("share above a threshold", x.at_least(0.75))
        x = self.value()
        yield self.share("share of a range", x.between(0.4, 0.6))
        x = self.value()
        border = x.threshold(0.5)
        yield Statistic("distribution function", f"cdf({x.name}, {border:g})", float(np.mean(x.values <= border)))
        x, y = self.two_values()
        yield self.share("two ranges", x.at_least(0.5), y.at_least(0.5))
        a, x = self.label_and_value()
        yield self.share("a label and a range", a.frequent(), x.between(0.25, 0.75))
        yield self.share("cell of a crosstab", *self.cell())
        x = self.value()
        yield Statistic("mean", f"mean({x.name})", x.mean(), x.unit)
        x = self.value()
        yield Statistic("mean of another column", f"mean({x.name})", x.mean(), x.unit)
        x = self.value()
        yield Statistic("standard deviation", f"sd({x.name})", x.unit, x.unit)
        x = self.value()
        yield Statistic("median", f"median({x.name})", x.quantile(0.5), x.unit)
        x = self.value()
        yield Statistic("90 % quantile", f"quantile({x.name}, 0.9)", x.quantile(0.9), x.unit)
        a, x = self.label_and_value()
        group = a.frequent()
        yield Statistic("mean of a label's rows", f"mean({x.name} | {group.text})", x.mean(group.holds), x.unit)
        x, y = self.two_values()
        group = x.at_least(0.75)
        yield Statistic("mean above a threshold", f"mean({y.name} | {group.text})", y.mean(group.holds), y.unit)
        a, x = self.label_and_value()
        yield self.share_within("share of a label in a range", a.frequent(), x.at_least(0.5))
        a, x = self.label_and_value()
        group = a.frequent()
        true = x.quantile(0.5, group.holds)
        yield Statistic("median of a label's rows", f"median({x.name} | {group.text})", true, x.unit)
        x, y = self.two_values()
        yield Statistic("correlation", f"correlation({x.name}, {y.name})", _correlation(x.values, y.values))
        a, x = self.label_and_value()
        yield self.difference_of_means(x, a.frequent())
        a, x = self.label_and_value()
        yield self.difference_of_shares(a.frequent(), x.at_least(0.5))

    def share(self, kind: str, *conditions: Condition) -> Statistic:
        text = " and ".join(condition.text for condition in conditions)
        holds = np.all([condition.holds for condition in conditions], axis=0)
        return Statistic(kind, f"fraction({text})", float(np.mean(holds)))

    def share_within(self, kind: str, condition: Condition, group: Condition) -> Statistic:
        true = float(np.mean(condition.holds[group.holds]))
        return Statistic(kind, f"fraction({condition.text} | {group.text})", true)

    def difference_of_means(self, x: Value, group: Condition) -> Statistic:
        query = f"mean({x.name} | {group.text}) - mean({x.name} | {group.rest_text})"
        return Statistic("difference of two means", query, x.mean(group.holds) - x.mean(group.rest), x.unit)

    def difference_of_shares(self, condition: Condition, group: Condition) -> Statistic:
        query = f"fraction({condition.text} | {group.text}) - fraction({condition.text} | {group.rest_text})"
        true = float(np.mean(condition.holds[group.holds]) - np.mean(condition.holds[group.rest]))
        return Statistic("difference of two shares", query, true)

    def cell(self) -> tuple[Condition, Condition]:
        """Two frequent labels; in a table with one column of labels, a range takes the place of the second."""
        if len(self.labels.names) > 1:
            first = self.labels.take()
            return self.as_labels(first).frequent(), self.as_labels(self.labels.take(first)).frequent()
        a, x = self.label_and_value()
        return a.frequent(), x.between(0.0, 0.25)

    def label(self) -> Labels:
        return self.as_labels(self.labels.take())

    def value(self, *used: str) -> Value:
        return self.as_value(self.ordered.take(*used))

    def two_values(self) -> tuple[Value, Value]:
        first = self.ordered.take()
        return self.as_value(first), self.value(first)

    def label_and_value(self) -> tuple[Labels, Value]:
        name = self.labels.take()
        return self.as_labels(name), self.value(name)

    def as_value(self, name: str) -> Value:
        return Value(written(name), self.rows[name].astype(float).to_numpy(float))

    def as_labels(self, name: str) -> Labels:
        literal = json.dumps if self.columns[name].values else str
        return Labels(written(name), self.rows[name].astype(str).to_numpy(str), literal)

    def _varies(self, column: Column) -> bool:
        return bool(self.rows[column.name].value_counts(normalize=True, dropna=False).max() <= LARGEST_SHARE)

    def _is_label_like(self, column: Column) -> bool:
        return column.kind == "integer" and column.high - column.low < MAX_LABEL_LIKE_VALUES and not column.missing


def written(name: str) -> str:
    """The name of a column in a query.

    >>> written("age"), written("hours-per-week")
    ('age', '`hours-per-week`')
    """
    return name if name.isidentifier() else f"`{name}`"


def _correlation(first: Floats, second: Floats) -> float:
    both = ~np.isnan(first) & ~np.isnan(second)
    return float(np.corrcoef(first[both], second[both])[0, 1])
