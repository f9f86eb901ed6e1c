"""Date formats such as %m/%d/%Y: texts to moments and back, alike on every machine whatever its locale.

A format reads a text in one way only: a number next to another one has a fixed number of digits.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import lru_cache

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_FIELDS = {"Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day"} | {
    "H": "hour",
    "M": "minute",
    "S": "second",
}
"""What each directive states."""

_FIXED = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "b": "|".join(m[:3] for m in _MONTHS), "B": "|".join(_MONTHS)}

FIRST_SHORT_YEAR, LAST_SHORT_YEAR = 1969, 2068
"""The years that %y can state: 69–99 are 1969–1999, and 00–68 are 2000–2068."""


def fault_of(format: str) -> str | None:
    """Why a text is not a date format; None if it is one."""
    stated: set[str] = set()
    for letter, _ in _parts(format):
        if letter is None:
            continue
        if letter not in _FIELDS:
            return f"it has %{letter}; use %Y %y %m %b %B %d %H %M %S, and %% for a percent sign"
        if _FIELDS[letter] in stated:
            return f"it states the {_FIELDS[letter]} twice"
        stated.add(_FIELDS[letter])
    lacking = [field for field in ("year", "month", "day") if field not in stated]
    return f"it does not state the {lacking[0]}" if lacking else None


def has_short_year(format: str) -> bool:
    """Whether the year has two digits."""
    return any(letter == "y" for letter, _ in _parts(format))


def has_month_name(format: str) -> bool:
    """Whether the month is a word."""
    return any(letter in ("b", "B") for letter, _ in _parts(format))


def first_unstated(format: str) -> tuple[str, int]:
    """The largest part of the time of day that a format does not state, and the seconds between times that need no
    such part; 1 if it states all.

    >>> first_unstated("%d.%m.%Y %H:%M")
    ('second', 60)
    """
    stated = {_FIELDS[letter] for letter, _ in _parts(format) if letter is not None}
    steps = {"hour": 86_400, "minute": 3_600, "second": 60}
    return next(((field, seconds) for field, seconds in steps.items() if field not in stated), ("", 1))


def read_moment(text: str, format: str) -> datetime.datetime | None:
    """The moment that a text states; None if it is written in another way. Blanks around it are ignored.

    >>> read_moment("3/25/2020", "%m/%d/%Y"), read_moment("25.03.2020", "%m/%d/%Y")
    (datetime.datetime(2020, 3, 25, 0, 0), None)
    """
    found = _pattern(format).fullmatch(text.strip())
    if found is None:
        return None
    fields = {_FIELDS[letter]: _number(letter, part) for letter, part in found.groupdict().items()}
    try:
        return datetime.datetime(**fields)  # type: ignore[arg-type]  # year, month and day are stated
    except ValueError:  # the 31st of June
        return None


def write_moment(moment: datetime.datetime, format: str) -> str:
    """The text of a moment, numbers padded with zeros.

    >>> write_moment(datetime.datetime(2020, 3, 5), "%d %b %Y")
    '05 Mar 2020'
    """
    return "".join(literal if letter is None else _text(letter, moment) for letter, literal in _parts(format))


def _parts(format: str) -> Iterator[tuple[str | None, str]]:
    """The directives and literal characters of a format: (letter, "") or (None, character)."""
    letters = iter(format)
    for letter in letters:
        if letter != "%":
            yield None, letter
            continue
        directive = next(letters, "")
        yield (None, "%") if directive == "%" else (directive, "")


@lru_cache(maxsize=256)
def _pattern(format: str) -> re.Pattern[str]:
    parts = list(_parts(format))
    pattern = ""
    for i, (letter, literal) in enumerate(parts):
        if letter is None:
            pattern += re.escape(literal)
            continue
        among_digits = any(map(_is_numeric, (*parts[:i][-1:], *parts[i + 1 :][:1])))
        pattern += f"(?P<{letter}>{_FIXED.get(letter, '[0-9]{2}' if among_digits else '[0-9]{1,2}')})"
    return re.compile(pattern, re.IGNORECASE if has_month_name(format) else 0)


def _is_numeric(part: tuple[str | None, str]) -> bool:
    letter, literal = part
    return letter not in ("b", "B") if letter else literal.isdigit()


def _number(letter: str, text: str) -> int:
    if letter in ("b", "B"):
        return next(i for i, month in enumerate(_MONTHS, start=1) if month[:3].lower() == text[:3].lower())
    if letter == "y":
        return int(text) + (1900 if int(text) > LAST_SHORT_YEAR % 100 else 2000)
    return int(text)


def _text(letter: str, moment: datetime.datetime) -> str:
    if letter in ("b", "B"):
        month = _MONTHS[moment.month - 1]
        return month if letter == "B" else month[:3]
    if letter == "y":
        return f"{moment.year % 100:02d}"
    return f"{getattr(moment, _FIELDS[letter]):0{4 if letter == 'Y' else 2}d}"
