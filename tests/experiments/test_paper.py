"""What the figures are drawn from, computed on small made-up tables."""

from __future__ import annotations

import numpy as np
import pytest

import paper
from certsynth import evaluate, release
from made_up_survey import SMALL, made_up_results, pairs, write_tables


@pytest.fixture(scope="module")
def measuring(tmp_path_factory):
    return paper.Measuring.of(pairs(), write_tables(tmp_path_factory.mktemp("tables")), SMALL)


def task(**asked):
    return {"method": "paper", "pair": "income-al", "k": 4, "public_rows": 60, "run": 0, **asked}


def test_the_papers_certificates_are_the_sums_of_their_terms(measuring):
    point = measuring(task())
    for name in ("tight", "path"):
        terms = sum(point[f"{name}_{term}"] for term in ("discretisation", "privatisation", "projection"))
        assert point[name] == pytest.approx(min(1.0, terms), abs=1e-5)
    assert point["tight"] <= point["path"]
    assert point["tight_discretisation"] == pytest.approx(1 / 8)
    assert point["lower"] <= point["value"] <= point["upper"]
    assert point["raw_lower"] <= point["raw_value"] <= point["raw_upper"]
    assert point["sharp_lower"] <= point["sharp_upper"]
    assert point["noise_low"] <= point["noise_mean"] <= point["noise_high"]


def test_the_loss_of_raw_rows_is_that_of_the_rows_that_were_drawn(measuring):
    private, public = pairs()["income-al"].tables(measuring.folder)
    drawn = paper.draw(public, 60, seed=1)
    found = evaluate(private, drawn, pairs()["income-al"].schema, lattice=30)
    assert measuring(task(run=1))["raw_value"] == pytest.approx(found.value, abs=1e-6)


def test_the_distance_of_the_truth_is_the_loss_of_the_noise(measuring):
    """Where the noise is all but nothing, private rows are where their marginals are; the noise's law says how far."""
    private, public = pairs()["income-al"].tables(measuring.folder)
    schema = pairs()["income-al"].schema
    calm = release(private, schema, epsilon=100, preset="paper", public=public, resolution=4)
    loud = release(private, schema, epsilon="0.1", preset="paper", public=public, resolution=4)
    near, far = (paper.distance_of_truth(made, private, 4) for made in (calm, loud))
    law = loud.certificate.details["plug_in"]["path"]["diagnostic"]
    assert near < 0.02 * law["noise_mean"]  # a thousandth of the noise, on average
    assert law["noise_mean"] / 20 < far < 20 * law["noise_mean"]


def test_ours_has_a_direct_certificate_and_says_which_resolution_it_chose(measuring):
    point = measuring(task(method="ours", k=None, public_rows=None))
    direct = min(1, point["measured_loss"] + point["slack"])
    if point["kind"] == "direct":
        assert point["bound"] == pytest.approx(direct, abs=1e-5)
    else:  # of so few rows the noise may be so large that the plug-in certificate is the smaller one
        assert point["bound"] < direct or point["bound"] == direct == 1  # both may say nothing
    assert point["chosen_k"] >= 2
    assert measuring(task(method="ours", k=4, public_rows=None))["chosen_k"] == 4


def test_series_are_run_after_run_and_figures_share_them():
    tasks = paper.SERIES["paper-income-al"].tasks(paper.PAPER)
    assert len(tasks) == 80
    assert [t["run"] for t in tasks] == sorted(t["run"] for t in tasks)
    few = paper.SERIES["paper-public-rows"].tasks(paper.PAPER)
    assert {t["k"] for t in few} == {25}
    shared = [t for t in few if t in tasks]
    assert len(shared) == 10  # 4,000 rows at k = 25 are computed once


def test_private_rows_can_be_fewer(tmp_path):
    small = paper.Size(private_rows=50)
    measuring = paper.Measuring.of(pairs(), write_tables(tmp_path), small)
    measuring(task(k=2, public_rows=5))
    assert len(measuring._tables["income-al"][0]) == 50


def test_curves_are_means_with_the_smallest_and_the_largest():
    points = [{"k": k, "x": float(k + run)} for k in (4, 2) for run in range(3)] + [{"k": None, "x": 9.0}]
    places, (means, least, most) = paper.curve(points, "x")
    assert places == [2, 4]
    assert np.array_equal([means, least, most], [[3, 5], [2, 4], [4, 6]])
    assert paper.mean(points, "x", k=None) == 9


def test_runs_are_told_in_words():
    points = made_up_results()["paper-income-al"]["points"]
    assert paper.runs_text(points) == "10 runs"
    assert paper.runs_text(points[:12]) == "1 to 2 runs"
    assert paper.runs_text(points[:8]) == "1 run"
