"""What plans promise, and what releases then give: figures of docs/explanation/planning.md, side by side in one run.

    python benchmarks/plans.py               all sections
    python benchmarks/plans.py privatisation some of them

Survey tables are read from the folder CERTSYNTH_DATA (default ../shared/data). Machines are noisy: read ratios.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from certsynth import Schema, evaluate, plan, release
from certsynth.algorithm.declaration import checked
from certsynth.algorithm.method import checked_settings
from certsynth.algorithm.options import MECHANISMS, ReleaseOptions
from certsynth.algorithm.task import Task
from certsynth.artefact.table import decoded_table, write_table
from certsynth.domain import Ordered
from certsynth.mechanisms import Budget, Neighbours, Unit, strategy_named
from certsynth.mechanisms.concentrated import rho_of
from certsynth.mechanisms.registry import WEIGHT_GROWTHS
from certsynth.planning.choice import FIRST_SPLIT, predict_design
from certsynth.planning.noise import blank_measurement, noise_losses
from certsynth.planning.tables import ORDINARY, make_up_table
from certsynth.queries import Marginals
from many.tables import TABLES as RACE_TABLES
from many.tables import Table
from run import TABLES, main

RUNS = int(os.environ.get("RUNS", "5"))
DELTA = "1e-6"


def wide(columns: int) -> Schema:
    """Columns of 101 values each."""
    made = tuple(Ordered(name=f"c{j}", low=0, high=100) for j in range(columns))
    return Schema(made, name="made up")


def upper(path: Path, schema: Schema, sparsity: int | None = None, **asked: Any) -> tuple[float, float]:
    """The loss of a release, and its bound."""
    made = release(path, schema, sparsity=sparsity, **asked)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "synthetic.parquet"
        write_table(made.table, parquet=file, csv=file.with_suffix(".csv"))
        true = evaluate(path, file, schema, sparsity=sparsity)
    return true.upper, made.certificate.bound


def privatisation(folder: Path) -> None:
    """Largest loss of noise over ten pairs, 90 % of 100 draws: n = 195,665, five columns, k = 32, ε = 1; δ = 1e-6."""
    schema = Schema(tuple(Ordered(name=f"c{j}", low=0, high=10**6) for j in range(5)))
    marginals = Marginals.all_subsets(schema, sparsity=2, resolution=32)
    budgets = Budget(Fraction(1)), Budget(rho_of(Fraction(1), Fraction(DELTA)), Unit.RHO)
    print(f"{'':>18} {'growth':>7} {'pure':>9} {'growth':>7} {'Gaussian':>9}")
    for name in MECHANISMS:
        line = f"{name:>18}"
        for budget in budgets:
            found = []
            for growth in WEIGHT_GROWTHS.get(name, (None,)):
                strategy = strategy_named(name, neighbours=Neighbours.REPLACE_ONE, growth=growth)
                draws = 20 if growth is not None else 100
                losses = noise_losses(
                    [blank_measurement(marginals, strategy, budget)], rows=195_665, draws=draws, most=10
                )[0]
                found.append((float(np.mean(losses)), strategy))
            best = min(found, key=lambda each: each[0])[1]
            losses = noise_losses([blank_measurement(marginals, best, budget)], rows=195_665, draws=100, most=10)[0]
            line += f" {best.growth!s:>7} {np.quantile(losses, 0.9):9.5f}"
        print(line, flush=True)


def choice(folder: Path) -> None:
    """What the automatic choice loses beside other candidates, run as well: mean of RUNS losses each (`upper`)."""
    asked = [("identity", k) for k in (6, 8, 12, 16, 24, 32)]
    asked += [("quad-tree", k) for k in (8, 12, 16, 24)] + [("haar-weighted", k) for k in (8, 16)] + [("haar", 12)]
    for name in ("California, 5", "New York, 4"):
        path, schema = TABLES[name]
        losses = {}
        for mechanism, k in [("auto", "auto"), *asked]:
            found = [upper(path, schema, epsilon=1, mechanism=mechanism, resolution=k)[0] for _ in range(RUNS)]
            losses[mechanism, k] = float(np.mean(found))
            spread = np.std(found) / RUNS**0.5
            print(f"{name:>16} {mechanism:>14} {k!s:>5} {np.mean(found):8.5f} ± {spread:.5f}", flush=True)
        print(f"{name:>16} auto ÷ best: {losses['auto', 'auto'] / min(losses.values()):.3f}", flush=True)


WHOLE_TABLES = (
    *("california-5", "california-11", "new-york-4", "adult-5", "adult", "adult-few", "electricity"),
    *("diamonds-6", "diamonds", "loans-12", "fire-8"),
)
MODES: dict[str, dict[str, str]] = {
    "add/remove": {"neighbours": "add-remove"},
    "replace-one": {"neighbours": "replace-one"},
    "add/remove, δ": {"neighbours": "add-remove", "delta": "1e-5"},
}
SOURCES = ("adult", "california-11", "loans", "fire", "diamonds", "electricity")


def drawn_part(seed: int) -> tuple[Table, pd.DataFrame, str]:
    """A few columns and rows of a public table, and a mode, drawn with this seed."""
    rng = np.random.default_rng(seed)
    whole = RACE_TABLES[SOURCES[seed % len(SOURCES)]]
    rows = whole.rows().training
    count = min(len(whole.columns), int(rng.integers(4, 17)))
    places = sorted(rng.choice(len(whole.columns), count, replace=False))
    columns = tuple(whole.columns[j] for j in places)
    most = round(math.exp(rng.uniform(math.log(2_000), math.log(len(rows)))))
    title = f"{whole.title.split(',')[0]}, {count} columns, {most:,} rows"
    table = dataclasses.replace(whole, title=title, columns=columns, target=None)
    drawn = rows[[column.name for column in columns]].sample(most, random_state=seed)
    return table, drawn, str(rng.choice(list(MODES)))


def prediction(folder: Path) -> None:
    """The predicted bound with its range, and the bounds that releases get, of whole tables at ε = 1."""
    whole = [RACE_TABLES[key] for key in WHOLE_TABLES]
    _predict(folder, [(table, table.rows().training, mode) for table in whole for mode in MODES])


def parts(folder: Path) -> None:
    """The same for PARTS tables (default 30) that are drawn from public ones by columns and rows."""
    first = int(os.environ.get("FIRST_PART", "0"))
    _predict(folder, [drawn_part(seed) for seed in range(first, first + int(os.environ.get("PARTS", "30")))])


def _predict(folder: Path, asked: list[tuple[Table, pd.DataFrame, str]]) -> None:
    print("| | | predicted | range | obtained |\n|---|---|---|---|---|")
    inside, factors = [], []
    for table, rows, mode in asked:
        path, schema = folder / "rows.parquet", Schema.parse(table.toml)
        rows.to_parquet(path, index=False)
        expected = plan(schema, rows=len(rows), epsilon=1, sparsity=2, **MODES[mode]).choice
        made = [release(path, schema, epsilon=1, sparsity=2, **MODES[mode]).certificate.bound for _ in range(2)]
        within = [expected.low <= bound <= expected.high for bound in made]
        inside += within
        factors += [max(bound / expected.predicted_bound, expected.predicted_bound / bound) for bound in made]
        print(
            f"| {table.title} | {mode} | {expected.predicted_bound:.3g} | {expected.low:.3g}–{expected.high:.3g} | "
            f"{', '.join(f'{bound:.3g}' for bound in made)}{'' if all(within) else ' (outside)'} |",
            flush=True,
        )
    close = sum(factor <= 1.5 for factor in factors)
    print(
        f"inside the range: {sum(inside)} of {len(inside)}; within a factor of 1.5: {close}; "
        f"largest factor {max(factors):.2f}"
    )


def rate(folder: Path) -> None:
    """Theorem 1: how the planned resolution grows with n, and how the loss falls: slopes in a log-log plot."""
    for sparsity in (1, 2):
        schema = Schema(tuple(Ordered(name=f"x{j}", kind="number") for j in range(sparsity)))
        asked = {"epsilon": 1, "sparsity": sparsity, "projection": "drawn", "certificate_share": 0}
        settings = checked_settings(schema, checked(ReleaseOptions, asked))
        sizes = [10**e for e in ((2, 3, 4, 5) if sparsity == 1 else (3, 4, 5, 6))]
        grid = [round(2 ** (i / 2)) for i in range(2, 23 if sparsity == 1 else 16)]
        names = ("haar", "identity", "quad-tree")
        strategies = [strategy_named(name, neighbours=Neighbours.REPLACE_ONE) for name in names]
        best = []
        for n in sizes:
            found = [
                (predict_design(Task(schema, settings, n), s, k, FIRST_SPLIT).predicted, k)
                for k in grid
                for s in strategies
            ]
            best.append(min(found)[1])
        slope = np.polyfit(np.log(sizes), np.log(best), 1)[0]
        print(f"s = {sparsity}: planned k {best} for n = {sizes}, slope {slope:.2f} (theory {1 / sparsity:.2f})")
        columns, rng, losses = wide(max(2, sparsity)), np.random.default_rng(0), []
        counts = [2_000, 8_000, 32_000, 128_000]
        for n in counts:
            each = []
            for run in range(RUNS):
                path = folder / f"{sparsity}-{n}-{run}.parquet"
                table = decoded_table(columns, make_up_table(columns, n, kind=ORDINARY, rng=rng))
                write_table(table, parquet=path, csv=path.with_suffix(".csv"))
                each.append(upper(path, columns, sparsity, epsilon=1)[0])
            losses.append(float(np.mean(each)))
        slope = np.polyfit(np.log(counts), np.log(losses), 1)[0]
        shown = ", ".join(f"{loss:.5f}" for loss in losses)
        print(
            f"s = {sparsity}: loss {shown} at n = {counts}, slope {slope:.2f} (theory {-1 / sparsity:.2f})", flush=True
        )


def many(folder: Path) -> None:
    """Twenty columns, 190 pairs, 100,000 made-up rows, ε = 1: pure noise, and Gaussian noise at δ = 1e-6."""
    schema, rng = wide(20), np.random.default_rng(0)
    path = folder / "wide.parquet"
    table = decoded_table(schema, make_up_table(schema, 100_000, kind=ORDINARY, rng=rng))
    write_table(table, parquet=path, csv=path.with_suffix(".csv"))
    print(f"{'δ':>6} {'choice':>20} {'predicted':>10} {'plan s':>7} {'loss':>8} {'bound':>8} {'release s':>10}")
    for delta in (None, DELTA):
        start = time.perf_counter()
        expected = plan(schema, rows=100_000, epsilon=1, delta=delta).choice
        planned = time.perf_counter()
        loss, bound = upper(path, schema, epsilon=1, delta=delta)
        chosen = f"{expected.mechanism} {expected.resolution}"
        print(
            f"{delta or '':>6} {chosen:>20} {expected.predicted_bound:10.4f} {planned - start:7.1f} {loss:8.4f} "
            f"{bound:8.4f} {time.perf_counter() - planned:10.1f}",
            flush=True,
        )


SECTIONS: dict[str, Callable[[Path], None]] = {
    "privatisation": privatisation,
    "prediction": prediction,
    "parts": parts,
    "choice": choice,
    "rate": rate,
    "many": many,
}


if __name__ == "__main__":
    main(SECTIONS, sys.argv[1:])
