"""The largest errors of group totals and moments are those over all functions, also where 64 bits do not suffice."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from all_sets import functions_of
from certsynth.base.arrays import Ints
from certsynth.certificate import totals
from certsynth.certificate.shares import largest_share_error
from certsynth.certificate.totals import MAX_ROWS, largest_moment_error, largest_total_error, product_moment_error
from certsynth.domain import Cells
from certsynth.errors import TooLarge
from certsynth.queries.statistics import UNITS


def line(points: int, missing: int = 0) -> Cells:
    return Cells(places=np.arange(points), steps=max(points - 1, 1), off_line=missing)


LABELS = Cells(places=np.empty(0, np.int64), steps=1, off_line=3)
LINES = [line(1), line(2, 1), line(4), line(5, 1)]


def true_error(cells: tuple[Cells, ...], name: str, private: Ints, synthetic: Ints) -> Fraction:
    """In units, over all functions of a class."""
    points = list(itertools.product(*(range(each.size) for each in cells)))
    theirs = [point for point, count in zip(points, synthetic.tolist(), strict=True) for _ in range(count)]
    n, m = int(private.sum()), len(theirs)
    return max(
        Fraction(UNITS, units)
        * abs(
            m * sum(count * function[point] for point, count in zip(points, private.tolist(), strict=True))
            - n * sum(function[point] for point in theirs)
        )
        for found, units, function in functions_of(cells, theirs)
        if found == name
    )


def wrong_errors(error: Callable[..., int], name: str, ways: int, cases: int = 10) -> int:
    rng = np.random.default_rng(ways)
    wrong = 0
    choices = [(each,) for each in LINES] if ways == 1 else list(itertools.product([*LINES, LABELS], repeat=2))
    needed = 1 if name == "group_total" else ways
    for cells in choices * cases:
        if sum(len(each.places) > 0 for each in cells) >= needed:
            size = int(np.prod([each.size for each in cells]))
            private, synthetic = (
                np.bincount(rng.integers(size, size=rng.integers(1, 9)), minlength=size) for _ in "ab"
            )
            wrong += error(*cells, private, synthetic) != true_error(cells, name, private, synthetic)
    return wrong


def test_the_error_of_a_group_total_is_the_largest_of_all_groups():
    assert wrong_errors(largest_total_error, "group_total", 2, 3) == 0


def test_the_error_of_a_moment_is_the_larger_of_two():
    assert wrong_errors(largest_moment_error, "moment", 1) == 0


def test_the_error_of_a_product_moment_is_that_of_its_function():
    assert wrong_errors(product_moment_error, "moment", 2, 3) == 0


def test_groups_of_one_point_are_not_all_groups(monkeypatch):
    def largest_point(cells, values):
        return max(map(abs, values))

    monkeypatch.setattr(totals, "largest_share_error", largest_point)
    assert wrong_errors(largest_total_error, "group_total", 2, 1) > 5


def test_totals_one_way_round_only_are_seen():
    def one_way(first, second, private, synthetic):
        if not len(first.places):
            return 0
        ours, theirs = (block.reshape(first.size, second.size) for block in (private, synthetic))
        away = totals.offsets(first, theirs.sum(axis=1))
        n, m = int(private.sum()), int(synthetic.sum())
        return largest_share_error(second, m * (away @ ours) - n * (away @ theirs))

    assert wrong_errors(one_way, "group_total", 2, 1) > 3


@pytest.mark.parametrize(("error", "ways"), [(largest_moment_error, 1), (product_moment_error, 2)])
def test_a_missing_value_that_counts_as_the_lowest_is_seen(error, ways, monkeypatch):
    def with_missing_below(cells, counts):
        found = exact(cells, counts)
        found[len(cells.places) :] = found[0]
        return found

    exact = totals.offsets
    monkeypatch.setattr(totals, "offsets", with_missing_below)
    assert wrong_errors(error, "moment", ways, 4) > 3


@pytest.mark.parametrize(
    ("error", "cells"),
    [
        (largest_moment_error, (line(4, 1),)),
        (product_moment_error, (line(4, 1), line(3))),
        (largest_total_error, (line(4, 1), LABELS)),
        (largest_total_error, (line(3), line(4, 1))),
    ],
)
def test_errors_of_the_longest_tables_are_exact(error, cells):
    """Tables repeated k times have k² times the error, which here has about 100 bits."""
    rng, times = np.random.default_rng(0), MAX_ROWS // 8
    for _ in range(10):
        size = int(np.prod([each.size for each in cells]))
        private, synthetic = (np.bincount(rng.integers(size, size=rows), minlength=size) for rows in (7, 8))
        assert error(*cells, times * private, times * synthetic) == times**2 * error(*cells, private, synthetic) > 0


def test_tables_whose_sums_might_not_fit_are_refused():
    few, many = np.array([1, 1]), np.array([MAX_ROWS, 1])
    for private, synthetic in ((few, many), (many, few)):
        with pytest.raises(TooLarge, match="fewer rows"):
            largest_moment_error(line(2), private, synthetic)
        with pytest.raises(TooLarge, match="fewer rows"):
            largest_total_error(line(1), line(2), private, synthetic)
        with pytest.raises(TooLarge, match="fewer rows"):
            product_moment_error(line(1), line(2), private, synthetic)
