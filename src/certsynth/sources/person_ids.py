"""Persons by hash: each id becomes a keyed 64-bit hash, by a function of its own cell alone.

Ids are compared by what they state, not by how they are stored: 7, 7.0, "7" and " 007" are one person. To take two
persons for one never weakens privacy; to take one for two would. No id leaves this module.
docs/explanation/proofs/readers.md has the proof.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from certsynth.domain.cleaning import as_labels
from certsynth.sources.reading import objects

NOBODY = np.uint64(0)
"""The hash of a missing id: null, NaN, NaT, and texts that are empty or blank."""

UNREADABLE = np.uint64(1)
"""The hash of a value that is no id: a list, a record, bytes, or a float in which whole numbers run together."""

MAX_EXACT_FLOAT = 2.0**53
"""Largest float that is an id: beyond, distinct whole numbers are one float. Whether a column of ids is stored as
floats may depend on a single row, so that all other persons would depend on it, too."""

_NUMBER_KEY = np.uint64(0x63657274_73796E74)
_TEXT_KEY = np.uint64(0x68_70657273_6F6E73)
"""Keys of the hashes of whole numbers and texts. They are public: privacy does not depend on them, since the choice
among the rows of one person depends on no other person's rows whatever the keys are."""

_DIGITS = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PLAIN_ID, _MISSING_ID, _TYPED_ID = 0, 1, 2
"""What a text is: an id as it stands, missing, or perhaps a decimal number, a time or a truth, which can be spelt in
several ways."""


class Letters(NamedTuple):
    """Texts in UTF-8 as Arrow stores them: text i is `letters[ends[i]:ends[i + 1]]`."""

    letters: np.ndarray
    ends: np.ndarray
    absent: np.ndarray | None = None


def hash_ids(raw: np.ndarray | Letters) -> np.ndarray:
    """The hash of each id; NOBODY where it is missing, and UNREADABLE where there is no id but a value."""
    if isinstance(raw, Letters):
        return _hash_letters(raw)
    if np.ma.isMaskedArray(raw):
        there = ~np.ma.getmaskarray(raw)
        found = np.full(len(raw), NOBODY)
        found[there] = hash_ids(np.ma.getdata(raw)[there])
        return found
    if raw.dtype.kind == "b":
        return _hash_texts(["false", "true"])[raw.astype(np.int64)]
    if raw.dtype.kind in "iu":
        return _hash_whole_numbers(raw.astype(np.uint64))
    if raw.dtype.kind == "f":
        return _hash_floats(raw.astype(np.float64))
    if raw.dtype.kind in "mM":
        unique, places = np.unique(raw, return_inverse=True)
        return _hash_objects(list(_plain_times(unique)))[places]
    return _hash_objects(raw.tolist())


def _plain_times(values: np.ndarray) -> Sequence[Any]:
    """Times as texts, None where there is none, and bytes, which are unreadable, beyond the years of Python."""
    if values.dtype.kind == "m":
        return [None if np.isnat(value) else str(value) for value in values]
    labels = as_labels(values)
    return [b"" if label is None and not np.isnat(v) else label for label, v in zip(labels, values, strict=True)]


def _hash_floats(values: np.ndarray) -> np.ndarray:
    found = np.full(len(values), NOBODY)
    there = ~np.isnan(values)
    large = there & (np.abs(values) > MAX_EXACT_FLOAT)
    whole = there & ~large & (values == np.floor(values))
    found[whole] = _hash_whole_numbers(values[whole].astype(np.int64).astype(np.uint64))
    found[large] = UNREADABLE
    others = there & ~large & ~whole
    if others.any():
        unique, places = np.unique(values[others], return_inverse=True)
        found[others] = _hash_texts([text or "" for text in as_labels(unique)])[places]
    return found


