"""The figures of the documentation show the results that are in the repository, on light and on dark pages."""

from __future__ import annotations

import re
import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from examples import ROOT

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
DRAWN = ("architecture", "benchmarks", "choose-epsilon", "choose-sparsity", "plan-designs", "promise-and-answer")
DRAWN = (*DRAWN, "tutorial-ages", *sorted(path.stem for path in IMAGES.glob("privpgd-*.svg")))
DRAWN = (*DRAWN, *sorted(path.stem for path in IMAGES.glob("tightness*.svg")))
MAX_PICTURE_BYTES = 120_000


@pytest.fixture
def docs_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    yield
    sys.modules.pop("dot_plot", None)


def test_committed_figures_are_what_the_committed_results_make(docs_on_path):
    made = runpy.run_path(str(DOCS / "make_figures.py"))["figures"]()
    for name, figure in made.items():
        assert (IMAGES / name).read_text(encoding="utf-8") == figure, f"run make_figures.py: {name}"


def test_the_tables_for_choosing_are_those_of_the_committed_predictions():
    tools = runpy.run_path(str(DOCS / "how-to" / "choose_figures.py"))
    assert tools["PAGE"].read_text(encoding="utf-8") == tools["page"](tools["results"]())


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_has_words_a_sheet_of_its_own_and_a_dark_theme(name):
    text = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    root = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title")
    assert len(root.findtext(f"{space}desc") or "") > 80
    assert 'class="sheet"' in text
    light, _, dark = text.partition("@media (prefers-color-scheme: dark)")
    assert re.search(r"\.sheet \{ fill: #f", light)
    assert re.search(r"\.sheet \{ fill: #1", dark)


def test_the_gallery_counts_the_intervals_that_hold_and_its_pictures_are_small():
    """An interval that does not hold is no error: one release in twenty may have some, and the page must say so."""
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    figures = [row for row in rows if row[0] not in ("statistic", "---")]
    assert len(figures) > 20
    inside = 0
    for meaning, *cells in figures:
        synthetic, low, high, true = (float(cell.replace(",", "").removesuffix(" %")) for cell in cells)
        assert low <= synthetic <= high, meaning
        inside += low <= true <= high
    assert f"here {inside} of {len(figures)} hold the true value" in " ".join(text.split())
    pictures = [Path(DOCS / name) for name in set(re.findall(r"\]\((images/gallery-[^)]+)\)", text))]
    assert len(pictures) == 5
    assert all(picture.stat().st_size <= MAX_PICTURE_BYTES for picture in pictures)
