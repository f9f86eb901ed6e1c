"""P26: no table within the bound has a statistic outside of its interval. What `audits/intervals.py` does, in short."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import intervals
from answering import stated
from certsynth.answers import Basis, answer
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.errors import InputError
from questions import FORMS
from within import Near, World, extremes

ANSWERS = 500


def basis(column: Column, clean: list[float], bound: float, rows: int) -> Basis:
    schema, values = Schema(columns=(column,)), np.array(clean)
    certificate = stated([((column.name,), bound)], single=bound)
    return Basis(schema, {column.name: column.decode(values)}, {column.name: values}, certificate, rows)


def test_no_table_within_the_bound_is_outside() -> None:
    tally = intervals.run(ANSWERS, seed=1)
    assert not tally.outside, tally.outside[:3]
    assert len(tally.answers) == len(FORMS)
    exact = ("fraction", "mean", "sum", "quantile")
    assert all(tally.attained[form] > 0.5 * tally.answers[form] for form in exact)  # tables come to the ends


def test_bounds_a_fifth_too_small_are_noticed() -> None:
    assert intervals.run(200, seed=2, shrink=0.8).outside


def test_sums_whose_ends_are_not_put_in_order_are_noticed() -> None:
    assert intervals.unordered_sums(40, seed=3).outside


@pytest.mark.slow
def test_no_table_within_the_bound_is_outside_of_many_more_answers() -> None:
    tally = intervals.run(20_000, seed=4)
    assert not tally.outside, tally.outside[:3]


@pytest.mark.parametrize("query", ["sum(-2*x)", "sum(7 - 2*x)", "sum(-1000 - x)", "sum(x - 1000)", "sum(-0.5*x + 1e6)"])
@pytest.mark.parametrize("low", [-9, -3, 0, 5])
def test_sums_over_values_that_may_be_missing_are_ordered_and_hold(query: str, low: int) -> None:
    """Once a factor below 0 cut the interval to a range whose ends had changed places."""
    column = Ordered("x", low=low, high=low + 6, missing=True, weight=Fraction(1, 2))
    rng = np.random.default_rng(5)
    world = World(Schema(columns=(column,)), rng)
    expression = query[4:-1]
    gain = np.nan_to_num(eval(expression, {"x": world.figures["x"]}), nan=0.0)  # noqa: S307 — one of the above
    for bound in (0.0, 0.01, 0.2, 1.0):
        counts = rng.multinomial(40, rng.dirichlet(np.full(world.size, 0.5))) + (np.arange(world.size) == 0)
        found = answer(basis(column, np.repeat(world.clean["x"], counts).tolist(), bound, 1000), query)
        reached = [1000 * float(table @ gain) for table in extremes(Near.of(counts, world.apart["x"], bound), gain)]
        slack = 1e-6 * (1 + abs(found.high) + abs(found.low))
        assert found.low <= found.estimate <= found.high
        assert found.low - slack <= min(reached)
        assert max(reached) <= found.high + slack
        assert 1000 * gain.min() - slack <= found.low
        assert found.high <= 1000 * gain.max() + slack
        assert max(reached) - min(reached) >= 0.99 * (found.high - found.low) - slack  # and no wider than tables go


def test_a_sum_that_is_0_for_every_row_is_0() -> None:
    found = answer(basis(Ordered("x", low=2, high=2, missing=True), [0.0, np.nan], 0.1, 9), "sum(4 - 2*x)")
    assert (found.low, found.estimate, found.high) == (0, 0, 0)


@pytest.mark.parametrize(
    "query", ["sum(1e200*x)", "sum(-1e200*x)", "mean(1e200*x)", "mean(-1e200*x + 1)", "variance(x)", "sd(x)"]
)
@pytest.mark.parametrize("missing", [False, True])
def test_answers_too_large_for_a_number_are_refused(query: str, missing: bool) -> None:
    column = Ordered("x", kind="number", low=-1e300, high=1e300, missing=missing)
    with pytest.raises(InputError, match="too large"):
        answer(basis(column, [0.1, 0.9], 0.1, 9), query)


def test_no_value_is_beyond_the_range_of_a_number() -> None:
    """The closure of x < low within the range would be the end of it, and rows there count as outside at once."""
    asked = basis(Ordered("x", kind="number", low=0.0, high=1.0), [0.0, 0.0, 0.5], 0.01, 3)
    for query in ("fraction(x >= 0)", "fraction(x <= 1)", "fraction(-x <= 0)", "fraction(2*x >= 0)"):
        assert answer(asked, query).low > 1 - 1e-8
    assert answer(asked, "fraction(x > 0)").high == 1


def test_confidence_is_never_rounded_up_to_certainty() -> None:
    made = basis(Category("c", values=("a", "b")), [0, 1], 0.1, 2)
    made = replace(made, certificate=replace(made.certificate, confidence=1 - 1e-13))
    assert str(answer(made, "fraction(c = 'a')")).endswith("with confidence 99.99999999 %")
