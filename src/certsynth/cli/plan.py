"""certsynth plan: predict the certificate before any row is read or any budget spent."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from certsynth.algorithm.options import PlanOptions
from certsynth.cli import layout, options, words
from certsynth.cli.chart import MARKS, chart
from certsynth.cli.progress import bars

if TYPE_CHECKING:
    from certsynth.domain import Schema
    from certsynth.planning.plan import Plan, Planned, Variation
    from certsynth.report.headline import Headline

NEIGHBOURING_RESOLUTIONS = 1  # shown on either side of a mechanism's best one; --json has all
CHOSEN, REFERENCE = "→", "°"
MORE = "With --verbose: the mechanisms and resolutions that were compared."

STATISTICS = ("share_of_one_column", "share_of_two_columns", "group_total", "moment")
"""Names of predicted bounds, in the order of a certificate's record of them."""

_NOT_PASSED_ON = {
    "rows",
    "persons",
    "quiet",
    "verbose",
    "as_json",
}  # options not passed on to release, whose --rows has another meaning

_READING = """{chosen} marks the choice of release. Discretisation is the worst-case error due to the width of a cell,
privatisation the error due to noise at confidence {confidence}."""
_DIRECT = """The plug-in certificate adds the two. The direct certificate, which is the one predicted, measures the
resulting rows: its bound is usually smaller than that sum."""
_PLUG_IN = """The plug-in certificate adds the two, and the error of fitting rows to noisy counts."""
_CONTRIBUTIONS = """{chosen} marks what the schema says. More rows of each person keep more of the table, and need more
noise, unless each person counts 1. The other bounds are scaled from that one, and rougher. Kept rows may be fewer, and
bounds of rows larger: persons with few rows do not make up for those with many. Choose by what is known in general and
not by the rows: how many rows does nearly every person have? Rows beyond that are dropped, and the certificate is about
those that are kept."""
_PAPER = f"{REFERENCE} is the paper's mechanism, shown for comparison and not chosen."


class Rows(click.ParamType):
    """A number of rows. The path of a table is a likely mistake, so the message explains that no table is read."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            self.fail("give the number of rows of the table, like 10000; no table is read.", param, ctx)


@click.command("plan", cls=options.GroupedCommand, short_help="Predict the certificate before anything is spent.")
@options.of(options.SchemaOptions, PlanOptions, options.DetailOptions, rows=Rows())
@click.pass_context
def command(ctx: click.Context, schema_file: Path, quiet: bool, verbose: bool, as_json: bool, **choices: Any) -> None:
    """Predict the certificate of a release and the choices that release would make. Reads no rows and spends nothing.

    It simulates the noise of every mechanism and rehearses the best ones on made-up tables, which takes up to two
    minutes. Earlier plans are cached.
    """
    from certsynth import Schema, plan
    from certsynth.algorithm.request import select_released_columns

    schema = Schema.load(schema_file)
    options.read_workload(choices)
    options.warn_of_omissions(schema, choices)
    with bars(quiet=quiet) as progress:
        found = plan(schema, progress=progress, **choices)
    if as_json:
        words.print_json(found.to_json())
    else:
        released = select_released_columns(schema, choices)
        layout.show([*lines(found, released, verbose=verbose), "", *next_command(ctx)])


def lines(found: Plan, schema: Schema, *, verbose: bool = False) -> list[str]:
    """A plan as text: what to expect, what other settings would change, and how a release would be made."""
    if found.choice.dimension is not None:
        return _lines_of_dimensions(found, schema)
    return [
        *meaning(found, schema),
        "",
        "What would change:",
        *changes(found, verbose=verbose),
        *contributions(found),
        "",
        *_how(found),
        *(_details(found) if verbose else [MORE]),
    ]


def meaning(found: Plan, schema: Schema) -> list[str]:
    """The margins to expect in the columns' own units, or that there will be none; and that this is no promise."""
    best = found.choice
    source = words.counted(best.rehearsals, "made-up table") if best.rehearsals else "a model"
    prediction = f"This is a prediction from {source} and not a promise: the release gets a certificate of its own."
    if best.predicted_bound >= 1:
        return [layout.strong(f"Expect a vacuous certificate: a bound of 1. {words.HELPS}"), prediction]
    expected = headline_of(found, schema)
    if not expected.margins:
        return [layout.strong(expectation(found)), prediction]
    sentence = expected.sentence(percent=words.percent)
    return [layout.strong(f"Expect about: {sentence[0].lower()}{sentence[1:]}"), prediction]


def headline_of(found: Plan, schema: Schema) -> Headline:
    """The predicted bounds in the columns' own units."""
    from certsynth.record.record import StatisticsRecord
    from certsynth.report import headline  # imports what --help does without

    bounds = found.statistics
    return headline.expected(
        schema,
        found.choice.predicted_bound,
        StatisticsRecord(*(bounds.get(name) for name in STATISTICS)) if bounds else None,  # type: ignore[arg-type]
        confidence=found.confidence,
        epsilon=found.privacy["epsilon"] or "",
        delta=found.privacy["delta"],
    )


