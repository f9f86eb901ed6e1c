"""Positions of the marks of each chart. Numbers only: the template writes the SVG and escapes every text.

Charts are as wide as the page allows, so horizontal positions are percentages and text keeps its size.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from certsynth.report import numerals

Json = dict[str, Any]

CERTIFICATE_HEIGHT = 60
"""Height of one certificate in the chart of terms, in pixels."""
VACUOUS = "no bar: a bound of 1 says nothing"
TOO_LONG = "no bar: too long for this scale"
MIN_LABELLED_PERCENT = 13.0
"""Width of a bar's segment, in per cent of the chart, from which its number is written into it."""
LABEL_CHARACTERS = 7
"""Characters that fit into a segment of that width; longer text needs a proportionally wider one."""
BUDGET_ROLES = 6
"""Colours of the budget bar; a release rarely has more parts, and further parts share the last colour."""
MAX_PATH_RATIO = 2.5
"""The bar of the path loss is omitted if it is more than this many times as long as the longest other bar."""
ROLE_ORDER = ("rows", "noise", "cells")
"""Segments of a bar from the left: distances of rows come first, so that they can be compared."""
MAX_NUMBERED_COLUMNS = 12
"""Columns up to which the map shows numbers in its cells, and names on its diagonal."""
NAME_CELLS = 3
"""Room for the last name on the diagonal of the map, in cells."""
LINES_TOP, LINES_BASE = 24, 244
"""Vertical positions of the top and of the axis of the line chart, in pixels from above."""
FIRST_MARK_INSET = 0.04
"""Distance of a line's first mark from the vertical axis, as a fraction of the width."""
MIN_NAME_DISTANCE = 17
"""Vertical distance between the names at the ends of lines, in pixels: about one line of text."""
MARK_PATHS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-5l5 5l-5 5l-5-5z",
    "M0-4.8l4.8 8h-9.6z",
    "M0 4.8l4.8-8h-9.6z",
    "M-5-2.2h10v4.4h-10z",
)
"""SVG paths of the marks, one for each line, centred at the origin: lines are distinct without colour."""
HISTOGRAM_HEIGHT, BAND_HEIGHT = 88, 72
"""Heights of a histogram, of the band below it, and of one bar of a category, in pixels."""
HISTOGRAM_TOP, MEAN_HEIGHT = 6, 22
"""Room above a histogram for half a line of text, and below it for the mark of the mean, in pixels."""
BARS_LEFT, BARS_WIDTH = 0.37, 0.46
MAX_LABEL_BESIDE_BAR = 40
"""Characters up to which a label stands beside its bar, wrapped; a longer one has a line of its own above the bar."""
MAX_TICK_CHARACTERS = 20
"""Characters up to which the ends of a range are ticks; longer ones stand below the chart, wrapped."""
MAX_MAP_NAME = 14
"""Characters of a line of a name on the map: as many as fit to the right of its last cell on a phone."""
"""Where the bars of labels start, and the length of their axis, as fractions of the width."""


def percent(part: float) -> str:
    """Format a fraction of an axis as a percentage with at most two decimals."""
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def stacked(certificates: Sequence[Mapping[str, Any]]) -> Json:
    """Lay out one stacked bar of terms per certificate, on a common scale. A certificate without a bar states why."""
    longest = _longest_bound(certificates)
    bars = []
    for i, each in enumerate(certificates):
        why_not = VACUOUS if each["vacuous"] else TOO_LONG if each["bound"] > longest else None
        pieces = [] if why_not else _stacked_pieces(each, longest)
        bars.append({"top": i * CERTIFICATE_HEIGHT, "pieces": pieces, "why_not": why_not, "certificate": each})
    return {"height": len(certificates) * CERTIFICATE_HEIGHT - 14, "bars": bars}


def _stacked_pieces(certificate: Mapping[str, Any], longest: float) -> list[Json]:
    """Clip segments to between 0 and the bound: a noisy loss can be negative, and terms can add up to more than 1."""
    pieces, total = [], 0.0
    for term in sorted(certificate["terms"], key=lambda term: ROLE_ORDER.index(term["role"])):
        start, total = (min(max(x, 0.0), certificate["bound"]) for x in (total, total + term["value"]))
        if total > start:
            width = (total - start) / longest
            text = term["text"] if 100 * width >= MIN_LABELLED_PERCENT else None
            pieces.append(_piece(start / longest, width, term["role"], text))
    return pieces


