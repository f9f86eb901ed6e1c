"""Columns of every kind and weight: distances by their definition, and every value near its point and its cell."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from certsynth.domain import Category, Column, Groups, Ordered
from certsynth.domain.column import discretisation

WEIGHTS = (Fraction(1), Fraction(333, 1_000), Fraction(1, 1_000))
RESOLUTIONS = (1, 2, 7, 64)
LITTLE = Fraction(1, 10**12)

PATHS = (("1",), ("1", "11"), ("1", "11", "111"), ("1", "12"), ("2", "21", "211"), ("2", "22"))
MATRIX = ((0, 1, 4, 5), (1, 0, 3, 5), (4, 3, 0, 4), (5, 5, 4, 0))


def tree(paths: tuple[tuple[str, ...], ...] = PATHS, **rest: Any) -> Category:
    last = tuple(path[-1] for path in paths)
    values = last if len(set(last)) == len(last) else tuple("/".join(path) for path in paths)
    return Category(name="x", kind="tree", values=values, paths=paths, **rest)


def metric(**rest: Any) -> Category:
    distances = tuple(tuple(map(Fraction, row)) for row in MATRIX)
    return Category(name="x", kind="metric", values=("a", "", "1", "x y"), distances=distances, **rest)


def columns_of(weight: Fraction) -> list[Column]:
    found: list[Column] = []
    for missing in (False, True):
        rest: dict[str, Any] = {"missing": missing, "weight": weight}
        found += [Ordered(name="x", kind="integer", low=-5, high=-5 + reach, **rest) for reach in (1, 7, 100, 2_000)]
        found += [
            Ordered(name="x", kind="integer", low=0, high=2**40, **rest),
            Ordered(name="x", kind="number", low=-0.5, high=2.5, **rest),
            Ordered(name="x", kind="date", low=18_000, high=18_500, **rest),
            Ordered(name="x", kind="datetime", low=-900, high=90_000, **rest),
            Ordered(name="x", kind="ordinal", low=0, high=2, values=("x", "1", ""), **rest),
            Ordered(name="x", kind="ordinal", low=0, high=0, values=("only",), **rest),
            Category(name="x", kind="boolean", values=("false", "true"), **rest),
        ]
        for other in (False, True):
            found += [
                Category(name="x", values=("a", "1"), other=other, **rest),
                tree(other=other, **rest),
                tree((("1",),), other=other, **rest),
                tree((("1", "0"), ("2", "0"), ("2",)), other=other, **rest),
                metric(other=other, **rest),
            ]
    return found


COLUMNS = [column for weight in WEIGHTS for column in columns_of(weight)]


def described(column: Column) -> str:
    size = getattr(column, "reach", None) or len(getattr(column, "labels", ()))
    holes = " or missing" * column.missing + " or other" * getattr(column, "other", False)
    return f"{column.weight} × {getattr(column, 'kind', '')} {size}{holes}"


every_column = pytest.mark.parametrize("column", COLUMNS, ids=described)


def own_values(column: Column) -> np.ndarray:
    """All cleaned values, or a spread of them, with the hardest: next to the borders of cells."""
    if isinstance(column, Category):
        return np.arange(len(column.labels) + column.missing)
    assert isinstance(column, Ordered)
    if column.whole and column.reach <= 100:
        values = np.arange(column.reach + 1, dtype=float)
    else:
        borders = np.array([float(i / (2 * r * column.weight)) for r in (1, 7) for i in range(2 * r + 1)])
        shares = np.concatenate([borders, np.nextafter(borders, 0), np.nextafter(borders, 1), np.linspace(0, 1, 23)])
        values = np.minimum(shares, 1.0) * column.reach
        values = values.round() if column.whole else values
    return np.append(values, np.nan) if column.missing else values


def true_distance(column: Column, a: float, b: float) -> Fraction:
    """How far two cleaned values are apart, as the schema's page defines it; NaN is missing."""
    if a == b or (np.isnan(a) and np.isnan(b)):
        return Fraction(0)
    if isinstance(column, Ordered):
        if np.isnan(a) or np.isnan(b):
            return column.weight
        return column.weight * abs(Fraction(float(a)) - Fraction(float(b))) / max(column.reach, 1)
    assert isinstance(column, Category)
    a, b = int(a), int(b)
    if max(a, b) >= len(column.values):
        return column.weight
    if column.kind == "metric":
        largest = max(distance for row in column.distances for distance in row)
        return column.weight * column.distances[a][b] / largest
    if column.kind == "tree":
        longest = max(_edges(p, q) for p, q in itertools.product(column.paths, repeat=2))
        return column.weight * Fraction(_edges(column.paths[a], column.paths[b]), longest)
    return column.weight


def _edges(p: tuple[str, ...], q: tuple[str, ...]) -> int:
    shared = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(p, q, strict=False))))
    return len(p) + len(q) - 2 * shared


