"""A task: the schema and the settings of a release, with a public number of rows to plan for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from certsynth.algorithm.exceptions import affordable_exceptions
from certsynth.algorithm.settings import Settings
from certsynth.domain import Schema


@dataclass(frozen=True, slots=True)
class Task:
    """The input of planning and releasing. `rows` must be public: the true number only under replace-one.

    If persons weigh alike, `rows` is their number times the parts in which each of them is counted.
    """

    schema: Schema
    settings: Settings
    rows: int

    @property
    def units(self) -> int:
        """The number of rows, or of persons if they weigh alike."""
        return self.rows // self.settings.protection.parts

    def with_settings(self, **changes: Any) -> Task:
        """Return the task with some settings changed."""
        return replace(self, settings=replace(self.settings, **changes))

    def settle_exceptions(self) -> Task:
        """Return the task with the number of exceptions that its rows allow, if that number is open."""
        settings = self.settings
        if not settings.exceptions_are_open:
            return self
        number = affordable_exceptions(settings.exceptions, settings.budget, self.rows)
        return self.with_settings(exceptions=number, exceptions_are_open=False)


def rows_to_plan_for(noisy: int) -> int:
    """The number of rows to plan for, given a noisy one: two digits suffice, and make cached plans reusable."""
    rows = max(noisy, 1)
    return round(rows, 2 - len(str(rows)))
