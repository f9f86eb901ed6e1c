"""The grid that suits the rows' own dimension, chosen privately: how many cells hold rows says how fine it can be.

One row is in one cell of every grid, so that replacing, adding or removing it changes the number of occupied cells of
each by at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.artefact.certificate import ADAPTING
from certsynth.artefact.steps import Step
from certsynth.domain import Schema
from certsynth.mechanisms import Budget, Guarantee, Sensitivity
from certsynth.mechanisms.scalars import measure_scalars
from certsynth.mechanisms.selection import choose_by_ratio
from certsynth.mechanisms.spending import Spending
from certsynth.planning.choice import Choice
from certsynth.planning.dimensions import Grid, candidate_of, possible_grids, strategy_of
from certsynth.queries.occupied import Occupancy, all_columns
from certsynth.queries.tally import Rows
from certsynth.settings import Settings


@dataclass(frozen=True, slots=True)
class Adapted:
    """The choice with what it was made among, the grid that it means, and the step that chose; None where there was
    nothing to choose from.
    """

    choice: Choice
    grid: Grid
    step: Step | None


def adapted(private: Rows, schema: Schema, settings: Settings, rows: int, *, spending: Spending) -> Adapted:
    """The grid with a small expected loss for these rows, by the share of the budget that is for it."""
    found = possible_grids(schema, settings, rows)
    best, step = 0, None
    if len(found) > 1:
        budget = settings.privacy.budget.share(settings.adaptation_share)
        grids = [all_columns(schema, grid.resolution) for grid in found]
        sizes = [len(each.places) for each in private(Occupancy(schema, grids))]
        choose = _by_noisy_sizes if strategy_of(settings).signed else _by_score
        best, step = choose(found, sizes, budget, settings, spending)
    candidates = tuple(candidate_of(settings, grid) for grid in found)
    return Adapted(Choice(candidates[best], candidates), found[best], step)


def _by_score(
    found: Sequence[Grid], sizes: Sequence[int], budget: Budget, settings: Settings, spending: Spending
) -> tuple[int, Step]:
    """No number of occupied cells is told, only which grid is good. Each score has a sensitivity of its own."""
    spending.take(budget)
    best = choose_by_ratio(
        [grid.score(size) for grid, size in zip(found, sizes, strict=True)],
        sensitivities=[grid.sensitivity for grid in found],
        epsilon=budget.amount,
    )
    return best, Step(ADAPTING, Guarantee(budget, settings.neighbours))


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
    return int(np.argmin(scores)), Step.of_scalars(ADAPTING, noisy)
