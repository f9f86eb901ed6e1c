"""Tiny worlds in which every possible row is listed, so that answers can be compared with all tables within a bound."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from certsynth import Schema
from certsynth.answers import Basis
from certsynth.domain import Category, Column, Ordered
from certsynth.record.record import CertificateRecord, PlugInRecords, PlugInTerms, SubsetRecord

Row = Mapping[str, Any]
"""A row in the columns' own values; None where one is missing."""

TINY = Schema.parse(
    """
[[column]]
name = "a"
kind = "integer"
low = -2
high = 3

[[column]]
name = "b"
kind = "integer"
low = 0
high = 4
missing = true
weight = 0.5

[[column]]
name = "c"
kind = "category"
values = ["x", "y", "z"]
other = true
missing = true
weight = 0.8

[[column]]
name = "t"
kind = "boolean"
missing = true

[[column]]
name = "u"
kind = "boolean"

[[column]]
name = "o"
kind = "ordinal"
values = ["low", "middle", "high"]
missing = true

[[column]]
name = "p"
kind = "ordinal"
values = ["low", "middle", "high"]

[[column]]
name = "d"
kind = "date"
low = 2020-01-01
high = 2020-01-06
missing = true

[[column]]
name = "e"
kind = "date"
low = 2020-01-02
high = 2020-01-05
weight = 0.25

[[column]]
name = "job"
kind = "tree"
values = ["h/n", "h/d", "c", "c/b"]
other = true
missing = true

[[column]]
name = "hue"
kind = "metric"
values = ["r", "g", "b"]
distances = [[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]]
weight = 0.5

[[column]]
name = "n"
kind = "number"
low = -0.5
high = 1.5

[[column]]
name = "m"
kind = "number"
low = 5
high = 9
missing = true
weight = 0.4

[[column]]
name = "c2"
kind = "category"
values = ["y", "x", "w"]
missing = true

[[column]]
name = "s"
kind = "datetime"
low = 2020-01-01T18:00:00
high = 2020-01-03T00:00:00
step = 21600
missing = true

[[column]]
name = "w"
kind = "datetime"
low = 2020-01-01T23:59:59
high = 2020-01-02T00:00:02
weight = 0.5
"""
)


def possible(column: Column) -> np.ndarray:
    """All cleaned values of a column; a few of those of a number."""
    if isinstance(column, Ordered) and column.grid:
        return np.append(column.at_index(np.arange(len(column.grid))), [np.nan] * column.missing)
    if isinstance(column, Ordered) and not column.whole:
        return np.append(np.linspace(0, 1, 6), [np.nan] * column.missing)
    if isinstance(column, Ordered):
        return np.append(column.at_index(np.arange((column.last_index or 0) + 1)), [np.nan] * column.missing)
    assert isinstance(column, Category)
    return np.arange(len(column.labels) + column.missing)


def distances(column: Column) -> np.ndarray:
    """Of all pairs of them, by the lattice that certificates are computed on."""
    if isinstance(column, Ordered) and not column.whole:
        places = possible(column)
        line = float(column.weight) * np.abs(places[:, None] - places[None, :])
        absent = np.isnan(places)
        far = np.where(absent[:, None] & absent[None, :], 0.0, float(column.weight))
        return np.where(np.isnan(line), far, line)
    cells = column.lattice(4096)
    assert cells.size == len(possible(column))
    codes = np.arange(cells.size)
    return np.asarray(cells.distance(codes[:, None], codes[None, :]), dtype=float)


def stated(subsets: Sequence[tuple[tuple[str, ...], float]], *, single: float) -> CertificateRecord:
    """A certificate with these bounds, of which nothing else is known."""
    return CertificateRecord(
        bound=max(bound for _, bound in subsets),
        confidence=0.95,
        kind="plug-in",
        terms=PlugInTerms(0.0, 0.0, 0.0),
        single_column_bound=single,
        subsets=tuple(SubsetRecord(columns, bound) for columns, bound in subsets),
        direct=None,
        single_column=None,
        plug_in=PlugInRecords(),
        no_plug_in=None,
    )


