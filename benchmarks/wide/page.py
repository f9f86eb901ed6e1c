"""docs/benchmarks-adult.md from the results; `docs/make_figures.py` draws its dot plots.

`PYTHONPATH=benchmarks python -m wide.page` writes the page again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from race.keeping import time_of_runs
from race.page import Row, both, folded, privacy, rows_of, settings, trouble
from race.tables import ROOT
from wide.contenders import CONTENDERS
from wide.measures import AREAS, NAMES
from wide.run import AT_ALL_EPSILONS, EPSILONS, IN_FULL, RESULTS, TABLES

PAGE = ROOT / "docs" / "benchmarks-adult.md"
OURS, WITH_TARGET, FLOOR = "certsynth-delta", "certsynth-target", "certsynth-independent"
COMPARED = "1"
"""The ε of the comparison at the top; δ is 1e-5 for all but pure ε."""

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """The document of one table."""

    document: Run

    @property
    def key(self) -> str:
        return str(self.document["table"])

    @property
    def title(self) -> str:
        return self.key.capitalize()

    @property
    def measures(self) -> list[str]:
        """Those that this table has: without a target there are no models."""
        found = [run["tables"] for run in self.document["runs"] if run["outcome"] == "done"]
        return [name for name in NAMES if any(name in table for tables in found for table in tables.values())]

    def rows(self, epsilon: str) -> list[Row]:
        runs = [run for run in self.document["runs"] if run["epsilon"] == epsilon]
        return rows_of({"runs": runs}, CONTENDERS)

    def row(self, contender: str, epsilon: str = COMPARED) -> Row | None:
        return next((row for row in self.rows(epsilon) if row.contender.key == contender), None)

    def peers(self, epsilon: str = COMPARED) -> list[Row]:
        return [row for row in self.rows(epsilon) if not row.is_ours]

    def best_peer(self, name: str, epsilon: str = COMPARED) -> Row | None:
        return min(self.peers(epsilon), key=lambda row: shown_loss(name, row.mean(name)), default=None)


def shown_loss(name: str, value: float) -> float:
    """Less is better: of an area under a curve, what is missing to 1."""
    return 1 - value if name in AREAS else value


def is_ahead(name: str, ours: Row, theirs: Row) -> bool:
    return shown_loss(name, ours.mean(name)) < shown_loss(name, theirs.mean(name))


def load(folder: Path = RESULTS) -> list[Results]:
    paths = (folder / f"{key}.json" for key in TABLES)
    return [Results(json.loads(path.read_text(encoding="utf-8"))) for path in paths if path.exists()]


def page(folder: Path = RESULTS) -> str:
    found = load(folder)
    documents = [results.document for results in found]
    adult = [results for results in found if results.key == "adult"]
    parts = [INTRODUCTION, *(part for each in adult for part in (in_short(each), what_we_lose(each)))]
    parts += [wide_tables([results for results in found if results.key != "adult"])]
    parts += [plots(each) for each in adult]
    parts += [
        READING.replace("TIME", time_of_runs(documents)),
        *(all_figures(results) for results in found),
        not_done(found),
    ]
    parts += [settings(documents, CONTENDERS), ENDING]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def in_short(adult: Results) -> str:
    """Every measure at the ε of the comparison: ours, and the best of the peers."""
    ours, with_target, floor = (adult.row(key) for key in (OURS, WITH_TARGET, FLOOR))
    if ours is None or not adult.peers():
        return ""
    lines = [
        "| measure | certsynth | with `target` | best of the peers | independent columns |",
        "|---|---|---|---|---|",
    ]
    for name in adult.measures:
        best = adult.best_peer(name)
        assert best is not None
        mine = [figure(name, row) if row else "not run" for row in (ours, with_target)]
        cells = [
            text if row is None or is_ahead(name, row, best) else f"**{text}**"
            for text, row in zip(mine, (ours, with_target), strict=True)
        ]
        cells += [f"{figure(name, best)} ({best.title})", figure(name, floor) if floor else "not run"]
        lines.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    real = adult.document.get("real", {})
    areas = "; ".join(f"{NAMES[name]} {real[name]:.3f}" for name in AREAS if name in real)
    said = (
        f"Adult, {adult.document['rows']:,} rows, ε = {COMPARED}, δ = 1e-5, add-remove. The last two are areas under "
        "the curve on held-out rows, of which more is better; of all others less is. With models trained on the "
        f"real rows they are: {areas}. **Bold: certsynth is not ahead.** {counted(adult.rows(COMPARED))}"
    )
    absent = missing_peers(adult, COMPARED)
    warning = [f"**The comparison is not complete: no result at this ε of {', '.join(absent)}.**"] if absent else []
    return "\n\n".join(["## In short", *warning, "\n".join(lines), said])


def missing_peers(results: Results, epsilon: str) -> list[str]:
    """Peers without a result: who is ahead of the others may be behind them."""
    done = {row.contender.key for row in results.peers(epsilon)}
    return [CONTENDERS[key].title for key in IN_FULL if CONTENDERS[key].peer != "certsynth" and key not in done]


def counted(rows: Sequence[Row]) -> str:
    """How many runs each figure is the mean of."""
    found = {row.contender.title: len(row.runs) for row in rows}
    return "Runs: " + ", ".join(f"{title} {count}" for title, count in found.items()) + "."


def figure(name: str, row: Row) -> str:
    value = row.mean(name)
    return f"{value:.3f}" if name in AREAS else short(value)


def short(value: float) -> str:
    """Three digits."""
    return f"{value:#.3g}"


def what_we_lose(adult: Results) -> str:
    lines = []
    for epsilon in EPSILONS:
        ours = adult.row(OURS, epsilon)
        if ours is None or not adult.peers(epsilon):
            continue
        lost = list(_lost(adult, ours, epsilon))
        peers = dict.fromkeys(row.contender.title for row in adult.peers(epsilon))
        won = f"- ε = {epsilon}, against {', '.join(peers)}: ahead of all in {len(adult.measures) - len(lost)} of "
        absent = missing_peers(adult, epsilon)
        won += f"{len(adult.measures)} measures. " + (f"**Behind: {'; '.join(lost)}.** " if lost else "")
        lines.append(won + (f"**Not compared with {', '.join(absent)}.**" if absent else ""))
    return "\n\n".join(["## What we lose", "\n".join(line.rstrip() for line in lines), ALSO_LOST.strip()])


def _lost(results: Results, ours: Row, epsilon: str) -> Iterator[str]:
    for name in results.measures:
        best = results.best_peer(name, epsilon)
        if best is not None and not is_ahead(name, ours, best):
            yield f"{NAMES[name]} ({figure(name, ours)}, {best.title} {figure(name, best)})"


def wide_tables(found: Sequence[Results]) -> str:
    """Who finishes, with which memory, and how good."""
    names = ("W1 largest", "W1 mean", "pairs", "triples", "ranges")
    parts = ["## Wide tables: who finishes within an hour", WIDE.strip()]
    for results in found:
        table = TABLES[results.key]
        heads = ["system", "outcome", "processor, s", "memory, GB", *(NAMES[name] for name in names)]
        lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        ours = results.row(OURS)
        for key in IN_FULL:
            rows = [row for row in results.rows(COMPARED) if row.contender.key == key]
            for row in rows:
                costs = [f"{row.mean('cpu'):.0f}", f"{row.mean('peak MB') / 1024:.1f}"]
                cells = [_marked(name, row, ours) for name in names]
                lines.append(f"| {' | '.join([row.title, 'done', *costs, *cells])} |")
            if not rows and (key != WITH_TARGET or table.target):
                lines.append(
                    f"| {' | '.join([CONTENDERS[key].title, *_unfinished(results, key)])} |" + "  |" * len(names)
                )
        parts += [
            f"### {results.title}: {results.document['columns']} columns, {results.document['rows']:,} rows",
            "\n".join(lines),
        ]
    return "\n\n".join(parts) if found else ""


def _marked(name: str, row: Row, ours: Row | None) -> str:
    """Bold where a peer is ahead of certsynth."""
    text = figure(name, row)
    return f"**{text}**" if ours and not row.is_ours and not is_ahead(name, ours, row) else text


def _unfinished(results: Results, key: str) -> tuple[str, str, str]:
    runs = [r for r in results.document["runs"] if r["contender"] == key and r["epsilon"] == COMPARED]
    if not runs:
        return "not run here", "", ""
    last = runs[-1]
    costs = (f"{last['cpu']:.0f}", f"{last['peak MB'] / 1024:.1f}") if "cpu" in last else ("", "")
    return f"{last['outcome']}: {last['error'].replace('|', ' ')}", *costs


def plots(adult: Results) -> str:
    parts = ["## Measure by measure, on Adult"]
    for name in adult.measures:
        title = NAMES[name][0].upper() + NAMES[name][1:]
        picture = f"![{NAMES[name]} of each system on Adult, by ε](images/{file_name(name)})"
        parts += [f"### {title}", DEFINITIONS[name], picture]
    return "\n\n".join(parts)


def file_name(name: str) -> str:
    return f"adult-{name.lower().replace(' ', '-')}.svg"


def all_figures(results: Results) -> str:
    parts = []
    for epsilon in EPSILONS:
        rows = results.rows(epsilon)
        if not rows:
            continue
        heads = ["system", "privacy", "runs", *(NAMES[name] for name in results.measures), "certificate"]
        lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in rows:
            cells = [both(row, name, ".4f") for name in results.measures]
            bound = both(row, "certificate", ".4f") if row.values("certificate") else "none"
            lines.append(f"| {' | '.join([row.title, privacy(row), str(len(row.runs)), *cells, bound])} |")
        parts += [f"ε = {epsilon}:", "\n".join(lines), f"Time and memory, ε = {epsilon}:", costs(rows)]
    return folded(f"All figures of {results.title}", *parts)


def costs(rows: Sequence[Row]) -> str:
    lines = ["| system | fit and sample, s | processor, s | memory, GB |", "|---|---|---|---|"]
    for row in {row.contender.key: row for row in rows}.values():
        cells = [both(row, "seconds", ".0f"), both(row, "cpu", ".0f"), f"{row.mean('peak MB') / 1024:.1f}"]
        lines.append(f"| {row.contender.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def not_done(found: Sequence[Results]) -> str:
    """Runs that came to nothing, with what they said, and those that nobody has made."""
    parts = []
    for results in found:
        wanted = EPSILONS if results.key in AT_ALL_EPSILONS else EPSILONS[:1]
        absent = []
        for key in IN_FULL:
            if key == WITH_TARGET and not TABLES[results.key].target:
                continue
            runs = {run["epsilon"] for run in results.document["runs"] if run["contender"] == key}
            if left := [epsilon for epsilon in wanted if epsilon not in runs]:
                absent.append(f"{CONTENDERS[key].title} (ε = {', '.join(left)})")
        parts += [f"{results.title}. {text}" for text in trouble(results.document, CONTENDERS)]
        parts += [f"{results.title}, not run: {'; '.join(absent)}."] if absent else []
    return "\n\n".join(["## What is missing", *parts]) if parts else ""


INTRODUCTION = """
# Adult and wide tables

