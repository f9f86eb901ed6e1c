"""Named subsets of columns: what is measured, what is covered, what is left out, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from certsynth import certify, evaluate, plan, release
from certsynth.algorithm.layers import measure_layers
from certsynth.domain import Ordered, Schema
from certsynth.errors import InputError
from certsynth.mechanisms.measure import estimate, sensitivity, simulate_all
from certsynth.mechanisms.samplers import calibrated_scale
from certsynth.projection.synthesis import synthesise
from certsynth.queries.tally import in_memory
from small import MIXED, NATIVE, SURE, NoNoise, SeededNoise, emitted, native, planned, settled

PINNED: dict[str, Any] = {"resolution": 3, "mechanism": "identity"}
MANY = Schema(tuple(Ordered(f"x{j}", low=0, high=9) for j in range(8)))
PAIRS = [["x0", "x1"], ["x2", "x3"], ["x4", "x5"], ["x6", "x7"], ["x0", "x7"], ["x2", "x7"]]
LONE = [["age", "income"], ["since"], ["sex", "employed", "education"], ["sex"]]


def measured(schema: Schema, **asked: Any) -> list[list[tuple[int, ...]]]:
    return [list(layer.subsets) for layer in planned(schema, settled(schema, **PINNED, **asked), 100)]


# ------------------------------------------------------------ what is measured


def test_groups_come_in_layers_of_one_two_and_three_columns() -> None:
    pairs = [(0, 2), (1, 3), (1, 4), (3, 4)]
    assert measured(MIXED, subsets=LONE) == [[(j,) for j in range(6)], pairs, [(1, 3, 4)]]
    assert measured(NATIVE, subsets=[["c", "a"], ["b"]]) == [[(0,), (1,), (2,)], [(0, 2)]]


def test_even_cells_are_measured_for_the_largest_subsets_alone() -> None:
    for asked in ({"certificate_share": 0, "projection": "particles"}, {"preset": "paper"}, {"loss": "path"}):
        assert measured(MIXED, subsets=LONE, **asked) == [[(0, 2), (5,), (1, 3, 4)]]


def test_single_columns_are_like_sparsity_one() -> None:
    asked = {"mechanism": "identity", "resolution": None}
    alone = planned(NATIVE, settled(NATIVE, subsets=[["a"], ["b"], ["c"]], **asked), 100)
    assert alone == planned(NATIVE, settled(NATIVE, sparsity=1, **asked), 100)


@pytest.mark.parametrize("sparsity", [1, 2, 3])
def test_all_subsets_by_their_names_are_like_a_sparsity(sparsity: int) -> None:
    named = [[NATIVE.names[j] for j in subset] for subset in settled(NATIVE, sparsity=sparsity).subsets]
    asked = {"mechanism": "identity", "resolution": None if sparsity == 1 else 2}
    one, other = (settled(NATIVE, **each, **asked) for each in ({"subsets": named}, {"sparsity": sparsity}))
    assert planned(NATIVE, one, 100) == planned(NATIVE, other, 100)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_noise_is_that_of_the_named_pairs_and_not_of_all(neighbours: str) -> None:
    """Six pairs of 28: a row changes two cells, or one, of each; so noise is 28/6 times smaller."""
    scales = []
    for subsets, tables in ((PAIRS, 6), (None, 28)):
        asked = {"certificate_share": 0, "projection": "particles", "neighbours": neighbours}
        (layer,) = planned(MANY, settled(MANY, subsets=subsets, **PINNED, **asked), 1_000)
        rows = [[np.zeros(5) for _ in MANY]]
        (made,) = measure_layers(in_memory(*rows), MANY, [layer], noise=NoNoise())
        change = sensitivity(made.marginals, layer.strategy)
        assert change.l1 == tables * (2 if neighbours == "replace-one" else 1)
        assert made.scale == calibrated_scale(change, layer.budget)
        scales.append(made.scale)
    assert scales[1] / scales[0] == pytest.approx(28 / 6)


def test_tables_of_more_columns_share_the_budget_by_how_many_are_wanted() -> None:
    """A third and two thirds where all are: with 4 of 15 pairs and 1 of 20 triples the ratio is 4/45 to 1/30."""
    points, pairs, triples = planned(MIXED, settled(MIXED, subsets=LONE, **PINNED), 100)
    rest = pairs.budget.amount + triples.budget.amount
    assert pairs.budget.amount / rest == Fraction(4, 45) / (Fraction(4, 45) + Fraction(1, 30))
    assert points.budget.amount + rest == settled(MIXED, subsets=LONE).measurement_budget.amount


# ------------------------------------------------------------ what is made of it


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "asked", [{}, {"certificate_share": 0, "projection": "particles"}], ids=["groups", "even cells"]
)
def test_true_counts_of_mixed_tables_pass_unchanged(asked: dict[str, Any], neighbours: str) -> None:
    """Tables of different sizes that do not hold all columns are made to agree by a map that keeps the truth."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 10, 80).astype(float) for _ in MANY]
    subsets = [["x0", "x1", "x2"], ["x1", "x3"], ["x2", "x3"], ["x4"], ["x5", "x6"], ["x7"]]
    layers = planned(MANY, settled(MANY, subsets=subsets, neighbours=neighbours, **PINNED, **asked), 80)
    made = measure_layers(in_memory(rows), MANY, layers, noise=NoNoise())
    blocks, total = estimate(made)
    assert total == pytest.approx(80)
    for measurement, own in zip(made, blocks, strict=True):
        codes = [c.to_cells(x, g) for c, x, g in zip(MANY, rows, measurement.marginals.cells, strict=True)]
        for block, counts in zip(own, measurement.marginals.count([codes]), strict=True):
            assert block == pytest.approx(counts, abs=1e-8)
    errors, _ = simulate_all(made, rng, 2)
    assert [[e.shape for e in own] for own in errors] == [[(2, len(b)) for b in own] for own in blocks]


