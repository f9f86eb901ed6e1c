"""Shares of groups are the nearest ones in the metric of the noise: brute force, special cases, and real tree noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from certsynth.projection.group_masses import NoisyShares, halving_contrasts, nearest_masses
from certsynth.projection.margins import within_groups
from certsynth.projection.simplex import project_to_simplex


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_contrasts_and_the_total_are_an_orthonormal_basis(size: int) -> None:
    contrasts, levels = halving_contrasts(size)
    basis = np.vstack([contrasts, np.full(size, size**-0.5)])
    assert basis @ basis.T == pytest.approx(np.eye(size), abs=1e-12)
    assert len(levels) == size - 1
    assert levels.max(initial=0) == max(int(size - 1).bit_length() - 1, 0)


def test_independent_noise_of_one_scale_gives_the_projection_to_the_simplex() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        values = rng.dirichlet(np.ones(9)) + 0.05 * rng.normal(size=9)
        found = nearest_masses(values, np.full(9, 0.05), [])
        assert found == pytest.approx(project_to_simplex(values, 1.0), abs=1e-4)


def test_no_point_of_a_fine_grid_is_nearer() -> None:
    rng = np.random.default_rng(2)
    grid = np.array([p for p in itertools.product(np.linspace(0, 1, 51), repeat=2) if sum(p) <= 1 + 1e-9])
    grid = np.column_stack([grid, 1 - grid.sum(axis=1)])
    for _ in range(10):
        values, deviations = rng.dirichlet(np.ones(3)) + 0.2 * rng.normal(size=3), rng.uniform(0.1, 0.3, 3)
        codes = np.array([0, 0, 1])
        other = NoisyShares(np.array([0.8, 0.2]) + 0.1 * rng.normal(size=2), 0.1 * rng.normal(size=(40, 2)), codes)
        contrast = np.array([1, -1]) / np.sqrt(2)
        variance = np.mean((other.errors @ contrast) ** 2)

        def apart(p, values=values, deviations=deviations, other=other, contrast=contrast, variance=variance):
            unions = np.column_stack([p[:, 0] + p[:, 1], p[:, 2]])
            return (((p - values) / deviations) ** 2).sum(axis=1) + ((unions - other.values) @ contrast) ** 2 / variance

        found = nearest_masses(values, deviations, [other])
        assert found is not None
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        assert apart(found[None])[0] <= apart(grid).min() + 1e-3


def test_without_noise_the_shares_come_back() -> None:
    shares = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    codes = np.array([0, 0, 1, 1, 2])
    exact = NoisyShares(np.bincount(codes, shares), np.zeros((10, 3)), codes)
    assert nearest_masses(shares, np.zeros(5), [exact]) == pytest.approx(shares, abs=1e-9)


def test_noise_far_above_the_rows_gives_no_solution_or_probabilities() -> None:
    rng = np.random.default_rng(3)
    for size in (1e2, 1e5, 1e9):
        found = nearest_masses(size * rng.normal(size=20), np.full(20, size), [])
        assert found is None or (found.min() >= 0 and found.sum() == pytest.approx(1))


def test_exact_halves_survive_noise_on_many_empty_groups() -> None:
    """A projection that treats all errors alike takes mass from the left half to mend the right one."""
    rng, codes = np.random.default_rng(4), np.arange(32)
    contrasts, levels = halving_contrasts(32)
    deviations = np.where(levels < 3, 1e-4, 0.01)
    true = np.where(codes < 4, 0.25, 0.0)
    ours, plain = [], []
    for _ in range(40):
        draws = (rng.normal(size=(11, 31)) * deviations) @ contrasts
        noisy = NoisyShares(true + draws[0], draws[1:], codes)
        found = nearest_masses(true + 0.02 * rng.normal(size=32), np.full(32, 0.02), [noisy])
        ours.append(np.abs(np.cumsum(found - true)).sum())
        plain.append(np.abs(np.cumsum(project_to_simplex(noisy.values, 1.0) - true)).sum())
    assert np.mean(ours) < 0.8 * np.mean(plain)


def test_values_inside_a_group_share_its_mass() -> None:
    found = within_groups(np.array([0.4, -0.1, 0.2, 0.1]), np.array([0, 0, 1, 1]), np.array([0.3, 0.7]))
    assert found == pytest.approx([0.3, 0.0, 0.4, 0.3])
