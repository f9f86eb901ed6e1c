"""Persons with several rows: the column that names them, and how much of each person counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from certsynth.domain.labels import check_text
from certsynth.errors import SchemaError

MAX_ROWS_PER_PERSON = 1_000
"""Most rows of a person that can be kept. Noise grows with that number, so that larger ones are of no use."""

MAX_WEIGHED_ROWS = 12
"""Most rows of a person that can be kept if persons weigh alike: rows are then counted in parts of 1/27,720, and sums
of parts must fit into 64 bits."""

Weigh = Literal["rows", "persons"]
MissingPerson = Literal["drop", "separate"]

ENTRIES = ("person", "rows_per_person", "weigh", "missing_person")
"""The entries of [table] about persons."""


@dataclass(frozen=True, slots=True)
class Persons:
    """The column that names persons, and at most how many `rows` of each are kept.

    `weigh`: whether each kept row counts 1, or each person counts 1, divided evenly among the kept rows. `missing`:
    whether rows without a person are dropped, or each is taken for a person of its own.
    """

    column: str
    rows: int = 1
    weigh: Weigh = "rows"
    missing: MissingPerson = "drop"

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 1 <= self.rows <= MAX_ROWS_PER_PERSON:
            raise SchemaError(
                f"`rows_per_person` must be a whole number from 1 to {MAX_ROWS_PER_PERSON:,}: the most rows of one "
                "person that are kept."
            )
        if self.weigh not in ("rows", "persons"):
            raise SchemaError("`weigh` must be 'rows' (each row counts 1) or 'persons' (each person counts 1).")
        if self.missing not in ("drop", "separate"):
            raise SchemaError(
                "`missing_person` must be 'drop' (rows without a person are left out) or 'separate' (each is taken for "
                "a person of its own)."
            )
        if self.weigh == "persons" and self.rows > MAX_WEIGHED_ROWS:
            raise SchemaError(
                f"`rows_per_person` can be at most {MAX_WEIGHED_ROWS} if persons weigh alike, since rows are then "
                "counted in exact fractions: lower it, or let `weigh` be 'rows'."
            )

    @property
    def weigh_alike(self) -> bool:
        """Whether every person counts the same: then their number determines the weight of the whole table."""
        return self.weigh == "persons" or self.rows == 1

    @property
    def parts(self) -> int:
        """The parts that a unit of weight is counted in, so that every weight is a whole number of them.

        >>> Persons("id", rows=4, weigh="persons").parts, Persons("id", rows=4).parts
        (12, 1)
        """
        return math.lcm(*range(1, self.rows + 1)) if self.weigh == "persons" else 1

    @property
    def kept(self) -> str:
        """The rows that a certificate is about, in words.

        >>> Persons("id", rows=12, weigh="persons").kept
        'the rows that were kept: at most 12 of each person, and each person counts 1'
        """
        which = "one" if self.rows == 1 else f"at most {self.rows:,}"
        counts = ", and each person counts 1" if self.weigh == "persons" else ""
        return f"the rows that were kept: {which} of each person{counts}"

    def entries(self) -> dict[str, Any]:
        """The entries of [table] that `read_persons` reads back."""
        found: dict[str, Any] = {"person": self.column, "rows_per_person": self.rows}
        if self.weigh != "rows":
            found["weigh"] = self.weigh
        if self.missing != "drop":
            found["missing_person"] = self.missing
        return found


def default_unit(persons: Persons | None) -> str:
    """What one row stands for, if the schema does not say it."""
    return f"one row is one {'person' if persons is None or persons.rows == 1 else 'record of a person'}"


def read_persons(table: Mapping[str, Any], where: str) -> Persons | None:
    """The entries about persons of [table]; None if there are none."""
    given = [entry for entry in ENTRIES if entry in table]
    if not given:
        return None
    if "person" not in table:
        raise SchemaError(f"{where}: [table] has {given[0]} but no person: name the column that says whose row it is.")
    column = check_text(table["person"], f"{where}: [table] person")
    if "rows_per_person" not in table:
        raise SchemaError(
            f"{where}: [table] has person but no rows_per_person: say how many rows of each person are kept at most."
        )
    try:
        return Persons(
            column,
            table["rows_per_person"],
            table.get("weigh", "rows"),
            table.get("missing_person", "drop"),
        )
    except SchemaError as error:
        message = str(error).replace("`", "")  # backquoted names are arguments of Python, or flags
        raise SchemaError(f"{where}: [table] {message}") from None


class PersonEntries(TypedDict, total=False):
    """Entries that set or replace those of a schema; options of a release have the same names."""

    person: str | None
    rows_per_person: int | None
    weigh: Weigh | None
    missing_person: MissingPerson | None


def entries_among(options: Mapping[str, Any]) -> PersonEntries:
    """The options about persons."""
    found: Any = {name: options[name] for name in ENTRIES}
    return found


def replace_persons(persons: Persons | None, entries: PersonEntries) -> Persons | None:
    """The persons after some entries are set or replaced; None leaves an entry as it is."""
    given = {name: value for name, value in entries.items() if value is not None}
    if not given:
        return persons
    known = {} if persons is None else persons.entries()
    if "person" not in known | given:
        name = next(iter(given))
        raise SchemaError(
            f"`{name}` is about persons, and the schema names none: give `person`, the column that says whose row it "
            f"is, or leave `{name}` out."
        )
    if "rows_per_person" not in known | given:
        raise SchemaError("`person` needs `rows_per_person` as well: the most rows of one person that are kept.")
    whole: dict[str, Any] = {"weigh": "rows", "missing_person": "drop"} | known | given
    column = check_text(whole["person"], "`person`")
    return Persons(column, whole["rows_per_person"], whole["weigh"], whole["missing_person"])


def refuse_person_column(persons: Persons | None, name: str) -> None:
    """Raise if a name, which is not that of a column, is that of the column that names persons."""
    if persons is not None and name == persons.column:
        raise SchemaError(
            f"column {name!r} names persons: it says whose row it is, and is never measured or released. Leave it out "
            "of the list."
        )
