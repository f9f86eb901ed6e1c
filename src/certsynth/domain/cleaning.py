"""Cleaning: raw values to numbers, dates, times and labels, by total functions that never raise.

Every engine that reads rows passes its columns to these functions, so that the rules are the same everywhere: a typed
value reads as its text in a CSV file would. A value that does not fit the column is *absent* (`NaN`, `None`), as a
missing one is; the column decides what absent means.

A `Reading` says how texts are written. Typed numbers, dates and booleans are read as they are, whatever the reading
says about texts; codes of missing values are absent in any type.
"""

from __future__ import annotations

import datetime
import math
import numbers
import uuid
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certsynth.base.arrays import Floats
from certsynth.base.clock import CLOCKS, DAYS, Clock
from certsynth.domain.date_format import read_moment
from certsynth.domain.reading import PLAIN, NumberText, Reading

Raw = NDArray[Any]
"""One column of raw values: any dtype, masked or not."""

_TRUTH = {"true": 1.0, "false": 0.0}
_WHOLE_DAYS = ("Y", "M", "W", "D")


def as_numbers(raw: Raw, reading: Reading = PLAIN) -> Floats:
    """Each value as a float; NaN if absent. A value reads as its text does: true is 1.

    >>> as_numbers(np.array(["3", " 4.5 ", "", "x", None, "1e999", True, "true"], dtype=object)).tolist()
    [3.0, 4.5, nan, nan, nan, inf, 1.0, 1.0]
    >>> german = Reading(decimal=",", thousands=".", missing_codes=("-9",))
    >>> as_numbers(np.array(["1.250,5", 1250.5, "-9", -9.0], dtype=object), german).tolist()
    [1250.5, 1250.5, nan, nan]
    """
    found = _numbers(raw, reading)
    for code in figures_of_codes("number", reading):
        found[found == code] = np.nan
    return found


def _numbers(raw: Raw, reading: Reading) -> Floats:
    if raw.dtype.kind in "biuf":
        found = np.array(np.ma.getdata(raw), dtype=float)
        if np.ma.is_masked(raw):
            found[np.ma.getmaskarray(raw)] = np.nan
        return found
    if raw.dtype.kind in "mM":
        return np.full(len(raw), np.nan)
    values = _objects(raw)
    if reading.decimal != "." or reading.thousands or reading.symbol:
        known = {value: reading.plain_number(value) for value in set(filter(_is_text, values))}
        values = [known[value] if _is_text(value) else value for value in values]
    if set(map(type, values)) == {str}:
        with suppress(ValueError):  # all or none: one by one takes five times as long
            return np.fromiter((float(text or "nan") for text in values), float, len(raw))
    return np.fromiter((_number(value) for value in values), float, len(raw))


def as_days(raw: Raw, reading: Reading = PLAIN) -> Floats:
    """Each value as days since 1970-01-01; NaN if absent. Times of day are dropped.

    >>> as_days(np.array(["1970-01-02", "1970-01-03 10:00", 19700105, "soon", None], dtype=object)).tolist()
    [1.0, 2.0, 4.0, nan, nan]
    """
    return as_moments(raw, DAYS, reading)


def as_moments(raw: Raw, clock: Clock, reading: Reading = PLAIN) -> Floats:
    """Each value as ticks of a clock since 1970-01-01; NaN if absent. The rest of a tick is dropped.

    Time is wall-clock time: of a value with a time zone or an offset from UTC, that is the time it shows.

    >>> from certsynth.base.clock import SECONDS
    >>> written = ["1970-01-01T00:01:40.7Z", "1970-01-02", 19700102, "1970-01-02 soon", None]
    >>> as_moments(np.array(written, dtype=object), SECONDS).tolist()
    [100.0, 86400.0, 86400.0, nan, nan]
    """
    found = _moments(raw, clock, reading.format)
    for code in figures_of_codes(clock.kind, reading):
        # Some engines clamp to the years that Python supports; moments beyond must not be told apart from the ends.
        found[np.clip(found, *clock.ends) == code] = np.nan
    return found


