"""Statistics about which a certificate says nothing: why, and what would help."""

from __future__ import annotations

import math

import numpy as np

from certsynth.answers.basis import Basis
from certsynth.answers.claims import Interval
from certsynth.answers.queries import Difference, Query, names
from certsynth.domain import Ordered
from certsynth.domain.expression import list_names
from certsynth.domain.meaning import Reader

_SPREADS = ("variance", "sd", "covariance", "correlation")
_MORE = "more rows or a larger ε would help"


def is_whole_range(interval: Interval, least: float, most: float) -> bool:
    """Whether an interval excludes no possible value. A statistic that has only one value is known."""
    _, low, high = interval
    slack = 1e-9 * max(abs(least), abs(most), most - least)
    return math.isfinite(slack) and least < most and low <= least + slack and high >= most - slack


def reason(basis: Basis, query: Query | Difference, bound: float) -> str:
    """Why the interval of a statistic is its whole range, and what would help."""
    if isinstance(query, Difference):  # its interval is the whole range only if those of both statistics are
        return reason(basis, query.first, bound)
    asked = {node.name: None for part in query.arguments for node in names(part)}
    listed = list_names(asked)
    if bound >= 1:
        return (
            f"its bound for {'this column' if len(asked) == 1 else 'these columns'} is 1, the largest possible; "
            f"{_MORE}, and so would fewer columns or a workload"
        )
    if query.group is not None:
        inside = Reader(list(basis.schema)).condition(query.group).holds(basis.rows) > 0
        return (
            f"its group holds {_percent(float(np.mean(inside)))} of the synthetic rows, too few for a bound of "
            f"{bound:.2g}; a larger group, {_MORE.replace(' or ', ', or ')}"
        )
    by_ratios = [name for name in asked if isinstance(each := basis.columns[name], Ordered) and each.grid]
    if query.statistic in ("covariance", "correlation") and by_ratios:
        return (
            f"{list_names(by_ratios)} {'is' if len(by_ratios) == 1 else 'are'} compared by ratios, and products of "
            'such values are not certified; ask for a table(…), or release the column without scale = "log"'
        )
    if query.statistic in _SPREADS:
        return (
            f"the values of {listed} spread over too small a part of their ranges for a bound of {bound:.2g}; {_MORE}, "
            "and so would a schema with narrower ranges"
        )
    if len(asked) > 1:
        return f"the bound for {listed} together, {bound:.2g}, is too large; a condition on fewer columns, {_MORE}"
    return f"the bound for {listed}, {bound:.2g}, is too large; {_MORE}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
