"""The interface of a method of measuring and fitting, of which Algorithm 1 allows more than one.

A method turns options into settings, chooses what to measure, measures it, fits rows to it, and predicts the result.
Counting, certificates and the record are common to all methods and do not trust them: see `steps.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from certsynth.algorithm.exceptions import number_of_exceptions
from certsynth.algorithm.fitting import FitRequest
from certsynth.algorithm.registry import ADAPTIVE, DEFAULT, METHODS, method_names
from certsynth.algorithm.request import checked_subsets, measured_options
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen, ExpectedLayer, Means, PrivateTable
from certsynth.artefact.steps import Expected
from certsynth.artefact.table import Table
from certsynth.base.progress import Progress
from certsynth.domain import Schema
from certsynth.errors import InputError, did_you_mean
from certsynth.mechanisms import Measurement
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.planning.plan import Plan
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import subsets_within
from certsynth.record.record import OmittedRuleRecord

MIN_ADAPTIVE_PAIRS = 60
"""Pairs from which the adaptive method is the default: with fewer, measuring all of them costs little
(docs/explanation/adaptive.md)."""


class Method(Protocol):
    """A way of measuring and fitting: one file or folder, and one line in `registry.py`."""

    @property
    def name(self) -> str: ...

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        """Derive settings from options that were checked one by one; raise InputError for options that do not apply."""
        ...

    def check(self, schema: Schema, settings: Settings, *, memory: int | None) -> None:
        """Raise InputError, with the sizes, if the computation is too large; called before the data is opened."""
        ...

    def choose(self, task: Task, private: PrivateTable, means: Means) -> Chosen:
        """Choose what to measure, from public knowledge or with a part of the budget."""
        ...

    def expected_choice(self, settings: Settings, compared: int) -> list[Expected]:
        """Return the steps that a choice among `compared` candidates must consist of, for `verify`."""
        ...

    def expected_layers(
        self, schema: Schema, settings: Settings, measurements: Sequence[Measurement], scores: NoisyScalars | None
    ) -> tuple[ExpectedLayer, ...]:
        """Return what such a release measures, for `verify`; `scores` are the noisy scores that it chose by, if any."""
        ...

    @property
    def states_dimension(self) -> bool:
        """Whether the record states the dimension of the rows."""
        ...

    def measure(self, task: Task, chosen: Chosen, private: PrivateTable, means: Means) -> tuple[Measurement, ...]:
        """Step 2: exact counts in, noisy integers out, each with its cost."""
        ...

    def fit(self, request: FitRequest) -> tuple[Table, str]:
        """Step 3: make a table that obeys the rules; also returns the name of its support."""
        ...

    def plan(self, task: Task, *, memory: int | None, progress: Progress) -> Plan:
        """Predict the result before any row is read."""
        ...

    def predict(self, task: Task) -> float:
        """Predict the bound in a second or two, for comparison with that of other tasks only."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """The inputs of one release. `asked` are the given options, checked one by one.

    `schema` and `lattice` are of all columns; `settings`, `public` rows and the tables to be counted, of the measured
    ones.
    """

    method: Method
    asked: Mapping[str, Any]
    schema: Schema
    settings: Settings
    lattice: LatticeQuery
    private: PrivateTable
    means: Means
    public: Sequence[np.ndarray] | None = None
    omitted_rules: tuple[OmittedRuleRecord, ...] = ()

    def with_settings(self, settings: Settings) -> Run:
        """The same inputs with settings in which nothing is open."""
        return replace(self, settings=settings)


def method_named(name: str) -> Method:
    entry = METHODS[name]
    method: Method = getattr(importlib.import_module(entry.module), entry.name)
    return method


def method_for(schema: Schema, options: Mapping[str, Any]) -> Method:
    """Return the method that the options of a release, given or recorded, select.

    If they leave it open, it is the adaptive one for many pairs of columns.
    """
    asked = [options[option] for option in ("mechanism", "preset") if options[option] in method_names(option)]
    if asked:
        return method_named(asked[0])
    return method_named(ADAPTIVE if _suits_adaptive(schema, options) else DEFAULT)


def _suits_adaptive(schema: Schema, options: Mapping[str, Any]) -> bool:
    """Whether the adaptive method applies and there are many pairs: a rule that depends on public knowledge alone."""
    left_open = {
        "mechanism": ("auto",),
        "preset": (),
        "resolution": (),
        "projection": ("auto", "particles"),
        "loss": (),
    }
    if any(options[name] not in (None, *values) for name, values in left_open.items()):
        return False
    if options["certificate_share"] == 0 or len(schema) < 2:
        return False
    subsets = checked_subsets(schema, options["sparsity"], options["subsets"])
    return max(map(len, subsets)) == 2 and len(subsets_within(subsets, 2)) >= MIN_ADAPTIVE_PAIRS


def checked_settings(schema: Schema, options: Mapping[str, Any]) -> Settings:
    """Derive settings from options and the defaults of their method; raise InputError if they conflict.

    A method sees the measured columns only; the certificate covers the derived ones as well.
    """
    if (target := options["target"]) is not None and target not in schema.names:
        raise InputError(
            f"`target` names {target!r:.60}, which is not a column of the schema: choose from "
            f"{', '.join(schema.names)}.{did_you_mean(target, schema.names)}"
        )
    measured = measured_options(schema, options) if schema.derivations else options
    method = method_for(schema.measured, measured)
    settings = method.settings(schema, options)
    if schema.derivations:
        if not settings.certificate_share:
            raise InputError(
                f"column {min(schema.derived)!r} is derived, and only the direct certificate covers derived columns: "
                "let `certificate_share` be above 0, or remove the entry derived from the schema."
            )
        own = method.settings(schema.measured, measured)
        settings = replace(own, certified=settings.subsets)
    if settings.measure_dropped and schema.persons is None:
        raise InputError(
            "`measure_dropped` is about rows of persons: name the column that says whose row it is with `person`."
        )
    if settings.measure_dropped and not settings.certificate_share:
        raise InputError("`measure_dropped` belongs to the direct certificate: let `certificate_share` be above 0.")
    if options["exceptions"] and not settings.certificate_share:
        raise InputError("`exceptions` belong to the direct certificate: let `certificate_share` be above 0.")
    number = number_of_exceptions(options["exceptions"], settings.covered, default=bool(settings.certificate_share))
    settings = replace(settings, exceptions=number, exceptions_are_open=number > 0 and options["exceptions"] is None)
    if settings.measurement_budget.amount <= 0:
        raise InputError("`certificate_share` leaves nothing for the rows themselves; lower it.")
    return settings
