"""docs/how-to/scale.md from what the benchmarks found.

PYTHONPATH=benchmarks python -m scale.page
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "scale.md"
RESULTS = Path(__file__).parent / "results"

REFERENCE = "DuckDB: scan and bin"
EXECUTORS, EACH, MANY = 100, 4, 10**9
"""The cluster of the calculation on paper: executors, cores of each, and rows."""


def found(part: str, results: Path = RESULTS) -> dict[str, Any]:
    """What was measured of one part."""
    path = results / f"{part}.json"
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def rows_table(kept: dict[str, Any]) -> str:
    """Every pass at every size, beside DuckDB's."""
    sizes = sorted(map(int, kept["points"]))
    lines = [
        "| pass | " + " | ".join(f"{size:,} rows | ns a row | memory, MB" for size in sizes) + " |",
        "|---" * (1 + 3 * len(sizes)) + "|",
    ]
    names = dict.fromkeys(name for size in sizes for name in kept["points"][str(size)])
    for name in (name for name in names if name not in WHOLE):
        cells = []
        for size in sizes:
            point = kept["points"][str(size)].get(name)
            if point is None:
                cells += ["", "", ""]
                continue
            base = kept["points"][str(size)][REFERENCE]
            times = "" if name == REFERENCE else f" ({point['seconds'] / base['seconds']:.1f} ×)"
            cells += [f"{point['seconds']:.1f} s{times}", f"{1e9 * point['seconds'] / size:.0f}", f"{point['mb']:.0f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def whole(kept: dict[str, Any]) -> str:
    """Whole commands, and the pass over CSV: each at every size that was measured."""
    lines = []
    for name in WHOLE:
        for size in sorted(map(int, kept["points"])):
            if point := kept["points"][str(size)].get(name):
                times = [f"{point['seconds']:,.1f}", f"{point['cpu']:,.1f}", f"{1e9 * point['seconds'] / size:,.0f}"]
                lines.append("| " + " | ".join([name, f"{size:,}", *times, f"{point['mb']:.0f}"]) + " |")
    if not lines:
        return ""
    return "\n".join(
        [
            "The same file as a whole, at ε = 1: `certify` of another table of 100,000 rows, and `release` of 100,000",
            "rows with its choice of mechanism and resolution; and the pairs in 16 cells, where rows come from CSV.",
            "",
            "| what | rows | seconds | processor, s | ns a row | memory, MB |",
            "|---|---|---|---|---|---|",
            *lines,
            "",
            "",
        ]
    )


def ratios(kept: dict[str, Any], key: str) -> dict[str, float]:
    """Counting passes over the most rows as multiples of DuckDB's: by the clock, or otherwise."""
    points = kept["points"][max(kept["points"], key=int)]
    return {name: points[name][key] / points[REFERENCE][key] for name in COUNTING if name in points}


def passes(kept: dict[str, Any]) -> str:
    """How the passes compare with the reference, in words."""
    most, clock, used = max(map(int, kept["points"])), ratios(kept, "seconds"), ratios(kept, "cpu")
    slowest = max(clock, key=lambda name: clock[name])
    above = [f"{name} ({times:.2f} ×)" for name, times in clock.items() if times > TWICE]
    verdict = (
        f"More than twice as long as the reference: {', '.join(above)}."
        if above
        else "No pass takes more than twice as long as the reference."
    )
    return f"""\
Over {most:,} rows passes take {min(clock.values()):.1f} to {max(clock.values()):.1f} times as long as the reference by
the clock. The slowest, {slowest}, takes {clock[slowest]:.2f} times as long, with {used[slowest]:.2f} times the
processor time. {verdict}{growth(kept)}"""


def growth(kept: dict[str, Any]) -> str:
    """What memory does while rows grow, in a sentence."""
    sizes = sorted(map(int, kept["points"]))
    few, many = (kept["points"][str(size)] for size in (sizes[0], sizes[-1]))
    more = [many[name]["mb"] - few[name]["mb"] for name in COUNTING if name in few and name in many]
    if not more:
        return ""
    return f"\nFrom {sizes[0]:,} rows to {sizes[-1]:,} the peak of memory grows by at most {max(0, *more):.0f} MB."


TWICE = 2.0
"""What a pass may take in multiples of the reference."""

COUNTING = (
    "single columns at full detail",
    "pairs in 16 cells",
    "way to the centres of cells",
    "pairs on the lattice of 256",
    "single columns on that of 1,024",
)
WHOLE = ("CSV: pairs in 16 cells", "certify", "release")


def columns_table(kept: dict[str, Any]) -> str:
    lines = ["| columns | step | seconds | processor, s | memory, GB | what it says |", "|---|---|---|---|---|---|"]
    split = [(*key.partition(" columns: ")[::2], point) for key, point in kept["points"].items()]
    for columns, step, point in sorted(split, key=lambda each: (int(each[0]), _rank(each[1]))):
        said = []
        if "bound" in point:
            said.append(f"bound {point['bound']:.3f}")
        if "expected_seconds" in point:
            said.append(f"{point['expected_seconds']:,.0f} s, {point['expected_gb']:.1f} GB to expect of the release")
        if "value" in point:
            where = "" if point["scaled"] == 1.0 else " in the pairs that were solved"
            between = f"between {point['lower']:.4f} and {point['upper']:.4f}"
            said.append(f"loss {point['value']:.4f} on the lattice, {between}{where}")
        if "solved" in point:
            said.append(f"{point['solved']:,} of {point['subsets']:,} pairs solved")
            if point.get("scaled", 1.0) > 1.0:
                said.append(f"{point['compare_cpu']:,.0f} processor-s for all pairs, scaled up")
        wall = "not timed" if point["seconds"] is None else f"{point['seconds']:,.0f}"  # a run that was paused
        cells = [columns, step, wall, f"{point['cpu']:,.0f}", f"{point['gb']:.1f}"]
        lines.append("| " + " | ".join([*cells, "; ".join(said)]) + " |")
    return "\n".join(lines)


STEPS = ("plan", "release", "evaluate", "certificate of the release", "certificate")


def _rank(step: str) -> int:
    """Steps in the order of a journey, whenever they were measured."""
    return next((j for j, start in enumerate(STEPS) if step.startswith(start)), len(STEPS))


def workers_table(kept: dict[str, Any]) -> str:
    alone = kept["seconds"]["one process"]
    lines = ["| workers | seconds | times as fast as one |", "|---|---|---|"]
    lines += [f"| {way} | {seconds:.1f} | {alone / seconds:.2f} |" for way, seconds in kept["seconds"].items()]
    return "\n".join(lines)


def best(runs: list[dict[str, float]], key: str) -> float:
    return min(run[key] for run in runs)


def engines_table(kept: dict[str, Any]) -> str:
    lines = ["| engine | counts | rows | seconds | processor, s | processor, ns a row |", "|---|---|---|---|---|---|"]
    for key, runs in kept["points"].items():
        engine, what, rows = key.split(" | ")
        used = best(runs, "processor_seconds")
        cells = [engine, what, f"{int(rows):,}", f"{best(runs, 'seconds'):.1f}", f"{used:.1f}"]
        lines.append("| " + " | ".join([*cells, f"{1e9 * used / int(rows):,.0f}"]) + " |")
    return "\n".join(lines)


def fetching(kept: dict[str, Any]) -> str:
    """What SQL costs beside fetching rows, in a sentence; nothing where one of the two was not measured."""
    ratios = []
    for key, runs in kept["points"].items():
        engine, what, rows = key.split(" | ")
        if engine == IN_SQL and (fetched := kept["points"].get(f"{FETCHED} | {what} | {rows}")):
            ratios.append(best(runs, "processor_seconds") / best(fetched, "processor_seconds"))
    if not ratios:
        return ""
    cheaper = "Fetching rows is cheaper" if min(ratios) > 1 else "Fetching rows is not always cheaper"
    return f"""\
{cheaper} where they are in files on the same machine: SQL that groups them once for each pair took
{min(ratios):.1f} to {max(ratios):.1f} times the processor time. Only tables whose rows would have to travel are counted
in their engine's own language."""


FETCHED, IN_SQL = "DuckDB, rows fetched", "DuckDB, in SQL"


def paper(kept: dict[str, Any]) -> str:
    """10⁹ rows and 100 executors, from the processor time that Spark took here."""
    spark = [key.split(" | ") for key in kept["points"] if key.startswith("Spark")]
    rows = max(int(size) for _, _, size in spark)
    each = {
        what: 1e9 * best(kept["points"][f"{engine} | {what} | {size}"], "processor_seconds") / rows
        for engine, what, size in spark
        if int(size) == rows
    }
    cells, lattice = each["16 cells"], each["lattice"]
    used = 2 * cells + 2 * lattice
    seconds = MANY * used * 1e-9 / (EXECUTORS * EACH)
    sums, pairs, parts = 45 * 256, 45 * 65_536, EXECUTORS * EACH
    return f"""\
A release with all defaults reads the rows four times: single columns and pairs for the noise, pairs and single columns
for the certificate. Spark took {cells:,.0f} ns of a processor for a row and a pass in cells, and {lattice:,.0f} ns on
the lattice ({rows:,} rows, ten columns). Two of each are {used:,.0f} ns a row.

- **Counting**: {MANY:,} rows × {used:,.0f} ns = {MANY * used * 1e-9:,.0f} processor-seconds; over {EXECUTORS} executors
  of {EACH} cores each {seconds:,.0f} s, if no core waits. Twice that is a careful guess.
- **What travels** is the same for a thousand rows and for a billion: in 45 pairs at most {sums:,} sums in 16 cells, and
  {pairs:,} on the lattice of 256 steps, 24 bytes each before they are packed. Every partition sends what it has of
  these to be added up: with {parts} partitions at most {parts * pairs * 24 / 2**30:.0f} GB between the executors in the
  worst case, that every partition fills every cell, and {pairs * 24 / 2**20:.0f} MB to the driver.
- **Memory** of an executor's Python: the counters, {pairs * 8 / 2**20:.0f} MB, and 60,000 rows at a time.
- **What follows** on the driver, or on the workers of a [cluster](cluster.md), does not know how many rows there were:
  noise, fitting, and one transport problem for each pair."""


def page(results: Path = RESULTS) -> str:
    rows, columns = found("rows", results), found("columns", results)
    workers, engines = found("workers", results), found("engines", results)
    return f"""\
# How to outgrow one machine

Two things grow: rows, which are counted, and subsets of columns, each of which has a transport problem of its own. Rows
are counted where they are, in any number, in memory that stays the same. Transport problems are independent of each
other, and go to as many workers as there are.

| what grows | what to do |
|---|---|
| rows in files | Parquet rather than CSV; a folder or a pattern (`'people/*.parquet'`) is one table |
| rows in Spark, DuckDB or a database | [leave them there](engines.md): the engine counts |
| columns | [take δ, plan first, name the pairs that matter](many-columns.md) |
| subsets, and so transport problems | [spread the work over a cluster](cluster.md) |

All figures below are of one machine with {rows["cores"]} cores, measured by `make bench-scale`, which writes this page.
Ratios travel better than seconds.

## Rows

Ten columns: six of whole numbers, two of others, one of texts, one of dates, four of them with nulls, in one Parquet
file. The reference is a single query of DuckDB on all cores that reads the same columns and puts every value into one
of 16 cells, and counts nothing. Each pass of certsynth reads, cleans and counts all 45 pairs or ten single columns.
{passes(rows)}

{rows_table(rows)}

Memory is the peak of the whole process, libraries and compiled loops included. [How counting
works](../explanation/counting.md) says why the counts are exact.

{whole(rows)}## Columns

{columns["rows"]:,} rows, all pairs. "zCDP" is ε = 1 with δ = 10^−6. "All" solves every pair; "skipping" leaves out
those that [cannot be the worst](../explanation/proofs/direct.md#subsets-that-are-skipped): the integer that gets noise
is the same. A release here remembers the plan that was made before it, whose time is not in its own. `evaluate` wants
the loss in every pair; where all would take more than a quarter of an hour, some pairs are drawn and the time is scaled
up.

{columns_table(columns)}

## Workers

{workers["columns"]} columns, {workers["rows"]:,} rows: all {workers["columns"] * (workers["columns"] - 1) // 2} pairs
compared, nothing skipped. The results {"are the same" if workers["same"] else "DIFFER"}.

{workers_table(workers)}

## Engines

Another table of ten columns, the same counts from each engine.

{engines_table(engines)}

{fetching(engines)} Spark's share is mostly Python beside Java: it pays when rows are
spread over machines.

## On paper: {MANY:,} rows, {EXECUTORS} executors

{paper(engines)}

This is a calculation. No such cluster was measured.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
