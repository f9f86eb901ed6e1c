"""certsynth verify: check a release without the private rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import click

from certsynth.algorithm.declaration import BASIC, Option
from certsynth.base.progress import Progress, silent
from certsynth.cli import layout, options, words
from certsynth.cli.failure import CHECK_FAILED, in_flags
from certsynth.cli.progress import READING, bars

PASSED, FAILED = "ok    ", "FAILED"


class VerifyOptions(options.TalkOptions, total=False):
    """Options of the verify command."""

    key: Annotated[
        Path | None,
        Option("The public key that the release must be signed with.", BASIC, typed="file", metavar="FILE"),
    ]


@click.command("verify", cls=options.GroupedCommand, short_help="Check a release without the private rows.")
@click.argument("folder", type=options.FILE, metavar="DIR")
@options.of(VerifyOptions)
@click.pass_context
def command(ctx: click.Context, folder: Path, key: Path | None, quiet: bool, as_json: bool) -> None:
    """Check the release folder DIR without the private rows: every file, and everything that can be recomputed.

    It also lists what cannot be checked this way. The exit code is 1 if a check fails.
    """
    with bars(quiet=quiet) as progress:
        found = result(folder, key, progress=progress)
    if as_json:
        words.print_json(found)
    else:
        layout.show(lines(folder, found))
    if not found["ok"]:
        ctx.exit(CHECK_FAILED)


def result(folder: Path, key: Path | None = None, *, progress: Progress = silent) -> dict[str, Any]:
    """The checks and their results. A folder with checksums that is not a readable release fails."""
    from certsynth import Release
    from certsynth.algorithm.verify import cannot_verify
    from certsynth.artefact.folder import SUMS, check_sums
    from certsynth.artefact.signature import PublicKey
    from certsynth.errors import InputError

    if key is not None:
        PublicKey.load(key)  # report a bad key before looking at the release
    progress(READING, 0, None)
    try:
        made = Release.load(folder)
    except InputError as error:
        if not (folder / SUMS).is_file():
            raise
        problems = check_sums(folder)
        about = "; ".join(problems) or "every file is there and has its checksum"
        checks = [
            {"name": "files", "ok": not problems, "detail": about},
            {"name": "reading", "ok": False, "detail": in_flags(str(error))},
        ]
        return {"ok": False, "checks": checks, "cannot": cannot_verify(None)}
    checks = made.verify(key=key, progress=progress)
    cannot = [in_flags(text) for text in made.cannot_verify(key=key)]
    return {"ok": all(c["ok"] for c in checks), "checks": checks, "cannot": cannot}


def lines(folder: Path, found: dict[str, Any]) -> list[str]:
    """The result of the checks as text."""
    checks = found["checks"]
    heads = [f"{_mark(check['ok'])}  {check['name']}" for check in checks]
    text = [_in_colour(line) for line in layout.beside(heads, [check["detail"] for check in checks])]
    text += ["", "What cannot be checked from here:", *(f"- {each}" for each in found["cannot"]), ""]
    failed = sum(not check["ok"] for check in checks)
    if failed:
        said = f"{folder}: {words.counted(failed, 'check')} failed. Do not rely on this release."
        return [*text, layout.Styled(said, fg="red", bold=True)]
    return [*text, layout.Styled(f"{folder}: all {len(checks)} checks passed.", fg="green")]


def _mark(ok: bool) -> str:
    return PASSED if ok else FAILED


def _in_colour(line: str) -> str:
    """A line that begins with a mark, with the mark in its colour."""
    if line.startswith(FAILED):
        return layout.Styled(line, length=len(FAILED), fg="red", bold=True)
    return layout.Styled(line, length=len(PASSED), fg="green") if line.startswith(PASSED) else line
