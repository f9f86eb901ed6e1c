"""`plan`: what release would choose, what to expect of it, and that nobody has to trust the cache."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import plan, release
from certsynth.algorithm import layered
from certsynth.algorithm.settings import DEFAULT_ROWS_IF_HIDDEN
from certsynth.artefact.table import decoded_table
from certsynth.domain import Category, Ordered, Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Sensitivity
from certsynth.mechanisms.samplers import NoisyIntegers
from certsynth.planning import choice as choosing
from certsynth.planning.cache import CACHE_VARIABLE
from certsynth.planning.plan import REFERENCE_MECHANISM, Plan
from certsynth.planning.tables import ORDINARY, make_up_table
from small import NATIVE, NoNoise, native

PAIR = Schema((Ordered("a", low=0, high=40), Category("b", values=("x", "y"), missing=True)))
ROWS = 120


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three resolutions to choose from, and nothing known beforehand."""
    monkeypatch.setattr(choosing, "RESOLUTIONS", (4, 8, 16))
    monkeypatch.setenv(CACHE_VARIABLE, "off")


@pytest.fixture(scope="module")
def plans() -> Any:
    """Plans that several tests look at, each made when it is first asked for."""
    made: dict[str, Plan] = {}

    def planned(name: str) -> Plan:
        if name not in made:
            made[name] = plan(NATIVE if "sparsity" in ASKED[name] else PAIR, rows=ROWS, **ASKED[name])
        return made[name]

    return planned


ASKED: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1},
    "with delta": {"epsilon": 1, "delta": "1e-6"},
    "rho": {"rho": "0.05"},
    "single columns": {"epsilon": 1, "sparsity": 1},
    "triples": {"epsilon": 2, "sparsity": 3},
    "plug-in": {"epsilon": 1, "certificate_share": 0},
    "hidden rows": {"epsilon": 1, "neighbours": "add-remove"},
    "programs": {"epsilon": 1, "projection": "drawn"},
    "one mechanism": {"epsilon": 1, "mechanism": "haar"},
    "the paper": {"epsilon": 1, "preset": "paper"},
}
every = pytest.mark.parametrize("name", ASKED)


# ------------------------------------------------------------ what it says


@pytest.mark.quick_cases(4)
@every
def test_a_plan_comes_back_from_json_as_it_was(plans, name: str) -> None:
    made = plans(name)
    text = json.dumps(made.to_json(), allow_nan=False)
    assert Plan.from_json(json.loads(text)) == made


@every
def test_a_plan_has_the_fields_that_others_rely_on(plans, name: str) -> None:
    found = plans(name).to_json()
    assert {"choice", "candidates"} <= set(found)
    for each in (found["choice"], *found["candidates"]):
        assert {"mechanism", "resolution", "predicted_bound"} <= set(each)
    assert (found["rows"], found["columns"]) == (ROWS, 3 if "sparsity" in ASKED[name] else 2)
    assert found["certificate"] == ("plug-in" if name in ("plug-in", "the paper") else "direct")


@every
def test_exactly_one_candidate_is_the_choice(plans, name: str) -> None:
    made = plans(name)
    assert made.candidates.count(made.choice) == 1
    assert made.choice.eligible
    named = [(c.mechanism, c.resolution) for c in made.candidates]
    assert len(set(named)) == len(named)


@every
def test_what_is_expected_lies_in_its_range(plans, name: str) -> None:
    for each in plans(name).candidates:
        assert 0 < each.low <= each.predicted_bound <= each.high
        assert each.discretisation <= (1 / (2 * each.resolution) + 1e-8 if each.resolution else 0)  # half a cell
        assert each.privatisation > 0
        assert each.seconds > 0
        assert each.memory_gb > 0


@every
def test_the_papers_mechanism_is_shown_beside_the_others_and_not_chosen(plans, name: str) -> None:
    made = plans(name)
    shown = {c.eligible for c in made.candidates if c.mechanism == REFERENCE_MECHANISM}
    if name == "the paper":
        assert {c.mechanism for c in made.candidates} == {REFERENCE_MECHANISM}
        assert shown == {True}
    elif name == "one mechanism":
        assert not shown
    else:
        assert shown == {False}
        others = {c.resolution for c in made.candidates if c.mechanism != REFERENCE_MECHANISM}
        assert {c.resolution for c in made.candidates if c.mechanism == REFERENCE_MECHANISM} == others
    assert all(c.eligible for c in made.candidates if c.mechanism != REFERENCE_MECHANISM)


@every
def test_it_says_what_would_change(plans, name: str) -> None:
    made = plans(name)
    expected = {v.change: v.predicted_bound for v in made.variations}
    own, most = made.sparsity, 3 if "sparsity" in ASKED[name] else 2
    others = [f"sparsity {s}" for s in range(1, most + 1) if s != own]
    assert list(expected) == ["twice the rows", "half of epsilon", *others]
    assert expected["twice the rows"] <= 1.1 * made.choice.predicted_bound
    assert expected["half of epsilon"] >= 0.9 * made.choice.predicted_bound
    assert 0 < expected["twice the rows"] <= expected["half of epsilon"]
    kept = [v.mechanism for v in made.variations[:2]]
    assert kept == [made.choice.mechanism] * 2


