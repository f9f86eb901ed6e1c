"""Choose mechanism, resolution and split of the budget from the schema alone, before any row is read.

Every design is assessed by the loss inside its cells and the loss caused by its noise, drawn from its law. Particles
smooth noise and keep single columns at full detail, so for them the most promising designs are also rehearsed: released
on tables made up from the schema. docs/explanation/planning.md has the reasons and figures, and compares the planned
resolution and loss with the theory.

Paper: Theorem 1 [rates]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.algorithm.layers import LayerSpec, group_cells, lattice_points, max_label_groups, weighted_marginals
from certsynth.algorithm.options import AUTO_MECHANISMS, MECHANISMS, RESOLUTION
from certsynth.algorithm.settings import SPLITS, Settings
from certsynth.algorithm.sizes import check_size
from certsynth.algorithm.task import Task
from certsynth.base.parallel import run
from certsynth.base.progress import Progress, silent
from certsynth.domain import Category, Cells, Column, Groups, Ordered, Schema
from certsynth.domain.column import discretisation
from certsynth.errors import InputError, TooLarge
from certsynth.mechanisms import FullMeasurement, Strategy, Unit, strategy_named
from certsynth.mechanisms.registry import WEIGHT_GROWTHS
from certsynth.planning.cache import load_or_make
from certsynth.planning.noise import best_strategy, blank_measurement, noise_losses
from certsynth.planning.rehearsal import rehearse, rehearsed_loss
from certsynth.planning.subsample import subsample
from certsynth.planning.tables import KINDS, TableKind, kinds
from certsynth.projection.support import fits_full_grid
from certsynth.queries import Marginals
from certsynth.queries.marginals import Subset

RESOLUTIONS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)

MAX_PROGRAM_CELLS, MAX_PARTICLE_CELLS = 12_000, 2_000_000
"""Cells of all tables up to which a resolution is chosen automatically, for linear programs and for particles: more
take minutes."""

FIRST_SPLIT = Fraction(1, 4)
"""Share of the measurement budget that single columns get while designs are compared, if wider tables are measured,
too."""

MAX_REHEARSED_DESIGNS, REHEARSALS_PER_DESIGN = 3, len(KINDS)
"""Designs that are rehearsed, at most, and the made-up tables that each is rehearsed on: one of each kind."""

MAX_COMPARED_ROWS = 12_000
"""Rows of a rehearsal, at most, if its loss is only compared with that of others: few rows add as much to all."""

MAX_REHEARSED_RATIO = 1.3
"""Predicted loss up to which a design is rehearsed, as a multiple of the smallest."""

MAX_FINER_RATIO = 1.03
"""Ratio of predicted losses up to which more groups of values are preferred: shares of two columns are better for them
(California, five columns: errors of 0.017 with 16 groups and 0.023 with 12, at the same loss)."""

MAX_DETAIL_VALUES, DETAIL_GROWTH = 48, Fraction(1, 2)
"""Values of every line up to which measuring all of them is rehearsed with Gaussian noise, and the growth of weights
then: the fit removes much of the noise on small cells, so they get less of the budget than noise alone suggests."""

MIN_MERGED_LABELS = 1_000
"""Labels of a column from which a design is charged for merging them: the charge was tried on 2,000 labels only, and on
Adult (41 countries) it would change the resolution without a gain."""

_SPLIT_DRAWS = 12  # noise draws for comparing splits
_GROWTH_RESOLUTION = 16  # resolution at which the growth of weights is chosen for all


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the expected loss: `least`, plus multiples of powers of the worst loss inside a cell and of the loss
    by noise on the certified tables, plus a multiple of the loss by noise on single columns.
    """

    inside: float
    noise: float
    single: float = 0.0
    least: float = 0.0
    inside_power: float = 1.0
    noise_power: float = 1.0

    def loss(self, inside: float, noise: float, single: float) -> float:
        cells, tables = self.inside * inside**self.inside_power, self.noise * noise**self.noise_power
        return self.least + cells + tables + self.single * single


WORST_CASE = Model(inside=1.0, noise=2.0)
"""Rows at the centres of even cells, fitted to noisy counts: the fit may be as far from the counts as the data are."""

TYPICAL = Model(inside=0.175, noise=0.27, single=0.71, least=0.0014, inside_power=1.37, noise_power=0.84)
"""Particles. The numbers were fitted to the losses of six survey tables (docs/explanation/planning.md)."""


