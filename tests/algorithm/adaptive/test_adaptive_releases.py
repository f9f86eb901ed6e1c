"""Adaptive releases from end to end: everything that is done with a release, forgeries, mistakes and coverage."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from certsynth import Release, certify, evaluate, plan, release
from certsynth.algorithm.sample import sample
from certsynth.cli import main
from certsynth.errors import InputError
from certsynth.mechanisms.samplers import Noise
from certsynth.record.form import from_json
from certsynth.record.record import PAIRS_LEFT_OUT, Record
from small import NATIVE, SURE, LyingNoise, SeededNoise, cube, emitted, failures_allowed, native

Json = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    out = tmp_path_factory.mktemp("adaptive") / "out"
    release(native(2_000), NATIVE, epsilon=2, confidence=SURE, mechanism="adaptive", out=out, seed=1)
    return Release.load(out)


def test_a_release_read_back_verifies_and_says_why_there_is_no_plug_in_certificate(made):
    assert [check for check in made.verify() if not check["ok"]] == []
    certificate = made.document["certificate"]
    assert certificate["plug_in"] == {}
    assert certificate["no_plug_in"] == PAIRS_LEFT_OUT
    assert certificate["kind"] == "direct"
    assert [each["columns"] for each in certificate["subsets"]] == [["a", "b"], ["a", "c"], ["b", "c"]]


def test_the_certificate_covers_all_pairs_measured_or_not(made):
    true = evaluate(native(2_000), emitted(made), NATIVE)
    assert true.lower <= made.certificate.bound
    assert made.subsets == ((0, 1), (0, 2), (1, 2))


def test_everything_that_is_done_with_a_release_can_be_done(made, tmp_path):
    rows = native(2_000)
    again = certify(rows, emitted(made), NATIVE, epsilon=1, confidence=SURE)
    assert evaluate(rows, emitted(made), NATIVE).lower <= again.bound
    new = sample(made, 70)
    assert new.certificate is None  # there is no plug-in certificate
    assert new.bound >= made.certificate.bound
    answer = made.answer("mean(a)")
    assert answer.low <= rows["a"].mean() <= answer.high
    assert made.folder is not None
    report = (made.folder / "report.html").read_text()
    assert "Chosen privately" in report
    assert "scored privately" in report
    pairs = made.document["release"]["pairs"]
    assert all(" × ".join(pair["columns"]) in report for pair in pairs[:5])


def test_the_command_line_makes_one_that_says_what_was_chosen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    native(200).write_csv("rows.csv")
    Path("schema.toml").write_text(NATIVE.to_toml())
    asked = ["release", "rows.csv", "--schema", "schema.toml", "--epsilon", "2", "--seed", "1", "--out"]
    done = CliRunner().invoke(main, [*asked, "one", "--mechanism", "adaptive", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["certificate"]["no_plug_in"] == PAIRS_LEFT_OUT
    shown = CliRunner().invoke(main, [*asked, "two", "--mechanism", "adaptive", "--target", "c"])
    assert "chosen by private scores" in shown.stdout
    measured = {tuple(pair["columns"]) for pair in Release.load("two").document["release"]["pairs"]}
    assert {("a", "c"), ("b", "c")} <= measured
    assert CliRunner().invoke(main, ["verify", "two"]).exit_code == 0


MISTAKES: dict[str, tuple[Json, str]] = {
    "triples": ({"sparsity": 3}, "pairs of columns"),
    "single columns": ({"sparsity": 1}, "pairs of columns"),
    "a workload with a triple": ({"subsets": [["a", "b", "c"]]}, "pairs of columns"),
    "a resolution": ({"resolution": 8}, "leave `resolution` out"),
    "a projection": ({"projection": "full-grid"}, "leave `projection`"),
    "a loss": ({"loss": "path"}, "`loss`"),
    "no direct certificate": ({"certificate_share": 0}, "`certificate_share`"),
    "an unknown target": ({"target": "nobody"}, "`target`"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("call", ["release", "plan"])
def test_options_that_do_not_apply_are_refused_in_one_line(call, mistake):
    asked, message = MISTAKES[mistake]
    made = partial(plan, NATIVE, rows=100) if call == "plan" else partial(release, native(50), NATIVE)
    with pytest.raises(InputError) as refused:
        made(epsilon=1, mechanism="adaptive", **asked)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_target_in_the_schema_is_measured_like_one_that_is_asked_for(tmp_path):
    made = release(
        native(200), dataclasses.replace(NATIVE, target="c"), epsilon=2, mechanism="adaptive", out=tmp_path / "made"
    )
    measured = {tuple(pair["columns"]) for pair in made.document["release"]["pairs"]}
    assert {("a", "c"), ("b", "c")} <= measured
    assert all(check["ok"] for check in made.verify())


@pytest.mark.parametrize("mechanism", ["auto", "identity", "adaptive"])
def test_a_target_that_is_no_column_is_refused_whatever_the_method(mechanism):
    with pytest.raises(InputError, match="not a column of the schema"):
        plan(NATIVE, rows=100, epsilon=1, mechanism=mechanism, target="nobody")


@pytest.mark.slow
def test_the_plan_states_the_share_of_the_certificate():
    assert 0 < plan(NATIVE, rows=100, epsilon=1, mechanism="adaptive").certificate_share < 1


# ------------------------------------------------------------------------------------------------- forgeries


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Five columns of which each depends on the one before it."""
    rng = np.random.default_rng(2)
    columns = [rng.random(800)]
    for _ in range(4):
        columns.append((columns[-1] + 0.3 * rng.random(800)) % 1)
    frame = pl.DataFrame({f"x{j}": column for j, column in enumerate(columns)})
    out = tmp_path_factory.mktemp("wide") / "out"
    release(frame, cube(5), epsilon=3, mechanism="adaptive", out=out, seed=1, rows=100, noise=SeededNoise(7))
    return Release.load(out)


