"""The measures of PrivPGD's benchmark, on the cells of a table. Not private.

A row is a point of the unit cube: cell c of a column of k cells lies at (c + 1/2) / k.

- Sliced W1 of a pair of columns: the mean of the W1 distances of its projections on 50 random directions; mean and
  largest over the pairs.
- L1 distance of a pair: the sum of the absolute differences of the shares of its cells, which is twice the total
  variation; mean and largest over the pairs.
- Covariance: each row is centred by the mean of its own coordinates; the Frobenius norm of the difference of the two
  covariance matrices.
- Boxes: the mean error of the share of rows in 200 random boxes, each of three random columns. The lower end of a side
  is uniform in [0, 1], the upper end uniform above it; boxes with less than 5 % or more than 95 % of the real rows are
  drawn again.
- Half-spaces: the mean error of the share of rows with w·x + b > 0, where w is a random direction in three columns and
  b is uniform between the smallest and the largest w·x of the real rows. (With + b in place of − b many of these
  half-spaces hold all rows or none, so the errors are small. That is how the benchmark defines it.) The benchmark draws
  three columns once for all 200 half-spaces and does not publish which: we take 200 half-spaces for every three
  columns, and their mean. The three columns with the largest error are also recorded.
- Model error: gradient boosting (scikit-learn's defaults) is trained on the rows and predicts the last column of the
  test rows: the mean squared error in cells, or the share of wrong classes.

The random queries of a table are the same for all releases. Those of the published figures are not known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from threadpoolctl import threadpool_limits

DIRECTIONS = 50  # for each pair of columns
QUERIES = 200
FEWEST, MOST = 0.05, 0.95  # share of the real rows in a box
QUERY_SEED = 29

NAMES = {
    "sliced W1 mean": "sliced W1, mean of pairs",
    "sliced W1 largest": "sliced W1, largest of a pair",
    "L1 mean": "L1, mean of pairs",
    "L1 largest": "L1, largest of a pair",
    "covariance": "covariance",
    "boxes": "boxes",
    "half-spaces": "half-spaces",
    "model error": "gradient boosting",
}
"""Keys in the results, and their titles. Less is better in all of them."""

Sides = tuple[tuple[float, float], ...]
Sizes = Sequence[int]


@dataclass(frozen=True, slots=True)
class Box:
    """Rows whose coordinates lie between the ends of the box, in three columns."""

    columns: tuple[int, ...]
    sides: Sides


def measure(real: np.ndarray, made: np.ndarray, sizes: Sizes, boxes: Sequence[Box]) -> dict[str, float | list[int]]:
    """All measures but the model error, and the subsets of columns that are worst."""
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    sliced = sliced_distances(real, made, sizes)
    apart = l1_distances(real, made, sizes)
    spaces = half_space_errors(real, made, sizes)
    return {
        "sliced W1 mean": float(np.mean(sliced)),
        "sliced W1 largest": max(sliced),
        "L1 mean": float(np.mean(apart)),
        "L1 largest": max(apart),
        "L1 worst pair": list(pairs[int(np.argmax(apart))]),
        "covariance": covariance_error(real, made, sizes),
        "boxes": float(np.mean([box_error(real, made, sizes, box) for box in boxes])),
        "half-spaces": float(np.mean(spaces)),
        "half-spaces, worst columns": max(spaces),
    }


def points(rows: np.ndarray, sizes: Sizes) -> np.ndarray:
    return (rows + 0.5) / np.asarray(sizes)


def sliced_distances(real: np.ndarray, made: np.ndarray, sizes: Sizes) -> list[float]:
    """For each pair of columns: the mean distance of the two tables along random directions."""
    directions = np.random.default_rng(QUERY_SEED).normal(size=(len(sizes) * (len(sizes) - 1) // 2, DIRECTIONS, 2))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    found = []
    for columns, along in zip(itertools.combinations(range(len(sizes)), 2), directions, strict=True):
        centres, surplus = compare_cells(real, made, sizes, columns)
        found.append(float(np.mean([w1_of_surplus(centres @ direction, surplus) for direction in along])))
    return found


def w1_of_surplus(places: np.ndarray, surplus: np.ndarray) -> float:
    """W1 distance on a line of two distributions whose shares differ by `surplus` at `places`."""
    order = np.argsort(places)
    return float(np.abs(np.cumsum(surplus[order])[:-1]) @ np.diff(places[order]))


def l1_distances(real: np.ndarray, made: np.ndarray, sizes: Sizes) -> list[float]:
    pairs = itertools.combinations(range(len(sizes)), 2)
    return [float(np.abs(shares(real, sizes, pair) - shares(made, sizes, pair)).sum()) for pair in pairs]


def shares(rows: np.ndarray, sizes: Sizes, columns: Sequence[int]) -> np.ndarray:
    """The share of rows in each cell of some columns, as an array with an axis for each of them."""
    shape = tuple(sizes[column] for column in columns)
    codes = np.ravel_multi_index([rows[:, column] for column in columns], shape)
    return (np.bincount(codes, minlength=int(np.prod(shape))) / len(rows)).reshape(shape)


def compare_cells(
    real: np.ndarray, made: np.ndarray, sizes: Sizes, columns: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The centres of all cells that hold rows of either table, and the differences of their shares."""
    ours, theirs = (shares(rows, sizes, columns) for rows in (real, made))
    occupied = np.nonzero(ours + theirs)
    centres = (np.stack(occupied, axis=1) + 0.5) / np.array([sizes[column] for column in columns])
    return centres, (ours - theirs)[occupied]


