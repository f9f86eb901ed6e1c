"""Ideas that were tried for the default release, side by side: true losses, with the same seeds for all.

    python benchmarks/ideas.py                    all ideas
    python benchmarks/ideas.py moves quad_tree    some of them, beside the default

An idea makes rows from a table and a seed; most are the package with one part replaced. Noise has a seed here, so that
ideas which measure the same tables see the same noise: such rows protect nobody. "max" and "mean" are those of the
upper true loss over all pairs, as `evaluate` has them on its own lattice, both as means over the seeds; "÷" is what
they are over those of the default, ± the standard error that pairs of runs with the same seed suggest.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from numba import njit
from scipy.optimize import nnls

from certsynth import Schema, evaluate
from certsynth.algorithm import layers
from certsynth.algorithm.declaration import checked
from certsynth.algorithm.layers import LayerSpec, measure_layers
from certsynth.algorithm.method import checked_settings
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.task import Task
from certsynth.artefact.table import decoded_table, write_table
from certsynth.base import parallel
from certsynth.mechanisms import Budget, FullMeasurement, Neighbours, Sensitivity, strategy_named
from certsynth.mechanisms.measure import estimate, unit_variances
from certsynth.mechanisms.samplers import NoisyIntegers, calibrated_scale, simulate
from certsynth.planning.choice import choose
from certsynth.projection import particles, synthesis
from certsynth.projection.emit import multiplicities
from certsynth.projection.particles import View
from certsynth.queries.tally import in_memory
from certsynth.sources import cleaned, open_source
from run import TABLES
from survey import ALABAMA

SEEDS = range(4)
SMALL, ALL, CALIFORNIA = tuple(TABLES)[:2], tuple(TABLES), ("California, 5", "California, 11")
MEASURE = sys.modules["certsynth.mechanisms.measure"]  # the package has a function of that name, too

Rows = list[np.ndarray]


@dataclass(frozen=True)
class Data:
    """A private table."""

    path: Path
    schema: Schema

    @cached_property
    def rows(self) -> Rows:
        return cleaned_rows(self.path, self.schema)


def cleaned_rows(path: Path, schema: Schema) -> Rows:
    return [np.concatenate(parts) for parts in zip(*cleaned(open_source(path), schema), strict=True)]


class SeededNoise:
    """Noise of the right law that can be had again."""

    releasable = False

    def __init__(self, seed: int) -> None:
        self.seed, self.calls = seed, 0

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        self.calls += 1
        scale = calibrated_scale(sensitivity, budget)
        noise = simulate(np.random.default_rng([self.seed, self.calls]), budget.unit, scale, values.shape)
        return NoisyIntegers(values=values + noise, scale=scale, spent=budget)


def synthetic(
    data: Data,
    seed: int,
    *instead: AbstractContextManager[Any],
    resolution: int | None = None,
    plan: Callable[[list[LayerSpec]], list[LayerSpec]] = list,
    public: Rows | None = None,
) -> Rows:
    """Rows as a release with ε = 1 makes them, without certificates; `plan` changes what is measured, and `instead`
    what is done after that."""
    count = len(data.rows[0])
    asked = checked(ReleaseOptions, {"epsilon": 1, "resolution": resolution, "public": public})
    settings = checked_settings(data.schema, asked)
    planned = plan(list(choose(Task(data.schema, settings, count)).layers))
    with ExitStack() as parts:
        for part in instead:
            parts.enter_context(part)
        measured = measure_layers(in_memory(data.rows), data.schema, planned, noise=SeededNoise(seed))
        return synthesis.synthesise(measured, data.schema, count, np.random.default_rng(seed), public=public)


@dataclass(frozen=True)
class Idea:
    """An idea, the values that it is tried with, and the tables."""

    make: Callable[..., Rows]
    values: tuple[Any, ...]
    tables: tuple[str, ...]


IDEAS: dict[str, Idea] = {}


def idea(*values: Any, tables: tuple[str, ...] = SMALL) -> Callable[[Callable[..., Rows]], Callable[..., Rows]]:
    """Put a function on the list."""

    def listed(make: Callable[..., Rows]) -> Callable[..., Rows]:
        IDEAS[make.__name__] = Idea(make, values or ("",), tables)
        return make

    return listed


@idea(tables=ALL)
def default(data: Data, seed: int, _: Any) -> Rows:
    """The release as it is."""
    return synthetic(data, seed)


@idea(tables=ALL)
def no_agreement(data: Data, seed: int, _: Any) -> Rows:
    """Overlapping tables of pairs are left to disagree about single columns, and with what these hold by themselves."""
    alone = patch.object(MEASURE, "reconcile", lambda blocks, marginals, variances: list(blocks))
    return synthetic(data, seed, alone, patch.object(MEASURE, "combine_layers", lambda layers, total: None))


@idea(tables=ALL)
def no_combination(data: Data, seed: int, _: Any) -> Rows:
    """Tables of pairs agree with each other, and are left to disagree with single columns."""
    return synthetic(data, seed, patch.object(MEASURE, "combine_layers", lambda layers, total: None))


@idea(Fraction(1, 2), Fraction(3, 4), Fraction(4, 3), Fraction(2), tables=ALL)
def resolution(data: Data, seed: int, factor: Fraction) -> Rows:
    """So many times as many groups to a column as planned."""

    def plan(planned: list[LayerSpec]) -> list[LayerSpec]:
        single, pairs = planned
        return [single, replace(pairs, resolution=round(pairs.resolution * factor))]

    return synthetic(data, seed, plan=plan)


@idea(16, 24, 32)
def even_cells(data: Data, seed: int, k: int) -> Rows:
    """Pairs are measured in cells of one width instead of groups that follow the single columns."""

    def even(places: np.ndarray, mass: np.ndarray, groups: int) -> np.ndarray:
        part = (places - places[0]) * groups // (places[-1] - places[0] + 1)
        return np.unique(part, return_index=True)[1]

    return synthetic(data, seed, patch.object(layers, "best_groups", even), resolution=k)


@idea()
def no_detail(data: Data, seed: int, _: Any) -> Rows:
    """Inside its cell every value is as frequent as any other, whatever the single columns say."""
    values = synthesis._spread_values

    def flat(points: np.ndarray, shares: np.ndarray, *rest: Any) -> np.ndarray:
        return values(points, np.ones_like(shares), *rest)

    return synthetic(data, seed, patch.object(synthesis, "_spread_values", flat))


@idea(tables=ALL)
def finest_scale(data: Data, seed: int, _: Any) -> Rows:
    """Particles see the cells, and nothing coarser."""
    return synthetic(data, seed, patch.object(synthesis, "scales", lambda cells: particles.scales(cells)[:1]))


@idea(tables=ALL)
def inverse_variance(data: Data, seed: int, _: Any) -> Rows:
    """A table at some scale weighs 1/(variance of one place), not 1/(variance of all places together)."""
    state = particles._State.of

    def heavier(start: np.ndarray, views: Sequence[View]) -> particles._State:
        plain = state(start, views)
        return replace(plain, weight=plain.weight * np.concatenate([0 * v.target + len(v.target) for v in views]))

    return synthetic(data, seed, patch.object(particles._State, "of", heavier))


@idea(tables=ALL)
def equal_relevance(data: Data, seed: int, _: Any) -> Rows:
    """All cells of a table count the same, however small their expected counts."""
    same = patch.object(synthesis, "relevances", lambda table, independent, scales: [np.ones(s.places) for s in scales])
    return synthetic(data, seed, same)


@idea(0.0, 0.7, 2.0, tables=ALL)
def target_error(data: Data, seed: int, error: float) -> Rows:
    """Views are fitted to this multiple of their noise, squared."""
    return synthetic(data, seed, patch.object(particles, "TARGET_ERROR", error))


@idea(tables=ALL)
def blind_swaps(data: Data, seed: int, _: Any) -> Rows:
    """Swaps between random rows alone, until a sweep gains little."""
    return synthetic(data, seed, patch.multiple(particles, MAX_GUIDED_ROUNDS=0, MAX_BLIND_SWEEPS=40, TARGET_ERROR=0.0))


@idea()
def moves(data: Data, seed: int, _: Any) -> Rows:
    """One particle at a time takes another value, instead of two that swap; single columns are views like others."""
    return synthetic(data, seed, patch.object(synthesis, "fit", fit_by_moves))


@idea(Fraction(1, 5), Fraction(2, 5))
def quad_tree(data: Data, seed: int, share: Fraction) -> Rows:
    """This share of the budget of pairs goes to tables of 4 × 4 groups; both are weighed by their inverse variances."""

    def plan(planned: list[LayerSpec]) -> list[LayerSpec]:
        single, pairs = planned
        coarse = replace(pairs, resolution=4, budget=pairs.budget.share(share))
        return [single, replace(pairs, budget=pairs.budget.share(1 - share)), coarse]

    return synthetic(data, seed, plan=plan)


@idea(tables=ALL)
def shrinkage(data: Data, seed: int, _: Any) -> Rows:
    """Singular values of what a pair's table has beyond independence are shrunk as noise of its size asks for."""
    return synthetic(data, seed, patch.object(synthesis, "estimate", shrunk_pairs))


