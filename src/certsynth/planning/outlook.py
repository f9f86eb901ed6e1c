"""The bound to expect of a design: a median and a range, from made-up tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.algorithm.layers import LayerSpec
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.base.parallel import run
from certsynth.base.progress import Progress, silent
from certsynth.domain import Schema
from certsynth.planning.choice import Design, blank_layers
from certsynth.planning.rehearsal import certificate_slack, certified_loss, rehearse
from certsynth.planning.subsample import subsample
from certsynth.planning.tables import make_up_table, strengths
from certsynth.queries import Marginals
from certsynth.queries.displacement import sum_displacement
from certsynth.queries.fine import MOVE_UNITS
from certsynth.queries.marginals import Subset

REAL_LOSS_FACTOR, RANGE_FACTOR = 0.92, 1.25
"""Loss of real survey tables divided by that of made-up ones; and the factor by which the expected range extends beyond
the smallest and the largest rehearsed loss."""

SPREAD_CELL_FACTOR, SPREAD_NOISE_FACTOR = 0.7, 0.4
"""Expected loss of a linear program's rows, spread inside even cells: multiples of the worst loss inside a cell and of
the loss by noise."""

OUTLOOK_SEED = 100
"""First seed of the made-up tables, which differ from those that the choice was made on."""

_MADE_UP_ROWS = 2_000  # rows of a made-up table that is only read, not released


@dataclass(frozen=True, slots=True)
class Outlook:
    """The expected bound with its range, the slack it includes, and the number of rehearsals it is based on."""

    middle: float
    low: float
    high: float
    slack: float = 0.0
    rehearsals: int = 0

    def of(self, ratio: float) -> Outlook:
        """The outlook of another design, whose expected loss is `ratio` times this one's."""
        scale = (self.slack + ratio * (self.middle - self.slack)) / self.middle if self.middle else 1.0
        return Outlook(scale * self.middle, scale * self.low, scale * self.high, self.slack)


def is_rehearsed(settings: Settings, design: Design) -> bool:
    """Whether this design is rehearsed: it is for particles with a direct certificate."""
    return bool(settings.certificate_share) and design.layers[-1].cells != "even"


def expect_bound(
    task: Task,
    design: Design,
    privatisation: float,
    progress: Progress = silent,
) -> Outlook:
    """The expected bound, by rehearsals or as a sum of terms. `privatisation` is the certificate's term."""
    if is_rehearsed(task.settings, design):
        return _rehearse(task, design, progress)
    if task.settings.certificate_share:
        extra = certificate_slack(task)
        loss = SPREAD_CELL_FACTOR * design.discretisation + SPREAD_NOISE_FACTOR * design.privatisation
        return Outlook(loss + extra, loss / 2 + extra / 2, 2 * (loss + extra), extra)
    return _add_plug_in_terms(task, design, privatisation)


def _rehearse(task: Task, design: Design, progress: Progress) -> Outlook:
    tables = _rehearsal_count(len(task.settings.subsets))
    tasks = [
        (task.schema, task.settings.subsets, design.layers, task.rows, strength, OUTLOOK_SEED + i)
        for i, strength in enumerate(strengths(tables))
    ]
    found = run(_rehearsed_loss, tasks, work=10**9, phase="rehearsing the release", progress=progress)
    losses, extra = REAL_LOSS_FACTOR * np.array(found), certificate_slack(task)
    low, high = losses.min() / RANGE_FACTOR + extra / 2, losses.max() * RANGE_FACTOR + 2 * extra
    return Outlook(float(np.median(losses)) + extra, float(low), float(high), extra, tables)


def _rehearsed_loss(
    schema: Schema, subsets: Sequence[Subset], layers: Sequence[LayerSpec], rows: int, strength: float, seed: int
) -> float:
    schema, layers, subsets = subsample(schema, layers, subsets)
    return certified_loss(schema, subsets, rehearse(schema, layers, rows, strength=strength, seed=seed))


def _rehearsal_count(subsets: int) -> int:
    """Number of made-up tables to rehearse on, given the number of subsets that the certificate covers."""
    return 5 if subsets <= 30 else 4 if subsets <= 100 else 3


def _add_plug_in_terms(task: Task, design: Design, privatisation: float) -> Outlook:
    """The sum of the plug-in certificate's terms: distance of rows to the centres of cells, noise, fit, and distance of
    emitted values to the centres. The fit is taken to be as far from the noisy counts as the data are.
    """
    marginals = blank_layers(task.schema, design.layers, 0)[-1].marginals
    bounds = []
    for i, strength in enumerate(strengths(5)):
        table = make_up_table(
            task.schema, _MADE_UP_ROWS, strength=strength, rng=np.random.default_rng(OUTLOOK_SEED + i)
        )
        written = [c.centres(g)[c.to_cells(x, g)] for c, x, g in zip(task.schema, table, marginals.cells, strict=True)]
        inside = design.discretisation
        if task.settings.displacement_share:
            inside = min(inside, _mean_displacement(task.schema, marginals, table))
        bounds.append(
            inside + privatisation + design.privatisation + _mean_displacement(task.schema, marginals, written)
        )
    return Outlook(float(np.median(bounds)), min(bounds) / RANGE_FACTOR, max(bounds) * RANGE_FACTOR)


def _mean_displacement(schema: Schema, marginals: Marginals, table: Sequence[np.ndarray]) -> float:
    return sum_displacement(schema, marginals, [table]) / (MOVE_UNITS * len(table[0]))