def merged(column: Column) -> list[Groups]:
    """Points taken together: runs of a line, or labels with a neighbour, the rest alone."""
    found = []
    for lattice in (column.detail(), column.lattice(16), column.lattice(16, native=False)):
        line = len(lattice.places)
        if line:
            found += [Groups.of(lattice, np.arange(0, line, step)) for step in (1, 3, line)]
            continue
        labels = lattice.label_metric.size if lattice.label_metric is not None else len(getattr(column, "labels", ()))
        for size in (1, 2, labels):
            representatives = np.append(np.arange(0, labels, size), np.arange(labels, lattice.off_line))
            group_of_label = np.append(
                np.arange(labels) // size, representatives.searchsorted(np.arange(labels, lattice.off_line))
            )
            found.append(Groups.of(lattice, None, group_of_label, representatives))
    return found


@pytest.mark.parametrize("column", [c for c in COLUMNS if not c.covering_radius(c.lattice(128))], ids=described)
def test_lattice_points_that_are_values_are_as_far_apart_as_these(column: Column) -> None:
    """The definition of a column's metric against the distances of its native lattice, and those of the oracle."""
    lattice = column.lattice(128)
    values = column.on_lattice(lattice)
    chosen = np.unique(np.append(np.linspace(0, lattice.size - 1, 12).astype(int), lattice.size - 1))
    for a, b in itertools.product(chosen.tolist(), repeat=2):
        exact = true_distance(column, values[a], values[b])
        assert oracles.column_distance(lattice, a, b) == exact
        assert float(lattice.distance(np.array(a), np.array(b))) == pytest.approx(float(exact), abs=1e-15)
        assert (exact * lattice.denominator).denominator == 1


@every_column
def test_cells_are_a_metric_space_of_at_most_diameter_one(column: Column) -> None:
    for cells in (*map(column.cells, RESOLUTIONS), *merged(column), column.lattice(5, native=False)):
        if cells.size > 20:
            continue
        every = np.arange(cells.size)
        d = cells.distance(every[:, None], every[None, :])
        exact = oracles.metric([cells])
        np.testing.assert_allclose(d, exact.astype(float), atol=1e-15)
        np.testing.assert_array_equal(d == 0, np.eye(cells.size, dtype=bool))
        np.testing.assert_array_equal(exact, exact.T)
        assert (exact[:, :, None] <= exact[:, None, :] + exact.T[None, :, :]).all()
        assert cells.diameter == exact.max() <= 1
        assert all((distance * cells.denominator).denominator == 1 for distance in exact.ravel())


def away_from(column: Column, value: float, place: Fraction) -> Fraction:
    """How far a value is from a place on the line, exactly; a missing one is its own centre."""
    assert isinstance(column, Ordered)
    if np.isnan(value):
        return Fraction(0)
    return abs(column.weight * Fraction(float(value)) / max(column.reach, 1) - place)


@every_column
def test_every_value_is_near_its_lattice_point(column: Column) -> None:
    values = own_values(column)
    for lattice in (column.detail(), *(column.lattice(s, native=n) for s in RESOLUTIONS for n in (True, False))):
        codes, away = column.to_lattice(values, lattice)
        farthest = column.covering_radius(lattice)
        for value, code, found in zip(values, codes.tolist(), away.tolist(), strict=True):
            if isinstance(column, Category):
                assert (code, found, farthest) == (value, 0, 0)
                continue
            exact = away_from(column, value, Fraction(int(lattice.places[code % len(lattice.places)]), lattice.steps))
            assert exact <= farthest + LITTLE
            assert found == pytest.approx(float(exact), abs=1e-12)


@every_column
def test_values_on_the_lattice_come_back_to_their_point(column: Column) -> None:
    for lattice in (column.detail(), *(column.lattice(s, native=n) for s in RESOLUTIONS for n in (True, False))):
        values = column.on_lattice(lattice)
        assert column.to_lattice(values, lattice)[0].tolist() == list(range(lattice.size))
        if isinstance(column, Ordered):
            present = values[~np.isnan(values)]
            assert ((present >= 0) & (present <= column.reach)).all()
            assert not column.whole or (present == present.round()).all()


@every_column
def test_every_value_is_near_the_centre_of_its_cell(column: Column) -> None:
    values = own_values(column)
    for cells in (*map(column.cells, RESOLUTIONS), *merged(column)):
        codes, away = column.to_cells(values, cells), column.distance_to_centre(values, cells)
        bound = discretisation(column, cells)
        assert codes.min() >= 0
        assert codes.max() < cells.size
        assert away.max(initial=0) <= bound + LITTLE
        half = Fraction(0 if isinstance(cells, Groups) else 1, 2)
        for value, code, found in zip(values, codes.tolist(), away.tolist(), strict=True):
            if isinstance(column, Category):
                head = cells.representatives[code] if isinstance(cells, Groups) else code
                exact = true_distance(column, value, head)
            else:
                exact = away_from(column, value, (int(cells.places[code % len(cells.places)]) + half) / cells.steps)
            assert exact <= bound + LITTLE
            assert found == pytest.approx(float(exact), abs=1e-12)


@every_column
def test_cells_of_labels_are_as_wide_as_those_of_a_line(column: Column) -> None:
    """Of resolution k: no value is further than 1/2k from the centre of its cell."""
    for k in RESOLUTIONS:
        assert discretisation(column, column.cells(k)) <= Fraction(1, 2 * k)


