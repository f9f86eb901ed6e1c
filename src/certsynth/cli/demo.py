"""certsynth demo: the whole journey on a made-up table."""

from __future__ import annotations

import os
import shutil
import textwrap
from pathlib import Path
from typing import Any

import click

from certsynth.cli import certify as certifying
from certsynth.cli import evaluate as evaluating
from certsynth.cli import ledger as ledgers
from certsynth.cli import options, words
from certsynth.cli import release as releasing
from certsynth.cli import report as reporting
from certsynth.cli import verify as verifying
from certsynth.cli.failure import CHECK_FAILED, note_target
from certsynth.cli.progress import bars

ROWS = 20_000
EPSILON, CERTIFY_EPSILON, CAP = "1", "0.5", "2"
WIDTH = 100

PRIVATE = """{people} is the register of a made-up town: {rows:,} people, seven columns that depend on each other.
Imagine that it is private. {schema} says what a row may hold. A person wrote it from public knowledge: nothing in it
was looked up in the rows."""
RELEASE = """The rows are counted, the counts get noise, and new rows are made that fit the noisy counts. Whatever
one person's row holds, what comes out is about as likely. The certificate says how wrong the new rows can be."""
VERIFY = """This needs no private row: the folder holds the noisy counts, and the certificate can be computed from
them again."""
CERTIFY = """{broken} is the town with every column shuffled by itself: each histogram is right, and every dependence
is lost. One column at a time it looks perfect. The certificate for two columns at once exposes it."""
EVALUATE = """The owner can compute the true error of the release. It is NOT private and must not leave the house.
The certificate promises, at its confidence, that it is at most {bound}."""
LEDGER = """Both were charged to the same ledger. It adds up what is spent on these rows, and refuses what would
exceed the cap that was set for them."""
REPORT = """Open {page} in a browser. It tells all this about the release, and works offline."""


@click.command("demo", short_help="The whole journey on a made-up table.")
@click.option(
    "--out",
    type=options.FILE,
    default=Path("demo"),
    show_default=True,
    help="A folder for it; it must not exist yet.",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 1_000_000),
    default=ROWS,
    show_default=True,
    metavar="N",
    help="How many people live in the made-up town.",
)
@options.quiet
@options.as_json
@click.pass_context
def command(ctx: click.Context, out: Path, rows: int, quiet: bool, as_json: bool) -> None:
    """Go the whole way on a made-up table: release, verify, certify, evaluate, report.

    It needs no input, takes less than a minute, and leaves the table, its schema and the release in a folder.
    """
    from certsynth.errors import InputError

    if os.path.lexists(out):
        raise InputError(f"{out} exists already; the demo overwrites nothing. Remove it, or choose another --out.")
    note_target(out)
    try:
        out.mkdir()
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise InputError(f"{out} cannot be made ({reason}); choose another --out.") from None
    try:
        result = journey(out, rows, quiet=quiet, tell=not as_json)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)  # half a demo helps nobody
        raise
    if as_json:
        words.print_json(result)
    if not result["verify"]["ok"]:
        ctx.exit(CHECK_FAILED)


def journey(out: Path, rows: int, *, quiet: bool, tell: bool) -> dict[str, Any]:
    """Every step with the command that does it, what it means and what comes out."""
    from certsynth import Ledger, Schema, certify, demo, evaluate, release

    names = ("people.csv", "schema.toml", "release", "shuffled.csv", "ledger.jsonl")
    people, schema_file, folder, broken, ledger = (out / name for name in names)
    synthetic, page = folder / "synthetic.csv", folder / "report.html"

    def step(title: str, why: str, command: str = "") -> None:
        if tell:
            shown = ["", f"── {title}", *textwrap.wrap(why, WIDTH), ""]
            click.echo("\n".join([*shown, f"  $ certsynth {command}", ""] if command else shown))

    def show(lines: list[str]) -> None:
        if tell:
            for line in lines:
                click.echo(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  "))

    step("1. A private table", PRIVATE.format(people=people, rows=rows, schema=schema_file))
    table = demo.people(rows)
    demo.write_csv(table, people)
    schema_file.write_text(demo.SCHEMA, encoding="utf-8")
    schema = Schema.load(schema_file)

    spending = f"--schema {schema_file} --epsilon"
    step(
        "2. A synthetic table for everybody",
        RELEASE,
        f"release {people} {spending} {EPSILON} --out {folder} --ledger {ledger} --cap {CAP}",
    )
    with bars(quiet=quiet) as progress:
        made = release(people, schema, epsilon=EPSILON, out=folder, ledger=ledger, cap=CAP, progress=progress)
    show(releasing.lines(made, folder)[:-2])

    step("3. Anybody can check it", VERIFY, f"verify {folder}")
    verified = verifying.result(folder)
    show(verifying.lines(folder, verified))

    demo.write_csv(demo.shuffled(table), broken)
    step(
        "4. A bad synthetic table is caught",
        CERTIFY.format(broken=broken),
        f"certify {people} {broken} {spending} {CERTIFY_EPSILON} --ledger {ledger}",
    )
    with bars(quiet=quiet) as progress:
        certified = certify(people, broken, schema, epsilon=CERTIFY_EPSILON, ledger=ledger, progress=progress)
    show(certifying.lines(certified, each=False))

    step("5. What has been spent", LEDGER, f"ledger {ledger}")
    show(ledgers.lines(ledger, Ledger.load(ledger))[:-2])

    step(
        "6. The truth, for the owner only",
        EVALUATE.format(bound=words.upward(made.certificate.bound)),
        f"evaluate {people} {synthetic} --schema {schema_file}",
    )
    with bars(quiet=quiet) as progress:
        evaluated = evaluate(people, synthetic, schema, progress=progress)
    show(evaluating.lines(evaluated))

    step("7. A page to read", REPORT.format(page=page), f"report {folder}")
    show([reporting.line(page, reporting.written(folder, page))])
    return {
        "out": str(out),
        "data": str(people),
        "schema": str(schema_file),
        "report": str(page),
        "release": releasing.result(made, folder),
        "verify": verified,
        "certify": certifying.result(certified),
        **ledgers.told(ledger),
        "evaluate": evaluated.to_json(),
    }
