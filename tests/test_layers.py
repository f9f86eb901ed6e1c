"""Measuring in layers: what each costs, what noise is given, and that cells follow from noisy counts alone."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Release, plan, release
from certsynth.algorithm.adaptive.allocation import CellSize
from certsynth.algorithm.adaptive.scores import cells_at
from certsynth.algorithm.layers import LayerSpec, max_label_groups, measure_layers
from certsynth.algorithm.sample import sample
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.artefact import measurements
from certsynth.certificate.seed import seed_of
from certsynth.domain import Category, Groups, Ordered, Schema
from certsynth.domain.labels import tree_column
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Measurement, Sensitivity, Unit
from certsynth.mechanisms.samplers import NoisyIntegers
from certsynth.planning.choice import choose
from certsynth.planning.plan import Plan
from certsynth.planning.tables import ORDINARY, make_up_table
from certsynth.queries.tally import in_memory
from certsynth.sources import cleaned, open_source
from small import MIXED, NATIVE, FixedOutput, NoNoise, people, planned, settled

RELATIONS = ["replace-one", "add-remove"]


def measured(rows: Sequence[np.ndarray], schema: Schema, noise: Any, **asked: Any) -> list[Measurement]:
    layers = planned(schema, settled(schema, **({"mechanism": "identity"} | asked)), len(rows[0]))
    return measure_layers(in_memory(rows), schema, layers, noise=noise)


def mixed(rows: int, seed: int = 0) -> list[np.ndarray]:
    batches = list(cleaned(open_source(people(rows, seed=seed), what="data"), MIXED))
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def starts(measurement: Measurement) -> list[list[int]]:
    return [grid.starts.tolist() for grid in measurement.marginals.cells if isinstance(grid, Groups)]


class Spy(FixedOutput):
    """Notes what it is given, and answers the same whatever that is."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.given: list[tuple[np.ndarray, Sensitivity, NoisyIntegers]] = []

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        answer = super().add(values, sensitivity=sensitivity, budget=budget)
        self.given.append((values.copy(), sensitivity, answer))
        return answer


# ------------------------------------------------------------ what it costs


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize("share", [None, "0.3", "1/7", 0])
@pytest.mark.parametrize("sparsity", [1, 2, 3])
@pytest.mark.parametrize("unit", list(Unit))
def test_the_layers_cost_exactly_what_is_left_for_measuring(unit, sparsity, share, candidates, neighbours) -> None:
    """Of ε = 1/3 or ρ = 1/3, after the certificate, or else the displacement, the number of rows and the choice."""
    asked = {
        unit.value: "1/3",
        "sparsity": sparsity,
        "certificate_share": share,
        "candidates": candidates,
        "resolution": 2,
    }
    settings = settled(NATIVE, projection="particles", neighbours=neighbours, **asked)
    certificate = Fraction(9, 100) if share is None else Fraction(share)
    displacement = Fraction(0) if certificate else Fraction(1, 50)
    count = Fraction(1, 50) if neighbours == "add-remove" else 0
    left = Fraction(1, 3) * (1 - certificate - displacement - count - (Fraction(1, 20) if candidates > 1 else 0))
    layers = planned(NATIVE, settings, 100)
    assert {layer.budget.unit for layer in layers} == {unit}
    assert sum(layer.budget.amount for layer in layers) == left == settings.measurement_budget.amount
    assert [layer.ways for layer in layers] == (list(range(1, sparsity + 1)) if certificate else [sparsity])
    assert min(layer.budget.amount for layer in layers) > 0
    noise = NoNoise()
    made = measure_layers(in_memory([np.zeros(4), np.ones(4), np.zeros(4, int)]), NATIVE, layers, noise=noise)
    assert sum(m.cost.spent.amount for m in made) == left
    assert {m.cost.spent.unit for m in made} == {unit}
    assert {m.cost.neighbours for m in made} == {neighbours}


TINY = Schema(
    columns=(
        Ordered("a", low=0, high=2),
        Ordered("b", missing=True, low=0, high=1),
        Category("c", values=("x", "y")),
    )
)
ROWS = list(itertools.product([0.0, 1.0, 2.0], [0.0, 1.0, np.nan], [0, 1]))


