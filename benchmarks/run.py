"""Figures that the documents quote, measured side by side in one run.

    python benchmarks/run.py            all sections
    python benchmarks/run.py paper ...  some of them

Survey tables are read from the folder CERTSYNTH_DATA (default ../shared/data); a section without its table says so.
Machines are noisy: read ratios, not seconds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd

from certsynth import Release, Schema, certify, evaluate, release
from certsynth.algorithm import certify as algorithm
from certsynth.algorithm.fitting import MEAN_LOSS_WEIGHT
from certsynth.artefact.table import decoded_table, write_table
from certsynth.certificate.plug_in import plug_in
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.domain import Ordered
from certsynth.mechanisms import Budget, Measurement, Neighbours, measure, strategy_named
from certsynth.projection import particles, synthesis
from certsynth.projection.emit import emit
from certsynth.projection.path_program import PathProgram
from certsynth.projection.support import full_grid, public_support
from certsynth.projection.target import Target, as_probabilities
from certsynth.projection.transport_program import TransportProgram
from certsynth.queries import Marginals
from certsynth.sources import cleaned, open_source
from certsynth.transport import Network, transport_loss
from common_questions import answers
from survey import ALABAMA, CALIFORNIA, LABELS, NEW_YORK, NUMBERS, TRAVEL

RUNS = 5  # of whatever the section `default` makes


def schema(columns: int = 5) -> Schema:
    """The first columns of the California table as integers."""
    return integers(dict(list((NUMBERS | LABELS).items())[:columns]), "ACSIncome")


def integers(bounds: dict[str, tuple[int, int]], name: str) -> Schema:
    """A schema of integers between bounds."""
    return Schema(tuple(Ordered(name=column, low=low, high=high) for column, (low, high) in bounds.items()), name=name)


TABLES = {
    "California, 5": (CALIFORNIA, schema()),
    "New York, 4": (NEW_YORK, integers(TRAVEL, "ACSTravelTime")),
    "California, 11": (CALIFORNIA, schema(11)),
}
"""Private tables by name and number of columns."""


def alabama(folder: Path, rows: int = 4000) -> Path:
    """A file of `rows` Alabama rows."""
    path = folder / "alabama.parquet"
    sample = f"SELECT * FROM read_parquet($from) USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)"
    duckdb.execute(f"COPY ({sample}) TO $to (FORMAT parquet)", {"from": str(ALABAMA), "to": str(path)})
    return path


def default(folder: Path) -> None:
    """A release with ε = 1 and all defaults, means over runs; and the paper's algorithm, k = 16, 4,000 Alabama rows."""
    print(f"{'':>22} {'upper':>8} {'mean upper':>11} {'bound':>8} {'1-column bound':>15} {'seconds':>8}   {RUNS} runs")
    means = {}
    for name, asked in [(name, {}) for name in TABLES] + [("paper", {})]:
        path, columns = TABLES.get(name, TABLES["California, 5"])
        if name == "paper":
            asked = {"preset": "paper", "resolution": 16, "public": alabama(folder)}
        found = []
        for run in range(RUNS):
            start = time.perf_counter()
            made = release(path, columns, epsilon=1, **asked)
            seconds = time.perf_counter() - start
            out = made.save(folder / f"default-{name}-{run}").folder
            true = evaluate(path, out / "synthetic.parquet", columns)
            bounds = made.certificate.bound, made.certificate.single_column_bound
            found.append((true.upper, true.mean_upper, *bounds, seconds))
        means[name] = upper, mean, bound, single, seconds = np.mean(found, axis=0)
        print(f"{name:>22} {upper:8.4f} {mean:11.4f} {bound:8.4f} {single:15.4f} {seconds:8.1f}", flush=True)
    ratios = means["paper"] / means["California, 5"]
    print(f"{'paper ÷ California, 5':>22} {ratios[0]:8.2f} {ratios[1]:11.2f} {ratios[2]:8.2f} {ratios[3]:15.2f}")


def paper(folder: Path) -> None:
    """The paper's algorithm: California, ε = 1, s = 2, k = 16, 4,000 Alabama rows; and with the tight loss."""
    public = alabama(folder)
    print(f"{'loss':>10} {'tight':>8} {'path':>8} {'upper':>8} {'lower':>8} {'seconds':>8}")
    for run in range(3):
        for loss in ("path", "transport"):
            start = time.perf_counter()
            out = folder / f"paper-{run}-{loss}"
            made = release(
                CALIFORNIA, schema(), epsilon=1, resolution=16, preset="paper", public=public, loss=loss, out=out
            )
            seconds = time.perf_counter() - start
            bounds = {proxy: plug["bound"] for proxy, plug in made.certificate.details["plug_in"].items()}
            true = evaluate(CALIFORNIA, out / "synthetic.parquet", schema())
            print(
                f"{loss:>10} {bounds['transport']:8.4f} {bounds['path']:8.4f} "
                f"{true.upper:8.4f} {true.lower:8.4f} {seconds:8.1f}"
            )


