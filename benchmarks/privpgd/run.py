"""PrivPGD's benchmark with certsynth: releases of its tables, measured as it measures them.

    PYTHONPATH=benchmarks python -m privpgd [TABLE …] [--epsilons 1 …] [--modes …] [--seeds 5] [--limit SECONDS]

Every release runs in a process of its own and is kept in results/TABLE.json as soon as it is measured, so that an
interrupted benchmark resumes where it stopped. `--again` repeats releases that failed or took too long. Settings that
are compared with published figures (ε = 1, with δ, replace-one) come first. At the end `privpgd.page` writes
docs/benchmarks-privpgd.md from the results, and docs/make_figures.py draws its figures.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privpgd import page
from privpgd.measures import Box, measure, model_error, random_boxes
from privpgd.tables import TABLES, Prepared, Table
from race.contenders import PEERS
from race.environments import tidy
from race.keeping import RunFile, machine
from race.tables import ROOT
from race.watching import watched
from survey import DATA

RESULTS = Path(__file__).parent / "results"
RUNNER = PEERS / "certsynth_runner.py"
LIMIT_SECONDS = 3600.0
KEPT = ("done", "failed", "late")


@dataclass(frozen=True, slots=True)
class Bench:
    """A table as files for the process that releases it, and the queries on which its releases are compared."""

    table: Table
    rows: Prepared
    boxes: list[Box]
    work: Path

    @classmethod
    def of(cls, table: Table, work: Path) -> Bench:
        rows = table.prepared()
        bench = cls(table, rows, random_boxes(rows.training, rows.sizes), work)
        (work / "schema.toml").write_text(rows.toml, encoding="utf-8")
        header = ",".join(rows.names)
        np.savetxt(work / "rows.csv", rows.training, fmt="%d", delimiter=",", header=header, comments="")
        return bench

    def release(self, mode: str, epsilon: str, seed: int, *, limit: float) -> dict[str, Any]:
        """Release once and measure the rows. A failure is a result, too."""
        run: dict[str, Any] = {"mode": mode, "epsilon": epsilon, "seed": seed}
        run["load before"] = round(os.getloadavg()[1], 1)
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            request, report = Path(folder) / "request.json", Path(folder) / "report.json"
            wanted = {
                "data": str(self.work / "rows.csv"),
                "schema": str(self.work / "schema.toml"),
                "out": str(Path(folder) / "made.csv"),
                "report": str(report),
                "epsilon": epsilon,
                "seed": seed,
                "setting": {"options": page.MODES[mode].options},
            }
            request.write_text(json.dumps(wanted), encoding="utf-8")
            seen = watched([sys.executable, str(RUNNER), str(request)], limit=limit)
            run |= {"wall": round(seen.wall, 1), "cpu": round(seen.cpu, 1), "peak MB": round(seen.peak)}
            if seen.late:
                return run | {"outcome": "late", "error": f"stopped after {limit:.0f} s"}
            if seen.code or not report.exists():
                return run | {"outcome": "failed", "error": tidy(seen.errors)}
            told = json.loads(report.read_text(encoding="utf-8"))
            made = read_cells(Path(told["tables"][""]), self.rows.names)
        found = measure(self.rows.training, made, self.rows.sizes, self.boxes)
        found["model error"] = model_error(made, self.rows.test, is_class=self.table.is_class)
        kept = {"rows": len(made), "certificate": told["certificate"], "versions": told["versions"]}
        return run | kept | {"outcome": "done", "measures": found}


def read_cells(path: Path, names: Sequence[str]) -> np.ndarray:
    with path.open(encoding="utf-8") as lines:
        header = next(lines).strip().split(",")
        rows = np.loadtxt(lines, delimiter=",", ndmin=2)
    places = [[name.strip('"') for name in header].index(name) for name in names]
    return rows[:, places].astype(np.int64)


class Results(RunFile):
    """The releases of one table."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, keys=("mode", "epsilon", "seed"))

    def describe(self, bench: Bench) -> None:
        """What all releases of the table have in common; the error of a model of the real rows is computed once."""
        about = {
            "table": bench.table.key,
            "rows": len(bench.rows.training),
            "test rows": len(bench.rows.test),
            "columns": list(bench.rows.names),
        }
        self.refuse_others(about)
        if "real" not in self.document:
            error = model_error(bench.rows.training, bench.rows.test, is_class=bench.table.is_class)
            self.document = {**about, "real": {"model error": error}, "machine": machine(), **self.document}

    def has(self, mode: str, epsilon: str, seed: int, *, again: bool = False) -> bool:
        run = self.run(mode, epsilon, seed)
        return run is not None and run["outcome"] in (("done",) if again else KEPT)


def benchmark(
    tables: Sequence[str],
    settings: Sequence[tuple[str, str]],
    *,
    seeds: int = page.RUNS,
    limit: float = LIMIT_SECONDS,
    again: bool = False,
    results: Path = RESULTS,
) -> None:
    """Each setting, a mode and ε, is released on all tables before the next one begins."""
    for (mode, epsilon), key in itertools.product(settings, tables):
        kept, table = Results(results / f"{key}.json"), TABLES[key]
        todo = [seed for seed in range(1, seeds + 1) if not kept.has(mode, epsilon, seed, again=again)]
        if not todo:
            continue
        if not table.exists:
            print(f"{table.title}: no {table.file} in the folder that CERTSYNTH_DATA names", flush=True)
            continue
        with tempfile.TemporaryDirectory() as work:
            bench = Bench.of(table, Path(work))
            kept.describe(bench)
            for seed in todo:
                run = bench.release(mode, epsilon, seed, limit=limit)
                kept.add(run)
                print(f"{table.title}: {line(run)}", flush=True)


def line(run: dict[str, Any]) -> str:
    setting = f"{run['mode']}, ε = {run['epsilon']}, seed {run['seed']}"
    if run["outcome"] != "done":
        return f"{setting}: {run['outcome']}: {run['error']}"
    figures = ", ".join(f"{name} {x:.4g}" for name, x in run["measures"].items() if isinstance(x, float))
    return f"{setting}: {figures}; processor {run['cpu']:.0f} s"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--modes", nargs="+", choices=list(page.MODES), default=list(page.MODES))
    parser.add_argument("--epsilons", nargs="+", choices=page.EPSILONS, default=page.EPSILONS)
    parser.add_argument("--seeds", type=int, default=page.RUNS)
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="SECONDS")
    parser.add_argument("--again", action="store_true", help="repeat releases that failed or took too long")
    given = parser.parse_args(arguments)
    if not DATA.is_dir():
        raise SystemExit("The tables are not there: set CERTSYNTH_DATA to their folder.")
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    settings = [each for each in page.WANTED if each[0] in given.modes and each[1] in given.epsilons]
    tables = given.tables or list(TABLES)
    benchmark(tables, settings, seeds=given.seeds, limit=given.limit, again=given.again)
    print(page.write().relative_to(ROOT))
