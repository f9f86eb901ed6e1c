"""Rehearsals: a made-up table with noise that is as large, as a share of its rows, as on the real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from certsynth.algorithm.certify import direct_bounds
from certsynth.algorithm.layers import LayerSpec, measure_layers
from certsynth.algorithm.task import Task
from certsynth.domain import Category, Ordered, Schema
from certsynth.mechanisms import (
    Budget,
    Measurement,
    Neighbours,
    Sensitivity,
    Unit,
    measure_scalars,
    strategy_named,
)
from certsynth.planning import rehearsal
from certsynth.planning.choice import FIRST_SPLIT, blank_layers, predict_design
from certsynth.planning.rehearsal import (
    Rehearsal,
    certificate_slack,
    certified_bound,
    certified_loss,
    rehearse,
    rehearsed_loss,
    worst_subsets,
)
from certsynth.planning.tables import ORDINARY
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import all_subsets
from certsynth.queries.tally import in_memory
from small import NoNoise, settled

PAIR = Schema((Ordered("a", low=0, high=40), Category("b", values=("x", "y"), missing=True)))
TRIPLE = Schema((*PAIR.columns, Ordered("c", kind="number", low=0.0, high=1.0)))
FEWER = 1_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals of a thousand rows."""
    monkeypatch.setattr(rehearsal, "MAX_REHEARSAL_ROWS", FEWER)
    monkeypatch.setattr(rehearsal, "MIN_REHEARSAL_ROWS", FEWER)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[LayerSpec], list[Measurement]]]:
    """What rehearsals measure."""
    seen: list[tuple[list[LayerSpec], list[Measurement]]] = []

    def spy(rows: Any, schema: Schema, layers: Sequence[LayerSpec], **other: Any) -> list[Measurement]:
        made = measure_layers(rows, schema, layers, **other)
        seen.append((list(layers), made))
        return made

    monkeypatch.setattr(rehearsal, "measure_layers", spy)
    return seen


def layers_of(schema: Schema, sparsity: int, *, resolution: int = 5, **asked: Any) -> tuple[LayerSpec, ...]:
    settings = settled(schema, sparsity=sparsity, **asked)
    strategy = strategy_named("identity", neighbours=settings.neighbours)
    task = Task(schema, settings, 1_000)
    return predict_design(task, strategy, None if sparsity == 1 else resolution, FIRST_SPLIT).layers


# ------------------------------------------------------------ noise


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("sparsity", [1, 2, 3])
def test_noise_is_as_large_a_share_of_the_rows_as_on_the_full_table(measured, sparsity, unit, neighbours) -> None:
    """For 10^4 and 10^6 rows, of which a rehearsal has a thousand, and for 500, of which it has all."""
    layers = layers_of(TRIPLE, sparsity, neighbours=neighbours, **{unit.value: "1/3"})
    full = [m.scale for m in blank_layers(TRIPLE, layers, 0)]
    for n in (500, 10**4, 10**6):
        made = rehearse(TRIPLE, layers, n, kind=ORDINARY, seed=1)
        fewer = len(made.table[0])
        assert fewer == len(made.rows[0]) == min(n, FEWER)
        _, measurements = measured.pop()
        assert [m.scale / fewer for m in measurements] == pytest.approx([scale / n for scale in full], rel=1e-12)
        assert {m.cost.spent.unit for m in measurements} == {unit}
        if n > FEWER:  # control: noise for what was asked, on fewer rows, would be larger
            assert [m.scale for m in measurements] != pytest.approx(full, rel=0.5)


@pytest.mark.parametrize("unit", list(Unit))
def test_the_budget_is_stretched_exactly(measured, unit: Unit) -> None:
    layers = layers_of(PAIR, 2, **{unit.value: "1/3"})
    rehearse(PAIR, layers, 7_777, kind=ORDINARY, seed=1)
    ((scaled, _),) = measured
    ratio = Fraction(7_777, FEWER)
    for before, after in zip(layers, scaled, strict=True):
        assert after.budget == before.budget.share(ratio if unit is Unit.EPSILON else ratio**2)
        assert (after.subsets, after.cells, after.resolution) == (before.subsets, before.cells, before.resolution)
        assert after.strategy == before.strategy


def test_more_tables_are_rehearsed_on_fewer_rows(monkeypatch, measured) -> None:
    monkeypatch.setattr(rehearsal, "MIN_REHEARSAL_ROWS", 200)
    monkeypatch.setattr(rehearsal, "MAX_TABLE_ROWS", 1_200)
    for schema, sparsity, fewer in ((TRIPLE, 1, 1_000), (PAIR, 2, 1_000), (TRIPLE, 2, 400), (TRIPLE, 3, 300)):
        layers = layers_of(schema, sparsity, epsilon=1)
        assert len(rehearse(schema, layers, 10**5, kind=ORDINARY, seed=1).table[0]) == fewer


def test_the_noise_of_a_rehearsal_is_never_released(measured) -> None:
    rehearse(PAIR, layers_of(PAIR, 2, epsilon=1), 10**4, kind=ORDINARY, seed=1)
    ((_, measurements),) = measured
    assert not any(m.releasable for m in measurements)


# ------------------------------------------------------------ what comes of it


