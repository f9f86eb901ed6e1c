"""Bounds on shares, group totals and moments: the truth is in every interval, and the tightest bound decides."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import certified_errors
from all_sets import boxes_of, sets_of
from answering import stated
from certsynth.answers import Basis, answer
from certsynth.answers.boxes import Errors, Products, error
from certsynth.answers.claims import Claim, conditional, intersect, quotient
from certsynth.answers.lattices import Lattice, codes_of, figures_of_codes, off_lattice
from certsynth.domain import Category, Cells, Column, Ordered, Schema
from certsynth.errors import InputError
from certsynth.queries.fine import DEFAULT_STEPS
from certsynth.queries.statistics import UNITS, places_in_units, share_cells
from certsynth.record.record import StatisticsRecord
from questions import KINDS, column, condition
from within import World

ANSWERS = 250


def test_no_private_table_has_a_statistic_outside() -> None:
    tally = certified_errors.run(ANSWERS, seed=1)
    assert not tally.outside, tally.outside[:3]
    assert sum(tally.narrowed.values()) > 0.5 * tally.total


def test_bounds_a_fifth_too_small_are_noticed() -> None:
    assert len(certified_errors.run(150, seed=2, shrink=0.8).outside) > 3


@pytest.mark.slow
def test_no_private_table_has_a_statistic_outside_of_many_more() -> None:
    tally = certified_errors.run(10_000, seed=3)
    assert not tally.outside, tally.outside[:3]
    small = certified_errors.run(4_000, seed=4, shrink=0.8)
    forms = {"cdf", "count", "fraction", "mean", "mean in a group", "sum", "sd", "variance", "covariance", "quantile"}
    assert forms <= set(small.outside_forms)


# ------------------------------------------------------------ sets of points

LINE = Ordered("x", low=0, high=3)
LINE_OR_MISSING = Ordered("y", low=0, high=2, missing=True)
LABELS = Category("c", values=("a", "b", "c"), missing=True)
MORE_LABELS = Category("d", values=("p", "q", "r"))


def largest_difference(lattice: Lattice, points: np.ndarray, errors: Errors) -> float:
    """The largest difference of the shares of these points between tables whose shares differ by at most `errors` for
    all sets of each column and all boxes."""
    cells, shape = lattice.cells, lattice.counts.shape
    sets = []
    for axis, each in enumerate(cells):
        for some in sets_of(each):
            inside = np.zeros(shape, bool)
            np.moveaxis(inside, axis, 0)[sorted(some)] = True
            sets.append((inside.ravel(), errors.one))
    if len(cells) == 2:
        for first, second in boxes_of(*cells):
            inside = np.zeros(shape, bool)
            inside[np.ix_(sorted(first), sorted(second))] = True
            sets.append((inside.ravel(), errors.two))
    rows = sp.csr_array(np.array([each for each, _ in sets], dtype=float))
    most = np.array([bound for _, bound in sets])
    found = linprog(
        -points.ravel().astype(float),
        A_ub=sp.vstack([rows, -rows]),
        b_ub=np.concatenate([most, most]),
        A_eq=np.ones((1, points.size)),
        b_eq=[0.0],
        bounds=(-1, 1),
        method="highs",
    )
    return float(-found.fun)


@pytest.mark.parametrize(
    "columns",
    [[LINE], [LINE_OR_MISSING], [LABELS], [LINE, LINE_OR_MISSING], [LABELS, LINE_OR_MISSING], [LABELS, MORE_LABELS]],
    ids=lambda columns: " × ".join(column.name for column in columns),
)
def test_no_share_differs_by_more_than_the_boxes_of_its_set_allow(columns: list[Column]) -> None:
    rng = np.random.default_rng(1)
    lattice = Lattice.of(columns, {column.name: np.zeros(1, int) for column in columns})
    shape = lattice.counts.shape
    for one, two in ((0.01, 0.015), (0.03, 0.01)):
        errors = Errors(one, two)
        for _ in range(12):
            masks = [rng.random(size) < 0.5 for size in shape]
            product = masks[0] if len(shape) == 1 else masks[0][:, None] & masks[1][None, :]
            for points in (product, ~product, rng.random(shape) < 0.4):
                assert error(lattice, points, errors) >= largest_difference(lattice, points, errors) - 1e-9


@pytest.mark.parametrize(
    "columns",
    [[LINE, LINE_OR_MISSING], [LABELS, LINE_OR_MISSING], [LABELS, MORE_LABELS], [LINE_OR_MISSING, LABELS]],
    ids=lambda columns: " × ".join(column.name for column in columns),
)
def test_neighbours_with_the_same_set_are_merged_without_another_error(columns: list[Column]) -> None:
    rng, errors = np.random.default_rng(8), Errors(0.01, 0.015)
    lattice = Lattice.of(columns, {column.name: np.zeros(1, int) for column in columns})
    lines, native, shape = tuple(len(cells.places) for cells in lattice.cells), lattice.native, lattice.counts.shape
    ways = Products(lines, native, errors), Products(lines[::-1], native[::-1], errors)
    for share in np.linspace(0, 1, 300):
        points = rng.random(shape) < share
        points[rng.integers(shape[0])] = points[rng.integers(shape[0])]
        points[:, rng.integers(shape[1])] = points[:, rng.integers(shape[1])]
        plain = [ways[0].error(points), ways[0].error(~points), ways[1].error(points.T), ways[1].error(~points.T)]
        assert error(lattice, points, errors) == min(plain)


def test_one_box_costs_one_error() -> None:
    errors = Errors(0.01, 0.015)
    pair = Lattice.of([LINE, LINE_OR_MISSING], {"x": np.zeros(1), "y": np.zeros(1)})
    points = np.zeros(pair.counts.shape, bool)
    points[1:3, 1:] = True  # with the missing value
    assert error(pair, points, errors) == errors.two
    assert error(pair, ~points, errors) == errors.two
    assert error(pair, np.broadcast_to(points[:, 1:2], points.shape), errors) == errors.one
    assert error(pair, np.ones_like(points), errors) == 0
    labels = Lattice.of([LABELS, MORE_LABELS], {"c": np.zeros(1, int), "d": np.zeros(1, int)})
    points = np.zeros(labels.counts.shape, bool)
    points[:2, :2] = True
    assert error(labels, points, errors) == pytest.approx(errors.one + errors.two)  # all of the second, less the rest
    points[1] = False
    assert error(labels, points, errors) == errors.two


@dataclass(frozen=True)
class ExactCells:
    """Stands for noisy counts whose noise is 0: the share of a set is between those of its inner and outer cells."""

    columns: list[Column]
    cells: list[Cells]
    counts: np.ndarray

    @property
    def tables(self) -> list[ExactCells]:
        return [self]

    def tables_of(self, names: frozenset[str]) -> list[ExactCells]:
        return [self] if set(names) == {column.name for column in self.columns} else []

    def share(self, _: ExactCells, inner: np.ndarray, outer: np.ndarray) -> tuple[float, float]:
        return self.counts[inner].sum() / self.counts.sum(), self.counts[outer].sum() / self.counts.sum()


def test_shares_are_between_the_inner_and_the_outer_cells_of_measured_tables() -> None:
    rng, asked, narrow = np.random.default_rng(7), 0, 0
    while asked < 150:
        columns = [column(rng, f"c{i}", str(rng.choice(KINDS))) for i in range(int(rng.integers(1, 3)))]
        world = World(Schema(columns=tuple(columns)), rng)
        private = rng.multinomial(30, rng.dirichlet(np.full(world.size, 0.3)))
        cells = [each.cells(int(rng.integers(1, 6))) for each in columns]
        codes = [
            each.to_cells(np.repeat(world.clean[each.name], private), part)
            for each, part in zip(columns, cells, strict=True)
        ]
        counts = np.zeros([each.size for each in cells])
        np.add.at(counts, tuple(codes), 1)
        text, truth, names = condition(rng, world)
        if world.size > 60 or len(names) < len(columns):
            continue
        clean = {name: values[:1] for name, values in world.clean.items()}
        table = {each.name: each.decode(clean[each.name]) for each in columns}
        certificate = stated([(tuple(world.schema.names), 1.0)], single=1.0)
        noisy: Any = ExactCells(columns, cells, counts)
        found = answer(Basis(world.schema, table, clean, certificate, 30, noisy=noisy), f"fraction({text})")
        assert found.low - 1e-9 <= private[truth > 0].sum() / 30 <= found.high + 1e-9, text
        asked, narrow = asked + 1, narrow + (found.low == pytest.approx(found.high, abs=1e-6))
    assert narrow > 30


# ------------------------------------------------------------ values of codes


@pytest.mark.parametrize(
    "column",
    [
        Ordered("x", low=-7, high=60),
        Ordered("x", low=10, high=9920),
        Ordered("x", low=10, high=9920, weight=Fraction(3, 10), missing=True),
        Ordered("x", low=5, high=5),
        Ordered("x", kind="number", low=-0.5, high=1e4, missing=True),
        Ordered("x", kind="number", low=1e6, high=1e6 + 1, weight=Fraction(1, 10)),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [1, 2, "shares"])
def test_codes_stand_for_the_values_between_their_ends(column: Ordered, columns: int | str) -> None:
    lattice = column.lattice(DEFAULT_STEPS[2 if columns == 2 else 1])
    cells = share_cells(column, lattice) if columns == "shares" else lattice
    rng = np.random.default_rng(2)
    clean = np.arange(column.reach + 1.0) if column.whole else np.sort(rng.random(5_000))
    figures = clean + column.low if column.whole else column.low + clean * (column.high - column.low)
    codes, (first, last) = codes_of(column, clean, cells), figures_of_codes(column, cells)
    assert (first[codes] <= figures).all()
    assert (figures <= last[codes]).all()
    if column.whole:
        assert (first[np.unique(codes)] == [figures[codes == code].min() for code in np.unique(codes)]).all()
        assert (last[np.unique(codes)] == [figures[codes == code].max() for code in np.unique(codes)]).all()
    place = clean / max(column.reach, 1)
    assert np.abs(place - places_in_units(cells)[codes] / UNITS).max() <= off_lattice(column, cells) + 1e-12


# ------------------------------------------------------------ claims


def test_claims_that_contradict_each_other_give_an_interval_that_contains_both() -> None:
    found = intersect([Claim(0.1, 0.2, 0.01, "one"), Claim(0.4, 0.5, 0.02, "two")])
    assert (found.low, found.high) == (0.1, 0.5)


def test_a_conditional_share_is_in_its_range() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        a, c = rng.random(2) * rng.integers(0, 2, 2)
        part, rest = ((np.array(x - rng.random() * x), np.array(x + rng.random())) for x in (a, c))
        whole = (a + c) * rng.random(), a + c + rng.random()
        low, high = conditional(part, rest, whole)
        assert 0 <= low <= high <= 1
        if a + c > 0:
            assert low - 1e-12 <= a / (a + c) <= high + 1e-12


def test_a_quotient_is_in_its_range() -> None:
    rng = np.random.default_rng(4)
    for total, share in itertools.product(rng.uniform(-1, 1, 40), rng.random(5)):
        low, high = quotient((total - rng.random(), total + rng.random()), (share * rng.random(), share + rng.random()))
        assert low <= total / share <= high
    assert quotient((-0.1, 0.2), (0.0, 0.5)) == (-np.inf, np.inf)


# ------------------------------------------------------------ what decides

SCHEMA = Schema(columns=(Ordered("age", low=0, high=99), Ordered("pay", low=0, high=9_999), LABELS))


def people(bound: float, statistics: StatisticsRecord | None) -> Basis:
    rng = np.random.default_rng(5)
    age = np.floor(rng.normal(45, 15, 4_000).clip(0, 99))
    clean = {
        "age": age,
        "pay": np.floor((age * 60 + rng.normal(0, 900, 4_000)).clip(0, 9_999)),
        "c": rng.integers(0, 4, 4_000),
    }
    table = {column.name: column.decode(clean[column.name]) for column in SCHEMA}
    subsets = [(pair, bound) for pair in itertools.combinations(SCHEMA.names, 2)]
    certificate = replace(stated(subsets, single=bound), statistics=statistics)
    return Basis(SCHEMA, table, clean, certificate, 4_000)


TIGHT = StatisticsRecord(0.01, 0.016, 0.006, 0.004)

WIDTHS = [
    ("fraction(age > 65)", 0.02, "shares of one column"),
    ("fraction(not 25 <= age < 35)", 0.02, "shares of one column"),
    ("fraction(age < 20 or age > 65)", 0.02, "shares of one column"),
    ("fraction(c in ['a', 'c'])", 0.02, "shares of one column"),
    ("cdf(age, 30)", 0.02, "shares of one column"),
    ("fraction(age > 40 and c = 'a')", 0.032, "shares of two columns"),
    ("fraction(age > 40 or c = 'a')", 0.032, "shares of two columns"),
    ("mean(age)", 0.8, "error of means"),
    ("mean(age | c != 'a')", 2.5, "group totals"),
    ("mean(age | age > 50)", 4.0, "shares of rows above each value"),
    ("median(age)", 1.0, "certified shares"),
    ("median(age | c = 'a')", 6.0, "certified shares"),
    ("variance(age)", 24.0, "of squares"),
    ("covariance(age, pay)", 8_600.0, "products"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "width", "how"), WIDTHS)
def test_the_tightest_bound_decides_and_is_named(query: str, width: float, how: str) -> None:
    wide, narrow = answer(people(0.02, None), query), answer(people(0.02, TIGHT), query)
    assert narrow.high - narrow.low <= width * (1 + 1e-3)
    assert wide.low <= narrow.low <= narrow.estimate <= narrow.high <= wide.high
    assert how in narrow.how
    exact = answer(people(1e-6, TIGHT), query)
    assert exact.how == answer(people(1e-6, None), query).how


def test_conditions_that_compare_columns_have_the_bound_on_the_distance() -> None:
    for query in ("fraction(age + 2*pay < 900)", "mean(age | pay > 50*age)"):
        assert answer(people(0.02, TIGHT), query) == answer(people(0.02, None), query)


def test_a_border_between_two_codes_costs_the_rows_of_the_code() -> None:
    """A code of the long column stands for about forty values: the synthetic rows at it may be on either side."""
    found = answer(people(1.0, TIGHT), "fraction(pay < 2510)")
    assert 0.02 < found.high - found.low < 0.04


def test_a_correlation_in_a_group_of_a_third_column_needs_a_certificate_of_three() -> None:
    with pytest.raises(InputError, match="3 columns, and this release certifies statistics of at most 2"):
        answer(people(0.02, TIGHT), "correlation(age, pay | c = 'a')")
    assert answer(people(0.02, TIGHT), "correlation(age, pay | age > 20)").low > 0.2


@pytest.mark.parametrize(
    "column",
    [
        Ordered("x", kind="number", low=-1e300, high=1e300, missing=True),
        Ordered("x", low=-(2**52), high=2**52, missing=True),
        Ordered("x", low=7, high=7, missing=True),
        Ordered("x", kind="number", low=1e15, high=1e15 + 1),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "query", ["fraction(x > 3)", "mean(x)", "mean(x | x > 3)", "sum(2*x)", "variance(x)", "median(x | x >= 3)", "sd(x)"]
)
def test_the_longest_and_the_shortest_ranges_have_an_answer_or_are_refused(column: Ordered, query: str) -> None:
    clean = {"x": np.array([0.0, 1.0, 0.5, 1.0]) * column.reach}
    certificate = replace(stated([(("x",), 0.02)], single=0.02), statistics=StatisticsRecord(0.01, None, None, 0.01))
    basis = Basis(Schema(columns=(column,)), {"x": column.decode(clean["x"])}, clean, certificate, 4)
    with contextlib.suppress(InputError):
        found = answer(basis, query)
        assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize(
    "query", ["fraction(x > 0.4 | y < 0.6)", "mean(y | x > 0.5)", "median(y | x > 0.5)", "sd(y | x > 0.5)"]
)
def test_rounding_many_rows_widens_intervals_and_moves_no_estimate(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    columns = (
        Ordered("x", kind="number", low=0.0, high=1.0),
        Ordered("y", kind="number", low=0.0, high=1.0, missing=True),
    )
    clean = {"x": rng.random(2_000), "y": np.where(rng.random(2_000) < 0.1, np.nan, rng.random(2_000))}
    table = {column.name: column.decode(clean[column.name]) for column in columns}
    found = []
    for most in (20_000, 500):
        monkeypatch.setattr("certsynth.answers.basis.MAX_EXACT_ROWS", most)
        certificate = stated([(("x", "y"), 0.01)], single=0.01)
        found.append(answer(Basis(Schema(columns=columns), table, clean, certificate, 2_000), query))
    exact, rounded = found
    assert rounded.estimate == pytest.approx(exact.estimate, abs=1e-12)
    assert rounded.bound > exact.bound
    assert rounded.low <= exact.low + 1e-4
    assert exact.high <= rounded.high + 1e-4
