"""The figures of the documentation show the results that are in the repository, on light and on dark pages."""

from __future__ import annotations

import re
import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from examples import ROOT
from privpgd import page as privpgd
from race import page as race
from tightness import page as tightness
from wide import page as wide

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
DRAWN = ("architecture", "benchmarks", "choose-epsilon", "choose-sparsity", "plan-designs", "promise-and-answer")
MEASURES = sorted(path.stem for name in ("privpgd-", "adult-", "tightness") for path in IMAGES.glob(f"{name}*.svg"))
DRAWN = (*DRAWN, "tutorial-ages", *MEASURES)
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


def test_the_gallery_is_what_the_committed_answers_make():
    tools = runpy.run_path(str(DOCS / "make_gallery.py"))
    assert tools["PAGE"].read_text(encoding="utf-8") == tools["page"](tools["results"]())


def test_every_page_of_benchmarks_is_written_from_results_by_a_program():
    """A new page needs its line here, and a test that compares it with its results."""
    written = {
        "benchmarks.md": race.PAGE,
        "benchmarks-privpgd.md": privpgd.PAGE,
        "benchmarks-adult.md": wide.PAGE,
        "benchmarks-tightness.md": tightness.PAGE,
    }
    assert {path.name for path in DOCS.glob("benchmarks*.md")} == set(written)
    assert {name: DOCS / name for name in written} == written


def test_every_number_with_a_decimal_point_in_the_comparison_of_the_readme_is_in_the_table_from_results():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## How it compares")[1].split("\n## ")[0]
    outside = section.split(race.BEGIN)[0] + section.split(race.END)[1]
    assert not re.findall(r"\d\.\d", outside)
    assert section.split(race.BEGIN)[1].split(race.END)[0] == race.in_readme()


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
