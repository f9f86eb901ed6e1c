r"""Means of an ordered column in the groups of rows that share a label, for the report's calculator.

With b the column's synthetic mean, the certificate bounds the error of :math:`E[(y − b) 1_A]`, where rows without a
value count as 0, and the error of the share P of rows of the group A that have a value. The mean of y in the group is b
plus the quotient of the two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from certsynth.answers.basis import Basis, raise_bound
from certsynth.answers.claims import quotient
from certsynth.answers.lattices import Lattice, off_lattice
from certsynth.domain import Category, Ordered
from certsynth.queries.statistics import UNITS, centre, offsets

MAX_GROUPS = 600
"""Groups in the page, for all pairs of columns together: it keeps the page small and the report quick."""

_DIGITS = 10**9  # of ends in the page, which are rounded outward

Json = dict[str, Any]


def group_means(basis: Basis, labels: Sequence[Sequence[int]], bounds: Sequence[float]) -> list[list[Any]]:
    """Return [i, j, means] for pairs of a column i with labels and an ordered column j that a subset contains.

    `labels` are the labels of each column that the page lists, by their codes; none for ordered columns. `bounds`
    are the bounds on the distance of single columns. A mean is [synthetic, least, largest] on a line of length 1, and
    None if no synthetic row of the group has a value.
    """
    if math.isinf(basis.group_error) or basis.group_error >= 1:
        return []
    columns = list(basis.schema)[: len(labels)]
    place = {column.name: i for i, column in enumerate(columns)}
    pairs = {
        (place[a], place[b])
        for subset in basis.certificate.subsets
        for a, b in itertools.permutations(subset.columns, 2)
        if a in place and b in place and labels[place[a]] and isinstance(columns[place[b]], Ordered)
    }
    found, groups = [], 0
    for i, j in sorted(pairs):
        lattice = basis.lattice(columns[j].name, columns[i].name)
        groups += len(labels[i])
        if groups > MAX_GROUPS:
            break
        if lattice is not None:
            found.append([i, j, _means(basis, lattice, labels[i], bounds[i])])
    return found


def _means(basis: Basis, lattice: Lattice, labels: Sequence[int], bound: float) -> list[list[float] | None]:
    line, group = lattice.columns
    assert isinstance(line, Ordered)
    assert isinstance(group, Category)
    cells = lattice.cells[0]
    margin = lattice.counts.sum(axis=1)
    middle, off = centre(cells, margin) / UNITS, off_lattice(line, cells)
    totals, present = offsets(cells, margin) @ lattice.counts, lattice.counts[: len(cells.places)].sum(axis=0)
    sums = _sums(basis, line, group)
    share_error = basis.errors.two
    if not line.missing:
        share_error = min(share_error, basis.errors.one, raise_bound(bound) / float(group.min_label_distance))
    means: list[list[float] | None] = []
    for code in labels:
        if not present[code]:
            means.append(None)
            continue
        total, share = int(totals[code]) / (lattice.rows * UNITS), int(present[code]) / lattice.rows
        error = basis.group_error
        low, high = quotient((total - error, total + error), (max(share - share_error, 0.0), share + share_error))
        ends = max(0.0, middle + low - off), min(1.0, middle + high + off)
        value = sums[code] / int(present[code])
        rounded = max(0.0, math.floor(ends[0] * _DIGITS - 1) / _DIGITS), math.ceil(ends[1] * _DIGITS + 1) / _DIGITS
        means.append([round(value, 9), rounded[0], min(1.0, rounded[1])])
    return means


def _sums(basis: Basis, line: Ordered, group: Category) -> list[float]:
    """The sum of the places of the values present, for each label."""
    places, labels = basis.clean[line.name], basis.clean[group.name].astype(np.int64)
    there = ~np.isnan(places)
    reach = max(line.reach, 1)
    return [float(x) / reach for x in np.bincount(labels[there], places[there], minlength=len(group.labels) + 1)]
