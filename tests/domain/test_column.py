"""Columns as metric spaces: cells, lattices, distances, and the way from rows to codes and back."""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth.domain import Category, Cells, Column, Groups, Ordered
from certsynth.domain.column import ROUNDING_PARTS, discretisation

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
        bound = discretisation(column, cells)
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


STEPPED = [
    Ordered(name="x", kind="integer", low=-500, high=700, step=Fraction(100), missing=True),
    Ordered(name="x", kind="integer", low=0, high=3 * 2_000, step=Fraction(3), weight=Fraction(1, 3)),
    Ordered(name="x", kind="number", low=0.0, high=0.97, step=Fraction(1, 100), weight=Fraction(2, 7)),
    Ordered(name="x", kind="number", low=-0.1, high=19.9, step=Fraction(1, 100), missing=True),
    Ordered(name="x", kind="number", low=1e9, high=1e9 + 10, step=Fraction(1, 1000)),
]


@pytest.mark.parametrize("column", STEPPED, ids=lambda c: f"{c.kind} {c.low} to {c.high}")
def test_values_between_steps_are_cleaned_to_the_nearest_step(column: Ordered) -> None:
    last, low, step = column.last_index, Fraction(repr(column.low)), column.step
    assert last is not None
    assert step is not None
    exist = [low + i * step for i in range(last + 1)]
    values = [float(x + step * shift) for x in exist for shift in (Fraction(-49, 100), Fraction(0), Fraction(49, 100))]
    clean = column.clean(np.array(values))
    many = column.clean(np.array(values * (1 + 8_192 // len(values))))  # by the compiled loop
    np.testing.assert_array_equal(clean, many[: len(values)])
    np.testing.assert_array_equal(column.index(clean), np.repeat(np.arange(last + 1), 3))
    written = column.decode(clean)
    assert written.data.tolist() == [float(x) for x in exist for _ in range(3)]
    np.testing.assert_array_equal(column.clean(written), clean)


@pytest.mark.parametrize("column", STEPPED, ids=lambda c: f"{c.kind} {c.low} to {c.high}")
def test_cells_and_lattices_of_steps_hold_values_that_exist(column: Ordered) -> None:
    last = column.last_index
    assert last is not None
    values = column.at_index(np.arange(last + 1))
    for k in (1, 2, 3, 10, 64, 130, 1_000):
        cells = column.cells(k)
        codes = column.to_cells(values, cells)
        assert set(codes) == set(range(len(cells.places)))
        assert (np.diff(codes) >= 0).all()
        np.testing.assert_array_equal(column.to_cells(column.centres(cells), cells), np.arange(cells.size))
        assert set(column.centres(cells)[: len(cells.places)]) <= set(values)
        for native in (True, False):
            lattice = column.lattice(k, native=native)
            assert set(column.on_lattice(lattice)[: len(lattice.places)]) <= set(values)
            points, away = column.to_lattice(values, lattice)
            assert (np.diff(points) >= 0).all()
            exact = np.arange(last + 1) / last * float(column.weight) - lattice.places[points] / lattice.steps
            np.testing.assert_allclose(away, np.abs(exact), atol=1e-12)
            assert away.max() <= float(column.covering_radius(lattice)) + 1e-12
            if lattice.size > last:
                assert (away == 0).all() == (not column.covering_radius(lattice))


@pytest.mark.parametrize("weight", [Fraction(1), Fraction(2, 7)])
@pytest.mark.parametrize("last", [9, 1_024, 1_025, 9_910, 100_000])
def test_special_values_are_measured_alone_and_no_cell_straddles_a_band(last: int, weight: Fraction) -> None:
    special, bands = (0.0, float(last // 3), float(last)), (float(last // 2), float(last // 3 + 1))
    column = Ordered(name="x", high=last, weight=weight, missing=True, special=special, bands=tuple(sorted(bands)))
    cells, values = column.points(), np.arange(last + 1.0)
    codes = column.to_cells(values, cells)
    assert (np.diff(codes) >= 0).all()
    assert set(codes) == set(range(len(cells.places)))
    for value in special:
        assert values[codes == codes[int(value)]].tolist() == [value]
        assert column.centres(cells)[codes[int(value)]] == value
    for band in bands:
        assert codes[int(band)] > codes[int(band) - 1]
    plain = Ordered(name="x", high=last, weight=weight, missing=True)
    assert cells.size <= plain.detail().size + 2 * len(special) + len(bands)
    assert discretisation(column, cells) <= discretisation(plain, plain.points())


def test_distance_from_the_centre_agrees_with_the_definition() -> None:
    for column in (
        integers(7, missing=True),
        Ordered(name="x", missing=True, kind="number", low=0.0, high=1.0),
    ):
        cells = column.cells(4)
        clean = np.array([0.0, 1.0, np.nan])
        at = np.array([0.0, 1.0]) / column.reach
        centre = (cells.places[column.to_cells(clean[:2], cells)] + 0.5) / 4
        np.testing.assert_allclose(column.distance_to_centre(clean, cells), [*np.abs(at - centre), 0.0])


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
    Cells(places=np.array([0]), steps=1, off_line=0),
    Cells(places=np.array([0, 3]), steps=4, off_line=1),
    Cells(places=np.array([0, 1, 2, 5]), steps=5, off_line=2),
    Cells(places=np.empty(0), steps=1, off_line=3),
    integers(7, missing=True).cells(4),
    integers(2, missing=True).lattice(5, native=False),
    Groups.of(integers(9, missing=True).detail(), np.array([0, 1, 2, 7])),
    Groups.of(integers(9).detail(), np.array([0])),
]


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: f"{cells.places.tolist()}+{cells.off_line}")
def test_distance_is_a_metric_of_diameter_at_most_one(cells: Cells) -> None:
    every = np.arange(cells.size)
    d = cells.distance(every[:, None], every[None, :])
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(d == 0, np.eye(cells.size, dtype=bool))
    assert (d[:, :, None] <= d[:, None, :] + d.T[None, :, :] + 1e-12).all()
    assert d.max() == float(cells.diameter)
    assert cells.diameter <= 1


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: f"{cells.places.tolist()}+{cells.off_line}")
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
        Cells(places=np.empty(0), steps=1, off_line=0)


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
        Ordered(
            name="x", missing=True, kind="datetime", low=86_400 * DAY, high=86_400 * DAY + 1_800, step=Fraction(900)
        ),
        [
            "2020-02-28 00:07:29.9",
            "2020-02-28T00:07:30+09:00",
            "1999-01-01",
            datetime.date(2020, 12, 1),
            "",
            "2020-02-28 0",
        ],
        [
            *(datetime.datetime(2020, 2, 28, 0, minute) for minute in (0, 15, 0, 30)),
            *(None, None),
        ],
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


@pytest.mark.parametrize(("column", "dtype"), [(c, d) for (c, *_), d in zip(EXAMPLES[:5], "ifMMO", strict=True)])
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


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(0.0, 100_000.0, -1), (0.0, 1.0, 4), (-3.7281, 12.4, 3), (0.1, 0.3, 5), (-5.0, 500_000.5, -1), (1e5, 1e5 + 1, 4)],
)
def test_numbers_at_lattice_points_have_few_digits_and_are_read_back_at_them(
    low: float, high: float, digits: int
) -> None:
    column = Ordered(name="x", kind="number", low=low, high=high)
    detail = column.detail()
    written = column.decode(column.on_lattice(detail))
    inside = written[1:-1]
    assert (inside == np.round(inside, digits)).all()
    assert (written[0], written[-1]) == (low, high)
    codes, away = column.to_lattice(column.clean(np.asarray(written)), detail)
    assert codes.tolist() == list(range(len(written)))
    assert away.max() <= 1 / (2 * ROUNDING_PARTS * detail.steps) + 1e-12


