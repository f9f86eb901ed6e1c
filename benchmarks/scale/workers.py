"""One worker against two, and against two of a Dask cluster: seconds, and that the results are the same.

The work is the comparison of two tables in all pairs of columns, nothing skipped. Each way is timed several times, in
turn; the best time counts. `--quick` takes a small table.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import joblib
from distributed import Client, LocalCluster

from certsynth.base import parallel
from certsynth.base.memory import default_memory
from certsynth.certificate.passes import compare_tables
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import all_subsets
from certsynth.queries.tally import in_memory
from scale import wide

RESULTS = Path(__file__).parent / "results" / "workers.json"
IN_MEMORY = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}
COLUMNS, ROWS, TIMES = 8, 50_000, 2
QUICK_COLUMNS, QUICK_ROWS, QUICK_TIMES = 4, 2_000, 1


@contextlib.contextmanager
def dask_workers(count: int) -> Iterator[None]:
    with dask.config.set(IN_MEMORY):
        cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        yield


WAYS = {
    "one process": lambda: joblib.parallel_config(n_jobs=1),
    "two processes": lambda: joblib.parallel_config(n_jobs=2),
    "Dask, two workers": lambda: dask_workers(2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    columns, rows, times = (QUICK_COLUMNS, QUICK_ROWS, QUICK_TIMES) if asked.quick else (COLUMNS, ROWS, TIMES)
    if asked.quick:
        parallel.MIN_PROCESS_WORK = 0  # however little there is to do
    fine = LatticeQuery.of(wide.schema(columns), all_subsets(wide.schema(columns), 2))
    tables = (wide.table(columns, rows, seed=seed) for seed in (1, 2))
    ours, theirs = (in_memory(wide.cleaned_rows(table, wide.schema(columns))) for table in tables)
    best: dict[str, float] = {}
    answers: list[Any] = []
    for _ in range(times):
        for way, within in WAYS.items():
            with within():
                began = time.perf_counter()
                answers.append(compare_tables(fine, ours, [theirs], memory=default_memory(), every=True).found)
                seconds = time.perf_counter() - began
            best[way] = min(seconds, best.get(way, seconds))
    same = all(answer == answers[0] for answer in answers)
    for way, seconds in best.items():
        print(f"{way:20} {seconds:8.1f} s   {best['one process'] / seconds:5.2f} times as fast as one")
    print("the same results" if same else "DIFFERENT RESULTS")
    if not asked.quick:
        versions = {name: importlib.metadata.version(name) for name in ("certsynth", "joblib", "distributed")}
        kept = {"seconds": best, "same": same, "columns": columns, "rows": rows, "cores": os.cpu_count()}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(kept | {"versions": versions}, indent=1) + "\n")


if __name__ == "__main__":
    main()
