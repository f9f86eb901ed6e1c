"""Persons by number: each id of the column that names persons gets a number and a keyed hash, exactly and once.

Ids are compared as texts, so that a table gives the same persons whether its ids are stored as texts or as numbers. No
id leaves this module.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from certsynth.base.arrays import Ints

KEY = b"certsynth rows of a person 1"
"""Key of the hash by which rows of a person are chosen. It is public: privacy does not depend on it, since the choice
among the rows of one person depends on no other person's rows whatever the key is."""

NOBODY = -1
"""The number of a missing id."""


@dataclass(slots=True, eq=False, repr=False)
class PersonIds:
    """The numbers of persons in the order in which they were first seen, and a hash for each."""

    _numbers: dict[str, int] = field(default_factory=dict)
    _hashes: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        return "PersonIds(<private>)"

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def hashes(self) -> np.ndarray:
        return np.array(self._hashes, dtype=np.uint64)

    def number(self, raw: np.ndarray) -> Ints:
        """The numbers of the persons of a raw column; NOBODY where the id is missing."""
        mask = np.ma.getmaskarray(raw)
        values = np.ma.getdata(raw)
        if values.dtype.kind == "O":
            found = np.fromiter((self._number_of(value) for value in values), np.int64, len(values))
        else:
            unique, places = np.unique(values, return_inverse=True)
            found = np.fromiter((self._number_of(value) for value in unique.tolist()), np.int64, len(unique))[places]
        found[mask] = NOBODY
        return found

    def add_separate(self, count: int) -> Ints:
        """The numbers of new persons without an id, whose hashes are their numbers' order: each has a single row."""
        first = len(self._hashes)
        self._hashes.extend([0] * count)
        return np.arange(first, first + count)

    def _number_of(self, value: Any) -> int:
        text = value if type(value) is str else _as_text(value)
        if not text:
            return NOBODY
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._hashes)
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=KEY, digest_size=8).digest()
            self._hashes.append(int.from_bytes(digest, "little"))
        return number


def _as_text(value: Any) -> str:
    """An id as text, alike for texts and numbers that are written alike; empty if it is missing.

    >>> [_as_text(value) for value in (7, 7.0, Decimal("7.00"), "7", 7.5, None, float("nan"))]
    ['7', '7', '7', '7', '7.5', '', '']
    """
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, Decimal):
        if value.is_nan():
            return ""
        return format(value.normalize(), "f")
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
