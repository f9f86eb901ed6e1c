"""Exact noise for releases, and draws of the same law for Monte Carlo.

The two never mix: `ExactNoise` takes its randomness from the operating system through OpenDP and has no seed;
`simulate` is seeded, and used only to learn how large noise can be.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from certsynth.arrays import Floats, Ints, frozen
from certsynth.errors import TooLarge, UnsafeNoise

OLDEST_SAFE_OPENDP = (0, 14, 2)  # earlier samplers are biased
MAX_SCALE = 2.0**56  # a float's smallest uniform is 2^−53: no draw is beyond 37 scales, which is below 2^62


@dataclass(frozen=True, slots=True, eq=False)
class Noised:
    """Noisy integers, with the scale of the noise and what they cost."""

    values: Ints
    scale: float
    epsilon: Fraction


class Noise(Protocol):
    """Adds discrete Laplace noise to integers. `releasable`: whether the result may leave the house."""

    @property
    def releasable(self) -> bool: ...

    def add(self, values: Ints, *, sensitivity: int, epsilon: Fraction) -> Noised:
        """`values`, whose L1 sensitivity is given, with noise that makes them ε-differentially private."""
        ...


class ExactNoise:
    r"""Discrete Laplace from OpenDP: P(Z = z) = (1 − p)/(1 + p) · p^{|z|}, p = e^{−1/scale}."""

    releasable = True

    def add(self, values: Ints, *, sensitivity: int, epsilon: Fraction) -> Noised:
        if sensitivity < 1 or epsilon <= 0:
            raise ValueError("noise needs a sensitivity of at least 1 and a positive epsilon")
        scale = calibrated_scale(sensitivity, epsilon)
        try:
            noisy = _laplace(scale)(values.tolist())
        except Exception:  # OpenDP's messages may hold counts
            raise UnsafeNoise("OpenDP could not draw noise; nothing was released.") from None
        if len(noisy) != len(values):
            raise UnsafeNoise("OpenDP returned a vector of another length; nothing was released.")
        return Noised(values=frozen(np.array(noisy, dtype=np.int64)), scale=scale, epsilon=epsilon)


def calibrated_scale(sensitivity: int, epsilon: Fraction) -> float:
    """A scale, as small as floats allow, at which OpenDP's map says at most `epsilon`, compared as exact rationals."""
    scale = float(Fraction(sensitivity) / epsilon)
    if scale > MAX_SCALE:
        raise TooLarge("the noise would not fit into 64 bits: raise epsilon, or measure fewer marginals.")
    while Fraction(_laplace(scale).map(sensitivity)) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def simulate(rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Ints:
    """Discrete Laplace draws for Monte Carlo: the difference of two geometric variables, G = ⌊−scale · ln U⌋.

    Only uniform numbers are taken from the generator, whose bit stream NumPy keeps fixed across versions: whoever
    verifies a release gets the same draws.
    """
    if scale > MAX_SCALE:
        raise ValueError("draws of this scale would overflow")
    uniform = 1.0 - rng.random((2, *size))  # in (0, 1]
    first, second = np.floor(-scale * np.log(uniform)).astype(np.int64)
    return first - second


def tail_quantile(scale: float, beta: Fraction) -> int:
    """The smallest t ≥ 0 with P(Z > t) ≤ β, where P(Z > t) = p^{t+1}/(1 + p)."""
    p = math.exp(-1 / scale)
    t = max(0, math.ceil(scale * math.log(1 / (float(beta) * (1 + p)))) - 1)
    while _log_tail(scale, t) > math.log(beta) - 1e-12:  # rounding of the logarithm never makes t too small
        t += 1
    return t


def _log_tail(scale: float, t: int) -> float:
    return -(t + 1) / scale - math.log1p(math.exp(-1 / scale))


@functools.lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    return dp.m.make_laplace(*space, scale=scale)


@functools.cache
def _opendp() -> Any:
    """OpenDP, after a look at its version and its first draws."""
    version = importlib.metadata.version("opendp")
    if not is_safe_version(version):
        raise UnsafeNoise(f"OpenDP {version} is not safe to use: install opendp >= 0.14.2.")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    self_test(np.array(dp.m.make_laplace(*space, scale=8.0)([0] * 2000), dtype=float), scale=8.0)
    return dp


def is_safe_version(version: str) -> bool:
    """Whether a version of OpenDP is recent enough.

    >>> [is_safe_version(v) for v in ("0.14.2", "0.16.0", "1.0.0rc1", "0.14.1", "0.9", "nonsense")]
    [True, True, True, False, False, False]
    """
    parts = version.split(".")[:3]
    numbers = []
    for part in parts:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            return False
        numbers.append(int(digits))
    return tuple(numbers + [0] * (3 - len(numbers))) >= OLDEST_SAFE_OPENDP


def self_test(draws: Floats, *, scale: float) -> None:
    """Refuse noise that is plainly not what was asked for: constant, off centre, or of the wrong width.

    The bounds are eight standard errors wide: a sound sampler fails once in 10^14 starts.
    """
    n = len(draws)
    p = math.exp(-1 / scale)
    spread = 2 * p / (1 - p) ** 2  # the variance
    # |Z| has mean 2p/(1 − p²) and a variance below that of Z.
    mean_size = 2 * p / (1 - p**2)
    # Asked so that NaN fails.
    centred = n > 0 and abs(draws.mean()) <= 8 * math.sqrt(spread / n)
    if not (centred and abs(np.abs(draws).mean() - mean_size) <= 8 * math.sqrt(spread / n)):
        raise UnsafeNoise("the noise of OpenDP failed its start-up test: nothing is released. Reinstall opendp.")
