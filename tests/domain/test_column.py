"""Columns as metric spaces: cells, lattices, distances, and the way from rows to codes and back."""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth.domain import Category, Cells, Column, Ordered
from certsynth.domain.column import discretisation

REACHES = (0, 1, 2, 3, 4, 5, 7, 16, 31, 64, 82, 99, 127, 128, 129, 1_000, 2**40)
RESOLUTIONS = range(1, 131)


def integers(reach: int, *, missing: bool = False) -> Ordered:
    return Ordered(name="x", missing=missing, kind="integer", low=-5, high=reach - 5)


def offsets(reach: int) -> np.ndarray:
    """All offsets, or both ends and a spread of them where there are too many."""
    if reach <= 1_000:
        return np.arange(reach + 1, dtype=float)
    return np.unique(np.linspace(0, reach, 1_000).astype(np.int64)).astype(float)


@pytest.mark.parametrize("reach", REACHES)
def test_centres_lie_in_their_own_cell(reach: int) -> None:
    column = integers(reach, missing=True)
    for k in RESOLUTIONS:
        cells = column.cells(k)
        centres = column.centres(cells)
        np.testing.assert_array_equal(column.to_cells(centres, cells), np.arange(cells.size))
        assert np.nanmin(centres) >= 0
        assert np.nanmax(centres) <= reach


@pytest.mark.parametrize("reach", REACHES)
def test_every_value_is_within_half_a_cell_of_its_centre(reach: int) -> None:
    column = integers(reach)
    values = offsets(reach)
    for k in RESOLUTIONS:
        cells = column.cells(k)
        places = cells.places[column.to_cells(values, cells)]
        bound = discretisation(column, k)
        assert bound == Fraction(1, 2 * k)
        # |offset / reach − (place + 1/2) / k| ≤ 1/2k, over the common denominator 2k · reach
        gap = np.abs(2 * k * values.astype(object) - (2 * places.astype(object) + 1) * max(reach, 1))
        assert max(gap) <= max(reach, 1) * 2 * k * bound


@pytest.mark.parametrize("reach", [r for r in REACHES if r <= 1_000])
def test_every_cell_can_hold_a_value(reach: int) -> None:
    column = integers(reach)
    for k in RESOLUTIONS:
        cells = column.cells(k)
        assert set(column.to_cells(offsets(reach), cells)) == set(range(cells.size))


@pytest.mark.parametrize("reach", REACHES)
def test_the_centre_is_the_nearest_value_of_its_cell(reach: int) -> None:
    column = integers(reach)
    values = offsets(min(reach, 129))
    for k in (1, 2, 3, 10, 64, 130):
        cells = column.cells(k)
        codes = column.to_cells(values, cells)
        chosen = column.centres(cells)[codes]
        middle = (cells.places[codes] + 0.5) / k * max(reach, 1)
        assert (np.abs(chosen - middle) <= np.abs(values - middle) + 1e-9).all()


def test_distance_from_the_centre_agrees_with_the_definition() -> None:
    for column in (
        integers(7, missing=True),
        Ordered(name="x", missing=True, kind="number", low=0.0, high=1.0),
    ):
        cells = column.cells(4)
        clean = np.array([0.0, 1.0, np.nan])
        at = np.array([0.0, 1.0]) / column.reach
        centre = (cells.places[column.to_cells(clean[:2], cells)] + 0.5) / 4
        np.testing.assert_allclose(column.from_centre(clean, cells), [*np.abs(at - centre), 0.0])


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("reach", REACHES)
def test_lattice_points_are_nearest_and_all_in_use(reach: int, native: bool) -> None:
    column = integers(reach)
    values = offsets(reach)
    for steps in (1, 2, 3, 16, 100, 128, 130):
        lattice = column.lattice(steps, native=native)
        codes, away = column.to_lattice(values, lattice)
        exact = [
            abs(Fraction(int(v), max(reach, 1)) - Fraction(int(p), lattice.steps))
            for v, p in zip(values, lattice.places[codes], strict=True)
        ]
        assert max(exact) <= Fraction(1, 2 * lattice.steps)
        np.testing.assert_allclose(away, np.array(exact, float), atol=1e-15)
        if reach <= 1_000:
            assert set(codes) == set(range(lattice.size))


@pytest.mark.parametrize("reach", [1, 2, 7, 64, 128])
def test_the_native_lattice_holds_every_value_exactly(reach: int) -> None:
    column = integers(reach)
    _, away = column.to_lattice(offsets(reach), column.lattice(128))
    assert (away == 0).all()


def test_columns_share_the_step_of_a_lattice_that_is_not_native() -> None:
    columns = [integers(r) for r in (0, 1, 7, 300)] + [Category(name="c", values=("a", "b"))]
    assert {column.lattice(64, native=False).steps for column in columns} == {64}


CELLS = [
    Cells(places=np.array([0]), steps=1, apart=0),
    Cells(places=np.array([0, 3]), steps=4, apart=1),
    Cells(places=np.array([0, 1, 2, 5]), steps=5, apart=2),
    Cells(places=np.empty(0), steps=1, apart=3),
    integers(7, missing=True).cells(4),
    integers(2, missing=True).lattice(5, native=False),
]


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: f"{cells.places.tolist()}+{cells.apart}")
def test_distance_is_a_metric_of_diameter_at_most_one(cells: Cells) -> None:
    every = np.arange(cells.size)
    d = cells.distance(every[:, None], every[None, :])
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(d == 0, np.eye(cells.size, dtype=bool))
    assert (d[:, :, None] <= d[:, None, :] + d.T[None, :, :] + 1e-12).all()
    assert d.max() == float(cells.diameter)
    assert cells.diameter <= 1


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: f"{cells.places.tolist()}+{cells.apart}")
def test_distance_is_what_it_is_defined_to_be(cells: Cells) -> None:
    line = len(cells.places)
    for a, b in product(range(cells.size), repeat=2):
        if a < line and b < line:
            expected = abs(Fraction(int(cells.places[a] - cells.places[b]), cells.steps))
        else:
            expected = Fraction(a != b)
        assert cells.distance(np.array(a), np.array(b)) == float(expected)


