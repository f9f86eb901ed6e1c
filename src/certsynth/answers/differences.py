"""The difference of two statistics of one release, with an interval."""

from __future__ import annotations

import math
from dataclasses import replace

from certsynth.answers.answer import outward
from certsynth.answers.asking import Found, evaluate, evaluate_share, widened
from certsynth.answers.basis import Basis, span
from certsynth.answers.nearness import Rest
from certsynth.answers.queries import Difference, Query
from certsynth.answers.two_groups import difference_of_means, difference_of_shares
from certsynth.base.clock import CLOCKS
from certsynth.domain import Ordered
from certsynth.domain.condition import And, Condition, Not
from certsynth.domain.expression import BadExpression, Chain, Name
from certsynth.domain.meaning import Reader
from certsynth.errors import InputError

_WHOLE = ("count", "quantile", "median")
_SQUARES = ("variance", "covariance")


def evaluate_difference(basis: Basis, difference: Difference) -> Found:
    """Evaluate both statistics and subtract their intervals: both hold on the same event.

    Equal statistics differ by 0. Shares of the same rows differ by the share of rows that satisfy the first condition
    alone, minus that of rows that satisfy the second alone. Means and shares of two groups share the bound on the
    distance. The intersection of all intervals is used.
    """
    first, second = evaluate(basis, difference.first), evaluate(basis, difference.second)
    unit = _unit(difference, first, second)
    if difference.first == difference.second:
        found = _subtract(first, second)
        return replace(found, interval=(0.0, 0.0, 0.0), how="both statistics are the same", unit=unit)
    found = replace(_subtract(first, second), unit=unit)
    for tighter in (_by_set_differences(basis, difference), _by_two_groups(basis, difference, found)):
        found = found if tighter is None else _intersect(found, tighter)
    if all(query.statistic in _WHOLE for query in (difference.first, difference.second)):
        whole = (first.counted or first.column is not None) and (second.counted or second.column is not None)
        found = replace(found, counted=whole)
    return found


def _subtract(first: Found, second: Found) -> Found:
    """First minus second, by interval arithmetic; ends are widened by the rounding errors of both."""
    (low_1, high_1), (low_2, high_2) = widened(first), widened(second)
    how = (
        f"the ends of both intervals, subtracted; each is {first.how}"
        if first.how == second.how
        else f"the ends of both intervals, subtracted; the first is {first.how}; the second is {second.how}"
    )
    low, high = low_1 - high_2, high_1 - low_2
    return Found(
        (
            first.interval[0] - second.interval[0],
            low and math.nextafter(low, -math.inf),  # a difference of floats is 0 only if they are equal
            high and math.nextafter(high, math.inf),
        ),
        max(first.bound, second.bound),
        how,
        first.unit,
        first.least - second.most,
        first.most - second.least,
        widened=True,
    )


def _intersect(first: Found, second: Found) -> Found:
    """Both intervals of one value; rounding must not make them disjoint."""
    estimate, low, high = first.interval
    low, high = max(low, second.interval[1]), min(high, second.interval[2])
    if low < first.interval[1] + 1e-12 and high > first.interval[2] - 1e-12:
        return first
    interval = estimate, min(low, estimate), max(high, estimate)
    return replace(first, interval=interval, how=second.how, bound=second.bound)


def _by_set_differences(basis: Basis, difference: Difference) -> Found | None:
    """P(A | G) − P(B | G) = P(A without B | G) − P(B without A | G). None for other statistics, and for columns that
    the certificate does not cover together."""
    first, second = difference.first, difference.second
    if first.group != second.group:
        return None
    conditions = [_condition_of_share(basis, query) for query in (first, second)]
    one, other = conditions
    if one is None or other is None:
        return None
    try:
        only_one = evaluate_share(basis, _without(basis, one, other), first.group)
        only_other = evaluate_share(basis, _without(basis, other, one), first.group)
    except InputError:
        return None
    how = "the shares of rows that satisfy only one of the two conditions, subtracted"
    return replace(_subtract(only_one, only_other), how=how)


def _by_two_groups(basis: Basis, difference: Difference, found: Found) -> Found | None:
    """The same mean or share in two groups of rows, from the bound on the distance. None for other statistics."""
    first, second = difference.first, difference.second
    if (first.statistic, first.arguments) != (second.statistic, second.arguments):
        return None
    reader, (node, *_) = Reader(list(basis.schema)), first.arguments
    groups = [None if query.group is None else reader.condition(query.group) for query in (first, second)]
    claim = None
    if first.statistic == "fraction":
        claim = difference_of_shares(basis, reader.condition(node), *groups)
    elif first.statistic == "mean" and isinstance(node, Name):
        column = basis.columns[node.name]
        if isinstance(column, Ordered) and (claim := difference_of_means(basis, column, *groups)) is not None:
            claim = claim.scaled(span(column))
    if claim is None:
        return None
    low, high = outward(claim.low, claim.high, least=found.least, most=found.most)
    return replace(found, interval=(found.interval[0], low, high), how=claim.how, bound=claim.bound)


def _condition_of_share(basis: Basis, query: Query) -> Condition | None:
    """The condition whose share a statistic is; None if it is not a share."""
    reader = Reader(list(basis.schema))
    if query.statistic == "fraction":
        return reader.condition(query.arguments[0])
    if query.statistic == "cdf":
        column, value = query.arguments
        return reader.condition(Chain(column.at, (column, value), ("<=",)))
    return None


def _without(basis: Basis, inside: Condition, outside: Condition) -> Condition:
    """Rows that satisfy the first condition, and for which the second is false or unknown."""
    known = not any(basis.columns[name].missing for name in outside.columns)
    return And((inside, Not(outside) if known else Rest(outside)))


def _unit(difference: Difference, first: Found, second: Found) -> str:
    """The unit of the difference, or an error that names both units."""
    kinds = _kind(difference.first, first), _kind(difference.second, second)
    if "label" in kinds:
        raise BadExpression(
            difference.at if kinds[0] != "label" else 0,
            "labels cannot be subtracted; ask for each quantile by itself, or for a difference of shares.",
        )
    if kinds[0] != kinds[1]:
        raise BadExpression(
            difference.at,
            f"{_described(kinds[0], first)} minus {_described(kinds[1], second)} has no unit; subtract statistics of "
            "the same kind, like mean(income | sex = 'f') - mean(income | sex = 'm').",
        )
    if kinds[0] in CLOCKS:
        return CLOCKS[kinds[0]].unit
    return first.unit if first.unit == second.unit else "number"


def _kind(query: Query, found: Found) -> str:
    """What a statistic measures: only statistics of the same kind can be subtracted. Values of two columns can, as in
    `mean(income - rent)`."""
    if found.column is not None and (found.column.clock is not None or found.column.kind == "ordinal"):
        return "label" if found.column.kind == "ordinal" else found.column.kind
    if found.unit == "share" and query.statistic in ("fraction", "cdf", "mean"):
        return "share"
    if query.statistic == "count":
        return "rows"
    if query.statistic == "correlation":
        return "correlation"
    return "square" if query.statistic in _SQUARES else "value"


def _described(kind: str, found: Found) -> str:
    names = {
        **{kind: f"a {clock.word}" for kind, clock in CLOCKS.items()},
        "share": "a share",
        "rows": "a number of rows",
        "correlation": "a correlation",
        "square": f"a variance or covariance ({found.unit:.60})",
        "value": f"a value ({found.unit:.60})",
    }
    return names[kind]
