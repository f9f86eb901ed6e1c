"""The schema: the columns and rules of a table, written by a person from public knowledge."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from certsynth.base.clock import CLOCKS, SECONDS, Clock
from certsynth.base.files import FileTooLarge, read_small_file
from certsynth.domain.category import PATH_SEPARATOR, Category
from certsynth.domain.column import Column, Ordered, exact_decimal
from certsynth.domain.derivation import Derivation, Formula, read_derivation, read_formulas
from certsynth.domain.expression import list_names
from certsynth.domain.labels import (
    MAX_TREE_CODES,
    all_codes,
    check_flag,
    check_text,
    check_values,
    labelled_column,
    plain_number,
)
from certsynth.domain.naming import UNPUBLISHED, Publication
from certsynth.domain.naming_entries import (
    NAMING_ENTRIES,
    PUBLICATION_ENTRIES,
    describe_naming,
    describe_publication,
    read_naming,
    read_publication,
)
from certsynth.domain.persons import ENTRIES as PERSON_ENTRIES
from certsynth.domain.persons import (
    PersonEntries,
    Persons,
    default_unit,
    read_persons,
    refuse_person_column,
    replace_persons,
)
from certsynth.domain.ratios import ratio_values
from certsynth.domain.reading_entries import READING_ENTRIES, describe_reading, with_reading
from certsynth.domain.rules import Constraint, Rule, read_constraints, read_rules
from certsynth.errors import SchemaError, did_you_mean

KINDS = ("integer", "number", "date", "datetime", "ordinal", "category", "boolean", "tree", "metric")
_COMMON = {"name", "kind", "missing", "weight", "derived", "target"}
_ALLOWED = {
    "integer": {"low", "high", "step", "scale", "special", "bands"},
    "number": {"low", "high", "step", "scale", "special", "bands"},
    "date": {"low", "high", "special", "bands"},
    "datetime": {"low", "high", "step", "special", "bands"},
    "ordinal": {"values", "special", "bands"},
    "category": {"values", "other"},
    "boolean": set(),
    "tree": {"values", "other"},
    "metric": {"values", "other", "matrix", "distances"},
}

# A schema may come from anybody, so all its sizes are limited.
MAX_BYTES = 16 * 2**20
MAX_COLUMNS = 1_000
MAX_CODE_PAIRS = 4 * MAX_TREE_CODES**2  # pairs of codes whose distances are kept, over all columns: 800 MB
MAX_DECIMAL = (
    2**48
)  # a bound of a column with a step, in units of its last decimal: rounding errors stay below half of it
MAX_OFFSET = 2**40  # from low to high: offsets × steps × weights stay below 2^63
MAX_CUT_VALUES = 100_000  # values of a column with special values or bands: a release numbers them all
MAX_CUTS = 64  # special values of a column, and bands
WEIGHT_PARTS = 1_000  # a weight is a multiple of 1/1000
_TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
_DRAFT = "A schema is a TOML file that you write; `certsynth schema DATA` drafts one."

# tomllib takes quadratic time for a dotted key (32 kB: 4 s). No key of a schema has a dot, so lines with many dots
# outside texts, comments and numbers are refused first. (A key may consist of digits; even then at most every other dot
# of it is mistaken for a decimal point.)
_DOTLESS = re.compile(r""" "(?:[^"\\\n]|\\.)*"? | '[^'\n]*'? | \#[^\n]* | [0-9]\.[0-9] """, re.VERBOSE)
MAX_DOTS_PER_LINE = 16

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

