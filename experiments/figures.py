"""The paper's figures from results, and each once more with ours on the same axes.

A line is a mean over runs, and the shade around it goes from the smallest to the largest. What the rows are is written
under each figure. In figures with ours, what belongs to the paper's algorithm is grey.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

import drawing
from drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED
from paper import Point, curve, runs_text

Results = dict[str, dict[str, Any]]

DPI = 160
GREY, LIGHT = "#777777", "#AAAAAA"

PANELS = {
    "paper-income-al": "paper-ours-income",
    "paper-income-nv": "paper-ours-income",
    "paper-travel-ma": "paper-ours-travel",
    "paper-travel-pa": "paper-ours-travel",
}
"""The panels of figure 3, with ours on the same private rows."""

_INCOME = ("paper-income-al", "paper-ours-income")
NEEDS: dict[str, tuple[str, ...]] = {
    "1a": _INCOME,
    "1b": ("paper-public-rows", "paper-ours-income"),
    "2a": _INCOME,
    "2b": _INCOME,
    "3": (*PANELS, "paper-ours-travel", "paper-ours-income"),
}
"""The results that each figure is drawn from."""

SETTING = "ε = 1, confidence 0.9, two columns at a time"
OURS = "Ours: release() with its defaults and no public rows, at the same ε and confidence; its loss is bounded on"


def needed(names: Iterable[str]) -> list[str]:
    """The results that the named figures are drawn from, each once."""
    return list(dict.fromkeys(series for name in names for series in NEEDS[name]))


def write(name: str, results: Results, *, folder: Path) -> None:
    """Draw a figure as the paper has it, and with ours on the same axes."""
    drawing.write(FIGURES[name](results), f"paper-{name}", folder=folder)
    drawing.write(FIGURES[name](results, ours=True), f"ours-{name}", folder=folder)


# ------------------------------------------------------------ pieces


def line(axes: Axes, points: list[Point], name: str, *, against: str = "k", **style: Any) -> None:
    """Means over runs, and a shade from the smallest to the largest."""
    places, (means, least, most) = curve(points, name, against=against)
    axes.plot(places, means, **{"marker": "o", "markersize": 3, **style})
    axes.fill_between(places, least, most, color=style["color"], alpha=0.15, linewidth=0)


def between(axes: Axes, points: list[Point], prefix: str, *, against: str = "k", **style: Any) -> None:
    """What lies between the means of the lower and the upper bound of a loss."""
    places, (lower, _, _) = curve(points, f"{prefix}lower", against=against)
    _, (upper, _, _) = curve(points, f"{prefix}upper", against=against)
    axes.fill_between(places, lower, upper, alpha=0.25, linewidth=0, **style)


def loss_of_paper(axes: Axes, points: list[Point], colour: str, *, against: str = "k", who: str = "") -> None:
    between(axes, points, "", against=against, color=colour, label=f"{who}loss: from lower to upper bound")
    line(axes, points, "value", against=against, color=colour, label=f"{who}loss on the lattice k = 30")


def raw(axes: Axes, points: list[Point], colour: str, *, who: str = "") -> None:
    """The loss of public rows as they are does not depend on k."""
    axes.axhline(
        np.mean([p["raw_value"] for p in points]), color=colour, linestyle="--", label=f"{who}loss of raw public rows"
    )


def own(axes: Axes, points: list[Point]) -> None:
    """Ours against k, and marked what it does if it may choose k."""
    between(axes, points, "sharp_", color=GREEN, label="ours: loss, from lower to upper bound")
    line(axes, points, "bound", color=RED, label="ours: direct certificate")
    chosen = [p for p in points if p["k"] is None]
    place = np.mean([p["chosen_k"] for p in chosen])
    label = "ours: certificate at the k that it chooses"
    axes.plot(place, np.mean([p["bound"] for p in chosen]), "*", color=RED, markersize=11, label=label)


def ks(axes: Axes, points: list[Point]) -> None:
    axes.set_xlabel("resolution k (cells to a column)")
    axes.xaxis.set_major_locator(FixedLocator(sorted({p["k"] for p in points})))


def from_zero(axes: Axes) -> None:
    """Last of all: axes with a fixed end do not follow what is drawn later, nor what is drawn in other panels."""
    axes.set_ylim(bottom=0)


def single(title: str) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(6.4, 5.4))
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel("loss, or bound on it (diameter = 1)")
    return figure, axes


def finish(figure: Figure, caption: str, *, columns: int = 2) -> Figure:
    """The legend above, the caption below: neither covers data."""
    handles = {label: h for axes in figure.axes for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=columns, fontsize=8)
    wide, high = figure.get_size_inches()
    figure.set_dpi(DPI)  # letters are set to whole dots, so widths are to be measured as they are drawn
    text = figure.text(0.015, 0, "", fontsize=7.5, va="top", linespacing=1.35)
    caption = caption.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}").replace(" %", "\N{NO-BREAK SPACE}%")
    letters = int(wide * 20)
    while not text.get_text() or text.get_window_extent().x1 > 0.97 * figure.bbox.x1:
        letters -= 1
        text.set_text(textwrap.fill(caption, letters))
    room = text.get_window_extent().height / figure.bbox.height + 0.12 / high
    text.set_y(room - 0.06 / high)
    figure.get_layout_engine().set(rect=(0, room, 1, 1 - room))
    return figure


def caption(what: str, results: Results, name: str, *, against: str = "k") -> str:
    points, settings = results[name]["points"], results[name]["settings"]
    runs = runs_text(points, against=against)
    return f"{what} Lines: means of {runs}; shades: smallest to largest. {SETTING}. {settings['data']}"


def public_rows(points: list[Point]) -> str:
    return f"{max(p['public_rows'] for p in points):,} public rows"


def ours_caption(results: Results, name: str, *, panels: str = "") -> str:
    found = results[name]
    return f" {OURS} the lattice {found['settings']['sharp_lattice']}; {runs_text(found['points'])}{panels}."


def said_once(notes: dict[str, str]) -> str:
    """Notes on several panels, with each sentence once and the letters of its panels behind it."""
    panels: dict[str, list[str]] = {}
    for letter, note in notes.items():
        for sentence in note.rstrip(".").split(". "):
            panels.setdefault(sentence, []).append(letter)
    return " ".join(f"{sentence} ({', '.join(letters)})." for sentence, letters in panels.items())


def as_in(axes: Axes, other: Figure) -> None:
    """The same axes as in another figure, which is not needed any more."""
    axes.set_ylim(other.axes[0].get_ylim())
    plt.close(other)


# ------------------------------------------------------------ figures


def figure_1a(results: Results, *, ours: bool = False) -> Figure:
    """Certificate with the path loss, bounds of the loss, and raw public rows, against k."""
    points = results["paper-income-al"]["points"]
    figure, axes = single("Figure 1a: the loss and its certificate" + (", with ours" if ours else ""))
    who = "paper: " if ours else ""
    line(axes, points, "path", color=GREY if ours else BLUE, label=f"{who}certificate, path loss")
    loss_of_paper(axes, points, LIGHT if ours else ORANGE, who=who)
    raw(axes, points, GREY if ours else BLACK, who=who)
    ks(axes, points)
    from_zero(axes)
    what = f"The paper's algorithm on {public_rows(points)}, losses on the lattice k = 30 (appendix A)."
    text = caption(what, results, "paper-income-al")
    if ours:
        own(axes, results["paper-ours-income"]["points"])
        as_in(axes, figure_1a(results))
        text += ours_caption(results, "paper-ours-income")
    return finish(figure, text)


def figure_1b(results: Results, *, ours: bool = False) -> Figure:
    """Is more optimisation worth it? Distances of the fit and of the truth to ν, and the loss, against public rows."""
    against = "public_rows"
    points = results["paper-public-rows"]["points"]
    figure, axes = single("Figure 1b: what more public rows bring" + (", with ours" if ours else ""))
    who, plain = ("paper: ", GREY) if ours else ("", "")
    style = {"against": against, "linestyle": "--"}
    line(axes, points, "fit", color=plain or PURPLE, label=f"{who}distance of the fit to ν (path loss)", **style)
    line(
        axes, points, "truth", color=LIGHT if ours else GREEN, label=f"{who}distance of the private rows to ν", **style
    )
    for name, dots in (("noise_mean", "-"), ("noise_low", ":"), ("noise_high", ":")):
        label = f"{who}the latter's mean (0.05 and 0.95 quantiles dotted)" if dots == "-" else None
        level = np.mean([p[name] for p in points])
        axes.axhline(level, color=LIGHT if ours else GREEN, linestyle=dots, linewidth=1, label=label)
    loss_of_paper(axes, points, LIGHT if ours else ORANGE, against=against, who=who)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({p[against] for p in points})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel("public rows")
    axes.set_ylabel("loss, or distance to ν (diameter = 1)")
    k = points[0]["k"]
    what = f"The paper's algorithm at k = {k}; losses on the lattice k = 30."
    text = caption(what, results, "paper-public-rows", against=against)
    if ours:
        chosen = [p for p in results["paper-ours-income"]["points"] if p["k"] is None]
        axes.axhline(np.mean([p["bound"] for p in chosen]), color=RED, label="ours: direct certificate")
        bounds = (np.mean([p[f"sharp_{end}"] for p in chosen]) for end in ("lower", "upper"))
        axes.axhspan(*bounds, color=GREEN, alpha=0.25, linewidth=0, label="ours: loss, from lower to upper bound")
        text += ours_caption(results, "paper-ours-income") + " It needs no public rows, so it is level."
    return finish(figure, text)


def figure_2a(results: Results, *, ours: bool = False) -> Figure:
    """The two certificates against k."""
    points = results["paper-income-al"]["points"]
    figure, axes = single("Figure 2a: the tight certificate" + (", with ours" if ours else ""))
    who = "paper: " if ours else ""
    line(
        axes,
        points,
        "path",
        color=GREY if ours else BLUE,
        linestyle="--",
        label=f"{who}certificate, path loss (Eq. 10)",
    )
    line(axes, points, "tight", color=LIGHT if ours else BLUE, label=f"{who}certificate, tight loss (Eq. 17)")
    ks(axes, points)
    from_zero(axes)
    text = caption(f"Certificates of the paper's algorithm on {public_rows(points)}.", results, "paper-income-al")
    if ours:
        own(axes, results["paper-ours-income"]["points"])
        as_in(axes, figure_2a(results))
        text += ours_caption(results, "paper-ours-income")
    return finish(figure, text)


def figure_2b(results: Results, *, ours: bool = False) -> Figure:
    """The terms of the tight certificate against k; ours has two: the loss as it was measured, and its slack."""
    points = results["paper-income-al"]["points"]
    figure, axes = single("Figure 2b: terms of the tight certificate" + (", with ours" if ours else ""))
    who = "paper: " if ours else ""
    line(axes, points, "tight", color=GREY if ours else BLUE, label=f"{who}certificate, tight loss")
    for name, colour, dashes in (
        ("discretisation", ORANGE, "-"),
        ("privatisation", GREEN, "--"),
        ("projection", PURPLE, ":"),
    ):
        style = {"color": LIGHT, "linestyle": dashes} if ours else {"color": colour}
        line(axes, points, f"tight_{name}", label=f"{who}{name}", **style)
    ks(axes, points)
    from_zero(axes)
    what = f"The terms of the pair of columns that decides; {public_rows(points)}."
    text = caption(what, results, "paper-income-al")
    if ours:
        mine = results["paper-ours-income"]["points"]
        line(axes, mine, "bound", color=RED, label="ours: direct certificate")
        line(axes, mine, "measured_loss", color=GREEN, label="ours: loss, measured with noise")
        line(axes, mine, "slack", color=BLUE, label="ours: slack for the noise")
        as_in(axes, figure_2b(results))
        text += ours_caption(results, "paper-ours-income").replace("; its loss is bounded on the lattice", ", lattice")
    return finish(figure, text)


def figure_3(results: Results, *, ours: bool = False) -> Figure:
    """As figure 1a with the tight certificate, for four pairs of tables."""
    figure, panels = plt.subplots(1, 4, figsize=(11, 4.9), sharey=True)
    who = "paper: " if ours else ""
    for letter, axes, (name, mine) in zip("abcd", panels, PANELS.items(), strict=True):
        points = results[name]["points"]
        axes.set_title(f"({letter}) {results[name]['settings']['title']}", loc="left", fontsize=9)
        line(axes, points, "tight", color=GREY if ours else BLUE, label=f"{who}certificate, tight loss")
        loss_of_paper(axes, points, LIGHT if ours else ORANGE, who=who)
        raw(axes, points, GREY if ours else BLACK, who=who)
        if ours:
            own(axes, results[mine]["points"])
        ks(axes, points)
        axes.set_xlabel("resolution k")
    panels[0].set_ylabel("loss, or bound on it (diameter = 1)")
    from_zero(panels[0])
    counts = [runs_text(results[name]["points"]) for name in PANELS]
    text = (
        f"Figure 3: the paper's algorithm on {public_rows(results['paper-income-al']['points'])} with the tight "
        "certificate, on four pairs of tables; losses on the lattice k = 30. Lines: means of "
        f"{counts[0] if len(set(counts)) == 1 else ', '.join(counts) + ' (a to d)'}; shades: smallest to largest. "
        f"{SETTING}. "
    )
    text += said_once({letter: results[n]["settings"]["data"] for letter, n in zip("abcd", PANELS, strict=True)})
    if ours:
        as_in(panels[0], figure_3(results))
        text += ours_caption(results, "paper-ours-income", panels=" (a, b)").rstrip(".")
        text += f" and {runs_text(results['paper-ours-travel']['points'])} (c, d)."
    return finish(figure, text, columns=3)


FIGURES: dict[str, Callable[..., Figure]] = {
    "1a": figure_1a,
    "1b": figure_1b,
    "2a": figure_2a,
    "2b": figure_2b,
    "3": figure_3,
}