@idea(0.5, 1.0)
def tilt(data: Data, seed: int, strength: float) -> Rows:
    """Inside a cell, rows lean to the side whose neighbouring cells have more of what the row is in other columns."""
    # For each column: values of points, their shares, their cells; and the rows' cells.
    columns = synthetic(data, seed, patch.object(synthesis, "_spread_values", lambda *parts: parts[:-1]))
    codes = [column[-1] for column in columns]
    rng = np.random.default_rng(seed)
    return [tilted(*column, lean(codes, j, strength), rng) for j, column in enumerate(columns)]


@idea("haar", "haar-weighted", "quad-tree")
def column_mechanism(data: Data, seed: int, name: str) -> Rows:
    """Single columns are measured by Haar coefficients or by runs of values instead of value by value."""
    strategy = strategy_named(name, neighbours=Neighbours.REPLACE_ONE)
    return synthetic(data, seed, plan=lambda planned: [replace(planned[0], strategy=strategy), planned[1]])


@idea(Fraction(1, 10), Fraction(2, 5), tables=ALL)
def column_share(data: Data, seed: int, share: Fraction) -> Rows:
    """Single columns get this share of the budget for measuring; by default the plan decides."""

    def plan(planned: list[LayerSpec]) -> list[LayerSpec]:
        whole = Budget(sum(layer.budget.amount for layer in planned), planned[0].budget.unit)
        return [replace(p, budget=whole.share(s)) for p, s in zip(planned, (share, 1 - share), strict=True)]

    return synthetic(data, seed, plan=plan)


