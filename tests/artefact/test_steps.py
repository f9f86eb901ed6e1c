"""A step whose integers got noise together says so, and `verify`'s comparison sees any other statement."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from certsynth.algorithm.expected_steps import steps_problem, values_problem
from certsynth.artefact.steps import RESOLUTION_CHOICE, ROW_COUNT, Expected, Step
from certsynth.mechanisms import Budget, Guarantee, Neighbours, NoisyScalars, Sensitivity, Unit, measure_together
from certsynth.mechanisms.guarantee import Charge
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.samplers import calibrated_scale
from certsynth.mechanisms.spending import Spending
from certsynth.record import form
from certsynth.record.record import StepRecord

CHANGE, COUNT, AMOUNT = 3, 40, Fraction(1, 7)
ROWS = Protection(Neighbours.REPLACE_ONE)
units = pytest.mark.parametrize("unit", list(Unit))


def made(unit: Unit) -> Step:
    """A step as a release makes it, with noise that is paid for."""
    budget = Budget(AMOUNT, unit)
    charge = Charge(AMOUNT, unit, Neighbours.REPLACE_ONE)
    with Spending(charge, budget, what="test", account=None) as spending:
        noisy = measure_together(
            range(COUNT), change=CHANGE, budget=budget, neighbours=Neighbours.REPLACE_ONE, noise=spending
        )
        with pytest.raises(ValueError, match="more is spent"):
            measure_together([1], change=1, budget=budget, neighbours=Neighbours.REPLACE_ONE, noise=spending)
    return Step.of_scalars(RESOLUTION_CHOICE, noisy)


def expected() -> Expected:
    return Expected.together(RESOLUTION_CHOICE, AMOUNT, change=CHANGE, numbers=COUNT)


@units
def test_a_step_is_read_as_it_was_written(unit):
    step = made(unit)
    written = form.to_json(step.to_record(ROWS))
    assert written["sensitivity"] == {"l1": COUNT * CHANGE, "l2_squared": COUNT * CHANGE**2, "each": CHANGE}
    assert written.get("noise") == ("sup-norm" if unit is Unit.EPSILON else None)
    again = Step.of_record(form.from_json(StepRecord, written), unit, ROWS)
    assert again == step
    assert again.noisy.sup_norm is (unit is Unit.EPSILON)
    assert again.noisy.joint_slack(Fraction(1, 20)) == step.noisy.joint_slack(Fraction(1, 20))


def test_other_steps_are_written_as_before():
    noisy = NoisyScalars((5,), 2.0, Guarantee(Budget(Fraction(1, 2)), Neighbours.REPLACE_ONE), True, Sensitivity(1, 1))
    written = form.to_json(Step.of_scalars(ROW_COUNT, noisy).to_record(ROWS))
    assert "noise" not in written
    assert set(written["sensitivity"]) == {"l1", "l2_squared"}


@units
def test_a_step_as_expected_has_no_problem(unit):
    assert steps_problem([made(unit)], [expected()]) == ""


@units
@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (lambda s: {"sensitivity": Sensitivity(s.sensitivity.l1, s.sensitivity.l2_squared)}, "sensitivity"),
        (lambda s: {"sensitivity": Sensitivity.of_each(CHANGE - 1, COUNT)}, "sensitivity"),
        (lambda s: {"sensitivity": Sensitivity.of_each(CHANGE, COUNT + 1)}, "sensitivity"),
        (lambda s: {"scale": s.scale * 0.99}, "scale"),
        (lambda s: {"scale": s.scale * 1.01}, "scale"),
        (lambda s: {"values": s.values[1:]}, "lacks its noise"),
        (lambda s: {"cost": Guarantee(s.cost.spent.share(Fraction(1, 2)), s.cost.neighbours)}, "share"),
    ],
)
def test_any_other_step_has_one(unit, other, problem):
    step = made(unit)
    assert problem in steps_problem([dataclasses.replace(step, **other(step))], [expected()])


def test_the_scale_of_independent_noise_does_not_pass_for_one_of_the_sup_norm():
    step = made(Unit.EPSILON)
    laplace = calibrated_scale(Sensitivity(COUNT * CHANGE, COUNT * CHANGE**2), step.cost.spent)
    assert "scale" in steps_problem([dataclasses.replace(step, scale=laplace)], [expected()])


def test_a_record_that_hides_its_noise_differs_from_what_is_written_again():
    """`verify` compares every step with its own form: a missing or a wrong statement of the noise is seen."""
    for unit, changed in ((Unit.EPSILON, None), (Unit.RHO, "sup-norm")):
        written = form.to_json(made(unit).to_record(ROWS))
        written.pop("noise", None)
        record = form.from_json(StepRecord, written | ({"noise": changed} if changed else {}))
        assert Step.of_record(record, unit, ROWS).to_record(ROWS) != record


@units
def test_values_far_below_zero_are_seen_and_no_genuine_ones(unit):
    """The noise of a single value reaches much further than Laplace noise of its scale would."""
    step = made(unit)
    assert values_problem([step], 100) == ""
    least = -step.noisy.joint_slack(Fraction(1, 10**12))
    assert values_problem([dataclasses.replace(step, values=(least, *step.values[1:]))], 100) == ""
    assert "below 0" in values_problem([dataclasses.replace(step, values=(least - 1, *step.values[1:]))], 100)
