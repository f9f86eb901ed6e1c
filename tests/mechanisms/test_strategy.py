"""P1 for one marginal: closed forms of sensitivities against all pairs of neighbours, and the way back to cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import oracles
from certsynth.errors import InputError
from certsynth.mechanisms import STRATEGIES, Haar, Identity, Neighbours, Strategy
from certsynth.mechanisms.strategy import strategy_named

SIZES = range(1, 34)
EVERY = [strategy_named(name, neighbours=n) for name in STRATEGIES for n in Neighbours]
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def named(strategy: Strategy) -> str:
    return f"{strategy.name}, {strategy.neighbours}"


def levels(size: int) -> int:
    return math.ceil(math.log2(size))


def single_rows(strategy: Strategy, size: int) -> np.ndarray:
    """Coefficients of all tables of one row, one below the other."""
    return np.array([strategy.coefficients(table) for table in np.eye(size, dtype=np.int64)])


def largest_change(strategy: Strategy, size: int) -> int:
    """Brute force: all rows that may come or go, or all pairs of a row and what replaces it."""
    rows = single_rows(strategy, size).reshape(size, -1)
    others = rows if strategy.neighbours is REPLACE else np.zeros((1, rows.shape[1]))
    return int(cdist(rows, others, "cityblock").max()) if rows.shape[1] else 0


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_change_does_not_depend_on_the_rest_of_the_table(strategy: Strategy) -> None:
    """So tables of a single row are enough to try."""
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 8, 13):
        table = rng.integers(0, 50, size=size)
        for cell, row in enumerate(np.eye(size, dtype=np.int64)):
            change = strategy.coefficients(table + row) - strategy.coefficients(table)
            assert np.array_equal(change, single_rows(strategy, size)[cell])


@pytest.mark.parametrize("size", SIZES)
def test_haar_sensitivity_is_attained(size: int) -> None:
    """2K and K: the right half of the tree always holds a cell, so two cells in different halves exist."""
    for neighbours, factor in ((REPLACE, 2), (ADD, 1)):
        strategy = Haar(neighbours)
        assert strategy.sensitivity(size) == factor * levels(size) == largest_change(strategy, size)


@pytest.mark.parametrize("size", SIZES)
def test_sensitivity_of_haar_with_a_noisy_total_is_attained(size: int) -> None:
    """One more under add/remove; under replace-one the total does not move, and costs nothing."""
    added, replaced = Haar(ADD, noisy_total=True), Haar(REPLACE, noisy_total=True)
    assert added.sensitivity(size) == levels(size) + 1 == largest_change(added, size)
    assert replaced.sensitivity(size) == 2 * levels(size) == largest_change(replaced, size)


@pytest.mark.parametrize("size", SIZES)
def test_identity_sensitivity_is_attained(size: int) -> None:
    assert Identity(ADD).sensitivity(size) == 1 == largest_change(Identity(ADD), size)
    moves = 2 if size > 1 else 0
    assert Identity(REPLACE).sensitivity(size) == moves == largest_change(Identity(REPLACE), size)


def test_brute_force_sees_a_sensitivity_that_is_too_small() -> None:
    """Control: the unpadded count of levels ⌊log2 m⌋ would be refuted."""
    assert any(largest_change(Haar(REPLACE), size) > 2 * math.floor(math.log2(size)) for size in SIZES)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_nothing_to_change_means_nothing_to_send(strategy: Strategy) -> None:
    """What has sensitivity 0 is sent without noise: it may be nothing, or the total where that is public."""
    for size in SIZES:
        counts = np.arange(1, size + 1)
        sent = strategy.coefficients(counts)
        assert len(sent) == strategy.length(size)
        if strategy.sensitivity(size) == 0:
            assert size == 1
            public = strategy.neighbours is REPLACE and strategy.measures_total
            assert sent.tolist() == ([1] if public else [])


def test_the_oracle_has_the_properties_of_lemma_3() -> None:
    for k in range(6):
        inverse = oracles.haar_inverse(k)
        assert np.array_equal(inverse @ oracles.haar(k), np.eye(2**k))
        assert np.abs(inverse).sum(axis=0).max() == k + 1
        assert set(np.unique(np.abs(inverse))) <= {0.0, 1.0}


@pytest.mark.parametrize("size", SIZES)
def test_haar_coefficients_are_the_inverse_haar_matrix_times_the_padded_counts(size: int) -> None:
    rng = np.random.default_rng(size)
    counts = rng.integers(0, 1_000, size=size)
    padded = np.zeros(2 ** levels(size))
    padded[:size] = counts
    expected = oracles.haar_inverse(levels(size)) @ padded
    assert Haar(REPLACE, noisy_total=True).coefficients(counts).tolist() == expected.tolist()
    assert Haar(REPLACE).coefficients(counts).tolist() == expected[1:].tolist()


@pytest.mark.parametrize("size", SIZES)
def test_haar_cells_are_the_haar_matrix_times_the_coefficients(size: int) -> None:
    rng = np.random.default_rng(size)
    noisy = rng.integers(-50, 50, size=(4, 2 ** levels(size))).astype(float)
    expected = noisy @ oracles.haar(levels(size)).T[:, :size]
    known = Haar(REPLACE).cells(noisy[:, 1:], size, noisy[:, 0])
    measured = Haar(ADD, noisy_total=True).cells(noisy, size, np.full(4, 1e9))  # its own total counts
    assert known == pytest.approx(expected, abs=1e-12)
    assert measured == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_identity_cells_are_shifted_evenly_to_the_total(size: int) -> None:
    rng = np.random.default_rng(size)
    strategy = Identity(ADD)
    noisy, total = rng.integers(-50, 50, size=(4, size)).astype(float), rng.normal(size=4)
    cells = strategy.cells(noisy, size, total)
    assert cells.sum(axis=-1) == pytest.approx(total, abs=1e-9)
    assert np.ptp(cells - noisy, axis=-1) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_cells_without_noise_are_the_counts_exactly(strategy: Strategy) -> None:
    rng = np.random.default_rng(2)
    for size in SIZES:
        for most in (1, 7, 10**6, 2**50 // size + 2):
            counts = rng.integers(0, most, size=size)
            total = np.asarray(float(counts.sum()))
            coefficients = strategy.coefficients(counts).astype(float)
            assert strategy.cells(coefficients, size, total).tolist() == counts.tolist()
            if strategy.measures_total:
                assert strategy.total(coefficients) == counts.sum()


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_cells_are_linear_in_coefficients_and_total(strategy: Strategy) -> None:
    """The whole certificate rests on it: the error of the estimate is the image of the noise."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 3, 5, 8, 33):
        x, y = rng.normal(size=(2, strategy.length(size)))
        s, t = rng.normal(size=2)
        both = strategy.cells(2 * x - 3 * y, size, np.asarray(2 * s - 3 * t))
        apart = 2 * strategy.cells(x, size, np.asarray(s)) - 3 * strategy.cells(y, size, np.asarray(t))
        assert both == pytest.approx(apart, abs=1e-12)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_leading_axes_are_kept(strategy: Strategy) -> None:
    rng = np.random.default_rng(4)
    for size in (1, 5):
        noise, total = rng.normal(size=(2, 3, strategy.length(size))), rng.normal(size=(2, 3))
        cells = strategy.cells(noise, size, total)
        assert cells.shape == (2, 3, size)
        assert cells[1, 2] == pytest.approx(strategy.cells(noise[1, 2], size, total[1, 2]), abs=1e-12)


