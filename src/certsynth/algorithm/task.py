"""A task: the schema and the settings of a release, with a public number of rows to plan for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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