@dataclass(frozen=True, slots=True)
class Design:
    """What a release may measure, with its `predicted` loss, by a model and, if rehearsed, by rehearsals.

    `discretisation` is the worst loss inside a cell of the last layer, `privatisation` the mean loss by its noise.

    Paper: Eq. (15) [expected-loss]
    """

    layers: tuple[LayerSpec, ...]
    split: Fraction
    discretisation: float
    privatisation: float
    predicted: float
    rehearsed: tuple[float, ...] = ()

    @property
    def strategy(self) -> Strategy:
        return self.layers[-1].strategy

    @property
    def resolution(self) -> int | None:
        return self.layers[-1].resolution


@dataclass(frozen=True, slots=True)
class Choice:
    """The best design, and all designs that were compared."""

    best: Design
    designs: tuple[Design, ...]

    @property
    def layers(self) -> tuple[LayerSpec, ...]:
        return self.best.layers


def choose(task: Task, *, memory: int | None = None, progress: Progress = silent) -> Choice:
    """Choose the design with the smallest expected loss. The task's number of rows must be public.

    Choices are cached on disk.
    """
    question = {
        "choice": 13,
        "schema": task.schema.to_toml(),
        "budget": [str(task.settings.measurement_budget.amount), task.settings.measurement_budget.unit],
        "neighbours": task.settings.neighbours,
        "subsets": task.settings.subsets,
        "cells": task.settings.cells(task.settings.sparsity),
        "projection": task.settings.projection,
        "mechanism": task.settings.mechanism,
        "resolution": task.settings.resolution,
        "draws": task.settings.draws,
        "rows": task.rows,
        "memory": memory,
    }
    found = load_or_make(question, lambda: _to_json(_choose(task, memory, progress)))
    try:
        return _from_json(found, task.settings)
    except (InputError, KeyError, TypeError, ValueError, IndexError, ArithmeticError):  # the cache file was changed
        return _choose(task, memory, progress)


def _to_json(choice: Choice) -> dict[str, Any]:
    designs = [
        {
            "mechanism": c.strategy.name,
            "growth": str(c.strategy.growth),
            "resolution": c.resolution,
            "split": str(c.split),
            "discretisation": c.discretisation,
            "privatisation": c.privatisation,
            "predicted": c.predicted,
            "rehearsed": list(c.rehearsed),
        }
        for c in choice.designs
    ]
    return {"best": choice.designs.index(choice.best), "candidates": designs}


def _from_json(found: Mapping[str, Any], settings: Settings) -> Choice:
    designs = []
    for c in found["candidates"]:
        growth, split, resolution = (
            Fraction(c["growth"]),
            Fraction(c["split"]),
            RESOLUTION("resolution", c["resolution"]),
        )
        name, points_only = c["mechanism"], settings.cells(settings.sparsity) == "points"
        growths = WEIGHT_GROWTHS.get(name, (Fraction(0),)) if name in MECHANISMS else ()
        resolutions = [settings.resolution] if settings.resolution else [None] if points_only else RESOLUTIONS
        fits = growth in growths and resolution in resolutions and settings.mechanism in (None, name)
        if split not in SPLITS or not fits:
            raise ValueError("not a design that could be chosen")
        strategy = strategy_named(c["mechanism"], neighbours=settings.neighbours, growth=growth)
        layers = _layers(settings, strategy, resolution, split)
        inside, noise, predicted = (float(c[key]) for key in ("discretisation", "privatisation", "predicted"))
        designs.append(Design(layers, split, inside, noise, predicted, tuple(map(float, c["rehearsed"]))))
    return Choice(designs[found["best"]], tuple(designs))


def first_guess(task: Task) -> Design:
    """The best design by the model alone, without rehearsals."""
    return min(_designs(task, None, silent), key=_predicted)