@every_column
def test_centres_are_in_their_own_cell_before_and_after_they_are_written(column: Column) -> None:
    for cells in (*map(column.cells, RESOLUTIONS), *merged(column)):
        centres = column.centres(cells)
        assert column.to_cells(centres, cells).tolist() == list(range(cells.size))
        again = column.clean(column.decode(centres))
        assert column.to_cells(again, cells).tolist() == list(range(cells.size))


@every_column
def test_no_cell_is_empty(column: Column) -> None:
    values = own_values(column)
    if isinstance(column, Ordered):
        spread = np.linspace(0, column.reach, 2_001)
        values = np.append(values, spread.round() if column.whole else spread)
    for k in RESOLUTIONS:
        cells, lattice = column.cells(k), column.lattice(k, native=False)
        assert set(column.to_cells(values, cells).tolist()) == set(range(cells.size))
        assert set(column.to_lattice(values, lattice)[0].tolist()) == set(range(lattice.size))


@every_column
def test_own_values_come_back_from_a_written_table(column: Column) -> None:
    values = own_values(column)
    again = column.clean(column.decode(values))
    if isinstance(column, Ordered) and not column.whole:
        np.testing.assert_allclose(again, values, atol=1e-15)
    else:
        np.testing.assert_array_equal(again, values)


ODD: list[Any] = [
    *(None, float("nan"), float("inf"), -float("inf"), 1e30, -1e308, 5e-324, "", " ", "unseen", "\x00", "\udcff"),
    *(True, 10**400, b"1", [1], {"a": 1}, 1j, object(), "other", "1/11", "/", "1/", "//", datetime.date.max),
    *(np.datetime64("NaT"), 111, 111.0, 1.5, "111", " 111"),
]
anything = st.one_of(st.sampled_from(ODD), st.text(max_size=5), st.integers(), st.floats(), st.dates())


def assert_each_counts_once(column: Column, values: list[Any]) -> None:
    """P7, whatever rows hold; P6: what a row holds changes no other."""
    raw = np.fromiter(values, object, len(values))
    clean = column.clean(raw)
    for cells in (column.cells(1), column.cells(7), *merged(column)[:2]):
        codes = column.to_cells(clean, cells)
        assert codes.shape == (len(values),)
        assert len(np.bincount(codes, minlength=cells.size)) == cells.size
    for lattice in (column.detail(), column.lattice(7), column.lattice(7, native=False)):
        points, away = column.to_lattice(clean, lattice)
        assert len(np.bincount(points, minlength=lattice.size)) == lattice.size
        assert ((away >= 0) & (away <= float(column.covering_radius(lattice)) + 1e-12)).all()
    alone = np.concatenate([column.clean(raw[i : i + 1]) for i in range(len(raw))]) if values else clean
    np.testing.assert_array_equal(alone, clean)


@every_column
def test_each_odd_value_counts_once(column: Column) -> None:
    assert_each_counts_once(column, ODD)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(COLUMNS), st.lists(anything, max_size=8))
def test_whatever_rows_hold_each_counts_once(column: Column, values: list[Any]) -> None:
    assert_each_counts_once(column, values)


# ------------------------------------------------------------ how codes are read


@pytest.mark.parametrize(
    ("value", "label"),
    [
        *((111, "111"), (111.0, "111"), ("111", "111"), ("1/11/111", "111"), (np.int16(12), "12"), (1, "1")),
        *((" 111", "other"), ("11/111", "other"), ("2", "other"), (True, "other"), (111.5, "other"), ("2/21", "other")),
        *(("", None), (None, None), (float("nan"), None), ("other", "other")),
    ],
)
def test_codes_of_a_tree_are_read_as_numbers_texts_and_paths(value: object, label: str | None) -> None:
    column = tree(missing=True, other=True)
    assert column.decode(column.clean(np.fromiter([value], object, 1))).tolist() == [label]


def test_codes_that_repeat_are_read_by_their_paths_only() -> None:
    column = tree((("1", "0"), ("2", "0"), ("2",)), other=True)
    raw = np.array(["1/0", "2/0", "2", "0", "1"], dtype=object)
    assert column.decode(column.clean(raw)).tolist() == ["1/0", "2/0", "2", "other", "other"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float64, object, str])
def test_codes_are_read_alike_from_every_type_of_array(dtype: Any) -> None:
    column = tree(other=True)
    assert column.decode(column.clean(np.array([111, 12, 99, 1], dtype=dtype))).tolist() == ["111", "12", "other", "1"]


def test_the_nearest_labels() -> None:
    assert metric(weight=Fraction(1, 2)).min_label_distance == Fraction(1, 10)
    assert tree().min_label_distance == Fraction(1, 6)
    assert tree((("1",),), weight=Fraction(1, 4)).min_label_distance == Fraction(1, 4)
    assert Category(name="x", values=("a", "b"), weight=Fraction(1, 4)).min_label_distance == Fraction(1, 4)
