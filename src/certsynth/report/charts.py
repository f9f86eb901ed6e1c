"""Where the marks of a chart go. Numbers only: the template writes the SVG, so that every text is escaped there.

Charts are as wide as the page leaves room for, so horizontal places are percentages and texts keep their size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

BLOCK = 60
"""Height of one certificate in the chart of terms."""
VACUOUS = "no bar: a bound of 1 says nothing"
TOO_LONG = "no bar: too long for this scale"
LABELLED = 13.0
"""A piece of a bar gets its number written into it from this many per cent on."""
LETTERS = 7
"""A longer number needs a longer piece."""
PARTS = 6
"""Kinds of pieces that can be told apart in the bar of the budget; more than that are hardly ever spent on."""
FAR = 2.5
"""A bar with the path loss that is longer than this many times the others is left out."""
ORDER = ("rows", "noise", "cells")
"""What a bar is made of, from the left: the distances can be compared."""
NUMBERED = 12
"""Columns up to which the map has numbers in its cells."""
TOP, BASE = 24, 244
"""Heights at which the chart of lines ends and begins."""
INSET = 0.04
"""The first mark of a line stands so far from the axis."""
APART = 17
"""Least distance of the names at the ends of lines."""
MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-5l5 5l-5 5l-5-5z",
    "M0-4.8l4.8 8h-9.6z",
    "M0 4.8l4.8-8h-9.6z",
    "M-5-2.2h10v4.4h-10z",
)
"""A shape for each line, around the origin, so that lines need no colours."""
HIGH, UNDER, ROW = 88, 72, 24
"""Heights of a histogram, of the band under it, and of one bar of a category."""


def percent(part: float) -> str:
    """A place on an axis, short and always the same."""
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def stacked(certificates: Sequence[Mapping[str, Any]]) -> Json:
    """Bars of terms, all to one scale and in one order. What has no bar says why."""
    longest = _longest(certificates)
    bars = []
    for i, each in enumerate(certificates):
        why_not = VACUOUS if each["vacuous"] else TOO_LONG if each["bound"] > longest else None
        pieces = [] if why_not else _stack(each, longest)
        bars.append({"top": i * BLOCK, "pieces": pieces, "why_not": why_not, "certificate": each})
    return {"height": len(certificates) * BLOCK - 14, "bars": bars}


def _stack(certificate: Mapping[str, Any], longest: float) -> list[Json]:
    """A noisy loss can be negative, and terms can add up to more than 1: pieces lie between 0 and the bound."""
    pieces, total = [], 0.0
    for term in sorted(certificate["terms"], key=lambda term: ORDER.index(term["role"])):
        start, total = (min(max(x, 0.0), certificate["bound"]) for x in (total, total + term["value"]))
        if total > start:
            width = (total - start) / longest
            text = term["text"] if 100 * width >= LABELLED else None
            pieces.append(_piece(start / longest, width, term["role"], text))
    return pieces


def _longest(certificates: Sequence[Mapping[str, Any]]) -> float:
    """The bound that fills the width: the largest, unless it is that of the path loss and would hide the others."""
    bounds = {c["key"]: c["bound"] for c in certificates if not c["vacuous"]}
    others = max((bound for key, bound in bounds.items() if key != "path"), default=0.0)
    path = bounds.get("path", 0.0)
    return others if others and path > FAR * others else max(path, others) or 1.0


def budget(privacy: Mapping[str, Any]) -> list[Json]:
    """One bar, cut into what was spent on what."""
    pieces, start = [], 0.0
    for i, part in enumerate(privacy["spent"]):
        text = f"{privacy['sign']} {part['amount']}"
        fits = 100 * part["part"] >= LABELLED * max(1.0, len(text) / LETTERS)
        pieces.append(_piece(start, part["part"], f"part{min(i, PARTS - 1)}", text if fits else None))
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
    """The lower triangle of all pairs, as wide as the page: rows have names, and the diagonal has their numbers."""
    names = pairs["columns"]
    numbered = len(names) <= NUMBERED
    high, wide = 30 if numbered else 16, 1 / len(names)
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
        "numbered": numbered,
        "width_class": "few" if len(names) <= 5 else "several" if len(names) <= 8 else "many",
        "cells": cells if numbered else [],
        "squares": [] if numbered else [(level, "".join(squares[level])) for level in sorted(squares)],
        "names": [
            {"x": percent(i * wide), "y": i * high + high // 2, "text": name, "number": i + 1}
            for i, name in enumerate(names)
        ],
    }


def lines(shown: Mapping[str, Any]) -> Json:
    """Lines with marks; the one that was chosen is drawn last, on top of the others."""
    drawn = [_line(line, MARKS[i % len(MARKS)], shown) for i, line in enumerate(shown["lines"])]
    _name_the_ends(drawn)
    return {
        "height": BASE + 42,
        "base": BASE,
        "rules": [{"y": f"{_up(tick['at'], shown):.1f}", "label": tick["label"]} for tick in shown["ticks"]],
        "ticks": [{"x": percent(_across(k, shown)), "label": f"{k:,}"} for k in shown["resolutions"]],
        "lines": sorted(drawn, key=lambda line: line["chosen"]),
    }


def _line(line: Mapping[str, Any], mark: str, shown: Mapping[str, Any]) -> Json:
    spots = [(_across(p["resolution"], shown), _up(p["loss"], shown)) for p in line["points"]]
    return {
        "name": line["mechanism"],
        "mark": mark,
        "chosen": line["chosen"],
        "segments": [cut for a, b in itertools.pairwise(spots) if (cut := _below_the_top(a, b))],
        "marks": [
            {"x": percent(x), "y": f"{y:.1f}", "filled": p["rehearsals"] > 0, "label": _label(x, y, p)}
            for p, (x, y) in zip(line["points"], spots, strict=True)
            if y >= TOP - 0.5
        ],
        "end": spots[-1],
    }


def _across(resolution: int, shown: Mapping[str, Any]) -> float:
    """Place on the axis of resolutions, which is logarithmic: they grow by factors."""
    first, last = shown["resolutions"][0], shown["resolutions"][-1]
    part = math.log(resolution / first) / math.log(last / first)  # exactly 1 at the right
    return 1 - (1 - INSET) * (1 - part)


def _up(loss: float, shown: Mapping[str, Any]) -> float:
    part = float(loss / shown["ticks"][-1]["at"])  # exactly 1 at the top
    return BASE - (BASE - TOP) * part


def _below_the_top(a: tuple[float, float], b: tuple[float, float]) -> Json | None:
    """The part of a segment that is on the scale."""
    if min(a[1], b[1]) >= TOP:
        ends = (a, b)
    elif max(a[1], b[1]) <= TOP:
        return None
    else:
        leaves = a[0] + (b[0] - a[0]) * (TOP - a[1]) / (b[1] - a[1])
        ends = (a, (leaves, TOP)) if a[1] > TOP else ((leaves, TOP), b)
    (x1, y1), (x2, y2) = ends
    return {"x1": percent(x1), "y1": f"{y1:.1f}", "x2": percent(x2), "y2": f"{y2:.1f}"}


def _label(x: float, y: float, point: Mapping[str, Any]) -> Json | None:
    """What is written at the chosen mark: under it, where there is room and no better line."""
    if not point["chosen"]:
        return None
    return {
        "y": f"{y + 22 if y + 22 < BASE - 4 else y - 12:.1f}",
        "anchor": "start" if x < 0.3 else "end" if x > 0.7 else "middle",
        "text": point["loss_text"],
    }


def _name_the_ends(drawn: Sequence[Json]) -> None:
    """Names right of the lines, as near to their ends as they can be without touching; lines that left come first."""
    ranked = sorted(drawn, key=lambda line: line["end"][1])
    places = [min(max(line["end"][1], TOP), BASE) for line in ranked]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + APART)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], BASE - APART * (len(places) - 1 - i))
    for line, place in zip(ranked, places, strict=True):
        x, y = line["end"]
        line["name_y"] = f"{place:.1f}"
        line["from_y"] = f"{y:.1f}" if y >= TOP and x == 1 else None


def spread(column: Mapping[str, Any]) -> Json:
    """The picture of one column; a missing value stands apart from the others."""
    shape = column["spread"]
    return _bars(shape) if shape["form"] == "bars" else _histogram(shape)


def _bars(shape: Mapping[str, Any]) -> Json:
    missing = shape.get("missing")
    largest = max([b["largest"] for b in shape["bars"]] + ([missing["largest"]] if missing else [])) or 1.0
    rows = []
    for i, bar in enumerate([*shape["bars"], *([missing] if missing else [])]):
        apart = bar is missing
        width = bar["share"] / largest * 0.46
        label = bar["label"]
        rows.append(
            {
                "y": i * ROW + (8 if apart else 0),
                "width": percent(width),
                "least": percent(0.37 + bar["least"] / largest * 0.46),
                "largest": percent(0.37 + bar["largest"] / largest * 0.46),
                "after": percent(0.385 + bar["largest"] / largest * 0.46),
                "label": label if len(label) <= 19 else label[:18] + "…",
                "text": bar["share_text"],
                "role": "apart" if apart else "together" if bar.get("together") else "value",
            }
        )
    return {"form": "bars", "height": len(rows) * ROW + (8 if missing else 0), "rows": rows}


def _histogram(shape: Mapping[str, Any]) -> Json:
    """Bars whose areas are shares: a bin that is cut off at the end of the range is narrower, not lower."""
    missing, mean = shape.get("missing"), shape.get("mean")
    room = 0.84 if missing else 1.0
    widths = sorted(b["to"] - b["from"] for b in shape["bins"])
    usual = widths[len(widths) // 2]
    heights = [b["share"] * usual / (b["to"] - b["from"]) for b in shape["bins"]]
    tallest = max(heights + ([missing["share"]] if missing else [])) or 1.0
    bins = [
        {"x": percent(b["from"] * room), "width": percent((b["to"] - b["from"]) * room), **_standing(h / tallest)}
        for b, h in zip(shape["bins"], heights, strict=True)
        if h > 0
    ]
    ticks = [{"x": percent(t["at"] * room), "label": t["label"], "anchor": _anchor(t["at"])} for t in shape["ticks"]]
    return {
        "form": "histogram",
        "height": HIGH + UNDER + 46,
        "base": HIGH,
        "under": HIGH + 18,
        "bottom": HIGH + 18 + UNDER,
        "end": percent(room),
        "bins": bins,
        "ticks": ticks,
        "mean": mean and {key: percent(mean[key] * room) for key in ("at", "from", "to")},
        "missing": missing and _standing(missing["share"] / tallest) | {"text": missing["share_text"]},
        "band": _band(shape["band"]["steps"]) | {"width": percent(room)},
    }


def _band(steps: Sequence[Mapping[str, float]]) -> Json:
    """Paths in a box of 1000 by 100: the band, never too narrow, and the line of the synthetic rows."""
    ends = [round(1000 * step["to"]) for step in steps]
    upper = [math.floor(10 * 100 * (1 - step["largest"])) / 10 for step in steps]
    lower = [math.ceil(10 * 100 * (1 - step["least"])) / 10 for step in steps]
    line = [round(100 * (1 - step["share"]), 1) for step in steps]
    back = [f"V{y:g}H{x}" for x, y in reversed(list(zip([0, *ends], lower, strict=False)))]
    return {"area": f"M0 {upper[0]:g}{_steps(upper, ends)}{''.join(back)}z", "line": f"M0 100{_steps(line, ends)}"}


def _steps(heights: Sequence[float], ends: Sequence[int]) -> str:
    return "".join(f"V{y:g}H{x}" for y, x in zip(heights, ends, strict=True))


def _standing(part: float) -> Json:
    height = max(1.0, part * (HIGH - 2)) if part > 0 else 0.0
    return {"y": f"{HIGH - height:.1f}", "height": f"{height:.1f}"}


def _anchor(at: float) -> str:
    return "start" if at <= 0 else "end" if at >= 1 else "middle"
