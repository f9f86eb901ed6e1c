"""The race: certsynth and its peers on the same tables, seed by seed in turn.

    PYTHONPATH=benchmarks python -m race [--quick] [--tables …] [--contenders …] [--seeds 5] [--limit SECONDS]

Peers get environments of their own in build/race. Every run is kept in results/TABLE.json as soon as it is over, so
that a race that was stopped goes on where it was; `--again` repeats runs that failed or took too long. Who took too
long with one seed is not asked for the others. `--quick` is a race of minutes on 3,000 rows, kept in build/race/quick.
When all is done, `race.page` writes docs/benchmarks.md, and the table in the README, from the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from race import page
from race.contenders import ALL_PEERS, CONTENDERS, Contender
from race.environments import NoEnvironment, environment, tidy
from race.measures import measures
from race.tables import ROOT, TABLES, Table
from race.watching import THREADS, watched
from survey import DATA

RESULTS = Path(__file__).parent / "results"
BUILD = ROOT / "build" / "race"
EPSILON = 1.0
SEEDS = 5
LIMIT = 3600.0
QUICK_ROWS = 3000
QUICK = ("certsynth-replace", "certsynth-add", "dpmm-mst-reduced", "opendp-aim-delta")
QUICK_LATTICE = 32
KEPT = ("done", "failed", "late", "not installed")


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory GB": round(memory),
        "system": platform.system(),
        "threads of a run": THREADS,
    }


class Results:
    """The runs of one table, in a file that is whole at any time."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.document: dict[str, Any] = {**settings, "machine": machine(), "runs": []}
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if {key: kept.get(key) for key in settings} != settings:
                raise SystemExit(f"{path.name} holds runs with other settings: move it away first.")
            self.document["runs"] = kept["runs"]

    def has(self, contender: Contender, seed: int, *, again: bool = False) -> bool:
        """Whether there is nothing to do: a run with another setting does not count."""
        enough = ("done",) if again else KEPT
        return any(
            (run["contender"], run["seed"]) == (contender.key, seed)
            and run["outcome"] in enough
            and run.get("setting", contender.setting) == contender.setting
            for run in self.document["runs"]
        )

    def is_late(self, contender: Contender) -> bool:
        """Whether it took too long with some seed, and no other was done."""
        own = {run["outcome"] for run in self.document["runs"] if run["contender"] == contender.key}
        return "late" in own and "done" not in own

    def add(self, run: dict[str, Any]) -> None:
        same = (run["contender"], run["seed"])
        self.document["runs"] = [r for r in self.document["runs"] if (r["contender"], r["seed"]) != same] + [run]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(self.document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(self.path)


def one(
    contender: Contender,
    table: Table,
    data: Path,
    *,
    seed: int,
    limit: float,
    lattice: int | None = None,
    folder: Path = BUILD,
) -> dict[str, Any]:
    """Run a contender once. That it fails, or takes too long, is a result."""
    run: dict[str, Any] = {"contender": contender.key, "seed": seed, "setting": contender.setting}
    run["load before"] = round(os.getloadavg()[1], 1)
    try:
        python = environment(ALL_PEERS[contender.peer], folder)
    except NoEnvironment as error:
        return run | {"outcome": "not installed", "error": str(error)}
    with tempfile.TemporaryDirectory() as work:
        asked, report = _request(Path(work), contender, table, data, seed)
        alone = ALL_PEERS[contender.peer].requirements is not None
        seen = watched([str(python), str(contender.runner), str(asked)], limit=limit, alone=alone)
        run |= {"wall": seen.wall, "cpu": seen.cpu, "peak MB": seen.peak}
        if seen.late:
            return run | {"outcome": "late", "error": f"stopped after {limit:.0f} s"}
        if seen.code or not report.exists():
            return run | {"outcome": "failed", "error": tidy(seen.errors)}
        told = json.loads(report.read_text(encoding="utf-8"))
        if contender.command:
            command = watched([str(python), str(contender.command), str(asked)], limit=limit)
            run |= {"command line": command.wall, "command line cpu": command.cpu} if not command.code else {}
        try:
            found = {name: measures(data, Path(path), table, lattice=lattice) for name, path in told["tables"].items()}
        except Exception as error:
            return run | {"outcome": "failed", "error": tidy(f"its table could not be read: {error}")}
    return run | told | {"outcome": "done", "tables": found}


def _request(work: Path, contender: Contender, table: Table, data: Path, seed: int) -> tuple[Path, Path]:
    """What a runner is asked, as a file, and the file that it is to answer in."""
    asked, report, schema = (work / name for name in ("request.json", "report.json", "schema.toml"))
    schema.write_text(table.toml, encoding="utf-8")
    wanted = {
        "data": str(data),
        "schema": str(schema),
        "columns": [column.to_json() for column in table.columns],
        "out": str(work / "made.csv"),
        "report": str(report),
        "epsilon": EPSILON,
        "seed": seed,
        "setting": contender.setting,
    }
    asked.write_text(json.dumps(wanted), encoding="utf-8")
    return asked, report


def warmed_up(contender: Contender, table: Table, data: Path, *, limit: float) -> None:
    """Run ours once, untimed: what it compiles on a new machine is kept for all runs after that."""
    with tempfile.TemporaryDirectory() as work:
        asked, _ = _request(Path(work), contender, table, data, seed=0)
        watched([sys.executable, str(contender.runner), str(asked)], limit=limit)


def stages(tables: Sequence[str], contenders: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Defaults on all tables come before what else there is, for a race that is stopped early."""
    defaults = [key for key in contenders if CONTENDERS[key].default]
    others = [key for key in contenders if not CONTENDERS[key].default]
    for n, table in enumerate(tables):
        if defaults:
            yield table, defaults
        if others and n == 0:
            yield table, others
    for table in tables[1:]:
        if others:
            yield table, others


def race(
    tables: Sequence[str],
    contenders: Sequence[str],
    *,
    seeds: int = SEEDS,
    limit: float = LIMIT,
    rows: int | None = None,
    lattice: int | None = None,
    results: Path = RESULTS,
    build: Path = BUILD,
    again: bool = False,
) -> None:
    """All contenders take their turn with each seed, so that a noisy machine is noisy for all."""
    build.mkdir(parents=True, exist_ok=True)
    warm: set[str] = set()
    for key, stage in stages(tables, contenders):
        table = TABLES[key]
        if not table.path.exists():
            print(f"{table.title}: no {table.file} in the folder that CERTSYNTH_DATA names; left out", flush=True)
            continue
        data = build / f"{key}-{rows or table.rows or 'all'}.csv"
        count = table.write_csv(data, rows=rows)
        kept = Results(results / f"{key}.json", {"table": key, "rows": count, "epsilon": EPSILON, "lattice": lattice})
        for seed in range(1, seeds + 1):
            for name in stage:
                contender = CONTENDERS[name]
                if kept.has(contender, seed, again=again) or (kept.is_late(contender) and not again):
                    continue
                if contender.peer == "certsynth" and name not in warm:
                    warmed_up(contender, table, data, limit=limit)
                    warm.add(name)
                run = one(contender, table, data, seed=seed, limit=limit, lattice=lattice, folder=build)
                kept.add(run)
                print(f"{table.title}, seed {seed}: {line(run)}", flush=True)


def line(run: dict[str, Any]) -> str:
    if run["outcome"] != "done":
        return f"{run['contender']} {run['outcome']}: {run['error']}"
    losses = ", ".join(f"{name} {each['value']:.4f}".strip() for name, each in run["tables"].items())
    return f"{run['contender']} {losses}; {run['seconds']:.1f} s, processor {run['cpu']:.1f} s"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=None)
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=None)
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--again", action="store_true", help="repeat runs that failed or took too long")
    given = parser.parse_args(arguments)
    if not DATA.is_dir():
        raise SystemExit("The survey tables are not there: set CERTSYNTH_DATA to their folder.")
    if given.quick:
        results = BUILD / "quick"
        shutil.rmtree(results, ignore_errors=True)
        race(
            given.tables or ["california-5"],
            given.contenders or QUICK,
            seeds=given.seeds or 1,
            limit=given.limit,
            rows=QUICK_ROWS,
            lattice=QUICK_LATTICE,
            results=results,
        )
    else:
        race(
            given.tables or list(TABLES),
            given.contenders or list(CONTENDERS),
            seeds=given.seeds or SEEDS,
            limit=given.limit,
            again=given.again,
        )
    if given.quick:
        target = BUILD / "quick" / "benchmarks.md"
        target.write_text(page.page(BUILD / "quick"), encoding="utf-8")
    else:
        target = page.write()
    print(target.relative_to(ROOT))
