"""The steps of a release that read rows: what each cost, and the noise that paid for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certsynth.artefact.certificate import ADAPTING, COUNTED, DISPLACEMENT, LOSS_OF_ROWS, LOSS_OF_SINGLES
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.mechanisms import Budget, Guarantee, Measurement, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.guarantee import stored_rational
from certsynth.mechanisms.measure import sensitivity
from certsynth.mechanisms.samplers import MAX_SCALE
from certsynth.mechanisms.scalars import NoisyScalars, is_calibrated
from certsynth.queries.coding import MOVE_UNITS

WORTH = {
    COUNTED: Fraction(1),
    ADAPTING: Fraction(1),
    DISPLACEMENT: Fraction(1, MOVE_UNITS),
    LOSS_OF_ROWS: Fraction(1, LOSS_UNITS),
    LOSS_OF_SINGLES: Fraction(1, LOSS_UNITS),
}
"""What one unit of a step's integers stands for: rows, occupied cells, or rows times a distance."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that read rows.

    `sensitivity` is the most that its integers change between neighbours. Noisy integers of a step of few values are
    `values`; those of a measurement are in measurements.npz. A private choice has no noise, and so no scale.
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
        return cls(on, made.cost, sensitivity(made.marginals, made.strategy), made.scale)

    @property
    def noisy(self) -> NoisyScalars:
        """The values with the law of their noise, where there are some."""
        if self.values is None or self.scale is None or not 0 < self.scale <= MAX_SCALE:
            raise ValueError("a step without noisy values")
        return NoisyScalars(self.values, self.scale, self.cost, sensitivity=self.sensitivity)

    def to_json(self) -> dict[str, Any]:
        changes, worth = self.sensitivity, WORTH.get(self.on)
        return {
            "on": self.on,
            str(self.cost.spent.unit): str(self.cost.spent.amount),
            "sensitivity": None if changes is None else {"l1": changes.l1, "l2_squared": changes.l2_squared},
            "scale": None if self.scale is None else self.scale.hex(),
            "values": None if self.values is None else list(self.values),
            "worth": None if self.values is None or worth is None else str(worth),
        }

    @classmethod
    def read(cls, entry: Mapping[str, Any], unit: Unit, neighbours: Neighbours) -> Step:
        changes, scale, values = entry["sensitivity"], entry["scale"], entry["values"]
        return cls(
            on=entry["on"],
            cost=Guarantee(Budget(stored_rational(entry[unit]), unit), neighbours),
            sensitivity=None if changes is None else Sensitivity(changes["l1"], changes["l2_squared"]),
            scale=None if scale is None else float.fromhex(scale),
            values=None if values is None else tuple(values),
        )


def stated_steps(document: Mapping[str, Any]) -> list[Step]:
    """The steps as certificate.json has them."""
    privacy = document["privacy"]
    unit = Unit.EPSILON if privacy["rho"] is None else Unit.RHO
    return [Step.read(entry, unit, Neighbours(privacy["neighbours"])) for entry in privacy["spent"]]


def step_on(document: Mapping[str, Any], what: str) -> NoisyScalars | None:
    """The noisy integers of a step, as stored; None where there was no such step."""
    return next((step.noisy for step in stated_steps(document) if step.on == what), None)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a step must be, by the settings, the schema, the measurements and the synthetic rows.

    `numbers` is how many values it has. `noised` says whether it has a scale; `sensitivity` is None where it depends on
    a plan.
    """

    on: str
    amount: Fraction
    sensitivity: Sensitivity | None
    noised: bool = True
    numbers: int = 0

    def problem(self, step: Step) -> str:
        """What a stated step has that it cannot have, in words; nothing if it is as it must be."""
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
