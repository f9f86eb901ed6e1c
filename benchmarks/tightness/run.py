"""Certified against true: releases, twenty statistics of each with their intervals, and models of the rows.

    PYTHONPATH=benchmarks python -m tightness [TABLE …] [--modes …] [--seeds 3] [--limit SECONDS] [--ask-again]

Every release runs in a process of its own and is kept in build/tightness. Its answers and models are kept in
results/TABLE.json as soon as they are computed, so that an interrupted benchmark resumes where it stopped.
`--ask-again` makes no release, and answers the queries of kept ones again: for a change of `certsynth.answers`. To
release a table again, remove its results and its folders in build/tightness. At the end `tightness.page` writes
docs/benchmarks-tightness.md from the results, and docs/make_figures.py draws its figures.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

import certsynth
from certsynth import Release
from many.run import MODES, Bench, Prepared, warm_up
from race.keeping import RunFile, machine
from race.tables import ROOT
from survey import DATA
from tightness import models, page
from tightness.largest_errors import certified_errors, true_errors
from tightness.statistics import Statistic, statistics_of
from tightness.tables import TABLES

BUILD = ROOT / "build" / "tightness"
LIMIT_SECONDS = 3600.0
PACKAGES = ("certsynth", "numpy", "opendp", "scikit-learn")

Key = tuple[str, str, int]
"""Mode, variant and seed of a release."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where releases and results are kept, and how long a release may take."""

    releases: Path = BUILD
    results: Path = page.RESULTS
    limit: float = LIMIT_SECONDS

    @property
    def bench(self) -> Bench:
        return Bench(Path(certsynth.__file__).parents[1], self.releases, {}, "", self.limit)

    def folder(self, table: str, key: Key) -> Path:
        mode, variant, seed = key
        return self.releases / ".".join((table, mode, *([variant] if variant else []), f"seed-{seed}"))


class Results(RunFile):
    """The runs of one table."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, keys=("mode", "variant", "seed"))

    def describe(self, prepared: Prepared, statistics: Sequence[Statistic]) -> None:
        """What all runs of the table have in common; the models of the real rows are fitted once."""
        table, rows = prepared.table, prepared.rows
        about = {
            "table": table.key,
            "title": table.title,
            "rows": len(rows.training),
            "columns": len(table.columns),
            "target": table.target,
            "statistics": [asdict(each) for each in statistics],
        }
        self.refuse_others(about)
        if "machine" not in self.document:
            about["machine"] = machine()
            if table.target and rows.held_out is not None:
                about |= {"held-out rows": len(rows.held_out)}
                about["models of real rows"] = models.scores(table, rows.training, rows.held_out)
            self.document = {**about, **self.document}


VARIANTS = ("", "target")
"""The default release, and for models one that is told the target."""


def keys_of(table: str, modes: Sequence[str], variant: str, seed: int) -> list[Key]:
    """The releases of a table; without a target it has only the default ones."""
    return [(mode, variant, seed) for mode in modes] if not variant or TABLES[table].target else []


def make_release(settings: Settings, prepared: Prepared, key: Key) -> dict[str, Any]:
    """Release once, unless the release is kept. A failure is a result, too."""
    mode, variant, seed = key
    folder = settings.folder(prepared.table.key, key)
    told = folder.with_suffix(f"{folder.suffix}.json")
    if not (folder.exists() and told.exists()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        options = MODES[mode] | ({"target": prepared.table.target} if variant else {})
        request = prepared.release_request(options, seed) | {"out": str(folder)}
        found = settings.bench.ask(prepared.work, request)
        kept = ("outcome", "error", "wall", "cpu", "peak MB", "bound")
        told.write_text(json.dumps({name: found[name] for name in kept if name in found}), encoding="utf-8")
    found = json.loads(told.read_text(encoding="utf-8"))
    return {"mode": mode, "variant": variant, "seed": seed, **found}


def measure(settings: Settings, prepared: Prepared, key: Key, statistics: Sequence[Statistic]) -> dict[str, Any]:
    """A run: a release, its answers, and the scores of models of its rows."""
    run = make_release(settings, prepared, key)
    if run["outcome"] != "done":
        return run
    folder, (_, variant, _) = settings.folder(prepared.table.key, key), key
    run["versions"] = {"Python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    if not variant:
        run |= ask_and_compare(folder, prepared, key, statistics)
    if prepared.rows.held_out is not None and prepared.table.target:
        made = pd.read_parquet(folder / "synthetic.parquet")
        run["models"] = models.scores(prepared.table, made, prepared.rows.held_out)
    return run


def ask(folder: Path, statistics: Sequence[Statistic]) -> dict[str, Any]:
    """The answers of a release: estimate and interval, or why there is none."""
    found = Release.load(folder).answer([each.query for each in statistics], errors="return")
    kept = ("estimate", "low", "high", "how", "error")
    return {"answers": [{name: value for name, value in each.to_json().items() if name in kept} for each in found]}


def ask_and_compare(folder: Path, prepared: Prepared, key: Key, statistics: Sequence[Statistic]) -> dict[str, Any]:
    """The answers of a release, and for the first of its kind the errors that it certifies."""
    return ask(folder, statistics) | (compare_errors(folder, prepared.data) if key[2] == 1 else {})


def compare_errors(folder: Path, data: Path) -> dict[str, Any]:
    """The certified errors of a release, and the true ones that they bound."""
    made = Release.load(folder)
    return {"certified errors": certified_errors(made), "true errors": true_errors(made, data)}


def benchmark(
    settings: Settings, tables: Sequence[str], modes: Sequence[str], *, seeds: int = page.RUNS, ask_again: bool = False
) -> None:
    """Seed by seed, and default releases first, so that an interrupted benchmark has runs of every table."""
    is_warm = False
    for seed, variant, table in itertools.product(range(1, seeds + 1), VARIANTS, tables):
        kept = Results(settings.results / f"{table}.json")
        keys = keys_of(table, modes, variant, seed)
        todo = [key for key in keys if kept.run(*key) is None and not ask_again]
        asked = [key for key in keys if ask_again and "answers" in (kept.run(*key) or {})]
        asked = [key for key in asked if settings.folder(table, key).exists()]
        if not todo and not asked:
            continue
        with tempfile.TemporaryDirectory() as work:
            if todo and not is_warm:
                warm_up(settings.bench, Path(work))
                is_warm = True
            prepared = Prepared.of(TABLES[table], Path(work))
            statistics = statistics_of(prepared.table, prepared.rows.training)
            kept.describe(prepared, statistics)
            for key in todo:
                kept.add(measure(settings, prepared, key, statistics))
                print(f"{table}: {page.line(kept.run(*key) or {}, kept.document)}", flush=True)
            for key in asked:
                kept.add(
                    {
                        **(kept.run(*key) or {}),
                        **ask_and_compare(settings.folder(table, key), prepared, key, statistics),
                    }
                )
                print(f"{table}: {page.line(kept.run(*key) or {}, kept.document)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--modes", nargs="+", choices=list(page.MODES), default=list(page.MODES))
    parser.add_argument("--seeds", type=int, default=page.RUNS)
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="SECONDS")
    parser.add_argument("--ask-again", action="store_true", help="only answer the queries of kept releases again")
    given = parser.parse_args(arguments)
    if not DATA.is_dir():
        raise SystemExit("The tables are not there: set CERTSYNTH_DATA to their folder.")
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    tables = given.tables or list(TABLES)
    benchmark(Settings(limit=given.limit), tables, given.modes, seeds=given.seeds, ask_again=given.ask_again)
    print(page.write().relative_to(ROOT))
