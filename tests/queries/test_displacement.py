"""How far rows are from the centres of their cells: its sensitivity, its exact value, and the certificate with it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth import release
from certsynth.certificate.plug_in import DISPLACEMENT_BETA, plug_in
from certsynth.domain import Category, Column, Groups, Ordered, Schema
from certsynth.mechanisms import Budget, Guarantee, Measurement, Neighbours, Sensitivity, Unit, measure, strategy_named
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from certsynth.queries import Marginals
from certsynth.queries.displacement import farthest, sum_displacement
from certsynth.queries.fine import MOVE_UNITS
from small import MIXED, LyingNoise, NoNoise, failures_allowed, people

Row = tuple[float, ...]

TINY = Schema(
    (
        Ordered("a", low=-2, high=2, missing=True),
        Ordered("b", kind="number", low=0.0, high=1.0),
        Category("c", values=("x", "y")),
    )
)
ROWS: list[Row] = list(itertools.product([0.0, 1.0, 2.0, 4.0, math.nan], [0.0, 0.25, 0.3, 1.0], [0, 1]))


def even(schema: Schema, sparsity: int, resolution: int) -> Marginals:
    return Marginals.all_subsets(schema, sparsity=sparsity, resolution=resolution)


def grouped(schema: Schema, sparsity: int) -> Marginals:
    """Groups of different widths on the columns' lattices."""
    lattices = [column.detail() for column in schema]
    starts = [[0, 1, 3], [0, 100], []]
    cells = tuple(Groups.of(lattice, np.array(s)) for lattice, s in zip(lattices, starts, strict=True))
    return Marginals(cells=cells, subsets=tuple(itertools.combinations(range(len(schema)), sparsity)))


MARGINALS = {
    f"{name}, {sparsity} at once": make(sparsity)
    for sparsity in (1, 2, 3)
    for name, make in {
        "one cell": lambda s: even(TINY, s, 1),
        "two cells": lambda s: even(TINY, s, 2),
        "three cells": lambda s: even(TINY, s, 3),
        "eight cells": lambda s: even(TINY, s, 8),
        "groups": lambda s: grouped(TINY, s),
    }.items()
}
every = pytest.mark.parametrize("name", MARGINALS)


def columns(rows: Sequence[Row]) -> list[np.ndarray]:
    kinds: list[Any] = [float, float, np.int64]
    return [np.array([row[j] for row in rows], dtype=kind) for j, kind in enumerate(kinds)]


# ------------------------------------------------------------ by brute force


def tables(most: int) -> Iterable[tuple[Row, ...]]:
    """All tables of at most so many rows, whatever their order."""
    return itertools.chain.from_iterable(itertools.combinations_with_replacement(ROWS, n) for n in range(most + 1))


@pytest.mark.quick_cases(5)
@every
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_no_neighbours_differ_by_more_than_the_farthest_row(neighbours: Neighbours, name: str) -> None:
    """P1, over all tables of at most two rows. Some pair attains it, as far as its values are that far away."""
    marginals = MARGINALS[name]
    found = {rows: sum_displacement(TINY, marginals, [columns(rows)]) for rows in tables(2)}
    changes = []
    for rest in tables(1):
        ours = [found[tuple(sorted((*rest, row), key=ROWS.index))] for row in ROWS]
        if neighbours is Neighbours.ADD_REMOVE:
            changes += [abs(value - found[rest]) for value in ours]
        else:
            changes.append(max(ours) - min(ours))
    most = farthest(TINY, marginals)
    assert max(changes) <= most
    alone = [units(row, marginals) for row in ROWS]
    widest = max(map(max, alone))
    nearest = 0 if neighbours is Neighbours.ADD_REMOVE else min(map(max, alone))
    assert max(changes) >= widest - nearest - 1
    if not name.startswith("groups"):
        assert widest == most  # the ends of a line are half a cell from the centre of theirs


def units(row: Row, marginals: Marginals) -> list[int]:
    """How far one row is away, subset by subset, rounded up."""
    return [math.ceil(MOVE_UNITS * away) for away in exact([row], marginals)]


# ------------------------------------------------------------ slowly and exactly


def exact(rows: Sequence[Row], marginals: Marginals) -> list[Fraction]:
    """For each subset the sum over all rows of how far they are from their centres, in fractions."""
    sums = []
    for subset in marginals.subsets:
        away = Fraction(0)
        for row in rows:
            away += max(distance_to_centre(TINY.columns[j], row[j], marginals.cells[j]) for j in subset)
        sums.append(away)
    return sums


def distance_to_centre(column: Column, value: float, cells: Any) -> Fraction:
    if not isinstance(column, Ordered) or math.isnan(value):
        return Fraction(0)
    place = Fraction(value) / column.reach
    if not isinstance(cells, Groups):
        k = cells.steps
        return abs(place - (min(math.floor(place * k), k - 1) + Fraction(1, 2)) / k)
    steps, points = cells.lattice.steps, cells.lattice.places
    nearest = math.floor(place * steps + Fraction(1, 2))
    group = sum(points[start] <= nearest for start in cells.starts) - 1
    last = [*cells.starts[1:], len(points)][group] - 1
    return abs(place - Fraction(int(points[cells.starts[group]] + points[last]), 2 * steps))


