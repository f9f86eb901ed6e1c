"""Persons by number: ids that state the same get one number, exactly, and a keyed hash, each by its own cell alone.

Ids are compared by what they state, not by how they are stored: 7, 7.0, "7" and " 007" are one person. No id leaves
this module, except from executor to executor of Spark. docs/explanation/proofs/readers.md has the proof.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from certsynth.base.arrays import Ints
from certsynth.domain.cleaning import as_labels
from certsynth.sources.reading import objects

NOBODY = 0
"""The number of a missing id: null, NaN, NaT, and texts that are empty or blank."""

UNREADABLE = 1
"""The number of a value that is no id: a list, a record, bytes, or a float in which whole numbers run together."""

MAX_EXACT_FLOAT = 2.0**53
"""Largest float that is an id: beyond, distinct whole numbers are one float. Whether a column of ids is stored as
floats may depend on a single row, so that all other persons would depend on it, too."""

MAX_WHOLE_NUMBER = 2**63 - 1
"""Largest whole number that is not compared as a text of digits."""

_NUMBER_KEY = np.uint64(0x63657274_73796E74)
_TEXT_KEY = np.uint64(0x68_70657273_6F6E73)
"""Keys of the hashes of whole numbers and texts. They are public: privacy does not depend on them, since the choice
among the rows of one person depends on no other person's rows whatever the keys are."""

_DIGITS = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_IS_NUMBER = -1
"""The length of an id that is a whole number."""


class Letters(NamedTuple):
    """Texts in UTF-8 as Arrow stores them: text i is `letters[ends[i]:ends[i + 1]]`."""

    letters: np.ndarray
    ends: np.ndarray
    absent: np.ndarray | None = None


IdReader = Callable[[Any], Ints]
"""A function from raw ids to the numbers of persons: `PersonTable.number`."""


