"""What to expect of one grid of all columns, before any row is read: for each dimension that rows may have."""

from __future__ import annotations

from dataclasses import replace

from certsynth.algorithm.low_dimensional.grids import Grid, design_of, possible_grids
from certsynth.algorithm.sizes import check_grid
from certsynth.algorithm.task import Task
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.planning.plan import Plan, Planned, Variation, halved
from certsynth.planning.rehearsal import certificate_slack

BOUND_TO_LOSS_FACTOR = 1.3
"""The direct certificate of all columns is this many times the loss: rows are compared at nodes near them."""


def plan_grids(task: Task) -> Plan:
    """For each dimension that the rows may have, the grid that suits it. At worst they fill all of the space: what is
    chosen is known only when the rows are looked at.
    """
    check_grid(task.schema, task.settings.resolution)
    planned = [_expected(task, grid) for grid in possible_grids(task)]
    half = halved(task.settings.privacy)
    others = [("twice the rows", replace(task, rows=2 * task.rows))]
    others += [("half of epsilon", task.with_settings(privacy=half))] if half else []
    variations = []
    for change, other in others:
        worst = _expected(other, possible_grids(other)[-1])
        variations.append(Variation(change, worst.mechanism, worst.resolution, worst.predicted_bound))
    return Plan(
        rows=task.rows,
        columns=len(task.schema),
        sparsity=task.settings.sparsity,
        workload=None,
        confidence=float(task.settings.confidence),
        privacy=task.settings.privacy.describe(task.settings.privacy.budget),
        neighbours=str(task.settings.neighbours),
        certificate="direct",
        split=None,
        choice=planned[-1],
        candidates=tuple(planned),
        variations=tuple(variations),
    )


def _expected(task: Task, grid: Grid) -> Planned:
    """What to expect of rows of the grid's dimension: a guess within a factor of 2."""
    expected, extra = grid.expected(grid.occupied), certificate_slack(task)
    each = design_of(task.settings, grid)
    bound = BOUND_TO_LOSS_FACTOR * expected + extra
    return Planned(
        mechanism=each.strategy.name,
        growth=decimal_text(each.strategy.growth),
        resolution=grid.resolution,
        discretisation=each.discretisation,
        privatisation=min(1.0, each.privatisation),
        predicted_bound=min(1.0, bound),
        low=min(1.0, bound / 2),
        high=min(1.0, bound * 2),
        rehearsals=0,
        seconds=round(8 + 1e-4 * task.rows, 1),
        memory_gb=0.5,
        dimension=grid.dimension,
    )
