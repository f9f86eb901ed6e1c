"""Step 2 in layers: measure single columns at full detail, then tables of several columns in cells based on these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certsynth.algorithm.settings import CellKind
from certsynth.base.arrays import Floats, Ints, sum_by_group
from certsynth.domain import Category, Cells, Column, Groups, Ordered, Schema
from certsynth.mechanisms import Budget, FullMeasurement, Neighbours, Sensitivity, Strategy, measure
from certsynth.mechanisms.samplers import Noise, calibrated_scale, standard_deviation
from certsynth.projection.margins import project_running_sums
from certsynth.queries import Marginals
from certsynth.queries.grouping import best_groups, best_representatives, most_groups
from certsynth.queries.marginals import CellCounts, Subset
from certsynth.queries.tally import Rows

NOISE_COST_POWER, MAX_TABLE_WEIGHT = 0.7, 64
"""A table's weight is (cost / largest cost) ** NOISE_COST_POWER, rounded to 1/MAX_TABLE_WEIGHT: tables on which noise
does more harm get more budget."""

VALUE_WEIGHT = 1 / 3
"""Weight of the counts of single values of a column, relative to that of its runs of values."""

MIN_ROWS_PER_DEVIATION = 0.35
"""Mean number of rows in a cell of a table of labels and a line, at least, in standard deviations of the noise: this
limits the number of label groups."""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer of measurements: tables of these subsets of columns, at the cost of `budget`.

    `cells` are even ones, `resolution` to the unit length; all points of the columns' lattices; or groups of the first
    layer's points, chosen by its noisy counts of single columns: at most `resolution` groups to a line, or twice that
    if it is long, and at most `label_groups` of labels, by default as many as noise allows. `weights` of the tables are
    those of `Marginals`; by default they grow with a power of the cost of noise on each table.
    """

    subsets: tuple[Subset, ...]
    cells: CellKind
    resolution: int | None
    strategy: Strategy
    budget: Budget
    weights: tuple[int, ...] = ()
    label_groups: int | None = None
    noise_cost_power: float = NOISE_COST_POWER

    @property
    def ways(self) -> int:
        """Number of columns of the widest table."""
        return max(map(len, self.subsets))


def measure_layers(
    rows: Rows,
    schema: Schema,
    layers: Sequence[LayerSpec],
    *,
    noise: Noise | None,
    made: Sequence[FullMeasurement] = (),
) -> list[FullMeasurement]:
    """Measure one layer after the other, after those that are `made` already; returns all.

    Cells of a layer depend on the noisy counts of earlier ones, not on rows.
    """
    made = list(made)
    for layer in layers[len(made) :]:
        marginals = weighted_marginals(_cells(schema, layer, made), layer)
        if (values := values_below(schema, layer)) is None:
            counts = rows(CellCounts(schema, marginals))
            made.append(measure(counts, layer.strategy, budget=layer.budget, noise=noise))
            continue
        marginals, values = value_weights(marginals, values, layer)
        finest = rows(CellCounts(schema, Marginals(cells=values.cells, subsets=marginals.subsets)))
        counts, below = finest.merged(marginals), finest.part(values)
        made.append(measure(counts, layer.strategy, budget=layer.budget, noise=noise, values=below))
    return made


def values_below(schema: Schema, layer: LayerSpec) -> Marginals | None:
    """The single columns of a layer that are counted value by value as well, because their cells are runs of values.

    None if there are none. Cells of other columns are those of the layer.
    """
    if layer.ways > 1 or layer.cells != "points" or layer.resolution is not None:
        return None
    found = [column.values_below_points() for column in schema]
    cells = tuple(own or column.points() for column, own in zip(schema, found, strict=True))
    subsets = tuple(subset for subset in layer.subsets if found[subset[0]] is not None)
    return Marginals(cells=cells, subsets=subsets) if subsets else None


def value_weights(marginals: Marginals, values: Marginals, layer: LayerSpec) -> tuple[Marginals, Marginals]:
    """Weights for counts of values, relative to those of the runs of the same column, which keep theirs.

    All columns of the layer pay for the counts of values by a little more noise; if their own column paid alone, its
    runs would get half as much noise again.
    """
    whole = marginals.weights or (MAX_TABLE_WEIGHT,) * len(marginals.subsets)
    by_subset = dict(zip(marginals.subsets, whole, strict=True))
    scale = layer.strategy.total_weight  # that of cells, where levels have weights
    of_values = tuple(scale * max(1, round(VALUE_WEIGHT * by_subset[subset])) for subset in values.subsets)
    return replace(marginals, weights=whole), replace(values, weights=of_values)


def _cells(schema: Schema, layer: LayerSpec, before: Sequence[FullMeasurement]) -> tuple[Cells, ...]:
    k = layer.resolution
    if layer.cells == "points":
        return lattice_points(schema, k)
    assert k is not None
    if layer.cells == "even":
        return tuple(column.cells(k) for column in schema)
    noisy, rows = before[0].estimate()
    labels = layer.label_groups or max_label_groups(layer, rows)
    return tuple(
        group_cells(column, points, known, counts, most_groups(column, line=k, labels=labels))
        for column, points, known, counts in zip(
            schema, before[0].marginals.cells, before[-1].marginals.cells, noisy, strict=True
        )
    )


