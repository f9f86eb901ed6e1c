"""The part of a record about the table: its columns, those that are derived, how texts are read, and persons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from certsynth.record.values import AT_LEAST_ONE, RECOMPUTED, Columns, Count, Name, said, said_if_any

ReadingOption = Literal[
    "strip", "case", "decimal", "thousands", "symbol", "format", "missing_codes", "missing_as", "values"
]


@dataclass(frozen=True, slots=True)
class DerivedRecord:
    column: Name = said("The derived column.", RECOMPUTED)
    sources: Columns = said("The columns that it is computed from.", RECOMPUTED)
    by: Literal["map", "expression"] = said("How it is computed; schema.toml has the map or expression.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class ReadingRecord:
    column: Name = said("The column.", RECOMPUTED)
    options: Annotated[tuple[ReadingOption, ...], AT_LEAST_ONE] = said(
        "Its options for reading texts; schema.toml has their values.", RECOMPUTED
    )


@dataclass(frozen=True, slots=True)
class PersonsRecord:
    column: Name = said("The column that names persons. It is not released.", RECOMPUTED)
    rows_per_person: Count = said("The most rows of one person that are kept.", RECOMPUTED)
    weigh: Literal["rows", "persons"] = said(
        "Whether each kept row counts 1, or each person, evenly divided among their rows.", RECOMPUTED
    )
    missing_person: Literal["drop", "separate"] = said(
        "Whether rows without a person are dropped, or each is taken for a person of its own.", RECOMPUTED
    )
    certified_rows: Name = said("The rows that every bound of this certificate is about, in words.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class TableRecord:
    name: Name = said("The name of the table.", RECOMPUTED)
    unit: Name = said("The unit that one row describes.", RECOMPUTED)
    columns: Columns = said("The columns that were released, in order.", RECOMPUTED)
    derived: Annotated[tuple[DerivedRecord, ...], AT_LEAST_ONE] | None = said_if_any(
        "The derived columns, if there are any: they were not measured, but computed from other synthetic columns. "
        "Only the direct certificate covers them.",
        RECOMPUTED,
    )
    readings: Annotated[tuple[ReadingRecord, ...], AT_LEAST_ONE] | None = said_if_any(
        "The columns whose texts are read by options of the schema, if there are any. The certificate is about the "
        "rows as the schema reads them.",
        RECOMPUTED,
    )
    by_ratios: Columns | None = said_if_any(
        'The columns that are compared by ratios (scale = "log"), if there are any: the certificate speaks of their '
        "values rounded to those that the schema implies, and of distances in ranks of these.",
        RECOMPUTED,
    )
    persons: PersonsRecord | None = said_if_any(
        "The persons that are protected, if these are rather than single rows: the certificate speaks of the rows that "
        "are kept of each.",
        RECOMPUTED,
    )
