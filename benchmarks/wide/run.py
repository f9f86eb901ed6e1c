"""The race on wide tables. Called by `race.run` for the tables that are ours:

    PYTHONPATH=benchmarks python -m race --tables adult fire loans [--epsilons 1 0.3 …] [--contenders …] [--seeds 3]
                                         [--redo] [--limit SECONDS]

Every run is kept in results/TABLE.json, keyed by contender, ε and seed. The rows that it made stay in build/race/wide,
so that a run whose result was removed is only measured again; `--redo` makes the runs of the named contenders anew.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from many.tables import TABLES as ALL_TABLES
from many.tables import Column, Rows, Table
from race.attempts import attempt
from race.contenders import Contender
from race.environments import tidy
from race.keeping import Results
from race.tables import ROOT
from wide.contenders import CONTENDERS, SLOW, setting
from wide.measures import areas, measure

RESULTS = Path(__file__).parent / "results"
BUILD = ROOT / "build" / "race"
TABLES = {key: ALL_TABLES[key] for key in ("adult", "fire", "loans")}
EPSILONS = ("1", "0.3", "3", "10")
SEEDS = 3
MOST_REPLACED = 0.01
"""Of the rows of a column that has no missing values: with more of them a table counts as not readable."""
KEYS = ("contender", "epsilon", "seed")
AT_ALL_EPSILONS = ("adult",)
"""Other tables are run with the first ε only."""
QUICK = ("certsynth-delta", "certsynth-independent", "dpmm-mst-reduced")
QUICK_ALONE = ("certsynth-delta",)
"""In a quick race on the widest tables: peers take minutes there even with few rows."""
IN_FULL = tuple(key for key in CONTENDERS if "reduced" not in key)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A table as files: for runners as CSV, for measures as Parquet."""

    table: Table
    rows: Rows
    folder: Path

    @classmethod
    def of(cls, table: Table, folder: Path, *, few: int | None = None) -> Prepared:
        folder.mkdir(parents=True, exist_ok=True)
        rows = table.rows()
        if few is not None:
            rows = Rows(rows.training.sample(few, random_state=1).reset_index(drop=True), rows.held_out)
        rows.training.to_csv(folder / "rows.csv", index=False)
        rows.training.to_parquet(folder / "rows.parquet", index=False)
        (folder / "schema.toml").write_text(table.toml, encoding="utf-8")
        return cls(table, rows, folder)

    def request(self, work: Path, told: dict[str, Any], epsilon: str, seed: int) -> dict[str, Any]:
        """What a runner is asked."""
        return {
            "data": str(self.folder / "rows.csv"),
            "schema": str(self.folder / "schema.toml"),
            "columns": [to_json(column) for column in self.table.columns],
            "out": str(work / "made.csv"),
            "epsilon": float(epsilon),
            "seed": seed,
            "setting": told,
        }

    def measures(self, made: Path, *, lattice: int | None) -> dict[str, Any]:
        synthetic = made.with_suffix(".parquet")
        frame, replaced = read_made(made, self.table)
        frame.to_parquet(synthetic, index=False)
        found = measure(self.table, self.rows, self.folder / "rows.parquet", synthetic, lattice=lattice)
        return found | ({"missing values replaced": replaced} if replaced else {})

    def real(self) -> dict[str, float]:
        """What models know that are trained on the real rows."""
        if not self.table.target or self.rows.held_out is None:
            return {}
        return areas(self.table, self.rows.training, self.rows.held_out)


def to_json(column: Column) -> dict[str, Any]:
    """As a runner gets it: labels are codes from 0."""
    if column.values and not column.ordered:
        return {"name": column.name, "kind": "category", "low": 0, "high": len(column.values) - 1}
    high = len(column.values) - 1 if column.values else column.high
    return {"name": column.name, "kind": "integer", "low": column.low, "high": high, "missing": column.missing}


def read_made(path: Path, table: Table) -> tuple[pd.DataFrame, int]:
    """The rows of a contender as the schema has them: whole numbers within bounds, and missing values.

    In a column that may have missing values, a number after the last stands for one, as in what some runners are given.
    In one that may not, a few are replaced by the most frequent value, and counted.
    """
    frame, found, replaced = pd.read_csv(path), {}, 0
    for column in table.columns:
        values = pd.to_numeric(frame[column.name]).astype(float).round()
        low, high = (0, len(column.values) - 1) if column.values else (column.low, column.high)
        absent = values.isna() | (column.missing & (values > high))
        if not column.missing and absent.any():
            if absent.mean() > MOST_REPLACED:
                raise ValueError(f"{absent.mean():.0%} of column {column.name} is missing")
            values, replaced = values.fillna(values.mode().iloc[0]), replaced + int(absent.sum())
            absent = values.isna()
        found[column.name] = values.clip(low, high).mask(absent).astype("Int64")
    return pd.DataFrame(found), replaced


