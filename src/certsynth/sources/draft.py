"""A first schema drafted from rows, for a person to edit.

It shows extremes and labels of the rows, so a draft made from private rows is not private. It is marked as a draft
(`draft = true`), and a person must replace its bounds and labels by those of the code book. Comments in the file mark
the columns that need a decision.
"""

from __future__ import annotations

import datetime
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.base.clock import DAYS, SECONDS
from certsynth.base.days import to_days
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.labels import check_text, tree_column
from certsynth.domain.schema import MAX_COLUMNS, MAX_OFFSET, describe, entry_lines, read_column
from certsynth.errors import InputError, SchemaError
from certsynth.sources import open_source
from certsynth.sources.diagnosis import (
    MISSING_WORDS,
    SENTINELS,
    describe_style,
    missing_words,
    numbers_with,
    other_order,
    truth_words,
)
from certsynth.sources.functions import FunctionSearch
from certsynth.sources.summary import ColumnSummary, ReadingSoFar

MAX_LISTED_LABELS = 50
"""Most labels that a draft lists: they are texts of private rows, and a person must check each of them."""

UNIT_QUESTION = "? (what one row stands for: one person, one visit, one household …)"
"""The unit of a draft. A release needs the answer."""

MAX_SHARE_DISTINCT = 0.95
"""A column in which a larger share of the values is distinct looks like an identifier."""

MIN_ROWS_OF_IDENTIFIER = 50
"""Rows from which distinct values suggest an identifier."""

MIN_PERSONS = 20
"""Distinct values from which a repeated identifier may name persons."""

MIN_WORDS_OF_TEXT = 4
"""Average number of words from which labels look like free text."""

MAX_CODES = 10
"""Most distinct whole numbers that may be codes of a category."""

MAX_CODE = 20
"""Largest whole number that may be such a code."""

COMMENT_WIDTH = 110
"""Characters of a line of a comment."""

SKEW = 20
"""Amounts are skewed if the largest is this many times the value that 95 of 100 rows stay below."""

_PERSON_NAME = re.compile(
    r"(^|[_\W])(account|borrower|client|customer|driver|employee|household|member|patient|person|student|subject|user)s?$",
    re.IGNORECASE,
)
_IDENTIFIER_NAME = re.compile(r"(^|[_\W])(id|nr|no|key|uuid|guid|number)$|[a-z]I[dD]$", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?!00:00(:00(\.0*)?)?\s*$)[0-9]")