class PersonTable:
    """Ids with their numbers, from 2 on, and their hashes. An id is a whole number of 64 bits, or a text."""

    def __init__(self) -> None:
        self._slots = np.zeros(2**8, np.int64)
        self._hashes, self._values = np.zeros(2, np.uint64), np.zeros(2, np.int64)
        self._lengths = np.full(2, _IS_NUMBER, np.int64)
        self._letters = np.zeros(0, np.uint8)
        self._used = np.array([2, 0])  # ids, and letters

    def __repr__(self) -> str:
        return "PersonTable(<private>)"

    def __len__(self) -> int:
        """The numbers that were given, including those of missing and of unreadable ids."""
        return int(self._used[0])

    @property
    def hashes(self) -> np.ndarray:
        """The hash of each number."""
        return self._hashes[: len(self)]

    @property
    def size(self) -> int:
        """Bytes of memory for the ids: each has its letters, three numbers and, on average, three slots."""
        return 48 * len(self) + int(self._used[1])

    def texts(self) -> list[str]:
        """The ids as texts by their numbers."""
        whole, texts = self._letters.tobytes(), ["", ""]
        for value, length in zip(self._values[2 : len(self)].tolist(), self._lengths[2:].tolist(), strict=False):
            here = whole[value : value + max(length, 0)]
            texts.append(str(value) if length == _IS_NUMBER else here.decode("utf-8", "surrogatepass"))
        return texts

    def number(self, raw: np.ndarray | Letters) -> Ints:
        """The number of each id; NOBODY where it is missing, and UNREADABLE where there is no id but a value."""
        if isinstance(raw, Letters):
            return self._number_letters(raw)
        if np.ma.isMaskedArray(raw):
            there = ~np.ma.getmaskarray(raw)
            found = np.full(len(raw), NOBODY)
            found[there] = self.number(np.ma.getdata(raw)[there])
            return found
        if raw.dtype.kind == "b":
            return self._number_texts(["false", "true"])[raw.astype(np.int64)]
        if raw.dtype.kind == "u" and raw.dtype.itemsize == 8 and (raw > MAX_WHOLE_NUMBER).any():
            return self._number_objects(raw.tolist())
        if raw.dtype.kind in "iu":
            return self._number_whole(raw.astype(np.int64))
        if raw.dtype.kind == "f":
            return self._number_floats(raw.astype(np.float64))
        if raw.dtype.kind in "mM":
            unique, places = np.unique(raw, return_inverse=True)
            return self._number_objects(list(_plain_times(unique)))[places]
        return self._number_objects(raw.tolist())

    def _number_whole(self, values: Ints) -> Ints:
        found = np.empty(len(values), np.int64)
        self._make_room(len(values), 0)
        _number_each_whole(values, found, *self._state())
        return found

    def _number_floats(self, values: np.ndarray) -> Ints:
        found = np.full(len(values), NOBODY)
        there = ~np.isnan(values)
        large = there & (np.abs(values) > MAX_EXACT_FLOAT)
        whole = there & ~large & (values == np.floor(values))
        found[whole] = self._number_whole(values[whole].astype(np.int64))
        found[large] = UNREADABLE
        others = there & ~large & ~whole
        if others.any():
            unique, places = np.unique(values[others], return_inverse=True)
            found[others] = self._number_texts([text or "" for text in as_labels(unique)])[places]
        return found

    def _number_objects(self, values: list[Any]) -> Ints:
        """Numbers of Python objects of any types. Values are not compared with each other: 1 == True."""
        if not set(map(type, values)) <= {str, type(None)}:
            values = [value if type(value) is str else _as_text(value) for value in values]
        listed = [text for text in dict.fromkeys(values) if isinstance(text, str)]
        known: dict[Any, Any] = dict(zip(listed, self._number_texts(listed).tolist(), strict=True))
        known |= {None: NOBODY, _NO_ID: UNREADABLE}
        return np.fromiter((known[value] for value in values), np.int64, len(values))

    def _number_texts(self, texts: Sequence[str]) -> Ints:
        return self._number_letters(_letters(texts))

    def _number_letters(self, texts: Letters, *, usual: bool = False) -> Ints:
        """Numbers of texts; `usual` says that all have their usual spelling."""
        letters, ends, absent = texts
        rows = len(ends) - 1
        found, typed = np.empty(rows, np.int64), np.zeros(rows, bool)
        self._make_room(rows, int(ends[-1] - ends[0]))
        missing = np.zeros(rows, bool) if absent is None else absent
        _number_each_text(letters, ends, missing, usual, found, typed, *self._state())
        spelt_freely = np.flatnonzero(typed)
        if len(spelt_freely):
            whole = letters.tobytes()
            spelt = [whole[ends[i] : ends[i + 1]].decode("utf-8", "surrogatepass") for i in spelt_freely.tolist()]
            spelling = {text: _usual_spelling(text.strip()) for text in set(spelt)}
            listed = list(dict.fromkeys(spelling.values()))
            known = dict(zip(listed, self._number_letters(_letters(listed), usual=True).tolist(), strict=True))
            found[spelt_freely] = [known[spelling[text]] for text in spelt]
        return found

    def _state(self) -> tuple[np.ndarray, ...]:
        return self._slots, self._hashes, self._values, self._lengths, self._letters, self._used

    def _make_room(self, ids: int, letters: int) -> None:
        """Let the arrays have room for more ids, and texts of so many letters."""
        ids, letters = ids + int(self._used[0]), letters + int(self._used[1])
        if ids > len(self._hashes):
            size = max(ids, 3 * len(self._hashes) // 2)
            self._hashes = np.resize(self._hashes, size)
            self._values, self._lengths = np.resize(self._values, size), np.resize(self._lengths, size)
        if letters > len(self._letters):
            grown = np.zeros(max(letters, 3 * len(self._letters) // 2), np.uint8)
            grown[: len(self._letters)] = self._letters
            self._letters = grown
        if 2 * ids > len(self._slots):
            self._slots = np.zeros(1 << (2 * ids - 1).bit_length(), np.int64)
            _fill_slots(self._slots, self._hashes[: len(self)])


def hash_ids(raw: np.ndarray | Letters) -> np.ndarray:
    """The hash of each id; those of missing and of unreadable ones are their numbers."""
    table = PersonTable()
    found = table.number(raw)
    return np.where(found > UNREADABLE, table.hashes[found], found.astype(np.uint64))


def _plain_times(values: np.ndarray) -> Sequence[Any]:
    """Times as texts, None where there is none, and bytes, which are unreadable, beyond the years of Python."""
    if values.dtype.kind == "m":
        return [None if np.isnat(value) else str(value) for value in values]
    labels = as_labels(values)
    return [b"" if label is None and not np.isnat(v) else label for label, v in zip(labels, values, strict=True)]


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


def _letters(texts: Sequence[str]) -> Letters:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=ends[1:])
    return Letters(np.frombuffer(b"".join(encoded), np.uint8), ends)


def _usual_spelling(text: str) -> str:
    """A decimal number, a time or a truth as a typed value of it is written; any other text as it is.

    >>> [_usual_spelling(text) for text in ("7.50", "1e3", "2020-01-05T00:00", "TRUE", "1-2")]
    ['7.5', '1000', '2020-01-05', 'true', '1-2']
    """
    if text.lower() in ("true", "false"):
        return text.lower()
    if _DIGITS.fullmatch(text):  # beyond 64 bits
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
def _fill_slots(slots, hashes):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(slots) - 1)
    for number in range(2, len(hashes)):
        at = hashes[number] & mask
        while slots[at]:
            at = (at + np.uint64(1)) & mask
        slots[at] = number


@njit(cache=True, nogil=True)
def _number_whole_number(value, slots, hashes, values, lengths, letters, used):  # type: ignore[no-untyped-def]
    """The number of an id that is a whole number: that of an equal id, or a new one."""
    found = mix_bits(np.uint64(value) ^ _NUMBER_KEY)
    mask = np.uint64(len(slots) - 1)
    at = found & mask
    while slots[at]:
        number = slots[at]
        if lengths[number] == _IS_NUMBER and values[number] == value:
            return number
        at = (at + np.uint64(1)) & mask
    number = used[0]
    used[0] += 1
    slots[at], hashes[number], values[number], lengths[number] = number, found, value, _IS_NUMBER
    return number


@njit(cache=True, nogil=True)
def _number_text(text, slots, hashes, values, lengths, letters, used):  # type: ignore[no-untyped-def]
    """As `_number_whole_number`, for the letters of a text."""
    size = len(text)
    found = mix_bits(_TEXT_KEY ^ np.uint64(size))
    for start in range(0, size, 8):
        word = np.uint64(0)
        for j in range(start, min(start + 8, size)):
            word = (word << np.uint64(8)) | np.uint64(text[j])
        found = mix_bits(found ^ word)
    mask = np.uint64(len(slots) - 1)
    at = found & mask
    while slots[at]:
        number = slots[at]
        if hashes[number] == found and lengths[number] == size:
            first, same = values[number], True
            for j in range(size):
                same = same and letters[first + j] == text[j]
            if same:
                return number
        at = (at + np.uint64(1)) & mask
    number, first = used[0], used[1]
    used[0] += 1
    used[1] += size
    letters[first : first + size] = text
    slots[at], hashes[number], values[number], lengths[number] = number, found, first, size
    return number


@njit(cache=True, nogil=True)
def _number_each_whole(  # type: ignore[no-untyped-def]
    each, found, slots, hashes, values, lengths, letters, used
):
    for i in range(len(each)):
        found[i] = _number_whole_number(each[i], slots, hashes, values, lengths, letters, used)


@njit(cache=True, nogil=True)
def _number_each_text(  # type: ignore[no-untyped-def]
    texts, ends, missing, usual, found, typed, slots, hashes, values, lengths, letters, used
):
    """Number texts without the blanks around them, those of digits alone as the numbers that they state. Texts that can
    be spelt in other ways are `typed`, and left for later."""
    for i in range(len(found)):
        start, end = ends[i], ends[i + 1]
        while start < end and _is_blank(texts[start]):
            start += 1
        while end > start and _is_blank(texts[end - 1]):
            end -= 1
        if start == end or missing[i]:
            found[i] = NOBODY
            continue
        number, is_number = _whole_number(texts, start, end)
        if is_number:
            found[i] = _number_whole_number(number, slots, hashes, values, lengths, letters, used)
        elif not usual and _may_be_typed(texts, start, end):
            typed[i] = True
        else:
            found[i] = _number_text(texts[start:end], slots, hashes, values, lengths, letters, used)


@njit(cache=True, nogil=True)
def _is_blank(letter):  # type: ignore[no-untyped-def]
    return letter == 32 or 9 <= letter <= 13


@njit(cache=True, nogil=True)
def _is_digit(letter):  # type: ignore[no-untyped-def]
    return 48 <= letter <= 57


@njit(cache=True, nogil=True)
def _whole_number(letters, start, end):  # type: ignore[no-untyped-def]
    """The whole number of 64 bits that a text of digits states, and whether it does."""
    at = start
    negative = letters[at] == 45
    if negative or letters[at] == 43:
        at += 1
    if at == end:
        return np.int64(0), False
    while at < end - 1 and letters[at] == 48:
        at += 1
    if end - at > 19:
        return np.int64(0), False
    value = np.uint64(0)
    for j in range(at, end):
        if not _is_digit(letters[j]):
            return np.int64(0), False
        value = value * np.uint64(10) + np.uint64(letters[j] - 48)
    if value > np.uint64(MAX_WHOLE_NUMBER):
        return np.int64(-MAX_WHOLE_NUMBER - 1), negative and value == np.uint64(MAX_WHOLE_NUMBER) + np.uint64(1)
    return (-np.int64(value) if negative else np.int64(value)), True


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
