"""Which neighbouring points are counted together: against all ways to do it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from certsynth.domain import Cells, Groups
from certsynth.queries.grouping import MAX_EXACT_POINTS, best_groups


def partitions(points: int, groups: int) -> Iterator[tuple[int, ...]]:
    """Starts of all partitions into at most so many runs."""
    for count in range(1, min(points, groups) + 1):
        for cuts in itertools.combinations(range(1, points), count - 1):
            yield (0, *cuts)


def cost(places: list[int], mass: list[int], starts: tuple[int, ...]) -> int:
    """Mass times distance to the best point of each run, which is one of its own."""
    total = 0
    for a, b in itertools.pairwise([*starts, len(places)]):
        run = range(a, b)
        total += min(sum(mass[i] * abs(places[i] - places[m]) for i in run) for m in run)
    return total


def floored(mass: list[int]) -> list[int]:
    """The masses with a millionth of the whole shared out evenly among all points, in a unit that keeps them whole."""
    return [m * 10**6 * len(mass) + max(sum(mass), 1) for m in mass]


def least(places: list[int], mass: list[int], groups: int) -> int:
    return min(cost(places, mass, starts) for starts in partitions(len(places), groups))


def found(places: list[int], mass: list[int], groups: int) -> tuple[int, ...]:
    starts = tuple(best_groups(np.array(places), np.array(mass, float), groups).tolist())
    assert starts[0] == 0
    assert all(a < b for a, b in itertools.pairwise([*starts, len(places)]))
    assert len(starts) <= groups
    return starts


def random_case(rng: np.random.Generator, points: int) -> tuple[list[int], list[int]]:
    """Whole places and masses, half of the time with long stretches without mass, anywhere.

    Costs are whole, then, and the little mass that every point gets is too small to change which is the least.
    """
    places = np.sort(rng.choice(60, points, replace=False)) if rng.random() < 0.7 else np.arange(points)
    mass = rng.integers(0, 12, points)
    if rng.random() < 0.5:
        mass[rng.random(points) < 0.6] = 0
    return places.tolist(), mass.tolist()


def test_runs_begin_where_they_must() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        places, mass = random_case(rng, 8)
        groups, begins = int(rng.integers(1, 7)), rng.random(8) < 0.25
        begins[0] = False
        starts = tuple(best_groups(np.array(places), np.array(mass, float), groups, begins=begins).tolist())
        forced = set(np.flatnonzero(begins).tolist())
        most = max(groups, 1 + len(forced))
        assert forced <= set(starts)
        assert len(starts) <= most
        allowed = (each for each in partitions(8, most) if forced <= set(each))
        whole = floored(mass)
        assert cost(places, whole, starts) == min(cost(places, whole, each) for each in allowed)


def test_runs_of_very_many_points_begin_where_they_must() -> None:
    begins = np.zeros(MAX_EXACT_POINTS + 1, bool)
    begins[[5, 700]] = True
    starts = best_groups(np.arange(len(begins)), np.ones(len(begins)), 4, begins=begins)
    assert {0, 5, 700} <= set(starts.tolist())


@pytest.mark.parametrize("points", range(1, 11))
def test_no_partition_into_runs_is_better(points: int) -> None:
    rng = np.random.default_rng(points)
    for _ in range(8):
        places, mass = random_case(rng, points)
        for groups in sorted({1, 2, 3, points // 2, points - 1, points, points + 3} - {0, -1}):
            starts = found(places, mass, groups)
            for weights in (mass, floored(mass)):  # the latter decides among those that are equally good
                assert cost(places, weights, starts) == least(places, weights, groups), (places, weights, groups)


def test_even_runs_are_worse() -> None:
    """Control: on the same cases, equally many points to a run is not the best."""
    rng = np.random.default_rng(10)
    places, mass = random_case(rng, 9)
    assert cost(places, mass, (0, 3, 6)) > least(places, mass, 3)


@pytest.mark.parametrize("points", [2, 7, 10, 40])
def test_more_groups_never_cost_more_and_all_of_them_nothing(points: int) -> None:
    rng = np.random.default_rng(points)
    places, mass = random_case(rng, points)
    costs = [cost(places, mass, found(places, mass, groups)) for groups in range(1, points + 1)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0
    assert costs[0] > 0  # else nothing was compared


@pytest.mark.parametrize("groups", [1, 2, 50])
def test_one_point_is_one_group(groups: int) -> None:
    assert best_groups(np.array([17]), np.array([0.0]), groups).tolist() == [0]


@pytest.mark.parametrize("groups", [5, 6, 1000])
def test_enough_groups_leave_every_point_alone(groups: int) -> None:
    places, mass = np.array([0, 2, 3, 8, 9]), np.array([0.0, 0, 7, 0, 1])
    assert best_groups(places, mass, groups).tolist() == [0, 1, 2, 3, 4]


def test_without_any_mass_the_line_is_shared_out_evenly() -> None:
    assert best_groups(np.arange(12), np.zeros(12), 4).tolist() == [0, 3, 6, 9]


def test_points_with_mass_are_told_apart_and_empty_stretches_shared_out() -> None:
    """Three heavy points of a hundred: each alone, or with neighbours that cost nothing."""
    mass = np.zeros(100)
    mass[[10, 11, 90]] = [5, 5, 2]
    starts = best_groups(np.arange(100), mass, 8)
    code = Groups.of(Cells(places=np.arange(100), steps=99, off_line=0), starts).code(np.array([10, 11, 90]))
    assert len(starts) == 8
    assert len(set(code.tolist())) == 3
    assert np.diff([*starts, 100]).max() < 30


@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("mass", [[3, -4, 0, 8, 1, -1, 2, 6, -2], [5, 5, 0, 0, -9, 0, 0, 5, 5]])
def test_negative_mass_counts_as_none(mass: list[int], groups: int) -> None:
    places, shown = list(range(9)), [max(m, 0) for m in mass]
    assert cost(places, shown, found(places, mass, groups)) == least(places, shown, groups)


def test_what_empty_points_are_given_is_too_little_to_join_a_heavy_one_with_a_light_one() -> None:
    """A millionth of the whole for all points together; at a hundredth the line would be cut at a third."""
    mass = np.zeros(100)
    mass[:2] = [10_000, 1]
    assert best_groups(np.arange(100), mass, 2).tolist() == [0, 1]


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 1e9, 1e200])
def test_the_unit_of_mass_does_not_matter(factor: float) -> None:
    rng = np.random.default_rng(3)
    places, mass = np.sort(rng.choice(1_000, 200, replace=False)), rng.integers(0, 9, 200)
    one, other = (tuple(best_groups(places, mass * f, 12).tolist()) for f in (1.0, factor))
    assert cost(places.tolist(), mass.tolist(), one) == cost(places.tolist(), mass.tolist(), other)


def test_moving_or_mirroring_the_line_does_not_change_the_cost() -> None:
    places, mass = random_case(np.random.default_rng(4), 30)
    expected = cost(places, mass, found(places, mass, 6))
    moved, mirrored = [p + 100_000 for p in places], [100 - p for p in places][::-1]
    assert cost(moved, mass, found(moved, mass, 6)) == expected
    assert cost(mirrored, mass[::-1], found(mirrored, mass[::-1], 6)) == expected


def test_a_full_column_of_a_release_is_grouped_as_well_as_by_a_slower_programme() -> None:
    """257 points in three runs, in exact numbers."""
    rng = np.random.default_rng(5)
    places, mass = list(range(0, 514, 2)), rng.integers(0, 50, 257).tolist()
    mass[60:180] = [0] * 120
    assert cost(places, mass, found(places, mass, 3)) == three_runs(places, mass)


def three_runs(places: list[int], mass: list[int]) -> int:
    """The least cost of three runs, by trying all pairs of cuts."""
    n = len(places)
    one = np.full((n + 1, n + 1), 0)
    for a in range(n):  # add points on the right, and move the median along
        left = right = 0
        m, now = a, 0
        for b in range(a, n):
            now += mass[b] * (places[b] - places[m])
            right += mass[b] if b > m else 0
            while m < b and left + mass[m] < right:
                gap = places[m + 1] - places[m]
                left += mass[m]
                now += gap * (left - right)
                right -= mass[m + 1]
                m += 1
            one[a, b + 1] = now
    return min(int(one[0, i] + one[i, j] + one[j, n]) for i in range(1, n) for j in range(i + 1, n))


def test_the_slower_programme_knows_the_median() -> None:
    """Control of the oracle above, against all medians of short lines."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        places, mass = random_case(rng, 8)
        assert three_runs(places, mass) == least(places, mass, 3)


def test_very_many_points_are_cut_into_runs_of_about_equal_mass() -> None:
    mass = np.random.default_rng(0).random(5 * MAX_EXACT_POINTS)
    starts = best_groups(np.arange(len(mass)), mass, 20)
    assert starts[0] == 0
    assert len(starts) == 20
    sums = np.add.reduceat(mass, starts)
    assert sums.max() < sums.min() + 2
    even = best_groups(np.arange(len(mass)), np.zeros(len(mass)), 20)
    assert set(np.diff(even)) <= {274, 275, 276}
