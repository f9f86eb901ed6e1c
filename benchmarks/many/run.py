"""Releases of tables with many, mixed columns, and how good they are.

    PYTHONPATH=benchmarks python -m many [TABLE …] [--modes …] [--seeds 5] [--options JSON --variant NAME]
                                         [--source CHECKOUT/src] [--results FOLDER] [--limit SECONDS]

Every plan and every release runs in a process of its own; what it takes is watched from outside. Each is kept as a
file of the results folder, and is not repeated while that file is there. `--source` releases with the certsynth of
another checkout, to compare two of them on one machine; the measures are always of this one. `--options` are further
options of `release` as JSON, and `--variant` is their name in the results. `python -m many.page FOLDER …` prints the
figures of results folders next to each other.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certsynth
from many import page
from many.measures import measure
from many.tables import TABLES, Rows, Table
from race.environments import tidy
from race.tables import ROOT
from race.watching import watched
from survey import DATA

BUILD = ROOT / "build" / "many"
RELEASING = Path(__file__).with_name("releasing.py")
LIMIT = 3600.0
SEEDS = 5
EPSILON = "1"

MODES: dict[str, dict[str, str]] = {
    "pure-add": {"neighbours": "add-remove"},
    "pure-replace": {"neighbours": "replace-one"},
    "delta-add": {"neighbours": "add-remove", "delta": "1e-5"},
    "delta-replace": {"neighbours": "replace-one", "delta": "1e-5"},
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Where certsynth is taken from, where results go, and what is asked beyond the mode."""

    source: Path
    results: Path
    options: dict[str, Any]
    variant: str
    limit: float

    def ask(self, work: Path, request: dict[str, Any]) -> dict[str, Any]:
        """Run a plan or release. That it fails, or takes too long, is a result."""
        asked, report = work / "request.json", work / "report.json"
        report.unlink(missing_ok=True)
        asked.write_text(json.dumps({**request, "report": str(report)}), encoding="utf-8")
        command = ["env", f"PYTHONPATH={self.source}", sys.executable, str(RELEASING), str(asked)]
        seen = watched(command, limit=self.limit)
        took = {"wall": round(seen.wall, 1), "cpu": round(seen.cpu, 1), "peak MB": round(seen.peak)}
        if seen.late:
            return {"outcome": "late", "error": f"stopped after {self.limit:.0f} s", **took}
        if seen.code or not report.exists():
            return {"outcome": "failed", "error": tidy(seen.errors), **took}
        return {"outcome": "done", **took, **json.loads(report.read_text(encoding="utf-8"))}

    def file(self, table: str, mode: str, what: str) -> Path:
        variant = f".{self.variant}" if self.variant else ""
        return self.results / f"{table}.{mode}{variant}.{what}.json"

    def keep(self, path: Path, found: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(found, indent=1), encoding="utf-8")
        partial.replace(path)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A table as files, for the process that releases it."""

    table: Table
    rows: Rows
    data: Path
    schema: Path
    work: Path

    @classmethod
    def of(cls, table: Table, work: Path) -> Prepared:
        work.mkdir(parents=True, exist_ok=True)
        data, schema, rows = work / "rows.parquet", work / "schema.toml", table.rows()
        rows.training.to_parquet(data, index=False)
        schema.write_text(table.toml, encoding="utf-8")
        return cls(table, rows, data, schema, work)

    def plan_request(self, options: dict[str, Any]) -> dict[str, Any]:
        return self._request("plan", options) | {"rows": len(self.rows.training)}

    def release_request(self, options: dict[str, Any], seed: int) -> dict[str, Any]:
        out = self.work / "release"
        shutil.rmtree(out, ignore_errors=True)
        return self._request("release", options) | {"data": str(self.data), "seed": seed, "out": str(out)}

    def _request(self, ask: str, options: dict[str, Any]) -> dict[str, Any]:
        return {"ask": ask, "schema": str(self.schema), "options": {"epsilon": EPSILON, **options}}


def one_plan(bench: Bench, prepared: Prepared, mode: str) -> dict[str, Any]:
    return bench.ask(prepared.work, prepared.plan_request(MODES[mode] | bench.options))


def one_release(bench: Bench, prepared: Prepared, mode: str, seed: int) -> dict[str, Any]:
    """Release once, and measure the rows."""
    request = prepared.release_request(MODES[mode] | bench.options, seed)
    found = bench.ask(prepared.work, request)
    if found["outcome"] == "done":
        synthetic = Path(request["out"]) / "synthetic.parquet"
        found["measures"] = measure(prepared.table, prepared.rows, prepared.data, synthetic)
    return found


def run(bench: Bench, tables: Sequence[str], modes: Sequence[str], *, seeds: int, plans: bool = True) -> None:
    """Seed by seed, so that a benchmark that is stopped has something to say about every table."""
    is_warm = False
    for seed, key in itertools.product(range(1, seeds + 1), tables):
        asked = [(mode, what) for mode in modes for what in (("plan", "release") if plans else ("release",))]
        files = {
            (mode, what): bench.file(key, mode, what if what == "plan" else f"seed-{seed}") for mode, what in asked
        }
        todo = {each: path for each, path in files.items() if not path.exists()}
        if not todo:
            continue
        with tempfile.TemporaryDirectory() as work:
            if not is_warm:
                warm_up(bench, Path(work))
                is_warm = True
            prepared = Prepared.of(TABLES[key], Path(work))
            for (mode, what), path in todo.items():
                planning = what == "plan"
                found = one_plan(bench, prepared, mode) if planning else one_release(bench, prepared, mode, seed)
                setting = {"table": key, "mode": mode, "variant": bench.variant, "options": bench.options}
                bench.keep(path, {**setting, "ask": what, "seed": seed, **found})
                print(f"{path.stem}: {page.line(found)}", flush=True)


def warm_up(bench: Bench, work: Path) -> None:
    """A checkout compiles at its first run; that is not counted."""
    few = Prepared.of(TABLES["california-few"], work)
    bench.ask(work, few.release_request(MODES["pure-add"], 0))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--options", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--variant", default="", metavar="NAME")
    parser.add_argument("--source", type=Path, default=Path(certsynth.__file__).parents[1])
    parser.add_argument("--results", type=Path, default=BUILD / "results")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--no-plans", action="store_true")
    given = parser.parse_args(arguments)
    if not DATA.is_dir():
        raise SystemExit("The tables are not there: set CERTSYNTH_DATA to their folder.")
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    if given.options and not given.variant:
        parser.error("--options needs a --variant, the name of its results")
    bench = Bench(given.source.resolve(), given.results.resolve(), given.options, given.variant, given.limit)
    run(bench, given.tables or list(TABLES), given.modes, seeds=given.seeds, plans=not given.no_plans)
    print(page.page([bench.results]))