def refused(forged: Release, folder: Path) -> set[str]:
    """The checks that fail once the forged release is written with files that agree with each other."""
    written = dataclasses.replace(forged, folder=None).save(folder / "forged").folder
    return {check["name"] for check in Release.load(written).verify() if not check["ok"]}


def restated(made: Release, change: Callable[[Json], None]) -> Release:
    document = made.document
    change(document)
    return dataclasses.replace(made, record=from_json(Record, document))


def scores_in(document: Json) -> Json:
    return next(step for step in document["privacy"]["spent"] if step["on"] == "scores of pairs")


@pytest.mark.quick_cases(1)
def test_an_honest_copy_is_accepted(wide, tmp_path):
    assert refused(wide, tmp_path) == set()


def test_other_scores_are_seen(wide, tmp_path):
    """The smallest score becomes the largest: other pairs would have been chosen, or with other weights."""

    def forge(document: Json) -> None:
        values = scores_in(document)["values"]
        values[values.index(min(values))] = 10**6

    assert refused(restated(wide, forge), tmp_path) & {"method", "privacy"}


def test_a_score_that_changes_no_choice_is_seen_in_the_stated_dependence(wide, tmp_path):
    def forge(document: Json) -> None:
        values = scores_in(document)["values"]
        values[values.index(max(values))] += 10**6

    assert refused(restated(wide, forge), tmp_path) & {"method", "privacy"}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("factor", ["1/2", "2"])
def test_another_share_for_the_scores_is_seen(wide, tmp_path, factor):
    def forge(document: Json) -> None:
        step = scores_in(document)
        step["epsilon"] = str(Fraction(step["epsilon"]) * Fraction(factor))
        step["scale"] = (float.fromhex(step["scale"]) / float(Fraction(factor))).hex()

    assert "privacy" in refused(restated(wide, forge), tmp_path)


