"""certsynth ledger: the budget spent on a data set."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from certsynth.algorithm.declaration import BASIC, Option
from certsynth.cli import layout, options, words

if TYPE_CHECKING:
    from certsynth.mechanisms.ledger import Ledger


class LedgerCommandOptions(options.JsonOptions, total=False):
    """Options of the ledger command."""

    folders: Annotated[
        tuple[Path, ...],
        Option(
            "Check that this release was charged to the ledger; may be given several times.",
            BASIC,
            typed="file",
            flag="release",
            metavar="DIR",
            repeatable=True,
        ),
    ]


@click.command("ledger", cls=options.GroupedCommand, short_help="The budget spent on a data set.")
@click.argument("file", type=options.FILE)
@options.of(LedgerCommandOptions)
def command(file: Path, folders: tuple[Path, ...], as_json: bool) -> None:
    """Show the budget spent on the data set of the ledger FILE, and check that the file is intact.

    The exit code is 1 if a line does not follow from the one before it, or if a release given by --release is missing.
    Anybody who can write the file can also replace it by an old copy: record the head elsewhere to detect that.
    """
    from certsynth import Ledger
    from certsynth.artefact.folder import manifest
    from certsynth.errors import CheckFailed, InputError

    found = Ledger.load(file)
    for folder in folders:
        try:
            charged = found.holds(manifest(folder))
        except OSError:
            raise InputError(f"{folder} is not a release folder: it has no readable checksums.") from None
        if not charged:
            raise CheckFailed(f"{folder} was not charged to {file}: its checksums are not in it.")
    if as_json:
        words.print_json(found.to_json())
    else:
        layout.show([*lines(file, found), *(f"{folder}: charged to this ledger" for folder in folders)])


def ledger_json(file: Path | None) -> dict[str, Any]:
    """The entry that a command adds to its JSON after charging the ledger."""
    from certsynth import Ledger

    return {} if file is None else {"ledger": {k: v for k, v in Ledger.load(file).to_json().items() if k != "entries"}}


def ledger_lines(file: Path | None) -> list[str]:
    """The line that a command prints after charging the ledger."""
    from certsynth import Ledger
    from certsynth.mechanisms.guarantee import decimal_text

    if file is None:
        return []
    ledger = Ledger.load(file)
    spent = f"{ledger.unit} {decimal_text(ledger.spent)} of {decimal_text(ledger.cap)}"
    return [f"ledger: {spent} spent on {ledger.dataset!r} so far ({file})"]


def lines(file: Path, ledger: Ledger) -> list[str]:
    """A ledger as text."""
    from certsynth.mechanisms.guarantee import decimal_text
    from certsynth.mechanisms.ledger import protected

    unit, step = str(ledger.unit), Fraction(1, 10**12)
    persons = "" if ledger.person is None else f", {protected(ledger.person)}"
    text = [
        f"{file}: data set {ledger.dataset!r}, {unit} under {ledger.neighbours} neighbours{persons}",
        *words.table(
            [
                ("cap", decimal_text(ledger.cap)),
                ("spent", decimal_text(ledger.spent)),
                ("left", decimal_text(ledger.remaining // step * step)),
                *([("total delta", decimal_text(ledger.delta))] if ledger.delta else []),
            ]
        ),
        "",
    ]
    rows = [("when", unit, "for", "")]
    rows += [
        (e.time, decimal_text(e.amount), e.what, "" if e.finished else "spent, not finished") for e in ledger.entries
    ]
    text += words.table(rows, flexible=2) if ledger.entries else ["  nothing yet"]
    if ledger.cut_off:
        text += [
            "",
            f"  {words.counted(ledger.cut_off, 'line')} truncated by a crash, before any noise was drawn.",
        ]
    return [*text, "", f"every line follows from the one before it; head {ledger.head}"]
