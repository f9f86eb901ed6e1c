"""Projections onto simplex and ball, against a slow search for the threshold and the conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth.projection.simplex import project_to_l1_ball, project_to_solid_simplex, soft_threshold

counts = st.lists(st.integers(-1000, 1000), max_size=30).map(lambda x: np.array(x, dtype=np.int64))


@given(counts, st.integers(1, 3000))
def test_the_threshold_leaves_the_mass(values, mass):
    tau = soft_threshold(values, mass)
    left = np.maximum(values - tau, 0).sum()
    assert left == pytest.approx(min(mass, np.maximum(values, 0).sum()), rel=1e-12)
    assert tau >= 0


@given(counts, st.integers(1, 3000))
def test_no_point_of_the_simplex_is_nearer(values, mass):
    """The projection u of x has ⟨x − u, y − u⟩ ≤ 0 for all y: it is enough to look at the corners and at 0."""
    projected = project_to_solid_simplex(values, mass)
    corners = np.vstack([np.zeros((1, len(values))), mass * np.eye(len(values))])
    assert ((corners - projected) @ (values - projected) <= 1e-6 * max(mass, 1) * 1000).all()


@given(counts, st.integers(1, 3000))
def test_no_point_of_the_ball_is_nearer(values, mass):
    projected = project_to_l1_ball(values, mass)
    assert np.abs(projected).sum() <= mass * (1 + 1e-12)
    corners = mass * np.vstack([np.eye(len(values)), -np.eye(len(values))])
    assert ((corners - projected) @ (values - projected) <= 1e-6 * max(mass, 1) * 1000).all()


def test_what_is_inside_stays():
    values = np.array([3, 0, 2])
    assert project_to_solid_simplex(values, 5).tolist() == [3, 0, 2]
    assert project_to_solid_simplex(values, 9).tolist() == [3, 0, 2]
    assert project_to_l1_ball(np.array([3, -2]), 5).tolist() == [3, -2]


def test_what_is_outside_is_lowered():
    assert project_to_solid_simplex(np.array([5, 3, -4, 1]), 6).tolist() == [4, 2, 0, 0]
    assert project_to_l1_ball(np.array([5, -3, 1]), 6).tolist() == [4, -2, 0]


def test_large_counts_are_exact():
    values = np.array([2**52 + 1, 2**52 - 1, 3])
    assert project_to_solid_simplex(values, 2**52).tolist() == [2**51 + 1, 2**51 - 1, 0]