def _longest_bound(certificates: Sequence[Mapping[str, Any]]) -> float:
    """Return the bound that fills the width: the largest, unless it is the path loss's and would dwarf the others."""
    bounds = {c["key"]: c["bound"] for c in certificates if not c["vacuous"]}
    others = max((bound for key, bound in bounds.items() if key != "path"), default=0.0)
    path = bounds.get("path", 0.0)
    return others if others and path > MAX_PATH_RATIO * others else max(path, others) or 1.0


def budget(privacy: Mapping[str, Any]) -> list[Json]:
    """Lay out one bar with a segment for each part of the budget."""
    pieces, start = [], 0.0
    for i, part in enumerate(privacy["spent"]):
        text = f"{privacy['sign']} {part['amount']}"
        fits = 100 * part["part"] >= MIN_LABELLED_PERCENT * max(1.0, len(text) / LABEL_CHARACTERS)
        pieces.append(_piece(start, part["part"], f"part{min(i, BUDGET_ROLES - 1)}", text if fits else None))
        start += part["part"]
    return pieces


def _piece(start: float, width: float, role: str, text: str | None) -> Json:
    return {
        "x": percent(start),
        "width": percent(width),
        "middle": percent(start + width / 2),
        "role": role,
        "text": text,
    }


def heat(pairs: Mapping[str, Any]) -> Json:
    """Lay out the lower triangle of all pairs, as wide as the page, with the names of columns along the diagonal.

    Many columns, or long names, have no room there: numbers stand on the diagonal, and a list gives their names.
    """
    names = pairs["columns"]
    numbered = len(names) <= MAX_NUMBERED_COLUMNS
    lines = [textwrap.wrap(name, MAX_MAP_NAME, break_long_words=False) for name in names]
    named = numbered and all(len(each) <= 2 and max(map(len, each), default=0) <= MAX_MAP_NAME for each in lines)
    high, wide = 30 if numbered else 16, 1 / (len(names) + (NAME_CELLS if numbered else 0))
    cells = [
        {
            "x": percent(column * wide),
            "y": row * high,
            "middle": percent((column + 0.5) * wide),
            "level": cell["level"],
            "text": cell["short"],
        }
        for cell in pairs["cells"]
        for column, row in [cell["places"]]
    ]
    squares: dict[int, list[str]] = {}
    for cell in pairs["cells"]:
        column, row = cell["places"]
        squares.setdefault(cell["level"], []).append(f"M{column} {row}h1v1h-1z")
    return {
        "height": len(names) * high,
        "high": high,
        "wide": percent(wide),
        "size": len(names),
        "named": named,
        "width_class": "few" if len(names) <= 5 else "several" if len(names) <= 8 else "many",
        "cells": cells if numbered else [],
        "squares": [] if numbered else [(level, "".join(squares[level])) for level in sorted(squares)],
        "names": [
            {"x": percent(i * wide), "y": i * high + high // 2, "text": name, "lines": lines[i], "number": i + 1}
            for i, name in enumerate(names)
        ],
    }


def lines(shown: Mapping[str, Any]) -> Json:
    """Lay out lines with marks; the chosen mechanism's line is drawn last, on top of the others."""
    drawn = [_line(line, MARK_PATHS[i % len(MARK_PATHS)], shown) for i, line in enumerate(shown["lines"])]
    _place_names(drawn)
    return {
        "height": LINES_BASE + 42,
        "base": LINES_BASE,
        "rules": [{"y": f"{_height_of(tick['at'], shown):.1f}", "label": tick["label"]} for tick in shown["ticks"]],
        "ticks": [{"x": percent(_place_of(k, shown)), "label": f"{k:,}"} for k in shown["resolutions"]],
        "lines": sorted(drawn, key=lambda line: line["chosen"]),
    }


def _line(line: Mapping[str, Any], mark: str, shown: Mapping[str, Any]) -> Json:
    spots = [(_place_of(p["resolution"], shown), _height_of(p["loss"], shown)) for p in line["points"]]
    return {
        "name": line["mechanism"],
        "mark": mark,
        "chosen": line["chosen"],
        "segments": [cut for a, b in itertools.pairwise(spots) if (cut := _clip_to_scale(a, b))],
        "marks": [
            {"x": percent(x), "y": f"{y:.1f}", "filled": p["rehearsals"] > 0, "label": _label(x, y, p)}
            for p, (x, y) in zip(line["points"], spots, strict=True)
            if y >= LINES_TOP - 0.5
        ],
        "end": spots[-1],
    }


def _place_of(resolution: int, shown: Mapping[str, Any]) -> float:
    """Return the horizontal position of a resolution on the logarithmic axis."""
    first, last = shown["resolutions"][0], shown["resolutions"][-1]
    part = math.log(resolution / first) / math.log(last / first)  # exactly 1 at the right
    return 1 - (1 - FIRST_MARK_INSET) * (1 - part)


def _height_of(loss: float, shown: Mapping[str, Any]) -> float:
    part = float(loss / shown["ticks"][-1]["at"])  # exactly 1 at the top
    return LINES_BASE - (LINES_BASE - LINES_TOP) * part


def _clip_to_scale(a: tuple[float, float], b: tuple[float, float]) -> Json | None:
    """Return the part of a segment that lies below the top of the chart, or None."""
    if min(a[1], b[1]) >= LINES_TOP:
        ends = (a, b)
    elif max(a[1], b[1]) <= LINES_TOP:
        return None
    else:
        leaves = a[0] + (b[0] - a[0]) * (LINES_TOP - a[1]) / (b[1] - a[1])
        ends = (a, (leaves, LINES_TOP)) if a[1] > LINES_TOP else ((leaves, LINES_TOP), b)
    (x1, y1), (x2, y2) = ends
    return {"x1": percent(x1), "y1": f"{y1:.1f}", "x2": percent(x2), "y2": f"{y2:.1f}"}


def _label(x: float, y: float, point: Mapping[str, Any]) -> Json | None:
    """Label the chosen mark with its loss: below it if there is room, where no better line passes."""
    if not point["chosen"]:
        return None
    return {
        "y": f"{y + 22 if y + 22 < LINES_BASE - 4 else y - 12:.1f}",
        "anchor": "start" if x < 0.3 else "end" if x > 0.7 else "middle",
        "text": point["loss_text"],
    }


def _place_names(drawn: Sequence[Json]) -> None:
    """Place names to the right of the lines, as near to their ends as possible without overlapping.

    Lines that leave the chart at the top come first.
    """
    ranked = sorted(drawn, key=lambda line: line["end"][1])
    places = [min(max(line["end"][1], LINES_TOP), LINES_BASE) for line in ranked]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + MIN_NAME_DISTANCE)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], LINES_BASE - MIN_NAME_DISTANCE * (len(places) - 1 - i))
    for line, place in zip(ranked, places, strict=True):
        x, y = line["end"]
        line["name_y"] = f"{place:.1f}"
        line["from_y"] = f"{y:.1f}" if y >= LINES_TOP and x == 1 else None


