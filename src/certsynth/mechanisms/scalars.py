"""Measure a few integers with noise, and bound their exact values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity
from certsynth.mechanisms.samplers import ExactNoise, Noise, is_enough, is_sup_norm, tail_quantile
from certsynth.mechanisms.sup_norm_tail import sup_norm_quantile

_ROUNDING = 1e-9  # relative; OpenDP's own map may ask for a few floats more than exact rationals do


@dataclass(frozen=True, slots=True)
class NoisyScalars:
    """Integers with noise of one scale. `sensitivity` is what the noise was made for, where that is known."""

    values: tuple[int, ...]
    scale: float
    cost: Guarantee
    releasable: bool = True
    sensitivity: Sensitivity | None = None

    @property
    def sup_norm(self) -> bool:
        """Whether the noise was drawn for all values at once, with P(z) ∝ exp(−max|z|/scale)."""
        return is_sup_norm(self.sensitivity, self.cost.spent.unit)

    def slack(self, beta: Fraction) -> int:
        """A value exceeds its noisy one by more than this with probability at most β; likewise it falls below it."""
        if self.sup_norm:
            return sup_norm_quantile(len(self.values), self.scale, beta, jointly=1)
        return tail_quantile(self.cost.spent.unit, self.scale, beta)

    def joint_slack(self, beta: Fraction, *, both_sides: bool = False, used: int | None = None) -> int:
        """Some value exceeds its noisy one by more than this with probability at most β; likewise below it.

        With `both_sides`, some value differs from its noisy one by more than this, in either direction. `used`: only
        that many of the values matter, which were chosen without looking at any of them.
        """
        used = len(self.values) if used is None else used
        if self.sup_norm:
            return sup_norm_quantile(len(self.values), self.scale, beta, jointly=used, both_sides=both_sides)
        return tail_quantile(self.cost.spent.unit, self.scale, beta / (used * (1 + both_sides)))


def measure_scalars(
    values: Sequence[int],
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    neighbours: Neighbours,
    noise: Noise | None = None,
) -> NoisyScalars:
    """Measure `values` of the given sensitivity with noise, at the cost of `budget`."""
    noise = noise or ExactNoise()
    noised = noise.add(np.array(values, dtype=np.int64), sensitivity=sensitivity, budget=budget)
    return NoisyScalars(
        values=tuple(int(v) for v in noised.values),
        scale=noised.scale,
        cost=Guarantee(noised.spent, neighbours),
        releasable=noise.releasable,
        sensitivity=sensitivity,
    )


def measure_together(
    values: Sequence[int],
    *,
    change: int,
    budget: Budget,
    neighbours: Neighbours,
    noise: Noise | None = None,
) -> NoisyScalars:
    """Measure `values`, each of which changes by at most `change` between neighbours, at the cost of `budget` in all.

    In ε the noise is that of the sup norm, in ρ it is Gaussian; bounds on all values together are in `joint_slack`.
    """
    sensitivity = Sensitivity.of_each(change, len(values))
    return measure_scalars(values, sensitivity=sensitivity, budget=budget, neighbours=neighbours, noise=noise)


def is_calibrated(scale: float, sensitivity: Sensitivity, budget: Budget) -> bool:
    """Whether `scale` is the one that integers of this sensitivity get for this budget: enough, and no larger than
    rounding makes it. Where nothing changes between neighbours, nothing is spent and the scale is 1.
    """
    if not sensitivity:
        return not budget.amount and scale == 1.0
    if budget.amount <= 0 or not is_enough(scale, sensitivity, budget):
        return False
    return not is_enough(scale * (1 - _ROUNDING), sensitivity, budget)
