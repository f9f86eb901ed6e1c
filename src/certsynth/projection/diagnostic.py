"""How close rows are to the noisy tables, in multiples of the noise; and which pairs of columns look like functions.

Both are computed from noisy integers and emitted rows alone, so anybody can recompute them from a release folder.
docs/explanation/projection.md explains the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.domain import Schema
from certsynth.mechanisms.measure import FullMeasurement, Measurement, as_full_measurements, estimate, simulate_all
from certsynth.queries.marginals import Marginals, Subset

MAX_FURTHEST = 5
"""Tables that a diagnostic names, at most: those that the rows are furthest from."""

MAX_FUNCTIONS = 5
"""Pairs of columns that a diagnostic suggests as functions, at most."""

MAX_SHARE_OFF = 0.02
"""A column looks like a function of another if at most this share of the rows, plus noise, contradicts the best map."""

MIN_SHARE_OFF_CONSTANT = 0.1
MIN_FEWER_OFF = 4
"""The share of the rows, at least, that contradicts the best constant, since a nearly constant column looks like a
function of every other; and how many times as many contradict it as contradict the map."""

MAX_HIDDEN_SHARE = 0.2
"""Share of the rows whose cells may be too small to be told from noise, at most, for a pair to be judged."""

_NOISE_DRAWS = 10


@dataclass(frozen=True, slots=True)
class Misfit:
    """The distance of rows from one noisy table, in multiples of the distance that noise gives the real rows."""

    columns: tuple[str, ...]
    misfit: float


@dataclass(frozen=True, slots=True)
class LikelyFunction:
    """A column that looks like a function of another; `share` is the estimated share of rows that contradict it."""

    source: str
    derived: str
    share: float


@dataclass(frozen=True, slots=True)
class FitDiagnostic:
    """The number of noisy tables of several columns, those that the rows are furthest from, and likely functions."""

    tables: int
    furthest: tuple[Misfit, ...]
    functions: tuple[LikelyFunction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _NoisyTable:
    """Estimated shares of the rows in the cells of one table, and draws of their errors."""

    layer: int
    place: int
    subset: Subset
    shares: Floats
    errors: Floats


def diagnose_fit(
    measurements: Sequence[Measurement], schema: Schema, rows: Sequence[np.ndarray]
) -> FitDiagnostic | None:
    """Compare cleaned rows with all noisy tables of several columns; None if there are none, or not all cells of them.

    Deterministic: the draws that estimate the size of the noise have a fixed seed.
    """
    full = as_full_measurements(measurements)
    tables = [] if full is None else list(_noisy_tables(full))
    if full is None or not tables:
        return None
    found = _misfits(full, tables, schema, rows)
    furthest = sorted(found, key=lambda each: -each.misfit)[:MAX_FURTHEST]
    return FitDiagnostic(len(tables), tuple(furthest), tuple(_likely_functions(full, tables, schema)))


def misfits(measurements: Sequence[FullMeasurement], schema: Schema, rows: Sequence[np.ndarray]) -> list[Misfit]:
    r"""The misfit of every noisy table of several columns, in the order of the measurements:

    .. math:: \|counts(rows)/N - estimate\|_2 / \sqrt{noise^2 + cells/4N^2}

    where `noise` is the root mean square of the norm of the estimate's error. The second term allows for N rows being
    whole: they miss each cell by up to about half a row. The rows that were measured have a misfit of about 1.
    """
    return _misfits(measurements, list(_noisy_tables(measurements)), schema, rows)


def looks_like_function(measurements: Sequence[FullMeasurement], schema: Schema) -> list[LikelyFunction]:
    """Pairs of columns of which one looks like a function of the other, by noisy tables of exactly these two."""
    return _likely_functions(measurements, list(_noisy_tables(measurements)), schema)


def _noisy_tables(measurements: Sequence[FullMeasurement]) -> Iterator[_NoisyTable]:
    """All tables of several columns of two cells or more, with the errors of estimates from all measurements."""
    wanted = [[_shows_dependence(m.marginals, s) for s in m.marginals.subsets] for m in measurements]
    if not any(map(any, wanted)):
        return
    estimates, rows = estimate(measurements)
    noise, _ = simulate_all(measurements, np.random.default_rng(0), _NOISE_DRAWS)
    rows = max(rows, 1.0)  # at least one, so that shares are finite
    for layer, measurement in enumerate(measurements):
        for place, subset in enumerate(measurement.marginals.subsets):
            if wanted[layer][place]:
                yield _NoisyTable(layer, place, subset, estimates[layer][place] / rows, noise[layer][place] / rows)


def _shows_dependence(marginals: Marginals, subset: Subset) -> bool:
    return sum(size > 1 for size in marginals.shape(subset)) > 1


def _misfits(
    measurements: Sequence[FullMeasurement], tables: Sequence[_NoisyTable], schema: Schema, rows: Sequence[np.ndarray]
) -> list[Misfit]:
    count = max(len(rows[0]), 1)
    found = []
    for layer, measurement in enumerate(measurements):
        own = [table for table in tables if table.layer == layer]
        if not own:
            continue
        cells = measurement.marginals.cells
        codes = [column.to_cells(x, c) for column, x, c in zip(schema, rows, cells, strict=True)]
        counts = Marginals(cells=cells, subsets=tuple(table.subset for table in own)).count([codes])
        for table, block in zip(own, counts, strict=True):
            distance = float(np.linalg.norm(block / count - table.shares))
            noise = float(np.mean(np.sum(table.errors**2, axis=-1)))
            size = math.sqrt(noise + len(block) / (2 * count) ** 2)
            found.append(Misfit(tuple(schema.names[j] for j in table.subset), distance / size))
    return found


def _likely_functions(
    measurements: Sequence[FullMeasurement], tables: Sequence[_NoisyTable], schema: Schema
) -> list[LikelyFunction]:
    """The most convincing first. Of two columns that determine each other, one direction is named."""
    best: dict[Subset, LikelyFunction] = {}
    for table in tables:
        if len(table.subset) != 2:
            continue
        shape = measurements[table.layer].marginals.shape(table.subset)
        shares, errors = table.shares.reshape(shape), table.errors.reshape(-1, *shape)
        ways = [
            (share, size, LikelyFunction(schema.names[source], schema.names[derived], share))
            for (source, derived), share, size in (
                (table.subset, _share_off(shares, errors), shape[1]),
                (table.subset[::-1], _share_off(shares.T, errors.transpose(0, 2, 1)), shape[0]),
            )
            if share is not None
        ]
        if ways:
            likely = min(ways, key=lambda way: way[:2])[2]
            known = best.setdefault(table.subset, likely)
            if likely.share < known.share:
                best[table.subset] = likely
    return sorted(best.values(), key=lambda each: each.share)[:MAX_FUNCTIONS]


def _share_off(shares: Floats, errors: Floats) -> float | None:
    """The share of rows that contradict the best map from the first axis to the second; None if it is no such map.

    In each line the largest cell is the map's value, and the others contradict it. Where a line holds no more than
    noise can put into one of its cells, nothing is known: such lines must be few.
    """
    lines = shares.sum(axis=1)
    constant = float(1 - shares.sum(axis=0).max())
    if min(shares.shape) < 2 or constant < MIN_SHARE_OFF_CONSTANT:
        return None
    deceptive = np.mean(np.abs(errors).max(axis=2), axis=0)
    if float(np.minimum(np.maximum(lines, 0), deceptive).sum()) > MAX_HIDDEN_SHARE:
        return None
    chosen = shares.argmax(axis=1)
    share = float(np.clip(lines - shares.max(axis=1), 0, np.maximum(lines, 0)).sum())
    at_map = errors[:, np.arange(len(chosen)), chosen].sum(axis=1)
    noise = math.sqrt(float(np.mean(at_map**2)))
    return share if share <= min(MAX_SHARE_OFF + noise, constant / MIN_FEWER_OFF) else None
