"""Rows against seconds, CPU seconds and memory: each pass over a Parquet file, beside DuckDB scanning and binning it.

    PYTHONPATH=benchmarks python -m scale.rows [--quick] [--rows N ...]

The reference is one query by DuckDB on all cores: all ten columns of all rows are read, each value is put into one of
16 cells by the same rule, and nothing is counted but one sum for each column, so that the work cannot be left out. A
pass of certsynth reads and cleans the same rows, and counts. Every figure is of a process of its own, without its
imports; the best of several runs in turn. Tables are made in build/scale, and kept: 10^8 rows take 3.4 GB.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from certsynth import Schema, certify, release
from certsynth.algorithm.layers import lattice_points
from certsynth.domain import Ordered
from certsynth.queries.displacement import Displacement
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals, all_subsets
from certsynth.queries.tally import RowCount, Tally
from certsynth.sources import open_source, rows_of
from scale.clock import processor_seconds

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "build" / "scale"
RESULTS = Path(__file__).parent / "results" / "rows.json"
ROWS, QUICK_ROWS = (10**6, 10**7, 10**8), (10**5, 10**6)
MOST_CSV = 10**6
CELLS = 16
REFERENCE = "DuckDB: scan and bin"

LABELS = ("north", "south", "east", "west", "centre", "islands")
EXPRESSIONS = {
    "age": "(hash(i, 1) % 90)::TINYINT",
    "income": "CASE WHEN hash(i, 2) % 50 > 0 THEN (hash(i, 2) % 100000)::INTEGER END",
    "hours": "(pow((hash(i, 3) % 1000000) / 1e6, 3) * 2000)::SMALLINT",
    "month": "(hash(i, 4) % 12)::BIGINT",
    "children": "CASE WHEN hash(i, 5) % 20 > 0 THEN (hash(i, 5) % 7)::INTEGER END",
    "account": "(hash(i, 6) % 1000000007)::BIGINT",
    "weight": "pow((hash(i, 7) % 1000000) / 1e6, 2) * 250",
    "slope": "CASE WHEN hash(i, 8) % 100 > 0 THEN sin((hash(i, 8) % 1000000) / 1e6 * 6.28) END",
    "region": f"{[*LABELS, None]!r}[1 + (hash(i, 9) % 7)::INTEGER]".replace("None", "NULL"),
    "born": "DATE '1950-01-01' + (hash(i, 10) % 25000)::INTEGER",
}
"""Six columns of whole numbers, two of others, one of texts, one of dates; four of them have nulls."""

SCHEMA = Schema.parse(
    "\n".join(
        f'[[column]]\nname = "{name}"\nkind = "{kind}"\n{rest}'
        for name, kind, rest in [
            ("age", "integer", "low = 0\nhigh = 89"),
            ("income", "integer", "low = 0\nhigh = 100000\nmissing = true"),
            ("hours", "integer", "low = 0\nhigh = 2000"),
            ("month", "integer", "low = 0\nhigh = 11"),
            ("children", "integer", "low = 0\nhigh = 6\nmissing = true"),
            ("account", "integer", "low = 0\nhigh = 1000000006"),
            ("weight", "number", "low = 0\nhigh = 250"),
            ("slope", "number", "low = -1\nhigh = 1\nmissing = true"),
            ("region", "category", f"values = {json.dumps(LABELS)}\nmissing = true"),
            ("born", "date", "low = 1950-01-01\nhigh = 2018-12-31"),
        ]
    )
)
PAIRS, SINGLES = all_subsets(SCHEMA, 2), all_subsets(SCHEMA, 1)


def table(rows: int) -> Path:
    """The table of so many rows, made by DuckDB."""
    path = TABLES / f"rows-{rows}.parquet"
    if not path.exists():
        TABLES.mkdir(parents=True, exist_ok=True)
        chosen = ", ".join(f"{each} AS {name}" for name, each in EXPRESSIONS.items())
        part = path.with_suffix(".part")
        with duckdb.connect() as con:
            con.execute("SET memory_limit = '4GB'")
            con.execute(f"COPY (SELECT {chosen} FROM range({rows}) AS t(i)) TO '{part}' (FORMAT parquet)")
        part.rename(path)
    return path


def text(rows: int) -> Path:
    """The same as CSV."""
    path = TABLES / f"rows-{rows}.csv"
    if not path.exists():
        with duckdb.connect() as con:
            con.execute(f"COPY (FROM read_parquet('{table(rows)}')) TO '{path}' (HEADER)")
    return path


def bins() -> list[str]:
    """SQL for the cell of each column: the rule of `Column.to_cells`, as cheap as it can be said.

    What is missing falls into the lowest cell, since `greatest` passes over a null; to tell it apart would cost more.
    """
    found = []
    for column in SCHEMA:
        name = column.name
        if not isinstance(column, Ordered):
            cases = " ".join(f"WHEN '{label}' THEN {j}" for j, label in enumerate(LABELS))
            found.append(f"CASE {name} {cases} ELSE {len(LABELS)} END")
        elif column.kind == "number":
            place = f"floor(({name} - ({column.low})) / {column.high - column.low} * {CELLS})"
            found.append(f"least(greatest({place}, 0), {CELLS - 1})")
        elif column.reach <= CELLS:
            found.append(f"least(greatest({name}, {column.low}), {column.high})")
        else:
            low = datetime.date(1970, 1, 1) + datetime.timedelta(int(column.low))
            offset = f"({name} - DATE '{low}')" if column.kind == "date" else f"({name}::BIGINT - {column.low})"
            place = f"{offset} * {CELLS} // {column.reach}"
            found.append(f"least(greatest({place}, 0), {CELLS - 1})")
    return found


def reference(rows: int) -> None:
    sums = ", ".join(f"sum({each})" for each in bins())
    with duckdb.connect(config={"temp_directory": ""}) as con:
        con.execute(f"SELECT {sums} FROM read_parquet(?)", [str(table(rows))]).fetchall()


def asking(tally: Tally[Any, Any], *, of: Callable[[int], Path] = table) -> Callable[[int], None]:
    """One pass over the rows. What it says is private, and forgotten."""

    def ask(rows: int) -> None:
        rows_of(open_source(of(rows)), SCHEMA, "counting")(tally)

    return ask


def certifying(rows: int) -> None:
    certify(table(rows), table(min(rows, QUICK_ROWS[0])), SCHEMA, epsilon=1)


def releasing(rows: int) -> None:
    release(table(rows), SCHEMA, epsilon=1, rows=QUICK_ROWS[0], seed=1)


CUBES = Marginals.all_subsets(SCHEMA, sparsity=2, resolution=CELLS)
PASSES: dict[str, Callable[[int], None]] = {
    REFERENCE: reference,
    "read and clean": asking(RowCount()),
    "single columns at full detail": asking(CellCounts(SCHEMA, Marginals(lattice_points(SCHEMA, None), SINGLES))),
    f"pairs in {CELLS} cells": asking(CellCounts(SCHEMA, CUBES)),
    "way to the centres of cells": asking(Displacement(SCHEMA, CUBES)),
    "pairs on the lattice of 256": asking(LatticeQuery.of(SCHEMA, PAIRS, steps=256)),
    "single columns on that of 1,024": asking(LatticeQuery.of(SCHEMA, SINGLES)),
}
WHOLE: dict[str, Callable[[int], None]] = {
    f"CSV: pairs in {CELLS} cells": asking(CellCounts(SCHEMA, CUBES), of=text),
    "certify": certifying,
    "release": releasing,
}


def one(name: str, rows: int) -> None:
    """One run in this process; its figures go to stdout. Compiled loops are loaded before the clock starts."""
    step = {**PASSES, **WHOLE}[name]
    if name not in WHOLE:
        step(QUICK_ROWS[0])
    began, cpu = time.perf_counter(), processor_seconds()
    step(rows)
    seconds, used = time.perf_counter() - began, processor_seconds() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 2), "cpu": round(used, 2), "mb": round(peak)}))


def run(name: str, rows: int) -> dict[str, float] | None:
    command = [sys.executable, "-m", "scale.rows", "--one", name, str(rows)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"CERTSYNTH_CACHE": "off"}
    )
    if done.returncode:
        print(f"{name}: failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def best(old: dict[str, float] | None, new: dict[str, float]) -> dict[str, float]:
    """Least seconds of either sort, but the largest peak."""
    if old is None:
        return new | {"runs": 1}
    least = {key: min(old[key], new[key]) for key in ("seconds", "cpu")}
    return least | {"mb": max(old["mb"], new["mb"]), "runs": old["runs"] + 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10^5 and 10^6 rows, and nothing is kept")
    parser.add_argument("--rows", type=int, nargs="*", help="these numbers of rows")
    parser.add_argument("--steps", nargs="*", help="only steps that begin so")
    parser.add_argument("--runs", type=int, help="runs of each pass: 3, with --quick 1")
    parser.add_argument("--one", nargs=2, metavar=("STEP", "ROWS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(asked.one[0], int(asked.one[1]))
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and not asked.quick else {"points": {}}
    kept["versions"] = {name: importlib.metadata.version(name) for name in ("certsynth", "duckdb", "numba", "numpy")}
    kept["cores"] = os.cpu_count()
    runs = asked.runs or (1 if asked.quick else 3)
    for rows in asked.rows or (QUICK_ROWS if asked.quick else ROWS):
        table(QUICK_ROWS[0]), table(rows)
        found = kept["points"].setdefault(f"{rows}", {})
        for turn in range(runs):
            for name in filter(lambda name: name.startswith(tuple(asked.steps or [""])), [*PASSES, *WHOLE]):
                if found.get(name, {}).get("runs", 0) > turn or (name in WHOLE and turn):
                    continue
                if name.startswith("CSV") and rows > MOST_CSV:
                    continue
                if name in WHOLE and asked.quick and rows > QUICK_ROWS[0]:
                    continue
                if (new := run(name, rows)) is not None:
                    found[name] = best(found.get(name), new)
                    if not asked.quick:
                        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        show(rows, found)


def show(rows: int, found: dict[str, dict[str, float]]) -> None:
    print(
        f"\n{rows:,} rows × {len(SCHEMA)} columns{'seconds':>24}{'CPU':>9}{'ns/row':>9}{'peak MB':>9}  × DuckDB (CPU)"
    )
    base = found.get(REFERENCE)
    for name, point in found.items():
        times = ""
        if base is not None and name in PASSES:
            times = f"{point['seconds'] / base['seconds']:6.2f} ({point['cpu'] / base['cpu']:.2f})"
        each = 1e9 * point["seconds"] / rows
        print(f"{name:38}{point['seconds']:10.2f}{point['cpu']:9.2f}{each:9.0f}{point['mb']:9.0f}  {times}", flush=True)


if __name__ == "__main__":
    main()
