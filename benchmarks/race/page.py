"""docs/benchmarks.md, and the table in the README, from the results of the race.

`PYTHONPATH=benchmarks python -m race.page` writes both again; `docs/make_figures.py` draws the figure.
"""

from __future__ import annotations

import json
import re
import statistics
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certsynth.record.record import StatisticsRecord
from certsynth.report.statistics import promise
from race.contenders import CONTENDERS, Contender
from race.keeping import time_of_runs
from race.tables import ROOT, TABLES

PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
BEGIN, END = "<!-- race: written by race.page -->\n\n", "\n<!-- end of race -->\n"
QUOTATION = re.compile(r"^> With 95 % confidence.*?\n(?!>)", re.DOTALL | re.MULTILINE)
"""The promise in the README."""

RESULTS = Path(__file__).parent / "results"
DEFAULT = "certsynth-replace"
OURS = "certsynth-add"
"""What peers are compared with: the default, at the neighbour relation that is theirs."""

WANTED_SPEED = 5
UNDISTURBED = 0.9  # processors, of one
LOSSES = {
    "value": "largest W1 of a pair",
    "mean": "mean W1 of pairs",
    "single": "largest W1 of a column",
    "variation mean": "mean total variation of pairs",
    "variation": "largest total variation of a pair",
}
COSTS = {"cpu": "processor time", "peak MB": "memory"}
"""What is compared between runs that were not all made on an equally idle machine: not seconds by the clock."""

HEADS = ("largest W1", "mean W1", "one column", "variation", "largest", "processor", "memory")
"""The same in a few letters."""

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """The runs of a contender, with one of the tables that each of them made."""

    contender: Contender
    variant: str
    runs: tuple[Run, ...]

    @property
    def title(self) -> str:
        return f"{self.contender.title}, {self.variant}" if self.variant else self.contender.title

    @property
    def is_ours(self) -> bool:
        return self.contender.peer == "certsynth"

    def values(self, name: str) -> list[float]:
        found = (run["tables"][self.variant].get(name, run.get(name)) for run in self.runs)
        return [each for each in found if each is not None]

    def mean(self, name: str) -> float:
        return statistics.fmean(self.values(name))

    def spread(self, name: str) -> float:
        found = self.values(name)
        return statistics.stdev(found) if len(found) > 1 else 0.0


def rows_of(document: Run, contenders: Mapping[str, Contender] = CONTENDERS) -> list[Row]:
    """In the order of the contenders; only runs that were done."""
    found = []
    for key, contender in contenders.items():
        done = tuple(r for r in document["runs"] if r["contender"] == key and r["outcome"] == "done")
        found += [Row(contender, variant, done) for variant in (done[0]["tables"] if done else ())]
    return found


def page(results: Path = RESULTS) -> str:
    documents = [json.loads(p.read_text(encoding="utf-8")) for key in TABLES if (p := results / f"{key}.json").exists()]
    parts = [INTRODUCTION]
    parts += [verdict(d) for d in documents if d["table"] == "california-5"]
    parts += [READING.replace("TIME", time_of_runs(documents))]
    parts += [section(document) for document in documents]
    parts += [compared(documents), settings(documents), ENDING]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def section(document: Run) -> str:
    rows, table = rows_of(document), TABLES[document["table"]]
    pairs = len(table.columns) * (len(table.columns) - 1) // 2
    labels = [column.name for column in table.columns if column.labels]
    numbers = [column.name for column in table.columns if not column.labels]
    read = f"{', '.join(numbers)} as integers" + (f"; {', '.join(labels)} as labels" if labels else "")
    said = [
        f"## {table.title}",
        f"{document['rows']:,} rows, {pairs} pairs of columns; {read}.",
        folded("Losses and certificates", losses(rows)),
        folded("Time and memory", costs(rows)),
    ]
    return "\n\n".join([*said, *trouble(document)])


