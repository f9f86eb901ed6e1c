"""certsynth schema: draft a schema for editing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from certsynth.algorithm.declaration import BASIC, OUTPUT, Option
from certsynth.cli import layout, options, words
from certsynth.cli.failure import note_target, say
from certsynth.cli.progress import bars
from certsynth.cli.writing import write_once

if TYPE_CHECKING:
    from certsynth.domain import Schema

HEADER = """\
# A draft made from rows: it shows their extremes and labels, so it is NOT private.
# Replace every bound and every list of labels by what is publicly known (a code book, a form, common sense).
# Decide on the columns with a comment, delete those that nobody needs, and state the unit. Then remove the line
# draft = true: until then, nothing is released with it. `certsynth check` tells how well the result fits the rows.

"""
WARNING = (
    "note: a draft made from private rows is NOT private. Replace its bounds and labels by public knowledge, "
    "then remove the line draft = true."
)


class DraftOptions(options.ReadingOptions, options.TalkOptions, total=False):
    """Options of the schema command."""

    name: Annotated[str | None, Option("The name of the table (by default that of the file).", BASIC)]
    trees: Annotated[
        tuple[str, ...],
        Option(
            "A column of codes in a tree, and a CSV file of code and parent; may be given several times.",
            BASIC,
            flag="tree",
            metavar="COLUMN=CODES",
            repeatable=True,
        ),
    ]
    out: Annotated[
        Path,
        Option(
            "The file to write; an existing file is never overwritten.",
            OUTPUT,
            default=Path("schema.toml"),
            typed="file",
            metavar="FILE",
        ),
    ]


@click.command("schema", cls=options.GroupedCommand, short_help="Draft a schema for editing.")
@click.argument("data", type=options.TABLE)
@options.of(DraftOptions)
def command(
    data: str, out: Path, name: str | None, trees: tuple[str, ...], quiet: bool, as_json: bool, **engine: Any
) -> None:
    """Draft a schema for DATA, which must be edited before use.

    A schema says what a row may hold, from public knowledge. The draft takes its bounds and labels from the rows
    themselves, so it is not private, and no release can be made with it until it is edited.
    """
    typed = options.retype(data, engine)
    table = options.table(data, engine)
    with bars(quiet=quiet) as progress:
        progress("drafting a schema", 0, None)
        draft = write_draft(table, out, name=name, trees=trees)
    say(WARNING)
    if as_json:
        words.print_json({"out": str(out), "columns": list(draft.names), "draft": True})
        return
    kinds = [(column.name, getattr(column, "kind", "")) for column in draft]
    checked = layout.command(
        ["certsynth", "check", *shlex.split(typed), "--schema", str(out)], before=f"next: edit {out}, then "
    )
    layout.show([f"{out}: a draft for {words.counted(len(draft), 'column')}", *words.table(kinds), *checked])


def write_draft(data: Any, out: Path, *, name: str | None = None, trees: Sequence[str] = ()) -> Schema:
    """Draft a schema for `data` and write it to `out`."""
    from certsynth.domain.labels import paths_of_codes, read_code_file
    from certsynth.errors import InputError
    from certsynth.sources.draft import draft_table

    if os.path.lexists(out):
        raise InputError(f"{out} exists already; a schema is never overwritten. Choose another --out.")
    listed: dict[str, tuple[str, ...]] = {}
    for tree in trees:
        column, equals, file = tree.partition("=")
        if not (column and equals and file):
            raise InputError(f"--tree needs COLUMN=CODES, like --tree occupation=codes.csv; got {tree!r:.60}.")
        if column in listed:
            raise InputError(f"--tree names the column {column!r:.60} twice; give it one list of codes.")
        where = f"codes of {column!r:.60} in {file}"
        listed[column] = paths_of_codes(read_code_file(Path(file), where), where)
    stem = data.name.split(".")[0] if isinstance(data, Path) else ""
    draft = draft_table(data, name=name or stem or "table", trees=listed)
    note_target(out)
    write_once(out, (HEADER + draft.to_toml()).encode())
    return draft.schema
