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
    for name in dict.fromkeys(name for size in sizes for name in kept["points"][str(size)]):
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


def factor(kept: dict[str, Any], key: str, passes: tuple[str, ...] = ()) -> float:
    """The slowest of some counting passes over the most rows, as a multiple of DuckDB's: by the clock or otherwise."""
    points = kept["points"][max(kept["points"], key=int)]
    return max(points[name][key] for name in passes or COUNTING if name in points) / points[REFERENCE][key]


COUNTING = (
    "single columns at full detail",
    "pairs in 16 cells",
    "way to the centres of cells",
    "pairs on the lattice of 256",
    "single columns on that of 1,024",
)


def columns_table(kept: dict[str, Any]) -> str:
    lines = ["| columns | step | seconds | processor, s | memory, GB | what it says |", "|---|---|---|---|---|---|"]
    order = sorted(kept["points"].items(), key=lambda item: int(item[0].partition(" ")[0]))
    for key, point in order:
        columns, _, step = key.partition(" columns: ")
        said = []
        if "bound" in point:
            said.append(f"bound {point['bound']:.3f}")
        if "expected_seconds" in point:
            said.append(f"{point['expected_seconds']:,.0f} s, {point['expected_gb']:.1f} GB to expect of the release")
        if "solved" in point:
            said.append(f"{point['solved']:,} of {point['subsets']:,} pairs solved")
            if point.get("scaled", 1.0) > 1.0:
                said.append(f"{point['compare_cpu']:,.0f} processor-s for all pairs, scaled up")
        wall = "not timed" if point["seconds"] is None else f"{point['seconds']:,.0f}"  # a run that was paused
        cells = [columns, step, wall, f"{point['cpu']:,.0f}", f"{point['gb']:.1f}"]
        lines.append("| " + " | ".join([*cells, "; ".join(said)]) + " |")
    return "\n".join(lines)


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
    most = max(map(int, rows["points"]))
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
Over {most:,} rows all pairs in 16 cells, which get the noise of a release, take
{factor(rows, "seconds", ("pairs in 16 cells",)):.1f} times as long as the reference by the clock; the slowest pass, all
pairs on the fine lattice of the certificate, {factor(rows, "seconds"):.1f} times as long by the clock, with
{factor(rows, "cpu"):.1f} times the processor time.

{rows_table(rows)}

Memory is the peak of the whole process, libraries and compiled loops included. [How counting
works](../explanation/counting.md) says why the counts are exact.

## Columns

{columns["rows"]:,} rows, all pairs. "zCDP" is ε = 1 with δ = 10^−6. "All" solves every pair; "skipping" leaves out
those that [cannot be the worst](../explanation/proofs/direct.md#subsets-that-are-skipped): the integer that gets noise
is the same. A release here remembers the plan that was made before it, whose time is not in its own.

{columns_table(columns)}

## Workers

{workers["columns"]} columns, {workers["rows"]:,} rows: all {workers["columns"] * (workers["columns"] - 1) // 2} pairs
compared, nothing skipped. The results {"are the same" if workers["same"] else "DIFFER"}.

{workers_table(workers)}

## Engines

Another table of ten columns, the same counts from each engine.

{engines_table(engines)}

Where rows are in files on the same machine, fetching them is cheaper than SQL that groups them once for each pair: that
is why only tables whose rows would have to travel are counted in their engine's own language. Spark's share is mostly
Python beside Java: it pays when rows are spread over machines.

## On paper: {MANY:,} rows, {EXECUTORS} executors

{paper(engines)}

This is a calculation. No such cluster was measured.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