def folded(summary: str, *parts: str) -> str:
    """Wide tables behind a line to click on."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *parts, "</details>"])


def losses(rows: list[Row]) -> str:
    lines = [
        "| system | privacy | runs | largest W1 | between | certificate | mean W1 | one column | variation | largest |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shown = [both(row, name, ".4f") for name in ("value",)]
        shown += [f"{row.mean('lower'):.4f} and {row.mean('upper'):.4f}"]
        shown += [both(row, "certificate", ".4f") if row.values("certificate") else "none"]
        shown += [both(row, name, ".4f") for name in ("mean", "single")]
        shown += [both(row, name, ".3f") for name in ("variation mean", "variation")]
        lines.append(f"| {_bold(row)} | {privacy(row)} | {len(row.runs)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def costs(rows: list[Row]) -> str:
    lines = [
        "| system | fit and sample, s | whole process, s | command line, s | processor, s | memory, GB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.variant and row.variant != next(iter(row.runs[0]["tables"])):
            continue  # another table of the same run
        command = both(row, "command line", ".0f") if row.values("command line") else ""
        shown = [both(row, name, ".0f") for name in ("seconds", "wall")]
        memory = f"{row.mean('peak MB') / 1024:.1f}"
        lines.append(
            f"| {row.contender.title} | {' | '.join(shown)} | {command} | {both(row, 'cpu', '.0f')} | {memory} |"
        )
    return "\n".join(lines)


def privacy(row: Row) -> str:
    spent = row.runs[0]["spent"]
    pure = f"ε = {spent['epsilon']:g}" + (f", δ = {spent['delta']:.0e}".replace("e-0", "e-") if spent["delta"] else "")
    return f"{pure}, {row.contender.relation}"


def trouble(document: Run, contenders: Mapping[str, Contender] = CONTENDERS) -> Iterator[str]:
    """Runs that came to nothing."""
    wrong = [run for run in document["runs"] if run["outcome"] != "done"]
    if not wrong:
        return
    lines = ["What did not work:", ""]
    for key in dict.fromkeys(run["contender"] for run in wrong):
        same = [run for run in wrong if run["contender"] == key]
        words = dict.fromkeys(f"{run['outcome']}: `{run['error'].replace('`', ' ')}`" for run in same)
        lines.append(f"- {contenders[key].title}, {len(same)} runs: {'; '.join(words)}")
    yield "\n".join(lines)


def verdict(document: Run) -> str:
    """What the default is meant to be: ahead in the largest loss, and five times as fast as any AIM."""
    rows = {row.contender.key: row for row in rows_of(document)}
    if OURS not in rows:
        return ""
    ours, peers = rows[OURS], [row for row in rows_of(document) if not row.is_ours]
    if not peers:
        return ""
    best = min(peers, key=lambda row: row.mean("value"))
    before = [row.title for row in peers if row.mean("value") <= ours.mean("value")]
    text = [
        "## In short",
        "California with five columns, ε = 1; means over as many runs as the table below says of each. At the "
        "neighbour relation of the peers, and with pure ε against their (ε, δ) where they have a δ, the largest loss "
        "of the default is "
        f"{ours.mean('value'):.4f}. The best of the peers is {best.title} with {best.mean('value'):.4f}.",
    ]
    if before:
        text.append(f"**The default is not ahead of {_and(before)}.**")
    else:
        text.append("The default is ahead of every peer.")
    slow = []
    for row in {row.contender.key: row for row in peers if row.contender.is_aim}.values():
        times = {name: _ratio(row, ours, name) for name in ("seconds", "cpu")}
        told = f"{row.contender.title} takes {times['cpu']:.1f} times the processor time"
        if undisturbed(row) and undisturbed(ours):
            told += f", and {times['seconds']:.1f} times as long by the clock"
        text.append(f"{told}.")
        if min(times.values()) < WANTED_SPEED:
            slow.append(row.contender.title)
    if slow:
        text.append(f"**The default is not {WANTED_SPEED} times as fast as {_and(slow)}.**")
    return "\n\n".join([text[0], text[1], " ".join(text[2:])])


def undisturbed(row: Row) -> bool:
    """Whether its runs had a processor to themselves at least: beside other work, seconds by the clock say little."""
    return all(run["cpu"] >= UNDISTURBED * run["wall"] for run in row.runs)


def compared(documents: list[Run]) -> str:
    """How many times what is ours each peer has, measure by measure, at the peers' relation; and what we lose."""
    tables, lost = [], []
    for document in documents:
        rows, title = rows_of(document), TABLES[document["table"]].title
        ours = next((row for row in rows if row.contender.key == OURS), None)
        peers = [row for row in rows if not row.is_ours]
        if ours is None or not peers:
            continue
        lines = [f"| {title} | {' | '.join(HEADS)} |", "|---|" + "---|" * len(HEADS)]
        seen = set()
        for row in peers:
            names = LOSSES if row.contender.key in seen else LOSSES | COSTS  # a second table of the same run
            seen.add(row.contender.key)
            ratios = {name: _ratio(row, ours, name) for name in names}
            shown = [_times(ratios[name]) if name in ratios else "" for name in LOSSES | COSTS]
            lines.append(f"| {row.title} | {' | '.join(shown)} |")
            worse = [f"{(LOSSES | COSTS)[name]} {ratio:.2f}" for name, ratio in ratios.items() if ratio <= 1]
            lost += [f"- {title}, {row.title}: {'; '.join(worse)}"] if worse else []
        tables.append("\n".join(lines))
    if not tables:
        return ""
    how = (
        "A number is the peer's mean divided by that of certsynth with hidden n, its default at the peers' neighbour "
        "relation: above 1 we win, and what we lose is in bold. Processor time is compared seed by seed. Not all runs "
        "of a seed were made in one go, nor on an equally idle machine, so that seconds by the clock are compared "
        "only at the top of this page, where all runs had a processor to themselves at least."
    )
    none = "Nothing that was measured."
    won = ["## What we win", how, folded("Ratios, table by table", *tables)]
    return "\n\n".join([*won, "## What we lose", "\n".join(lost) or none, ALSO_LOST.strip()])


