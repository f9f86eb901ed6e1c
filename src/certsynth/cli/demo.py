"""certsynth demo: the whole journey on a made-up table."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import click

from certsynth.algorithm.declaration import BASIC, OUTPUT, Option
from certsynth.cli import certify as certifying
from certsynth.cli import evaluate as evaluating
from certsynth.cli import ledger as ledgers
from certsynth.cli import options, words
from certsynth.cli import plan as planning
from certsynth.cli import release as releasing
from certsynth.cli import report as reporting
from certsynth.cli import schema as drafting
from certsynth.cli import verify as verifying
from certsynth.cli.failure import CHECK_FAILED, note_target
from certsynth.cli.progress import bars

ROWS = 20_000
EPSILON, CERTIFY_EPSILON, CAP = "1", "0.5", "2"
PLANNED = ("identity", 8)
"""Mechanism and resolution that the plan is about: all of them would take a minute."""
QUESTIONS = ("mean(age)", "mean(income)", "fraction(employed = true and region = 'harbour')")
SHOWN = 12  # lines of a schema
WIDTH = 100

PRIVATE = """{people} is the register of a made-up town: {rows:,} people, seven columns that depend on each other.
Imagine that it is private."""
DRAFT = """A schema says what a row may hold. This command drafts one from the rows, so the draft betrays them: the
oldest person, every label. It carries the line draft = true, and release refuses it until a person has replaced each
bound and label by public knowledge, and removed that line."""
SCHEMA = """{schema} is what a person made of it. It is all that anybody must know beforehand:"""
PLAN = """What noise does depends on the schema, the number of people and the budget epsilon, and on no row. So the
error can be predicted before anything is spent. A small epsilon protects people more, and costs accuracy."""
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
ANSWERS = """Whoever gets the release can ask it. Each answer comes with the range in which the answer of the real
people lies, at the certificate's confidence, for all such questions together."""
REPORT = """Open {page} in a browser. It tells all this about the release, and works offline."""


class DemoOptions(options.TalkOptions, total=False):
    """What the demo takes."""

    rows: Annotated[
        int, Option("How many people live in the made-up town.", BASIC, default=ROWS, typed="whole", metavar="N")
    ]
    out: Annotated[
        Path,
        Option("A folder for it; it must not exist yet.", OUTPUT, default=Path("demo"), typed="file", metavar="DIR"),
    ]


