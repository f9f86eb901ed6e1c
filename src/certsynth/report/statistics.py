"""Sentences on the bounds of shares, group totals and moments, for the report and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from certsynth.record.record import ExceptionsRecord, StatisticsRecord
from certsynth.report.numerals import margin_points

NOTHING_ON_SHARES = "The bounds on shares of rows are 1, which says nothing about them."


def share_bounds(
    bounds: StatisticsRecord, exceptions: ExceptionsRecord | None = None
) -> tuple[float, float | None, float | None]:
    """The bounds on shares of one column, of two, and of two that are exceptions; the last is None if they have no
    larger bound. Plain statements about two columns include those about one, so that their bound is no smaller.

    >>> share_bounds(StatisticsRecord(0.14, 0.12, None, None)), share_bounds(StatisticsRecord(0.1, None, None, None))
    ((0.14, 0.14, None), (0.1, None, None))
    >>> apart = ExceptionsRecord((("a", "b"),), 0.3, 0.1, share=0.2, share_of_others=0.02)
    >>> share_bounds(StatisticsRecord(0.05, 0.2, None, None), apart)
    (0.05, 0.05, 0.2)
    """
    one, two = bounds.share_of_one_column, bounds.share_of_two_columns
    if two is None:
        return one, None, None
    others, own = (two, None) if exceptions is None else (exceptions.share_of_others, exceptions.share)
    if others is None or own is None or max(one, others) >= own:
        return one, max(one, two), None
    return one, max(one, others), own


def group_bounds(
    bounds: StatisticsRecord, exceptions: ExceptionsRecord | None = None
) -> tuple[float | None, float | None]:
    """The bounds on group totals, and on those of pairs that are exceptions; the latter is None if they have no larger
    bound."""
    others, own = (None, None) if exceptions is None else (exceptions.group_total_of_others, exceptions.group_total)
    return (bounds.group_total, None) if others is None or own is None or others >= own else (others, own)


def excepted(exceptions: ExceptionsRecord | None) -> str:
    """The number of pairs that are exceptions, as text.

    >>> excepted(ExceptionsRecord((("a", "b"), ("c",), ("a", "c")), 0.3, 0.1))
    '2 pairs'
    """
    number = 0 if exceptions is None else len(exceptions.pairs)
    return f"{number:,} pair{'' if number == 1 else 's'}"


def all_but(exceptions: ExceptionsRecord | None) -> str:
    """The end of a name of statistics of all pairs that are no exceptions.

    >>> all_but(ExceptionsRecord((("a", "b"),), 0.3, 0.1))
    ', all but 1 pair'
    """
    return f", all but {excepted(exceptions)}"


def promise(bounds: StatisticsRecord, confidence: str, exceptions: ExceptionsRecord | None = None) -> str:
    """The certified errors of shares in a sentence; the confidence is a text such as 95 %.

    >>> from textwrap import fill
    >>> print(fill(promise(StatisticsRecord(0.0108, 0.0163, 0.0061, 0.0042), "95 %"), 100))
    With 95 % confidence, every share of rows over a range or a set of labels of one column is right
    within ± 1.1 percentage points, of two columns within ± 1.7.
    >>> apart = ExceptionsRecord((("a", "b"), ("a", "c")), 0.3, 0.1, share=0.2, share_of_others=0.02)
    >>> promise(StatisticsRecord(0.01, 0.2, None, None), "95 %", apart)[-84:]
    ', of two columns within ± 2.0, except for 2 pairs of columns, which are within ± 20.'
    >>> promise(StatisticsRecord(1.0, 1.0, None, None), "95 %")
    'The bounds on shares of rows are 1, which says nothing about them.'
    >>> promise(StatisticsRecord(0.02, None, None, None, band_of_one_column=0.003), "95 %")[-85:]
    ' Shares of the bands that the schema names are right within ± 0.30 percentage points.'
    """
    one, two, own = share_bounds(bounds, exceptions)
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
        if known and own is not None:
            are = "is" if exceptions and len(exceptions.pairs) == 1 else "are"
            which = f"which {are} within ± {points(own)}" if own < 1 else "of which nothing is known"
            sentence += f", except for {excepted(exceptions)} of columns, {which}"
    return f"{sentence}.{_on_bands(bounds)}"


def _on_bands(bounds: StatisticsRecord) -> str:
    """The certified errors of shares of bands; empty if no column has bands."""
    one, two = bounds.band_of_one_column, bounds.band_of_two_columns
    if not _says_something(one):
        return ""
    of_two = f", of two columns within ± {points(two)}" if _says_something(two) else ""
    return f" Shares of the bands that the schema names are right within ± {points(one)} percentage points{of_two}."


def other_figures(
    bounds: StatisticsRecord, by_ratios: Sequence[str] = (), exceptions: ExceptionsRecord | None = None
) -> str:
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
    total, own = group_bounds(bounds, exceptions)
    if _says_something(total):
        parts.append(
            f"totals of a column over a group, divided by the number of rows, are right within ± {points(total)} % of "
            "its range"
        )
        if own is not None:
            within = f"within ± {points(own)} %" if own < 1 else "unknown"
            parts[0] += f" ({within} for {excepted(exceptions)} of columns)"
    if _says_something(bounds.moment):
        size = points(bounds.moment)
        means = "means within ± {} % of it" if parts else "means of a column are right within ± {} % of its range"
        parts.append(f"{means.format(size)}, variances and products within ± {size} % of its square")
    sentence = "; ".join(parts)
    if not sentence:
        return ""
    places = f" For {', '.join(by_ratios)}, compared by ratios, places in the list of values count as values here."
    return f"{sentence[:1].upper()}{sentence[1:]}.{places if by_ratios else ''}"


def figures(bounds: StatisticsRecord, exceptions: ExceptionsRecord | None = None) -> list[tuple[str, str]]:
    """The certified errors by name, for a list; those that say nothing are left out.

    >>> figures(StatisticsRecord(0.0108, None, None, 0.0042))
    [('shares of one column', '± 1.1 percentage points'), ('means', '± 0.42% of the range')]
    """
    (one, two, own), (total, own_total) = share_bounds(bounds, exceptions), group_bounds(bounds, exceptions)
    apart, but = excepted(exceptions), all_but(exceptions)
    found = [
        ("shares of one column", one, "percentage points"),
        (f"shares of two columns{but if own else ''}", two, "percentage points"),
        (f"shares of two columns, {apart}", own, "percentage points"),
        ("shares of bands", bounds.band_of_one_column, "percentage points"),
        ("shares of bands of two columns", bounds.band_of_two_columns, "percentage points"),
        (f"group totals, per row{but if own_total else ''}", total, "of the range"),
        (f"group totals, per row, {apart}", own_total, "of the range"),
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
