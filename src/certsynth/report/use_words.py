"""The words of the report about what a release can be used for: kinds of statistics, verdicts and their rules."""

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


def never_certified(sparsity: int) -> list[str]:
    """Name the statistics about which a certificate for so many columns says nothing."""
    many = f"more than {sparsity} columns" if sparsity > 1 else "more than one column"
    return [f"any statistic of {many} at once", "smallest and largest value, single rows, coefficients of a model"]