certsynth and other tools on tables with many, mixed columns: Adult, as the field uses it, and two tables of 30 and 48
columns. `make race RACE="--tables adult"` runs the race of one table, and writes this page from the results in
`benchmarks/wide/results`.
"""

ALSO_LOST = """
"All" are the peers that were run at that ε; [what is missing](#what-is-missing) is listed below. Peers draw as many
rows as the private table has, a number that add-remove does not allow to know; certsynth measures that number, and
publishes a certificate, from the same budget.
"""

WIDE = """
ε = 1, δ = 1e-5, add-remove, two cores. Bold: the peer is ahead of certsynth. Total variation of triples is that of a
fixed sample of 100.
"""

DEFINITIONS = {
    "W1 largest": "The largest W1 distance over all pairs of columns, as certsynth certifies it.",
    "W1 mean": "The same, mean of all pairs.",
    "pairs largest": "Half the sum of the absolute errors of all cells of a pair, with at most 32 cells for an ordered "
    "column and one for each label; the worst pair.",
    "pairs": "The same, mean of all pairs.",
    "triples": "The same, mean of all triples of columns.",
    "workload": "The sum of the absolute errors of all cells, every value being a cell; mean of all triples of columns "
    "that contain the target, the income. This is the error that AIM was measured by.",
    "ranges": "Mean error of the share of rows in 1,000 random boxes of three columns.",
    "boosting": "1 minus the area under the curve, of gradient boosting that was trained on synthetic rows and is "
    "tested on held-out real ones.",
    "logistic": "The same, of logistic regression.",
}

READING = """
## How to read the figures

**The budget.** ε and δ = 1e-5 are the whole budget of every tool, the choice of bins included; the relation is
add-remove. "certsynth, pure ε" has no δ. OpenDP AIM works with ρ: it gets the largest ρ that is (ε, δ)-private. The
floor measures single columns only, with all of the budget.

**The measures** are defined above, and in `benchmarks/wide/measures.py` to the last detail. Triples, boxes and held-out
rows are the same for all.

**Time.** TIME
Every run has a process of its own, and one or two processors. The machine was shared with other work, so compare
processor time, not seconds by the clock. For that reason, runs on Adult were stopped after more than an hour by the
clock, those on the wide tables after one. Memory is the largest sum over all processes of a run.
"""

ENDING = """
## What was done to be fair

- Bounds and labels come from the code book of the tables, and are given to all. Labels are labels to everyone, and no
  tool puts two of them into one bin.
- dpmm spends a tenth of ε on bins, its default at ε = 1. Missing values are left to dpmm, which can handle them; OpenDP
  and SmartNoise get a value of its own for "missing".
- OpenDP and SmartNoise leave the number of bins to the user: 32 for ordered columns, as many as the cells of the total
  variation.
- Rows of OpenDP and SmartNoise are measured twice: as their sampler emits them, and drawn correctly from the same model
  ([why](benchmarks.md#what-was-done-to-be-fair)). The better of the two counts.

- dpmm gives a few rows a missing value in a column of labels that has none: these are replaced by the most frequent
  label, and counted in the results.

- Peers are told to draw as many rows as the private table has. certsynth does not know that number and writes 100,000,
  so its rows have less sampling error than those of a peer with the same model; that counts most for triples.

What it cannot tell: a few tables, few seeds, and settings that experts of the peers might choose better.
"""


def write() -> Path:
    PAGE.write_text(page(), encoding="utf-8")
    return PAGE


if __name__ == "__main__":
    write()
