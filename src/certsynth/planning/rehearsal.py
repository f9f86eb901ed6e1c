"""Rehearse a release: run Algorithm 1 on a made-up table, with noise of the same law."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from certsynth.algorithm.layers import LayerSpec, measure_layers
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.certificate.comparison import Distance, distances
from certsynth.certificate.coverage import statistic_names, statistic_queries
from certsynth.certificate.direct import bounds, bounds_single_columns, exact_query, joint_sensitivity
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.domain import Category, Cells, Schema
from certsynth.mechanisms import Budget, Guarantee, Sensitivity, Unit
from certsynth.mechanisms.samplers import SimulatedNoise, calibrated_scale
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.planning.noise import network_of
from certsynth.planning.tables import TableKind, make_up_table
from certsynth.projection.synthesis import MAX_PARTICLES, synthesise
from certsynth.queries import Marginals
from certsynth.queries.fine import LATTICE_COLUMNS, MOVE_UNITS, LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.queries.net import MIN_NODES
from certsynth.queries.tally import in_memory
from certsynth.transport import transport_loss

MAX_REHEARSAL_ROWS, MIN_REHEARSAL_ROWS = 40_000, 8_000
"""Rows of a rehearsal, at most and at least: fewer for more tables. The noise is scaled down with the rows."""

MAX_TABLE_ROWS = 800_000
"""Tables of several columns × rows of a rehearsal, at most, as long as MIN_REHEARSAL_ROWS remain."""

COARSE_STEPS, FINE_STEPS = {1: 64, 2: 16, 3: 8}, {1: 256, 2: 64, 3: 16}
"""Cells to the unit length in which rows are compared, by the number of columns: first coarsely for all subsets of
columns, then finely for the worst."""

MIN_ROWS_PER_LABEL_CELL = 5
"""Rows per combination of labels, at least, for a rehearsal with few rows; otherwise it has all rows, up to
MAX_PARTICLES, but no more particles."""

MAX_COMPARED_SUBSETS = 4
"""Subsets of columns that are compared finely, at most."""

MAX_STATISTIC_SUBSETS = 120
"""Subsets of columns whose shares, group totals and moments are compared, at most: the largest errors over some subsets
are nearly those over all."""


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """A made-up table, and the rows that a release would write for it."""

    table: list[np.ndarray]
    rows: list[np.ndarray]


def rehearse(
    schema: Schema, layers: Sequence[LayerSpec], rows: int, *, kind: TableKind, seed: int, most: int | None = None
) -> Rehearsal:
    """Release a made-up table that represents one of `rows` rows; it has at most `most`, if that is enough."""
    rows = max(rows, 1)
    tables = sum(len(subset) > 1 for layer in layers for subset in layer.subsets) or 1
    particles = min(rows, most or MAX_REHEARSAL_ROWS, max(MIN_REHEARSAL_ROWS, MAX_TABLE_ROWS // tables))
    fewer = particles if _rows_fill_label_tables(schema, layers, particles) else min(rows, MAX_PARTICLES)
    rng = np.random.default_rng([seed, fewer])
    table = make_up_table(schema, fewer, kind=kind, rng=rng)
    scaled = [replace(layer, budget=scaled_budget(layer.budget, Fraction(rows, fewer))) for layer in layers]
    measurements = measure_layers(in_memory(table), schema, scaled, noise=SimulatedNoise(rng))
    return Rehearsal(table, synthesise(measurements, schema, fewer, rng, particles=particles))


def _rows_fill_label_tables(schema: Schema, layers: Sequence[LayerSpec], rows: int) -> bool:
    """Whether this many rows fill all tables of labels. If not, chance alone makes two tables differ, and more rows are
    needed to see any other difference.
    """
    labels = [len(column.labels) if isinstance(column, Category) else 1 for column in schema]
    return rows >= MIN_ROWS_PER_LABEL_CELL * max(math.prod(labels[j] for j in subset) for subset in layers[-1].subsets)


def scaled_budget(budget: Budget, ratio: Fraction) -> Budget:
    """The budget that keeps the noise, as a share of the rows, the same when there are `ratio` times fewer."""
    return budget.share(ratio if budget.unit is Unit.EPSILON else ratio**2)


def rehearsed_loss(schema: Schema, subsets: Sequence[Subset], made: Rehearsal) -> float:
    """The largest loss over subsets of columns, in cells fine enough to compare releases."""
    return max(_losses(schema, worst_subsets(schema, subsets, made, MAX_COMPARED_SUBSETS), made, FINE_STEPS))


def worst_subsets(schema: Schema, subsets: Sequence[Subset], made: Rehearsal, most: int) -> list[Subset]:
    """The `most` subsets of columns with the largest losses in coarse cells."""
    if len(subsets) <= most:
        return list(subsets)
    losses = _losses(schema, subsets, made, COARSE_STEPS)
    return [subsets[j] for j in np.argsort(-np.array(losses), kind="stable")[:most]]


def _losses(schema: Schema, subsets: Sequence[Subset], made: Rehearsal, steps: Mapping[int, int]) -> list[float]:
    """Losses of subsets in even cells, `steps` to the unit length by number of columns, or on nets for more columns."""
    found: dict[Subset, float] = {}
    for ways in set(map(len, subsets)):
        alike = [subset for subset in subsets if len(subset) == ways]
        wide = ways > LATTICE_COLUMNS
        losses = _net_losses(schema, alike, made) if wide else _lattice_losses(schema, alike, made, steps[ways])
        found |= zip(alike, losses, strict=True)
    return [found[subset] for subset in subsets]


def _lattice_losses(schema: Schema, subsets: Sequence[Subset], made: Rehearsal, steps: int) -> list[float]:
    """Losses in even cells: the lattice of the synthetic values, coarsened; real values are placed on it, too."""
    lattices = [column.detail() for column in schema]
    cells = tuple(_coarsen(lattice, steps) for lattice in lattices)
    marginals = Marginals(cells=cells, subsets=tuple(subsets))
    shares = []
    for table in (made.table, made.rows):
        codes = [
            _coarsen_codes(column.to_lattice(x, lattice)[0], lattice, c)
            for column, x, lattice, c in zip(schema, table, lattices, cells, strict=True)
        ]
        shares.append([block / len(table[0]) for block in marginals.count([codes])])
    return [
        float(transport_loss(ours, theirs, network_of(marginals.of(subset))))
        for subset, ours, theirs in zip(subsets, *shares, strict=True)
    ]


def _net_losses(schema: Schema, subsets: Sequence[Subset], made: Rehearsal) -> list[float]:
    """Losses on small nets, including the distances that rows are moved."""
    fine = LatticeQuery.of(schema, subsets).with_nets([made.rows], most=MIN_NODES)
    found = distances(fine, fine.count([made.table]), fine.count([made.rows]))
    return [float(d.upper + d.first_moved + d.second_moved) for d in found]


def _coarsen(lattice: Cells, steps: int) -> Cells:
    """The lattice coarsened to at most `steps` even cells."""
    if len(lattice.places) <= steps:
        return lattice
    last = int(lattice.places[-1]) * steps // (lattice.steps + 1)
    return Cells(places=np.arange(last + 1), steps=steps, off_line=lattice.off_line, weight=lattice.weight)


def _coarsen_codes(codes: np.ndarray, lattice: Cells, cells: Cells) -> np.ndarray:
    line, cut = len(lattice.places), len(cells.places)
    if line == cut:
        return codes
    on_line = lattice.places[np.minimum(codes, line - 1)] * cells.steps // (lattice.steps + 1)
    return np.where(codes < line, on_line, codes - line + cut)


def certified_loss(schema: Schema, subsets: Sequence[Subset], made: Rehearsal) -> float:
    """The largest loss, approximately as `certify` computes it: including the moves of rows to its lattices."""
    subsets = worst_subsets(schema, subsets, made, MAX_COMPARED_SUBSETS)
    losses = dict(zip(subsets, _losses(schema, subsets, made, FINE_STEPS), strict=True))
    narrow = [subset for subset in subsets if len(subset) <= LATTICE_COLUMNS]  # on nets, losses include the moves
    if narrow:
        fine = LatticeQuery.of(schema, narrow)
        counts = [fine.count([rows]) for rows in (made.table, made.rows)]
        moved = np.sum([np.array(each.moved) / (MOVE_UNITS * each.rows) for each in counts], axis=0)
        losses |= {subset: losses[subset] + float(more) for subset, more in zip(narrow, moved, strict=True)}
    return max(losses.values())


def statistic_errors(schema: Schema, subsets: Sequence[Subset], made: Rehearsal) -> dict[str, float]:
    """The largest errors of shares, group totals and moments by name, on the lattices on which `certify` compares them;
    of some of the subsets, if there are many."""
    found, every = StatisticMaxima(), -(-len(subsets) // MAX_STATISTIC_SUBSETS)
    for query in statistic_queries(schema, subsets[::every]):
        found.update(query, query.count([made.table]), query.count([made.rows]))
    return {name: loss / (LOSS_UNITS * len(made.table[0])) for name, loss in found.losses.items()}


def certificate_slack(task: Task) -> float:
    """The bound of the direct certificate for rows without loss: what covers its noise."""
    return certified_bound(task, 0.0)


def certified_bound(task: Task, loss: float) -> float:
    """The bound of the direct certificate for rows with this loss, if all its noise were 0.

    If the number of rows is hidden, the certificate divides by the smallest number that they may have: the bound grows
    faster than the loss.
    """
    fine = LatticeQuery.of(task.schema, [max(task.settings.subsets, key=len)])
    zero, exact = Fraction(0), Fraction(loss)
    found_loss = [Distance(upper=exact, lower=exact, stretch=Fraction(1), first_moved=zero, second_moved=zero)]
    counted = None
    if task.settings.count_share:
        counted = _noiseless_scalars([task.rows], Sensitivity(1, 1), task.settings, task.settings.count_share)
    settings = task.settings
    query = exact_query(
        fine, found_loss, task.rows, neighbours=settings.neighbours, two_sided=False, counted=counted is not None
    )
    names = statistic_names(task.schema, settings.subsets, exceptions=settings.splits_pairs)
    others = bounds_single_columns(settings.subsets) + len(names)
    others += bool(settings.exceptions)  # one more loss
    changes = joint_sensitivity([*query.changes, *[LOSS_UNITS] * others])
    found = bounds(
        fine,
        None,
        _noiseless_scalars([*query.values, *[0] * others], changes, settings, settings.certificate_share),
        rows=task.rows,
        beta=settings.direct_beta(alone=not settings.plug_in),
        losses=1,
        stretch=Fraction(1),
        two_sided=False,
        counted=counted,
    )
    return found.bound


def _noiseless_scalars(
    values: Sequence[int], sensitivity: Sensitivity, settings: Settings, share: Fraction
) -> NoisyScalars:
    """The measurement of scalars with a share of the budget, if all its noise were 0."""
    spent = settings.budget.share(share)
    cost = Guarantee(spent, settings.neighbours)
    return NoisyScalars(tuple(values), calibrated_scale(sensitivity, spent), cost, sensitivity=sensitivity)