@pytest.mark.parametrize("noisy_total", [False, True])
def test_haar_coefficients_of_huge_counts_do_not_overflow(noisy_total: bool) -> None:
    """P18: every coefficient is at most n, so n < 2^63 is all that is needed, for any number of cells."""
    for counts in ([2**63 - 1], [0, 2**63 - 1, 0], [2**62, 2**62 - 1], [2**60] * 7, [0] * 4095 + [2**63 - 1]):
        padded = counts + [0] * (2 ** levels(len(counts)) - len(counts))
        expected = python_haar(padded)
        found = Haar(ADD, noisy_total=noisy_total).coefficients(np.array(counts, dtype=np.int64))
        assert found.tolist() == (expected if noisy_total else expected[1:])


def python_haar(counts: list[int]) -> list[int]:
    """Coefficients in Python's integers, from the coarsest level."""
    half = len(counts) // 2
    if not half:
        return counts
    coefficients, blocks = [sum(counts)], [counts]
    while half:
        coefficients += [sum(block[:half]) - sum(block[half:]) for block in blocks]
        blocks = [part for block in blocks for part in (block[:half], block[half:])]
        half //= 2
    return coefficients


@pytest.mark.parametrize("name", ["", "HAAR", "gauss", "x" * 500])
def test_an_unknown_mechanism_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InputError, match="identity, haar, haar-hilbert, haar-noisy-total") as caught:
        strategy_named(name, neighbours=REPLACE)
    assert len(str(caught.value)) < 150


def test_names_lead_back_to_their_strategy() -> None:
    for strategy in EVERY:
        assert strategy_named(strategy.name, neighbours=strategy.neighbours) == strategy
