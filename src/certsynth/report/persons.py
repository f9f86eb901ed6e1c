"""Sentences about persons with several rows: who is protected, which rows are certified, which numbers are public."""

from __future__ import annotations

from certsynth.domain.persons import Persons
from certsynth.record.direct import DroppedRecord
from certsynth.record.record import PrivacyRecord
from certsynth.report import numerals

NEIGHBOURS = {
    "replace-one": "Two tables are neighbours if all rows of one person in the first are replaced by any rows of one "
    "person (replace-one).",
    "add-remove": "Two tables are neighbours if one of them has one more person than the other, with all rows of that "
    "person (add-remove).",
}

CHOSEN_ROWS = "chosen by a hash of that person’s own rows"
"""How rows of a person are chosen."""


def protected_unit(persons: Persons | None) -> str:
    """Name the unit that differential privacy protects."""
    return "one row" if persons is None else "one person"


def certified_rows(persons: Persons | None) -> str:
    """Say in a sentence which rows the certificate is about; empty if it is about all of them."""
    return "" if persons is None else f"The certificate is about {persons.kept}."


def protection(persons: Persons) -> str:
    """Say in a line whose rows are protected, and which of them count."""
    return (
        f"one person protected, with all their rows (column {numerals.text(persons.column)}); the certificate is about "
        f"{persons.kept}"
    )


def real_rows(persons: Persons) -> str:
    """Explain which rows the report calls real."""
    missing = {
        "drop": "Rows that do not say whose they are were left out.",
        "separate": "Rows that do not say whose they are were each taken for a person of their own.",
    }
    evenly = " Each person counts 1, evenly divided among their rows." if persons.weigh == "persons" else ""
    which = "one of each person" if persons.rows == 1 else f"at most {persons.rows:,} of each person"
    return (
        f"A person may have several rows. The real rows on this page are those that were kept: {which}, {CHOSEN_ROWS}."
        f"{evenly} {missing[persons.missing]}"
    )


def privacy_unit(persons: Persons, unit: str) -> str:
    """Name the unit of privacy; `unit` says what one row is."""
    return f"one person, with all their rows, by the column “{numerals.text(persons.column)}”; {unit}"


def public_number(privacy: PrivacyRecord, persons: Persons | None) -> str:
    """Say in a clause which number of rows or persons is public."""
    if privacy.rows is not None:
        return f"that the table has {_counted(privacy.rows, 'row')} is public"
    if privacy.persons is not None:
        return f"that the table has {_counted(privacy.persons, 'person')} is public"
    return f"how many rows {'' if persons is None else 'and persons '}the table has stays hidden"


def rows_text(privacy: PrivacyRecord) -> str:
    """Say how many rows there are, for a table that names persons."""
    if privacy.persons is not None:
        return f"those of {_counted(privacy.persons, 'person')}, which is public; how many rows they have is not"
    return "not published: the number of rows that were kept is itself private"


def dropped_rows(dropped: DroppedRecord | None, persons: Persons | None) -> str:
    """State the certified shares of dropped rows, and of persons with dropped rows; empty if they are not known."""
    if dropped is None or persons is None:
        return ""
    rows, people = (
        f"between {numerals.outward(each.lower, up=False)} and {numerals.outward(each.upper, up=True)}"
        for each in (dropped.rows, dropped.persons)
    )
    return (
        f"{people[:1].upper()}{people[1:]} of persons have more than {_counted(persons.rows, 'row')}, and {rows} of "
        f"all rows were dropped for that reason, where at most {dropped.counted_rows:,} rows of each person are "
        "counted."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
