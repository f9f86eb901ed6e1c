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

import duckdb
import numpy as np

from certsynth import Release, Schema, certify, evaluate, release
from certsynth.certificate.plug_in import plug_in
from certsynth.domain import Ordered
from certsynth.mechanisms import Neighbours, measure
from certsynth.mechanisms.strategy import strategy_named
from certsynth.projection.path_program import PathProgram
from certsynth.projection.support import public_support
from certsynth.projection.target import Target
from certsynth.projection.transport_program import TransportProgram
from certsynth.queries import Marginals
from certsynth.sources import cleaned, open_source

DATA = Path(os.environ.get("CERTSYNTH_DATA", Path(__file__).parents[1] / "../shared/data"))
CALIFORNIA, ALABAMA = DATA / "acs_income_ca2018.parquet", DATA / "acs_income_al2018.parquet"

# Bounds from the survey's code book.
BOUNDS = {
    "AGEP": (17, 99),
    "SCHL": (1, 24),
    "OCCP": (10, 9920),
    "POBP": (1, 554),
    "WKHP": (1, 99),
    "COW": (1, 8),
    "MAR": (1, 5),
    "RELP": (0, 17),
    "SEX": (1, 2),
    "RAC1P": (1, 9),
}


def schema(columns: int = 5) -> Schema:
    """The first columns of the California table as integers."""
    chosen = list(BOUNDS.items())[:columns]
    return Schema(tuple(Ordered(name=name, low=low, high=high) for name, (low, high) in chosen), name="ACSIncome")


def alabama(folder: Path, rows: int = 4000) -> Path:
    """A file of `rows` Alabama rows."""
    path = folder / "alabama.parquet"
    sample = f"SELECT * FROM read_parquet($from) USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)"
    duckdb.execute(f"COPY ({sample}) TO $to (FORMAT parquet)", {"from": str(ALABAMA), "to": str(path)})
    return path


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
        measurement = measure(marginals.count([codes[0]]), strategy, epsilon=Fraction(1))
        target = Target.of(measurement)
        points = public_support(codes[1], np.random.default_rng(0))
        seconds = []
        for work in (
            lambda t=target, p=points: PathProgram().solution(t, p),
            lambda t=target, p=points: TransportProgram().solution(t, p),
            lambda m=measurement: plug_in(m, columns, public, beta=Fraction(1, 10), draws=200, seed=1),
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


SECTIONS: dict[str, Callable[[Path], None]] = {
    "paper": paper,
    "programs": programs,
    "direct": direct,
    "pairs": pairs,
    "slack": slack,
    "rows": rows,
}


def main(names: list[str]) -> None:
    unknown = set(names) - set(SECTIONS)
    if unknown:
        sys.exit(f"no section {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    for name in names or SECTIONS:
        print(f"\n== {name}: {SECTIONS[name].__doc__}")
        if name != "rows" and not CALIFORNIA.exists():
            print(f"skipped: {CALIFORNIA.name} is not in the folder CERTSYNTH_DATA")
            continue
        with tempfile.TemporaryDirectory() as folder:
            SECTIONS[name](Path(folder))
    print(f"\npeak memory of this run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main(sys.argv[1:])
