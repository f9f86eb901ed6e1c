"""Readings: how the texts of a table are written, by the schema. Each turns one text into one value, without the rows.

A typed value is read as it is; only texts are interpreted. A reading never raises: a text that it does not cover is
unreadable, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

Case = Literal["exact", "ignore"]

SEPARATORS = (".", ",", "'", "_", " ", "\u00a0", "\u202f")
"""Signs that may separate groups of three digits; the first two may separate decimals."""

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0"})
"""The usual words of booleans."""


class NumberText(str):
    """The text of a number that a file marks as one, as JSON does. It is no text of the table: separators are fixed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """How the texts of a column are written; the fields are named like the entries of a column in the schema.

    `thousands`, `format` and `missing_as` are empty, and `symbol`, `missing_codes` and `values` are (), unless stated.
    `missing_as` is the text of a missing value in a CSV file, and `values` holds the words for false and true.
    """

    strip: bool = False
    case: Case = "exact"
    decimal: str = "."
    thousands: str = ""
    symbol: tuple[str, ...] = ()
    format: str = ""
    missing_codes: tuple[str, ...] = ()
    missing_as: str = ""
    values: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether no option is stated."""
        return self == PLAIN

    def label_key(self, text: str) -> str:
        """A text without differences that the reading ignores: two labels with the same key are one.

        >>> Reading(strip=True, case="ignore").label_key(" Private ")
        'private'
        """
        text = text.strip() if self.strip else text
        return text.casefold() if self.case == "ignore" else text

    def code_key(self, text: str) -> str:
        """As `label_key`, for codes of missing values: blanks around these are always ignored."""
        return self.label_key(text.strip())

    def plain_number(self, text: str) -> str:
        """A text with a number in it as Python writes the number; an unreadable one becomes empty.

        >>> german = Reading(decimal=",", thousands=".", symbol=("€",))
        >>> [german.plain_number(text) for text in ("1.234,50 €", "-€7", "12.34", "1.23")]
        ['1234.50', '-7', '', '']
        """
        if not any(map(str.isdecimal, text)):
            return text  # a word such as "true" or "inf", which reads as without options
        text = _without_symbol(text.strip(), self.symbol)
        signs = {self.thousands, *((self.decimal, ".") if self.decimal != "." else ())} - {""}
        if not any(sign in text for sign in signs):
            return text
        found = _number_pattern(self.decimal, self.thousands).fullmatch(text)
        if found is None:
            return ""
        groups, decimals, exponent = found["groups"] or "", found["decimals"] or "", found["exponent"] or ""
        whole = groups.replace(self.thousands, "") if groups else found["digits"]
        if not (whole or decimals) or (groups and exponent):
            return ""
        return f"{found['sign']}{whole or '0'}.{decimals or '0'}{exponent}"

    @property
    def truths(self) -> Mapping[str, bool]:
        """The words for true and false, in lower case and without blanks around them.

        Stated words come in addition to the usual ones, unless one of them usually has the other meaning: then of the
        usual words only true and false remain.
        """
        return _truths(self.values)


PLAIN = Reading()


@lru_cache(maxsize=256)
def _truths(values: tuple[str, ...]) -> Mapping[str, bool]:
    usual = dict.fromkeys(TRUE_WORDS, True) | dict.fromkeys(FALSE_WORDS, False)
    stated = {word.strip().lower(): bool(i) for i, word in enumerate(values)}
    if any(usual.get(word, truth) != truth for word, truth in stated.items()):
        usual = {"true": True, "false": False}
    return MappingProxyType(usual | stated)


def _without_symbol(text: str, symbols: tuple[str, ...]) -> str:
    """A text without the symbol before or after its number, if it has one; a sign may come before the symbol."""
    sign, rest = (text[0], text[1:].lstrip()) if text[:1] in ("+", "-") else ("", text)
    for symbol in symbols:
        if rest.startswith(symbol):
            return sign + rest[len(symbol) :].lstrip()
        if rest.endswith(symbol):
            return text[: -len(symbol)].rstrip()
    return text


@lru_cache(maxsize=256)
def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers with these separators. Groups have three digits, but the first, which does not begin with 0."""
    groups = f"[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+" if thousands else "(?!)"
    whole = f"(?P<groups>{groups})|(?P<digits>[0-9]*)"
    decimals = f"{re.escape(decimal)}(?P<decimals>[0-9]*)"
    return re.compile(f"(?P<sign>[+-]?)(?:{whole})(?:{decimals})?(?P<exponent>[eE][+-]?[0-9]+)?")
