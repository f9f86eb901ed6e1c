"""Checks of single values: what is refused with its rule, and what is read exactly."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth.algorithm.checks import (
    MAX_EPSILON,
    Check,
    OneOf,
    Share,
    WholeNumber,
    amount,
    failure_probability,
)
from certsynth.errors import InputError

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
    with pytest.raises(InputError, match=r"^`epsilon` must be a number above 0 and at most 100") as caught:
        amount("epsilon", value)
    assert len(str(caught.value)) < 160
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["1e-13", 5e-324, Fraction(1, 10**12 + 1), "0.0000000000001"])
def test_more_decimals_than_can_be_printed_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="at most 12 decimals"):
        amount("epsilon", value)


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
    assert amount("epsilon", value) == exact
    assert type(amount("epsilon", value).numerator) is int


def test_the_name_of_the_argument_is_in_the_message() -> None:
    with pytest.raises(InputError, match=r"^`cap` must be"):
        amount("cap", 0)


@given(st.text(max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        exact = amount("epsilon", text)
    except InputError:
        return
    assert 0 < exact <= MAX_EPSILON
    assert exact == Fraction(text)


@given(st.floats())
def test_any_float_is_read_as_its_shortest_text_or_refused(value: float) -> None:
    try:
        exact = amount("epsilon", value)
    except InputError:
        assert not 1e-11 <= value <= 100 or len(f"{value!r}") > 13
        return
    assert float(exact) == value


CHECKS: dict[str, tuple[Check, list[Any], list[Any]]] = {
    "whole": (WholeNumber(1, 9), [1, 9], [0, 10, -1, 1.0, "3", None, True, [1], 10**400]),
    "whole or auto": (WholeNumber(1, 9, auto=True), [1, 9, "auto", None], [0, "Auto", "", False]),
    "word": (OneOf(("a", "b")), ["a", "b"], ["c", "A", "", None, 1, ["a"], {"a": 1}]),
    "share": (
        Share(Fraction(0), "0.05"),
        [0, 0.5, "0.999999999", "1/3"],
        [1, -0.1, "x", None, True, math.nan, "1e-10"],
    ),
    "δ": (failure_probability, ["1e-6", 0.01, "1e-12"], [0, 0.02, "1e-13", None, "x", -1]),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_value_is_taken_or_refused_in_one_line_that_names_the_option(name: str) -> None:
    check, good, bad = CHECKS[name]
    for value in good:
        check("it", value)
    for value in bad:
        with pytest.raises(InputError) as caught:
            check("it", value)
        assert str(caught.value).startswith("`it` m")
        assert len(str(caught.value)) < 160
        assert "\n" not in str(caught.value)


def test_what_is_taken_is_what_the_library_works_with() -> None:
    assert WholeNumber(1, 9, auto=True)("it", "auto") is None
    assert Share(Fraction(0), "0.05")("it", 0.1) == Fraction(1, 10)
    assert failure_probability("it", "1e-6") == Fraction(1, 10**6)
