"""Algorithm 1 of the paper in six steps: count, choose, measure, fit, certify, record.

Each step returns a value with its cost; the recorded guarantee is composed of these costs, never taken from an option.
Everything that a step returns about private rows has passed through a mechanism. The methods behind `choose`, `measure`
and `fit` are listed in `registry.py`.

Paper: Algorithm 1 [algorithm]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from certsynth.algorithm.certificates import (
    direct_certificate,
    exception_choice,
    measure_displacement,
    measure_dropped_rows,
    plug_in_certificates,
)
from certsynth.algorithm.certify import choose_table
from certsynth.algorithm.exceptions import SCORE_SENSITIVITY, ExceptionChoice
from certsynth.algorithm.fitting import FitRequest, Fitting
from certsynth.algorithm.method import Run
from certsynth.algorithm.record import record
from certsynth.algorithm.task import Task, rows_to_plan_for
from certsynth.algorithm.values import Certified, Chosen, Counted, Fitted, Measured, Outcome
from certsynth.artefact import Release, certificate_record, cleaned_table
from certsynth.artefact.certificate import cells_record, dropped_record
from certsynth.artefact.steps import (
    DROPPED_ROWS,
    ERRORS_OF_ROWS,
    MEAN_DISPLACEMENT,
    ROW_COUNT,
    Step,
    choice_name,
    exceptions_name,
    measurement_name,
)
from certsynth.artefact.table import with_derived
from certsynth.base.progress import number_stages
from certsynth.errors import InputError
from certsynth.mechanisms import Sensitivity, measure_scalars
from certsynth.planning.share import settle_share

STAGES = number_stages(
    "counting rows",
    "choosing what to measure",
    "measuring",
    "fitting rows",
    "certifying the rows",
    "writing the release",
)
"""The steps as progress reports name them."""


def run(this: Run) -> Release:
    """Run Algorithm 1, from private rows to a release."""
    counting, choosing, measuring, fitting, certifying, writing = STAGES
    this.means.progress(counting, 0, None)
    counted = count_rows(this)
    this = this.with_settings(counted.task.settings)
    this.means.progress(choosing, 0, None)
    chosen = choose(this, counted.task)
    this.means.progress(measuring, 0, None)
    measured = measure(this, counted.task, chosen)
    this.means.progress(fitting, 0, None)
    fitted = fit(this, measured)
    this.means.progress(certifying, 0, None)
    certified = certify(this, counted, measured, fitted)
    this.means.progress(writing, 0, None)
    return record(this, Outcome(counted, chosen, measured, fitted, certified))


def count_rows(this: Run) -> Counted:
    """Return the number of rows to plan for: the true number if it is public, else a noisy one.

    Adding or removing one row changes the number by 1. If the certificate's share of the budget or the number of
    exceptions is open, it is settled here, because it depends on that number.
    """
    settings = this.settings
    exact = this.private.count()
    if not settings.count_share:
        if not exact:  # public here, and a table of no rows has no statistics
            raise InputError("the table has no rows, so there is nothing to release.")
        return Counted(settle_share(Task(this.schema.measured, settings, exact)).settle_exceptions())
    noisy = measure_scalars(
        [exact],
        sensitivity=Sensitivity(1, 1),
        budget=settings.budget.share(settings.count_share),
        neighbours=settings.neighbours,
        noise=this.means.spending,
    )
    task = settle_share(Task(this.schema.measured, settings, rows_to_plan_for(noisy.values[0])))
    return Counted(task.settle_exceptions(), noisy, (Step.of_scalars(ROW_COUNT, noisy),))


def choose(this: Run, task: Task) -> Chosen:
    """Step 1: choose the tables to measure, their cells and their noise."""
    return this.method.choose(task, this.private, this.means)


def measure(this: Run, task: Task, chosen: Chosen) -> Measured:
    """Step 2: exact counts in, noisy integers out."""
    measurements = this.method.measure(task, chosen, this.private, this.means)
    this.means.spending.reserve()  # even if nothing needed noise, this is a release of these rows
    layers, sparsity = chosen.choice.layers, this.settings.sparsity
    costs = zip(layers, measurements, strict=True)
    spent = tuple(Step.of_measurement(measurement_name(layer.ways, sparsity), m) for layer, m in costs)
    return Measured(measurements, chosen.choice.best.resolution, spent)


def fit(this: Run, measured: Measured) -> Fitted:
    """Step 3: fit rows to the noisy integers. Private rows are read only to choose among several candidates.

    Derived columns are computed from the fitted ones, after rules are obeyed.
    """
    sys.audit("certsynth.rows.fit")
    settings, progress = this.settings, this.means.progress
    request = FitRequest(
        measured.measurements,
        this.schema.measured,
        Fitting.from_settings(settings, measured.last),
        settings.emitted_rows(measured.last),
        this.means.rng,
        public=this.public,
        progress=progress,
    )
    candidates = []
    for j in range(settings.candidates):
        measured_columns, support = this.method.fit(replace(request, other_loss=j % 2 == 1))
        table = with_derived(this.schema, measured_columns)
        candidates.append(Fitted(table, cleaned_table(this.schema, table), support))
        if settings.candidates > 1:
            progress("candidates", j + 1, settings.candidates)
    return candidates[0] if len(candidates) == 1 else _best_of(this, candidates)


def _best_of(this: Run, candidates: Sequence[Fitted]) -> Fitted:
    """Choose a candidate with a small loss, privately."""
    share = this.settings.budget.share(this.settings.selection_share)
    this.means.spending.take(share)
    best, cost, change = choose_table(
        this.lattice,
        this.private.placing,
        [each.rows for each in candidates],
        budget=share,
        neighbours=this.settings.neighbours,
        memory=this.means.memory,
        progress=this.means.progress,
    )
    step = Step(choice_name(len(candidates)), cost, Sensitivity(change, change**2))
    return replace(candidates[best], spent=(step,))


def certify(this: Run, counted: Counted, measured: Measured, fitted: Fitted) -> Certified:
    """Certify the rows that will be written: the bound is the smaller of a plug-in and a direct one.

    Paper: Eq. (4) [certificate]
    """
    displaced = measure_displacement(this, measured)
    sys.audit("certsynth.certificate.compute")
    plugged = plug_in_certificates(this, measured, fitted, displaced)
    exceptions = exception_choice(this)
    direct = direct_certificate(this, counted, fitted, exceptions, alone=not plugged)
    chosen = () if exceptions is None else (exceptions_step(exceptions),)
    dropped = measure_dropped_rows(this)
    noisy = {MEAN_DISPLACEMENT: displaced, ERRORS_OF_ROWS: direct and direct.noisy, DROPPED_ROWS: dropped}
    settings = this.settings
    cells = cells_record(direct, measured.measurements, settings.cell_beta) if direct else None
    return Certified(
        certificate_record(
            float(settings.confidence),
            plugged,
            direct,
            cells,
            no_plug_in=settings.reason_for_no_plug_in,
            protection=settings.protection,
            dropped=dropped_record(dropped, settings.protection, settings.dropped_beta),
        ),
        (*chosen, *(Step.of_scalars(what, each) for what, each in noisy.items() if each)),
    )


def exceptions_step(choice: ExceptionChoice) -> Step:
    """The step that chooses exceptions."""
    return Step(exceptions_name(choice.number), choice.cost, SCORE_SENSITIVITY)
