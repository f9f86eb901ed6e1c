"""Parts of the record of a direct certificate: bounds on statistics, noisy cells, dropped rows, and exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from certsynth.record.values import (
    AT_LEAST_ONE,
    ON_TRUST,
    RECOMPUTED,
    Bound,
    Columns,
    Confidence,
    Count,
    Loss,
    Rational,
    said,
    said_if_any,
)


@dataclass(frozen=True, slots=True)
class StatisticsRecord:
    """Bounds on averages that need not be smooth. All hold together with the rest of the certificate.

    They are measured on lattices that the schema determines: shares of one column and moments of one column on that of
    single columns, all others on that of pairs.
    """

    share_of_one_column: Bound = said(
        "The largest error of the share of rows in any interval of an ordered column, with or without its missing "
        "values, or in any set of labels.",
        RECOMPUTED,
    )
    share_of_two_columns: Bound | None = said(
        "The same for boxes: a set of one column and a set of another, of which one is a single label if both columns "
        "have labels. Null if no subset has two columns.",
        RECOMPUTED,
    )
    group_total: Bound | None = said(
        "The largest error of the mean of (y - b) over rows in a set of another column, where other rows count as 0, y "
        "is the place of a value in its column's range, and b is its synthetic mean. Null if there is no such pair.",
        RECOMPUTED,
    )
    moment: Bound | None = said(
        "The largest error of the means of (x - a), (x - a) squared and (x - a)(y - b), where x and y are places in "
        "the columns' ranges, and a and b are their synthetic means, as a share of the range of these functions' "
        "values. Null if no column is ordered.",
        RECOMPUTED,
    )

    band_of_one_column: Bound | None = said_if_any(
        "The largest error of the share of rows in any interval of bands of a column; absent if no column has bands.",
        RECOMPUTED,
    )
    band_of_two_columns: Bound | None = said_if_any(
        "The same for two columns: intervals of bands, sets of labels, and whole columns without bands.", RECOMPUTED
    )


@dataclass(frozen=True, slots=True)
class CellsRecord:
    """Noisy counts whose noise was added cell by cell: bounds on them follow from its distribution."""

    confidence: Confidence = said("The probability that all of these bounds hold together.", RECOMPUTED)
    failure_probability: Rational = said(
        "One minus the confidence, exactly: half of it is for single columns.", RECOMPUTED
    )
    measurements: Annotated[tuple[Count, ...], AT_LEAST_ONE] = said(
        "The measurements with noise on every cell, counted from 1 in their order.", RECOMPUTED
    )
    fewest_rows: Count = said(
        "The private table has no fewer rows, with the rest of the certificate; where persons count the same, no "
        "fewer parts of a person.",
        RECOMPUTED,
    )
    most_rows: Count = said("The same for the largest number of rows or parts.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class ShareRecord:
    estimate: Loss = said("The share as estimated from noisy numbers.", RECOMPUTED)
    lower: Loss = said("The share is no smaller, with the rest of the certificate.", RECOMPUTED)
    upper: Loss = said("The share is no larger, with the rest of the certificate.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class DroppedRecord:
    counted_rows: Count = said("The rows of one person that count here, at most: more are not counted.", RECOMPUTED)
    rows: ShareRecord = said("The share of dropped rows among the rows that count.", RECOMPUTED)
    persons: ShareRecord = said("The share of persons with more rows than are kept.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class ExceptionsRecord:
    """Subsets of columns with bounds of their own, which do not widen the bounds of all others."""

    subsets: Annotated[tuple[Columns, ...], AT_LEAST_ONE] = said(
        "The exceptions, in the order in which they were chosen privately, by their losses on a coarse lattice and the "
        "largest errors of their shares. They must be covered and distinct; whether they were chosen so cannot be "
        "checked.",
        ON_TRUST,
    )
    bound: Bound = said("The direct bound for each of these subsets.", RECOMPUTED)
    bound_of_others: Bound = said("The direct bound for each of the other subsets.", RECOMPUTED)
    share: Bound | None = said_if_any(
        "The same as statistics.share_of_two_columns, for these pairs only; absent if no subset is a pair, and in "
        "releases of earlier versions.",
        RECOMPUTED,
    )
    share_of_others: Bound | None = said_if_any("The same for all other pairs.", RECOMPUTED)
    group_total: Bound | None = said_if_any(
        "The same as statistics.group_total, for these pairs only; absent if there is none, or no share.", RECOMPUTED
    )
    group_total_of_others: Bound | None = said_if_any("The same for all other pairs.", RECOMPUTED)

    @property
    def pairs(self) -> frozenset[frozenset[str]]:
        """The pairs of columns that are exceptions."""
        return frozenset(frozenset(columns) for columns in self.subsets if len(columns) == 2)


EXCEPTION_BOUNDS = ("bound", "bound_of_others", "share", "share_of_others", "group_total", "group_total_of_others")
"""The fields of an `ExceptionsRecord` that are bounds."""
