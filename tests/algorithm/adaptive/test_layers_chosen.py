"""Layers of an adaptive release: a function of noisy numbers, with costs that add up to the budget exactly."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import release
from certsynth.algorithm.adaptive.choice import (
    _sizes,
    candidate_pairs,
    choose_layers,
    measure_scores,
    noisy_dependence,
    single_share,
)
from certsynth.algorithm.declaration import checked
from certsynth.algorithm.layers import LayerSpec, measure_layers
from certsynth.algorithm.method import MIN_ADAPTIVE_PAIRS, method_for
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.domain import Category, Groups, Schema
from certsynth.mechanisms import Budget, FullMeasurement, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.samplers import NoisyIntegers
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries.tally import in_memory
from small import EVERY_KIND, MIXED, NATIVE, FixedOutput, SeededNoise, cube, native, people, settled, workers

BUDGETS = {"epsilon": Unit.EPSILON, "rho": Unit.RHO}


def table(rows: int, columns: int, seed: int) -> list[np.ndarray]:
    """Numbers of which each depends on the one before it."""
    rng = np.random.default_rng(seed)
    found = [rng.random(rows)]
    for _ in range(columns - 1):
        found.append((found[-1] + 0.2 * rng.random(rows)) % 1)
    return found


def adaptive(schema: Schema, **asked: Any) -> Settings:
    return settled(schema, mechanism="adaptive", **asked)


def chosen(schema: Schema, settings: Settings, singles: FullMeasurement, scores: NoisyScalars) -> Any:
    return choose_layers(schema, settings, singles, noisy_dependence(schema, settings, singles, scores))


ASKED: dict[str, dict[str, Any]] = {
    "all pairs": {},
    "a workload": {"subsets": [["x0", "x1"], ["x1", "x3"], ["x2", "x3"], ["x4"]]},
    "a target": {"target": "x2"},
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_all_steps_cost_the_budget_exactly(neighbours, budget, asked):
    """In exact rationals: scores, layers, certificate, and the number of rows if it is hidden."""
    schema = cube(5)
    settings = adaptive(schema, **{budget: "1/3"}, neighbours=neighbours, **ASKED[asked])
    rows = in_memory(table(400, 5, 1))
    singles, scores = measure_scores(Task(schema, settings, 400), rows, noise=SeededNoise(1))
    layers = chosen(schema, settings, singles, scores)
    made = measure_layers(rows, schema, layers, noise=SeededNoise(2), made=[singles])
    assert made[0] is singles
    whole = settings.privacy.budget.amount
    assert whole == Fraction(1, 3)
    spent = [scores.cost.spent.amount, *(m.cost.spent.amount for m in made)]
    assert [m.cost.spent for m in made] == [layer.budget for layer in layers]
    assert sum(spent) + whole * (settings.certificate_share + settings.count_share) == whole
    assert (settings.count_share > 0) == (neighbours is Neighbours.ADD_REMOVE)
    assert {pair for layer in layers[1:] for pair in layer.subsets} <= set(candidate_pairs(settings))
    if "target" in ASKED[asked]:
        assert {(0, 2), (1, 2), (2, 3), (2, 4)} <= {pair for layer in layers for pair in layer.subsets}


RELEASED: dict[str, tuple[Schema, pl.DataFrame, dict[str, Any]]] = {
    "missing values": (NATIVE, native(150), {}),
    "a workload": (NATIVE, native(150), {"subsets": [["a", "b"], ["c"]]}),
    "public rows": (NATIVE, native(150), {"public": native(40, seed=9)}),
    "columns of several kinds": (MIXED, people(150), {}),
    "a rule": (EVERY_KIND, workers(100), {"columns": ["age", "hired", "grade"]}),
}


@pytest.mark.parametrize("case", RELEASED)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_release_states_costs_that_add_up_to_the_budget_exactly(neighbours, budget, case):
    schema, rows, asked = RELEASED[case]
    made = release(
        rows, schema, mechanism="adaptive", neighbours=neighbours, rows=60, seed=1, **{budget: "0.7"}, **asked
    )
    spent = made.document["privacy"]["spent"]
    assert sum(Fraction(step[budget]) for step in spent) == Fraction(7, 10)
    assert [step["on"] for step in spent].count("scores of pairs") == 1
    assert len([step for step in spent if step["on"].startswith("noisy")]) == len(made.measurements) >= 2
    assert made.document["release"]["pairs"]


class Given(FixedOutput):
    """The same noisy numbers whatever the rows are, and large scores."""

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        made = super().add(values, sensitivity=sensitivity, budget=budget)
        scores = len(values) == 15
        return dataclasses.replace(made, values=made.values * (10**4 if scores else 1))


def same_layers(first: tuple[LayerSpec, ...], second: tuple[LayerSpec, ...]) -> bool:
    keys = ("subsets", "cells", "resolution", "budget", "weights", "label_groups")
    return [[getattr(a, k) for k in keys] for a in first] == [[getattr(b, k) for k in keys] for b in second]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_layers_depend_on_noisy_numbers_alone(neighbours, budget):
    """Tables with nothing in common, held to the same noisy numbers, have the same layers; other numbers have others.

    The rows are gone before layers are chosen.
    """
    schema = cube(6)
    settings = adaptive(schema, **{budget: 1}, neighbours=neighbours)
    found = []
    for seed, noise in ((1, Given(5)), (2, Given(5)), (1, Given(6))):
        rows = table(300, 6, seed)
        singles, scores = measure_scores(Task(schema, settings, 300), in_memory(rows), noise=noise)
        for column in rows:
            column.fill(np.nan)
        found.append(chosen(schema, settings, singles, scores))
    assert same_layers(found[0], found[1])
    assert not same_layers(found[0], found[2])


def test_repeating_the_choice_gives_the_same_layers():
    schema, settings = cube(6), adaptive(cube(6), epsilon=1)
    singles, scores = measure_scores(Task(schema, settings, 500), in_memory(table(500, 6, 3)), noise=SeededNoise(4))
    first, second = (chosen(schema, settings, singles, scores) for _ in range(2))
    assert same_layers(first, second)


@pytest.fixture(scope="module")
def two_equal_columns() -> tuple[Schema, Settings, FullMeasurement, NoisyScalars]:
    """Of six columns the third and the last are equal, and the others independent."""
    rng = np.random.default_rng(0)
    schema, settings = cube(6), adaptive(cube(6), epsilon=1, neighbours="add-remove")
    rows = [rng.random(20_000) for _ in range(5)]
    rows.append(rows[2].copy())
    return schema, settings, *measure_scores(Task(schema, settings, 20_000), in_memory(rows), noise=SeededNoise(1))


def test_the_pair_that_depends_most_is_measured(two_equal_columns):
    _, settings, *_ = two_equal_columns
    layers = chosen(*two_equal_columns)
    measured = {pair for layer in layers[1:] for pair in layer.subsets}
    assert (2, 5) in measured
    dependence = dict(zip(candidate_pairs(settings), noisy_dependence(*two_equal_columns), strict=True))
    assert max(dependence, key=dependence.__getitem__) == (2, 5)


def test_pairs_that_noise_hides_have_a_part_of_the_mean_dependence(two_equal_columns):
    found = noisy_dependence(*two_equal_columns)
    assert (found == found.min()).sum() >= 4
    assert 0 < found.min() < found.mean() / 2


@pytest.mark.parametrize("budget", BUDGETS)
def test_single_columns_get_more_the_fewer_rows_there_are_to_each(budget):
    def percent(columns: int, rows: int, neighbours: str = "add-remove") -> Fraction:
        settings = adaptive(cube(columns), **{budget: "0.5"}, neighbours=neighbours)
        return 100 * single_share(Task(cube(columns), settings, rows))

    by_rows = [percent(14, rows) for rows in (0, 1, 1_000, 10_000, 100_000, 10**9)]
    assert by_rows == sorted(by_rows, reverse=True)
    assert by_rows[0] == by_rows[1] == 90
    assert by_rows[-1] == 10
    assert percent(8, 20_000) < percent(14, 20_000) < percent(20, 20_000)
    assert percent(14, 20_000) < percent(14, 20_000, "replace-one")


@pytest.mark.parametrize("columns", range(2, 16))
def test_the_default_is_adaptive_from_a_public_number_of_pairs_on(columns):
    given = checked(ReleaseOptions, {"epsilon": 1})
    pairs = columns * (columns - 1) // 2
    assert (method_for(cube(columns), given).name == "adaptive") == (pairs >= MIN_ADAPTIVE_PAIRS)


OTHERS: list[dict[str, Any]] = [
    {"sparsity": 1},
    {"sparsity": 3},
    {"certificate_share": 0},
    {"resolution": 8},
    {"mechanism": "haar"},
    {"projection": "drawn"},
    {"preset": "paper"},
    {"subsets": [["x0", "x1"], ["x2"]]},
]


@pytest.mark.parametrize("asked", OTHERS, ids=str)
def test_options_of_other_methods_are_no_reason_for_the_adaptive_one(asked):
    assert method_for(cube(20), checked(ReleaseOptions, {"epsilon": 1} | asked)).name != "adaptive"


MANY_LABELS = Schema(
    (
        Category("unit", values=tuple(map(str, range(120)))),
        Category("kind", values=tuple(map(str, range(6)))),
        cube(1).columns[0],
    )
)


def units(rows: int) -> list[np.ndarray]:
    """The kind of a unit is a function of it that neighbouring units do not share."""
    rng = np.random.default_rng(1)
    unit = rng.integers(120, size=rows)
    return [unit, unit * 7 % 6, rng.random(rows)]


def sizes_measured(rows: int) -> dict[tuple[int, ...], tuple[int | None, int | None, int]]:
    """The groups of each measured pair, and how many of them the first column has."""
    settings = adaptive(MANY_LABELS, epsilon=1, neighbours="add-remove")
    source = in_memory(units(rows))
    singles, scores = measure_scores(Task(MANY_LABELS, settings, rows), source, noise=SeededNoise(1))
    layers = chosen(MANY_LABELS, settings, singles, scores)
    made = measure_layers(source, MANY_LABELS, layers, noise=SeededNoise(2), made=[singles])
    for fine, coarse in itertools.pairwise(m.marginals.cells for m in made):
        for a, b in zip(fine, coarse, strict=True):  # later layers merge the cells of earlier ones
            assert isinstance(a, Groups)
            assert isinstance(b, Groups)
            assert set(b.starts) <= set(a.starts)
            assert len({*zip(a.group_of_label, b.group_of_label, strict=True)}) == a.off_line
    return {
        pair: (layer.resolution, layer.label_groups, m.marginals.cells[0].size)
        for layer, m in zip(layers[1:], made[1:], strict=True)
        for pair in layer.subsets
    }


def test_many_labels_are_measured_apart_where_they_have_rows_enough() -> None:
    assert sizes_measured(200_000)[0, 1] == (24, 1024, 120)
    assert sizes_measured(200).get((0, 1), (24, 48, 48))[1:] == (48, 48)


def test_the_choice_of_few_labels_has_no_size_for_many() -> None:
    assert [size.labels for size in _sizes(cube(3))] == [48, 48, 48]
    assert [size.labels for size in _sizes(MANY_LABELS)] == [1024, 48, 48, 48]
