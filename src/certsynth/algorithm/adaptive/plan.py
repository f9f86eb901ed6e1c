"""Plan an adaptive release: rehearse it on made-up tables, scores included."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certsynth.algorithm.adaptive.choice import (
    SCORE_SHARES,
    candidate_pairs,
    choose_layers,
    measure_scores,
    noisy_dependence,
    single_share,
)
from certsynth.algorithm.layers import measure_layers
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.sizes import Size, size_of_release
from certsynth.algorithm.task import Task
from certsynth.base.parallel import run
from certsynth.base.progress import Progress, number_stages, silent
from certsynth.domain import Schema
from certsynth.mechanisms.samplers import SimulatedNoise
from certsynth.planning.outlook import (
    OUTLOOK_SEED,
    expect_statistics,
    geometric_mean,
    outlook_of,
    rehearsal_count,
)
from certsynth.planning.plan import Plan, Planned, Variation, halved, other_noise
from certsynth.planning.rehearsal import (
    MAX_REHEARSAL_ROWS,
    Rehearsal,
    certificate_slack,
    certified_loss,
    scaled_budget,
    statistic_errors,
)
from certsynth.planning.tables import KINDS, TableKind, kinds, make_up_table
from certsynth.projection.synthesis import synthesise
from certsynth.queries import Marginals
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.tally import in_memory

TYPICAL_GROUPS = 12
"""Groups of a line for which time and memory are estimated."""


STAGES = number_stages("predicting the bound", "trying other settings")
"""The stages of a plan, as progress reports name them."""


def plan_adaptive(task: Task, *, memory: int | None, progress: Progress) -> Plan:
    """Plan an adaptive release. Which pairs it measures depends on the rows, so it is rehearsed as a whole."""
    predicting, varying = STAGES
    progress(predicting, 0, None)
    rehearsed = _rehearse(task, kinds(rehearsal_count(len(task.settings.subsets))), progress)
    losses = [loss for loss, _ in rehearsed]
    found = outlook_of(task, geometric_mean(losses), len(losses))
    size = _size(task)
    choice = Planned(
        mechanism="adaptive",
        growth="0",
        resolution=None,
        discretisation=0.0,
        privatisation=0.0,
        predicted_bound=min(1.0, found.middle),
        low=min(1.0, found.low),
        high=min(1.0, found.high),
        rehearsals=len(losses),
        seconds=round(size.seconds, 1),
        memory_gb=round(size.bytes / 2**30, 2),
    )
    progress(varying, 0, None)
    return Plan.of(
        task,
        choice=choice,
        candidates=[choice],
        variations=_variations(task, losses[0], choice.predicted_bound, progress),
        split=single_share(task),
        statistics=expect_statistics(task, [errors for _, errors in rehearsed]),
    )


def predict_quickly(task: Task) -> float:
    """The bound on one made-up table: for comparison with that of other tasks."""
    ((loss, _),) = _rehearse(task, KINDS[:1], silent)
    return loss + certificate_slack(task)


def _rehearse(task: Task, kinds: Sequence[TableKind], progress: Progress) -> list[tuple[float, dict[str, float]]]:
    tasks = [(task.schema, task.settings, task.rows, kind, OUTLOOK_SEED + i) for i, kind in enumerate(kinds)]
    return run(_rehearsed_errors, tasks, work=10**9, phase="rehearsing the release", progress=progress)


def _rehearsed_errors(
    schema: Schema, settings: Settings, rows: int, kind: TableKind, seed: int
) -> tuple[float, dict[str, float]]:
    """The loss of an adaptive release of a made-up table of fewer rows, with noise scaled down accordingly, and its
    largest errors of other statistics by name."""
    fewer = min(rows, MAX_REHEARSAL_ROWS)
    rng = np.random.default_rng([seed, fewer])
    table = make_up_table(schema, fewer, kind=kind, rng=rng)
    budget = scaled_budget(settings.privacy.budget, Fraction(rows, fewer))
    scaled = dataclasses.replace(settings, privacy=dataclasses.replace(settings.privacy, budget=budget))
    noise, source = SimulatedNoise(rng), in_memory(table)
    singles, scores = measure_scores(Task(schema, scaled, fewer), source, noise=noise)
    dependence = noisy_dependence(schema, scaled, singles, scores)
    layers = choose_layers(schema, scaled, singles, dependence)
    made = measure_layers(source, schema, layers, noise=noise, made=[singles])
    rehearsal = Rehearsal(table, synthesise(made, schema, fewer, rng))
    subsets = settings.subsets
    return certified_loss(schema, subsets, rehearsal), statistic_errors(schema, subsets, rehearsal)


def _variations(task: Task, now: float, predicted: float, progress: Progress) -> list[Variation]:
    """Twice the rows, half of ε, and the other noise, rehearsed on one made-up table and scaled."""
    privacy = task.settings.privacy
    half, (change, other) = halved(privacy), other_noise(privacy)
    others = [("twice the rows", dataclasses.replace(task, rows=2 * task.rows))]
    others += [("half of epsilon", task.with_settings(privacy=half))] if half else []
    if other:
        share = SCORE_SHARES[other.budget.unit]
        others.append((change, task.with_settings(privacy=other, choice_share=share)))
    found = []
    for change, varied in others:
        ((loss, _),) = _rehearse(varied, KINDS[:1], progress)
        slack, slack_now = certificate_slack(varied), certificate_slack(task)
        ratio = (loss + slack) / (now + slack_now)
        found.append(Variation(change, "adaptive", None, min(1.0, predicted * ratio)))
    return found


def _size(task: Task) -> Size:
    even = Marginals.even(task.schema, candidate_pairs(task.settings), resolution=TYPICAL_GROUPS)
    fine = LatticeQuery.of(task.schema, task.settings.subsets)
    return size_of_release(task.schema, even, fine, rows=task.units, draws=0)