def covariance_error(real: np.ndarray, made: np.ndarray, sizes: Sizes) -> float:
    found = []
    for rows in (real, made):
        placed = points(rows, sizes)
        found.append(np.cov(placed - placed.mean(axis=1, keepdims=True), rowvar=False))
    return float(np.linalg.norm(found[0] - found[1]))


def random_boxes(real: np.ndarray, sizes: Sizes, *, count: int = QUERIES, seed: int = QUERY_SEED) -> list[Box]:
    """Boxes with neither few nor almost all of the real rows."""
    rng = np.random.default_rng(seed)
    found: list[Box] = []
    tables: dict[tuple[int, ...], np.ndarray] = {}
    while len(found) < count:
        columns = tuple(int(column) for column in rng.choice(len(sizes), 3, replace=False))
        lows = rng.uniform(size=3)
        highs = rng.uniform(lows, 1)
        box = Box(columns, tuple((float(low), float(high)) for low, high in zip(lows, highs, strict=True)))
        if columns not in tables:
            tables[columns] = shares(real, sizes, columns)
        if FEWEST <= tables[columns][_inside(box, sizes)].sum() <= MOST:
            found.append(box)
    return found


def box_error(real: np.ndarray, made: np.ndarray, sizes: Sizes, box: Box) -> float:
    inside = _inside(box, sizes)
    ours, theirs = (shares(rows, sizes, box.columns)[inside].sum() for rows in (real, made))
    return float(abs(ours - theirs))


def _inside(box: Box, sizes: Sizes) -> tuple[slice, ...]:
    """The cells whose centres lie in the box, closed at both ends."""
    found = []
    for column, (low, high) in zip(box.columns, box.sides, strict=True):
        inside = [low <= (cell + 0.5) / sizes[column] <= high for cell in range(sizes[column])]
        first = inside.index(True) if any(inside) else 0
        found.append(slice(first, first + sum(inside)))
    return tuple(found)


def half_space_errors(real: np.ndarray, made: np.ndarray, sizes: Sizes) -> list[float]:
    """For every three columns: the mean error of 200 half-spaces."""
    found = []
    for columns, along, offsets in half_spaces(len(sizes)):
        centres, surplus = compare_cells(real, made, sizes, columns)
        is_real = shares(real, sizes, columns)[_cells_of(centres, sizes, columns)] > 0
        heights = centres @ along.T
        low, high = heights[is_real].min(axis=0), heights[is_real].max(axis=0)
        inside = heights + (low + offsets * (high - low)) > 0
        found.append(float(np.abs(surplus @ inside).mean()))
    return found


def half_spaces(columns: int) -> Iterator[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
    """Every three columns, with directions and offsets (as shares of the range of the real rows)."""
    rng = np.random.default_rng(QUERY_SEED)
    for triple in itertools.combinations(range(columns), 3):
        along = rng.normal(size=(QUERIES, 3))
        yield triple, along / np.linalg.norm(along, axis=1, keepdims=True), rng.uniform(size=QUERIES)


def _cells_of(centres: np.ndarray, sizes: Sizes, columns: Sequence[int]) -> tuple[np.ndarray, ...]:
    return tuple((centres[:, i] * sizes[column]).astype(np.int64) for i, column in enumerate(columns))


def model_error(training: np.ndarray, test: np.ndarray, *, is_class: bool) -> float:
    """The error on test rows of a model of the last column that was trained on others."""
    known, target = training[:, :-1], training[:, -1]
    if len(np.unique(target)) < 2:
        guesses = np.full(len(test), target[0])
    else:
        with threadpool_limits(1):  # threads that wait for each other on a busy machine take many times as long
            kind = GradientBoostingClassifier if is_class else GradientBoostingRegressor
            guesses = kind(random_state=0).fit(known, target).predict(test[:, :-1])
    return float(np.mean(guesses != test[:, -1]) if is_class else np.mean((guesses - test[:, -1]) ** 2))
