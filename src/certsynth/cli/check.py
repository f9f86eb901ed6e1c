"""certsynth check: how well a schema fits a table, for the data owner only."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsynth.algorithm.options import CheckOptions
from certsynth.cli import layout, options, words
from certsynth.cli.failure import CHECK_FAILED
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.sources.check import ColumnCheck, RuleCheck, TableCheck
    from certsynth.sources.person_check import PersonCheck

NAME_WIDTH = 24
"""Most characters of a column's name in the table."""

MAX_NAMES_SHOWN = 20
"""Most labels or columns that a note lists; the JSON has all."""

COUNTED = ("clipped", "unlisted", "unreadable", "missing")


@click.command("check", cls=options.GroupedCommand, short_help="Does the schema fit the rows? NOT private.")
@click.argument("data", type=options.TABLE)
@options.of(options.SchemaOptions, options.ReadingOptions, CheckOptions, options.TalkOptions)
@click.pass_context
def command(ctx: click.Context, data: str, schema_file: Path, quiet: bool, as_json: bool, **choices: Any) -> None:
    """Check, before a release, how well the schema fits the rows of DATA. NOT private.

    For each column it counts the values that are clipped, unlisted, unreadable or missing, says why they probably are,
    and prints the lines to write in the schema. The output is for the owner of the data and must not leave your
    organisation. Nothing is written and no budget is spent; the schema may be a draft.

    The exit code is 0 if everything fits, and 1 if something does not.
    """
    from certsynth import Schema, check

    named = options.retype(data, choices)
    table = options.table(data, choices)
    schema = Schema.load(schema_file)
    with bars(quiet=quiet) as progress:
        found = check(table, schema, progress=progress, **choices)
    if as_json:
        words.print_json(found.to_dict())
    else:
        typed = [*shlex.split(named), "--schema", str(schema_file), *options.retype_persons(choices)]
        layout.show(lines(found, data, schema_file, typed))
    if not found.fits:
        ctx.exit(CHECK_FAILED)


def lines(found: TableCheck, data: str, schema_file: Path, typed: Sequence[str]) -> list[str]:
    """A check as text; `typed` are the arguments of the command."""
    from certsynth.sources.check import NOT_PRIVATE

    shown = [layout.Styled(NOT_PRIVATE, fg="yellow"), "", *_wrap(f"{data}: {verdict(found)}"), "", *_table(found)]
    for column in found.misfits:
        shown += ["", *_paragraph(column)]
    for each in (*found.rules, *found.derived):
        if each.broken:
            shown += ["", *_wrap(relation(each))]
    if found.persons is not None:
        shown += ["", *_persons(found.persons)]
    if notes := list(_notes(found)):
        shown += ["", *notes]
    if found.fits:
        following = layout.command(["certsynth", "release", *typed, "--epsilon", "1", "--out", "release"])
    else:
        following = layout.command(["certsynth", "check", *typed], before=f"next: edit {schema_file}, then ")
    return [*shown, "", *following]


def verdict(found: TableCheck) -> str:
    """The result in one sentence."""
    what = f"{words.counted(found.rows, 'row')}, {words.counted(len(found.columns), 'column')}"
    if not found.rows:
        return f"{what}: there is nothing to check."
    if found.fits:
        return f"{what}: every value fits the schema."
    faults = [(len(found.misfits), "column")]
    faults += [
        (sum(each.broken > 0 for each in each_kind), noun)
        for each_kind, noun in ((found.rules, "rule"), (found.derived, "derived column"))
    ]
    listed = [words.counted(number, noun) for number, noun in faults if number]
    plural = "does" if sum(number for number, _ in faults) == 1 else "do"
    return f"{what}: {' and '.join(listed)} {plural} not fit."


def summary(found: TableCheck) -> str:
    """The result in one line, with the columns that do not fit."""
    return " ".join([verdict(found), *(f"{column.name}: {column.summary}." for column in found.misfits)])


def relation(each: RuleCheck) -> str:
    """A rule or a derived column that rows contradict, in a sentence."""
    from certsynth.sources.check import percent

    verb = "contradicts" if each.broken == 1 else "contradict"
    return f"{each.what}: {words.counted(each.broken, 'row')} ({percent(each.share)}) {verb} it."


def _table(found: TableCheck) -> list[str]:
    from certsynth.sources.check import percent

    rows: list[tuple[str, ...]] = [("column", "kind", *COUNTED)]
    for column in found.columns:
        name = column.name if len(column.name) <= NAME_WIDTH else f"{column.name[: NAME_WIDTH - 1]}…"
        shares = [percent(column.share(getattr(column, each))) for each in COUNTED]
        rows.append((name, column.kind, *shares))
    return words.table(rows, text=2)


def _paragraph(column: ColumnCheck) -> list[str]:
    replaced = f"; {column.replaced:,} would be read as another value" if column.replaced else ""
    shown = _wrap(f"{column.name}: {column.summary}{replaced}.")
    shown += [line for cause in column.causes for line in _wrap(f"likely cause: {cause}", indent=2)]
    if column.examples:
        shown += _wrap(f"for example: {', '.join(f'{text!r:.40}' for text in column.examples)}", indent=2)
    if column.lines:
        shown += ["  write in its [[column]]:"]
        shown += [part for line in column.lines for part in layout.wrap_entry(f"    {line}")]
    return shown


def _persons(found: PersonCheck) -> list[str]:
    """The rows of persons, and how many of them are kept."""
    from certsynth.sources.check import percent

    persons = words.counted(found.persons, "person")
    shown = _wrap(
        f"{found.column}: {persons}. Rows of a person: {found.median:,} in the median, at most {found.most_of_90:,} "
        f"for 90 % of them, at most {found.most_of_99:,} for 99 %, and {found.largest:,} at most."
    )
    if found.rows_without_person:
        share = percent(found.rows_without_person / found.rows)
        shown += _wrap(f"{words.counted(found.rows_without_person, 'row')} ({share}) without a person.", indent=2)
    rows = [("rows_per_person", "rows kept")]
    for k, share_kept in found.kept_shares:
        own = " (this schema)" if k == found.rows_per_person else ""
        rows.append((f"{k:,}{own}", percent(share_kept)))
    shown += [f"  {line}" for line in words.table(rows)]
    advice = "Choose rows_per_person from public knowledge, not from these figures: they are private."
    return [*shown, *_wrap(advice, indent=2)]


def _notes(found: TableCheck) -> list[str]:
    notes = []
    for column in found.columns:
        if column.constant and column.fits:
            notes.append(f"note: {column.name} is constant: all rows are read as the same value.")
        if column.unused_labels and column.fits:
            notes.append(
                f"note: {column.name}: {words.counted(len(column.unused_labels), 'label')} of the schema never "
                f"{'occurs' if len(column.unused_labels) == 1 else 'occur'}: {_some(column.unused_labels)}."
            )
        if column.rounded:
            notes.append(f"note: {column.name}: {words.counted(column.rounded, 'value')} will be rounded.")
    if found.not_in_schema:
        notes.append(f"note: not in the schema, and ignored: {_some(found.not_in_schema)}.")
    return [line for note in notes for line in _wrap(note)]


def _some(names: Sequence[str]) -> str:
    """The first of many names. Names in a file may hold anything, so control characters are replaced."""
    shown = ["".join(c if c.isprintable() else "?" for c in name) for name in names[:MAX_NAMES_SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _wrap(text: str, *, indent: int = 0) -> list[str]:
    return layout.wrap(" " * indent + text, hanging=indent + 2)
