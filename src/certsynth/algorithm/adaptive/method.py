"""The adaptive method: single columns, private scores of all pairs, and the pairs that are worth measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from certsynth.algorithm.adaptive.choice import (
    SCORE_SHARES,
    as_design,
    candidate_pairs,
    choose_layers,
    measure_scores,
    noisy_dependence,
)
from certsynth.algorithm.adaptive.plan import plan_adaptive, predict_quickly
from certsynth.algorithm.layered import Layered
from certsynth.algorithm.layers import measure_layers
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen, ExpectedLayer, Means, PrivateTable
from certsynth.artefact.steps import PAIR_SCORES, Expected, Step
from certsynth.base.progress import Progress
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Measurement, as_full_measurements
from certsynth.mechanisms.dependence import score_change
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.planning.choice import Choice
from certsynth.planning.plan import Plan


class Adaptive(Layered):
    """Measure single columns, score all pairs privately, and measure those whose dependence exceeds their noise."""

    name = "adaptive"

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        settings = replace(super().settings(schema, {**options, "mechanism": None}), method=self.name)
        _check(settings)
        share = SCORE_SHARES[settings.budget.unit]
        return replace(
            settings, choice_share=share, plug_in=False, share_is_open=False, target=_target(schema, options["target"])
        )

    def choose(self, task: Task, private: PrivateTable, means: Means) -> Chosen:
        first, noisy = measure_scores(task, private.counting, noise=means.spending)
        dependence = noisy_dependence(task.schema, task.settings, first, noisy)
        design = as_design(task.settings, choose_layers(task.schema, task.settings, first, dependence))
        return Chosen(
            Choice(design, (design,)),
            spent=(Step.of_scalars(PAIR_SCORES, noisy),),
            measurements=(first,),
            dependence=dict(zip(candidate_pairs(task.settings), dependence.tolist(), strict=True)),
        )

    def measure(self, task: Task, chosen: Chosen, private: PrivateTable, means: Means) -> tuple[Measurement, ...]:
        layers, made = chosen.choice.layers, chosen.measurements
        return tuple(measure_layers(private.counting, task.schema, layers, noise=means.spending, made=made))

    def expected_choice(self, settings: Settings, compared: int) -> list[Expected]:
        amount = settings.budget.amount * settings.choice_share
        numbers = len(candidate_pairs(settings))
        return [Expected.together(PAIR_SCORES, amount, change=score_change(settings.neighbours), numbers=numbers)]

    def expected_layers(
        self, schema: Schema, settings: Settings, measurements: Sequence[Measurement], scores: NoisyScalars | None
    ) -> tuple[ExpectedLayer, ...]:
        full = as_full_measurements(measurements)
        if full is None or scores is None:
            raise ValueError("an adaptive release without its scores")
        whole = settings.measurement_budget.amount
        dependence = noisy_dependence(schema, settings, full[0], scores)
        known = dict(zip(candidate_pairs(settings), dependence.tolist(), strict=True))
        return tuple(
            ExpectedLayer(
                tables=layer.subsets,
                cells=layer.cells,
                share=layer.budget.amount / whole,
                weights=layer.weights,
                resolution=layer.resolution,
                dependence=tuple(known[pair] for pair in layer.subsets if pair in known),
            )
            for layer in choose_layers(schema, settings, full[0], dependence)
        )

    def plan(self, task: Task, *, memory: int | None, progress: Progress) -> Plan:
        return plan_adaptive(task, memory=memory, progress=progress)

    def predict(self, task: Task) -> float:
        return predict_quickly(task)


def _target(schema: Schema, name: str | None) -> int | None:
    """The position of the target column: the one that the option names, or else the schema."""
    name = schema.target if name is None else name
    if name is None:
        return None
    if name not in schema.names:
        raise InputError(f"`target` names the column {name!r}, which is not among those that are measured.")
    return schema.names.index(name)


def _check(settings: Settings) -> None:
    """Refuse settings that are for other ways of measuring."""
    if settings.sparsity != 2:
        raise InputError("the mechanism adaptive measures pairs of columns: leave `sparsity` and wider `subsets` out.")
    if settings.projection != "particles":
        raise InputError(
            "the mechanism adaptive fits particles and needs the direct certificate: leave `projection`, `loss` and "
            "a `certificate_share` of 0 out."
        )
    if settings.resolution is not None:
        raise InputError("the mechanism adaptive has a resolution for each pair of columns: leave `resolution` out.")


ADAPTIVE = Adaptive()
