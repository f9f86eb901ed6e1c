"""The command line's options, built from their declarations, and the parsing of their values.

The meaning and checks of options are in the library (`algorithm/options.py`). This module declares only the options
that exist on the command line alone.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict, TypeVar

import click

from certsynth.algorithm.checks import OneOf
from certsynth.algorithm.declaration import BASIC, GROUPS, OUTPUT, Declared, Option, declared, shell_help
from certsynth.algorithm.options import PersonOptions
from certsynth.cli import layout
from certsynth.cli.failure import say

if TYPE_CHECKING:
    from certsynth.domain import Schema

NO_LEDGER = (
    "note: without --ledger, nothing keeps track of the total budget spent on these rows. Whatever was spent on them "
    "before adds to this."
)

_F = TypeVar("_F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
TABLE = click.Path()
"""A table: a path as typed, a name known to an engine, or a query."""

_LOOKS_LIKE_SQL = re.compile(r"\s*(select|with|from|values|table)\s", re.IGNORECASE)


class Names(click.ParamType):
    """Comma-separated column names; a name that contains a comma is put in double quotes."""

    name = "A,B,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        try:
            names = [name.strip() for name in next(csv.reader([value], strict=True, skipinitialspace=True), [])]
        except csv.Error:
            names = []
        if not all(names) or not names:
            self.fail("give comma-separated column names, for example age,income.", param, ctx)
        return names


class WholeOrAuto(click.ParamType):
    """A whole number; any other text is passed to the library, which checks it."""

    name = "auto|K"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        try:
            return int(value)
        except ValueError:
            return str(value)


class SchemaOptions(TypedDict, total=False):
    """The schema of the rows."""

    schema_file: Required[
        Annotated[
            Path,
            Option(
                "The schema: a TOML file that describes the columns and their possible values.",
                BASIC,
                typed="file",
                flag="schema",
                metavar="FILE",
            ),
        ]
    ]


class ReadingOptions(TypedDict, total=False):
    """The engine that reads the private rows, and whether a query selects them (see `table`)."""

    engine: Annotated[
        str,
        Option(
            "The engine that reads Parquet files and runs the query: duckdb, locally; or spark, where rows stay in its "
            "executors and the private table may also be the name of a Spark table.",
            BASIC,
            default="duckdb",
            check=OneOf(("duckdb", "spark")),
        ),
    ]
    sql: Annotated[
        bool,
        Option(
            "The private table is given as a SQL query, a single SELECT, instead of a file.",
            BASIC,
            default=False,
            typed="flag",
        ),
    ]
    attach: Annotated[
        tuple[str, ...],
        Option(
            "A database that the query of {sql} may read under this name: a DuckDB or SQLite file, postgres:… or "
            "mysql:…; may be given several times.",
            BASIC,
            metavar="NAME=DATABASE",
            repeatable=True,
        ),
    ]


class JsonOptions(TypedDict, total=False):
    """The option that every command has."""

    as_json: Annotated[
        bool, Option("Print one JSON object, and nothing else.", OUTPUT, default=False, typed="flag", flag="json")
    ]


class TalkOptions(JsonOptions, total=False):
    """Output options of commands that take time."""

    quiet: Annotated[bool, Option("No progress on stderr.", OUTPUT, default=False, typed="flag")]


class DetailOptions(TalkOptions, total=False):
    """Output options of commands that can say more."""

    verbose: Annotated[
        bool,
        Option(
            "Also print how it was chosen and what the bound is made of.",
            OUTPUT,
            default=False,
            typed="flag",
        ),
    ]


class AnswerOptions(TalkOptions, total=False):
    """The options of `answer`."""

    alone: Annotated[
        bool,
        Option(
            "Narrower intervals, each valid for its own query only, not all at once.",
            BASIC,
            default=False,
            typed="flag",
        ),
    ]


class GroupedOption(click.Option):
    """A click option with its declaration."""

    def __init__(self, *args: Any, declared: Declared, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.declared = declared


class GroupedCommand(click.Command):
    """A command whose `--help` groups options under headings."""

    context_class = layout.HelpContext

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, options in group_options(self.get_params(ctx)).items():
            records = [record for option in options if (record := option.get_help_record(ctx))]
            with formatter.section(heading):
                room = formatter.width - formatter.current_indent
                formatter.write_dl([(_break_choices(flag, room), text) for flag, text in records])


def _break_choices(flag: str, room: int) -> str:
    """A flag with its choices, on several lines if they do not fit on one.

    >>> print(_break_choices("--loss [path|transport|other]", 24))
    --loss [path|transport|
          other]
    """
    lines = [""]
    for i, part in enumerate(flag.split("|")):
        joined = f"{lines[-1]}|{part}" if i else part
        if len(joined) < room or not i:
            lines[-1] = joined
        else:
            lines[-1] += "|"
            lines.append(f"{' ' * 6}{part}")
    return "\n".join(lines)


def group_options(parameters: Iterable[click.Parameter]) -> dict[str, list[click.Option]]:
    """Options by heading, in the order of the headings; `--help` is under the last one."""
    found: dict[str, list[click.Option]] = {heading: [] for heading in GROUPS}
    for each in parameters:
        if isinstance(each, click.Option):
            found[each.declared.option.group if isinstance(each, GroupedOption) else OUTPUT].append(each)
    return {heading: options for heading, options in found.items() if options}


_TYPES: dict[str, click.ParamType] = {
    "text": click.STRING,
    "whole": click.INT,
    "natural": click.IntRange(min=0),
    "auto": WholeOrAuto(),
    "file": FILE,
    "names": Names(),
    "flag": click.BOOL,
}


def of(*options: type, **types: click.ParamType) -> Callable[[_F], _F]:
    """Decorate a command with all declared options of the command line; `types` override the types of some."""
    known = {name: each for kind in options for name, each in declared(kind).items() if each.option.shell}

    def decorate(function: _F) -> _F:
        for each in reversed(known.values()):
            function = _option(each, known, types.get(each.name))(function)
        return function

    return decorate


def _option(each: Declared, known: Mapping[str, Declared], kind: click.ParamType | None) -> Callable[[_F], _F]:
    option = each.option
    settings: dict[str, Any] = {}
    if option.typed == "flag":
        settings["is_flag"] = True
    else:
        choices = click.Choice(option.choices) if option.choices else None
        settings["type"] = kind or choices or _TYPES[option.typed]
        settings["multiple"] = option.repeatable
        if option.default is not None:
            settings |= {"default": option.default, "show_default": True}
    return click.option(
        each.flag,
        each.name,
        cls=GroupedOption,
        declared=each,
        metavar=option.metavar,
        required=option.required or each.needed,
        help=shell_help(option, known),
        **settings,
    )


def table(data: str, choices: dict[str, Any]) -> Any:
    """The table to read: a path, or a source that an engine opens. Removes the `ReadingOptions` from the choices."""
    from certsynth.errors import InputError
    from certsynth.sources import Unopened

    engine, query, attach = choices.pop("engine"), choices.pop("sql"), choices.pop("attach")
    if attach and (engine != "duckdb" or not query):
        raise InputError("--attach applies to queries run by DuckDB: give --sql, and no other --engine.")
    databases = tuple((name, place) for name, _, place in (each.partition("=") for each in attach))
    if any(not name or not place for name, place in databases):
        raise InputError("--attach needs NAME=DATABASE, like --attach town=town.duckdb.")
    if query or engine == "spark":
        return Unopened(data, engine, query, databases)
    if _LOOKS_LIKE_SQL.match(data) and not os.path.lexists(data):
        raise InputError("this looks like a query, and there is no such file. Add --sql if it is a query.")
    return Path(data)


def retype(data: str, choices: Mapping[str, Any]) -> str:
    """The table and its `ReadingOptions` as typed, without database locations, which may contain passwords."""
    typed = [data]
    for option in ("engine", "sql", "attach"):
        value = choices[option]
        if option == "attach":
            typed += [word for each in value for word in ("--attach", each.partition("=")[0] + "=…")]
        elif option == "engine":
            typed += [f"--{option}", value] if value != "duckdb" else []
        else:
            typed += [f"--{option}"] * bool(value)
    return shlex.join(typed)


def retype_persons(choices: Mapping[str, Any]) -> list[str]:
    """The `PersonOptions` as typed, word by word."""
    given = [(each.flag, choices[name]) for name, each in declared(PersonOptions).items()]
    return [word for flag, value in given if value is not None for word in (flag, str(value))]


def read_workload(choices: dict[str, Any]) -> list[list[str]] | None:
    """Read the subsets from the file of `--workload`, and replace its path in the choices by them."""
    from certsynth.domain.workload import load_workload

    file = choices["subsets"]
    choices["subsets"] = None if file is None else load_workload(file)
    return choices["subsets"]


def warn_of_omissions(schema: Schema, choices: Mapping[str, Any]) -> None:
    """Say, before anything is spent, which columns and rules a restriction leaves out. Bad arguments are refused
    first."""
    from certsynth.algorithm.request import checked_subsets, named_columns, omitted_rules
    from certsynth.report import words

    columns, subsets = choices["columns"], choices["subsets"]
    if columns and not set(columns) <= set(schema.names):
        return  # refused by the library
    chosen = kept = schema.select(columns) if columns else schema
    if subsets is not None:
        checked_subsets(chosen, choices["sparsity"], subsets)
        kept = named_columns(chosen, subsets)
    if absent := [name for name in chosen.names if name not in kept.names]:
        first = json.dumps(absent[0], ensure_ascii=False)
        say(
            f"note: columns omitted since no subset of the workload names them: {', '.join(absent)}. Add [{first}] to "
            "the workload to keep it."
        )
    if omitted := words.omitted_rules(omitted_rules(schema, kept)):
        say(f"note: {omitted}.")


def warn_of_missing_ledger(choices: Mapping[str, Any]) -> None:
    """Warn if no ledger keeps track of the total budget."""
    if choices["ledger"] is None:
        say(NO_LEDGER)
