"""Ids of persons: what they state counts, not how they are stored; and no cell depends on another."""

from __future__ import annotations

import datetime
import decimal
import itertools
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest

from certsynth.sources.person_ids import NOBODY, UNREADABLE, Letters, PersonTable, hash_ids
from certsynth.sources.reading import objects

ZONE = datetime.timezone(datetime.timedelta(hours=2))

SAME: dict[str, list[Any]] = {
    "7": [7, 7.0, "7", " 7\t", "007", "+7", "7.0", "7e0", "70e-1", decimal.Decimal("7.00"), np.int8(7), np.float32(7)],
    "0": [0, -0.0, "0", "-0", "000", "0.0"],
    "-12": [-12, -12.0, "-12", "-0012", "-1.2e1"],
    "2^53": [2**53, float(2**53), str(2**53)],
    "-2^63": [-(2**63), np.int64(-(2**63)), str(-(2**63)), "-0" + str(2**63)],
    "2^63": [2**63, str(2**63), np.uint64(2**63)],
    "30 digits": [int("9" * 30), "9" * 30, "00" + "9" * 30, "+" + "9" * 30, decimal.Decimal("9" * 30)],
    "7.5": [7.5, "7.5", "7.50", "07.5", "75e-1", decimal.Decimal("7.500"), np.float32(7.5)],
    "true": [True, "true", "True", "TRUE", np.True_],
    "false": [False, "false", "FALSE", np.False_],
    "a day": [
        datetime.date(2020, 1, 5),
        datetime.datetime(2020, 1, 5),
        "2020-01-05",
        "2020-01-05T00:00:00",
        "2020-01-05 00:00",
        np.datetime64("2020-01-05"),
        pd.Timestamp("2020-01-05"),
    ],
    "a time": [
        datetime.datetime(2020, 1, 5, 10, 30),
        "2020-01-05 10:30",
        "2020-01-05T10:30:00",
        datetime.datetime(2020, 1, 5, 12, 30, tzinfo=ZONE),
        "2020-01-05T12:30:00+02:00",
        pd.Timestamp("2020-01-05 10:30", tz="UTC"),
    ],
    "a text": ["P-17", " P-17", "P-17 "],
    "another text": ["p-17"],
    "a UUID": [uuid.UUID(int=5), str(uuid.UUID(int=5))],
    "a long text": ["é" * 1000],
    "another long text": ["é" * 999 + "e"],
    "digits and signs": ["123-45-6789"],
    "an almost-date": ["2020-01-05x"],
    "no number": ["1e"],
    "a word like a truth": ["tree"],
    "infinity": ["inf"],
}
MISSING = [None, np.nan, float("nan"), decimal.Decimal("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", "  ", "\t\n"]
NO_IDS = [
    [7],
    {"a": 7},
    (7,),
    b"seven",
    object(),
    1e300,
    float("inf"),
    -float("inf"),
    float(2**54),
    7j,
    {7},
    np.arange(2),
]


def alone(value: Any) -> int:
    return int(hash_ids(objects([value]))[0])


@pytest.mark.parametrize("what", SAME)
def test_an_id_is_the_same_person_however_it_is_written_or_stored(what: str) -> None:
    assert len({alone(value) for value in SAME[what]}) == 1


def test_different_ids_are_different_persons() -> None:
    assert len({alone(values[0]) for values in SAME.values()}) == len(SAME)
    many = hash_ids(np.arange(-50_000, 50_000)), hash_ids(objects([f"p{i}" for i in range(100_000)]))
    assert len(np.unique(np.concatenate(many))) == 200_000


@pytest.mark.parametrize("value", MISSING, ids=repr)
def test_an_id_is_missing(value: Any) -> None:
    assert alone(value) == NOBODY


@pytest.mark.parametrize("value", NO_IDS, ids=lambda value: type(value).__name__)
def test_a_value_that_is_no_id_is_not_taken_for_a_missing_one(value: Any) -> None:
    """With `missing_person = "separate"` each of its rows would otherwise be a person."""
    assert alone(value) == UNREADABLE


def test_no_cell_depends_on_the_cells_next_to_it() -> None:
    """1 == True == 1.0 to Python, so that a table of distinct values would take one for another."""
    values = [value for same in SAME.values() for value in same] + MISSING + NO_IDS
    expected = np.array([alone(value) for value in values], np.uint64)
    rng = np.random.default_rng(1)
    for _ in range(20):
        order = rng.permutation(len(values))[: rng.integers(1, len(values))]
        assert (hash_ids(objects([values[i] for i in order])) == expected[order]).all()


@pytest.mark.parametrize(
    "typed",
    [
        np.array([7, 0, -12], np.int16),
        np.array([7, -(2**63), 2**63 - 1]),
        np.array([7, 0, 2**63], np.uint64),
        np.array([7, 0, 7.5, np.nan]),
        np.array([7, 7.5], np.float32),
        np.array([True, False]),
        np.array(["2020-01-05", "NaT", "2020-01-05T10:30"], "datetime64[us]"),
        np.array(["2020-01-05"], "datetime64[D]"),
        np.array(["P-17", "7", ""]),
        np.ma.masked_array([7, 12, 0], mask=[False, True, False]),
        np.ma.masked_array([7.0, 1e300, np.nan], mask=[False, True, False]),
        np.ma.masked_array(objects(["P-17", [7], "7"]), mask=[False, True, False]),
        np.zeros(0, np.int64),
    ],
    ids=lambda array: str(array.dtype),
)
def test_typed_columns_are_hashed_as_their_values_are(typed: np.ndarray) -> None:
    values = [None if absent else value for value, absent in zip(typed, np.ma.getmaskarray(typed), strict=True)]
    assert hash_ids(typed).tolist() == [alone(value) for value in values]


def test_times_beyond_the_years_of_python_are_no_ids() -> None:
    assert hash_ids(np.array(["30000-01-01", "NaT"], "datetime64[D]")).tolist() == [UNREADABLE, NOBODY]


def test_texts_as_bytes_are_hashed_as_texts_are() -> None:
    texts = [value for same in SAME.values() for value in same if isinstance(value, str)] + ["", " "]
    encoded = [text.encode() for text in texts]
    ends = np.array([0, *itertools.accumulate(map(len, encoded))])
    letters = Letters(np.frombuffer(b"".join(encoded), np.uint8), ends)
    assert hash_ids(letters).tolist() == hash_ids(objects(texts)).tolist()
    absent = np.arange(len(texts)) % 2 == 1
    found = hash_ids(letters._replace(absent=absent))
    assert (found[absent] == NOBODY).all()
    assert (found[~absent] == hash_ids(objects(texts))[~absent]).all()


def test_hashes_stay_as_they_are() -> None:
    """They decide which rows are kept: releases of one table speak of the same rows."""
    assert hash_ids(objects([7, "P-17", "true", "é"])).tolist() == [
        18420463882678406923,
        11686132002233909314,
        3241445551372654496,
        3268788136994211351,
    ]


def unmix(x: int) -> int:
    """The inverse of `mix_bits`."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, None)):
        y = x
        for _ in range(64 // shift + 1):
            y = x ^ (y >> shift)
        x = y if factor is None else y * pow(factor, -1, 2**64) % 2**64
    return (x - 0x9E3779B97F4A7C15) % 2**64


def test_two_ids_with_one_hash_are_two_persons() -> None:
    """Anybody can make such ids, since the hash is public: who shares an id with others is protected less."""
    texts = [f"zaphod{i:06d}" for i in range(1000)]
    number = unmix(int(alone(texts[0]))) ^ 0x6365727473796E74
    number -= 2**64 if number >= 2**63 else 0
    assert alone(number) == alone(texts[0])
    table = PersonTable()
    found = table.number(objects([texts[0], number, *texts[1:], str(number), texts[0]]))
    assert len(set(found.tolist())) == 1001
    assert found[1] == found[-2] != found[0] == found[-1]
    assert table.texts()[2:4] == [texts[0], str(number)]


def test_numbers_are_those_of_equal_texts_over_many_batches() -> None:
    rng = np.random.default_rng(1)
    table, known = PersonTable(), dict[str, int]()
    for _ in range(50):
        batch = [f"p{i}" if i % 2 else str(-i) for i in rng.integers(0, 2000, 100).tolist()]
        for text, number in zip(batch, table.number(objects(batch)).tolist(), strict=True):
            assert known.setdefault(text, number) == number
    assert sorted(known.values()) == list(range(2, len(table)))
    assert all(table.texts()[number] == text for text, number in known.items() if text != "0")
    assert repr(table) == "PersonTable(<private>)"
