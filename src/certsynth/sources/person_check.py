"""How many rows persons have, and the shares of rows that are kept: for the eyes of the data owner, not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.persons import Persons
from certsynth.sources.person_ids import NOBODY, UNREADABLE, Letters, PersonTable

SHOWN_ROWS_PER_PERSON = (1, 2, 4, 8, 12)
"""Numbers of rows per person for which the share of kept rows is shown."""


@dataclass(frozen=True, slots=True)
class PersonCheck:
    """The persons of a table. NOT private: for the eyes of the data owner.

    `median`, `most_of_90`, `most_of_99` and `largest` are numbers of rows: half of the persons, 90 %, 99 % and all of
    them have at most as many. `kept_shares` are the shares of all rows that are kept, by rows per person.
    """

    column: str
    rows_per_person: int
    persons: int
    rows: int
    rows_without_person: int
    median: int
    most_of_90: int
    most_of_99: int
    largest: int
    kept_shares: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, persons: Persons, rows_of_persons: Ints, missing: int) -> PersonCheck:
        """The check of persons with these numbers of rows, and of rows without a person.

        >>> found = PersonCheck.of(Persons("id", 2), np.array([1, 1, 2, 6]), 0)
        >>> found.median, found.largest, found.kept_shares[:2]
        (1, 6, ((1, 0.4), (2, 0.6)))
        """
        rows = np.sort(rows_of_persons)
        whole, kept_alone = int(rows.sum()) + missing, missing if persons.missing == "separate" else 0

        def most_of(percent: int) -> int:
            return int(rows[-(-len(rows) * percent // 100) - 1]) if len(rows) else 0

        shown = sorted({*SHOWN_ROWS_PER_PERSON, persons.rows})
        return cls(
            column=persons.column,
            rows_per_person=persons.rows,
            persons=len(rows),
            rows=whole,
            rows_without_person=missing,
            median=most_of(50),
            most_of_90=most_of(90),
            most_of_99=most_of(99),
            largest=most_of(100),
            kept_shares=tuple((k, (int(rows.clip(max=k).sum()) + kept_alone) / whole if whole else 1.0) for k in shown),
        )

    def to_dict(self) -> dict[str, Any]:
        """The persons as JSON."""
        return {
            "column": self.column,
            "rows_per_person": self.rows_per_person,
            "persons": self.persons,
            "rows_without_person": {
                "rows": self.rows_without_person,
                "share": self.rows_without_person / self.rows if self.rows else 0.0,
            },
            "rows_of_a_person": {
                "median": self.median,
                "90%": self.most_of_90,
                "99%": self.most_of_99,
                "largest": self.largest,
            },
            "kept": [{"rows_per_person": k, "share": share} for k, share in self.kept_shares],
        }


class PersonTally:
    """The number of rows of each person."""

    def __init__(self) -> None:
        self._table = PersonTable()
        self._rows = np.zeros(0, np.int64)

    def add(self, raw: np.ndarray | Letters) -> Ints:
        """Add the ids of a batch, and return the numbers of their persons."""
        ids = self._table.number(raw)
        before, self._rows = self._rows, np.bincount(ids, minlength=len(self._table))
        self._rows[: len(before)] += before
        return ids

    def result(self, persons: Persons) -> PersonCheck:
        rows = np.append(self._rows, [0, 0])
        return PersonCheck.of(persons, self._rows[UNREADABLE + 1 :], int(rows[NOBODY]))