def _choose(task: Task, memory: int | None, progress: Progress) -> Choice:
    designs = list(_designs(task, memory, progress))
    best = min(designs, key=_predicted)
    if task.settings.cells(task.settings.sparsity) != "groups":
        return Choice(best, tuple(designs))
    split = _best_split(task, best)
    if split != FIRST_SPLIT:
        most = MAX_REHEARSED_RATIO * best.predicted
        close = [c for c in designs if c.predicted <= most]
        again = iter(_with_splits(task, [(c, split) for c in close]))
        designs = [
            next(again)
            if c.predicted <= most
            else replace(c, split=split, layers=_layers(task.settings, c.strategy, c.resolution, split))
            for c in designs
        ]
    detailed = _full_detail(task, split, memory)
    designs = _rehearse(task, sorted(designs, key=_predicted), detailed, progress)
    return Choice(_finest([c for c in designs if c.rehearsed] or designs), tuple(designs))


def _finest(designs: Sequence[Design]) -> Design:
    """The design with the most groups of values among those that are about as good as the best one."""
    most = MAX_FINER_RATIO * min(map(_predicted, designs))
    close = [c for c in designs if c.predicted <= most]
    return min(close, key=lambda c: (-(c.resolution or 0), c.predicted))


def _predicted(design: Design) -> float:
    return design.predicted


def _designs(task: Task, memory: int | None, progress: Progress) -> Iterator[Design]:
    """Designs of all mechanisms, for increasing resolutions as long as more cells may help."""
    names = (task.settings.mechanism,) if task.settings.mechanism else AUTO_MECHANISMS
    if task.settings.cells(task.settings.sparsity) == "points":
        table = Marginals(cells=lattice_points(task.schema, task.settings.resolution), subsets=task.settings.tables)
        for name in names:
            strategy = best_strategy(
                table, [name], task.settings.neighbours, budget=task.settings.measurement_budget, rows=task.rows
            )
            yield predict_design(task, strategy, task.settings.resolution, FIRST_SPLIT)
        return
    progress("comparing mechanisms", 0, None)
    resolutions = _resolutions(task)
    strategies = _best_growths(task, names, resolutions)
    most_cells = MAX_PARTICLE_CELLS if task.settings.projection == "particles" else MAX_PROGRAM_CELLS
    least: list[float] = []
    for done, resolution in enumerate(resolutions):
        marginals = tables_at(task, resolution)
        try:
            check_size(marginals, draws=task.settings.draws, memory=memory)
        except TooLarge:
            if not done:
                raise
            return
        if done and (sum(marginals.sizes()) > most_cells or min(least) < min(least[-2:])):
            return  # finer cells have more noise
        tasks = [(task, strategy, resolution, FIRST_SPLIT) for strategy in strategies]
        work = len(tasks) * max(marginals.sizes()) * 50
        found = run(predict_design, tasks, work=work, phase="comparing mechanisms", progress=silent)
        yield from found
        least.append(min(map(_predicted, found)))
        progress("comparing mechanisms", done + 1, None)


def _model(settings: Settings) -> Model:
    return TYPICAL if settings.cells(settings.sparsity) == "groups" else WORST_CASE


def predict_design(
    task: Task,
    strategy: Strategy,
    resolution: int | None,
    split: Fraction,
    draws: int | None = None,
) -> Design:
    """The design of a mechanism at a resolution, with its loss predicted by the model."""
    layers = _layers(task.settings, strategy, resolution, split)
    few, layers_of_few, _ = subsample(task.schema, layers)
    noise = noise_losses(blank_layers(few, layers_of_few, task.rows), rows=task.rows, draws=draws)
    kind, model = layers[-1].cells, _model(task.settings)
    inside = 0.0
    if resolution is not None and kind != "points":
        inside = max(float(_cell_loss(column, layers[-1], task.rows)) for column in task.schema)
    privatisation = float(noise[-1].mean())
    single = float(noise[0].mean()) if len(layers) > 1 else 0.0
    return Design(layers, split, inside, privatisation, model.loss(inside, privatisation, single))


def _layers(settings: Settings, strategy: Strategy, resolution: int | None, split: Fraction) -> tuple[LayerSpec, ...]:
    """What is measured: the last layer with the strategy at the resolution, those before it in finer cells."""
    budget = settings.measurement_budget
    *before, (tables, kind, share) = settings.layers(split)
    last = LayerSpec(tables, kind, resolution, strategy, budget.share(share))
    plain = strategy_named("identity", neighbours=settings.neighbours)
    layers = []
    for own, cells, part in before:
        finer = None if cells == "points" or resolution is None else 2 * resolution
        layers.append(LayerSpec(own, cells, finer, plain, budget.share(part)))
    return (*layers, last)


