"""Options that several commands share, and how their texts are read. The rules stay with the library."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)


class Names(click.ParamType):
    """Column names with commas between them; a name with a comma in it goes in double quotes."""

    name = "A,B,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        try:
            names = [name.strip() for name in next(csv.reader([value], strict=True, skipinitialspace=True), [])]
        except csv.Error:
            names = []
        if not all(names) or not names:
            self.fail("give column names with commas between them, for example age,income.", param, ctx)
        return names


class WholeOrAuto(click.ParamType):
    """A whole number; anything else is left to the library to accept or refuse."""

    name = "auto|K"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        try:
            return int(value)
        except ValueError:
            return str(value)


def schema(function: _F) -> _F:
    return click.option(
        "--schema",
        "schema_file",
        type=FILE,
        required=True,
        help="The schema: a TOML file that says what rows may hold.",
    )(function)


def epsilon(function: _F) -> _F:
    return click.option(
        "--epsilon", required=True, metavar="E", help="Privacy budget: above 0, at most 100; small is more private."
    )(function)


def sparsity(function: _F) -> _F:
    return click.option(
        "--sparsity",
        type=int,
        metavar="S",
        help="How many columns a statistic may look at (2, or 1 if there is only one column).",
    )(function)


def confidence(function: _F) -> _F:
    return click.option(
        "--confidence", metavar="C", help="How sure the certificate is: at least 0.5 and below 1 (0.95)."
    )(function)


def neighbours(function: _F) -> _F:
    return click.option(
        "--neighbours",
        type=click.Choice(["replace-one", "add-remove"]),
        default="replace-one",
        show_default=True,
        help="What one person can change: their row's values, or whether it is there at all.",
    )(function)


def columns(function: _F) -> _F:
    return click.option("--columns", type=Names(), help="Use only these columns of the schema.")(function)


def lattice(function: _F) -> _F:
    return click.option(
        "--lattice", type=int, metavar="K", help="Steps of the lattice that tables are compared on (256 for pairs)."
    )(function)


def quiet(function: _F) -> _F:
    return click.option("--quiet", is_flag=True, help="No progress bars.")(function)


def as_json(function: _F) -> _F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and nothing else.")(function)
