"""The protected persons of a schema, in a record and back, and the protection that a record states."""

from __future__ import annotations

from certsynth.domain.persons import Persons
from certsynth.mechanisms import Neighbours
from certsynth.mechanisms.protection import Protection
from certsynth.record.record import Record
from certsynth.record.table import PersonsRecord


def persons_record(persons: Persons) -> PersonsRecord:
    """Record how persons are protected."""
    return PersonsRecord(persons.column, persons.rows, persons.weigh, persons.missing, persons.kept)


def stated_protection(record: Record) -> Protection:
    """Return the protected unit that a record states."""
    said, persons = record.table.persons, None
    if said is not None:
        persons = Persons(said.column, said.rows_per_person, said.weigh, said.missing_person)
    return Protection(Neighbours(record.privacy.neighbours), persons)


def public_weight(record: Record) -> int | None:
    """Return the number of private rows, where each is counted as its weight in parts; None if it is hidden."""
    if record.table.persons is None:
        return record.privacy.rows
    persons = record.privacy.persons
    return None if persons is None else persons * stated_protection(record).parts
