"""certsynth evaluate: the true loss, for the owner's eyes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsynth.algorithm.options import EvaluateOptions
from certsynth.cli import options, words
from certsynth.cli.failure import say
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.algorithm.evaluate import Evaluation
    from certsynth.algorithm.request import Named

WARNING = "note: what evaluate prints is NOT private. It is for the owner of the rows, and must not leave the house."


@click.command("evaluate", cls=options.GroupedCommand, short_help="How far it truly is. NOT private.")
@click.argument("private", type=options.TABLE)
@click.argument("synthetic", type=options.FILE)
@options.of(options.SchemaOptions, options.ReadingOptions, EvaluateOptions, options.TalkOptions)
def command(private: str, synthetic: Path, schema_file: Path, quiet: bool, as_json: bool, **choices: Any) -> None:
    """Compute how far the table SYNTHETIC truly is from the rows of PRIVATE. NOT private.

    No noise is added: what it prints is for the owner of the rows, and must not leave the house.
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
        click.echo("\n".join(lines(found, subsets)))


def lines(found: Evaluation, named: Named | None = None) -> list[str]:
    """An evaluation in words; `named` are the subsets that were asked for, if not all."""
    answer = found.to_json()
    subsets = answer["subsets"]
    return [
        f"The largest error of a 1-Lipschitz statistic of {words.covered(subsets, named)} is between "
        f"{words.downward(answer['lower'])} and {words.upward(answer['upper'])} "
        f"({answer['value']:.4f} on the lattice).",
        f"On average over the subsets of columns it is at most {words.upward(answer['mean_upper'])}.",
        "",
        f"The worst, of {len(subsets):,}:",
        *words.worst(subsets, "upper", "lower"),
    ]
