"""The largest errors are those over all sets and functions, and one row moves each by at most one row."""

from __future__ import annotations

import numpy as np
import pytest

from all_sets import largest_errors
from certsynth import Schema
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import all_subsets
from certsynth.queries.tally import Batch

EVERY_KIND = Schema.parse(
    """
[[column]]
name = "whole"
kind = "integer"
low = 0
high = 4

[[column]]
name = "light"
kind = "number"
low = 0
high = 1
weight = 0.3
missing = true

[[column]]
name = "grade"
kind = "ordinal"
values = ["low", "middle", "high"]
missing = true

[[column]]
name = "day"
kind = "date"
low = 2020-01-01
high = 2024-12-31

[[column]]
name = "point"
kind = "ordinal"
values = ["only"]
missing = true

[[column]]
name = "label"
kind = "category"
values = ["a", "b"]
other = true
missing = true

[[column]]
name = "code"
kind = "tree"
values = ["north/a", "north/b", "south"]
weight = 0.5

[[column]]
name = "colour"
kind = "metric"
values = ["red", "orange", "blue"]
distances = [[0, 1, 5], [1, 0, 4], [5, 4, 0]]

[[column]]
name = "member"
kind = "boolean"
"""
)


def random_rows(rng: np.random.Generator, rows: int) -> Batch:
    """Rows that gather at random places."""
    table = []
    for column in EVERY_KIND:
        points = column.centres(column.detail())
        near = points[rng.integers(len(points), size=2)]
        anywhere = points[rng.integers(len(points), size=rows)]
        table.append(np.where(rng.random(rows) < 0.5, near[rng.integers(2, size=rows)], anywhere))
    return table


def compare(fine: LatticeQuery, private: Batch, synthetic: Batch) -> dict[str, int]:
    maxima = StatisticMaxima()
    maxima.update(fine, fine.count([private]), fine.count([synthetic]))
    return maxima.losses


@pytest.mark.parametrize("ways", [1, 2])
def test_maxima_are_those_over_all_functions_of_columns_of_every_kind(ways):
    rng = np.random.default_rng(ways)
    for steps in (2, 3, 7):
        for subset in all_subsets(EVERY_KIND, ways):
            fine = LatticeQuery.of(EVERY_KIND, [subset], steps=steps)
            private, synthetic = random_rows(rng, int(rng.integers(1, 9))), random_rows(rng, int(rng.integers(1, 9)))
            assert compare(fine, private, synthetic) == largest_errors(fine, private, synthetic), subset