MAX_COLUMNS_SHOWN = 10
"""Most columns that the repr of a schema names."""


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """The columns of a table in order, with its name, the unit of privacy and the rules.

    Make one with `load` or `parse`. `len` is the number of columns, and iteration yields them. A `draft` was made from
    rows, and is refused by `release`. `persons` says whose rows they are, if one person has several. `target` names the
    column that models will predict. `constraints` are the compiled rules, and `formulas` the compiled `derivations`, in
    an order in which they can be computed.
    """

    columns: tuple[Column, ...]
    name: str = "table"
    unit: str = "one row is one person"
    draft: bool = False
    rules: tuple[Rule, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    persons: Persons | None = None
    publication: Publication = UNPUBLISHED
    target: str | None = None
    constraints: tuple[Constraint, ...] = field(init=False, repr=False, compare=False)
    formulas: tuple[Formula, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.columns:
            raise SchemaError("the schema names no column: add at least one [[column]] with a name and a kind.")
        seen: dict[str, str] = {}
        for column in self.columns:
            name, twin = column.name, seen.get(column.name.casefold())
            if twin == name:
                raise SchemaError(f"column {name!r} is listed twice: remove or rename one of the two.")
            if twin is not None:  # the files of a release could not hold both
                raise SchemaError(
                    f"columns {twin!r} and {name!r} differ in case only, and many tools take them for one: remove or "
                    "rename one of the two."
                )
            seen[name.casefold()] = name
        if self.persons is not None and self.persons.column.casefold() in seen:
            raise SchemaError(
                f"column {self.persons.column!r} names persons and is never released: remove its [[column]]."
            )
        object.__setattr__(self, "constraints", read_constraints(self.rules, self.columns))
        object.__setattr__(self, "formulas", read_formulas(self.derivations, self.columns))
        self._refuse_rules_on_derived()
        if self.target in self.derived:
            raise SchemaError(
                f"column {self.target!r} is derived and not measured: write target = true for one of "
                f"{list_names(self.sources[self.target])} instead."
            )

    def _refuse_rules_on_derived(self) -> None:
        """Rows are repaired before derived columns are computed, so rules must be about the other columns."""
        sources = self.sources
        for constraint in self.constraints:
            for name in constraint.columns:
                if name in sources:
                    raise SchemaError(
                        f"rule {constraint.number} mentions {name!r}, which is derived: write the rule for "
                        f"{list_names(sources[name])} instead."
                    )

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file. Files that it names (distances, maps) are looked for next to it."""
        path = Path(path)
        if path.name.lower().endswith(_TABLES):
            raise SchemaError(f"schema {path}: that is a table. {_DRAFT}")
        try:
            text = read_small_file(path, max_bytes=MAX_BYTES).decode()
        except FileTooLarge:
            raise SchemaError(
                f"schema {path}: larger than {MAX_BYTES >> 20} MB; a schema is a short text file."
            ) from None
        except FileNotFoundError:
            raise SchemaError(f"schema {path}: no such file. Check the path. {_DRAFT}") from None
        except OSError as error:
            raise SchemaError(f"schema {path}: {error.strerror or 'cannot be read'}. Check the path.") from None
        except UnicodeDecodeError:
            raise SchemaError(f"schema {path}: not a text file in UTF-8. Write it as TOML.") from None
        return cls.parse(text, where=str(path), folder=path.parent)

    @classmethod
    def parse(cls, text: str, *, where: str = "schema", folder: Path | None = None) -> Schema:
        """Read a schema from TOML text. Files that it names are looked for in `folder` only."""
        if any(line.count(".") > MAX_DOTS_PER_LINE for line in _DOTLESS.sub("", text).split("\n")):
            raise SchemaError(f"{where}: a key with more than {MAX_DOTS_PER_LINE} dots; a schema's keys have none.")
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a plain ValueError
            raise SchemaError(
                f"{where}: not valid TOML ({_shorten(str(error))}). See docs/reference/schema.md."
            ) from None
        return _read_schema(document, where, folder)

    def __repr__(self) -> str:
        """One line: the name, and the first columns with their kinds."""
        shown = [f"{c.name} {describe(c)['kind']}" for c in self.columns[:MAX_COLUMNS_SHOWN]]
        more = [f"and {len(self) - MAX_COLUMNS_SHOWN} more"] if len(self) > MAX_COLUMNS_SHOWN else []
        rules = f"; {len(self.rules)} rule{'s' * (len(self.rules) > 1)}" if self.rules else ""
        return f"Schema({self.name!r}{', draft' if self.draft else ''}: {', '.join(shown + more)}{rules})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def derived(self) -> frozenset[str]:
        """The names of the derived columns."""
        return frozenset(each.column for each in self.derivations)

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The columns that each derived column is computed from, in the order of the schema."""
        found = {formula.column.name: formula.sources for formula in self.formulas}
        return {name: found[name] for name in self.names if name in found}

    @property
    def measured(self) -> Schema:
        """The schema without its derived columns: what a release measures and fits."""
        if not self.derivations:
            return self
        kept = tuple(column for column in self.columns if column.name not in self.derived)
        return replace(self, columns=kept, derivations=())

    def measured_part(self, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The columns of `measured` among cleaned rows of all columns."""
        derived = self.derived
        return [values for name, values in zip(self.names, rows, strict=True) if name not in derived]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def select(self, names: Sequence[str]) -> Schema:
        """The schema of some columns, in the order given, with the rules that mention no other.

        A derived column whose sources are not all selected becomes an ordinary one.
        """
        if isinstance(names, str):
            raise SchemaError(f"give a list of column names: [{names!r:.60}] for a single column.")
        known = dict(zip(self.names, self.columns, strict=True))
        for name in names:
            if name not in known:
                refuse_person_column(self.persons, name)
                near = did_you_mean(name, self.names)
                raise SchemaError(f"column {name!r} is not in the schema, which has: {', '.join(self.names)}.{near}")
        about = zip(self.rules, self.constraints, strict=True)
        rules = tuple(rule for rule, constraint in about if set(constraint.columns) <= set(names))
        whole = {formula.column.name for formula in self.formulas if set(formula.sources) <= set(names)} & set(names)
        derivations = tuple(each for each in self.derivations if each.column in whole)
        return replace(
            self,
            columns=tuple(known[name] for name in names),
            rules=rules,
            derivations=derivations,
            target=self.target if self.target in names else None,
        )

    def with_persons(self, **entries: Unpack[PersonEntries]) -> Schema:
        """The schema with these entries about persons set or replaced; None leaves an entry as it is."""
        persons = replace_persons(self.persons, entries)
        if persons == self.persons:
            return self
        unit = default_unit(persons) if self.unit == default_unit(None) else self.unit  # it is no longer true
        return replace(self, persons=persons, unit=unit)

    def to_toml(self) -> str:
        """The schema as TOML, which `Schema.parse` reads back to an equal one."""
        lines = ["[table]", f"name = {_to_toml(self.name)}", f"unit = {_to_toml(self.unit)}"]
        if self.draft:
            lines.append("draft = true")
        if self.persons is not None:
            lines += entry_lines(self.persons.entries())
        lines += entry_lines(describe_publication(self.publication))
        derived = {each.column: {"derived": each.entries()} for each in self.derivations}
        for column in self.columns:
            lines += ["", "[[column]]"]
            lines += entry_lines(describe(column) | derived.get(column.name, {}))
            if column.name == self.target:
                lines.append("target = true")
        for rule in self.rules:
            lines += ["", "[[rule]]"]
            lines += entry_lines(rule.entries())
        return "\n".join(lines) + "\n"


def describe(column: Column) -> dict[str, Any]:
    """The entries of a column's table in the schema file."""
    entries: dict[str, Any] = {"name": column.name}
    if isinstance(column, Ordered):
        entries["kind"] = column.kind
        if column.kind == "ordinal":
            entries["values"] = list(column.values)
        else:
            ends, clock = (column.low, column.high), column.clock
            entries["low"], entries["high"] = ends if clock is None else (clock.moment(int(end)) for end in ends)
            if column.step is not None:
                entries["step"] = int(column.step) if column.whole else plain_number(column.step)
            if column.grid:
                entries["scale"] = "log"
    elif isinstance(column, Category):
        entries["kind"] = column.kind
        if column.kind != "boolean":
            entries["values"] = [PATH_SEPARATOR.join(path) for path in column.paths] or list(column.values)
            entries["other"] = column.other
        if column.kind == "metric":
            entries["distances"] = [[plain_number(distance) for distance in row] for row in column.distances]
    if isinstance(column, Ordered):
        for key, cuts in (("special", column.special), ("bands", column.bands)):
            if cuts:
                entries[key] = column.decode(np.array(cuts)).tolist()
    if column.weight != 1:
        entries["weight"] = float(column.weight)
    entries["missing"] = column.missing
    return entries | describe_reading(column) | describe_naming(column.naming)


def _read_schema(document: Mapping[str, Any], where: str, folder: Path | None) -> Schema:
    for key in document:
        if key not in ("table", "column", "rule"):
            raise SchemaError(f"{where}: unknown entry {key!r:.60}; a schema has [table] and [[column]] and [[rule]].")
    table = document.get("table", {})
    columns = document.get("column", [])
    if not isinstance(table, dict) or not isinstance(columns, list):
        raise SchemaError(f"{where}: write [table] once and [[column]] for each column.")
    for key in table:
        if key not in (possible := ("name", "unit", "draft", *PERSON_ENTRIES, *PUBLICATION_ENTRIES)):
            raise SchemaError(f"{where}: [table] has an unknown entry {key!r:.60}; it may have {', '.join(possible)}.")
    if len(columns) > MAX_COLUMNS:
        raise SchemaError(f"{where}: {len(columns)} columns; at most {MAX_COLUMNS} are supported.")
    draft = table.get("draft", False)
    if not isinstance(draft, bool):
        raise SchemaError(f"{where}: [table] draft is true or false.")
    read = tuple(read_column(entry, f"{where}: column {i + 1}", folder) for i, entry in enumerate(columns))
    if (pairs := _count_code_pairs(read)) > MAX_CODE_PAIRS:
        raise SchemaError(
            f"{where}: trees and matrices with {pairs:,} pairs of codes in all; {MAX_CODE_PAIRS:,} are supported. "
            "Leave out the lowest level of some trees."
        )
    persons = read_persons(table, where)
    return Schema(
        columns=read,
        name=check_text(table.get("name", "table"), f"{where}: [table] name"),
        unit=check_text(table.get("unit", default_unit(persons)), f"{where}: [table] unit"),
        draft=draft,
        persons=persons,
        rules=read_rules(document.get("rule", []), where),
        derivations=tuple(
            read_derivation(entry["derived"], column.name, folder)
            for entry, column in zip(columns, read, strict=True)
            if "derived" in entry
        ),
        publication=read_publication(table, where),
        target=_read_target(columns, where),
    )


def _read_target(entries: Sequence[Mapping[str, Any]], where: str) -> str | None:
    """The name of the column whose entries say `target = true`."""
    for entry in entries:
        if not isinstance(entry.get("target", False), bool):
            raise SchemaError(f"column {entry['name']!r}: target is true or false.")
    marked = [entry["name"] for entry in entries if entry.get("target", False)]
    if len(marked) > 1:
        raise SchemaError(f"{where}: columns {list_names(marked)} all say target = true; leave it at one of them.")
    return marked[0] if marked else None


def _count_code_pairs(columns: Sequence[Column]) -> int:
    """Number of distances kept in memory: all pairs of codes, once for columns with the same list."""
    labelled = [column for column in columns if isinstance(column, Category)]
    trees, matrices = {column.paths for column in labelled}, {column.distances for column in labelled}
    return sum(len(all_codes(paths)) ** 2 for paths in trees) + sum(len(matrix) ** 2 for matrix in matrices)


def read_column(entry: Any, where: str, folder: Path | None = None) -> Column:
    """The column that its entries in the schema file describe; `where` begins error messages about its name."""
    if not isinstance(entry, dict) or "name" not in entry:
        raise SchemaError(f'{where} has no name: write name = "…" under [[column]].')
    name = check_text(entry["name"], f"{where}: name")
    where = f"column {name!r}"
    kind = entry.get("kind")
    if kind not in KINDS:
        raise SchemaError(f"{where}: kind must be one of {', '.join(KINDS)}.{did_you_mean(kind, KINDS)}")
    allowed = sorted(_COMMON | _ALLOWED[kind] | READING_ENTRIES[kind] | NAMING_ENTRIES[kind])
    for key in entry:
        if key not in allowed:
            allowed = [entry for entry in allowed if entry not in ("name", "kind")]
            raise SchemaError(
                f"{where}: a column of kind {kind} has no entry {key!r:.60}; it may have {', '.join(allowed)}."
                f"{did_you_mean(key, allowed)}"
            )
    column = with_reading(entry, kind, _read_values(entry, name, kind, where, folder), where)
    return replace(column, naming=read_naming(entry, kind, _labels_of(column), where))


def _labels_of(column: Column) -> tuple[str, ...]:
    return column.labels if isinstance(column, Category) else column.values if isinstance(column, Ordered) else ()


def _read_values(entry: Mapping[str, Any], name: str, kind: Any, where: str, folder: Path | None) -> Column:
    """A column with the values of its entry, not yet with its reading."""
    missing, weight = check_flag(entry, "missing", where), _read_weight(entry, where)
    if kind == "boolean":
        return Category(name=name, missing=missing, weight=weight, kind="boolean", values=("false", "true"))
    if kind in ("category", "tree", "metric"):
        return labelled_column(entry, where, folder, Category(name=name, missing=missing, weight=weight, kind=kind))
    if kind == "ordinal":
        values = check_values(entry, where)
        ordinal = Ordered(
            name=name, missing=missing, weight=weight, kind="ordinal", low=0, high=len(values) - 1, values=values
        )
        return _with_cuts(entry, ordinal, where)
    low, high = (_read_bound(entry, end, kind, where) for end in ("low", "high"))
    if not low < high:
        raise SchemaError(f"{where}: low must be below high. Give the bounds that the code book allows.")
    if kind != "number" and high - low > MAX_OFFSET:
        raise SchemaError(f'{where}: more than 2^40 values between low and high; use kind = "number".')
    if kind == "number" and not math.isfinite(high - low):
        raise SchemaError(f"{where}: high − low is too large for a number; choose narrower bounds.")
    column = Ordered(name=name, missing=missing, weight=weight, kind=kind, low=low, high=high)
    if "step" in entry:
        column = replace(column, step=_read_step(entry["step"], column, where))
    if _is_by_ratios(entry, where):
        column = replace(column, grid=_read_grid(entry, column, where))
    return _with_cuts(entry, column, where)


def _shorten(text: str) -> str:
    """A parser's message, shortened in the middle: it may quote a key of any length."""
    return text if len(text) <= 300 else f"{text[:200]} … {text[-40:]}"


def _read_weight(entry: Mapping[str, Any], where: str) -> Fraction:
    value = entry.get("weight", 1)
    rule = f"{where}: weight must be above 0 and at most 1, in at most 3 decimals, like 0.5"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise SchemaError(f"{rule}.")
    weight = Fraction(repr(value))
    if WEIGHT_PARTS % weight.denominator:
        raise SchemaError(f"{rule}.")
    return weight


def _read_bound(entry: Mapping[str, Any], end: str, kind: str, where: str) -> int | float:
    if end not in entry:
        raise SchemaError(f"{where}: kind {kind} needs {end} (public knowledge, never the rows' own extreme).")
    value = entry[end]
    if kind in CLOCKS:
        return _read_moment(value, CLOCKS[kind], f"{where}: {end}")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SchemaError(f"{where}: {end} must be a number.")
    if kind == "integer" and (not isinstance(value, int) or abs(value) > 2**53):
        raise SchemaError(f"{where}: {end} must be a whole number between −2^53 and 2^53.")
    if not abs(value) <= 1e300:  # also refuses NaN, and an int too large for a float
        raise SchemaError(f"{where}: {end} must be a number between −1e300 and 1e300.")
    return value if kind == "integer" else float(value)


def _read_moment(value: Any, clock: Clock, where: str) -> int:
    """A TOML date or local datetime, or its text, as the tick of a clock."""
    try:
        if isinstance(value, datetime.date) and (clock is SECONDS or not isinstance(value, datetime.datetime)):
            value = str(value)
        if not isinstance(value, str):
            raise ValueError
        return clock.read(value)
    except ValueError:
        zone = ", without a time zone and in whole seconds" if clock is SECONDS else ""
        raise SchemaError(f"{where} must be a {clock.word} such as {clock.example}{zone}.") from None


def _read_step(value: Any, column: Ordered, where: str) -> Fraction | None:
    """The gap between neighbouring values; None if it is 1 where values are whole, which is no different from none."""
    is_number = isinstance(value, int if column.whole else (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 1e300:
        rule = "a whole number of at least 1, like 100" if column.whole else "a number above 0, like 0.01"
        rule = "a whole number of seconds, like 60 or 900" if column.clock else rule
        raise SchemaError(f"{where}: step must be {rule}.")
    low, high, step = map(exact_decimal, (column.low, column.high, value))
    if step > high - low:
        raise SchemaError(
            f"{where}: step is larger than high − low, so low would be the only value; choose a smaller one."
        )
    if above := (high - low) % step:
        ends = " or ".join(_possible_ends(column, high - above, high - above + step))
        raise SchemaError(f"{where}: high must be low plus a whole number of steps; set it to {ends}, or change step.")
    scale = math.lcm(low.denominator, step.denominator)
    if max(abs(low), abs(high)) * scale > MAX_DECIMAL or scale > 10**15:
        raise SchemaError(f"{where}: low, high and step have too many digits; round them, or leave out step.")
    if (high - low) / step > MAX_OFFSET:
        raise SchemaError(f"{where}: more than 2^40 steps between low and high; choose a larger step.")
    return None if column.whole and step == 1 else step


def _possible_ends(column: Ordered, *ends: Fraction) -> list[str]:
    """Bounds as a schema writes them; the calendar ends with the year 9999."""
    if column.clock is None:
        return [str(plain_number(end)) for end in ends]
    return [column.clock.text(int(end)) for end in ends if end <= column.clock.ends[1]]


def _is_by_ratios(entry: Mapping[str, Any], where: str) -> bool:
    scale = entry.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise SchemaError(f'{where}: scale must be "linear" or "log", which compares values by ratios.')
    return bool(scale == "log")


def _read_grid(entry: Mapping[str, Any], column: Ordered, where: str) -> tuple[float, ...]:
    """The values of a column that is compared by ratios. Special values and first values of bands are among them."""
    low, high = exact_decimal(column.low), exact_decimal(column.high)
    step = column.step or (Fraction(1) if column.whole else None)
    if step is None and low <= 0:
        raise SchemaError(f'{where}: scale = "log" needs low above 0, or a step: the least difference that matters.')
    if step is not None and low % step:
        raise SchemaError(f'{where}: with scale = "log", low must be a multiple of step; change one of the two.')
    if high <= 0 or high < 2 * low:
        raise SchemaError(f'{where}: scale = "log" needs high above 0 and at least twice low; leave it out.')
    listed = [x for key in ("special", "bands") for x in _numbers_in(entry.get(key)) if low <= x <= high]
    grid = ratio_values(low, high, step, frozenset(x for x in listed if step is None or not x % step))
    if grid is None:
        raise SchemaError(f"{where}: low and high are too many powers of ten apart; choose narrower bounds.")
    if step is not None and len(grid) == (high - low) / step + 1:
        raise SchemaError(f'{where}: scale = "log" makes no difference to so few values; leave it out.')
    return grid


def _numbers_in(listed: Any) -> list[Fraction]:
    """The finite numbers of a list that `_read_cuts` checks later."""
    there = [x for x in listed if isinstance(x, (int, float)) and abs(x) <= 1e300] if isinstance(listed, list) else []
    return [exact_decimal(x) for x in there[:MAX_CUTS]]


def _with_cuts(entry: Mapping[str, Any], column: Ordered, where: str) -> Ordered:
    """The column with the special values and bands of its entry, if it has any."""
    if not {"special", "bands"} & set(entry):
        return column
    last = column.last_index
    if last is None:
        raise SchemaError(
            f"{where}: special and bands need values that can be told apart; add a step, like step = 0.01."
        )
    if last > MAX_CUT_VALUES:
        raise SchemaError(
            f"{where}: special and bands are for at most {MAX_CUT_VALUES:,} values between low and high; "
            f"choose a {'larger ' if column.step else ''}step or narrower bounds."
        )
    special = _read_cuts(entry, "special", column, where)
    bands = _read_cuts(entry, "bands", column, where)
    if bands and bands[0] == 0:
        raise SchemaError(f"{where}: bands lists the first value of each band but the lowest; remove the lowest value.")
    return replace(column, special=special, bands=bands)


def _read_cuts(entry: Mapping[str, Any], key: str, column: Ordered, where: str) -> tuple[float, ...]:
    """A list of values of the column, cleaned and in order."""
    listed = entry.get(key, [])
    if not isinstance(listed, list) or len(listed) > MAX_CUTS:
        raise SchemaError(f"{where}: {key} is a list of at most {MAX_CUTS} values of the column.")
    if column.clock is not None:
        ticks = [_read_moment(value, column.clock, f"{where}: {key}") for value in listed]
        clean, listed = np.array(ticks, dtype=float) - column.low, [column.clock.moment(tick) for tick in ticks]
    else:
        wanted: type | tuple[type, ...] = {"integer": int, "ordinal": str}.get(column.kind, (int, float))
        if not all(isinstance(value, wanted) and not isinstance(value, bool) for value in listed):
            kind = "labels in quotes" if column.kind == "ordinal" else "numbers"
            raise SchemaError(f"{where}: {key} must be a list of {kind}.")
        clean = column.encode(np.array(listed, dtype=object))
    back = column.encode(column.decode(clean)) if len(clean) else clean
    if len(clean) and list(column.decode(back).tolist()) != listed:
        raise SchemaError(f"{where}: {key} lists something that is not a value of the column; correct it.")
    found = tuple(sorted(clean.tolist()))
    if len(set(found)) < len(found):
        raise SchemaError(f"{where}: {key} lists a value twice; remove one of the two.")
    return found


def entry_lines(entries: Mapping[str, Any]) -> list[str]:
    """Entries of a schema file as lines of TOML.

    >>> entry_lines({"strip": True, "missing_codes": ["N"]})
    ['strip = true', 'missing_codes = ["N"]']
    """
    return [f"{_to_toml_key(key)} = {_to_toml(value)}" for key, value in entries.items()]


def _to_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # a JSON string without control characters is a TOML string
    if isinstance(value, list):
        return "[" + ", ".join(_to_toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_to_toml_key(key)} = {_to_toml(v)}" for key, v in value.items()) + " }"
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)


def _to_toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _to_toml(key)