def _times(ratio: float) -> str:
    text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
    return text if ratio > 1 else f"**{text}**"


def _ratio(theirs: Row, ours: Row, name: str) -> float:
    """Of means; of times, the geometric mean over runs with the same seed, which were made one after the other."""
    if name in LOSSES:
        return theirs.mean(name) / ours.mean(name)
    mine = {run["seed"]: run[name] for run in ours.runs}
    found = [run[name] / mine[run["seed"]] for run in theirs.runs if run["seed"] in mine]
    return statistics.geometric_mean(found) if found else theirs.mean(name) / ours.mean(name)


def settings(documents: list[Run], contenders: Mapping[str, Contender] = CONTENDERS) -> str:
    lines = ["| system | setting | versions | bins |", "|---|---|---|---|"]
    for key, contender in contenders.items():
        done = [r for d in documents for r in d["runs"] if r["contender"] == key and r["outcome"] == "done"]
        if not done:
            continue
        versions = ", ".join(f"{name} {version}" for name, version in done[0]["versions"].items())
        bins = ", ".join(f"{name} {count}" for name, count in done[0].get("bins", {}).items())
        lines.append(f"| {contender.title} | {contender.about} | {versions} | {bins} |")
    machines = {json.dumps(d["machine"], sort_keys=True): d["machine"] for d in documents}
    told = [
        f"On {about['system']} with {about['cores']} cores and {about['memory GB']} GB of memory, "
        f"{about['threads of a run']} threads to a run. {crowded(documents)}"
        for about in machines.values()
    ]
    return "\n\n".join(["## Settings", folded("Settings and versions", "\n".join(lines)), *told])


def crowded(documents: list[Run]) -> str:
    """How busy the machine was with other things, by the load of five minutes before each run."""
    loads = [run["load before"] for d in documents for run in d["runs"] if "load before" in run]
    told = f"Before a run {statistics.median(loads):.0f} processes wanted it in the median. " if loads else ""
    return f"{told}The race shares its machine with others: read ratios and processor time, not seconds by the clock."


def both(row: Row, name: str, form: str) -> str:
    spread = f" ± {row.spread(name):{form}}" if len(row.runs) > 1 else ""
    return f"{row.mean(name):{form}}{spread}"


def _bold(row: Row) -> str:
    return f"**{row.title}**" if row.is_ours else row.title


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


INTRODUCTION = """
# Benchmarks

certsynth and other tools for private synthetic tables, on the same tables with the same budget, ε = 1.

![Largest error of each system on four tables, and the certificates of certsynth](images/benchmarks.svg)

All systems have their default settings. "Hidden n" is certsynth at the neighbour relation of the other tools; dpmm has
a δ in addition. A few points are from a single run, as the tables say.
"""

