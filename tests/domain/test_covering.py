"""Coverings, nested partitions and tours of labels and columns, against what they promise."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import generators as gen
import oracles
from certsynth.domain import Cells
from certsynth.domain.covering import cover, covering_level, covering_levels, farthest_first, tour
from certsynth.domain.label_metric import LabelMetric, tree_metric


@st.composite
def label_metrics(draw: st.DrawFn, most: int = 12) -> LabelMetric:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return gen.random_label_metric(rng, labels=draw(st.integers(1, most)))


def among_labels(metric: LabelMetric) -> np.ndarray:
    return metric.distances[: metric.size, : metric.size]


@given(label_metrics(), st.fractions(0, 1, max_denominator=20))
def test_a_covering_is_within_its_radius_and_each_label_goes_to_its_nearest(
    metric: LabelMetric, radius: Fraction
) -> None:
    representatives, group_of_label = cover(metric, float(radius))
    between = among_labels(metric)
    assert np.array_equal(representatives, np.unique(representatives))
    assert np.array_equal(group_of_label[representatives], np.arange(len(representatives)))
    for label in range(metric.size):
        away = between[label, representatives[group_of_label[label]]]
        assert away == between[label, representatives].min()
        assert Fraction(int(away), metric.unit) <= radius + Fraction(1, 10**12)
    apart = between[np.ix_(representatives, representatives)][~np.eye(len(representatives), dtype=bool)]
    assert (apart > float(radius) * metric.unit - 1e-9).all(), "centres of a covering need not be so many"


@given(label_metrics())
def test_each_label_is_as_far_as_can_be_from_those_before(metric: LabelMetric) -> None:
    order, reach = farthest_first(metric)
    between = among_labels(metric)
    assert sorted(order.tolist()) == list(range(metric.size))
    assert between[order[0]].max() == between.max(axis=1).min()
    for i in range(1, metric.size):
        gaps = between[:, order[:i]].min(axis=1)
        assert reach[i - 1] == gaps[order[i]] == gaps.max()


@given(label_metrics())
def test_levels_go_from_one_piece_to_single_labels_and_pieces_fall_apart(metric: LabelMetric) -> None:
    levels = covering_levels(metric)
    assert set(levels[0].tolist()) == {0}
    assert len(set(levels[-1].tolist())) == metric.size
    for coarse, fine in itertools.pairwise(levels):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))
    between = among_labels(metric)
    for t, level in enumerate(levels):
        assert set(level.tolist()) == set(range(level.max() + 1))
        for piece in range(level.max() + 1):
            members = np.flatnonzero(level == piece)
            radius = Fraction(int(between[np.ix_(members, members)].max(axis=1).min()), metric.unit)
            assert radius <= Fraction(2, 2**t)


def test_levels_of_a_column_without_a_label_metric_are_none() -> None:
    assert covering_level(gen.labels(3), 2).tolist() == []
    cells = gen.with_metric(tree_metric([("a", "b"), ("a", "c"), ("d",)]), missing=True)
    assert covering_level(cells, 0).tolist() == [0, 0, 0]
    assert sorted(covering_level(cells, 99).tolist()) == [0, 1, 2]


WEIGHTS = (Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(1, 1_000))


@st.composite
def spaces(draw: st.DrawFn) -> list[Cells]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = draw(st.lists(st.sampled_from(WEIGHTS), min_size=1, max_size=3))
    return [gen.random_column(rng, most=5, weight=weight, metrics=True) for weight in weights]


@settings(max_examples=150)
@given(spaces())
def test_a_tour_visits_every_point_once(cells: list[Cells]) -> None:
    size = int(np.prod([c.size for c in cells]))
    assert sorted(tour(cells).tolist()) == list(range(size))


def length(cells: list[Cells]) -> Fraction:
    every = oracles.all_cells(cells)
    stops = [every[i] for i in tour(cells)]
    return sum((oracles.distance(cells, a, b) for a, b in itertools.pairwise(stops)), Fraction(0))


@given(st.integers(0, 2**32), st.integers(2, 25), st.sampled_from(WEIGHTS), st.booleans(), st.booleans())
def test_a_tour_of_a_tree_passes_no_edge_more_than_twice(
    seed: int, size: int, weight: Fraction, all_nodes: bool, missing: bool
) -> None:
    rng = np.random.default_rng(seed)
    every = gen.random_paths(rng, size)
    inner = {path[:-1] for path in every}
    listed = [path for path in every if all_nodes or path not in inner]
    metric = tree_metric([listed[i] for i in rng.permutation(len(listed))])
    edges = len(metric.distances) - 1
    cells = gen.with_metric(metric, weight=weight, missing=missing)
    assert length([cells]) <= weight * (Fraction(2 * edges, metric.unit) + missing)


@pytest.mark.parametrize("light", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 1_000)])
def test_a_light_column_is_done_with_before_a_heavy_one_goes_on(light: Fraction) -> None:
    """Labels of the one are at most half as far apart as those of the other: its inner loop is the short one."""
    heavy, metric = gen.labels(5), tree_metric([("a", "b"), ("a", "c"), ("d",)])
    for cells in (
        gen.labels(4, weight=light),
        gen.lattice(4, weight=light, missing=True),
        gen.with_metric(metric, weight=light),
    ):
        for columns, axis in (([cells, heavy], 1), ([heavy, cells], 0)):
            visited = np.unravel_index(tour(columns), [c.size for c in columns])[axis]
            assert (np.diff(visited) != 0).sum() == heavy.size - 1
