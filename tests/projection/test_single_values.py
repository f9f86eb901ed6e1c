"""Shares of single values inside runs: peaks that noise cannot have made are kept, and all else is spread evenly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certsynth.domain import Groups, Ordered
from certsynth.mechanisms import Budget, FullMeasurement, Neighbours, Unit, measure
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.samplers import SimulatedNoise
from certsynth.projection.emit import running_multiplicities
from certsynth.projection.single_values import shares_of_values
from certsynth.queries.marginals import Marginals

COLUMN = Ordered("code", high=4_999, missing=True)
RUNS, ROWS = COLUMN.points(), 50_000


def measured(codes: np.ndarray, seed: int = 0, unit: Unit = Unit.EPSILON) -> FullMeasurement:
    values = COLUMN.values_below_points()
    assert isinstance(values, Groups)
    of_values = Marginals(cells=(values,), subsets=((0,),), weights=(1,)).count([[codes]])
    of_runs = of_values.merged(Marginals(cells=(RUNS,), subsets=((0,),), weights=(2,)))
    noise, budget = (
        SimulatedNoise(np.random.default_rng(seed)),
        Budget(Fraction(1, 1 if unit is Unit.EPSILON else 100), unit),
    )
    return measure(of_runs, Identity(Neighbours.REPLACE_ONE), budget=budget, noise=noise, values=of_values)


def run_of_value() -> np.ndarray:
    return RUNS.code(np.arange(5_001))


def shares(codes: np.ndarray, made: FullMeasurement) -> tuple[np.ndarray, np.ndarray]:
    """True shares of runs, and the shares of values that follow from these and the noisy counts."""
    runs = np.bincount(run_of_value()[codes], minlength=RUNS.size) / len(codes)
    return runs, shares_of_values(runs, run_of_value(), made, 0)


@pytest.mark.parametrize("unit", Unit)
def test_a_value_that_many_rows_share_keeps_its_share_and_others_are_spread_evenly(unit: Unit) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 5_001, ROWS)
    codes[: ROWS // 10] = 1_234
    runs, found = shares(codes, measured(codes, unit=unit))
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    np.testing.assert_allclose(np.bincount(run_of_value(), weights=found), runs, atol=1e-12)
    assert found[1_234] == pytest.approx(0.1, abs=0.005)
    sizes = np.bincount(run_of_value())
    even = np.isclose(found, (runs / sizes)[run_of_value()])
    assert even.mean() > 0.8, "a tenth of even runs, on average, has a peak by noise"


def test_without_counts_of_values_runs_are_spread_evenly() -> None:
    codes = np.random.default_rng(2).integers(0, 5_001, 1_000)
    runs, found = shares(codes, replace(measured(codes), values=None))
    np.testing.assert_allclose(found, (runs / np.bincount(run_of_value()))[run_of_value()])


def test_a_run_without_a_peak_is_written_at_its_middle_if_it_is_not_spread() -> None:
    codes = np.random.default_rng(2).integers(0, 5_001, ROWS)
    codes[: ROWS // 10] = 1_234
    made = measured(codes)
    runs = np.bincount(run_of_value()[codes], minlength=RUNS.size) / len(codes)
    spread, found = (shares_of_values(runs, run_of_value(), made, 0, evenly=evenly) for evenly in (True, False))
    np.testing.assert_allclose(np.bincount(run_of_value(), weights=found), runs, atol=1e-12)
    peaked = run_of_value() == run_of_value()[1_234]
    assert np.array_equal(found[peaked], spread[peaked])
    without = replace(made, values=None)
    middle = np.flatnonzero(shares_of_values(runs, run_of_value(), without, 0, evenly=False))
    assert middle.tolist() == RUNS.middles()[runs > 0].tolist()


def test_running_sums_of_rows_are_off_by_at_most_half_a_row() -> None:
    rng = np.random.default_rng(3)
    for size, rows in [(1, 5), (7, 100), (1_000, 30), (1_000, 0), (50, 1)]:
        weights = rng.random(size) ** 4
        weights /= weights.sum()
        counts = running_multiplicities(weights, rows)
        assert counts.sum() == rows
        assert (counts >= 0).all()
        assert np.abs(np.cumsum(counts) - rows * np.cumsum(weights)).max() <= 0.5 + 1e-9