def max_label_groups(layer: LayerSpec, rows: float) -> int:
    """The most groups that the labels of a column are merged into; `rows` must be public.

    A cell of a table with a line then holds MIN_ROWS_PER_DEVIATION standard deviations of the noise, on average; there
    are no fewer groups than on a line. Labels are equally far from each other, so merging them loses more than merging
    neighbours on a line.
    """
    assert layer.resolution is not None
    moves = len(layer.subsets) * (2 if layer.strategy.neighbours is Neighbours.REPLACE_ONE else 1)
    noise = standard_deviation(calibrated_scale(Sensitivity(moves, moves), layer.budget), layer.budget.unit)
    return max(layer.resolution, int(max(rows, 0.0) / (MIN_ROWS_PER_DEVIATION * noise * layer.resolution)))


def weighted_marginals(cells: tuple[Cells, ...], layer: LayerSpec) -> Marginals:
    """The marginals of a layer, with weights that grow with the cost of noise on each table."""
    if layer.weights:
        return Marginals(cells=cells, subsets=layer.subsets, weights=layer.weights)
    if not layer.strategy.shares_total:  # the paper's mechanism weights all tables equally
        return Marginals(cells=cells, subsets=layer.subsets)
    costs = noise_costs(cells, layer.subsets)
    found = np.rint(MAX_TABLE_WEIGHT * (costs / costs.max()) ** layer.noise_cost_power)
    weights = np.maximum(found, 1).astype(int).tolist()
    return Marginals(cells=cells, subsets=layer.subsets, weights=tuple(weights) if len(set(weights)) > 1 else ())


def noise_costs(cells: Sequence[Cells], subsets: Sequence[Subset]) -> Floats:
    """Approximate loss caused by noise of one scale on all cells: M·√m for M labels with a line of m cells each.

    On a line, noise of neighbouring cells averages out; between labels it does not.
    """
    labels = [1.0 if len(c.places) else c.off_line for c in cells]
    lines = [len(c.places) + c.off_line if len(c.places) else 1.0 for c in cells]
    far = [float(c.weight) for c in cells]
    return np.array(
        [
            max(far[j] for j in s) * math.prod(labels[j] for j in s) * math.sqrt(math.prod(lines[j] for j in s))
            for s in subsets
        ]
    )


def lattice_points(schema: Schema, steps: int | None) -> tuple[Groups, ...]:
    """The finest cells: at full detail, or lattices with `steps` points to the unit length."""
    if steps is None:
        return tuple(column.points() for column in schema)
    return tuple(Groups.of(column.lattice(steps), None) for column in schema)


def group_cells(column: Column, points: Cells, known: Cells, counts: Floats, most: int) -> Groups:
    """Merge `known` groups into at most `most`, on the line or of labels, so that little detail is lost.

    `counts` are the noisy counts of `points`. Groups begin wherever the schema says so (`Ordered.cuts`): there are more
    than `most` if it names that many borders.
    """
    assert isinstance(points, Groups)
    assert isinstance(known, Groups)
    line, starts = len(points.places), known.starts
    if line:
        mass = np.add.reduceat(
            project_running_sums(counts[:line], float(counts[:line].sum())), np.searchsorted(points.starts, starts)
        )
        cuts = column.cuts if isinstance(column, Ordered) else np.empty(0, np.int64)
        starts = starts[best_groups(known.places, mass, most, begins=np.isin(starts, cuts))]
    if not isinstance(column, Category):
        return Groups.of(known.lattice, starts, known.group_of_label, known.representatives)
    labels = int(np.searchsorted(known.representatives, len(column.values if column.label_metric else column.labels)))
    together = representatives_of_labels(
        known, sum_by_group(known.group_of_label, counts[line:], known.off_line)[:labels], most
    )
    chosen = np.unique(together)
    number = np.append(np.searchsorted(chosen, together), len(chosen) + np.arange(known.off_line - labels))
    return Groups.of(
        known.lattice,
        starts,
        number[known.group_of_label],
        known.representatives[np.append(chosen, np.arange(labels, known.off_line))],
    )


def representatives_of_labels(known: Groups, mass: Floats, most: int) -> Ints:
    """For each group of labels, the group that represents it after merging to at most `most`.

    Labels with a metric are merged with near ones, others in runs in the order of the schema, which often lists similar
    labels next to each other.
    """
    count = len(mass)
    if count <= most:
        return np.arange(count)
    if (metric := known.label_metric) is not None:
        chosen = best_representatives(metric.distances[:count, :count], mass, most)
        return chosen[np.argmin(metric.distances[:count, chosen], axis=1)]
    starts = best_groups(np.arange(count), mass, most)
    runs = np.split(np.arange(count), starts[1:])
    return np.concatenate([np.full(len(run), run[np.argmax(mass[run])]) for run in runs])
