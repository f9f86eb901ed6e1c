"""Sentences on the bounds of shares, group totals and moments, for the report and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from certsynth.record.record import StatisticsRecord
from certsynth.report.numerals import margin_points

NOTHING_ON_SHARES = "The bounds on shares of rows are 1, which says nothing about them."


def share_bounds(bounds: StatisticsRecord) -> tuple[float, float | None]:
    """The bounds on shares of one column and of two. Plain statements about two columns include those about one, so
    that their bound is no smaller.

    >>> share_bounds(StatisticsRecord(0.14, 0.12, None, None)), share_bounds(StatisticsRecord(0.1, None, None, None))
    ((0.14, 0.14), (0.1, None))
    """
    one, two = bounds.share_of_one_column, bounds.share_of_two_columns
    return one, None if two is None else max(one, two)


def promise(bounds: StatisticsRecord, confidence: str) -> str:
    """The certified errors of shares in a sentence; the confidence is a text such as 95 %.

    >>> from textwrap import fill
    >>> print(fill(promise(StatisticsRecord(0.0108, 0.0163, 0.0061, 0.0042), "95 %"), 100))
    With 95 % confidence, every share of rows over a range or a set of labels of one column is right
    within ± 1.1 percentage points, of two columns within ± 1.7.
    >>> promise(StatisticsRecord(1.0, 1.0, None, None), "95 %")
    'The bounds on shares of rows are 1, which says nothing about them.'
    >>> promise(StatisticsRecord(0.02, None, None, None, band_of_one_column=0.003), "95 %")[-85:]
    ' Shares of the bands that the schema names are right within ± 0.30 percentage points.'
    """
    one, two = share_bounds(bounds)
    if not _says_something(one):
        return NOTHING_ON_SHARES
    sentence = (
        f"With {confidence} confidence, every share of rows over a range or a set of labels of "
        f"one column is right within ± {points(one)} percentage points"
    )
    if two is not None:
        known = _says_something(two)
        sentence += f", of two columns within ± {points(two)}" if known else ""
        sentence += "" if known else "; nothing is known about shares of two columns"
    return f"{sentence}.{_on_bands(bounds)}"


def _on_bands(bounds: StatisticsRecord) -> str:
    """The certified errors of shares of bands; empty if no column has bands."""
    one, two = bounds.band_of_one_column, bounds.band_of_two_columns
    if not _says_something(one):
        return ""
    of_two = f", of two columns within ± {points(two)}" if _says_something(two) else ""
    return f" Shares of the bands that the schema names are right within ± {points(one)} percentage points{of_two}."


def other_figures(bounds: StatisticsRecord, by_ratios: Sequence[str] = ()) -> str:
    """The certified errors of group totals and moments in a sentence; empty if there is nothing to say.

    In columns that are compared `by_ratios` they are not those of values.

    >>> from textwrap import fill
    >>> print(fill(other_figures(StatisticsRecord(0.0108, 0.0163, 0.0061, 0.0042)), 100))
    Totals of a column over a group, divided by the number of rows, are right within ± 0.61 % of its
    range; means within ± 0.42 % of it, variances and products within ± 0.42 % of its square.
    >>> other_figures(StatisticsRecord(0.01, None, None, 1.0))
    ''
    """
    parts = []
    if _says_something(bounds.group_total):
        parts.append(
            "totals of a column over a group, divided by the number of rows, are right within ± "
            f"{points(bounds.group_total)} % of its range"
        )
    if _says_something(bounds.moment):
        size = points(bounds.moment)
        means = "means within ± {} % of it" if parts else "means of a column are right within ± {} % of its range"
        parts.append(f"{means.format(size)}, variances and products within ± {size} % of its square")
    sentence = "; ".join(parts)
    if not sentence:
        return ""
    places = f" For {', '.join(by_ratios)}, compared by ratios, places in the list of values count as values here."
    return f"{sentence[:1].upper()}{sentence[1:]}.{places if by_ratios else ''}"


def figures(bounds: StatisticsRecord) -> list[tuple[str, str]]:
    """The certified errors by name, for a list; those that say nothing are left out.

    >>> figures(StatisticsRecord(0.0108, None, None, 0.0042))
    [('shares of one column', '± 1.1 percentage points'), ('means', '± 0.42% of the range')]
    """
    one, two = share_bounds(bounds)
    found = [
        ("shares of one column", one, "percentage points"),
        ("shares of two columns", two, "percentage points"),
        ("shares of bands", bounds.band_of_one_column, "percentage points"),
        ("shares of bands of two columns", bounds.band_of_two_columns, "percentage points"),
        ("group totals, per row", bounds.group_total, "of the range"),
        ("means", bounds.moment, "of the range"),
    ]
    return [
        (what, f"± {points(error)}{'%' if unit == 'of the range' else ''} {unit}")
        for what, error, unit in found
        if error is not None and error < 1
    ]


def points(share: float | None) -> str:
    """A share as a margin in percentage points.

    >>> points(0.0108), points(0.000314), points(0.25)
    ('1.1', '0.032', '25')
    """
    return margin_points(share or 0.0)


def _says_something(bound: float | None) -> bool:
    return bound is not None and bound < 1
