"""Ten million rows of a million persons in Parquet: the passes of a release with and without persons, as ratios.

    PYTHONPATH=benchmarks python -m scale.persons [--quick]

Both count the same tallies, in one process and in turn, so that the ratio depends little on the machine: the best of
several runs. The peak of memory is that of a process of its own. Tables are made in build/scale, and kept.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

from certsynth.domain.persons import Persons
from certsynth.queries.displacement import Displacement
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts
from certsynth.queries.tally import Rows, Tally
from certsynth.sources import open_source, rows_of
from certsynth.sources.persons import keep_rows
from scale.clock import processor_seconds
from scale.rows import CUBES, EXPRESSIONS, PAIRS, SCHEMA, SINGLES, TABLES

RESULTS = Path(__file__).parent / "results" / "persons.json"
ROWS_PER_PERSON = 10
RUNS = 3

TALLIES: list[Tally[Any, Any]] = [
    CellCounts(SCHEMA, CUBES),
    Displacement(SCHEMA, CUBES),
    LatticeQuery.of(SCHEMA, PAIRS),
    LatticeQuery.of(SCHEMA, SINGLES),
]
"""What a release counts."""

IDS = {"whole numbers": "hash(i, 99) % {n}", "texts": "'P' || lpad((hash(i, 99) % {n})::VARCHAR, 9, '0')"}
CASES = {
    "k = 1": Persons("person", 1),
    "k = 4": Persons("person", 4),
    "k = 12": Persons("person", 12),
    "k = 4, each person counts 1": Persons("person", 4, "persons"),
}


def table(rows: int, ids: str) -> Path:
    """The table of `scale.rows` with a column of ids, made by DuckDB."""
    path = TABLES / f"persons-{ids.replace(' ', '-')}-{rows}.parquet"
    if not path.exists():
        TABLES.mkdir(parents=True, exist_ok=True)
        chosen = ", ".join(f"{each} AS {name}" for name, each in EXPRESSIONS.items())
        person = IDS[ids].format(n=rows // ROWS_PER_PERSON)
        part = path.with_suffix(".part")
        with duckdb.connect() as con:
            sql = f"SELECT {person} AS person, {chosen} FROM range({rows}) AS t(i)"
            con.execute(f"COPY ({sql}) TO '{part}' (FORMAT parquet)")
        part.rename(path)
    return path


def count(rows: int, ids: str, case: str | None) -> dict[str, float]:
    """Seconds and processor seconds for all tallies, with the choice of rows if there are persons."""
    source = open_source(table(rows, ids))
    began, cpu = time.perf_counter(), processor_seconds()
    asked: Rows = (
        rows_of(source, SCHEMA, "") if case is None else keep_rows(source, SCHEMA, CASES[case]).rows_of(SCHEMA, "")
    )
    for tally in TALLIES:
        asked(tally)
    return {"seconds": time.perf_counter() - began, "cpu": processor_seconds() - cpu}


def peak(rows: int, ids: str, case: str | None) -> int:
    """Megabytes of a process that does it once."""
    command = [sys.executable, "-m", "scale.persons", "--one", json.dumps([rows, ids, case])]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a million rows, one run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        count(*json.loads(given.one))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
        return
    rows, runs = (10**6, 1) if given.quick else (10**7, RUNS)
    found: dict[str, Any] = {"rows": rows, "persons": rows // ROWS_PER_PERSON}
    for ids in IDS:
        cases = [None, *CASES]
        for case in cases:
            count(rows // 10, ids, case)  # compiled loops are loaded
        best: dict[str | None, dict[str, float]] = {}
        for _ in range(runs):
            for case in cases:
                new = count(rows, ids, case)
                best[case] = {key: min(value, best.get(case, new)[key]) for key, value in new.items()}
        plain = best[None]
        found[ids] = {"without persons": plain | {"mb": peak(rows, ids, None)}}
        for case in CASES:
            ratios = {f"{key}_ratio": best[case][key] / plain[key] for key in plain}
            found[ids][case] = best[case] | ratios | {"mb": peak(rows, ids, case)}
            print(ids, case, {key: round(value, 2) for key, value in found[ids][case].items()}, flush=True)
    if not given.quick:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
