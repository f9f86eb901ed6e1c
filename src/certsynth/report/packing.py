"""Answers as a dense text, about four characters each, which the script of the page reads.

An answer is three numbers with the same decimals: the estimate, and how far the ends are below and above it. Each is
written as its difference from the last answer with as many decimals, in digits of which the first ones end a number.
Compressed bytes would be shorter, but differ between versions of a compressor: the same release gives the same page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MORE_DECIMALS, FEWER_DECIMALS, NOTHING, NONE, TEXTS, BETWEEN, END = "+", "-", "!", ".", "=", "|", ";"
"""Signs before an answer: it has one more decimal than the last, or one fewer; it says nothing; there is none; it is
three texts, with signs between them and after them."""

_ESCAPED = "\"\\<>&'"  # in the JSON of a page
_SIGNS = MORE_DECIMALS + FEWER_DECIMALS + NOTHING + NONE + TEXTS + END
DIGITS = "".join(letter for letter in map(chr, range(33, 127)) if letter not in _ESCAPED + _SIGNS)
"""Digits: a number ends with one of the first LAST_DIGITS, and one of the others says that it goes on."""

LAST_DIGITS = 54
_FURTHER_DIGITS = len(DIGITS) - LAST_DIGITS
_MAX_DIGITS = 15  # of numbers that a script adds without rounding


@dataclass(frozen=True, slots=True)
class Numbers:
    """Estimate and distances of the ends, in units of the last decimal. `nothing`: the interval holds all values."""

    decimals: int
    estimate: int
    below: int
    above: int
    nothing: bool = False


@dataclass(frozen=True, slots=True)
class Texts:
    """Estimate, low and high, of which some are not plain numbers."""

    texts: tuple[str, ...]
    nothing: bool = False


def packable(shown: Sequence[str], *, nothing: bool = False) -> Numbers | Texts:
    """Estimate, low and high as they are written.

    >>> packable(["12.3", "10.5", "14.2"])
    Numbers(decimals=1, estimate=123, below=18, above=19, nothing=False)
    >>> packable(["2020-01-02", "2020-01-01", "2020-01-04"]).texts[1]
    '2020-01-01'
    """
    decimals = {len(each.partition(".")[2]) for each in shown}
    digits = [each.replace(".", "") for each in shown]
    if len(decimals) > 1 or not all(map(_is_plain, digits)):
        return Texts(tuple(shown), nothing)
    estimate, low, high = map(int, digits)
    return Numbers(decimals.pop(), estimate, estimate - low, high - estimate, nothing)


def _is_plain(digits: str) -> bool:
    """Whether digits are those of a whole number that is not too large; a zero with a sign is a text."""
    return digits.removeprefix("-").isdecimal() and len(digits) < _MAX_DIGITS and (digits[0] != "-" or int(digits) != 0)


def pack(answers: Iterable[Numbers | Texts | None]) -> str:
    """Answers in their order; None is one that does not exist.

    >>> pack([Numbers(0, 3, 1, 2), None, Numbers(0, 3, 1, 1), Texts(("a", "b", "c"))])
    ',%).##$=a|b|c;'
    """
    parts: list[str] = []
    before: dict[int, tuple[int, int, int]] = {}
    decimals = 0
    for each in answers:
        if each is None:
            parts.append(NONE)
            continue
        if each.nothing:
            parts.append(NOTHING)
        if isinstance(each, Texts):
            parts.append(f"{TEXTS}{BETWEEN.join(each.texts)}{END}")
            continue
        if each.decimals != decimals:
            sign = MORE_DECIMALS if each.decimals > decimals else FEWER_DECIMALS
            parts.append(sign * abs(each.decimals - decimals))
            decimals = each.decimals
        new = each.estimate, each.below, each.above
        for number, last in zip(new, before.get(decimals, (0, 0, 0)), strict=True):
            parts.append(_digits(2 * (number - last) if number >= last else 2 * (last - number) - 1))
        before[decimals] = new
    return "".join(parts)


def _digits(number: int) -> str:
    """A number from 0 in digits: the first is added to the number that the others make, times _FURTHER_DIGITS.

    >>> len(_digits(53)), len(_digits(54)), len(_digits(1_565)), len(_digits(1_566))
    (1, 2, 2, 3)
    """
    found = ""
    while number >= LAST_DIGITS:
        number, more = divmod(number - LAST_DIGITS, _FURTHER_DIGITS)
        found += DIGITS[LAST_DIGITS + more]
    return found + DIGITS[number]
