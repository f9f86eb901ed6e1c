"""Accept DuckDB queries that make one row of each person: GROUP BY the column that names persons, exact aggregates.

Then a row of the result depends on the rows of one person, and on nothing else. Aggregates are listed with the types
for which they are functions of the set of values alone: sums of floats depend on the order in which threads add them,
and so on other persons' rows. docs/explanation/proofs/grouped.md has the proof.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from certsynth.domain.persons import Persons
from certsynth.errors import InputError

Tree = dict[str, Any]

_INTEGERS = r"U?(TINYINT|SMALLINT|INTEGER|BIGINT)"
_DECIMALS = r"DECIMAL\(\d+, ?\d+\)"
_TIMES = r"DATE|TIME|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE"
_ORDERED = rf"{_INTEGERS}|{_DECIMALS}|{_TIMES}|U?HUGEINT|BOOLEAN|VARCHAR|UUID"

EXACT_TYPES: dict[str, str] = {
    "count_star": "",
    "count": ".*",
    "count_if": "BOOLEAN",
    "countif": "BOOLEAN",
    "sum": f"{_INTEGERS}|{_DECIMALS}|BOOLEAN",
    "min": _ORDERED,
    "max": _ORDERED,
    "median": f"{_INTEGERS}|{_DECIMALS}|DATE|TIMESTAMP",
    "quantile_cont": f"{_INTEGERS}|{_DECIMALS}|DATE|TIMESTAMP",
    "quantile_disc": f"{_INTEGERS}|{_DECIMALS}|DATE|TIMESTAMP",
    "bool_and": "BOOLEAN",
    "bool_or": "BOOLEAN",
    "bit_and": _INTEGERS,
    "bit_or": _INTEGERS,
    "bit_xor": _INTEGERS,
}
"""Aggregates, and a pattern of the types of their argument for which any order of rows gives the same result."""

_NUMBERS = frozenset({"FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT"})
_DISTINCT = frozenset({"count", "sum", "min", "max"})
_WITH_SHARE = frozenset({"quantile_cont", "quantile_disc"})
_MEANS = frozenset({"avg", "mean"})
_COLLATED = re.compile(r"__collated_group|\barg_(min|max)\(")
"""Signs in a plan of texts that are equal without being the same: then the first one read is taken."""

_NULL: Tree = {
    "class": "CONSTANT",
    "type": "VALUE_CONSTANT",
    "alias": "",
    "query_location": 0,
    "query_location_length": 0,
    "literal": {"kind": "NULL_LITERAL", "text": ""},
}

EXACT_AGGREGATES = "count, sum, min, max, median, quantile_cont, quantile_disc, bool_and or bool_or"


class Refuse(Protocol):
    def __call__(self, found: str, why: str = ..., remedy: str = ...) -> InputError: ...


@dataclass(frozen=True, slots=True)
class Grouping:
    """A query that groups by the column that names persons, taken apart into what is computed before and after.

    `rows` selects the key and all arguments and filters of aggregates: a query without aggregates. `result` has all
    expressions over the groups, with a constant in place of each aggregate.
    """

    rows: Tree
    result: list[Any]
    aggregates: tuple[Tree, ...]

    @property
    def names(self) -> set[str]:
        return {_name(each) for each in self.aggregates}


def is_grouped(node: Tree) -> bool:
    return node.get("type") == "SELECT_NODE" and bool(node["group_expressions"] or node["group_sets"])


def take_apart(node: Tree, persons: Persons, known: Collection[str], refuse: Refuse) -> Grouping:
    """Take a grouped SELECT apart. Refuse all keys but the column that names persons, and aggregates not listed."""
    wanted = "one person could change many rows of the result"
    refuse_other_persons(persons, refuse)
    keys = node["group_expressions"]
    remedy = f"Group by the column of {persons.column!r} alone."
    if len(keys) != 1 or node["group_sets"] != [[0]]:
        raise refuse("several groupings or keys of GROUP BY", wanted, remedy)
    if keys[0]["class"] != "COLUMN_REF":
        raise refuse("a GROUP BY that does not name a column", "only a column can name persons", remedy)
    _refuse_other_names(node["select_list"], keys[0], persons, refuse)
    found: list[Tree] = []

    def without(tree: Any) -> Any:
        if isinstance(tree, list):
            return [without(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        if tree.get("class") == "FUNCTION" and _name(tree) in known:
            found.append(tree)
            return _NULL
        return {key: without(value) for key, value in tree.items()}

    result = [without(node[part]) for part in ("select_list", "having", "modifiers")]
    for each in found:
        _refuse_inexact_forms(each, refuse)
    values = [argument["expression"] for each in found for argument in each["arguments"]]
    filters = [each["filter"] for each in found if each["filter"]]
    if any(part.get("class") in ("STAR", "COLLATE") for part in _parts([result, values, filters])):
        raise refuse("*, COLUMNS or COLLATE with GROUP BY", "it cannot be analysed", "Name the columns, as they are.")
    rows = {**node, "modifiers": [], "group_expressions": [], "group_sets": [], "having": None}
    rows["select_list"] = [{**each, "alias": ""} for each in (keys[0], *values, *filters)]
    return Grouping(rows, result, tuple(found))


def refuse_other_persons(persons: Persons, refuse: Refuse) -> None:
    """Refuse to group by persons of several rows, and rows without a person that would become one row."""
    if persons.rows != 1:
        raise refuse("GROUP BY", "it gives each person a single row", "Let rows_per_person be 1: noise grows with it.")
    if persons.missing != "drop":
        why = "all rows without a person would become one row"
        raise refuse("GROUP BY", why, "Let missing_person be 'drop', or give such rows an id first.")


def refuse_inexact_types(grouping: Grouping, ask: Callable[[str], list[tuple[Any, ...]]], refuse: Refuse) -> None:
    """Refuse aggregates over types for which they depend on the order of rows. Only types are looked up."""
    document = json.dumps({"error": False, "statements": [{"node": grouping.rows}]}).replace("'", "''")
    ((sql,),) = ask(f"SELECT json_deserialize_sql('{document}')")
    key, *types = (str(about[1]) for about in ask(f"DESCRIBE {sql}"))
    if not re.fullmatch(_ORDERED, key):
        why = "different values of it may count as equal"
        raise refuse(
            f"a key of type {key.partition('(')[0]}", why, "Cast it to a whole number or a text, in a subquery."
        )
    for each in grouping.aggregates:
        name = _name(each)
        arguments, types = types[: len(each["arguments"])], types[len(each["arguments"]) :]
        allowed = _ORDERED if name == "count" and each["distinct"] else EXACT_TYPES[name]
        if arguments and not re.fullmatch(allowed, arguments[0]):
            kind = arguments[0].partition("(")[0]
            why = "its result may depend on the order in which rows are read"
            remedy = (
                f"Write {name}(CAST(… AS DECIMAL(18, 4)))." if kind in _NUMBERS else "Cast the values to another type."
            )
            raise refuse(f"{name} of values of type {kind}", why, remedy)


def refuse_collations(plan: str, where: str) -> None:
    """Refuse the plan of a grouped query in which different texts count as equal."""
    if _COLLATED.search(plan):
        why = "which of several texts that count as equal it gives depends on the order of rows"
        raise InputError(f"{where}: it groups or compares texts by a collation, and {why}. Store them without one.")


def _refuse_other_names(items: list[Tree], key: Tree, persons: Persons, refuse: Refuse) -> None:
    """Refuse a result in which the column that names persons is not the key, or where an alias hides the key."""
    called = [name.casefold() for name in key["column_names"]]
    found = []
    for item in items:
        is_key = item["class"] == "COLUMN_REF" and [name.casefold() for name in item["column_names"]] == called
        name = item["alias"] or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else "")
        if name.casefold() in (persons.column.casefold(), called[-1]) and not is_key:
            raise refuse(f"something else under the name {name!r}", "that column names persons", "Choose another name.")
        found += [is_key and name.casefold() == persons.column.casefold()]
    if sum(found) != 1:
        remedy = f"Select the column that it groups by, under the name {persons.column!r}."
        raise refuse("GROUP BY", f"its result does not have the key of each group as {persons.column!r}", remedy)


def _refuse_inexact_forms(aggregate: Tree, refuse: Refuse) -> None:
    name, arguments = _name(aggregate), aggregate["arguments"]
    if name in _MEANS:
        why = "how DuckDB rounds it depends on other rows"
        raise refuse(f"the aggregate {name}", why, "Write sum(…) / count(…), which is exact until it divides.")
    if name not in EXACT_TYPES or len(aggregate["qualified_name"]["path"]) != 1:
        why = "its result may depend on the order of rows"
        raise refuse(f"the aggregate {name}", why, f"Use {EXACT_AGGREGATES}.")
    if aggregate["order_bys"]["orders"] or aggregate["export_state"]:
        raise refuse(f"ORDER BY inside {name}", "rows have no order that can be relied on", "Leave it out.")
    if aggregate["distinct"] and name not in _DISTINCT:
        raise refuse(f"DISTINCT inside {name}", "it cannot be analysed", "Leave it out.")
    most = 0 if name == "count_star" else 2 if name in _WITH_SHARE else 1
    share_is_fixed = most < 2 or (len(arguments) == 2 and arguments[1]["expression"]["class"] == "CONSTANT")
    if len(arguments) != most or any(each["name"] for each in arguments) or not share_is_fixed:
        raise refuse(
            f"other arguments of {name}", "it cannot be analysed", "Give it a value, and a quantile a constant."
        )


def _name(function: Tree) -> str:
    return str(function["function_name"]).lower()


def _parts(tree: Any) -> Iterator[Tree]:
    if isinstance(tree, dict):
        yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _parts(inner)
