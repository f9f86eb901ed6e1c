"""The data of the report's calculator: counts of the synthetic values of each column, and bounds of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from certsynth.domain import Category, Ordered
from certsynth.record.record import CertificateRecord
from certsynth.report import numerals
from certsynth.report.binned_counts import BinnedCounts
from certsynth.report.cell_counts import CellCounts

MAX_LABEL_BYTES = 200_000
"""Bytes of labels in the page, for all columns together: it keeps the page small enough to open quickly."""
MIN_COLUMN_LABEL_BYTES = 600
"""Bytes of labels that every column may use, however many columns there are."""

Json = dict[str, Any]


def line_numbers(column: Ordered, binned: BinnedCounts, bound: float, cells: CellCounts | None = None) -> Json:
    """Return the calculator's data for an ordered column with this certified bound."""
    values = binned.codes if column.whole and not binned.moved else ()
    alike = cells is not None and list(cells.first) == list(cells.last) == list(values)
    return {
        **_common(column, bound, binned.rows, binned.absent),
        "line": True,
        "whole": column.whole,
        "low": column.low,
        "high": column.high,
        "per": binned.per,
        "codes": list(binned.codes),
        "counts": list(binned.counts),
        "moved": binned.moved,
        "slack": binned.slack,
        "share": 1.0 if cells is None else cells.error,
        "cells": None if cells is None or alike else _listed(column, cells),
        "labels": [numerals.text(v, most=40) or "(empty text)" for v in column.values],
    }


def label_numbers(column: Category, counts: Sequence[int], absent: int, bound: float) -> Json:
    """Return the calculator's data for a categorical column: its labels with their counts, most frequent first."""
    order = sorted(range(len(column.labels)), key=lambda i: (-counts[i], i))
    return {
        **_common(column, bound, int(sum(counts)) + absent, absent),
        "line": False,
        "closest": float(column.min_label_distance),
        "labels": [numerals.text(column.labels[i], most=40) or "(empty text)" for i in order],
        "counts": [int(counts[i]) for i in order],
        "left": 0,
    }


def _listed(column: Ordered, cells: CellCounts) -> list[list[float]]:
    """Return first and last value and number of rows of each cell."""
    kind = int if column.whole else float
    return [
        [kind(first), kind(last), int(count)]
        for first, last, count in zip(cells.first, cells.last, cells.counts, strict=True)
    ]


def _common(column: Ordered | Category, bound: float, rows: int, absent: int) -> Json:
    return {
        "name": numerals.text(column.name),
        "kind": column.kind,
        "weight": float(column.weight),
        "missing": column.missing,
        "bound": bound,
        "rows": rows,
        "absent": absent,
    }


def calculator_view(certificate: CertificateRecord, names: Sequence[str], columns: Sequence[Json]) -> Json:
    """Return all data of the calculator; `columns` are the columns that are drawn, the first of `names`."""
    room = max(MAX_LABEL_BYTES // max(len(columns), 1), MIN_COLUMN_LABEL_BYTES)
    return {
        "confidence": numerals.confidence(certificate.confidence),
        "columns": [_drop_rarest_labels(column, room) for column in columns],
        "pairs": pair_bounds(certificate, names[: len(columns)]),
    }


def _drop_rarest_labels(column: Json, room: int) -> Json:
    """Drop the rarest labels of a category that exceed `room` bytes; an ordered column then shows positions instead."""
    lengths = itertools.accumulate(len(label.encode()) + 12 for label in column["labels"])
    kept = sum(length <= room for length in lengths)
    if kept >= len(column["labels"]):
        return column
    if column["line"]:
        return column | {"labels": []}
    cut = {"labels": column["labels"][:kept], "counts": column["counts"][:kept]}
    return column | cut | {"left": len(column["labels"]) - kept}


def pair_bounds(certificate: CertificateRecord, names: Sequence[str]) -> float | list[list[float]]:
    """Return the bound of each pair that a certified subset contains: one number if all pairs have the same."""
    place = {name: i for i, name in enumerate(names)}
    found: dict[tuple[int, int], float] = {}
    for subset in certificate.subsets:
        there = sorted(place[name] for name in subset.columns if name in place)
        for pair in itertools.combinations(there, 2):
            found[pair] = min(found.get(pair, 1.0), subset.bound)
    values = set(found.values())
    if len(values) == 1 and len(found) == len(names) * (len(names) - 1) // 2:
        return values.pop()
    return [[i, j, bound] for (i, j), bound in sorted(found.items())]
