"""Step 2 as a whole: P1 over all marginals together, what is and is not in a measurement, and the law of its errors."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp

import generators as gen
import oracles
from certsynth.domain import Groups
from certsynth.mechanisms import STRATEGIES, Haar, Identity, Measurement, Neighbours, Strategy, measure
from certsynth.mechanisms.measure import coefficients, sensitivity
from certsynth.mechanisms.samplers import Noised
from certsynth.mechanisms.strategy import strategy_named
from certsynth.queries.marginals import Counts, Marginals
from certsynth.transport.path import Order

module = sys.modules[Measurement.__module__]  # its name in the package is that of the function
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
    return least_squares_map(marginals, strategy) if strategy.name == "identity" else haar_map(marginals, strategy)


def least_squares_map(marginals: Marginals, strategy: Strategy) -> np.ndarray:
    """Noise on every cell: the marginals, and the number of rows, of the table that fits all noisy blocks best.

    One dense problem, in which totals, shifts and overlaps are not mentioned. Under replace-one the table has a known
    number of rows, and a block of one cell, which says just that, gets no noise.
    """
    points = oracles.all_cells(marginals.cells)
    matrix = np.vstack([oracles.marginal_matrix(marginals.cells, points, s) for s in marginals.subsets])
    tables = null_space(np.ones((1, len(points)))) if strategy.neighbours is REPLACE else np.eye(len(points))
    best = tables @ np.linalg.pinv(matrix @ tables)
    noise_of_cell = np.zeros((len(matrix), 0))
    start = 0
    for subset in marginals.subsets:
        columns = [marginals.cells[j] for j in subset]
        where = {cell: start + c for c, cell in enumerate(oracles.all_cells(columns))}
        path = [where[cell] for cell in oracles.snake([c.size for c in columns])]
        if len(path) > 1 or strategy.neighbours is ADD:
            noise_of_cell = np.hstack([noise_of_cell, np.eye(len(matrix))[:, path]])
        start += len(path)
    return np.vstack([matrix @ best, best.sum(axis=0)]) @ noise_of_cell


def haar_map(marginals: Marginals, strategy: Strategy) -> np.ndarray:
    """Noise on Haar coefficients: back to cells along the snake, block by block."""
    sizes = marginals.sizes()
    lengths = [strategy.length(size) for size in sizes]
    shared = strategy.neighbours is ADD and strategy.name == "haar"
    starts = np.cumsum([0, *lengths])
    width = starts[-1] + shared
    parts: list[np.ndarray] = []
    totals: list[np.ndarray] = []
    for start, length, size in zip(starts, lengths, sizes, strict=False):
        noise = np.eye(width)[start : start + length]
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
    for i, subset in enumerate(marginals.subsets):
        columns = [marginals.cells[j] for j in subset]
        where = {cell: c for c, cell in enumerate(oracles.all_cells(columns))}
        along = np.empty_like(parts[i])
        along[[where[cell] for cell in oracles.snake([c.size for c in columns])]] = parts[i]
        parts[i] = along
    return np.vstack([*parts, rows])


# The matrices need no chance: one unit of noise at a time, once as real noise and once as simulated.

LAWS = {
    "tiny": TINY,
    "pairs": marginals_of((gen.line(3, missing=True), gen.labels(2), gen.holes([1, 2, 6], 7)), 2),
    "triples": marginals_of((gen.line(2), gen.labels(3), gen.line(2, missing=True), gen.labels(1)), 3),
    "blocks of one cell": marginals_of((gen.line(1), gen.labels(1), gen.labels(3)), 2),
    "groups": marginals_of(
        (Groups.of(gen.lattice(6, missing=True), np.array([0, 1, 5])), gen.labels(2), gen.line(3)), 2
    ),
    "a chain": Marginals(cells=(gen.line(2), gen.labels(4), gen.line(3)), subsets=((0, 1), (1, 2))),
}


def noiseless(marginals: Marginals, strategy: Strategy) -> Measurement:
    return measure(count(marginals, grid(marginals)), strategy, epsilon=Fraction(1), noise=FixedNoise())


def estimate_map(marginals: Marginals, strategy: Strategy) -> np.ndarray:
    """What one unit of noise does to `estimate`, a column for each coefficient."""
    counts = count(marginals, grid(marginals))
    truth = np.concatenate([*counts, [counts.rows]])
    columns = []
    for shift in np.eye(sum(len(block) for block in coefficients(counts, strategy)), dtype=np.int64):
        measured = measure(counts, strategy, epsilon=Fraction(1), noise=FixedNoise(shift=1_000 * shift))
        blocks, rows = measured.estimate()
        columns.append((np.concatenate([*blocks, [rows]]) - truth) / 1_000)
    return np.array(columns).T


def simulation_map(marginals: Marginals, strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The same of `simulate`, with a unit of noise in place of each draw: draw i is noise on coefficient i alone."""
    measured = noiseless(marginals, strategy)
    width = sum(len(block) for block in coefficients(count(marginals, grid(marginals)), strategy))
    used = 0

    def units(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> np.ndarray:
        nonlocal used
        assert shape[0] == width
        length = shape[1] if len(shape) > 1 else 1
        used += length
        return np.eye(width, dtype=np.int64)[:, used - length : used].reshape(shape)

    monkeypatch.setattr(module, "simulate", units)
    errors = flattened(measured.simulate(np.random.default_rng(0), width))
    assert used == width  # every coefficient, once
    return errors.T


@pytest.mark.parametrize("strategy", SNAKES, ids=named)
@pytest.mark.parametrize("name", LAWS)
def test_real_and_simulated_noise_take_the_way_that_the_definition_gives(
    monkeypatch: pytest.MonkeyPatch, name: str, strategy: Strategy
) -> None:
    expected = error_map(LAWS[name], strategy)
    np.testing.assert_allclose(estimate_map(LAWS[name], strategy), expected, atol=1e-9)
    np.testing.assert_allclose(simulation_map(LAWS[name], strategy, monkeypatch), expected, atol=1e-9)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_without_the_agreement_noise_would_go_another_way(
    monkeypatch: pytest.MonkeyPatch, neighbours: Neighbours
) -> None:
    """Control: where blocks are only shifted to one total, the map is not that of the definition."""
    monkeypatch.setattr(module, "agreed", lambda blocks, marginals: blocks)
    expected, found = (f(TINY, Identity(neighbours)) for f in (error_map, estimate_map))
    assert np.abs(found - expected).max() > 0.01
    assert np.abs(found[-1] - expected[-1]).max() < 1e-9  # the number of rows is the same


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_estimates_of_noisy_cells_agree_wherever_marginals_overlap(neighbours: Neighbours) -> None:
    """And sum to the estimated number of rows, under real noise."""
    marginals = marginals_of((gen.line(3, missing=True), gen.labels(2), gen.line(5)), 2)
    measured = measure(count(marginals, grid(marginals)), Identity(neighbours), epsilon=Fraction(1, 2))
    blocks, rows = measured.estimate()
    first, second, third = (b.reshape(marginals.shape(s)) for b, s in zip(blocks, marginals.subsets, strict=True))
    np.testing.assert_allclose(first.sum(axis=1), second.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(first.sum(axis=0), third.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(second.sum(axis=0), third.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose([b.sum() for b in blocks], rows, atol=1e-9)


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


TOO_FAR = 6.0  # standard errors, of draws with a seed: no alarm can be false by chance
CHANCE = 1e-8  # of a false alarm, for one of 24 comparisons with real noise


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
    """1,500 real measurements against 20,000 simulated ones; the control is 25 % wider.

    By the size of the errors, and by three sums of them with random signs, which see how cells go together.
    """
    counts = count(TINY, grid(TINY))
    epsilon = Fraction(sensitivity(TINY, strategy), 4)
    truth = np.concatenate([*counts, [counts.rows]])
    found = []
    for _ in range(1_500):
        measured = measure(counts, strategy, epsilon=epsilon)
        blocks, rows = measured.estimate()
        found.append(np.concatenate([*blocks, [rows]]) - truth)
    real, simulated = np.array(found), flattened(measured.simulate(np.random.default_rng(4), 20_000))
    # Ties stay ties: noise is whole, and sums of it are compared to six digits.
    real_size, simulated_size = (np.abs(errors[:, :-1]).sum(axis=1).round(6) for errors in (real, simulated))
    assert ks_2samp(real_size, simulated_size).pvalue > CHANCE
    assert ks_2samp(real_size, 1.25 * simulated_size).pvalue < CHANCE
    for signs in np.random.default_rng(5).choice([-1.0, 1.0], size=(3, real.shape[1])):
        assert ks_2samp((real @ signs).round(6), (simulated @ signs).round(6)).pvalue > CHANCE


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
