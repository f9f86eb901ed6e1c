"""Skewed columns on a linear scale and by ratios: how far single columns are off, and how wide certified intervals are.

    python benchmarks/skewed.py [--releases N]

Reads diamonds.parquet (price in dollars) and electricity.parquet (price as a share of its largest) in CERTSYNTH_DATA.
Each column is released with one other at ε = 1, replace-one. Bounds of the schema are round numbers, as a code book
might have them, not those of the rows. Widths are those of certified intervals; the truth is inside, or it is said.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import pandas as pd

from certsynth import Release, Schema, release
from survey import DATA

PRICE = """
[[column]]
name = "price"
kind = "integer"
low = 100
high = 100000
SCALE

[[column]]
name = "cut"
kind = "category"
values = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
"""
ELECTRICITY = """
[[column]]
name = "nswprice"
kind = "number"
low = 0
high = 1
SCALE

[[column]]
name = "class"
kind = "category"
values = ["0", "1"]
"""
SCALES = (
    ("diamonds.parquet", PRICE, "linear", ""),
    ("diamonds.parquet", PRICE, "linear, step = 100", "step = 100"),
    ("diamonds.parquet", PRICE, "by ratios", 'scale = "log"'),
    ("electricity.parquet", ELECTRICITY, "linear", ""),
    ("electricity.parquet", ELECTRICITY, "linear, step = 0.001", "step = 0.001"),
    ("electricity.parquet", ELECTRICITY, "by ratios", 'step = 0.0001\nscale = "log"'),
)
QUANTILES = (0.1, 0.5, 0.9)


def measure(rows: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """Figures of one release of the first column and another."""
    name = schema.names[0]
    made = release(rows[list(schema.names)], schema=schema, epsilon=1.0)
    real, synthetic = rows[name].to_numpy(float), np.asarray(made.table[name], dtype=float)
    found = {"Kolmogorov distance": kolmogorov(real, synthetic), "mean error": abs(synthetic.mean() / real.mean() - 1)}
    for p in QUANTILES:
        found |= width(made, f"quantile({name}, {p})", float(np.quantile(real, p, method="inverted_cdf")))
    return found | width(made, f"mean({name})", float(real.mean()))


def width(made: Release, query: str, true: float) -> dict[str, float]:
    """The width of a certified interval as a share of the true value, and how far the truth is outside of it."""
    found: Any = made.answer(query)
    statistic = query.partition("(")[0] + (query.rpartition(", ")[2].strip(")") if "quantile" in query else "")
    outside = max(found.low / true - 1, 1 - found.high / true, 0.0)  # by rounding to values of the column, if at all
    return {f"{statistic} width": (found.high - found.low) / true, f"{statistic} outside": outside}


def kolmogorov(first: np.ndarray, second: np.ndarray) -> float:
    """The largest difference of shares of values up to a number."""
    edges = np.union1d(first, second)
    shares = [np.searchsorted(np.sort(each), edges, side="right") / len(each) for each in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--releases", type=int, default=3, help="releases of each table")
    count, lines = options.parse_args().releases, []
    for file, text, scale, entry in SCALES:
        rows = pd.read_parquet(DATA / file)
        rows = rows.assign(**{"class": rows["class"].astype(str)}) if "class" in rows else rows
        schema = Schema.parse(text.replace("SCALE", entry))
        each = [measure(rows, schema) for _ in range(count)]
        shown = {key: np.mean([one[key] for one in each]) for key in each[0]}
        if not lines:
            lines += ["| column | scale | " + " | ".join(shown) + " |", "|---" * (len(shown) + 2) + "|"]
        lines.append(f"| {schema.names[0]} | {scale} | " + " | ".join(f"{x:.3g}" for x in shown.values()) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
