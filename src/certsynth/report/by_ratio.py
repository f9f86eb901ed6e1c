"""The report's view of a column that is compared by ratios: an axis of ranks, with values as ticks and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from certsynth.answers.places import scale
from certsynth.base.arrays import Ints
from certsynth.domain import Ordered
from certsynth.domain.ratios import precision
from certsynth.report import numerals

TICK_ROOM = 0.17
"""Least distance between ticks, as a share of the axis."""

Json = dict[str, Any]


def ranks(column: Ordered) -> Ordered:
    """The column as an ordered list of its values: distances, shares and quantiles are the same."""
    values = tuple(map(numerals.plain, column.grid))
    last = len(values) - 1
    line = Ordered(column.name, column.missing, column.weight, kind="ordinal", low=0, high=last, values=values)
    return replace(line, naming=column.naming)


def mean_range(
    column: Ordered, average: float, bound: float, ends: Sequence[float] | None, *, present: float
) -> tuple[float, float]:
    """Return the range of the mean of the real rows, in the column's own units.

    Values change by at most `scale` over a distance of 1. `present` is the share of synthetic rows with a value; see
    `columns._mean`. `ends`: the range on a line of length 1, if other bounds of the certificate give one.
    """
    part = bound if not column.missing else bound / (present - bound) if present > bound else math.inf
    off = part * scale(column) * float(column.weight)
    low, high = max(float(column.low), average - off), min(float(column.high), average + off)
    if ends is not None:
        length = float(column.high) - float(column.low)
        low, high = max(low, column.low + ends[0] * length), min(high, column.low + ends[1] * length)
    return low, high


def mean_mark(column: Ordered, average: float, ends: tuple[float, float]) -> Json:
    """Return the position of the mean on the axis, and the certified range of the real mean."""
    at, low, high = (_position(column, value) for value in (average, *ends))
    return {"at": at, "from": low, "to": high}


def average_of(column: Ordered, offsets: Ints) -> float | None:
    """Return the mean of the values with these ranks, correctly rounded."""
    return math.fsum(column.figures_at(offsets).tolist()) / len(offsets) if len(offsets) else None


def ticks(column: Ordered) -> list[Json]:
    """Return the ends of the range, 0, and powers of ten that are not close to these."""
    largest = max(abs(column.low), abs(column.high))
    powers = [10.0**k for k in range(math.ceil(math.log10(largest)), math.floor(math.log10(largest)) - 40, -1)]
    shown = [(0.0, numerals.plain(column.low)), (1.0, numerals.plain(column.high))]
    for value in (0.0, *powers, *(-power for power in powers)):
        at = _position(column, value)
        if column.low < value < column.high and all(abs(at - other) > TICK_ROOM for other, _ in shown):
            shown.append((at, numerals.plain(value)))
    return [{"at": at, "label": label} for at, label in sorted(shown)]


def explanation(columns: Sequence[Ordered]) -> str:
    """Explain what it means that some columns are compared by ratios; empty if there are none."""
    if not columns:
        return ""
    return (
        "Some columns are compared by ratios, as the schema says (scale = “log”): "
        f"{'; '.join(map(_gaps, columns))}. Real values were rounded to the nearest of these. The certificate speaks "
        "of the rounded values, and their distances are the numbers of values between them, divided by the largest: "
        "errors are small relative to a value, not to the range, and means, which depend on the largest values, are "
        "less certain."
    )


def _gaps(column: Ordered) -> str:
    """Say how many values exist, and how far they are apart."""
    least, share = precision(column.grid)
    return (
        f"neighbouring ones of the {len(column.grid):,} values of {numerals.text(column.name)} differ by "
        f"{numerals.plain(float(f'{least:.4g}'))}, or by at most {numerals.points(share)}%"
    )


def _position(column: Ordered, value: float) -> float:
    """The place of a value on an axis on which every rank has a width."""
    rank = float(np.interp(value, np.array(column.grid), np.arange(len(column.grid))))
    return (rank + 0.5) / len(column.grid)
