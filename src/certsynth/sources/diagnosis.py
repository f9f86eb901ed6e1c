"""Diagnosis: why texts do not fit a column, and the entries of the schema with which they do.

Every proposal is tried on the texts with the column that it would make, so a proposed line does what it says. Nothing
here is private: which proposal fits depends on the rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.reading import Reading
from certsynth.domain.schema import describe, read_column
from certsynth.errors import SchemaError
from certsynth.sources.outcomes import MISFITS, TIMES, Outcome, figures_as_read, outcomes
from certsynth.sources.reading import objects

Texts = Mapping[str, int]
"""Distinct texts of a column, with the number of rows that hold each; the empty text is a missing value."""

MISSING_WORDS = frozenset(
    {"na", "n/a", "n.a.", "nan", "nat", "null", "none", "nil", "#n/a", "#na", "#null!", "?", "??", ".", "..", "..."}
    | {"n", "x", "u", "unk", "unknown", "missing", "blank", "(blank)", "nd", "n.d.", "nr", "nc", "-", "--", "---"}
    | {"not available", "not applicable", "not stated", "not reported", "unspecified", "undefined", "no data"}
    | {"k.a.", "keine angabe", "inconnu", "desconocido", "0000-00-00"}
)
"""Texts that mean missing in many tables, in lower case. In a category they may be labels: NA is Namibia's code."""

SENTINELS = frozenset(
    [str(-digit * int("1" * length)) for digit in (7, 8, 9) for length in range(1, 6)]
    + [str(digit * int("1" * length)) for digit in (7, 8, 9) for length in range(2, 8)]
    + ["-1", "9999-12-31", "1900-01-01", "1800-01-01"]
)
"""Numbers and dates that mean missing in many tables, where they lie apart from the others."""

MAX_WORDS = 5
"""Most distinct words among numbers or dates that are proposed as codes for missing values."""

MAX_LABELS_WRITTEN = 50
"""Most labels in a proposed list of values."""

SCREENED_TEXTS = 200
"""Texts on which a reading is tried first: most readings fail there, and all texts may be a hundred thousand."""

UNITS = {
    **dict.fromkeys(("€", "EUR", "eur", "Eur", "Euro", "euro", "EURO"), "euro"),
    **dict.fromkeys(("$", "USD", "usd", "US$"), "dollar"),
    **dict.fromkeys(("£", "GBP", "gbp"), "pound"),
    **dict.fromkeys(("CHF", "chf", "Fr.", "SFr."), "franc"),
    **dict.fromkeys(("¥", "JPY", "jpy"), "yen"),
    **dict.fromkeys(("kr", "kr.", "SEK", "NOK", "DKK"), "krone"),
    **dict.fromkeys(("zł", "PLN"), "zloty"),
    **dict.fromkeys(("₹", "INR", "Rs", "Rs."), "rupee"),
    **{sign: sign for sign in ("%", "‰", "₽", "₺", "₩", "₪", "₴", "R$", "A$", "C$", "NZ$", "HK$")},
}
"""Texts that stand before or after numbers, and what they mean. Numbers in two units cannot be compared."""

_DAYS = ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%y")
_WORDS = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d%b%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")

SWAPPED = {day: day.replace("%d", "?").replace("%m", "%d").replace("?", "%m") for day in _DAYS}
"""Formats with the day first, and the same with the month first: dates up to the twelfth fit both."""

DATE_FORMATS = tuple(
    date + time for date in (*_DAYS, *SWAPPED.values(), "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", *_WORDS) for time in _TIMES
)
"""Formats of dates that are tried, the likelier first."""

TRUTH_WORDS = (
    ("no", "yes"),
    ("n", "y"),
    ("false", "true"),
    ("0", "1"),
    ("nein", "ja"),
    ("n", "j"),
    ("non", "oui"),
    ("n", "o"),
    ("no", "sí"),
    ("no", "si"),
    ("n", "s"),
    ("não", "sim"),
    ("nee", "ja"),
    ("nej", "ja"),
    ("off", "on"),
    ("absent", "present"),
    ("negative", "positive"),
    ("neg", "pos"),
    ("-", "+"),
)
"""Words for false and true, in lower case."""

