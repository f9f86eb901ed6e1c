"""Costs as exact rationals: what is printed, what adds up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth.mechanisms import Budget, Guarantee, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.guarantee import decimal_text


@given(st.fractions(min_value=0, max_value=1_000, max_denominator=10**15))
def test_printed_decimal_is_never_below_the_value(value: Fraction) -> None:
    printed = Fraction(decimal_text(value))
    assert value <= printed < value + Fraction(1, 10**12)
    assert not decimal_text(value).endswith(".")


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (10, "10"), (100, "100"), ("1/2", "0.5"), ("1/3", "0.333333333334")]
)
def test_printed_decimal_is_short(value: Any, text: str) -> None:
    assert decimal_text(Fraction(value)) == text


@pytest.mark.parametrize("unit", list(Unit))
def test_costs_add_up_exactly(unit: Unit) -> None:
    costs = [Guarantee(Budget(Fraction(1, 10), unit), Neighbours.REPLACE_ONE)] * 10
    assert Guarantee.composed(costs) == Guarantee(Budget(Fraction(1), unit), Neighbours.REPLACE_ONE)
    assert sum([0.1] * 10) != 1  # floats would not have


def test_costs_under_different_relations_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="different neighbour relations"):
        Guarantee.composed([Guarantee(Budget(Fraction(1)), n) for n in Neighbours])


def test_costs_in_different_units_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="different units"):
        Guarantee.composed([Guarantee(Budget(Fraction(1), unit), Neighbours.REPLACE_ONE) for unit in Unit])


def test_no_costs_at_all_have_no_relation() -> None:
    with pytest.raises(ValueError, match="do not add up"):
        Guarantee.composed([])


@pytest.mark.parametrize("unit", list(Unit))
def test_shares_of_a_budget_add_up_to_it(unit: Unit) -> None:
    budget = Budget(Fraction(1, 3), unit)
    parts = [budget.share(Fraction(1, 20)), budget.share(Fraction(19, 20))]
    assert [part.unit for part in parts] == [unit, unit]
    assert sum(part.amount for part in parts) == budget.amount
    assert budget.share(Fraction(0)).amount == 0


def test_a_budget_is_pure_unless_said_otherwise() -> None:
    assert Budget(Fraction(1)).unit is Unit.EPSILON


def test_a_guarantee_names_its_unit_and_its_relation() -> None:
    amount = Fraction(19, 20)
    assert str(Guarantee(Budget(amount), Neighbours.ADD_REMOVE)) == "ε = 0.95 (add-remove neighbours)"
    assert str(Guarantee(Budget(amount, Unit.RHO), Neighbours.REPLACE_ONE)) == "ρ = 0.95 (replace-one neighbours)"


def test_sensitivities_add_up_and_nothing_that_changes_is_none() -> None:
    assert Sensitivity(2, 4) + Sensitivity(3, 5) == Sensitivity(5, 9)
    assert Sensitivity(1, 1)
    assert not Sensitivity(0, 0)
