"""Crosstabs and histograms: the share of rows in every cell, each as `fraction` answers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

import numpy as np

from certsynth.answers.asking import evaluate, to_answer
from certsynth.answers.basis import Basis
from certsynth.answers.queries import Query, written_name
from certsynth.answers.table_answer import TableAnswer
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.expression import And, BadExpression, Chain, Constant, Missing, Name, Node
from certsynth.errors import InputError

MAX_CELLS = 2_000
DEFAULT_BINS = 10
"""Most bins of a column with an order, where the query does not say how many."""

_BORDER_DIGITS = 6
"""Significant digits of borders between bins of numbers: borders are exactly the numbers that are shown."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A set of values of a column: its label (None: the missing value), its condition as text, and the condition.

    `ends` are the first and the last value of a range.
    """

    label: str | None
    text: str
    condition: Node
    ends: tuple[float, float] | None = None


def tabulate(basis: Basis, query: Query, shown: str) -> TableAnswer:
    """Answer every cell, in the order of the schema's values."""
    columns, most = _columns_and_bins(basis, query)
    each = [bins_of(column, most) for column in columns]
    _check_size(prod(map(len, each)), columns)
    group = f" | {query.group_text}" if query.group_text else ""
    rows, hows, bound = [], Counter[str](), 0.0
    for cell in product(*each):
        conditions = tuple(part.condition for part in cell)
        asked = Query("fraction", (conditions[0] if len(cell) == 1 else And(0, conditions),), query.group)
        found = evaluate(basis, asked)
        text = f"fraction({' and '.join(part.text for part in cell)}{group})"
        rows.append((tuple(part.label for part in cell), to_answer(basis, asked, found, text)))
        hows[found.how] += 1
        bound = max(bound, found.bound)
    names = tuple(column.name for column in columns)
    ((how, _),) = hows.most_common(1)
    return TableAnswer(shown, names, tuple(rows), basis.confidence, f"for each cell {how}", bound)


def _columns_and_bins(basis: Basis, query: Query) -> tuple[list[Column], int | None]:
    """The columns of a table, and the most bins of those that have an order, where the query says so."""
    *named, last = query.arguments
    most = None
    if named and (isinstance(last, Constant) or (query.statistic == "histogram" and not isinstance(last, Name))):
        most = _checked_bins(last, query.statistic)
    else:
        named.append(last)
    columns: list[Column] = []
    for node in named:
        if not isinstance(node, Name):
            raise BadExpression(node.at, "this must be a column, and nothing else.")
        column = basis.columns[node.name]
        if column in columns:
            raise BadExpression(node.at, f"{node.name!r:.60} is named twice; name each column once.")
        columns.append(column)
    if query.statistic == "histogram" and len(columns) > 1:
        raise BadExpression(
            last.at, "a number of bins must follow, like histogram(age, 10); for several columns ask for table(…)."
        )
    if most is not None and not any(isinstance(column, Ordered) for column in columns):
        raise BadExpression(last.at, "labels are not put into bins; leave out their number.")
    basis.bound([column.name for column in columns])  # one complaint about too many columns, before any cell
    return columns, most


def _checked_bins(node: Node, statistic: str) -> int:
    value = node.value if isinstance(node, Constant) else None
    if not isinstance(value, float) or not value.is_integer() or not 1 <= value <= MAX_CELLS:
        example = "histogram(age, 10)" if statistic == "histogram" else "table(age, region, 10)"
        raise BadExpression(node.at, f"the number of bins is a whole number from 1 to {MAX_CELLS:,}, like {example}.")
    return int(value)


def _check_size(cells: int, columns: Sequence[Column]) -> None:
    if cells <= MAX_CELLS:
        return
    remedy = "ask for single cells with fraction(…)"
    if any(isinstance(column, Ordered) for column in columns):
        remedy = f"say how many bins there are at most, like histogram(age, 10) or table(age, region, 10), or {remedy}"
    if len(columns) > 1:
        remedy = f"leave out a column, {remedy}"
    raise InputError(f"this table has {cells:,} cells, and at most {MAX_CELLS:,} are answered at once; {remedy}.")


# ------------------------------------------------------------ bins


def bins_of(column: Column, most: int | None) -> list[Bin]:
    """Disjoint sets that hold all values of a column: its labels, or at most `most` ranges of equal width, by default
    its bands, or else DEFAULT_BINS. A missing value is a set of its own."""
    if isinstance(column, Category):
        bins = [_of_label(column, i) for i in range(len(column.labels))]
    else:
        assert isinstance(column, Ordered)
        starts = _equal_starts(column, most) if most is not None or not column.bands else _band_starts(column)
        bins = _ranges(column, starts) if column.whole else _intervals(column, starts)
    if column.missing:
        name = written_name(column.name)
        bins.append(Bin(None, f"{name} is missing", Missing(0, Name(0, column.name))))
    return bins


