"""Step 3 by particles: legal rows at full detail, single columns as measured, and dependence where it was measured."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth.algorithm.layers import measure_layers
from certsynth.domain import Category, Ordered, Schema
from certsynth.mechanisms import Budget, Measurement, Sensitivity, Unit
from certsynth.mechanisms.samplers import NoisyIntegers, calibrated_scale, simulate
from certsynth.projection import synthesis
from certsynth.projection.synthesis import _LayerShares, _make_views, synthesise
from certsynth.queries.tally import in_memory
from certsynth.sources import cleaned, open_source
from small import MIXED, NATIVE, NoNoise, native, people, planned, settled

DAY = datetime.date(1970, 1, 1).toordinal()

HOLEY = Schema(
    columns=(
        Ordered("wide", missing=True, kind="integer", low=-5_000, high=5_000),
        Ordered("pair", kind="integer", low=7, high=8),
        Ordered("share", missing=True, kind="number", low=-1.5, high=2.5),
        Ordered("grade", missing=True, kind="ordinal", low=0, high=2, values=("a", "b", "c")),
        Ordered("day", missing=True, kind="date", low=10_000, high=20_000),
        Category("town", missing=True, values=("x", "y"), other=True),
        Category("only", values=("one",)),
        Category("yes", missing=True, kind="boolean", values=("false", "true")),
    )
)


def holey(rows: int) -> pl.DataFrame:
    """A table of the `HOLEY` schema, with missing values and values that the schema does not list."""
    rng = np.random.default_rng(0)

    def some(values: Sequence[Any]) -> list[Any]:
        return [None if lost else value for value, lost in zip(values, rng.random(rows) < 0.2, strict=True)]

    days = [datetime.date.fromordinal(DAY + int(x)) for x in rng.integers(9_000, 21_000, rows)]
    return pl.DataFrame(
        {
            "wide": some(rng.integers(-6_000, 6_000, rows).tolist()),
            "pair": rng.integers(7, 9, rows),
            "share": some(rng.normal(0.5, 1, rows).tolist()),
            "grade": some(rng.choice(["a", "b", "c"], rows).tolist()),
            "day": some(days),
            "town": some(rng.choice(["x", "y", "z"], rows).tolist()),
            "only": ["one"] * rows,
            "yes": some((rng.random(rows) < 0.5).tolist()),
        }
    )


TABLES = {"mixed": (MIXED, people), "holey": (HOLEY, holey), "native": (NATIVE, native)}


class Seeded:
    """Noise of the right law that comes out the same in every run."""

    releasable = False

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        scale = calibrated_scale(sensitivity, budget)
        if budget.unit is Unit.RHO:
            noise = simulate(self.rng, budget.unit, scale, values.shape)
            return NoisyIntegers(values=values + noise, scale=scale, spent=budget)
        first, second = self.rng.geometric(-np.expm1(-1 / scale), size=(2, len(values)))
        return NoisyIntegers(values=values + first - second, scale=scale, spent=budget)


class Silent:
    """Adds nothing, and says so: no detail is too small to be believed."""

    releasable = False

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        return NoisyIntegers(values=values, scale=0.01, spent=budget)  # the least that ε = 100 allows


def clean(frame: pl.DataFrame, schema: Schema) -> list[np.ndarray]:
    blank = [column.clean(np.empty(0)) for column in schema]
    batches = [blank, *cleaned(open_source(frame, what="data"), schema)]
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def measured(rows: Sequence[np.ndarray], schema: Schema, *, noise: Any = None, **asked: Any) -> list[Measurement]:
    asked = {"projection": "particles", "mechanism": "identity"} | asked
    layers = planned(schema, settled(schema, **asked), len(rows[0]))
    return measure_layers(in_memory(rows), schema, layers, noise=noise)


def on_detail(columns: Sequence[np.ndarray], schema: Schema) -> list[np.ndarray]:
    """How many rows are at each point of the columns' finest lattices."""
    lattices = [column.detail() for column in schema]
    codes = [c.to_lattice(x, lattice)[0] for c, x, lattice in zip(schema, columns, lattices, strict=True)]
    return [np.bincount(code, minlength=lattice.size) for code, lattice in zip(codes, lattices, strict=True)]


