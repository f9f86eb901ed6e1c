"""docs/reproduction.md says what the results say, also where they say no."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path

import pytest

import paper
import reproduction_page
import results as results_files
from made_up_survey import made_up_results

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results():
    return copy.deepcopy(made_up_results())


def change(results, name, function):
    for point in results[name]["points"]:
        point.update(function(point))


def verdicts(results):
    return {
        sentence.__name__: sentence(results).verdict
        for sentences in reproduction_page.SENTENCES.values()
        for sentence in sentences
    }


def test_the_committed_page_is_what_the_committed_results_make():
    """`python experiments/run.py --as-is` writes it again."""
    found = {name: results_files.load(name) for name in paper.SERIES}
    made = reproduction_page.page(found)
    assert (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8") == made


def test_every_sentence_holds_where_it_does(results):
    found = verdicts(results)
    del found["matches_everywhere"]  # the made-up certificate is not that close
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("sentence", "name", "changed"),
    [
        ("better_than_public", "paper-income-al", lambda p: {"raw_value": 0.01, "raw_lower": 0.005}),
        ("trend_in_the_beginning", "paper-income-al", lambda p: {"path": 0.1 + p["k"]}),
        ("significantly_tighter", "paper-income-al", lambda p: {"path": 0.9 * p["tight"]}),
        ("stagnates", "paper-public-rows", lambda p: {"value": 10 / p["public_rows"]}),
        ("trade_off", "paper-income-al", lambda p: {"tight_privatisation": 1 / p["k"]}),
        ("gain_with_shift", "paper-travel-pa", lambda p: {"raw_value": 0.11, "value": 0.1}),
        ("matches_everywhere", "paper-travel-ma", lambda p: {"tight": 0.5 + 0.01 * p["k"]}),
    ],
)
def test_a_sentence_that_does_not_hold_is_not_said_to(sentence, name, changed, results):
    change(results, name, changed)
    assert verdicts(results)[sentence] in ("does not hold", "holds in part")


def test_distances_that_never_meet_tell_nothing(results):
    change(results, "paper-public-rows", lambda p: {"fit": 1.0})
    assert verdicts(results)["stagnates"] == "cannot be told"


def test_a_sixth_is_held_against_both_certificates(results):
    assert "at most a sixth of each of them" in reproduction_page.claim(results)
    change(results, "paper-ours-income", lambda p: {"bound": 0.012})
    said = reproduction_page.claim(results)
    assert "each of them" not in said
    assert "and not of the tight loss" in said


def test_broken_certificates_are_counted(results):
    assert "happened to 0 tight certificates" in reproduction_page.misses(results)
    results["paper-income-al"]["points"][0]["sharp_lower"] = 0.9
    assert "happened to 1 tight certificates and to 1 with the path loss" in reproduction_page.misses(results)


def test_runs_are_those_that_there_are(results):
    results["paper-public-rows"]["points"] = results["paper-public-rows"]["points"][:21]
    page = " ".join(reproduction_page.page(results).split())
    assert "figure 1b: 3 runs" in page
    assert "ours on California: 10 runs" in page


def test_a_page_can_be_made_of_few_points():
    few = made_up_results(replace(paper.QUICK, runs=1))
    page = reproduction_page.page(few)
    assert "nan" not in page
    assert max(map(len, (line for line in page.splitlines() if not line.startswith(("|", "!"))))) <= 120


def test_every_figure_is_on_the_page(results):
    images = re.findall(r"\]\(images/([\w-]+)\.svg\)", reproduction_page.page(results))
    assert sorted(images) == sorted(f"{who}-{name}" for who in ("paper", "ours") for name in reproduction_page.IMAGES)