class World:
    """All rows of some columns, and their distances: the largest of the columns' own."""

    def __init__(self, *names: str, schema: Schema = TINY) -> None:
        self.schema = schema.select(names)
        each = [possible(column) for column in self.schema]
        codes = np.array(list(itertools.product(*(range(len(values)) for values in each))))
        self.clean = {c.name: values[codes[:, j]] for j, (c, values) in enumerate(zip(self.schema, each, strict=True))}
        pairs = [distances(c)[np.ix_(codes[:, j], codes[:, j])] for j, c in enumerate(self.schema)]
        self.apart = np.max(pairs, axis=0)
        self.size = len(codes)
        written = {c.name: c.decode(self.clean[c.name]).tolist() for c in self.schema}
        self.rows: list[Row] = [{name: written[name][i] for name in written} for i in range(self.size)]

    def basis(self, counts: np.ndarray, bound: float, *, single: float | None = None) -> Basis:
        """What answers rest on if these are the synthetic rows."""
        clean = {name: np.repeat(values, counts) for name, values in self.clean.items()}
        certificate = stated([(tuple(self.schema.names), bound)], single=bound if single is None else single)
        table = {column.name: column.decode(clean[column.name]) for column in self.schema}
        return Basis(self.schema, table, clean, certificate, int(counts.sum()))

    def cost(self, first: np.ndarray, second: np.ndarray) -> float:
        """W1 between two distributions over all rows, by a linear program of its own."""
        i, j = (np.flatnonzero(x) for x in (first, second))
        cost = self.apart[np.ix_(i, j)]
        rows = sp.vstack([sp.kron(sp.eye(len(i)), np.ones((1, len(j)))), sp.kron(np.ones((1, len(i))), sp.eye(len(j)))])
        right = np.concatenate([first[i] / first.sum(), second[j] / second.sum()])
        return float(linprog(cost.ravel(), A_eq=rows, b_eq=right, method="highs").fun)

    def largest(self, values: np.ndarray, counts: np.ndarray, bound: float) -> float:
        """The largest average of a function over all tables within the bound of the synthetic rows."""
        i = np.flatnonzero(counts)
        gain = np.broadcast_to(values, (len(i), self.size)).ravel()
        rows = sp.kron(sp.eye(len(i)), np.ones((1, self.size)))
        found = linprog(
            -gain,
            A_eq=rows,
            b_eq=counts[i] / counts.sum(),
            A_ub=self.apart[i].reshape(1, -1),
            b_ub=[bound],
            method="highs",
        )
        return float(-found.fun)

    def largest_ratio(self, values: np.ndarray, inside: np.ndarray, counts: np.ndarray, bound: float) -> float:
        """The largest average in a group; the largest value if the group may be empty.

        A ratio of linear functions: with all masses divided by that of the group it is a linear program.
        """
        if self.largest(-inside.astype(float), counts, bound) >= -1e-12:
            return float(values.max())
        i = np.flatnonzero(counts)
        many = (len(i), self.size)
        # One more unknown, the last: by how much masses are multiplied.
        rows = sp.hstack([sp.kron(sp.eye(len(i)), np.ones((1, self.size))), -counts[i, None] / counts.sum()])
        group = np.append(np.broadcast_to(inside.astype(float), many).ravel(), 0.0)
        found = linprog(
            -np.append(np.broadcast_to(values * inside, many).ravel(), 0.0),
            A_eq=sp.vstack([rows, group]),
            b_eq=np.append(np.zeros(len(i)), 1.0),
            A_ub=np.append(self.apart[i].ravel(), -bound)[None],
            b_ub=[0.0],
            method="highs",
        )
        return float(-found.fun)

    def of(self, function: Callable[[Row], Any]) -> np.ndarray:
        """A function of every possible row."""
        return np.array([function(row) for row in self.rows])


def some_rows(rng: np.random.Generator, size: int, *, rows: int = 12) -> np.ndarray:
    """Counts of a few rows, some alike."""
    likely = rng.dirichlet(np.full(size, 0.1))
    return rng.multinomial(rows, likely)


def small(schema: Schema = TINY, *, bound: float = 0.05, subsets=None, rows: int | None = 8, named=False) -> Basis:
    """Eight rows with every kind of column; every pair is certified, or what is said."""
    rng = np.random.default_rng(0)
    clean = {c.name: rng.choice(possible(c)[: 3 if c.name != "a" else 6], 8) for c in schema}
    names = schema.names
    subsets = subsets or [(x, y) for i, x in enumerate(names) for y in names[i + 1 :]]
    certificate = stated([(tuple(s), bound) for s in subsets], single=bound / 2)
    table = {c.name: c.decode(clean[c.name]) for c in schema}
    return Basis(schema, table, clean, certificate, rows, named)


SMALL = small()
