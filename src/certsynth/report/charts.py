"""Where the marks of a chart go. Numbers only: the template writes the SVG, so that every text is escaped there.

Charts are as wide as the page leaves room for, so horizontal places are percentages and texts keep their size; the
map alone has a width of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

BLOCK = 60
"""Height of one certificate in the chart of terms."""
VACUOUS = "no bar: a bound of 1 says nothing"
TOO_LONG = "no bar: too long for this scale"
LABELLED = 13.0
"""A piece of a bar gets its number written into it from this many per cent on."""
FAR = 2.5
"""A bar with the path loss that is longer than this many times the others is left out."""
ORDER = ("rows", "noise", "cells")
"""What a bar is made of, from the left: the distances can be compared."""
MAP_WIDTH = 600
NUMBERED = 12
"""Columns up to which the map has numbers in its cells."""
HIGH, ROW = 88, 24
"""Heights of a histogram, and of one bar of a category."""


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


def budget(spent: Sequence[Mapping[str, Any]]) -> list[Json]:
    """One bar, cut into what was spent on what."""
    pieces, start = [], 0.0
    for i, part in enumerate(spent):
        text = f"ε {part['epsilon']}" if 100 * part["part"] >= LABELLED else None
        pieces.append(_piece(start, part["part"], f"part{min(i, 3)}", text))
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
    """The lower triangle of all pairs. Names stand on the diagonal: each is that of its row and of its column."""
    names = pairs["columns"]
    numbered = len(names) <= NUMBERED
    small = max(8, min(14, MAP_WIDTH // len(names)))
    width, height = (60, 34) if numbered else (small, small)
    cells: list[Json] = []
    squares: dict[int, list[str]] = {}
    for cell in pairs["cells"]:
        column, row = cell["places"]
        x, y = column * width, row * height
        cells.append({"x": x, "y": y, "level": cell["level"], "text": cell["text"]})
        squares.setdefault(cell["level"], []).append(f"M{x} {y}h{width - 2}v{height - 2}h{2 - width}z")
    room = max(max(map(len, names)) * 8 + 16, 60)
    return {
        "width": (len(names) - 1) * width + room,
        "height": len(names) * height,
        "cell_width": width - 2,
        "cell_height": height - 2,
        "numbered": numbered,
        "cells": cells if numbered else [],
        "squares": [] if numbered else [(level, "".join(squares[level])) for level in sorted(squares)],
        "names": [{"x": i * width + 6, "y": i * height + height // 2, "text": n} for i, n in enumerate(names)],
    }


def spread(column: Mapping[str, Any]) -> Json:
    """The picture of one column; a missing value stands apart from the others."""
    shape = column["spread"]
    return _bars(shape) if shape["form"] == "bars" else _histogram(shape)


def _bars(shape: Mapping[str, Any]) -> Json:
    missing = shape.get("missing")
    largest = max([b["share"] for b in shape["bars"]] + ([missing["share"]] if missing else [])) or 1.0
    rows = []
    for i, bar in enumerate([*shape["bars"], *([missing] if missing else [])]):
        apart = bar is missing
        width = bar["share"] / largest * 0.46
        label = bar["label"]
        rows.append(
            {
                "y": i * ROW + (8 if apart else 0),
                "width": percent(width),
                "after": percent(0.385 + width),
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
        "height": HIGH + 36,
        "base": HIGH,
        "end": percent(room),
        "bins": bins,
        "ticks": ticks,
        "mean": mean and {key: percent(mean[key] * room) for key in ("at", "from", "to")},
        "missing": missing and _standing(missing["share"] / tallest) | {"text": missing["share_text"]},
    }


def _standing(part: float) -> Json:
    height = max(1.0, part * (HIGH - 2)) if part > 0 else 0.0
    return {"y": f"{HIGH - height:.1f}", "height": f"{height:.1f}"}


def _anchor(at: float) -> str:
    return "start" if at <= 0 else "end" if at >= 1 else "middle"
