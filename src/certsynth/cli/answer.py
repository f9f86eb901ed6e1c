"""certsynth answer: statistics of a release with certified error bars, without the private rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from certsynth.cli import options, words
from certsynth.cli.progress import READING, bars

if TYPE_CHECKING:
    from certsynth.answers import Answer, TableAnswer


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
    "histogram(age)", "histogram(age, 10)".

    No private row is needed. The contents of the folder are trusted; `certsynth verify` checks them.
    """
    from certsynth import Release

    answers: list[Answer | TableAnswer] = []
    with bars(quiet=quiet) as progress:
        progress(READING, 0, None)
        made = Release.load(folder)
        for query in queries:
            progress("answering", len(answers), len(queries))
            answers.append(made.answer(query, alone=alone))
    if as_json:
        found = [each.to_json() for each in answers]
        words.print_json(found[0] if len(found) == 1 else {"answers": found})
    else:
        click.echo("\n".join(lines(answers)))


def lines(answers: Sequence[Answer | TableAnswer]) -> list[str]:
    """Answers as text: a sentence for one statistic, a table for several; after these the tables of shares."""
    from certsynth.answers import Answer, TableAnswer

    statistics = [each for each in answers if isinstance(each, Answer)]
    blocks = [_statistic_lines(statistics)] if statistics else []
    blocks += [[str(each), f"How: {each.how}."] for each in answers if isinstance(each, TableAnswer)]
    return [line for i, block in enumerate(blocks) for line in ([""] * (i > 0) + block)]


def _statistic_lines(answers: Sequence[Answer]) -> list[str]:
    if len(answers) == 1:
        (only,) = answers
        return [f"{only}."] if only.says_nothing else [f"{only}.", f"How: {only.how}."]
    rows = [("query", "estimate", "low", "high")]
    for each in answers:
        estimate, low, high = each.shown()
        rows.append((each.query, estimate, *(("–", "–") if each.says_nothing else (low, high))))
    silent = [
        f"The certificate says nothing about {each.query}: {each.says_nothing}."
        for each in answers
        if each.says_nothing
    ]
    return [
        *words.table(rows, text=1),
        "",
        *silent,
        f"With confidence {words.percent(answers[0].confidence)}, "
        + (
            "a true value lies between low and high; this is valid for each query alone, not for all at once."
            if answers[0].alone
            else "every true value lies between low and high, all at once."
        ),
    ]
