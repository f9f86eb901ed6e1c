"""What the calculator of the page works on: counts of the synthetic values, column by column, and bounds of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from certsynth.domain import Category, Ordered
from certsynth.record.record import CertificateRecord
from certsynth.report import numerals
from certsynth.report.heap import Heap

MOST_TEXT = 200_000
"""Bytes of labels that all columns together carry into the page."""
LEAST_TEXT = 600
"""What a column may carry in any case."""

Json = dict[str, Any]


def line_numbers(column: Ordered, heap: Heap, bound: float) -> Json:
    """A column on a line; `bound` is what is promised of it."""
    return {
        **_common(column, bound, heap.rows, heap.absent),
        "line": True,
        "whole": column.whole,
        "low": column.low,
        "high": column.high,
        "per": heap.per,
        "codes": list(heap.codes),
        "counts": list(heap.counts),
        "moved": heap.moved,
        "labels": [numerals.text(v, most=40) or "(empty text)" for v in column.values],
    }


def label_numbers(column: Category, counts: Sequence[int], absent: int, bound: float) -> Json:
    """Labels with their counts, the most frequent first; `room_for` says how many the page can carry."""
    order = sorted(range(len(column.labels)), key=lambda i: (-counts[i], i))
    return {
        **_common(column, bound, int(sum(counts)) + absent, absent),
        "line": False,
        "closest": float(column.min_label_distance),
        "labels": [numerals.text(column.labels[i], most=40) or "(empty text)" for i in order],
        "counts": [int(counts[i]) for i in order],
        "left": 0,
    }


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
    """All that the calculator is given: `columns` are those drawn, the first of `names`."""
    room = max(MOST_TEXT // max(len(columns), 1), LEAST_TEXT)
    return {
        "confidence": numerals.confidence(certificate.confidence),
        "columns": [_cut(column, room) for column in columns],
        "pairs": pairs(certificate, names[: len(columns)]),
    }


def _cut(column: Json, room: int) -> Json:
    """Without the rarest labels of a category, where there are too many; those in an order go by their places then."""
    lengths = itertools.accumulate(len(label.encode()) + 12 for label in column["labels"])
    kept = sum(length <= room for length in lengths)
    if kept >= len(column["labels"]):
        return column
    if column["line"]:
        return column | {"labels": []}
    cut = {"labels": column["labels"][:kept], "counts": column["counts"][:kept]}
    return column | cut | {"left": len(column["labels"]) - kept}


def pairs(certificate: CertificateRecord, names: Sequence[str]) -> float | list[list[float]]:
    """The bound of each pair that a subset of the certificate holds: one number, if it is that of all pairs."""
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
