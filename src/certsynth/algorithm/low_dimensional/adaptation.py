"""The grid that suits the rows' own dimension, chosen privately: how many cells hold rows says how fine it can be.

One row is in one cell of every grid, so that replacing, adding or removing it changes the number of occupied cells of
each by at most 1; and a person with at most k rows, by at most k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certsynth.algorithm.low_dimensional.grids import Grid, design_of, possible_grids, strategy_of
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen
from certsynth.artefact.steps import RESOLUTION_CHOICE, Step
from certsynth.mechanisms import Budget, Guarantee, Sensitivity
from certsynth.mechanisms.scalars import measure_scalars
from certsynth.mechanisms.selection import choose_by_ratio
from certsynth.mechanisms.spending import Spending
from certsynth.planning.choice import Choice
from certsynth.queries.occupied import Occupancy, joint_grid
from certsynth.queries.tally import Rows


def choose_grid(private: Rows, task: Task, *, spending: Spending) -> Chosen:
    """The grid with a small expected loss for these rows, by the share of the budget that is for it."""
    found = possible_grids(task)
    best, spent = 0, tuple[Step, ...]()
    if len(found) > 1:
        budget = task.settings.budget.share(task.settings.choice_share)
        grids = [joint_grid(task.schema, grid.resolution) for grid in found]
        sizes = [len(each.places) for each in private(Occupancy(task.schema, grids))]
        choose = _by_noisy_sizes if strategy_of(task.settings).signed else _by_score
        best, step = choose(found, sizes, budget, task.settings, spending)
        spent = (step,)
    candidates = tuple(design_of(task.settings, grid) for grid in found)
    return Chosen(Choice(candidates[best], candidates), found[best].dimension, spent)


def _by_score(
    found: Sequence[Grid], sizes: Sequence[int], budget: Budget, settings: Settings, spending: Spending
) -> tuple[int, Step]:
    """Only the choice becomes known, and no number of occupied cells. Each score has a sensitivity of its own, for one
    cell more or less; the protected unit may change several."""
    spending.take(budget)
    protection = settings.protection
    best = choose_by_ratio(
        [grid.score(size) for grid, size in zip(found, sizes, strict=True)],
        sensitivities=[grid.sensitivity for grid in found],
        epsilon=protection.per_unit(budget).amount / protection.changed_cells,
    )
    return best, Step(RESOLUTION_CHOICE, Guarantee(budget, settings.neighbours))


def _by_noisy_sizes(
    found: Sequence[Grid], sizes: Sequence[int], budget: Budget, settings: Settings, spending: Spending
) -> tuple[int, Step]:
    """The paper's way: every number of occupied cells gets noise, and its bound is minimised over them.

    Paper: Eq. (42) [support-sizes], Eq. (43) [optimal-dimension]
    """
    count = len(sizes)
    noisy = measure_scalars(
        sizes, sensitivity=Sensitivity(count, count), budget=budget, neighbours=settings.neighbours, noise=spending
    )
    epsilon = float(settings.measurement_budget.amount)
    scores = [grid.paper_score(size, epsilon) for grid, size in zip(found, noisy.values, strict=True)]
    return int(np.argmin(scores)), Step.of_scalars(RESOLUTION_CHOICE, noisy)
