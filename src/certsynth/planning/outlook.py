"""The bound to expect of a design, with a range, from made-up tables; calibrated on real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from certsynth.algorithm.layers import LayerSpec
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.base.parallel import run
from certsynth.base.progress import Progress, silent
from certsynth.domain import Schema
from certsynth.planning.choice import Design, blank_layers, predict_design
from certsynth.planning.rehearsal import certificate_slack, certified_bound, certified_loss, rehearse, statistic_errors
from certsynth.planning.subsample import subsample
from certsynth.planning.tables import KINDS, TableKind, kinds, make_up_table
from certsynth.queries import Marginals
from certsynth.queries.displacement import sum_displacement
from certsynth.queries.fine import MOVE_UNITS
from certsynth.queries.marginals import Subset

MODELLED_SPARSITY = 2
"""Sparsity for which the expected loss is the geometric mean of what rehearsals and the model say; for others the model
was not fitted."""

REAL_LOSS_RANGE = 1.8
"""Factor by which the loss of a real table may differ from the expected one, either way: nine of ten differ by less."""

NOISE_RANGE = 0.95
"""Largest noise of a direct certificate in nine of ten releases, as a share of its slack."""

PLUG_IN_RANGE = 1.25
"""Factor by which the range of a plug-in bound extends beyond the smallest and the largest bound of made-up tables."""

SPREAD_CELL_FACTOR, SPREAD_NOISE_FACTOR = 0.7, 0.4
"""Expected loss of a linear program's rows, spread inside even cells: multiples of the worst loss inside a cell and of
the loss by noise."""

OUTLOOK_SEED = 100
"""First seed of the made-up tables, which differ from those that the choice was made on."""

MAX_SUBSETS_FOR_MORE_TABLES = 100
"""Subsets up to which a release is rehearsed on two made-up tables of each kind; beyond, on one."""

_MADE_UP_ROWS = 2_000  # rows of a made-up table that is only read, not released


@dataclass(frozen=True, slots=True)
class Outlook:
    """The expected bound with its range, the slack it includes, and the number of rehearsals it is based on.

    The range from `low` to `high` is meant to hold for nine of ten releases of real tables. `statistics` are the
    expected bounds of shares, group totals and moments by name; empty if nothing was rehearsed.
    """

    middle: float
    low: float
    high: float
    slack: float = 0.0
    rehearsals: int = 0
    statistics: Mapping[str, float] = field(default_factory=dict)

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
    tables = rehearsal_count(len(task.settings.subsets))
    tasks = [
        (task.schema, task.settings.subsets, design.layers, task.rows, kind, OUTLOOK_SEED + i)
        for i, kind in enumerate(kinds(tables))
    ]
    found = run(_rehearsed_errors, tasks, work=10**9, phase="rehearsing the release", progress=progress)
    loss = geometric_mean([each for each, _ in found])
    if task.settings.sparsity == MODELLED_SPARSITY:
        modelled = predict_design(task, design.strategy, design.resolution, design.split).predicted
        loss = math.sqrt(loss * modelled)
    return replace(outlook_of(task, loss, tables), statistics=expect_statistics(task, [each for _, each in found]))


def expect_statistics(task: Task, errors: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The bounds of shares, group totals and moments to expect, given their largest errors in several rehearsals."""
    expected = {name: geometric_mean([each[name] for each in errors]) for name in errors[0]}
    return {name: min(1.0, certified_bound(task, error)) for name, error in expected.items()}


def outlook_of(task: Task, loss: float, rehearsals: int) -> Outlook:
    """The outlook for a real table, given the loss that real tables have on average.

    A table has another loss than the average, and its certificate has noise. Both are rarely large at once, so their
    squares are added.
    """
    slack, low, middle, high = (
        certified_bound(task, each) for each in (0.0, loss / REAL_LOSS_RANGE, loss, loss * REAL_LOSS_RANGE)
    )
    below, above = (math.hypot(each, NOISE_RANGE * slack) for each in (middle - low, high - middle))
    return Outlook(middle, middle - below, middle + above, slack, rehearsals)


def geometric_mean(losses: Sequence[float]) -> float:
    return math.exp(np.log(losses).mean()) if min(losses) > 0 else float(np.median(losses))


def _rehearsed_errors(
    schema: Schema, subsets: Sequence[Subset], layers: Sequence[LayerSpec], rows: int, kind: TableKind, seed: int
) -> tuple[float, dict[str, float]]:
    """The largest loss of a rehearsal, and its largest errors of other statistics by name."""
    schema, layers, subsets = subsample(schema, layers, subsets)
    made = rehearse(schema, layers, rows, kind=kind, seed=seed)
    return certified_loss(schema, subsets, made), statistic_errors(schema, subsets, made)


def rehearsal_count(subsets: int) -> int:
    """Number of made-up tables to rehearse on, given the number of subsets that the certificate covers."""
    return 2 * len(KINDS) if subsets <= MAX_SUBSETS_FOR_MORE_TABLES else len(KINDS)


def _add_plug_in_terms(task: Task, design: Design, privatisation: float) -> Outlook:
    """The sum of the plug-in certificate's terms: distance of rows to the centres of cells, noise, fit, and distance of
    emitted values to the centres. The fit is taken to be as far from the noisy counts as the data are.
    """
    marginals = blank_layers(task.schema, design.layers, 0)[-1].marginals
    bounds = []
    for i, kind in enumerate(kinds(5)):
        table = make_up_table(task.schema, _MADE_UP_ROWS, kind=kind, rng=np.random.default_rng(OUTLOOK_SEED + i))
        written = [c.centres(g)[c.to_cells(x, g)] for c, x, g in zip(task.schema, table, marginals.cells, strict=True)]
        inside = design.discretisation
        if task.settings.displacement_share:
            inside = min(inside, _mean_displacement(task.schema, marginals, table))
        bounds.append(
            inside + privatisation + design.privatisation + _mean_displacement(task.schema, marginals, written)
        )
    return Outlook(float(np.median(bounds)), min(bounds) / PLUG_IN_RANGE, max(bounds) * PLUG_IN_RANGE)


def _mean_displacement(schema: Schema, marginals: Marginals, table: Sequence[np.ndarray]) -> float:
    return sum_displacement(schema, marginals, [table]) / (MOVE_UNITS * len(table[0]))
