"""Models that are trained on some rows and tested on real ones that were held out.

Gradient boosting sees every column as a number (`Column.codes`). Linear models, a logistic regression or for numbers a
ridge regression, see numbers scaled to unit variance and one column for each label. All settings are scikit-learn's
defaults, apart from the number of steps of the logistic regression: its default stops before it has converged.

The score of a class is the area under the ROC curve, that of a number R²: 1 is perfect, and a constant guess has 0.5 or
0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from many.measures import area_under_curve, codes
from many.tables import Column, Table

MAX_STEPS = 1000
BOOSTING, LINEAR = "gradient boosting", "linear model"


def scores(table: Table, training: pd.DataFrame, held_out: pd.DataFrame) -> dict[str, float]:
    """The score of each model of the table's target."""
    if is_class(table):
        return {
            BOOSTING: area_under_curve(table, training, held_out),
            LINEAR: _score(table, training, held_out, LogisticRegression(max_iter=MAX_STEPS), spread=True),
        }
    boosting = HistGradientBoostingRegressor(random_state=0)
    return {
        BOOSTING: _score(table, training, held_out, boosting, spread=False),
        LINEAR: _score(table, training, held_out, Ridge(), spread=True),
    }


def is_class(table: Table) -> bool:
    return bool(_target(table).values)


def _score(table: Table, training: pd.DataFrame, held_out: pd.DataFrame, model: Any, *, spread: bool) -> float:
    target = _target(table)
    truths = [target.codes(frame) for frame in (training, held_out)]
    if len(np.unique(truths[0])) < 2:
        return 0.5 if is_class(table) else 0.0
    known = [_features(table, frame, spread=spread) for frame in (training, held_out)]
    with threadpool_limits(1):  # threads that wait for each other on a busy machine take many times as long
        fitted = (make_pipeline(StandardScaler(), model) if spread else model).fit(known[0], truths[0])
        if is_class(table):
            return float(roc_auc_score(truths[1], fitted.predict_proba(known[1])[:, 1]))
        return float(r2_score(truths[1], fitted.predict(known[1])))


def _features(table: Table, frame: pd.DataFrame, *, spread: bool) -> np.ndarray:
    """All columns but the target; with `spread`, a column of zeros and ones for each label."""
    parts = []
    for column, values in zip(table.columns, codes(table, frame), strict=True):
        if column.name != table.target:
            is_label = spread and column.kind == "category"
            parts.append(values[:, None] == np.arange(len(column.values)) if is_label else values[:, None])
    return np.hstack(parts).astype(np.float32 if spread else float)


def _target(table: Table) -> Column:
    return next(column for column in table.columns if column.name == table.target)