def is_legal(column: Ordered | Category, value: Any) -> bool:
    """Whether the schema allows a written value, said once more and without the column's own code."""
    if value is None:
        return column.missing
    if isinstance(column, Category):
        return isinstance(value, bool) if column.kind == "boolean" else value in column.labels
    if column.kind == "ordinal":
        return value in column.values
    if column.kind == "date":
        value = value.toordinal() - DAY
    if column.kind != "number" and not isinstance(value, int):
        return False
    return bool(column.low <= value <= column.high)


def check_rows(made: Sequence[np.ndarray], schema: Schema, rows: int) -> None:
    """The right number of rows, legal values, all of them points of the finest lattices, or listed one by one."""
    for column, values in zip(schema, made, strict=True):
        assert values.shape == (rows,)
        assert all(is_legal(column, value) for value in column.decode(values).tolist())
        listed = column.values_below_points()
        points = column.on_lattice(column.detail()) if listed is None else column.centres(listed)
        assert np.isin(np.nan_to_num(values, nan=-1.0), np.nan_to_num(points, nan=-1.0)).all()


# ------------------------------------------------------------ legal rows


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("table", "sparsity"), [("mixed", 1), ("mixed", 2), ("mixed", 3), ("holey", 1), ("holey", 2), ("native", 3)]
)
def test_every_value_is_legal_and_on_the_finest_lattice(table: str, sparsity: int, neighbours: str) -> None:
    """With much noise and little, and any number of rows."""
    schema, make = TABLES[table]
    private, noise, rng = clean(make(60), schema), Seeded(1), np.random.default_rng(1)
    for epsilon, rows in (("100", 60), ("1", 1), ("0.3", 9), ("0.01", 90)):
        asked = {"epsilon": epsilon, "sparsity": sparsity, "neighbours": neighbours, "resolution": 4}
        check_rows(synthesise(measured(private, schema, noise=noise, **asked), schema, rows, rng), schema, rows)


MECHANISMS = ["haar", "haar-hilbert", "haar-weighted", "quad-tree", "haar-noisy-total"]


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.5"}], ids=str)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_values_are_legal_whatever_the_mechanism_and_the_law_of_the_noise(
    mechanism: str, budget: dict[str, Any], neighbours: str
) -> None:
    private, rng = clean(people(60), MIXED), np.random.default_rng(1)
    for sparsity in (1, 2):
        asked = {"mechanism": mechanism, "sparsity": sparsity, "neighbours": neighbours, "resolution": 4} | budget
        check_rows(synthesise(measured(private, MIXED, noise=Seeded(1), **asked), MIXED, 40, rng), MIXED, 40)


class Fixed:
    """Noisy counts that somebody made up."""

    releasable = False

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = np.array(counts)

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        assert len(values) == len(self.counts)
        return NoisyIntegers(values=self.counts, scale=calibrated_scale(sensitivity, budget), spent=budget)


def test_a_category_in_a_table_that_seems_empty_gets_legal_rows() -> None:
    """Single columns under add/remove: noise can make all counts negative."""
    schema = Schema(columns=(Category("sex", values=("f", "m")),))
    found = measured([np.array([0, 1])], schema, noise=Fixed([-9, -4]), neighbours="add-remove", epsilon="0.1")
    check_rows(synthesise(found, schema, 20, np.random.default_rng(1)), schema, 20)


def test_counts_that_sum_to_just_nothing_give_legal_rows() -> None:
    schema = Schema(columns=(Ordered("x", missing=True, low=0, high=3),))
    found = measured([np.arange(7.0) % 4], schema, noise=Fixed([5, -1, 11, 1, 11]), mechanism="identity", epsilon=1)
    check_rows(synthesise(found, schema, 20, np.random.default_rng(1)), schema, 20)


def test_a_value_that_is_not_legal_is_noticed() -> None:
    """Control for the test above."""
    private = clean(native(20), NATIVE)
    check_rows(private, NATIVE, 20)
    for column, value in ((0, 7.0), (0, 0.5), (0, np.nan), (2, 2)):
        forged = [x.copy() for x in private]
        forged[column][3] = value
        with pytest.raises((AssertionError, IndexError)):
            check_rows(forged, NATIVE, 20)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("private_rows", [0, 1])
