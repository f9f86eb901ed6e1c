"""The experiment on rates: its mechanism is the theorem's, slopes are slopes, and the page is what the results say."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

import drawing
import rates
import rates_page
import results
from certsynth import release
from certsynth.mechanisms import measure
from certsynth.projection.path_program import PathProgram
from certsynth.projection.support import full_grid
from certsynth.projection.target import Target
from certsynth.queries import Marginals
from certsynth.transport import Path as CellPath
from certsynth.transport import path_loss
from rates import Question

TINY = dataclasses.replace(
    rates.QUICK,
    kinds=("uniform",),
    rows={1: (40, 120), 2: (40, 120)},
    many_columns=(2, 3),
    fixed_rows=60,
    steps={1: 64, 2: 8},
    many_steps={1: 64, 2: 8},
    native=16,
)


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(rates, "EMITTED", 20_000)


def question(**changes) -> Question:
    return dataclasses.replace(Question("rows", 1, "uniform", 3, 400, 64, 0, "theorem"), **changes)


@pytest.mark.parametrize("kind", rates.KINDS)
def test_tables_come_from_their_seeds_and_fill_the_cube(kind):
    asked = question(kind=kind, rows=4_000, columns=2)
    table = asked.table()
    assert table.equals(dataclasses.replace(asked, method="default").table())
    assert not table.equals(dataclasses.replace(asked, repetition=1).table())
    assert (len(table), *table.min()) == (4_000, 0, 0)
    assert 60 <= table.to_numpy().max() <= 64
    groups = table.groupby(["x0", "x1"]).size()
    assert (groups.min() >= rates.CLUMP) == (kind == "clumps")


def test_the_resolution_and_the_rates_are_those_of_the_paper():
    noise = math.log(10_000) ** 2 / 10_000
    assert rates.theorem_resolution(10_000, 3, 1) == round(1 / (3 * noise)) == 39
    assert rates.theorem_resolution(10_000, 3, 2) == round(1 / (3 * math.sqrt(noise))) == 4
    assert rates.theorem_resolution(10, 50, 2) == 1
    assert rates.upper_rate(10_000, 3, 2) == pytest.approx(3 * math.sqrt(noise))
    assert rates.lower_rate(10_000, 5, 2) == pytest.approx(math.sqrt(2 / 10_000))


@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize("kind", rates.KINDS)
def test_no_loss_of_the_theorem_is_above_what_its_proof_says_of_the_noise_drawn(sparsity, kind):
    """Eq. (15) holds for every draw. Centres are off by half a step, and weights are rounded to whole rows."""
    for repetition in range(2):
        asked = question(kind=kind, sparsity=sparsity, rows=800 * sparsity, repetition=repetition, steps=32)
        point = rates.answer(asked)
        assert point["lower"] == point["loss"] == point["upper"]
        rounding = point["resolution"] ** asked.columns / (4 * rates.EMITTED)
        assert point["loss"] <= point["proved"] + 1 / (2 * asked.steps) + rounding
        assert point["proved"] == pytest.approx(1 / (2 * point["resolution"]) + 2 * point["noise"])
        assert point["loss"] > 1 / (8 * point["resolution"])  # not by luck: centres alone cost something


def test_one_program_for_each_column_is_as_good_as_one_for_all(monkeypatch):
    """For s = 1 the least of the largest path loss is the same."""
    monkeypatch.setattr(rates, "theorem_resolution", lambda *_: 4)
    asked = question(columns=2, rows=60)
    drawn = []

    def measured(*arguments, **options):
        drawn.append(measure(*arguments, **options))
        return drawn[-1]

    monkeypatch.setattr(rates, "measure", measured)
    made, _ = rates.theorem(asked, asked.table(), np.random.default_rng(0))
    marginals = Marginals.all_subsets(asked.schema, sparsity=1, resolution=4)
    target, path = Target.of(drawn[0]), CellPath.along(marginals.of((0,)), "snake", end=1 / 4)
    assert (drawn[0].strategy.name, float(drawn[0].cost.spent.amount)) == ("haar-noisy-total", 1.0)

    def worst(shares):
        return max(float(path_loss(a, b, path)) for a, b in zip(target.blocks, shares, strict=True))

    points = full_grid(marginals)
    weights = PathProgram("snake", 1 / 4).weights(target, points)
    together = worst([matrix @ weights for matrix in target.incidence(points)])
    codes = [column.to_cells(made[column.name].to_numpy(float), marginals.cells[0]) for column in asked.schema]
    apart = worst([np.bincount(code, minlength=4) / len(made) for code in codes])
    assert apart == pytest.approx(together, abs=1e-3)


@pytest.mark.parametrize("sparsity", [1, 2])
def test_the_default_is_what_release_makes(sparsity):
    """The same choice, and as many rows."""
    asked = question(method="default", sparsity=sparsity, columns=2, rows=300, steps=16)
    table = asked.table()
    told = release(table, asked.schema, epsilon=rates.EPSILON, sparsity=sparsity).document["release"]
    made, said = rates.default(asked, table, np.random.default_rng(0))
    assert said == {"mechanism": told["mechanism"], "resolution": told["resolution"]}
    assert (len(made), list(made)) == (told["rows"], list(table))


def a_series(losses, places=(10, 100, 1000)):
    columns = tuple(3 for _ in places)
    return rates.Series("rows", 1, "uniform", "theorem", 64, places, columns, np.array(losses), None, (None,) * 3)


def test_slopes_are_slopes_and_their_intervals_those_of_student():
    places = np.array([10, 100, 1000])
    assert a_series([2 / places, 5 / places]).slope() == (pytest.approx(-1), pytest.approx(0, abs=1e-9))
    mean, half = a_series([places**-0.5, places**-0.7, places**-0.9]).slope()
    assert mean == pytest.approx(-0.7)
    assert half == pytest.approx(4.302653 * 0.2 / math.sqrt(3))  # the quantile of a table, for two degrees of freedom


def test_verdicts_say_on_which_side_the_formula_is():
    formula = a_series([[1, 1, 1]]).theory(rates.upper_rate)
    places = np.array([10, 100, 1000])
    for tilt, said in ((0, "as the formula"), (-0.1, "steeper than the formula"), (0.1, "flatter than the formula")):
        tilted = [formula * places ** (tilt + wobble) for wobble in (-0.01, 0, 0.01)]
        assert rates.verdict(a_series(tilted)) == said


def test_points_that_are_kept_are_not_asked_for_again(tmp_path, monkeypatch):
    asked = [question(repetition=r) for r in range(4)]
    answered = []

    def answer(each):
        answered.append(each.repetition)
        return {**dataclasses.asdict(each), "loss": each.repetition}

    monkeypatch.setattr(rates, "answer", answer)
    kept = tmp_path / "deep" / "points.jsonl"
    first = rates.points(asked, kept)
    kept.write_text(kept.read_text()[:-20])  # stopped in the middle of a line
    assert rates.points(asked, kept) == first
    assert rates.points(asked, kept) == first
    assert answered == [0, 1, 2, 3, 3]


def check_all(here: Path, scale: rates.Scale) -> None:
    rates.run(scale, kept=here, folder=here)
    rates.write(folder=here, images=here / "images", target=here / "rates.md")
    assert {path.name for path in (here / "images").iterdir()} == {
        f"rates-{sweep}.{ending}" for sweep in ("rows", "columns") for ending in ("svg", "png")
    }
    found = json.loads((here / "rates-rows.json").read_text())
    assert len(found["points"]) == scale.repetitions * len(scale.kinds) * (
        3 * len(scale.rows[1]) + 2 * len(scale.rows[2])
    )
    assert all(point["lower"] == point["upper"] for point in found["points"])
    text = (here / "rates.md").read_text()
    assert text.count("| Theorem 1 |") >= 2 * len(scale.kinds) + 2
    assert "nan" not in text


@pytest.mark.slow
def test_all_of_it_in_tiny(tmp_path):
    check_all(tmp_path, TINY)


@pytest.mark.slow
def test_all_of_it_in_quick(tmp_path):
    check_all(tmp_path, rates.QUICK)


def test_the_page_is_what_the_results_make():
    rows, columns = (results.load(f"rates-{sweep}") for sweep in ("rows", "columns"))
    assert rates.PAGE.read_text(encoding="utf-8") == rates_page.page(rows, columns), (
        "python experiments/rates.py --draw"
    )
    for sweep, found in (("rows", rows), ("columns", columns)):
        assert all((drawing.FOLDER / f"rates-{sweep}.{ending}").is_file() for ending in ("svg", "png"))
        assert all(point["lower"] == point["loss"] == point["upper"] for point in found["points"])
        assert min(len(each.losses) for each in rates.series(found["points"])) == rates.FULL.repetitions >= 5
