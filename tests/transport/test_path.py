"""P17: cells lie on a path between touching cells, and what it costs to move along it is never below W1."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import generators as gen
import oracles
from certsynth.transport import Path, path_loss
from certsynth.transport.hilbert import hilbert_order
from certsynth.transport.path import Order, snake_order

ORDERS: tuple[Order, ...] = ("snake", "hilbert")
SOLVER = 1e-7  # what HiGHS leaves open


def steps_between(order: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """How far each coordinate moves from one cell of the path to the next."""
    return np.abs(np.diff(np.array(np.unravel_index(order, shape)), axis=1))


def visits_all_once(order: np.ndarray, shape: tuple[int, ...]) -> bool:
    return np.array_equal(np.sort(order), np.arange(math.prod(shape)))


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@pytest.mark.parametrize("k", range(1, 17))
def test_snake_visits_every_cell_by_single_steps(columns: int, k: int) -> None:
    shape = (k,) * columns
    order = snake_order(shape)
    assert visits_all_once(order, shape)
    assert (steps_between(order, shape).sum(axis=0) == 1).all()


def test_snake_visits_every_cell_of_any_box() -> None:
    boxes = [box for s in (1, 2, 3, 4) for box in itertools.product(range(1, 6), repeat=s)]
    for shape in boxes:
        order = snake_order(shape)
        assert visits_all_once(order, shape)
        assert (steps_between(order, shape).sum(axis=0) == 1).all()
        literal = [np.ravel_multi_index(cell, shape) for cell in oracles.snake(shape)]
        assert order.tolist() == literal
    assert len(boxes) == 5 + 25 + 125 + 625


def test_row_major_order_is_not_such_a_path() -> None:
    """The control of the two tests above."""
    shape = (4, 4)
    assert not (steps_between(np.arange(16), shape).sum(axis=0) == 1).all()


def check_hilbert(rows: int, columns: int) -> None:
    order = hilbert_order(rows, columns)
    assert visits_all_once(order, (rows, columns))
    assert (steps_between(order, (rows, columns)).max(axis=0, initial=0) == 1).all()


def test_hilbert_visits_every_cell_of_any_rectangle_by_steps_to_touching_cells() -> None:
    for rows, columns in itertools.product(range(1, 21), repeat=2):
        check_hilbert(rows, columns)


@pytest.mark.slow
def test_hilbert_visits_every_cell_of_large_rectangles() -> None:
    for rows, columns in itertools.product([*range(21, 70, 3), 127, 128, 200], repeat=2):
        check_hilbert(rows, columns)
    for narrow, long in itertools.product(range(1, 5), range(100, 300, 17)):
        check_hilbert(narrow, long)
        check_hilbert(long, narrow)


def test_hilbert_keeps_near_cells_near() -> None:
    """What it is for: 16 cells in a row lie within a few cells of each other; on the snake they are a line."""
    k, window = 32, 16

    def spread(order: np.ndarray) -> float:
        cell = np.array(np.unravel_index(order, (k, k)))
        reach = [np.ptp(cell[:, i : i + window], axis=1).max() for i in range(k * k - window)]
        return float(np.mean(reach))

    assert spread(hilbert_order(k, k)) < 0.5 * spread(snake_order((k, k)))


def shapes(seed: int, *, most_cells: int = 24) -> list[tuple[str, gen.Shape]]:
    rng = np.random.default_rng(seed)
    random = [gen.random_shape(rng, columns=c, most_cells=most_cells) for c in (1, 2, 2, 3) for _ in range(10)]
    return [*gen.HARD_SHAPES.items(), *((f"random {i}", shape) for i, shape in enumerate(random))]


@pytest.mark.parametrize("order", ORDERS)
def test_steps_are_the_distances_along_the_path(order: Order) -> None:
    for name, shape in shapes(1):
        path = Path.along(shape, order, end=0.25)
        cells = oracles.all_cells(shape)
        assert visits_all_once(path.order, (len(cells),)), name
        visited = [cells[i] for i in path.order]
        true = [float(oracles.distance(shape, a, b)) for a, b in itertools.pairwise(visited)]
        assert path.steps.tolist() == pytest.approx([*true, 0.25], abs=1e-15), name


@pytest.mark.parametrize("order", ORDERS)
def test_path_loss_is_never_below_w1(order: Order) -> None:
    rng = np.random.default_rng(2)
    looser = 0
    for name, shape in shapes(2, most_cells=20):
        if gen.size(shape) > 30:
            continue
        path, distances = Path.along(shape, order), oracles.metric(shape)
        for _ in range(3):
            first, second = gen.random_balanced(rng, gen.size(shape))
            true = oracles.wasserstein(first, second, distances)
            found = float(path_loss(first, second, path))
            assert found >= true - SOLVER, name
            looser += found > true + SOLVER
    assert looser > 50  # a path is not the whole space: if it were always exact, something would be off


def test_row_major_order_makes_a_false_certificate() -> None:
    """The slip in the paper's section 3: k = 4, a unit from the end of line 1 to the start of line 2."""
    k = 4
    square = (gen.line(k), gen.line(k))
    start, end = np.zeros(k * k), np.zeros(k * k)
    start[k - 1] = end[k] = 1.0
    true = oracles.wasserstein(start, end, oracles.metric(square))
    assert true == pytest.approx(0.75)
    assert oracles.path_loss_as_printed(start.tolist(), end.tolist(), k) == 0.25
    assert path_loss(start, end, Path.along(square)) >= 0.75
    assert path_loss(start, end, Path.along(square, "hilbert")) >= 0.75
    # And the comparison of `test_path_loss_is_never_below_w1` would see it.
    row_major = Path(order=np.arange(k * k), steps=np.full(k * k, 1 / k))
    assert not path_loss(start, end, row_major) >= true - SOLVER


