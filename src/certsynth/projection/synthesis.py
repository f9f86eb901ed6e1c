"""Step 3 by particles: turn measurements at several resolutions into rows at full detail."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certsynth.base.arrays import Floats, Ints, sum_by_group
from certsynth.base.progress import Progress, silent
from certsynth.domain import Cells, Column, Schema
from certsynth.domain.cells import coarse_codes, has_runs_of
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.measure import FullMeasurement, estimate, simulate_all
from certsynth.projection.emit import multiplicities, running_multiplicities
from certsynth.projection.group_masses import MAX_GROUPS, NoisyShares, nearest_masses
from certsynth.projection.margins import nearest_probabilities, project_running_sums, within_groups
from certsynth.projection.particles import View, count_places, fit, mend, scales
from certsynth.projection.relevance import Scale, relevances
from certsynth.projection.shared_dependence import MAX_CELLS, NoisyTable, contrast_levels, sharpen
from certsynth.projection.simplex import project_to_simplex
from certsynth.projection.single_values import shares_of_values
from certsynth.queries.fine import finer_columns
from certsynth.queries.marginals import Marginals

MAX_PARTICLES = 100_000
"""Particles fitted, at most. Further rows are copies of particles that draw their own values inside their cells."""

MAX_PARTICLE_TABLES, MIN_PARTICLES = 100_000_000, 20_000
"""Particles × tables of several columns, at most, as long as MIN_PARTICLES remain. With so many tables the noise is
hundreds of times the error of rounding to whole particles, so fewer particles fit as well."""

_NOISE_DRAWS = 10  # noise draws that estimate each view's noise level, on which only weights depend


@dataclass(frozen=True, slots=True, eq=False)
class _LayerShares:
    """Estimates of one measurement, consistent with those of all others, and noise draws, as shares of the rows."""

    marginals: Marginals
    blocks: list[Floats]
    noise: list[Floats]
    even: bool
    rows: float

    @classmethod
    def all(cls, measurements: Sequence[FullMeasurement], rng: np.random.Generator) -> list[_LayerShares]:
        estimates, rows = estimate(measurements)
        noise, _ = simulate_all(measurements, rng, _NOISE_DRAWS)
        rows = max(rows, 1.0)  # at least one, so that shares are finite
        return [
            cls(
                marginals=m.marginals,
                blocks=[b / rows for b in blocks],
                noise=[e / rows for e in errors],
                even=isinstance(m.strategy, Identity),
                rows=rows,
            )
            for m, blocks, errors in zip(measurements, estimates, noise, strict=True)
        ]


def synthesise(
    measurements: Sequence[FullMeasurement],
    schema: Schema,
    rows: int,
    rng: np.random.Generator,
    *,
    public: Sequence[np.ndarray] | None = None,
    particles: int | None = None,
    progress: Progress = silent,
) -> list[np.ndarray]:
    """Make `rows` rows, as cleaned columns, whose marginals are close to all measurements.

    The first measurement covers every column and may measure single columns at full detail. The others measure tables
    of several columns and need not cover all; cells of later ones are unions of cells of earlier ones. With `public`
    rows, the fit starts from their dependence between columns.
    """
    layers = _LayerShares.all(measurements, rng)
    detailed = max(map(len, layers[0].marginals.subsets)) == 1
    fine = layers[0].marginals.cells
    base = layers[1].marginals.cells if detailed and len(layers) > 1 else fine
    shares = [_column_shares(layers, column) for column in range(len(schema))]
    if detailed and len(layers) > 1:
        shares = _with_nearest_masses(shares, measurements, layers, rng)
    groups = [coarse_codes(points, cells) for points, cells in zip(fine, base, strict=True)]
    masses = [sum_by_group(g, p, c.size) for g, p, c in zip(groups, shares, base, strict=True)]

    count = min(rows, particles or max_particles(sum(len(s) > 1 for layer in layers for s in layer.marginals.subsets)))
    held = [np.repeat(np.arange(len(mass)), multiplicities(mass, count)) for mass in masses]
    known = None if public is None else [c.to_cells(x, g) for c, x, g in zip(schema, public, fine, strict=True)]
    start = _initial_rows(held, known, rng)
    layers = layers[int(detailed) :]
    measured = _make_views(layers, base, masses)
    fitted = fit(start, measured, rng, progress=progress)
    fitted = fit(fitted, _make_views(_sharpen(layers, base, masses, fitted, rng), base, masses), rng, progress=progress)
    fitted = mend(fitted, measured, rng, progress=progress)
    copies = multiplicities(np.full(count, 1 / count), rows)
    codes = rng.permutation(np.repeat(fitted, copies, axis=0), axis=0)

    finer = finer_columns(schema)
    return [
        _emit_values(column, measurements[0], j, share, groups[j], code, rng, evenly=column.name in finer)
        for j, (column, share, code) in enumerate(zip(schema, shares, codes.T, strict=True))
    ]


def _emit_values(
    column: Column,
    first: FullMeasurement,
    position: int,
    shares: Floats,
    groups: Ints,
    codes: Ints,
    rng: np.random.Generator,
    *,
    evenly: bool,
) -> np.ndarray:
    """Values of a column for rows in these groups; `shares` and `groups` are those of the first measurement's cells.

    If these cells are runs of values, rows are first divided among runs, and then among the values of each run.
    """
    cells, values = first.marginals.cells[position], column.values_below_points()
    if values is None or not has_runs_of(cells, values):
        return _spread_values(column.centres(cells), shares, groups, codes, rng)
    runs = _spread_values(np.arange(cells.size), shares, groups, codes, rng)
    run_of_value = coarse_codes(values, cells)
    below = shares_of_values(shares, run_of_value, first, position, evenly=evenly)
    return _spread_values(column.centres(values), below, run_of_value, runs, rng, on_line=True)


def max_particles(tables: int) -> int:
    """The most particles to fit, given the number of tables of several columns.

    >>> max_particles(45), max_particles(1225), max_particles(4950)
    (100000, 81632, 20202)
    """
    return min(MAX_PARTICLES, max(MIN_PARTICLES, MAX_PARTICLE_TABLES // max(tables, 1)))


def _column_shares(layers: Sequence[_LayerShares], column: int) -> Floats:
    """The distribution of one column over the first layer's cells."""
    first = layers[0]
    fine, values = first.marginals.cells[column], first.marginals.marginal_on(first.blocks, (column,))
    assert values is not None  # every column is in some table of the first layer
    if len(layers) == 1:
        groups = np.maximum(np.arange(fine.size) - max(len(fine.places), 1) + 1, 0)  # the line is one group
        return nearest_probabilities(values, groups, project_to_simplex if first.even else project_running_sums)
    return nearest_probabilities(values, coarse_codes(fine, layers[1].marginals.cells[column]))


