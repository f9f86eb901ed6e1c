"""certsynth certify: the distance of any synthetic table from the private rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsynth.algorithm.options import CertifyOptions
from certsynth.cli import layout, options, words
from certsynth.cli import ledger as ledgers
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.algorithm.certify import Certification
    from certsynth.algorithm.request import Named


@click.command("certify", cls=options.GroupedCommand, short_help="Certify any synthetic table, privately.")
@click.argument("private", type=options.TABLE)
@click.argument("synthetic", type=options.FILE)
@options.of(options.SchemaOptions, options.ReadingOptions, CertifyOptions, options.TalkOptions)
def command(private: str, synthetic: Path, schema_file: Path, quiet: bool, as_json: bool, **choices: Any) -> None:
    """Certify the table SYNTHETIC, whatever its origin, against the rows of PRIVATE.

    The answer is differentially private for the rows of PRIVATE and may be published. SYNTHETIC must already be public,
    or have been made with a privacy budget of its own, which adds to this one.
    """
    from certsynth import Schema, certify

    table = options.table(private, choices)
    schema, subsets = Schema.load(schema_file), options.read_workload(choices)
    with bars(quiet=quiet) as progress:
        found = certify(table, synthetic, schema, progress=progress, **choices)
    options.warn_of_missing_ledger(choices)
    if as_json:
        words.print_json(result(found) | ledgers.ledger_json(choices["ledger"]))
    else:
        weighted = any(column.weight != 1 for column in schema)
        by_ratios = [column.name for column in schema if getattr(column, "grid", ())]
        text = lines(found, subsets, each=bool(choices["per_subset"]), weighted=weighted, by_ratios=by_ratios)
        layout.show([*text, *ledgers.ledger_lines(choices["ledger"])])


def result(found: Certification) -> dict[str, Any]:
    """A certification as JSON, with the budget as numbers."""
    answer = found.to_json()
    return answer | words.budget_numbers(answer["epsilon"], answer["delta"], answer["rho"])


def lines(
    found: Certification,
    named: Named | None = None,
    *,
    each: bool,
    weighted: bool = False,
    by_ratios: Sequence[str] = (),
) -> list[str]:
    """A certification as text; `named` are the requested subsets, if not all."""
    from certsynth.report import persons as person_words  # imports what --help does without
    from certsynth.report import statistics

    answer, persons = found.to_json(), found.protection.persons
    subsets, spent = answer["subsets"], words.budget(answer["epsilon"], answer["delta"], answer["rho"])
    other = statistics.other_figures(found.statistics, by_ratios, found.exceptions)
    text = [
        statistics.promise(found.statistics, words.percent(answer["confidence"]), found.exceptions),
        *_lower_figures(answer["statistics"]),
        *([other] if other else []),
        words.promise(
            answer["bound"],
            confidence=answer["confidence"],
            columns=words.covered(subsets, named),
            weighted=weighted,
        ),
        *words.exceptions(found.exceptions, subsets, listed="with --json"),
        f"Some such statistic is off by at least {words.downward(answer['lower'])}.",
        f"For statistics of one column: at most {words.upward(answer['single_column_bound'])}.",
        f"privacy: this answer cost {spent} under {answer['neighbours']} neighbours",
        *([f"persons: {person_words.protection(persons)}"] if persons else []),
    ]
    if each:
        text += ["", f"The largest bounds, of {len(subsets):,}:", *words.worst(subsets, "bound", "lower")]
    return text


def _lower_figures(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Errors of shares that are certain, if there are any: they show that a table is wrong."""
    kinds = {"share_of_one_column": "one column", "share_of_two_columns": "two columns"}
    return [
        f"Some share of {of} is off by at least {words.downward(found[name]['lower'])}."
        for name, of in kinds.items()
        if name in found and found[name]["lower"] > 0
    ]
