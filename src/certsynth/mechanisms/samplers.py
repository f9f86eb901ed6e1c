"""Exact noise for releases, and simulated draws of the same law for Monte Carlo.

The two never mix: `ExactNoise` takes its randomness from the operating system, through OpenDP but for sup-norm noise,
and has no seed; `simulate` is seeded, and serves only to estimate the size of noise.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from scipy.special import log_ndtr, ndtri

from certsynth.base.arrays import Floats, Ints, read_only
from certsynth.errors import TooLarge, UnsafeNoise
from certsynth.mechanisms.guarantee import Budget, Sensitivity, Unit
from certsynth.mechanisms.rare import Tail, rare_noise, secret_words
from certsynth.mechanisms.sup_norm import draw_sup_norm, simulate_sup_norm

OLDEST_SAFE_OPENDP = (0, 14, 2)  # earlier samplers are biased
MAX_SCALE = 2.0**56  # a float's smallest uniform is 2^−53: no draw is beyond 37 scales, which is below 2^62
MAX_TABULATED_SCALE = 2.0**18
"""Scale of Gaussian noise up to which simulated draws come from a table of probabilities, with 20 · scale entries."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyIntegers:
    """Integers with noise, the scale of the noise, and the budget spent."""

    values: Ints
    scale: float
    spent: Budget


