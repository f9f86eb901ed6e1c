"""Whatever a cell holds, it is read the same way by every engine, and it counts once (P7)."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.domain import Category, Column, Ordered
from certsynth.domain.cleaning import as_days, as_labels, as_numbers, as_truths


class Hostile:
    """Raises from every method that a careless reader would call."""

    def _raise(self, *_: object) -> bool:
        raise RuntimeError("do not touch")

    __float__ = __str__ = __bool__ = __lt__ = __gt__ = __index__ = _raise  # type: ignore[assignment]


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    __ne__ = __eq__
    __hash__ = object.__hash__


ODD = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    1e30,
    -1e308,
    5e-324,
    "",
    " ",
    "x",
    "nan",
    "-inf",
    "1e999",
    "unseen",
    "\x00",
    "\udcff",
    "other",
    True,
    False,
    10**400,
    -(10**400),
    10**5000,
    b"1",
    bytearray(b"1"),
    [],
    [1],
    [[1], [2]],
    (1,),
    {"a": 1},
    {1},
    1j,
    np.complex128(1),
    np.float32("nan"),
    np.float64("inf"),
    np.int8(3),
    np.bool_(True),
    np.array([1]),
    np.array([1, 2]),
    np.datetime64("NaT"),
    np.datetime64("2020-02-29"),
    np.datetime64(2**62, "s"),
    np.timedelta64(1, "D"),
    datetime.date.min,
    datetime.date.max,
    datetime.datetime(2020, 2, 29, 23, 59, tzinfo=datetime.UTC),
    datetime.time(1),
    datetime.timedelta(1),
    decimal.Decimal("1.50"),
    decimal.Decimal("sNaN"),
    decimal.Decimal("NaN"),
    decimal.Decimal("-Infinity"),
    decimal.Decimal("1E+999999"),
    Fraction(1, 3),
    Fraction(10**400),
    uuid.UUID(int=0),
    pd.NA,
    pd.NaT,
    pd.Timestamp("2020-02-29 10:00", tz="Europe/Zurich"),
    pd.Timedelta(1),
    pd.Interval(0, 1),
    Ellipsis,
    object(),
    Hostile(),
    Incomparable(),
]

COLUMNS: list[Column] = [
    column
    for missing in (False, True)
    for column in (
        Ordered(name="x", missing=missing, kind="integer", low=-3, high=40),
        Ordered(name="x", missing=missing, kind="integer", low=-(2**53), high=-(2**53) + 2**40),
        Ordered(name="x", missing=missing, kind="number", low=-0.5, high=2.5),
        Ordered(name="x", missing=missing, kind="number", low=-1e300, high=1e300),
        Ordered(name="x", missing=missing, kind="number", low=0.0, high=5e-324),
        Ordered(name="x", missing=missing, kind="date", low=18000, high=18500),
        Ordered(name="x", missing=missing, kind="datetime", low=-7, high=10**9),
        Ordered(name="x", missing=missing, kind="datetime", low=0, high=9_000, step=Fraction(900)),
        Ordered(name="x", missing=missing, kind="ordinal", low=0, high=2, values=("x", "1", "")),
        Ordered(name="x", missing=missing, kind="ordinal", low=0, high=0, values=("only",)),
        Category(name="x", missing=missing, values=("x", "1", "true")),
        Category(name="x", missing=missing, values=("x", ""), other=True),
        Category(name="x", missing=missing, kind="boolean", values=("false", "true")),
    )
]

odd = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=5),
    st.integers(),
    st.floats(),
    st.dates(),
    st.datetimes(),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.decimals(),
)


def held(values: list[object]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def assert_each_counts_once(column: Column, raw: np.ndarray) -> None:
    clean = column.clean(raw)
    assert clean.shape == (len(raw),)
    for resolution in (1, 2, 16, 100):
        cells = column.cells(resolution)
        codes = column.to_cells(clean, cells)
        assert codes.shape == (len(raw),)
        assert np.bincount(codes, minlength=cells.size).shape == (cells.size,)
        lattice = column.lattice(resolution)
        points, away = column.to_lattice(clean, lattice)
        assert np.bincount(points, minlength=lattice.size).shape == (lattice.size,)
        assert (away >= 0).all()
        assert (away <= 0.5 / lattice.steps + 1e-12).all()


@pytest.mark.parametrize("column", COLUMNS, ids=str)
def test_each_odd_value_counts_once(column: Column) -> None:
    assert_each_counts_once(column, held(ODD))


@settings(max_examples=60, deadline=None)
@given(st.lists(odd, max_size=20))
def test_whatever_rows_hold_each_counts_once(values: list[object]) -> None:
    for column in COLUMNS:
        assert_each_counts_once(column, held(values))


@pytest.mark.parametrize(
    "raw",
    [
        np.array([1.5, np.nan, np.inf, -np.inf]),
        np.array([0, 255], np.uint8),
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1], np.uint64),
        np.array([1.0, 65504.0], np.float16),
        np.array([np.finfo(np.longdouble).max, 1], np.longdouble),
        np.array([True, False]),
        np.array([1j]),
        np.array(["x", ""]),
        np.array([b"x"]),
        np.array(["1969-12-31T23:00", "NaT"], "datetime64[us]"),
        np.array(["200000-01-01"], "datetime64[D]"),
        np.array([1, 2], "timedelta64[D]"),
        np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
        np.ma.masked_array([1, 2], mask=[True, False]),
        np.ma.masked_array(["x", "y"], mask=[True, False], dtype=object),
        np.ma.masked_array([True, False], mask=[True, False]),
        np.ma.masked_array(np.array(["2020-01-01"] * 2, "datetime64[us]"), mask=[True, False]),
        np.array([], dtype=object),
        np.array([]),
    ],
    ids=lambda raw: f"{type(raw).__name__} {raw.dtype}",
)
def test_every_dtype_counts_each_row_once(raw: np.ndarray) -> None:
    for column in COLUMNS:
        assert_each_counts_once(column, raw)


@given(st.lists(odd, max_size=10))
@settings(max_examples=200, deadline=None)
def test_a_value_reads_as_its_text_does(values: list[object]) -> None:
    raw = held(values)
    texts = held(as_labels(raw))
    there = np.array([text is not None for text in texts], bool)
    np.testing.assert_array_equal(as_numbers(raw)[there], as_numbers(texts)[there])
    np.testing.assert_array_equal(as_days(raw)[there], as_days(texts)[there])
    assert as_truths(raw[there]) == as_truths(texts[there])


@pytest.mark.parametrize(
    ("value", "label", "number", "day"),
    [
        ("00123", "00123", 123.0, math.nan),
        ("NA", "NA", math.nan, math.nan),
        (1.0, "1", 1.0, math.nan),
        (-0.0, "0", 0.0, math.nan),
        (0.1, "0.1", 0.1, math.nan),
        (math.inf, "inf", math.inf, math.nan),
        (math.nan, None, math.nan, math.nan),
        (True, "true", 1.0, math.nan),
        ("False", "False", 0.0, math.nan),
        (10**400, "1" + "0" * 400, math.inf, math.nan),
        (-(10**400), "-1" + "0" * 400, -math.inf, math.nan),
        (decimal.Decimal("1.50"), "1.5", 1.5, math.nan),
        (decimal.Decimal("12345678901234567890"), "12345678901234567890", 12345678901234567890.0, math.nan),
        (19700102, "19700102", 19700102.0, 1.0),
        ("1970-01-02", "1970-01-02", math.nan, 1.0),
        (" 1970-01-02T23:59 ", " 1970-01-02T23:59 ", math.nan, 1.0),
        ("1970-13-02", "1970-13-02", math.nan, math.nan),
        (datetime.date(1969, 12, 31), "1969-12-31", math.nan, -1.0),
        (datetime.datetime(1970, 1, 2), "1970-01-02", math.nan, 1.0),
        (datetime.datetime(1970, 1, 2, 3), "1970-01-02 03:00:00", math.nan, 1.0),
        (np.datetime64("1970-01-02"), "1970-01-02", math.nan, 1.0),
        (np.datetime64("20000-01-01"), None, math.nan, 6585322.0),
        (np.datetime64(2**62, "s"), None, math.nan, 53375995583650.0),  # overflows in microseconds
        (pd.NaT, None, math.nan, math.nan),
        (pd.NA, None, math.nan, math.nan),
        (b"1", None, math.nan, math.nan),
        ([1], None, math.nan, math.nan),
    ],
)
def test_reads_one_value(value: object, label: str | None, number: float, day: float) -> None:
    raw = held([value])
    assert as_labels(raw) == [label]
    np.testing.assert_array_equal(as_numbers(raw), [number])
    np.testing.assert_array_equal(as_days(raw), [day])
    if isinstance(value, np.datetime64):
        assert as_labels(np.array([value])) == [label]


def test_truths_are_few_words_in_any_case() -> None:
    words = held([True, 1, 1.0, "TRUE", " yes", "y", "t", "1", False, 0, "No", "n", "f", "FALSE", "0", 2, "", "on"])
    assert as_truths(words) == ["true"] * 8 + ["false"] * 7 + [None] * 3


def test_days_before_1970_are_cut_towards_the_past() -> None:
    assert as_days(np.array(["1969-12-31T01:00"], "datetime64[us]")).tolist() == [-1.0]
    assert as_days(held([datetime.datetime(1969, 12, 31, 1)])).tolist() == [-1.0]
