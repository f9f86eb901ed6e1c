"""Shares of rows that satisfy a condition, among all rows or within a group."""

from __future__ import annotations

import numpy as np

from certsynth.answers import lifts
from certsynth.answers.basis import Basis
from certsynth.answers.kernels import largest_mean, largest_share, merge_rows
from certsynth.answers.nearness import Rest
from certsynth.domain.condition import And, Condition
from certsynth.errors import InputError

Interval = tuple[float, float, float]
"""Estimate, low and high."""

EMPTY = (
    "no synthetic row satisfies the condition, so nothing can be said about the rows that do; ask for fraction(…) of "
    "it to see how rare they may be."
)


def share(basis: Basis, condition: Condition, bound: float) -> Interval:
    r"""P(condition): at most :math:`\min_τ E_μ (1 − d(x, A)/τ)^+ + b/τ` with A the rows that satisfy it; at least 1
    minus the same bound for all other rows, including those where it is unknown."""
    estimate = float(np.mean(condition.holds(basis.rows) > 0))
    high = largest_share(basis.nearness.satisfied(condition), bound)
    low = 1.0 - largest_share(basis.nearness.rest(condition), bound)
    return estimate, max(low, 0.0), high


def share_within(basis: Basis, condition: Condition, group: Condition, bound: float) -> Interval:
    """P(condition | group): the largest and the smallest share over all tables within the bound."""
    inside, among = condition.holds(basis.rows) > 0, group.holds(basis.rows) > 0
    if not among.any():
        raise InputError(EMPTY)
    near, away = basis.nearness, basis.nearness.rest(group)
    both = near.satisfied(And((condition, group)))
    other = near.satisfied(And((Rest(condition), group)))
    (both, other, away), weights = merge_rows(both, other, away)
    high = largest_mean(lifts.indicator(both, other), away, weights, bound, low=0.0, high=1.0)
    low = 1.0 - largest_mean(lifts.indicator(other, both), away, weights, bound, low=0.0, high=1.0)
    return float(np.mean(inside[among])), max(low, 0.0), min(high, 1.0)
