"""The statistics that a direct certificate covers, and the lattices on which they are counted, given the schema and the
subsets of columns alone."""

from __future__ import annotations

from collections.abc import Sequence

from certsynth.certificate.bands import NAMES as BANDS
from certsynth.certificate.bands import band_names
from certsynth.certificate.statistics import MAXIMA, OF_EXCEPTIONS
from certsynth.domain import Ordered, Schema
from certsynth.queries.fine import DEFAULT_STEPS, LatticeQuery
from certsynth.queries.marginals import Subset, subsets_within
from certsynth.queries.statistics import has_bands

STATISTICS = (*MAXIMA, *BANDS)
"""Names of the statistics, in the order in which their largest errors are measured."""

_MAX_POINTS_OF_SINGLE_LABELS = 3
"""Points of a column of labels up to which every set of them or its complement is a single point, or empty."""


def statistic_names(schema: Schema, subsets: Sequence[Subset], *, exceptions: bool = False) -> tuple[str, ...]:
    """The statistics that exist for these subsets: boxes need a pair of columns, totals and moments an ordered one.

    With `exceptions`, those of pairs exist twice, whichever pairs are exceptions.
    """
    pairs = subsets_within(subsets, 2)
    ordered = [isinstance(column, Ordered) for column in schema]
    there = (
        True,
        bool(pairs),
        any(ordered[i] or ordered[j] for i, j in pairs),
        any(ordered[j] for (j,) in subsets_within(subsets, 1)),
    )
    found = tuple(name for name, exists in zip(MAXIMA, there, strict=True) if exists)
    of_exceptions = tuple(OF_EXCEPTIONS[name] for name in found if exceptions and name in OF_EXCEPTIONS)
    return found + of_exceptions + band_names(schema, subsets)


def pairs_imply_singles(schema: Schema, subsets: Sequence[Subset]) -> dict[str, str]:
    """The errors of shares of one column that those of two columns bound as well, each with the latter's name.

    A set of a column is a box with an unrestricted second column, if the pair's lattice has a point for each value and,
    where both columns have labels, the set or its complement is a single point.

    Proof: docs/explanation/proofs/statistics.md
    """
    columns, pairs = list(schema), subsets_within(subsets, 2)
    partners: dict[int, set[int]] = {j: set() for (j,) in subsets_within(subsets, 1)}
    for i, j in pairs:
        partners[i].add(j)
        partners[j].add(i)

    def is_side(j: int) -> bool:
        lattice = columns[j].lattice(DEFAULT_STEPS[2])
        if columns[j].covering_radius(lattice) or not partners[j]:
            return False
        alone = lattice.size <= _MAX_POINTS_OF_SINGLE_LABELS
        return alone or any(isinstance(columns[i], Ordered) for i in {j, *partners[j]})

    found = {"share_of_one_column": "share_of_two_columns"} if all(map(is_side, partners)) else {}
    if all(partners[j] for j in partners if has_bands(columns[j])):
        found[BANDS[0]] = BANDS[1]  # bands are the same in one column and in two
    there = statistic_names(schema, subsets)
    return {one: two for one, two in found.items() if one in there and two in there}


def statistic_queries(schema: Schema, subsets: Sequence[Subset]) -> list[LatticeQuery]:
    """Every single column and every pair that lies in one of the subsets, on lattices for one and two columns."""
    tables = {ways: subsets_within(subsets, ways) for ways in (1, 2)}
    return [LatticeQuery.of(schema, each, steps=DEFAULT_STEPS[ways]) for ways, each in tables.items() if each]