def _with_nearest_masses(
    shares: Sequence[Floats],
    measurements: Sequence[FullMeasurement],
    layers: Sequence[_LayerShares],
    rng: np.random.Generator,
) -> list[Floats]:
    """Distributions of the columns over the first layer's cells, with groups nearest to what the layers measured.

    The nearest non-negative shares are found with all layers together. If they were made non-negative one by one, empty
    tails would keep noise that the sums of other tables contradict.
    """
    rows, (first, *others) = layers[0].rows, measurements
    (points, _), *estimates = (m.estimate() for m in measurements)
    (errors, _), *draws = (m.simulate(rng, _NOISE_DRAWS) for m in measurements)
    base = others[0].marginals.cells
    found = list(shares)
    for j, cells in enumerate(base):
        if cells.size > MAX_GROUPS:
            continue
        group = coarse_codes(first.marginals.cells[j], cells)
        own, error = (first.marginals.marginal_on(blocks, (j,)) for blocks in (points, errors))
        assert own is not None
        assert error is not None
        sizes = np.bincount(group, minlength=cells.size)
        seen = []
        for m, (blocks, _), (noise, _) in zip(others, estimates, draws, strict=True):
            values, off = (m.marginals.marginal_on(each, (j,)) for each in (blocks, noise))
            if values is not None and off is not None:
                seen.append(NoisyShares(values / rows, off / rows, coarse_codes(cells, m.marginals.cells[j])))
        deviations = np.sqrt(sizes * np.mean(error**2)) / rows
        masses = nearest_masses(sum_by_group(group, own, len(sizes)) / rows, deviations, seen)
        consistent = layers[0].marginals.marginal_on(layers[0].blocks, (j,))
        assert consistent is not None
        if masses is not None:
            found[j] = within_groups(consistent, group, masses)
    return found


