"""The palette keeps to WCAG 2.2 AA in both themes: 4.5 to 1 for texts, 3 to 1 for what pictures and controls need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import certsynth

STYLE = (Path(certsynth.__file__).parent / "report" / "style.css").read_text(encoding="utf-8")

TEXTS = [
    *[(text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "panel")],
    ("on-rows", "rows"),
    ("on-light", "noise"),
    ("on-light", "cells"),
    ("ink", "bar-soft"),
    ("wrong", "panel"),
    *[(f"n{i}", f"l{i}") for i in range(6)],
]
"""A text and what it stands on."""

MARKS = [
    *[(mark, "paper") for mark in ("bar", "mean", "whisker", "rows", "edge", "soft", "noise-line", "cells-line")],
    ("accent", "panel"),
    ("edge", "panel"),
    ("ink", "band"),
    ("band-edge", "paper"),
    *[(verdict, "paper") for verdict in ("good", "rough", "edge")],
    ("mean", "paper"),
    ("whisker", "bar"),
]
"""A mark, or the edge of a control, and what it stands on."""


def palette(*, dark: bool) -> dict[str, str]:
    light, other = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part)) for part in _themes())
    return light | other if dark else light


def _themes() -> tuple[str, str]:
    first, rest = STYLE.split("@media screen and (prefers-color-scheme: dark)")
    return first, rest.split("* { box-sizing")[0]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """As WCAG 2.2 defines it.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("text", "ground"), TEXTS)
def test_texts_can_be_read(text: str, ground: str, dark: bool) -> None:
    colours = palette(dark=dark)
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("mark", "ground"), MARKS)
def test_marks_can_be_seen(mark: str, ground: str, dark: bool) -> None:
    colours = palette(dark=dark)
    assert contrast(colours[mark], colours[ground]) >= 3


def test_both_themes_have_every_colour() -> None:
    assert set(palette(dark=True)) == set(palette(dark=False))
    assert all(f"--{colour}: #" in _themes()[1] for colour in palette(dark=False))


def test_colours_that_are_too_near_would_be_seen() -> None:
    assert contrast("#777777", "#ffffff") < 4.5 < contrast("#767676", "#ffffff")
