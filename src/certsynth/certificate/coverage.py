"""The statistics that a direct certificate covers, and the lattices on which they are counted, given the schema and the
subsets of columns alone."""

from __future__ import annotations

from collections.abc import Sequence

from certsynth.certificate.bands import NAMES as BANDS
from certsynth.certificate.bands import band_names
from certsynth.certificate.statistics import MAXIMA
from certsynth.domain import Ordered, Schema
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import Subset, subsets_within

STATISTICS = (*MAXIMA, *BANDS)
"""Names of the statistics, in the order in which their largest errors are measured."""


def statistic_names(schema: Schema, subsets: Sequence[Subset]) -> tuple[str, ...]:
    """The statistics that exist for these subsets: boxes need a pair of columns, totals and moments an ordered one."""
    pairs = subsets_within(subsets, 2)
    ordered = [isinstance(column, Ordered) for column in schema]
    there = (
        True,
        bool(pairs),
        any(ordered[i] or ordered[j] for i, j in pairs),
        any(ordered[j] for (j,) in subsets_within(subsets, 1)),
    )
    found = tuple(name for name, exists in zip(MAXIMA, there, strict=True) if exists)
    return found + band_names(schema, subsets)


def statistic_queries(schema: Schema, subsets: Sequence[Subset]) -> list[LatticeQuery]:
    """Every single column and every pair that lies in one of the subsets, on lattices for one and two columns."""
    tables = [subsets_within(subsets, ways) for ways in (1, 2)]
    return [LatticeQuery.of(schema, each) for each in tables if each]
