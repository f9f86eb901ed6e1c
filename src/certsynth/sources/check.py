"""How well a schema fits a table: for the eyes of the data owner, since it is not private."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from certsynth.algorithm.declaration import takes
from certsynth.algorithm.options import CheckOptions
from certsynth.base.progress import with_progress
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.cleaning import Raw, as_labels
from certsynth.domain.condition import figures
from certsynth.domain.expression import list_names
from certsynth.domain.persons import entries_among
from certsynth.domain.schema import describe, entry_lines
from certsynth.sources import open_source, refuse_ambiguous_types
from certsynth.sources.diagnosis import Remedy, diagnose
from certsynth.sources.outcomes import MISFITS, TIMES, Outcome, outcomes
from certsynth.sources.person_check import PersonCheck, PersonTally
from certsynth.sources.persons import batches_with_ids, refuse_unreadable_ids
from certsynth.sources.reading import objects

NOT_PRIVATE = "NOT private: for the eyes of the data owner. Do not publish this."

CHECK_PHASE = "checking rows"

MAX_TEXTS = 10_000
"""Most distinct texts of a column that are kept for the diagnosis, of those that fit and of those that do not."""

MAX_TEXTS_IN_ALL = 1_000_000
"""Most texts that are kept for all columns together."""

MAX_TEXT_CHARACTERS = 1_000
"""Most characters of a text that is kept."""

MAX_EXAMPLES = 3
"""Most texts of a column that are quoted, and only if the owner asks for examples."""

MAX_DIFFERENCE = 1e-6
"""Largest difference of a derived number from the one in the table that counts as rounding, relative to the range."""


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """How the values of one column fit: numbers of rows, likely causes, and the lines of the schema to write.

    `replaced` values are read as another value, since the schema has no place for them: a missing, unlisted or
    unreadable one becomes missing, `other`, the lowest value or the first label. `rounded` values are within bounds.
    """

    name: str
    kind: str
    rows: int
    below: int
    above: int
    unlisted: int
    unreadable: int
    missing: int
    replaced: int
    rounded: int
    allows_missing: bool
    fits: bool
    causes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    constant: bool = False
    unused_labels: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def clipped(self) -> int:
        """The number of values outside the bounds."""
        return self.below + self.above

    def share(self, number: int) -> float:
        """A number of rows as a share of all rows."""
        return number / self.rows if self.rows else 0.0

    @property
    def summary(self) -> str:
        """The values that do not fit, in words."""
        counts = {
            "below low": self.below,
            "above high": self.above,
            "unlisted": self.unlisted,
            "unreadable": self.unreadable,
            "missing": 0 if self.allows_missing else self.missing,
        }
        return ", ".join(f"{rows:,} {what} ({percent(self.share(rows))})" for what, rows in counts.items() if rows)

    def to_dict(self) -> dict[str, Any]:
        """The column as JSON."""
        counted = ("below", "above", "unlisted", "unreadable", "missing", "replaced", "rounded")
        return {
            "column": self.name,
            "kind": self.kind,
            "fits": self.fits,
            **{name: {"rows": (rows := getattr(self, name)), "share": self.share(rows)} for name in counted},
            "causes": list(self.causes),
            "lines": list(self.lines),
            "constant": self.constant,
            "unused_labels": list(self.unused_labels),
            "examples": list(self.examples),
        }


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """How many rows break a rule, or differ from a derived column."""

    what: str
    broken: int
    rows: int

    @property
    def share(self) -> float:
        return self.broken / self.rows if self.rows else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"what": self.what, "rows": self.broken, "share": self.share}


@dataclass(frozen=True, slots=True, repr=False)
class TableCheck:
    """How a schema fits a table. NOT private: for the eyes of the data owner."""

    rows: int
    columns: tuple[ColumnCheck, ...]
    rules: tuple[RuleCheck, ...]
    derived: tuple[RuleCheck, ...]
    not_in_schema: tuple[str, ...]
    persons: PersonCheck | None = None

    @property
    def misfits(self) -> tuple[ColumnCheck, ...]:
        """The columns with values that do not fit."""
        return tuple(column for column in self.columns if not column.fits)

    @property
    def fits(self) -> bool:
        """Whether there are rows, and all values, rules and derived columns fit."""
        return bool(self.rows) and not self.misfits and not any(each.broken for each in (*self.rules, *self.derived))

    def __repr__(self) -> str:
        """A line on the whole, and one for each column that does not fit."""
        lines = [f"TableCheck({'fits' if self.fits else 'does not fit'}, {self.rows:,} rows; {NOT_PRIVATE})"]
        for column in self.misfits:
            remedy = f": {', '.join(column.lines)}" if column.lines else ""
            lines.append(f"  {column.name}: {'; '.join([column.summary, *column.causes])}{remedy}")
        broken = [each for each in (*self.rules, *self.derived) if each.broken]
        return "\n".join([*lines, *(f"  {each.what}: {each.broken:,} rows differ" for each in broken)])

    def to_dict(self) -> dict[str, Any]:
        """The output of `certsynth check --json`."""
        return {
            "private": False,
            "notice": NOT_PRIVATE,
            "fits": self.fits,
            "rows": self.rows,
            "columns": [column.to_dict() for column in self.columns],
            "rules": [rule.to_dict() for rule in self.rules],
            "derived": [each.to_dict() for each in self.derived],
            "not_in_schema": list(self.not_in_schema),
            **({} if self.persons is None else {"persons": self.persons.to_dict()}),
        }


@takes(CheckOptions)
def check(data: Any, schema: Schema, **options: Unpack[CheckOptions]) -> TableCheck:
    """Check how well a schema fits a table. NOT PRIVATE: the result must not leave your organisation.

    It counts the values that are clipped, unlisted, unreadable or missing, says why they probably are, and proposes
    lines for the schema. It spends no budget and writes nothing. The schema may be a draft.

    Args:
        data: The private table, in any form that `release` takes.
        schema: The schema of the rows.
    """
    schema = schema.with_persons(**entries_among(options))
    source = open_source(data, what="data", persons=schema.persons)
    refuse_ambiguous_types(source, schema)
    room = max(MAX_TEXTS_IN_ALL // len(schema), 1)
    columns = [_ColumnTally(column, min(MAX_TEXTS, room)) for column in schema]
    relations = _Relations(schema)
    persons = schema.persons
    people = None if persons is None else PersonTally()
    batches = source.batches(schema.names) if persons is None else batches_with_ids(source, schema, persons.column)
    rows = 0
    for batch in with_progress(batches, CHECK_PHASE, source.size_hint(), hidden=False, progress=options["progress"]):
        rows += len(batch[0])
        if people is not None and persons is not None:
            refuse_unreadable_ids(people.add(batch.pop(0)), source, persons.column)
        relations.add([tally.add(raw) for tally, raw in zip(columns, batch, strict=True)])
    known = {*schema.names, *([] if persons is None else [persons.column])}
    return TableCheck(
        rows=rows,
        columns=tuple(tally.result(rows, examples=options["examples"]) for tally in columns),
        rules=relations.rules(rows),
        derived=relations.derived(rows),
        not_in_schema=tuple(name for name in source.names if name not in known),
        persons=None if people is None or persons is None else people.result(persons),
    )


class _ColumnTally:
    """Counts of the outcomes of one column, and a bounded number of its distinct texts."""

    def __init__(self, column: Column, room: int) -> None:
        self.column, self.room = column, room
        self.counts = np.zeros(len(Outcome), np.int64)
        self.fitting: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.labels_seen = np.zeros(len(_labels(column)), dtype=bool)
        self.low, self.high, self.absent = np.inf, -np.inf, False

    def add(self, raw: Raw) -> np.ndarray:
        """Add a batch of raw values, and return them cleaned."""
        clean = self.column.clean(raw)
        values = np.asarray(clean, dtype=float)
        present = values[~np.isnan(values)]
        self.absent |= len(present) < len(values)
        self.low = float(present.min(initial=self.low))
        self.high = float(present.max(initial=self.high))
        if raw.dtype.kind == "O":
            listed = raw.tolist()
            texts = Counter(value for value in listed if type(value) is str)
            self._count_texts(texts)
            if len(listed) > texts.total():
                self._count_values(objects([value for value in listed if type(value) is not str]))
        else:
            self._count_values(raw)
        return clean

    def _count_texts(self, texts: Counter[str]) -> None:
        """Count texts, each distinct one read once."""
        order = list(texts)
        rows = np.array([texts[text] for text in order], np.int64)
        found = outcomes(self.column, objects(order))
        self.counts += np.bincount(found, rows, len(Outcome)).astype(np.int64)
        for text, times, outcome in zip(order, rows.tolist(), found.tolist(), strict=True):
            self._keep(text, times, misfit=outcome in MISFITS)
        if len(self.labels_seen):
            self._see(self.column.clean(objects(order))[found == Outcome.FITS])

    def _count_values(self, raw: Raw) -> None:
        """Count typed values. They are kept as texts if these are read alike: typed dates have no format."""
        found = outcomes(self.column, raw)
        self.counts += np.bincount(found, minlength=len(Outcome))
        for misfit in (False, True):
            texts = _texts_of(raw[np.isin(found, MISFITS) == misfit])
            order = list(texts)
            alike = np.isin(outcomes(self.column, objects(order)), MISFITS) == misfit
            for text, same in zip(order, alike.tolist(), strict=True):
                if same:
                    self._keep(text, texts[text], misfit=misfit)
        if len(self.labels_seen):
            self._see(self.column.clean(raw)[found == Outcome.FITS])

    def _keep(self, text: str, times: int, *, misfit: bool) -> None:
        kept = self.others if misfit else self.fitting
        if text in kept or (len(kept) < self.room and len(text) <= MAX_TEXT_CHARACTERS):
            kept[text] += times

    def _see(self, clean: np.ndarray) -> None:
        self.labels_seen[np.unique(clean).astype(np.int64)] = True

    def result(self, rows: int, *, examples: bool) -> ColumnCheck:
        column, number = self.column, {outcome: int(self.counts[outcome]) for outcome in Outcome}
        missing = {"": number[Outcome.MISSING]} if number[Outcome.MISSING] else {}
        cured, remedies = diagnose(column, {**self.fitting, **self.others, **missing})
        has_other = isinstance(column, Category) and column.other
        lacks_missing = number[Outcome.MISSING] if not column.missing else 0
        replaced = number[Outcome.UNREADABLE] + (0 if has_other else number[Outcome.UNLISTED]) + lacks_missing
        clipped = number[Outcome.BELOW] + number[Outcome.ABOVE]
        # With other = true, unlisted labels are expected, unless it seems that the schema lists them after all.
        nothing_listed = bool(number[Outcome.UNLISTED]) and not number[Outcome.FITS]
        causes = [remedy.cause for remedy in remedies]
        # Where no remedy is known, all misfits remain, also of values whose texts were not kept.
        left = outcomes(cured, objects(list(self.others))) if remedies else np.flatnonzero(self.counts)
        causes += _remaining(cured, set(left.tolist()), nothing_listed=nothing_listed)
        fits = not (remedies or clipped or replaced or nothing_listed)
        unused = [label for label, seen in zip(_labels(column), self.labels_seen, strict=True) if not seen]
        return ColumnCheck(
            name=column.name,
            kind=getattr(column, "kind", ""),
            rows=rows,
            below=number[Outcome.BELOW],
            above=number[Outcome.ABOVE],
            unlisted=number[Outcome.UNLISTED],
            unreadable=number[Outcome.UNREADABLE],
            missing=number[Outcome.MISSING],
            replaced=replaced,
            rounded=number[Outcome.ROUNDED],
            allows_missing=column.missing,
            fits=fits,
            causes=tuple(causes),
            lines=_lines(cured, remedies, examples=examples),
            constant=rows > 1 and ((self.low == self.high and not self.absent) or self.low > self.high),
            unused_labels=tuple(unused),
            examples=tuple(text for text, _ in self.others.most_common(MAX_EXAMPLES)) if examples else (),
        )


def _remaining(cured: Column, left: set[int], *, nothing_listed: bool) -> list[str]:
    """What the remedies do not cure, in words, by the outcomes that are left."""
    what = "dates" if getattr(cured, "kind", "") in TIMES else "numbers"
    causes = []
    if left & {Outcome.BELOW, Outcome.ABOVE}:
        causes.append("values outside low … high: compare the bounds with the code book, or accept the clipping")
    if Outcome.UNREADABLE in left:
        causes.append(f"texts that are not {what}, or not all written alike: correct them in the data")
    if Outcome.UNLISTED in left and getattr(cured, "kind", "") == "boolean":
        causes.append("words other than true and false: write the word for false and the one for true in values")
    elif Outcome.UNLISTED in left and not (isinstance(cured, Category) and cured.other):
        causes.append("labels that the schema does not list: compare the list with the code book")
    elif nothing_listed and Outcome.UNLISTED in left:
        causes.append("no listed label occurs: is this the right column, or the right list?")
    return causes


def _lines(cured: Column, remedies: Sequence[Remedy], *, examples: bool) -> tuple[str, ...]:
    """The lines to write in the schema. Texts of the rows are shown only with examples."""
    keys = {key: remedy.quotes for remedy in remedies for key in remedy.entries}
    entries = describe(cured)
    hidden = [key for key, quotes in keys.items() if quotes and not examples]
    shown = entry_lines({key: value for key, value in entries.items() if key in keys and key not in hidden})
    return (*shown, *(f"{key} = …  # these texts are shown with --examples" for key in hidden))


class _Relations:
    """Counts of rows that break rules, and of rows that differ from a derived column."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.broken = np.zeros(len(schema.constraints), np.int64)
        self.differing = np.zeros(len(schema.formulas), np.int64)
        used = {name for rule in schema.constraints for name in rule.columns}
        used |= {name for formula in schema.formulas for name in (formula.column.name, *formula.sources)}
        self.used = [(i, column) for i, column in enumerate(schema) if column.name in used]

    def add(self, clean: Sequence[np.ndarray]) -> None:
        """Add a batch of cleaned columns."""
        rows = {column.name: figures(column, column.decode(clean[i])) for i, column in self.used}
        for i, rule in enumerate(self.schema.constraints):
            self.broken[i] += int(np.count_nonzero(rule.violated(rows)))
        for i, formula in enumerate(self.schema.formulas):
            computed, read = formula.of(rows), rows[formula.column.name]
            allowed = MAX_DIFFERENCE * _range(formula.column)
            same = (np.abs(computed - read) <= allowed) | (np.isnan(computed) & np.isnan(read))
            self.differing[i] += int(np.count_nonzero(~same))

    def rules(self, rows: int) -> tuple[RuleCheck, ...]:
        schema = self.schema
        texts = (", ".join(entry_lines(rule.entries())) for rule in schema.rules)
        return tuple(
            RuleCheck(f"rule {i + 1} ({text})", int(broken), rows)
            for i, (text, broken) in enumerate(zip(texts, self.broken, strict=True))
        )

    def derived(self, rows: int) -> tuple[RuleCheck, ...]:
        return tuple(
            RuleCheck(f"{formula.column.name}, derived from {list_names(formula.sources)}", int(differing), rows)
            for formula, differing in zip(self.schema.formulas, self.differing, strict=True)
        )


def _range(column: Column) -> float:
    is_number = isinstance(column, Ordered) and column.kind == "number"
    return float(column.high - column.low) if is_number and isinstance(column, Ordered) else 0.0


def percent(share: float) -> str:
    """A share as a percentage: a dash for nothing, and never 0.0 % or 100.0 % for anything else.

    >>> percent(0), percent(1e-9), percent(0.12345), percent(0.99999), percent(1)
    ('–', '<0.1 %', '12.3 %', '>99.9 %', '100 %')
    """
    if share in (0, 1):
        return "100 %" if share else "–"
    return "<0.1 %" if share < 0.001 else ">99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def _labels(column: Column) -> tuple[str, ...]:
    if isinstance(column, Category):
        return column.labels
    return column.values if isinstance(column, Ordered) else ()


def _texts_of(raw: Raw) -> dict[str, int]:
    """The distinct values as texts, with the number of rows of each; missing ones are left out."""
    if raw.dtype.kind == "O":
        texts: Counter[str | None] = Counter(as_labels(raw))
        return {text: times for text, times in texts.items() if text}
    values, times = np.unique(np.ma.compressed(raw), return_counts=True)
    return {text: n for text, n in zip(as_labels(values), times.tolist(), strict=True) if text}