def one(
    contender: Contender,
    prepared: Prepared,
    told: dict[str, Any],
    *,
    epsilon: str,
    seed: int,
    limit: float,
    lattice: int | None = None,
    build: Path = BUILD,
    redo: bool = False,
) -> dict[str, Any]:
    """Run a contender once and measure its rows, or measure those that it made before."""
    work = prepared.folder / f"{contender.key}-{epsilon}-{seed}"
    kept = work / "run.json"
    run: dict[str, Any] = {"contender": contender.key, "epsilon": epsilon, "seed": seed, "setting": told}
    if not redo and kept.exists() and (before := json.loads(kept.read_text(encoding="utf-8")))["setting"] == told:
        run = before
    else:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        run |= attempt(contender, prepared.request(work, told, epsilon, seed), work=work, limit=limit, build=build)
        if run["outcome"] == "done":
            kept.write_text(json.dumps(run), encoding="utf-8")
    if run["outcome"] != "done":
        return run
    try:
        found = {name: prepared.measures(Path(path), lattice=lattice) for name, path in run["tables"].items()}
    except Exception as error:
        return {**run, "tables": {}, "outcome": "failed", "error": tidy(f"its table could not be read: {error}")}
    return {**run, "tables": found}


def order(tables: Sequence[str], epsilons: Sequence[str], seeds: int) -> Iterator[tuple[str, str, int]]:
    """Tables, ε and seeds: the first of each before what else there is, for a race that is stopped early."""
    wanted = [
        (seed, place, key, epsilon)
        for (place, epsilon), key, seed in itertools.product(enumerate(epsilons), tables, range(1, seeds + 1))
        if place == 0 or key in AT_ALL_EPSILONS
    ]
    for seed, _, key, epsilon in sorted(wanted, key=lambda each: (each[1], each[0], tables.index(each[2]))):
        yield key, epsilon, seed


def race(
    tables: Sequence[str],
    contenders: Sequence[str],
    *,
    epsilons: Sequence[str] = EPSILONS,
    seeds: int = SEEDS,
    limit: float,
    rows: int | None = None,
    lattice: int | None = None,
    results: Path = RESULTS,
    build: Path = BUILD,
    again: bool = False,
    redo: bool = False,
) -> None:
    """All contenders take their turn with each seed, so that a noisy machine is noisy for all."""
    prepared: dict[str, Prepared] = {}
    for key, epsilon, seed in order(tables, epsilons, seeds):
        table = TABLES[key]
        if not table.columns:
            print(f"{key}: no {key}.parquet in the folder that CERTSYNTH_DATA names; left out", flush=True)
            continue
        for name in contenders:
            contender, told = CONTENDERS[name], setting(CONTENDERS[name], epsilon, table.target)
            if told is None or (name in SLOW and seed > 1):
                continue
            wanted = {"contender": name, "epsilon": epsilon, "seed": seed, "setting": told}
            if key not in prepared:
                prepared[key] = Prepared.of(table, build / "wide" / f"{key}-{rows or 'all'}", few=rows)
            kept = Results(results / f"{key}.json", settings(prepared[key], lattice), keys=KEYS)
            if not redo and (kept.has(wanted, again=again) or (kept.is_late(wanted) and not again)):
                continue
            if "real" not in kept.document:
                kept.document |= {"columns": len(table.columns), "real": prepared[key].real()}
            how = {"limit": limit, "lattice": lattice, "build": build, "redo": redo}
            run = one(contender, prepared[key], told, epsilon=epsilon, seed=seed, **how)
            kept.add(run)
            print(f"{table.title}, ε = {epsilon}, seed {seed}: {line(run)}", flush=True)


def settings(prepared: Prepared, lattice: int | None) -> dict[str, Any]:
    return {"table": prepared.table.key, "rows": len(prepared.rows.training), "lattice": lattice}


def line(run: dict[str, Any]) -> str:
    if run["outcome"] != "done":
        return f"{run['contender']} {run['outcome']}: {run['error']}"
    shown = ("W1 largest", "W1 mean", "pairs", "triples", "ranges", "boosting")
    losses = "; ".join(
        f"{name} " + ", ".join(f"{each} {found[each]:.4f}" for each in shown if each in found)
        for name, found in run["tables"].items()
    )
    return f"{run['contender']} {losses}; {run['seconds']:.0f} s, processor {run['cpu']:.0f} s".replace("  ", " ")