def given_to_noise(
    rows: Sequence[tuple], layers: Sequence[LayerSpec], schema: Schema
) -> tuple[list[np.ndarray], list[float], list[list[list[int]]]]:
    """What each layer hands to the noise for a table, at which scale noise comes back, and the groups."""
    columns = [np.array([row[j] for row in rows], dtype=float) for j in range(2)]
    columns.append(np.array([row[2] for row in rows], dtype=np.int64))
    spy = Spy()
    wanted = [x for column, x in zip(TINY, columns, strict=True) if column.name in schema.names]
    made = measure_layers(in_memory(wanted), schema, layers, noise=spy)
    return [v for v, _, _ in spy.given], [answer.scale for _, _, answer in spy.given], [starts(m) for m in made]


def neighbouring(neighbours: str) -> list[tuple[list[tuple], list[tuple]]]:
    """All neighbours that differ in one row, which is alone or beside one of two others."""
    beside: list[list[tuple]] = [[], *([row] for row in ROWS[3::8])]
    if neighbours == "add-remove":
        return [(rest, [*rest, row]) for rest in beside for row in ROWS]
    return [([*rest, a], [*rest, b]) for rest in beside for a, b in itertools.combinations(ROWS, 2)]


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("mechanism", [None, "haar", "haar-noisy-total", "haar-weighted", "quad-tree"])
@pytest.mark.parametrize("sparsity", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", list(Unit))
def test_no_neighbours_differ_by_more_than_the_noise_covers(unit, sparsity, mechanism, neighbours) -> None:
    """P1 through all layers, by brute force, over all neighbours at the same groups.

    Σ ‖change‖₁ / scale ≤ ε: discrete Laplace noise of that scale makes such a pair e^{‖change‖₁ / scale} times as
    likely at most, and layers are composed. Σ ‖change‖₂² / (2·scale²) ≤ ρ: discrete Gaussian noise of that scale is as
    concentrated. Some pair attains the budget: with any less noise the test fails. Only wavelets with steep weights are
    an exception, of which one pair of rows need not part late in all tables of two columns.
    """
    settings = settled(
        TINY, sparsity=sparsity, mechanism=mechanism, resolution=2, neighbours=neighbours, **{unit.value: 2}
    )
    largest, budget = largest_loss(settings), settings.measurement_budget
    assert budget.unit is unit
    assert largest <= budget.amount
    steep = (mechanism, sparsity, unit, neighbours) == ("haar-weighted", 2, Unit.RHO, "replace-one")
    assert largest > budget.amount * Fraction(95 if steep else 99, 100)


WORKLOADS = {
    "a pair and a column alone": [["b", "a"], ["c"]],
    "a pair with one of its columns": [["a", "c"], ["c"], ["b"]],
    "two pairs of three": [["a", "b"], ["b", "c"]],
    "a triple and a pair inside": [["a", "b", "c"], ["a", "c"]],
    "one column": [["a"], ["b"]],
}


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(
    "asked", [{}, {"certificate_share": 0, "projection": "particles"}, {"preset": "paper"}], ids=str
)
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("unit", list(Unit))
def test_noise_covers_exactly_the_tables_of_a_workload(unit, workload, asked, neighbours) -> None:
    """The same for named subsets of mixed sizes: what they cost is attained, so that none is paid for in vain."""
    schema = TINY.select([name for name in TINY.names if any(name in subset for subset in workload)])
    mechanism = None if "preset" in asked else "identity"
    asked = {"subsets": workload, "resolution": 2, "mechanism": mechanism, "neighbours": neighbours, **asked}
    settings = settled(schema, **{unit.value: 2}, **asked)
    budget = settings.measurement_budget.amount
    assert budget * Fraction(99, 100) < largest_loss(settings, schema) <= budget


def largest_loss(settings: Settings, schema: Schema = TINY) -> Fraction:
    """The most that the noise of all layers lets slip, over all neighbours."""
    layers = planned(schema, settings, 2)
    tables: dict[str, tuple] = {}
    largest = Fraction(0)
    for pair in neighbouring(settings.neighbours):
        for rows in pair:
            if repr(rows) not in tables:
                tables[repr(rows)] = given_to_noise(rows, layers, schema)
        (first, scales, groups), (second, other_scales, other_groups) = (tables[repr(rows)] for rows in pair)
        assert (scales, groups) == (other_scales, other_groups)
        loss = Fraction(0)
        for one, other, scale in zip(first, second, scales, strict=True):
            loss += lost(one - other, Fraction(scale), settings.privacy.budget.unit)
        largest = max(largest, loss)
    assert len(tables) >= len(ROWS)
    return largest


def lost(change: np.ndarray, scale: Fraction, unit: Unit) -> Fraction:
    """What noise of this scale lets slip of such a change, in ε or in ρ."""
    if unit is Unit.EPSILON:
        return int(np.abs(change).sum()) / scale
    return int((change**2).sum()) / (2 * scale**2)


def test_what_gets_noise_is_the_rows_counted_one_by_one() -> None:
    private, spy = mixed(50), Spy()
    made = measured(private, MIXED, spy, sparsity=3, resolution=3, epsilon=5)
    assert [m.strategy.name for m in made] == ["identity"] * 3
    for measurement, (values, sensitivity, _) in zip(made, spy.given, strict=True):
        marginals = measurement.marginals
        weights = marginals.weights or (1,) * len(marginals.subsets)
        assert sensitivity == Sensitivity(2 * sum(weights), 2 * sum(w**2 for w in weights))
        at = 0
        for subset, weight in zip(marginals.subsets, weights, strict=True):
            shape = marginals.shape(subset)
            codes = [MIXED.columns[j].to_cells(private[j], marginals.cells[j]) for j in subset]
            block = np.zeros(shape, dtype=int)
            for row in zip(*codes, strict=True):
                block[row] += 1
            assert values[at : at + block.size].tolist() == (weight * block).ravel().tolist()
            at += block.size
        assert at == len(values)


def test_batches_are_counted_together() -> None:
    whole = mixed(60)
    parts = [[x[:7] for x in whole], [x[7:7] for x in whole], [x[7:] for x in whole]]
    layers = planned(MIXED, settled(MIXED, resolution=3, mechanism="identity"), 60)
    one, many = (measure_layers(in_memory(*b), MIXED, layers, noise=NoNoise()) for b in ([whole], parts))
    for a, b in zip(one, many, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a.coefficients, b.coefficients, strict=True))
        assert starts(a) == starts(b)