def _how(found: Plan) -> list[str]:
    """How the release would be made, what bound to expect, how long it would take, and what it would cost."""
    best = found.choice
    split = "" if found.split is None else f"; single columns get {words.percent(found.split)} of the budget for counts"
    share = (
        f"; the certificate gets {words.percent(found.certificate_share)} of the whole budget"
        if found.certificate_share
        else ""
    )
    text = [
        f"release would use {words.measured(best.mechanism, best.resolution)}{split}{share}",
        expectation(found),
        f"It would take about {duration(best.seconds)} and {best.memory_gb:.1f} GB of memory, on two cores.",
        f"privacy: {_budget(found)}{_unit(found)} under {found.neighbours} neighbours; planning spends nothing",
    ]
    if found.hides_its_rows:
        text.append(hiding(found))
    if found.persons and not found.contributions:
        text.append(
            "note: each person is taken to have as many rows as are kept. With --persons, a public estimate of the "
            "number of persons, the plan also shows what other numbers of rows cost."
        )
    return [*text, merging(found)] if found.merged else text


def _details(found: Plan) -> list[str]:
    """The mechanisms and resolutions that were compared."""
    drawn = chart_of(found)
    return [
        "",
        f"What was compared, for {planned_for(found)} and {words.counted(found.columns, 'column')}:",
        *comparison_table(found),
        reading(found),
        *(["", "Predicted bound by resolution, on a logarithmic scale:", *drawn] if drawn else []),
    ]


def planned_for(found: Plan) -> str:
    """The number of rows or persons that the plan is for."""
    if found.persons is None:
        return words.counted(found.rows, "row")
    if found.persons.get("weigh") == "persons":
        return f"{words.counted(found.rows, 'person')} who count 1 each"
    return f"{words.counted(found.rows, 'row')}, at most {found.persons['rows_per_person']} of each person"


def hiding(found: Plan) -> str:
    """Why the number of rows is hidden, and what that costs."""
    why = "under add-remove neighbours a release"
    if found.neighbours != "add-remove":
        why = "a person who is replaced may have another number of rows, so a release"
    return (
        f"note: {why} does not reveal the number of rows, and chooses by a noisy count, which costs a fiftieth of the "
        "budget. Plan with a public estimate."
    )


def contributions(found: Plan) -> list[str]:
    """What it costs to keep more rows of each person, for both ways to weigh them."""
    if not found.contributions or found.persons is None:
        return []
    own = found.persons["rows_per_person"]
    rows: list[tuple[str, ...]] = [
        ("  rows of a person", "kept rows, at most", "bound if rows count 1", "bound if persons count 1")
    ]
    for most in dict.fromkeys(each.rows_per_person for each in found.contributions):
        here = {each.weigh: each for each in found.contributions if each.rows_per_person == most}
        bounds = [words.upward(here[weigh].predicted_bound) if weigh in here else "–" for weigh in ("rows", "persons")]
        mark = CHOSEN if most == own else " "
        rows.append((f"{mark} {most:,}", f"{here['rows'].kept_rows:,}", *bounds))
    return [
        "",
        "What rows of a person cost:",
        *words.table(rows, text=1),
        _CONTRIBUTIONS.format(chosen=CHOSEN),
    ]


def _lines_of_dimensions(found: Plan, schema: Schema) -> list[str]:
    """A plan whose choice depends on the rows: the expected bound for each possible dimension."""
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
    shown = len(head) - (layout.width() < layout.NARROW)
    columns = words.columns_of(found.sparsity, None)
    text = (
        f"release would choose among {words.counted(len(found.candidates), 'grid')} of all columns, privately, by how "
        f"many of their cells hold rows. The table says what bound to expect for statistics of {columns}, at "
        f"confidence {words.percent(found.confidence)}, if the rows lie on a set of some dimension: a few points (0), "
        "a curve (1), a surface (2), and so on. This is an estimate within a factor of 2 and not a promise."
    )
    margins = headline_of(found, schema).margins
    return [
        *([layout.strong(f"Expect at worst about: {margins}."), ""] if margins else []),
        *words.table([row[:shown] for row in rows], text=1),
        "",
        "What would change, at worst:",
        *changes(found),
        *contributions(found),
        "",
        text,
        f"privacy: {_budget(found)}{_unit(found)} under {found.neighbours} neighbours; planning spends nothing",
    ]


def expectation(found: Plan) -> str:
    """The expected bound in a sentence, with its range."""
    best = found.choice
    about, low, high = words.upward(best.predicted_bound), words.downward(best.low), words.upward(best.high)
    columns = words.columns_of(found.sparsity, None if found.workload is None else len(found.workload))
    likely = (
        f"between {low} and {high} for nine of ten tables" if best.rehearsals else f"likely between {low} and {high}"
    )
    return (
        f"Expect a bound of about {about}, {likely}, for statistics of {columns}, at confidence "
        f"{words.percent(found.confidence)}."
    )


