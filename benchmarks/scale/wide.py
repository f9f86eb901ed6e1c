"""Made-up tables of many columns that depend on each other, with a schema for them."""

from __future__ import annotations

import numpy as np
import polars as pl

from certsynth import Schema
from certsynth.sources import cleaned, open_source

FACTORS = 5
KINDS = (
    'kind = "integer"\nlow = 0\nhigh = 99',
    'kind = "category"\nvalues = [{labels}]',
    'kind = "number"\nlow = 0.0\nhigh = 1.0\nmissing = true',
    'kind = "integer"\nlow = 0\nhigh = 20',
)


def labels_of(column: int) -> list[str]:
    return [f"v{i}" for i in range(4 + column % 7)]


def schema(columns: int) -> Schema:
    """Integers of 100 and 21 values, labels, and numbers that may be missing, in turn."""
    text = ['[table]\nname = "Many columns"\nunit = "one row is one person"']
    for j in range(columns):
        labels = ", ".join(f'"{label}"' for label in labels_of(j))
        text.append(f'[[column]]\nname = "c{j}"\n' + KINDS[j % 4].format(labels=labels))
    return Schema.parse("\n\n".join(text))


def table(columns: int, rows: int, *, seed: int = 1) -> pl.DataFrame:
    """Rows that follow a few hidden factors, the same ones for every seed."""
    loadings = np.random.default_rng(7).normal(size=(FACTORS, columns))
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, FACTORS))
    made: dict[str, np.ndarray | pl.Series] = {}
    for j in range(columns):
        x = hidden @ loadings[:, j] / 2.2 + 0.7 * rng.normal(size=rows)
        share = 1 / (1 + np.exp(-x))
        if j % 4 == 0:
            made[f"c{j}"] = np.minimum((share * 100).astype(int), 99)
        elif j % 4 == 1:
            labels = np.array(labels_of(j))
            made[f"c{j}"] = labels[np.minimum((share**2 * len(labels)).astype(int), len(labels) - 1)]
        elif j % 4 == 2:
            values = np.where(rng.random(rows) < 0.05, np.nan, share**3)
            made[f"c{j}"] = pl.Series(values).fill_nan(None)
        else:
            made[f"c{j}"] = np.minimum((share**2 * 21).astype(int), 20)
    return pl.DataFrame(made)


def cleaned_rows(frame: pl.DataFrame, schema: Schema) -> list[np.ndarray]:
    """A table as it is counted."""
    return [np.concatenate(parts) for parts in zip(*cleaned(open_source(frame), schema), strict=True)]


def apart(frame: pl.DataFrame) -> pl.DataFrame:
    """The same single columns, and nothing depends on anything."""
    rng = np.random.default_rng(3)
    return pl.DataFrame({name: frame[name].gather(rng.permutation(len(frame))) for name in frame.columns})


def one_bad_pair(frame: pl.DataFrame) -> pl.DataFrame:
    """The first column goes with the fifth in half of the rows as it does not in truth."""
    rng = np.random.default_rng(4)
    some = np.flatnonzero(rng.random(len(frame)) < 0.5)
    first, fifth = (frame[name].to_numpy().copy() for name in ("c0", "c4"))
    first[some] = np.sort(first[some])[np.argsort(np.argsort(-fifth[some], kind="stable"), kind="stable")]
    return frame.with_columns(pl.Series("c0", first))