def programs(folder: Path) -> None:
    """Step 3 on public support, and 200 draws of the noise for 10 subsets, by resolution."""
    print(f"{'k':>4} {'path program':>13} {'tight program':>14} {'200 draws × 10 subsets':>23}   (seconds)")
    columns = schema()
    private, public = (next(cleaned(open_source(path), columns)) for path in (CALIFORNIA, alabama(folder)))
    for k in (16, 25):
        marginals = Marginals.all_subsets(columns, sparsity=2, resolution=k)
        codes = [
            [c.to_cells(x, cells) for c, x, cells in zip(columns, rows, marginals.cells, strict=True)]
            for rows in (private, public)
        ]
        strategy = strategy_named("haar-noisy-total", neighbours=Neighbours.REPLACE_ONE)
        measurement = measure(marginals.count([codes[0]]), strategy, budget=Budget(Fraction(1)))
        target = Target.of(measurement)
        points = public_support(codes[1], np.random.default_rng(0))
        seconds = []
        for work in (
            lambda t=target, p=points: PathProgram().solution(t, p),
            lambda t=target, p=points: TransportProgram().solution(t, p),
            lambda m=measurement: plug_in([m], columns, public, beta=Fraction(1, 10), draws=200, seed=1),
        ):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        print(f"{k:>4} {seconds[0]:13.1f} {seconds[1]:14.1f} {seconds[2]:23.1f}")


