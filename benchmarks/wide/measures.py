"""How far the rows of a contender are from the real ones on a wide table: the same measures for all. Not private.

W1: the largest and the mean of the W1 distances of all pairs of columns, of rows that were moved to the lattice of
`certsynth evaluate`.
Total variation of pairs, and of triples: ordered columns are cut into 32 cells of equal width between the bounds of the
schema (fewer if they have fewer values), every label is a cell, and so is "missing". If there are more triples than
`MOST_TRIPLES`, a fixed sample of `SAMPLED_TRIPLES` stands for them.
Workload error, of tables with a target: the mean L1 distance of all triples of columns that contain the target, every
value of the schema being a cell. This is the error that AIM was measured by.
Ranges: the mean error of the share of rows in 1,000 random boxes, each of three random columns: an interval of an
ordered column, between two random values of the schema, and of other columns every label with probability one half.
Models, of tables with a target: the area under the curve of gradient boosting and of logistic regression
(scikit-learn's defaults) that are trained on synthetic rows and tested on held-out real ones.

Triples and boxes are drawn from the schema with a fixed seed: they are the same for all contenders.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from certsynth import Schema, evaluate
from many.measures import Codes, area_under_curve, codes, in_cells
from many.tables import Column, Rows, Table

QUERY_SEED = 29
BOXES = 1_000
MOST_TRIPLES, SAMPLED_TRIPLES = 400, 100

NAMES = {
    "W1 largest": "W1, largest of a pair",
    "W1 mean": "W1, mean of pairs",
    "pairs largest": "total variation, largest of a pair",
    "pairs": "total variation, mean of pairs",
    "triples": "total variation, mean of triples",
    "workload": "workload error, triples with the target",
    "ranges": "range queries",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
}
"""Keys in the results, and their titles."""
AREAS = ("boosting", "logistic")
"""Areas under a curve, of which more is better; of all other measures less is."""


@dataclass(frozen=True, slots=True)
class Box:
    """Rows whose codes are allowed in each of three columns: those between two ends, or a set of labels."""

    columns: tuple[int, ...]
    sides: tuple[tuple[float, float] | frozenset[int], ...]


def measure(
    table: Table, rows: Rows, private: Path, synthetic: Path, *, lattice: int | None = None
) -> dict[str, float | list[str]]:
    """All measures of the synthetic rows in a Parquet file; `private` has the rows that were released."""
    loss = evaluate(str(private), str(synthetic), Schema.parse(table.toml), sparsity=2, lattice=lattice)
    worst = max(loss.subsets, key=lambda subset: subset.value)
    made = pd.read_parquet(synthetic)
    sides = [codes(table, frame) for frame in (rows.training, made)]
    cells = [[in_cells(c, x) for c, x in zip(table.columns, side, strict=True)] for side in sides]
    everyone = range(len(table.columns))
    apart = list(variations(*cells, list(itertools.combinations(everyone, 2))))
    found: dict[str, float | list[str]] = {
        "W1 largest": loss.value,
        "W1 mean": float(np.mean([subset.value for subset in loss.subsets])),
        "W1 largest, upper end": loss.upper,
        "W1 mean, upper end": loss.mean_upper,
        "W1 worst pair": list(worst.columns),
        "pairs largest": max(apart),
        "pairs": float(np.mean(apart)),
        "triples": float(np.mean(list(variations(*cells, triples(len(table.columns)))))),
        "ranges": float(np.mean(box_errors(*sides, random_boxes(table.columns)))),
    }
    if table.target:
        found["workload"] = workload_error(table, *sides)
    if table.target and rows.held_out is not None:
        found |= areas(table, made, rows.held_out)
    return found


def areas(table: Table, training: pd.DataFrame, held_out: pd.DataFrame) -> dict[str, float]:
    return {
        "boosting": area_under_curve(table, training, held_out),
        "logistic": logistic_area(table, training, held_out),
    }


def triples(columns: int) -> list[tuple[int, ...]]:
    """All of them, or a sample that depends on the number of columns only."""
    found = list(itertools.combinations(range(columns), 3))
    if len(found) <= MOST_TRIPLES:
        return found
    chosen = np.random.default_rng(QUERY_SEED).choice(len(found), SAMPLED_TRIPLES, replace=False)
    return [found[place] for place in sorted(chosen.tolist())]


def variations(first: Codes, second: Codes, subsets: Sequence[tuple[int, ...]]) -> Iterator[float]:
    """Total variation of each subset of columns, given whole numbers from 0."""
    for subset in subsets:
        joint = [np.zeros(len(side[0]), dtype=np.int64) for side in (first, second)]
        size = 1
        for column in subset:
            width = 1 + int(max(first[column].max(), second[column].max()))
            size *= width
            joint = [code * width + side[column] for code, side in zip(joint, (first, second), strict=True)]
        shares = [np.bincount(code, minlength=size) / len(code) for code in joint]
        yield float(np.abs(shares[0] - shares[1]).sum() / 2)


def workload_error(table: Table, first: Codes, second: Codes) -> float:
    """The mean L1 distance of triples with the target, every value being a cell."""
    target = [column.name for column in table.columns].index(str(table.target))
    others = (place for place in range(len(table.columns)) if place != target)
    wanted = [(*pair, target) for pair in itertools.combinations(others, 2)]
    values = [
        [(x - column.low).astype(np.int64) for column, x in zip(table.columns, side, strict=True)]
        for side in (first, second)
    ]
    return 2 * float(np.mean(list(variations(*values, wanted))))


def random_boxes(columns: Sequence[Column], count: int = BOXES) -> list[Box]:
    rng = np.random.default_rng(QUERY_SEED)
    found = []
    for _ in range(count):
        chosen = tuple(sorted(rng.choice(len(columns), 3, replace=False).tolist()))
        found.append(Box(chosen, tuple(_random_side(columns[place], rng) for place in chosen)))
    return found


def _random_side(column: Column, rng: np.random.Generator) -> tuple[float, float] | frozenset[int]:
    if not column.ordered:
        return frozenset(np.flatnonzero(rng.random(len(column.values)) < 0.5).tolist())
    if column.kind == "number":
        ends = rng.uniform(column.low, column.high, 2)
    else:
        last = len(column.values) - 1 if column.values else column.high
        ends = rng.integers(int(column.low), int(last), 2, endpoint=True)
    return float(ends.min()), float(ends.max())


def box_errors(first: Codes, second: Codes, boxes: Sequence[Box]) -> list[float]:
    return [abs(_share(first, box) - _share(second, box)) for box in boxes]


def _share(side: Codes, box: Box) -> float:
    inside = np.ones(len(side[0]), dtype=bool)
    for place, allowed in zip(box.columns, box.sides, strict=True):
        values = side[place]
        if isinstance(allowed, frozenset):
            chosen = np.zeros(1 + max(int(values.max()), *allowed, 0), dtype=bool)
            chosen[list(allowed)] = True
            inside &= chosen[values.astype(np.int64)]
        else:
            inside &= (values >= allowed[0]) & (values <= allowed[1])
    return float(inside.mean())


def logistic_area(table: Table, training: pd.DataFrame, held_out: pd.DataFrame) -> float:
    """Of labels one column each, and of numbers divided by their standard deviation."""
    place = [column.name for column in table.columns].index(str(table.target))
    sides = [np.stack(codes(table, frame), axis=1) for frame in (training, held_out)]
    targets = [side[:, place] for side in sides]
    if len(np.unique(targets[0])) < 2:
        return 0.5
    labels = [j for j, column in enumerate(table.columns) if j != place and not column.ordered]
    numbers = [j for j, column in enumerate(table.columns) if j != place and column.ordered]
    coded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), labels), (StandardScaler(), numbers))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged after so many steps
        model = make_pipeline(coded, LogisticRegression(max_iter=1_000)).fit(sides[0], targets[0])
        return float(roc_auc_score(targets[1], model.predict_proba(sides[1])[:, 1]))