class Noise(Protocol):
    """Adds noise to integers: discrete Laplace for ε, or sup-norm noise if each change is bounded; Gaussian for ρ.

    `releasable`: whether the result protects privacy, so that it may be published.
    """

    @property
    def releasable(self) -> bool: ...

    def add(self, values: Ints, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        """Add noise to `values` of the given sensitivity, at the cost of `budget`."""
        ...

    def rare(self, cells: int, tail: Tail) -> tuple[Ints, Ints]:
        """Draw noise for `cells` empty cells; return the positions and noise of those in a tail of the law of `add`.

        These cells belong to a vector that `add` was called for, so they cost nothing more.
        """
        ...


class ExactNoise:
    r"""Independent noise drawn by OpenDP, and sup-norm noise by `sup_norm.py`.

    .. math:: P(Z = z) \propto e^{-|z|/scale} \text{ for } \varepsilon, \quad e^{-z^2/2 scale^2} \text{ for } \rho
    """

    releasable = True

    def add(self, values: Ints, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        if min(sensitivity.l1, sensitivity.l2_squared, _change(sensitivity)) < 1 or budget.amount <= 0:
            raise ValueError("noise needs a sensitivity of at least 1 and a positive budget")
        scale = calibrated_scale(sensitivity, budget)
        if is_sup_norm(sensitivity, budget.unit):
            drawn = draw_sup_norm(len(values), 1 / Fraction(scale))
            return NoisyIntegers(values=read_only(_sums(values, drawn)), scale=scale, spent=budget)
        try:
            noisy = _mechanism(budget.unit, scale)(values.tolist())
        except Exception:  # OpenDP's messages may contain counts
            raise UnsafeNoise("OpenDP could not draw noise; nothing was released.") from None
        if len(noisy) != len(values):
            raise UnsafeNoise("OpenDP returned a vector of another length; nothing was released.")
        return NoisyIntegers(values=read_only(np.array(noisy, dtype=np.int64)), scale=scale, spent=budget)

    def rare(self, cells: int, tail: Tail) -> tuple[Ints, Ints]:
        return rare_noise(cells, tail, secret_words)


class SimulatedNoise:
    """Seeded noise of the same law and scale, for rehearsals on made-up tables. It gives no privacy."""

    releasable = False

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def add(self, values: Ints, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        scale = calibrated_scale(sensitivity, budget)
        if is_sup_norm(sensitivity, budget.unit):
            return NoisyIntegers(values + simulate_sup_norm(self.rng, len(values), scale), scale, budget)
        return NoisyIntegers(values + simulate(self.rng, budget.unit, scale, values.shape), scale, budget)

    def rare(self, cells: int, tail: Tail) -> tuple[Ints, Ints]:
        return rare_noise(cells, tail, lambda count: np.frombuffer(self.rng.bytes(8 * count), np.uint64))


def is_sup_norm(sensitivity: Sensitivity | None, unit: Unit) -> bool:
    """Whether integers of this sensitivity get sup-norm noise: in ε, if the change of each is bounded."""
    return unit is Unit.EPSILON and sensitivity is not None and sensitivity.each is not None


def calibrated_scale(sensitivity: Sensitivity, budget: Budget) -> float:
    """The smallest float scale, about, that meets the budget by exact arithmetic and by OpenDP's own privacy map.

    OpenDP has no map for sup-norm noise.
    """
    sup_norm = is_sup_norm(sensitivity, budget.unit)
    if budget.unit is Unit.EPSILON:
        scale = float(Fraction(_change(sensitivity)) / budget.amount)
    else:
        scale = math.sqrt(Fraction(sensitivity.l2_squared) / (2 * budget.amount))
    width = float(sensitivity.l1 / budget.amount) if sup_norm else scale  # sup-norm noise is count · scale wide, about
    if width > MAX_SCALE:
        raise TooLarge("the noise would not fit into 64 bits: raise the budget, or measure fewer marginals.")
    while not is_enough(scale, sensitivity, budget) or (
        not sup_norm and _opendp_cost(scale, sensitivity, budget.unit) > budget.amount
    ):
        scale = math.nextafter(scale, math.inf)
    return scale


def is_enough(scale: float, sensitivity: Sensitivity, budget: Budget) -> bool:
    """Whether noise of this scale on integers of this sensitivity costs at most the budget, in exact arithmetic.

    Δ₁/scale ≤ ε, or Δ₂²/(2·scale²) ≤ ρ; for sup-norm noise the largest change of one integer over scale ≤ ε.
    """
    exact = Fraction(scale)
    if budget.unit is Unit.EPSILON:
        return _change(sensitivity) <= budget.amount * exact
    return sensitivity.l2_squared <= 2 * budget.amount * exact**2


def _change(sensitivity: Sensitivity) -> int:
    """The change that noise for ε is calibrated to: in the sup norm if that is bounded, else in L1."""
    return sensitivity.l1 if sensitivity.each is None else sensitivity.each


def _sums(values: Ints, noise: list[int]) -> Ints:
    """Sums, cut at the ends of 64-bit integers, as OpenDP cuts them."""
    low, high = -(2**63), 2**63 - 1
    return np.array([min(max(value + z, low), high) for value, z in zip(values.tolist(), noise, strict=True)], np.int64)


def _opendp_cost(scale: float, sensitivity: Sensitivity, unit: Unit) -> Fraction:
    """The cost of noise of this scale by OpenDP's privacy map. The L2 distance it takes is a float, rounded up here."""
    if unit is Unit.EPSILON:
        return Fraction(_mechanism(unit, scale).map(sensitivity.l1))
    distance = math.sqrt(sensitivity.l2_squared)
    while Fraction(distance) ** 2 < sensitivity.l2_squared:
        distance = math.nextafter(distance, math.inf)
    return Fraction(_mechanism(unit, scale).map(distance))


def standard_deviation(scale: float, unit: Unit) -> float:
    """Standard deviation of discrete noise of the given scale: Laplace for ε, Gaussian for ρ (about)."""
    if unit is Unit.RHO:
        return scale
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


def simulate(rng: np.random.Generator, unit: Unit, scale: float, size: tuple[int, ...]) -> Ints:
    """Draw from the law of the noise, for Monte Carlo.

    Only uniform numbers are taken from the generator, whose bit stream NumPy keeps fixed across versions, so that
    verification of a release repeats the same draws.
    """
    if scale > MAX_SCALE:
        raise ValueError("draws of this scale would overflow")
    return _simulate_laplace(rng, scale, size) if unit is Unit.EPSILON else _simulate_gaussian(rng, scale, size)


def _simulate_laplace(rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Ints:
    """Discrete Laplace: the difference of two geometric variables, G = ⌊−scale · ln U⌋."""
    uniform = 1.0 - rng.random((2, *size))  # in (0, 1]
    first, second = np.floor(-scale * np.log(uniform)).astype(np.int64)
    return first - second


def _simulate_gaussian(rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Ints:
    """Discrete Gaussian by inversion of its distribution function.

    Beyond MAX_TABULATED_SCALE it is approximated by a rounded normal variable: wherever the probability matters, the
    two laws differ by a relative error below 10^-10. No double leads to a value beyond 9 scales.
    """
    uniform = np.maximum(rng.random(size), 2.0**-54)  # inside (0, 1)
    if scale > MAX_TABULATED_SCALE:
        return np.rint(scale * ndtri(uniform)).astype(np.int64)
    below = _cumulative_weights(scale)
    return np.searchsorted(below, uniform * below[-1]) - len(below) // 2


@functools.lru_cache(maxsize=1)
def _cumulative_weights(scale: float) -> Floats:
    """Running sums of the weights of integers from −10 scales on. Cached: all tables of a measurement share them."""
    reach = math.ceil(10 * scale) + 1
    weights = np.exp(-((np.arange(-reach, reach + 1) / max(scale, 0.02)) ** 2) / 2)  # at smaller scales all draws are 0
    return read_only(np.cumsum(weights))


def tail_quantile(unit: Unit, scale: float, beta: Fraction) -> int:
    """A t ≥ 0 with P(Z > t) ≤ β: the smallest for Laplace noise, where P(Z > t) = p^{t+1}/(1 + p), p = e^{−1/scale}.

    For Gaussian noise P(Z > t) ≤ Q(t/scale), Q the tail of the normal law: sums over z > t of e^{−z²/2scale²} are below
    the integral from t, and the sum over all z is above the integral over all.
    """
    if unit is Unit.RHO:
        t = math.ceil(-scale * float(ndtri(float(beta))))
    else:
        t = math.ceil(scale * (-math.log(beta) - math.log1p(math.exp(-1 / scale)))) - 1
    t = max(t, 0)
    while _log_tail(unit, scale, t) > math.log(beta) - 1e-12:  # rounding of the logarithm never makes t too small
        t += 1
    return t


def _log_tail(unit: Unit, scale: float, t: int) -> float:
    """The logarithm of P(Z > t), or of a bound on it."""
    if unit is Unit.RHO:
        return float(log_ndtr(-t / scale))
    return -(t + 1) / scale - math.log1p(math.exp(-1 / scale))


@functools.lru_cache(maxsize=64)
def _mechanism(unit: Unit, scale: float) -> Any:
    return _make(_opendp(), unit, scale)


def _make(dp: Any, unit: Unit, scale: float) -> Any:
    """OpenDP's measurement that adds noise to a vector of 64-bit integers."""
    integers = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    if unit is Unit.EPSILON:
        return dp.measurements.make_laplace(integers, dp.metrics.l1_distance(T="i64"), scale=scale)
    return dp.measurements.make_gaussian(integers, dp.metrics.l2_distance(T="f64"), scale=scale)


@functools.cache
def _opendp() -> Any:
    """Import OpenDP, after checking its version and a sample of its noise."""
    version = importlib.metadata.version("opendp")
    if not is_safe_version(version):
        raise UnsafeNoise(f"OpenDP {version} is not safe to use: install opendp >= 0.14.2.")
    # Not opendp.prelude, which imports every library that OpenDP can work with: seconds, in each process.
    import opendp.domains
    import opendp.measurements
    import opendp.metrics
    import opendp.mod

    opendp.mod.enable_features("contrib")
    for unit in Unit:
        self_test(np.array(_make(opendp, unit, 8.0)([0] * 2000), dtype=float), unit=unit, scale=8.0)
    return opendp


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


def self_test(draws: Floats, *, unit: Unit, scale: float) -> None:
    """Refuse noise that is obviously wrong: constant, off centre, or of the wrong width.

    The bounds are eight standard errors wide: a correct sampler fails once in 10^14 starts.
    """
    n = len(draws)
    values = np.arange(1, math.ceil(60 * scale))
    weights = np.exp(-values / scale if unit is Unit.EPSILON else -((values / scale) ** 2) / 2)
    weights = 2 * weights / (1 + 2 * weights.sum())  # P(|Z| = z)
    mean_size, spread = float(weights @ values), float(weights @ values.astype(float) ** 2)
    # The variance of |Z| is below that of Z. Written so that NaN fails.
    centred = n > 0 and abs(draws.mean()) <= 8 * math.sqrt(spread / n)
    if not (centred and abs(np.abs(draws).mean() - mean_size) <= 8 * math.sqrt(spread / n)):
        raise UnsafeNoise("the noise of OpenDP failed its start-up test: nothing is released. Reinstall opendp.")
