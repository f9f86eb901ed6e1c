"""Outcomes: what becomes of each raw value of a column when the schema reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from certsynth.base.arrays import Floats
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.cleaning import Raw, as_days, as_labels, as_numbers
from certsynth.domain.reading import Reading


class Outcome(IntEnum):
    """What a value becomes. A clipped value becomes the nearest bound, and a rounded one the nearest value."""

    FITS = 0
    ROUNDED = 1
    MISSING = 2
    BELOW = 3
    ABOVE = 4
    UNLISTED = 5
    UNREADABLE = 6


MISFITS = (Outcome.BELOW, Outcome.ABOVE, Outcome.UNLISTED, Outcome.UNREADABLE)
"""Outcomes of values that the column has no place for, except missing ones."""

TIMES: tuple[str, ...] = ("date", "datetime")
"""Kinds of columns whose values are dates, with or without a time of day."""

Outcomes = NDArray[np.int8]


def outcomes(column: Column, raw: Raw) -> Outcomes:
    """What becomes of each raw value.

    >>> age = Ordered("age", low=0, high=99)
    >>> [Outcome(found).name for found in outcomes(age, np.array(["7", "7.5", "120", "seven", ""], dtype=object))]
    ['FITS', 'ROUNDED', 'ABOVE', 'UNREADABLE', 'MISSING']
    """
    if isinstance(column, Ordered) and column.kind != "ordinal":
        return _outcomes_of_figures(column, raw)
    return _outcomes_of_labels(column, raw)


def figures_as_read(column: Ordered, raw: Raw, reading: Reading | None = None) -> Floats:
    """The numbers or days that values are read as, before they are rounded or clipped; NaN if absent."""
    read = as_days if column.kind in TIMES else as_numbers
    return read(raw, column.reading if reading is None else reading)


def _outcomes_of_figures(column: Ordered, raw: Raw) -> Outcomes:
    values = figures_as_read(column, raw)
    found = np.zeros(len(values), np.int8)
    found[values < column.low] = Outcome.BELOW
    found[values > column.high] = Outcome.ABOVE
    if column.last_index is not None and column.kind in ("integer", "number"):
        inside = np.flatnonzero((values >= column.low) & (values <= column.high))
        found[inside[column.nearest(values[inside]) != values[inside]]] = Outcome.ROUNDED
    absent = np.flatnonzero(np.isnan(values))
    if len(absent):
        found[absent] = np.where(_are_missing(column, raw[absent]), Outcome.MISSING, Outcome.UNREADABLE)
    return found


def _are_missing(column: Ordered, raw: Raw) -> np.ndarray:
    """Which of the absent values are missing, or codes for missing values, rather than unreadable."""
    key = column.reading.code_key
    codes = {key(code) for code in column.reading.missing_codes}
    missing = np.array([text is None or not text.strip() or key(text) in codes for text in as_labels(raw)], dtype=bool)
    if codes:  # -9.0 is the code "-9"
        missing |= ~np.isnan(figures_as_read(column, raw, replace(column.reading, missing_codes=(), missing_as="")))
    return missing


def _outcomes_of_labels(column: Column, raw: Raw) -> Outcomes:
    reading = column.reading
    if isinstance(column, Category) and column.kind == "boolean":
        codes = {code.lower() for code in reading.missing_codes}
        words = {*reading.truths} - codes
        texts: Iterable[str | None] = [None if text is None else text.strip().lower() for text in as_labels(raw)]
        return _listed([None if text in codes else text for text in texts], words)
    return _listed(as_labels(raw, reading), set(column.listed_texts))


def _listed(texts: Iterable[str | None], known: set[str]) -> Outcomes:
    found = [Outcome.FITS if text in known else Outcome.UNLISTED if text else Outcome.MISSING for text in texts]
    return np.array(found, dtype=np.int8)
