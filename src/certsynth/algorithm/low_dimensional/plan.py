"""Plan one grid of all columns: what to expect for each dimension that the rows may have, before any row is read."""

from __future__ import annotations

from dataclasses import replace

from certsynth.algorithm.low_dimensional.grids import Grid, design_of, possible_grids
from certsynth.algorithm.sizes import check_grid
from certsynth.algorithm.task import Task
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.planning.plan import Plan, Planned, Variation, halved
from certsynth.planning.rehearsal import certificate_slack

BOUND_TO_LOSS_FACTOR = 1.3
"""Direct certificate of all columns divided by the true loss, about: rows are compared at nearby nodes."""


def plan_grids(task: Task) -> Plan:
    """Plan a grid for each dimension that the rows may have; the last is for rows that fill the space, the worst case.

    The release chooses among them privately, so which one it takes is not known beforehand.
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
    return Plan.of(task, choice=planned[-1], candidates=planned, variations=variations)


def predict_quickly(task: Task) -> float:
    """The bound to expect of rows that fill the space."""
    return _expected(task, possible_grids(task)[-1]).predicted_bound


def _expected(task: Task, grid: Grid) -> Planned:
    """What to expect if the rows have the grid's dimension: an estimate within a factor of 2."""
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
        seconds=round(8 + 1e-4 * task.units, 1),
        memory_gb=0.5,
        dimension=grid.dimension,
    )
