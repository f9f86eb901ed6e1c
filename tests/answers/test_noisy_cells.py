"""Noisy counts of cells: over all boxes together, no bound fails more often than it says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from certsynth.answers.noisy_cells import CellNoise, CellTable, NoisyCells
from certsynth.domain import Category, Ordered
from certsynth.mechanisms.guarantee import Unit
from certsynth.mechanisms.samplers import simulate
from small import failures_allowed

LABELS = Category("label", values=tuple("abc"))
YEARS = Ordered("years", low=0, high=3, missing=True)
CELLS = LABELS.lattice(1), YEARS.lattice(8)


def table(counts: np.ndarray, noise: CellNoise, *, beta: float = 0.25, weight: int = 3) -> CellTable:
    return CellTable((LABELS, YEARS), CELLS, counts, noise, weight, beta)


def sides(size: int, line: int) -> list[np.ndarray]:
    """All sets of a column that are not empty: sets of labels, or intervals with or without the missing value."""
    every = [np.array(each) for each in itertools.product((False, True), repeat=size) if any(each)]
    return [each for each in every if np.abs(np.diff(np.concatenate([[0], each[:line], [0]]))).sum() <= 2]


BOXES = [a[:, None] & b for a in sides(3, 0) for b in sides(5, 4)]
assert len(BOXES) == 7 * (2 * 11 - 1)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("runs", [300, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("scale", [0.7, 30.0])
def test_some_box_is_outside_its_bounds_no_more_often_than_it_says(unit, scale, runs):
    """All boxes of a table at once; control: with noise of three times the scale they are too often."""
    exact, rng = 40.0 + np.arange(15).reshape(3, 5), np.random.default_rng(1)
    for factor in (1, 3):
        failures = 0
        for _ in range(runs):
            noisy = exact + simulate(rng, unit, factor * scale, (3, 5)) / 3
            made = table(noisy, CellNoise(unit.value, scale))
            failures += any(
                not (low <= exact[box].sum() <= high) for box in BOXES for low, high in [made.rows(box)] if high > low
            )
        assert (failures <= failures_allowed(runs, 0.25)) == (factor == 1)


@pytest.mark.parametrize("runs", [100, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", list(Unit))
def test_a_table_that_is_used_one_by_one_has_a_bound_for_all_its_cells_together(unit, runs):
    """Every cell, and every set of cells, whose bound is the sum; control: with three times the noise they fail."""
    column, rng = Ordered("x", low=0, high=39), np.random.default_rng(5)
    cells, exact = column.lattice(39), 100.0 + np.arange(40)
    noise, intervals = CellNoise(unit.value, 9.0), [np.arange(40) // 5 == j for j in range(8)]
    for factor in (1, 3):
        failures = 0
        for _ in range(runs):
            noisy = exact + simulate(rng, unit, factor * 9.0, (40,)) / 3
            made = CellTable((column,), (cells,), noisy, noise, 3, 0.25, one_by_one=True)
            sets = [np.arange(40) == j for j in range(40)] + intervals
            failures += any(not low <= exact[each].sum() <= high for each in sets for low, high in [made.rows(each)])
        assert (failures <= failures_allowed(runs, 0.25)) == (factor == 1)
    plain = CellTable((column,), (cells,), exact, noise, 3, 0.25)
    one = np.arange(40) == 3
    assert np.diff(made.rows(one)) < np.diff(plain.rows(one)), "one cell has a tighter bound"
    assert made.rows(intervals[0])[1] - made.counts[intervals[0]].sum() == pytest.approx(
        5 * (made.rows(one)[1] - made.counts[3])
    )


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("cells", [1, 7])
@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_sums_of_noise_exceed_their_bound_no_more_often_than_stated(unit, cells, scale):
    """The exact distribution of the sum, by convolution; the bound is not far from the smallest one."""
    reach = math.ceil(60 * scale) + 5
    z = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(z) / scale) if unit is Unit.EPSILON else np.exp(-(z**2) / (2 * scale**2))
    law = np.ones(1)
    for _ in range(cells):
        law = np.convolve(law, one / one.sum())
    total = np.arange(len(law)) - cells * reach
    for log_odds in (1.0, 5.0, 12.0):
        t = CellNoise(unit.value, scale).largest_sum(cells, log_odds)
        assert law[total > t].sum() <= math.exp(-log_odds)
        assert log_odds < 5 or law[total > t / 2 - 2].sum() > math.exp(-log_odds)


def test_every_set_is_in_its_interval_whatever_the_noise_within_the_bounds():
    """Sets that are boxes and others, at the ends of the slack; `share` knows the other cells, too."""
    exact = np.array([[5.0, 0, 1, 2, 9], [3, 0, 4, 4, 4], [1, 1, 1, 0, 0]])
    rng, noise = np.random.default_rng(2), CellNoise("epsilon", 0.05)
    slack = table(exact, noise)._slack(1, exact.size)
    for _ in range(300):
        made = NoisyCells([table(exact + rng.choice([-slack, slack], exact.shape) / 15, noise)], 34, 36)
        (found,) = made.tables_of(["years", "label"])
        inside = rng.random(exact.shape) < rng.random()
        low, high = made.share(found, inside, inside)
        assert low - 1e-12 <= exact[inside].sum() / 35 <= high + 1e-12
    assert made.tables_of(["years"]) == []
    assert NoisyCells(made.tables).tables_of(["years", "label"]) == []  # there may be no row at all


def test_a_set_that_cuts_cells_is_between_its_inner_and_its_outer_cells():
    made = NoisyCells([table(np.full((3, 5), 10.0), CellNoise("epsilon", 1e-3))], 150, 150)
    inner, outer = BOXES[0], BOXES[0] | BOXES[1]
    low, high = made.share(made.tables[0], inner, outer)
    assert low == pytest.approx(10 * inner.sum() / 150, abs=1e-3)
    assert high == pytest.approx(10 * outer.sum() / 150, abs=1e-3)
