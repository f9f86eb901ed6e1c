"""Dot plots as SVG files that are readable on a light and on a dark page, without any other library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

STYLE = """
    text { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 14px; fill: #1c2733 }
    .sheet { fill: #ffffff; stroke: #d5dbe1 }
    .soft { font-size: 12.5px; fill: #4d5b68 }
    .head { font-weight: 600 }
    .code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px }
    .grid { stroke: #d5dbe1 }
    .s0 { fill: #0072b2; stroke: #0072b2 }
    .s1 { fill: #c25700; stroke: #c25700 }
    .s2 { fill: #007a59; stroke: #007a59 }
    .s3 { fill: #6b7885; stroke: #6b7885 }
    .band { fill: #0072b2; fill-opacity: 0.16; stroke: #0072b2; stroke-width: 1.5 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6ebf0 }
      .sheet { fill: #171c21; stroke: #3a444e }
      .soft { fill: #aab6c1 }
      .grid { stroke: #3a444e }
      .s0 { fill: #5cb8f0; stroke: #5cb8f0 }
      .s1 { fill: #f0a04b; stroke: #f0a04b }
      .s2 { fill: #3fc79b; stroke: #3fc79b }
      .s3 { fill: #96a3af; stroke: #96a3af }
      .band { fill: #5cb8f0; fill-opacity: 0.22; stroke: #5cb8f0 }
    }
"""
"""The sheet is drawn, too, so that the figure is readable on a page that has the other theme."""

MARGIN, LINE_HEIGHT, HEAD_HEIGHT, GAP = 18, 26, 50, 28
"""Pixels: around the figure, from line to line, above the first line, and between two panels."""
TICK_DISTANCE = 44
"""The least number of pixels between two ticks, so that their labels do not touch."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A value of one of the series, with a whisker if it has a range."""

    series: int
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled line of dots; one without dots says why."""

    label: str
    dots: tuple[Dot, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over one axis, with a title of at most two lines. Panels have the same labels, and an axis each."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis."""

    low: float
    high: float
    left: float
    width: float

    def at(self, value: float) -> float:
        return self.left + self.width * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Powers of ten, and multiples of these as far as there is room."""
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            inside = self._multiples(steps, exponents)
            if self._has_room(inside):
                break
        if len(inside) > 1:
            return inside
        finer = self._multiples((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8), exponents)  # a short axis
        return finer if self._has_room(finer) else inside

    def _multiples(self, steps: Sequence[float], exponents: Sequence[int]) -> list[float]:
        found = [step * 10.0**e for e in exponents for step in steps]
        return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]

    def _has_room(self, ticks: Sequence[float]) -> bool:
        places = [self.at(tick) for tick in ticks]
        return all(right - left >= TICK_DISTANCE for left, right in itertools.pairwise(places))


def svg(width: float, height: float, title: str, description: str, body: Sequence[str]) -> str:
    """A figure with a sheet of its own, and words for people who do not see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="sheet" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>',
            *body,
            "</svg>\n",
        ]
    )


def cross(x: float, y: float) -> str:
    """A mark for a true value."""
    return f'<path class="s1" d="M{x - 5:.1f} {y - 5:.1f} l10 10 m0 -10 l-10 10" style="stroke-width: 2.5"/>'


def text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start") -> str:
    names = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{names}>{escape(words)}</text>'


def mark(x: float, y: float, series: int) -> str:
    """A dot whose shape differs between series, not only its colour."""
    if series == 0:
        return f'<circle class="s0" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    if series == 1:
        return f'<rect class="s1" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"/>'
    if series == 2:
        return f'<path class="s2" d="M{x:.1f} {y - 6.5:.1f} l6.5 6.5 l-6.5 6.5 l-6.5 -6.5 z"/>'
    return f'<circle class="s3" cx="{x:.1f}" cy="{y:.1f}" r="4.5" style="fill: none; stroke-width: 2.2"/>'


def dot_plot(
    title: str,
    description: str,
    panels: Sequence[Panel],
    *,
    series: Sequence[str],
    axis: str,
    width: float = 760,
    labels: float = 150,
    mono: bool = False,
) -> str:
    """A figure of one or more panels side by side, with the labels of their lines on the left."""
    count = len(panels[0].lines)
    each = (width - 2 * MARGIN - labels - GAP * (len(panels) - 1)) / len(panels)
    top = MARGIN + HEAD_HEIGHT + 16 * max(panel.title.count("\n") + bool(panel.title) for panel in panels)
    bottom = top + count * LINE_HEIGHT
    body = [text(MARGIN, MARGIN + 14, title, kind="head"), *_legend(series)]
    for i, line in enumerate(panels[0].lines):
        body.append(text(MARGIN, top + (i + 0.5) * LINE_HEIGHT + 5, line.label, kind="code" if mono else ""))
    for number, panel in enumerate(panels):
        left = MARGIN + labels + number * (each + GAP)
        body += _panel(panel, Axis(*_ends(panel), left, each), top, bottom)
    body.append(text(MARGIN + labels, bottom + 40, axis, kind="soft"))
    return svg(width, bottom + 40 + MARGIN, title, description, body)


def _legend(series: Sequence[str]) -> Iterator[str]:
    x, y = float(MARGIN), MARGIN + 36
    for number, name in enumerate(series):
        yield mark(x + 6, y - 4, number)
        yield text(x + 18, y, name, kind="soft")
        x += 18 + 7 * len(name) + 22


def _ends(panel: Panel) -> tuple[float, float]:
    """The ends of an axis: a little beyond the values, whiskers included."""
    found = [x for line in panel.lines for dot in line.dots for x in (dot.value, dot.low, dot.high) if x is not None]
    return min(found) / 1.25, max(found) * 1.25


def _panel(panel: Panel, axis: Axis, top: float, bottom: float) -> Iterator[str]:
    for i, words in enumerate(reversed(panel.title.splitlines())):
        yield text(axis.left, top - 8 - 16 * i, words, kind="soft")
    for tick in axis.ticks():
        x = axis.at(tick)
        yield f'<path class="grid" d="M{x:.1f} {top:.1f} V{bottom:.1f}"/>'
        yield text(x, bottom + 18, f"{tick:g}", kind="soft", anchor="middle")
    for i, line in enumerate(panel.lines):
        y = top + (i + 0.5) * LINE_HEIGHT
        if line.note:
            yield text(axis.left + 4, y + 4, line.note, kind="soft")
        for dot in line.dots:
            if dot.low is not None and dot.high is not None:
                ends = f"M{axis.at(dot.low):.1f} {y:.1f} H{axis.at(dot.high):.1f}"
                yield f'<path class="s{dot.series}" d="{ends}" style="stroke-width: 2"/>'
            yield mark(axis.at(dot.value), y, dot.series)
