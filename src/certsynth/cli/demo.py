"""certsynth demo: a tour of all commands on a made-up table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from certsynth.algorithm.declaration import BASIC, OUTPUT, Option
from certsynth.cli import answer as answering
from certsynth.cli import certify as certifying
from certsynth.cli import check as checking
from certsynth.cli import evaluate as evaluating
from certsynth.cli import layout, options, words
from certsynth.cli import ledger as ledgers
from certsynth.cli import plan as planning
from certsynth.cli import release as releasing
from certsynth.cli import report as reporting
from certsynth.cli import schema as drafting
from certsynth.cli import verify as verifying
from certsynth.cli.failure import CHECK_FAILED, note_target
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.algorithm.certify import Certification
    from certsynth.algorithm.evaluate import Evaluation
    from certsynth.answers import Answer, TableAnswer
    from certsynth.artefact import Release
    from certsynth.domain import Schema
    from certsynth.planning.plan import Plan
    from certsynth.sources.check import TableCheck

ROWS = 20_000
EPSILON, CERTIFY_EPSILON, CAP = "1", "0.5", "2"
QUESTIONS = ("mean(age)", "mean(income)", "fraction(employed = true and region = 'harbour')")
SCHEMA_LINES_SHOWN = 12  # lines of a schema

PRIVATE = """{people} is the register of a made-up town: {rows:,} people and seven dependent columns. Imagine that it
is private."""
DRAFT = """A schema says what a row may hold. This command drafts one from the rows, so the draft reveals private
facts: the age of the oldest person, every label. It contains the line draft = true, and release refuses it until a
person has replaced each bound and label by public knowledge and removed that line."""
SCHEMA = """{schema} is the draft after a person has edited it. It is the only prior knowledge needed:"""
CHECK = """A release does not say whether the schema fits the rows, since that is private. This command does, for the
owner of the data: it finds values out of bounds, labels in another spelling and dates in another format. Its output
is NOT private. Values beyond a bound count as the bound, which can be acceptable."""
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
REPORT = """The report presents all of this about the release, and answers questions. It is one file that works
offline, in any browser."""


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
    """Run all commands on a made-up table: schema, check, plan, release, verify, answer, certify,
    evaluate, report.

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

    def step(self, title: str, why: str, command: Sequence[object] = ()) -> None:
        self.steps += 1
        typed = layout.command(["certsynth", *map(str, command)], before="  $ ") if command else []
        shown = ["", layout.heading(f"── {self.steps}. {title}"), " ".join(why.split()), ""]
        self.say([*shown, *typed, ""] if command else shown)

    def show(self, text: Callable[[], Sequence[str]]) -> None:
        """Print what a command prints, a little to the right."""
        with layout.indented(2):
            lines = [part for line in text() for part in layout.wrap(line)]
        self.say([layout.indent(line, 2) for line in lines])

    def quote(self, text: str) -> None:
        """Print the beginning of a file."""
        lines = text.splitlines()[:SCHEMA_LINES_SHOWN]
        self.say([*(layout.shorten(f"  │ {line}".rstrip()) for line in lines), "  │ …", ""])

    def say(self, lines: Sequence[str]) -> None:
        if not self.silent:
            layout.show(lines)


