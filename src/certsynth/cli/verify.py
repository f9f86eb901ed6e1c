"""certsynth verify: what anybody can check about a release, without the private rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from certsynth.cli import options, words
from certsynth.cli.failure import CHECK_FAILED


@click.command("verify", short_help="Check a release without the private rows.")
@click.argument("folder", type=options.FILE, metavar="DIR")
@options.as_json
@click.pass_context
def command(ctx: click.Context, folder: Path, as_json: bool) -> None:
    """Check the release folder DIR, without the private rows: files, values, budget, certificate, report.

    The exit code is 1 if a check fails.
    """
    checks = checked(folder)
    ok = all(check["ok"] for check in checks)
    if as_json:
        words.print_json({"ok": ok, "checks": checks})
    else:
        click.echo("\n".join(lines(folder, checks)))
    if not ok:
        ctx.exit(CHECK_FAILED)


def checked(folder: Path) -> list[dict[str, Any]]:
    """The checks of a release. A folder with checksums that cannot be read as a release has failed one."""
    from certsynth import Release
    from certsynth.artefact.folder import SUMS, check_sums
    from certsynth.errors import InputError

    try:
        return Release.load(folder).verify()
    except InputError as error:
        if not (folder / SUMS).is_file():
            raise
        problems = check_sums(folder)
        about = "; ".join(problems) or "every file is there and has its checksum"
        return [
            {"name": "files", "ok": not problems, "detail": about},
            {"name": "reading", "ok": False, "detail": str(error)},
        ]


def lines(folder: Path, checks: list[dict[str, Any]]) -> list[str]:
    """The checks in words."""
    width = max(len(check["name"]) for check in checks)
    text = [f"{'ok    ' if c['ok'] else 'FAILED'}  {c['name'].ljust(width)}  {c['detail']}" for c in checks]
    failed = sum(not check["ok"] for check in checks)
    if failed:
        return [*text, "", f"{folder}: {words.counted(failed, 'check')} failed. Do not rely on this release."]
    return [*text, "", f"{folder}: all {len(checks)} checks passed."]