# ------------------------------------------------------------ cells


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_each_layer_has_unions_of_the_cells_of_the_one_before(neighbours: str) -> None:
    for seed in range(4):
        points, pairs, triples = measured(
            mixed(300), MIXED, FixedOutput(seed), sparsity=3, resolution=3, epsilon=5, neighbours=neighbours
        )
        for column, first, second, third in zip(
            MIXED, points.marginals.cells, pairs.marginals.cells, triples.marginals.cells, strict=True
        ):
            assert isinstance(first, Groups)
            assert isinstance(second, Groups)
            assert isinstance(third, Groups)
            detail = column.detail()
            for grid in (first, second, third):
                assert np.array_equal(grid.lattice.places, detail.places)
                assert (grid.lattice.steps, grid.off_line) == (detail.steps, detail.off_line)
            assert first.starts.tolist() == list(range(len(detail.places)))
            assert set(second.starts.tolist()) <= set(first.starts.tolist())
            assert set(third.starts.tolist()) <= set(second.starts.tolist())
            assert len(third.starts) <= 3
            every = np.arange(detail.size)
            pairings = set(zip(second.code(every).tolist(), third.code(every).tolist(), strict=True))
            assert len(pairings) == second.size  # each group of the second lies in one of the third


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("sparsity", [1, 2, 3])
def test_groups_follow_from_the_noisy_counts_and_from_nothing_else(sparsity: int, neighbours: str) -> None:
    """Tables that share nothing but their length, noise that answers the same: the same cells in all layers."""
    alike = [np.full(200, x[0]) for x in mixed(200, seed=1)]
    asked = {"sparsity": sparsity, "neighbours": neighbours, "resolution": 3 if sparsity > 1 else None, "epsilon": 5}
    first, second, other = (
        [starts(m) for m in measured(rows, MIXED, FixedOutput(seed), **asked)]
        for rows, seed in ((mixed(200), 0), (alike, 0), (mixed(200), 1))
    )
    assert first == second
    assert (first == other) == (sparsity == 1)  # control: other noisy counts give other groups, and points are points


