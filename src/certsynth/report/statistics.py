"""Sentences on the bounds of shares, group totals and moments, for the report and the command line."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from certsynth.record.record import StatisticsRecord


def promise(bounds: StatisticsRecord, confidence: str) -> str:
    """The certified errors of shares in a sentence; the confidence is a text such as 95 %.

    >>> from textwrap import fill
    >>> print(fill(promise(StatisticsRecord(0.0108, 0.0163, 0.0061, 0.0042), "95 %"), 100))
    With 95 % confidence, every share of rows over a range or a set of labels of one column is right
    within ± 1.1 percentage points, of two columns within ± 1.7.
    """
    sentence = (
        f"With {confidence} confidence, every share of rows over a range or a set of labels of "
        f"one column is right within ± {points(bounds.share_of_one_column)} percentage points"
    )
    if bounds.share_of_two_columns is not None:
        sentence += f", of two columns within ± {points(bounds.share_of_two_columns)}"
    return sentence + "."


def other_figures(bounds: StatisticsRecord) -> str:
    """The certified errors of group totals and moments in a sentence; empty if no column is ordered.

    >>> from textwrap import fill
    >>> print(fill(other_figures(StatisticsRecord(0.0108, 0.0163, 0.0061, 0.0042)), 100))
    Totals of a column over a group, divided by the number of rows, are right within ± 0.7 % of its
    range; means within ± 0.5 % of it, variances and products within ± 0.5 % of its square.
    """
    parts = []
    if bounds.group_total is not None:
        parts.append(
            "totals of a column over a group, divided by the number of rows, are right within ± "
            f"{points(bounds.group_total)} % of its range"
        )
    if bounds.moment is not None:
        right = "" if parts else " are right"
        size = points(bounds.moment)
        parts.append(f"means{right} within ± {size} % of it, variances and products within ± {size} % of its square")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def points(share: float) -> str:
    """A share in percentage points, with one decimal or two significant digits, never rounded down.

    >>> points(0.0108), points(0.000314), points(0.25)
    ('1.1', '0.032', '25')
    """
    exact = Decimal(repr(float(share))) * 100
    places = 1 if exact >= Decimal("0.1") else 1 - exact.adjusted() if exact else 1
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_CEILING):f}".removesuffix(".0")