def test_an_empty_table_gives_rows_all_the_same(private_rows: int, neighbours: str) -> None:
    private = clean(native(private_rows), NATIVE)
    for noise in (Seeded(2), NoNoise(), Silent()):
        found = measured(private, NATIVE, noise=noise, neighbours=neighbours, epsilon="0.1", resolution=3)
        check_rows(synthesise(found, NATIVE, 25, np.random.default_rng(2)), NATIVE, 25)


def test_the_same_generator_gives_the_same_rows() -> None:
    found = measured(clean(people(200), MIXED), MIXED, noise=Seeded(3), resolution=4)
    first, again, other = (synthesise(found, MIXED, 200, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, other, strict=True))


# ------------------------------------------------------------ single columns


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("sparsity", [1, 2, 3])
@pytest.mark.parametrize("table", TABLES)
def test_without_noise_single_columns_are_exact(table: str, sparsity: int, neighbours: str) -> None:
    schema, make = TABLES[table]
    private = clean(make(300), schema)
    resolution = None if sparsity == 1 else 4
    found = measured(private, schema, noise=Silent(), sparsity=sparsity, neighbours=neighbours, resolution=resolution)
    made = synthesise(found, schema, 300, np.random.default_rng(5))
    for want, got in zip(on_detail(private, schema), on_detail(made, schema), strict=True):
        assert np.array_equal(want, got)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_without_noise_single_columns_are_exact_whatever_the_mechanism(mechanism: str, neighbours: str) -> None:
    private = clean(people(300), MIXED)
    found = measured(private, MIXED, noise=Silent(), neighbours=neighbours, resolution=4, mechanism=mechanism)
    made = synthesise(found, MIXED, 300, np.random.default_rng(5))
    for want, got in zip(on_detail(private, MIXED), on_detail(made, MIXED), strict=True):
        assert np.array_equal(want, got)


def test_where_noise_was_to_be_expected_groups_are_exact_and_only_points_inside_them_are_not_believed() -> None:
    private = clean(people(300), MIXED)
    found = measured(private, MIXED, noise=NoNoise(), resolution=4)
    made = synthesise(found, MIXED, 300, np.random.default_rng(5))
    for column, grid, want, got in zip(MIXED, found[-1].marginals.cells, private, made, strict=True):
        assert np.array_equal(*(np.bincount(column.to_cells(x, grid), minlength=grid.size) for x in (want, got)))


@pytest.mark.parametrize("rows", [1, 7, 100, 301, 5_000])
def test_without_noise_single_columns_are_right_up_to_rounding_for_any_number_of_rows(rows: int) -> None:
    """Groups are rounded, and then what is inside each: off by less than one row twice."""
    private = clean(people(300), MIXED)
    made = synthesise(measured(private, MIXED, noise=Silent(), resolution=4), MIXED, rows, np.random.default_rng(6))
    for want, got in zip(on_detail(private, MIXED), on_detail(made, MIXED), strict=True):
        assert np.abs(got - want * rows / 300).max() < 2


def test_more_rows_than_particles_are_copies_that_differ_inside_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    private = clean(people(300), MIXED)
    found = measured(private, MIXED, noise=NoNoise(), resolution=3)
    monkeypatch.setattr(synthesis, "MAX_PARTICLES", 50)
    made = synthesise(found, MIXED, 1_013, np.random.default_rng(7))
    check_rows(made, MIXED, 1_013)
    cells = found[-1].marginals.cells
    codes = np.column_stack([c.to_cells(x, grid) for c, x, grid in zip(MIXED, made, cells, strict=True)])
    _, copies = np.unique(codes, axis=0, return_counts=True)
    assert len(copies) <= 50
    assert copies.min() >= 20
    assert len(np.unique(np.nan_to_num(np.column_stack(made), nan=-1.0), axis=0)) > 500
    for j, grid in enumerate(cells):
        want = np.bincount(MIXED.columns[j].to_cells(private[j], grid), minlength=grid.size) / 300
        assert np.abs(np.bincount(codes[:, j], minlength=grid.size) / 1_013 - want).max() < 1 / 50 + 50 / 1_013 / 20


