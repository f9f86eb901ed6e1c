"""Grids for rows of unknown dimension: how fine they are, and that their scores change as little as is said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from certsynth.algorithm.low_dimensional.grids import SCORE_UNITS_PER_ROW, Grid, grids_by_dimension, paper_grids
from certsynth.queries.occupied import MAX_GRID_CELLS
from small import EVERY_KIND, NATIVE, cube


@pytest.mark.parametrize("schema", [cube(1), cube(2), cube(3), cube(5), NATIVE, EVERY_KIND])
@pytest.mark.parametrize("rows", [0, 1, 30, 3_000, 10**6])
@pytest.mark.parametrize("scale", [0.3, 2.4, 90.0])
def test_no_cell_more_changes_a_score_by_more_than_is_said(schema, rows, scale):
    """For every number of occupied cells up to some thousand, and around larger ones: and the figure is not far off."""
    for grid in grids_by_dimension(schema, rows=rows, scale=scale):
        most = min(grid.cells, rows) + 1
        sizes = {*range(min(most, 3000) + 1), *(int(most * t) for t in np.linspace(0, 1, 50))}
        changes = [abs(grid.score(size + 1) - grid.score(size)) for size in sorted(sizes)]
        assert max(changes) <= grid.sensitivity
        if max(changes) > 50 * SCORE_UNITS_PER_ROW / 1000:
            assert grid.sensitivity <= 3 * max(changes) + 2


def test_a_score_without_its_floor_would_change_by_more():
    """The control of the test above: cells that are few are told apart only where `least` says so."""
    grid = grids_by_dimension(cube(5), rows=100_000, scale=2.4)[0]
    assert grid.least > 10
    bare = Grid(**{name: getattr(grid, name) for name in Grid.__slots__ if name != "least"})
    assert abs(bare.score(2) - bare.score(1)) > grid.sensitivity


def test_grids_become_finer_with_rows_and_are_finest_for_a_few_points():
    for columns in (2, 3, 5):
        for rows, more in itertools.pairwise((1_000, 10_000, 100_000)):
            few, many = (grids_by_dimension(cube(columns), rows=n, scale=2.4) for n in (rows, more))
            assert [g.dimension for g in few] == sorted(g.dimension for g in few)
            assert few[0].resolution > max(g.resolution for g in few[1:])
            assert many[-1].resolution > few[-1].resolution
            assert few[-1].dimension == many[-1].dimension == columns


def test_the_papers_resolution_is_the_inverse_of_what_is_printed():
    """k = (nε / d² log(nε))^{1/(s′+1)}: it grows with n."""
    n, epsilon, d = 10**6, 0.5, 3
    ideal = n * epsilon / (d**2 * math.log(n * epsilon))
    found = {g.dimension: g.resolution for g in paper_grids(cube(d), rows=n, scale=4.0, epsilon=epsilon)}
    assert found == {s: min(1024, round(ideal ** (1 / (s + 1)))) for s in range(d + 1)}


def test_all_cells_of_every_grid_can_be_numbered():
    for schema in (cube(12), EVERY_KIND):
        for found in (
            grids_by_dimension(schema, rows=10**7, scale=0.1),
            paper_grids(schema, rows=10**7, scale=0.1, epsilon=10.0),
        ):
            assert all(grid.cells < MAX_GRID_CELLS for grid in found)
            assert found


def test_a_resolution_that_is_asked_for_is_the_only_one():
    (grid,) = grids_by_dimension(cube(3), rows=100, scale=2.0, resolution=17)
    assert (grid.resolution, grid.dimension, grid.cells) == (17, 3, 17**3)
