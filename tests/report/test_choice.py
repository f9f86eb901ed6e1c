"""What a release was chosen from is shown as it is stated, and drawn where it can be compared."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from report_specimens import EVERY_KIND, candidate, candidates, document, record

from certsynth.report import charts, numerals
from certsynth.report.choice import MAX_LISTED_CANDIDATES, MAX_LOSS_RATIO, choice_view

MECHANISMS = ("identity", "haar", "haar-hilbert", "haar-weighted", "quad-tree", "haar-noisy-total")
RESOLUTIONS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)

Json = dict[str, Any]


def seen(compared: list[Json], **choices: Any) -> Json:
    return choice_view(record(document(EVERY_KIND, compared=compared, **choices)))


def picture(compared: list[Json]) -> Json:
    return charts.lines(seen(compared)["drawn"])


def place(text: str) -> float:
    return float(text.rstrip("%"))


def test_every_number_is_that_of_the_document() -> None:
    stated = {(c["mechanism"], c["resolution"]): c for c in candidates()}
    rows = seen(candidates())["rows"]
    assert len(rows) == len(stated) == 15
    for row in rows:
        own = stated.pop((row["mechanism"], row["resolution"]))
        assert (row["loss"], row["rehearsals"], row["chosen"]) == (
            own["predicted_loss"],
            own["rehearsals"],
            own["chosen"],
        )
        assert row["loss_text"] == numerals.figure(own["predicted_loss"])
        assert row["discretisation_text"] == numerals.figure(own["discretisation"])
        assert row["noise_text"] == numerals.figure(own["privatisation"])
        assert row["cells"] == str(own["resolution"])
    assert [r["loss"] for r in rows] == sorted(r["loss"] for r in rows)


def test_the_sentence_names_what_was_chosen_and_from_what() -> None:
    said = seen(candidates())["introduction"]
    for text in ("More cells", "identity with 8 cells along a column", "15 candidates", "number of rows alone"):
        assert text in said
    assert numerals.figure(0.3 / 8 + 0.0051 * 8) in said
    assert "guess" not in said
    assert "a noisy number of rows" in seen(candidates(), neighbours="add-remove")["introduction"]


def test_one_candidate_leaves_nothing_to_weigh() -> None:
    shown = seen([candidate("quad-tree", 8, 0.0937, chosen=True)])
    assert shown["drawn"] is None
    assert "only candidate" in shown["introduction"]
    assert "quad-tree with 8 cells along a column" in shown["introduction"]
    assert "0.09370" in shown["introduction"]
    assert "at full detail" in seen([candidate("haar", None, 0.1, chosen=True)])["introduction"]


@pytest.mark.parametrize("resolution", [None, 8])
def test_without_several_resolutions_there_are_no_lines(resolution: int | None) -> None:
    shown = seen(candidates(MECHANISMS, [resolution], best=("haar", resolution)))
    assert shown["drawn"] is None
    assert "More cells" not in shown["introduction"]
    assert "out of 6 candidates" in shown["introduction"]
    assert len(shown["rows"]) == len(shown["mechanisms"]) == 6


@pytest.mark.parametrize("chosen", [0, 2])
def test_exactly_one_must_be_chosen(chosen: int) -> None:
    compared = [candidate("haar", k, 0.1, chosen=k <= chosen) for k in range(1, 4)]
    with pytest.raises(ValueError, match="unpack"):
        seen(compared)


def test_every_candidate_on_the_scale_has_its_mark() -> None:
    compared = candidates(MECHANISMS, RESOLUTIONS)
    shown, drawn = seen(compared)["drawn"], picture(compared)
    top = shown["ticks"][-1]["at"]
    assert [line["name"] for line in drawn["lines"]][-1] == "identity"  # on top of the others
    for line in drawn["lines"]:
        own = {c["resolution"]: c["predicted_loss"] for c in compared if c["mechanism"] == line["name"]}
        heights = [loss for _, loss in sorted(own.items()) if loss <= top]
        assert len(line["marks"]) == len(heights)
        for mark, loss in zip(line["marks"], heights, strict=True):
            assert place(mark["y"]) == pytest.approx(
                charts.LINES_BASE - (charts.LINES_BASE - charts.LINES_TOP) * loss / top, abs=0.06
            )
    ticks = [place(tick["x"]) for tick in drawn["ticks"]]
    assert ticks == sorted(ticks)
    assert ticks[-1] == 100
    assert [tick["label"] for tick in drawn["ticks"]] == list(map(str, RESOLUTIONS))


def test_only_the_chosen_mark_has_a_label() -> None:
    labels = [m["label"] for line in picture(candidates(MECHANISMS, RESOLUTIONS))["lines"] for m in line["marks"]]
    assert [label["text"] for label in labels if label] == [numerals.figure(0.3 / 8 + 0.0051 * 8)]


def test_marks_of_rehearsed_candidates_are_filled() -> None:
    drawn = picture(candidates())
    assert [(m["x"], m["label"] is not None) for line in drawn["lines"] for m in line["marks"] if m["filled"]] == [
        (drawn["ticks"][2]["x"], True)
    ]
    assert "rehearsed" in seen(candidates())["drawn"]["caption"]
    modelled = [c | {"rehearsals": 0} for c in candidates()]
    assert "rehearsed" not in seen(modelled)["drawn"]["caption"]


def test_hopeless_candidates_do_not_flatten_the_others() -> None:
    hopeless = [candidate("haar", k, 50.0 * k) for k in (4, 6)]
    compared = [c for c in candidates() if c["mechanism"] == "identity"] + hopeless + [candidate("haar", 8, 0.09)]
    shown, drawn = seen(compared)["drawn"], picture(compared)
    least = min(c["predicted_loss"] for c in compared)
    assert shown["ticks"][-1]["at"] <= 1.3 * MAX_LOSS_RATIO * least
    assert f"ends at {shown['ticks'][-1]['label']}: 2 of the candidates lie above it" in shown["caption"]
    cut = next(line for line in drawn["lines"] if line["name"] == "haar")
    assert len(cut["marks"]) == len(cut["segments"]) == 1
    assert place(cut["segments"][0]["y1"]) == charts.LINES_TOP
    assert "ends at" not in seen(candidates(["identity"]))["drawn"]["caption"]


def test_one_candidate_above_the_scale_is_said_in_the_singular() -> None:
    shown = seen([candidate("haar", 4, 0.1, chosen=True), candidate("haar", 8, 5.0)])
    assert "1 of the candidates lies above it" in shown["drawn"]["caption"]


@pytest.mark.parametrize("losses", [(0.0, 0.0), (0.0, 0.3), (1e-9, 2e-9), (0.3, 0.3), (0.1, 0.2), (3.0, 7.0)])
def test_the_scale_starts_at_nothing_and_holds_what_was_chosen(losses: tuple[float, float]) -> None:
    compared = [candidate("haar", k, loss, chosen=k == 8) for k, loss in zip((4, 8), losses, strict=True)]
    ticks = seen(compared)["drawn"]["ticks"]
    assert ticks[0] == {"at": 0.0, "label": "0"}
    assert ticks[-1]["at"] >= losses[1]
    assert 2 <= len(ticks) <= 6
    marks = [m for line in picture(compared)["lines"] for m in line["marks"]]
    assert [m["label"] is not None for m in marks] == [False, True]
    assert all(charts.LINES_TOP <= place(m["y"]) <= charts.LINES_BASE for m in marks)


@pytest.mark.parametrize(
    "losses", [(0.1,) * 6, (0.03, 0.1, 0.1, 0.1, 0.1, 0.1), (0.1, 0.3, 0.4, 0.5, 0.6, 9.0), (0.0,) * 6]
)
def test_names_at_the_ends_do_not_touch(losses: tuple[float, ...]) -> None:
    compared = [candidate(m, k, x) for m, x in zip(MECHANISMS, losses, strict=True) for k in (4, 8)]
    compared[0]["chosen"] = True
    lines = picture(compared)["lines"]
    heights = sorted(place(line["name_y"]) for line in lines)
    assert all(b - a >= charts.MIN_NAME_DISTANCE - 0.11 for a, b in itertools.pairwise(heights))
    assert heights[0] >= charts.LINES_TOP
    assert heights[-1] <= charts.LINES_BASE
    gone = [line["name"] for line in lines if line["from_y"] is None]
    assert set(gone) == {m for m, x in zip(MECHANISMS, losses, strict=True) if x > MAX_LOSS_RATIO * losses[0] > 0}


def test_the_picture_is_told_in_words() -> None:
    said = seen(candidates())["drawn"]["described"]
    for c in candidates():
        if c["resolution"] in (4, 16):
            assert f"{numerals.figure(c['predicted_loss'])} at {c['resolution']}" in said
    assert "Chosen: identity with 8 cells along a column" in said


def test_long_lists_are_cut_and_say_so() -> None:
    shown = seen(candidates(MECHANISMS, range(2, 16)))
    assert len(shown["rows"]) == MAX_LISTED_CANDIDATES
    assert "of 84" in shown["caption"]


def test_a_mechanism_that_is_not_known_is_still_drawn() -> None:
    stated = record(document(EVERY_KIND, compared=candidates(["identity", "haar"], best=("identity", 6))))
    new: Any = {"mechanism": "new"}
    compared = tuple(replace(c, **new) if c.mechanism == "identity" else c for c in stated.compared)
    shown = choice_view(replace(stated, compared=compared))
    assert [line["mechanism"] for line in shown["drawn"]["lines"]] == ["haar", "new"]
    assert [m["name"] for m in shown["mechanisms"]] == ["haar"]
