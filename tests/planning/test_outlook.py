"""The outlook: what rehearsals and the model say together, and a range for nine of ten real tables."""

from __future__ import annotations

import math
from typing import Any

import pytest

from certsynth.algorithm.task import Task
from certsynth.domain import Category, Ordered, Schema
from certsynth.mechanisms import strategy_named
from certsynth.planning import outlook
from certsynth.planning.choice import FIRST_SPLIT, Design, predict_design
from certsynth.planning.outlook import NOISE_RANGE, REAL_LOSS_RANGE, Outlook, expect_bound
from certsynth.planning.rehearsal import certificate_slack, certified_bound
from certsynth.planning.tables import KINDS, TableKind
from small import settled

PAIR = Schema((Ordered("a", low=0, high=40), Category("b", values=("x", "y"), missing=True)))
TRIPLE = Schema((*PAIR.columns, Ordered("c", kind="number", low=0.0, high=1.0)))


def task_for(schema: Schema = PAIR, rows: int = 50_000, **asked: Any) -> tuple[Task, Design]:
    settings = settled(schema, epsilon=1, **asked)
    strategy = strategy_named("identity", neighbours=settings.neighbours)
    task = Task(schema, settings, rows)
    return task, predict_design(task, strategy, None if settings.sparsity == 1 else 8, FIRST_SPLIT)


def expected(monkeypatch: pytest.MonkeyPatch, losses: list[float], task: Task, design: Design) -> Outlook:
    """The outlook if the rehearsals have these losses."""
    seen: list[TableKind] = []

    def loss(*asked: Any) -> float:
        seen.append(asked[-2])
        return losses[len(seen) - 1]

    monkeypatch.setattr(outlook, "_rehearsed_loss", loss)
    found = expect_bound(task, design, 0.0)
    assert seen == [*KINDS, *KINDS]
    assert found.rehearsals == len(seen)
    return found


LOSSES = [0.01, 0.02, 0.04, 0.01, 0.02, 0.02, 0.01, 0.08]


def test_pairs_are_expected_by_rehearsals_and_the_model_in_equal_parts(monkeypatch) -> None:
    task, design = task_for()
    loss = math.sqrt(0.02 * design.predicted)
    assert expected(monkeypatch, LOSSES, task, design).middle == pytest.approx(certified_bound(task, loss))


@pytest.mark.parametrize("sparsity", [1, 3])
def test_other_subsets_are_expected_by_rehearsals_alone(monkeypatch, sparsity: int) -> None:
    """The model was fitted to pairs."""
    task, design = task_for(TRIPLE, sparsity=sparsity)
    assert expected(monkeypatch, LOSSES, task, design).middle == pytest.approx(certified_bound(task, 0.02))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [900, 50_000, 10**7])
def test_the_range_adds_the_squares_of_what_tables_and_noise_do(monkeypatch, rows: int, neighbours: str) -> None:
    task, design = task_for(TRIPLE, rows=rows, sparsity=3, neighbours=neighbours)
    found = expected(monkeypatch, [0.02] * 8, task, design)
    slack = certificate_slack(task)
    above = certified_bound(task, 0.02 * REAL_LOSS_RANGE) - found.middle
    below = found.middle - certified_bound(task, 0.02 / REAL_LOSS_RANGE)
    assert found.high - found.middle == pytest.approx(math.hypot(above, NOISE_RANGE * slack))
    assert found.middle - found.low == pytest.approx(math.hypot(below, NOISE_RANGE * slack))
    assert 0 < found.low < found.middle < found.high


def test_without_any_loss_the_range_is_that_of_the_noise(monkeypatch) -> None:
    task, design = task_for(TRIPLE, sparsity=3)
    found = expected(monkeypatch, [0.0] * 8, task, design)
    assert found.middle == found.slack == certificate_slack(task)
    assert found.high - found.middle == pytest.approx(NOISE_RANGE * found.slack)