@every
def test_it_says_what_it_would_cost(plans, name: str) -> None:
    privacy = plans(name).privacy
    if name == "rho":
        assert (privacy["rho"], privacy["delta"]) == ("0.05", "0.000001")
    else:
        assert privacy["epsilon"] == str(ASKED[name]["epsilon"])
        assert privacy["delta"] == ("0.000001" if name == "with delta" else None)
    assert (privacy["rho"] is None) == (privacy["delta"] is None)


# ------------------------------------------------------------ what release then does


def table(schema: Schema, rows: int) -> pl.DataFrame:
    """Any table of the schema: what it holds must not matter."""
    if schema is NATIVE:
        return native(rows)
    made = decoded_table(schema, make_up_table(schema, rows, kind=ORDINARY, rng=np.random.default_rng(5)))
    return pl.DataFrame({name: column.tolist() for name, column in made.items()})


@every
def test_the_choice_is_the_one_that_release_makes(plans, name: str) -> None:
    """Nothing is remembered in between. Where the number of rows is hidden, there is no noise on it here."""
    schema = NATIVE if "sparsity" in ASKED[name] else PAIR
    noise = NoNoise() if name == "hidden rows" else None
    made = release(table(schema, ROWS), schema, seed=1, noise=noise, **ASKED[name])
    choice = plans(name).choice
    found = made.document["release"]
    assert (found["mechanism"], found["resolution"], found["growth"]) == (
        choice.mechanism,
        choice.resolution,
        choice.growth,
    )
    eligible = {(c.mechanism, c.resolution) for c in plans(name).candidates if c.eligible}
    assert {(c["mechanism"], c["resolution"]) for c in made.document["compared"]} == eligible
    (chosen,) = [c for c in made.document["compared"] if c["chosen"]]
    assert (chosen["mechanism"], chosen["resolution"]) == (choice.mechanism, choice.resolution)


class Shifted(NoNoise):
    """Adds the same to every value that stands alone."""

    def __init__(self, shift: int) -> None:
        self.shift = shift

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        noised = super().add(values, sensitivity=sensitivity, budget=budget)
        return replace(noised, values=values + self.shift) if len(values) == 1 else noised


def test_a_release_of_hidden_rows_is_planned_for_a_noisy_number_of_them() -> None:
    """The choice must tell no more about how many rows there are than the noisy number does."""
    asked = {"epsilon": "0.01", "neighbours": "add-remove", "mechanism": "identity", "certificate_share": 0}
    few, many = (plan(PAIR, rows=rows, **asked).choice.resolution for rows in (20, 100_000))
    assert few != many
    for real, shift, wanted in ((20, 0, few), (20, 99_980, many), (2_000, -1_980, few), (2_000, -9_999, few)):
        noise = Shifted(shift)
        made = release(table(PAIR, real), PAIR, seed=1, projection="drawn", noise=noise, **asked)
        assert made.document["release"]["resolution"] == wanted
        assert {"on": "number of rows", "epsilon": "1/5000"}.items() <= made.document["privacy"]["spent"][0].items()


@pytest.mark.parametrize("rows", [50, 3_000])
def test_rows_to_write_do_not_say_how_many_there_are(rows: int) -> None:
    asked = {"epsilon": "0.1", "neighbours": "add-remove", "mechanism": "identity", "certificate_share": 0}
    made = [
        release(table(PAIR, 400), PAIR, seed=1, projection="drawn", noise=NoNoise(), rows=written, **asked)
        for written in (rows, None)
    ]
    assert made[0].document["compared"] == made[1].document["compared"]
    assert [len(each.rows[0]) for each in made] == [rows, DEFAULT_ROWS_IF_HIDDEN]


# ------------------------------------------------------------ what it refuses


