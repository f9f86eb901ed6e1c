"""Step 3 by particles: from measurements at several resolutions to rows at full detail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints, sums
from certsynth.base.progress import Progress, silent
from certsynth.domain import Cells, Schema
from certsynth.domain.cells import coarser
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.measure import FullMeasurement, estimate, simulate_all
from certsynth.projection.emit import multiplicities
from certsynth.projection.margins import nearest_probabilities, project_running_sums
from certsynth.projection.particles import View, count_places, fit, scales
from certsynth.projection.simplex import project_to_simplex
from certsynth.queries.marginals import Marginals

MAX_PARTICLES = 100_000
"""Most particles. More rows than that are copies of particles, each with values of its own inside its cells."""

MAX_PARTICLE_TABLES, MIN_PARTICLES = 100_000_000, 20_000
"""Particles times tables of several columns: beyond, there are fewer particles, but not fewer than that. Noise on so
many tables is hundreds of times what whole particles cannot follow."""

_NOISE_DRAWS = 10  # of the noise, for how large it is: only weights depend on them


@dataclass(frozen=True, slots=True, eq=False)
class _LayerShares:
    """A measurement in shares of the rows, with draws of its noise: all layers agree with each other."""

    marginals: Marginals
    blocks: list[Floats]
    noise: list[Floats]
    even: bool

    @classmethod
    def all(cls, measurements: Sequence[FullMeasurement], rng: np.random.Generator) -> list[_LayerShares]:
        estimates, rows = estimate(measurements)
        noise, _ = simulate_all(measurements, rng, _NOISE_DRAWS)
        rows = max(rows, 1.0)  # a table that seems empty is read as one row, so that shares stay finite
        return [
            cls(m.marginals, [b / rows for b in blocks], [e / rows for e in errors], isinstance(m.strategy, Identity))
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
    """Cleaned columns of `rows` rows whose marginals are close to all measurements.

    The first measurement holds every column, and may be of single ones at full detail. The others are of several
    columns at once, and need not hold all; cells of later ones are unions of cells of earlier ones. `public` rows say
    where to start.
    """
    layers = _LayerShares.all(measurements, rng)
    detailed = max(map(len, layers[0].marginals.subsets)) == 1
    fine = layers[0].marginals.cells
    base = layers[1].marginals.cells if detailed and len(layers) > 1 else fine
    shares = [_column_shares(layers, column) for column in range(len(schema))]
    groups = [coarser(points, cells) for points, cells in zip(fine, base, strict=True)]
    masses = [sums(g, p, c.size) for g, p, c in zip(groups, shares, base, strict=True)]

    count = min(rows, particles or max_particles(sum(len(s) > 1 for layer in layers for s in layer.marginals.subsets)))
    held = [np.repeat(np.arange(len(mass)), multiplicities(mass, count)) for mass in masses]
    known = None if public is None else [c.to_cells(x, g) for c, x, g in zip(schema, public, fine, strict=True)]
    start = _initial_rows(held, known, rng)
    fitted = fit(start, _make_views(layers[int(detailed) :], base), rng, hot=public is None, progress=progress)
    copies = multiplicities(np.full(count, 1 / count), rows)
    codes = rng.permutation(np.repeat(fitted, copies, axis=0), axis=0)

    return [
        _spread_values(column.centres(cells), share, group, code, rng)
        for column, cells, share, group, code in zip(schema, fine, shares, groups, codes.T, strict=True)
    ]


def max_particles(tables: int) -> int:
    """How many particles are fitted to so many tables of several columns, at most.

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
        alone = np.maximum(np.arange(fine.size) - max(len(fine.places), 1) + 1, 0)  # the line is one, points are alone
        return nearest_probabilities(values, alone, project_to_simplex if first.even else project_running_sums)
    return nearest_probabilities(values, coarser(fine, layers[1].marginals.cells[column]))


def _make_views(layers: Sequence[_LayerShares], base: Sequence[Cells]) -> list[View]:
    """Every marginal at every scale. Each is worth as much as its noise is small."""
    views = []
    for layer in layers:
        marginals = layer.marginals
        for subset, block, noise in zip(marginals.subsets, layer.blocks, layer.noise, strict=True):
            here = [coarser(base[j], marginals.cells[j]) for j in subset]
            for way in scales(marginals.of(subset)):
                shape = tuple(count_places(codes) for codes in way)
                index = np.ravel_multi_index(np.meshgrid(*way, indexing="ij"), shape).ravel()
                target = sums(index, block, math.prod(shape))
                errors = sums(index, noise, len(target))
                views.append(
                    View(
                        columns=subset,
                        codes=tuple(codes[group] for codes, group in zip(way, here, strict=True)),
                        target=target,
                        noise=float(np.sqrt(np.mean([error @ error for error in errors]))),
                    )
                )
    return [view for view in views if len(view.columns) > 1]


def _initial_rows(held: Sequence[Ints], public: Sequence[Ints] | None, rng: np.random.Generator) -> Ints:
    """Rows that hold in each column what they should, in random order; or, given public rows, in the order of those.

    With public rows the one with the smallest value in a column gets the smallest value to be held, and so on: what
    depends on what is taken from them, and how often a value occurs is not.
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
    points: np.ndarray, shares: Floats, groups: Ints, codes: Ints, rng: np.random.Generator
) -> np.ndarray:
    """Each row a value of its cell, as often as the column's own distribution says, independently of other columns."""
    emitted = np.empty(len(codes), dtype=points.dtype)
    shuffled = rng.permutation(len(codes))
    by_cell = shuffled[np.argsort(codes[shuffled], kind="stable")]
    for members in np.split(by_cell, np.flatnonzero(np.diff(codes[by_cell])) + 1):
        inside = np.flatnonzero(groups == codes[members[0]])
        weights = shares[inside]
        weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(inside), 1 / len(inside))
        emitted[members] = np.repeat(points[inside], multiplicities(weights, len(members)))
    return emitted