@idea(tables=CALIFORNIA)
def public_start(data: Data, seed: int, _: Any) -> Rows:
    """Particles start in the order of public rows (Alabama)."""
    return synthetic(data, seed, public=cleaned_rows(ALABAMA, data.schema))


# What the ideas are made of.


def fit_by_moves(start: np.ndarray, views: Sequence[View], rng: np.random.Generator, **_: Any) -> np.ndarray:
    """As `particles.fit`, with moves of single values; what `start` holds in each column is a view, too."""
    count, columns = start.shape
    views = [*views, *_single_columns(start, views)]
    state = particles._State.of(start, views, single_columns=True)
    held = state.rows.copy()
    for _ in range(particles.MAX_BLIND_SWEEPS):
        if state.errors().mean() <= particles.TARGET_ERROR:
            break
        row, like = rng.integers(count, size=(2, count * columns), dtype=np.int32)
        column = rng.integers(columns, size=count * columns, dtype=np.int32)
        value = held[like, column]  # as often as it should occur
        _move(state.rows, row, column, value, *state.arrays())
    return state.codes()


def _single_columns(start: np.ndarray, views: Sequence[View]) -> list[View]:
    """What `start` holds, at every scale of `views`. The error is about what all pairs together leave."""
    found = {}
    for view in views:
        for column, codes in zip(view.columns, view.codes, strict=True):
            target = np.bincount(codes[start[:, column]], minlength=particles.count_places(codes)) / len(start)
            noise = view.noise / np.sqrt(start.shape[1])
            if len(target) > 1:
                found.setdefault((column, len(target)), View((column,), (codes,), target, noise))
    return list(found.values())


