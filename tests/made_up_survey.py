"""Small made-up tables in place of the survey's, and results in place of measured ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import paper
from data import Pair, Survey

BOUNDS = (("a", (0, 20)), ("PUMA", (100, 300)), ("b", (1, 9)))
SMALL = paper.Size(
    ks=(2, 4),
    own_ks=(None, 4),
    diagnostic_k=4,
    public_rows=60,
    public_counts=(5, 60),
    runs=1,
)


def pairs() -> dict[str, Pair]:
    """A pair for each key, of which all have the same rows."""
    private, public = (
        Survey("private.parquet", "people", "XX", 2018, (100, 300)),
        Survey("public.parquet", "people", "YY", 2018, (0, 50)),
    )
    keys = ("income-al", "income-nv", "travel-ma", "travel-pa")
    return {key: Pair(key, f"Made up, {key}", BOUNDS, private, public, f"Private: made up. {key}.") for key in keys}


def write_tables(folder: Path, rows: int = 200) -> Path:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 15, rows), rng.integers(1, 10, rows)
    table = {"a": a, "PUMA": 100 + 10 * a, "b": b, "unused": b}
    pq.write_table(pa.table(table), folder / "private.parquet")
    few = {"a": rng.integers(0, 21, 200), "PUMA": rng.integers(0, 51, 200), "b": rng.integers(1, 10, 200)}
    pq.write_table(pa.table(few), folder / "public.parquet")
    return folder


def made_up_results(size: paper.Size = paper.PAPER) -> dict[str, dict]:
    """Results with the shape of those that were measured: no release is made for them."""
    found = {}
    for name, series in paper.SERIES.items():
        points = [{**task, **made_up_point(task)} for task in series.tasks(size)]
        data = "Private: made up. Public: made up, too."
        settings = {"method": series.method, "title": f"Made up, {series.pair}", "data": data, "sharp_lattice": 256}
        found[name] = {"settings": settings, "points": points}
    return found


def made_up_point(task: dict) -> dict:
    """Numbers for which every sentence of the paper holds, with a little spread over the runs."""
    k, spread = task["k"] or 16, 1 + 0.01 * task["run"]
    losses = {
        f"{prefix}{name}": value * spread
        for prefix in ("", "sharp_")
        for name, value in (("upper", 0.05 + 0.3 / k), ("value", 0.03 + 0.3 / k), ("lower", 0.01 + 0.3 / k))
    }
    if task["method"] == "ours":
        small = {name: value / 20 for name, value in losses.items()}
        return {
            **small,
            "bound": 0.005 * spread,
            "kind": "direct",
            "measured_loss": 0.008,
            "slack": 0.002,
            "chosen_k": 16,
        }
    fit = 0.05 + 1.0 / task["public_rows"]
    terms = {"discretisation": 0.5 / k, "privatisation": 0.001 * k, "projection": 0.0005 * k}
    return {
        **losses,
        **{f"tight_{name}": value for name, value in terms.items()},
        "tight": sum(terms.values()) * spread,
        "path": (sum(terms.values()) + 0.0002 * k**2) * spread,
        **{"fit": fit, "truth": 0.06, "noise_mean": 0.06, "noise_low": 0.04, "noise_high": 0.07},
        **{"raw_upper": 0.3, "raw_value": 0.25, "raw_lower": 0.2},
    }
