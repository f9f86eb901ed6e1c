"""Shared dependence: tables of two columns with less noise, given how values resemble each other in other tables."""

from __future__ import annotations

import numpy as np
import pytest

from certsynth.projection import shared_dependence
from certsynth.projection.shared_dependence import NoisyTable, contrast_levels, sharpen

SIZES = (6, 5, 4)
PAIRS = ((0, 1), (0, 2), (1, 2))


def shares_of(rows: np.ndarray, columns: tuple[int, int]) -> np.ndarray:
    first, second = columns
    found = np.zeros((SIZES[first], SIZES[second]))
    np.add.at(found, (rows[:, first], rows[:, second]), 1 / len(rows))
    return found


def dependent_rows(count: int, seed: int = 1) -> np.ndarray:
    """Three columns that follow one hidden variable."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(count)
    return np.column_stack(
        [np.clip((size * (0.7 * hidden + 0.3 * rng.random(count))).astype(int), 0, size - 1) for size in SIZES]
    )


def noisy_table(
    rows: np.ndarray, columns: tuple[int, int], noise: float, *, seed: int = 2, on_squares: bool = False
) -> NoisyTable:
    rng, true = np.random.default_rng([seed, *columns]), shares_of(rows, columns)
    errors = noise * rng.standard_normal((10, *true.shape))
    return NoisyTable(
        columns=columns,
        groups=(np.arange(len(true)), np.arange(true.shape[1])),
        shares=(true.sum(axis=1), true.sum(axis=0)),
        values=(true + noise * rng.standard_normal(true.shape)).ravel(),
        errors=errors.reshape(10, -1),
        levels=(contrast_levels(len(true), on_line=True), contrast_levels(true.shape[1], on_line=True))
        if on_squares
        else None,
    )


def posterior_mean(table: NoisyTable, rows: np.ndarray, noise: float) -> np.ndarray:
    """The oracle: covariances of all cells written out, and one linear system."""
    dependence = {}
    for pair in PAIRS:
        shares = shares_of(rows, pair)
        dependence[pair] = shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))
    alike = [np.zeros((size, size)) for size in SIZES]
    for (i, j), each in dependence.items():
        norm = np.sqrt((each**2).sum())
        alike[i] += each @ each.T / norm
        alike[j] += each.T @ each / norm
    i, j = table.columns
    prior = (dependence[i, j] ** 2).sum() * np.kron(alike[i] / np.trace(alike[i]), alike[j] / np.trace(alike[j]))
    independent = np.outer(*table.shares).ravel()
    found = prior @ np.linalg.solve(prior + noise**2 * np.eye(len(prior)), table.values - independent)
    return independent + found


@pytest.mark.parametrize("on_squares", [False, True])
def test_tables_are_the_posterior_means_of_the_model(on_squares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise alike on all cells, every orthonormal basis gives the same."""
    monkeypatch.setattr(shared_dependence, "TOLERANCE", 1e-12)
    noise = 0.01
    monkeypatch.setattr(shared_dependence, "_variances", lambda errors, _: np.full(errors.shape[1:], noise**2))
    rows = dependent_rows(5_000)
    tables = [noisy_table(rows, pair, noise, on_squares=on_squares) for pair in PAIRS]
    for table, (values, _) in zip(tables, sharpen(tables, rows, np.random.default_rng(3)), strict=True):
        assert values == pytest.approx(posterior_mean(table, rows, noise), abs=1e-9)


@pytest.mark.parametrize("on_squares", [False, True])
def test_noise_becomes_less_and_draws_of_the_error_say_how_much_remains(on_squares: bool) -> None:
    rows, noise, before, after, said = dependent_rows(20_000), 0.01, 0.0, 0.0, 0.0
    for seed in range(20):
        tables = [noisy_table(rows, pair, noise, seed=seed, on_squares=on_squares) for pair in PAIRS]
        for table, (values, errors) in zip(tables, sharpen(tables, rows, np.random.default_rng(seed)), strict=True):
            true = shares_of(rows, table.columns).ravel()
            before += ((table.values - true) ** 2).sum()
            after += ((values - true) ** 2).sum()
            said += (errors**2).sum(axis=1).mean()
    assert after < 0.6 * before
    assert said / 2 < after < said * 2


