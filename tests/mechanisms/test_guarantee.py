"""ε and ρ as exact rationals: what is refused, what is read, what is printed, what adds up."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Guarantee, Neighbours, Sensitivity, Unit, exact_epsilon
from certsynth.mechanisms.guarantee import MAX_EPSILON, decimal_text

REFUSED: list[Any] = [
    0, 0.0, -1, -0.5, "0", "-1", "0/5", math.nan, math.inf, -math.inf, "nan", "inf", "-inf", "Infinity",
    True, False, None, "abc", "", " ", "1,5", "1/0", "1//2", "0x10", "1e", "ε", "1" * 41, "0." + "1" * 60,
    100.5, 101, "100.000000000001", 10**5000, Fraction(10**5000), 1e300, "1e400",
    "1e99999999", "1e-99999999", "1E+123456789", "1e9_999_999",
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e999999"), Decimal("1e-999999"),
    [1], (1,), {"epsilon": 1}, b"1", 1j, object(), np.array([1.0]), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: f"{type(value).__name__}")
def test_bad_epsilon_is_refused_with_the_rule(value: Any) -> None:
    with pytest.raises(InputError, match="epsilon must be a number above 0 and at most 100") as caught:
        exact_epsilon(value)
    assert len(str(caught.value)) < 160
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["1e-13", 5e-324, Fraction(1, 10**12 + 1), "0.0000000000001"])
def test_more_decimals_than_can_be_printed_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="at most 12 decimals"):
        exact_epsilon(value)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (0.95, Fraction(19, 20)),
        ("0.30", Fraction(3, 10)),
        ("1/3", Fraction(1, 3)),
        ("2e-1", Fraction(1, 5)),
        (" 1.5 ", Fraction(3, 2)),
        (Decimal("0.7"), Fraction(7, 10)),
        (Fraction(5, 7), Fraction(5, 7)),
        (1e-12, Fraction(1, 10**12)),
        (100, Fraction(100)),
        (np.float64(0.1), Fraction(1, 10)),
    ],
)
def test_epsilon_is_what_its_text_says(value: Any, exact: Fraction) -> None:
    assert exact_epsilon(value) == exact
    assert type(exact_epsilon(value).numerator) is int


def test_the_name_of_the_argument_is_in_the_message() -> None:
    with pytest.raises(InputError, match="certificate_epsilon must be"):
        exact_epsilon(0, name="certificate_epsilon")


@given(st.text(max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        exact = exact_epsilon(text)
    except InputError:
        return
    assert 0 < exact <= MAX_EPSILON
    assert exact == Fraction(text)


@given(st.floats())
def test_any_float_is_read_as_its_shortest_text_or_refused(value: float) -> None:
    try:
        exact = exact_epsilon(value)
    except InputError:
        assert not 1e-11 <= value <= 100 or len(f"{value!r}") > 13
        return
    assert float(exact) == value


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
