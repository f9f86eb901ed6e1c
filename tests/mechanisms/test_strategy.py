"""P1 for one marginal: closed forms of sensitivities against all pairs of neighbours, and the way back to cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import generators as gen
import oracles
from certsynth.domain import Cells, Groups
from certsynth.errors import InputError
from certsynth.mechanisms import Neighbours, Sensitivity, Strategy, strategy_named
from certsynth.mechanisms.haar import Haar
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.quad_tree import QuadTree
from certsynth.mechanisms.registry import GRID_STRATEGIES, TABLE_STRATEGIES, WEIGHT_GROWTHS
from certsynth.mechanisms.strategy import level_weights
from certsynth.transport.hilbert import hilbert_order

SIZES = range(1, 34)
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
NAMES = (*TABLE_STRATEGIES, *GRID_STRATEGIES)
EVERY = [
    strategy_named(name, neighbours=n, growth=growth)
    for name in NAMES
    for n in Neighbours
    for growth in WEIGHT_GROWTHS.get(name, (None,))
]


def quick_ends(strategies: Sequence[Strategy]) -> list[Any]:
    """The first, the middle and the last growth of a name; `make test-all` takes those between, too."""

    def between(strategy: Strategy) -> bool:
        grown = WEIGHT_GROWTHS.get(strategy.name, ())
        return len(grown) > 3 and strategy.growth not in (grown[0], grown[len(grown) // 2], grown[-1])

    return [pytest.param(s, marks=pytest.mark.slow if between(s) else ()) for s in strategies]


every = pytest.mark.parametrize("strategy", quick_ends(EVERY), ids=gen.named)
TREES = [strategy for strategy in EVERY if strategy.name == "quad-tree"]
HAARS = [strategy for strategy in EVERY if isinstance(strategy, Haar)]


def levels(size: int) -> int:
    return math.ceil(math.log2(size))


def line(size: int) -> tuple[Cells, ...]:
    return (gen.line(size),)


def uneven(size: int, *, missing: bool = False) -> Groups:
    """Groups of a line three times as long, cut at random, and one point apart where it may be missing."""
    cuts = np.random.default_rng(size).choice(np.arange(1, 3 * size + 1), size - missing - 1, replace=False)
    return Groups.of(gen.lattice(3 * size, missing=missing), np.sort(np.r_[0, cuts]))


KINDS = (
    gen.line,
    gen.labels,
    uneven,
    lambda size: gen.line(size - 1, missing=True) if size > 1 else gen.line(1),
    lambda size: uneven(size, missing=True) if size > 1 else uneven(1),
    lambda size: Cells(places=np.arange(size // 2), steps=size, off_line=size - size // 2),  # half of it apart
    lambda size: gen.light(size - 1, missing=True) if size > 1 else gen.light(1),
    gen.codes,
    gen.spots,
    lambda size: gen.merged(gen.labels(2 * size - 1)),
    lambda size: gen.merged(gen.codes(2 * size)),
    lambda size: gen.merged(gen.spots(2 * size - 2, missing=True)) if size > 1 else gen.merged(gen.spots(2)),
)
SHAPES = [
    *((size,) for size in range(1, 18)),
    *itertools.product((1, 2, 3, 4, 5, 7, 9), repeat=2),
    *((2, 3, 2), (3, 3, 3), (1, 4, 2), (5, 2, 3), (2, 2, 9), (7, 1, 3), (1, 1, 1), (4, 4, 2), (6, 3, 4)),
]


def product_of(shape: tuple[int, ...], turn: int) -> tuple[Cells, ...]:
    """Columns of these sizes, of kinds that take turns."""
    product = tuple(KINDS[(turn + j) % len(KINDS)](size) for j, size in enumerate(shape))
    assert tuple(cells.size for cells in product) == shape
    return product


PRODUCTS = [product_of(shape, turn) for turn, shape in enumerate(SHAPES)] + [
    *gen.HARD_SHAPES.values(),
    *((kind(size),) for kind in KINDS for size in (1, 2, 3, 6, 9)),
]
FEW = PRODUCTS[::5]


def single_rows(strategy: Strategy, product: tuple[Cells, ...]) -> np.ndarray:
    """Coefficients of all tables of one row, one below the other."""
    size = gen.size(product)
    return np.array([strategy.coefficients(table, product) for table in np.eye(size, dtype=np.int64)])


def largest_change(strategy: Strategy, product: tuple[Cells, ...]) -> Sensitivity:
    """Brute force: all rows that may come or go, or all pairs of a row and what replaces it."""
    rows = single_rows(strategy, product).reshape(gen.size(product), -1)
    others = rows if strategy.neighbours is REPLACE else np.zeros((1, rows.shape[1]), np.int64)
    changes = rows[:, None] - others[None]
    return Sensitivity(int(np.abs(changes).sum(axis=-1).max()), int((changes**2).sum(axis=-1).max()))


# ------------------------------------------------------------ P1


@every
def test_sensitivity_is_attained_in_both_norms(strategy: Strategy) -> None:
    """One to three columns of all kinds: never more, and never less, than the closed form says."""
    for product in PRODUCTS:
        assert strategy.sensitivity(product) == largest_change(strategy, product), [c.size for c in product]


@every
def test_change_does_not_depend_on_the_rest_of_the_table(strategy: Strategy) -> None:
    """So tables of a single row are enough to try."""
    rng = np.random.default_rng(1)
    for product in FEW:
        size = gen.size(product)
        table, rows = rng.integers(0, 50, size=size), single_rows(strategy, product)
        for cell, row in enumerate(np.eye(size, dtype=np.int64)):
            change = strategy.coefficients(table + row, product) - strategy.coefficients(table, product)
            assert np.array_equal(change, rows[cell])


@pytest.mark.parametrize("size", SIZES)
def test_haar_sensitivity_is_attained(size: int) -> None:
    """2K and K: the right half of the tree always holds a cell, so two cells in different halves exist."""
    for neighbours, factor in ((REPLACE, 2), (ADD, 1)):
        strategy = Haar(neighbours)
        found = largest_change(strategy, line(size))
        assert strategy.sensitivity(line(size)).l1 == factor * levels(size) == found.l1
    k = levels(size)
    assert Haar(ADD).sensitivity(line(size)).l2_squared == k
    assert Haar(REPLACE).sensitivity(line(size)).l2_squared == (4 + 2 * (k - 1) if k else 0)


@pytest.mark.parametrize("size", SIZES)
def test_sensitivity_of_haar_with_a_noisy_total_is_attained(size: int) -> None:
    """One more under add/remove; under replace-one the total does not move, and costs nothing."""
    added, replaced = Haar(ADD, noisy_total=True), Haar(REPLACE, noisy_total=True)
    assert added.sensitivity(line(size)).l1 == levels(size) + 1 == largest_change(added, line(size)).l1
    assert replaced.sensitivity(line(size)) == Haar(REPLACE).sensitivity(line(size))
    assert replaced.sensitivity(line(size)).l1 == 2 * levels(size) == largest_change(replaced, line(size)).l1


@pytest.mark.parametrize("size", SIZES)
def test_identity_sensitivity_is_attained(size: int) -> None:
    assert Identity(ADD).sensitivity(line(size)) == Sensitivity(1, 1) == largest_change(Identity(ADD), line(size))
    moves = Sensitivity(2, 2) if size > 1 else Sensitivity(0, 0)
    assert Identity(REPLACE).sensitivity(line(size)) == moves == largest_change(Identity(REPLACE), line(size))


def test_brute_force_sees_a_sensitivity_that_is_too_small() -> None:
    """Control: the unpadded count of levels ⌊log2 m⌋ would be refuted; so would twice the L2 of add/remove be."""
    changes = {size: largest_change(Haar(REPLACE), line(size)) for size in SIZES}
    assert any(changes[size].l1 > 2 * math.floor(math.log2(size)) for size in SIZES)
    assert any(changes[size].l2_squared > 2 * Haar(ADD).sensitivity(line(size)).l2_squared for size in SIZES)


def test_with_steep_weights_the_largest_change_in_l2_is_not_between_the_halves() -> None:
    """Control: at a growth of 5/8 rows that part late differ by more than rows that part at once."""
    strategy = strategy_named("haar-weighted", neighbours=REPLACE, growth=Fraction(5, 8))
    weights = level_weights(4, Fraction(5, 8))
    at_once = 4 * weights[0] ** 2 + 2 * sum(w * w for w in weights[1:])
    assert largest_change(strategy, line(16)).l2_squared > at_once


@every
def test_nothing_to_change_means_nothing_to_send(strategy: Strategy) -> None:
    """What has sensitivity 0 is sent without noise: it may be nothing, or the total where that is public."""
    for product in (*PRODUCTS, *(line(size) for size in SIZES)):
        size = gen.size(product)
        counts = np.arange(1, size + 1)
        sent = strategy.coefficients(counts, product)
        assert sent.dtype == np.int64
        assert len(sent) == strategy.length(product)
        if not strategy.sensitivity(product):
            assert size == 1
            public = strategy.neighbours is REPLACE and strategy.measures_total
            assert sent.tolist() == ([1] if public else [])


# ------------------------------------------------------------ Haar against the paper's matrices


def test_the_oracle_has_the_properties_of_lemma_3() -> None:
    for k in range(6):
        inverse = oracles.haar_inverse(k)
        assert np.array_equal(inverse @ oracles.haar(k), np.eye(2**k))
        assert np.abs(inverse).sum(axis=0).max() == k + 1
        assert set(np.unique(np.abs(inverse))) <= {0.0, 1.0}


def weight_of_each(strategy: Strategy, size: int) -> np.ndarray:
    """The weight of each coefficient: 1 for the total, then one for each level, which has 1, 2, 4, … of them."""
    weights = level_weights(levels(size), strategy.growth)
    return np.concatenate([[1], *([weight] * 2**level for level, weight in enumerate(weights))])


@pytest.mark.parametrize("size", SIZES)
def test_haar_coefficients_are_the_inverse_haar_matrix_times_the_padded_counts(size: int) -> None:
    rng = np.random.default_rng(size)
    counts = rng.integers(0, 1_000, size=size)
    padded = np.zeros(2 ** levels(size))
    padded[:size] = counts
    expected = oracles.haar_inverse(levels(size)) @ padded
    for strategy in HAARS:
        start = 0 if strategy.name == "haar-noisy-total" else 1
        wanted = (weight_of_each(strategy, size) * expected)[start:]
        assert strategy.coefficients(counts, line(size)).tolist() == wanted.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_haar_cells_are_the_haar_matrix_times_the_coefficients(size: int) -> None:
    """What of a known total got into the padding by noise is taken off all cells evenly."""
    rng = np.random.default_rng(size)
    noisy = rng.integers(-50, 50, size=(4, 2 ** levels(size))).astype(float)
    for strategy in HAARS:
        weights = weight_of_each(strategy, size)
        expected = noisy @ oracles.haar(levels(size)).T[:, :size]
        if strategy.name == "haar-noisy-total":
            found = strategy.cells(noisy, line(size), np.full(4, 1e9))  # its own total counts
        else:
            found = strategy.cells((weights * noisy)[:, 1:], line(size), noisy[:, 0])
            expected = expected + (noisy[:, :1] - expected.sum(axis=1, keepdims=True)) / size
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("strategy", quick_ends(HAARS), ids=gen.named)
def test_haar_runs_along_the_path(strategy: Strategy) -> None:
    """Coefficients of a block are those of its counts lined up, and cells are put back where they came from."""
    rng = np.random.default_rng(7)
    for shape in ((3, 4), (4, 4), (2, 7), (2, 3, 3)):
        product = tuple(gen.line(size) for size in shape)
        counts, noise = rng.integers(0, 99, size=math.prod(shape)), rng.normal(size=strategy.length(product))
        path = lined_up(strategy, shape)
        alone = line(math.prod(shape))
        assert strategy.coefficients(counts, product).tolist() == strategy.coefficients(counts[path], alone).tolist()
        along = strategy.cells(noise, alone, np.asarray(5.0))
        assert strategy.cells(noise, product, np.asarray(5.0))[path] == pytest.approx(along, abs=1e-12)


def lined_up(strategy: Strategy, shape: tuple[int, ...]) -> list[int]:
    """Block indices in the order of the path: the snake by the oracle, Hilbert's curve by touching cells, a tour by the
    halves of all lines that cells are in, their quarters, and so on."""
    cells = list(itertools.product(*map(range, shape)))
    if strategy.order == "tour":
        parts = [
            [[place * 2**t // size for place, size in zip(c, shape, strict=True)] for t in range(6)] for c in cells
        ]
        return sorted(range(len(cells)), key=parts.__getitem__)
    if strategy.order == "snake" or len(shape) != 2:
        return [cells.index(cell) for cell in oracles.snake(shape)]
    path = hilbert_order(*shape).tolist()
    assert sorted(path) == list(range(len(cells)))
    steps = [max(abs(a - b) for a, b in zip(cells[i], cells[j], strict=True)) for i, j in itertools.pairwise(path)]
    assert max(steps) == 1
    return path


# ------------------------------------------------------------ the tree against its definition


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("strategy", quick_ends(TREES), ids=gen.named)
def test_squares_are_even_shares_of_the_lines_at_every_scale(strategy: Strategy) -> None:
    rng = np.random.default_rng(8)
    for product in PRODUCTS:
        squares = oracles.squares(product)
        weights = level_weights(len(squares), strategy.growth)
        counts = rng.integers(0, 1_000, size=gen.size(product))
        expected = [w * (matrix @ counts) for w, matrix in zip(weights, squares, strict=True)]
        found = strategy.coefficients(counts, product)
        assert found.tolist() == np.concatenate([[], *expected]).tolist()


def test_squares_lie_in_squares_down_to_the_cells() -> None:
    """Each level cuts some square of the one before, no square is in two, and the last level has the cells."""
    for product in PRODUCTS:
        squares = oracles.squares(product)
        for coarse, fine in itertools.pairwise(squares):
            assert len(fine) > len(coarse)
            assert ((coarse @ fine.T > 0).sum(axis=0) == 1).all()
        for matrix in squares:
            assert (matrix.sum(axis=0) == 1).all()
            assert matrix.sum(axis=1).min() > 0
        assert len(squares[-1]) == gen.size(product) if squares else gen.size(product) == 1


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("strategy", quick_ends(TREES), ids=gen.named)
def test_the_way_back_through_the_tree_is_least_squares(strategy: Strategy) -> None:
    """Of all counts with the given total, those whose coefficients are nearest to the noisy ones: one dense problem."""
    rng = np.random.default_rng(9)
    for product in (p for p in PRODUCTS if 1 < gen.size(p) <= 30):
        squares = oracles.squares(product)
        weights = level_weights(len(squares), strategy.growth)
        design = np.vstack([w * matrix for w, matrix in zip(weights, squares, strict=True)])
        noisy, total = rng.normal(size=(3, len(design))) * 50, rng.normal(size=3) * 20
        found = strategy.cells(noisy, product, total)
        for draw in range(3):
            expected = oracles.least_squares(design, noisy[draw], np.ones(len(design)), total[draw])
            np.testing.assert_allclose(found[draw], expected, atol=1e-8)


def test_a_way_back_by_the_cells_alone_is_not_least_squares() -> None:
    """Control: the finest level, shifted evenly, is another estimate."""
    strategy, product = QuadTree(REPLACE), line(8)
    noisy = np.random.default_rng(10).normal(size=strategy.length(product)) * 50
    alone = noisy[-8:] - noisy[-8:].mean()
    assert np.abs(strategy.cells(noisy, product, np.asarray(0.0)) - alone).max() > 1


# ------------------------------------------------------------ the way back


@pytest.mark.parametrize("size", SIZES)
def test_identity_cells_are_shifted_evenly_to_the_total(size: int) -> None:
    rng = np.random.default_rng(size)
    strategy = Identity(ADD)
    noisy, total = rng.integers(-50, 50, size=(4, size)).astype(float), rng.normal(size=4)
    cells = strategy.cells(noisy, line(size), total)
    assert cells.sum(axis=-1) == pytest.approx(total, abs=1e-9)
    assert np.ptp(cells - noisy, axis=-1) == pytest.approx(0, abs=1e-9)


@every
def test_cells_without_noise_are_the_counts_exactly(strategy: Strategy) -> None:
    """To the last bit, as long as all coefficients are whole numbers to a float."""
    rng = np.random.default_rng(2)
    for product in (*FEW, *(line(size) for size in SIZES)):
        size = gen.size(product)
        steepest = max(level_weights(len(oracles.squares(product)) + levels(size), strategy.growth), default=1)
        for most in (1, 7, 10**6, 2**50 // (size * steepest) + 2):
            counts = rng.integers(0, most, size=size)
            total = np.asarray(float(counts.sum()))
            coefficients = strategy.coefficients(counts, product).astype(float)
            assert strategy.cells(coefficients, product, total).tolist() == counts.tolist()
            if strategy.measures_total:
                assert strategy.total(coefficients) == counts.sum()


@every
def test_cells_sum_to_the_total_whatever_the_noise(strategy: Strategy) -> None:
    """But for the one whose marginals have totals of their own."""
    rng = np.random.default_rng(11)
    for product in FEW:
        noise, total = rng.normal(size=(3, strategy.length(product))), rng.normal(size=3)
        wanted = total if strategy.shares_total else strategy.total(noise)
        sums = strategy.cells(noise, product, total).sum(axis=-1)
        if strategy.shares_total or gen.size(product) & (gen.size(product) - 1) == 0:  # else noise is in the padding
            assert sums == pytest.approx(wanted, abs=1e-9)


@every
def test_where_the_total_is_not_measured_it_cannot_be_asked_for(strategy: Strategy) -> None:
    if not strategy.measures_total and strategy.name != "identity":
        with pytest.raises(ValueError, match="not among these coefficients"):
            strategy.total(np.zeros(3))


@every
def test_cells_are_linear_in_coefficients_and_total(strategy: Strategy) -> None:
    """The whole certificate rests on it: the error of the estimate is the image of the noise."""
    rng = np.random.default_rng(3)
    for product in (*FEW, *(line(size) for size in (1, 2, 3, 5, 8, 33))):
        x, y = rng.normal(size=(2, strategy.length(product)))
        s, t = rng.normal(size=2)
        both = strategy.cells(2 * x - 3 * y, product, np.asarray(2 * s - 3 * t))
        apart = 2 * strategy.cells(x, product, np.asarray(s)) - 3 * strategy.cells(y, product, np.asarray(t))
        assert both == pytest.approx(apart, abs=1e-12)


@every
def test_leading_axes_are_kept(strategy: Strategy) -> None:
    rng = np.random.default_rng(4)
    for product in (line(1), line(5), PRODUCTS[-1], (gen.labels(2), gen.line(3, missing=True))):
        noise, total = rng.normal(size=(2, 3, strategy.length(product))), rng.normal(size=(2, 3))
        cells = strategy.cells(noise, product, total)
        assert cells.shape == (2, 3, gen.size(product))
        for index in np.ndindex(2, 3):
            alone = strategy.cells(noise[index], product, total[index])
            assert cells[index] == pytest.approx(alone, abs=1e-12)


# ------------------------------------------------------------ P18


@pytest.mark.parametrize("noisy_total", [False, True])
def test_haar_coefficients_of_huge_counts_do_not_overflow(noisy_total: bool) -> None:
    """P18: every coefficient is at most n, so n < 2^63 is all that is needed, for any number of cells."""
    for counts in ([2**63 - 1], [0, 2**63 - 1, 0], [2**62, 2**62 - 1], [2**60] * 7, [0] * 4095 + [2**63 - 1]):
        padded = counts + [0] * (2 ** levels(len(counts)) - len(counts))
        expected = python_haar(padded)
        strategy = Haar(ADD, noisy_total=noisy_total)
        found = strategy.coefficients(np.array(counts, dtype=np.int64), line(len(counts)))
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


@every
def test_weighted_coefficients_of_very_many_rows_do_not_overflow(strategy: Strategy) -> None:
    """P18: weights are at most 64, so n < 2^57 is all that is needed."""
    counts = [10**17, *[0] * 4_094, 10**16]
    found = strategy.coefficients(np.array(counts, dtype=np.int64), line(4_096))
    if isinstance(strategy, Haar):
        exact = python_haar(counts)
        weights = [int(w) for w in weight_of_each(strategy, 4_096)]
        expected = [w * c for w, c in zip(weights, exact, strict=True)][0 if strategy.noisy_total else 1 :]
    elif isinstance(strategy, QuadTree):
        sums = [[sum(counts[i : i + width]) for i in range(0, 4_096, width)] for width in 2 ** np.arange(11, -1, -1)]
        expected = [w * c for w, level in zip(level_weights(12, strategy.growth), sums, strict=True) for c in level]
    else:
        expected = counts
    assert found.tolist() == expected


# ------------------------------------------------------------ weights and names


@pytest.mark.parametrize("growth", sorted({g for growths in WEIGHT_GROWTHS.values() for g in growths}), ids=str)
def test_weights_of_levels_are_whole_and_grow_as_they_should(growth: Fraction) -> None:
    """From the finest level, whose weight is the same however many there are, up to rounding and never below 1."""
    finest = 64 if growth else 1
    for count in range(14):
        weights = level_weights(count, growth)
        assert len(weights) == count
        assert all(isinstance(weight, int) and weight >= 1 for weight in weights)
        for below, weight in enumerate(reversed(weights)):
            assert abs(weight - max(1, finest * 2 ** float(-growth * below))) <= 0.5


@pytest.mark.parametrize("name", ["", "HAAR", "gauss", "x" * 500])
def test_an_unknown_mechanism_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InputError, match=", ".join(NAMES)) as caught:
        strategy_named(name, neighbours=REPLACE)
    assert len(str(caught.value)) < 210


def test_names_lead_back_to_their_strategy() -> None:
    for strategy in EVERY:
        again = strategy_named(strategy.name, neighbours=strategy.neighbours, growth=strategy.growth)
        assert again == strategy
    assert {strategy.name for strategy in EVERY} == set(NAMES)


def test_without_a_growth_named_the_default_is_one_of_those_tried() -> None:
    for name, growths in WEIGHT_GROWTHS.items():
        assert strategy_named(name, neighbours=REPLACE).growth in growths