@click.command("demo", cls=options.GroupedCommand, short_help="The whole journey on a made-up table.")
@options.of(DemoOptions, rows=click.IntRange(1, 1_000_000))
@click.pass_context
def command(ctx: click.Context, out: Path, rows: int, quiet: bool, as_json: bool) -> None:
    """Go the whole way on a made-up table: schema, plan, release, verify, answer, certify, evaluate, report.

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


class Guide:
    """Tells each step: its title, why it is done, the command that does it, and what comes out."""

    def __init__(self, *, silent: bool) -> None:
        self.silent, self.steps = silent, 0

    def step(self, title: str, why: str, command: str = "") -> None:
        self.steps += 1
        shown = ["", f"── {self.steps}. {title}", *textwrap.wrap(why, WIDTH), ""]
        self._say([*shown, f"  $ certsynth {command}", ""] if command else shown)

    def show(self, lines: Sequence[str]) -> None:
        self._say([textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  ") for line in lines])

    def quote(self, text: str) -> None:
        """The beginning of a file."""
        self._say([*(f"  │ {line}".rstrip() for line in text.splitlines()[:SHOWN]), "  │ …", ""])

    def _say(self, lines: Sequence[str]) -> None:
        if not self.silent:
            click.echo("\n".join(lines))


def journey(out: Path, rows: int, *, quiet: bool, tell: bool) -> dict[str, Any]:
    """Every step with the command that does it, what it means and what comes out."""
    from certsynth import Ledger, Schema, certify, demo, evaluate, plan, release

    names = ("people.csv", "draft.toml", "schema.toml", "release", "shuffled.csv", "ledger.jsonl")
    people, draft, schema_file, folder, broken, ledger = (out / name for name in names)
    synthetic, page = folder / "synthetic.csv", folder / "report.html"
    guide = Guide(silent=not tell)

    guide.step("A private table", PRIVATE.format(people=people, rows=rows))
    table = demo.people(rows)
    demo.write_csv(table, people)

    guide.step("What a row may hold", DRAFT, f"schema {people} --out {draft}")
    drafting.drafted(people, draft)
    guide.quote(draft.read_text(encoding="utf-8"))
    schema_file.write_text(demo.SCHEMA, encoding="utf-8")
    schema = Schema.load(schema_file)
    guide.show([SCHEMA.format(schema=schema_file)])
    guide.quote(demo.SCHEMA)

    asked: dict[str, Any] = {"epsilon": EPSILON, "mechanism": PLANNED[0], "resolution": PLANNED[1]}
    typed = " ".join(f"--{name} {value}" for name, value in asked.items())
    guide.step("What to expect", PLAN, f"plan --schema {schema_file} --rows {rows} {typed}")
    with bars(quiet=quiet) as progress:
        planned = plan(schema, rows=rows, progress=progress, **asked)
    guide.show([planning.expectation(planned), "", "What would change:", *planning.changes(planned)])

    spending = f"--schema {schema_file} --epsilon"
    charging = f"--ledger {ledger}"
    guide.step(
        "A synthetic table for everybody",
        RELEASE,
        f"release {people} {spending} {EPSILON} --out {folder} {charging} --cap {CAP}",
    )
    with bars(quiet=quiet) as progress:
        made = release(people, schema, epsilon=EPSILON, out=folder, ledger=ledger, cap=CAP, progress=progress)
    guide.show(releasing.lines(made, folder)[:-2])

    guide.step("Anybody can check it", VERIFY, f"verify {folder}")
    verified = verifying.result(folder)
    guide.show(verifying.lines(folder, verified))

    questions = " ".join(f'"{question}"' for question in QUESTIONS)
    guide.step("Answers with error bars", ANSWERS, f"answer {folder} {questions}")
    answers = [made.answer(question) for question in QUESTIONS]
    guide.show([str(answer) for answer in answers])

    demo.write_csv(demo.shuffled(table), broken)
    guide.step(
        "A bad synthetic table is caught",
        CERTIFY.format(broken=broken),
        f"certify {people} {broken} {spending} {CERTIFY_EPSILON} {charging}",
    )
    with bars(quiet=quiet) as progress:
        certified = certify(people, broken, schema, epsilon=CERTIFY_EPSILON, ledger=ledger, progress=progress)
    guide.show(certifying.lines(certified, each=False))

    guide.step("What has been spent", LEDGER, f"ledger {ledger}")
    guide.show(ledgers.lines(ledger, Ledger.load(ledger))[:-2])

    guide.step(
        "The truth, for the owner only",
        EVALUATE.format(bound=words.upward(made.certificate.bound)),
        f"evaluate {people} {synthetic} --schema {schema_file}",
    )
    with bars(quiet=quiet) as progress:
        evaluated = evaluate(people, synthetic, schema, progress=progress)
    guide.show(evaluating.lines(evaluated))

    guide.step("A page to read", REPORT.format(page=page), f"report {folder}")
    guide.show([reporting.line(page, reporting.written(folder, page))])
    return {
        "out": str(out),
        "data": str(people),
        "schema": str(schema_file),
        "report": str(page),
        "plan": planned.to_json()["choice"],
        "release": releasing.result(made, folder),
        "verify": verified,
        "answers": [answer.to_json() for answer in answers],
        "certify": certifying.result(certified),
        **ledgers.told(ledger),
        "evaluate": evaluated.to_json(),
    }