@njit(fastmath=True)
def _move(rows, row, column, value, begin, others, offsets, weight, residual):
    """Offer row[t] the value value[t] in column[t], one after the other. Returns the change of the error in all."""
    touched = np.empty((others[0][0].shape[0], 2), np.uint32)
    moved = 0.0
    for t in range(row.shape[0]):
        i, j, b = row[t], column[t], value[t]
        a = rows[i, j]
        if a == b:
            continue
        change, count = 0.0, 0
        for m in range(begin[j + 1] - begin[j]):
            e = begin[j] + m
            out, into = offsets[a + m], offsets[b + m]
            if out == into:
                continue
            at = np.uint64(0)
            for other, place in others:
                at += offsets[rows[i, other[e]] + place[e]]
            change += weight[at + into] * (1.0 + 2.0 * residual[at + into])
            change += weight[at + out] * (1.0 - 2.0 * residual[at + out])
            touched[count, 0], touched[count, 1] = at + out, at + into
            count += 1
        if change < 0.0:
            rows[i, j] = b
            moved += change
            for m in range(count):
                residual[touched[m, 0]] -= 1.0
                residual[touched[m, 1]] += 1.0
    return moved


def shrunk_pairs(measurements: Sequence[FullMeasurement]) -> tuple[list[list[np.ndarray]], float]:
    """Estimates of all layers, of pairs with their interactions shrunk."""
    (single, pairs), total = estimate(measurements)
    marginals, unit = measurements[1].marginals, measurements[1].variance
    variances = unit_variances(marginals, measurements[1].strategy)
    better = [
        shrunk(block.reshape(marginals.shape(subset)), total, unit * variances[j, subset]).ravel()
        for j, (subset, block) in enumerate(zip(marginals.subsets, pairs, strict=True))
    ]
    return [single, better], total


def shrunk(table: np.ndarray, total: float, variance: float) -> np.ndarray:
    """What is best for squares where all beyond independence is noise of this variance (Gavish and Donoho, Optimal
    shrinkage of singular values, 2017)."""
    independent = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    left, values, right = np.linalg.svd(table - independent, full_matrices=False)
    few, many = (max(side - 1, 1) for side in sorted(table.shape))
    unit, ratio = np.sqrt(many * variance), few / many
    y = np.maximum(values / unit, 1 + np.sqrt(ratio))
    kept = np.sqrt(np.maximum((y**2 - ratio - 1) ** 2 - 4 * ratio, 0)) / y
    return independent + (left * (kept * unit)) @ right


PRIOR = 50
"""Rows of independence that are added to a cell before its neighbours are compared."""


def lean(codes: Rows, column: int, strength: float) -> np.ndarray:
    """For each row the log of how much more frequent its other values are in the next cell than in the one before."""
    own, total = codes[column], np.zeros(len(codes[column]))
    for other in codes[:column] + codes[column + 1 :]:
        table = np.zeros((own.max() + 1, other.max() + 1))
        np.add.at(table, (own, other), 1.0)
        shares = table + PRIOR * table.sum(axis=0) / table.sum()
        shares = np.pad(shares / shares.sum(axis=1, keepdims=True), ((1, 1), (0, 0)), mode="edge")
        total += np.log((shares[2:] + 1e-12) / (shares[:-2] + 1e-12))[own, other]
    return np.clip(strength * total / 2, -3, 3)


def tilted(
    points: np.ndarray, shares: np.ndarray, groups: np.ndarray, codes: np.ndarray, lean: np.ndarray, rng: Any
) -> np.ndarray:
    """As `synthesis._values`, but rows come in the order of a number whose density in [0, 1] grows like exp(lean·x)."""
    uniform = rng.random(len(codes))
    lean = np.where(np.abs(lean) < 1e-6, 1e-6, lean)
    order = np.lexsort((np.log1p(uniform * np.expm1(lean)) / lean, codes))
    emitted = np.empty(len(codes), dtype=points.dtype)
    for members in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        inside = np.flatnonzero(groups == codes[members[0]])
        weights = shares[inside] + 1e-12
        emitted[members] = np.repeat(points[inside], multiplicities(weights / weights.sum(), len(members)))
    return emitted


# The best weights for what particles lower (section `optimum` of run.py).


