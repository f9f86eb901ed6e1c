"""Permute-and-flip: its coins are exact, its choice private, and the factor 2 needed."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from scipy.stats import chisquare

from certsynth.mechanisms.selection import choose_by_ratio, choose_largest, choose_least, flip

ALARM = 1e-9
"""The chance that a χ² test of the true law fails; its controls pass with a chance below 10⁻¹⁰⁰."""


def _law(losses: tuple[int, ...], *, sensitivity: int, epsilon: float, factor: int = 2) -> list[float]:
    """Probability of each choice, summed over all orders."""
    heads = [math.exp(-epsilon * (loss - min(losses)) / (factor * sensitivity)) for loss in losses]
    chosen = [0.0] * len(losses)
    orders = list(itertools.permutations(range(len(losses))))
    for order in orders:
        still = 1 / len(orders)
        for i in order:
            chosen[i] += still * heads[i]
            still *= 1 - heads[i]
    return chosen


def _worst_ratio(factor: int) -> float:
    """Largest log-ratio of the law over all neighbouring scores on a small grid."""
    worst = 0.0
    for losses in itertools.product(range(5), repeat=3):
        for change in itertools.product((-1, 0, 1), repeat=3):
            other = tuple(x + d for x, d in zip(losses, change, strict=True))
            laws = [_law(scores, sensitivity=1, epsilon=1.0, factor=factor) for scores in (losses, other)]
            worst = max(worst, *(math.log(p / q) for p, q in zip(*laws, strict=True)))
    return worst


def test_no_neighbours_shift_any_choice_by_more_than_epsilon():
    assert 0.9 < _worst_ratio(2) <= 1 + 1e-12


def test_without_the_factor_two_it_would_not_be_private():
    assert _worst_ratio(1) > 1.5


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(9, 4)])
def test_coins_have_the_stated_probability(gamma):
    """20,000 flips within 6.5 standard errors, which chance exceeds once in 10¹⁰; a coin of 1.15 γ would be outside."""
    runs, p = 20_000, math.exp(-gamma)
    share = sum(flip(gamma) for _ in range(runs)) / runs
    margin = 6.5 * math.sqrt(p * (1 - p) / runs)
    assert abs(share - p) <= margin
    if gamma >= 1:
        assert abs(math.exp(-1.15 * gamma) - p) > margin


def test_choices_have_the_law_of_permute_and_flip():
    """χ² over 6,000 choices, with a false alarm of 10⁻⁹; the law at twice the budget must be refused."""
    losses, runs = (0, 2, 3, 9), 6_000
    seen = Counter(choose_least(losses, sensitivity=2, epsilon=Fraction(2)) for _ in range(runs))
    counts = [seen[i] for i in range(4)]
    fits = [
        chisquare(counts, [runs * p for p in _law(losses, sensitivity=2, epsilon=epsilon)]).pvalue
        for epsilon in (2.0, 4.0)
    ]
    assert fits[0] > ALARM
    assert fits[1] < ALARM


def test_the_best_of_very_different_tables_is_taken():
    losses = [1000, 10, 1000]
    assert {choose_least(losses, sensitivity=1, epsilon=Fraction(1)) for _ in range(50)} == {1}


def test_refuses_a_choice_without_protection():
    with pytest.raises(ValueError, match="sensitivity"):
        choose_least([1, 2], sensitivity=0, epsilon=Fraction(1))


def _law_by_ratio(losses: tuple[int, ...], sensitivities: tuple[int, ...], epsilon: float = 1.0) -> list[float]:
    pairs = list(zip(losses, sensitivities, strict=True))
    scores = [max((a - b) / (s + t) for b, t in pairs) for a, s in pairs]
    return _law(tuple(scores), sensitivity=1, epsilon=epsilon)


def _worst_ratio_by_ratio(changes: tuple[int, ...], sensitivities: tuple[int, ...]) -> float:
    worst = 0.0
    for losses in itertools.product(range(0, 13, 3), repeat=3):
        for change in itertools.product(*((-c, 0, c) for c in changes)):
            other = tuple(x + d for x, d in zip(losses, change, strict=True))
            laws = [_law_by_ratio(scores, sensitivities) for scores in (losses, other)]
            worst = max(worst, *(math.log(p / q) for p, q in zip(*laws, strict=True)))
    return worst


def test_a_choice_by_ratio_is_private_and_needs_its_sensitivities():
    """All neighbours on a grid of losses that change by 1, 2 and 6; told that all change by 1 it is not private."""
    assert 0.5 < _worst_ratio_by_ratio((1, 2, 6), (1, 2, 6)) <= 1 + 1e-12
    assert _worst_ratio_by_ratio((1, 2, 6), (1, 1, 1)) > 1.5


def test_choices_by_ratio_have_their_law():
    """χ² over 6,000 choices; the law at twice the budget must be refused."""
    losses, sensitivities = (0, 3, 20, 2), (1, 2, 9, 1)
    laws, runs = [_law_by_ratio(losses, sensitivities, epsilon) for epsilon in (1.0, 2.0)], 6_000
    seen = Counter(choose_by_ratio(losses, sensitivities=sensitivities, epsilon=Fraction(1)) for _ in range(runs))
    fits = [chisquare([seen[i] for i in range(4)], [p * runs for p in law]).pvalue for law in laws]
    assert fits[0] > ALARM
    assert fits[1] < ALARM


@pytest.mark.parametrize("wrong", [{"sensitivities": (1, 0)}, {"epsilon": Fraction(0)}])
def test_choices_by_ratio_refuse_what_makes_no_sense(wrong):
    with pytest.raises(ValueError, match="choice needs"):
        choose_by_ratio((1, 2), **({"sensitivities": (1, 1), "epsilon": Fraction(1)} | wrong))


# ------------------------------------------------------------ several, one after the other


def _law_of_two(scores: tuple[int, ...], *, sensitivity: int, epsilon: float) -> dict[tuple[int, int], float]:
    """Probability of each ordered pair of choices of large scores."""
    first = _law(tuple(-score for score in scores), sensitivity=sensitivity, epsilon=epsilon)
    found = {}
    for i, p in enumerate(first):
        left = [j for j in range(len(scores)) if j != i]
        second = _law(tuple(-scores[j] for j in left), sensitivity=sensitivity, epsilon=epsilon)
        found |= {(i, j): p * q for j, q in zip(left, second, strict=True)}
    return found


def test_several_choices_have_the_law_of_permute_and_flip_one_after_the_other():
    """χ² over 6,000 pairs of choices; the law at twice the budget must be refused."""
    scores, runs = (9, 7, 6, 0), 6_000
    seen = Counter(choose_largest(scores, number=2, sensitivity=2, epsilon=Fraction(2)) for _ in range(runs))
    fits = []
    for epsilon in (2.0, 4.0):
        law = _law_of_two(scores, sensitivity=2, epsilon=epsilon)
        assert set(seen) <= set(law)
        fits.append(chisquare([seen[pair] for pair in law], [runs * p for p in law.values()]).pvalue)
    assert fits[0] > ALARM
    assert fits[1] < ALARM


def test_no_neighbours_shift_several_choices_by_more_than_the_sum_of_their_budgets():
    worst = 0.0
    for scores in itertools.product(range(4), repeat=3):
        for change in itertools.product((-1, 0, 1), repeat=3):
            other = tuple(x + d for x, d in zip(scores, change, strict=True))
            law, shifted = (_law_of_two(each, sensitivity=1, epsilon=1.0) for each in (scores, other))
            worst = max(worst, *(math.log(law[pair] / shifted[pair]) for pair in law))
    assert 1 < worst <= 2 + 1e-12


def test_all_are_chosen_once_if_all_are_asked_for():
    assert sorted(choose_largest((5, 5, 1, 0), number=4, sensitivity=1, epsilon=Fraction(1))) == [0, 1, 2, 3]
    assert choose_largest((5, 1), number=0, sensitivity=1, epsilon=Fraction(1)) == ()
    for _ in range(20):
        left = choose_largest((5, 5, 1, 0), number=2, sensitivity=1, epsilon=Fraction(1), without=(0, 2))
        assert sorted(left) == [1, 3]
