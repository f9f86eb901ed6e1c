"""certsynth evaluate: the true loss, for the data owner only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsynth.algorithm.options import EvaluateOptions
from certsynth.cli import layout, options, words
from certsynth.cli.failure import say
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.algorithm.evaluate import Evaluation
    from certsynth.algorithm.request import Named

WARNING = (
    "note: the output of evaluate is NOT private. It is for the owner of the data and must not leave your organisation."
)


@click.command("evaluate", cls=options.GroupedCommand, short_help="The true loss. NOT private.")
@click.argument("private", type=options.TABLE)
@click.argument("synthetic", type=options.FILE)
@options.of(options.SchemaOptions, options.ReadingOptions, EvaluateOptions, options.TalkOptions)
def command(private: str, synthetic: Path, schema_file: Path, quiet: bool, as_json: bool, **choices: Any) -> None:
    """Compute the true distance of the table SYNTHETIC from the rows of PRIVATE. NOT private.

    No noise is added: the output is for the owner of the data and must not leave your organisation.
    """
    from certsynth import Schema, evaluate

    table = options.table(private, choices)
    schema, subsets = Schema.load(schema_file), options.read_workload(choices)
    with bars(quiet=quiet) as progress:
        found = evaluate(table, synthetic, schema, progress=progress, **choices)
    say(WARNING)
    if as_json:
        words.print_json(found.to_json())
    else:
        layout.show(lines(found, subsets))


def lines(found: Evaluation, named: Named | None = None) -> list[str]:
    """An evaluation as text; `named` are the requested subsets, if not all."""
    answer = found.to_json()
    subsets = answer["subsets"]
    solved = [subset for subset in subsets if subset["value"] is not None]
    skipped = len(subsets) - len(solved)
    return [
        f"The largest error of a 1-Lipschitz statistic of {words.covered(subsets, named)} is between "
        f"{words.downward(answer['lower'])} and {words.upward(answer['upper'])} "
        f"({answer['value']:.4f} on the lattice).",
        f"Skipped, since they cannot have the largest: {words.counted(skipped, 'subset')} of columns."
        if skipped
        else f"On average over the subsets of columns it is at most {words.upward(answer['mean_upper'])}.",
        *([f"The rows compared are {found.persons.kept}."] if found.persons else []),
        "",
        f"The worst of {words.counted(len(subsets), 'subset')}:",
        *words.worst(solved, "upper", "lower"),
    ]