def test_values_inside_a_group_follow_the_column_and_not_its_width() -> None:
    """Everybody is at a point of a wide group: so are the rows."""
    schema = Schema(columns=(Ordered("x", low=0, high=99), Ordered("y", low=0, high=99)))
    rng = np.random.default_rng(8)
    private = [rng.choice([0.0, 13.0, 14.0, 77.0], 500), rng.choice([5.0, 6.0], 500)]
    found = measured(private, schema, noise=Silent(), resolution=2)
    assert [grid.size for grid in found[-1].marginals.cells] == [2, 2]
    made = synthesise(found, schema, 500, rng)
    assert set(made[0]) == {0.0, 13.0, 14.0, 77.0}
    assert set(made[1]) == {5.0, 6.0}


# ------------------------------------------------------------ what is fitted


@pytest.mark.parametrize("sparsity", [2, 3])
@pytest.mark.parametrize("table", TABLES)
def test_the_private_rows_would_fit_every_view_perfectly_if_there_were_no_noise(table: str, sparsity: int) -> None:
    """Views of all layers and scales, counted row by row: codes of one layer in the cells of another are right."""
    schema, make = TABLES[table]
    private, rng = clean(make(80), schema), np.random.default_rng(9)
    found = measured(private, schema, noise=NoNoise(), sparsity=sparsity, resolution=5, epsilon=20)
    layers = _LayerShares.all(found, rng)
    base = found[1].marginals.cells
    codes = np.column_stack([c.to_cells(x, grid) for c, x, grid in zip(schema, private, base, strict=True)])
    masses = [np.bincount(code, minlength=grid.size) / 80 for code, grid in zip(codes.T, base, strict=True)]
    views = _make_views(layers[1:], base, masses)
    subsets = [s for k in range(2, sparsity + 1) for s in itertools.combinations(range(len(schema)), k)]
    assert {view.columns for view in views} == set(subsets)
    assert len(views) > len(subsets)
    for view in views:
        counts = np.zeros([len(set(c.tolist())) for c in view.codes])
        for row in codes:
            counts[tuple(c[row[j]] for j, c in zip(view.columns, view.codes, strict=True))] += 1
        assert view.target == pytest.approx(counts.ravel() / 80, abs=1e-12)
        assert view.noise >= 0


EQUAL = Schema(columns=tuple(Ordered(name, low=0, high=9) for name in "abc"))


def apart(columns: Sequence[np.ndarray]) -> float:
    """How far the first two columns are apart: W1 to rows where they are equal is at least half of it."""
    return float(np.abs(columns[0] - columns[1]).mean()) / 9


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("sparsity", [2, 3])
def test_columns_that_are_equal_come_out_nearly_equal(sparsity: int, neighbours: str, monkeypatch) -> None:
    """With noise; without the fit, they come out independent."""
    rng = np.random.default_rng(10)
    same = rng.integers(10, size=20_000).astype(float)
    private = [same, same, rng.integers(10, size=20_000).astype(float)]
    found = measured(
        private, EQUAL, noise=Seeded(10), epsilon=5, sparsity=sparsity, neighbours=neighbours, resolution=10
    )
    fitted = synthesise(found, EQUAL, 3_000, rng)
    for step in ("fit", "mend"):
        monkeypatch.setattr(synthesis, step, lambda start, *args, **options: start)
    loose = synthesise(found, EQUAL, 3_000, rng)
    assert apart(private) == 0
    assert apart(fitted) < 0.06
    assert apart(loose) > 0.3
    assert abs(np.corrcoef(fitted[0], fitted[2])[0, 1]) < 0.1


def parity(columns: Sequence[np.ndarray]) -> float:
    """How many rows have an even sum: half of them if the columns are independent."""
    return float((np.sum(columns, axis=0) % 2 == 0).mean())


BITS = Schema(columns=tuple(Ordered(name, low=0, high=1) for name in "abc"))


def even_rows(rows: int, rng: np.random.Generator, *, ones: float = 0.5) -> list[np.ndarray]:
    """Any two columns are independent if `ones` is a half; all three are not."""
    first, second = (rng.random((2, rows)) < ones).astype(float)
    return [first, second, (first + second) % 2]


