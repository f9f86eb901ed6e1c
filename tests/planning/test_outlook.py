"""The outlook: what rehearsals and the model say together, and a range for nine of ten real tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from certsynth.algorithm.task import Task
from certsynth.domain import Category, Ordered, Schema
from certsynth.mechanisms import strategy_named
from certsynth.planning import outlook, rehearsal
from certsynth.planning.choice import FIRST_SPLIT, Design, predict_design
from certsynth.planning.outlook import NOISE_RANGE, REAL_LOSS_RANGE, Outlook, expect_bound
from certsynth.planning.rehearsal import Rehearsal, certificate_slack, certified_bound, statistic_errors
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
    """The outlook if the rehearsals have these losses, and errors of shares that are twice as large."""
    seen: list[TableKind] = []

    def errors(*asked: Any) -> tuple[float, dict[str, float]]:
        seen.append(asked[-2])
        loss = losses[len(seen) - 1]
        return loss, {"share_of_one_column": 2 * loss}

    monkeypatch.setattr(outlook, "_rehearsed_errors", errors)
    found = expect_bound(task, design, 0.0)
    assert seen == [*KINDS, *KINDS]
    assert found.rehearsals == len(seen)
    return found


LOSSES = [0.01, 0.02, 0.04, 0.01, 0.02, 0.02, 0.01, 0.08]


def test_pairs_are_expected_by_rehearsals_and_the_model_in_equal_parts(monkeypatch) -> None:
    task, design = task_for()
    loss = math.sqrt(0.02 * design.predicted)
    assert expected(monkeypatch, LOSSES, task, design).middle == pytest.approx(certified_bound(task, loss))


def test_shares_are_expected_by_rehearsals_alone(monkeypatch) -> None:
    task, design = task_for()
    found = expected(monkeypatch, LOSSES, task, design).statistics
    assert found == {"share_of_one_column": pytest.approx(certified_bound(task, 0.04))}


def test_the_errors_of_a_rehearsal_are_those_that_a_certificate_would_measure() -> None:
    """Ten rows of a hundred move from 10 to 20, and from x to y: the most that a share is off by."""
    before = [np.repeat([10.0, 30.0], 50), np.repeat([0, 1], 50)]
    after = [before[0].copy(), before[1].copy()]
    after[0][:10], after[1][:10] = 20.0, 1
    same = statistic_errors(PAIR, [(0, 1)], Rehearsal(before, before))
    assert set(same) == {"share_of_one_column", "share_of_two_columns", "group_total", "moment"}
    assert set(same.values()) == {0.0}
    moved = statistic_errors(PAIR, [(0, 1)], Rehearsal(before, after))
    assert moved["share_of_one_column"] == moved["share_of_two_columns"] == pytest.approx(0.1)
    assert moved["moment"] == pytest.approx(0.1 * 10 / 40, rel=0.2)


def test_of_many_subsets_some_are_compared(monkeypatch) -> None:
    monkeypatch.setattr(rehearsal, "MAX_STATISTIC_SUBSETS", 1)
    rows = [np.array([1.0, 2.0]), np.array([0, 1]), np.array([0.5, 0.5])]
    other = [rows[0], rows[1], np.array([0.0, 1.0])]
    subsets = [(0, 1), (0, 2), (1, 2)]
    assert statistic_errors(TRIPLE, subsets, Rehearsal(rows, other))["share_of_two_columns"] == 0.0  # only the first


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