class Journey:
    """The steps of the demo in order. Each prints its command, its meaning and its output."""

    def __init__(self, out: Path, rows: int, *, quiet: bool, tell: bool) -> None:
        names = ("people.csv", "draft.toml", "schema.toml", "release", "shuffled.csv", "ledger.jsonl")
        self.people, self.draft, self.schema_file, self.folder, self.shuffled, self.ledger = (out / n for n in names)
        self.page = self.folder / "report.html"
        self.rows, self.quiet, self.guide = rows, quiet, Guide(silent=not tell)

    @property
    def schema(self) -> Schema:
        from certsynth import Schema

        return Schema.load(self.schema_file)

    def make_table(self) -> Mapping[str, Any]:
        from certsynth import demo

        self.guide.step("A private table", PRIVATE.format(people=self.people, rows=self.rows))
        table = demo.people(self.rows)
        demo.write_csv(table, self.people)
        return table

    def write_schema(self) -> None:
        from certsynth import demo

        self.guide.step("What a row may hold", DRAFT, ["schema", self.people, "--out", self.draft])
        drafting.write_draft(self.people, self.draft)
        self.guide.quote(self.draft.read_text(encoding="utf-8"))
        self.schema_file.write_text(demo.SCHEMA, encoding="utf-8")
        self.guide.show(lambda: [SCHEMA.format(schema=self.schema_file)])
        self.guide.quote(demo.SCHEMA)

    def check(self) -> TableCheck:
        from certsynth import check

        self.guide.step("Does it fit?", CHECK, ["check", self.people, "--schema", self.schema_file])
        with bars(quiet=self.quiet) as progress:
            checked = check(self.people, self.schema, progress=progress)
        self.guide.show(lambda: [checking.summary(checked)])
        return checked

    def plan(self) -> Plan:
        from certsynth import plan

        typed = ["plan", "--schema", self.schema_file, "--rows", self.rows, "--epsilon", EPSILON]
        self.guide.step("What to expect", PLAN, typed)
        with bars(quiet=self.quiet) as progress:
            planned = plan(self.schema, rows=self.rows, epsilon=EPSILON, progress=progress)
        self.guide.show(lambda: planning.lines(planned, self.schema))
        return planned

    def release(self) -> Release:
        from certsynth import release

        typed = ["release", self.people, "--schema", self.schema_file, "--epsilon", EPSILON]
        typed += ["--out", self.folder, "--ledger", self.ledger, "--cap", CAP]
        self.guide.step("A synthetic table for everybody", RELEASE, typed)
        charged: dict[str, Any] = {"epsilon": EPSILON, "ledger": self.ledger, "cap": CAP}
        with bars(quiet=self.quiet) as progress:
            made = release(self.people, self.schema, out=self.folder, progress=progress, **charged)
        self.guide.show(lambda: releasing.summary(made, self.folder))
        return made

    def verify(self) -> dict[str, Any]:
        self.guide.step("Anybody can check it", VERIFY, ["verify", self.folder])
        with bars(quiet=self.quiet) as progress:
            verified = verifying.result(self.folder, progress=progress)
        self.guide.show(lambda: verifying.lines(self.folder, verified))
        return verified

    def answer(self, made: Release) -> list[Answer | TableAnswer]:
        self.guide.step("Answers with error bars", ANSWERS, ["answer", self.folder, *QUESTIONS])
        answers = [made.answer(question) for question in QUESTIONS]
        self.guide.show(lambda: answering.lines(answers))
        return answers

    def certify(self, table: Mapping[str, Any]) -> Certification:
        from certsynth import certify, demo

        demo.write_csv(demo.shuffled(table), self.shuffled)
        typed = ["certify", self.people, self.shuffled, "--schema", self.schema_file]
        typed += ["--epsilon", CERTIFY_EPSILON, "--ledger", self.ledger]
        self.guide.step("A bad synthetic table is caught", CERTIFY.format(broken=self.shuffled), typed)
        charged: dict[str, Any] = {"epsilon": CERTIFY_EPSILON, "ledger": self.ledger}
        with bars(quiet=self.quiet) as progress:
            certified = certify(self.people, self.shuffled, self.schema, progress=progress, **charged)
        self.guide.show(lambda: certifying.lines(certified, each=False))
        return certified

    def show_ledger(self) -> None:
        from certsynth import Ledger

        self.guide.step("What has been spent", LEDGER, ["ledger", self.ledger])
        self.guide.show(lambda: ledgers.lines(self.ledger, Ledger.load(self.ledger))[:-2])

    def evaluate(self, made: Release) -> Evaluation:
        from certsynth import evaluate

        synthetic = self.folder / "synthetic.csv"
        why = EVALUATE.format(bound=words.upward(made.certificate.bound))
        command = ["evaluate", self.people, synthetic, "--schema", self.schema_file]
        self.guide.step("The truth, for the owner only", why, command)
        with bars(quiet=self.quiet) as progress:
            evaluated = evaluate(self.people, synthetic, self.schema, progress=progress)
        self.guide.show(lambda: evaluating.lines(evaluated))
        return evaluated

    def show_report(self) -> None:
        self.guide.step("A page to read", REPORT, ["report", self.folder])
        written = reporting.written(self.folder, self.page)
        self.guide.show(lambda: [reporting.line(self.page, written)])
        self.guide.say(["", layout.strong(f"The file to open: {self.page}")])


def journey(out: Path, rows: int, *, quiet: bool, tell: bool) -> dict[str, Any]:
    """Take every step, and return what they found as JSON."""
    steps = Journey(out, rows, quiet=quiet, tell=tell)
    table = steps.make_table()
    steps.write_schema()
    checked = steps.check()
    planned = steps.plan()
    made = steps.release()
    verified, answers, certified = steps.verify(), steps.answer(made), steps.certify(table)
    steps.show_ledger()
    evaluated = steps.evaluate(made)
    steps.show_report()
    return {
        "out": str(out),
        "data": str(steps.people),
        "schema": str(steps.schema_file),
        "report": str(steps.page),
        "check": {"private": False, "fits": checked.fits},
        "plan": planned.to_json()["choice"],
        "release": releasing.result(made, steps.folder),
        "verify": verified,
        "answers": [answer.to_json() for answer in answers],
        "certify": certifying.result(certified),
        **ledgers.ledger_json(steps.ledger),
        "evaluate": evaluated.to_json(),
    }