def _band_starts(column: Ordered) -> list[float]:
    """The first values of the column's bands, but of the lowest."""
    return [float(start) for start in column.figures_at(column.index(np.array(column.bands, dtype=float)))]


def _equal_starts(column: Ordered, most: int | None) -> list[float]:
    """The first values of at most `most` bins of equal width, but of the lowest. By default each label of an ordinal
    is a bin."""
    if most is None:
        most = len(column.values) if column.kind == "ordinal" else DEFAULT_BINS
    if (last := column.last_index) is not None:
        width = -(-(last + 1) // most)
        return [float(start) for start in column.figures_at(np.arange(width, last + 1, width))]
    low, length = float(column.low), float(column.high) - float(column.low)
    return [float(f"{low + length * i / most:.{_BORDER_DIGITS}g}") for i in range(1, most)]


def _of_label(column: Category, index: int) -> Bin:
    label, name = column.labels[index], written_name(column.name)
    if column.kind == "boolean":
        value: bool | str = index == 1
        return Bin(label, f"{name} = {label}", _equal(column, value))
    return Bin(label, f"{name} = {_quoted(label)}", _equal(column, label))


def _equal(column: Column, value: bool | float | str) -> Node:
    return Chain(0, (Name(0, column.name), Constant(0, value)), ("=",))


def runs_of(column: Ordered, bins: Sequence[Bin]) -> list[tuple[int, int, Bin]]:
    """All unions of consecutive bins of an ordered column but that of all, with the numbers of the first bin and the
    last. A missing value is in none."""
    return [
        (i, j, _joined(column, bins[i], bins[j]))
        for i in range(len(bins))
        for j in range(i, len(bins))
        if None not in (bins[i].label, bins[j].label) and (i > 0 or j < len(bins) - 1 - column.missing)
    ]


def _joined(column: Ordered, first: Bin, last: Bin) -> Bin:
    """The values from the first of one bin to the last of another."""
    if first is last:
        return first
    assert first.ends is not None
    assert last.ends is not None
    ends = first.ends[0], last.ends[1]
    return _range(column, *map(int, ends)) if column.whole else _interval(column, *ends)


def texts_of_ends(column: Ordered, part: Bin) -> tuple[str, str]:
    """The first and the last value of a range as people read them."""
    assert part.ends is not None
    first, last = part.ends
    if column.whole:
        return _bare(column, int(first)), _bare(column, int(last))
    return _number(first), _number(last) if last == float(column.high) else f"below {_number(last)}"


def _ranges(column: Ordered, starts: Sequence[float]) -> list[Bin]:
    """Ranges of consecutive values; `starts` are the first values of all but the lowest."""
    firsts = [int(column.low), *(int(start) for start in starts)]
    if column.grid:
        before = column.figures_at(np.searchsorted(np.array(column.grid), np.array(starts)) - 1)
    else:
        before = np.array(starts) - int(column.step or 1)
    return [
        _range(column, first, last) for first, last in zip(firsts, [*map(int, before), int(column.high)], strict=True)
    ]


def _range(column: Ordered, first: int, last: int) -> Bin:
    name, ends = written_name(column.name), (float(first), float(last))
    (one, shown_one), (other, shown_other) = (_value(column, x) for x in (first, last))
    if first == last:
        return Bin(_bare(column, first), f"{name} = {shown_one}", _equal(column, one), ends)
    label = f"{_bare(column, first)} to {_bare(column, last)}"
    terms = Constant(0, one), Name(0, column.name), Constant(0, other)
    return Bin(label, f"{shown_one} <= {name} <= {shown_other}", Chain(0, terms, ("<=", "<=")), ends)


def _intervals(column: Ordered, starts: Sequence[float]) -> list[Bin]:
    """Intervals of numbers, each but the last without its upper end; `starts` are the lower ends of all but the
    lowest."""
    low, high = float(column.low), float(column.high)
    borders = [low, *sorted({start for start in starts if low < start < high}), high]
    return [_interval(column, first, last) for first, last in pairwise(borders)]


def _interval(column: Ordered, first: float, last: float) -> Bin:
    sign, to = ("<=", "to") if last == float(column.high) else ("<", "to below")
    terms = Constant(0, first), Name(0, column.name), Constant(0, last)
    text = f"{_number(first)} <= {written_name(column.name)} {sign} {_number(last)}"
    return Bin(f"{_number(first)} {to} {_number(last)}", text, Chain(0, terms, ("<=", sign)), (first, last))


def _value(column: Ordered, offset: int) -> tuple[float | str, str]:
    """A value of a column of whole numbers, dates or ranks: as a constant, and as text in a query."""
    if column.kind == "integer":
        return float(offset), str(offset)
    return _bare(column, offset), _quoted(_bare(column, offset))


def _bare(column: Ordered, offset: int) -> str:
    """A value as a label."""
    if column.clock is not None:
        return column.clock.text(offset)
    return column.values[offset] if column.kind == "ordinal" else str(offset)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _quoted(label: str) -> str:
    doubled = label.replace("'", "''")
    return f"'{doubled}'"
