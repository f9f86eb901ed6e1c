"""The data of the report's calculator: counts of the values of each column, and answers about pairs of columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from certsynth.answers import averages
from certsynth.answers.basis import Basis
from certsynth.answers.lattices import off_lattice
from certsynth.answers.queries import written_name
from certsynth.answers.selection import Selection
from certsynth.answers.shares import UndefinedStatistic
from certsynth.domain import Category, Column, Ordered
from certsynth.queries.fine import DEFAULT_STEPS
from certsynth.record.record import CertificateRecord
from certsynth.report import numerals
from certsynth.report.binned_counts import BinnedCounts
from certsynth.report.cell_counts import PLACES, CertifiedCells
from certsynth.report.packing import pack
from certsynth.report.pair_answers import NO_PAIRS, PairAnswers, has_mean, packable_mean

MAX_LABEL_BYTES = 200_000
"""Bytes of labels in the page, for all columns together: it keeps the page small enough to open quickly."""
MAX_LABEL_CHARACTERS = 400
"""Characters of a label: no label that a person can read is shortened."""
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
        "labels": [
            numerals.text(name, most=MAX_LABEL_CHARACTERS) or "(empty text)"
            for name in column.naming.of_labels(column.values)
        ],
    }


def label_numbers(column: Category, counts: Sequence[int], absent: int, bound: float) -> Json:
    """Return the calculator's data for a categorical column: its labels with their counts, in the schema's order."""
    names = column.naming.of_labels(column.labels)
    return {
        **_common(column, bound, int(sum(counts)) + absent, absent),
        "line": False,
        "closest": float(column.min_label_distance),
        "labels": [numerals.text(name, most=MAX_LABEL_CHARACTERS) or "(empty text)" for name in names],
        "counts": [int(count) for count in counts],
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
        "name": numerals.text(column.title),
        "query": numerals.text(written_name(column.name)),
        "kind": column.kind,
        "weight": float(column.weight),
        "missing": column.missing,
        "bound": bound,
        "rows": rows,
        "absent": absent,
    }


def calculator_view(
    certificate: CertificateRecord,
    columns: Sequence[Column],
    numbers: Sequence[Json],
    basis: Basis | None = None,
    pairs: PairAnswers = NO_PAIRS,
) -> Json:
    """Return all data of the calculator for the columns that are drawn, the first of the schema; `numbers` are theirs.

    `basis`: the release as `certsynth answer` reads it; None if it has no rows. `pairs`: answers about two columns.
    """
    room = max(MAX_LABEL_BYTES // max(len(columns), 1), MIN_COLUMN_LABEL_BYTES)
    shown = [_drop_rarest_labels(column, room) for column in numbers]
    known, names = certificate.statistics, [column.name for column in columns]
    for column, each in zip(columns, shown, strict=True):
        each["said"] = None if basis is None else _said_mean(basis, column)
    return {
        "confidence": numerals.confidence(certificate.confidence),
        "columns": shown,
        "pairs": pair_bounds(certificate, names),
        **pair_shares(certificate, names),
        "moment": 1.0 if known is None or known.moment is None else known.moment,
        "answers": pairs.to_json(),
    }


def _said_mean(basis: Basis, column: Column) -> str | None:
    """Return the mean of a column as `certsynth answer` states it; None if it has none, or nothing is certified."""
    if not isinstance(column, Ordered) or not has_mean(column) or not basis.covers([column.name]):
        return None
    try:
        estimate, claim = averages.mean(Selection(basis, (column,)), column)
    except UndefinedStatistic:
        return None
    return pack([packable_mean(column, estimate, claim.low, claim.high)])


def _drop_rarest_labels(column: Json, room: int) -> Json:
    """Drop the rarest labels of a category that exceed `room` bytes; an ordered column then shows positions instead."""
    order = list(range(len(column["labels"])))
    if not column["line"]:
        order = sorted(order, key=lambda i: (-column["counts"][i], i))
    lengths = itertools.accumulate(len(column["labels"][i].encode()) + 12 for i in order)
    kept = sorted(i for i, length in zip(order, lengths, strict=True) if length <= room)
    if len(kept) == len(column["labels"]):
        return column
    if column["line"]:
        return column | {"labels": []}
    cut = {key: [column[key][i] for i in kept] for key in ("labels", "counts")}
    return column | cut | {"left": len(column["labels"]) - len(kept)}


def pair_shares(certificate: CertificateRecord, names: Sequence[str]) -> Json:
    """Return the certified error of shares of two columns; if some pairs are exceptions, also theirs, and the pairs."""
    known, apart = certificate.statistics, certificate.exceptions
    of_all = 1.0 if known is None or known.share_of_two_columns is None else known.share_of_two_columns
    if apart is None or apart.share is None or apart.share_of_others is None:
        return {"share": of_all}
    exceptions, numbered = apart.pairs, itertools.combinations(enumerate(names), 2)
    pairs = [[i, j] for (i, a), (j, b) in numbered if frozenset((a, b)) in exceptions]
    return {"share": min(of_all, apart.share_of_others), "apart": {"share": min(of_all, apart.share), "pairs": pairs}}


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
