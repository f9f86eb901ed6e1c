"""Means of sums of columns: over the rows that have values in all of them, and in a group."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import certified_errors
import intervals
import questions
from answering import SMALL, World, small
from certsynth.answers import answer, averages, lifts
from certsynth.answers.alone import numbers_for_text
from certsynth.domain import Ordered, Schema
from certsynth.errors import InputError

ANSWERS = 150


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

    def each_by_itself(basis, terms, group):
        whole = [averages.mean_of_sum(basis, [term], group) for term in terms]
        estimates, claims, ranges = zip(*whole, strict=True)
        low, high = sum(claim.low for claim in claims), sum(claim.high for claim in claims)
        ends = sum(low for low, _ in ranges), sum(high for _, high in ranges)
        return sum(estimates), averages.Claim(low, high, claims[0].bound, ""), ends

    sound = averages.mean_of_sum
    broken = mock.Mock(side_effect=lambda basis, terms, group: (each_by_itself if len(terms) > 1 else sound)(
        basis, terms, group))  # fmt: skip
    with mock.patch.object(averages, "mean_of_sum", broken):
        assert len(intervals.run(100, seed=3, keep=is_mean_of_several).outside) > 3


def test_no_private_table_is_outside_of_certified_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "FORMS", ("mean_of_two", "mean_of_two_in_group"))
    tally = certified_errors.run(100, seed=1)
    assert not tally.outside, tally.outside[:3]
    assert sum(tally.narrowed.values()) > 0.4 * tally.total
    assert certified_errors.run(150, seed=2, shrink=0.6).outside


@pytest.mark.slow
def test_no_table_is_outside_of_many_more() -> None:
    tally = intervals.run(8_000, seed=4, keep=is_mean_of_several)
    assert not tally.outside, tally.outside[:3]


def test_the_estimate_is_the_mean_over_rows_with_both_values() -> None:
    world = World("b", "d")
    counts = np.random.default_rng(1).multinomial(200, np.full(world.size, 1 / world.size))
    schema = Schema(columns=(Ordered("b", low=0, high=4, missing=True), Ordered("d", low=0, high=5, missing=True)))
    days = {name: np.repeat(values, counts) for name, values in world.clean.items()}
    table = {column.name: column.decode(days[column.name]) for column in schema}
    certificate = world.basis(counts, 0.01).certificate
    basis = type(SMALL)(schema, table, days, certificate, 200)
    both = ~np.isnan(days["b"]) & ~np.isnan(days["d"])
    found = answer(basis, "mean(2*d - b + 1)")
    assert found.estimate == pytest.approx(np.mean((2 * days["d"] - days["b"] + 1)[both]))
    assert found.low < found.estimate < found.high
    assert found.how.endswith("that a table within the bound can have") or "values in all of them" in found.how
    same = answer(basis, "mean(2*d - b + 1 | b is not missing and d is not missing)")
    assert (same.low, same.high) == pytest.approx((found.low, found.high))


def test_a_sum_of_three_columns_needs_only_pairs_if_one_may_be_missing() -> None:
    columns = [Ordered(name, low=0, high=4, missing=name == "z") for name in "xyz"]
    pairs = [("x", "z"), ("y", "z")]
    assert answer(small(Schema(columns=tuple(columns)), subsets=pairs), "mean(x + y - z)").high > 0
    columns[0] = Ordered("x", low=0, high=4, missing=True)
    with pytest.raises(InputError, match="'x', 'y', 'z' are 3 columns"):
        answer(small(Schema(columns=tuple(columns)), subsets=pairs), "mean(x + y - z)")


def test_no_row_with_both_values_is_said() -> None:
    world = World("b", "d")
    counts = world.of(lambda row: int(row["b"] is None or row["d"] is None))
    with pytest.raises(
        InputError, match="no synthetic row has values in all of 'd', 'e'|has values in all of 'b', 'm'"
    ):
        answer(World("b", "m").basis(World("b", "m").of(lambda row: int((row["b"] is None) != (row["m"] is None))), 0.1),
               "mean(b - m)")  # fmt: skip
    assert counts.sum() > 0


def test_rows_with_both_values_are_a_group_for_one_question_alone() -> None:
    pair = numbers_for_text(SMALL, "mean(a + n)")
    assert pair == numbers_for_text(SMALL, "mean(a)") | numbers_for_text(SMALL, "mean(n)")


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
