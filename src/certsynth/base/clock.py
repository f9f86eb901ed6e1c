"""Clocks: dates as days and times as seconds since 1970-01-01, as a wall clock shows them, without time zones."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from certsynth.base.days import from_days, to_days

_DAY_SECONDS = 86_400
_DATE_LETTERS = 10  # of a date like 2020-02-29
_TIME = re.compile(
    r"""[T\ ] (?P<hour>[01][0-9]|2[0-3]) : (?P<minute>[0-5][0-9]) (?: : (?P<second>[0-5][0-9])
        (?P<beyond> (?: [.,][0-9]+ )? ) )?
        (?P<zone> (?: \ ? (?: Z | UTC | [+-][0-9]{2} (?: :?[0-9]{2} (?: :?[0-9]{2} (?: \.[0-9]+ )? )? )? ) )? )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Clock:
    """Numbers dates, or datetimes without a time zone, by its ticks since 1970-01-01, each of so many `seconds`.

    `kind` is the kind of column that it numbers; `unit`, `word` and `example` are for messages.
    """

    kind: str
    seconds: int
    unit: str
    word: str
    example: str
    dtype: str
    sql_type: str

    def number(self, moment: datetime.date) -> int:
        """The tick of a date or datetime; the rest of the tick is dropped, also before 1970.

        >>> DAYS.number(datetime.datetime(1969, 12, 31, 23)), SECONDS.number(datetime.date(1970, 1, 2))
        (-1, 86400)
        """
        seconds = to_days(moment) * _DAY_SECONDS
        if isinstance(moment, datetime.datetime):
            seconds += 3600 * moment.hour + 60 * moment.minute + moment.second
        return seconds // self.seconds

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last tick of the calendar, which has the years 1 to 9999."""
        return self.number(datetime.datetime.min), self.number(datetime.datetime.max)

    def moment(self, number: int) -> datetime.date:
        """The date or datetime of a tick.

        >>> SECONDS.moment(-1)
        datetime.datetime(1969, 12, 31, 23, 59, 59)
        """
        day, second = divmod(number * self.seconds, _DAY_SECONDS)
        date = from_days(day)
        if self.seconds == _DAY_SECONDS:
            return date
        return datetime.datetime.combine(date, datetime.time()) + datetime.timedelta(seconds=second)

    def text(self, number: int) -> str:
        """A tick as it is written.

        >>> DAYS.text(0), SECONDS.text(0)
        ('1970-01-01', '1970-01-01 00:00:00')
        """
        return str(self.moment(number))

    def read(self, text: str) -> int:
        """The tick that a text of a schema or query names; ValueError if it names none, or more than a tick."""
        if self.seconds == _DAY_SECONDS:
            return self.number(datetime.date.fromisoformat(text))
        return self._read_time(text, strict=True)

    def read_cell(self, text: str) -> int:
        """The tick of a text in a table: what a date or time says beyond it is dropped, and an offset from UTC as well.

        A date is its midnight. ValueError if the text is neither.

        >>> SECONDS.read_cell("1970-01-01T00:01:40.7+02:00")
        100
        """
        text = text.strip()
        if self.seconds == _DAY_SECONDS:
            return self.number(datetime.date.fromisoformat(text[:_DATE_LETTERS]))
        return self._read_time(text, strict=False)

    def _read_time(self, text: str, *, strict: bool) -> int:
        day, rest = datetime.date.fromisoformat(text[:_DATE_LETTERS]), text[_DATE_LETTERS:]
        if not rest:
            return self.number(day)
        time = _TIME.fullmatch(rest)
        if time is None or (strict and (time["beyond"] or time["zone"])):
            raise ValueError("not a time")
        return self.number(day) + 3600 * int(time["hour"]) + 60 * int(time["minute"]) + int(time["second"] or 0)


DAYS = Clock("date", _DAY_SECONDS, "days", "date", "2024-12-31", "datetime64[D]", "DATE")
SECONDS = Clock("datetime", 1, "seconds", "time", "2024-12-31 18:30:00", "datetime64[s]", "TIMESTAMP")

CLOCKS = {clock.kind: clock for clock in (DAYS, SECONDS)}
"""The clock of each kind of column that has one."""