def test_scores_that_are_said_to_need_less_noise_are_seen(wide, tmp_path):
    def forge(document: Json) -> None:
        step = scores_in(document)
        step["sensitivity"] = {key: value // 2 for key, value in step["sensitivity"].items()}
        step["scale"] = (float.fromhex(step["scale"]) / 2).hex()

    assert "privacy" in refused(restated(wide, forge), tmp_path)


def with_marginals(made: Release, layer: int, **changed: Any) -> Release:
    m = made.measurements[layer]
    other = dataclasses.replace(m, marginals=dataclasses.replace(m.marginals, **changed))
    measurements = tuple(other if i == layer else each for i, each in enumerate(made.measurements))
    return dataclasses.replace(made, measurements=measurements)


def test_another_pair_that_was_measured_is_seen(wide, tmp_path):
    layer = len(wide.measurements) - 1
    subsets = wide.measurements[layer].marginals.subsets
    measured = {subset for m in wide.measurements for subset in m.marginals.subsets}
    others = [pair for pair in wide.subsets if pair not in measured] or [subsets[0][::-1]]
    forged = with_marginals(wide, layer, subsets=(*subsets[:-1], others[0]))
    assert is_seen(forged, tmp_path)


def test_other_weights_are_seen(wide, tmp_path):
    layer = len(wide.measurements) - 1
    weights = wide.measurements[layer].marginals.weights
    assert is_seen(with_marginals(wide, layer, weights=(*weights[:-1], weights[-1] % 64 + 1)), tmp_path)


def is_seen(forged: Release, folder: Path) -> bool:
    """Whether such measurements are refused when they are written, read or verified."""
    try:
        return bool(refused(forged, folder) & {"method", "privacy", "measurements"})
    except (InputError, ValueError):
        return True


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("layer", [0, -1])
def test_a_layer_that_was_dropped_is_seen(wide, tmp_path, layer):
    kept = [m for m in wide.measurements if m is not wide.measurements[layer]]

    def forge(document: Json) -> None:
        del document["release"]["measured"][layer]
        noisy = [step for step in document["privacy"]["spent"] if step["on"].startswith("noisy")]
        document["privacy"]["spent"].remove(noisy[layer])

    forged = dataclasses.replace(restated(wide, forge), measurements=tuple(kept))
    assert is_seen(forged, tmp_path)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("key", ["groups", "dependence", "columns", "absent"])
def test_other_stated_pairs_are_seen(wide, tmp_path, key):
    def forge(document: Json) -> None:
        pairs = document["release"]["pairs"]
        if key == "groups":
            pairs[0]["groups"] += 1
        elif key == "dependence":
            pairs[0]["dependence"] += 0.01
        elif key == "columns":
            pairs[0]["columns"] = ["x0", "x4"] if pairs[0]["columns"] != ["x0", "x4"] else ["x0", "x3"]
        else:
            del document["release"]["pairs"]

    assert "method" in refused(restated(wide, forge), tmp_path)


def test_a_finer_resolution_than_was_chosen_is_seen_wherever_it_is_stated(wide, tmp_path):
    def forge(document: Json) -> None:
        last = document["release"]["measured"][-1]["resolution"]
        document["release"]["measured"][-1]["resolution"] = last + 5
        document["release"]["resolution"] = last + 5
        for each in document["compared"]:
            each["resolution"] = last + 5
        for pair in document["release"]["pairs"]:
            pair["groups"] += 5 * (pair["groups"] == last)

    assert "method" in refused(restated(wide, forge), tmp_path)


# -------------------------------------------------------------------------------------------------- coverage

QUICK = ("epsilon", "replace-one")
CELLS = [
    pytest.param(budget, neighbours, runs, marks=[pytest.mark.slow] * slow)
    for budget in ("epsilon", "rho")
    for neighbours in ("replace-one", "add-remove")
    for runs, slow in (((25, False),) if (budget, neighbours) == QUICK else ()) + ((200, True),)
]


@pytest.mark.parametrize(("budget", "neighbours", "runs"), CELLS)
def test_bounds_are_too_low_no_more_often_than_they_say(budget, neighbours, runs):
    """At confidence 0.7; controls with noise sixty times as wide as it says fail the same test."""
    rows = native(60)
    allowed = failures_allowed(runs, 0.3, alarm=1e-7)

    def failures(noise: Callable[[int], Noise]) -> int:
        found = 0
        for run in range(runs):
            made = release(
                rows,
                NATIVE,
                mechanism="adaptive",
                confidence=0.7,
                neighbours=neighbours,
                rows=40,
                seed=run,
                noise=noise(run),
                **{budget: 1},
            )
            found += made.certificate.bound < evaluate(rows, emitted(made), NATIVE).lower - 1e-9
        return found

    assert failures(SeededNoise) <= allowed
    if runs > 100:
        assert failures(lambda run: LyingNoise(60, run)) > allowed / 2
