"""Errors of shares of bands: the largest of all intervals of bands, and one row changes them by at most one row."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from certsynth import Schema, release
from certsynth.certificate.bands import band_errors, band_names
from certsynth.certificate.direct import LOSS_UNITS
from certsynth.queries.tally import in_memory
from small import SURE

SCHEMA = Schema.parse(
    """
[[column]]
name = "age"
kind = "integer"
low = 0
high = 5
bands = [2, 3]
missing = true

[[column]]
name = "sex"
kind = "category"
values = ["f", "m"]

[[column]]
name = "hours"
kind = "integer"
low = 0
high = 3
"""
)
ALL = [(0, 1), (0, 2), (1, 2)]
BAND_OF_AGE = [0, 0, 1, 2, 2, 2]


def errors(private: np.ndarray, synthetic: np.ndarray) -> dict[str, int]:
    cleaned = ([table[:, 0], table[:, 1].astype(np.int64), table[:, 2]] for table in (private, synthetic))
    return band_errors(SCHEMA, ALL, *map(in_memory, cleaned))


def tables(rows: int, rng: np.random.Generator) -> np.ndarray:
    age = rng.integers(0, 7, rows).astype(float)
    age[age == 6] = np.nan
    return np.stack([age, rng.integers(0, 2, rows), rng.integers(0, 4, rows)], axis=1)


def band(age: float) -> int:
    return 3 if np.isnan(age) else BAND_OF_AGE[int(age)]


INTERVALS = [set(range(i, j)) | more for i in range(4) for j in range(i, 4) for more in (set(), {3})]


def largest(private: np.ndarray, synthetic: np.ndarray) -> dict[str, Fraction]:
    """By definition: every interval of bands, and every product of one with a set of sexes."""
    found = dict.fromkeys(("band_of_one_column", "band_of_two_columns"), Fraction(0))
    for bands, sexes in itertools.product(INTERVALS, [{0, 1}, {0}, {1}, set()]):
        shares = [
            Fraction(sum(band(age) in bands and sex in sexes for age, sex, _ in table.tolist()), len(table))
            for table in (private, synthetic)
        ]
        error = abs(shares[0] - shares[1]) * len(private)
        for name in found if sexes == {0, 1} else ("band_of_two_columns",):
            found[name] = max(found[name], error)
    return found


def test_errors_are_the_largest_of_all_intervals_of_bands():
    rng = np.random.default_rng(1)
    for _ in range(40):
        private, synthetic = tables(int(rng.integers(1, 12)), rng), tables(int(rng.integers(1, 9)), rng)
        exact = {name: -(-error * LOSS_UNITS // 1) for name, error in largest(private, synthetic).items()}
        assert errors(private, synthetic) == exact


def test_one_row_changes_them_by_at_most_one_row():
    rng = np.random.default_rng(2)
    for _ in range(60):
        private, synthetic, other = tables(5, rng), tables(4, rng), tables(1, rng)
        here = errors(private, synthetic)
        for near in (private[1:], np.concatenate([private[1:], other]), np.concatenate([private, other])):
            there = errors(near, synthetic)
            assert all(abs(here[name] - there[name]) <= LOSS_UNITS for name in here)


def test_they_exist_only_where_a_column_has_bands():
    assert band_names(SCHEMA, [(0,), (1,)]) == ("band_of_one_column",)
    assert band_names(SCHEMA, [(1, 2)]) == ()
    assert band_names(SCHEMA, [(0, 2)]) == ("band_of_one_column", "band_of_two_columns")


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_answers_at_borders_of_bands_are_narrower_and_true(neighbours):
    rng = np.random.default_rng(3)
    clean = tables(3000, rng)
    private = {
        "age": [None if np.isnan(age) else int(age) for age in clean[:, 0]],
        "sex": ["fm"[int(sex)] for sex in clean[:, 1]],
        "hours": clean[:, 2].astype(int),
    }
    made = release(pl.DataFrame(private), SCHEMA, epsilon=5, neighbours=neighbours, confidence=SURE, seed=1)
    age, sex = clean[:, 0], clean[:, 1]
    known = made.record.certificate.statistics
    assert known is not None
    for query, truth in (
        ("fraction(age >= 2)", (age >= 2).mean()),
        ("fraction(age >= 3 and sex = 'm')", ((age >= 3) & (sex == 1)).mean()),
        ("fraction(age = 2)", (age == 2).mean()),
    ):
        found = made.answer(query)
        assert found.low <= truth <= found.high
    assert known.band_of_one_column <= known.share_of_one_column + 0.02