def _hash_objects(values: list[Any]) -> np.ndarray:
    """Hashes of Python objects of any types. Values are not compared with each other: 1 == True."""
    kinds = set(map(type, values))
    if not kinds <= {str, type(None)}:
        values = [value if type(value) is str else _as_text(value) for value in values]
    unique = dict.fromkeys(values)
    listed = [text for text in unique if isinstance(text, str)]
    known: dict[Any, Any] = dict(zip(listed, _hash_texts(listed).tolist(), strict=True))
    known |= {None: int(NOBODY), _NO_ID: int(UNREADABLE)}
    return np.fromiter((known[value] for value in values), np.uint64, len(values))


_NO_ID = b""


def _as_text(value: Any) -> str | bytes | None:
    """A value as text; None if it is missing, and _NO_ID if it is no id.

    >>> import decimal
    >>> [_as_text(value) for value in (7, 7.0, decimal.Decimal("7.00"), True, 7.5, None, float("nan"), [7], 1e300)]
    ['7', '7', '7', 'true', '7.5', None, None, b'', b'']
    """
    if isinstance(value, str):
        return str(value)
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (float, np.floating)) and abs(float(value)) > MAX_EXACT_FLOAT:
        return _NO_ID
    if isinstance(value, (datetime.datetime, datetime.time)) and value.tzinfo is not None:
        return _in_utc(value)
    (text,) = as_labels(objects([value]))
    if text is not None:
        return text
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return None if np.isnat(value) else _NO_ID
    try:
        return None if bool(value != value) else _NO_ID  # a NaN of any type
    except Exception:
        return _NO_ID


def _in_utc(value: datetime.datetime | datetime.time) -> str:
    """An instant as the text of its time in UTC, as engines read columns of instants."""
    try:
        moment = value.astimezone(datetime.UTC).replace(tzinfo=None)  # type: ignore[union-attr]
        return as_labels(objects([moment]))[0] or str(value)
    except Exception:  # a time without a day, or before the year 1
        return str(value)


def _hash_texts(texts: Sequence[str]) -> np.ndarray:
    return _hash_letters(_letters(texts))


def _letters(texts: Sequence[str]) -> Letters:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=ends[1:])
    return Letters(np.frombuffer(b"".join(encoded), np.uint8), ends)


def _hash_letters(texts: Letters) -> np.ndarray:
    letters, ends, absent = texts
    rows = len(ends) - 1
    found, kinds = np.empty(rows, np.uint64), np.empty(rows, np.uint8)
    _hash_each(letters, ends, found, kinds)
    found[kinds == _MISSING_ID] = NOBODY
    if absent is not None:
        found[absent], kinds[absent] = NOBODY, _MISSING_ID
    typed = np.flatnonzero(kinds == _TYPED_ID)
    if len(typed):
        whole = letters.tobytes()
        spelt = [whole[ends[i] : ends[i + 1]].decode("utf-8", "surrogatepass") for i in typed.tolist()]
        usual = {text: _usual_spelling(text.strip()) for text in set(spelt)}
        listed = list(dict.fromkeys(usual.values()))
        hashes = np.empty(len(listed), np.uint64)
        _hash_each(*_letters(listed)[:2], hashes, np.empty(len(listed), np.uint8))
        known = dict(zip(listed, hashes.tolist(), strict=True))
        found[typed] = [known[usual[text]] for text in spelt]
    return found


def _usual_spelling(text: str) -> str:
    """A decimal number, a time or a truth as a typed value of it is written; any other text as it is.

    >>> [_usual_spelling(text) for text in ("7.50", "1e3", "2020-01-05T00:00", "TRUE", "1-2")]
    ['7.5', '1000', '2020-01-05', 'true', '1-2']
    """
    if text.lower() in ("true", "false"):
        return text.lower()
    if _DIGITS.fullmatch(text):  # too long for 64 bits
        sign, digits = text[0] == "-", text.lstrip("+-").lstrip("0")
        return f"-{digits}" if sign else digits
    if _DECIMAL.fullmatch(text):
        return as_labels(np.array([float(text)]))[0] or text
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return _in_utc(moment) if moment.tzinfo is not None else as_labels(objects([moment]))[0] or text


