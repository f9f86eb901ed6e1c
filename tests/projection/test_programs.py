"""Step 3: both programs against the program as printed, on supports of every kind."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import generators as gen
import oracles
from certsynth.errors import SolverFailed, TooLarge
from certsynth.projection import linear_program, support
from certsynth.projection.linear_program import Program, solve
from certsynth.projection.path_program import PathProgram
from certsynth.projection.support import drawn_support, fits_full_grid, full_grid, one_way_marginal, public_support
from certsynth.projection.target import Target, as_probabilities
from certsynth.projection.transport_program import TransportProgram
from certsynth.queries.marginals import Marginals
from certsynth.transport import Network, Path, path_loss, transport_loss

SOLVER = 1e-7

TABLES: dict[str, tuple[gen.Shape, int]] = {
    "one column": ((gen.line(5),), 1),
    "one cell": ((gen.line(1),), 1),
    "a square": ((gen.line(3), gen.line(3)), 2),
    "one-way marginals": ((gen.line(3), gen.labels(2), gen.holes([0, 4], 5)), 1),
    "pairs of three kinds": ((gen.line(2, missing=True), gen.labels(2), gen.holes([0, 1, 4], 5)), 2),
    "a column with one category": ((gen.labels(1), gen.lattice(2), gen.line(3)), 2),
    "a cube": ((gen.line(2), gen.line(2), gen.line(2)), 3),
}


def marginals_of(name: str) -> Marginals:
    columns, sparsity = TABLES[name]
    return Marginals(cells=tuple(columns), subsets=tuple(itertools.combinations(range(len(columns)), sparsity)))


def noisy_target(marginals: Marginals, seed: int) -> Target:
    """Marginals of a random distribution with noise: negative mass, masses other than 1, and no common table."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(len(full_grid(marginals)), 0.3))
    exact = Target(marginals=marginals, blocks=()).incidence(full_grid(marginals))
    blocks = tuple(a @ truth + rng.normal(size=a.shape[0]) * rng.choice([0.02, 0.2]) for a in exact)
    return Target(marginals=marginals, blocks=blocks)


