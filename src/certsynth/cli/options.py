"""Options that several commands share, and how their texts are read. The rules stay with the library."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from certsynth.cli.failure import say

if TYPE_CHECKING:
    from certsynth.domain import Schema

NO_LEDGER = (
    "note: no --ledger is given, so nothing adds up what is spent on these rows in all. What was spent on them before "
    "adds to this."
)

_F = TypeVar("_F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
TABLE = click.Path()
"""A table by whatever an engine knows it: a file as it is typed, a name, or a query."""

_LOOKS_LIKE_SQL = re.compile(r"\s*(select|with|from|values|table)\s", re.IGNORECASE)


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


def engine(function: _F) -> _F:
    """Who reads the private rows, and whether they are named by a query."""
    function = click.option(
        "--attach",
        multiple=True,
        metavar="NAME=DATABASE",
        help="A database that the query of --sql may read by this name: a DuckDB or SQLite file, postgres:… or "
        "mysql:…; may be given several times.",
    )(function)
    function = click.option(
        "--sql", is_flag=True, help="The private table is given as a SQL query, a single SELECT, in place of a file."
    )(function)
    return click.option(
        "--engine",
        type=click.Choice(["duckdb", "spark"]),
        default="duckdb",
        show_default=True,
        help="Who reads Parquet files and runs the query: duckdb, here; or spark, where rows stay in its executors and "
        "the private table may also be one that Spark knows by name.",
    )(function)


def table(data: str, choices: dict[str, Any]) -> Any:
    """What is read: a path, or what an engine will find. Takes the options of `engine` out of the choices."""
    from certsynth.errors import InputError
    from certsynth.sources import Unopened

    engine, query, attach = choices.pop("engine"), choices.pop("sql"), choices.pop("attach")
    if attach and (engine != "duckdb" or not query):
        raise InputError("--attach is for a query that DuckDB runs: give --sql, and no other --engine.")
    databases = tuple((name, place) for name, _, place in (each.partition("=") for each in attach))
    if any(not name or not place for name, place in databases):
        raise InputError("--attach wants NAME=DATABASE, like --attach town=town.duckdb.")
    if query or engine == "spark":
        return Unopened(data, engine, query, databases)
    if _LOOKS_LIKE_SQL.match(data) and not os.path.lexists(data):
        raise InputError("that looks like a query, and there is no such file. Add --sql if it is one.")
    return Path(data)


def schema(function: _F) -> _F:
    return click.option(
        "--schema",
        "schema_file",
        type=FILE,
        required=True,
        help="The schema: a TOML file that says what rows may hold.",
    )(function)


def epsilon(function: _F) -> _F:
    """The budget: the three options of which one or two are given."""
    function = click.option(
        "--rho",
        metavar="R",
        help="Budget of zero-concentrated differential privacy: alone, or in place of --epsilon or --delta.",
    )(function)
    function = click.option(
        "--delta",
        metavar="D",
        help="Spend (epsilon, delta)-differential privacy, with Gaussian noise: above 0, at most 0.01, like 1e-6.",
    )(function)
    return click.option("--epsilon", metavar="E", help="Privacy budget: above 0, at most 100; small is more private.")(
        function
    )


def sparsity(function: _F) -> _F:
    return click.option(
        "--sparsity",
        type=int,
        metavar="S",
        help="How many columns a statistic may look at (2, or 1 if there is only one column).",
    )(function)


def workload(function: _F) -> _F:
    return click.option(
        "--workload",
        type=FILE,
        help="A TOML file that names the subsets of columns that matter, in place of --sparsity.",
    )(function)


def named_subsets(workload: Path | None) -> list[list[str]] | None:
    """The subsets that the file of `--workload` names."""
    from certsynth.domain.workload import load_workload

    return None if workload is None else load_workload(workload)


def say_what_is_left_out(schema: Schema, subsets: list[list[str]] | None, choices: Mapping[str, Any]) -> None:
    """Columns that no subset names are not released: say so before anything is spent. Bad arguments are told first."""
    from certsynth.algorithm.request import checked_subsets, named_columns

    if subsets is None:
        return
    schema = schema.select(choices["columns"]) if choices["columns"] else schema
    checked_subsets(schema, choices["sparsity"], subsets, call="release")
    kept = set(named_columns(schema, subsets).names)
    if absent := [name for name in schema.names if name not in kept]:
        first = json.dumps(absent[0], ensure_ascii=False)
        say(
            f"note: left out, since no subset of the workload names them: {', '.join(absent)}. Add [{first}] to the "
            "workload to keep it."
        )


def resolution(function: _F) -> _F:
    return click.option(
        "--resolution",
        type=WholeOrAuto(),
        metavar="[auto|K]",
        help="How many cells a column is cut into, or groups its values fall into; auto takes the best.",
    )(function)


MECHANISMS = ["auto", "identity", "haar", "haar-hilbert", "haar-weighted", "quad-tree", "haar-tour", "haar-noisy-total"]
MECHANISMS += ["low-dimensional", "low-dimensional-l1"]


def mechanism(function: _F) -> _F:
    return click.option(
        "--mechanism",
        type=click.Choice(MECHANISMS),
        help="How counts get their noise: identity (cell by cell), haar (as wavelets along a winding path), "
        "haar-hilbert (along a Hilbert curve), haar-weighted (the same, with weighted levels), quad-tree (as squares "
        "within squares), haar-tour (along a tour, for any metric), haar-noisy-total (as in the paper); auto "
        "takes the best of the first five. low-dimensional is for statistics of all columns at once, where rows lie on "
        "a curve, a surface or a few points: one grid of all columns, as fine as that allows; low-dimensional-l1 does "
        "it as in the paper.",
    )(function)


def projection(function: _F) -> _F:
    return click.option(
        "--projection",
        type=click.Choice(["auto", "particles", "public", "full-grid", "drawn"]),
        default="auto",
        show_default=True,
        help="How rows are fitted: as particles that swap values, or by a linear program whose rows lie at public "
        "rows, anywhere, or at points drawn from the noisy counts.",
    )(function)


def loss(function: _F) -> _F:
    return click.option(
        "--loss",
        type=click.Choice(["path", "transport"]),
        help="Fit by a linear program, and make this small: transport (tight), or the paper's path loss.",
    )(function)


def certificate_share(function: _F) -> _F:
    return click.option(
        "--certificate-share",
        metavar="SHARE",
        help="Share of the budget that measures the result: 0 for none (0.05).",
    )(function)


def preset(function: _F) -> _F:
    return click.option("--preset", type=click.Choice(["paper"]), help="Do all as the paper does.")(function)


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


def ledger(function: _F) -> _F:
    """The file that adds up what is spent on a data set, and what its first use fixes."""
    function = click.option(
        "--dataset",
        metavar="ID",
        help="The data set that the ledger is for, fixed at its first use (the name of the schema's table).",
    )(function)
    function = click.option(
        "--cap",
        metavar="E",
        help="The most that may ever be spent on the data set, in what the budget is given in; fixed at first use.",
    )(function)
    return click.option(
        "--ledger",
        type=FILE,
        help="A file that adds up what is spent on the data set, and refuses what would exceed its cap.",
    )(function)


def say_what_is_not_counted(choices: Mapping[str, Any]) -> None:
    """Without a ledger nobody adds up what is spent on the same rows: say so."""
    if choices["ledger"] is None:
        say(NO_LEDGER)


def quiet(function: _F) -> _F:
    return click.option("--quiet", is_flag=True, help="No progress bars.")(function)


def as_json(function: _F) -> _F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and nothing else.")(function)
