"""Step 3 on a grid of all columns: the closed minimum against a linear program, and the loss that is proved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from certsynth import Schema
from certsynth.algorithm.low_dimensional.heavy_cells import heavy_cells
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.mechanisms.samplers import simulate
from certsynth.mechanisms.sparse import LowDimensional, measure_sparse
from certsynth.projection.simplex import project_to_l1_ball, project_to_solid_simplex
from certsynth.queries.occupied import count_occupied, joint_grid
from small import NoNoise


def nearest(nu: np.ndarray, distances: np.ndarray, hub: float) -> float:
    """The least transport loss from ν to any probability on its support: flows between all pairs and over the hub."""
    size = len(nu)
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
    # Variables: flows along pairs, to the hub, from the hub, and the probabilities μ.
    count = len(pairs) + 3 * size
    cost = np.zeros(count)
    cost[: len(pairs)] = [distances[i, j] for i, j in pairs]
    cost[len(pairs) : len(pairs) + 2 * size] = hub
    balance = np.zeros((size + 1, count))
    for a, (i, j) in enumerate(pairs):
        balance[i, a], balance[j, a] = -1, 1
    for i in range(size):
        balance[i, len(pairs) + i] = -1
        balance[i, len(pairs) + size + i] = 1
        balance[i, len(pairs) + 2 * size + i] = -1
        balance[size, len(pairs) + 2 * size + i] = 1
    found = linprog(cost, A_eq=balance, b_eq=np.append(-nu, 1), bounds=(0, None), method="highs")
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("hub", [0.5, 1.0])
def test_no_measure_is_nearer_to_the_projected_counts(seed, hub):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    points = rng.random((size, 2))
    distances = np.abs(points[:, None] - points[None]).max(axis=2)
    nu = project_to_l1_ball(rng.integers(-30, 60, size), 100) / 100
    least = nearest(nu, distances, hub)
    assert least == pytest.approx(hub * (1 - nu.sum()), abs=1e-9)
    ours = np.maximum(nu, 0)
    ours = ours + (1 - ours.sum()) / size
    assert hub * np.abs(ours - nu).sum() == pytest.approx(least, abs=1e-9)  # all of it comes from the hub


def test_the_simplex_is_as_near_as_is_proved():
    """Half the ℓ1 distance is at most 2·S·‖η‖∞, on many grids; with a quarter of that it must fail somewhere."""
    rng = np.random.default_rng(3)
    closest = 0.0
    for _ in range(400):
        cells, filled, rows = int(rng.integers(2, 300)), int(rng.integers(1, 20)), int(rng.integers(1, 2000))
        counts = np.bincount(rng.integers(0, min(filled, cells), rows), minlength=cells)
        noise = simulate(rng, Unit.EPSILON, 3.0, counts.shape)
        weights = project_to_solid_simplex(counts + noise, rows)
        if not weights.any():
            continue
        moved = np.maximum(counts - weights * rows / weights.sum(), 0).sum()
        allowed = 2 * (counts > 0).sum() * np.abs(noise).max()
        assert moved <= allowed + 1e-6
        closest = max(closest, moved / allowed)
    assert closest > 0.25


CUBE = Schema.parse("\n".join(f'[[column]]\nname = "{n}"\nkind = "number"\nlow = 0\nhigh = 1' for n in "abcd"))


@pytest.mark.parametrize("signed", [False, True])
def test_without_noise_the_points_are_the_occupied_cells(signed):
    rows = np.random.default_rng(0).integers(0, 3, (200, 4)) / 2
    (counts,) = count_occupied(CUBE, [joint_grid(CUBE, 10)], [list(rows.T)])

    strategy = LowDimensional(Neighbours.REPLACE_ONE, signed=signed)
    made = measure_sparse(counts, strategy, budget=Budget(Fraction(1)), noise=NoNoise())
    points, weights = heavy_cells(made, signed=signed)
    back = made.marginals.indices(list(points.T), made.marginals.subsets[0])
    assert np.array_equal(back, counts.places)
    assert np.allclose(weights * 200, counts.counts)


def test_a_table_without_rows_gets_a_point():
    (counts,) = count_occupied(CUBE, [joint_grid(CUBE, 1)], [])
    points, weights = heavy_cells(
        measure_sparse(counts, LowDimensional(Neighbours.REPLACE_ONE), budget=Budget(Fraction(1))), signed=False
    )
    assert points.tolist() == [[0, 0, 0, 0]]
    assert weights.tolist() == [1]
