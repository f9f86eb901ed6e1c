"""The words of the report about uses of a release: kinds of statistics, verdicts, and rules of thumb."""

from __future__ import annotations

KINDS = {
    "label": "share of rows with a label, or with any group of labels",
    "range": "share of rows in a range",
    "mean": "mean",
    "median": "median",
    "sd": "standard deviation",
    "cell": "share of rows in a cell of a two-way table",
    "share_in_group": "share within a group of rows",
    "mean_in_group": "mean within a group of rows",
    "correlation": "correlation of two columns",
}
"""The kinds of statistics that a release is tried on."""

INTRODUCTION = (
    "The certified margins of this release, and what they are good for. A margin is compared with the spread of what "
    "is averaged: 50 points for a share, the standard deviation of the synthetic values for a mean, a median or a "
    "standard deviation, and 1 for a correlation."
)

RULES = (
    ("good", "at most 0.062 of the spread, as in a random sample of 1,000 rows (3.1 points for a share)"),
    ("rough", "at most 0.2 of the spread, as in a random sample of 100 rows (10 points for a share)"),
    ("poor", "larger, but the range leaves out some values"),
    ("nothing", "no range that leaves out any value is certified"),
)
"""The verdicts on margins, and the rule for each."""


RULES_WITH_SHARES = {
    "share of rows with a label, or any group of them": (
        "the bound on shares of one column",
        "A bound of 0.011: ± 1.1 percentage points.",
    ),
    "share of rows up to a value, or in a range": (
        "the bound on shares of one column",
        "A bound of 0.011: ± 1.1 percentage points. The band under each histogram is narrower in places.",
    ),
}
"""What replaces some rules of thumb if errors of shares are certified."""

RULES_OF_THUMB = (
    (
        "mean of a column",
        "bound × length of its range",
        "An age between 0 and 100 and a bound of 0.02: within 2 years.",
    ),
    ("share of rows with a label, or any group of them", "bound", "A bound of 0.02: ± 2 percentage points."),
    (
        "share of rows up to a value, or in a range",
        "see the band under each histogram",
        "Many rows near the edge may have crossed it, but only a few from far away.",
    ),
    (
        "variance",
        "(2 × bound + bound²) × range², or less",
        "2 × bound is multiplied by the longer distance from the mean to an end of the range, as a share of the range.",
    ),
    (
        "covariance of two columns",
        "(2 × bound + bound²) × both ranges, or less",
        "As for the variance, in the product of the two units.",
    ),
    (
        "mean or share among the rows with a label, which are a share p of all rows",
        "bound ÷ (p − bound) instead of the bound, for p above the bound",
        "A tenth of the rows and a bound of 0.02: 0.25. Small groups say little.",
    ),
)
"""Statistic, largest error, and an example, for columns of weight 1 without missing values and with labels 1 apart."""


def never_certified(sparsity: int, *, named: bool = False) -> list[str]:
    """Name the statistics about which a certificate says nothing. `named`: it covers named subsets of columns only."""
    many = "columns that are not together in a named subset"
    if not named:
        many = f"more than {sparsity} columns" if sparsity > 1 else "more than one column"
    at_once = "" if named else " at once"
    return [f"any statistic of {many}{at_once}", "smallest and largest value, single rows, coefficients of a model"]
