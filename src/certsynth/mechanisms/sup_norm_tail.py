r"""How large sup-norm noise can be: quantiles of its largest value, of its smallest, and of a single one.

Given the radius R, values are independent and uniform on {−R, …, R}. The probability that one of `jointly` of them
exceeds t is

.. math:: q_t(R) = 1 - \Bigl(1 - \frac{s\,(R - t)}{2R + 1}\Bigr)^{jointly} \quad (R > t), \qquad s = 1, 2

for one side or both; it grows with R. The mean over R is bounded from above in blocks of radii: weights are
log-concave, so a tangent bounds a block's weight from above and a chord from below, and q is taken at the block's end.
docs/explanation/proofs/sup-norm.md has the proof.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Floats, read_only

_BLOCKS = 2**13
_DEPTH = 60.0  # the blocks end where weights are below e^−60 of the largest
_LEAST_PROBABILITY = Fraction(1, 10**300)  # smaller ones are not floats
_MARGIN = 1e-8  # relative; far above the rounding of all floats here, for up to 10^6 integers


@functools.lru_cache(maxsize=1_024)
def sup_norm_quantile(
    size: int, scale: float, beta: Fraction, *, jointly: int | None = None, both_sides: bool = False
) -> int:
    """A t ≥ 0, about the smallest, with P(max_i z_i > t) ≤ β for P(z) ∝ exp(−max|z|/scale) on `size` integers.

    The maximum is over the first `jointly` values, or all; with `both_sides`, it is that of |z_i|. By symmetry the same
    t holds for −z.
    """
    if beta < _LEAST_PROBABILITY:
        raise ValueError("the probability that noise is larger must not be so close to 0")
    blocks = _blocks(size, scale)
    jointly, most = size if jointly is None else jointly, float(beta) * (1 - _MARGIN)
    low, high = -1, blocks.end
    while blocks.exceeded(high, jointly, both_sides) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if blocks.exceeded(middle, jointly, both_sides) > most:
            low = middle
        else:
            high = middle
    return high + (high >> 40)  # beyond 2^53 floats skip integers, by far less than this


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Blocks of radii: their last members, and upper bounds on their probabilities. From `end` on, the rest."""

    last: Floats
    chance: Floats
    end: int
    slope: float
    chance_of_end: float

    def exceeded(self, t: int, jointly: int, both_sides: bool) -> float:
        """An upper bound on the probability that one of the values exceeds t."""
        excess = np.maximum(self.last - t, 0.0)
        share = np.minimum((1 + both_sides) * excess / (2 * self.last + 1), 1.0)
        with np.errstate(divide="ignore"):
            q = -np.expm1(jointly * np.log1p(-share))
        # Beyond the blocks only radii above t count; their weights fall at least as fast as by the slope at `end`.
        beyond = self.chance_of_end * math.exp(self.slope * max(t + 1 - self.end, 0)) / -math.expm1(self.slope)
        return float((self.chance * q).sum()) + beyond


@functools.lru_cache(maxsize=16)
def _blocks(size: int, scale: float) -> _Blocks:
    """Cover the radii that matter. Logarithms of weights are relative to that of the radius `middle` near the mode."""
    depth = _DEPTH / size
    middle = math.floor(size * scale)
    start = max(0, math.floor(size * scale * (1 - math.sqrt(2 * depth))) - 1)
    reach = size * scale * (1 + depth + math.sqrt(depth**2 + 2 * depth)) + 1
    width = 2 ** max(0, math.ceil(math.log2((reach - start) / _BLOCKS)))
    start -= start % width
    first = start + width * np.arange(math.ceil((reach - start) / width) + 1, dtype=float)
    away, at_middle = first - middle, 2 * middle + 1
    far_below = np.log(2 * first + 1) - math.log(at_middle)
    near = np.log1p(np.maximum(2 * away / at_middle, -0.75))
    logarithm = size * np.where(first < middle / 2, far_below, near) - away / scale
    slope = size / (first + 0.5) - 1 / scale
    by_left_tangent = logarithm[:-1] + _log_geometric_sum(slope[:-1], width)
    by_right_tangent = logarithm[1:] - slope[1:] + _log_geometric_sum(-slope[1:], width)
    by_chord = logarithm[:-1] + _log_geometric_sum(np.diff(logarithm) / width, width)
    whole = float(np.exp(by_chord).sum())
    chance = np.exp(np.minimum(by_left_tangent, by_right_tangent)) / whole
    if start:  # radii below the first block have weights that fall at least as fast as by the slope there
        chance[0] += math.exp(logarithm[0]) / math.expm1(slope[0]) / whole
    return _Blocks(
        last=read_only(first[:-1] + (width - 1)),
        chance=read_only(chance),
        end=int(first[-1]),
        slope=float(slope[-1]),
        chance_of_end=math.exp(logarithm[-1]) / whole,
    )


def _log_geometric_sum(slope: Floats, terms: int) -> Floats:
    """The logarithm of Σ over j < terms of e^{slope·j}."""
    size = -np.maximum(np.abs(slope), 1e-300)
    return np.maximum(slope, 0.0) * (terms - 1) + np.log(np.expm1(size * terms) / np.expm1(size))
