"""Choose privately among options by their losses: permute-and-flip, with exact coins."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from fractions import Fraction

from certsynth.mechanisms.concentrated import pure_epsilon
from certsynth.mechanisms.guarantee import Budget, Unit


def cost_of_choice(budget: Budget) -> Budget:
    """What a choice with the ε that `budget` allows costs: ε itself, or in ρ no more than that."""
    return budget if budget.unit is Unit.EPSILON else Budget(pure_epsilon(budget) ** 2 / 2, Unit.RHO)


def choose_least(losses: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
    r"""Choose the index of a small loss; ε-differentially private if no loss changes by more than `sensitivity`.

    The indices come in random order, and each is chosen with probability

    .. math:: \exp\bigl(-\varepsilon\,(loss_i - \min loss) / (2\,sensitivity)\bigr)

    until one is. The 2 is needed, since one row may raise one loss and lower another. The chosen loss exceeds the least
    by more than (2·sensitivity/ε)·ln(M/β) with probability at most β (McKenna and Sheldon, "Permute-and-flip", 2020).
    """
    if sensitivity < 1 or epsilon <= 0:
        raise ValueError("the choice needs a sensitivity of at least 1 and a positive epsilon")
    return _permute_and_flip([Fraction(loss, sensitivity) for loss in losses], epsilon)


def choose_largest(
    scores: Sequence[int], *, number: int, sensitivity: int, epsilon: Fraction, without: Collection[int] = ()
) -> tuple[int, ...]:
    """Choose the indices of `number` large scores, one after the other, each as `choose_least` does among those that
    are left; (number · ε)-differentially private if no score changes by more than `sensitivity`. Indices in `without`
    are left out: they must be public, or have been chosen before.
    """
    left, chosen = [i for i in range(len(scores)) if i not in without], []
    for _ in range(number):
        best = choose_least([-scores[i] for i in left], sensitivity=sensitivity, epsilon=epsilon)
        chosen.append(left.pop(best))
    return tuple(chosen)


def choose_by_ratio(losses: Sequence[int], *, sensitivities: Sequence[int], epsilon: Fraction) -> int:
    r"""The same with a sensitivity for each loss: losses of low sensitivity are distinguished better.

    .. math:: score_i = \max_j \frac{loss_i - loss_j}{sensitivity_i + sensitivity_j}

    changes by at most 1 (Raskhodnikova and Smith, "Lipschitz extensions for node-private graph statistics and the
    generalized exponential mechanism", 2016), and is least, at most 0, for the least loss.
    """
    if min(sensitivities) < 1 or epsilon <= 0:
        raise ValueError("the choice needs sensitivities of at least 1 and a positive epsilon")
    pairs = list(zip(losses, sensitivities, strict=True))
    return _permute_and_flip([max(Fraction(a - b, of_a + of_b) for b, of_b in pairs) for a, of_a in pairs], epsilon)


def _permute_and_flip(scores: Sequence[Fraction], epsilon: Fraction) -> int:
    """Choose the index of a small score; no score changes by more than 1."""
    least = min(scores)
    order = list(range(len(scores)))
    secrets.SystemRandom().shuffle(order)
    return next(i for i in order if flip(epsilon * (scores[i] - least) / 2))


def flip(gamma: Fraction) -> bool:
    """A coin that is heads with probability exp(−γ), exactly, for rational γ ≥ 0.

    For γ ≤ 1 by von Neumann's method: the first K at which a coin of probability γ/K fails is odd with probability
    exp(−γ) (Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020, algorithm 1).
    """
    while gamma > 1:
        if not flip(Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while secrets.randbelow(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1
