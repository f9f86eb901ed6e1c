"""Choose the grid that suits the intrinsic dimension of the rows, privately, by the number of occupied cells.

A row is in one cell of every grid, so replacing, adding or removing it changes the number of occupied cells of each
grid by at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certsynth.algorithm.low_dimensional.grids import Grid, design_of, possible_grids, strategy_of
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen, Spent
from certsynth.artefact.certificate import ADAPTING
from certsynth.mechanisms import Budget, Guarantee, Sensitivity
from certsynth.mechanisms.scalars import measure_scalars
from certsynth.mechanisms.selection import choose_by_ratio
from certsynth.mechanisms.spending import Spending
from certsynth.planning.choice import Choice
from certsynth.queries.occupied import Occupancy, joint_grid
from certsynth.queries.tally import Rows


def choose_grid(private: Rows, task: Task, *, spending: Spending) -> Chosen:
    """Choose a grid with a small expected loss for these rows, at the cost of `choice_share` of the budget."""
    found = possible_grids(task)
    best, spent = 0, tuple[Spent, ...]()
    if len(found) > 1:
        budget = task.settings.privacy.budget.share(task.settings.choice_share)
        grids = [joint_grid(task.schema, grid.resolution) for grid in found]
        sizes = [len(each.places) for each in private(Occupancy(task.schema, grids))]
        choose = _by_noisy_sizes if strategy_of(task.settings).signed else _by_score
        best, cost = choose(found, sizes, budget, task.settings, spending)
        spent = (Spent(ADAPTING, cost),)
    designs = tuple(design_of(task.settings, grid) for grid in found)
    return Chosen(Choice(designs[best], designs), found[best].dimension, spent)


def _by_score(
    found: Sequence[Grid], sizes: Sequence[int], budget: Budget, settings: Settings, spending: Spending
) -> tuple[int, Guarantee]:
    """Choose by a private score; only the choice is published, not the numbers of occupied cells."""
    spending.take(budget)
    best = choose_by_ratio(
        [grid.score(size) for grid, size in zip(found, sizes, strict=True)],
        sensitivities=[grid.sensitivity for grid in found],
        epsilon=budget.amount,
    )
    return best, Guarantee(budget, settings.neighbours)


def _by_noisy_sizes(
    found: Sequence[Grid], sizes: Sequence[int], budget: Budget, settings: Settings, spending: Spending
) -> tuple[int, Guarantee]:
    """Choose as in the paper: add noise to every number of occupied cells, and minimise the paper's bound.

    Paper: Eq. (42) [support-sizes], Eq. (43) [optimal-dimension]
    """
    count = len(sizes)
    noisy = measure_scalars(
        sizes, sensitivity=Sensitivity(count, count), budget=budget, neighbours=settings.neighbours, noise=spending
    )
    epsilon = float(settings.measurement_budget.amount)
    scores = [grid.paper_score(size, epsilon) for grid, size in zip(found, noisy.values, strict=True)]
    return int(np.argmin(scores)), noisy.cost