# ------------------------------------------------------------ full detail, and groups of its points


def dates(days: int, *, missing: bool = False) -> Ordered:
    return Ordered(name="x", missing=missing, kind="date", low=DAY, high=DAY + days)


def ordinal(labels: int, *, missing: bool = False) -> Ordered:
    values = tuple(f"v{i}" for i in range(labels))
    return Ordered(name="x", missing=missing, kind="ordinal", low=0, high=labels - 1, values=values)


def numbers(*, missing: bool = False) -> Ordered:
    return Ordered(name="x", missing=missing, kind="number", low=-3.0, high=7.5)


AROUND_DETAIL = (0, 0, 1, 1, 7, 16, 17, 255, 256, 257, 1_024, 1_024, 1_025, 1_025, 3_000, 2**40, 2**52)
KINDS: list[Column] = [
    *(integers(reach, missing=i % 2 == 0) for i, reach in enumerate(AROUND_DETAIL)),
    *(f(size, missing=m) for m in (False, True) for f, size in product((dates, ordinal), (1, 5, 300))),
    dates(20_000, missing=True),
    ordinal(1_025),
    numbers(),
    numbers(missing=True),
    Category(name="x", values=("a", "b", "c")),
    Category(name="x", missing=True, values=("a",), other=True),
    Category(name="x", missing=True, kind="boolean", values=("false", "true")),
]


