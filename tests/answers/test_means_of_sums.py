"""Means of sums of columns: over the rows that have values in all of them, and in a group."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import certified_errors
import intervals
import questions
from answering import World, small
from certsynth.answers import answer, averages, lifts
from certsynth.domain import Ordered, Schema
from certsynth.errors import InputError

ANSWERS = 120


def is_mean_of_several(question: questions.Question) -> bool:
    return question.form.startswith("mean of two columns")


def test_no_table_within_the_bound_is_outside() -> None:
    tally = intervals.run(ANSWERS, seed=1, keep=is_mean_of_several)
    assert not tally.outside, tally.outside[:3]
    assert sum(tally.attained.values()) > tally.total  # of two ends each: tables come to more than half of them


def test_bounds_a_fifth_too_small_are_noticed() -> None:
    assert len(intervals.run(60, seed=2, shrink=0.8, keep=is_mean_of_several).outside) > 5


def test_means_over_the_rows_of_each_column_by_itself_are_noticed() -> None:
    """The control of the definition: mean(x) − mean(y) is another statistic if values are missing."""

    sound = averages.mean_of_sum

    def each_by_itself(basis, terms, group):
        estimates, claims, ranges = zip(*(sound(basis, [term], group) for term in terms), strict=True)
        low, high = sum(claim.low for claim in claims), sum(claim.high for claim in claims)
        ends = sum(low for low, _ in ranges), sum(high for _, high in ranges)
        return sum(estimates), averages.Claim(low, high, claims[0].bound, ""), ends

    with mock.patch.object(averages, "mean_of_sum", each_by_itself):
        assert len(intervals.run(100, seed=3, keep=is_mean_of_several).outside) > 3


def test_no_private_table_is_outside_of_certified_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "FORMS", ("mean_of_two", "mean_of_two_in_group"))
    tally = certified_errors.run(60, seed=1)
    assert not tally.outside, tally.outside[:3]
    assert sum(tally.narrowed.values()) > 0.4 * tally.total
    assert certified_errors.run(60, seed=2, shrink=0.6).outside


@pytest.mark.slow
def test_no_table_is_outside_of_many_more() -> None:
    tally = intervals.run(8_000, seed=4, keep=is_mean_of_several)
    assert not tally.outside, tally.outside[:3]


def test_the_estimate_is_the_mean_over_rows_with_both_values() -> None:
    world = World("b", "m")
    counts = np.random.default_rng(1).multinomial(200, np.full(world.size, 1 / world.size))
    rows = np.repeat(np.arange(world.size), counts)
    values = [2 * world.rows[i]["m"] - world.rows[i]["b"] + 1 for i in rows if None not in world.rows[i].values()]
    assert 0 < len(values) < 200
    found = answer(world.basis(counts, 0.01), "mean(2*m - b + 1)")
    assert found.estimate == pytest.approx(np.mean(values))
    assert found.low < found.estimate < found.high
    assert (
        "over rows with values in all columns" in found.how or "over the rows with values in all of them" in found.how
    )
    same = answer(world.basis(counts, 0.01), "mean(2*m - b + 1 | b is not missing and m is not missing)")
    assert (same.low, same.high) == pytest.approx((found.low, found.high))


def test_a_sum_of_three_columns_needs_only_pairs_if_one_may_be_missing() -> None:
    columns = [Ordered(name, low=0, high=4, missing=name == "z") for name in "xyz"]
    pairs = [("x", "z"), ("y", "z")]
    assert answer(small(Schema(columns=tuple(columns)), subsets=pairs), "mean(x + y - z)").high > 0
    columns[0] = Ordered("x", low=0, high=4, missing=True)
    with pytest.raises(InputError, match="'x', 'y', 'z' are 3 columns"):
        answer(small(Schema(columns=tuple(columns)), subsets=pairs), "mean(x + y - z)")


def test_no_row_with_both_values_is_said() -> None:
    world = World("b", "m")
    counts = world.of(lambda row: int((row["b"] is None) != (row["m"] is None)))
    with pytest.raises(InputError, match="no synthetic row has values in all of 'b', 'm', so nothing can be said"):
        answer(world.basis(counts, 0.1), "mean(b - m)")


def test_what_a_sum_can_gain_is_the_most_over_all_places() -> None:
    rng, grid = np.random.default_rng(5), np.linspace(0, 1, 201)
    for _ in range(60):
        weights, slopes = rng.choice([1.0, 0.5, 0.1], 2), rng.uniform(-1, 1, 2)
        x, y, distance = (rng.choice([0.0, 0.25, 0.5, 1.0], 5) for _ in range(3))
        steepness = float(rng.choice([0.01, 0.3, 1.0, 4.0, 50.0]))
        found = lifts.linear([x, y], slopes, distance, weights)(steepness)
        far = np.maximum(
            np.maximum(
                weights[0] * np.abs(x[:, None, None] - grid[:, None]), weights[1] * np.abs(y[:, None, None] - grid)
            ),
            distance[:, None, None],
        )
        worth = slopes[0] * grid[:, None] + slopes[1] * grid - steepness * far
        assert (found >= worth.max(axis=(1, 2)) - 1e-12).all()
        assert np.abs(found - worth.max(axis=(1, 2))).max() < 0.03
