"""Make up tables from a schema alone, as diverse as real ones, to rehearse releases on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.covering import tour

HIDDEN_TRAITS = 3
"""Number of hidden traits of a row, on which columns depend."""


@dataclass(frozen=True, slots=True)
class TableKind:
    """What a made-up table is like.

    `strength` is the largest correlation of a column with the hidden traits, `tied` the probability that a column is
    almost a function of an earlier one, and `lumped` the probability that most rows of a column have few values: most
    have the same, or values fill a small part of the range.
    """

    strength: float
    tied: float
    lumped: float


LOOSE, ORDINARY = TableKind(0.35, 0.0, 0.0), TableKind(0.6, 0.1, 0.2)
STRONG, TIED = TableKind(0.85, 0.3, 0.3), TableKind(0.7, 0.7, 0.5)

KINDS = (ORDINARY, STRONG, TIED, LOOSE)
"""From columns that hardly depend on each other to columns that are almost functions of others."""

TIE_NOISE, NAMESAKE_NOISE = (0.01, 0.2), (0.001, 0.1)
"""Smallest and largest share of noise in the score of a column that is tied to another, or to a namesake."""

NAMESAKE_TIES = 0.5
"""Probability, at least, that a column whose name shares a word with that of an earlier one is tied to such a column.
In public tables more than a quarter of such pairs are almost functions, and one in forty of all others."""

MAX_DISTRIBUTION_POINTS = 1024
"""Intervals of the grid on which the distribution of a column with more values is made, at most."""

MIN_SHAPED_POINTS = 12
"""Values of a column from which its distribution has a shape; with fewer it is an arbitrary one."""

SHAPE_PROBABILITIES, SHAPE_PROBABILITIES_OF_MANY = (0.2, 0.25, 0.3, 0.25), (0.1, 0.15, 0.15, 0.6)
"""Probabilities that a column is smooth, heaped, cut off, or consists of codes; and the same for a column of very many
values."""

LABEL_DECAYS, LUMPED_LABEL_DECAYS = (0.0, 1.5), (1.5, 5.0)
"""The smallest and the largest power of the rank with which shares of labels fall, and the same for a lumped column."""

LABEL_EVENNESS = 2.0
"""Parameter of the gamma factors on these shares: the larger, the more regularly they fall."""

HEAP_SHARES, NARROW_SPREADS = (0.3, 0.95), (0.01, 0.3)
"""For a lumped column: the smallest and the largest share of rows with the commonest value, and the smallest and the
largest mean distance of values from one end of the range, as a share of the range."""

MAX_MISSING_SHARE = 0.1
"""Share of missing values, at most."""


def make_up_table(schema: Schema, rows: int, *, kind: TableKind, rng: np.random.Generator) -> list[np.ndarray]:
    """Make up a table of the schema, as cleaned columns.

    A row has a few hidden traits, and each column a score that depends on some of them, or almost only on the score of
    an earlier column. A column's values are assigned in the order of the scores, with frequencies from a random
    distribution. That distribution is smooth, heaped on some values, cut off at one end, concentrated on few of many
    codes, whose order need not follow the score, or lumped.
    """
    traits = rng.standard_normal((rows, HIDDEN_TRAITS))
    table: list[np.ndarray] = []
    scores: list[Floats] = []
    for column, namesakes in zip(schema, earlier_namesakes(schema.names), strict=True):
        loadings = rng.standard_normal(HIDDEN_TRAITS) * (rng.random(HIDDEN_TRAITS) < 0.7)
        loadings[rng.integers(HIDDEN_TRAITS)] += rng.choice([-1.0, 1.0])
        apart = np.sqrt(1 - (kind.strength * np.sqrt(rng.random())) ** 2)
        follows = traits @ (loadings / np.linalg.norm(loadings))
        if namesakes and rng.random() < max(kind.tied, NAMESAKE_TIES):
            apart = np.exp(rng.uniform(*np.log(NAMESAKE_NOISE)))
            follows = scores[rng.choice(namesakes)]
        elif scores and rng.random() < kind.tied:
            apart = np.exp(rng.uniform(*np.log(TIE_NOISE)))
            follows = scores[rng.integers(len(scores))] * rng.choice([-1.0, 1.0])
        scores.append(np.sqrt(1 - apart**2) * follows + apart * rng.standard_normal(rows))
        table.append(_make_up_column(column, ndtr(scores[-1]), rng.random() < kind.lumped, rng))
    return table


def earlier_namesakes(names: Sequence[str]) -> list[list[int]]:
    """For each name, the places of earlier ones with which it shares a word of at least three letters. A word of every
    name says nothing.
    """
    apart = [name + " " + re.sub(r"([a-z])([A-Z])", r"\1 \2", name) for name in names]  # DtTm, but also subGrade
    words = [set(re.findall(r"[^\W\d_]{3,}", name.lower())) for name in apart]
    common = set.intersection(*words) if words else set()
    return [[i for i in range(j) if words[i] & words[j] - common] for j in range(len(names))]


def _make_up_column(column: Column, level: Floats, lumped: bool, rng: np.random.Generator) -> np.ndarray:
    """Values of one column for rows with these levels (quantiles of their scores)."""
    if isinstance(column, Category):
        shares = _draw_shares(len(column.labels), lumped, rng)
        order = rng.permutation(len(shares))
        if column.label_metric is not None:  # near labels have similar scores
            order = np.roll(tour([column.lattice(1)])[: len(shares)], rng.integers(len(shares)))
        return _remove_some(column, _points_at(shares, order, level), len(shares), rng)
    assert isinstance(column, Ordered)
    last = column.last_index
    points = (MAX_DISTRIBUTION_POINTS if last is None else min(last, MAX_DISTRIBUTION_POINTS)) + 1
    places = np.arange(points) / max(points - 1, 1)
    shares, order, smooth = _draw_distribution(points, places, lumped, rng)
    if last is None or points < last + 1:  # values lie near their points, not on them
        places = places + (rng.random(points) - 0.5) / MAX_DISTRIBUTION_POINTS
    values = places[_points_at(shares, order, level)]
    if smooth and last is None:
        values = values + (rng.random(len(level)) - 0.5) / MAX_DISTRIBUTION_POINTS
    values = np.clip(values, 0, 1)
    if last is not None:
        values = column.at_index(np.rint(values * last).astype(np.int64))
    return _remove_some(column, values, np.nan, rng)


def _draw_shares(points: int, lumped: bool, rng: np.random.Generator) -> Floats:
    """Shares of labels, or of a few points: some are about equal, some fall fast from the commonest to the rarest."""
    decay = rng.uniform(*(LUMPED_LABEL_DECAYS if lumped else LABEL_DECAYS))
    shares = rng.gamma(LABEL_EVENNESS, size=points) / np.arange(1.0, points + 1) ** decay + np.finfo(float).tiny
    return rng.permutation(shares / shares.sum())


def _draw_distribution(
    points: int, places: Floats, lumped: bool, rng: np.random.Generator
) -> tuple[Floats, Ints, bool]:
    """Draw the share of each point, the order of points by score, and whether values between points occur as well."""
    if points < MIN_SHAPED_POINTS:
        return _draw_shares(points, lumped, rng), np.arange(points), False
    a, b = rng.uniform(0.7, 4.0, 2)
    shares = np.maximum(places, 0.5 / points) ** (a - 1) * np.maximum(1 - places, 0.5 / points) ** (b - 1)
    shares, order = shares / shares.sum(), np.arange(points)
    if lumped:
        return _lump(shares, places, rng), order, True
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


def _lump(shares: Floats, places: Floats, rng: np.random.Generator) -> Floats:
    """Shares with one very common point, or squeezed towards one end of the range, or both."""
    heaped, narrow = [(True, False), (False, True), (True, True)][rng.integers(3)]
    if narrow:
        spread = np.exp(rng.uniform(*np.log(NARROW_SPREADS)))
        middle = rng.uniform(0, 2 * spread)
        shares = shares * np.exp(-np.abs(places - middle) / spread)
        shares = (shares[::-1] if rng.random() < 0.25 else shares) / shares.sum()
    if heaped:
        share = rng.uniform(*HEAP_SHARES)
        heap = 0 if rng.random() < 0.5 else np.searchsorted(np.cumsum(shares), rng.random())
        shares = shares * (1 - share)
        shares[min(heap, len(shares) - 1)] += share
    return shares


def _points_at(shares: Floats, order: Ints, level: Floats) -> Ints:
    """The point of each level, where points occupy their shares of [0, 1] in this order."""
    ends = np.cumsum(shares[order])
    return order[np.minimum(np.searchsorted(ends, level * ends[-1]), len(order) - 1)]


def _remove_some(column: Column, values: np.ndarray, absent: float, rng: np.random.Generator) -> np.ndarray:
    if column.missing:
        values = values.copy()
        values[rng.random(len(values)) < MAX_MISSING_SHARE * rng.random()] = absent
    return values


def kinds(tables: int) -> Sequence[TableKind]:
    """Kinds of `tables` made-up tables: each of KINDS as often as any other, as far as possible."""
    return [KINDS[i % len(KINDS)] for i in range(tables)]