def described(column: Column) -> str:
    size = column.reach if isinstance(column, Ordered) else len(getattr(column, "labels", ()))
    return f"{getattr(column, 'kind', '')} {size}{' or missing' * column.missing}"


every_kind = pytest.mark.parametrize("column", KINDS, ids=described)


DETAIL_STEPS = 256  # of columns of more than 1,025 values; written out, so that a change is seen


def some_values(column: Column) -> np.ndarray:
    """All cleaned values, or the ends, a spread of them and the hardest: next to the middle between two points."""
    if isinstance(column, Category):
        return np.arange(len(column.labels) + column.missing)
    assert isinstance(column, Ordered)
    if not column.whole:
        between = (np.arange(DETAIL_STEPS) + 0.5) / DETAIL_STEPS
        spread = [np.linspace(0, 1, 700), between, np.nextafter(between, 0), np.nextafter(between, 1)]
        values = np.concatenate(spread)
    elif column.reach <= 1_025:
        values = np.arange(column.reach + 1, dtype=float)
    else:
        between = [(2 * i + 1) * column.reach // (2 * DETAIL_STEPS) for i in range(DETAIL_STEPS)]
        near = np.array([b + i for b in between for i in (0, 1)], float)
        values = np.unique(np.concatenate([near, np.linspace(0, column.reach, 500).round()]))
    return np.append(values, np.nan) if column.missing else values


def groupings(column: Column) -> list[Groups]:
    """Of all points at full detail, and of those on a coarse lattice: one group, single points, and random runs."""
    made = []
    for lattice in (column.detail(), column.lattice(16)):
        line = len(lattice.places)
        rng = np.random.default_rng(line)
        cuts = [np.arange(1, line), *(1 + rng.permutation(max(line - 1, 0))[:k] for k in (0, 5))]
        made += [Groups.of(lattice, np.append(0, np.sort(c))[:line]) for c in cuts]
    return made


def position(column: Column, value: float) -> Fraction:
    assert isinstance(column, Ordered)
    return Fraction(float(value)) / max(column.reach, 1)


def present(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


@every_kind
def test_full_detail_has_every_value_of_a_column_of_not_too_many(column: Column) -> None:
    lattice, values = column.detail(), some_values(column)
    codes, away = column.to_lattice(values, lattice)
    if isinstance(column, Category) or (column.whole and column.reach <= 1_024):
        assert (away == 0).all()
        assert column.covering_radius(lattice) == 0
        assert codes.tolist() == list(range(lattice.size))  # as many points as values
        np.testing.assert_array_equal(column.on_lattice(lattice), values)
    else:
        assert len(lattice.places) == DETAIL_STEPS + 1
        assert column.covering_radius(lattice) == Fraction(1, 2 * DETAIL_STEPS)
        assert away.max() <= (1 + 1e-9) / (2 * DETAIL_STEPS)
        assert away.max() > 0.99 / (2 * DETAIL_STEPS)


@every_kind
def test_every_value_is_in_the_group_of_its_nearest_point(column: Column) -> None:
    values = some_values(column)
    for groups in groupings(column):
        codes = column.to_cells(values, groups)
        if isinstance(column, Category):
            assert codes.tolist() == values.tolist()
            continue
        assert set(codes[np.isnan(values)].tolist()) == ({len(groups.starts)} if column.missing else set())
        for value, code in zip(present(values), codes, strict=False):
            first = groups.starts[code]
            last = groups.starts[code + 1] - 1 if code + 1 < len(groups.starts) else len(groups.lattice.places) - 1
            low, high = (Fraction(int(groups.lattice.places[i]), groups.lattice.steps) for i in (first, last))
            # Half a step further out the next group begins; floats may miss that by their last bit.
            beyond = column.covering_radius(groups.lattice) + Fraction(1, 10**15)
            assert low - beyond <= position(column, value) <= high + beyond


@every_kind
def test_no_value_is_further_from_the_middle_of_its_group_than_the_discretisation(column: Column) -> None:
    values = some_values(column)
    for groups in groupings(column):
        bound, found = discretisation(column, groups), column.distance_to_centre(values, groups)
        if isinstance(column, Category):
            assert bound == 0
            assert not found.any()
            continue
        codes = column.to_cells(values, groups)
        exact = [
            abs(position(column, value) - Fraction(int(groups.places[code]), groups.steps))
            for value, code in zip(present(values), codes, strict=False)
        ]
        assert max(exact) <= bound + Fraction(1, 10**15)
        np.testing.assert_allclose(found[: len(exact)], np.array(exact, float), atol=1e-15)
        assert not found[len(exact) :].any()  # a missing value is its own centre
        assert max(exact) >= groups.radius  # the bound is no idle one: its main part is attained
        if not column.covering_radius(groups.lattice):
            assert max(exact) == bound


def test_the_discretisation_of_a_group_sees_a_point_that_is_left_out() -> None:
    """Control: a wider group than the bound was computed for is found out by the distances."""
    column = integers(100)
    narrow = Groups.of(column.detail(), np.array([0, 20, 40, 60, 80]))
    wide = Groups.of(column.detail(), np.array([0, 20, 80]))
    assert column.distance_to_centre(some_values(column), wide).max() > discretisation(column, narrow)


@every_kind
def test_centres_of_groups_lie_in_their_own_group_and_near_its_middle(column: Column) -> None:
    for groups in groupings(column):
        centres = column.centres(groups)
        assert column.to_cells(centres, groups).tolist() == list(range(groups.size))
        away = column.distance_to_centre(centres, groups)
        half_step = Fraction(1, 2 * groups.lattice.steps) if len(groups.places) else 0
        own = Fraction(1, 2 * column.reach) if isinstance(column, Ordered) and column.whole and column.reach else 0
        if isinstance(column, Ordered) and column.last_index is None:  # written with few digits
            own = Fraction(1, 2 * ROUNDING_PARTS * groups.lattice.steps)
        assert away.max() <= float(half_step + own) + 1e-12
        if isinstance(column, Ordered) and column.whole:
            on_line = present(centres)
            assert (on_line == on_line.round()).all()
            assert on_line.min() >= 0
            assert on_line.max() <= column.reach


@every_kind
def test_centres_of_groups_come_back_from_a_written_table(column: Column) -> None:
    for groups in groupings(column):
        again = column.clean(column.decode(column.centres(groups)))
        assert column.to_cells(again, groups).tolist() == list(range(groups.size))


def test_no_rows_are_in_no_group() -> None:
    for column in KINDS:
        none = some_values(column)[:0]
        for groups in groupings(column)[:1]:
            assert column.to_cells(none, groups).shape == (0,)
            assert column.distance_to_centre(none, groups).shape == (0,)


@every_kind
def test_the_discretisation_of_even_cells_is_half_a_cell_or_nothing(column: Column) -> None:
    for k in (1, 3, 64):
        expected = Fraction(0) if isinstance(column, Category) else Fraction(1, 2 * k)
        assert discretisation(column, column.cells(k)) == expected


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
        assert (before.steps, before.off_line) == (after.steps, after.off_line)
    np.testing.assert_array_equal(noisy[2][:-1], quiet[2])
    np.testing.assert_array_equal(column.to_cells(noisy[2], noisy[0])[:-1], column.to_cells(quiet[2], quiet[0]))
