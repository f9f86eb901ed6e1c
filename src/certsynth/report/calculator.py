"""The data of the report's calculator: counts of the synthetic values of each column, and bounds of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from certsynth.answers.basis import Basis
from certsynth.answers.lattices import off_lattice
from certsynth.domain import Category, Ordered
from certsynth.queries.fine import DEFAULT_STEPS
from certsynth.record.record import CertificateRecord
from certsynth.report import numerals
from certsynth.report.binned_counts import BinnedCounts
from certsynth.report.cell_counts import PLACES, CertifiedCells
from certsynth.report.group_means import group_means

MAX_LABEL_BYTES = 200_000
"""Bytes of labels in the page, for all columns together: it keeps the page small enough to open quickly."""
MIN_COLUMN_LABEL_BYTES = 600
"""Bytes of labels that every column may use, however many columns there are."""

Json = dict[str, Any]


def line_numbers(column: Ordered, binned: BinnedCounts, bound: float, cells: CertifiedCells | None = None) -> Json:
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
        "off": off_lattice(column, column.lattice(DEFAULT_STEPS[2])),
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
        "order": order,
        "left": 0,
    }


def _listed(column: Ordered, cells: CertifiedCells) -> list[int]:
    """Return for each cell its distance from the end of the previous one, its length and its number of rows, in turn.

    Whole values are offsets; places of numbers are in multiples of 1/PLACES.
    """
    unit = 1 if column.whole else PLACES
    first, last = (np.round(ends * unit).astype(np.int64) for ends in (cells.first, cells.last))
    gaps = first - np.append(0, last[:-1])
    return [int(x) for cell in zip(gaps, last - first, cells.counts, strict=True) for x in cell]


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


def calculator_view(
    certificate: CertificateRecord, names: Sequence[str], columns: Sequence[Json], basis: Basis | None = None
) -> Json:
    """Return all data of the calculator; `columns` are the columns that are drawn, the first of `names`.

    `basis`: the release, if its certificate also bounds the errors of shares and group totals.
    """
    room = max(MAX_LABEL_BYTES // max(len(columns), 1), MIN_COLUMN_LABEL_BYTES)
    shown = [_drop_rarest_labels(column, room) for column in columns]
    order = [column.pop("order", [])[: len(column["labels"])] for column in shown]
    known = certificate.statistics
    return {
        "confidence": numerals.confidence(certificate.confidence),
        "columns": shown,
        "pairs": pair_bounds(certificate, names[: len(columns)]),
        "share": 1.0 if known is None or known.share_of_two_columns is None else known.share_of_two_columns,
        "moment": 1.0 if known is None or known.moment is None else known.moment,
        "groups": [] if basis is None else group_means(basis, order, [column["bound"] for column in shown]),
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
