"""Any kinds of columns at any weights: graph distances and transport against a dense metric that is written here."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import ot  # type: ignore[import-untyped]
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from certsynth.domain import Category, Cells, Column, Groups, Ordered
from certsynth.domain.column import discretisation
from certsynth.transport import Network, Path, path_loss, transport_bounds

WEIGHTS = [Fraction(1), Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(3, 4), Fraction(1, 8)]
Matrix = list[list[Fraction]]


@dataclass(frozen=True)
class Space:
    """The points of one column, and their distances by definition."""

    cells: Cells
    distances: Matrix
    has_metric: bool = False


def tree_distance(first: str, second: str) -> int:
    """Steps up from one path to what they share, and down to the other."""
    a, b = first.split("/"), second.split("/")
    shared = len([None for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))])
    return len(a) + len(b) - 2 * shared


def with_alone(matrix: Matrix, weight: Fraction, alone: int) -> Matrix:
    size = len(matrix) + alone
    return [
        [matrix[i][j] if max(i, j) < len(matrix) else Fraction(0) if i == j else weight for j in range(size)]
        for i in range(size)
    ]


def random_paths(rng: np.random.Generator) -> list[str]:
    paths = ["a", "b"] if rng.random() < 0.5 else ["a"]
    while len(paths) < rng.integers(2, 9):
        paths.append(f"{paths[rng.integers(len(paths))]}/{len(paths)}")
    keep = [p for p in paths if rng.random() < 0.7] or paths  # what is left out lies between the others
    return list(dict.fromkeys(keep))


def random_tree(rng: np.random.Generator, weight: Fraction, missing: bool) -> Space:
    paths = random_paths(rng)
    column = Category(
        name="t",
        kind="tree",
        values=tuple(paths),
        paths=tuple(tuple(p.split("/")) for p in paths),
        missing=missing,
        weight=weight,
    )
    steps = [[tree_distance(p, q) for q in paths] for p in paths]
    longest = max(max(row) for row in steps) or 1
    matrix = [[weight * Fraction(d, longest) for d in row] for row in steps]
    return Space(column.lattice(64), with_alone(matrix, weight, int(missing)), has_metric=True)


def random_metric(rng: np.random.Generator, weight: Fraction, missing: bool) -> Space:
    size = int(rng.integers(2, 6))
    ways = rng.integers(1, 9, (size, size))
    ways = np.minimum(ways, ways.T)
    np.fill_diagonal(ways, 0)
    for k in range(size):
        ways = np.minimum(ways, ways[:, k, None] + ways[None, k, :])
    column = Category(
        name="m",
        kind="metric",
        values=tuple(map(str, range(size))),
        distances=tuple(tuple(Fraction(int(d)) for d in row) for row in ways),
        missing=missing,
        weight=weight,
    )
    largest = int(ways.max())
    matrix = [[weight * Fraction(int(d), largest) for d in row] for row in ways]
    return Space(column.lattice(64), with_alone(matrix, weight, int(missing)), has_metric=True)


def random_labels(rng: np.random.Generator, weight: Fraction, missing: bool) -> Space:
    labels = int(rng.integers(1, 5))
    column = Category(name="c", values=tuple(map(str, range(labels))), missing=missing, weight=weight)
    return Space(column.cells(4), with_alone([], weight, labels + missing))


def random_line(rng: np.random.Generator, weight: Fraction, missing: bool) -> Space:
    reach = int(rng.integers(1, 9))
    column = Ordered(name="x", low=0, high=reach, missing=missing, weight=weight)
    matrix = [[weight * Fraction(abs(i - j), reach) for j in range(reach + 1)] for i in range(reach + 1)]
    return Space(column.lattice(64), with_alone(matrix, weight, int(missing)))


def random_cells(rng: np.random.Generator, weight: Fraction, missing: bool) -> Space:
    """Even cells, of which some hold no value."""
    k = int(rng.integers(1, 7))
    cells = Ordered(name="x", low=0, high=int(rng.integers(1, 9)), missing=missing, weight=weight).cells(k)
    matrix = [[Fraction(abs(int(a) - int(b)), k) for b in cells.places] for a in cells.places]
    return Space(cells, with_alone(matrix, weight, int(missing)))


MAKERS = [random_tree, random_metric, random_labels, random_line, random_cells]


def random_spaces(seed: int, count: int, columns: int, most: int = 80) -> list[list[Space]]:
    rng = np.random.default_rng(seed)
    made = []
    while len(made) < count:
        spaces = [
            MAKERS[rng.integers(len(MAKERS))](rng, WEIGHTS[rng.integers(len(WEIGHTS))], rng.random() < 0.4)
            for _ in range(columns)
        ]
        if math.prod(s.cells.size for s in spaces) <= most:
            made.append(spaces)
    return made


def product(spaces: list[Space], unit: int) -> np.ndarray:
    """The maximum metric on all combinations, in whole units."""
    each = [np.array([[int(d * unit) for d in row] for row in s.distances]) for s in spaces]
    for s, whole in zip(spaces, each, strict=True):
        assert all(
            Fraction(int(w), unit) == d
            for ws, ds in zip(whole, s.distances, strict=True)
            for w, d in zip(ws, ds, strict=True)
        )
    codes = np.unravel_index(np.arange(math.prod(map(len, each))), [len(e) for e in each])
    return np.maximum.reduce([e[np.ix_(c, c)] for e, c in zip(each, codes, strict=True)])


def found(network: Network) -> np.ndarray:
    arcs = coo_array((network.lengths, (network.tails, network.heads)), shape=(network.nodes,) * 2)
    # Arcs of length 0 are arcs, too: lengths are raised by a little that no way can add up to a unit.
    arcs.data = arcs.data + 1e-6
    ways = dijkstra(arcs.tocsr(), indices=network.node_of_cell)[:, network.node_of_cell]
    return np.floor(ways + 1e-9).astype(np.int64)


def check(spaces: list[Space], *, small: int) -> Fraction:
    network = Network.of([s.cells for s in spaces], max_complete=small)
    true, graph = product(spaces, network.unit), found(network)
    assert (graph >= true).all(), "a short cut"
    assert (graph * network.stretch.denominator <= true * network.stretch.numerator).all(), "longer than stated"
    return network.stretch


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_no_way_is_shorter_than_the_metric_nor_longer_than_stated(columns: int) -> None:
    for spaces in random_spaces(columns, 120 if columns < 3 else 60, columns):
        check(spaces, small=0)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_no_way_is_shorter_in_many_larger_spaces(columns: int) -> None:
    for spaces in random_spaces(10 + columns, 1_000, columns, most=250):
        check(spaces, small=0)


def test_single_columns_and_all_but_webs_in_two_are_exact_without_all_pairs() -> None:
    for spaces in random_spaces(4, 100, 1) + [s for s in random_spaces(5, 200, 2) if not any(x.has_metric for x in s)]:
        assert check(spaces, small=0) == 1


def test_small_products_are_exact_whatever_the_columns() -> None:
    for spaces in random_spaces(6, 60, 2) + random_spaces(7, 30, 3):
        lines = sum(len(s.cells.places) > 1 for s in spaces)
        stretch = check(spaces, small=100)
        assert stretch == 1 or lines == 3 or not any(s.has_metric for s in spaces)


def test_a_tree_beside_a_label_of_the_same_weight_is_exact() -> None:
    rng = np.random.default_rng(8)
    for _ in range(30):
        weight = WEIGHTS[rng.integers(len(WEIGHTS))]
        assert check([random_tree(rng, weight, True), random_labels(rng, weight, False)], small=0) == 1


def test_transport_is_that_of_a_dense_solver() -> None:
    rng = np.random.default_rng(9)
    for spaces in random_spaces(11, 60, 1) + random_spaces(12, 120, 2):
        network = Network.of([s.cells for s in spaces])
        if network.stretch > 1:
            continue
        first, second = (rng.multinomial(50, rng.dirichlet(np.full(network.cells, 0.3))) for _ in range(2))
        upper, lower, per = transport_bounds(network, first, second)
        assert upper == lower
        dense = ot.emd2(first / 50, second / 50, product(spaces, network.unit) / network.unit)
        assert upper / per == pytest.approx(dense, abs=1e-9)


def test_a_tour_is_no_shorter_than_transport_and_reports_its_length() -> None:
    rng = np.random.default_rng(13)
    for spaces in random_spaces(14, 60, 1) + random_spaces(15, 60, 2):
        cells = [s.cells for s in spaces]
        for order in ("tour", "snake"):
            path = Path.along(cells, order)
            true = product(spaces, unit := 2 * math.lcm(*(c.denominator for c in cells))) / unit
            assert sorted(path.order.tolist()) == list(range(len(true)))
            steps = [true[a, b] for a, b in itertools.pairwise(path.order)]
            assert path.steps[:-1] == pytest.approx(steps)
            assert path.length == pytest.approx(sum(steps))
            first, second = rng.dirichlet(np.ones(len(true)), 2)
            assert float(path_loss(first, second, path)) >= ot.emd2(first, second, true) - 1e-9


def test_the_check_sees_a_hub_that_is_shared_by_all_values_of_a_heavier_line() -> None:
    """Control: the wrong reading of a light category beside a line lets rows go along the line for nothing."""
    line, light = (
        Ordered(name="x", low=0, high=8).lattice(64),
        Category(name="c", values=("a", "b"), weight=Fraction(1, 4)),
    )
    cells = [line, light.cells(4)]
    network = Network.of(cells)
    spaces = [
        Space(line, [[Fraction(abs(i - j), 8) for j in range(9)] for i in range(9)]),
        Space(cells[1], with_alone([], Fraction(1, 4), 2)),
    ]
    true = product(spaces, network.unit)
    assert (found(network) >= true).all()
    hub = network.nodes - 1
    near = (network.tails == hub) | (network.heads == hub)
    wrong = replace(network, lengths=np.where(near, network.unit // 8, network.lengths))
    assert (found(wrong) < true).any()


def test_groups_of_labels_lie_where_their_heads_do() -> None:
    rng = np.random.default_rng(16)
    for _ in range(40):
        space = random_tree(rng, Fraction(1, 2), True)
        lattice = space.cells
        assert lattice.label_metric is not None
        labels = lattice.label_metric.size
        representatives = np.sort(rng.permutation(labels)[: rng.integers(1, labels + 1)])
        group_of_label = np.append(
            np.argmin(lattice.label_metric.distances[:labels, representatives], axis=1), len(representatives)
        )
        groups = Groups.of(lattice, np.empty(0, np.int64), group_of_label, np.append(representatives, labels))
        points = np.arange(lattice.size)
        away = [space.distances[p][int(np.append(representatives, labels)[group_of_label[p]])] for p in points]
        assert groups.radius == max(away)
        short = Space(
            groups,
            [[space.distances[a][b] for b in groups.representatives] for a in groups.representatives],
            has_metric=True,
        )
        check([short], small=0)


def test_a_covering_is_within_the_width_of_a_cell() -> None:
    rng = np.random.default_rng(17)
    merged = 0
    for _ in range(60):
        paths = random_paths(rng)
        column: Column = Category(
            name="t", kind="tree", values=tuple(paths), paths=tuple(tuple(p.split("/")) for p in paths)
        )
        for k in (1, 2, 3, 4, 8):
            cells = column.cells(k)
            assert discretisation(column, cells) <= Fraction(1, 2 * k)
            merged += cells.size < len(paths)
    assert merged > 20
