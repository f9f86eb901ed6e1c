"""How far a synthetic table is: the same measures for all, on the same cells. Not private."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import numpy as np

from certsynth import evaluate
from race.tables import Column, Table

CELLS = 32  # to a column, for total variation


def measures(private: Path, synthetic: Path, table: Table, *, lattice: int | None = None) -> dict[str, float]:
    """Losses over all pairs of columns and over single ones.

    `value` is the largest W1 over the pairs, of rows moved to the lattice of `evaluate`; `upper` and `lower` enclose
    that of the rows where they are.
    """
    pairs = evaluate(str(private), str(synthetic), table.schema, sparsity=2, lattice=lattice)
    single = evaluate(str(private), str(synthetic), table.schema, sparsity=1, lattice=lattice)
    apart = variations(read(private, table), read(synthetic, table), table.columns)
    return {
        "value": pairs.value,
        "upper": pairs.upper,
        "lower": pairs.lower,
        "mean": float(np.mean([s.value for s in pairs.subsets])),
        "single": single.value,
        "single mean": float(np.mean([s.value for s in single.subsets])),
        "variation": max(apart),
        "variation mean": float(np.mean(apart)),
    }


def read(path: Path, table: Table) -> list[np.ndarray]:
    names = ", ".join(f'CAST("{column.name}" AS DOUBLE) AS "{column.name}"' for column in table.columns)
    found = duckdb.execute(f"SELECT {names} FROM read_csv($p, header = true)", {"p": str(path)}).fetchnumpy()
    return [np.asarray(found[column.name], dtype=float) for column in table.columns]


def cells(values: np.ndarray, column: Column, most: int = CELLS) -> np.ndarray:
    """Numbers of cells: of equal width, or one for each value where there are no more than `most`, and for labels."""
    values = np.clip(values, column.low, column.high) - column.low
    span = column.high - column.low + 1
    if column.labels or span <= most:
        return values.astype(np.int64)
    return (values * most // span).astype(np.int64)


def variations(first: list[np.ndarray], second: list[np.ndarray], columns: tuple[Column, ...]) -> list[float]:
    """Total variation of each pair of columns."""
    found = []
    codes = [[cells(x, c) for x, c in zip(rows, columns, strict=True)] for rows in (first, second)]
    widths = [1 + max(int(side[j].max()) for side in codes) for j in range(len(columns))]
    for a, b in itertools.combinations(range(len(columns)), 2):
        size = widths[a] * widths[b]
        shares = [np.bincount(side[a] * widths[b] + side[b], minlength=size) / len(side[a]) for side in codes]
        found.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return found