def test_the_same_seed_gives_the_same_rehearsal() -> None:
    layers = layers_of(PAIR, 2, epsilon=1)
    first, again, other = (rehearse(PAIR, layers, 5_000, kind=ORDINARY, seed=seed) for seed in (1, 1, 2))
    for mine, same, another in zip(
        first.table + first.rows, again.table + again.rows, other.table + other.rows, strict=True
    ):
        assert np.array_equal(mine, same, equal_nan=True)
        assert not np.array_equal(mine, another, equal_nan=True)


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 1},
        {"rho": "0.1"},
        {"epsilon": 1, "neighbours": "add-remove"},
        {"epsilon": 1, "sparsity": 1},
        {"epsilon": 1, "sparsity": 3},
        {"epsilon": "0.01"},
    ],
    ids=str,
)
def test_slack_is_what_a_direct_certificate_adds(asked: dict[str, Any]) -> None:
    """With noise of 0 a certificate is the loss plus its slack; and the loss is about what a rehearsal says."""
    asked = {"sparsity": 2} | asked
    settings = settled(TRIPLE, **asked)
    made = rehearse(TRIPLE, layers_of(TRIPLE, **asked), 4_000, kind=ORDINARY, seed=1)
    fine = LatticeQuery.all_subsets(TRIPLE, sparsity=settings.sparsity)
    counted = None
    if settings.count_share:
        counted = measure_scalars(
            [len(made.table[0])],
            sensitivity=Sensitivity(1, 1),
            budget=settings.budget.share(settings.count_share),
            neighbours=settings.neighbours,
            noise=NoNoise(),
        )
    direct = direct_bounds(
        fine,
        in_memory(made.table),
        lambda: [made.rows],
        budget=settings.budget.share(settings.certificate_share),
        beta=settings.direct_beta(alone=not settings.plug_in),
        neighbours=settings.neighbours,
        two_sided=False,
        counted=counted,
        noise=NoNoise(),
    )
    task = Task(TRIPLE, settings, len(made.table[0]))
    assert direct.bound == pytest.approx(certified_bound(task, direct.whole.estimate), rel=0.02)
    assert certified_bound(task, 0.0) == certificate_slack(task)
    found = certified_loss(TRIPLE, settings.subsets, made)
    assert found == pytest.approx(direct.whole.estimate, rel=0.25, abs=0.003 if settings.sparsity < 3 else 0.15)


def test_a_hidden_number_of_rows_stretches_the_loss_of_few() -> None:
    """The certificate divides by the smallest number that they may have. A public number stretches nothing."""
    for neighbours, rows, least, most in (
        ("replace-one", 900, 0.999, 1.001),
        ("add-remove", 900, 1.3, 2),
        ("add-remove", 90_000, 1, 1.01),
    ):
        task = Task(PAIR, settled(PAIR, epsilon=1, neighbours=neighbours), rows)
        assert least < (certified_bound(task, 0.2) - certified_bound(task, 0.1)) / 0.1 < most


def test_more_rows_leave_less_slack() -> None:
    few, many = (certificate_slack(Task(PAIR, settled(PAIR, epsilon=1), rows)) for rows in (4_000, 400_000))
    assert many == pytest.approx(few / 100)


@pytest.mark.parametrize("sparsity", [1, 2])
def test_losses_fall_as_epsilon_grows(sparsity: int) -> None:
    """Mean of three tables of a thousand rows each."""
    losses = []
    for epsilon in ("0.1", 1, 10, 100):
        layers = layers_of(PAIR, sparsity, epsilon=epsilon, resolution=16)
        made = [rehearse(PAIR, layers, 1_000, kind=ORDINARY, seed=seed) for seed in range(3)]
        losses.append(float(np.mean([rehearsed_loss(PAIR, all_subsets(PAIR, sparsity), each) for each in made])))
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 10 * losses[-1]


def same(table: list[np.ndarray]) -> list[np.ndarray]:
    return table


def reversed_line(table: list[np.ndarray]) -> list[np.ndarray]:
    return [40 - table[0], *table[1:]]


@pytest.mark.parametrize(("change", "least", "most"), [(same, 0, 0), (reversed_line, 0.05, 1)])
def test_a_loss_is_nothing_only_between_equal_tables(change: Callable, least: float, most: float) -> None:
    """The second is the control: a column that is turned around."""
    table = rehearse(PAIR, layers_of(PAIR, 2, epsilon=1), 500, kind=ORDINARY, seed=1).table
    made = Rehearsal(table, change(table))
    assert least <= rehearsed_loss(PAIR, all_subsets(PAIR, 2), made) <= most


def test_a_shift_is_lost_by_as_much_as_it_is() -> None:
    table = [np.arange(10.0), np.zeros(10, int)]
    made = Rehearsal(table, [table[0] + 20, table[1]])
    assert rehearsed_loss(PAIR, all_subsets(PAIR, 2), made) == pytest.approx(0.5)
    assert rehearsed_loss(PAIR, all_subsets(PAIR, 1), made) == pytest.approx(0.5)


def test_the_worst_subsets_are_looked_at() -> None:
    table = [np.arange(10.0), np.zeros(10, int), np.linspace(0, 1, 10)]
    made = Rehearsal(table, [table[0], table[1], np.ones(10)])
    assert worst_subsets(TRIPLE, all_subsets(TRIPLE, 1), made, 1) == [(2,)]
    assert set(worst_subsets(TRIPLE, all_subsets(TRIPLE, 2), made, 2)) == {(0, 2), (1, 2)}
    assert worst_subsets(TRIPLE, all_subsets(TRIPLE, 2), made, 3) == [(0, 1), (0, 2), (1, 2)]


def test_budgets_of_a_rehearsal_are_made_up() -> None:
    """A stretched budget may be beyond any that can be asked for: it is spent on no real row."""
    plain = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    layers = [LayerSpec(all_subsets(PAIR, 1), "points", None, plain, Budget(Fraction(50)))]
    assert len(rehearse(PAIR, layers, 10**7, kind=ORDINARY, seed=1).rows[0]) == FEWER