READING = """
All figures are in the folded tables below. [What we lose](#what-we-lose) lists every measure in which another tool is
ahead. [PrivPGD's benchmark](benchmarks-privpgd.md) has other tables, measures and methods, and [Adult and wide
tables](benchmarks-adult.md) have triples of columns, range queries and models.

## How to read the figures

`make race` makes environments for the other tools from the package registry, runs every system, and writes this page
from the results in `benchmarks/race/results`. TIME
A run is stopped after an hour, and a tool that was stopped is not run again on that table; with [Adult and wide
tables](benchmarks-adult.md) the race takes about twelve hours on two cores at most. `make race RACE=--quick` tries
all tables with 3,000 rows, fire and loans without peers, in less than ten minutes, after it has made the
environments. Numbers are means over seeds, with the standard deviation between runs.

**The budget.** ε = 1 for all. dpmm and SmartNoise get the δ that is their default; OpenDP and certsynth get none,
unless their row says so. The relation of the peers is add-remove: one row more or less. ε under add-remove is only 2ε
under replace-one, so a peer at ε = 1 promises ε = 2 where the default of certsynth promises ε = 1. That is why
certsynth is run a second time, with the number of rows hidden, at their relation. What the peers spend on bins is
part of the budget. dpmm and SmartNoise are told to draw as many rows as the private table has, a number that their
relation does not allow to know; OpenDP estimates it. certsynth with hidden n measures it, for a fiftieth of its
budget, and writes 100,000 rows.

**The measures.** `value` of `certsynth evaluate` is the largest W1 distance over all pairs of columns, of rows that
were moved to a lattice of 256 steps; the W1 of the rows where they are is between its `lower` and its `upper`.
`upper` alone would flatter whoever emits rows on that lattice. Then the mean over the pairs, the largest W1 of a
single column, and the total variation of pairs on cells that are the same for all: 32 of equal width to a column, or
one for each value where there are fewer. No tool was made for these cells. "Certificate" is the bound at 95 % that
certsynth publishes with its rows, for a twentieth of its budget; no peer has one.

**Time.** Fit and sample alone, without imports; the whole process; for certsynth also the command line, as a user
sees it. Nothing is cached between runs of certsynth but its compiled code: each plans anew. The first run on a new
machine, which compiles, is not timed; it takes a quarter of a minute more. All take turns seed by seed. Processor time
and memory are summed over all processes of a run.
"""

ALSO_LOST = """
Other things that speak for the peers:

- The measures are those that certsynth is made for. A graphical model knows more than pairs: triples of columns and
  models are compared on [Adult](benchmarks-adult.md).
- A model can be kept and asked for rows again and again, also given some of their columns. A release is one table.
- dpmm needs no bounds if it may spend budget on them; certsynth wants a schema.
"""

ENDING = """
## What was done to be fair

- Bounds come from the code book and are given to all of them. Labels are given to dpmm as labels.
- The five and four columns are integers to everyone. dpmm puts integers into bins and rounds what it draws; "by hand"
  gives columns of few values as labels in place of that.
- OpenDP leaves bins to the user, and emits a single value for its outermost bins. So the first and the last bin are
  the bounds alone, and nothing is lost there.
- mbi 1.1, which OpenDP and SmartNoise draw rows with, conditions a column on those that it was measured with and
  forgets what its junction tree adds. Rows "drawn from its joint" come from the same model without that mistake.
- SmartNoise puts every row of a bin at its middle; with its default of ten bins that alone would decide the race.
- The environment of OpenDP gets pandas as well, which rows are given out with and which its extra does not bring.
- Runs that fail or take too long are told on this page with what they said.

What it cannot tell: three tables of the same kind of survey, one ε, and settings that experts of the peers might
choose better. Seeds are for steps that need no privacy: noise is fresh in every run.
"""


def in_readme(results: Path = RESULTS) -> str:
    """The rows of the README's table: defaults on California with five columns."""
    rows = rows_of(json.loads((results / "california-5.json").read_text(encoding="utf-8")))
    lines = ["| system | privacy | largest error | certificate | processor |", "|---|---|---|---|---|"]
    for row in (row for row in rows if row.contender.default):
        bound = f"**{row.mean('certificate'):.4f}**" if row.values("certificate") else "none"
        cells = (_bold(row), privacy(row), f"{row.mean('value'):.4f}", bound, f"{row.mean('cpu'):.0f} s")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def promised(results: Path = RESULTS) -> str:
    """What a release of California with five columns promises by default, as a quotation of at most 120 characters."""
    document = json.loads((results / "california-5.json").read_text(encoding="utf-8"))
    found = [run for run in document["runs"] if run["contender"] == DEFAULT and "statistics" in run]
    bounds = max((StatisticsRecord(**run["statistics"]) for run in found), key=lambda each: each.share_of_two_columns)
    return textwrap.fill(promise(bounds, "95 %"), 120, initial_indent="> ", subsequent_indent="> ") + "\n"


def write() -> Path:
    PAGE.write_text(page(), encoding="utf-8")
    text = QUOTATION.sub(promised(), README.read_text(encoding="utf-8"), count=1)
    before, rest = text.split(BEGIN)
    README.write_text(before + BEGIN + in_readme() + END + rest.split(END)[1], encoding="utf-8")
    return PAGE


if __name__ == "__main__":
    write()
