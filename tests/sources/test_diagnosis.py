"""Which cause is named for texts that do not fit a column, and that the proposed entries make them fit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.domain import Column
from certsynth.domain.schema import describe, read_column
from certsynth.sources.diagnosis import date_formats, diagnose, number_styles
from certsynth.sources.outcomes import MISFITS, TIMES, Outcome, outcomes
from certsynth.sources.reading import objects

AMOUNT = {"kind": "number", "low": 0, "high": 10_000}
AGE = {"kind": "integer", "low": 0, "high": 120}
DAY = {"kind": "date", "low": "2000-01-01", "high": "2029-12-31"}
MOMENT = {"kind": "datetime", "low": "2020-01-01T00:00:00", "high": "2020-12-31T23:59:00"}
JOB = {"kind": "category", "values": ["Private", "State-gov", "Never-worked"]}
GRADE = {"kind": "ordinal", "values": ["low", "middle", "high"]}
SEX = {"kind": "category", "values": ["1", "2"]}
OWNER = {"kind": "boolean"}

CASES: dict[str, tuple[dict[str, Any], list[str], dict[str, Any], str]] = {
    "blanks": (JOB, [" Private", " State-gov"], {"strip": True}, "blanks around the labels"),
    "blanks in an ordinal": (GRADE, ["low ", "high"], {"strip": True}, "blanks around the labels"),
    "capitals": (JOB, ["private", "STATE-GOV"], {"case": "ignore"}, "other capitals"),
    "blanks and capitals": (JOB, [" private", "Private"], {"strip": True, "case": "ignore"}, "and other capitals"),
    "both, but blanks suffice": (JOB, [" Private", "Private"], {"strip": True}, "blanks"),
    "blanks with other": (JOB | {"other": True}, [" Private", "unheard of"], {"strip": True}, "blanks"),
    "a code in a category": (JOB, ["Private", "?"], {"missing": True, "missing_codes": ["?"]}, "codes for missing"),
    "an unlisted label": (JOB, ["Private", "Astronaut"], {"other": True}, "labels that the schema does not list"),
    "leading zeros": (SEX, ["01", "02"], {"values": ["01", "02"]}, "leading zeros"),
    "leading zeros in the schema": (
        SEX | {"values": ["01", "02"]},
        ["1", "2"],
        {"values": ["1", "2"]},
        "leading zeros",
    ),
    "numbers saved as floats": (SEX, ["1.0", "2.0"], {"values": ["1.0", "2.0"]}, "decimal point"),
    "an empty field": (AGE, ["7", ""], {"missing": True}, "missing values, which the schema does not allow"),
    "a decimal comma": (AMOUNT, ["7,25", "8"], {"decimal": ","}, "a decimal comma"),
    "thousands": (AMOUNT, ["7,250.00", "8.5"], {"thousands": ","}, "a thousands separator"),
    "thousands or decimals": (AMOUNT, ["7,250", "8"], {"thousands": ","}, "a thousands separator"),
    "a currency": (AMOUNT, ["€7.25", "€8"], {"symbol": "€"}, "a currency sign"),
    "a unit": (AMOUNT, ["7 kg", "8 kg"], {"symbol": "kg"}, "a unit"),
    "percent": (AMOUNT, ["7%", "8.5 %"], {"symbol": "%"}, "a unit"),
    "all at once": (
        AMOUNT,
        ["1.250,50 €", "€ 7"],
        {"decimal": ",", "thousands": ".", "symbol": "€"},
        "a decimal comma, a thousands separator and a currency sign",
    ),
    "a decimal point in spite of the schema": (
        AMOUNT | {"decimal": ","},
        ["7.25", "8"],
        {"decimal": "."},
        "a decimal point",
    ),
    "English numbers in spite of the schema": (
        AMOUNT | {"decimal": ",", "thousands": "."},
        ["7,250.50", "8.5"],
        {"decimal": ".", "thousands": ","},
        "a decimal point and a thousands separator",
    ),
    "ISO dates in spite of the schema": (
        DAY | {"format": "%d.%m.%Y"},
        ["2020-03-25"],
        {"format": "%Y-%m-%d"},
        "another format",
    ),
    "spaces": (AMOUNT, ["1\u202f250,5", "7"], {"decimal": ",", "thousands": "\u202f"}, "a thousands separator"),
    "codes among numbers": (
        AGE,
        ["7", "N", "NA"],
        {"missing": True, "missing_codes": ["N", "NA"]},
        "codes for missing",
    ),
    "a sentinel": (AGE, ["7", "-9"], {"missing": True, "missing_codes": ["-9"]}, "often mean missing"),
    "both": (AGE, ["7", "N", "999"], {"missing": True, "missing_codes": ["N", "999"]}, "often mean missing"),
    "more codes than listed": (
        AGE | {"missing": True, "missing_codes": ["N"]},
        ["7", "N", "?"],
        {"missing": True, "missing_codes": ["N", "?"]},
        "codes for missing",
    ),
    "words": (AGE, ["7", "refused"], {"missing": True, "missing_codes": ["refused"]}, "words instead of numbers"),
    "days first": (DAY, ["25/03/2020", "01/04/2020"], {"format": "%d/%m/%Y"}, "with the day first"),
    "months first": (DAY, ["03/25/2020", "04/01/2020"], {"format": "%m/%d/%Y"}, "with the month first"),
    "either": (DAY, ["03/05/2020", "04/01/2020"], {"format": "%d/%m/%Y"}, "the rows do not tell which"),
    "the schema has the other order": (
        DAY | {"format": "%m/%d/%Y"},
        ["03/05/2020", "25/05/2020"],
        {"format": "%d/%m/%Y"},
        "with the day first",
    ),
    "month names": (DAY, ["25-Mar-2020"], {"format": "%d-%b-%Y"}, "another format"),
    "dates with times": (DAY, ["25.03.2020 10:30"], {"format": "%d.%m.%Y %H:%M"}, "with the day first"),
    "moments": (MOMENT, ["25/03/2020 10:30:07"], {"format": "%d/%m/%Y %H:%M:%S"}, "with the day first"),
    "moments without seconds": (
        MOMENT,
        ["03/25/2020 10:30", "N"],
        {"format": "%m/%d/%Y %H:%M", "step": 60, "missing": True, "missing_codes": ["N"]},
        "with the month first",
    ),
    "a code among dates": (
        DAY,
        ["25/03/2020", "N"],
        {"format": "%d/%m/%Y", "missing": True, "missing_codes": ["N"]},
        "codes for missing",
    ),
    "the end of time": (DAY, ["2020-03-25", "9999-12-31"], {"missing": True, "missing_codes": ["9999-12-31"]}, "often"),
    "truths in another language": (OWNER, ["ja", "Nein"], {"values": ["Nein", "ja"]}, "other words for false and true"),
    "a code among truths": (OWNER, ["yes", "no", "?"], {"missing": True, "missing_codes": ["?"]}, "codes for missing"),
}


def column_with(entries: dict[str, Any]) -> Column:
    return read_column({"name": "x", **entries}, "column 'x'")


@pytest.mark.parametrize("case", CASES)
def test_names_the_cause_and_the_entries_that_cure_it(case: str) -> None:
    entries, texts, expected, says = CASES[case]
    column, cured, remedies = column_with(entries), *diagnose(column_with(entries), Counter(texts))
    proposed = {key: value for remedy in remedies for key, value in remedy.entries.items()}
    assert proposed == expected
    assert says in "; ".join(remedy.cause for remedy in remedies)
    assert cured == column_with(describe(column) | proposed)
    left = set(outcomes(cured, objects(texts)).tolist())
    unlisted = {int(Outcome.UNLISTED)} if getattr(cured, "other", False) else set()
    assert left & set(MISFITS) <= unlisted
    assert cured.missing or Outcome.MISSING not in left


UNCURED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "values out of bounds": (AGE, ["7", "130"]),
    "an end of many values": (AGE, ["7", "600", "999"]),
    "two currencies": (AMOUNT, ["$7", "€7"]),
    "ungrouped digits": (AMOUNT, ["12,34,567"]),
    "a label of another column": (GRADE, ["low", "north"]),
    "unknown truths": (OWNER, ["1", "2"]),
    "what fits": (JOB, ["Private"]),
    "what fits other": (JOB | {"other": True}, ["Private", "Astronaut", "x"]),
    "other dates": (DAY, ["in spring 1"]),
}


@pytest.mark.parametrize("case", UNCURED)
def test_proposes_nothing_that_does_not_help(case: str) -> None:
    entries, texts = UNCURED[case]
    column = column_with(entries)
    assert diagnose(column, Counter(texts)) == (column, ())


def test_texts_of_the_rows_are_marked_as_such() -> None:
    for entries, text, quotes in [
        (AGE, "refused", True),
        (AGE, "N", False),
        (AMOUNT, "7 kg", True),
        (AMOUNT, "€7", False),
    ]:
        _, remedies = diagnose(column_with(entries), {text: 1})
        assert any(remedy.quotes for remedy in remedies) == quotes


COLUMNS = [AMOUNT, AGE, DAY, MOMENT, JOB, GRADE, SEX, OWNER, JOB | {"other": True}, AGE | {"step": 5, "missing": True}]
messy = st.one_of(
    st.text(max_size=5),
    st.sampled_from([text for _, texts, _, _ in CASES.values() for text in texts]),
    st.from_regex(r"[€$]? ?-?[0-9]{1,4}[.,' ]?[0-9]{0,3}[.,]?[0-9]{0,2} ?[€%]?", fullmatch=True),
    st.from_regex(r"[0-9]{1,2}[/.-][0-9]{1,2}[/.-]([0-9]{2}){1,2}", fullmatch=True),
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(COLUMNS), st.dictionaries(messy, st.integers(1, 100), max_size=8))
def test_a_proposal_never_makes_it_worse(entries: dict[str, Any], texts: dict[str, int]) -> None:
    column = column_with(entries)
    cured, remedies = diagnose(column, texts)
    assert column_with(describe(cured)) == cured
    before, after = (sum(misfit_rows(each, texts)) for each in (column, cured))
    assert after <= before
    assert (after < before) == any(set(remedy.entries) not in ({"missing"}, {"other"}) for remedy in remedies)


def misfit_rows(column: Column, texts: dict[str, int]) -> list[int]:
    found = outcomes(column, objects(list(texts)))
    return [rows for rows, outcome in zip(texts.values(), found, strict=True) if outcome in MISFITS]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(COLUMNS), st.lists(messy, max_size=8))
def test_outcomes_agree_with_what_the_column_reads(entries: dict[str, Any], texts: list[str]) -> None:
    """A value that fits survives; one that is absent becomes missing where the column has missing values."""
    column = column_with(entries | {"missing": True})
    raw = objects(texts)
    found, clean = outcomes(column, raw), column.clean(raw)
    read = column.decode(clean)
    missing = np.ma.getmaskarray(read)
    other = bool(entries.get("other"))
    for outcome, absent, text in zip(found.tolist(), missing.tolist(), texts, strict=True):
        is_absent = outcome in (Outcome.MISSING, Outcome.UNREADABLE) or (outcome == Outcome.UNLISTED and not other)
        assert absent == is_absent, text
    again = column.plain.clean(np.array(read.tolist(), dtype=object))
    assert np.array_equal(clean, again, equal_nan=True)
    ends = {Outcome.BELOW: getattr(column, "low", None), Outcome.ABOVE: getattr(column, "high", None)}
    for outcome, value in zip(found.tolist(), read.tolist(), strict=True):
        if outcome in ends and entries["kind"] not in TIMES:
            assert value == ends[Outcome(outcome)]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(10**8), 10**8), min_size=1, max_size=10),
    st.sampled_from([(".", ""), (",", ""), (".", ","), (",", "."), (",", " "), (".", "'"), (",", "\u00a0")]),
    st.sampled_from(["", "€", "%", "USD"]),
)
def test_the_style_in_which_numbers_are_written_is_among_those_found(
    cents: list[int], signs: tuple[str, str], symbol: str
) -> None:
    decimal, thousands = signs
    cents = [*cents, 123_456_789]  # with it, every separator occurs
    texts = [f"{amount(each, decimal, thousands)}{symbol}" for each in cents]
    style = {"decimal": decimal} if decimal == "," else {}
    style |= {"thousands": thousands} if thousands else {}
    assert style | ({"symbol": symbol} if symbol else {}) in number_styles(texts)


def amount(cents: int, decimal: str, thousands: str) -> str:
    whole, rest = divmod(abs(cents), 100)
    return f"{'-' * (cents < 0)}{whole:,}".replace(",", thousands) + f"{decimal}{rest:02}"


@pytest.mark.parametrize("texts", [[], ["north"], ["12"], ["2020"], ["1/2"], ["1/2/3/4"], ["32/01/2020", "01/32/2020"]])
def test_few_texts_are_dates(texts: list[str]) -> None:
    assert date_formats(texts) == []
