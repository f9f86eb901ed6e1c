"""Figures: all that is measured is in them, captions and legends lie beside the data, and ours has the same axes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

import figures
import paper
from made_up_survey import made_up_results


@pytest.fixture
def results():
    return made_up_results()


@pytest.fixture
def drawn(results):
    yield lambda name, ours: figures.FIGURES[name](results, ours=ours)
    plt.close("all")


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("name", figures.NEEDS)
def test_what_the_rows_are_and_how_many_runs_is_written_under_it(name, ours, drawn):
    (text,) = drawn(name, ours).texts
    said = " ".join(text.get_text().split())
    assert "Private: made up" in said
    assert "means of 10 runs" in said
    assert ("Ours:" in said) == ours


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("name", figures.NEEDS)
def test_legend_and_caption_cover_no_data_and_are_in_the_picture(name, ours, drawn):
    figure = drawn(name, ours)
    figure.set_dpi(160)  # as it is written
    figure.canvas.draw()
    page = figure.bbox
    beside = [*figure.legends, *figure.texts]
    assert len(beside) == 2
    for box in (thing.get_window_extent() for thing in beside):
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1
        assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)


@pytest.mark.parametrize("name", ["1a", "2a", "2b", "3"])
def test_ours_has_the_same_axes(name, drawn):
    plain, with_ours = drawn(name, False), drawn(name, True)
    assert plain.axes[0].get_ylim() == with_ours.axes[0].get_ylim()
    labels = {text.get_text() for text in with_ours.legends[0].get_texts()}
    assert any(label.startswith("ours") for label in labels)
    assert any(label.startswith("paper") for label in labels)


def test_both_are_written_and_are_the_same_files_again(results, tmp_path):
    name = "2a"
    contents = []
    for _ in range(2):
        figures.write(name, results, folder=tmp_path)
        contents.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert set(contents[0]) == {f"{who}-{name}.{kind}" for who in ("paper", "ours") for kind in ("svg", "png")}
    assert contents[0] == contents[1]


def test_lines_go_through_the_means(drawn, results):
    axes = drawn("2a", False).axes[0]
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.get_lines()}
    expected = paper.curve(results["paper-income-al"]["points"], "tight")[1][0].tolist()
    assert lines["certificate, tight loss (Eq. 17)"] == expected


@pytest.mark.parametrize("name", figures.NEEDS)
def test_no_line_is_outside_of_its_axes(name, drawn, results):
    """Raw public rows are far off in one panel only: axes that panels share must have room for them."""
    for point in results["paper-travel-ma"]["points"]:
        point["raw_value"] = 0.7
    for axes in drawn(name, False).axes:
        low, high = axes.get_ylim()
        for line in axes.get_lines():
            assert low <= min(line.get_ydata())
            assert max(line.get_ydata()) <= high


def test_sentences_that_several_panels_share_are_said_once():
    notes = {"a": "Private: x. Public: y.", "b": "Private: x. Public: z."}
    assert figures.said_once(notes) == "Private: x (a, b). Public: y (a). Public: z (b)."


def test_results_are_needed_once_each():
    assert figures.needed(["1a", "2a", "3"])[:2] == ["paper-income-al", "paper-ours-income"]
    assert sorted(figures.needed(figures.NEEDS)) == sorted(paper.SERIES)