def squares(views: Sequence[View], points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix B and a vector c such that ‖B·α − c‖² is what `count` particles with weights α on the points lower."""
    matrices, targets = [], []
    for view in views:
        shape = [particles.count_places(codes) for codes in view.codes]
        places = [codes[points[:, j]] for codes, j in zip(view.codes, view.columns, strict=True)]
        member = np.equal.outer(np.arange(len(view.target)), np.ravel_multi_index(places, shape)).astype(float)
        weight = count * np.sqrt(view.weights(count))
        matrices.append(weight[:, None] * member)
        targets.append(weight * view.target)
    return np.concatenate(matrices), np.concatenate(targets)


def frank_wolfe(
    matrix: np.ndarray, aim: np.ndarray, *, gap: float = 1e-4, most: int = 1000
) -> tuple[np.ndarray, float]:
    """Probabilities α that minimise ‖matrix·α − aim‖², and a bound on how far they are from the least.

    Fully corrective: each step adds the point with the steepest slope, found by looking at all of them, and then
    finds the best weights of all points so far. By convexity no α is better by more than ⟨slope, α⟩ − min(slope).
    """
    # For probabilities the error is (matrix − aim·1ᵀ)·α. That grows with α, so that a row which asks for a sum of 1,
    # however lightly, leaves the direction of the best α as it is.
    errors = matrix - aim[:, None]
    row = np.full(matrix.shape[1], np.sqrt((errors**2).sum(axis=0).mean()))
    system, wanted = np.vstack([errors, row]), np.append(np.zeros(len(aim)), row[0])
    active = [int((errors**2).sum(axis=0).argmin())]
    for _ in range(most):
        found, _norm = nnls(system[:, active], wanted, maxiter=10_000)
        weights = np.zeros(matrix.shape[1])
        weights[active] = found / found.sum()
        slope = 2 * matrix.T @ (matrix @ weights - aim)
        left, steepest = float(slope @ weights - slope.min()), int(slope.argmin())
        if left <= gap or weights[steepest]:
            break
        active = [*np.flatnonzero(weights), steepest]
    return weights, left


# Side by side.


def losses(name: str, value: Any, table: str, seed: int) -> tuple[float, float]:
    """Largest and mean upper loss over pairs of what an idea makes."""
    data = Data(*TABLES[table])
    with (
        patch.object(parallel, "MIN_PROCESS_WORK", float("inf")),
        tempfile.TemporaryDirectory() as folder,
    ):  # one core each
        rows = IDEAS[name].make(data, seed, value)
        path = Path(folder) / "synthetic.parquet"
        write_table(decoded_table(data.schema, rows), parquet=path, csv=path.with_suffix(".csv"))
        true = evaluate(data.path, path, data.schema)
    return true.upper, true.mean_upper


def compared(found: np.ndarray, base: np.ndarray) -> str:
    """The mean, its ratio to the base, and the standard error of that."""
    ratio = found.mean() / base.mean()
    error = np.std(found - ratio * base, ddof=1) / np.sqrt(len(base)) / base.mean()
    return f"{found.mean():8.5f} {ratio:6.3f} ± {error:.3f}"


def main(names: list[str]) -> None:
    unknown = set(names) - set(IDEAS)
    if unknown:
        sys.exit(f"no idea {', '.join(sorted(unknown))}; choose from {', '.join(IDEAS)}")
    missing = [path.name for path in (ALABAMA, *(path for path, _ in TABLES.values())) if not path.exists()]
    if missing:
        sys.exit(f"{', '.join(missing)} not in the folder CERTSYNTH_DATA")
    chosen = {name: IDEAS[name] for name in IDEAS if not names or name in names or name == "default"}
    lines = [(t, name, value) for t in TABLES for name, i in chosen.items() if t in i.tables for value in i.values]
    tasks = [delayed(losses)(name, value, table, seed) for table, name, value in lines for seed in SEEDS]
    results = Parallel(n_jobs=os.cpu_count(), return_as="generator")(tasks)
    base = np.empty(0)
    for table, name, value in lines:
        found = np.array([next(results) for _ in SEEDS])
        if name == "default":
            base = found
            print(f"\n{table} columns, {len(SEEDS)} runs\n{'':>20} {'max':>8} {'÷':>6} {'':>7} {'mean':>10} {'÷':>6}")
        columns = (compared(x, b) for x, b in zip(found.T, base.T, strict=True))
        print(f"{f'{name} {value}':<20} {'   '.join(columns)}   {IDEAS[name].make.__doc__}", flush=True)


if __name__ == "__main__":
    from ideas import main as of_the_module  # workers find its functions by name

    of_the_module(sys.argv[1:])