def test_without_noise_tables_stay_as_they_are() -> None:
    rows = dependent_rows(2_000)
    tables = [noisy_table(rows, pair, 0.0) for pair in PAIRS]
    for table, (values, errors) in zip(tables, sharpen(tables, rows, np.random.default_rng(1)), strict=True):
        assert values == pytest.approx(table.values, abs=1e-5)
        assert errors == pytest.approx(np.zeros_like(errors), abs=1e-5)


def test_columns_keep_their_distributions() -> None:
    rows = dependent_rows(2_000)
    tables = [noisy_table(rows, pair, 0.02) for pair in PAIRS]
    for table, (values, _) in zip(tables, sharpen(tables, rows, np.random.default_rng(1)), strict=True):
        found = values.reshape(len(table.shares[0]), -1)
        assert found.sum(axis=1) == pytest.approx(table.shares[0], abs=1e-4)
        assert found.sum(axis=0) == pytest.approx(table.shares[1], abs=1e-4)


def test_rows_that_are_independent_make_all_tables_independent() -> None:
    """All combinations once: the fitted rows show no dependence, so that all that was measured is noise."""
    rows = np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, 3)
    tables = [noisy_table(rows, pair, 0.01) for pair in PAIRS]
    for table, (values, errors) in zip(tables, sharpen(tables, rows, np.random.default_rng(1)), strict=True):
        assert values == pytest.approx(np.outer(*table.shares).ravel(), abs=1e-9)
        assert errors == pytest.approx(np.zeros_like(errors), abs=1e-9)


def test_a_table_in_groups_of_cells_uses_the_sums_of_covariances() -> None:
    """Cells that are merged for one table, and columns whose cells were merged before."""
    rows, halves = dependent_rows(3_000), (np.arange(6) // 2, np.arange(5) // 3)
    fine = noisy_table(rows, (0, 1), 0.01)
    coarse_rows = np.column_stack([halves[0][rows[:, 0]], halves[1][rows[:, 1]]])

    def merged(groups: tuple[np.ndarray, np.ndarray]) -> NoisyTable:
        table = np.zeros((3, 2))
        np.add.at(table, (halves[0][:, None], halves[1][None]), fine.values.reshape(6, 5))
        shares = table.sum(axis=1), table.sum(axis=0)
        errors = 0.01 * np.random.default_rng(5).standard_normal((10, 6))
        return NoisyTable((0, 1), groups, shares, table.ravel(), errors, None)

    ((in_groups, _),) = sharpen([merged(halves)], rows, np.random.default_rng(1))
    ((alone, _),) = sharpen([merged((np.arange(3), np.arange(2)))], coarse_rows, np.random.default_rng(1))
    assert in_groups.sum() == pytest.approx(alone.sum())
    assert in_groups == pytest.approx(alone, abs=0.005)


def test_no_tables_give_no_tables() -> None:
    assert sharpen([], dependent_rows(10), np.random.default_rng(1)) == []


def test_a_table_that_the_model_does_not_suit_stays_noisy() -> None:
    """Two columns that are equal, in rows of which the first fit made them nearly independent."""
    rng = np.random.default_rng(4)
    same = rng.integers(5, size=5_000)
    rows = np.column_stack([same, same, rng.integers(4, size=5_000)])
    table = noisy_table(rows, (0, 1), 0.001)
    shuffled = np.column_stack([same, rng.permutation(same), rows[:, 2]])
    ((values, errors),) = sharpen([table], shuffled, rng)
    assert values is table.values
    assert errors is table.errors
    ((values, _),) = sharpen([table], rows, rng)
    assert values is not table.values


def test_a_table_that_the_model_would_make_worse_stays_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the linear system is not solved to the end, the errors of drawn tables are larger than the noise."""
    rows = dependent_rows(20_000)
    tables = [noisy_table(rows, pair, 0.001) for pair in PAIRS]
    monkeypatch.setattr(shared_dependence, "MAX_STEPS", 0)
    monkeypatch.setattr(shared_dependence, "MAX_MISFIT", np.inf)
    for table, (values, errors) in zip(tables, sharpen(tables, rows, np.random.default_rng(3)), strict=True):
        assert values is table.values
        assert errors is table.errors
