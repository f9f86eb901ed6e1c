"""Hints for queries that are not understood: columns that need backquotes, labels that need quotes, and `by`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from itertools import pairwise

from certsynth.answers import queries
from certsynth.answers.queries import GROUPS_EXAMPLE, UnknownColumn, written_name
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.expression import KEYWORDS, MAX_CHARACTERS, BadExpression

_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_PARTS_OF_NAME = re.compile(r"\w+|[^\w\s]")
_FIRST_ARGUMENT = re.compile(r"\(([^()|,`'\"]*)")
_BY_INSIDE = re.compile(r"[^)]*\(\s*[^()]*\sby\s", re.IGNORECASE)
_OPERATORS = {"-": "a difference", "+": "a sum", "*": "a product", "<": "a comparison", ">": "a comparison",
              "=": "a comparison"}  # fmt: skip
_MAX_NAME_CHARACTERS = 100
_SIMILAR = 0.8
"""The similarity from which a whole argument is taken for a misspelt column."""


def explain(error: BadExpression, text: str, columns: Mapping[str, Column]) -> BadExpression:
    """A better error for the same text, if its likely cause is known; else the same error."""
    if len(text) > MAX_CHARACTERS:
        return error
    found = _in_backquotes(text, columns) or _misspelt(text, columns)
    if found is None and isinstance(error, UnknownColumn):
        found = _label_without_quotes(error, columns)
    if found is None and "by" not in columns and _BY_INSIDE.match(_QUOTED.sub("''", text)):
        found = BadExpression(0, f"'by' comes after the closing bracket, like {GROUPS_EXAMPLE}.")
    return found or error


def _in_backquotes(text: str, columns: Mapping[str, Column]) -> BadExpression | None:
    """The names of columns in the text that are read as something else, put in backquotes."""
    special = {name for name in columns if written_name(name) != name and len(name) <= _MAX_NAME_CHARACTERS}
    if not special:
        return None
    by_spelling = {_spelling(name): name for name in special}
    longest_first = sorted(special, key=len, reverse=True)
    pattern = re.compile("|".join([_QUOTED.pattern, *(f"({_pattern(name)})" for name in longest_first)]), re.IGNORECASE)
    replaced: list[tuple[int, str]] = []

    def replace(found: re.Match[str]) -> str:
        if found.lastindex is None:  # already in quotes
            return found[0]
        name = by_spelling.get(_spelling(found[0]), longest_first[found.lastindex - 1])
        if name in KEYWORDS:
            return found[0]
        replaced.append((found.start(), name))
        return written_name(name)

    fixed = pattern.sub(replace, text)
    if not replaced or not _is_query(fixed):
        return None
    at, name = replaced[0]
    read_as = next((meaning for sign, meaning in _OPERATORS.items() if sign in name), None)
    problem = f"is read as {read_as}" if read_as else "is not a single word"
    return BadExpression(at, f"{name!r:.60} {problem}; write {_shown(fixed)}.")


def _misspelt(text: str, columns: Mapping[str, Column]) -> BadExpression | None:
    """A whole argument that is almost the name of a column in need of backquotes."""
    argument = _FIRST_ARGUMENT.search(text)
    if argument is None or re.fullmatch(r"\s*\w*\s*", argument[1]) or len(argument[1]) > _MAX_NAME_CHARACTERS:
        return None
    special = {name.casefold(): name for name in columns if written_name(name) != name}
    words = [name for name in special if len(name) <= _MAX_NAME_CHARACTERS]
    near = difflib.get_close_matches(argument[1].strip().casefold(), words, n=1, cutoff=_SIMILAR)
    if not near:
        return None
    fixed = text[: argument.start(1)] + written_name(special[near[0]]) + text[argument.end(1) :]
    if not _is_query(fixed):
        return None
    problem = f"no column is called {argument[1].strip()!r:.60}"
    return BadExpression(argument.start(1), f"{problem}; did you mean {_shown(fixed)}?")


def _label_without_quotes(error: UnknownColumn, columns: Mapping[str, Column]) -> BadExpression | None:
    """An unknown name that is a label."""
    wanted = error.node.name.casefold()
    for column in columns.values():
        labels = column.labels if isinstance(column, Category) else column.values if isinstance(column, Ordered) else ()
        for label in labels:
            if label.casefold() == wanted and not (isinstance(column, Category) and column.kind == "boolean"):
                problem = f"no column is called {error.node.name!r:.60}, which is a label of {column.name!r:.60}"
                return BadExpression(error.node.at, f"{problem}; write labels in quotes, like {label!r:.60}.")
    return None


def _pattern(name: str) -> str:
    """A regular expression for a name, with any space between its parts."""
    parts = _PARTS_OF_NAME.findall(name)
    if not parts:
        return re.escape(name)
    pattern = re.escape(parts[0])
    for before, part in pairwise(parts):
        words = re.match(r"\w", before) and re.match(r"\w", part)
        pattern += (r"\s+" if words else r"\s*") + re.escape(part)
    start = r"(?<!\w)" if re.match(r"\w", parts[0]) else ""
    return start + pattern + (r"(?!\w)" if re.match(r"\w", parts[-1]) else "")


def _spelling(name: str) -> str:
    """What two ways to write the same name have in common, apart from case."""
    return " ".join(_PARTS_OF_NAME.findall(name))


def _is_query(text: str) -> bool:
    """Whether a text can be parsed; its names may still be unknown."""
    try:
        queries.parse(text)
    except BadExpression:
        return False
    return True


def _shown(text: str) -> str:
    return " ".join(text.split())
