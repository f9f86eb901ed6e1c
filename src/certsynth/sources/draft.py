"""A first schema drafted from rows, for a person to edit.

It shows extremes and labels of the rows, so a draft made from private rows is not private. It is marked as a draft
(`draft = true`), and a person must replace its bounds and labels by those of the code book.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.base.days import to_days
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.cleaning import Raw, as_days, as_labels, as_numbers
from certsynth.domain.labels import check_text, tree_column
from certsynth.domain.schema import MAX_COLUMNS, MAX_OFFSET
from certsynth.errors import InputError, SchemaError
from certsynth.sources import open_source
from certsynth.sources.reading import objects

MAX_LISTED_LABELS = 1_000
"""Most distinct labels that a draft lists in full."""

SHORT_LIST_LABELS = 50
"""Labels listed where there are more than MAX_LISTED_LABELS: a list that a person can still edit."""

MAX_COMMA_LABELS = 50
"""Distinct labels like 3,5 that may be codes; more of them are numbers with a decimal comma."""

MAX_DISTINCT_LABELS = 100_000
"""Most distinct labels held in memory: a column with more has no categories worth listing."""

# Words for missing numbers and dates. In a category they may be labels: NA is Namibia's country code.
_HOLES = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "."})
_CODE = re.compile(r"\s*[+-]?0[0-9]")  # 00123 is a label: as a number it would lose its leading zeros
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9][0-9. ]*,[0-9]+\s*")

_DAY_RANGE = (to_days(datetime.date.min), to_days(datetime.date.max))
_MAX_INTEGER = 2**53
_MAX_NUMBER = 1e300
_UNREADABLE = np.full(1, np.nan)


def draft_schema(data: Any, name: str = "table", trees: Mapping[str, Sequence[str]] | None = None) -> Schema:
    """Draft a schema for a table: a path, a frame, a relation or an open source.

    Whole numbers become integers, other numbers become numbers, ISO dates become dates, true and false become booleans,
    and everything else becomes categories. Columns and labels that no schema may have (formulas, control characters)
    are left out. `trees` maps columns of hierarchical codes to the paths of their tree.

    >>> import duckdb
    >>> table = duckdb.sql("FROM (VALUES ('007', 34, 'true'), ('012', 7, '')) AS t(code, age, owner)")
    >>> print(draft_schema(table).to_toml())
    [table]
    name = "table"
    unit = "one row is one person"
    draft = true
    <BLANKLINE>
    [[column]]
    name = "code"
    kind = "category"
    values = ["007", "012"]
    other = false
    missing = false
    <BLANKLINE>
    [[column]]
    name = "age"
    kind = "integer"
    low = 7
    high = 34
    missing = false
    <BLANKLINE>
    [[column]]
    name = "owner"
    kind = "boolean"
    missing = true
    <BLANKLINE>
    """
    source = open_source(data)
    # A schema may have only one of several names that differ in case alone.
    first: dict[str, str] = {}
    for title in filter(_allowed, source.names):
        first.setdefault(title.casefold(), title)
    names = list(first.values())[:MAX_COLUMNS]
    if not names:
        raise InputError("no column has a name that a schema could use. Name the columns in the data.")
    trees = trees or {}
    for column_name in trees:
        if column_name not in names:
            raise InputError(f"column {column_name!r:.60} is not in the data, which has: {', '.join(names)}.")
    seen = [_ColumnSummary(coded=column in trees) for column in names]
    for batch in source.batches(names):
        for column, raw in zip(seen, batch, strict=True):
            column.look(raw)
    columns = tuple(
        column.of_codes(title, trees[title]) if title in trees else column.drafted(title)
        for column, title in zip(seen, names, strict=True)
    )
    return Schema(columns=columns, name=name if _allowed(name) else "table", draft=True)


@dataclass(slots=True)
class _Range:
    """Whether all values so far can be read in one way, and their smallest and largest finite value."""

    holds: bool = True
    low: float = np.inf
    high: float = -np.inf

    def widen(self, values: Floats) -> None:
        finite = values[np.isfinite(values)]
        self.holds &= not np.isnan(values).any()
        self.low = float(finite.min(initial=self.low))
        self.high = float(finite.max(initial=self.high))

    def within(self, lowest: float, highest: float) -> tuple[float, float]:
        """The range, clamped to what a schema allows."""
        low, high = (min(max(end, lowest), highest) for end in (self.low, self.high))
        return (low, high) if self.low <= self.high else (0.0, 1.0)


@dataclass(slots=True)
class _ColumnSummary:
    """A summary of the rows of one column read so far. If `coded`, numbers are labels as well."""

    coded: bool = False
    labels: Counter[str] = field(default_factory=Counter)
    numbers: _Range = field(default_factory=_Range)
    days: _Range = field(default_factory=_Range)
    whole: bool = True
    truths: bool = True
    empty: bool = True
    absent: bool = False
    holes: bool = False
    crowded: bool = False

    def look(self, raw: Raw) -> None:
        if self.coded:
            self._look_at_labels(Counter(as_labels(raw)))
        elif raw.dtype.kind in "iuf":
            numbers = as_numbers(raw)
            self.absent |= bool(np.isnan(numbers).any())
            self._take(numbers=numbers[~np.isnan(numbers)])
        elif raw.dtype.kind == "M":
            days = as_days(raw)
            self.absent |= bool(np.isnan(days).any())
            self._take(days=days[~np.isnan(days)])
        else:
            self._look_at_labels(Counter(as_labels(raw)))

    def _look_at_labels(self, fresh: Counter[str | None]) -> None:
        self.absent |= bool(fresh.pop(None, 0) + fresh.pop("", 0))
        texts = [text for text in fresh if text is not None and text.strip().lower() not in _HOLES]
        self.holes |= len(texts) < len(fresh)
        numbers = as_numbers(objects(texts))
        numbers[[_CODE.match(text) is not None for text in texts]] = np.nan
        truths = {text.strip().lower() for text in texts} <= {"true", "false"}
        self._take(numbers=numbers, days=as_days(objects(texts)), truths=truths)
        for text, times in fresh.items():
            if text in self.labels or len(self.labels) < MAX_DISTINCT_LABELS:
                self.labels[str(text)] += times
            else:
                self.crowded = True

    def _take(self, *, numbers: Floats = _UNREADABLE, days: Floats = _UNREADABLE, truths: bool = False) -> None:
        """Add present values, read as numbers and as days: NaN where a value cannot be read that way."""
        if not (len(numbers) and len(days)):
            return
        self.empty = False
        self.truths &= truths
        self.whole &= bool((numbers == np.floor(numbers)).all())  # infinities are clamped later
        self.numbers.widen(numbers)
        self.days.widen(days)

    def drafted(self, name: str) -> Column:
        if self.empty:
            return self._category(name)
        missing = self.absent or self.holes
        if self.truths:
            return Category(name=name, missing=missing, kind="boolean", values=("false", "true"))
        if self.numbers.holds:
            low, high = self.numbers.within(-_MAX_NUMBER, _MAX_NUMBER)
            if self.whole and max(-low, high) <= _MAX_INTEGER and high - low <= MAX_OFFSET:
                low, high = _separate_integers(int(low), int(high), _MAX_INTEGER)
                return Ordered(name=name, missing=missing, kind="integer", low=low, high=high)
            low, high = _separate_numbers(low, high)
            return Ordered(name=name, missing=missing, kind="number", low=low, high=high)
        if self.days.holds:
            low, high = self.days.within(*_DAY_RANGE)
            low, high = _separate_integers(int(low), int(high), _DAY_RANGE[1])
            return Ordered(name=name, missing=missing, kind="date", low=low, high=high)
        if sum(_DECIMAL_COMMA.fullmatch(label) is not None for label in self.labels) > MAX_COMMA_LABELS:
            raise InputError(f"column {name!r}: its numbers have a decimal comma. Write them with a point, like 3.5.")
        return self._category(name)

    def of_codes(self, name: str, paths: Sequence[str]) -> Category:
        """A tree column of the given codes; it allows other labels, and missing values, if the rows contain them."""
        unlisted = self.labels.keys() - {*tree_column(name, paths).values, *paths}
        holes = {text for text in unlisted if text.strip().lower() in _HOLES}
        other = self.crowded or unlisted > holes
        return tree_column(name, paths, missing=self.absent or bool(holes), other=other)

    def _category(self, name: str) -> Category:
        many = len(self.labels) > MAX_LISTED_LABELS
        often = sorted(self.labels, key=lambda label: (-self.labels[label], label))
        listed = [label for label in often if _allowed(label)][: SHORT_LIST_LABELS if many else None]
        other = self.crowded or len(listed) < len(self.labels) or not listed
        values = sorted({*listed} - {Category.OTHER_LABEL} if other else listed) or ["value"]
        return Category(name=name, missing=self.absent, kind="category", values=tuple(values), other=other)


def _separate_integers(low: int, high: int, highest: int) -> tuple[int, int]:
    """Make bounds differ: a column of a schema has at least two values."""
    if low < high:
        return low, high
    return (low, low + 1) if low < highest else (low - 1, low)


def _separate_numbers(low: float, high: float) -> tuple[float, float]:
    if low < high:
        return low, high
    pad = max(1.0, abs(low) / 2)
    return (low - pad, low) if low > 0 else (low, low + pad)


def _allowed(text: str) -> bool:
    try:
        check_text(text, "draft")
    except SchemaError:
        return False
    return True