@pytest.mark.parametrize(
    "asked", [{}, {"certificate_share": 0, "projection": "particles"}], ids=["groups", "even cells"]
)
def test_a_column_that_is_named_alone_is_fitted_as_well(asked: dict[str, Any]) -> None:
    """Without noise its values occur as often as in the rows."""
    rng = np.random.default_rng(2)
    rows = [rng.binomial(9, 0.1 * (j + 1), 200).astype(float) for j in range(3)]
    schema = MANY.select(["x0", "x1", "x2"])
    exact = {"resolution": 10, "mechanism": "identity"}
    layers = planned(schema, settled(schema, subsets=[["x1"], ["x0", "x2"]], **exact, **asked), 200)
    made = synthesise(measure_layers(in_memory(rows), schema, layers, noise=NoNoise()), schema, 200, rng)
    for ours, theirs in zip(rows, made, strict=True):
        cells = [np.bincount((x + 0.5).astype(int), minlength=10) for x in (ours, theirs)]
        assert np.abs(cells[0] - cells[1]).max() <= 2


@pytest.mark.parametrize(
    "asked",
    [
        {"certificate_share": "0.3"},
        {"certificate_share": 0, "projection": "particles"},
        {"certificate_share": 0, "loss": "transport"},
        {"preset": "paper", "mechanism": None},
        {"neighbours": "add-remove", "rows": 80},
        {"candidates": 2},
    ],
    ids=str,
)
def test_a_release_covers_the_named_subsets_in_their_order(asked: dict[str, Any]) -> None:
    named = [["c"], ["b", "a"], ["a"], ["a", "b"]]
    made = release(native(100), NATIVE, epsilon=20, subsets=named, noise=SeededNoise(), **(PINNED | asked))
    kept = [["c"], ["a", "b"], ["a"]]
    assert [list(columns) for columns, _ in made.certificate.subsets] == kept
    assert made.document["release"]["workload"] == kept
    assert made.document["release"]["sparsity"] == 2
    true = {s.columns: s for s in evaluate(native(100), emitted(made), NATIVE, subsets=named).subsets}
    for columns, bound in made.certificate.subsets:
        assert true[columns].lower <= bound
    assert made.certificate.single_column_bound <= made.certificate.bound


def test_columns_that_no_subset_names_are_left_out() -> None:
    made = release(native(60), NATIVE, epsilon=5, subsets=[["c", "a"]], **PINNED)
    assert made.schema.names == ("a", "c")
    assert list(made.table) == ["a", "c"]
    assert made.document["table"]["columns"] == ["a", "c"]
    for subset in (["a", "c"], ["a"]):  # the rows lack a column, which is not asked for
        true = evaluate(native(60), emitted(made), NATIVE, subsets=[subset])
        bounded = certify(native(60), emitted(made), NATIVE, epsilon=100, subsets=[subset], confidence=SURE)
        assert [s.columns for s in true.subsets] == [tuple(subset)]
        assert [s["columns"] for s in bounded.to_json()["subsets"]] == [subset]
        assert true.lower <= bounded.bound < 1


def test_a_plan_knows_its_workload() -> None:
    made = plan(MANY, rows=1_000, epsilon=1, subsets=PAIRS, certificate_share=0, projection="particles", **PINNED)
    whole = plan(MANY, rows=1_000, epsilon=1, certificate_share=0, projection="particles", **PINNED)
    assert (made.workload, made.columns, made.sparsity) == (PAIRS, 8, 2)
    assert whole.workload is None
    assert made.choice.privatisation < whole.choice.privatisation / 2
    assert "sparsity 2" in [variation.change for variation in made.variations]
    assert "sparsity 2" not in [variation.change for variation in whole.variations]


# ------------------------------------------------------------ what is refused


CALLS = {
    "release": lambda **asked: release(native(20), NATIVE, epsilon=1, **asked),
    "plan": lambda **asked: plan(NATIVE, rows=20, epsilon=1, **asked),
    "certify": lambda **asked: certify(native(20), native(20), NATIVE, epsilon=1, **asked),
    "evaluate": lambda **asked: evaluate(native(20), native(20), NATIVE, **asked),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"subsets": [["a"]], "sparsity": 1}, "exclude each other"),
        ({"subsets": [["a", "d"]]}, "names 'd', which is not a column of the schema: choose from a, b, c"),
        ({"subsets": [["a", "b"]], "columns": ["a", "c"]}, "names 'b', which is not a column of the schema"),
        ({"subsets": [[]]}, "at least one column, and each column once"),
        ({"subsets": [["a", "a"]]}, "at least one column, and each column once"),
        ({"subsets": []}, "leave the workload out"),
        ({"subsets": ["ab"]}, "a subset is a list of column names"),
    ],
)
def test_bad_workloads_are_refused_by_every_call(call: str, asked: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule) as refused:
        CALLS[call](**asked)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("call", ["release", "plan"])
def test_candidates_and_the_transport_loss_take_three_columns_at_most(call: str) -> None:
    four = [list(MANY.names[:4])]
    calls = {"plan": lambda **a: plan(MANY, rows=9, **a), "release": lambda **a: release("no.csv", MANY, **a)}
    with pytest.raises(InputError, match='at most 3 columns at once; choose `loss="path"`'):
        calls[call](epsilon=1, subsets=four, loss="transport", projection="drawn")
    if call == "release":
        with pytest.raises(InputError, match="candidates compares at most 3 columns"):
            calls[call](epsilon=1, subsets=four, candidates=2)
