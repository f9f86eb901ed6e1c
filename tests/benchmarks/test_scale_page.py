"""The page about scale is what the benchmarks found, and says so of made-up figures, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scale import page


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
    rows = {
        "1000": {page.REFERENCE: point, "pairs in 16 cells": point | {"seconds": 3.0}},
        "10": {page.REFERENCE: point},
    }
    spark = {f"Spark, in its executors | {what} | 1000": [{"seconds": 9.0, "processor_seconds": 2e-3}] for what in WHAT}
    solved = {"seconds": 1.0, "cpu": 2.0, "gb": 0.5, "subsets": 10, "solved": 4, "scaled": 2.0, "compare_cpu": 7.0}
    planned = {"seconds": 1.0, "cpu": 2.0, "gb": 0.5, "bound": 0.25, "expected_seconds": 60.0, "expected_gb": 1.5}
    parts = {
        "rows": {"points": rows, "cores": 3},
        "columns": {"points": {"10 columns: all": solved, "5 columns: plan": planned}, "rows": 77},
        "workers": {"seconds": {"one process": 8.0, "two": 4.0}, "same": False, "columns": 4, "rows": 99},
        "engines": {"points": spark},
    }
    for part, kept in parts.items():
        (tmp_path / f"{part}.json").write_text(json.dumps(kept))
    return tmp_path


WHAT = ("16 cells", "lattice")


def test_figures_are_ratios_and_sums_of_what_was_measured(made_up: Path) -> None:
    text = page.page(made_up)
    assert "take\n1.5 times as long as the reference by the clock" in text
    assert "1.5 times as long by the clock, with\n1.0 times the processor time" in text
    assert "| pairs in 16 cells |  |  |  | 3.0 s (1.5 ×) | 3000000 | 300 |" in text
    assert "4 of 10 pairs solved; 7 processor-s for all pairs, scaled up" in text
    assert text.index("| 5 | plan") < text.index("| 10 | all")
    assert "| two | 4.0 | 2.00 |" in text
    assert "The results DIFFER" in text
    # 2000 ns a row and pass, four passes, 10^9 rows, 400 cores.
    assert "= 8,000 processor-seconds; over 100 executors\n" in text
    assert "of 4 cores each 20 s" in text