def blank_layers(schema: Schema, layers: Sequence[LayerSpec], rows: int) -> list[FullMeasurement]:
    """Measurements of an empty table, in cells like those that the layers will have for `rows` rows."""
    made: list[FullMeasurement] = []
    for layer in layers:
        cells: tuple[Cells, ...] = made[-1].marginals.cells if made else ()
        if layer.cells == "points":
            cells = lattice_points(schema, layer.resolution)
        elif layer.cells == "even":
            assert layer.resolution is not None
            cells = tuple(column.cells(layer.resolution) for column in schema)
        else:
            cells = tuple(
                _even_groups(column, known, layer, rows)
                for column, known in zip(schema, cells or lattice_points(schema, None), strict=True)
            )
        made.append(blank_measurement(weighted_marginals(cells, layer), layer.strategy, layer.budget))
    return made


def tables_at(task: Task, resolution: int) -> Marginals:
    """The marginals of the last layer of a release at some resolution, in cells like those that it will have."""
    plain = strategy_named("identity", neighbours=task.settings.neighbours)
    return blank_layers(task.schema, _layers(task.settings, plain, resolution, FIRST_SPLIT), task.rows)[-1].marginals


def _even_groups(column: Column, known: Cells, layer: LayerSpec, rows: int) -> Groups:
    """Groups of about equally many points, unions of known groups.

    As many on long lines as on others, unlike in a release: the model of losses was fitted to such tables.
    """
    assert isinstance(known, Groups)
    assert layer.resolution is not None
    lattice = known.lattice
    if not len(lattice.places):
        return group_cells(column, known, known, np.ones(lattice.size), max_label_groups(layer, rows))
    starts = column.points().starts
    most = min(layer.resolution, len(starts))
    even = starts[np.arange(most) * len(starts) // most]
    return Groups.of(lattice, np.union1d(even, column.cuts) if isinstance(column, Ordered) else np.unique(even))


def _cell_loss(column: Column, layer: LayerSpec, rows: int) -> Fraction:
    """The largest distance of a value to the position of its cell; 0 in groups of one value.

    Very many labels that are merged lose the mean distance of a label to the one that represents it, which is larger
    the finer the lines are: more labels are merged then. Other labels are taken to lose as much as a line, and so are
    labels with a metric of their own, since those of a group differ about as much as neighbours.
    """
    resolution = layer.resolution
    assert resolution is not None
    if layer.cells != "groups":
        return discretisation(column, column.cells(resolution))
    half_a_cell = Fraction(1, 2 * resolution)
    if isinstance(column, Category):
        labels, lost = len(column.labels), Fraction(0)
        if labels >= MIN_MERGED_LABELS and column.label_metric is None:
            lost = column.weight * max(labels - max_label_groups(layer, rows), 0) / labels
        return max(lost, half_a_cell if labels > resolution else Fraction(0))
    last = column.last_index if isinstance(column, Ordered) else None
    return half_a_cell if last is None or last + 1 > resolution else Fraction(0)


def _resolutions(task: Task) -> Sequence[int]:
    """The resolutions to choose from; if the support is the full grid, those at which it is small enough."""
    if task.settings.resolution is not None:
        return (task.settings.resolution,)
    if task.settings.projection != "full-grid":
        return RESOLUTIONS
    tables = {k: Marginals.even(task.schema, task.settings.tables, resolution=k) for k in RESOLUTIONS}
    return [k for k, marginals in tables.items() if fits_full_grid(marginals)] or RESOLUTIONS[:1]


def _best_growths(task: Task, names: Sequence[str], resolutions: Sequence[int]) -> list[Strategy]:
    """Each mechanism with the growth of weights that minimises the loss by noise at a middle resolution."""
    middle = min(resolutions, key=lambda k: abs(k - _GROWTH_RESOLUTION))
    plain = strategy_named("identity", neighbours=task.settings.neighbours)
    layers = _layers(task.settings, plain, middle, FIRST_SPLIT)
    few, layers_of_few, _ = subsample(task.schema, layers)
    marginals = blank_layers(few, layers_of_few, task.rows)[-1].marginals
    budget = task.settings.measurement_budget.share(Fraction(len(layers_of_few[-1].subsets), len(layers[-1].subsets)))
    return [best_strategy(marginals, [name], task.settings.neighbours, budget=budget, rows=task.rows) for name in names]


def _with_splits(
    task: Task,
    others: Sequence[tuple[Design, Fraction]],
    draws: int | None = None,
) -> list[Design]:
    """Assess designs again, each with another split of the budget."""
    tasks = [(task, c.strategy, c.resolution, split, draws) for c, split in others]
    work = 50 * sum((c.resolution or 1) ** task.settings.sparsity for c, _ in others)
    return run(predict_design, tasks, work=work, phase="comparing mechanisms", progress=silent)


def _best_split(task: Task, best: Design) -> Fraction:
    """The best share of the budget for single columns, by the model."""
    tried = _with_splits(task, [(best, split) for split in SPLITS], _SPLIT_DRAWS)
    return SPLITS[int(np.argmin([c.predicted for c in tried]))]


def _full_detail(task: Task, split: Fraction, memory: int | None) -> list[Design]:
    """The design that measures every value of every line, where that is promising; else none.

    The model does not know that the fit hardly follows noise in small cells, and would never have it rehearsed.
    """
    settings = task.settings
    gaussian = settings.measurement_budget.unit is Unit.RHO
    if settings.sparsity != 2 or settings.resolution or settings.mechanism not in (None, "quad-tree") or not gaussian:
        return []
    lines = [
        column.last_index if isinstance(column, Ordered) else None
        for column in task.schema
        if not isinstance(column, Category)
    ]
    counts = [last + 1 for last in lines if last is not None]
    most = max(counts, default=0)
    resolution = min((k for k in RESOLUTIONS if k >= most), default=None)
    if len(counts) < len(lines) or not 1 < most <= MAX_DETAIL_VALUES or resolution is None:
        return []
    try:
        check_size(tables_at(task, resolution), draws=settings.draws, memory=memory)
    except TooLarge:
        return []
    strategy = strategy_named("quad-tree", neighbours=settings.neighbours, growth=DETAIL_GROWTH)
    return [predict_design(task, strategy, resolution, split)]


def _rehearse(task: Task, designs: Sequence[Design], detailed: Sequence[Design], progress: Progress) -> list[Design]:
    """Rehearse the best of some designs, given best first, and `detailed` ones; returns all with corrected predictions.

    Predictions of the model are multiplied by the median ratio of rehearsed to predicted losses. The model was fitted
    to real tables and the rehearsals use this schema, so a rehearsed design gets the geometric mean of both; a detailed
    one, which the model does not suit, gets the rehearsed loss.
    """
    close = [c for c in designs if c.predicted <= MAX_REHEARSED_RATIO * designs[0].predicted]
    short, others = [*close[:MAX_REHEARSED_DESIGNS], *detailed], designs[len(close[:MAX_REHEARSED_DESIGNS]) :]
    if len(short) == 1:
        return list(designs)
    tasks = [
        (task.schema, task.settings.subsets, each.layers, task.rows, kind, seed)
        for each in short
        for seed, kind in enumerate(kinds(REHEARSALS_PER_DESIGN))
    ]
    # Rehearsing twenty pairs takes as long as starting a process.
    work = len(tasks) * min(task.rows, MAX_COMPARED_ROWS) * len(task.settings.subsets) // 2
    found = run(_rehearsed_loss, tasks, work=work, phase="rehearsing", progress=progress)
    losses = np.reshape(found, (len(short), REHEARSALS_PER_DESIGN))
    least = np.finfo(float).tiny  # a loss may be 0
    means = np.exp(np.log(np.maximum(losses, least)).mean(axis=1))
    promised = np.array([c.predicted for c in short])
    off = float(np.median(means / promised))
    modelled = [None if c in detailed else off * c.predicted for c in short]
    done = [
        replace(c, predicted=float(np.sqrt(mean * (model or mean))), rehearsed=tuple(map(float, each)))
        for c, mean, model, each in zip(short, means, modelled, losses, strict=True)
    ]
    return done + [replace(c, predicted=off * c.predicted) for c in others]


def _rehearsed_loss(
    schema: Schema, subsets: Sequence[Subset], layers: Sequence[LayerSpec], rows: int, kind: TableKind, seed: int
) -> float:
    schema, layers, subsets = subsample(schema, layers, subsets)
    made = rehearse(schema, layers, rows, kind=kind, seed=seed, most=MAX_COMPARED_ROWS)
    return rehearsed_loss(schema, subsets, made)
