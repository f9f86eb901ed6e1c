"""Borders between two values of one point of a pair's lattice, of a column with a point for each value by itself."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from answering import stated
from certified_errors import LOSS_UNITS
from certsynth.answers import Answer, Basis, answer
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.domain import Category, Ordered, Schema
from certsynth.queries.fine import LatticeQuery
from certsynth.record.record import StatisticsRecord

LONG = Ordered("x", low=0, high=600)
SCHEMA = Schema(columns=(LONG, Category("c", values=("a", "b")), Ordered("y", low=0, high=9)))
ROWS = 400

Clean = dict[str, np.ndarray]


def drawn(rng: np.random.Generator, values: np.ndarray) -> Clean:
    """Rows with few values of the long column, some of which share a point of the lattice of pairs."""
    return {
        "x": rng.choice(values, ROWS, p=rng.dirichlet(np.full(len(values), 0.5))).astype(float),
        "c": rng.integers(0, 2, ROWS),
        "y": rng.integers(0, 10, ROWS).astype(float),
    }


def basis(synthetic: Clean, private: Clean) -> Basis:
    """The synthetic rows with a certificate that states the exact errors, and nothing about distances."""
    maxima = StatisticMaxima()
    for size in (1, 2):
        fine = LatticeQuery.of(SCHEMA, list(itertools.combinations(range(3), size)))
        maxima.update(fine, *(fine.count([list(rows.values())]) for rows in (private, synthetic)))
    errors = {name: loss / (LOSS_UNITS * ROWS) for name, loss in maxima.losses.items()}
    certificate = replace(stated([(SCHEMA.names, 1.0)], single=1.0), statistics=StatisticsRecord(**errors))
    table = {column.name: column.decode(synthetic[column.name]) for column in SCHEMA}
    return Basis(SCHEMA, table, synthetic, certificate, ROWS)


def asked(of: Basis, query: str) -> Answer:
    found = answer(of, query)
    assert isinstance(found, Answer)
    return found


def truth(rows: Clean, low: int, high: int) -> dict[str, float]:
    """The true value of each statistic of the rows with x from `low` to `high`."""
    inside, label = (low <= rows["x"]) & (rows["x"] <= high), rows["c"] == 0
    return {
        "fraction({} and c = 'a')": float(np.mean(inside & label)),
        "fraction(c = 'a' | {})": float(np.mean(label[inside])),
        "fraction(not ({}) and y < 5)": float(np.mean(~inside & (rows["y"] < 5))),
        "mean(y | {})": float(np.mean(rows["y"][inside])),
    }


@pytest.mark.parametrize("seed", range(8))
def test_no_private_table_with_these_errors_is_outside(seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        start = int(rng.integers(0, 590))
        values = np.unique(np.append(start + np.arange(6), rng.integers(0, 601, 3)))
        of = basis(drawn(rng, values), private := drawn(rng, values))
        low, high = sorted(rng.choice(values, 2, replace=False).tolist())
        for query, true in truth(private, low, high).items():
            if np.isnan(true):
                continue
            found = asked(of, query.format(f"{low} <= x <= {high}"))
            assert found.low - 1e-9 <= true <= found.high + 1e-9, query


def shares_a_point() -> tuple[int, int]:
    """Two neighbouring values with the same point in pairs."""
    codes = LONG.to_lattice(np.arange(601.0), LONG.lattice(256))[0]
    first = int(np.flatnonzero(codes[1:] == codes[:-1])[0])
    return first, first + 1


def test_a_heavy_value_at_a_border_does_not_widen_the_interval_if_its_neighbour_is_rare():
    rare, heavy = shares_a_point()
    rng = np.random.default_rng(1)
    rows = drawn(rng, np.array([heavy, 300, 500]))
    rows["x"][:200] = heavy
    of = basis(rows, rows)
    for query, true in truth(rows, heavy, 400).items():
        found = asked(of, query.format(f"{heavy} <= x <= 400"))
        assert found.low <= true <= found.high
        assert found.high - found.low < 0.02 * (9 if query.startswith("mean") else 1), query
    assert rare + 1 == heavy


def test_rows_of_the_neighbour_are_allowed_for():
    """The control: with many rows at the neighbour the interval must be wide."""
    rare, heavy = shares_a_point()
    rows = drawn(np.random.default_rng(1), np.array([heavy, 300, 500]))
    rows["x"][:100], rows["x"][100:200] = heavy, rare
    found = asked(basis(rows, rows), f"fraction({heavy} <= x <= 400 and c = 'a')")
    assert found.high - found.low > 0.05
