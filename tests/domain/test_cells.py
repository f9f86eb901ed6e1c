"""Runs of lattice points taken together: which point is in which group, where a group sits, how wide it is."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

import generators as gen
from certsynth.domain import Cells, Groups
from certsynth.domain.cells import coarser

LATTICES = {
    "a line": gen.lattice(7),
    "one point": gen.line(1),
    "a line that may be missing": gen.lattice(6, missing=True),
    "one point and a missing value": gen.line(1, missing=True),
    "holes": gen.holes([1, 2, 5, 6, 11, 13], 14, missing=True),
    "categories": gen.labels(3),
}


def all_starts(lattice: Cells) -> list[tuple[int, ...]]:
    """Every way to cut the line into runs."""
    line = len(lattice.places)
    if not line:
        return [()]
    return [(0, *cuts) for count in range(line) for cuts in itertools.combinations(range(1, line), count)]


def members(lattice: Cells, starts: tuple[int, ...]) -> list[list[int]]:
    """Codes of the lattice points of each group, those apart last, each alone."""
    line = len(lattice.places)
    runs = [list(range(a, b)) for a, b in itertools.pairwise([*starts, line])] if line else []
    return runs + [[line + i] for i in range(lattice.apart)]


@pytest.mark.parametrize("name", LATTICES)
def test_groups_are_the_runs_between_starts_and_sit_in_their_middle(name: str) -> None:
    lattice = LATTICES[name]
    line = len(lattice.places)
    for starts in all_starts(lattice):
        groups = Groups.of(lattice, np.array(starts, np.int64))
        runs = members(lattice, starts)
        assert (groups.size, groups.apart) == (len(runs), lattice.apart)
        code = groups.code(np.arange(lattice.size))
        assert [np.flatnonzero(code == g).tolist() for g in range(groups.size)] == runs
        widest = Fraction(0)
        for place, run in zip(groups.places, runs, strict=False):
            ends = [Fraction(int(lattice.places[i]), lattice.steps) for i in (run[0], run[-1])]
            middle = Fraction(int(place), groups.steps)
            assert middle == sum(ends) / 2
            widest = max(widest, *(abs(middle - end) for end in ends))
        assert groups.widest == widest
        assert (np.diff(groups.places) > 0).all()
        assert len(groups.places) == len(starts) if line else not len(groups.places)


@pytest.mark.parametrize("name", LATTICES)
def test_two_groups_are_as_far_apart_as_their_points_up_to_their_widths(name: str) -> None:
    lattice = LATTICES[name]
    points = np.arange(lattice.size)
    true = lattice.distance(points[:, None], points[None, :])
    for starts in all_starts(lattice):
        groups = Groups.of(lattice, np.array(starts, np.int64))
        code = groups.code(points)
        found = groups.distance(code[:, None], code[None, :])
        assert (np.abs(found - true) <= 2 * float(groups.widest) + 1e-12).all()
        assert groups.diameter <= lattice.diameter


@pytest.mark.parametrize("name", LATTICES)
def test_groups_of_single_points_are_the_lattice(name: str) -> None:
    lattice = LATTICES[name]
    groups = Groups.of(lattice, np.arange(len(lattice.places)))
    every = np.arange(lattice.size)
    assert groups.widest == 0
    assert groups.code(every).tolist() == every.tolist()
    np.testing.assert_array_equal(
        groups.distance(every[:, None], every[None, :]), lattice.distance(every[:, None], every[None, :])
    )
    assert groups.diameter == lattice.diameter


@pytest.mark.parametrize(
    "starts", [[], [1], [1, 2], [-1, 2], [0, 0], [0, 3, 3], [0, 4, 2], [0, 5], [0, 2, 17], [0, 1, 2, 3, 4, 5]], ids=str
)
@pytest.mark.parametrize("missing", [False, True])
def test_starts_that_are_none_are_refused(starts: list[int], missing: bool) -> None:
    with pytest.raises(ValueError, match="begin at the first point"):
        Groups.of(gen.lattice(4, missing=missing), np.array(starts, np.int64))


def test_categories_cannot_be_grouped() -> None:
    with pytest.raises(ValueError, match="no points on the line"):
        Groups.of(gen.labels(3), np.array([0]))
    assert Groups.of(gen.labels(3), np.array([], np.int64)).size == 3


@pytest.mark.parametrize("name", LATTICES)
def test_a_coarser_cell_holds_all_points_of_the_finer_one(name: str) -> None:
    """For all pairs of ways to cut the line of which one is finer than the other."""
    lattice = LATTICES[name]
    points, tried = np.arange(lattice.size), 0
    for starts, wider in itertools.product(all_starts(lattice), repeat=2):
        if set(wider) <= set(starts):
            fine, coarse = (Groups.of(lattice, np.array(cuts, np.int64)) for cuts in (starts, wider))
            above = coarser(fine, coarse)
            assert above.shape == (fine.size,)
            assert above[fine.code(points)].tolist() == coarse.code(points).tolist()
            tried += 1
    assert tried == 3 ** max(len(lattice.places) - 1, 0)


def test_the_same_cells_are_as_coarse_as_each_other() -> None:
    for cells in (*LATTICES.values(), Groups.of(gen.lattice(4, missing=True), np.array([0, 2]))):
        assert coarser(cells, cells).tolist() == list(range(cells.size))


def test_cells_that_are_no_parts_of_each_other_are_refused() -> None:
    plain, groups = gen.lattice(4), Groups.of(gen.lattice(4), np.array([0, 2]))
    shorter = Groups.of(gen.lattice(3), np.array([0, 2]))
    for fine, coarse in ((plain, groups), (groups, plain), (plain, gen.lattice(4)), (groups, shorter)):
        with pytest.raises(ValueError, match="different kinds"):
            coarser(fine, coarse)


def test_groups_cannot_be_changed() -> None:
    groups = Groups.of(gen.lattice(4), np.array([0, 2]))
    for array in (groups.starts, groups.places):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_groups_travel_to_other_processes() -> None:
    groups = Groups.of(gen.lattice(4, missing=True), np.array([0, 2]))
    again = pickle.loads(pickle.dumps(groups))
    assert isinstance(again, Groups)
    assert again.code(np.arange(6)).tolist() == groups.code(np.arange(6)).tolist() == [0, 0, 1, 1, 1, 2]
    assert (again.steps, again.apart, again.widest) == (groups.steps, groups.apart, groups.widest)
