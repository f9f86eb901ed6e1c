"""Columns of kind datetime: seconds by the wall clock, in texts, formats, expressions and derived columns."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth import Release, Schema, release
from certsynth.artefact.table import with_derived
from certsynth.base.clock import DAYS, SECONDS
from certsynth.domain import Ordered
from certsynth.domain.cleaning import as_days, as_moments
from certsynth.domain.expression import BadExpression
from certsynth.domain.meaning import Reader
from certsynth.domain.possible import check_rules
from certsynth.errors import SchemaError
from small import SeededNoise

EPOCH = datetime.datetime(1970, 1, 1)
UNITS = ("s", "ms", "us", "ns")


def held(*values: Any) -> np.ndarray:
    return np.fromiter(values, object, len(values))


# ------------------------------------------------------------ reading


@settings(max_examples=300)
@given(st.datetimes(), st.sampled_from(["", "Z", " UTC", "+02", "-0530", "+05:45", "-00:00:01"]), st.sampled_from("T "))
def test_a_time_is_what_its_clock_shows(time: datetime.datetime, zone: str, sign: str) -> None:
    """Fractions of seconds are dropped, also before 1970, and so are zones."""
    seconds = (time.replace(microsecond=0) - EPOCH) // datetime.timedelta(seconds=1)
    zoned = time.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-11)))
    texts = [f" {time.isoformat(sign)}{zone} ", f"{time.isoformat(sign, 'seconds')}{zone}", str(time)]
    assert as_moments(held(*texts, time, zoned, np.datetime64(time)), SECONDS).tolist() == [seconds] * 6
    assert SECONDS.number(time) == seconds
    assert SECONDS.moment(seconds) == time.replace(microsecond=0)
    assert SECONDS.read(SECONDS.text(seconds)) == seconds


@pytest.mark.parametrize("unit", UNITS)
def test_times_of_every_unit_are_rounded_down(unit: str) -> None:
    texts = ["1969-12-31T23:59:59.999", "1970-01-01T00:00:00.999", "1969-12-31T23:59:58", "NaT", "2262-01-01"]
    raw = np.array(texts, dtype=f"datetime64[{unit}]")
    masked = np.ma.masked_array(raw, mask=[False] * 4 + [True])
    assert as_moments(raw, SECONDS)[:3].tolist() == [-1.0, 0.0, -2.0]
    assert np.isnan(as_moments(masked, SECONDS)[3:]).all()


def test_days_far_from_today_have_their_seconds() -> None:
    far = np.array([2**40, -(2**40)], dtype="datetime64[D]")
    assert as_moments(far, SECONDS).tolist() == [86_400.0 * 2**40, -86_400.0 * 2**40]


@settings(max_examples=300)
@given(st.text(max_size=30) | st.datetimes().map(str).flatmap(lambda text: st.just(text[:-3]) | st.just(text + "0")))
def test_a_text_that_is_a_time_is_the_same_day_as_a_date(text: str) -> None:
    (second,), (day,) = as_moments(held(text), SECONDS), as_days(held(text))
    assert np.isnan(second) or second // 86_400 == day


@pytest.mark.parametrize(
    "text",
    [
        "2020-02-29 24:00",
        "2020-02-29 1:00",
        "2020-02-29 10",
        "2020-02-30 10:00",
        "10:00",
        "2020-02-29 10:00:60",
        "soon",
    ],
)
def test_other_texts_are_unreadable(text: str) -> None:
    assert np.isnan(as_moments(held(text), SECONDS)).all()
    with pytest.raises(ValueError, match=r".*"):
        SECONDS.read(text)


# ------------------------------------------------------------ expressions

AT = Ordered("at", kind="datetime", low=-3, high=3)
LATER = Ordered("later", kind="datetime", low=-7_200, high=7_200, step=Fraction(1_800))
DAY = Ordered("day", kind="date", low=-1, high=1)
READER = Reader([AT, LATER, DAY, Ordered("n", low=-2, high=2)])

EXPRESSIONS = {
    "at < '1970-01-01 00:00:01'": lambda at, later, day, n: at < 1,
    "at = '1970-01-01'": lambda at, later, day, n: at == 0,
    "at in ['1970-01-01', '1969-12-31T23:59:58']": lambda at, later, day, n: at in (0, -2),
    "later - at >= 3600": lambda at, later, day, n: later - at >= 3_600,
    "later - '1970-01-01 00:30' > at - '1970-01-01'": lambda at, later, day, n: later - 1_800 > at,
    "at > '1970-01-01' + n": lambda at, later, day, n: at > n,
    "at + 2*n <= '1970-01-01 00:00:01' - n": lambda at, later, day, n: at + 2 * n <= 1 - n,
    "day <= at": lambda at, later, day, n: 86_400 * day <= at,
    "at >= day + n": lambda at, later, day, n: at >= 86_400 * (day + n),
    "'1969-12-31' < day <= later": lambda at, later, day, n: day > -1 and 86_400 * day <= later,
    "at != day": lambda at, later, day, n: at != 86_400 * day,
    "day - '1970-01-01' < n and at > '1970-01-01'": lambda at, later, day, n: day < n and at > 0,
    "later - at <= 86400 * (day - '1969-12-31')": lambda at, later, day, n: later - at <= 86_400 * (day + 1),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_mean_what_they_say(text: str) -> None:
    rows = list(itertools.product(range(-3, 4), range(-7_200, 7_201, 1_800), range(-1, 2), range(-2, 3)))
    columns = dict(zip(("at", "later", "day", "n"), np.array(rows, float).T, strict=True))
    found = np.broadcast_to(READER.read(text).holds(columns), len(rows))
    assert found.tolist() == [1 if EXPRESSIONS[text](*row) else -1 for row in rows]


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "at > 3": "a number is compared with a time; write a time as a text, like '2024-12-31 18:30:00'",
        "at > '1970-01-01 10:00Z'": "a time is compared with something else; write a time as a text",
        "day > '1970-01-01 10:00'": "a date is compared with something else; write a date as a text",
        "at + later > '1970-01-01'": "times cannot be added; time - time is a number of seconds",
        "2 * at > '1970-01-01'": "a time cannot be multiplied",
        "at - day > 3": "a sum holds dates or times, not both",
        "at - 'soon' > 3": "a sum holds numbers and times; write a time",
    }.items(),
)
def test_mistakes_are_told_with_their_remedy(text: str, message: str) -> None:
    with pytest.raises(BadExpression, match=message):
        READER.read(text)


# ------------------------------------------------------------ derived columns, rules and files

STAYS = """
[[column]]
name = "arrived"
kind = "datetime"
low = 2020-03-01T00:00:00
high = 2020-03-01T23:45:00
step = 900
format = "%d.%m.%Y %H:%M"
missing = true
missing_codes = ["31.12.9999 00:00", "?"]
bands = [2020-03-01T06:00:00, "2020-03-01 18:00"]