def test_the_groups_of_two_tables_differ_where_nothing_hides_them() -> None:
    """Control for the test above: without noise the groups tell the tables apart."""
    alike = [np.full(200, x[0]) for x in mixed(200, seed=1)]
    first, second = (starts(measured(rows, MIXED, NoNoise(), resolution=3)[-1]) for rows in (mixed(200), alike))
    assert first != second


def test_groups_are_narrow_where_the_rows_are() -> None:
    """Three heaps on a line of a hundred values, two of them side by side: four groups keep them apart."""
    schema = Schema(columns=(Ordered("x", low=0, high=99), Ordered("y", low=0, high=99)))
    heaps = np.repeat([40.0, 41.0, 90.0], 400)
    pairs = measured([heaps, heaps[::-1].copy()], schema, NoNoise(), resolution=4, epsilon=5)[-1]
    for column, grid in zip(schema, pairs.marginals.cells, strict=True):
        assert len(set(column.to_cells(np.array([40.0, 41.0, 90.0]), grid).tolist())) == 3
    even = schema.columns[0].cells(4)
    assert len(set(schema.columns[0].to_cells(np.array([40.0, 41.0, 90.0]), even).tolist())) == 2


@pytest.mark.parametrize(
    ("asked", "cells"),
    [
        ({}, ["points", "groups"]),
        ({"sparsity": 1}, ["points"]),
        ({"sparsity": 3}, ["points", "groups", "groups"]),
        ({"certificate_share": 0, "projection": "particles"}, ["even"]),
        ({"projection": "drawn"}, ["even"]),
        ({"loss": "transport"}, ["even"]),
        ({"preset": "paper"}, ["even"]),
        ({"preset": "paper", "sparsity": 1}, ["even"]),
    ],
)
def test_which_cells_are_measured(asked: dict[str, Any], cells: list[str]) -> None:
    layers = planned(NATIVE, settled(NATIVE, **({"resolution": 2} | asked)), 100)
    assert [layer.cells for layer in layers] == cells
    made = measure_layers(in_memory([np.zeros(4), np.ones(4), np.zeros(4, int)]), NATIVE, layers, noise=NoNoise())
    for layer, measurement in zip(layers, made, strict=True):
        assert all(isinstance(grid, Groups) == (layer.cells != "even") for grid in measurement.marginals.cells)
        subsets = tuple(itertools.combinations(range(3), layer.ways))
        assert measurement.marginals.subsets == subsets


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("projection", ["particles", "drawn"])
def test_the_plan_of_a_table_depends_on_its_number_of_rows_alone(projection: str) -> None:
    """It is made without any rows to look at; more of them are worth finer cells."""
    schema = MIXED.select(["age", "income"])
    settings = settled(schema, epsilon=1, projection=projection, mechanism="identity")
    small, large = (planned(schema, settings, rows)[-1].resolution for rows in (100, 1_000_000))
    assert small is not None
    assert large is not None
    assert small < large


# ------------------------------------------------------------ labels


MANY = Schema(
    columns=(
        Ordered(name="x", low=0, high=99),
        Category(name="plain", values=tuple(f"v{i}" for i in range(60)), other=True, missing=True),
        tree_column("tree", [f"{i % 7}/{i}" for i in range(60)], missing=True),
    )
)


def many(rows: int) -> list[np.ndarray]:
    return make_up_table(MANY, rows, kind=ORDINARY, rng=np.random.default_rng(7))


@pytest.mark.parametrize(("epsilon", "all_alone"), [("0.05", False), pytest.param(50, True, marks=pytest.mark.slow)])
def test_labels_are_in_as_many_groups_as_noise_leaves_room_for(epsilon: Any, all_alone: bool) -> None:
    made = measured(many(2_000), MANY, FixedOutput(1), resolution=6, epsilon=epsilon)[-1]
    layer = choose(Task(MANY, settled(MANY, resolution=6, epsilon=epsilon), 2_000)).layers[-1]
    most = max_label_groups(layer, 2_000)
    assert most >= 6
    for column, groups in zip(MANY, made.marginals.cells, strict=True):
        if not isinstance(column, Category):
            continue
        assert isinstance(groups, Groups)
        alone = int(column.missing) + (column.other if column.label_metric else 0)
        assert groups.off_line == min(len(column.labels) + column.missing, most + alone)
        assert (groups.off_line == groups.lattice.off_line) is all_alone
        last = groups.lattice.off_line - 1
        assert (groups.group_of_label == groups.group_of_label[last]).sum() == 1, "missing values stay alone"


