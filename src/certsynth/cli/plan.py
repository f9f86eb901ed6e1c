"""certsynth plan: what certificate to expect, before a row is read or any budget spent."""

from __future__ import annotations

import csv
import io
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from certsynth.algorithm.options import PlanOptions
from certsynth.cli import options, words
from certsynth.cli.chart import MARKS, chart
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.planning.plan import Plan, Planned

WIDTH = 100
AROUND = 1  # resolutions on either side of a mechanism's best one that are shown; --json has all
CHOSEN, BESIDE = "→", "°"

_NOT_RELEASE = {"rows", "quiet", "as_json"}  # what is not passed on to release: its --rows means another number

_READING = """{chosen} is what release would use. Discretisation is what the width of a cell can cost at worst,
privatisation what noise costs at confidence {confidence}."""
_DIRECT = """The plug-in certificate adds them up. The direct certificate, which is the one predicted, measures the rows
that come out: their bound is mostly smaller than that."""
_PLUG_IN = """The plug-in certificate adds them up, and what it costs to fit rows to noisy counts."""
_PAPER = f"{BESIDE} is the paper's mechanism, shown for comparison and not chosen."


class Rows(click.ParamType):
    """A number of rows. A table's path is a likely slip: people expect to be asked for one."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            self.fail("give a number, how many rows the table has, like 10000; no table is read.", param, ctx)


@click.command("plan", cls=options.GroupedCommand, short_help="What certificate to expect, before anything is spent.")
@options.of(options.SchemaOptions, PlanOptions, options.TalkOptions, rows=Rows())
@click.pass_context
def command(ctx: click.Context, schema_file: Path, quiet: bool, as_json: bool, **choices: Any) -> None:
    """Predict the certificate of a release, and what release would choose. It reads no rows and spends nothing.

    It draws the noise of every mechanism, and rehearses the best ones on made-up tables: this takes up to a minute or
    two. What was planned before is remembered.
    """
    from certsynth import Schema, plan

    schema = Schema.load(schema_file)
    options.read_workload(choices)
    options.say_what_is_left_out(schema, choices)
    with bars(quiet=quiet) as progress:
        found = plan(schema, progress=progress, **choices)
    if as_json:
        words.print_json(found.to_json())
    else:
        click.echo("\n".join([*lines(found), "", following(ctx)]))


def lines(found: Plan) -> list[str]:
    """A plan in words: what to expect first, then what was compared, and what would change."""
    best = found.choice
    if best.dimension is not None:
        return _lines_of_dimensions(found)
    split = "" if found.split is None else f"; single columns get {words.percent(found.split)} of the budget for counts"
    text = [
        *_wrapped(f"release would use {words.measured(best.mechanism, best.resolution)}{split}"),
        *_wrapped(expectation(found)),
        f"It would take about {duration(best.seconds)} and {best.memory_gb:.1f} GB of memory, on two cores.",
        *_wrapped(f"privacy: {_budget(found)} under {found.neighbours} neighbours; planning spends nothing"),
    ]
    if found.neighbours == "add-remove":
        text += _wrapped(
            "note: under add-remove neighbours a release does not show how many rows there are, and chooses by a noisy "
            "number of them, for a fiftieth of the budget. Plan with a public estimate."
        )
    if found.merged:
        text += _wrapped(merging(found))
    drawn = chart_of(found)
    return [
        *text,
        "",
        f"What was compared, for {words.counted(found.rows, 'row')} and {words.counted(found.columns, 'column')}:",
        *compared(found),
        *_wrapped(reading(found)),
        "",
        *(["Predicted bound by resolution, on a logarithmic scale:", *drawn, ""] if drawn else []),
        "What would change:",
        *changes(found),
    ]


def _lines_of_dimensions(found: Plan) -> list[str]:
    """A plan whose choice is made by the rows: what to expect for each dimension that they may have."""
    head = ("  dimension of the rows", "resolution", "discretisation", "privatisation", "bound", "range")
    rows = [head] + [
        (
            f"  {each.dimension}",
            str(each.resolution),
            words.upward(each.discretisation),
            words.upward(each.privatisation),
            words.upward(each.predicted_bound),
            f"{words.downward(each.low)}–{words.upward(each.high)}",
        )
        for each in found.candidates
    ]
    columns = words.columns_of(found.sparsity, None)
    text = (
        f"release would choose among {words.counted(len(found.candidates), 'grid')} of all columns, privately, by how "
        f"many of their cells hold rows. The table says what bound to expect for statistics of {columns}, at "
        f"confidence {words.percent(found.confidence)}, if the rows lie on a set of some dimension: a few points (0), "
        "a curve (1), a surface (2), and so on. This is a guess within a factor of 2 and not a promise."
    )
    return [
        *_wrapped(text),
        *_wrapped(f"privacy: {_budget(found)} under {found.neighbours} neighbours; planning spends nothing"),
        "",
        *words.table(rows, text=1),
        "",
        "What would change, at worst:",
        *changes(found),
    ]


def expectation(found: Plan) -> str:
    """The certificate to expect, in a sentence that promises nothing."""
    best = found.choice
    source = words.counted(best.rehearsals, "made-up table") if best.rehearsals else "a model"
    prediction = f"This is a prediction from {source} and not a promise: the release gets a certificate of its own."
    if best.predicted_bound >= 1:
        return f"Expect a certificate that says nothing: a bound of 1. {words.HELPS} {prediction}"
    about, low, high = words.upward(best.predicted_bound), words.downward(best.low), words.upward(best.high)
    columns = words.columns_of(found.sparsity, None if found.workload is None else len(found.workload))
    return (
        f"Expect a bound of about {about}, likely between {low} and {high}, for statistics of {columns}, at confidence "
        f"{words.percent(found.confidence)}. {prediction}"
    )


def merging(found: Plan) -> str:
    """Which labels noise leaves no room for, and what can be done."""
    each = [f"those of {m.column} ({m.labels:,}) in about {m.groups:,} groups" for m in found.merged]
    return (
        f"note: together with other columns labels are counted in groups: {', '.join(each)}. In the schema, merge "
        'labels that few rows have, or say which are near to each other (kind = "tree"), for a smaller bound.'
    )


def duration(seconds: float) -> str:
    """A rough time in the unit that suits it.

    >>> duration(4.9), duration(0.3), duration(200), duration(10_000)
    ('5 seconds', '1 second', '3 minutes', '3 hours')
    """
    if seconds < 100:
        return words.counted(max(1, round(seconds)), "second")
    if seconds < 6000:
        return words.counted(round(seconds / 60), "minute")
    return words.counted(round(seconds / 3600), "hour")


def mechanisms(found: Plan) -> dict[str, list[Planned]]:
    """Candidates by mechanism, the best mechanism first and one that is only shown last; resolutions rise."""
    groups: dict[str, list[Planned]] = {}
    for each in sorted(found.candidates, key=lambda c: c.resolution or 0):
        groups.setdefault(each.mechanism, []).append(each)

    def rank(name: str) -> tuple[bool, bool, float]:
        """The chosen one first, though another may be predicted to be as good: only a few are rehearsed."""
        return name != found.choice.mechanism, not groups[name][0].eligible, min(map(_bound, groups[name]))

    return {name: groups[name] for name in sorted(groups, key=rank)}


def _bound(each: Planned) -> float:
    return each.predicted_bound


def compared(found: Plan) -> list[str]:
    """The table of mechanisms and resolutions: of several mechanisms, what is around the best of each."""
    groups = mechanisms(found)
    head = ("  mechanism", "resolution", "discretisation", "privatisation", "bound", "range", "secs", "GB")
    rows: list[tuple[str, ...]] = [head]
    for group in groups.values():
        shown = group
        if len(groups) > 1:
            best = group.index(found.choice if found.choice in group else min(group, key=_bound))
            shown = group[max(0, best - AROUND) : best + AROUND + 1]
        rows += [_row(each, CHOSEN if each == found.choice else " " if each.eligible else BESIDE) for each in shown]
    left_out = len(found.candidates) - (len(rows) - 1)
    return words.table(rows, text=1) + ([f"  … and {left_out} more, which --json has"] if left_out else [])


def _row(each: Planned, mark: str) -> tuple[str, ...]:
    return (
        f"{mark} {each.mechanism}",
        "full" if each.resolution is None else str(each.resolution),
        words.upward(each.discretisation),
        words.upward(each.privatisation),
        words.upward(each.predicted_bound),
        f"{words.downward(each.low)}–{words.upward(each.high)}",
        f"{each.seconds:,.0f}",
        f"{each.memory_gb:.1f}" if each.memory_gb < 10 else f"{each.memory_gb:.0f}",
    )


def reading(found: Plan) -> str:
    """How to read the table."""
    parts = [_READING.format(chosen=CHOSEN, confidence=words.percent(found.confidence))]
    parts.append(_DIRECT if found.certificate == "direct" else _PLUG_IN)
    if not all(each.eligible for each in found.candidates):
        parts.append(_PAPER)
    return " ".join(parts)


def chart_of(found: Plan) -> list[str]:
    """Predicted bounds of the best mechanisms, and of one that is only shown."""
    groups = mechanisms(found)
    names = [name for name, group in groups.items() if group[0].eligible][: len(MARKS) - 1]
    names += [name for name, group in groups.items() if not group[0].eligible][:1]
    series = {
        name: {each.resolution: each.predicted_bound for each in groups[name] if each.resolution} for name in names
    }
    return chart(series)


def changes(found: Plan) -> list[str]:
    """What else would be chosen, and the bound to expect of it."""
    best = found.choice
    rows = [("as planned", words.measured(best.mechanism, best.resolution), words.upward(best.predicted_bound))]
    rows += [
        (other.change, words.measured(other.mechanism, other.resolution), words.upward(other.predicted_bound))
        for other in found.variations
    ]
    return words.table(rows)


def following(ctx: click.Context) -> str:
    """The release with the options that were typed."""
    typed = []
    for option in ctx.command.params:
        name = str(option.name)
        if name not in _NOT_RELEASE and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = ctx.params[name]
            typed += [option.opts[0], _names(value) if isinstance(value, list) else str(value)]
    return f"next: certsynth release DATA {shlex.join(typed)} --out release"


def _names(names: Sequence[str]) -> str:
    """As `options.Names` reads them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def _budget(found: Plan) -> str:
    return words.budget(found.privacy["epsilon"], found.privacy["delta"], found.privacy["rho"])
