"""Exceptions of a certificate: subsets of columns, chosen privately for their large errors, with their own bounds.

A few bad pairs would otherwise ruin the bounds of all others. A bad choice costs tightness, never truth: see
docs/explanation/proofs/direct.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypedDict

from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Guarantee, Neighbours, Sensitivity
from certsynth.mechanisms.concentrated import pure_epsilon
from certsynth.mechanisms.selection import choose_largest, cost_of_choice
from certsynth.mechanisms.spending import Spending
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import Subset

EXCEPTION_SHARE, MAX_EXCEPTION_SHARE = Fraction(1, 100), Fraction(3, 100)
"""Share of the budget for choosing one exception, and for choosing all of them, at most: many share it equally. Scores
are then compared with more noise, but subsets that stand out are chosen sooner or later."""

EXCEPTION_COLUMNS = 2
"""Columns of a subset, at most, if exceptions are chosen: all subsets are solved in order to choose."""

DEFAULT_SHARE_OF_PAIRS, MIN_DEFAULT_PAIRS = Fraction(1, 5), 100
"""Exceptions of a release by default, as a share of its pairs, and the least number of pairs at which it has any. A
fifth has most of the long tail of errors that a table of fire calls has."""

MIN_DEFAULT_EXCEPTIONS = 3
"""Exceptions of a release by default, at least; releases of earlier versions had as many."""

CHOSEN_BY_LOSS = 3
"""Exceptions that are chosen by their losses alone, before all others: errors of shares are often larger than losses,
and would leave the worst loss to all other subsets."""

MAX_SCORE_NOISE = Fraction(1, 100)
"""Scale of the noise of a choice, at most, as a share of the rows, if there are more exceptions than that: with more
noise, choices are a matter of chance."""

SCORE_STEPS = 16
"""Steps to the unit length of the lattice on which losses are compared in order to choose exceptions. Solving all pairs
of fifty columns on it takes a few seconds, and on a table of loans it found the same worst pairs as a finer one."""

SCORE_SENSITIVITY = Sensitivity(LOSS_UNITS, LOSS_UNITS**2)
"""The largest change of a score between neighbours: one row."""


def number_of_exceptions(asked: int | None, subsets: Sequence[Subset], *, default: bool = True) -> int:
    """The number of exceptions as `asked`, checked against the covered subsets.

    If it was left open, it is 0, or with `default` follows a rule that depends on public knowledge alone; then this is
    the largest number, and `affordable_exceptions` the number itself.
    """
    narrow = max(map(len, subsets)) <= EXCEPTION_COLUMNS
    if asked is None:
        pairs = sum(len(subset) == 2 for subset in subsets)
        return int(pairs * DEFAULT_SHARE_OF_PAIRS) if default and narrow and pairs >= MIN_DEFAULT_PAIRS else 0
    if asked and not narrow:
        raise InputError(
            f"`exceptions` is for subsets of at most {EXCEPTION_COLUMNS} columns; let it be 0, or cover fewer columns "
            "at once."
        )
    if asked and asked >= len(subsets):
        raise InputError(
            f"`exceptions` must be below the number of subsets that the certificate covers, {len(subsets):,}; got "
            f"{asked}."
        )
    return asked


def affordable_exceptions(most: int, budget: Budget, rows: int) -> int:
    """The number of exceptions by default, at most `most`, for a public number of rows: the more there are, the less
    budget each choice has."""
    return next(
        (
            number
            for number in range(most, MIN_DEFAULT_EXCEPTIONS, -1)
            if MAX_SCORE_NOISE * rows * pure_epsilon(budget.share(share_for_each(number))) >= 2
        ),
        min(most, MIN_DEFAULT_EXCEPTIONS),
    )


def share_for_all(number: int) -> Fraction:
    """Share of the budget for choosing this number of exceptions."""
    return min(number * EXCEPTION_SHARE, MAX_EXCEPTION_SHARE)


def share_for_each(number: int) -> Fraction:
    """Share of the budget for choosing one of this number of exceptions."""
    return share_for_all(number) / number


def scoring_query(fine: LatticeQuery) -> LatticeQuery:
    """The query for the same subsets on a coarse lattice, whose flows are part of the scores."""
    return LatticeQuery.of(fine.schema, fine.marginals.subsets, steps=SCORE_STEPS)


def scores_of(subsets: Sequence[Subset], flows: Sequence[int], errors: Mapping[Subset, Mapping[str, int]]) -> list[int]:
    """The scores by which most exceptions are chosen: the flow of a subset on the coarse lattice, or the largest error
    of a share of a pair if that is larger. Each changes by at most SCORE_SENSITIVITY, and so does the larger."""
    shares = [errors.get(subset, {}).get("share_of_two_columns", 0) for subset in subsets]
    return [max(pair) for pair in zip(flows, shares, strict=True)]


class _Choice(TypedDict):
    sensitivity: int
    epsilon: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class ExceptionChoice:
    """A private choice of `number` subsets at the cost of `budget` for each, paid from `spending`."""

    number: int
    budget: Budget
    neighbours: Neighbours
    spending: Spending

    @property
    def cost(self) -> Guarantee:
        return Guarantee(cost_of_choices(self.budget, self.number), self.neighbours)

    def choose(self, losses: Sequence[int], scores: Sequence[int]) -> tuple[int, ...]:
        """The positions of subsets with large losses, and then of others with large scores; losses and scores must
        change by at most SCORE_SENSITIVITY."""
        self.spending.take(self.budget.share(Fraction(self.number)))
        each: _Choice = {"sensitivity": SCORE_SENSITIVITY.l1, "epsilon": pure_epsilon(self.budget)}
        chosen = choose_largest(losses, number=min(self.number, CHOSEN_BY_LOSS), **each)
        if more := self.number - len(chosen):
            chosen += choose_largest(scores, number=more, without=chosen, **each)
        return chosen


def cost_of_choices(each: Budget, number: int) -> Budget:
    """The cost of several choices, one after the other, with the same budget for each."""
    return cost_of_choice(each).share(Fraction(number))
