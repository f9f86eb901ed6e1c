"""A few integers with noise, and bounds on what they were before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.mechanisms.guarantee import Guarantee, Neighbours
from certsynth.mechanisms.samplers import ExactNoise, Noise, tail_quantile


@dataclass(frozen=True, slots=True)
class NoisyScalars:
    """Integers with discrete Laplace noise of one scale."""

    values: tuple[int, ...]
    scale: float
    cost: Guarantee
    releasable: bool = True

    def slack(self, beta: Fraction) -> int:
        """An exact value exceeds its noisy one by more than this with probability at most β, and so below."""
        return tail_quantile(self.scale, beta)


def measure_scalars(
    values: Sequence[int],
    *,
    sensitivity: int,
    epsilon: Fraction,
    neighbours: Neighbours,
    noise: Noise | None = None,
) -> NoisyScalars:
    """`values`, whose L1 sensitivity is given, at the cost of `epsilon`."""
    noise = noise or ExactNoise()
    noised = noise.add(np.array(values, dtype=np.int64), sensitivity=sensitivity, epsilon=epsilon)
    return NoisyScalars(
        values=tuple(int(v) for v in noised.values),
        scale=noised.scale,
        cost=Guarantee(noised.epsilon, neighbours),
        releasable=noise.releasable,
    )