def test_what_no_pair_shows_is_found_by_triples_and_not_by_pairs() -> None:
    rng = np.random.default_rng(11)
    private = even_rows(5_000, rng)
    pairs, triples = (measured(private, BITS, noise=Seeded(11), sparsity=s, epsilon=5, resolution=2) for s in (2, 3))
    assert parity(synthesise(triples, BITS, 2_000, rng)) > 0.95
    assert parity(synthesise(pairs, BITS, 2_000, rng)) < 0.7


# ------------------------------------------------------------ public rows


def test_how_often_a_value_occurs_comes_from_the_measurement_and_not_from_public_rows() -> None:
    """Public rows with the right dependence at the wrong places."""
    rng = np.random.default_rng(12)
    same = rng.integers(5, 10, size=2_000).astype(float)
    private = [same, same, same]
    low = rng.integers(5, size=700).astype(float)
    found = measured(private, EQUAL, noise=Silent(), public=True, resolution=10)
    made = synthesise(found, EQUAL, 2_000, rng, public=[low, low, low])
    for want, got in zip(on_detail(private, EQUAL), on_detail(made, EQUAL), strict=True):
        assert np.array_equal(want, got)
    assert apart(made) < 0.01


def test_pairs_come_from_the_measurement_where_public_rows_say_something_else() -> None:
    rng = np.random.default_rng(13)
    same = rng.integers(10, size=5_000).astype(float)
    private, public = [same, same, same], [same, 9 - same, rng.permutation(same)]
    found = measured(private, EQUAL, noise=Seeded(13), epsilon=20, public=True, resolution=10)
    assert apart(synthesise(found, EQUAL, 3_000, rng, public=public)) < 0.06
    assert apart(public) > 0.5


@pytest.mark.parametrize("rows", [1, 9, 500])
def test_any_number_of_public_rows_will_do(rows: int) -> None:
    private, rng = clean(people(200), MIXED), np.random.default_rng(14)
    found = measured(private, MIXED, noise=Seeded(14), public=True, resolution=4)
    check_rows(synthesise(found, MIXED, 60, rng, public=clean(people(rows, seed=1), MIXED)), MIXED, 60)


def test_what_no_pair_shows_survives_from_public_rows() -> None:
    """Of three columns, any two of which are nearly independent, in public rows with other shares of ones."""
    rng = np.random.default_rng(15)
    private, public = even_rows(5_000, rng), even_rows(1_000, rng, ones=0.45)
    found = measured(private, BITS, noise=Seeded(15), epsilon=5, public=True, resolution=2)
    assert parity(synthesise(found, BITS, 2_000, rng)) < 0.7
    assert parity(synthesise(found, BITS, 2_000, rng, public=public)) > 0.85


# ------------------------------------------------------------ where the plug-in certificate speaks alone


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("sparsity", [2, 3])
def test_without_a_direct_certificate_rows_are_at_the_centres_of_even_cells(sparsity: int, neighbours: str) -> None:
    private = clean(people(300), MIXED)
    asked = {"certificate_share": 0, "resolution": 4, "sparsity": sparsity, "neighbours": neighbours}
    found = measured(private, MIXED, noise=Seeded(16), **asked)
    assert [len(m.marginals.subsets[0]) for m in found] == [sparsity]
    made = synthesise(found, MIXED, 250, np.random.default_rng(16))
    for column, values, grid in zip(MIXED, made, found[0].marginals.cells, strict=True):
        assert np.array_equal(grid.places, column.cells(4).places)
        centres = column.centres(column.cells(4))
        assert len(values) == 250
        assert np.isin(np.nan_to_num(values, nan=-1.0), np.nan_to_num(centres, nan=-1.0)).all()
        assert all(is_legal(column, value) for value in column.decode(values).tolist())


def test_even_cells_without_noise_hold_what_they_should() -> None:
    private = clean(people(300), MIXED)
    found = measured(private, MIXED, noise=NoNoise(), certificate_share=0, resolution=4, mechanism="identity")
    made = synthesise(found, MIXED, 300, np.random.default_rng(17))
    for column, grid, want, got in zip(MIXED, found[0].marginals.cells, private, made, strict=True):
        assert np.array_equal(*(np.bincount(column.to_cells(x, grid), minlength=grid.size) for x in (want, got)))