def test_labels_of_a_tree_go_to_near_ones_and_others_to_those_beside_them() -> None:
    made = measured(many(2_000), MANY, FixedOutput(2), resolution=6, epsilon="0.05")[-1]
    plain, tree = made.marginals.cells[1:]
    assert isinstance(plain, Groups)
    assert isinstance(tree, Groups)
    assert (np.diff(plain.group_of_label[:61]) >= 0).all()
    metric = tree.lattice.label_metric
    assert metric is not None
    heads = tree.representatives[tree.representatives < metric.size]
    away = metric.distances[: metric.size, heads]
    assert (away[np.arange(metric.size), tree.group_of_label[: metric.size]] == away.min(axis=1)).all()


@pytest.mark.slow
def test_a_plan_names_labels_that_are_merged() -> None:
    few, enough = (plan(MANY, rows=2_000, epsilon=e, resolution=6, mechanism="identity") for e in ("0.05", 50))
    assert [m.column for m in few.merged] == ["plain", "tree"]
    assert all(m.groups < m.labels for m in few.merged)
    assert enough.merged == ()
    assert Plan.from_json(few.to_json()) == few


# ------------------------------------------------------------ special values and bands

CUT = Schema(
    (
        Ordered("income", kind="integer", low=-2_000, high=30_000, special=(2_000.0, 14_500.0), bands=(7_000.0,)),
        Ordered("age", kind="integer", low=17, high=99, bands=(1.0, 8.0, 18.0, 48.0)),
        Ordered("grade", kind="ordinal", low=0, high=3, values=("a", "b", "c", "d"), bands=(2.0,)),
    )
)


def earners(rows: int) -> list[np.ndarray]:
    """Many with an income of 0 or 12,500, and the others anywhere near those."""
    rng = np.random.default_rng(6)
    income = np.clip(rng.normal(2_300, 900, rows).round(), 0, 32_000)
    income[rng.random(rows) < 0.3] = 2_000
    income[rng.random(rows) < 0.1] = 14_500
    return [income, rng.integers(0, 83, rows).astype(float), rng.integers(0, 4, rows).astype(float)]


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_groups_begin_at_bands_and_special_values(neighbours: str) -> None:
    made = measured(earners(3_000), CUT, FixedOutput(), sparsity=2, neighbours=neighbours, resolution=4)
    for layer in made:
        for column, cells in zip(CUT, layer.marginals.cells, strict=True):
            assert isinstance(cells, Groups)
            assert isinstance(column, Ordered)
            assert set(column.cuts) <= set(cells.starts)


def test_special_values_keep_their_share_and_the_release_verifies(tmp_path: Path) -> None:
    rows = earners(8_000)
    data = pl.DataFrame({c.name: c.decode(x).tolist() for c, x in zip(CUT, rows, strict=True)})
    release(data, CUT, epsilon=4, seed=1, out=tmp_path / "out")
    made = Release.load(tmp_path / "out")
    assert all(check["ok"] for check in made.verify())
    income = made.table["income"]
    for figure, offset in ((0, 2_000), (12_500, 14_500)):
        assert abs((income == figure).mean() - (rows[0] == offset).mean()) < 0.02


# ------------------------------------------------------------ values of long columns

LONG = Schema((Ordered("code", high=9_000, missing=True), Ordered("age", high=9)))


def coded(rows: int) -> tuple[pl.DataFrame, float]:
    """Codes of which one is a fifth and the others are anywhere, some of them missing; and the share of that one."""
    rng = np.random.default_rng(3)
    code = rng.integers(0, 9_001, rows)
    code[rng.random(rows) < 0.2] = 4_321
    age, absent = rng.integers(0, 10, rows), rng.random(rows) < 0.05
    values = [None if away else int(x) for x, away in zip(code, absent, strict=True)]
    return pl.DataFrame({"code": values, "age": age}), float(((code == 4_321) & ~absent).mean())