def test_places_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        integers(5).cells(3).places[0] = 1


def test_refuses_a_column_without_cells() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        Cells(places=np.empty(0), steps=1, apart=0)


DAY = datetime.date(2020, 2, 28).toordinal() - datetime.date(1970, 1, 1).toordinal()
EXAMPLES: list[tuple[Column, list[object], list[object]]] = [
    (integers(7, missing=True), ["-9", -5, 1.4, "2", None, 99], [-5, -5, 1, 2, None, 2]),
    (
        Ordered(name="x", missing=True, kind="number", low=-1.0, high=3.0),
        ["-1.5", 0.5, "3", "x", np.inf],
        [-1.0, 0.5, 3.0, None, 3.0],
    ),
    (
        Ordered(name="x", missing=True, kind="date", low=DAY, high=DAY + 2),
        ["2020-02-29", "1999-01-01", datetime.date(2020, 12, 1), ""],
        [datetime.date(2020, 2, 29), datetime.date(2020, 2, 28), datetime.date(2020, 3, 1), None],
    ),
    (
        Ordered(name="x", missing=True, kind="ordinal", low=0, high=2, values=("low", "mid", "high")),
        ["mid", "high", "?", "low"],
        ["mid", "high", None, "low"],
    ),
    (
        Category(name="x", missing=True, values=("NA", "00123"), other=True),
        ["NA", "00123", "123", None, "", "other"],
        ["NA", "00123", "other", None, None, "other"],
    ),
    (Category(name="x", missing=True, values=("a", "b")), ["b", "c", ""], ["b", None, None]),
    (Category(name="x", values=("a", "b"), other=True), ["b", "c", ""], ["b", "other", "other"]),
    (Category(name="x", values=("a", "b")), ["b", "c", ""], ["b", "a", "a"]),
    (Category(name="x", values=("a", "")), ["", None], ["", "a"]),
    (
        Category(name="x", missing=True, kind="boolean", values=("false", "true")),
        [True, "no", "?", 1],
        [True, False, None, True],
    ),
]


@pytest.mark.parametrize(("column", "raw", "written"), EXAMPLES, ids=lambda x: str(getattr(x, "kind", "")))
def test_rows_are_read_and_written(column: Column, raw: list[object], written: list[object]) -> None:
    clean = column.clean(np.fromiter(raw, object, len(raw)))
    decoded = column.decode(clean)
    assert decoded.tolist() == written
    np.testing.assert_array_equal(column.clean(decoded), clean)  # what is written reads back as itself


@pytest.mark.parametrize(("column", "dtype"), [(c, d) for (c, *_), d in zip(EXAMPLES[:4], "ifMO", strict=True)])
def test_written_values_keep_their_type(column: Column, dtype: str) -> None:
    assert column.decode(column.centres(column.cells(3))).dtype.kind == dtype


@pytest.mark.parametrize("column", [example[0] for example in EXAMPLES], ids=str)
@pytest.mark.parametrize("resolution", [1, 2, 3, 7, 64])
def test_centres_come_back_from_a_written_table(column: Column, resolution: int) -> None:
    cells = column.cells(resolution)
    again = column.clean(column.decode(column.centres(cells)))
    np.testing.assert_array_equal(column.to_cells(again, cells), np.arange(cells.size))


@given(
    st.floats(-1e300, 1e300),
    st.floats(-1e300, 1e300),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=5),
)
def test_written_numbers_stay_within_the_bounds(low: float, high: float, values: list[float]) -> None:
    low, high = min(low, high), max(low, high)
    if not low < high:
        high = low + max(1.0, abs(low))
    column = Ordered(name="x", kind="number", low=low, high=high)
    written = column.decode(column.clean(np.array([*values, low, high])))
    assert written.min() >= low
    assert written.max() <= high


def test_a_bound_that_does_not_add_up_in_floats_is_not_passed() -> None:
    column = Ordered(name="x", kind="number", low=-1e16, high=1.5)  # high − low rounds up to 1e16 + 2
    assert column.decode(np.array([1.0])).max() == 1.5


LOUD = ["99999", "2999-01-01", "a label that nobody has heard of", "1e30"]


@pytest.mark.parametrize("column", [example[0] for example in EXAMPLES], ids=str)
@pytest.mark.parametrize("loud", LOUD)
def test_the_domain_never_comes_from_data(column: Column, loud: str) -> None:
    """P6: a new extreme or label in one row changes neither the cells nor the codes of the others."""
    raw = np.array(["1", "2020-02-29", "b", "mid", "", "true"], dtype=object)
    with_loud = np.append(raw, np.array([loud], dtype=object))
    quiet = (column.cells(16), column.lattice(16), column.clean(raw))
    noisy = (column.cells(16), column.lattice(16), column.clean(with_loud))
    for before, after in zip(quiet[:2], noisy[:2], strict=True):
        np.testing.assert_array_equal(before.places, after.places)
        assert (before.steps, before.apart) == (after.steps, after.apart)
    np.testing.assert_array_equal(noisy[2][:-1], quiet[2])
    np.testing.assert_array_equal(column.to_cells(noisy[2], noisy[0])[:-1], column.to_cells(quiet[2], quiet[0]))
