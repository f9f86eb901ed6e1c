"""Formatting of numbers and names: four significant digits, two for margins, and bounds never rounded down."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from fractions import Fraction

SIGNIFICANT_DIGITS = 4
"""Digits of a rounded number: a change of its last digit is below 0.1%."""

MARGIN_DIGITS = 2
"""Digits of the number after "±": a margin is rounded up, by at most a tenth of itself."""

MAX_NAME_CHARACTERS = 120
"""Characters of a name or label: about three lines of a card. Longer ones are cut, so that a page stays small."""

_MAX_EXPONENT = 15  # from 10^15, and below 10^-4, numbers are shown as powers of ten
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STORED_NUMBER = re.compile(r"\d{1,200}(\.\d{1,40}|/[1-9]\d{0,200})?", re.ASCII)
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def figure(value: float) -> str:
    """Round a number to the nearest with four significant digits, keeping all digits before the point.

    Rounding to twelve digits first makes ties independent of rounding errors in `value`.

    >>> figure(0.0625000001), figure(43.21987), figure(-27643.4), figure(0), figure(2.5e-7)
    ('0.06250', '43.22', '−27,643', '0', '2.500 × 10⁻⁷')
    """
    return _rounded(Decimal(f"{value:.12g}"), ROUND_HALF_UP)


def margin(value: float) -> str:
    """Format the number after "±" with two significant digits, never below the number.

    >>> margin(0.02763), margin(2643.2), margin(1.0), margin(99.1), margin(0.0), margin(2.41e-7)
    ('0.028', '2,700', '1.0', '100', '0', '2.5 × 10⁻⁷')
    """
    return _margin(Decimal(repr(float(value))))


def margin_points(share: float) -> str:
    """Format a margin of a share in percentage points, at most 100.

    >>> margin_points(0.01081), margin_points(0.994), margin_points(3.0)
    ('1.1', '100', '100')
    """
    return _margin(Decimal(repr(min(1.0, float(share)))) * 100)


def around(value: float, off: float) -> tuple[str, str]:
    """Format a number as `figure` does, and as a margin how far from that figure anything within `off` of the number
    can be.

    >>> around(42.8123, 0.4), around(0.5, 0.25)
    (('42.81', '0.41'), ('0.5000', '0.25'))
    """
    exact = Decimal(f"{value:.12g}")
    shown = _quantized(exact, ROUND_HALF_UP) if exact else exact
    return figure(value), _margin(Decimal(repr(float(off))) + abs(shown - exact))


def upward(value: float) -> str:
    """Format a bound as `figure` does, but never below the number.

    >>> upward(0.02498901), upward(1.0), upward(0.0), upward(0.99999)
    ('0.02499', '1', '0', '1')
    """
    return _rounded(Decimal(repr(float(value))), ROUND_CEILING)


def short(value: float) -> str:
    """Format a bound briefly: two decimals, three if it is below 0.1, and never below the number.

    >>> short(0.1816), short(0.02498), short(0.00001), short(1.0)
    ('0.19', '0.025', '0.001', '1')
    """
    exact = Decimal(repr(float(value)))
    if exact >= 1:
        return "1"
    return f"{exact.quantize(Decimal('0.01' if exact >= Decimal('0.1') else '0.001'), ROUND_CEILING):g}"


def downward(value: float) -> str:
    """Format a number as `figure` does, but never above it.

    >>> downward(0.0249899), downward(-3.00001)
    ('0.02498', '−3.001')
    """
    return _rounded(Decimal(repr(float(value))), ROUND_FLOOR)


def plain(value: float) -> str:
    """Format a number of the schema with exactly its own digits.

    >>> plain(150000.0), plain(-0.5), plain(9920), plain(1e300)
    ('150,000', '−0.5', '9,920', '1 × 10³⁰⁰')
    """
    exact = Decimal(repr(value)).normalize()
    if exact and not -SIGNIFICANT_DIGITS <= exact.adjusted() < _MAX_EXPONENT:
        return _power(exact)
    return f"{exact:,f}".replace("-", "−")


def count(value: int) -> str:
    return f"{value:,}"


def confidence(value: float) -> str:
    """Format the confidence of a certificate, never rounded up.

    >>> confidence(0.95), confidence(0.964), confidence(0.999999)
    ('95%', '96.4%', '99.99%')
    """
    return f"{_quantized(Decimal(repr(float(value))) * 100, ROUND_FLOOR).normalize():f}%"


def points(value: float) -> str:
    """Format a bound on a share in percentage points, at most 100.

    >>> points(0.0249890)
    '2.499'
    """
    return _rounded(Decimal(repr(min(1.0, float(value)))) * 100, ROUND_CEILING)


def share(part: int, whole: int) -> str:
    """Format a share in percent to one decimal.

    >>> share(1, 3), share(0, 5), share(1, 10_000), share(5, 5)
    ('33.3%', '0%', '<0.1%', '100%')
    """
    if part in (0, whole):
        return "100%" if part else "0%"
    rounded = (Decimal(100 * part) / whole).quantize(Decimal("0.1"), ROUND_HALF_UP)
    return f"{rounded}%" if rounded else "<0.1%"


def share_around(part: int, whole: int, off: float) -> tuple[str, str]:
    """Format a share as `share` does, and by how many percentage points anything within `off` of the share can differ
    from that figure.

    >>> share_around(1, 3, 0.01), share_around(0, 5, 0.01), share_around(1, 10_000, 0.01)
    (('33.3%', '1.1'), ('0%', '1.0'), ('<0.1%', '1.1'))
    """
    text, exact = share(part, whole), 100 * Fraction(part, max(whole, 1))
    ends = (Fraction(0), Fraction(1, 10)) if text[0] == "<" else (Fraction(text.rstrip("%")),)
    gap = max(abs(end - exact) for end in ends)
    points = min(Fraction(repr(float(off))) * 100 + gap, Fraction(100))
    return text, _margin(Decimal(-(-points.numerator * 10**12 // points.denominator)).scaleb(-12))


def outward(value: float, *, up: bool) -> str:
    """Format an end of a range of shares in percent, rounded outward to one decimal.

    >>> outward(0.12345, up=True), outward(0.12345, up=False), outward(1.0, up=True)
    ('12.4%', '12.3%', '100%')
    """
    rounded = (Decimal(repr(float(value))) * 100).quantize(Decimal("0.1"), ROUND_CEILING if up else ROUND_FLOOR)
    return f"{rounded.normalize():f}%"


def odds(epsilon: Fraction) -> str:
    """Format e to the power ε, rounded up.

    >>> odds(Fraction(1)), odds(Fraction(1000))
    ('2.719', '1.971 × 10⁴³⁴')
    """
    power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).next_plus().exp().next_plus()
    return _rounded(power, ROUND_CEILING)


def chance(value: Fraction) -> str:
    """Format a small probability as "1 in n", rounded up.

    >>> chance(Fraction(1, 10**6)), chance(Fraction(3, 1000))
    ('1 in 1,000,000', '1 in 333')
    """
    return f"1 in {value.denominator // value.numerator:,}"


def step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is at least `least`: the step of an axis.

    >>> step(0.07), step(3), step(20)
    (0.1, 5.0, 20.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 2.5, 5, 10) if times * power >= least * (1 - 1e-12))


def text(value: object, *, most: int = MAX_NAME_CHARACTERS) -> str:
    """Shorten a name or label to `most` characters and replace characters that could reorder or hide text.

    >>> text("a" * 9, most=5), text("a\\u202eb\\x00")
    ('aaaa…', 'a\\ufffdb\\ufffd')
    """
    shown = str(value)
    if len(shown) > most:
        shown = shown[: most - 1] + "…"
    return "".join("\ufffd" if c in _BIDI or unicodedata.category(c) in ("Cc", "Cs") else c for c in shown)


def _rounded(value: Decimal, rounding: str) -> str:
    if not value:
        return "0"
    near = _quantized(value, rounding)
    if near == near.to_integral_value() and abs(near) == 1:
        return f"{near:.0f}".replace("-", "−")
    if not -SIGNIFICANT_DIGITS <= near.adjusted() < _MAX_EXPONENT:
        return _power(near)
    return f"{near:,f}".replace("-", "−")


def _quantized(value: Decimal, rounding: str) -> Decimal:
    """Round `value` to four significant digits; below 10^15, digits before the point are all kept."""
    for _ in range(2):  # 9.99996 becomes 10.0000 and then 10.00
        last = value.adjusted() - (SIGNIFICANT_DIGITS - 1)
        if value.adjusted() < _MAX_EXPONENT:
            last = min(last, 0)
        value = value.quantize(Decimal(1).scaleb(last), rounding)
    return value


def _margin(value: Decimal) -> str:
    """Round `value` up to two significant digits, before the point as well."""
    if not value:
        return "0"
    for _ in range(2):  # 0.0996 becomes 0.100 and then 0.10
        value = value.quantize(Decimal(1).scaleb(value.adjusted() - (MARGIN_DIGITS - 1)), ROUND_CEILING)
    if not -SIGNIFICANT_DIGITS <= value.adjusted() < _MAX_EXPONENT:
        return _power(value)
    return f"{value:,f}"


def _power(value: Decimal) -> str:
    exponent = value.adjusted()
    return f"{value.scaleb(-exponent):f} × 10{str(exponent).translate(_SUPERSCRIPTS)}".replace("-", "−")


def rational(text: str) -> Fraction:
    """Read a number as a release stores it: a decimal or a fraction, of limited length.

    >>> rational("0.25"), rational("19/20")
    (Fraction(1, 4), Fraction(19, 20))
    """
    if not _STORED_NUMBER.fullmatch(text):
        raise ValueError("not a stored number")
    return Fraction(text)
