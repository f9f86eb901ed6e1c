"""The steps of a release that read rows: what each cost, and the noise that paid for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certsynth.artefact.certificate import (
    ADAPTING,
    COUNTED,
    DISPLACEMENT,
    LOSS_OF_ROWS,
    LOSS_OF_SINGLES,
    choosing,
    measuring,
)
from certsynth.certificate.direct import (
    certificate_shares,
    choice_sensitivity,
    loss_sensitivity,
    single_columns,
)
from certsynth.certificate.skipping import FINENESS
from certsynth.domain import Schema
from certsynth.mechanisms import Budget, Guarantee, Measurement, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.guarantee import stored_rational
from certsynth.mechanisms.measure import sensitivity
from certsynth.mechanisms.samplers import MAX_SCALE
from certsynth.mechanisms.scalars import NoisyScalars, is_calibrated
from certsynth.mechanisms.selection import cost_of_choice
from certsynth.mechanisms.sparse import LowDimensional
from certsynth.queries.coding import MOVE_UNITS
from certsynth.queries.displacement import farthest
from certsynth.queries.fine import FineMarginals
from certsynth.queries.tally import Batch
from certsynth.settings import SPLITS, Settings

WORTH = {
    COUNTED: Fraction(1),
    ADAPTING: Fraction(1),
    DISPLACEMENT: Fraction(1, MOVE_UNITS),
    LOSS_OF_ROWS: Fraction(1, FINENESS),
    LOSS_OF_SINGLES: Fraction(1, FINENESS),
}
"""What one unit of a step's integers stands for: rows, occupied cells, or rows times a distance."""

IMPOSSIBLE = Fraction(1, 10**12)
"""Noise that is exceeded so seldom is taken not to occur."""


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


def expected_steps(
    settings: Settings,
    schema: Schema,
    measurements: Sequence[Measurement],
    rows: Batch,
    *,
    compared: int,
    split: Fraction,
) -> list[Expected]:
    """What the budget goes to, in order. `rows` are the synthetic ones, cleaned; `compared` says how many plans there
    were, and `split` how the budget for measuring was divided.
    """
    budget, last = settings.privacy.budget, measurements[-1]
    found: list[Expected] = []

    def add(on: str, share: Fraction, changes: int, numbers: int = 1) -> None:
        found.append(Expected(on, budget.amount * share, Sensitivity(changes, changes**2), numbers=numbers))

    if settings.count_share:
        add(COUNTED, settings.count_share, 1)
    if settings.adaptation_share and compared > 1:
        assert isinstance(last.strategy, LowDimensional)
        noised = last.strategy.signed
        changes = Sensitivity(compared, compared) if noised else None
        amount = budget.amount * settings.adaptation_share
        found.append(Expected(ADAPTING, amount, changes, noised, compared if noised else 0))
    for m, (tables, _, share) in zip(measurements, settings.layers(split), strict=True):
        changes_of_all = sensitivity(m.marginals, m.strategy)
        amount = settings.measurement_budget.amount * share if changes_of_all else Fraction(0)
        found.append(Expected(measuring(max(map(len, tables)), settings.sparsity), amount, changes_of_all))
    fine = FineMarginals.of(schema, settings.subsets, lattice_columns=settings.lattice_columns)
    if settings.candidates > 1:
        change = choice_sensitivity(fine, settings.neighbours)
        cost = cost_of_choice(budget.share(settings.selection_share))
        choice = Sensitivity(change, change**2)
        found.append(Expected(choosing(settings.candidates), cost.amount, choice, noised=False))
    if settings.displacement_share and (most := farthest(schema, last.marginals)):
        add(DISPLACEMENT, settings.displacement_share, most)
    if settings.share:
        for_all, for_single = certificate_shares(settings.subsets)
        add(LOSS_OF_ROWS, settings.share * for_all, _change(fine, settings, rows))
        if for_single:
            add(LOSS_OF_SINGLES, settings.share * for_single, _change(single_columns(fine), settings, rows))
    return found


def _change(fine: FineMarginals, settings: Settings, rows: Batch) -> int:
    """The most that the loss of these rows changes; how far they are from the lattice matters where n is hidden."""
    moved = Fraction(0)
    if settings.neighbours is Neighbours.ADD_REMOVE:
        moved = fine.netted([rows]).mean_moved(rows)
    return loss_sensitivity(fine, moved, settings.neighbours)


def split_of(settings: Settings, measurements: Sequence[Measurement]) -> Fraction:
    """How the budget for measuring was divided among layers, by what these cost; one that cost nothing fits any."""
    budget = settings.measurement_budget.amount
    spent = [m.cost.spent.amount for m in measurements]
    for split in SPLITS:
        shares = [share for *_, share in settings.layers(split)]
        if len(shares) == len(spent) and all(not a or a == budget * s for a, s in zip(spent, shares, strict=True)):
            return split
    return SPLITS[0]


def steps_problem(steps: Sequence[Step], expected: Sequence[Expected]) -> str:
    """What is wrong with stated steps, in words; nothing if they are as they must be."""
    if len(steps) != len(expected):
        return "the budget was spent on something else than what was made"
    return next((p for each, step in zip(expected, steps, strict=True) if (p := each.problem(step))), "")


def values_problem(steps: Sequence[Step], rows: int | None) -> str:
    """Which noisy value no rows can have, in words: all of them are counts, or sums of distances, before the noise.

    A sum of displacements is at most what all rows can add to it. A sound release fails with probability 10^−12 each.
    """
    named = {step.on: step.noisy for step in steps if step.values is not None}
    for on, noisy in named.items():
        if min(noisy.values) < -noisy.slack(IMPOSSIBLE):
            return f"the noisy value of {on} is further below 0 than noise goes"
    counted, moved = named.get(COUNTED), named.get(DISPLACEMENT)
    if moved is None or moved.sensitivity is None:
        return ""
    most = counted.values[0] + counted.slack(IMPOSSIBLE) if counted else rows or 0
    if moved.values[0] > most * moved.sensitivity.l1 + moved.slack(IMPOSSIBLE):
        return f"the noisy value of {DISPLACEMENT} is larger than rows can make it"
    return ""