def _make_views(layers: Sequence[_LayerShares], base: Sequence[Cells], masses: Sequence[Floats]) -> list[View]:
    """Views of every marginal of several columns at every scale, with the noise level and the relevance of each.

    `masses` are the shares of each column in the cells of `base`.
    """
    views = []
    for layer in layers:
        marginals = layer.marginals
        merged = [coarse_codes(fine, cells) for fine, cells in zip(base, marginals.cells, strict=True)]
        for subset, block, noise in zip(marginals.subsets, layer.blocks, layer.noise, strict=True):
            if len(subset) == 1:
                continue
            shares = [sum_by_group(merged[j], masses[j], marginals.cells[j].size) for j in subset]
            ways = scales(marginals.of(subset))
            merges = [_merge_table(way, noise) for way in ways]
            found = relevances(block, functools.reduce(np.multiply.outer, shares).ravel(), merges)
            views += [
                View(
                    columns=subset,
                    codes=tuple(codes[merged[j]] for codes, j in zip(way, subset, strict=True)),
                    target=sum_by_group(scale.index, block, scale.places),
                    noise=scale.noise,
                    relevance=relevance,
                )
                for way, scale, relevance in zip(ways, merges, found, strict=True)
            ]
    return views


def _sharpen(
    layers: Sequence[_LayerShares],
    base: Sequence[Cells],
    masses: Sequence[Floats],
    rows: Ints,
    rng: np.random.Generator,
) -> list[_LayerShares]:
    """The layers with less noise in tables of two columns, given rows that were fitted to all of them."""
    tables, places = [], []
    for n, layer in enumerate(layers):
        cells = layer.marginals.cells
        groups = [coarse_codes(fine, own) for fine, own in zip(base, cells, strict=True)]
        shares = [sum_by_group(g, mass, own.size) for g, mass, own in zip(groups, masses, cells, strict=True)]
        levels = [contrast_levels(own.size, on_line=bool(len(own.places))) for own in cells]
        for b, subset in enumerate(layer.marginals.subsets):
            if len(subset) != 2 or max(base[j].size for j in subset) > MAX_CELLS:
                continue
            i, j = subset
            tables.append(
                NoisyTable(
                    columns=(i, j),
                    groups=(groups[i], groups[j]),
                    shares=(shares[i], shares[j]),
                    values=layer.blocks[b],
                    errors=layer.noise[b],
                    levels=None if layer.even else (levels[i], levels[j]),
                )
            )
            places.append((n, b))
    found = [replace(layer, blocks=list(layer.blocks), noise=list(layer.noise)) for layer in layers]
    for (n, b), (values, errors) in zip(places, sharpen(tables, rows, rng), strict=True):
        found[n].blocks[b], found[n].noise[b] = values, errors
    return found


def _merge_table(way: Sequence[Ints], noise: Floats) -> Scale:
    """A table whose columns are merged by these codes, with the noise that draws of its error suggest."""
    shape = tuple(count_places(codes) for codes in way)
    index, places = np.ravel_multi_index(np.meshgrid(*way, indexing="ij"), shape).ravel(), math.prod(shape)
    errors = sum_by_group(index, noise, places)
    return Scale(index, places, float(np.sqrt(np.mean([error @ error for error in errors]))))


def _initial_rows(held: Sequence[Ints], public: Sequence[Ints] | None, rng: np.random.Generator) -> Ints:
    """Rows with the required values of each column in random order or, given public rows, in their rank order.

    In each column the public row with the smallest value gets the smallest required value, and so on: the dependence
    between columns comes from the public rows, the distribution of each column does not.
    """
    if public is None:
        return np.column_stack([rng.permutation(values) for values in held])
    count = len(held[0])
    chosen = rng.permutation(np.resize(rng.permutation(len(public[0])), count))
    start = np.empty((count, len(held)), dtype=np.int64)
    for j, (values, codes) in enumerate(zip(held, public, strict=True)):
        start[np.lexsort((rng.random(count), codes[chosen])), j] = values
    return start


def _spread_values(
    points: np.ndarray,
    shares: Floats,
    groups: Ints,
    codes: Ints,
    rng: np.random.Generator,
    *,
    on_line: bool = False,
) -> np.ndarray:
    """Give each row a value of its cell: in proportion to the column's distribution, independently of other columns.

    `on_line`: running sums of rows, rather than rows of each value, are rounded, as there may be more values than rows.
    """
    rounded = running_multiplicities if on_line else multiplicities
    emitted = np.empty(len(codes), dtype=points.dtype)
    shuffled = rng.permutation(len(codes))
    by_cell = shuffled[np.argsort(codes[shuffled], kind="stable")]
    for members in np.split(by_cell, np.flatnonzero(np.diff(codes[by_cell])) + 1):
        inside = np.flatnonzero(groups == codes[members[0]])
        weights = shares[inside]
        weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(inside), 1 / len(inside))
        emitted[members] = np.repeat(points[inside], rounded(weights, len(members)))
    return emitted
