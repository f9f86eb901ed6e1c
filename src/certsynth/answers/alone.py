"""The numbers of a certificate that one question uses, if it is asked alone.

Noise affects one number less than the largest of several, so an interval that rests on few numbers is narrower at the
same confidence. That holds only if the numbers are chosen without looking at them: here they follow from the question
and the schema.
"""

from __future__ import annotations

from collections.abc import Iterable

from certsynth.answers import queries
from certsynth.answers.basis import Basis
from certsynth.answers.groups import split
from certsynth.answers.queries import Difference, Grouped, Query, names
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.condition import Condition, Missing
from certsynth.domain.expression import Name, Node
from certsynth.domain.meaning import Reader
from certsynth.errors import InputError
from certsynth.queries.statistics import has_bands

LOSS, LOSS_OF_ONE_COLUMN = "loss", "loss_of_one_column"
SHARE_1, SHARE_2, GROUP_TOTAL, MOMENT = "share_of_one_column", "share_of_two_columns", "group_total", "moment"
"""Numbers that are measured for a certificate: losses, and errors by their names in the record."""

NUMBERS = (LOSS, LOSS_OF_ONE_COLUMN, SHARE_1, SHARE_2, GROUP_TOTAL, MOMENT)

_BANDS = {SHARE_1: "band_of_one_column", SHARE_2: "band_of_two_columns"}
"""Errors of shares whose borders are those of bands, which are smaller."""

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
        if isinstance(query, Grouped):
            return frozenset[str]().union(*(numbers_for_query(basis, each) for _, each, _ in split(basis, query)))
        return numbers_for_query(basis, query)
    except InputError:
        return frozenset({LOSS})


def numbers_for_query(basis: Basis, query: Query | Difference) -> frozenset[str]:
    """The numbers that the answer to a query uses: a difference uses those of both statistics."""
    if isinstance(query, Difference):
        return numbers_for_query(basis, query.first) | numbers_for_query(basis, query.second)
    parts = [*query.arguments, *([query.group] if query.group is not None else [])]
    columns = {node.name for part in parts for node in names(part)}
    reader = Reader(list(basis.schema))
    conditions = [reader.condition(node) for node in query.arguments] if query.statistic in _CONDITIONS else []
    group = None if query.group is None else reader.condition(query.group)
    conditions += [] if group is None else [group]
    if len(columns) > 2 or any(basis.nearness.boxes(each) is None for each in conditions):
        return frozenset({LOSS})  # only conditions that compare one or two columns with constants are certified
    smooth = all(_is_smooth(basis, each) for each in conditions)
    if query.statistic not in _CONDITIONS:
        smooth = smooth and all(_has_plain_labels(basis.columns[node.name]) for node in _columns(query.arguments))
    found = _existing(basis, _wanted(basis, query, group, pair=len(columns) == 2, smooth=smooth))
    if not any(has_bands(basis.columns[name]) for name in columns):
        return found
    return found | {band for share, band in _BANDS.items() if share in found and _is_certified(basis, band)}


def numbers_for_function(basis: Basis, columns: Iterable[str]) -> frozenset[str]:
    """The numbers that the average of a function of these columns uses."""
    return _existing(basis, {LOSS_OF_ONE_COLUMN} if len(set(columns)) == 1 else {LOSS})


def _wanted(basis: Basis, query: Query, group: Condition | None, *, pair: bool, smooth: bool) -> set[str]:
    """Numbers for a statistic of one column or of a `pair`. Shares are `smooth` if any change of the condition is a
    change by 1 in the distance: then the loss bounds them best."""
    one = {LOSS_OF_ONE_COLUMN} if group is not None and _is_smooth(basis, group) else {SHARE_1}
    shares = one | {SHARE_2} if pair else {SHARE_1}
    if query.statistic in _SHARES or (query.statistic == "mean" and _is_label(basis, query.arguments[0])):
        if smooth:
            return {LOSS} if pair else {LOSS_OF_ONE_COLUMN}
        return shares if group is not None or not pair else {SHARE_2}
    missing = any(basis.columns[node.name].missing for node in _columns(query.arguments))
    loss = {LOSS, LOSS_OF_ONE_COLUMN} if pair else {LOSS_OF_ONE_COLUMN}
    if query.statistic in ("mean", "sum"):
        several = len(_columns(query.arguments)) > 1
        if group is not None or (several and missing):  # rows with values in all columns are a group
            return {LOSS, GROUP_TOTAL} | shares if pair else loss | shares
        if any(_is_by_ratios(basis.columns[node.name]) for node in _columns(query.arguments)):
            return {LOSS_OF_ONE_COLUMN, SHARE_1}
        return {LOSS_OF_ONE_COLUMN, MOMENT} | ({SHARE_1} if missing else set())
    if query.statistic in ("quantile", "median"):
        return shares | ({LOSS} if pair else loss)
    if group is not None:
        return {*NUMBERS}  # those of the group's share, of its means and of its deviations
    return {MOMENT, SHARE_1} | loss | (shares if missing else set())


def _columns(parts: Iterable[Node]) -> list[Name]:
    return [node for part in parts for node in names(part)]


def _is_by_ratios(column: Column) -> bool:
    return isinstance(column, Ordered) and bool(column.grid)


def _is_label(basis: Basis, node: Node) -> bool:
    return isinstance(node, Name) and isinstance(basis.columns[node.name], Category)


def _has_plain_labels(column: Column) -> bool:
    """Whether any two values are at distance 1."""
    return isinstance(column, Category) and column.min_label_distance == 1


def _is_smooth(basis: Basis, condition: Condition) -> bool:
    """Whether rows that satisfy the condition are at distance 1 from all others: it is about labels and missing values
    only."""
    return all(
        _has_plain_labels(column) or (isinstance(atom, Missing) and column.weight == 1)
        for atom in condition.atoms()
        for column in (basis.columns[name] for name in atom.names)
    )


def _existing(basis: Basis, wanted: Iterable[str]) -> frozenset[str]:
    """The wanted numbers; the loss in place of those that the certificate does not have."""
    losses = {LOSS, LOSS_OF_ONE_COLUMN} if basis.certificate.single_column is not None else {LOSS}
    there = losses | {name for name in NUMBERS[2:] if _is_certified(basis, name)}
    return frozenset(name if name in there else LOSS for name in wanted)


def _is_certified(basis: Basis, name: str) -> bool:
    """Whether the certificate bounds the error of this name: that depends on the schema alone."""
    return getattr(basis.certificate.statistics, name, None) is not None
