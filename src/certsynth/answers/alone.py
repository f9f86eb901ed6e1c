"""The numbers of a certificate that one question uses, if it is asked alone.

Noise affects one number less than the largest of several, so an interval that rests on few numbers is narrower at the
same confidence. That holds only if the numbers are chosen without looking at them: here they follow from the question
and the schema.
"""

from __future__ import annotations

from collections.abc import Iterable

from certsynth.answers import queries
from certsynth.answers.basis import Basis
from certsynth.answers.queries import Difference, Query, names
from certsynth.domain import Category
from certsynth.domain.expression import Node
from certsynth.domain.meaning import Reader

LOSS, LOSS_OF_ONE_COLUMN = "loss", "loss_of_one_column"
SHARE_1, SHARE_2, GROUP_TOTAL, MOMENT = "share_of_one_column", "share_of_two_columns", "group_total", "moment"
"""Numbers that are measured for a certificate: losses, and errors by their names in the record."""

NUMBERS = (LOSS, LOSS_OF_ONE_COLUMN, SHARE_1, SHARE_2, GROUP_TOTAL, MOMENT)

_CONDITIONS = ("fraction", "count")
_SHARES = (*_CONDITIONS, "cdf", "table", "histogram")


def numbers_for_text(basis: Basis, text: str) -> frozenset[str]:
    """The numbers that the answer to a query uses. For a text that is no query it does not matter: its answer is an
    error."""
    if not isinstance(text, str):
        return frozenset({LOSS})
    try:
        query = queries.parse(text)
        queries.check_names(query, basis.schema.names)
        return numbers_for_query(basis, query)
    except queries.BadExpression:
        return frozenset({LOSS})


def numbers_for_query(basis: Basis, query: Query | Difference) -> frozenset[str]:
    """The numbers that the answer to a query uses: a difference uses those of both statistics."""
    if isinstance(query, Difference):
        return numbers_for_query(basis, query.first) | numbers_for_query(basis, query.second)
    parts = [*query.arguments, *([query.group] if query.group is not None else [])]
    columns = {node.name for part in parts for node in names(part)}
    if len(columns) > 2 or not _has_boxes(basis, query):
        return frozenset({LOSS})
    pair, grouped = len(columns) == 2, query.group is not None
    missing = any(basis.columns[name].missing for name in columns)
    return _existing(basis, _wanted(basis, query, pair=pair, grouped=grouped, missing=missing))


def numbers_for_function(basis: Basis, columns: Iterable[str]) -> frozenset[str]:
    """The numbers that the average of a function of these columns uses."""
    return _existing(basis, {LOSS_OF_ONE_COLUMN} if len(set(columns)) == 1 else {LOSS})


def _wanted(basis: Basis, query: Query, *, pair: bool, grouped: bool, missing: bool) -> set[str]:
    loss = {LOSS} if pair else {LOSS_OF_ONE_COLUMN}  # a share of labels is a smooth statistic
    one = {LOSS_OF_ONE_COLUMN} if grouped and _are_labels(basis, (query.group,)) else {SHARE_1}
    shares = one | {SHARE_2} if pair else {SHARE_1}
    if query.statistic in _SHARES:
        if _are_labels(basis, (*query.arguments, query.group)):
            return loss
        return shares if grouped or not pair else {SHARE_2}
    if query.statistic in ("mean", "sum"):
        if _are_labels(basis, query.arguments):
            return loss
        if grouped:
            return one | {GROUP_TOTAL} if pair else {SHARE_1}
        return {LOSS_OF_ONE_COLUMN, MOMENT} | ({SHARE_1} if missing else set())
    if query.statistic in ("quantile", "median"):
        return shares
    if grouped:
        return {*NUMBERS}  # those of the group's share, of its means and of its deviations
    return {MOMENT} | (shares if missing else set())


def _are_labels(basis: Basis, parts: Iterable[Node | None]) -> bool:
    """Whether all columns have labels at full distance from each other."""
    columns = [basis.columns[node.name] for part in parts if part is not None for node in names(part)]
    return all(isinstance(column, Category) and column.min_label_distance == 1 for column in columns)


def _has_boxes(basis: Basis, query: Query) -> bool:
    """Whether conditions compare single columns with constants: only those are certified as shares."""
    reader = Reader(list(basis.schema))
    conditions = [*(query.arguments if query.statistic in _CONDITIONS else ())]
    conditions += [query.group] if query.group is not None else []
    return all(basis.nearness.boxes(reader.condition(node)) is not None for node in conditions)


def _existing(basis: Basis, wanted: Iterable[str]) -> frozenset[str]:
    """The wanted numbers; the loss in place of those that the certificate does not have."""
    known, single = basis.certificate.statistics, basis.certificate.single_column
    losses = {LOSS, LOSS_OF_ONE_COLUMN} if single is not None else {LOSS}
    there = losses | {name for name in NUMBERS[2:] if getattr(known, name, None) is not None}
    return frozenset(name if name in there else LOSS for name in wanted)