def rows(folder: Path) -> None:
    """A release of ten million generated rows × 6 columns: time and peak memory, of the process and its workers."""
    path = folder / "many.parquet"
    duckdb.execute(
        "COPY (SELECT (random()*82)::INT + 17 AS AGEP, (random()*23)::INT + 1 AS SCHL,"
        " (random()*9910)::INT + 10 AS OCCP, (random()*553)::INT + 1 AS POBP, (random()*98)::INT + 1 AS WKHP,"
        " (random()*7)::INT + 1 AS COW FROM range(10000000)) TO $to (FORMAT parquet)",
        {"to": str(path)},
    )
    script = (
        "import resource, sys, time; sys.path.insert(0, 'benchmarks'); import run; from certsynth import release\n"
        "start = time.perf_counter()\n"
        f"made = release({str(path)!r}, run.schema(6), epsilon=1, resolution=8)\n"
        "whose = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN\n"
        "own, workers = (resource.getrusage(w).ru_maxrss / 2**20 for w in whose)\n"
        "print(f'{time.perf_counter() - start:.1f} s, peak {own:.2f} GB, workers at most {workers:.2f} GB each')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[1])


def direct(folder: Path) -> None:
    """Time and slack of the direct certificate by lattice, on Alabama taken as the synthetic table of California."""
    print(f"{'lattice':>8} {'seconds':>8} {'upper':>8} {'lower':>8} {'true upper':>11} {'true lower':>11}")
    for lattice in (64, 128, 256, 512):
        start = time.perf_counter()
        made = certify(CALIFORNIA, ALABAMA, schema(), epsilon="0.1", lattice=lattice)
        seconds = time.perf_counter() - start
        true = evaluate(CALIFORNIA, ALABAMA, schema(), lattice=lattice)
        print(f"{lattice:>8} {seconds:8.1f} {made.bound:8.4f} {made.lower:8.4f} {true.upper:11.4f} {true.lower:11.4f}")


def pairs(folder: Path) -> None:
    """All 45 pairs of ten columns on the default lattice."""
    start = time.perf_counter()
    made = certify(CALIFORNIA, ALABAMA, schema(10), epsilon="0.1")
    print(f"45 pairs: {time.perf_counter() - start:.1f} s, bound {made.bound:.4f}")


def slack(folder: Path) -> None:
    """How far the certified bound is above the true upper value, over ten releases, in units of 1/(n·ε_s)."""
    private = duckdb.execute("SELECT count(*) FROM read_parquet($p)", {"p": str(CALIFORNIA)}).fetchall()[0][0]
    gaps = []
    for run in range(10):
        out = folder / f"slack-{run}"
        release(CALIFORNIA, schema(), epsilon=1, resolution=8, out=out)
        made = Release.load(out)
        true = evaluate(CALIFORNIA, out / "synthetic.parquet", schema())
        gaps.append(made.certificate.bound - true.upper)
    budget = Fraction(made.document["privacy"]["spent"][1]["epsilon"])
    unit = 1 / (private * float(budget))
    print(f"mean gap {np.mean(gaps):.5f} = {np.mean(gaps) / unit:.2f}/(n·ε_s), allowed 5/(n·ε_s) = {5 * unit:.5f}")


def hanging_together(columns: int, rows: int) -> tuple[Schema, list[np.ndarray]]:
    """A generated table of integers from 0 to 99: steps of one hidden number, with noise of their own."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=rows)
    table = [np.clip(50 + 15 * (hidden + rng.normal(size=rows)), 0, 99).round() for _ in range(columns)]
    return integers({f"c{j}": (0, 99) for j in range(columns)}, "generated"), table


def scaling(folder: Path) -> None:
    """The fit by columns, particles and rows, k = 8: linear in pairs × particles, and it never sees the rows."""
    print("processor seconds of counting the rows and of fitting; nanoseconds per pair and particle")
    names = f"{'columns':>8} {'pairs':>6} {'particles':>10} {'rows':>10}"
    print(f"{names} {'counting':>9} {'fit':>8} {'rounds':>7} {'ns':>6}")
    few, many = 25_000, 100_000
    cases = [(d, few, many) for d in (5, 10, 20, 40)] + [(10, 2 * few, many), (10, 4 * few, many)]
    for columns, count, rows in [*cases, (10, few, 10 * many)]:
        generated, table = hanging_together(columns, rows)
        marginals = Marginals.all_subsets(generated, sparsity=2, resolution=8)
        start = time.process_time()
        codes = [c.to_cells(x, cells) for c, x, cells in zip(generated, table, marginals.cells, strict=True)]
        counts = marginals.count([codes])
        counting = time.process_time() - start
        strategy = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
        seconds, rounds = fitting(measure(counts, strategy, budget=Budget(Fraction(1))), generated, count)
        pairs = len(marginals.subsets)
        each = 1e9 * seconds / (pairs * count)
        sizes = f"{columns:>8} {pairs:>6} {count:>10,} {rows:>10,}"
        print(f"{sizes} {counting:9.1f} {seconds:8.1f} {rounds:>7} {each:6.0f}", flush=True)
    generated, table = hanging_together(20, many)
    path = folder / "generated.parquet"
    values = {name: np.ma.masked_array(x) for name, x in zip(generated.names, table, strict=True)}
    write_table(values, parquet=path, csv=path.with_suffix(".csv"))
    start = time.perf_counter()
    made = release(path, generated, epsilon=1, resolution=8)
    print(f"the whole release of 20 columns: {time.perf_counter() - start:.1f} s by the clock, {made}")


def fitting(measurement: Measurement, columns: Schema, count: int) -> tuple[float, int]:
    """Processor seconds that so many particles are fitted for, and the number of blind sweeps and guided rounds."""
    seconds, rounds = [], []

    def timed(*args: Any, progress: Any, **keywords: Any) -> np.ndarray:
        start = time.process_time()
        result = particles.fit(*args, progress=lambda *_: rounds.append(1), **keywords)
        seconds.append(time.process_time() - start)
        return result

    with patch.object(synthesis, "fit", timed):
        synthesis.synthesise([measurement], columns, count, np.random.default_rng(0))
    return seconds[0], len(rounds) - 1  # the last report is of the end


def optimum(folder: Path) -> None:
    """How near particles are to the best weights on all 512 cells: California, 3 columns, k = 8, ε = 1, identity."""
    from ideas import frank_wolfe, squares

    columns = schema().select(["AGEP", "SCHL", "WKHP"])
    private = next(cleaned(open_source(CALIFORNIA), columns))
    marginals = Marginals.all_subsets(columns, sparsity=2, resolution=8)
    codes = [c.to_cells(x, cells) for c, x, cells in zip(columns, private, marginals.cells, strict=True)]
    counts = marginals.count([codes])
    grid = full_grid(marginals)
    true = [block / counts.rows for block in counts]
    print("objective: what particles lower, and how far it is above its least; losses in cells to the noisy tables and")
    print("to the true ones, largest and mean over pairs; true loss of rows that are spread evenly inside cells")
    names = f"{'objective':>10} {'above':>8} {'to noisy':>9} {'mean':>8} {'to true':>8} {'mean':>8}"
    print(f"{'':>15} {names} {'rows':>8} {'mean':>8} {'seconds':>8}")
    for run in range(3):
        strategy = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
        measurement = measure(counts, strategy, budget=Budget(Fraction(1)))
        target = Target.of(measurement)
        rng = np.random.default_rng(run)
        layer = synthesis._LayerShares.all([measurement], rng)[0]
        shares = [synthesis._column_shares([layer], j) for j in range(len(columns))]
        views = synthesis._make_views([layer], marginals.cells, shares)
        held = [np.repeat(np.arange(len(s)), synthesis.multiplicities(s, counts.rows)) for s in shares]
        matrix, aim = squares(views, grid, counts.rows)
        incidence = target.incidence(grid)

        def weights_of(rows: np.ndarray) -> np.ndarray:
            cell = np.ravel_multi_index(rows.T, [c.size for c in marginals.cells])
            return np.bincount(cell, minlength=len(grid)) / len(rows)

        def by_particles(held=held, views=views, rng=rng) -> np.ndarray:
            return weights_of(particles.fit(synthesis._initial_rows(held, None, rng), views, rng))

        def by_program(target=target) -> np.ndarray:
            return as_probabilities(TransportProgram(mean_weight=MEAN_LOSS_WEIGHT).weights(target, grid), len(grid))

        methods = {
            "Frank–Wolfe": lambda m=matrix, a=aim: frank_wolfe(m, a)[0],
            "particles": by_particles,
            "linear program": by_program,
            "the true rows": lambda: weights_of(np.column_stack(codes)),
        }
        for name, method in methods.items():
            start = time.perf_counter()
            weights = method()
            seconds = time.perf_counter() - start
            error = matrix @ weights - aim
            if name == "Frank–Wolfe":
                slope = 2 * matrix.T @ error
                least = error @ error - (slope @ weights - slope.min())
            losses = [
                [
                    float(transport_loss(block, a @ weights, Network.of(marginals.of(subset))))
                    for subset, block, a in zip(marginals.subsets, blocks, incidence, strict=True)
                ]
                for blocks in (target.blocks, true)
            ]
            out = folder / f"{name}-{run}.parquet"
            clean = emit(grid, weights, counts.rows, schema=columns, cells=marginals.cells, detail="spread", rng=rng)
            write_table(decoded_table(columns, clean), parquet=out, csv=out.with_suffix(".csv"))
            whole = evaluate(CALIFORNIA, out, columns)
            print(
                f"{name:>15} {error @ error:10.4f} {error @ error - least:8.4f} {max(losses[0]):9.5f} "
                f"{np.mean(losses[0]):8.5f} {max(losses[1]):8.5f} {np.mean(losses[1]):8.5f} "
                f"{whole.upper:8.4f} {whole.mean_upper:8.4f} {seconds:8.2f}",
                flush=True,
            )


def statistics(folder: Path) -> None:
    """The time that errors of shares, group totals and moments add to a default release, in processor seconds."""
    rng = np.random.default_rng(1)
    wide = rng.integers(0, 2, (20_000, 1)) * 4 + rng.integers(0, 12, (20_000, 50))
    frame = pd.DataFrame(wide, columns=[f"x{i}" for i in range(50)])
    made_up = integers(dict.fromkeys(frame, (0, 15)), "made up")
    print(f"{'':>16} {'release':>8} {'statistics':>11} {'part added':>11}")
    for name, data, columns in [
        ("California, 5", CALIFORNIA, schema()),
        ("California, 11", CALIFORNIA, schema(11)),
        ("50 columns", frame, made_up),
    ]:
        spent = 0.0

        def timed(work: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **named: Any) -> Any:
                nonlocal spent
                start = time.process_time()
                found = work(*args, **named)
                spent += time.process_time() - start
                return found

            return run

        release(data, columns, epsilon=1)  # compiles, and rehearses the plan
        with (
            patch.object(StatisticMaxima, "update", timed(StatisticMaxima.update)),
            patch.object(algorithm, "band_errors", timed(algorithm.band_errors)),
        ):
            start = time.process_time()
            release(data, columns, epsilon=1)
            whole = time.process_time() - start
        print(f"{name:>16} {whole:8.1f} {spent:11.2f} {spent / (whole - spent):11.1%}", flush=True)


SECTIONS: dict[str, Callable[[Path], None]] = {
    "default": default,
    "paper": paper,
    "optimum": optimum,
    "scaling": scaling,
    "programs": programs,
    "direct": direct,
    "pairs": pairs,
    "slack": slack,
    "statistics": statistics,
    "answers": answers,
    "rows": rows,
}


def main(sections: dict[str, Callable[[Path], None]], names: list[str], without_tables: tuple[str, ...] = ()) -> None:
    """Run the named sections, or all; those that need no survey table also where there are none."""
    unknown = set(names) - set(sections)
    if unknown:
        sys.exit(f"no section {', '.join(sorted(unknown))}; choose from {', '.join(sections)}")
    for name in names or sections:
        print(f"\n== {name}: {sections[name].__doc__}")
        absent = [path.name for path in (CALIFORNIA, ALABAMA, NEW_YORK) if not path.exists()]
        if absent and name not in without_tables:
            print(f"skipped: {', '.join(absent)} not in the folder CERTSYNTH_DATA")
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CERTSYNTH_CACHE"] = folder  # nothing is known beforehand; a plan and its releases share it
            sections[name](Path(folder))
    print(f"\npeak memory of this run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main(SECTIONS, sys.argv[1:], without_tables=("rows", "scaling"))
