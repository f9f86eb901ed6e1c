"""Relevance: which cells of a noisy table are worth following, at every scale."""

from __future__ import annotations

import numpy as np
import pytest

from certsynth.projection.relevance import Scale, relevances

FINE, HALVES = np.arange(16), np.arange(16) // 8


def test_without_noise_every_place_counts() -> None:
    table = np.zeros(16)
    table[3] = 1.0
    for relevance in relevances(table, np.full(16, 1 / 16), [Scale(FINE, 16, 0.0), Scale(HALVES, 2, 0.0)]):
        assert relevance == pytest.approx(1.0)


def test_a_place_counts_half_if_its_expected_share_is_its_noise() -> None:
    noise = 4 / 16  # the root of 16 squares of 1/16
    (relevance,) = relevances(np.zeros(16), np.full(16, 1 / 16), [Scale(FINE, 16, noise)])
    assert relevance == pytest.approx(0.5)


def test_more_noise_never_makes_a_place_more_relevant_at_one_scale() -> None:
    independent = np.random.default_rng(1).dirichlet(np.ones(16))
    found = [relevances(independent, independent, [Scale(FINE, 16, noise)])[0] for noise in (0.01, 0.1, 1.0)]
    assert (found[0] >= found[1]).all()
    assert (found[1] >= found[2]).all()
    assert found[2].max() < found[0].max()


def test_cells_of_a_half_that_is_known_to_be_empty_hardly_count() -> None:
    table = np.where(HALVES == 0, 1 / 8, 0.0)
    scales = [Scale(FINE, 16, 0.04), Scale(HALVES, 2, 0.001)]
    fine, coarse = relevances(table, np.full(16, 1 / 16), scales)
    assert coarse == pytest.approx(1.0, abs=1e-3)
    assert fine[:8].min() > 0.99
    assert fine[8:].max() < 0.01


def test_empty_columns_and_negative_counts_give_finite_relevances() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        independent = np.outer(*(rng.dirichlet(np.ones(4)) * (rng.random(4) < 0.5) for _ in range(2))).ravel()
        scales = [Scale(FINE, 16, 0.1), Scale(HALVES, 2, 0.1)]
        for relevance in relevances(rng.normal(size=16), independent, scales):
            assert np.isfinite(relevance).all()
            assert (relevance > 0).all()
            assert (relevance <= 1).all()
