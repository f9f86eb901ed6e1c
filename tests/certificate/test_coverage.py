"""Where the bound on shares of two columns holds for those of one, by all sets of made-up tables."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from certsynth import Schema
from certsynth.certificate.bands import band_errors
from certsynth.certificate.coverage import pairs_imply_singles, statistic_names, statistic_queries
from certsynth.certificate.direct import LOSS_UNITS, bounds
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.mechanisms import Budget, Guarantee, Neighbours, Unit
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.queries.tally import Batch, in_memory

SHARES = {"share_of_one_column": "share_of_two_columns"}
BANDS = {"band_of_one_column": "band_of_two_columns"}
TABLES = 60


def make_schema(*columns: str) -> Schema:
    kinds = {
        "line": 'kind = "integer"\nlow = 0\nhigh = 4\nmissing = true',
        "long": 'kind = "integer"\nlow = 0\nhigh = 511',
        "banded": 'kind = "integer"\nlow = 0\nhigh = 5\nbands = [2, 3]',
        "two": 'kind = "boolean"',
        "three": 'kind = "category"\nvalues = ["a", "b"]\nmissing = true',
        "four": 'kind = "category"\nvalues = ["a", "b", "c"]\nother = true',
    }
    return Schema.parse("\n".join(f'[[column]]\nname = "{name}"\n{kinds[name]}\n' for name in columns))


IMPLIED: dict[str, tuple[list[str], list[Subset]]] = {
    "a line and labels": (["line", "four"], [(0, 1)]),
    "few labels": (["two", "three"], [(0, 1)]),
    "many labels with a line": (["four", "two", "line"], [(0, 1), (0, 2)]),
    "bands": (["banded", "four", "line"], [(0, 1), (0, 2), (1, 2)]),
    "a subset of three": (["line", "three", "four"], [(0, 1, 2)]),
}
NOT_IMPLIED: dict[str, tuple[list[str], list[Subset]]] = {
    "many labels with labels": (["four", "two"], [(0, 1)]),
    "a lattice that is finer for one column": (["long", "two"], [(0, 1)]),
    "a column without a pair": (["line", "two", "four"], [(0, 1), (2,)]),
}


FURTHER_OFF = {
    "many labels with labels": (([0, 0, 1, 1], [0, 1, 0, 1]), ([2, 2, 3, 3], [0, 1, 0, 1])),
    "a lattice that is finer for one column": (([1, 1], [0, 1]), ([2, 2], [0, 1])),
    "a column without a pair": (([0, 1], [0, 1], [0, 0]), ([0, 1], [0, 1], [1, 1])),
}
"""Private and synthetic columns whose shares of one column are further off than those of two."""


def draw_rows(declared: Schema, rng: np.random.Generator) -> Batch:
    rows = int(rng.integers(1, 7))
    points = [column.centres(column.detail()) for column in declared]
    return [each[rng.integers(len(each), size=rows)] for each in points]


def largest_errors(declared: Schema, subsets: list[Subset], private: Batch, synthetic: Batch) -> dict[str, int]:
    maxima = StatisticMaxima()
    for fine in statistic_queries(declared, subsets):
        maxima.update(fine, fine.count([private]), fine.count([synthetic]))
    return maxima.losses | band_errors(declared, subsets, in_memory(private), in_memory(synthetic))


@pytest.mark.parametrize("case", IMPLIED)
def test_no_share_of_one_column_is_further_off_than_all_of_two(case: str) -> None:
    names, subsets = IMPLIED[case]
    declared, rng = make_schema(*names), np.random.default_rng(1)
    implied = pairs_imply_singles(declared, subsets)
    assert implied == (SHARES | BANDS if "banded" in names else SHARES)
    for _ in range(TABLES):
        found = largest_errors(declared, subsets, draw_rows(declared, rng), draw_rows(declared, rng))
        for one, two in implied.items():
            assert found[one] <= found[two]


@pytest.mark.parametrize("case", NOT_IMPLIED)
def test_where_it_is_not_implied_a_single_column_can_be_further_off(case: str) -> None:
    names, subsets = NOT_IMPLIED[case]
    declared = make_schema(*names)
    assert pairs_imply_singles(declared, subsets) == {}
    private, synthetic = ([np.array(column) for column in table] for table in FURTHER_OFF[case])
    found = largest_errors(declared, subsets, private, synthetic)
    assert found["share_of_one_column"] > found["share_of_two_columns"]


@pytest.mark.parametrize("case", [*IMPLIED, *NOT_IMPLIED])
def test_a_smaller_bound_of_pairs_serves_for_single_columns(case: str) -> None:
    """Where it is implied, and if all bounds hold together: not if only some of them are used."""
    names, subsets = (IMPLIED | NOT_IMPLIED)[case]
    fine = LatticeQuery.of(make_schema(*names), subsets)
    statistics = statistic_names(fine.schema, subsets)
    values = [50, 40, *([20 if "two_columns" in name else 30 for name in statistics])]
    noisy = NoisyScalars(
        tuple(LOSS_UNITS * value for value in values),
        Fraction(LOSS_UNITS),
        Guarantee(Budget(Fraction(1), Unit.EPSILON), Neighbours.REPLACE_ONE),
    )
    made = partial(
        bounds, fine, None, noisy, rows=1_000, beta=Fraction(1, 20), losses=1, stretch=Fraction(1), two_sided=False,
        single=True, statistics=statistics,
    )  # fmt: skip
    for used in (None, 2):
        found = made(used=used).statistics
        same = case in IMPLIED and used is None
        for one, two in ((SHARES | BANDS) if "banded" in names else SHARES).items():
            assert (found[one].bound == found[two].bound) == same
            assert found[one].bound >= found[two].bound
