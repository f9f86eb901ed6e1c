"""Parse queries such as `mean(age)` or `fraction(age > 65 and region = "hills")`. Nothing is executed.

The arguments are in the language of rules (`certsynth.domain.expression`); this module parses what surrounds them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from certsynth.domain import expression
from certsynth.domain.expression import MAX_CHARACTERS, BadExpression, Node, list_names

_HEAD = re.compile(r"[ \t\r\n]*([^\W\d]\w*)[ \t\r\n]*\(")
_WORD = re.compile(r"[^\W\d]\w*")
_PIECE = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|[^\W\d]\w*|\d\w*|.", re.DOTALL)
"""A token. A doubled quote inside a text matches as two adjacent texts, which is equivalent here."""


MAX_TABLE_ARGUMENTS = 16
MAX_GROUPING_COLUMNS = 2
GROUPS_EXAMPLE = "mean(income) by sex, employed"
DIFFERENCE_EXAMPLE = "mean(income | sex = 'f') - mean(income | sex = 'm')"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
"""Dashes and the typographical minus, which word processors put in place of `-`."""
_OPERATORS = "-+*/" + _DASHES
_BY = re.compile(r"[ \t\r\n]*(by)(?!\w)", re.IGNORECASE)
_GROUPING_COLUMN = re.compile(r"[ \t\r\n]*(?:([^\W\d]\w*)|`((?:[^`]|``)*)`)[ \t\r\n]*(,|$)")
_ALIASES = {
    "avg": "mean", "average": "mean", "std": "sd", "stdev": "sd", "stddev": "sd", "var": "variance",
    "cov": "covariance", "corr": "correlation", "percentile": "quantile", "share": "fraction",
    "proportion": "fraction", "crosstab": "table", "hist": "histogram",
}  # fmt: skip
"""Names of statistics in other languages that are too different from ours to be found by their spelling."""


@dataclass(frozen=True, slots=True)
class Form:
    """The arguments that a statistic takes. The last one may be left out or repeated, so that there are at least
    `least` and at most `most` of them; by default exactly those that are listed. `cells`: the answer is a table."""

    arguments: tuple[str, ...]
    example: str
    grouped: bool = False
    cells: bool = False
    least: int | None = None
    most: int | None = None

    def fits(self, number: int) -> bool:
        """Whether this number of arguments is allowed."""
        listed = len(self.arguments)
        least, most = (listed if end is None else end for end in (self.least, self.most))
        return least <= number <= most


FORMS: Mapping[str, Form] = {
    "mean": Form(("a column",), "mean(age)", grouped=True),
    "sum": Form(("a column",), "sum(income)"),
    "variance": Form(("a column",), "variance(age)", grouped=True),
    "sd": Form(("a column",), "sd(age)", grouped=True),
    "covariance": Form(("a column", "a column"), "covariance(age, income)", grouped=True),
    "correlation": Form(("a column", "a column"), "correlation(age, income)", grouped=True),
    "cdf": Form(("a column", "a value"), "cdf(age, 42)"),
    "fraction": Form(("a condition",), "fraction(age > 65)", grouped=True),
    "count": Form(("a condition",), "count(age > 65)"),
    "quantile": Form(("a column", "a share"), "quantile(age, 0.9)", grouped=True),
    "median": Form(("a column",), "median(age)", grouped=True),
    "table": Form(
        ("one or more columns",), "table(region, employed)", grouped=True, cells=True, least=1, most=MAX_TABLE_ARGUMENTS
    ),
    "histogram": Form(
        ("a column", "optionally a number of bins"), "histogram(age, 10)", grouped=True, cells=True, least=1
    ),
}


@dataclass(frozen=True, slots=True)
class Query:
    """A statistic, its arguments, and the condition for its group of rows (None: all rows)."""

    statistic: str
    arguments: tuple[Node, ...]
    group: Node | None = None
    group_text: str = field(default="", compare=False)
    arguments_text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first statistic minus the second, which begins at character `at`."""

    first: Query
    second: Query
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A statistic, or the difference of two, in each group of rows with the same values of `columns`."""

    query: Query | Difference
    columns: tuple[expression.Name, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        return (self.query,) if isinstance(self.query, Query) else (self.query.first, self.query.second)


def parse(text: str) -> Query | Difference | Grouped:
    """Parse a query, or raise `BadExpression`.

    >>> parse("mean(income | age > 65)").statistic
    'mean'
    >>> parse("mean(income) - median(income)").second.statistic
    'median'
    """
    if len(text) > MAX_CHARACTERS:
        raise BadExpression(MAX_CHARACTERS, f"longer than {MAX_CHARACTERS:,} characters; shorten the query.")
    head = _HEAD.match(text)
    if head is None:
        raise BadExpression(
            0,
            f"a query is a statistic and its arguments, like mean(age); the statistics are {', '.join(FORMS)}.",
        )
    query, end = _statistic_or_difference(text, head)
    if (by := _BY.match(text, end)) is not None:
        grouped = Grouped(query, _grouping_columns(text, by.end()))
        for each in grouped.queries:
            _check_grouping(each, by.start(1))
        return grouped
    sign, at = _next_character(text, end)
    if sign and sign in _OPERATORS and isinstance(query, Difference):
        raise BadExpression(at, "a difference has two statistics; ask for the others in queries of their own.")
    if sign:
        raise BadExpression(at if sign in _OPERATORS else end, _after_a_statistic(text[at:]))
    return query


def _statistic_or_difference(text: str, head: re.Match[str]) -> tuple[Query | Difference, int]:
    """Parse one or two statistics; return the result and the position after it."""
    first, end = _statistic(text, head)
    sign, at = _next_character(text, end)
    if sign != "-":
        return first, end
    _refuse_cells(first, head.start(1))
    other = _HEAD.match(text, at + 1)
    if other is None:
        raise BadExpression(at + 1, f"a statistic must follow '-', like {DIFFERENCE_EXAMPLE}.")
    second, end = _statistic(text, other)
    _refuse_cells(second, other.start(1))
    return Difference(first, second, other.start(1)), end


def _grouping_columns(text: str, start: int) -> tuple[expression.Name, ...]:
    """The names after `by`, separated by commas."""
    found: list[expression.Name] = []
    more = True
    while more:
        name = _GROUPING_COLUMN.match(text, start)
        if name is None:
            raise BadExpression(
                start,
                f"one or two columns follow 'by', and nothing else, like {GROUPS_EXAMPLE}; a condition belongs inside "
                "the brackets, like mean(income | age > 65) by sex.",
            )
        at = name.start(1) if name[1] is not None else name.start(2) - 1
        found.append(expression.Name(at, name[1] if name[1] is not None else name[2].replace("``", "`")))
        start, more = name.end(), bool(name[3])
    if len(found) > MAX_GROUPING_COLUMNS:
        at = found[MAX_GROUPING_COLUMNS].at
        raise BadExpression(at, f"groups have at most {MAX_GROUPING_COLUMNS} columns; put others into a condition.")
    if len({each.name for each in found}) < len(found):
        raise BadExpression(found[1].at, f"{found[1].name!r:.60} is named twice; name each column once.")
    return tuple(found)


def _check_grouping(query: Query, at: int) -> None:
    """Refuse `by` after statistics that have no groups."""
    form = FORMS[query.statistic]
    if form.cells:
        raise BadExpression(
            at, f"{query.statistic} has cells instead of groups; name all columns in it, like table(region, sex)."
        )
    if not form.grouped and query.statistic != "count":
        instead = "; ask for fraction(age <= 42) by sex" if query.statistic == "cdf" else ""
        raise BadExpression(at, f"{_no_groups(query.statistic, 'count')}, like {GROUPS_EXAMPLE}{instead}.")


def _no_groups(statistic: str, *more: str) -> str:
    can = ", ".join([*(each for each, known in FORMS.items() if known.grouped and not known.cells), *more])
    return f"{statistic} does not support groups; {can} do"


def _next_character(text: str, start: int) -> tuple[str, int]:
    """The next character that is not a space, and its position; an empty text at the end."""
    rest = text[start:].lstrip()
    return rest[:1], len(text) - len(rest)


def _after_a_statistic(rest: str) -> str:
    """What to write instead of this text after the closing bracket of a statistic."""
    sign = rest[:1]
    if sign in _DASHES:
        return "this dash is not a minus; write '-'."
    if sign == "+":
        return (
            "statistics cannot be added, only subtracted; ask for each in a query of its own, or for the mean of a "
            "sum, like mean(income + rent)."
        )
    if sign in "*/":
        return (
            "statistics cannot be multiplied or divided, only subtracted; ask for each in a query of its own, or for a "
            "share within a group, like fraction(employed | age > 65)."
        )
    word = _WORD.match(rest)
    if word and word[0].lower() in ("group", "grouped", "per"):
        return f"write groups as 'by' and their columns, like {GROUPS_EXAMPLE}."
    if sign == "|" or (word and word[0].lower() in ("where", "if", "when", "for")):
        return "a condition belongs inside the brackets, like mean(income | age > 65)."
    return (
        f"a query ends with its closing bracket, or with groups, like {GROUPS_EXAMPLE}; write several queries as "
        "several texts."
    )


def _refuse_cells(query: Query, at: int) -> None:
    if FORMS[query.statistic].cells:
        raise BadExpression(
            at,
            f"{query.statistic} has many cells, which cannot be subtracted; subtract shares, like "
            "fraction(employed | age > 65) - fraction(employed | age <= 65).",
        )


def _statistic(text: str, head: re.Match[str]) -> tuple[Query, int]:
    """Parse one statistic that begins with `head`; return it and the position after its closing bracket."""
    name = head[1].lower()
    if name not in FORMS:
        meant = f"; did you mean {_ALIASES[name]!r}?" if name in _ALIASES else f"{name_suggestion(name, FORMS)}."
        raise BadExpression(head.start(1), f"{head[1]!r:.60} is not a statistic{meant}")
    form = FORMS[name]
    body, end = _inside(text, head.end())
    (*pieces,), group = body
    if not form.fits(len(pieces)) or not all(text[a:b].strip() for a, b in pieces):
        raise BadExpression(head.end(), f"{name} takes {' and '.join(form.arguments)}, like {form.example}.")
    if group is not None and not form.grouped:
        raise BadExpression(group[0], f"{_no_groups(name)}, like mean(income | age > 65).")
    if group is not None and not text[slice(*group)].strip():
        raise BadExpression(group[0], "a condition must follow, like mean(income | age > 65).")
    arguments = tuple(_read(text, a, b) for a, b in pieces)
    shown = " ".join(text[pieces[0][0] : pieces[-1][1]].split())
    if group is None:
        return Query(name, arguments, arguments_text=shown), end
    return Query(name, arguments, _read(text, *group), " ".join(text[slice(*group)].split()), shown), end


def _read(text: str, start: int, end: int) -> Node:
    """Parse a part of the text. Leading spaces keep its character positions."""
    return expression.parse(" " * start + text[start:end])


def _inside(text: str, start: int) -> tuple[tuple[list[tuple[int, int]], tuple[int, int] | None], int]:
    """Positions of the arguments and of the group, and the position after the closing bracket."""
    places: list[tuple[int, int]] = []
    group, depth, begun, at = None, 0, start, start
    while at < len(text):
        found = _PIECE.match(text, at)
        assert found is not None  # matches anything
        piece, at = found.group(), found.end()
        if piece in ("(", "["):
            depth += 1
        elif piece in (")", "]") and depth:
            depth -= 1
        elif piece == ")":
            return (([*places, (begun, at - 1)], None) if group is None else (places, (group, at - 1))), at
        elif piece in ("|", "where") and not depth and group is None:
            places.append((begun, at - len(piece)))
            group = at
        elif piece == "," and not depth and group is None:
            places.append((begun, at - 1))
            begun = at
    raise BadExpression(len(text), "')' is missing: a query ends with its closing bracket.")


def names(node: Node) -> Iterator[expression.Name]:
    """Yield the column names in a part of a query."""
    if isinstance(node, expression.Name):
        yield node
    for each in fields(node):
        value = getattr(node, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Node):
                yield from names(part)


def all_names(query: Query | Difference | Grouped) -> Iterator[expression.Name]:
    """Yield the column names in a query."""
    if isinstance(query, Grouped):
        yield from all_names(query.query)
        yield from query.columns
    elif isinstance(query, Difference):
        yield from all_names(query.first)
        yield from all_names(query.second)
    else:
        for part in (*query.arguments, *([query.group] if query.group else [])):
            yield from names(part)


class UnknownColumn(BadExpression):
    """A name in a query that is not one of a column."""

    def __init__(self, node: expression.Name, known: Sequence[str]) -> None:
        super().__init__(node.at, f"no column is called {node.name!r:.60}{name_suggestion(node.name, known)}.")
        self.node = node


def check_names(query: Query | Difference | Grouped, known: Sequence[str]) -> None:
    """Refuse names that are not columns, with a suggestion."""
    for node in all_names(query):
        if node.name not in known:
            raise UnknownColumn(node, known)


def written_name(name: str) -> str:
    """A column's name as it is written in queries."""
    plain = _WORD.fullmatch(name) and name not in expression.KEYWORDS and name != "where"
    return name if plain else f"`{name.replace('`', '``')}`"


def name_suggestion(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """The end of a message about an unknown name: a similar name, if any, and the known ones."""
    lower = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold()[:100], [each for each in lower if len(each) <= 100], n=1)
    there = f"there are {list_names(known)}"
    if not close:
        return f"; {there}"
    meant = lower[close[0]]
    quoted = repr(meant) if (written := written_name(meant)) == meant else written
    return f"; did you mean {quoted}? There{there[5:]}"
