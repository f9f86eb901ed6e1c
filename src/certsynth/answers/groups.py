"""Statistics of every group of rows: `mean(hours) by sex, employed` asks for each combination of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

from certsynth.answers.answer import Answer, Unanswered
from certsynth.answers.asking import evaluate, to_answer
from certsynth.answers.basis import Basis
from certsynth.answers.differences import evaluate_difference
from certsynth.answers.queries import Difference, Grouped, Query, written_name
from certsynth.answers.shares import UndefinedStatistic
from certsynth.answers.table_answer import Labels, TableAnswer
from certsynth.answers.tables import Bin, bins_of
from certsynth.domain import Ordered
from certsynth.domain.expression import And, BadExpression, Name, Node
from certsynth.errors import InputError

MAX_GROUPS = 500
"""Most groups of one query: each takes as long as a query of its own."""


def answer_groups(basis: Basis, grouped: Grouped, shown: str) -> TableAnswer:
    """Answer the query of each group, in the order of the schema's values."""
    rows: list[tuple[Labels, Answer | Unanswered]] = []
    hows, units, bound = Counter[str](), Counter[str](), 0.0
    for labels, query, text in split(basis, grouped):
        try:
            found = evaluate_difference(basis, query) if isinstance(query, Difference) else evaluate(basis, query)
        except UndefinedStatistic as error:
            rows.append((labels, Unanswered(text, str(error))))
            continue
        rows.append((labels, to_answer(basis, query, found, text)))
        hows[found.how] += 1
        units[found.unit] += 1
        bound = max(bound, found.bound)
    names = tuple(column.name for column in grouped.columns)
    how = f"for each group {hows.most_common(1)[0][0]}" if hows else "no group has an answer"
    unit = units.most_common(1)[0][0] if units else ""
    return TableAnswer(shown, names, tuple(rows), basis.confidence, how, bound, unit=unit, figure="estimate")


def split(basis: Basis, grouped: Grouped) -> Iterator[tuple[Labels, Query | Difference, str]]:
    """For each group its labels, the query that asks for it alone, and that query as text."""
    each = [_bins(basis, node) for node in grouped.columns]
    if (number := prod(map(len, each))) > MAX_GROUPS:
        raise InputError(
            f"there are {number:,} groups, and at most {MAX_GROUPS:,} are answered at once; leave out a column, or ask "
            "for single groups, like mean(income | region = 'hills')."
        )
    for cell in product(*each):
        labels = tuple(part.label for part in cell)
        if isinstance(grouped.query, Difference):
            first, second = (_within(query, cell) for query in grouped.queries)
            yield labels, replace(grouped.query, first=first[0], second=second[0]), f"{first[1]} - {second[1]}"
        else:
            yield labels, *_within(grouped.query, cell)


def _bins(basis: Basis, node: Name) -> list[Bin]:
    """The values of a grouping column: labels, or bands."""
    column = basis.columns[node.name]
    if isinstance(column, Ordered) and column.kind != "ordinal" and not column.bands:
        written = written_name(column.name)
        raise BadExpression(
            node.at,
            f"{column.name!r:.60} has no bands, so it makes no groups; ask for single groups, like "
            f"mean(… | {written:.60} < …), or release with `bands` for it in the schema.",
        )
    return bins_of(column, None)


def _within(query: Query, cell: tuple[Bin, ...]) -> tuple[Query, str]:
    """The query within one group, and its text. The number of rows in a group is that of rows that satisfy both its
    condition and that of the query."""
    text = " and ".join(part.text for part in cell)
    if query.statistic == "count":
        joined = And(0, (query.arguments[0], *(part.condition for part in cell)))
        return replace(query, arguments=(joined,)), f"count(({query.arguments_text}) and {text})"
    conditions: tuple[Node, ...] = tuple(part.condition for part in cell)
    if query.group is not None:
        conditions, text = (query.group, *conditions), f"({query.group_text}) and {text}"
    group = conditions[0] if len(conditions) == 1 else And(0, conditions)
    return replace(query, group=group), f"{query.statistic}({query.arguments_text} | {text})"
