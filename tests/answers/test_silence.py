"""Statistics about which nothing is known say so, why, and what would help."""

from __future__ import annotations

import numpy as np
import pytest

from answering import SMALL, World, small
from certsynth.answers import Answer, answer
from certsynth.answers.silence import is_whole_range

VACUOUS = small(bound=2.0)
"""Bounds above 1 are cut to 1, those of single columns, too."""


@pytest.mark.parametrize(
    ("query", "why", "remedy"),
    [
        ("mean(a)", "its bound for this column is 1, the largest possible", "more rows or a larger ε would help"),
        ("fraction(a > 0 and b > 1)", "its bound for these columns is 1", "fewer columns or a workload"),
        ("median(p)", "its bound for this column is 1", "more rows"),
        ("count(a > 0)", "its bound for this column is 1", "more rows"),
        ("mean(a) - mean(n)", "its bound for this column is 1", "more rows"),
    ],
)
def test_a_vacuous_certificate_says_nothing(query, why, remedy):
    found = answer(VACUOUS, query)
    assert isinstance(found, Answer)
    assert why in found.says_nothing
    assert remedy in found.says_nothing
    assert str(found) == (
        f"{query} = {found.shown()[0]}, but the certificate says nothing about it: {found.says_nothing}"
    )
    assert found.to_json()["says_nothing"] == found.says_nothing


def test_a_small_group_is_named():
    world = World("a", "b")
    counts = np.where([row["b"] == 1 for row in world.rows], 40, 0)
    counts[[row == {"a": 0, "b": 4} for row in world.rows]] = 1
    found = answer(world.basis(counts, 0.05), "mean(a | b = 4)")
    assert isinstance(found, Answer)
    assert (found.low, found.high) == (-2, 3)
    assert found.says_nothing == (
        "its group holds 0.41 % of the synthetic rows, too few for a bound of 0.05; a larger group, more rows, or a "
        "larger ε would help"
    )


def test_a_correlation_of_values_that_hardly_differ_says_so():
    world = World("a", "n")
    counts = np.where([row["a"] in (0, 1) and row["n"] < 0.2 for row in world.rows], 5, 0)
    found = answer(world.basis(counts, 0.1), "correlation(a, n)")
    assert isinstance(found, Answer)
    assert (found.low, found.high) == (-1, 1)
    assert found.says_nothing.startswith("the values of 'a', 'n' spread over too small a part of their ranges for")
    assert "narrower ranges" in found.says_nothing


@pytest.mark.parametrize("query", ["mean(a)", "fraction(a > 0)", "median(a)", "mean(a) - median(a)"])
def test_an_interval_that_excludes_something_is_said(query):
    found = answer(SMALL, query)
    assert isinstance(found, Answer)
    assert found.says_nothing == ""
    assert found.to_json()["says_nothing"] is None
    assert " between " in str(found)


def test_only_the_whole_range_says_nothing():
    assert is_whole_range((0.5, 0.0, 1.0), 0.0, 1.0)
    assert is_whole_range((0.5, 1e-12, 1.0), 0.0, 1.0)
    assert not is_whole_range((0.5, 0.001, 1.0), 0.0, 1.0)
    assert not is_whole_range((0.5, 0.5, 0.5), 0.5, 0.5)
    assert not is_whole_range((0.5, 0.0, 1.0), -np.inf, np.inf)
