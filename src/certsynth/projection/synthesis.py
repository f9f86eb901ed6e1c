"""Step 3 by particles: from measurements at several resolutions to rows at full detail."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certsynth.arrays import Floats, Ints, sums
from certsynth.domain import Cells, Groups, Schema
from certsynth.mechanisms.measure import Measurement
from certsynth.mechanisms.strategy import Identity
from certsynth.progress import Progress, silent
from certsynth.projection.emit import multiplicities
from certsynth.projection.margins import improved, monotone, nonnegative, onto_simplex
from certsynth.projection.particles import View, fit, places, scales
from certsynth.queries.marginals import Marginals

PARTICLES = 100_000
"""Most particles. More rows than that are copies of particles, each with values of its own inside its cells."""

_DRAWS = 10  # of the noise, for how large it is: only weights depend on them


class _Layer:
    """A measurement in shares of the rows, with the size of its noise."""

    def __init__(self, measurement: Measurement, rng: np.random.Generator) -> None:
        blocks, rows = measurement.estimate()
        noise, _ = measurement.simulate(rng, _DRAWS)
        rows = max(rows, 1.0)  # a table that seems empty is read as one row, so that shares stay finite
        self.marginals: Marginals = measurement.marginals
        self.blocks = [block / rows for block in blocks]
        self.noise = [block / rows for block in noise]
        self.even = isinstance(measurement.strategy, Identity)

    def margin(self, column: int) -> tuple[Floats, float]:
        """Shares of one column's cells, the mean over all marginals that hold it, and the variance of their errors."""
        found = [
            (_sums(block, self.marginals, subset, column), _sums(noise, self.marginals, subset, column))
            for subset, block, noise in zip(self.marginals.subsets, self.blocks, self.noise, strict=True)
            if column in subset
        ]
        shares, errors = (np.mean(both, axis=0) for both in zip(*found, strict=True))
        return shares, float(np.mean(errors**2))


def _sums(block: Floats, marginals: Marginals, subset: tuple[int, ...], column: int) -> Floats:
    lead = block.shape[:-1]
    others = tuple(len(lead) + axis for axis, j in enumerate(subset) if j != column)
    return block.reshape(*lead, *marginals.shape(subset)).sum(axis=others)


def synthesise(
    measurements: Sequence[Measurement],
    schema: Schema,
    rows: int,
    rng: np.random.Generator,
    *,
    public: Sequence[np.ndarray] | None = None,
    progress: Progress = silent,
) -> list[np.ndarray]:
    """Cleaned columns of `rows` rows whose marginals are close to all measurements.

    The first measurement may be of single columns, at full detail. The others are of several columns at once; cells of
    later ones are unions of cells of earlier ones. `public` rows say where to start.
    """
    layers = [_Layer(measurement, rng) for measurement in measurements]
    detailed = len(layers[0].marginals.subsets[0]) == 1
    fine = layers[0].marginals.cells
    base = layers[1].marginals.cells if detailed and len(layers) > 1 else fine
    shares = [_shares(layers, column) for column in range(len(schema))]
    groups = [_groups(points, cells) for points, cells in zip(fine, base, strict=True)]
    masses = [sums(g, p, c.size) for g, p, c in zip(groups, shares, base, strict=True)]

    count = min(rows, PARTICLES)
    held = [np.repeat(np.arange(len(mass)), multiplicities(mass, count)) for mass in masses]
    known = None if public is None else [c.to_cells(x, g) for c, x, g in zip(schema, public, fine, strict=True)]
    start = _start(held, known, rng)
    particles = fit(start, _views(layers[int(detailed) :], base), rng, hot=public is None, progress=progress)
    copies = multiplicities(np.full(count, 1 / count), rows)
    codes = rng.permutation(np.repeat(particles, copies, axis=0), axis=0)

    return [
        _values(column.centres(cells), share, group, code, rng)
        for column, cells, share, group, code in zip(schema, fine, shares, groups, codes.T, strict=True)
    ]


def _shares(layers: Sequence[_Layer], column: int) -> Floats:
    """The distribution of one column over the first layer's cells, from all layers."""
    fine = layers[0].marginals.cells[column]
    values, variance = layers[0].margin(column)
    if len(layers) == 1:
        alone = np.maximum(np.arange(fine.size) - max(len(fine.places), 1) + 1, 0)  # the line is one, points are alone
        return nonnegative(values, alone, onto_simplex if layers[0].even else monotone)
    variances = np.full(len(values), variance)
    for layer in layers[1:]:
        groups = _groups(fine, layer.marginals.cells[column])
        values, variances = improved(values, variances, groups, *layer.margin(column))
    return nonnegative(values, _groups(fine, layers[1].marginals.cells[column]))


def _groups(fine: Cells, coarse: Cells) -> Ints:
    """Code of the coarse cell that holds each fine one."""
    if fine is coarse:
        return np.arange(fine.size)
    assert isinstance(fine, Groups)
    assert isinstance(coarse, Groups)
    apart = len(fine.lattice.places) + np.arange(fine.apart)
    return coarse.code(np.concatenate([fine.starts, apart]))


def _views(layers: Sequence[_Layer], base: Sequence[Cells]) -> list[View]:
    """Every marginal at every scale. Each is worth as much as its noise is small."""
    views = []
    for layer in layers:
        marginals = layer.marginals
        for subset, block, noise in zip(marginals.subsets, layer.blocks, layer.noise, strict=True):
            here = [_groups(base[j], marginals.cells[j]) for j in subset]
            for way in scales(marginals.of(subset)):
                shape = tuple(places(codes) for codes in way)
                index = np.ravel_multi_index(np.meshgrid(*way, indexing="ij"), shape).ravel()
                target = sums(index, block, math.prod(shape))
                errors = [sums(index, draw, len(target)) for draw in noise]
                views.append(
                    View(
                        columns=subset,
                        codes=tuple(codes[group] for codes, group in zip(way, here, strict=True)),
                        target=target,
                        noise=float(np.sqrt(np.mean([error @ error for error in errors]))),
                    )
                )
    return [view for view in views if len(view.columns) > 1]


def _start(held: Sequence[Ints], public: Sequence[Ints] | None, rng: np.random.Generator) -> Ints:
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


def _values(points: np.ndarray, shares: Floats, groups: Ints, codes: Ints, rng: np.random.Generator) -> np.ndarray:
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