@pytest.mark.parametrize(
    "asked",
    [
        {"mechanism": "identity"},
        {"mechanism": "haar", "sparsity": 1, "resolution": None},
        pytest.param({"mechanism": "identity", "neighbours": "add-remove"}, marks=pytest.mark.slow),
        pytest.param({"mechanism": "identity", "delta": "1e-6"}, marks=pytest.mark.slow),
        pytest.param({"mechanism": "adaptive", "resolution": None}, marks=pytest.mark.slow),
    ],
)
def test_heavy_values_of_a_long_column_keep_their_share_and_the_release_verifies(asked: Any, tmp_path: Path) -> None:
    """No value is named in the schema. One with a fifth of the rows is written, and its share has an interval."""
    data, share = coded(6_000)
    release(data, LONG, seed=1, out=tmp_path / "out", **({"epsilon": 4, "resolution": 8} | asked))
    made = Release.load(tmp_path / "out")
    assert [check for check in made.verify() if not check["ok"]] == []
    written = made.table["code"].compressed()
    assert abs((made.table["code"] == 4_321).filled(False).mean() - share) < 0.03
    assert (np.abs(written - 4_321) < 18).mean() < share / 0.95 + 0.03
    assert len(np.unique(written)) > 1_000
    answer = made.answer("fraction(code = 4321)")
    assert answer.low <= share <= answer.high
    assert answer.high - answer.low < 0.15
    again = sample(made, 500, seed=2)
    assert abs((again.table["code"] == 4_321).mean() - share) < 0.06


def test_counts_of_values_that_do_not_fit_the_schema_are_refused(tmp_path: Path) -> None:
    data, _ = coded(2_000)
    made = release(data, LONG, epsilon=4, seed=1, mechanism="identity", resolution=4)
    content = measurements.to_bytes(made.measurements, LONG)
    back = measurements.from_bytes(content, LONG)
    assert measurements.to_bytes(back, LONG) == content
    assert seed_of(back) == seed_of(made.measurements)
    with np.load(io.BytesIO(content)) as arrays:
        about, flat = json.loads(arrays["about"].tobytes()), arrays["coefficients"]
    assert list(about[0]["values"]) == ["code"]
    for values in ({"age": 3}, {"code": 0}, {"code": 2**21}, {"code": 1, "age": 1}, {"code": True}, {"none": 1}, {}):
        forged = [about[0] | {"values": values}, *about[1:]]
        buffer = io.BytesIO()
        np.savez_compressed(buffer, coefficients=flat, about=np.frombuffer(json.dumps(forged).encode(), np.uint8))
        with pytest.raises(InputError, match="does not fit the schema"):
            measurements.from_bytes(buffer.getvalue(), LONG)
    without = replace(made.measurements[0], values=None)
    replace(made, measurements=(without, *made.measurements[1:])).save(tmp_path / "out")
    checks = {check["name"]: check["ok"] for check in Release.load(tmp_path / "out").verify()}
    assert not checks["measurements"], "values must be counted where the schema says so"
    assert not checks["privacy"], "the noise is for more counts than there are"


@pytest.mark.parametrize("method", ["layered", "adaptive"])
def test_lines_that_are_counted_below_runs_have_twice_as_many_groups(method):
    lines = [Ordered(name, low=0, high=high, kind="integer") for name, high in (("long", 4_999), ("short", 999))]
    schema, rng = Schema((*lines, Category("label", values=("a", "b")))), np.random.default_rng(0)
    rows = [rng.integers(0, size, 20_000) for size in (5_000, 1_000, 2)]
    made: Sequence[Any]
    if method == "adaptive":
        (singles,) = measured(rows, schema, NoNoise(), sparsity=1)
        cells = cells_at(schema, singles, CellSize(line=6, labels=48))
    else:
        made = measured(rows, schema, NoNoise(), resolution=6)
        cells = made[-1].marginals.cells
    assert [c.size for c in cells] == [12, 6, 2]
