"""Date formats: read and written alike whatever the locale, and never read in two ways."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from certsynth.domain.date_format import fault_of, has_month_name, has_short_year, read_moment, write_moment

FORMATS = [
    *("%m/%d/%Y", "%d.%m.%y", "%Y%m%d", "%d%b%Y", "%B %d, %Y", "%Y-%m-%dT%H:%M:%S", "%y%m%d %H%M%S", "100%% %d/%m/%Y"),
    *("%d %b %y", "%H:%M %d-%m-%Y", "%m%d%Y", "%S.%M.%H %d.%m.%Y", "%bx%dx%Y", "[%Y] %d/%m"),
]


def moments(rows: int, seed: int = 1) -> list[datetime.datetime]:
    rng = np.random.default_rng(seed)
    start = datetime.datetime(1969, 1, 1)
    seconds = rng.integers(0, int((datetime.datetime(2068, 12, 31, 23, 59, 59) - start).total_seconds()), rows)
    return [start + datetime.timedelta(seconds=int(each)) for each in seconds]


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_read_as_python_does(format: str) -> None:
    assert fault_of(format) is None
    for moment in moments(100):
        text = write_moment(moment, format)
        assert text == moment.strftime(format)
        assert read_moment(f" {text} ", format) == datetime.datetime.strptime(text, format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_changed_text_is_read_as_the_same_moment_or_not_at_all(format: str) -> None:
    """One that is read states every field: writing it again differs in zeros in front and capitals only."""
    rng = np.random.default_rng(2)
    seen = 0
    for moment in moments(150, seed=3):
        letters = list(write_moment(moment, format))
        place = int(rng.integers(len(letters)))
        letters[place : place + int(rng.integers(2))] = rng.choice(list("0123456789/.-x jJ%")).item()
        read = read_moment("".join(letters), format)
        if read is not None:
            seen += 1
            assert _bare(write_moment(read, format)) == _bare("".join(letters))
    assert seen > 3


def _bare(text: str) -> str:
    """Without zeros in front of digits, capitals, and blanks around."""
    parts = "".join(letter if letter.isdigit() else f" {letter} " for letter in text.strip().lower()).split()
    return "".join(part.lstrip("0") for part in parts)


@pytest.mark.parametrize(
    ("text", "format", "day"),
    [
        ("3/5/2020", "%m/%d/%Y", (2020, 3, 5)),
        ("03/25/2020", "%m/%d/%Y", (2020, 3, 25)),
        ("25/03/2020", "%m/%d/%Y", None),
        ("2020-03-25", "%m/%d/%Y", None),
        ("3/25/20", "%m/%d/%Y", None),
        ("3/25/02020", "%m/%d/%Y", None),
        ("3/25/2020 10:00", "%m/%d/%Y", None),
        ("31.6.2020", "%d.%m.%Y", None),
        ("1.1.69", "%d.%m.%y", (1969, 1, 1)),
        ("1.1.68", "%d.%m.%y", (2068, 1, 1)),
        ("1.1.00", "%d.%m.%y", (2000, 1, 1)),
        ("112020", "%m%d%Y", None),
        ("01012020", "%m%d%Y", (2020, 1, 1)),
        ("00000101", "%Y%m%d", None),
        ("5 MAR 2020", "%d %b %Y", (2020, 3, 5)),
        ("5 März 2020", "%d %B %Y", None),
        ("٥/3/2020", "%d/%m/%Y", None),
        ("3/5/2020\n", "%m/%d/%Y", (2020, 3, 5)),
        ("", "%m/%d/%Y", None),
    ],
)
def test_texts_of_a_format(text: str, format: str, day: tuple[int, int, int] | None) -> None:
    assert read_moment(text, format) == (None if day is None else datetime.datetime(*day))


@pytest.mark.parametrize(
    ("format", "fault"),
    [
        ("%d.%m", "does not state the year"),
        ("%Y", "does not state the month"),
        ("%B %Y", "does not state the day"),
        ("%d %m %Y %y", "states the year twice"),
        ("%m %b %d %Y", "states the month twice"),
        ("%D", "it has %D; use %Y"),
        ("%d/%m/%Y %I", "it has %I"),
        ("%d/%m/%Y %", "it has %"),
        ("", "does not state the year"),
        ("%-d/%m/%Y", "it has %-"),
    ],
)
def test_what_is_no_format(format: str, fault: str) -> None:
    assert fault in (fault_of(format) or "")


def test_parts_of_formats_are_found() -> None:
    assert has_short_year("%d.%m.%y")
    assert not has_short_year("%d.%m.%Y %%y")
    assert has_month_name("%d %B %Y")
    assert not has_month_name("%d.%m.%Y %%b")
