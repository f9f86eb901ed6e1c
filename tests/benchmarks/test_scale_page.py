"""The page about scale is what the benchmarks found, and says so of made-up figures, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scale import columns, page, rows


def test_the_page_is_made_from_the_results() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_every_part_has_results_with_versions_and_cores() -> None:
    for part in ("rows", "columns", "workers", "engines"):
        kept = page.found(part)
        assert kept["cores"] >= 1
        assert "certsynth" in kept["versions"]


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    point = {"seconds": 2.0, "cpu": 3.0, "mb": 300, "runs": 1}
    lattice = point | {"seconds": 4.1, "cpu": 4.5, "mb": 340}
    at_most = {page.REFERENCE: point, "pairs in 16 cells": point | {"seconds": 3.0}, LATTICE: lattice}
    passes = {
        "1000": at_most | {"certify": point | {"mb": 400}},
        "10": {page.REFERENCE: point, LATTICE: point, "CSV: pairs in 16 cells": point},
    }
    spark = {f"Spark, in its executors | {what} | 1000": [{"seconds": 9.0, "processor_seconds": 2e-3}] for what in WHAT}
    solved = {"seconds": 1.0, "cpu": 2.0, "gb": 0.5, "subsets": 10, "solved": 4, "scaled": 2.0, "compare_cpu": 7.0}
    evaluated = solved | {"value": 0.0123, "lower": 0.01, "upper": 0.02}
    planned = {"seconds": 1.0, "cpu": 2.0, "gb": 0.5, "bound": 0.25, "expected_seconds": 60.0, "expected_gb": 1.5}
    parts = {
        "rows": {"points": passes, "cores": 3},
        "columns": {"points": measured(solved, evaluated, planned), "rows": 77},
        "workers": {"seconds": {"one process": 8.0, "two": 4.0}, "same": False, "columns": 4, "rows": 99},
        "engines": {"points": spark},
    }
    for part, kept in parts.items():
        (tmp_path / f"{part}.json").write_text(json.dumps(kept))
    return tmp_path


WHAT = ("16 cells", "lattice")
LATTICE = "pairs on the lattice of 256"


def measured(solved: dict[str, Any], evaluated: dict[str, Any], planned: dict[str, Any]) -> dict[str, Any]:
    return {
        "10 columns: certificate, all": solved,
        "10 columns: evaluate of the release": evaluated,
        "5 columns: evaluate of the release": evaluated | {"scaled": 1.0},
        "5 columns: plan": planned,
    }


def test_figures_are_ratios_and_sums_of_what_was_measured(made_up: Path) -> None:
    text = page.page(made_up)
    assert "Over 1,000 rows passes take 1.5 to 2.0 times as long as the reference by\nthe clock." in text
    assert f"The slowest, {LATTICE}, takes 2.05 times as long, with 1.50 times the\nprocessor time." in text
    assert f"More than twice as long as the reference: {LATTICE} (2.05 ×).\n" in text
    assert "From 10 rows to 1,000 the peak of memory grows by at most 40 MB." in text
    assert "| pairs in 16 cells |  |  |  | 3.0 s (1.5 ×) | 3000000 | 300 |" in text
    assert "| certify | 1,000 | 2.0 | 3.0 | 2,000,000 | 400 |" in text
    assert "| CSV: pairs in 16 cells | 10 | 2.0 | 3.0 | 200,000,000 | 300 |" in text
    loss = "| 0.5 | loss 0.0123 on the lattice, between 0.0100 and 0.0200"
    assert f"| 5 | evaluate of the release | 1 | 2 {loss}; 4 of 10 pairs solved |" in text
    assert f"| 10 | evaluate of the release | 1 | 2 {loss} in the pairs that were solved; 4 of 10 pairs" in text
    assert "4 of 10 pairs solved; 7 processor-s for all pairs, scaled up" in text
    assert text.index("| 5 | plan") < text.index("| 5 | evaluate") < text.index("| 10 | evaluate")
    assert text.index("| 10 | evaluate") < text.index("| 10 | certificate, all")
    assert "| two | 4.0 | 2.00 |" in text
    assert "The results DIFFER" in text
    # 2000 ns a row and pass, four passes, 10^9 rows, 400 cores.
    assert "= 8,000 processor-seconds; over 100 executors\n" in text
    assert "of 4 cores each 20 s" in text


def test_a_pass_is_above_twice_only_if_it_is() -> None:
    point = {"seconds": 2.0, "cpu": 2.0, "mb": 300}
    told = page.passes({"points": {"10": {page.REFERENCE: point, LATTICE: point | {"seconds": 4.0}}}})
    assert "No pass takes more than twice as long as the reference." in told
    assert "memory grows by at most 0 MB" in told
    assert page.whole({"points": {"10": {page.REFERENCE: point}}}) == ""


def test_what_sql_costs_is_computed() -> None:
    points = {
        f"{page.FETCHED} | lattice | 10": [{"processor_seconds": 2.0}],
        f"{page.IN_SQL} | lattice | 10": [{"processor_seconds": 9.0}, {"processor_seconds": 5.0}],
    }
    assert "pair took\n2.5 to 2.5 times the processor time" in page.fetching({"points": points})
    assert page.fetching({"points": {}}) == ""


def test_the_page_knows_what_is_measured() -> None:
    assert {page.REFERENCE, *page.COUNTING, "read and clean"} == set(rows.PASSES)
    assert set(page.WHOLE) == set(rows.WHOLE)
    assert all(page._rank(step) < len(page.STEPS) for step in columns.STEPS)