def supports(marginals: Marginals, seed: int) -> dict[str, np.ndarray]:
    """All cells, some of them, and a single one."""
    grid, rng = full_grid(marginals), np.random.default_rng(seed)
    some = np.sort(rng.choice(len(grid), max(1, len(grid) // 3), replace=False))
    return {"full grid": grid, "partial": grid[some], "one point": grid[:1]}


def as_cells(points: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(int(x) for x in point) for point in points]


def check_weights(weights: np.ndarray) -> None:
    assert weights.min() >= -SOLVER
    assert weights.sum() == pytest.approx(1, abs=SOLVER)


@pytest.mark.parametrize("end", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["full grid", "partial", "one point"])
@pytest.mark.parametrize("name", TABLES)
def test_path_program_finds_the_optimum_of_the_printed_program(name: str, kind: str, end: float) -> None:
    marginals = marginals_of(name)
    for seed in range(3):
        target, points = noisy_target(marginals, seed), supports(marginals, seed)[kind]
        found = PathProgram(end=end).solution(target, points)
        true = oracles.least_path_loss(marginals.cells, marginals.subsets, target.blocks, as_cells(points), end=end)
        assert found.value == pytest.approx(true, abs=SOLVER)
        assert found.proved == pytest.approx(found.value, abs=SOLVER)
        check_weights(found.x[: len(points)])


@pytest.mark.parametrize("hub", [None, Fraction(1)])
@pytest.mark.parametrize("kind", ["full grid", "partial", "one point"])
@pytest.mark.parametrize("name", TABLES)
def test_transport_program_finds_the_optimum_of_the_definition(name: str, kind: str, hub: Fraction | None) -> None:
    marginals = marginals_of(name)
    for seed in range(2):
        target, points = noisy_target(marginals, seed), supports(marginals, seed)[kind]
        found = TransportProgram(hub=hub).solution(target, points)
        true = oracles.least_transport_loss(
            marginals.cells, marginals.subsets, target.blocks, as_cells(points), hub=hub
        )
        assert found.value == pytest.approx(true, abs=SOLVER)
        assert found.proved == pytest.approx(found.value, abs=SOLVER)
        check_weights(found.x[: len(points)])


@pytest.mark.parametrize("name", TABLES)
def test_weights_have_the_loss_that_the_program_says(name: str) -> None:
    """The value is that of the returned weights, by the kernels that certify: and no random weights do better."""
    marginals, rng = marginals_of(name), np.random.default_rng(3)
    target, points = noisy_target(marginals, 3), full_grid(marginals)
    incidence = target.incidence(points)

    def losses(weights: np.ndarray) -> tuple[float, float]:
        path = [
            path_loss(b, a @ weights, Path.along(marginals.of(s)))
            for s, a, b in zip(marginals.subsets, incidence, target.blocks, strict=True)
        ]
        flow = [
            transport_loss(b, a @ weights, Network.of(marginals.of(s)))
            for s, a, b in zip(marginals.subsets, incidence, target.blocks, strict=True)
        ]
        return float(np.max(path)), float(np.max(flow))

    by_path, by_flow = PathProgram().solution(target, points), TransportProgram().solution(target, points)
    assert losses(as_probabilities(by_path.x[: len(points)], len(points)))[0] == pytest.approx(by_path.value, abs=1e-6)
    assert losses(as_probabilities(by_flow.x[: len(points)], len(points)))[1] == pytest.approx(by_flow.value, abs=1e-6)
    for _ in range(20):
        path, flow = losses(rng.dirichlet(np.full(len(points), 0.3)))
        assert path >= by_path.value - SOLVER
        assert flow >= by_flow.value - SOLVER


@pytest.mark.parametrize("program", [PathProgram, TransportProgram])
def test_a_weight_on_the_mean_costs_the_largest_loss_no_more_than_that_and_helps_the_others(program: Any) -> None:
    gains = []
    for seed in range(8):
        marginals = marginals_of("pairs of three kinds")
        target, points = noisy_target(marginals, seed), full_grid(marginals)
        alone, both = (program(mean_weight=weight).solution(target, points) for weight in (0.0, 0.01))
        found = [worst_and_mean_loss(program, target, points, s.x[: len(points)]) for s in (alone, both)]
        (worst, mean), (worst_of_both, mean_of_both) = found
        assert worst_of_both <= worst * 1.01 + 1e-6
        gains.append(mean - mean_of_both)
    assert min(gains) > -1e-4  # the solver is exact up to 1e-7, a hundredth of which the mean is worth
    assert max(gains) > 1e-3


def worst_and_mean_loss(program: Any, target: Target, points: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    losses = []
    for subset, incidence, block in zip(target.marginals.subsets, target.incidence(points), target.blocks, strict=True):
        cells, fitted = target.marginals.of(subset), incidence @ weights
        if program is PathProgram:
            losses.append(float(path_loss(block, fitted, Path.along(cells))))
        else:
            losses.append(float(transport_loss(block, fitted, Network.of(cells))))
    return max(losses), float(np.mean(losses))


def test_hilbert_order_is_used_where_asked() -> None:
    marginals = marginals_of("a square")
    target, points = noisy_target(marginals, 5), full_grid(marginals)
    snake, hilbert = (PathProgram(order=order).solution(target, points) for order in ("snake", "hilbert"))
    weights = as_probabilities(hilbert.x[: len(points)], len(points))
    path = Path.along(marginals.cells, "hilbert")
    loss = float(path_loss(target.blocks[0], target.incidence(points)[0] @ weights, path))
    assert loss == pytest.approx(hilbert.value, abs=1e-6)
    assert abs(snake.value - hilbert.value) > 1e-4  # control: the two differ


def test_a_target_without_noise_is_met_exactly() -> None:
    marginals = marginals_of("pairs of three kinds")
    truth = np.random.default_rng(6).dirichlet(np.full(len(full_grid(marginals)), 0.3))
    blank = Target(marginals=marginals, blocks=())
    target = Target(marginals=marginals, blocks=tuple(a @ truth for a in blank.incidence(full_grid(marginals))))
    for projection in (PathProgram(), TransportProgram()):
        assert projection.solution(target, full_grid(marginals)).value == pytest.approx(0, abs=SOLVER)


def test_a_program_without_solution_says_what_to_try() -> None:
    impossible = Program(
        cost=np.ones(1), a_eq=csr_array(np.ones((1, 1))), b_eq=-np.ones(1), a_ub=csr_array((1, 1)), b_ub=np.zeros(1)
    )
    with pytest.raises(SolverFailed, match="lower resolution"):
        solve(impossible)


def test_the_simplex_takes_over_where_the_interior_point_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    marginals = marginals_of("pairs of three kinds")
    program = TransportProgram().program(noisy_target(marginals, 1), full_grid(marginals))
    want, asked = solve(program), []

    def broken(*args: Any, method: str, **options: Any) -> Any:
        asked.append(method)
        answer = linprog(*args, method=method, **options)
        if method == "highs-ipm":
            answer.status, answer.x = 4, None
        return answer

    monkeypatch.setattr(linear_program, "linprog", broken)
    assert solve(program).value == pytest.approx(want.value, abs=SOLVER)
    assert asked == ["highs-ipm", "highs-ds"]


# ------------------------------------------------------------ whatever came back

GARBAGE: list[tuple[object, list[float]]] = [
    ([0.5, 0.5], [0.5, 0.5]),
    ([2.0, 6.0], [0.25, 0.75]),
    ([-1.0, 3.0], [0.0, 1.0]),
    ([np.nan, 1.0], [0.0, 1.0]),
    ([np.inf, 1.0], [0.0, 1.0]),
    ([-np.inf, np.nan], [0.5, 0.5]),
    ([0.0, 0.0], [0.5, 0.5]),
    ([-1e-9, -1e-9], [0.5, 0.5]),
    ([5e-324, 0.0], [1.0, 0.0]),
    ([1e308, 1e308], [0.5, 0.5]),
    ([1.0], [0.5, 0.5]),
    ([1.0, 1.0, 1.0], [0.5, 0.5]),
    ([[1.0, 0.0]], [0.5, 0.5]),
    ([], [0.5, 0.5]),
    (3.0, [0.5, 0.5]),
    (None, [0.5, 0.5]),
    ([True, False], [1.0, 0.0]),
]


@pytest.mark.parametrize(("weights", "expected"), GARBAGE)
def test_whatever_a_solver_returns_becomes_probabilities(weights: object, expected: list[float]) -> None:
    """P16: nothing after this trusts it to be more than that."""
    found = as_probabilities(np.array(weights, dtype=float), 2)
    assert found.tolist() == expected


def test_probabilities_sum_to_one_for_any_number_of_points() -> None:
    rng = np.random.default_rng(7)
    for count in (1, 2, 3, 10, 4_000):
        weights = rng.normal(size=count) * 10.0 ** rng.integers(-200, 200, size=count)
        found = as_probabilities(weights, count)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1, abs=1e-12)


# ------------------------------------------------------------ supports


def test_full_grid_is_every_cell_once() -> None:
    marginals = marginals_of("pairs of three kinds")
    assert as_cells(full_grid(marginals)) == oracles.all_cells(marginals.cells)


def test_full_grid_that_does_not_fit_is_refused_with_the_numbers() -> None:
    """P20: 20^4 = 160,000 cells, and a number of cells beyond any machine word."""
    wide = Marginals(cells=(gen.line(20),) * 4, subsets=((0, 1),))
    assert not fits_full_grid(wide)
    with pytest.raises(TooLarge, match=r"160,000 cells, more than 20,000: lower the resolution, name fewer columns"):
        full_grid(wide)
    with pytest.raises(TooLarge, match=f"{1000**30:,}"):
        full_grid(Marginals(cells=(gen.line(1000),) * 30, subsets=((0, 1),)))


def test_full_grid_at_the_limit_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    marginals = marginals_of("a square")
    monkeypatch.setattr(support, "MAX_FULL_GRID_CELLS", 9)
    assert fits_full_grid(marginals)
    assert len(full_grid(marginals)) == 9
    monkeypatch.setattr(support, "MAX_FULL_GRID_CELLS", 8)
    assert not fits_full_grid(marginals)
    with pytest.raises(TooLarge):
        full_grid(marginals)


def test_public_support_is_the_distinct_public_rows() -> None:
    rng = np.random.default_rng(8)
    codes = [rng.integers(3, size=500), rng.integers(2, size=500)]
    points = public_support(codes, rng)
    assert as_cells(points) == sorted(set(zip(codes[0].tolist(), codes[1].tolist(), strict=True)))
    few = public_support([np.arange(500), np.arange(500)], rng, most=100)
    assert len(few) == 100
    assert set(as_cells(few)) < {(i, i) for i in range(500)}


def test_drawn_support_lies_in_the_table_and_follows_the_one_way_marginals() -> None:
    marginals = marginals_of("pairs of three kinds")
    target = noisy_target(marginals, 9)
    points = drawn_support(target, np.random.default_rng(9))
    assert set(as_cells(points)) <= set(oracles.all_cells(marginals.cells))
    assert len(set(as_cells(points))) == len(points)
    for column in range(3):
        never = np.flatnonzero(one_way_marginal(target, column) == 0)
        assert not set(points[:, column]) & set(never.tolist())


def test_one_way_is_the_mean_over_the_marginals_that_hold_the_column() -> None:
    marginals = Marginals(cells=(gen.line(2), gen.line(3), gen.line(2)), subsets=((0, 1), (1,)))
    first, second = np.array([0.1, 0.2, 0.1, 0.2, 0.3, 0.1]), np.array([0.5, -0.9, 0.1])
    target = Target(marginals=marginals, blocks=(first, second))
    assert one_way_marginal(target, 0) == pytest.approx(np.array([0.4, 0.6]))
    averaged = np.maximum((np.array([0.3, 0.5, 0.2]) + second) / 2, 0)
    assert one_way_marginal(target, 1) == pytest.approx(averaged / averaged.sum())
    assert one_way_marginal(target, 2) == pytest.approx(np.array([0.5, 0.5]))  # measured nowhere: nothing is known


def test_incidence_maps_weights_to_the_marginals() -> None:
    marginals = marginals_of("pairs of three kinds")
    points = supports(marginals, 10)["partial"]
    for subset, matrix in zip(marginals.subsets, Target(marginals, ()).incidence(points), strict=True):
        literal = oracles.marginal_matrix(marginals.cells, as_cells(points), subset)
        assert np.array_equal(matrix.toarray(), literal)
    assert math.prod(Target(marginals, ()).incidence(points)[0].shape) > 0
