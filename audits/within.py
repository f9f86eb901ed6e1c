"""Small worlds in which all possible rows are listed, and the tables within a bound that make a statistic extreme.

A table within the bound is a way to move the synthetic rows, at a mean distance of at most the bound. The largest
average of a function over such tables is a linear program with one budget. Its optimum mixes two plans in which every
row goes where `function − λ · distance` is largest, for two neighbouring prices λ: that is what is computed here, with
the table that attains it. Nothing of `certsynth.answers` is used.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.domain import Category, Column, Ordered, Schema

MOST_VALUES = 50
"""Values of a column of whole numbers up to which all are possible."""
MOST_PRICES = 60
"""Halvings of the interval of prices."""

Floats = np.ndarray


def possible(column: Column, rng: np.random.Generator) -> Floats:
    """The cleaned values that rows may have: all of them, or some of those of a number or of a long range."""
    if isinstance(column, Ordered) and column.grid:
        last = len(column.grid) - 1
        ranks = np.arange(last + 1) if last < MOST_VALUES else np.unique([0, *rng.integers(0, last + 1, 4), last])
        return np.append(column.at_index(ranks), [np.nan] * column.missing)
    if isinstance(column, Ordered) and not column.whole:
        inner = rng.uniform(0, 1, 2) if rng.integers(2) else np.array([0.25, 0.5])
        return np.append(np.sort([0.0, *inner, 1.0]), [np.nan] * column.missing)
    if isinstance(column, Ordered):
        some = np.arange(column.reach + 1.0)
        if column.reach > MOST_VALUES:
            some = np.unique([0.0, *rng.integers(0, column.reach + 1, 3), column.reach])
        return np.append(some, [np.nan] * column.missing)
    assert isinstance(column, Category)
    return np.arange(len(column.labels) + column.missing)


def distances(column: Column, values: Floats) -> Floats:
    """Between all pairs of these values, by the definition of the metric."""
    weight = float(column.weight)
    if isinstance(column, Ordered):
        there = ~np.isnan(values)
        line = np.abs(np.subtract.outer(values, values)) / max(column.reach, 1)
        both = np.logical_and.outer(there, there)
        return np.asarray(weight * np.where(both, line, np.not_equal.outer(there, there)))
    assert isinstance(column, Category)
    apart = 1.0 - np.eye(len(values))
    listed = len(column.values)
    if column.kind == "metric":
        stated = np.array([[float(x) for x in row] for row in column.distances])
        apart[:listed, :listed] = stated / stated.max()
    if column.kind == "tree":
        ways = np.array([[_steps(a, b) for b in column.paths] for a in column.paths], float)
        apart[:listed, :listed] = ways / max(ways.max(), 1.0)
    return weight * apart


def _steps(first: Sequence[str], second: Sequence[str]) -> int:
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    return len(first) + len(second) - 2 * shared


class World:
    """All possible rows of a schema, in the columns' own values, and how far they are from each other."""

    def __init__(self, schema: Schema, rng: np.random.Generator) -> None:
        self.schema = schema
        each = [possible(column, rng) for column in schema]
        codes = np.array(list(itertools.product(*(range(len(values)) for values in each))))
        self.size = len(codes)
        self.clean = {c.name: v[codes[:, j]] for j, (c, v) in enumerate(zip(schema, each, strict=True))}
        self.apart = {
            c.name: distances(c, v)[np.ix_(codes[:, j], codes[:, j])]
            for j, (c, v) in enumerate(zip(schema, each, strict=True))
        }
        self.written = {c.name: c.decode(self.clean[c.name]).tolist() for c in schema}
        self.figures = {c.name: np.array([_figure(c, x) for x in self.written[c.name]]) for c in schema}

    def distance(self, names: Sequence[str]) -> Floats:
        return np.asarray(np.max([self.apart[name] for name in names], axis=0))


def _figure(column: Column, value: object) -> float:
    """What a value is compared and averaged by: ranks of ordinals, days, seconds, places of labels."""
    if value is None:
        return math.nan
    if isinstance(column, Category):
        return float(bool(value)) if column.kind == "boolean" else float(column.labels.index(str(value)))
    assert isinstance(column, Ordered)
    if column.kind == "ordinal":
        return float(column.values.index(str(value)))
    return moment_figure(value) if isinstance(value, datetime.date) else float(value)  # type: ignore[arg-type]


