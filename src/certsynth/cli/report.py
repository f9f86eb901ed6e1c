"""certsynth report: the page about a release, again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from certsynth.algorithm.declaration import OUTPUT, Option
from certsynth.cli import layout, options, words
from certsynth.cli.failure import note_target
from certsynth.cli.progress import bars
from certsynth.cli.writing import write_once


class ReportOptions(options.TalkOptions, total=False):
    """What a report takes."""

    out: Annotated[Path | None, Option("Where to write it (DIR/report.html).", OUTPUT, typed="file", metavar="FILE")]


@click.command("report", cls=options.GroupedCommand, short_help="The page about a release, again.")
@click.argument("folder", type=options.FILE, metavar="DIR")
@options.of(ReportOptions)
def command(folder: Path, out: Path | None, quiet: bool, as_json: bool) -> None:
    """Write the report of the release folder DIR again: byte for byte the one that it came with.

    A file that exists is left as it is; if it is another one, the command fails.
    """
    out = folder / "report.html" if out is None else out
    note_target(out)
    with bars(quiet=quiet) as progress:
        progress("writing the report", 0, None)
        new = written(folder, out)
    if as_json:
        words.print_json({"out": str(out), "written": new})
    else:
        layout.show([line(out, new)])


def written(folder: Path, out: Path) -> bool:
    """Write the report of `folder` to `out`; False if that very page is there already."""
    from certsynth import Release
    from certsynth.artefact.release import report_bytes, sizes_in
    from certsynth.errors import InputError

    made = Release.load(folder)
    try:
        page = report_bytes(made, sizes_in(folder))
    except Exception:  # a certificate of somebody else may hold anything anywhere
        raise InputError(f"{folder}: certificate.json is not one that a page can be made of; verify it.") from None
    return write_once(out, page)


def line(out: Path, new: bool) -> str:
    return f"{out}: {'written' if new else 'is there already, byte for byte the same'}"
