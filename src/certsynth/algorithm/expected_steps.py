"""The expected cost and noise of each step of a release, recomputed by `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certsynth.algorithm.exceptions import SCORE_SENSITIVITY, cost_of_choices, share_for_each
from certsynth.algorithm.method import Method
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.values import ExpectedLayer
from certsynth.artefact.steps import (
    DROPPED_ROWS,
    ERRORS_OF_ROWS,
    MEAN_DISPLACEMENT,
    ROW_COUNT,
    Expected,
    Step,
    choice_name,
    exceptions_name,
    measurement_name,
)
from certsynth.certificate.coverage import statistic_names
from certsynth.certificate.direct import (
    bounds_single_columns,
    choice_sensitivity,
    joint_sensitivity,
    loss_sensitivity,
    single_columns,
)
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.domain import Schema
from certsynth.mechanisms import Measurement, Neighbours, Sensitivity
from certsynth.mechanisms.dropped import DROPPED_NUMBERS, largest_change
from certsynth.mechanisms.selection import cost_of_choice
from certsynth.queries.displacement import farthest
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.tally import Batch

NEGLIGIBLE_PROBABILITY = Fraction(1, 10**12)
"""Probability of noise so large that `verify` treats it as impossible."""


def expected_steps(
    method: Method,
    settings: Settings,
    schema: Schema,
    measurements: Sequence[Measurement],
    rows: Batch,
    *,
    compared: int,
    layers: Sequence[ExpectedLayer],
) -> list[Expected]:
    """The steps that spend the budget, in order. `rows` are the cleaned synthetic rows, `compared` is the number of
    plans compared, and `layers` are what such a release measures.
    """
    budget, last = settings.budget, measurements[-1]
    found: list[Expected] = []

    def add(on: str, share: Fraction, changes: int, numbers: int = 1) -> None:
        found.append(Expected(on, budget.amount * share, Sensitivity(changes, changes**2), numbers=numbers))

    if settings.count_share:
        add(ROW_COUNT, settings.count_share, 1)
    found += method.expected_choice(settings, compared)
    for m, layer in zip(measurements, layers, strict=True):
        changes_of_all = m.sensitivity
        amount = settings.measurement_budget.amount * layer.share if changes_of_all else Fraction(0)
        found.append(Expected(measurement_name(layer.ways, settings.sparsity), amount, changes_of_all))
    fine = LatticeQuery.of(schema, settings.covered, lattice_columns=settings.lattice_columns)
    if settings.candidates > 1:
        change = choice_sensitivity(fine, settings.neighbours)
        cost = cost_of_choice(budget.share(settings.selection_share))
        choice = Sensitivity(change, change**2)
        found.append(Expected(choice_name(settings.candidates), cost.amount, choice, noised=False))
    if settings.displacement_share and (most := farthest(schema.measured, last.marginals)):
        add(MEAN_DISPLACEMENT, settings.displacement_share, most)
    if settings.exceptions:
        cost = cost_of_choices(budget.share(share_for_each(settings.exceptions)), settings.exceptions)
        found.append(Expected(exceptions_name(settings.exceptions), cost.amount, SCORE_SENSITIVITY, noised=False))
    if settings.certificate_share:
        changes = [_change(fine, settings, rows)] * (2 if settings.exceptions else 1)
        if bounds_single_columns(settings.covered):
            changes.append(_change(single_columns(fine), settings, rows))
        changes += [LOSS_UNITS] * len(statistic_names(schema, settings.covered, exceptions=settings.splits_pairs))
        share = budget.amount * settings.certificate_share
        found.append(Expected(ERRORS_OF_ROWS, share, joint_sensitivity(changes), numbers=len(changes)))
    if settings.measure_dropped and (persons := settings.protection.persons):
        amount, change = budget.amount * settings.dropped_share, largest_change(persons)
        found.append(Expected.together(DROPPED_ROWS, amount, change=change, numbers=DROPPED_NUMBERS))
    return found


def _change(fine: LatticeQuery, settings: Settings, rows: Batch) -> int:
    """Sensitivity of the loss of these rows; their distance from the lattice matters only if n is hidden."""
    moved = Fraction(0)
    if settings.neighbours is Neighbours.ADD_REMOVE:
        moved = fine.with_nets([rows]).mean_moved(rows)
    return loss_sensitivity(fine, moved, settings.neighbours)


def steps_problem(steps: Sequence[Step], expected: Sequence[Expected]) -> str:
    """A description of what is wrong with the stated steps; empty if they are correct."""
    if len(steps) != len(expected):
        return "the budget was spent on something else than what was made"
    return next((p for each, step in zip(expected, steps, strict=True) if (p := each.problem(step))), "")


def values_problem(steps: Sequence[Step], rows: int | None) -> str:
    """A description of a noisy value that no rows can produce; empty if there is none.

    Before noise, all values are counts or sums of distances, and a sum of displacements is at most the number of rows
    times its sensitivity. A genuine release fails each test with probability 10^−12.
    """
    named = {step.on: step.noisy for step in steps if step.values is not None}
    for on, noisy in named.items():
        if min(noisy.values) < -noisy.joint_slack(NEGLIGIBLE_PROBABILITY):
            return f"the noisy value of {on} is further below 0 than noise goes"
    counted, moved = named.get(ROW_COUNT), named.get(MEAN_DISPLACEMENT)
    if moved is None or moved.sensitivity is None:
        return ""
    most = counted.values[0] + counted.slack(NEGLIGIBLE_PROBABILITY) if counted else rows or 0
    if moved.values[0] > most * moved.sensitivity.l1 + moved.slack(NEGLIGIBLE_PROBABILITY):
        return f"the noisy value of {MEAN_DISPLACEMENT} is larger than rows can make it"
    return ""
