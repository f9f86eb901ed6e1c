"""Parse queries such as `mean(age)` or `fraction(age > 65 and region = "hills")`. Nothing is executed.

The arguments are in the language of rules (`certsynth.domain.expression`); this module parses what surrounds them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from certsynth.domain import expression
from certsynth.domain.expression import MAX_CHARACTERS, BadExpression, Node, list_names

_HEAD = re.compile(r"[ \t\r\n]*([^\W\d]\w*)[ \t\r\n]*\(")
_PIECE = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|[^\W\d]\w*|\d\w*|.", re.DOTALL)
"""A token. A doubled quote inside a text matches as two adjacent texts, which is equivalent here."""


@dataclass(frozen=True, slots=True)
class Form:
    """The arguments that a statistic takes."""

    arguments: tuple[str, ...]
    example: str
    grouped: bool = False


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
}


@dataclass(frozen=True, slots=True)
class Query:
    """A statistic, its arguments, and the condition for its group of rows (None: all rows)."""

    statistic: str
    arguments: tuple[Node, ...]
    group: Node | None = None


def parse(text: str) -> Query:
    """Parse a query, or raise `BadExpression`.

    >>> parse("mean(income | age > 65)").statistic
    'mean'
    """
    if len(text) > MAX_CHARACTERS:
        raise BadExpression(MAX_CHARACTERS, f"longer than {MAX_CHARACTERS:,} characters; shorten the query.")
    head = _HEAD.match(text)
    if head is None:
        raise BadExpression(
            0,
            f"a query is a statistic and its arguments, like mean(age); the statistics are {', '.join(FORMS)}.",
        )
    name = head[1].lower()
    if name not in FORMS:
        raise BadExpression(head.start(1), f"{head[1]!r:.60} is not a statistic{name_suggestion(name, FORMS)}.")
    form = FORMS[name]
    body, end = _inside(text, head.end())
    if text[end:].strip():
        raise BadExpression(end, "a query ends with its closing bracket; write several queries as several texts.")
    (*pieces,), group = body
    if len(pieces) != len(form.arguments) or not all(text[a:b].strip() for a, b in pieces):
        raise BadExpression(head.end(), f"{name} takes {' and '.join(form.arguments)}, like {form.example}.")
    if group is not None and not form.grouped:
        can = " and ".join(each for each, known in FORMS.items() if known.grouped)
        raise BadExpression(group[0], f"{name} does not support groups; {can} do, like mean(income | age > 65).")
    if group is not None and not text[slice(*group)].strip():
        raise BadExpression(group[0], "a condition must follow, like mean(income | age > 65).")
    return Query(name, tuple(_read(text, a, b) for a, b in pieces), _read(text, *group) if group else None)


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
    for field in fields(node):
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Node):
                yield from names(part)


def check_names(query: Query, known: Sequence[str]) -> None:
    """Refuse names that are not columns, with a suggestion."""
    for part in (*query.arguments, *([query.group] if query.group else [])):
        for node in names(part):
            if node.name not in known:
                raise BadExpression(
                    node.at, f"no column is called {node.name!r:.60}{name_suggestion(node.name, known)}."
                )


def name_suggestion(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """The end of a message about an unknown name: a similar name, if any, and the known ones."""
    lower = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold()[:100], [each for each in lower if len(each) <= 100], n=1)
    there = f"there are {list_names(known)}"
    return f"; did you mean {lower[close[0]]!r}? There{there[5:]}" if close else f"; {there}"
