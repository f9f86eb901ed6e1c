"""A chart in plain text: marks above the places of an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping

from certsynth.cli.words import upward

MARKS = "●○△×"
HEIGHT = 9
LEAST = math.log(1.5)  # from bottom to top: smaller differences should look small

_SLOT = 7  # characters for each place on the axis


def chart(series: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Values of a few series over the places where they are known, on a logarithmic scale, with a key to the marks.

    Nothing where there is nothing to see: one place, or one value. Each series has a column of its own beside each
    place, so that no mark hides another.
    """
    points = [(j, place, value) for j, values in enumerate(series.values()) for place, value in values.items()]
    points = [(j, place, math.log(value)) for j, place, value in points if value > 0]
    places = sorted({place for _, place, _ in points})
    heights = {height for _, _, height in points}
    if len(places) < 2 or len(heights) < 2:
        return []
    low, step = min(heights), max(max(heights) - min(heights), LEAST) / (HEIGHT - 1)
    field = [[" "] * (_SLOT * len(places) + 1) for _ in range(HEIGHT)]
    for j, place, height in points:
        field[round((height - low) / step)][1 + _SLOT * places.index(place) + j] = MARKS[j]
    levels = [(min(1.0, math.exp(low + i * step)), "".join(field[i])) for i in reversed(range(HEIGHT))]
    axis = "".join(str(place).ljust(_SLOT) for place in places)
    key = "   ".join(f"{mark} {name}" for mark, name in zip(MARKS, series, strict=False))
    return [
        *(f"  {upward(level)} │{marks}".rstrip() for level, marks in levels),
        f"  {'':6} └{'─' * (_SLOT * len(places))}",
        f"  {'':6}   {axis}".rstrip(),
        f"  {'':6}   {key}",
    ]
