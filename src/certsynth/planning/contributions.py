"""What more rows of each person cost: the bound to expect for other numbers of kept rows, before any row is read.

Noise depends on the protected unit only through its ratio to the table: k rows of noise to the number of kept rows, or
one person to the number of persons. So a quick prediction for each ratio scales the bound that was planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from certsynth.algorithm.task import Task
from certsynth.domain.persons import MAX_WEIGHED_ROWS, Persons, Weigh
from certsynth.mechanisms.protection import Protection

COMPARED_ROWS_PER_PERSON = (1, 2, 4, 8, 12)
"""Numbers of rows of each person that are compared, besides the schema's own."""

WEIGHTS: tuple[Weigh, ...] = ("rows", "persons")


@dataclass(frozen=True, slots=True)
class Table:
    """Public guesses about a table of persons with several rows: how many rows it has, and how many persons."""

    rows: int
    persons: int

    def kept_rows(self, most: int) -> int:
        """The number of kept rows, at most: fewer if persons have fewer than `most` rows each."""
        return min(self.rows, most * self.persons)

    def weight(self, persons: Persons) -> int:
        """The weight of the kept rows, in the parts in which they are counted."""
        return persons.parts * self.persons if persons.weigh == "persons" else self.kept_rows(persons.rows)


@dataclass(frozen=True, slots=True)
class Contribution:
    """The bound to expect if at most `rows_per_person` rows of each person are kept and weighed this way.

    `kept_rows` is the number of rows that are kept at most, for the number of persons that was given.
    """

    rows_per_person: int
    weigh: str
    kept_rows: int
    predicted_bound: float


def compare_contributions(
    task: Task, table: Table, planned: float, predict: Callable[[Task], float]
) -> Iterator[Contribution]:
    """Compare numbers of rows per person and weights with those of the task, whose bound was planned.

    `predict` predicts the bound of a task quickly; the planned bound is scaled by the ratio of two such predictions.
    """
    own = task.settings.protection.persons
    assert own is not None
    known: dict[Persons, float] = {}

    def predicted(persons: Persons) -> float:
        persons = _without_parts(persons)
        if persons not in known:
            known[persons] = predict(_task_of(task, table, persons))
        return known[persons]

    for most in sorted({*COMPARED_ROWS_PER_PERSON, own.rows}):
        for weigh in WEIGHTS:
            if weigh == "persons" and most > MAX_WEIGHED_ROWS:
                continue
            ratio = predicted(replace(own, rows=most, weigh=weigh)) / (predicted(own) or 1.0)
            yield Contribution(most, weigh, table.kept_rows(most), min(1.0, planned * ratio))


def _without_parts(persons: Persons) -> Persons:
    """Persons whose noise is as large, relative to the table: if they weigh alike, those with a single row."""
    return replace(persons, rows=1, weigh="rows") if persons.weigh_alike else persons


def _task_of(task: Task, table: Table, persons: Persons) -> Task:
    other = task.with_settings(protection=Protection(task.settings.protection.neighbours, persons))
    return replace(other, rows=table.weight(persons))
