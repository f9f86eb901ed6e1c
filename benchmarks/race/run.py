"""The race: certsynth and its peers on the same tables, seed by seed in turn.

    PYTHONPATH=benchmarks python -m race [--quick] [--tables …] [--contenders …] [--seeds 5] [--limit SECONDS]

Peers get environments of their own in build/race. Every run is kept in results/TABLE.json as soon as it is over, so
that a race that was stopped goes on where it was; `--again` repeats runs that failed or took too long. Who took too
long with one seed is not asked for the others. `--quick` is a race of minutes on 3,000 rows, kept in build/race/quick.
When all is done, `race.page` writes docs/benchmarks.md, and the table in the README, from the results. Wide tables
(adult, fire, loans) are run by `wide.run`, which has more options, and have a page of their own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from race import page
from race.attempts import attempt, command_line
from race.contenders import CONTENDERS, Contender
from race.environments import tidy
from race.keeping import Results
from race.measures import measures
from race.tables import ROOT, TABLES, Table
from survey import DATA
from wide import page as wide_page
from wide import run as wide

RESULTS = Path(__file__).parent / "results"
BUILD = ROOT / "build" / "race"
EPSILON = 1.0
SEEDS = 5
LIMIT = 3600.0
QUICK_ROWS = 3000
QUICK = ("certsynth-add", "dpmm-mst-reduced")
QUICK_ONCE = ("certsynth-replace", "opendp-aim-delta")  # on the first table only
QUICK_LATTICE = 32


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
    """Run a contender once, and measure the tables that it makes."""
    run: dict[str, Any] = {"contender": contender.key, "seed": seed, "setting": contender.setting}
    with tempfile.TemporaryDirectory() as work:
        wanted = request(Path(work), contender, table, data, seed)
        run |= attempt(contender, wanted, work=Path(work), limit=limit, build=folder)
        if run["outcome"] != "done":
            return run
        run |= command_line(contender, Path(work), limit=limit, build=folder)
        try:
            found = {name: measures(data, Path(path), table, lattice=lattice) for name, path in run["tables"].items()}
        except Exception as error:
            del run["tables"]
            return run | {"outcome": "failed", "error": tidy(f"its table could not be read: {error}")}
    return run | {"tables": found}


def request(work: Path, contender: Contender, table: Table, data: Path, seed: int) -> dict[str, Any]:
    """What a runner is asked."""
    schema = work / "schema.toml"
    schema.write_text(table.toml, encoding="utf-8")
    return {
        "data": str(data),
        "schema": str(schema),
        "columns": [column.to_json() for column in table.columns],
        "out": str(work / "made.csv"),
        "epsilon": EPSILON,
        "seed": seed,
        "setting": contender.setting,
    }


def warmed_up(contender: Contender, table: Table, data: Path, *, limit: float) -> None:
    """Run ours once, untimed: what it compiles on a new machine is kept for all runs after that."""
    with tempfile.TemporaryDirectory() as work:
        wanted = request(Path(work), contender, table, data, seed=0)
        attempt(contender, wanted, work=Path(work), limit=limit, build=BUILD)


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
                wanted = {"contender": name, "seed": seed, "setting": contender.setting}
                if kept.has(wanted, again=again) or (kept.is_late(wanted) and not again):
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
    known = dict.fromkeys([*CONTENDERS, *wide.CONTENDERS])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tables", nargs="+", choices=[*TABLES, *wide.TABLES], default=[*TABLES, *wide.TABLES])
    parser.add_argument("--contenders", nargs="+", choices=list(known), default=None)
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--epsilons", nargs="+", default=wide.EPSILONS, help="of the wide tables")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--again", action="store_true", help="repeat runs that failed or took too long")
    parser.add_argument("--redo", action="store_true", help="repeat the runs of wide tables that are asked for")
    given = parser.parse_args(arguments)
    if not DATA.is_dir():
        raise SystemExit("The tables are not there: set CERTSYNTH_DATA to their folder.")
    survey_tables = [key for key in given.tables if key in TABLES]
    wide_tables = [key for key in given.tables if key in wide.TABLES]
    if given.quick:
        quick(survey_tables, wide_tables, given)
        return
    if survey_tables:
        named = [key for key in given.contenders or CONTENDERS if key in CONTENDERS]
        race(survey_tables, named, seeds=given.seeds or SEEDS, limit=given.limit, again=given.again)
        print(page.write().relative_to(ROOT))
    if wide_tables:
        named = [key for key in given.contenders or wide.IN_FULL if key in wide.CONTENDERS]
        how = {"seeds": given.seeds or wide.SEEDS, "limit": given.limit, "again": given.again, "redo": given.redo}
        wide.race(wide_tables, named, epsilons=given.epsilons, **how)
        print(wide_page.write().relative_to(ROOT))


def quick(survey_tables: Sequence[str], wide_tables: Sequence[str], given: argparse.Namespace) -> None:
    """Few rows, one seed and one ε; pages of these results are in build, and those of the documentation are kept."""
    results = BUILD / "quick"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    how = {"seeds": given.seeds or 1, "limit": given.limit, "rows": QUICK_ROWS, "lattice": QUICK_LATTICE}
    if survey_tables:
        for place, key in enumerate(survey_tables):
            chosen = given.contenders or (*QUICK, *(QUICK_ONCE if place == 0 else ()))
            race([key], [name for name in chosen if name in CONTENDERS], results=results, **how)
        (results / "benchmarks.md").write_text(page.page(results), encoding="utf-8")
    if wide_tables:
        for key in wide_tables:
            chosen = given.contenders or (wide.QUICK if key in wide.AT_ALL_EPSILONS else wide.QUICK_ALONE)
            named = [name for name in chosen if name in wide.CONTENDERS]
            wide.race([key], named, epsilons=given.epsilons[:1], results=results / "wide", redo=True, **how)
        (results / "benchmarks-wide.md").write_text(wide_page.page(results / "wide"), encoding="utf-8")
    print(results.relative_to(ROOT))
