"""The tables of the race, and what is publicly known about their columns.

Bounds come from the survey's code book. In the five columns of California and the four of New York codes are read as
integers, as the paper reads them. Among the eleven columns of California those that are labels are categories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import survey
from certsynth import Schema

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Column:
    """Whole numbers from `low` to `high`, which are labels without an order if `labels`."""

    name: str
    low: int
    high: int
    labels: bool = False

    def to_json(self) -> dict[str, Any]:
        """As a peer's runner gets it."""
        kind = "category" if self.labels else "integer"
        return {"name": self.name, "kind": kind, "low": self.low, "high": self.high}

    def to_toml(self) -> str:
        """As certsynth gets it."""
        if self.labels:
            listed = ", ".join(f'"{value}"' for value in range(self.low, self.high + 1))
            return f'[[column]]\nname = "{self.name}"\nkind = "category"\nvalues = [{listed}]\n'
        return f'[[column]]\nname = "{self.name}"\nkind = "integer"\nlow = {self.low}\nhigh = {self.high}\n'


@dataclass(frozen=True, slots=True)
class Table:
    """A private table: a file of the survey, some of its columns, and all of its rows or so many of them."""

    key: str
    title: str
    file: str
    columns: tuple[Column, ...]
    rows: int | None = None

    @property
    def path(self) -> Path:
        return survey.DATA / self.file

    @property
    def toml(self) -> str:
        return f'[table]\nname = "{self.title}"\n\n' + "\n".join(column.to_toml() for column in self.columns)

    @property
    def schema(self) -> Schema:
        return Schema.parse(self.toml)

    def write_csv(self, path: Path, *, rows: int | None = None) -> int:
        """The columns as a CSV file, or `rows` of its rows drawn once and for all; returns how many there are."""
        rows = rows or self.rows
        names = ", ".join(f'"{column.name}"' for column in self.columns)
        drawn = f" USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)" if rows else ""
        query = f"COPY (SELECT {names} FROM read_parquet($from){drawn}) TO $to (HEADER)"
        # Only with a single thread is the same seed the same sample.
        with duckdb.connect(config={"threads": 1}) as database:
            counted = database.execute(query, {"from": str(self.path), "to": str(path)}).fetchall()
        return int(counted[0][0])


def _integers(bounds: dict[str, tuple[int, int]]) -> Iterator[Column]:
    return (Column(name, low, high) for name, (low, high) in bounds.items())


FIVE = tuple(_integers(survey.NUMBERS))
ELEVEN = FIVE + tuple(Column(name, low, high, labels=True) for name, (low, high) in survey.LABELS.items())
FOUR = tuple(_integers(survey.TRAVEL))

TABLES = {
    table.key: table
    for table in (
        Table("california-5", "California, 5 columns", "acs_income_ca2018.parquet", FIVE),
        Table("new-york-4", "New York, 4 columns", "acs_travel_ny2024.parquet", FOUR),
        Table("california-11", "California, 11 columns", "acs_income_ca2018.parquet", ELEVEN),
        Table("california-few", "California, 5 columns, few rows", "acs_income_ca2018.parquet", FIVE, rows=3000),
    )
}
