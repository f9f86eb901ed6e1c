"""Small pictures of the pairs of columns that depend on each other most: crosstabs, and means of groups with whiskers.

Dependence is that of the synthetic rows: Cramér's V of the pair's crosstab, corrected for chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from certsynth.answers.basis import span
from certsynth.answers.crosstabs import Ranges
from certsynth.domain import Ordered
from certsynth.report import numerals
from certsynth.report.pair_answers import PairAnswer, PairAnswers, label_of, said_mean, said_share

MAX_PICTURES = 6
"""Pairs that are drawn."""
MIN_DEPENDENCE = 0.1
"""Cramér's V from which a pair is drawn: below, a picture shows hardly more than the two columns do."""
MIN_SHARE = 0.01
"""Share of rows from which a label or range counts for dependence: a few rows would make any pair look dependent."""
MAX_GROUPS = 16
MAX_CROSSTAB_COLUMNS = 6
"""Groups of a picture of means and rows of a crosstab, and columns of a crosstab: pairs with more are not drawn."""
SHADES = 6
"""Shades of the cells of a crosstab."""

Json = dict[str, Any]


def small_multiples(pairs: PairAnswers) -> list[Json]:
    """Return a picture of each of the pairs that depend on each other most, the most dependent first."""
    ranked = sorted(((-_dependence(pairs, *at), at) for at in pairs.pairs), key=lambda each: (each[0], each[1]))
    found: list[Json] = []
    for less, (i, j) in ranked:
        if -less < MIN_DEPENDENCE or len(found) == MAX_PICTURES:
            break
        picture = _picture(pairs, i, j, pairs.pairs[i, j])
        if picture is not None:
            found.append(picture | {"dependence": -less, "dependence_text": f"{-less:.2f}"})
    return found


def _dependence(pairs: PairAnswers, i: int, j: int) -> float:
    """Cramér's V of two columns in the synthetic rows, by their labels or single ranges, corrected for chance: rarely
    above 0 for independent columns, whose χ² has mean f and variance 2 f, with f its degrees of freedom."""
    cells = pairs.pairs[i, j].shares.estimate[np.ix_(pairs.bins(i), pairs.bins(j))]
    cells = cells[cells.sum(axis=1) >= MIN_SHARE][:, cells.sum(axis=0) >= MIN_SHARE]
    if min(cells.shape, default=0) < 2:
        return 0.0
    cells = cells / cells.sum()
    expected = np.outer(cells.sum(axis=1), cells.sum(axis=0))
    square = float(((cells - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum())
    freedom = (cells.shape[0] - 1) * (cells.shape[1] - 1)
    by_chance = (freedom + 3 * math.sqrt(2 * freedom)) / pairs.sides[i].basis.size
    return math.sqrt(max(0.0, square - by_chance) / (min(cells.shape) - 1))


def _picture(pairs: PairAnswers, i: int, j: int, found: PairAnswer) -> Json | None:
    """Means of a column with numbers in the groups of the other, or else a crosstab; None if it would be too large."""
    for groups, line, means in ((i, j, found.mean_of_second), (j, i, found.mean_of_first)):
        column = pairs.sides[line].column
        if means is None or not isinstance(column, Ordered) or column.kind == "ordinal":
            continue
        if len(pairs.bins(groups)) <= MAX_GROUPS:
            return _means(pairs, groups, column, means)
    rows, columns = (i, j) if len(pairs.bins(i)) >= len(pairs.bins(j)) else (j, i)
    if len(pairs.bins(rows)) > MAX_GROUPS or len(pairs.bins(columns)) > MAX_CROSSTAB_COLUMNS:
        return None
    return _crosstab(pairs, rows, columns, found.shares, turned=rows != i)


def _labels(pairs: PairAnswers, i: int) -> list[str]:
    side = pairs.sides[i]
    return [label_of(side.column, side.sets[k]) for k in pairs.bins(i)]


def _name(pairs: PairAnswers, i: int) -> str:
    return numerals.text(pairs.sides[i].column.title)


def _means(pairs: PairAnswers, groups: int, column: Ordered, means: Ranges) -> Json:
    """Return the mean of each group on one axis, which ends where the ranges of the real means do."""
    each = [means.at(k) for k in pairs.bins(groups)]
    said = [None if math.isnan(mean[0]) else said_mean(column, *mean) for mean in each]
    known = [mean for mean, text in zip(each, said, strict=True) if text is not None and not text.nothing]
    least, most = min((low for _, low, _ in known), default=0.0), max((high for *_, high in known), default=1.0)
    if not least < most:
        least, most = 0.0, 1.0

    def at(place: float) -> float:
        return min(1.0, max(0.0, (place - least) / (most - least)))

    rows = [
        {
            "label": label,
            "at": None if text is None else at(mean[0]),
            "from": None if text is None else at(mean[1]),
            "to": None if text is None else at(mean[2]),
            "estimate": "–" if text is None else _nice(text.estimate),
            "range": "no value" if text is None else _range(text),
        }
        for label, mean, text in zip(_labels(pairs, groups), each, said, strict=True)
    ]
    ends = [_end(column, place) for place in (least, most)]
    of = numerals.text(column.title) + (f" ({numerals.text(column.naming.unit)})" if column.naming.unit else "")
    return {
        "form": "means",
        "title": f"Mean of {of} by {_name(pairs, groups)}",
        "groups": _name(pairs, groups),
        "ends": ends,
        "rows": rows,
    }


def _end(column: Ordered, place: float) -> str:
    """The value at an end of the axis, rounded."""
    if column.clock is not None:
        return said_mean(column, place, place, place).estimate
    return numerals.plain(float(f"{column.low + place * span(column):.3g}"))


def _crosstab(pairs: PairAnswers, rows: int, columns: int, found: Ranges, *, turned: bool) -> Json:
    """Return the share of each cell, darker if it is larger, and where the real share lies."""
    cells = [[found.at(*((b, a) if turned else (a, b))) for b in pairs.bins(columns)] for a in pairs.bins(rows)]
    largest = max(estimate for row in cells for estimate, *_ in row) or 1.0
    return {
        "form": "crosstab",
        "title": f"{_name(pairs, rows)} × {_name(pairs, columns)}",
        "groups": _name(pairs, rows),
        "columns": _labels(pairs, columns),
        "rows": [
            {"label": label, "cells": [_cell(cell, largest) for cell in row]}
            for label, row in zip(_labels(pairs, rows), cells, strict=True)
        ],
    }


def _cell(cell: Sequence[float], largest: float) -> Json:
    estimate, low, high = cell
    said = said_share(estimate, low, high)
    level = min(SHADES - 1, int(SHADES * estimate / largest))
    return {"estimate": f"{said.estimate}%", "range": f"{said.low}–{said.high}%", "level": level}


def _range(said: Any) -> str:
    return "nothing is certified" if said.nothing else f"{_nice(said.low)} to {_nice(said.high)}"


def _nice(number: str) -> str:
    """A number with separators of thousands and a minus sign; dates stay as they are."""
    whole, point, digits = number.partition(".")
    if not whole.removeprefix("-").isdecimal():
        return number
    return f"{int(whole):,}".replace("-", "−") + point + digits if whole != "-0" else f"−0{point}{digits}"
