"""certsynth answer: statistics of a release with certified error bars, without the private rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from certsynth.cli import options, words

if TYPE_CHECKING:
    from certsynth.answers import Answer


@click.command("answer", cls=options.GroupedCommand, short_help="Statistics with certified error bars.")
@click.argument("folder", type=options.FILE, metavar="DIR")
@click.argument("queries", nargs=-1, required=True, metavar="QUERY…")
@options.of(options.JsonOptions)
def command(folder: Path, queries: tuple[str, ...], as_json: bool) -> None:
    """Answer each QUERY from the release folder DIR: an estimate, and where the true value lies.

    Queries are texts in quotes: "mean(age)", "mean(income | age > 65)", "fraction(age > 65 and region = 'hills')",
    "cdf(age, 42)", "quantile(income, 0.9)", "median(age)", "variance(age)", "sd(age)", "covariance(age, income)",
    "correlation(age, income)", "count(age > 65)", "sum(income)".

    No private row is needed. The contents of the folder are trusted; `certsynth verify` checks them.
    """
    from certsynth import Release

    made = Release.load(folder)
    answers = [made.answer(query) for query in queries]
    if as_json:
        found = [each.to_json() for each in answers]
        words.print_json(found[0] if len(found) == 1 else {"answers": found})
    else:
        click.echo("\n".join(lines(answers)))


def lines(answers: Sequence[Answer]) -> list[str]:
    """Answers as text: a sentence for one, a table for several."""
    if len(answers) == 1:
        (only,) = answers
        return [f"{only}.", f"How: {only.how}."]
    rows = [("query", "estimate", "low", "high"), *((each.query, *each.shown()) for each in answers)]
    return [
        *words.table(rows, text=1),
        "",
        f"With confidence {words.percent(answers[0].confidence)}, every true value lies between low and high, all at "
        "once.",
    ]