def moment_figure(value: datetime.date) -> float:
    """A date as days, a datetime as seconds since 1970-01-01."""
    unit = "s" if isinstance(value, datetime.datetime) else "D"
    return float(np.datetime64(str(value), unit).astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """The tables within `bound` of the shares `mass` of synthetic rows, which are the possible rows `at`."""

    at: np.ndarray
    mass: Floats
    cost: Floats
    bound: float

    @classmethod
    def of(cls, counts: np.ndarray, distance: Floats, bound: float) -> Near:
        at = np.flatnonzero(counts)
        return cls(at, counts[at] / counts.sum(), distance[at], bound)

    def table(self, where: np.ndarray) -> Floats:
        """The shares of possible rows if each synthetic row goes to one of them."""
        return np.bincount(where, self.mass, minlength=self.cost.shape[1])

    def best(self, gain: Floats) -> Floats:
        """The table with the largest average of `gain`."""
        rows = np.arange(len(self.at))

        def plan(price: float) -> tuple[np.ndarray, float]:
            worth = gain - price * self.cost
            where = np.argmax(worth - 1e-13 * (1 + price) * self.cost, axis=1)
            return where, float(self.mass @ self.cost[rows, where])

        free, spent = plan(0.0)
        if spent <= self.bound:
            return self.table(free)
        low, high = 0.0, float(np.ptp(gain)) / max(self.cost[self.cost > 0].min(), 1e-9) + 1.0
        dear, paid = self.at, 0.0
        for _ in range(MOST_PRICES):
            middle = math.sqrt(low * high) if low > 0 else high / 1024
            where, cost = plan(middle)
            if cost > self.bound:
                low, free, spent = middle, where, cost
            else:
                high, dear, paid = middle, where, cost
            if high - low <= 1e-14 * high:
                break
        share = (self.bound - paid) / (spent - paid)
        return share * self.table(free) + (1 - share) * self.table(dear)

    def best_ratio(self, gain: Floats, inside: np.ndarray) -> Floats | None:
        """The table with the largest average of `gain` among the rows `inside`; None if no table has such rows.

        Dinkelbach's iteration: the best average so far becomes the level that the next table has to exceed.
        """
        if not inside.any():
            return None
        found = self.best(inside.astype(float))
        if found @ inside <= 1e-12:
            return None
        level = -math.inf
        values = np.where(inside, gain, 0.0)
        while (now := float(found @ values / (found @ inside))) > level + 1e-13 * (1 + abs(now)):
            level, best = now, found
            found = self.best(np.where(inside, gain - level, 0.0))
            if found @ inside <= 1e-12:
                break
        return best


def average(table: Floats, values: Floats, inside: np.ndarray) -> float | None:
    """The average over the rows `inside`; None if there are none."""
    share = float(table @ inside)
    return float(table @ np.where(inside, values, 0.0)) / share if share > 1e-9 else None


def extremes(near: Near, gain: Floats, inside: np.ndarray | None = None) -> list[Floats]:
    """The tables with the largest and the smallest average of `gain`, among the rows `inside` if that is given."""
    if inside is None or inside.all():
        return [near.best(gain), near.best(-gain)]
    return [found for sign in (1, -1) if (found := near.best_ratio(sign * gain, inside)) is not None]


def spreads(near: Near, values: Floats, inside: np.ndarray) -> list[Floats]:
    """Tables whose variance among the rows `inside` is large, and such where it is small."""
    there = values[inside]
    if not len(there):
        return []
    tables = []
    for centre in np.linspace(there.min(), there.max(), 4):
        tables += extremes(near, (values - centre) ** 2, inside)
    more = []
    for table in tables:
        centre = float(table @ np.where(inside, values, 0.0) / (table @ inside))
        more += extremes(near, (values - centre) ** 2, inside)
    return tables + more


def products(near: Near, first: Floats, second: Floats, inside: np.ndarray) -> list[Floats]:
    """Tables with a large and a small covariance among the rows `inside`."""
    if not inside.any():
        return []
    tables: list[Floats] = []
    start = [(float(np.mean(first[inside])), float(np.mean(second[inside])))]
    for a, b in start:
        tables += extremes(near, (first - a) * (second - b), inside)
    for table in list(tables):
        part = table * inside / (table @ inside)
        a, b = float(part @ np.where(inside, first, 0.0)), float(part @ np.where(inside, second, 0.0))
        tables += extremes(near, (first - a) * (second - b), inside)
    return tables


def moved(
    rng: np.random.Generator, counts: np.ndarray, distance: Floats, moves: int
) -> tuple[np.ndarray, Callable[[Floats], float]]:
    """Another table of as many rows, some of which went elsewhere; and what the moves cost by a given metric."""
    rows = np.repeat(np.arange(len(counts)), counts)
    before = rows.copy()
    for i in rng.choice(len(rows), min(moves, len(rows)), replace=False):
        order = np.argsort(distance[rows[i]] + 1e-6 * rng.random(len(counts)))
        rows[i] = order[min(int(rng.geometric(0.3)), len(counts) - 1)]
    return np.bincount(rows, minlength=len(counts)), lambda metric: float(metric[before, rows].mean())
