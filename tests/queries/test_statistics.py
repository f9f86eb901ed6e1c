"""Places, centres and products in integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from all_sets import place_of
from certsynth.domain import Cells
from certsynth.domain.category import Category
from certsynth.domain.column import Column, Ordered
from certsynth.queries.fine import DEFAULT_STEPS
from certsynth.queries.statistics import UNITS, centre, is_line, offsets, places_in_units, product

WEIGHTS = [Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(401, 1000), Fraction(1, 1000)]


def ordered_columns(weight: Fraction) -> list[Column]:
    return [
        Ordered("native", weight=weight, low=-3, high=90, missing=True),
        Ordered("coarse", weight=weight, low=0, high=70_001),
        Ordered("day", weight=weight, kind="date", low=0, high=2_000, missing=True),
        Ordered("number", weight=weight, kind="number", low=0.1, high=0.7, missing=True),
        Ordered("grade", weight=weight, kind="ordinal", values=("a", "b", "c"), low=0, high=2),
        Ordered("point", weight=weight, kind="ordinal", values=("a",), low=0, high=0),
    ]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("steps", [*DEFAULT_STEPS.values(), 5])
def test_a_value_is_as_near_to_the_place_of_its_point_as_the_proof_says(weight, steps):
    rng = np.random.default_rng(steps)
    for column in ordered_columns(weight):
        lattice = column.lattice(steps)
        places = places_in_units(lattice)
        assert places.tolist() == [place_of(lattice, c) for c in range(len(lattice.places))]
        assert places.min() >= 0
        assert places.max() <= UNITS
        half = Fraction(1, 2 * lattice.steps) / weight if column.covering_radius(lattice) else 0
        clean = np.concatenate([[0.0, 1.0], rng.random(200), (np.arange(2 * steps) + 0.5) % steps / steps])
        if column.whole:
            clean = np.floor(clean * column.reach + 0.5)
        codes = column.to_lattice(clean, lattice)[0]
        for value, place in zip(clean.tolist(), places[codes].tolist(), strict=True):
            true = Fraction(value) / max(column.reach, 1)
            assert abs(true - Fraction(place, UNITS)) <= half + Fraction(1, UNITS)
            assert half or place == math.floor(UNITS * true)  # a native lattice rounds down only


def test_the_centre_is_the_mean_of_the_rows_that_are_present_rounded_down():
    cells = Cells(places=np.array([0, 1, 3]), steps=3, off_line=1)
    assert centre(cells, np.array([1, 0, 1, 7])) == UNITS // 2
    assert centre(cells, np.array([2, 0, 1, 0])) == UNITS // 3
    assert centre(cells, np.array([0, 0, 0, 7])) == UNITS // 2
    assert offsets(cells, np.array([2, 0, 1, 5])).tolist() == [-349525, 0, UNITS - 349525, 0]


def test_centres_of_the_longest_tables_are_exact():
    cells = Cells(places=np.array([0, 1, 2, 3]), steps=3, off_line=0)
    assert centre(cells, np.array([1, 0, 0, 2**42 - 1])) == UNITS - 1


def test_products_are_rounded_down_and_vary_by_no_more_than_one():
    for a in (0, 1, 12345, UNITS // 2, UNITS - 1, UNITS):
        for b in (0, 7, UNITS // 3, UNITS):
            x, y = (np.array([0, 1, c, UNITS - 1, UNITS]) - c for c in (a, b))
            found = product(x[:, None], y)
            exact = [[math.floor(Fraction(int(i) * int(j), UNITS)) for j in y] for i in x]
            assert found.tolist() == exact
            assert found.max() - min(found.min(), 0) <= UNITS
            assert max(found.max(), 0) - found.min() <= UNITS


def test_sets_of_a_column_depend_on_its_kind():
    assert is_line(Ordered("a", kind="ordinal", values=("x",), low=0, high=0).lattice(4))
    assert not is_line(Category("a", values=("x", "y"), missing=True).lattice(4))
