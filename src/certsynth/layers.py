"""Step 2 at several resolutions: single columns at full detail first, then several together in cells that follow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.arrays import Floats, Ints
from certsynth.domain import Cells, Groups, Schema
from certsynth.mechanisms import Measurement, Strategy, measure
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.strategy import strategy_named
from certsynth.planning import (
    MECHANISMS,
    PARTICLE_CELLS,
    PROMPT_CELLS,
    RESOLUTIONS,
    TYPICAL_INSIDE,
    WORST_INSIDE,
    best_mechanism,
    choose,
)
from certsynth.projection.margins import monotone
from certsynth.projection.support import fits_full_grid
from certsynth.queries import Marginals
from certsynth.queries.grouping import best_groups
from certsynth.queries.marginals import Subset
from certsynth.settings import CellKind, Settings

Rows = Callable[[], Iterable[Sequence[np.ndarray]]]
"""A fresh look at the cleaned rows, batch by batch."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What is to be measured: tables of `ways` columns, at the cost of `epsilon`.

    `cells`: even ones, `resolution` to the unit length; all points of the columns' lattices; or groups of the points of
    the first layer's lattices, at most `resolution` to a line, chosen by what that layer found.
    """

    ways: int
    cells: CellKind
    resolution: int | None
    strategy: Strategy
    epsilon: Fraction


def plan_layers(schema: Schema, settings: Settings, rows: int, *, memory: int | None = None) -> list[Layer]:
    """The layers of a release, from public knowledge: `rows` must be that."""
    made = []
    for ways, share in settings.layers:
        epsilon = settings.measurement_epsilon * share
        last = ways == settings.sparsity
        mechanism, resolution = (settings.mechanism, settings.resolution) if last else (None, None)
        cells = settings.cells(ways)
        if cells == "points":
            names = (mechanism,) if mechanism else MECHANISMS if last else ("identity",)
            points = Marginals(cells=_points(schema, resolution), subsets=_subsets(schema, 1))
            mechanism = best_mechanism(points, names, settings.neighbours, epsilon=epsilon, rows=rows)
        elif mechanism is None or resolution is None:
            mechanism, resolution = _choice(schema, settings, ways, mechanism, resolution, epsilon, rows, memory)
        strategy = strategy_named(mechanism, neighbours=settings.neighbours)
        made.append(Layer(ways=ways, cells=cells, resolution=resolution, strategy=strategy, epsilon=epsilon))
    return made


def _choice(
    schema: Schema,
    settings: Settings,
    ways: int,
    mechanism: str | None,
    resolution: int | None,
    epsilon: Fraction,
    rows: int,
    memory: int | None,
) -> tuple[str, int]:
    particles, grouped_cells = settings.projection == "particles", settings.cells(ways) == "groups"
    whole = settings.projection == "full-grid"
    fitting = [
        k
        for k in RESOLUTIONS
        if not whole or fits_full_grid(Marginals.all_subsets(schema, sparsity=ways, resolution=k))
    ]
    choice = choose(
        schema,
        sparsity=ways,
        rows=rows,
        epsilon=epsilon,
        neighbours=settings.neighbours,
        mechanisms=(mechanism,) if mechanism else ("identity",) if grouped_cells else MECHANISMS,
        resolutions=(resolution,) if resolution else fitting,
        draws=settings.draws,
        inside=TYPICAL_INSIDE if grouped_cells else WORST_INSIDE,
        most_cells=PARTICLE_CELLS if particles else PROMPT_CELLS,
        memory=memory,
    )
    return choice.mechanism, choice.resolution


def measure_layers(rows: Rows, schema: Schema, layers: Sequence[Layer], *, noise: Noise | None) -> list[Measurement]:
    """Measure one layer after the other. Cells of a layer depend on the noisy counts of those before, and on no row."""
    made: list[Measurement] = []
    for layer in layers:
        marginals = Marginals(
            cells=_cells(schema, layer, made),
            subsets=_subsets(schema, layer.ways),
        )
        counts = marginals.count(_codes(rows(), schema, marginals))
        made.append(measure(counts, layer.strategy, epsilon=layer.epsilon, noise=noise))
    return made


def _codes(batches: Iterable[Sequence[np.ndarray]], schema: Schema, marginals: Marginals) -> Iterable[list[Ints]]:
    for batch in batches:
        yield [column.to_cells(x, cells) for column, x, cells in zip(schema, batch, marginals.cells, strict=True)]


def _cells(schema: Schema, layer: Layer, before: Sequence[Measurement]) -> tuple[Cells, ...]:
    k = layer.resolution
    if layer.cells == "points":
        return _points(schema, k)
    assert k is not None
    if layer.cells == "even":
        return tuple(column.cells(k) for column in schema)
    noisy, _ = before[0].estimate()
    return tuple(
        grouped(points, known, counts, k)
        for points, known, counts in zip(before[0].marginals.cells, before[-1].marginals.cells, noisy, strict=True)
    )


def _subsets(schema: Schema, ways: int) -> tuple[Subset, ...]:
    return tuple(itertools.combinations(range(len(schema)), ways))


def _points(schema: Schema, steps: int | None) -> tuple[Groups, ...]:
    """Every point of the columns' lattices, at full detail or as fine as asked for, as a group of its own."""
    lattices = [column.detail() if steps is None else column.lattice(steps) for column in schema]
    return tuple(Groups.of(lattice, np.arange(len(lattice.places))) for lattice in lattices)


def grouped(points: Cells, known: Cells, counts: Floats, most: int) -> Groups:
    """At most `most` groups on the line, unions of `known` ones, that lose little of the noisy `counts` of `points`."""
    assert isinstance(known, Groups)
    line = len(points.places)
    counts = monotone(counts[:line], float(counts[:line].sum())) if line else counts[:0]
    starts = known.starts
    mass = np.add.reduceat(counts, starts) if line else counts
    return Groups.of(known.lattice, starts[best_groups(known.places, mass, most)] if line else starts)