@every
def test_the_sum_is_exact_up_to_one_unit_for_a_row_and_never_too_small(name: str) -> None:
    marginals = MARGINALS[name]
    for rows in itertools.chain(tables(1), itertools.islice(tables(2), 100, None, 7), [tuple(ROWS), tuple(ROWS * 3)]):
        true = max(exact(rows, marginals)) * MOVE_UNITS
        assert true <= sum_displacement(TINY, marginals, [columns(rows)]) <= true + len(rows)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from([1, 2, 3, 5, 8, 64, 1000, 1024]))
@settings(max_examples=200, deadline=None)
def test_no_number_is_further_away_than_it_counts(values: list[float], resolution: int) -> None:
    """Next to an edge, where floats round a value into the next cell, and next to a centre, where they lose 1e-17."""
    rows = [(math.nan, value, 0) for value in values]
    marginals = even(TINY, 1, resolution)
    found = sum_displacement(TINY, marginals, [columns(rows)])
    true = exact(rows, marginals)[1] * MOVE_UNITS
    assert true - Fraction(1, 10**6) <= found <= min(true + len(rows), len(rows) * farthest(TINY, marginals))


def test_batches_do_not_matter() -> None:
    marginals = MARGINALS["three cells, 2 at once"]
    at_once = sum_displacement(TINY, marginals, [columns(ROWS)])
    assert sum_displacement(TINY, marginals, [columns(ROWS[:7]), columns([]), columns(ROWS[7:])]) == at_once
    assert sum_displacement(TINY, marginals, []) == 0


def test_the_farthest_is_what_the_schema_allows() -> None:
    assert farthest(TINY, even(TINY, 2, 8)) == MOVE_UNITS / 16
    assert farthest(TINY, even(TINY, 2, 3)) == math.ceil(Fraction(MOVE_UNITS, 6))
    labels = Schema((Category("c", values=("x", "y")),))
    assert farthest(labels, even(labels, 1, 8)) == 0


# ------------------------------------------------------------ the certificate with it

LINE = Schema((Ordered("a", low=0, high=1000), Ordered("b", low=0, high=1000), Category("c", values=("x", "y"))))
BUDGETS = {Unit.EPSILON: Budget(Fraction(4)), Unit.RHO: Budget(Fraction(2), Unit.RHO)}


def near_centres(rows: int) -> list[np.ndarray]:
    """Rows of which most are close to the centres of two cells to the line."""
    rng = np.random.default_rng(0)
    line = np.clip(rng.choice([250, 750], (2, rows)) + rng.normal(0, 40, (2, rows)), 0, 1000)
    return [*np.rint(line), rng.integers(0, 2, rows)]


@pytest.fixture(scope="module")
def private() -> list[np.ndarray]:
    return near_centres(80)


def of(rows: Sequence[np.ndarray]) -> Schema:
    """The schema of the first so many columns."""
    return Schema(LINE.columns[: len(rows)])


def measured(
    rows: Sequence[np.ndarray], neighbours: Neighbours, budget: Budget, noise: Noise | None = None
) -> Measurement:
    schema = of(rows)
    marginals = even(schema, 2, 2)
    codes = [c.to_cells(x, cells) for c, x, cells in zip(schema, rows, marginals.cells, strict=True)]
    strategy = strategy_named("identity", neighbours=neighbours)
    return measure(marginals.count([codes]), strategy, budget=budget, noise=noise)


def noisy(
    rows: Sequence[np.ndarray], measurement: Measurement, budget: Budget, noise: Noise | None = None
) -> NoisyScalars:
    most = farthest(of(rows), measurement.marginals)
    return measure_scalars(
        [sum_displacement(of(rows), measurement.marginals, [rows])],
        sensitivity=Sensitivity(most, most**2),
        budget=budget,
        neighbours=measurement.strategy.neighbours,
        noise=noise,
    )


def true_means(rows: Sequence[np.ndarray], marginals: Marginals) -> list[float]:
    away = [
        column.distance_to_centre(x, cells) for column, x, cells in zip(of(rows), rows, marginals.cells, strict=True)
    ]
    return [float(np.max([away[j] for j in subset], axis=0).mean()) for subset in marginals.subsets]


MIXED_PAIR = MIXED.select(["age", "education"])


