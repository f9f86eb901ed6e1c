"""How far synthetic rows are from the real ones, in the ways that peers are measured. Not private.

Total variation: ordered columns are cut into 32 cells of equal width between the bounds of the schema (fewer if they
have fewer values), every label is a cell, and so is "missing".
Correlations: Pearson's, of all pairs of columns, and the same of ranks (Spearman's); labels count by their place in the
schema's list, missing values as the number after the last. A column that is constant in one table has correlation 0
there.
Area under the curve: gradient boosting (scikit-learn's defaults) is trained on synthetic rows and tested on held-out
real ones, with all columns but the target coded in the same way.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from certsynth import Schema, evaluate
from many.tables import Column, Rows, Table

CELLS = 32

Codes = list[np.ndarray]
"""The columns of a table as numbers (see `Column.codes`)."""


def measure(table: Table, rows: Rows, private: Path, synthetic: Path, *, lattice: int | None = None) -> dict[str, Any]:
    """All measures of the synthetic rows in a file; `private` has the rows that were released."""
    loss = evaluate(str(private), str(synthetic), Schema.parse(table.toml), sparsity=2, lattice=lattice)
    worst = max(loss.subsets, key=lambda subset: subset.upper)
    made = pd.read_parquet(synthetic)
    real, ours = (codes(table, frame) for frame in (rows.training, made))
    apart = variations(*([in_cells(c, x) for c, x in zip(table.columns, side, strict=True)] for side in (real, ours)))
    found: dict[str, Any] = {
        "W1 largest": loss.upper,
        "W1 mean": loss.mean_upper,
        "W1 largest, rounded rows": loss.value,
        "W1 mean, rounded rows": float(np.mean([subset.value for subset in loss.subsets])),
        "W1 worst pair": worst.columns,
        "W1 of pairs": {" · ".join(subset.columns): round(subset.upper, 6) for subset in loss.subsets},
        "variation mean": float(np.mean(apart)),
        "variation largest": max(apart),
        "correlation error": correlation_error(real, ours),
        "rank correlation error": correlation_error(*([rankdata(x) for x in side] for side in (real, ours))),
    }
    if table.target and rows.held_out is not None:
        found["AUC"] = area_under_curve(table, made, rows.held_out)
    return found


def codes(table: Table, frame: pd.DataFrame) -> Codes:
    return [column.codes(frame) for column in table.columns]


def in_cells(column: Column, values: np.ndarray) -> np.ndarray:
    """The cell of each value, by the bounds of the schema; that of missing values comes last."""
    if column.values:
        return values.astype(np.int64)
    absent = values > column.high
    width = column.high - column.low + (column.kind == "integer")
    cells = CELLS if column.kind == "number" else min(CELLS, int(width))
    place = np.clip((values - column.low) * cells / width, 0, cells - 1).astype(np.int64)
    return np.where(absent, cells, place)


def variations(first: Codes, second: Codes) -> list[float]:
    """Total variation of each pair of columns, given their cells."""
    widths = [1 + int(max(a.max(), b.max())) for a, b in zip(first, second, strict=True)]
    found = []
    for a, b in itertools.combinations(range(len(widths)), 2):
        size = widths[a] * widths[b]
        shares = [np.bincount(side[a] * widths[b] + side[b], minlength=size) / len(side[a]) for side in (first, second)]
        found.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return found


def correlation_error(first: Codes, second: Codes) -> float:
    """The mean absolute error of the correlations of all pairs of columns."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ours, theirs = (np.nan_to_num(np.corrcoef(np.stack(side))) for side in (first, second))
    return float(np.abs(ours - theirs)[np.triu_indices(len(first), 1)].mean())


def area_under_curve(table: Table, training: pd.DataFrame, held_out: pd.DataFrame) -> float:
    """Area under the ROC curve on held-out rows, of a model trained on others."""
    place = [column.name for column in table.columns].index(table.target)
    sides = [codes(table, frame) for frame in (training, held_out)]
    targets = [side.pop(place) for side in sides]
    if len(np.unique(targets[0])) < 2:
        return 0.5
    with threadpool_limits(1):  # threads that wait for each other on a busy machine take many times as long
        model = HistGradientBoostingClassifier(random_state=0).fit(np.stack(sides[0], axis=1), targets[0])
        return float(roc_auc_score(targets[1], model.predict_proba(np.stack(sides[1], axis=1))[:, 1]))
