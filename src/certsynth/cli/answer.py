"""certsynth answer: statistics of a release with certified error bars, without the private rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from certsynth.base.text import table as align
from certsynth.cli import failure, layout, options, words
from certsynth.cli.progress import READING, bars
from certsynth.errors import InputError

if TYPE_CHECKING:
    from certsynth.answers import Answer, TableAnswer, Unanswered

MAX_SHOWN_CHARACTERS = 120
"""Most characters of a query in a table of answers."""

UNKNOWN = "–"
"""In place of a figure about which nothing is known."""


@click.command("answer", cls=options.GroupedCommand, short_help="Statistics with certified error bars.")
@click.argument("folder", type=options.FILE, metavar="DIR")
@click.argument("queries", nargs=-1, required=True, metavar="QUERY…")
@options.of(options.AnswerOptions)
def command(folder: Path, queries: tuple[str, ...], alone: bool, quiet: bool, as_json: bool) -> None:
    """Answer each QUERY from the release folder DIR: an estimate, and where the true value lies.

    Queries are texts in quotes: "mean(age)", "mean(income | age > 65)", "fraction(age > 65 and region = 'hills')",
    "cdf(age, 42)", "quantile(income, 0.9)", "median(age)", "variance(age)", "sd(age)", "covariance(age, income)",
    "correlation(age, income)", "count(age > 65)", "sum(income)"; the difference of two of these, such as
    "mean(income | sex = 'f') - mean(income | sex = 'm')"; and tables of shares: "table(region, employed)",
    "histogram(age)", "histogram(age, 10)". "mean(income) by region, employed" answers a statistic for each group.

    A query that cannot be answered has its error in place of the answer, and the others are answered. The exit code is
    0 if all queries are answered, 1 if some are, and 2 if none is.

    No private row is needed. The contents of the folder are trusted; `certsynth verify` checks them.
    """
    from certsynth import Release
    from certsynth.answers import Unanswered

    answers: list[Answer | TableAnswer | Unanswered] = []
    with bars(quiet=quiet) as progress:
        progress(READING, 0, None)
        made = Release.load(folder)
        for query in queries:
            progress("answering", len(answers), len(queries))
            answers.append(_in_flags(made.answer(query, alone=alone, errors="return")))
    unanswered = [each for each in answers if isinstance(each, Unanswered)]
    if len(answers) == len(unanswered) == 1:
        raise InputError(str(unanswered[0]))
    if as_json:
        found = [each.to_json() for each in answers]
        words.print_json(found[0] if len(found) == 1 else {"answers": found})
    else:
        layout.show(lines(answers))
    if unanswered:
        failure.say(f"error: {len(unanswered):,} of {len(answers):,} queries cannot be answered.")
        every = len(unanswered) == len(answers)
        click.get_current_context().exit(failure.BAD_INPUT if every else failure.CHECK_FAILED)


def _in_flags(found: Answer | TableAnswer | Unanswered) -> Answer | TableAnswer | Unanswered:
    """The same answer; an error names command-line flags in place of Python arguments."""
    from certsynth.answers import Unanswered

    return Unanswered(found.query, failure.in_flags(found.error)) if isinstance(found, Unanswered) else found


def lines(answers: Sequence[Answer | TableAnswer | Unanswered]) -> list[str]:
    """Answers as text: a sentence for one statistic, a table for several; after these the tables of shares and of
    groups."""
    from certsynth.answers import TableAnswer

    statistics = [each for each in answers if not isinstance(each, TableAnswer)]
    blocks = [_statistic_lines(statistics)] if statistics else []
    blocks += [[*_table_lines(each), f"How: {each.how}."] for each in answers if isinstance(each, TableAnswer)]
    return [line for i, block in enumerate(blocks) for line in ([""] * (i > 0) + block)]


def _table_lines(found: TableAnswer) -> list[str]:
    """A table of answers; in a terminal that is too narrow for it, the figures of each cell are below its labels."""
    promise, *table = str(found).splitlines()
    if layout.fits(table):
        return [promise, *table]
    _, *cells = found.texts()
    columns = len(found.columns)
    stacked = [(f"  {', '.join(cell[:columns])}", _between(*cell[columns:])) for cell in cells]
    return [promise, *(line for labels, figures in stacked for line in (labels, f"    {figures}"))]


def _between(estimate: str, low: str, high: str) -> str:
    return estimate if low == UNKNOWN else f"{estimate}, between {low} and {high}"


def _statistic_lines(statistics: Sequence[Answer | Unanswered]) -> list[str]:
    from certsynth.answers import Answer

    answers = [each for each in statistics if isinstance(each, Answer)]
    if len(statistics) == len(answers) == 1:
        (only,) = answers
        return [f"{only}."] if only.says_nothing else [f"{only}.", f"How: {only.how}."]
    shown = [(_on_one_line(each.query), *_figures(each)) for each in statistics]
    table = None if layout.width() < layout.NARROW else _tabulated(statistics, shown)
    between = "between the two ends" if table is None else "between low and high"
    if not answers:
        return _stacked(statistics, shown) if table is None else table[1:]
    silent = [
        f"The certificate says nothing about {each.query}: {each.says_nothing}."
        for each in answers
        if each.says_nothing
    ]
    return [
        *(_stacked(statistics, shown) if table is None else table),
        "",
        *silent,
        f"With confidence {words.percent(answers[0].confidence)}, "
        + (
            f"a true value lies {between}; this is valid for each query alone, not for all at once."
            if answers[0].alone
            else f"every true value lies {between}, all at once."
        ),
        *([f"True values are those of {answers[0].about}."] if answers[0].about else []),
    ]


def _figures(each: Answer | Unanswered) -> tuple[str, str, str]:
    """Estimate, low and high as texts; dashes where nothing is known."""
    from certsynth.answers import Unanswered

    if isinstance(each, Unanswered):
        return UNKNOWN, UNKNOWN, UNKNOWN
    estimate, low, high = each.shown()
    return (estimate, UNKNOWN, UNKNOWN) if each.says_nothing else (estimate, low, high)


def _tabulated(statistics: Sequence[Answer | Unanswered], shown: Sequence[tuple[str, ...]]) -> list[str] | None:
    """A head, and a line for each query, in which an error takes the place of the figures; None if it does not fit."""
    width = max(len(query) for query, *_ in [("query",), *shown])
    rows = [("query".ljust(width), "estimate", "low", "high")]
    rows += [(query.ljust(width), estimate, low, high) for query, estimate, low, high in shown]
    table = align(rows, text=1)
    for i, ((query, *_), each) in enumerate(zip(shown, statistics, strict=True), start=1):
        if each.error:
            table[i] = f"  {query.ljust(width)}  error: {each.error}"
    return table if layout.fits(table) else None


def _stacked(statistics: Sequence[Answer | Unanswered], shown: Sequence[tuple[str, ...]]) -> list[str]:
    """Each query, and below it the figures or the error."""
    lines = []
    for each, (query, *figures) in zip(statistics, shown, strict=True):
        lines += [f"  {query}", f"    {f'error: {each.error}' if each.error else _between(*figures)}"]
    return lines


def _on_one_line(query: str) -> str:
    """The text of a query, cut if it is long; control characters are replaced."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in query)
    return plain if len(plain) <= MAX_SHOWN_CHARACTERS else f"{plain[: MAX_SHOWN_CHARACTERS - 1]}…"
