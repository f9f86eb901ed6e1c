"""Margins have two significant digits and are never below the number."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from certsynth.report import numerals

_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(text: str) -> Decimal:
    """Read a formatted number back."""
    digits, _, power = text.replace(",", "").partition(" × 10")
    return Decimal(digits) * Decimal(10) ** int(power.translate(_SUPERSCRIPTS) or 0)


@given(st.floats(min_value=1e-12, max_value=1e18))
def test_a_margin_is_never_below_the_number_and_at_most_a_tenth_above(value: float) -> None:
    exact, shown = Decimal(repr(value)), read(numerals.margin(value))
    assert exact <= shown < exact * Decimal("1.1")


@given(st.floats(min_value=1e-12, max_value=1e18))
def test_a_margin_has_two_significant_digits(value: float) -> None:
    text = numerals.margin(value)
    digits = text.partition(" × ")[0].replace(",", "").replace(".", "").lstrip("0")
    assert len(digits.rstrip("0")) <= numerals.MARGIN_DIGITS <= len(digits)


@given(st.floats(min_value=0, max_value=3))
def test_a_margin_of_a_share_is_at_most_100_points(value: float) -> None:
    shown = read(numerals.margin_points(value))
    assert min(Decimal(repr(value)) * 100, 100) <= shown <= 100


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_the_margin_around_a_rounded_figure_covers_the_interval_around_the_number(value: float, off: float) -> None:
    figure, margin = numerals.around(value, off)
    centre = read(figure.replace("−", "-"))
    gap = abs(Decimal(f"{value:.12g}") - centre) + Decimal(repr(off))
    assert gap <= read(margin)


def test_margins_are_written_as_people_write_them() -> None:
    assert [numerals.margin(x) for x in (1.43, 2643.2, 0.02763, 1, 9.96, 0)] == [
        "1.5",
        "2,700",
        "0.028",
        "1.0",
        "10",
        "0",
    ]