def merging(found: Plan) -> str:
    """Which labels will be counted in groups because of the noise, and the remedy."""
    each = [f"those of {m.column} ({m.labels:,}) in about {m.groups:,} groups" for m in found.merged]
    return (
        f"note: together with other columns labels are counted in groups: {', '.join(each)}. In the schema, merge "
        'rare labels, or declare which are similar (kind = "tree"), for a smaller bound.'
    )


def duration(seconds: float) -> str:
    """A rough duration in a suitable unit.

    >>> duration(4.9), duration(0.3), duration(200), duration(10_000)
    ('5 seconds', '1 second', '3 minutes', '3 hours')
    """
    if seconds < 100:
        return words.counted(max(1, round(seconds)), "second")
    if seconds < 6000:
        return words.counted(round(seconds / 60), "minute")
    return words.counted(round(seconds / 3600), "hour")


def mechanisms(found: Plan) -> dict[str, list[Planned]]:
    """Candidates by mechanism: the chosen one first, ineligible ones last; resolutions increase."""
    groups: dict[str, list[Planned]] = {}
    for each in sorted(found.candidates, key=lambda c: c.resolution or 0):
        groups.setdefault(each.mechanism, []).append(each)

    def rank(name: str) -> tuple[bool, bool, float]:
        """The chosen one first, even if another has a smaller prediction: only a few are rehearsed."""
        return name != found.choice.mechanism, not groups[name][0].eligible, min(map(_bound, groups[name]))

    return {name: groups[name] for name in sorted(groups, key=rank)}


def _bound(each: Planned) -> float:
    return each.predicted_bound


def comparison_table(found: Plan) -> list[str]:
    """The table of mechanisms and resolutions; with several mechanisms, only those around the best of each. A narrow
    terminal gets no range, time and memory."""
    groups = mechanisms(found)
    head = ("  mechanism", "resolution", "discretisation", "privatisation", "bound", "range", "secs", "GB")
    rows: list[tuple[str, ...]] = [head]
    for group in groups.values():
        shown = group
        if len(groups) > 1:
            best = group.index(found.choice if found.choice in group else min(group, key=_bound))
            shown = group[max(0, best - NEIGHBOURING_RESOLUTIONS) : best + NEIGHBOURING_RESOLUTIONS + 1]
        rows += [_row(each, CHOSEN if each == found.choice else " " if each.eligible else REFERENCE) for each in shown]
    left_out = len(found.candidates) - (len(rows) - 1)
    if layout.width() < layout.NARROW:
        rows = [row[: head.index("range")] for row in rows]
    table = [layout.strong(line) if CHOSEN in line else line for line in words.table(rows, text=1)]
    return table + ([f"  … and {left_out} more, which --json has"] if left_out else [])


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
    """An explanation of the table."""
    parts = [_READING.format(chosen=CHOSEN, confidence=words.percent(found.confidence))]
    parts.append(_DIRECT if found.certificate == "direct" else _PLUG_IN)
    if not all(each.eligible for each in found.candidates):
        parts.append(_PAPER)
    return " ".join(parts)


def chart_of(found: Plan) -> list[str]:
    """A chart of the predicted bounds of the best mechanisms, and of one shown for reference."""
    groups = mechanisms(found)
    names = [name for name, group in groups.items() if group[0].eligible][: len(MARKS) - 1]
    names += [name for name, group in groups.items() if not group[0].eligible][:1]
    series = {
        name: {each.resolution: each.predicted_bound for each in groups[name] if each.resolution} for name in names
    }
    return chart(series)


def changes(found: Plan, *, verbose: bool = False) -> list[str]:
    """The expected bound under other settings, and how many times as large errors would be; with `verbose` also the
    mechanism."""
    best = found.choice
    rows = [
        ("", "bound", "errors", "mechanism"),
        ("as planned", words.upward(best.predicted_bound), "× 1", _used(best)),
    ]
    rows += [
        (other.change, words.upward(other.predicted_bound), _times(other, best), _used(other))
        for other in found.variations
    ]
    return words.table(rows, flexible=3) if verbose else words.table([row[:3] for row in rows])


def _used(each: Planned | Variation) -> str:
    return words.measured(each.mechanism, each.resolution)


def _times(other: Variation, best: Planned) -> str:
    """How many times as large errors would be, with two digits; a dash if the planned bound says nothing."""
    return f"× {other.predicted_bound / best.predicted_bound:.2g}" if 0 < best.predicted_bound < 1 else "–"


def next_command(ctx: click.Context) -> list[str]:
    """The release command with the options that were typed."""
    typed = []
    for option in ctx.command.params:
        name = str(option.name)
        if name not in _NOT_PASSED_ON and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = ctx.params[name]
            typed.append(option.opts[0])
            typed += [] if value is True else [_names(value) if isinstance(value, list) else str(value)]
    return layout.command(["certsynth", "release", "DATA", *typed, "--out", "release"])


def _names(names: Sequence[str]) -> str:
    """Names in the form that `options.Names` parses."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _unit(found: Plan) -> str:
    return "" if found.persons is None else " for all rows of a person,"


def _budget(found: Plan) -> str:
    return words.budget(found.privacy["epsilon"], found.privacy["delta"], found.privacy["rho"])
