"""Single columns: projections against all their candidates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from certsynth.projection.margins import nearest_probabilities, project_running_sums
from certsynth.projection.simplex import project_to_simplex

CALM = settings(deadline=None, derandomize=True)
few_values = st.lists(st.one_of(st.integers(-5, 9).map(float), st.floats(-3, 3)), min_size=1, max_size=6)


# ------------------------------------------------------------ the simplex


def nearest_on_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """Of all choices of which numbers are positive: on each the nearest, then the nearest of those allowed."""
    best, least = None, np.inf
    for size in range(1, len(values) + 1):
        for chosen in itertools.combinations(range(len(values)), size):
            point = np.zeros(len(values))
            here = list(chosen)
            point[here] = values[here] - (values[here].sum() - total) / size
            away = ((point - values) ** 2).sum()
            if point.min() >= 0 and away < least:
                best, least = point, away
    assert best is not None
    return best


@CALM
@given(few_values, st.sampled_from([0.25, 1.0, 7.0]))
@example([0.0, 0.0], 1.0)
@example([-3.0, -3.0, -3.0], 0.25)
@example([1.0], 7.0)
@example([1.0, 1.0, -2.0], 1.0)
def test_the_nearest_point_of_the_simplex_is_found(values: list[float], total: float) -> None:
    array = np.array(values)
    found = project_to_simplex(array, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    assert found == pytest.approx(nearest_on_simplex(array, total), abs=1e-9)


def test_what_lies_on_the_simplex_stays() -> None:
    values = np.random.default_rng(0).dirichlet(np.ones(9))
    assert project_to_simplex(values, 1.0) == pytest.approx(values)


@pytest.mark.parametrize("total", [0.0, -1.0])
def test_nothing_to_share_out_is_nothing_for_each(total: float) -> None:
    for project in (project_to_simplex, project_running_sums):
        assert project(np.array([3.0, -1.0]), total).tolist() == [0.0, 0.0]


# ------------------------------------------------------------ rising sums


def nearest_rising(running: np.ndarray) -> np.ndarray:
    """Least squares over 0 ≤ r_1 ≤ … ≤ r_m, as sums of non-negative steps."""
    steps = nnls(np.tril(np.ones((len(running), len(running)))), running)[0]
    return np.cumsum(steps)


@CALM
@given(few_values)
@example([1.0, -1.0, 2.0])
@example([2.0, -5.0, 9.0])
@example([-1.0, 0.0, 2.0])
@example([5.0, -4.0])
def test_running_sums_are_the_nearest_rising_ones(values: list[float]) -> None:
    """Where the values sum to what they should: nearest between 0 and that, and the last is that."""
    array = np.array(values)
    total = float(array.sum())
    if total < 0.01:
        return
    found = np.cumsum(project_running_sums(array, total))
    assert found[:-1] == pytest.approx(np.minimum(nearest_rising(np.cumsum(array)), total)[:-1], abs=1e-6)
    assert found[-1] == pytest.approx(total)


@CALM
@given(few_values, st.sampled_from([0.25, 1.0, 7.0]))
@example([0.0, 0.0], 1.0)
@example([-9.0, 1.0], 0.25)
@example([9.0, 9.0], 0.25)
def test_rising_sums_come_from_non_negative_numbers_with_the_total_asked_for(values: list[float], total: float) -> None:
    found = project_running_sums(np.array(values), total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)


def test_rising_sums_move_mass_less_far_than_the_simplex_does() -> None:
    """Why there are two: of noise along a line, what is taken at one point is given back nearby."""
    rng = np.random.default_rng(1)
    far = {project_to_simplex: 0.0, project_running_sums: 0.0}
    for _ in range(20):
        truth = np.zeros(200)
        truth[rng.integers(200, size=8)] = 1 / 8
        truth /= truth.sum()
        steps = np.diff(np.cumsum(truth) + 0.02 * rng.normal(size=200), prepend=0.0)
        noisy = steps + (1 - steps.sum()) / 200  # errors of running sums that are independent: as from Haar noise
        for project in far:
            far[project] += float(np.abs(np.cumsum(project(noisy, 1.0) - truth)).mean())
    assert far[project_running_sums] < 0.5 * far[project_to_simplex]


# ------------------------------------------------------------ groups

grouped_values = st.integers(1, 9).flatmap(
    lambda size: st.tuples(
        st.lists(st.floats(-2, 2), min_size=size, max_size=size),
        st.lists(st.integers(0, 3), min_size=size, max_size=size),
    )
)


@pytest.mark.parametrize("inside", [project_to_simplex, project_running_sums])
@CALM
@given(grouped_values)
@example(([0.0, 0.0], [0, 1]))
@example(([-1.0, -1.0, -1.0], [0, 0, 1]))
@example(([1.5, -0.5], [0, 0]))
def test_probabilities_come_out_and_groups_get_what_their_sums_say(inside, case: tuple[list, list]) -> None:
    values = np.array(case[0])
    groups = np.unique(case[1], return_inverse=True)[1]
    found = nearest_probabilities(values, groups, inside)
    sums = np.array([values[groups == g].sum() for g in range(groups.max() + 1)])
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    masses = np.array([found[groups == g].sum() for g in range(len(sums))])
    assert masses == pytest.approx(nearest_on_simplex(sums, 1.0), abs=1e-9)
    for g, mass in enumerate(masses):
        if mass > 1e-9:
            assert found[groups == g] == pytest.approx(inside(values[groups == g], mass), abs=1e-9)


def test_groups_keep_mass_where_it_was() -> None:
    """Control for the groups: without them, noise of small counts next to a large one is cut away, and mass moves."""
    rng = np.random.default_rng(2)
    values, groups = np.r_[0.5, np.full(500, 0.001)], np.r_[0, np.ones(500, int)]
    noisy = values + 0.01 * rng.normal(size=501)
    noisy += (1 - noisy.sum()) / 501
    assert nearest_probabilities(noisy, groups)[0] == pytest.approx(noisy[0])
    assert nearest_probabilities(noisy, np.zeros(501, int))[0] < noisy[0] - 0.003


@pytest.mark.parametrize(
    ("rows", "counts"),
    [(7, [5, -1, 11, 1, 11]), (19, [31, -6, 2, 28]), (11, [-23, -20, 10, -20, -24, -25, -6])],
)
def test_a_group_whose_sum_is_just_at_the_cut_is_no_problem(rows: int, counts: list[int]) -> None:
    """A line and a missing value with noisy counts, made to sum to the number of rows, in shares."""
    values = (np.array(counts) + (rows - sum(counts)) / len(counts)) / rows
    groups = np.r_[np.zeros(len(counts) - 1, int), 1]
    found = nearest_probabilities(values, groups)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