@pytest.mark.parametrize(
    "column", [gen.line(1), gen.line(7), gen.lattice(9), gen.holes([0, 3, 4, 11], 16), gen.holes([5], 9)]
)
def test_path_loss_is_w1_on_a_line(column: gen.Cells) -> None:
    rng = np.random.default_rng(3)
    places = column.places / column.steps
    for _ in range(20):
        first, second = rng.dirichlet(np.full(column.size, 0.5), size=2)
        expected = wasserstein_distance(places, places, first, second)
        assert path_loss(first, second, Path.along([column])) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("columns", "k"), [(1, 1), (1, 8), (2, 1), (2, 5), (3, 3), (4, 2)])
def test_path_loss_is_the_printed_formula_where_steps_are_equal(columns: int, k: int) -> None:
    """Signed measures of unequal mass, with the last partial sum at 1/k as in the paper."""
    rng = np.random.default_rng(4)
    shape = (gen.line(k),) * columns
    where = {cell: i for i, cell in enumerate(oracles.all_cells(shape))}
    order = [where[cell] for cell in oracles.snake([k] * columns)]
    for _ in range(10):
        first, second = rng.normal(size=(2, k**columns))
        expected = oracles.path_loss_as_printed(first[order].tolist(), second[order].tolist(), k)
        assert path_loss(first, second, Path.along(shape, end=1 / k)) == pytest.approx(expected, rel=1e-12)


def test_missing_mass_costs_nothing_unless_asked() -> None:
    one = (gen.line(1),)
    assert path_loss(np.array([2.0]), np.array([1.0]), Path.along(one)) == 0
    assert path_loss(np.array([2.0]), np.array([1.0]), Path.along(one, end=0.5)) == 0.5


def test_leading_axes_are_kept() -> None:
    rng = np.random.default_rng(5)
    path = Path.along((gen.line(3), gen.labels(2)))
    first, second = rng.normal(size=(2, 4, 5, 6))
    losses = path_loss(first, second, path)
    assert losses.shape == (4, 5)
    assert losses[2, 3] == pytest.approx(float(path_loss(first[2, 3], second[2, 3], path)), rel=1e-14)


def test_a_path_cannot_be_changed() -> None:
    path = Path.along((gen.line(3),))
    with pytest.raises(ValueError, match="read-only"):
        path.steps[0] = 0.0
