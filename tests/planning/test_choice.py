"""The choice of mechanism, resolution and split: exact budgets, repeatable, and without a row to look at."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsynth import plan, sources
from certsynth.algorithm.layers import LayerSpec, max_label_groups, measure_layers
from certsynth.algorithm.options import AUTO_MECHANISMS
from certsynth.algorithm.task import Task
from certsynth.domain import Category, Ordered, Schema
from certsynth.errors import InputError, TooLarge
from certsynth.mechanisms import Budget, Neighbours, Unit, strategy_named
from certsynth.mechanisms.registry import WEIGHT_GROWTHS
from certsynth.planning import choice as planning
from certsynth.planning.cache import CACHE_VARIABLE
from certsynth.planning.choice import (
    FIRST_SPLIT,
    RESOLUTIONS,
    SPLITS,
    WORST_CASE,
    Choice,
    blank_layers,
    choose,
    first_guess,
    predict_design,
)
from certsynth.planning.tables import ORDINARY, TableKind, make_up_table
from certsynth.queries.tally import in_memory
from small import NATIVE, NoNoise, settled

RELATIONS = ["replace-one", "add-remove"]
PAIR = Schema((Ordered("a", low=0, high=40), Category("b", values=("x", "y"), missing=True)))
"""Two columns, quickly measured."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two resolutions to choose from."""
    monkeypatch.setattr(planning, "RESOLUTIONS", (4, 6))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals that say something about what was to be rehearsed, in no time."""

    def loss(schema: Schema, subsets: Any, layers: Sequence[LayerSpec], rows: int, kind: TableKind, seed: int) -> float:
        return kind.strength / (layers[-1].resolution or 1) / rows

    monkeypatch.setattr(planning, "_rehearsed_loss", loss)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is empty at first."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "off")


def whole(layers: Sequence[LayerSpec]) -> Budget:
    (unit,) = {layer.budget.unit for layer in layers}
    return Budget(sum((layer.budget.amount for layer in layers), Fraction(0)), unit)


def figures(choice: Choice) -> list[tuple]:
    """All that a choice says, to be compared."""
    return [
        (choice.best is c, c.layers, c.split, c.discretisation, c.privatisation, c.predicted, c.rehearsed)
        for c in choice.designs
    ]


# ------------------------------------------------------------ what it costs


@pytest.mark.usefixtures("few", "quick")
@pytest.mark.parametrize("share", [None, 0])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("sparsity", [1, 2, 3])
@pytest.mark.parametrize("unit", list(Unit))
def test_every_candidate_costs_exactly_what_is_left_for_measuring(unit, sparsity, neighbours, share) -> None:
    asked = {"sparsity": sparsity, "neighbours": neighbours, "certificate_share": share, unit.value: "1/3"}
    settings = settled(NATIVE, **asked)
    choice = choose(Task(NATIVE, settings, 60))
    assert {c.strategy.name for c in choice.designs} == set(AUTO_MECHANISMS)
    for each in choice.designs:
        assert whole(each.layers) == settings.measurement_budget
        assert min(layer.budget.amount for layer in each.layers) > 0
        assert each.split in SPLITS
        assert {layer.strategy.neighbours for layer in each.layers} == {neighbours}
        assert each.layers[-1].ways == sparsity
    assert choice.best in choice.designs
    assert settings.measurement_budget.unit is unit


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("sparsity", [2, 3])
def test_every_split_is_of_the_whole(split: Fraction, sparsity: int) -> None:
    settings = settled(NATIVE, sparsity=sparsity, rho="1/7")
    strategy = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    layers = predict_design(Task(NATIVE, settings, 60), strategy, 4, split).layers
    assert whole(layers) == settings.measurement_budget
    assert layers[0].budget == settings.measurement_budget.share(split)
    assert [layer.ways for layer in layers] == list(range(1, sparsity + 1))


# ------------------------------------------------------------ what was asked for


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("share", [None, 0])
@pytest.mark.parametrize("mechanism", [*AUTO_MECHANISMS, "haar-noisy-total"])
def test_what_is_fixed_stays_so(mechanism: str, share: int | None) -> None:
    choice = choose(Task(PAIR, settled(PAIR, mechanism=mechanism, resolution=5, certificate_share=share), 80))
    assert [(c.strategy.name, c.resolution) for c in choice.designs] == [(mechanism, 5)]
    assert choice.best is choice.designs[0]


@pytest.mark.usefixtures("quick")
def test_a_fixed_resolution_leaves_the_mechanism_open_and_the_other_way_round() -> None:
    mechanisms = choose(Task(PAIR, settled(PAIR, resolution=5), 80))
    assert {c.resolution for c in mechanisms.designs} == {5}
    assert {c.strategy.name for c in mechanisms.designs} == set(AUTO_MECHANISMS)
    resolutions = choose(Task(PAIR, settled(PAIR, mechanism="identity"), 80))
    assert {c.strategy.name for c in resolutions.designs} == {"identity"}
    assert len({c.resolution for c in resolutions.designs}) == len(resolutions.designs) > 1
    assert {c.resolution for c in resolutions.designs} <= set(RESOLUTIONS)


def test_the_papers_mechanism_is_taken_only_when_it_is_asked_for() -> None:
    assert "haar-noisy-total" not in AUTO_MECHANISMS
    choice = choose(Task(PAIR, settled(PAIR, preset="paper"), 80))
    assert {c.strategy.name for c in choice.designs} == {"haar-noisy-total"}


@pytest.mark.usefixtures("few", "quick")
def test_weights_grow_only_as_they_may() -> None:
    for unit in ("epsilon", "rho"):
        for each in choose(Task(NATIVE, settled(NATIVE, **{unit: 1}), 60)).designs:
            assert each.strategy.growth in WEIGHT_GROWTHS.get(each.strategy.name, (0,))


def test_what_does_not_fit_is_refused_when_nothing_smaller_is_left() -> None:
    with pytest.raises(TooLarge, match="cells"):
        choose(Task(PAIR, settled(PAIR, epsilon="0.7"), 80), memory=1000)


# ------------------------------------------------------------ the same every time


@pytest.mark.usefixtures("few", "no_cache")
@pytest.mark.parametrize("asked", [{"rho": "0.2"}, {"certificate_share": 0}, {"sparsity": 1}], ids=str)
def test_the_same_question_has_the_same_answer(asked: dict[str, Any]) -> None:
    settings = settled(PAIR, **asked)
    first, again, other = (figures(choose(Task(PAIR, settings, rows))) for rows in (80, 80, 800))
    assert first == again
    assert first != other


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("asked", [{}, {"certificate_share": 0}, {"sparsity": 1}], ids=str)
def test_what_is_remembered_is_what_was_found(cache: Path, monkeypatch, asked: dict[str, Any]) -> None:
    settings = settled(PAIR, **asked)
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    fresh = figures(choose(Task(PAIR, settings, 80)))
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    assert figures(choose(Task(PAIR, settings, 80))) == fresh
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(planning, "_choose", failing)
    assert figures(choose(Task(PAIR, settings, 80))) == fresh
    with pytest.raises(AssertionError, match="worked out again"):
        choose(Task(PAIR, settings, 81))


def failing(*_: Any) -> Choice:
    raise AssertionError("worked out again")


QUESTIONS: dict[str, dict[str, Any]] = {
    "another epsilon": {"epsilon": "0.5"},
    "rho": {"rho": 2},
    "another relation": {"neighbours": "add-remove"},
    "another sparsity": {"sparsity": 1},
    "a workload": {"subsets": [[name] for name in PAIR.names] + [list(PAIR.names)]},
    "no direct certificate": {"certificate_share": 0, "projection": "particles"},
    "another share": {"certificate_share": "0.1"},
    "another projection": {"projection": "drawn"},
    "a fixed mechanism": {"mechanism": "identity"},
    "a fixed resolution": {"resolution": 4},
    "candidates": {"candidates": 2},
    "another confidence": {"confidence": "0.9999"},
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", QUESTIONS)
def test_another_question_is_not_answered_from_memory(cache: Path, monkeypatch, name: str) -> None:
    """Nothing that the choice depends on is left out of what is remembered."""
    monkeypatch.setattr(planning, "RESOLUTIONS", (4,))
    choose(Task(PAIR, settled(PAIR), 80))
    monkeypatch.setattr(planning, "_choose", failing)
    choose(Task(PAIR, settled(PAIR), 80))
    with pytest.raises(AssertionError, match="worked out again"):
        choose(Task(PAIR, settled(PAIR, **QUESTIONS[name]), 80))


@pytest.mark.usefixtures("quick")
def test_another_schema_is_not_answered_from_memory(cache: Path, monkeypatch) -> None:
    monkeypatch.setattr(planning, "RESOLUTIONS", (4,))
    choose(Task(PAIR, settled(PAIR), 80))
    monkeypatch.setattr(planning, "_choose", failing)
    other = Schema((Ordered("a", low=0, high=41), PAIR.columns[1]))
    with pytest.raises(AssertionError, match="worked out again"):
        choose(Task(other, settled(other), 80))


# ------------------------------------------------------------ a cache that somebody else wrote


def _put(key: str, value: Any, *, best: bool = True) -> Callable[[dict[str, Any]], None]:
    """A change of what is remembered of the best candidate, or of all."""

    def change(answer: dict[str, Any]) -> None:
        for index, each in enumerate(answer["candidates"]):
            if index == answer["best"] or not best:
                each[key] = value

    return change


def _lacks(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda answer: answer["candidates"][answer["best"]].pop(key)


def _answer(**entries: Any) -> Callable[[dict[str, Any]], None]:
    return lambda answer: answer.update(entries)


HOSTILE: dict[str, Any] = {
    "a split of 5": _put("split", "5"),
    "a split of 0": _put("split", "0"),
    "a split of 1": _put("split", "1"),
    "a split below 0": _put("split", "-1/4"),
    "a split as a float": _put("split", 0.3),
    "a split of NaN": _put("split", float("nan")),
    "a split that is no text": _put("split", None),
    "a split in words": _put("split", "a quarter"),
    "a split over zero": _put("split", "1/0"),
    "an infinite split": _put("split", float("inf")),
    "resolution 0": _put("resolution", 0),
    "a resolution below 0": _put("resolution", -4),
    "a resolution beyond any": _put("resolution", 10**9),
    "a resolution of NaN": _put("resolution", float("nan")),
    "a resolution that is true": _put("resolution", True),
    "a resolution in a list": _put("resolution", [4]),
    "an unknown mechanism": _put("mechanism", "magic"),
    "a mechanism in a list": _put("mechanism", ["identity"]),
    "no mechanism": _put("mechanism", None),
    "growth 99": _put("growth", "99", best=False),
    "growth below 0": _put("growth", "-3", best=False),
    "growth of NaN": _put("growth", float("nan")),
    "infinite growth": _put("growth", float("inf")),
    "growth over zero": _put("growth", "1/0"),
    "a best index out of range": _answer(best=99),
    "a best index far below 0": _answer(best=-99),
    "a best index of NaN": _answer(best=float("nan")),
    "a best index in words": _answer(best="first"),
    "no best index": lambda answer: answer.pop("best"),
    "no candidates": _answer(candidates=[]),
    "candidates that are nothing": _answer(candidates=None),
    "candidates that are a number": _answer(candidates=3),
    "candidates that are texts": _answer(candidates=["identity"]),
    "a predicted loss of NaN": _put("predicted", float("nan")),
    "a predicted loss of minus infinity": _put("predicted", float("-inf")),
    "a predicted loss in words": _put("predicted", "small"),
    "a predicted loss that is nothing": _put("predicted", None),
    "a predicted loss that no float holds": _put("predicted", 10**400),
    "rehearsals of NaN": _put("rehearsed", [float("nan")]),
    "rehearsals that are nothing": _put("rehearsed", None),
    "no rehearsals": _lacks("rehearsed"),
    "no growth": _lacks("growth"),
    "no split": _lacks("split"),
    "no resolution": _lacks("resolution"),
}


ASKED = {"rho": "1/7"}


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Choice]:
    """The name of the file that a choice is remembered in, what it holds, and the choice."""
    folder = tmp_path_factory.mktemp("remembered")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(folder))
        patch.setattr(planning, "RESOLUTIONS", (4, 6))
        choice = choose(Task(NATIVE, settled(NATIVE, **ASKED), 60))
    (file,) = folder.iterdir()
    return file.name, json.loads(file.read_text()), choice


@pytest.fixture
def forged(cache: Path, remembered, monkeypatch) -> Callable[[bytes | dict[str, Any]], Choice]:
    """The choice where this is remembered. If nothing is, the true one comes back: it is not worked out again."""
    name, _, found = remembered
    monkeypatch.setattr(planning, "_choose", lambda *_: found)

    def choice(content: bytes | dict[str, Any]) -> Choice:
        cache.mkdir(exist_ok=True)
        (cache / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return choose(Task(NATIVE, settled(NATIVE, **ASKED), 60))

    return choice


@pytest.fixture
def stored(remembered) -> dict[str, Any]:
    """What is remembered, to be changed."""
    return json.loads(json.dumps(remembered[1]))


def test_a_cache_that_is_changed_is_read(forged, stored, remembered) -> None:
    """Control of what follows: a change that could be true is taken for true."""
    last = len(stored["answer"]["candidates"]) - 1
    assert remembered[2].best is not remembered[2].designs[last]
    stored["answer"]["best"] = last
    choice = forged(stored)
    assert choice.best is choice.designs[last]


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_cache_changes_no_budget_and_never_raises(forged, stored, change) -> None:
    before = json.dumps(stored)
    change(stored["answer"])
    assert json.dumps(stored) != before
    choice = forged(stored)
    budget = settled(NATIVE, **ASKED).measurement_budget
    for each in (choice.best, *choice.designs):
        assert whole(each.layers) == budget
        assert [layer.ways for layer in each.layers] == [1, 2]
        assert {layer.strategy.neighbours for layer in each.layers} == {"replace-one"}


@pytest.mark.parametrize(
    ("mechanism", "change"),
    [
        ("quad-tree", {"split": "1/2"}),
        ("quad-tree", {"growth": "1/4"}),
        ("quad-tree", {"growth": "99"}),
        ("quad-tree", {"growth": "-99"}),
        ("haar-weighted", {"growth": "-1e300"}),
        ("identity", {"resolution": None}),
    ],
)
def test_what_a_hostile_cache_says_can_be_measured(forged, stored, mechanism: str, change: dict[str, Any]) -> None:
    """Or it is not taken: a release does not fail for it."""
    candidates = stored["answer"]["candidates"]
    index = next(i for i, each in enumerate(candidates) if each["mechanism"] == mechanism)
    candidates[index].update(change)
    stored["answer"]["best"] = index
    layers = forged(stored).layers
    rows = [np.zeros(4), np.ones(4), np.zeros(4, int)]
    assert len(measure_layers(in_memory(rows), NATIVE, layers, noise=NoNoise())) == 2


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("change", [{"mechanism": "haar"}, {"resolution": 7}], ids=str)
def test_a_hostile_cache_does_not_change_what_is_fixed(cache: Path, monkeypatch, change: dict[str, Any]) -> None:
    settings = settled(PAIR, mechanism="identity", resolution=5)
    choose(Task(PAIR, settings, 80))
    (file,) = cache.iterdir()
    stored = json.loads(file.read_text())
    stored["answer"]["candidates"][0].update(change)
    file.write_text(json.dumps(stored))
    best = choose(Task(PAIR, settings, 80)).best
    assert (best.strategy.name, best.resolution) == ("identity", 5)


GARBAGE = {
    "nothing": b"",
    "no text": b"\x00\xff\xfe garbage",
    "half of a text": b'{"asked": "{',
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "no answer": b'{"asked": "?"}',
    "an answer to nothing": b'{"answer": {"best": 0, "candidates": []}}',
    "a number of many digits": b"9" * 10_000,
    "many brackets": b"[" * 100_000,
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_not_taken_and_mended(forged, cache: Path, remembered, content: bytes) -> None:
    name, stored, found = remembered
    assert figures(forged(content)) == figures(found)
    assert json.loads((cache / name).read_text()) == stored


@pytest.mark.parametrize(
    ("old", "new"), [("13/100", "14/100"), ('"certsynth": "', '"certsynth": "9.'), ('"rows": 60', '"rows": 61')]
)
def test_an_answer_to_another_question_is_not_taken(forged, stored, remembered, old: str, new: str) -> None:
    """A file under the name of ours says what was asked: with another budget, by another version, for other rows."""
    assert stored["asked"].count(old) == 1
    stored["asked"] = stored["asked"].replace(old, new)
    stored["answer"]["best"] = len(stored["answer"]["candidates"]) - 1
    assert figures(forged(stored)) == figures(remembered[2])


# ------------------------------------------------------------ many labels


def many_labels(count: int) -> Schema:
    return Schema((Category(name="code", values=tuple(f"c{i}" for i in range(count))), Ordered("age", low=0, high=99)))


@pytest.mark.parametrize(("resolution", "merged"), [(4, False), (128, True)])
def test_merged_labels_lose_what_part_of_them_is_merged(resolution: int, merged: bool) -> None:
    schema = many_labels(2_000)
    settings = settled(schema, epsilon=1)
    strategy = strategy_named("identity", neighbours=settings.neighbours)
    found = predict_design(Task(schema, settings, 50_000), strategy, resolution, FIRST_SPLIT)
    groups = max_label_groups(found.layers[-1], 50_000)
    assert (groups < 2_000) is merged
    assert found.discretisation == pytest.approx(1 - groups / 2_000 if merged else 1 / (2 * resolution))


@pytest.mark.usefixtures("no_cache")
def test_lines_do_not_get_finer_at_the_cost_of_merged_labels() -> None:
    """Cells of a table of labels and a line were as many at every resolution, so that the finest had seemed best."""
    schema = many_labels(2_000)
    best = first_guess(Task(schema, settled(schema, epsilon=1), 5_000))
    assert best.resolution is not None
    assert best.resolution <= 16


# ------------------------------------------------------------ what theory says


def detail(high: int, **asked: Any) -> list[planning.Design]:
    """The design at full detail of two lines with values from 0 to `high`, and labels."""
    lines = (Ordered("a", low=0, high=high), Ordered("b", low=0, high=5))
    schema = Schema((*lines, Category("c", values=tuple("xyz"))))
    settings = settled(schema, **{"epsilon": 1, "delta": "1e-5", "sparsity": 2} | asked)
    return planning._full_detail(Task(schema, settings, 10_000), FIRST_SPLIT, None)


@pytest.mark.parametrize(("high", "resolution"), [(5, 6), (31, 32), (32, 48), (47, 48)])
def test_with_gaussian_noise_and_few_values_full_detail_is_a_design(high: int, resolution: int) -> None:
    (found,) = detail(high)
    assert found.resolution == resolution
    assert found.discretisation == 0
    assert found.strategy == strategy_named(
        "quad-tree", neighbours=Neighbours.REPLACE_ONE, growth=planning.DETAIL_GROWTH
    )


@pytest.mark.parametrize(
    ("high", "asked"),
    [(48, {}), (31, {"delta": None}), (31, {"resolution": 16}), (31, {"mechanism": "identity"}), (31, {"sparsity": 3})],
)
def test_else_full_detail_is_none(high: int, asked: dict[str, Any]) -> None:
    assert detail(high, **asked) == []


@pytest.mark.usefixtures("no_cache", "quick")
def test_full_detail_is_chosen_if_rehearsals_say_so_although_the_model_does_not() -> None:
    """The rehearsals of `quick` prefer fine cells."""
    schema = Schema(tuple(Ordered(name, low=0, high=31) for name in "abc"))
    for delta, resolution in (("1e-5", 32), (None, None)):
        found = choose(Task(schema, settled(schema, epsilon=1, delta=delta, sparsity=2), 3_000))
        rehearsed = [design.resolution for design in found.designs if design.rehearsed]
        assert (32 in rehearsed) == (resolution == 32)
        assert found.best.predicted <= max(d.predicted for d in found.designs if d.rehearsed)


def planned_resolutions(sparsity: int, sizes: Sequence[int], grid: Sequence[int]) -> list[int]:
    """The resolutions that promise most for tables of so many rows, with even cells and noise on a tree."""
    schema = Schema(tuple(Ordered(f"c{j}", kind="number", low=0.0, high=1.0) for j in range(sparsity)))
    settings = settled(schema, epsilon=1, sparsity=sparsity, projection="drawn", certificate_share=0)
    strategy = strategy_named("haar", neighbours=Neighbours.REPLACE_ONE)

    def promises(rows: int, resolution: int) -> tuple[float, float]:
        found = predict_design(Task(schema, settings, rows), strategy, resolution, FIRST_SPLIT)
        assert found.discretisation == 1 / (2 * resolution)
        assert found.predicted == pytest.approx(found.discretisation + WORST_CASE.noise * found.privatisation)
        return found.discretisation, found.privatisation

    first = sizes[0]
    known = {k: promises(first, k) for k in grid}
    for rows in sizes[1:]:  # noise is the same on more rows, and a smaller share of them
        assert promises(rows, grid[3]) == pytest.approx((known[grid[3]][0], known[grid[3]][1] * first / rows), rel=1e-6)
    return [min(grid, key=lambda k: known[k][0] + 2 * known[k][1] * first / rows) for rows in sizes]


def slope(sizes: Sequence[int], resolutions: Sequence[int]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(resolutions), 1)[0])


def test_resolutions_of_pairs_grow_like_the_root_of_the_rows() -> None:
    """Theorem 1: k of order n^(1/s), up to logarithms. The largest resolution offered is not the best of any."""
    sizes, grid = [10**3, 10**4, 10**5, 10**6], [round(2 ** (i / 2)) for i in range(2, 16)]
    found = planned_resolutions(2, sizes, grid)
    assert grid[0] < found[0]
    assert found[-1] < grid[-1]
    assert 0.35 < slope(sizes, found) < 0.65


def test_resolutions_of_single_columns_grow_like_the_rows() -> None:
    sizes, grid = [10**2, 10**3, 10**4], [round(2 ** (i / 2)) for i in range(2, 21)]
    found = planned_resolutions(1, sizes, grid)
    assert grid[0] < found[0]
    assert found[-1] < grid[-1]
    assert 0.7 < slope(sizes, found) < 1.2


@pytest.mark.parametrize("asked", [{}, {"projection": "drawn", "certificate_share": 0}], ids=["groups", "even"])
def test_more_rows_or_budget_promise_no_larger_loss(monkeypatch, asked: dict[str, Any]) -> None:
    monkeypatch.setattr(planning, "RESOLUTIONS", (4, 12, 32))

    def best(rows: int, **budget: Any) -> float:
        return first_guess(Task(PAIR, settled(PAIR, **asked, **budget), rows)).predicted

    for losses in (
        [best(rows, epsilon=1) for rows in (100, 1_000, 10_000)],
        [best(1_000, epsilon=epsilon) for epsilon in ("0.1", 1, 10)],
        [best(1_000, rho=rho) for rho in ("0.01", "0.1", 1)],
    ):
        for less, more in itertools.pairwise(losses):
            assert more < 1.05 * less
        assert losses[-1] < 0.5 * losses[0]


@pytest.mark.usefixtures("few", "no_cache")
def test_more_rows_or_budget_do_not_make_the_rehearsed_choice_worse() -> None:
    losses = [choose(Task(PAIR, settled(PAIR, epsilon=e), n)).best.predicted for e, n in ((1, 200), (1, 800), (4, 800))]
    assert losses[1] < 1.05 * losses[0]
    assert losses[2] < 1.05 * losses[1]


# ------------------------------------------------------------ no rows


@pytest.mark.usefixtures("few", "no_cache")
def test_nothing_is_read_for_a_plan(monkeypatch) -> None:
    """P4 for planning: a table cannot even be given, and nothing opens one."""

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("a table was opened")

    for name in ("open_source", "cleaned"):
        monkeypatch.setattr(sources, name, opened)
    with pytest.raises(AssertionError, match="was opened"):
        sources.open_source("people.csv", what="data")
    assert plan(PAIR, rows=80, epsilon=1).rows == 80
    for table in ("people.csv", [1, 2], {"a": [1], "b": ["x"]}):
        with pytest.raises(InputError, match="number of private rows"):
            plan(PAIR, rows=table, epsilon=1)  # type: ignore[arg-type]


def test_a_layer_that_is_planned_is_like_the_one_that_is_measured() -> None:
    """Same subsets, and as many cells as groups will have at most; noise of the same scale where these are even."""
    settings = settled(NATIVE, sparsity=2, resolution=3, mechanism="identity")
    layers = choose(Task(NATIVE, settings, 500)).layers
    table = make_up_table(NATIVE, 500, kind=ORDINARY, rng=np.random.default_rng(0))
    measured = measure_layers(in_memory(table), NATIVE, layers, noise=NoNoise())
    for blank, made in zip(blank_layers(NATIVE, layers, 500), measured, strict=True):
        assert blank.marginals.subsets == made.marginals.subsets
        assert blank.scale == made.scale
        assert blank.cost.spent == made.cost.spent
        assert all(mine >= theirs for mine, theirs in zip(blank.marginals.sizes(), made.marginals.sizes(), strict=True))