_DAY_RANGE = (to_days(datetime.date.min), to_days(datetime.date.max))
_MAX_INTEGER = 2**53
_MAX_NUMBER = 1e300


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted schema, with notes on columns that need a decision. Both show private values."""

    schema: Schema
    notes: Mapping[str, tuple[str, ...]]
    table_notes: tuple[str, ...] = ()

    def to_toml(self) -> str:
        """The schema as TOML, with the notes as comments."""
        columns = iter(self.schema.names)
        written: list[str] = []
        for line in self.schema.to_toml().split("\n"):
            if line == "[[column]]" and "[[column]]" not in written:
                written[-1:] = [line for note in self.table_notes for line in _comment(note)] + written[-1:]
            written.append(line)
            if line == "[[column]]":
                written += [line for note in self.notes.get(next(columns), ()) for line in _comment(note)]
        return "\n".join(written)


def _suggest(sentence: str, **entries: Any) -> str:
    """A note that ends with lines to write in the schema."""
    return "\n".join([sentence, *entry_lines(entries)])


def _comment(note: str) -> list[str]:
    """A note as a comment: its sentence is wrapped, and the lines to write stay whole."""
    sentence, *lines = note.split("\n")
    wrapped = textwrap.wrap(sentence, COMMENT_WIDTH - len("# "), break_long_words=False, break_on_hyphens=False)
    # It may quote texts of the rows, and TOML allows no control characters in comments.
    return ["# " + "".join(c if c.isprintable() else "?" for c in line) for line in [*wrapped, *lines]]


def draft_schema(data: Any, name: str = "table", trees: Mapping[str, Sequence[str]] | None = None) -> Schema:
    """Draft a schema for a table: a path, a frame, a relation or an open source. `draft_table` adds notes to it.

    Whole numbers become integers, other numbers become numbers, dates become dates, true and false become booleans,
    and everything else becomes categories. Options for reading are proposed where all texts fit with them. Columns and
    labels that no schema may have (formulas, control characters) are left out. `trees` maps columns of hierarchical
    codes to the paths of their tree.

    >>> import duckdb
    >>> table = duckdb.sql("FROM (VALUES ('007', 34, 'true'), ('012', 7, '')) AS t(code, age, owner)")
    >>> print(draft_schema(table).to_toml())
    [table]
    name = "table"
    unit = "? (what one row stands for: one person, one visit, one household …)"
    draft = true
    <BLANKLINE>
    [[column]]
    name = "code"
    kind = "category"
    values = ["007", "012"]
    other = false
    missing = false
    <BLANKLINE>
    [[column]]
    name = "age"
    kind = "integer"
    low = 7
    high = 34
    missing = false
    <BLANKLINE>
    [[column]]
    name = "owner"
    kind = "boolean"
    missing = true
    <BLANKLINE>
    """
    return draft_table(data, name, trees).schema


def draft_table(data: Any, name: str = "table", trees: Mapping[str, Sequence[str]] | None = None) -> Draft:
    """As `draft_schema`, with notes on columns that need a decision."""
    source = open_source(data)
    # A schema may have only one of several names that differ in case alone.
    first: dict[str, str] = {}
    for title in filter(_allowed, source.names):
        first.setdefault(title.casefold(), title)
    names = list(first.values())[:MAX_COLUMNS]
    if not names:
        raise InputError("no column has a name that a schema could use. Name the columns in the data.")
    trees = trees or {}
    for column_name in trees:
        if column_name not in names:
            raise InputError(f"column {column_name!r:.60} is not in the data, which has: {', '.join(names)}.")
    summaries = [ColumnSummary() for _ in names]
    functions = FunctionSearch(len(names))
    for batch in source.batches(names):
        for summary, raw in zip(summaries, batch, strict=True):
            summary.look(raw)
        functions.add(batch)
    drafts = [
        (_tree(title, trees[title], summary), []) if title in trees else _draft_column(title, summary)
        for title, summary in zip(names, summaries, strict=True)
    ]
    for target, origin in functions.found().items():
        is_number = getattr(drafts[origin][0], "kind", "") == "number"  # a map cannot list all its values
        function = {"expression": "…"} if is_number else {"from": names[origin], "map": "FILE.csv"}
        sentence = f'Each value of "{names[origin]}" goes with one value here. If that is always so, write:'
        drafts[target][1].append(_suggest(sentence, derived=function))
    schema = Schema(
        columns=tuple(column for column, _ in drafts),
        name=name if _allowed(name) else "table",
        unit=UNIT_QUESTION,
        draft=True,
    )
    notes = {column.name: tuple(notes) for column, notes in drafts if notes}
    persons = [title for title, summary in zip(names, summaries, strict=True) if _names_persons(title, summary)]
    return Draft(schema, notes, tuple(map(_person_note, persons[:1])))


def _names_persons(name: str, summary: ColumnSummary) -> bool:
    """Whether a column looks like an identifier of which some values have several rows."""
    return bool(_IDENTIFIER_NAME.search(name) or _PERSON_NAME.search(name)) and (
        len(summary.texts) >= MIN_PERSONS and summary.texts.total() > len(summary.texts) and not _all_distinct(summary)
    )


def _person_note(name: str) -> str:
    sentence = f'If "{name}" says whose row it is, delete its [[column]] and write how many rows of each are kept:'
    return "\n".join([*_suggest(sentence, person=name).split("\n"), "rows_per_person = …"])


def _draft_column(name: str, summary: ColumnSummary) -> tuple[Column, list[str]]:
    """The column that the rows suggest, and notes on it."""
    notes: list[str] = []
    if not summary.crowded and len(summary.texts) == 1 and summary.rows > 1 and not summary.absent:
        notes.append("All rows hold the same value: delete this column, or state what else may occur.")
    for propose in (_boolean, _line, _category):
        more: list[str] = []
        if column := propose(name, summary, more):
            break
    assert column is not None
    return column, [*notes, *more]


# ------------------------------------------------------------ booleans, numbers and dates


def _boolean(name: str, summary: ColumnSummary, notes: list[str]) -> Column | None:
    words = None if summary.crowded else truth_words(summary.texts)
    if words is None:
        only = {text.strip().casefold() for text in summary.texts}
        words = ("false", "true") if only and only <= {"false", "true"} and not summary.crowded else None
    if words is None:
        return None
    codes = sorted({text.strip() for text in summary.texts if text.strip()} - _same_words(summary, words))
    missing = bool(summary.absent or codes or any(not text.strip() for text in summary.texts))
    usual = tuple(word.casefold() for word in words) == ("false", "true")
    if not usual:
        notes.append("Two values, taken for false and true: the first of values is false.")
    entries = {} if usual else {"values": list(words)}
    return _built({"name": name, "kind": "boolean", "missing": missing} | entries | _codes(codes, notes))


def _same_words(summary: ColumnSummary, words: Sequence[str]) -> set[str]:
    keys = {word.casefold() for word in words}
    return {text.strip() for text in summary.texts if text.strip().casefold() in keys}


def _line(name: str, summary: ColumnSummary, notes: list[str]) -> Column | None:
    """A column of numbers or dates, if all texts can be read as such."""
    readings = summary.finish()
    if not readings:
        return None
    best = readings[0]
    codes = sorted({word.strip() for word in summary.words if word.strip()})
    sentinels = _sentinels(summary, best, notes) if best.kind == "number" else []
    low, high = (best.bulk_low, best.bulk_high) if sentinels else (best.low, best.high)
    blank = any(not text.strip() for text in summary.texts)
    entries: dict[str, Any] = {"name": name, "missing": bool(summary.absent or codes or sentinels or blank)}
    if best.kind == "date":
        low, high = _within(low, high, *_DAY_RANGE)
        low, high = _separate_integers(int(low), int(high), _DAY_RANGE[1])
        column = Ordered(name=name, kind="date", low=low, high=high)
        _note_on_dates(summary, best, readings, int(high), notes)
    else:
        low, high = _within(low, high, -_MAX_NUMBER, _MAX_NUMBER)
        if best.whole and max(-low, high) <= _MAX_INTEGER and high - low <= MAX_OFFSET:
            low, high = _separate_integers(int(low), int(high), _MAX_INTEGER)
            column = Ordered(name=name, kind="integer", low=low, high=high)
        else:
            low, high = _separate_numbers(low, high)
            column = Ordered(name=name, kind="number", low=low, high=high)
        _note_on_numbers(name, summary, best, column, notes)
    if best.kind == "number" and best.entries:
        notes.append(f"Numbers with {describe_style(best.entries)}.")
    return _built(describe(column) | entries | dict(best.entries) | _codes([*codes, *sentinels], notes))


def _built(entries: Mapping[str, Any]) -> Column | None:
    """The column with these entries; None if no schema may have it."""
    try:
        return read_column(dict(entries), f"column {entries['name']!r}")
    except SchemaError:
        return None


def _codes(codes: Sequence[str], notes: list[str]) -> dict[str, Any]:
    if not codes:
        return {}
    notes.append("Some texts are read as missing: compare missing_codes with the code book.")
    return {"missing_codes": list(codes)}


def _sentinels(summary: ColumnSummary, best: ReadingSoFar, notes: list[str]) -> list[str]:
    """Well-known numbers for missing values that lie apart from all others."""
    found = sorted({text.strip() for text in summary.texts} & SENTINELS)
    if not found or len(summary.texts) - len(found) < MAX_CODES or best.bulk_low > best.bulk_high:
        return []
    numbers = dict(zip(found, numbers_with(found, best.entries).tolist(), strict=True))
    apart = [text for text in found if _is_apart(numbers[text], best)]
    if len(apart) < len(found):  # some of them are ordinary values
        inside = [numbers[text] for text in found if text not in apart]
        best.bulk_low, best.bulk_high = min(best.bulk_low, *inside), max(best.bulk_high, *inside)
    if "-1" in apart:  # too common as a value
        apart.remove("-1")
        best.bulk_low = min(best.bulk_low, -1.0)
        notes.append(_suggest("-1 may mean missing. Then write:", low=0, missing=True, missing_codes=["-1"]))
    return apart


def _is_apart(number: float, best: ReadingSoFar) -> bool:
    return best.bulk_low >= 0 if number < 0 else number > 3 * max(best.bulk_high, 1.0)


def _note_on_dates(
    summary: ColumnSummary, best: ReadingSoFar, readings: Sequence[ReadingSoFar], last_day: int, notes: list[str]
) -> None:
    form = best.entries.get("format", "")
    if any(form and other_order(form) == each.entries.get("format") for each in readings):
        notes.append(
            _suggest("Day first or month first? All dates fit both. The other one is:", format=other_order(form))
        )
    if "%H" in form or any(map(_TIME_OF_DAY.match, summary.texts)):
        step = 60 if form and "%S" not in form else 1
        last = SECONDS.moment((last_day + 1) * DAYS.seconds - step)
        steps = {"step": step} if step > 1 else {}
        notes.append(_suggest("The time of day is dropped. To keep it, write:", kind="datetime", high=last, **steps))


def _note_on_numbers(name: str, summary: ColumnSummary, best: ReadingSoFar, column: Ordered, notes: list[str]) -> None:
    distinct, present = len(summary.texts), summary.rows - summary.absent
    numbers = sorted(zip(*_numbers_of(summary, best), strict=True))
    is_short = 2 <= len(numbers) <= MAX_CODES and numbers[0][0] >= 0 and numbers[-1][0] <= MAX_CODE
    if column.kind == "integer" and is_short:
        listed = [str(int(number)) for number, _ in numbers]
        notes.append(_suggest("Codes rather than numbers? Then write:", kind="category", values=listed))
    elif column.kind == "integer" and _all_distinct(summary):
        dense = column.high - column.low < 2 * distinct and not summary.crowded
        if dense or _IDENTIFIER_NAME.search(name):
            notes.append("Nearly every row has its own number: if it is an identifier, delete this column.")
    if present and numbers and (highest := numbers[-1][0]) > SKEW * max(_quantile(numbers, 0.95), 0) > 0:
        notes.append(
            f"Skewed: few values come near the largest. Choose high from public knowledge, well below {highest:g} if "
            "that is an outlier: larger values are clipped."
        )
        if _built(describe(column) | {"scale": "log"}):  # a schema may have it
            notes.append(_suggest("Or let values be compared by their ratio:", scale="log"))


def _numbers_of(summary: ColumnSummary, best: ReadingSoFar) -> tuple[list[float], list[int]]:
    """The distinct numbers that are held, and the rows of each."""
    texts = [text for text in summary.texts if text not in summary.words and text.strip() not in SENTINELS]
    numbers = numbers_with(texts, best.entries)
    known = np.isfinite(numbers)
    return numbers[known].tolist(), [summary.texts[text] for text, there in zip(texts, known, strict=True) if there]


def _quantile(numbers: Sequence[tuple[float, int]], share: float) -> float:
    """The smallest number that at least a share of the rows does not exceed; numbers are in ascending order."""
    rows = np.cumsum([times for _, times in numbers])
    return numbers[int(np.searchsorted(rows, share * rows[-1]))][0]


def _all_distinct(summary: ColumnSummary) -> bool:
    seen = summary.texts.total()
    return seen >= MIN_ROWS_OF_IDENTIFIER and len(summary.texts) >= MAX_SHARE_DISTINCT * seen


# ------------------------------------------------------------ labels


def _category(name: str, summary: ColumnSummary, notes: list[str]) -> Category:
    labels, entries = _labels(summary, notes)
    absent = bool(summary.absent or (entries.get("strip") and any(not text.strip() for text in summary.texts)))
    often = sorted(labels, key=lambda label: (-labels[label], label))
    allowed = [label for label in often if _allowed(label)]
    listed = allowed[:MAX_LISTED_LABELS]
    if _all_distinct(summary):
        notes.append("Nearly every row has its own text: an identifier or a name? Delete this column.")
        listed = []
    elif len(labels) > MAX_LISTED_LABELS and _words_on_average(labels) >= MIN_WORDS_OF_TEXT:
        notes.append("Free text: delete this column, or replace it by a few categories.")
        listed = []
    elif len(labels) > MAX_LISTED_LABELS:
        number = f"More than {len(labels):,}" if summary.crowded else f"{len(labels):,}"
        notes.append(
            f"{number} labels: the {len(listed)} most frequent are listed, and the others are read as other. "
            "List those of the code book."
        )
    if words := missing_words(listed):
        sentence = "Do some labels mean missing? Then remove them from values, and write:"
        notes.append(_suggest(sentence, missing=True, missing_codes=words))
    other = summary.crowded or len(listed) < len(labels) or not listed
    values = sorted({*listed} - {Category.OTHER_LABEL} if other else listed) or ["value"]
    plain = Category(name=name, missing=absent, kind="category", values=tuple(values), other=other)
    column = _built(describe(plain) | entries) if entries else plain
    return column if isinstance(column, Category) else plain


def _labels(summary: ColumnSummary, notes: list[str]) -> tuple[Counter[str], dict[str, Any]]:
    """The labels with their rows, without differences in blanks and capitals if some labels differ in these alone."""
    labels, entries = summary.texts, dict[str, Any]()
    if any(text != text.strip() for text in labels):
        entries["strip"] = True
        labels = _merged(labels, str.strip)
        labels.pop("", None)
        notes.append("Blanks around some labels are ignored.")
    folded = _merged(labels, str.casefold)
    if len(folded) < len(labels) and all(len(text) > 1 for text in folded):
        entries["case"] = "ignore"
        spelt: dict[str, str] = {}
        for text, _ in labels.most_common():
            spelt.setdefault(text.casefold(), text)
        labels = Counter({spelt[key]: times for key, times in folded.items()})
        notes.append("Some labels differ in capitals alone, and are taken for one.")
    return labels, entries


def _merged(labels: Counter[str], key: Any) -> Counter[str]:
    merged: Counter[str] = Counter()
    for text, times in labels.items():
        merged[key(text)] += times
    return merged


def _words_on_average(labels: Counter[str]) -> float:
    return sum(len(label.split()) for label in labels) / max(len(labels), 1)


def _tree(name: str, paths: Sequence[str], summary: ColumnSummary) -> Category:
    """A tree column of the given codes; it allows other labels, and missing values, if the rows contain them."""
    unlisted = summary.texts.keys() - {*tree_column(name, paths).values, *paths}
    holes = {text for text in unlisted if text.strip().casefold() in MISSING_WORDS | {""}}
    other = summary.crowded or unlisted > holes
    return tree_column(name, paths, missing=bool(summary.absent or holes), other=other)


# ------------------------------------------------------------ bounds


def _within(low: float, high: float, lowest: float, highest: float) -> tuple[float, float]:
    """A range, clamped to what a schema allows."""
    if low > high:
        return 0.0, 1.0
    return min(max(low, lowest), highest), min(max(high, lowest), highest)


def _separate_integers(low: int, high: int, highest: int) -> tuple[int, int]:
    """Make bounds differ: a column of a schema has at least two values."""
    if low < high:
        return low, high
    return (low, low + 1) if low < highest else (low - 1, low)


def _separate_numbers(low: float, high: float) -> tuple[float, float]:
    if low < high:
        return low, high
    pad = max(1.0, abs(low) / 2)
    return (low - pad, low) if low > 0 else (low, low + pad)


def _allowed(text: str) -> bool:
    try:
        check_text(text, "draft")
    except SchemaError:
        return False
    return True
