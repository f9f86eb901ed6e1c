"""The steps of a release that read rows, each with its cost and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certsynth.artefact.persons import stated_protection
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.mechanisms import Budget, Guarantee, Measurement, Sensitivity, Unit
from certsynth.mechanisms.dependence import SCORE_UNITS
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.samplers import MAX_SCALE, is_sup_norm
from certsynth.mechanisms.scalars import NoisyScalars, is_calibrated
from certsynth.queries.coding import MOVE_UNITS
from certsynth.record.record import Record, SensitivityRecord, StepRecord

ROW_COUNT, RESOLUTION_CHOICE, PAIR_SCORES = "number of rows", "choosing the resolution", "scores of pairs"
MEAN_DISPLACEMENT, ERRORS_OF_ROWS = "mean displacement", "errors of the rows"
DROPPED_ROWS = "dropped rows of persons"
"""Names, in the record, of the steps that are neither measurements nor choices among tables."""

INTEGER_UNITS = {
    ROW_COUNT: Fraction(1),
    RESOLUTION_CHOICE: Fraction(1),
    PAIR_SCORES: Fraction(1, 2 * SCORE_UNITS),
    MEAN_DISPLACEMENT: Fraction(1, MOVE_UNITS),
    ERRORS_OF_ROWS: Fraction(1, LOSS_UNITS),
}
"""The quantity that 1 in a step's integers stands for: rows, occupied cells, or rows times a distance."""


def measurement_name(ways: int, sparsity: int) -> str:
    """Return the name of the step that measures tables of `ways` columns."""
    if ways == sparsity:
        return "noisy marginals"
    return "noisy single columns" if ways == 1 else f"noisy marginals of {ways} columns"


def choice_name(candidates: int) -> str:
    """Return the name of the step that chooses one of several tables."""
    return f"choosing among {candidates} tables"


def exceptions_name(number: int) -> str:
    """Return the name of the step that chooses exceptions."""
    return f"choosing {number} exception{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that read rows.

    `sensitivity` bounds the change of its integers between neighbours. `values` are the noisy integers of a step with
    few of them; those of a measurement are in measurements.npz. A private choice adds no noise and has no scale.
    """

    on: str
    cost: Guarantee
    sensitivity: Sensitivity | None = None
    scale: float | None = None
    values: tuple[int, ...] | None = None

    @classmethod
    def of_scalars(cls, on: str, noisy: NoisyScalars) -> Step:
        return cls(on, noisy.cost, noisy.sensitivity, noisy.scale, noisy.values)

    @classmethod
    def of_measurement(cls, on: str, made: Measurement) -> Step:
        return cls(on, made.cost, made.sensitivity, made.scale)

    @property
    def noisy(self) -> NoisyScalars:
        """The noisy values with the distribution of their noise; ValueError if the step has none."""
        if self.values is None or self.scale is None or not 0 < self.scale <= MAX_SCALE:
            raise ValueError("a step without noisy values")
        return NoisyScalars(self.values, self.scale, self.cost, sensitivity=self.sensitivity)

    def to_record(self, protection: Protection) -> StepRecord:
        """The step as a record states it: costs and changes are those of the protected unit."""
        changes, spent = self.sensitivity, protection.per_unit(self.cost.spent)
        if changes is not None:
            changes = protection.sensitivity_of_unit(changes)
        return StepRecord(
            on=self.on,
            epsilon=spent.amount if spent.unit is Unit.EPSILON else None,
            rho=spent.amount if spent.unit is Unit.RHO else None,
            noise="sup-norm" if self.scale is not None and is_sup_norm(changes, spent.unit) else None,
            sensitivity=None
            if changes is None
            else SensitivityRecord(changes.l1, changes.l2_squared, each=changes.each),
            scale=self.scale,
            values=self.values,
            worth=None if self.values is None else _worth(self.on, protection),
        )

    @classmethod
    def of_record(cls, stated: StepRecord, unit: Unit, protection: Protection) -> Step:
        """The inverse of `to_record`: costs and changes of a single row."""
        changes = None
        if (said := stated.sensitivity) is not None:
            changes = protection.sensitivity_of_row(Sensitivity(said.l1, said.l2_squared, said.each))
        amount = stated.epsilon if unit is Unit.EPSILON else stated.rho
        if amount is None:
            raise ValueError("a step in another unit than the whole")
        return cls(
            on=stated.on,
            cost=Guarantee(protection.per_row(Budget(amount, unit)), protection.of_rows),
            sensitivity=changes,
            scale=stated.scale,
            values=stated.values,
        )


def _worth(on: str, protection: Protection) -> Fraction | None:
    """The quantity that 1 in the integers of a step stands for."""
    whole = INTEGER_UNITS.get(on)
    return None if whole is None else whole / protection.parts


def stated_steps(record: Record) -> list[Step]:
    """Return the steps that a record states, with costs and changes of a single row."""
    privacy, protection = record.privacy, stated_protection(record)
    return [Step.of_record(each, Unit(privacy.unit), protection) for each in privacy.spent]


def step_on(record: Record, what: str) -> NoisyScalars | None:
    """Return the stored noisy integers of a step; None if there is no such step."""
    return next((step.noisy for step in stated_steps(record) if step.on == what), None)


@dataclass(frozen=True, slots=True)
class Expected:
    """A step as settings, schema, measurements and synthetic rows determine it.

    `numbers` is the number of its values. `noised` says whether it has a scale; `sensitivity` is None if it depends on
    a plan, and has the change of `each` integer if noise is drawn for all of them together.
    """

    on: str
    amount: Fraction
    sensitivity: Sensitivity | None
    noised: bool = True
    numbers: int = 0

    @classmethod
    def together(cls, on: str, amount: Fraction, *, change: int, numbers: int) -> Expected:
        """A step of `measure_together`: `numbers` integers, each of which changes by at most `change`."""
        return cls(on, amount, Sensitivity.of_each(change, numbers), numbers=numbers)

    def problem(self, step: Step) -> str:
        """Describe how a stated step differs from the expected one; empty if it does not."""
        spent = step.cost.spent
        if step.on != self.on:
            return f"the budget was spent on {step.on!r} where {self.on!r} was made"
        if spent.amount != self.amount:
            return f"the {spent.unit} of {self.on} is not its share of the budget"
        if step.sensitivity != self.sensitivity:
            return f"the sensitivity of {self.on} is not what schema and rows give"
        if (step.scale is not None) != self.noised or len(step.values or ()) != self.numbers:
            return f"{self.on} lacks its noise, or has some where there is none"
        if step.scale is None or self.sensitivity is None or is_calibrated(step.scale, self.sensitivity, spent):
            return ""
        return f"the scale of the noise is not that for the {spent.unit} of {self.on}"
