"""All steps of a release together: given the same outcomes before it, what each step asks changes by no more between
neighbours than its noise covers, and all of it costs no more than the budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import release
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.samplers import NoisyIntegers, calibrated_scale, is_sup_norm
from small import NATIVE, native

BUDGET = 2
ASKED: dict[str, dict[str, Any]] = {
    "both certificates": {"certificate_share": "0.3"},
    "plug-in alone": {"certificate_share": 0, "projection": "drawn"},
    "weighted levels": {"certificate_share": "0.1", "mechanism": "haar-weighted", "projection": "drawn"},
    "adaptive": {"mechanism": "adaptive", "resolution": None},
    "paper": {"preset": "paper", "projection": "full-grid"},
}


class Outcomes:
    """The same outcomes whatever was asked, with a record of what was: later steps of two tables can be compared."""

    releasable = False

    def __init__(self) -> None:
        self.asked: list[tuple[np.ndarray, Fraction, bool]] = []

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        scale = calibrated_scale(sensitivity, budget)
        self.asked.append((np.array(values), Fraction(scale), is_sup_norm(sensitivity, budget.unit)))
        fixed = np.random.default_rng([len(self.asked), len(values)]).integers(0, 9, len(values))
        return NoisyIntegers(values=fixed, scale=scale, spent=budget)


def cost(frame: pl.DataFrame, other: pl.DataFrame, unit: Unit, **asked: Any) -> Fraction:
    """What all steps together reveal about which of two tables it was: ε of Laplace noise, or ρ of Gaussian noise."""
    records = []
    for table in (frame, other):
        noise = Outcomes()
        release(table, NATIVE, rows=20, seed=1, noise=noise, **{unit.value: BUDGET, "resolution": 3} | asked)
        records.append(noise.asked)
    total = Fraction(0)
    for (first, *law), (second, *same) in zip(*records, strict=True):
        assert law == same  # the noise does not tell the tables apart either
        scale, sup_norm = law
        change = [abs(int(x) - int(y)) for x, y in zip(first, second, strict=True)]
        if sup_norm:
            total += max(change) / scale
        elif unit is Unit.EPSILON:
            total += sum(change) / scale
        else:
            total += sum(x * x for x in change) / (2 * scale**2)
    return total


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_no_neighbours_can_be_told_apart_by_more_than_the_budget_in_all_steps_together(neighbours, unit, asked):
    """Some pair comes close, so that half the noise in all steps would be seen."""
    rows = native(4, seed=5)
    corners = pl.DataFrame({"a": [0, 6, 6], "b": [0, 4, None], "c": ["x", "y", "x"]}, schema=rows.schema)
    if neighbours is Neighbours.ADD_REMOVE:
        pairs = [(rows, pl.concat([rows, corners[i : i + 1]])) for i in (1, 2)]
    else:
        pairs = [(pl.concat([rows, corners[:1]]), pl.concat([rows, corners[i : i + 1]])) for i in (1, 2)]
    costs = [cost(*pair, unit, neighbours=neighbours, **ASKED[asked]) for pair in pairs]
    assert max(costs) <= BUDGET
    assert max(costs) > BUDGET / (2 if unit is Unit.EPSILON else 4)
