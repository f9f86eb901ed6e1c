"""Dates as days since 1970-01-01."""

from __future__ import annotations

import datetime

_EPOCH = datetime.date(1970, 1, 1).toordinal()


def to_days(date: datetime.date) -> int:
    """Days from 1970-01-01 to a date.

    >>> to_days(datetime.date(1970, 1, 3))
    2
    """
    return date.toordinal() - _EPOCH


def from_days(days: int) -> datetime.date:
    """The date that is `days` days after 1970-01-01.

    >>> from_days(-1)
    datetime.date(1969, 12, 31)
    """
    return datetime.date.fromordinal(days + _EPOCH)
