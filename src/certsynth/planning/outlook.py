"""What bound to expect of one candidate: a middle and a range, from made-up tables."""

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
"""Survey tables lose a little less than made-up ones, by this factor; what is expected lies between the smallest and
the largest rehearsal, each moved outward by the other."""

SPREAD_CELL_FACTOR, SPREAD_NOISE_FACTOR = 0.7, 0.4
"""What rows of a linear program lose that are spread inside even cells: of what a cell may lose, and of the noise."""

OUTLOOK_SEED = 100
"""Tables are others than those that the choice saw."""

_MADE_UP_ROWS = 2_000  # of a table that is only read, not released


@dataclass(frozen=True, slots=True)
class Outlook:
    """The bound to expect with its range, the slack in it, and how many rehearsals it comes from."""

    middle: float
    low: float
    high: float
    slack: float = 0.0
    rehearsals: int = 0

    def of(self, ratio: float) -> Outlook:
        """The outlook of another candidate, whose loss should be so many times this one's."""
        scale = (self.slack + ratio * (self.middle - self.slack)) / self.middle if self.middle else 1.0
        return Outlook(scale * self.middle, scale * self.low, scale * self.high, self.slack)


def is_rehearsed(settings: Settings, candidate: Design) -> bool:
    """Whether releases are rehearsed: particles are, where the direct certificate speaks."""
    return bool(settings.certificate_share) and candidate.layers[-1].cells != "even"


def expect_bound(
    task: Task,
    candidate: Design,
    privatisation: float,
    progress: Progress = silent,
) -> Outlook:
    """By rehearsals where there are some; else terms are added up. `privatisation` is that of the certificate."""
    if is_rehearsed(task.settings, candidate):
        return _rehearse(task, candidate, progress)
    if task.settings.certificate_share:
        extra = certificate_slack(task)
        loss = SPREAD_CELL_FACTOR * candidate.discretisation + SPREAD_NOISE_FACTOR * candidate.privatisation
        return Outlook(loss + extra, loss / 2 + extra / 2, 2 * (loss + extra), extra)
    return _add_plug_in_terms(task, candidate, privatisation)


def _rehearse(task: Task, candidate: Design, progress: Progress) -> Outlook:
    tables = _rehearsal_count(len(task.settings.subsets))
    tasks = [
        (task.schema, task.settings.subsets, candidate.layers, task.rows, strength, OUTLOOK_SEED + i)
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
    """On how many made-up tables a release is rehearsed whose certificate covers so many subsets."""
    return 5 if subsets <= 30 else 4 if subsets <= 100 else 3


def _add_plug_in_terms(task: Task, candidate: Design, privatisation: float) -> Outlook:
    """The terms of the plug-in certificate: what rows lose to the centres of cells and noise, the fit, and what is
    written beside the centres. Rows are as far from the noisy counts as the truth is.
    """
    marginals = blank_layers(task.schema, candidate.layers, 0)[-1].marginals
    bounds = []
    for i, strength in enumerate(strengths(5)):
        table = make_up_table(
            task.schema, _MADE_UP_ROWS, strength=strength, rng=np.random.default_rng(OUTLOOK_SEED + i)
        )
        written = [c.centres(g)[c.to_cells(x, g)] for c, x, g in zip(task.schema, table, marginals.cells, strict=True)]
        inside = candidate.discretisation
        if task.settings.displacement_share:
            inside = min(inside, _mean_displacement(task.schema, marginals, table))
        bounds.append(
            inside + privatisation + candidate.privatisation + _mean_displacement(task.schema, marginals, written)
        )
    return Outlook(float(np.median(bounds)), min(bounds) / RANGE_FACTOR, max(bounds) * RANGE_FACTOR)


def _mean_displacement(schema: Schema, marginals: Marginals, table: Sequence[np.ndarray]) -> float:
    return sum_displacement(schema, marginals, [table]) / (MOVE_UNITS * len(table[0]))