def share_scale(columns: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the ticks of the one axis on which the shares of all labels are drawn: round numbers from 0."""
    shapes = [column["spread"] for column in columns if column["spread"]["form"] == "bars"]
    bars = [bar for shape in shapes for bar in [*shape["bars"], *([shape["missing"]] if "missing" in shape else [])]]
    return round_ticks(max((bar["largest"] for bar in bars), default=1.0), most=1.0)


def round_ticks(largest: float, *, most: float = math.inf) -> list[float]:
    """Return round numbers from 0 up to the first that is at least `largest`, or to `most`.

    >>> round_ticks(0.63, most=1.0), round_ticks(0.072)
    ([0.0, 0.25, 0.5, 0.75], [0.0, 0.025, 0.05, 0.075])
    """
    step = numerals.step(largest / 3) if largest > 0 else 1.0
    ticks = [float(f"{i * step:.12g}") for i in range(math.ceil(largest / step * (1 - 1e-12)) + 1)]
    return [tick for tick in ticks if tick < most] + ([most] if ticks[-1] >= most else [])


def spread(column: Mapping[str, Any], scale: Sequence[float]) -> Json:
    """Lay out the chart of one column; missing values are set apart from the others. `scale`: ticks for labels."""
    shape = column["spread"]
    return _bars(shape, scale) if shape["form"] == "bars" else _histogram(shape)


def _bars(shape: Mapping[str, Any], scale: Sequence[float]) -> Json:
    missing = shape.get("missing")
    rows = []
    for bar in [*shape["bars"], *([missing] if missing else [])]:
        apart = bar is missing
        label = bar["label"]
        rows.append(
            {
                "apart": apart,
                "own_line": len(label) > MAX_LABEL_BESIDE_BAR,
                "width": percent(bar["share"] / scale[-1] * BARS_WIDTH),
                "least": percent(BARS_LEFT + bar["least"] / scale[-1] * BARS_WIDTH),
                "largest": percent(BARS_LEFT + bar["largest"] / scale[-1] * BARS_WIDTH),
                "after": percent(BARS_LEFT + 0.015 + bar["largest"] / scale[-1] * BARS_WIDTH),
                "label": label,
                "text": bar["share_text"],
                "role": "apart" if apart else "together" if bar.get("together") else "value",
            }
        )
    ticks = [{"x": percent(BARS_LEFT + tick / scale[-1] * BARS_WIDTH), "label": percent(tick)} for tick in scale]
    return {
        "form": "bars",
        "left": percent(BARS_LEFT),
        "rows": rows,
        "ticks": ticks,
    }


def _histogram(shape: Mapping[str, Any]) -> Json:
    """Lay out bars whose areas are shares: a bin cut off at the end of the range is narrower, not lower."""
    missing, mean = shape.get("missing"), shape.get("mean")
    room = 0.84 if missing else 1.0
    widths = sorted(b["to"] - b["from"] for b in shape["bins"])
    usual = widths[len(widths) // 2]
    heights = [b["share"] * usual / (b["to"] - b["from"]) for b in shape["bins"]]
    scale = round_ticks(max(heights + ([missing["share"]] if missing else [])) or 1.0)
    bins = [
        {"x": percent(b["from"] * room), "width": percent((b["to"] - b["from"]) * room), **_rising_bar(h / scale[-1])}
        for b, h in zip(shape["bins"], heights, strict=True)
        if h > 0
    ]
    ends = [shape["ticks"][i]["label"] for i in (0, -1)]
    below = max(map(len, ends)) > MAX_TICK_CHARACTERS
    ticks = [
        {"x": percent(t["at"] * room), "label": "" if below else t["label"], "anchor": _anchor(t["at"])}
        for t in shape["ticks"]
    ]
    base = HISTOGRAM_TOP + HISTOGRAM_HEIGHT
    under = base + MEAN_HEIGHT
    bottom = under + BAND_HEIGHT
    return {
        "form": "histogram",
        "height": bottom + (8 if below else 28),
        "ends": ends if below else None,
        "base": base,
        "under": under,
        "bottom": bottom,
        "end": percent(room),
        "bins": bins,
        "ticks": ticks,
        "shares": [
            {"y": f"{base - tick / scale[-1] * HISTOGRAM_HEIGHT:.1f}", "label": percent(tick)} for tick in scale
        ],
        "levels": [{"y": f"{bottom - level * BAND_HEIGHT:.1f}", "label": percent(level)} for level in (0, 0.5, 1)],
        "mean": mean and {key: percent(mean[key] * room) for key in ("at", "from", "to")},
        "missing": missing and _rising_bar(missing["share"] / scale[-1]) | {"text": missing["share_text"]},
        "band": _band(shape["band"]["steps"]) | {"width": percent(room)},
    }


def _band(steps: Sequence[Mapping[str, float]]) -> Json:
    """Return paths in a 1000 by 100 box: the band, rounded outward, and the line of the synthetic rows."""
    ends = [round(1000 * step["to"]) for step in steps]
    upper = [math.floor(10 * 100 * (1 - step["largest"])) / 10 for step in steps]
    lower = [math.ceil(10 * 100 * (1 - step["least"])) / 10 for step in steps]
    line = [round(100 * (1 - step["share"]), 1) for step in steps]
    back = [f"V{y:g}H{x}" for x, y in reversed(list(zip([0, *ends], lower, strict=False)))]
    return {"area": f"M0 {upper[0]:g}{_steps(upper, ends)}{''.join(back)}z", "line": f"M0 100{_steps(line, ends)}"}


def _steps(heights: Sequence[float], ends: Sequence[int]) -> str:
    return "".join(f"V{y:g}H{x}" for y, x in zip(heights, ends, strict=True))


def _rising_bar(part: float) -> Json:
    height = max(1.0, part * HISTOGRAM_HEIGHT) if part > 0 else 0.0
    return {"y": f"{HISTOGRAM_TOP + HISTOGRAM_HEIGHT - height:.1f}", "height": f"{height:.1f}"}


def _anchor(at: float) -> str:
    return "start" if at <= 0 else "end" if at >= 1 else "middle"
