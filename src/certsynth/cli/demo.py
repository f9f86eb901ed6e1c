"""certsynth demo: a tour of all commands on a made-up table."""

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
"""The only mechanism and resolution that the demo plans: all of them would take a minute."""
QUESTIONS = ("mean(age)", "mean(income)", "fraction(employed = true and region = 'harbour')")
SCHEMA_LINES_SHOWN = 12  # lines of a schema
LINE_WIDTH = 100

PRIVATE = """{people} is the register of a made-up town: {rows:,} people and seven dependent columns. Imagine that it
is private."""
DRAFT = """A schema says what a row may hold. This command drafts one from the rows, so the draft reveals private
facts: the age of the oldest person, every label. It contains the line draft = true, and release refuses it until a
person has replaced each bound and label by public knowledge and removed that line."""
SCHEMA = """{schema} is the draft after a person has edited it. It is the only prior knowledge needed:"""
PLAN = """The effect of the noise depends on the schema, the number of people and the budget epsilon, but on no row.
So the error can be predicted before anything is spent. A smaller epsilon protects people better and costs
accuracy."""
RELEASE = """The rows are counted, noise is added to the counts, and new rows are fitted to the noisy counts. Any
result is almost equally likely whatever a single person's row holds. The certificate bounds the error of the new
rows."""
VERIFY = """This needs no private row: the folder holds the noisy counts, from which the certificate can be
recomputed."""
CERTIFY = """{broken} is the town with each column shuffled independently: every histogram is right, and every
dependence is lost. Column by column it looks perfect. The certificate for two columns at once exposes it."""
EVALUATE = """The owner of the data can compute the true error of the release. It is NOT private and must not leave
your organisation. The certificate guarantees, at its confidence, that it is at most {bound}."""
LEDGER = """Both were charged to the same ledger. It adds up the budget spent on these rows, and refuses any request
that would exceed their cap."""
ANSWERS = """Anybody who has the release can query it. Each answer comes with an interval that contains the true value
for the real people, at the certificate's confidence, simultaneously for all such queries."""
REPORT = """Open {page} in a browser. It presents all of this about the release, and works offline."""


class DemoOptions(options.TalkOptions, total=False):
    """Options of the demo."""

    rows: Annotated[
        int, Option("The number of people in the made-up town.", BASIC, default=ROWS, typed="whole", metavar="N")
    ]
    out: Annotated[
        Path,
        Option(
            "The folder to create; it must not exist yet.", OUTPUT, default=Path("demo"), typed="file", metavar="DIR"
        ),
    ]


@click.command("demo", cls=options.GroupedCommand, short_help="A tour of all commands on a made-up table.")
@options.of(DemoOptions, rows=click.IntRange(1, 1_000_000))
@click.pass_context
def command(ctx: click.Context, out: Path, rows: int, quiet: bool, as_json: bool) -> None:
    """Run all commands on a made-up table: schema, plan, release, verify, answer, certify, evaluate, report.

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
        raise InputError(f"{out} cannot be created ({reason}); choose another --out.") from None
    try:
        result = journey(out, rows, quiet=quiet, tell=not as_json)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)  # do not leave an incomplete demo
        raise
    if as_json:
        words.print_json(result)
    if not result["verify"]["ok"]:
        ctx.exit(CHECK_FAILED)


class Guide:
    """Prints each step: its title, its purpose, the command that performs it, and its output."""

    def __init__(self, *, silent: bool) -> None:
        self.silent, self.steps = silent, 0

    def step(self, title: str, why: str, command: str = "") -> None:
        self.steps += 1
        shown = ["", f"── {self.steps}. {title}", *textwrap.wrap(why, LINE_WIDTH), ""]
        self._say([*shown, f"  $ certsynth {command}", ""] if command else shown)

    def show(self, lines: Sequence[str]) -> None:
        self._say([textwrap.fill(line, LINE_WIDTH, initial_indent="  ", subsequent_indent="  ") for line in lines])

    def quote(self, text: str) -> None:
        """Print the beginning of a file."""
        self._say([*(f"  │ {line}".rstrip() for line in text.splitlines()[:SCHEMA_LINES_SHOWN]), "  │ …", ""])

    def _say(self, lines: Sequence[str]) -> None:
        if not self.silent:
            click.echo("\n".join(lines))


def journey(out: Path, rows: int, *, quiet: bool, tell: bool) -> dict[str, Any]:
    """Run every step, printing its command, its meaning and its output; return the results."""
    from certsynth import Ledger, Schema, certify, demo, evaluate, plan, release

    names = ("people.csv", "draft.toml", "schema.toml", "release", "shuffled.csv", "ledger.jsonl")
    people, draft, schema_file, folder, broken, ledger = (out / name for name in names)
    synthetic, page = folder / "synthetic.csv", folder / "report.html"
    guide = Guide(silent=not tell)

    guide.step("A private table", PRIVATE.format(people=people, rows=rows))
    table = demo.people(rows)
    demo.write_csv(table, people)

    guide.step("What a row may hold", DRAFT, f"schema {people} --out {draft}")
    drafting.write_draft(people, draft)
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
        **ledgers.ledger_json(ledger),
        "evaluate": evaluated.to_json(),
    }
