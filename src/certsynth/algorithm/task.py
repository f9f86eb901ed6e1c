"""A task: the schema and the settings of a release, with a public number of rows to plan for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from certsynth.algorithm.settings import Settings
from certsynth.domain import Schema


@dataclass(frozen=True, slots=True)
class Task:
    """The input of planning and releasing. `rows` must be public: the true number only under replace-one."""

    schema: Schema
    settings: Settings
    rows: int

    def with_settings(self, **changes: Any) -> Task:
        """Return the task with some settings changed."""
        return replace(self, settings=replace(self.settings, **changes))
