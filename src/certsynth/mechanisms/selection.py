"""Choosing among candidates by a private score: permute-and-flip, with exact coins."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from fractions import Fraction


def choose_least(losses: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
    r"""Index of a small loss, ε-differentially private if no loss changes by more than `sensitivity`.

    The candidates come in random order, and each is taken with probability

    .. math:: \exp\bigl(-\varepsilon\,(loss_i - \min loss) / (2\,sensitivity)\bigr)

    until one is. The 2 is needed: one row may raise one loss and lower another. The chosen loss exceeds the least by
    more than (2·sensitivity/ε)·ln(M/β) with probability at most β (McKenna and Sheldon, "Permute-and-flip", 2020).
    """
    if sensitivity < 1 or epsilon <= 0:
        raise ValueError("the choice needs a sensitivity of at least 1 and a positive epsilon")
    least = min(losses)
    order = list(range(len(losses)))
    secrets.SystemRandom().shuffle(order)
    return next(i for i in order if flip(epsilon * (losses[i] - least) / (2 * sensitivity)))


def flip(gamma: Fraction) -> bool:
    """A coin that is heads with probability exp(−γ), exactly, for rational γ ≥ 0.

    Up to 1 by von Neumann's race: the first K at which a coin of probability γ/K fails is odd with probability exp(−γ)
    (Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020, algorithm 1).
    """
    while gamma > 1:
        if not flip(Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while secrets.randbelow(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1