def _moments(raw: Raw, clock: Clock, format: str) -> Floats:
    if raw.dtype.kind == "M":
        plain = np.ma.filled(raw, np.datetime64("NaT"))
        if np.datetime_data(plain.dtype)[0] in _WHOLE_DAYS:  # the seconds of distant days do not fit into an integer
            ticks = plain.astype(DAYS.dtype).astype(float) * (DAYS.seconds // clock.seconds)
        else:
            ticks = plain.astype(clock.dtype).astype(float)
        return np.where(np.isnat(plain), np.nan, ticks)
    values = _objects(raw)
    if not format:
        return np.fromiter((_tick(value, clock) for value in values), float, len(raw))
    known = {value: _tick_of_text(value, clock, format) for value in set(filter(_is_text, values))}
    found = (known[value] if _is_text(value) else _tick(value, clock, format) for value in values)
    return np.fromiter(found, float, len(raw))


def as_labels(raw: Raw, reading: Reading = PLAIN) -> list[str | None]:
    """Each value as text; None if absent. With a reading, as the key of its label.

    A value reads the same whichever engine delivers it: whole numbers lose their decimal point, midnights their time.

    >>> as_labels(np.array([1.0, 2.5, np.nan]))
    ['1', '2.5', None]
    >>> as_labels(np.array(["1970-01-02"], dtype="datetime64[us]"))
    ['1970-01-02']
    """
    labels = [_label(value) for value in _objects(raw)]
    if reading.is_plain:
        return labels
    codes = {reading.code_key(code) for code in reading.missing_codes}
    known: dict[str | None, str | None] = {None: None}
    for text in {label for label in labels if label is not None}:
        known[text] = None if reading.code_key(text) in codes else reading.label_key(text)
    return [known[label] for label in labels]


def as_truths(raw: Raw, reading: Reading = PLAIN) -> list[str | None]:
    """Each value as "true" or "false"; None if it is neither."""
    words: dict[str, str | None] = {word: "true" if truth else "false" for word, truth in reading.truths.items()}
    words |= {code.lower(): None for code in reading.missing_codes}
    return [words.get((_label(value) or "").strip().lower()) for value in _objects(raw)]


@lru_cache(maxsize=256)
def figures_of_codes(kind: str, reading: Reading) -> tuple[float, ...]:
    """The numbers, days or seconds that codes of missing values state: any value that reads as one of these is absent.

    Values are compared after reading, so that a code means the same in every type: -9, -9.0 and "-9.0" are one number.
    """
    found = (figure_of_code(code, kind, reading) for code in reading.missing_codes)
    return tuple(dict.fromkeys(figure for figure in found if not math.isnan(figure)))


def figure_of_code(code: str, kind: str, reading: Reading) -> float:
    """The number, day or second that a code states; NaN if it states none. Dates may be written as typed ones read."""
    values = np.array([code], dtype=object)
    if kind not in CLOCKS:
        return float(_numbers(values, reading)[0])
    tick = float(_moments(values, CLOCKS[kind], reading.format)[0])
    return float(_moments(values, CLOCKS[kind], "")[0]) if math.isnan(tick) else tick


WINDOW = 2**16
"""Largest range (high − low) of integers for which each distinct value is read once and then looked up."""


def each_once(raw: Raw, read: Callable[[Raw], NDArray[Any]]) -> NDArray[Any] | None:
    """Apply `read` once to each distinct value, if the values are integers or booleans of a small range; else None.

    >>> each_once(np.array([7, 9, 7] * 3), lambda values: values * 10.0)[:3].tolist()
    [70.0, 90.0, 70.0]
    """
    if raw.dtype.kind not in "biu" or not len(raw):
        return None
    absent = np.ma.getmaskarray(raw) if np.ma.is_masked(raw) else None
    data = np.ma.getdata(raw)
    there = data if absent is None else data[~absent]
    if not len(there):
        return read(np.array([None], dtype=object)).repeat(len(raw))
    low, high = int(there.min()), int(there.max())
    if high - low >= min(WINDOW, len(raw)):
        return None
    distinct = np.array(range(low, high + 1), dtype=data.dtype)
    if absent is not None:
        data = np.where(absent, data.dtype.type(low), data)  # what is under a mask may be anything
    # Modulo 2^64 differences are right whatever the type is, and these are small.
    places = data.astype(np.uint64) - np.uint64(low % 2**64)
    found = read(distinct)[places.astype(np.intp)]
    if absent is not None:
        found[absent] = read(np.array([None], dtype=object))[0]
    return found


@njit(cache=True, nogil=True)
def put_on_line(values, low, unit, rounded, end, times, per, absent):  # type: ignore[no-untyped-def]
    """Turn numbers into offsets in place, by the operations of `Ordered.clean` in the same order."""
    for i in range(len(values)):
        offset = (values[i] - low) / unit
        if offset != offset:
            values[i] = absent
            continue
        if rounded:
            offset = np.floor(offset + 0.5)
        values[i] = min(max(offset, 0.0), end) * times / per


def _objects(raw: Raw) -> list[Any]:
    """The values as Python objects; None if masked, not a time, or outside the years that Python supports."""
    if raw.dtype.kind == "M":
        days = as_days(raw)
        first, last = DAYS.ends
        known = (days >= first) & (days <= last)
        raw = np.where(known, np.ma.getdata(raw), np.datetime64("NaT")).astype("datetime64[us]")
    return raw.tolist()


# Below, only types that are known to be scalars are read. A list, a blob or a foreign object is absent: its
# own methods (`__float__`, `__ne__`, `__str__`) may raise, warn or show whatever they like.
_WHOLE = (int, np.integer)
_NUMBERS = (int, float, Decimal, np.integer, np.floating, numbers.Real)  # the abstract one last: it is slow
_MIDNIGHT = datetime.time()
_MOST_DIGITS = 400  # more than the largest float has


def _number(value: Any) -> float:
    if not isinstance(value, (str, np.bool_, *_NUMBERS)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # an int: texts do not overflow
    except Exception:
        return _TRUTH.get(str(value).strip().lower(), math.nan) if isinstance(value, str) else math.nan


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, NumberText)


def _tick_of_text(text: str, clock: Clock, format: str) -> float:
    moment = read_moment(text, format)
    return math.nan if moment is None else float(clock.number(moment))


def _tick(value: Any, clock: Clock, format: str = "") -> float:
    if isinstance(value, np.datetime64):
        return float(_moments(np.array([value]), clock, "")[0])
    try:
        if isinstance(value, datetime.date):  # a datetime is a date, too
            return float(clock.number(value))
        text = _label(value) or ""
        return _tick_of_text(text, clock, format) if format else float(clock.read_cell(text))
    except Exception:  # neither a date nor a time; or pandas' NaT, which is a datetime without a day
        return math.nan


def _label(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    try:
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, _WHOLE):
            return str(int(value))
        if isinstance(value, np.datetime64):
            (value,) = _objects(np.array([value]))
        if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS:
            # With a decimal point it is the nearest float, as DuckDB reads a column of such decimals.
            value = float(value) if int(value.as_tuple().exponent) < 0 else int(value)
            return _label(value)
        if isinstance(value, _NUMBERS):
            number = float(value)
            return str(int(number)) if number.is_integer() else None if math.isnan(number) else str(number)
        if isinstance(value, datetime.datetime):
            return str(value.date() if value.time() == _MIDNIGHT else value)
        if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, uuid.UUID)):
            return str(value)
    except Exception:  # NaT, a signalling NaN, an int with more digits than Python prints
        return None
    return None