@pytest.mark.quick_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_discretisation_holds_as_often_as_it_says(private, neighbours: Neighbours, unit: Unit) -> None:
    """100 runs at confidence 0.9, and a control whose noise is 30 times as wide as it says and fails in 44 of 100.

    Of β a tenth may be lost on the displacement; under add/remove half of the rest on the number of rows.
    """
    beta = Fraction(1, 10)
    own = beta * DISPLACEMENT_BETA
    allowed = failures_allowed(100, float(own + (beta - own) / 2 * (neighbours is Neighbours.ADD_REMOVE)))
    rows = private[:2]
    (true,) = true_means(rows, even(of(rows), 2, 2))

    def misses(noise: Noise | None) -> int:
        count = 0
        for seed in range(100):
            measurement = measured(rows, neighbours, BUDGETS[unit])
            displaced = noisy(rows, measurement, BUDGETS[unit], noise)
            made = plug_in([measurement], of(rows), rows, beta=beta, draws=22, seed=seed, displaced=displaced)["path"]
            term = made.worst.discretisation
            assert term <= 0.25 + 1e-8
            count += term < true
        return count

    assert misses(None) <= allowed
    assert misses(LyingNoise(30)) > allowed


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_measuring_pays_and_changes_no_confidence(private, neighbours: Neighbours) -> None:
    measurement = measured(private, neighbours, Budget(Fraction(40)), NoNoise())
    displaced = noisy(private, measurement, Budget(Fraction(40)), NoNoise())
    beta, true = Fraction(1, 10), true_means(private, measurement.marginals)
    asked: dict[str, Any] = {"beta": beta, "draws": 100, "seed": 1}
    without = plug_in([measurement], LINE, private, **asked)
    with_it = plug_in([measurement], LINE, private, displaced=displaced, **asked)
    assert set(with_it) == set(without) == {"transport", "path"}
    for proxy, made in with_it.items():
        assert made.confidence == without[proxy].confidence == 1 - beta
        assert made.subsets == without[proxy].subsets
        for mine, plain, mean in zip(made.terms, without[proxy].terms, true, strict=True):
            assert plain.discretisation == pytest.approx(0.25, abs=1e-8)
            assert mean <= mine.discretisation < 0.5 * plain.discretisation
            assert mine.privatisation >= plain.privatisation  # it has less of β
            assert mine.projection >= plain.projection
        assert made.bound < without[proxy].bound


@pytest.mark.parametrize(("value", "term"), [(-(10**9), 0), (0, 0), (10**15, 0.25), (int(0.1 * 80 * MOVE_UNITS), 0.1)])
def test_the_term_is_at_least_nothing_and_at_most_the_worst_case(private, value: int, term: float) -> None:
    """Whatever the noisy value says, and with noise of hardly any width."""
    measurement = measured(private, Neighbours.REPLACE_ONE, Budget(Fraction(40)))
    cost = Guarantee(Budget(Fraction(1)), Neighbours.REPLACE_ONE)
    displaced = NoisyScalars((value,), 0.01, cost)
    made = plug_in([measurement], LINE, private, beta=Fraction(1, 10), draws=20, seed=1, displaced=displaced)["path"]
    for terms in made.terms:
        assert terms.discretisation == pytest.approx(term, abs=1e-6)


def test_a_table_that_may_be_empty_has_the_trivial_bound() -> None:
    rows = near_centres(1)
    measurement = measured(rows, Neighbours.ADD_REMOVE, Budget(Fraction(1, 10)), NoNoise())
    displaced = noisy(rows, measurement, Budget(Fraction(1, 10)), NoNoise())
    made = plug_in([measurement], LINE, rows, beta=Fraction(1, 10), draws=40, seed=1, displaced=displaced)["path"]
    assert made.bound == 1
    assert all(terms.discretisation == pytest.approx(0.25, abs=1e-8) for terms in made.terms)


@pytest.mark.parametrize(
    ("asked", "there"), [({"certificate_share": 0}, True), ({}, False), ({"preset": "paper"}, False)]
)
def test_it_is_measured_only_where_the_plug_in_certificate_speaks_alone(asked: dict[str, Any], there: bool) -> None:
    """The direct certificate has no use for it, and the paper takes the worst case."""
    made = release(people(60), MIXED_PAIR, epsilon=2, resolution=3, mechanism="haar-noisy-total", **asked)
    parts = {part["on"]: Fraction(part["epsilon"]) for part in made.document["privacy"]["spent"]}
    assert ("mean displacement" in [step["on"] for step in made.document["privacy"]["spent"]]) == there
    assert parts.get("mean displacement") == (Fraction(1, 25) if there else None)
    assert sum(parts.values()) == 2


def test_columns_without_a_line_need_no_displacement() -> None:
    labels = Schema(
        (Category("sex", values=("f", "m"), other=True), Category("employed", kind="boolean", values=("false", "true")))
    )
    made = release(people(60), labels, epsilon=2, resolution=3, certificate_share=0, mechanism="identity")
    assert "mean displacement" not in [step["on"] for step in made.document["privacy"]["spent"]]
    assert all(s["terms"]["discretisation"] == 0 for s in made.document["certificate"]["plug_in"]["path"]["subsets"])
