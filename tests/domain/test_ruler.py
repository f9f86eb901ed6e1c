"""Distances in whole units against the definition, and what is nearest against looking at everything."""

from __future__ import annotations

import numpy as np
import pytest

from certsynth.domain.ruler import UNITS_PER_LENGTH, Ruler
from nets import TINY, true_distances
from small import EVERY_KIND, workers


def cleaned(rows: int, seed: int) -> list[np.ndarray]:
    frame = workers(rows, seed=seed)
    return [column.clean(frame[column.name].to_numpy()) for column in EVERY_KIND]


def test_distances_are_those_of_the_definition_up_to_rounding_and_never_below():
    ruler, first, second = Ruler.of(tuple(EVERY_KIND)), cleaned(300, 1), cleaned(300, 2)
    (a, off_a), (b, off_b) = ruler.place(first), ruler.place(second)
    true = np.diagonal(true_distances(EVERY_KIND, first, second)) * UNITS_PER_LENGTH
    found = ruler.distance(a, b) + off_a + off_b
    assert (found >= true - 1e-6).all()
    assert (found <= true + 4).all()
    assert ruler.distance(a, b).max() <= 2 * ruler.half_diameter


@pytest.mark.parametrize("seed", range(5))
def test_whole_distances_are_a_metric(seed):
    ruler = Ruler.of(tuple(EVERY_KIND))
    points = ruler.place(cleaned(25, seed))[0]
    a, b = (grid.ravel() for grid in np.meshgrid(np.arange(25), np.arange(25)))
    far = ruler.distance(points[a], points[b]).reshape(25, 25)
    assert (far == far.T).all()
    assert (far[:, :, None] <= far[:, None, :] + far.T[None, :, :]).all()


@pytest.mark.parametrize("columns", [range(8), [4, 5, 6, 7], [0, 1, 2, 3], [4, 2, 6]])
def test_the_nearest_and_the_cheapest_are_found_among_all(columns):
    ruler = Ruler.of([tuple(EVERY_KIND)[j] for j in columns])
    points, nodes = (ruler.place([table[j] for j in columns])[0] for table in (cleaned(400, 3), cleaned(90, 4)))
    leading = ruler.sort_column(nodes)
    if leading >= 0:
        nodes = nodes[np.argsort(nodes[:, leading], kind="stable")]
    every = np.array([ruler.distance(np.repeat(point[None], len(nodes), axis=0), nodes) for point in points])
    which, far = ruler.nearest(points, nodes, leading)
    assert np.array_equal(far, np.minimum(every.min(axis=1), ruler.half_diameter))
    assert np.array_equal(which < 0, every.min(axis=1) >= ruler.half_diameter)
    assert (every[np.arange(len(points)), which][which >= 0] == far[which >= 0]).all()
    prices = np.random.default_rng(5).integers(-UNITS_PER_LENGTH, UNITS_PER_LENGTH, len(nodes))
    least, chosen = ruler.cheapest(points, nodes, prices, 3)
    for part in range(3):
        assert np.array_equal(least[:, part], (every + prices)[:, part::3].min(axis=1))
        assert np.array_equal(least[:, part], (every + prices)[np.arange(len(points)), chosen[:, part]])


def test_a_row_is_found_alone_as_it_is_among_others():
    ruler = Ruler.of(tuple(EVERY_KIND))
    points, nodes = ruler.place(cleaned(600, 3))[0], ruler.place(cleaned(50, 4))[0]
    leading = ruler.sort_column(nodes)
    nodes = nodes[np.argsort(nodes[:, leading], kind="stable")]
    which, _ = ruler.nearest(points, nodes, leading)
    assert [int(ruler.nearest(point[None], nodes, leading)[0][0]) for point in points] == which.tolist()


def test_a_value_between_two_units_says_so():
    column = next(iter(TINY))
    place, off = column.to_units(np.array([0.0, 1.0, 5.0]), UNITS_PER_LENGTH)
    assert place.tolist() == [0, round(UNITS_PER_LENGTH / 5), UNITS_PER_LENGTH]
    assert off.tolist() == [False, True, False]
