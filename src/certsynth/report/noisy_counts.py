"""Synthetic rows against the noisy counts of single columns, in small pictures: do the rows fit what was measured?"""

from __future__ import annotations

from typing import Any

import numpy as np

from certsynth.answers.basis import Basis
from certsynth.answers.lattices import codes_of_cells, figures_of_codes, has_monotone_codes
from certsynth.answers.noisy_cells import CellTable
from certsynth.domain import Category, Column, Ordered
from certsynth.report import numerals

MAX_PICTURES = 8
"""Columns that are drawn: those with the largest difference between a synthetic and a noisy share."""
MAX_BARS = 20
"""Bars of a picture: neighbouring cells are added up if there are more, and so are the rarest labels."""

Json = dict[str, Any]


def noisy_counts_view(basis: Basis) -> list[Json]:
    """Return a picture of each column with noisy counts whose errors are certified, the largest differences first."""
    found = [
        _picture(basis, column, table)
        for column in basis.schema
        for table in basis.noisy.tables_of([column.name])[:1]
        if _has_names(column, table)
    ]
    return sorted(found, key=lambda each: -each["difference"])[:MAX_PICTURES]


def _has_names(column: Column, table: CellTable) -> bool:
    """Whether there are several cells that people have names for: ranges of values, or single labels."""
    if table.counts.size < 2 or not has_monotone_codes(column):
        return False
    return isinstance(column, Ordered) or (
        isinstance(column, Category) and table.counts.size == len(column.labels) + column.missing
    )


def _picture(basis: Basis, column: Column, table: CellTable) -> Json:
    cells = table.cells[0]
    rows = (basis.noisy.fewest_rows + basis.noisy.most_rows) / 2
    synthetic = np.bincount(codes_of_cells(column, basis.clean[column.name], cells), minlength=cells.size)
    bars: list[Json] = []
    gap, largest = 0.0, 0.0
    for name, members in _sets(column, table):
        own, noisy = float(synthetic[members].sum() / basis.size), float(table.counts[members].sum() / rows)
        low, high = basis.noisy.share(table, members, members)
        bars.append({"label": name, "synthetic": own, "noisy": max(0.0, noisy), "from": low, "to": max(low, high)})
        gap, largest = max(gap, abs(own - bars[-1]["noisy"])), max(largest, own, noisy, high)
    largest = largest or 1.0
    return {
        "name": numerals.text(column.title),
        "bars": bars,
        "largest": largest,
        "largest_text": numerals.outward(largest, up=True),
        "ends": [bars[0]["label"], bars[-1]["label"]],
        "difference": gap,
        "difference_text": numerals.margin_points(gap),
    }


def _sets(column: Column, table: CellTable) -> list[tuple[str, np.ndarray]]:
    """Disjoint sets of cells with a name each: runs of neighbours, single labels, and the missing value."""
    size, line = table.counts.size, len(table.cells[0].places)
    if isinstance(column, Ordered):
        first, last = figures_of_codes(column, table.cells[0], codes_of_cells)
        parts = np.array_split(np.arange(line), min(MAX_BARS, line))
        found = [(_between(column, float(first[part[0]]), float(last[part[-1]])), part) for part in parts]
    else:
        assert isinstance(column, Category)
        names = column.naming.of_labels(column.labels)
        line = min(len(names), size)
        order = np.sort(np.argsort(-table.counts[:line], kind="stable")[:MAX_BARS])
        found = [(numerals.text(names[k]) or "(empty text)", np.array([k])) for k in order]
        rest = np.setdiff1d(np.arange(line), order)
        found += [(f"{len(rest):,} other labels", rest)] if len(rest) else []
    if line < size:
        found.append(("missing", np.arange(line, size)))
    return [(name, np.isin(np.arange(size), part)) for name, part in found]


def _between(column: Ordered, first: float, last: float) -> str:
    if column.clock is not None:
        ends = [column.clock.text(int(end)) for end in (first, last)]
    elif column.kind == "ordinal":
        ends = [numerals.text(name) for name in column.naming.of_labels([column.values[int(x)] for x in (first, last)])]
    else:
        ends = [numerals.plain(float(f"{end:.6g}")) for end in (first, last)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
