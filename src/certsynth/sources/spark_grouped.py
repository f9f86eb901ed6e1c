"""Accept Spark plans that make one row of each person: one aggregation by the column that names persons.

As in `sources/grouped.py`, aggregates are listed with the types for which no order of rows can change their result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.sources.grouped import Refuse, refuse_other_persons

_INTEGERS = "tinyint|smallint|int|bigint"
_DECIMALS = r"decimal\((\d|1\d|2[0-8]),\d+\)"
"""Decimals whose sums have ten more digits: those of more than 28 digits could overflow in some orders of rows only."""

_ORDERED = rf"{_INTEGERS}|decimal\(\d+,\d+\)|boolean|date|timestamp|timestamp_ntz|string"
EXACT_TYPES: dict[str, str] = {
    "Count": ".*",
    "CountIf": "boolean",
    "Sum": f"{_INTEGERS}|{_DECIMALS}",
    "Min": _ORDERED,
    "Max": _ORDERED,
    "Median": _INTEGERS,
    "Percentile": _INTEGERS,
    "BoolAnd": "boolean",
    "BoolOr": "boolean",
}
"""Aggregates of Spark by class, and a pattern of the types of their first argument. `string` has no collation."""

_NUMBERS = ("float", "double", "decimal")
_KEY = "Group by the column that names persons alone, and select it."


def refuse_other_groups(plan: Any, nodes: Sequence[Any], persons: Persons, where: str) -> None:
    """Refuse a plan with an aggregation unless it is by the column that names persons, with listed aggregates."""
    found = [node for node in nodes if class_name(node) == "Aggregate"]
    if not found:
        return
    if len(found) > 1:
        raise InputError(f"{where}: it has several aggregations, and one person could change many rows. {_KEY}")

    def refuse(found: str, why: str = "", remedy: str = "") -> InputError:
        return InputError(f"{where}: it has {found}, and {why}. {remedy}")

    refuse_other_persons(persons, refuse)
    keys = list(each(found[0].groupingExpressions()))
    if len(keys) != 1 or class_name(keys[0]) != "AttributeReference":
        raise refuse("other keys than one column", "one person could change many rows of the result", _KEY)
    if not re.fullmatch(_ORDERED, kind := str(keys[0].dataType().catalogString())):
        why = "different values of it may count as equal"
        raise refuse(f"a key of type {kind.partition('(')[0]}", why, "Cast it to a whole number or a text first.")
    names = [attribute for attribute in each(plan.output()) if str(attribute.name()) == persons.column]
    if len(names) != 1 or _origin(names[0], nodes) != _identity(keys[0]):
        remedy = f"Select the column that it groups by, under the name {persons.column!r}."
        raise refuse("GROUP BY", f"its result does not have the key of each group as {persons.column!r}", remedy)
    for expression in each(found[0].aggregateExpressions()):
        for aggregate in _aggregates(expression):
            _refuse_inexact(aggregate.aggregateFunction(), refuse, distinct=bool(aggregate.isDistinct()))


def _refuse_inexact(function: Any, refuse: Refuse, *, distinct: bool) -> None:
    name, shown = class_name(function), str(function.prettyName())
    if name == "Average":
        why = "its last digits may depend on how rows are partitioned"
        raise refuse(f"the aggregate {shown}", why, "Write sum(…) / count(…), with values cast to DECIMAL(18, 4).")
    if name not in EXACT_TYPES or shown.startswith("try_"):
        why = "its result may depend on how rows are partitioned"
        raise refuse(
            f"the aggregate {shown}", why, "Use count, sum, min, max, median, percentile, bool_and or bool_or."
        )
    for argument in list(each(function.children()))[:1]:
        kind = str(argument.dataType().catalogString())
        if not re.fullmatch(_ORDERED if distinct and name == "Count" else EXACT_TYPES[name], kind):
            numeric = kind.startswith(_NUMBERS) and name in ("Count", "Sum", "Min", "Max")
            remedy = f"Write {shown}(CAST(… AS DECIMAL(18, 4)))." if numeric else "Cast the values to another type."
            why = "its result may depend on how rows are partitioned"
            raise refuse(f"{shown} of values of type {kind.partition('(')[0]}", why, remedy)


def _aggregates(expression: Any) -> Iterator[Any]:
    if class_name(expression) == "AggregateExpression":
        yield expression
    for child in each(expression.children()):
        yield from _aggregates(child)


def _origin(attribute: Any, nodes: Sequence[Any]) -> int:
    """The identity of the attribute that this one is another name for."""
    renamed = {
        _identity(expression): _identity(expression.child())
        for node in nodes
        for expression in each(node.expressions())
        if class_name(expression) == "Alias" and class_name(expression.child()) == "AttributeReference"
    }
    found = _identity(attribute)
    for _ in renamed:
        found = renamed.get(found, found)
    return found


def _identity(attribute: Any) -> int:
    return int(attribute.exprId().id())


def each(sequence: Any) -> Iterator[Any]:
    """Iterate over a Scala sequence."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def class_name(thing: Any) -> str:
    return str(thing.getClass().getSimpleName()).rstrip("$")
