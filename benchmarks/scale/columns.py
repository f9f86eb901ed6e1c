"""Columns against seconds, CPU seconds and memory: plan, release, its true loss, and the certificate alone.

Every step runs in a process of its own, so that its peak of memory is its own. The release takes over the choice that
the plan made before it. The certificate is computed with and without skipping. `--quick` takes few columns and rows.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from certsynth import evaluate, plan, release
from certsynth.base.memory import default_memory
from certsynth.certificate.direct import exact_query
from certsynth.certificate.passes import compare_tables
from certsynth.certificate.skipping import COARSE_BOUNDS
from certsynth.mechanisms import Neighbours
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import Subset, all_subsets
from certsynth.queries.tally import in_memory
from scale import wide
from scale.clock import processor_seconds

RESULTS = Path(__file__).parent / "results" / "columns.json"
COLUMNS, ROWS = (5, 10, 20, 50, 100), 100_000
QUICK_COLUMNS, QUICK_ROWS = (5, 8), 2_000
BUDGETS = {"zcdp": {"epsilon": 1, "delta": "1e-6"}, "epsilon": {"epsilon": 1}}
SAMPLE = 60
"""Subsets that are solved where solving all would take hours: what all would take is scaled up."""

PATIENCE = 15 * 60
"""Seconds that `evaluate` of all subsets may take. Where a sample says that it takes longer, the sample is told."""

RELEASE = "release, zCDP"

Step = Callable[[int, int, Path], dict[str, Any]]
T = TypeVar("T")


def synthetic(columns: int, rows: int, folder: Path) -> Path:
    """Where the rows of a release are kept for the steps after it."""
    return folder / f"synthetic-{columns}-{rows}.parquet"


def drawn(subsets: tuple[T, ...]) -> tuple[T, ...]:
    """All of few subsets, some of many."""
    if len(subsets) <= 5 * SAMPLE:
        return subsets
    chosen = np.random.default_rng(0).choice(len(subsets), SAMPLE, replace=False)
    return tuple(subsets[j] for j in sorted(chosen))


def planned(budget: str) -> Step:
    def step(columns: int, rows: int, folder: Path) -> dict[str, Any]:
        shutil.rmtree(os.environ["CERTSYNTH_CACHE"], ignore_errors=True)
        found = plan(wide.schema(columns), rows=rows, **BUDGETS[budget])
        best = found.choice
        return {
            "mechanism": best.mechanism,
            "resolution": best.resolution,
            "bound": best.predicted_bound,
            "low": best.low,
            "high": best.high,
            "expected_seconds": best.seconds,
            "expected_gb": best.memory_gb,
        }

    return step


def released(columns: int, rows: int, folder: Path) -> dict[str, Any]:
    phases: dict[str, float] = {}
    last = ["", time.perf_counter()]

    def watch(phase: str, done: int, total: int | None) -> None:
        now = time.perf_counter()
        phases[last[0]] = phases.get(last[0], 0.0) + now - last[1]
        last[:] = [phase, now]

    made = release(wide.table(columns, rows), wide.schema(columns), seed=1, progress=watch, **BUDGETS["zcdp"])
    watch("", 0, None)
    made.to_polars().write_parquet(synthetic(columns, rows, folder))
    certificate = made.document["certificate"]
    phases.pop("", None)
    return {
        "bound": certificate["bound"],
        "resolution": made.document["release"]["resolution"],
        "phases": {phase: round(seconds, 1) for phase, seconds in phases.items()},
    }


def evaluated(columns: int, rows: int, folder: Path) -> dict[str, Any]:
    """The true loss of the release in every pair, or in some of them where all would take too long."""
    schema = wide.schema(columns)
    private, other = tables_for("released", columns, rows, folder)
    every = all_subsets(schema, 2)

    def told(subsets: tuple[Subset, ...]) -> dict[str, Any]:
        began, cpu = time.perf_counter(), processor_seconds()
        found = evaluate(private, other, schema, subsets=[[schema.names[j] for j in subset] for subset in subsets])
        seconds, used, scaled = time.perf_counter() - began, processor_seconds() - cpu, len(every) / len(subsets)
        return {
            "seconds": round(seconds, 1),
            "cpu": round(used, 1),
            "subsets": len(every),
            "solved": len(subsets),
            "compare_cpu": round(used * scaled, 1),
            "scaled": scaled,
            "value": found.value,
            "upper": found.upper,
            "lower": found.lower,
        }

    some = told(drawn(every))
    return told(every) if some["scaled"] > 1.0 and some["seconds"] * some["scaled"] <= PATIENCE else some


def tables_for(kind: str, columns: int, rows: int, folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    private, other = wide.table(columns, rows), wide.table(columns, rows, seed=2)
    if kind == "released":
        other = pl.read_parquet(synthetic(columns, rows, folder))
    elif kind == "apart":
        other = wide.apart(other)
    elif kind == "one bad pair":
        other = wide.one_bad_pair(other)
    return private, other


def certified(kind: str, *, skip: bool) -> Step:
    """The certificate alone, without its noise: what it takes, and the integer that would get noise."""

    def step(columns: int, rows: int, folder: Path) -> dict[str, Any]:
        schema, every = wide.schema(columns), all_subsets(wide.schema(columns), 2)
        subsets = every if skip else drawn(every)
        scaled = len(every) / len(subsets)
        fine = LatticeQuery.of(schema, subsets)
        ours, theirs = (wide.cleaned_rows(frame, schema) for frame in tables_for(kind, columns, rows, folder))
        cpu = processor_seconds()
        told = compare_tables(fine, in_memory(ours), [in_memory(theirs)], memory=default_memory(), every=not skip)
        query = exact_query(fine, told.found[0], told.rows, neighbours=Neighbours.REPLACE_ONE, two_sided=False)
        return {
            "subsets": len(subsets),
            "solved": told.solves if skip else len(subsets),
            "large": sum(size >= COARSE_BOUNDS[0][1] for size in fine.marginals.sizes()),
            "passes": told.passes,
            "compare_cpu": round((processor_seconds() - cpu) * scaled, 1),
            "scaled": scaled,
            "integer": query.losses[0],
        }

    return step


STEPS: dict[str, Step] = {
    "plan, ε": planned("epsilon"),
    "plan, zCDP": planned("zcdp"),
    RELEASE: released,
    "evaluate of the release": evaluated,
    "certificate of the release, skipping": certified("released", skip=True),
    "certificate of the release, all": certified("released", skip=False),
    "certificate of another sample, skipping": certified("good", skip=True),
    "certificate of another sample, all": certified("good", skip=False),
    "certificate of independent columns, skipping": certified("apart", skip=True),
    "certificate of one bad pair, skipping": certified("one bad pair", skip=True),
}


def one(name: str, columns: int, rows: int, folder: Path) -> None:
    """One step, in this process; its figures go to stdout."""
    began, cpu = time.perf_counter(), processor_seconds()
    found = STEPS[name](columns, rows, folder)
    seconds, used = time.perf_counter() - began, processor_seconds() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": round(seconds, 1), "cpu": round(used, 1), "gb": round(peak, 2), **found}))


def run(name: str, columns: int, rows: int, folder: Path) -> dict[str, Any] | None:
    """One step in a process of its own."""
    command = [sys.executable, "-m", "scale.columns", "--one", name, str(columns), str(rows), str(folder)]
    env = os.environ | {"CERTSYNTH_CACHE": str(folder / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        print(f"{columns} columns: {name}: failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--columns", type=int, nargs="*")
    parser.add_argument("--steps", nargs="*", help="only steps that begin so")
    parser.add_argument("--one", nargs=4, metavar=("STEP", "COLUMNS", "ROWS", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        name, columns, rows, folder = asked.one
        one(name, int(columns), int(rows), Path(folder))
        return
    rows = QUICK_ROWS if asked.quick else ROWS
    folder = Path(tempfile.gettempdir()) / "certsynth-columns"
    folder.mkdir(exist_ok=True)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and not asked.quick else {"points": {}}
    kept["versions"] = {name: importlib.metadata.version(name) for name in ("certsynth", "joblib", "numpy", "pylmcf")}
    kept["cores"], kept["rows"] = os.cpu_count(), rows
    for columns in asked.columns or (QUICK_COLUMNS if asked.quick else COLUMNS):
        for name in STEPS:
            if asked.steps and not any(name.startswith(start) for start in asked.steps):
                continue
            key = f"{columns} columns: {name}"
            if key not in kept["points"]:
                if "of the release" in name and not synthetic(columns, rows, folder).exists():
                    run(RELEASE, columns, rows, folder)  # measured before, but its rows are gone
                if (found := run(name, columns, rows, folder)) is None:
                    continue
                kept["points"][key] = found
                if not asked.quick:
                    RESULTS.parent.mkdir(exist_ok=True)
                    RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            print(line(key, kept["points"][key]), flush=True)


def line(key: str, point: dict[str, Any]) -> str:
    """One row of the table."""
    wall = "       – s" if point["seconds"] is None else f"{point['seconds']:8.1f} s"  # a run that was paused
    parts = [f"{key:58}", wall, f"{point['cpu']:8.1f} s CPU", f"{point['gb']:5.2f} GB"]
    if "bound" in point:
        parts.append(f"bound {point['bound']:.4f}")
    if "expected_seconds" in point:
        parts.append(f"expects {point['expected_seconds']:.0f} s, {point['expected_gb']:.1f} GB")
    if "value" in point:
        parts.append(f"loss {point['value']:.4f}, between {point['lower']:.4f} and {point['upper']:.4f}")
        parts.append(f"in {point['solved']} of {point['subsets']} pairs")
    if "large" in point:
        small = point["subsets"] - point["large"]
        parts.append(f"of {point['large']} large subsets {max(point['solved'] - small, 0)} solved")
        parts.append(f"comparing takes {point['compare_cpu']:.0f} s CPU")
    return "  ".join(parts)


if __name__ == "__main__":
    main()
