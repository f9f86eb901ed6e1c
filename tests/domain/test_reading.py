"""Readings: each text by itself to one value, never guessed, and typed values as they are."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Decimal

import numpy as np
import pytest

from certsynth.domain import Category, Ordered
from certsynth.domain.cleaning import as_numbers
from certsynth.domain.column import MIN_COMPILED_ROWS
from certsynth.domain.reading import PLAIN, SEPARATORS, Reading


def objects(*values: object) -> np.ndarray:
    return np.fromiter(values, object, len(values))


def oracle(text: str, decimal: str, thousands: str, symbols: tuple[str, ...]) -> float:
    """The number that a text states, letter by letter; NaN if it is not well formed. For texts without words."""
    text = text.strip()
    sign = ""
    if text[:1] in ("+", "-"):
        sign, text = text[0], text[1:]
        if any(text.lstrip().startswith(s) for s in symbols):
            text = text.lstrip()
    for symbol in symbols:
        if text.startswith(symbol):
            text = text[len(symbol) :].lstrip()
            break
        if text.endswith(symbol):
            text = text[: -len(symbol)].rstrip()
            break
    if not sign and text[:1] in ("+", "-"):
        sign, text = text[0], text[1:]
    whole, *rest = text.split(decimal)
    if len(rest) > 1 or not all(part.isascii() and (part.isdigit() or not part) for part in rest):
        return math.nan
    groups = whole.split(thousands) if thousands else [whole]
    if len(groups) > 1 and (
        groups[0][:1] == "0" or not 1 <= len(groups[0]) <= 3 or {len(g) for g in groups[1:]} != {3}
    ):
        return math.nan
    digits = "".join(groups)
    if not all(g.isascii() and g.isdigit() for g in groups if g) or not (digits + "".join(rest)):
        return math.nan
    return float(f"{sign}{digits or '0'}.{(rest or [''])[0] or '0'}")


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_are_read_as_an_oracle_reads_them(decimal: str) -> None:
    rng = np.random.default_rng(5)
    tried = readable = 0
    for thousands in ("", *SEPARATORS):
        if thousands == decimal:
            continue
        reading = Reading(decimal=decimal, thousands=thousands, symbol=("US$", "€", "%"))
        signs = np.array(
            [*"0123456789", *"0001112", decimal, thousands or "7", "-", "+", "€", " ", "%", "US$", ".", ","]
        )
        for _ in range(400):
            text = "".join(rng.choice(signs, int(rng.integers(1, 12))).tolist())
            if not any(map(str.isdecimal, text)) or (thousands == "" and "_" in text):
                continue
            (found,) = as_numbers(objects(text), reading)
            wanted = oracle(text, decimal, thousands, reading.symbol)
            assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (text, thousands)
            tried += 1
            readable += not math.isnan(wanted)
    assert tried > 1500
    assert readable > 150


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("thousands", ["", ".", ",", "'", " ", "\u00a0", "\u202f", "_"])
def test_numbers_with_groups_come_back(decimal: str, thousands: str) -> None:
    if decimal == thousands:
        return
    reading = Reading(decimal=decimal, thousands=thousands, symbol=("€",))
    numbers = [0.0, 7.0, 999.5, 1000.0, 1234567.25, -1e15, -0.125]
    texts = [f"{x:,.3f}".translate({ord(","): thousands, ord("."): decimal}) for x in numbers]
    for before, after in itertools.product(("", "€", "€ "), ("", " €")):
        written = [text.replace("-", f"-{before}") if text.startswith("-") else before + text for text in texts]
        one = [text + after for text in written] if not before else written
        assert as_numbers(objects(*one), reading).tolist() == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.234.567,8", 1234567.8),
        ("1234567,8", 1234567.8),
        ("12.34", None),
        ("1.2345", None),
        ("0.123", None),
        ("1234.567", None),
        ("1.234e5", None),
        ("1,5e3", 1500.0),
        (",5", 0.5),
        ("5,", 5.0),
        (",", None),
        ("e5", None),
        ("1,2,3", None),
        ("--7", None),
        ("-€-7", None),
        ("€", None),
        ("€€7", None),
        ("€7€", None),
        ("7 €", 7.0),
        ("-€7", -7.0),
        ("€-7", -7.0),
        ("- € 7", -7.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("true", 1.0),
        ("1,5", 1.5),
        (1.5, 1.5),
        (Decimal("1.5"), 1.5),
        (True, 1.0),
    ],
)
def test_a_german_number_is_never_guessed(text: object, number: float | None) -> None:
    found = as_numbers(objects(text), Reading(decimal=",", thousands=".", symbol=("€",)))[0]
    assert found == number or (number is None and math.isnan(found))


def test_codes_of_missing_numbers_mean_one_number_in_every_type() -> None:
    column = Ordered(name="x", low=0, high=9, missing=True, reading=Reading(missing_codes=("-9", "N", "99")))
    missing = objects("-9", " -9.0 ", "-09", -9, -9.0, Decimal("-9.00"), np.int8(-9), "99", 99.0, "N", "", None, "x")
    assert np.isnan(column.clean(missing)).all()
    assert column.clean(objects("-8", "98", -9.5, 100)).tolist() == [0, 9, 0, 9]
    many = np.resize(np.array([-9, 3, 99, -8]), MIN_COMPILED_ROWS)
    for typed in (many, many.astype(float), many.astype(np.int8), np.ma.masked_array(many, mask=many == 3)):
        assert np.array_equal(column.clean(typed), column.clean(typed.astype(object)), equal_nan=True)
        assert np.isnan(column.clean(typed)[many == -9]).all()
    assert typed is not many


def test_codes_of_missing_days_mean_one_day_in_every_type() -> None:
    reading = Reading(format="%m/%d/%Y", missing_codes=("12/31/9999", "1900-01-01"))
    column = Ordered(name="x", kind="date", low=0, high=10, missing=True, reading=reading)
    typed = np.array(["9999-12-31", "1900-01-01T10", "1970-01-03"], dtype="datetime64[s]")
    texts = objects("12/31/9999", "1/1/1900", "1/3/1970")
    for values in (typed, typed.astype(object), texts):
        clean = column.clean(values)
        assert np.isnan(clean[:2]).all()
        assert clean[2] == 2


def test_labels_without_regard_to_blanks_and_case() -> None:
    reading = Reading(strip=True, case="ignore", missing_codes=("N/A",))
    column = Category(name="x", values=("Private", " Straße"), other=True, missing=True, reading=reading)
    values = objects(" private", "PRIVATE\t", "STRASSE", "n/a ", "", "  ", None, "priv ate", "OTHER")
    assert column.clean(values).tolist() == [0, 0, 1, 3, 3, 3, 3, 2, 2]
    assert column.encode(objects("Private", " private", " Straße", "N/A")).tolist() == [0, 2, 1, 2]


def test_codes_without_other_options_keep_labels_exact() -> None:
    column = Category(name="x", values=("a",), other=True, missing=True, reading=Reading(missing_codes=("N",)))
    assert column.clean(objects("a", " a", "A", "N", " N ", "n")).tolist() == [0, 1, 1, 2, 2, 1]


@pytest.mark.parametrize(
    ("words", "values", "truths"),
    [
        ((), ("yes", "0", "T", "x", True), [1, 0, 1, 2, 1]),
        (("nein", "ja"), ("JA ", "nein", "yes", "0", False), [1, 0, 1, 0, 0]),
        (("1", "2"), ("1", "2", 2.0, "yes", "0", "true", True), [0, 1, 1, 2, 2, 1, 1]),
        (("m", "f"), ("f", "m", "F", "t", "1", "false"), [1, 0, 1, 2, 2, 0]),
    ],
)
def test_words_of_booleans(words: tuple[str, ...], values: tuple[object, ...], truths: list[int]) -> None:
    column = Category(name="x", kind="boolean", values=("false", "true"), missing=True, reading=Reading(values=words))
    assert column.clean(objects(*values)).tolist() == truths


def test_codes_of_missing_truths_come_before_the_usual_words() -> None:
    reading = Reading(values=("no", "yes"), missing_codes=("N", "0"))
    column = Category(name="x", kind="boolean", values=("false", "true"), missing=True, reading=reading)
    assert column.clean(objects("n", 0, 0.0, "no", "false", 1)).tolist() == [2, 2, 2, 0, 0, 1]


def test_values_of_the_column_are_encoded_without_the_reading() -> None:
    column = Ordered(name="x", kind="number", low=0, high=5000, reading=Reading(decimal=",", thousands="."))
    assert column.clean(objects("1.234")).item() * 5000 == pytest.approx(1234)
    assert column.encode(objects("1.234")).item() * 5000 == pytest.approx(1.234)
    assert column.plain.reading is PLAIN
    assert pickle.loads(pickle.dumps(column)) == column
    assert pickle.loads(pickle.dumps(column.plain)).reading.is_plain
