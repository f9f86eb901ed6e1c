"""Who counts, and what it costs: DuckDB with rows fetched, DuckDB in its own language, and Spark on this machine.

All read the same generated Parquet file of ten columns, and count all pairs in 16 cells and on the lattice that
certificates are computed on. Each measurement runs in a process of its own. Seconds on the wall, and of the processors
for this process and those that it started, are the best of a few runs; starting Spark is not among them. What is
measured is kept in results/engines.json, and a run that was stopped goes on.

    PYTHONPATH=benchmarks python -m scale.engines [--quick] [--rows 1000000 10000000] [--runs 2]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from certsynth.domain import Schema
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.sources import open_source, pushed_down, rows_of
from scale.clock import processor_seconds

RESULTS = Path(__file__).parent / "results" / "engines.json"
FOLDER = Path("build") / "scale"
ENGINES = ("DuckDB, rows fetched", "DuckDB, in SQL", "polars, rows fetched", "Spark, in its executors")
TALLIES = ("16 cells", "lattice")
LIBRARIES = ("certsynth", "duckdb", "narwhals", "numpy", "polars", "pyarrow", "pyspark")

_INTEGERS = {"children": 2, "grade": 10, "size": 60, "age": 90}
_COLUMNS = [f"floor(random() * {k})::INTEGER AS {name}" for name, k in _INTEGERS.items()]
_COLUMNS += [f"random() * 1000 AS {name}" for name in ("wage", "rent", "tax")]
_COLUMNS += ["['a', 'b', 'c', 'd', 'e'][1 + floor(random() * 5)::INTEGER] AS region", "random() < 0.3 AS member"]
_COLUMNS += ["DATE '2020-01-01' + floor(random() * 700)::INTEGER AS since"]


def schema() -> Schema:
    """Ten columns of five kinds."""
    columns = [f'name = "{n}"\nkind = "integer"\nlow = 0\nhigh = {k - 1}\n' for n, k in _INTEGERS.items()]
    columns += [f'name = "{n}"\nkind = "number"\nlow = 0\nhigh = 1000\n' for n in ("wage", "rent", "tax")]
    columns += ['name = "region"\nkind = "category"\nvalues = ["a", "b", "c", "d", "e"]\n']
    columns += ['name = "member"\nkind = "boolean"\n']
    columns += ['name = "since"\nkind = "date"\nlow = 2020-01-01\nhigh = 2021-12-31\n']
    return Schema.parse("".join(f"[[column]]\n{column}" for column in columns))


def table(rows: int) -> Path:
    """The file of so many rows, made once."""
    path = FOLDER / f"engines-{rows}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        duckdb.execute(f"COPY (SELECT {', '.join(_COLUMNS)} FROM range({rows})) TO '{half}' (FORMAT parquet)")
        half.rename(path)
    return path


def opened(engine: str, path: Path) -> Any:
    """The table by an engine."""
    if engine == "DuckDB, rows fetched":
        return open_source(path)
    if engine == "DuckDB, in SQL":
        return pushed_down(duckdb.connect().sql(f"FROM read_parquet('{path}')"))
    if engine == "polars, rows fetched":
        import polars as pl

        return open_source(pl.scan_parquet(path))
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    quiet = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"}
    for key, value in {**quiet, "spark.driver.host": "127.0.0.1", "spark.driver.memory": "2g"}.items():
        builder = builder.config(key, value)
    frame = builder.getOrCreate().read.parquet(str(path))
    frame.limit(1).count()
    return open_source(frame)


def measure(engine: str, tally: str, rows: int) -> dict[str, float]:
    """One question to all rows."""
    columns = schema()
    question: Any = CellCounts(columns, Marginals.all_subsets(columns, sparsity=2, resolution=16))
    if tally == "lattice":
        question = LatticeQuery.all_subsets(columns, sparsity=2)
    source = opened(engine, table(rows))
    ask = rows_of(source, columns, "counting")
    warm = rows_of(opened(engine, table(1_000)), columns, "counting")  # imports, workers and what is compiled
    warm(question)
    start, before = time.perf_counter(), processor_seconds()
    told = ask(question)
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    assert told.rows == rows
    return {"seconds": seconds, "processor_seconds": processor}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 rows, once, and nothing is kept")
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        engine, tally, rows = asked.one
        print(json.dumps(measure(engine, tally, int(rows))))
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and not asked.quick else {"points": {}}
    kept["cores"], kept["machine"] = os.cpu_count(), platform.machine()
    kept["versions"] = {name: version(name) for name in LIBRARIES}
    for rows in asked.rows or ([100_000] if asked.quick else [1_000_000, 10_000_000]):
        table(rows)
        for run in range(asked.runs or (1 if asked.quick else 2)):
            for tally in TALLIES:
                for engine in ENGINES:
                    runs = kept["points"].setdefault(f"{engine} | {tally} | {rows}", [])
                    if len(runs) > run:
                        continue
                    command = [sys.executable, "-W", "ignore", "-m", "scale.engines", "--one", engine, tally, str(rows)]
                    done = subprocess.run(
                        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
                    )
                    runs.append(json.loads(done.stdout.splitlines()[-1]))
                    if not asked.quick:
                        RESULTS.parent.mkdir(exist_ok=True)
                        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    show(kept)


def show(kept: dict[str, Any]) -> None:
    print(f"{'engine':26} {'counts':10} {'rows':>12} {'seconds':>9} {'processor':>10} {'µs a row':>9}")
    for key, runs in kept["points"].items():
        engine, tally, rows = key.split(" | ")
        wall, used = (min(run[name] for run in runs) for name in ("seconds", "processor_seconds"))
        each = 1e6 * used / int(rows)
        print(f"{engine:26} {tally:10} {int(rows):12,} {wall:9.1f} {used:10.1f} {each:9.2f}")


if __name__ == "__main__":
    main()
