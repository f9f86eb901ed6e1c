"""A plain-text chart: marks above the positions of an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping

from certsynth.cli.words import upward

MARKS = "●○△×"
HEIGHT_LINES = 9
MIN_LOG_RANGE = math.log(1.5)  # from bottom to top, so that small differences look small

_SLOT_CHARACTERS = 7  # per position of the axis


def chart(series: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Draw a few series on a logarithmic scale, with a key to the marks.

    Returns no lines if there is only one position or one value. At each position every series has a column of its own,
    so that no mark hides another.
    """
    points = [(j, place, value) for j, values in enumerate(series.values()) for place, value in values.items()]
    points = [(j, place, math.log(value)) for j, place, value in points if value > 0]
    places = sorted({place for _, place, _ in points})
    heights = {height for _, _, height in points}
    if len(places) < 2 or len(heights) < 2:
        return []
    low, step = min(heights), max(max(heights) - min(heights), MIN_LOG_RANGE) / (HEIGHT_LINES - 1)
    field = [[" "] * (_SLOT_CHARACTERS * len(places) + 1) for _ in range(HEIGHT_LINES)]
    for j, place, height in points:
        field[round((height - low) / step)][1 + _SLOT_CHARACTERS * places.index(place) + j] = MARKS[j]
    levels = [(min(1.0, math.exp(low + i * step)), "".join(field[i])) for i in reversed(range(HEIGHT_LINES))]
    axis = "".join(str(place).ljust(_SLOT_CHARACTERS) for place in places)
    key = "   ".join(f"{mark} {name}" for mark, name in zip(MARKS, series, strict=False))
    return [
        *(f"  {upward(level)} │{marks}".rstrip() for level, marks in levels),
        f"  {'':6} └{'─' * (_SLOT_CHARACTERS * len(places))}",
        f"  {'':6}   {axis}".rstrip(),
        f"  {'':6}   {key}",
    ]
