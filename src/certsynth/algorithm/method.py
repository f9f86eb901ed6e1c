"""What a method of measuring and fitting has to say: Algorithm 1 leaves room for more than one.

A method turns options into settings, chooses what to measure, measures it, fits rows to it, and predicts all that.
Counting, certificates and the record are the same for all, and do not trust a method: see `steps.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from certsynth.algorithm.fitting import FitRequest
from certsynth.algorithm.registry import DEFAULT, METHODS, method_names
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen, Means, PrivateTable
from certsynth.artefact.steps import Expected
from certsynth.artefact.table import Table
from certsynth.base.progress import Progress
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Measurement
from certsynth.planning.plan import Plan
from certsynth.queries.fine import LatticeQuery


class Method(Protocol):
    """A way of measuring and fitting. One file or folder, and one line in `registry.py`."""

    @property
    def name(self) -> str: ...

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        """Its settings, from options that were checked one by one; what it has no use for is refused."""
        ...

    def check(self, schema: Schema, settings: Settings, *, memory: int | None) -> None:
        """Refuse what cannot fit, with the numbers, before the data is opened."""
        ...

    def choose(self, task: Task, private: PrivateTable, means: Means) -> Chosen:
        """Choose what to measure: from public knowledge, or with budget."""
        ...

    def expected_choice(self, settings: Settings, compared: int) -> list[Expected]:
        """The steps that choosing among `compared` candidates must have taken, for `verify`."""
        ...

    @property
    def states_dimension(self) -> bool:
        """Whether a record says which dimension rows have."""
        ...

    def measure(self, task: Task, chosen: Chosen, private: PrivateTable, means: Means) -> tuple[Measurement, ...]:
        """Step 2: exact counts in, noisy integers out, each with its cost."""
        ...

    def fit(self, request: FitRequest) -> tuple[Table, str]:
        """Step 3: make a table that obeys the rules; also returns the name of its support."""
        ...

    def plan(self, task: Task, *, memory: int | None, progress: Progress) -> Plan:
        """What to expect, before a row is read."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """All that one release is made from. `asked` are the options as they were given, checked one by one."""

    method: Method
    asked: Mapping[str, Any]
    schema: Schema
    settings: Settings
    lattice: LatticeQuery
    private: PrivateTable
    means: Means
    public: Sequence[np.ndarray] | None = None


def method_named(name: str) -> Method:
    entry = METHODS[name]
    method: Method = getattr(importlib.import_module(entry.module), entry.name)
    return method


def method_for(options: Mapping[str, Any]) -> Method:
    """The method that options ask for, or that the record of a release says it was made with."""
    asked = (options[option] for option in ("mechanism", "preset") if options[option] in method_names(option))
    return method_named(next(asked, DEFAULT))


def checked_settings(schema: Schema, options: Mapping[str, Any]) -> Settings:
    """What options mean, with the defaults of the method that they ask for; what cannot be is refused."""
    settings = method_for(options).settings(schema, options)
    if settings.measurement_budget.amount <= 0:
        raise InputError("`certificate_share` leaves nothing for the rows themselves; lower it.")
    return settings