[[column]]
name = "left"
kind = "datetime"
low = 2020-03-01T00:00:00
high = 2020-03-02T00:00:00
special = [2020-03-02T00:00:00]

[[column]]
name = "stay"
kind = "integer"
low = 0
high = 90000
missing = true
derived = { expression = "left - arrived" }

[[column]]
name = "hour"
kind = "datetime"
low = 2020-03-01T00:00:00
high = 2020-03-02T00:00:00
step = 3600
derived = { expression = "left + 0" }

[[rule]]
require = "left >= arrived"
"""


def test_times_are_released_in_their_format_and_read_back(tmp_path: Path) -> None:
    schema = Schema.parse(STAYS)
    assert Schema.parse(schema.to_toml()) == schema
    check_rules(schema)
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.integers(0, 86_400, (400, 2)), axis=1) + SECONDS.read("2020-03-01")
    start = [SECONDS.moment(900 * (int(s) // 900)) for s in seconds[:, 0]]
    texts = [time.strftime("%d.%m.%Y %H:%M") for time in start]
    texts[:20] = ["31.12.9999 00:00"] * 10 + ["?"] * 10
    lines = [f"{a},{SECONDS.text(int(b))},," for a, b in zip(texts, seconds[:, 1], strict=True)]
    data = tmp_path / "stays.csv"
    data.write_text("\n".join(["arrived,left,stay,hour", *lines]) + "\n")
    made = release(
        data, schema, epsilon=50, sparsity=1, mechanism="identity", noise=SeededNoise(), seed=1, out=tmp_path / "out"
    )
    again = Release.load(tmp_path / "out")
    assert all(check["ok"] for check in again.verify())
    arrived, left, stay, hour = (made.table[name] for name in schema.names)
    there = ~np.ma.getmaskarray(arrived)
    assert 0 < (~there).sum() < 60
    assert (left.data[there] >= arrived.data[there]).all()
    assert (stay.data[there] == (left.data - arrived.data)[there].astype(int)).all()
    assert np.abs((hour.data - left.data).astype(int)).max() <= 1_800
    csv = (tmp_path / "out" / "synthetic.csv").read_text().splitlines()[1:]
    assert {line.split(",")[0] for line, known in zip(csv, there, strict=True) if not known} == {"31.12.9999 00:00"}
    shown = [line.split(",")[0] for line, known in zip(csv, there, strict=True) if known]
    assert shown == [time.strftime("%d.%m.%Y %H:%M") for time in arrived.data[there].tolist()]
    raw = [held(*(line.split(",")[j] for line in csv)) for j in range(2)]
    for column, values, mine in zip(schema, raw, made.rows, strict=False):
        np.testing.assert_array_equal(column.clean(values), mine)
    assert with_derived(schema, {name: made.table[name] for name in ("arrived", "left")}).keys() == set(schema.names)


def test_a_sum_of_times_is_of_the_kind_of_its_column() -> None:
    for kind in ("date", "integer"):
        wrong = STAYS.replace(
            'kind = "datetime"\nlow = 2020-03-01T00:00:00\nhigh = 2020-03-02T00:00:00\nstep = 3600', "HERE"
        )
        ends = "low = 2020-03-01\nhigh = 2020-03-02" if kind == "date" else "low = 0\nhigh = 9"
        with pytest.raises(SchemaError, match="its expression gives a time, for a column of kind datetime"):
            Schema.parse(wrong.replace("HERE", f'kind = "{kind}"\n{ends}'))


def test_clocks_agree_on_days() -> None:
    for day in (datetime.date.min, datetime.date(1969, 12, 31), datetime.date.max):
        assert SECONDS.number(day) == 86_400 * DAYS.number(day)
    assert [SECONDS.text(end) for end in SECONDS.ends] == ["0001-01-01 00:00:00", "9999-12-31 23:59:59"]
