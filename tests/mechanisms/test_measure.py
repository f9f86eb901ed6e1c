"""Step 2 as a whole: P1 over all marginals together, what is and is not in a measurement, and the law of its errors."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp

import generators as gen
import oracles
from certsynth.mechanisms import STRATEGIES, Haar, Identity, Measurement, Neighbours, Strategy, measure
from certsynth.mechanisms.measure import coefficients, sensitivity
from certsynth.mechanisms.samplers import Noised
from certsynth.mechanisms.strategy import strategy_named
from certsynth.queries.marginals import Counts, Marginals
from certsynth.transport.path import Order

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
EVERY = [strategy_named(name, neighbours=n) for name in STRATEGIES for n in Neighbours]
SNAKES = [strategy for strategy in EVERY if strategy.order == "snake"]


def named(strategy: Strategy) -> str:
    return f"{strategy.name}, {strategy.neighbours}, {strategy.order}"


@dataclass
class FixedNoise:
    """Made-up noise: the same shift everywhere, or a given vector. Remembers what it was asked for."""

    shift: int | np.ndarray = 0
    releasable: bool = False
    asked: tuple[int, Fraction] | None = None

    def add(self, values: np.ndarray, *, sensitivity: int, epsilon: Fraction) -> Noised:
        self.asked = sensitivity, epsilon
        return Noised(values=values + self.shift, scale=float(sensitivity / epsilon), epsilon=epsilon)


def marginals_of(columns: gen.Shape, sparsity: int) -> Marginals:
    subsets = tuple(itertools.combinations(range(len(columns)), sparsity))
    return Marginals(cells=tuple(columns), subsets=subsets)


def count(marginals: Marginals, rows: np.ndarray) -> Counts:
    """Counts of a table given as rows of codes."""
    return marginals.count([list(rows.T)])


def grid(marginals: Marginals) -> np.ndarray:
    return np.array(oracles.all_cells(marginals.cells), dtype=np.int64)


# ------------------------------------------------------------ P1


def largest_change(marginals: Marginals, strategy: Strategy) -> tuple[int, int]:
    """Brute force over all pairs of neighbours of one row, and how many pairs there were."""
    tables = [np.concatenate(coefficients(count(marginals, row[None]), strategy)) for row in grid(marginals)]
    rows = np.array(tables)
    none = np.concatenate(coefficients(count(marginals, grid(marginals)[:0]), strategy))
    others = rows if strategy.neighbours is REPLACE else none[None]
    if not rows.shape[1]:
        return 0, len(rows)
    return int(cdist(rows, others, "cityblock").max()), len(rows) * len(others)


SMALL = [(d, s, k) for d in (1, 2, 3, 4) for s in range(1, d + 1) for k in (1, 2, 3, 4, 5) if k**d <= 256]


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_sensitivity_of_all_marginals_together_is_attained(strategy: Strategy) -> None:
    """For every d ≤ 4, s ≤ d and k ≤ 5 with at most 256 cells in the whole table."""
    pairs = 0
    for d, s, k in SMALL:
        marginals = marginals_of((gen.line(k),) * d, s)
        found, tried = largest_change(marginals, strategy)
        pairs += tried
        assert found == sensitivity(marginals, strategy) - unattained(strategy, (d, s, k)), (d, s, k)
    assert pairs > (200_000 if strategy.neighbours is REPLACE else 2_000)


def unattained(strategy: Strategy, case: tuple[int, int, int]) -> int:
    """Two cells of every pair of columns in different halves: on Hilbert's curve not always by one pair of rows.

    Of 3 × 3 cells padded to 16 the right half holds a single one, the curve's end (0, 2); of four columns no row is
    there in all six pairs, nor two rows that share them out.
    """
    lonely = strategy.order == "hilbert" and strategy.neighbours is REPLACE and strategy.name != "identity"
    return 2 if lonely and case == (4, 2, 3) else 0


@pytest.mark.parametrize(
    ("name", "neighbours", "per_marginal", "once"),
    [
        ("identity", REPLACE, 2, 0),
        ("identity", ADD, 1, 0),
        ("haar", REPLACE, 2 * 6, 0),
        ("haar", ADD, 6, 1),
        ("haar-noisy-total", REPLACE, 2 * 6, 0),
        ("haar-noisy-total", ADD, 7, 0),
    ],
)
def test_sensitivity_has_the_closed_form(name: str, neighbours: Neighbours, per_marginal: int, once: int) -> None:
    """Five columns, pairs, k = 8: ten marginals of 2^6 cells."""
    marginals = marginals_of((gen.line(8),) * 5, 2)
    assert sensitivity(marginals, strategy_named(name, neighbours=neighbours)) == 10 * per_marginal + once


MIXED = [
    (gen.line(3, missing=True), gen.labels(2), gen.holes([1, 2, 6], 7)),
    (gen.labels(1), gen.line(4), gen.labels(3)),
    (gen.line(1), gen.line(1), gen.labels(5)),
    (gen.labels(7), gen.holes([0, 5], 6, missing=True)),
    (gen.line(1), gen.labels(1)),
]


@pytest.mark.parametrize("strategy", EVERY, ids=named)
@pytest.mark.parametrize("columns", MIXED, ids=lambda columns: "×".join(str(c.size) for c in columns))
def test_no_pair_of_rows_changes_mixed_marginals_by_more(columns: gen.Shape, strategy: Strategy) -> None:
    for s in range(1, len(columns) + 1):
        marginals = marginals_of(columns, s)
        found, _ = largest_change(marginals, strategy)
        assert found <= sensitivity(marginals, strategy)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_replacing_or_adding_a_row_of_any_table_changes_no_more(strategy: Strategy) -> None:
    """Tables of many rows: the change is that of the single rows."""
    rng = np.random.default_rng(1)
    marginals = marginals_of(MIXED[0], 2)
    points = grid(marginals)
    for _ in range(50):
        table = points[rng.integers(len(points), size=rng.integers(1, 40))]
        other = points[rng.integers(len(points), size=1)]
        neighbour = np.vstack([table[1:], other]) if strategy.neighbours is REPLACE else np.vstack([table, other])
        first, second = (np.concatenate(coefficients(count(marginals, t), strategy)) for t in (table, neighbour))
        assert np.abs(first - second).sum() <= sensitivity(marginals, strategy)


@pytest.mark.parametrize("strategy", EVERY, ids=named)
def test_noise_is_asked_for_with_the_sensitivity_and_its_cost_is_what_is_reported(strategy: Strategy) -> None:
    marginals = marginals_of(MIXED[0], 2)
    noise = FixedNoise()
    measured = measure(count(marginals, grid(marginals)), strategy, epsilon=Fraction(3, 7), noise=noise)
    assert noise.asked == (sensitivity(marginals, strategy), Fraction(3, 7))
    assert measured.cost.epsilon == Fraction(3, 7)
    assert measured.cost.neighbours is strategy.neighbours
    assert measured.scale == pytest.approx(sensitivity(marginals, strategy) * 7 / 3)


def test_cost_is_what_the_noise_says_not_what_was_asked() -> None:
    class Dearer(FixedNoise):
        def add(self, values: np.ndarray, *, sensitivity: int, epsilon: Fraction) -> Noised:
            return Noised(values=values, scale=1.0, epsilon=2 * epsilon)

    marginals = marginals_of(MIXED[0], 1)
    measured = measure(count(marginals, grid(marginals)), Identity(REPLACE), epsilon=Fraction(1), noise=Dearer())
    assert measured.cost.epsilon == 2


class NoNoise:
    releasable = True

    def add(self, values: np.ndarray, *, sensitivity: int, epsilon: Fraction) -> Noised:
        raise AssertionError("noise was asked for where nothing can change")


@pytest.mark.parametrize("strategy", [Haar(REPLACE), Identity(REPLACE)], ids=named)
def test_one_cell_needs_no_noise_and_costs_nothing(strategy: Strategy) -> None:
    marginals = marginals_of((gen.line(1), gen.labels(1)), 2)
    measured = measure(count(marginals, np.zeros((9, 2), int)), strategy, epsilon=Fraction(1), noise=NoNoise())
    assert measured.cost.epsilon == 0
    assert sum(len(block) for block in measured.coefficients) == 0
    blocks, rows = measured.estimate()
    assert ([block.tolist() for block in blocks], rows) == ([[9.0]], 9.0)
    errors, rows_error = measured.simulate(np.random.default_rng(1), 5)
    assert not np.any(errors[0])
    assert not np.any(rows_error)


def test_one_cell_under_add_remove_is_the_hidden_number_of_rows_and_gets_noise() -> None:
    for strategy in (s for s in SNAKES if s.neighbours is ADD):
        marginals = marginals_of((gen.line(1),), 1)
        noise = FixedNoise(shift=5)
        measured = measure(count(marginals, np.zeros((9, 1), int)), strategy, epsilon=Fraction(1), noise=noise)
        assert noise.asked == (1, Fraction(1))
        blocks, rows = measured.estimate()
        assert blocks[0].tolist() == [14.0]
        assert rows == 14.0


# ------------------------------------------------------------ what is in it


@pytest.mark.parametrize("strategy", EVERY, ids=named)
@pytest.mark.parametrize("columns", MIXED, ids=lambda columns: "×".join(str(c.size) for c in columns))
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_without_noise_the_estimate_is_the_counts(columns: gen.Shape, strategy: Strategy, rows: int) -> None:
    rng = np.random.default_rng(rows)
    for s in range(1, len(columns) + 1):
        marginals = marginals_of(columns, s)
        counts = count(marginals, grid(marginals)[rng.integers(len(grid(marginals)), size=rows)])
        measured = measure(counts, strategy, epsilon=Fraction(1), noise=FixedNoise())
        blocks, total = measured.estimate()
        assert total == pytest.approx(rows, abs=1e-9)
        for found, true in zip(blocks, counts, strict=True):
            assert found == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize("strategy", SNAKES, ids=named)
def test_made_up_noise_is_not_releasable(strategy: Strategy) -> None:
    """P11, also where no noise was needed."""
    for columns in (MIXED[0], (gen.line(1),)):
        marginals = marginals_of(columns, 1)
        counts = count(marginals, grid(marginals))
        assert not measure(counts, strategy, epsilon=Fraction(1), noise=FixedNoise()).releasable
        assert measure(counts, strategy, epsilon=Fraction(1)).releasable


@pytest.mark.parametrize("strategy", SNAKES, ids=named)
def test_number_of_rows_is_in_a_measurement_under_replace_one_only(strategy: Strategy) -> None:
    """P9: with noise that is nowhere 0, no field holds n under add/remove."""
    n = 7_919
    marginals = marginals_of(((gen.line(1),) if strategy.name == "identity" else ()) + MIXED[0], 1)
    points = grid(marginals)
    table = points[np.random.default_rng(2).integers(len(points), size=n)]
    measured = measure(count(marginals, table), strategy, epsilon=Fraction(1), noise=FixedNoise(shift=3))
    numbers = [measured.total, *np.concatenate(measured.coefficients).tolist()]
    if strategy.neighbours is REPLACE:
        assert measured.total == n
    else:
        assert n not in numbers
        assert measured.total == (n + 3 if strategy.name == "haar" else None)
        assert n + 3 in numbers  # control: the scan would have found it without noise


def test_a_measurement_holds_no_counts() -> None:
    marginals = marginals_of(MIXED[0], 2)
    counts = count(marginals, grid(marginals))
    measured = measure(counts, Identity(ADD), epsilon=Fraction(1))
    held = [getattr(measured, field.name) for field in fields(Measurement)]
    assert not any(isinstance(value, Counts) for value in held)
    assert not any(np.shares_memory(a, b) for a in measured.coefficients for b in counts)


def test_measuring_leaves_the_counts_alone() -> None:
    marginals = marginals_of(MIXED[0], 2)
    counts = count(marginals, grid(marginals))
    before = [block.copy() for block in counts]
    for strategy in EVERY:
        measure(counts, strategy, epsilon=Fraction(1))
    assert all(np.array_equal(a, b) for a, b in zip(before, counts, strict=True))


# ------------------------------------------------------------ the law of the error

TINY = Marginals(cells=(gen.line(2), gen.labels(3), gen.holes([1, 4], 5, missing=True)), subsets=((0, 1), (0, 2), (1,)))


def error_map(marginals: Marginals, strategy: Strategy) -> np.ndarray:
    """The matrix from independent noise to the errors of all cells (block after block) and of the number of rows."""
    sizes = marginals.sizes()
    lengths = [strategy.length(size) for size in sizes]
    shared = strategy.neighbours is ADD and strategy.name == "haar"
    starts = np.cumsum([0, *lengths])
    width = starts[-1] + shared
    parts: list[np.ndarray] = []
    totals: list[np.ndarray] = []
    for start, length, size in zip(starts, lengths, sizes, strict=False):
        noise = np.eye(width)[start : start + length]
        if strategy.name == "identity":
            totals.append(noise.sum(axis=0))
            parts.append(noise)
        else:
            levels = math.ceil(math.log2(size))
            total = np.eye(width)[-1:] if shared else np.zeros((1, width))
            full = noise if strategy.name == "haar-noisy-total" else np.vstack([total, noise])
            totals.append(full[0])
            parts.append((oracles.haar(levels) @ full)[:size])
    precision = np.array([1 / size for size in sizes])
    rows = precision @ np.array(totals) / precision.sum()
    if shared:
        rows = np.eye(width)[-1]
    if strategy.neighbours is REPLACE:
        rows = np.zeros(width)
    if strategy.name == "identity":
        parts = [part + (rows - part.sum(axis=0)) / len(part) for part in parts]
    for i, subset in enumerate(marginals.subsets):
        columns = [marginals.cells[j] for j in subset]
        where = {cell: c for c, cell in enumerate(oracles.all_cells(columns))}
        along = np.empty_like(parts[i])
        along[[where[cell] for cell in oracles.snake([c.size for c in columns])]] = parts[i]
        parts[i] = along
    return np.vstack([*parts, rows])


def covariance_misfit(errors: np.ndarray, covariance: np.ndarray) -> float:
    """Largest deviation of products of errors from their expected means, in standard errors."""
    worst = 0.0
    for i, j in itertools.combinations_with_replacement(range(errors.shape[1]), 2):
        products = errors[:, i] * errors[:, j]
        spread = products.std() / math.sqrt(len(products))
        gap = abs(products.mean() - covariance[i, j])
        worst = max(worst, gap / spread if spread else math.inf if gap > 1e-9 else 0.0)
    return worst


def flattened(errors: tuple[list[np.ndarray], np.ndarray]) -> np.ndarray:
    blocks, rows = errors
    return np.column_stack([*blocks, rows])


TOO_FAR = 6.0  # standard errors: 2e-9 for one comparison, and at most 200 are made in a test


@pytest.mark.parametrize("strategy", SNAKES, ids=named)
def test_simulated_errors_have_the_covariance_that_the_definition_gives(strategy: Strategy) -> None:
    """100,000 draws: a scale that is off by 4 % would be seen. The controls are off by 10 %, or in structure."""
    epsilon = Fraction(sensitivity(TINY, strategy), 4)
    measured = measure(count(TINY, grid(TINY)), strategy, epsilon=epsilon, noise=FixedNoise())
    errors = flattened(measured.simulate(np.random.default_rng(3), 100_000))
    mapped = error_map(TINY, strategy)
    covariance = oracles.laplace_variance(4.0) * mapped @ mapped.T
    assert covariance_misfit(errors, covariance) < TOO_FAR
    assert covariance_misfit(errors, covariance * 1.1**2) > TOO_FAR
    assert covariance_misfit(errors, np.diag(np.diag(covariance))) > TOO_FAR
    assert abs(errors.mean(axis=0)).max() < TOO_FAR * math.sqrt(covariance.max() / len(errors))


@pytest.mark.parametrize("strategy", SNAKES, ids=named)
def test_real_errors_have_the_law_of_the_simulated_ones(strategy: Strategy) -> None:
    """1,500 real measurements against 20,000 simulated ones, by the size of the errors; the control is 25 % wider."""
    counts = count(TINY, grid(TINY))
    epsilon = Fraction(sensitivity(TINY, strategy), 4)
    truth = np.concatenate([*counts, [counts.rows]])
    real = []
    for _ in range(1_500):
        measured = measure(counts, strategy, epsilon=epsilon)
        blocks, rows = measured.estimate()
        real.append(np.concatenate([*blocks, [rows]]) - truth)
    simulated = flattened(measured.simulate(np.random.default_rng(4), 20_000))
    real_size, simulated_size = (np.abs(np.array(e)[:, :-1]).sum(axis=1) for e in (real, simulated))
    assert ks_2samp(real_size, simulated_size).pvalue > 1e-7
    assert ks_2samp(real_size, 1.25 * simulated_size).pvalue < 1e-7
    mapped = error_map(TINY, strategy)
    covariance = oracles.laplace_variance(4.0) * mapped @ mapped.T
    assert covariance_misfit(np.array(real), covariance) < TOO_FAR


@pytest.mark.parametrize("order", ["snake", "hilbert"])
def test_simulated_errors_follow_the_order_of_the_cells(order: Order) -> None:
    """Neighbours on the path share Haar noise; a wrong order would show in the covariance."""
    marginals = Marginals(cells=(gen.line(4), gen.line(4)), subsets=((0, 1),))
    strategy = Haar(REPLACE, order)
    counts = count(marginals, grid(marginals))
    noise = np.zeros(15, dtype=np.int64)
    noise[0] = 16  # the coarsest difference: first half of the path up, second half down
    blocks, _ = measure(counts, strategy, epsilon=Fraction(1), noise=FixedNoise(shift=noise)).estimate()
    halves = (blocks[0] - 1).reshape(4, 4)
    assert set(halves.ravel()) == {1.0, -1.0}
    half = halves[:2] if order == "snake" else halves[:, :2]
    assert (half == half[0, 0]).all()
