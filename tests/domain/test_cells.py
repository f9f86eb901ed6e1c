"""Lattice points taken together: which point is in which group, where a group sits, how wide it is."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

import generators as gen
import oracles
from certsynth.domain import Cells, Groups
from certsynth.domain.cells import coarse_codes
from certsynth.domain.label_metric import matrix_metric, tree_metric

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
    return runs + [[line + i] for i in range(lattice.off_line)]


@pytest.mark.parametrize("name", LATTICES)
def test_groups_are_the_runs_between_starts_and_sit_in_their_middle(name: str) -> None:
    lattice = LATTICES[name]
    line = len(lattice.places)
    for starts in all_starts(lattice):
        groups = Groups.of(lattice, np.array(starts, np.int64))
        runs = members(lattice, starts)
        assert (groups.size, groups.off_line) == (len(runs), lattice.off_line)
        code = groups.code(np.arange(lattice.size))
        assert [np.flatnonzero(code == g).tolist() for g in range(groups.size)] == runs
        widest = Fraction(0)
        for place, run in zip(groups.places, runs, strict=False):
            ends = [Fraction(int(lattice.places[i]), lattice.steps) for i in (run[0], run[-1])]
            middle = Fraction(int(place), groups.steps)
            assert middle == sum(ends) / 2
            widest = max(widest, *(abs(middle - end) for end in ends))
        assert groups.radius == widest
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
        assert (np.abs(found - true) <= 2 * float(groups.radius) + 1e-12).all()
        assert groups.diameter <= lattice.diameter


@pytest.mark.parametrize("name", LATTICES)
def test_groups_of_single_points_are_the_lattice(name: str) -> None:
    lattice = LATTICES[name]
    groups = Groups.of(lattice, np.arange(len(lattice.places)))
    every = np.arange(lattice.size)
    assert groups.radius == 0
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
            above = coarse_codes(fine, coarse)
            assert above.shape == (fine.size,)
            assert above[fine.code(points)].tolist() == coarse.code(points).tolist()
            tried += 1
    assert tried == 3 ** max(len(lattice.places) - 1, 0)


def test_the_same_cells_are_as_coarse_as_each_other() -> None:
    for cells in (*LATTICES.values(), Groups.of(gen.lattice(4, missing=True), np.array([0, 2]))):
        assert coarse_codes(cells, cells).tolist() == list(range(cells.size))


def test_cells_that_are_no_parts_of_each_other_are_refused() -> None:
    plain, groups = gen.lattice(4), Groups.of(gen.lattice(4), np.array([0, 2]))
    shorter = Groups.of(gen.lattice(3), np.array([0, 2]))
    for fine, coarse in ((plain, groups), (groups, plain), (plain, gen.lattice(4)), (groups, shorter)):
        with pytest.raises(ValueError, match="not groups of one lattice"):
            coarse_codes(fine, coarse)


# ------------------------------------------------------------ labels taken together

THIRD = Fraction(1, 3)
TREE = tree_metric([("a",), ("a", "b"), ("c", "d"), ("c", "e")])
CIRCLE = matrix_metric([[Fraction(min(abs(i - j), 4 - abs(i - j))) for j in range(4)] for i in range(4)])
LABELLED = {
    "labels": gen.labels(4),
    "light labels": gen.labels(4, weight=THIRD),
    "a tree": gen.with_metric(TREE),
    "a light tree that may be missing": gen.with_metric(TREE, missing=True, weight=THIRD),
    "a circle that may be missing": gen.with_metric(CIRCLE, missing=True),
    "a light line of which points apart go together": Cells(places=np.array([0, 1]), steps=3, off_line=3, weight=THIRD),
}


def partitions(count: int) -> list[list[list[int]]]:
    """Every way to put so many labels into groups."""
    if not count:
        return [[]]
    last = count - 1
    return [
        made
        for groups in partitions(last)
        for made in ([*groups, [last]], *([*groups[:i], [*g, last], *groups[i + 1 :]] for i, g in enumerate(groups)))
    ]


@pytest.mark.parametrize("name", LABELLED)
def test_labels_taken_together_are_where_the_one_is_that_stands_for_them(name: str) -> None:
    lattice = LABELLED[name]
    line, labels = (
        len(lattice.places),
        lattice.label_metric.size if lattice.label_metric is not None else lattice.off_line,
    )
    alone = [[label] for label in range(labels, lattice.off_line)]
    points = np.arange(lattice.size)
    for groups_of, pick in itertools.product(partitions(labels), (0, -1)):
        together = sorted(groups_of, key=lambda group: group[pick]) + alone
        representatives = [group[pick] for group in together]
        group_of_label = [
            next(i for i, group in enumerate(together) if label in group) for label in range(lattice.off_line)
        ]
        groups = Groups.of(lattice, None, np.array(group_of_label), np.array(representatives))
        assert (groups.size, groups.off_line, groups.weight) == (
            line + len(representatives),
            len(representatives),
            lattice.weight,
        )
        assert groups.code(points).tolist() == [*range(line), *(line + k for k in group_of_label)]
        assert groups.middles().tolist() == [*range(line), *(line + head for head in representatives)]
        away = [
            oracles.column_distance(lattice, line + label, line + representatives[k])
            for label, k in enumerate(group_of_label)
        ]
        assert groups.radius == max(away)
        for a, b in itertools.product(range(groups.size), repeat=2):
            exact = oracles.column_distance(lattice, *(int(groups.middles()[c]) for c in (a, b)))
            assert oracles.column_distance(groups, a, b) == exact
            assert groups.distance(np.array(a), np.array(b)) == pytest.approx(float(exact), abs=1e-15)
        singles = Groups.of(lattice, None)
        assert coarse_codes(singles, groups).tolist() == groups.code(points).tolist()


@pytest.mark.parametrize(
    ("group_of_label", "representatives", "says"),
    [
        ([0, 0, 1], [0, 2], "contain its representative"),  # for four labels
        ([0, 0, 1, 1], [0, 1], "contain its representative"),
        ([0, 0, 1, 1], [2, 0], "contain its representative"),
        ([0, 0, 1, 2], [0, 2], "must be in a group"),
        ([0, -1, 1, 1], [0, 2], "must be in a group"),
    ],
)
def test_groups_of_labels_that_are_none_are_refused(
    group_of_label: list[int], representatives: list[int], says: str
) -> None:
    for lattice in (gen.labels(4), gen.with_metric(TREE)):
        with pytest.raises(ValueError, match=says):
            Groups.of(lattice, None, np.array(group_of_label), np.array(representatives))


def test_points_outside_of_a_label_metric_stay_alone_after_its_labels() -> None:
    lattice = gen.with_metric(TREE, missing=True)
    for group_of_label, representatives in (([0, 1, 2, 3, 3], [0, 1, 2, 3]), ([1, 2, 3, 4, 0], [4, 0, 1, 2, 3])):
        with pytest.raises(ValueError, match="stay alone, after its groups"):
            Groups.of(lattice, None, np.array(group_of_label), np.array(representatives))


def test_a_label_metric_is_for_points_apart() -> None:
    for places, apart in (([0, 1], 4), ([], 3)):
        with pytest.raises(ValueError, match="a label metric needs a column without a line"):
            Cells(places=np.array(places), steps=1, off_line=apart, label_metric=TREE)


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
    assert (again.steps, again.off_line, again.radius) == (groups.steps, groups.off_line, groups.radius)