@njit(cache=True, nogil=True)
def mix_bits(x):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit integers whose results look random (the finaliser of SplitMix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _hash_of_number(value):  # type: ignore[no-untyped-def]
    return max(mix_bits(value ^ _NUMBER_KEY), np.uint64(2))  # 0 and 1 are NOBODY and UNREADABLE


@njit(cache=True, nogil=True)
def _hash_whole_numbers(values):  # type: ignore[no-untyped-def]
    """Hashes of whole numbers, given modulo 2^64."""
    found = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        found[i] = _hash_of_number(values[i])
    return found


@njit(cache=True, nogil=True)
def _hash_each(letters, ends, found, kinds):  # type: ignore[no-untyped-def]
    """Hash texts without the blanks around them. Those of digits alone are hashed as the numbers that they state."""
    for i in range(len(found)):
        start, end = ends[i], ends[i + 1]
        while start < end and _is_blank(letters[start]):
            start += 1
        while end > start and _is_blank(letters[end - 1]):
            end -= 1
        if start == end:
            found[i], kinds[i] = np.uint64(0), _MISSING_ID
            continue
        number, is_number = _whole_number(letters, start, end)
        if is_number:
            found[i], kinds[i] = _hash_of_number(number), _PLAIN_ID
            continue
        kinds[i] = _TYPED_ID if _may_be_typed(letters, start, end) else _PLAIN_ID
        state = mix_bits(_TEXT_KEY ^ np.uint64(end - start))
        at = start
        while at < end:
            word = np.uint64(0)
            for j in range(at, min(at + 8, end)):
                word = (word << np.uint64(8)) | np.uint64(letters[j])
            state = mix_bits(state ^ word)
            at += 8
        found[i] = max(state, np.uint64(2))


@njit(cache=True, nogil=True)
def _is_blank(letter):  # type: ignore[no-untyped-def]
    return letter == 32 or 9 <= letter <= 13


@njit(cache=True, nogil=True)
def _is_digit(letter):  # type: ignore[no-untyped-def]
    return 48 <= letter <= 57


@njit(cache=True, nogil=True)
def _whole_number(letters, start, end):  # type: ignore[no-untyped-def]
    """The whole number modulo 2^64 that a text of at most 20 digits states, and whether it does."""
    at = start
    negative = letters[at] == 45
    if negative or letters[at] == 43:
        at += 1
    if at == end:
        return np.uint64(0), False
    while at < end - 1 and letters[at] == 48:
        at += 1
    if end - at > 20:
        return np.uint64(0), False
    value = np.uint64(0)
    for j in range(at, end):
        if not _is_digit(letters[j]):
            return np.uint64(0), False
        value = value * np.uint64(10) + np.uint64(letters[j] - 48)
    return (np.uint64(0) - value if negative else value), True


@njit(cache=True, nogil=True)
def _may_be_typed(letters, start, end):  # type: ignore[no-untyped-def]
    """Whether a text may be a decimal number, a date or a truth; most ids are seen not to be by a letter or two."""
    rows = end - start
    if rows >= 10 and letters[start + 4] == 45 and letters[start + 7] == 45:
        dated = True
        for j in range(10):
            dated = dated and (j == 4 or j == 7 or _is_digit(letters[start + j]))
        if dated:
            return True
    if (rows == 4 and letters[start] | 32 == 116) or (rows == 5 and letters[start] | 32 == 102):
        return True
    digits = False
    for j in range(start, end):
        letter = letters[j]
        if _is_digit(letter):
            digits = True
        elif letter == 43 or letter == 45:
            if j > start and letters[j - 1] | 32 != 101:
                return False
        elif letter != 46 and letter | 32 != 101:
            return False
    return digits
