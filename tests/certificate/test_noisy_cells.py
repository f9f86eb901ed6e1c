"""Noisy counts of single cells: no noise exceeds its slack more often than it says, over all cells together."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from certsynth.answers.noisy_cells import CellTable, NoisyCells
from certsynth.certificate.noisy_cells import cell_slacks
from certsynth.domain import Category
from certsynth.mechanisms import Budget, Neighbours, Unit, measure, strategy_named
from certsynth.queries.marginals import Counts, Marginals
from small import failures_allowed

LABELS = Category("label", values=tuple("abcdefgh"))
OTHERS = Category("other", values=tuple("xy"))
WEIGHTS = (1, 3)


def counts() -> Counts:
    cells = (LABELS.lattice(1), OTHERS.lattice(1))
    marginals = Marginals(cells=cells, subsets=((0,), (0, 1)), weights=WEIGHTS)
    table = np.arange(16).reshape(8, 2)
    return Counts(marginals=marginals, blocks=(table.sum(axis=1), table.ravel()), rows=int(table.sum()))


@pytest.mark.parametrize("runs", [400, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_some_noise_exceeds_its_slack_no_more_often_than_it_says(neighbours, unit, runs):
    """Two measurements together; control: three fifths of the slack is exceeded too often."""
    exact, beta = counts(), Fraction(1, 4)
    strategy = strategy_named("identity", neighbours=neighbours)
    failures = {1.0: 0, 0.6: 0}
    for _ in range(runs):
        made = [measure(exact, strategy, budget=Budget(Fraction(share, 10), unit)) for share in (1, 7)]
        slacks = cell_slacks(made, beta)
        assert list(slacks) == [0, 1]
        for part in failures:
            failures[part] += any(
                np.abs(noisy - weight * block).max() > part * slack
                for i, slack in slacks.items()
                for noisy, block, weight in zip(made[i].coefficients, exact.blocks, WEIGHTS, strict=True)
            )
    assert failures[1.0] <= failures_allowed(runs, float(beta))
    assert failures[0.6] > failures_allowed(runs, float(beta))


def test_only_noise_on_every_cell_has_a_slack():
    haar = strategy_named("haar", neighbours=Neighbours.ADD_REMOVE)
    assert cell_slacks([measure(counts(), haar, budget=Budget(Fraction(1)))], Fraction(1, 20)) == {}


def test_the_share_of_every_set_is_in_its_interval():
    """All sets of eight cells, for noise at the very end of the slack, in every pattern of signs."""
    exact, slack = np.array([5.0, 0, 1, 2, 9, 3, 0, 4]), 2.0
    for signs in itertools.product((-slack, slack), repeat=4):
        noisy = exact + np.array([*signs, *signs[::-1]])
        cells = NoisyCells([CellTable((LABELS,), (LABELS.lattice(1),), noisy, slack)], 23, 25)
        (table,) = cells.tables_of(["label"])
        for chosen in itertools.product((False, True), repeat=8):
            inside = np.array(chosen)
            low, high = cells.share(table, inside, inside)
            assert low - 1e-12 <= exact[inside].sum() / 24 <= high + 1e-12
    assert cells.tables_of(["other"]) == []
    assert NoisyCells(cells.tables).tables_of(["label"]) == []  # no row at all may be there


def test_a_set_that_cuts_cells_is_between_its_inner_and_its_outer_cells():
    cells = NoisyCells([CellTable((LABELS,), (LABELS.lattice(1),), np.full(8, 10.0), 1.0)], 80, 80)
    inner, outer = np.arange(8) < 2, np.arange(8) < 3
    assert cells.share(cells.tables[0], inner, outer) == pytest.approx((18 / 80, 33 / 80))