@pytest.mark.parametrize("rows", [0, -1, True, False, "people.csv", "100", 1.5, 100.0, None, float("nan"), 10**9])
def test_rows_are_a_number_of_rows(rows: Any) -> None:
    with pytest.raises(InputError, match=r"`rows` must be the number of private rows, from 1 to 50,000,000; got "):
        plan(PAIR, rows=rows, epsilon=1)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({}, "give a privacy budget"),
        ({"delta": "1e-6"}, "`delta` needs `epsilon` or `rho`"),
        ({"epsilon": 1, "delta": "1e-6", "rho": "0.1"}, "at most two"),
        ({"epsilon": 0}, "above 0"),
        ({"rho": 0}, "above 0"),
        ({"epsilon": 1, "delta": 0}, "`delta` must be above 0"),
        ({"epsilon": 1, "delta": "0.5"}, "at most 0.01"),
        ({"epsilon": 1, "sparsity": 3}, "`sparsity` can be 1 or 2"),
        ({"epsilon": 1, "resolution": 0}, "from 1 to 1024"),
        ({"epsilon": 1, "mechanism": "magic"}, "one of"),
        ({"epsilon": 1, "neighbours": "nearby"}, "replace-one or add-remove"),
        ({"epsilon": 1, "confidence": 1}, "below 1"),
        ({"epsilon": 1, "certificate_share": 1}, "below 1"),
        ({"epsilon": 1, "columns": ["c"]}, "'c' is not in the schema"),
    ],
)
def test_bad_arguments_are_refused_with_the_rule(asked: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        plan(PAIR, rows=10, **asked)


def test_a_draft_is_refused() -> None:
    with pytest.raises(InputError, match="draft = true"):
        plan(Schema(PAIR.columns, draft=True), rows=10, epsilon=1)


# ------------------------------------------------------------ hard schemas


SINGLE = (Category("a", values=("x",)), Ordered("b", kind="ordinal", low=0, high=0, values=("y",)))


@pytest.mark.parametrize("share", [None, 0])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("columns", [(1,), (0, 1)])
def test_columns_of_one_value_can_be_planned_for(columns, neighbours, share) -> None:
    schema = Schema(tuple(SINGLE[j] for j in columns))
    made = plan(schema, rows=1, epsilon=1, neighbours=neighbours, certificate_share=share, mechanism="identity")
    assert made.choice.privatisation == 0
    assert made.choice.predicted_bound == (1 if share is None else 2 * made.choice.discretisation)
    assert made.choice.low < made.choice.predicted_bound


def test_a_column_of_one_label_can_be_planned_for_without_direct_certificate() -> None:
    """Nothing can be lost: the predicted loss is 0."""
    made = plan(Schema(SINGLE[:1]), rows=5, epsilon=1, certificate_share=0, mechanism="identity")
    assert made.choice.predicted_bound == 0


# ------------------------------------------------------------ what is remembered


def failing(*_: Any, **__: Any) -> None:
    raise AssertionError("worked out again")


QUICK: dict[str, Any] = {"epsilon": 1, "mechanism": "identity", "resolution": 4, "certificate_share": 0}


def test_the_same_question_is_answered_from_the_cache(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "deep" / "cache"))
    first = plan(PAIR, rows=50, **QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(layered, "plan_layers", failing)
        assert plan(PAIR, rows=50, **QUICK) == first
        assert plan(PAIR, rows=50, **QUICK | {"epsilon": "1"}) == first
        for other in ({"epsilon": 2}, {"resolution": 5}, {"delta": "1e-6"}, {"confidence": "0.9"}, {"columns": ["a"]}):
            with pytest.raises(AssertionError, match="worked out again"):
                plan(PAIR, rows=50, **QUICK | other)
        with pytest.raises(AssertionError, match="worked out again"):
            plan(PAIR, rows=51, **QUICK)
        patch.setenv(CACHE_VARIABLE, "off")
        with pytest.raises(AssertionError, match="worked out again"):
            plan(PAIR, rows=50, **QUICK)
    names = [path.name for path in (tmp_path / "deep" / "cache").iterdir()]
    assert len(names) == 2  # the plan, and the choice that release will ask for
    assert all(name.endswith(".json") for name in names)


def test_the_answer_is_the_same_with_and_without_a_cache(tmp_path: Path, monkeypatch) -> None:
    without = plan(PAIR, rows=50, **QUICK)
    for folder in (tmp_path, tmp_path / "new"):
        monkeypatch.setenv(CACHE_VARIABLE, str(folder))
        assert plan(PAIR, rows=50, **QUICK) == without
    assert list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("where", ["file", "file/folder", "/proc/certsynth", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_as_good_as_none(tmp_path: Path, monkeypatch, where: str) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / where))
    assert plan(PAIR, rows=50, **QUICK).choice.resolution == 4
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_the_users_cache_is_used_unless_another_is_named(tmp_path: Path, monkeypatch, variable: str) -> None:
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    plan(PAIR, rows=50, **QUICK)
    folder = tmp_path / "certsynth" if variable == "XDG_CACHE_HOME" else tmp_path / ".cache" / "certsynth"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer.clear(),
        lambda answer: answer.pop("choice"),
        lambda answer: answer.pop("rows"),
        lambda answer: answer.update(candidates=None),
        lambda answer: answer.update(more=1),
        lambda answer: answer["choice"].pop("low"),
        lambda answer: answer["choice"].update(more=1),
        lambda answer: answer["variations"].append(3),
    ],
)
def test_a_remembered_plan_that_is_none_is_worked_out_again(tmp_path: Path, monkeypatch, change) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    first = plan(PAIR, rows=50, **QUICK)
    changed = 0
    for file in tmp_path.iterdir():
        stored = json.loads(file.read_text())
        if "choice" in stored["answer"]:
            change(stored["answer"])
            file.write_text(json.dumps(stored))
            changed += 1
    assert changed == 1
    assert plan(PAIR, rows=50, **QUICK) == first


@pytest.mark.slow
def test_workers_find_what_one_process_finds(monkeypatch) -> None:
    from certsynth.base import parallel

    alone = plan(PAIR, rows=ROWS, epsilon=1)
    monkeypatch.setattr(parallel, "MIN_PROCESS_WORK", 0)
    assert plan(PAIR, rows=ROWS, epsilon=1) == alone
