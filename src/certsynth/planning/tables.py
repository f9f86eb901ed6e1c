"""Make up tables from a schema alone, as diverse as real ones, to rehearse releases on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.covering import tour

HIDDEN_TRAITS = 3
"""Number of hidden traits of a row, on which columns depend."""

STRENGTHS = (0.35, 0.6, 0.85)
"""Largest correlation of a column with the hidden traits, by table."""

MAX_DISTRIBUTION_POINTS = 1024
"""Intervals of the grid on which the distribution of a column with more values is made, at most."""

MIN_SHAPED_POINTS = 12
"""Values of a column from which its distribution has a shape; with fewer it is an arbitrary one."""

SHAPE_PROBABILITIES, SHAPE_PROBABILITIES_OF_MANY = (0.2, 0.25, 0.3, 0.25), (0.1, 0.15, 0.15, 0.6)
"""Probabilities that a column is smooth, heaped, cut off, or consists of codes; and the same for a column of very many
values."""

MAX_MISSING_SHARE = 0.1
"""Share of missing values, at most."""


def make_up_table(schema: Schema, rows: int, *, strength: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Make up a table of the schema, as cleaned columns.

    A row has a few hidden traits, and each column a score that depends on some of them. A column's values are assigned
    in the order of the scores, with frequencies from a random distribution. That distribution is smooth, heaped on some
    values, cut off at one end, or concentrated on few of many codes, whose order need not follow the score.
    """
    traits = rng.standard_normal((rows, HIDDEN_TRAITS))
    table = []
    for column in schema:
        loadings = rng.standard_normal(HIDDEN_TRAITS) * (rng.random(HIDDEN_TRAITS) < 0.7)
        loadings[rng.integers(HIDDEN_TRAITS)] += rng.choice([-1.0, 1.0])
        tied = strength * np.sqrt(rng.random())
        scores = traits @ (tied * loadings / np.linalg.norm(loadings))
        scores = scores + np.sqrt(1 - tied**2) * rng.standard_normal(rows)
        table.append(_make_up_column(column, ndtr(scores), rng))
    return table


def _make_up_column(column: Column, level: Floats, rng: np.random.Generator) -> np.ndarray:
    """Values of one column for rows with these levels (quantiles of their scores)."""
    if isinstance(column, Category):
        shares = rng.dirichlet(np.full(len(column.labels), 0.7))
        order = rng.permutation(len(shares))
        if column.label_metric is not None:  # near labels have similar scores
            order = np.roll(tour([column.lattice(1)])[: len(shares)], rng.integers(len(shares)))
        return _remove_some(column, _points_at(shares, order, level), len(shares), rng)
    assert isinstance(column, Ordered)
    points = min(column.reach, MAX_DISTRIBUTION_POINTS) + 1 if column.whole else MAX_DISTRIBUTION_POINTS + 1
    places = np.arange(points) / max(points - 1, 1)
    shares, order, smooth = _draw_distribution(points, places, rng)
    if points < column.reach + 1 or not column.whole:  # values lie near their points, not on them
        places = places + (rng.random(points) - 0.5) / MAX_DISTRIBUTION_POINTS
    values = places[_points_at(shares, order, level)]
    if smooth and not column.whole:
        values = values + (rng.random(len(level)) - 0.5) / MAX_DISTRIBUTION_POINTS
    values = np.clip(values, 0, 1) * column.reach
    return _remove_some(column, np.rint(values) if column.whole else values, np.nan, rng)


def _draw_distribution(points: int, places: Floats, rng: np.random.Generator) -> tuple[Floats, Ints, bool]:
    """Draw the share of each point, the order of points by score, and whether values between points occur as well."""
    if points < MIN_SHAPED_POINTS:
        return rng.dirichlet(np.full(points, 0.7)), np.arange(points), False
    a, b = rng.uniform(0.7, 4.0, 2)
    shares = np.maximum(places, 0.5 / points) ** (a - 1) * np.maximum(1 - places, 0.5 / points) ** (b - 1)
    shares, order = shares / shares.sum(), np.arange(points)
    kind = rng.choice(
        ["smooth", "heaped", "cut off", "codes"],
        p=SHAPE_PROBABILITIES if points <= MAX_DISTRIBUTION_POINTS else SHAPE_PROBABILITIES_OF_MANY,
    )
    if kind == "heaped":  # half of the rows on some values, with decreasing frequency
        heaps = rng.permutation(points)[: max(3, points // 10)]
        common = shares[heaps] / (1 + np.arange(len(heaps)))
        shares = shares / 2
        shares[heaps] += common / common.sum() / 2
    elif kind == "cut off":  # values beyond one end are counted at that end
        beyond = rng.uniform(0.2, 0.5)
        shares = shares * (1 - beyond)
        shares[rng.choice([0, -1])] += beyond
    elif kind == "codes":  # few of many points; stretches of them in random order of the score
        shares = shares * rng.gamma(0.1, size=points)
        stretches = np.array_split(order, 12)
        order = np.concatenate([stretches[i] for i in rng.permutation(len(stretches))])
    return shares / shares.sum(), order, kind == "smooth"


def _points_at(shares: Floats, order: Ints, level: Floats) -> Ints:
    """The point of each level, where points occupy their shares of [0, 1] in this order."""
    ends = np.cumsum(shares[order])
    return order[np.minimum(np.searchsorted(ends, level * ends[-1]), len(order) - 1)]


def _remove_some(column: Column, values: np.ndarray, absent: float, rng: np.random.Generator) -> np.ndarray:
    if column.missing:
        values = values.copy()
        values[rng.random(len(values)) < MAX_MISSING_SHARE * rng.random()] = absent
    return values


def strengths(tables: int) -> Sequence[float]:
    """Dependence strengths of `tables` made-up tables: each of STRENGTHS as often as any other, as far as possible."""
    return [STRENGTHS[i % len(STRENGTHS)] for i in range(tables)]