_NUMBER = re.compile(r"[.,]?[0-9](?:[0-9.,'_ \u00a0\u202f]*[0-9])?(?:[eE][+-]?[0-9]+)?[.,]?")
_SIGNS = " +-\u2212\u00a0\u202f"
_GROUPS = (",", ".", " ", "'", "\u00a0", "\u202f", "_")
_CODE = re.compile(r"\s*[+-]?0[0-9]")  # 00123 is a label: as a number it would lose its leading zeros


@dataclass(frozen=True, slots=True)
class Remedy:
    """A likely cause, and the entries of the column to write. `quotes` says that they hold texts of the rows."""

    cause: str
    entries: Mapping[str, Any]
    quotes: bool = False


# ------------------------------------------------------------ texts as numbers, dates and truths


def missing_words(texts: Iterable[str]) -> list[str]:
    """Those of the texts that mean missing in many tables, without blanks around them.

    >>> missing_words(["7", " N", "n/a", "north"])
    ['N', 'n/a']
    """
    return sorted({text.strip() for text in texts if text.strip().casefold() in MISSING_WORDS})


def number_styles(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Entries with which all texts are numbers, the simplest first; only well-known units are taken for symbols.

    >>> number_styles(["€ 1.234,50", "7,25 €"])
    [{'decimal': ',', 'thousands': '.', 'symbol': '€'}]
    >>> number_styles(["12", "1.5"]), number_styles(["007"]), number_styles(["north"])
    ([{}], [], [])
    """
    return [style for style in _styles(texts, known_units=True) if reads_numbers(texts, style)]


def reads_numbers(texts: Sequence[str], entries: Mapping[str, Any]) -> bool:
    """Whether all texts are numbers with these entries, none of them a code with leading zeros."""
    return all(
        not np.isnan(numbers_with(part, entries)).any() and not any(map(is_code, part))
        for part in (texts[:SCREENED_TEXTS], texts[SCREENED_TEXTS:])
    )


def is_code(text: str) -> bool:
    """Whether a text has leading zeros, which a number would lose.

    >>> is_code("007"), is_code("0.7"), is_code("€ 0")
    (True, False, False)
    """
    return _CODE.match(text) is not None


def numbers_with(texts: Sequence[str], entries: Mapping[str, Any]) -> Floats:
    """The texts read as numbers with these entries; NaN where they are none."""
    return figures_as_read(line_with("number", entries), objects(texts))


def days_with(texts: Sequence[str], entries: Mapping[str, Any]) -> Floats:
    """The texts read as days with these entries; NaN where they are none."""
    return figures_as_read(line_with("date", entries), objects(texts))


def line_with(kind: str, entries: Mapping[str, Any]) -> Ordered:
    """A column of numbers or dates with these entries, and any bounds."""
    bounds = {"low": "1970-01-01", "high": "1970-01-02"} if kind == "date" else {"low": 0, "high": 1}
    column = read_column({"name": "x", "kind": kind, **bounds, **entries}, "column 'x'")
    assert isinstance(column, Ordered)
    return column


def date_formats(texts: Sequence[str]) -> list[str]:
    """Formats in which all texts are dates, the likelier first.

    >>> date_formats(["25/03/2020", "1/4/2020"]), date_formats(["1/4/2020"])
    (['%d/%m/%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    if not texts or not all(any(letter.isdigit() for letter in text) for text in texts[:SCREENED_TEXTS]):
        return []
    return [form for form in DATE_FORMATS if reads_dates(texts, {"format": form})]


def reads_dates(texts: Sequence[str], entries: Mapping[str, Any]) -> bool:
    """Whether all texts are dates with these entries."""
    return all(
        not np.isnan(days_with(part, entries)).any() for part in (texts[:SCREENED_TEXTS], texts[SCREENED_TEXTS:])
    )


def truth_words(texts: Iterable[str]) -> tuple[str, str] | None:
    """The texts for false and for true, if both are well-known words and all others mean missing.

    >>> truth_words(["Ja", "Nein"]), truth_words(["N", "Y", "U"]), truth_words(["1", "2"])
    (('Nein', 'Ja'), ('N', 'Y'), None)
    """
    spelt = {text.strip().casefold(): text.strip() for text in texts if text.strip()}
    for false, true in TRUTH_WORDS:
        if {false, true} <= spelt.keys() and spelt.keys() - {false, true} <= MISSING_WORDS:
            return spelt[false], spelt[true]
    return None


def _styles(texts: Iterable[str], *, known_units: bool) -> Iterator[dict[str, Any]]:
    """Entries for numbers with the separators and symbols that occur in the texts, the simplest first."""
    signs: set[str] = set()
    affixes: Counter[str] = Counter()
    for text in texts:
        if found := _NUMBER.search(text):
            signs.update(sign for sign in _GROUPS if sign in found[0].strip())
            around = (text[: found.start()].strip(_SIGNS), text[found.end() :].strip(_SIGNS))
            affixes.update(affix for affix in around if affix)
    symbols = _symbols(affixes, known_units=known_units)
    if symbols is None:
        return
    with_symbol = {"symbol": symbols[0] if len(symbols) == 1 else symbols} if symbols else {}
    groups: list[dict[str, Any]] = [{}, *({"thousands": sign} for sign in _GROUPS if sign in signs)]
    points: list[dict[str, Any]] = [{}, {"decimal": ","}] if "," in signs else [{}]
    styles = [{**point, **group} for point in points for group in groups]
    for style in sorted(styles, key=len):
        if style.get("decimal", ".") != style.get("thousands"):
            yield style | with_symbol


def _symbols(affixes: Counter[str], *, known_units: bool) -> list[str] | None:
    """The symbols to ignore around numbers; None if numbers have several units."""
    known = [affix for affix in affixes if affix in UNITS]
    if len({UNITS[affix] for affix in known}) > 1:
        return None
    if known or known_units or not affixes:
        return sorted(known)
    (affix, times), *_ = affixes.most_common(1)
    return [affix] if 2 * times > affixes.total() else []


# ------------------------------------------------------------ columns


def diagnose(column: Column, texts: Texts) -> tuple[Column, tuple[Remedy, ...]]:
    """The likely causes of misfits, each with its remedy, and the column with all remedies applied."""
    patient = _Patient(column, texts)
    if isinstance(column, Ordered) and column.kind != "ordinal":
        patient.treat_figures()
    else:
        patient.treat_labels()
    patient.allow_missing()
    return patient.column, tuple(patient.remedies)


class _Patient:
    """A column and its texts, under treatment: each remedy is kept if more rows fit with it."""

    def __init__(self, column: Column, texts: Texts) -> None:
        self.column, self.texts = column, texts
        self.remedies: list[Remedy] = []
        self.order = list(texts)
        self.rows = np.array([texts[text] for text in self.order], dtype=np.int64)
        self.found = outcomes(column, objects(self.order))

    def having(self, *kinds: Outcome) -> list[str]:
        """The texts with these outcomes, the most frequent first."""
        chosen = np.flatnonzero(np.isin(self.found, kinds))
        return [self.order[i] for i in chosen[np.argsort(-self.rows[chosen], kind="stable")]]

    def misfits(self, column: Column) -> int:
        """The number of rows that do not fit."""
        return int(self.rows[np.isin(outcomes(column, objects(self.order)), MISFITS)].sum())

    def with_entries(self, entries: Mapping[str, Any]) -> Column | None:
        """The column with other entries; None if no schema may have it."""
        try:
            return read_column(describe(self.column) | dict(entries), f"column {self.column.name!r}")
        except SchemaError:
            return None

    def try_remedies(self, remedies: Iterable[Remedy]) -> bool:
        """Apply the remedy with which most rows fit, the first of several; False if none helps."""
        least, best = self.misfits(self.column), None
        for remedy in remedies:
            column = self.with_entries(remedy.entries)
            if column is not None and (left := self.misfits(column)) < least:
                least, best = left, (column, remedy)
        if best is None:
            return False
        self.apply(*best)
        return True

    def apply(self, column: Column, remedy: Remedy) -> None:
        self.column = column
        self.remedies.append(remedy)
        self.found = outcomes(column, objects(self.order))

    def add_codes(self, codes: Sequence[str], cause: str, *, quotes: bool = False) -> None:
        """Let some texts mean missing."""
        if codes:
            known = describe(self.column).get("missing_codes", [])
            entries = {"missing": True, "missing_codes": [*known, *(code for code in codes if code not in known)]}
            self.try_remedies([Remedy(cause, entries, quotes)])

    def allow_missing(self) -> None:
        if not self.column.missing and self.having(Outcome.MISSING):
            cause = "missing values, which the schema does not allow"
            self.apply(replace(self.column, missing=True), Remedy(cause, {"missing": True}))

    def treat_figures(self) -> None:
        """Numbers and dates: codes for missing values, the way they are written, other words, and sentinels."""
        assert isinstance(self.column, Ordered)
        kind: str = self.column.kind
        is_time = kind in TIMES
        self.add_codes(missing_words(self.having(Outcome.UNREADABLE)), "codes for missing values")
        if unreadable := self.having(Outcome.UNREADABLE):
            present = [*unreadable, *self.having(Outcome.FITS, Outcome.ROUNDED, Outcome.BELOW, Outcome.ABOVE)]
            remedies = _date_remedies(present, kind) if is_time else _number_remedies(present, self.column.reading)
            self.try_remedies(remedies)
        words = [text.strip() for text in self.having(Outcome.UNREADABLE)]
        if 0 < len(words) <= MAX_WORDS and not any(letter.isdigit() for word in words for letter in word):
            self.add_codes(words, f"words instead of {'dates' if is_time else 'numbers'}", quotes=True)
        sentinels = [code for side in (Outcome.BELOW, Outcome.ABOVE) for code in self._sentinels(side)]
        self.add_codes(sentinels[:MAX_WORDS], "values outside the bounds that often mean missing")

    def _sentinels(self, side: Outcome) -> list[str]:
        """Texts on one side of the bounds that may mean missing: twice as far away as any other, or there is none.

        An age of 99 next to one of 98 is an age.
        """
        column, texts = self.column, self.having(side)
        assert isinstance(column, Ordered)
        end = column.low if side is Outcome.BELOW else column.high
        away = np.abs(figures_as_read(column, objects(texts)) - end)
        known = np.array([text.strip() in SENTINELS for text in texts], dtype=bool)
        farthest = away[~known].max(initial=0.0)
        return [text.strip() for text, is_apart in zip(texts, known & (away >= 2 * farthest), strict=True) if is_apart]

    def treat_labels(self) -> None:
        """Labels: blanks, case, other words for truths, other ways to write numbers, codes for missing values."""
        column = self.column
        if isinstance(column, Category) and column.kind == "boolean":
            if words := truth_words(self.having(Outcome.UNLISTED, Outcome.FITS)):
                self.try_remedies([Remedy("other words for false and true", {"values": list(words)})])
            self.add_codes(missing_words(self.having(Outcome.UNLISTED)), "codes for missing values")
            return
        strip, ignore = {"strip": True}, {"case": "ignore"}
        self.try_remedies(
            [
                Remedy("blanks around the labels", strip),
                Remedy("labels with other capitals than in the schema", ignore),
                Remedy("blanks around the labels, and other capitals than in the schema", strip | ignore),
            ]
        )
        if values := _respelt(self.column, self.having(Outcome.UNLISTED), set(self.having(Outcome.FITS))):
            self.try_remedies([Remedy("numbers with leading zeros or a decimal point", {"values": values})])
        if not getattr(column, "other", False):  # with it, unlisted texts have their place
            self.add_codes(missing_words(self.having(Outcome.UNLISTED)), "codes for missing values")
        with_other = self.with_entries({"other": True}) if isinstance(column, Category) and not column.other else None
        if with_other is not None and self.having(Outcome.UNLISTED):
            self.apply(with_other, Remedy("labels that the schema does not list", {"other": True}))


def describe_style(style: Mapping[str, Any]) -> str:
    """What is unusual about the numbers of a style.

    >>> describe_style({"decimal": ",", "symbol": "€"})
    'a decimal comma and a currency sign or a unit'
    """
    point = "a decimal comma" if style.get("decimal") == "," else "a decimal point"
    words = {"decimal": point, "thousands": "a thousands separator", "symbol": "a currency sign or a unit"}
    listed = [words[key] for key in style]
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if listed[:-1] else listed)


def _number_remedies(texts: Sequence[str], now: Reading) -> Iterator[Remedy]:
    """Styles that differ from the present reading; separators that it states are replaced, not left out."""
    for style in _styles(texts, known_units=False):
        if now.decimal == ",":
            style.setdefault("decimal", ".")
        if now.thousands:
            style.setdefault("thousands", "," if style.get("decimal", ".") == "." else ".")
        if style:
            symbols = style.get("symbol", [])
            known = all(symbol in UNITS for symbol in ([symbols] if isinstance(symbols, str) else symbols))
            yield Remedy(describe_style(style), style, quotes=not known)


def _date_remedies(texts: Sequence[str], kind: str) -> Iterator[Remedy]:
    for form in DATE_FORMATS if kind == "date" else sorted(DATE_FORMATS, key=lambda form: "%H" not in form):
        if not np.isnan(days_with(texts[:SCREENED_TEXTS], {"format": form})).all():
            minutes = {"step": 60} if kind == "datetime" and "%S" not in form else {}
            yield Remedy(_describe_format(form, texts), {"format": form, **minutes})


def _describe_format(form: str, texts: Sequence[str]) -> str:
    date = next((date for date in (*SWAPPED, *SWAPPED.values()) if form.startswith(date)), None)
    if date is None:
        return "dates in another format"
    first, other = ("day", "month") if date.startswith("%d") else ("month", "day")
    twin = other_order(form)
    if twin is not None and not np.isnan(days_with(texts, {"format": form}) + days_with(texts, {"format": twin})).any():
        return f"dates in another format: the {first} or the {other} comes first, and the rows do not tell which"
    return f"dates in another format, with the {first} first"


def other_order(form: str) -> str | None:
    """The format with day and month exchanged, for formats in which they can be confused."""
    for day, month in SWAPPED.items():
        for one, two in ((day, month), (month, day)):
            if form.startswith(one):
                return two + form.removeprefix(one)
    return None


def _respelt(column: Column, unlisted: Sequence[str], listed: set[str]) -> list[str] | None:
    """The labels as the rows write them, where these differ in leading zeros or decimals alone; None if they do not."""
    kind = getattr(column, "kind", "")
    labels = getattr(column, "values", ())
    cuts = getattr(column, "special", ()) or getattr(column, "bands", ())
    if kind not in ("category", "ordinal") or cuts or len(labels) > MAX_LABELS_WRITTEN:
        return None
    spelt = {value: text for text in unlisted if (value := _plain_number(text))}
    numbers = [_plain_number(label) for label in labels]
    if not spelt or any(label in listed for label in labels):
        return None
    return [
        spelt.get(number, label) if number and numbers.count(number) == 1 else label
        for number, label in zip(numbers, labels, strict=True)
    ]


def _plain_number(text: str) -> str:
    """A number without leading zeros, and without a decimal point where it is whole; empty for other texts."""
    found = re.fullmatch(r"(-?)0*([0-9]+)(?:\.0*)?", text.strip())
    return found[1] + found[2] if found else ""
