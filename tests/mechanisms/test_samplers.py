"""P2, P3, P10, P19: the noise has the stated law, the stated cost, no seed, and a source that is checked."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import itertools
import math
import multiprocessing
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

import oracles
from certsynth.errors import TooLarge, UnsafeNoise
from certsynth.mechanisms import measure, samplers
from certsynth.mechanisms.samplers import ExactNoise, calibrated_scale, self_test, simulate, tail_quantile

SCALES = (1, 3, 6, 7, 12, 30, 200, 900)
DRAWS = 150_000
FALSE_ALARM = 1e-9  # of one test of a sound sampler; about 50 are made in a run
WRONG = (0.8, 1.25)
"""Controls: the same tests must refuse draws whose scale is off by so much, with no exception."""


@functools.cache
def exact(scale: int) -> np.ndarray:
    """Noise as a release gets it, at a scale of sensitivity/ε."""
    noised = ExactNoise().add(np.zeros(DRAWS, np.int64), sensitivity=scale, epsilon=Fraction(1))
    assert noised.scale == pytest.approx(scale, rel=1e-15)
    return noised.values


@functools.cache
def simulated(scale: float) -> np.ndarray:
    return simulate(np.random.default_rng(round(scale * 1_000)), scale, (DRAWS,))


# ------------------------------------------------------------ P3: the law


def goodness_of_fit(draws: np.ndarray, scale: float) -> float:
    """p-value of χ² over bins of consecutive values, each of which is expected to hold at least 10 draws."""
    reach = math.ceil(40 * scale)
    values = np.arange(-reach, reach + 1)
    expected = len(draws) * np.array([oracles.laplace_probability(scale, int(z)) for z in values])
    edges: list[float] = []
    held = 0.0
    for z, mass in zip(values, expected, strict=True):
        held += mass
        if held >= max(10.0, len(draws) / 400):
            edges.append(float(z) + 0.5)
            held = 0.0
    edges = [-math.inf, *edges[:-1], math.inf]
    in_bin = np.array([expected[(values > a) & (values < b)].sum() for a, b in itertools.pairwise(edges)])
    assert in_bin.min() >= 10
    found = np.histogram(draws, bins=[-(2.0**62), *edges[1:-1], 2.0**62])[0]
    return float(stats.chisquare(found, in_bin * len(draws) / in_bin.sum()).pvalue)


def adjacent_ratios(draws: np.ndarray, scale: float) -> float:
    """p-value (Bonferroni) that log(N_i/N_{i+1}) = width/scale for neighbouring bins on both sides of 0.

    It is the ratio that ε is about. Bins are half a scale wide, because single values are too rare at large scales.
    """
    width = max(1, round(scale / 2))
    deviations = []
    for side in (draws, -draws):
        bins = np.bincount((side[side > 0] - 1) // width)
        for a, b in itertools.pairwise(bins):
            if min(a, b) < 200:
                break
            deviations.append((math.log(a / b) - width / scale) / math.sqrt(1 / a + 1 / b))
    assert len(deviations) >= 6
    return float(min(1.0, len(deviations) * 2 * stats.norm.sf(np.max(np.abs(deviations)))))


def ratio_at_zero(draws: np.ndarray, scale: float) -> float:
    """p-value that P(0)/P(±1) = exp(1/scale), and that + and − are equally likely."""
    counts = [int((draws == z).sum()) for z in (-1, 0, 1)]
    if min(counts) < 30:
        return 1.0
    p = math.exp(-1 / scale)
    expected = np.array([p, 1.0, p]) / (1 + 2 * p) * sum(counts)
    return float(stats.chisquare(counts, expected).pvalue)


LAW_TESTS: tuple[Callable[[np.ndarray, float], float], ...] = (goodness_of_fit, adjacent_ratios)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("source", [exact, simulated])
def test_noise_has_the_stated_law(source: Callable[[int], np.ndarray], scale: int) -> None:
    """150,000 draws. Power: what is off by 20 % is refused with certainty, as the next test shows."""
    for test in (*LAW_TESTS, ratio_at_zero):
        assert test(source(scale), scale) > FALSE_ALARM, test.__name__


@pytest.mark.parametrize("factor", WRONG)
@pytest.mark.parametrize("scale", SCALES)
def test_noise_of_a_wrong_scale_is_refused_by_both_tests(scale: int, factor: float) -> None:
    """Positive control, for draws of `simulate` at the wrong scale and for true draws held to the wrong scale."""
    for test in LAW_TESTS:
        assert test(simulated(scale * factor), scale) < FALSE_ALARM, test.__name__
        assert test(exact(scale), scale * factor) < FALSE_ALARM, test.__name__


@pytest.mark.parametrize("scale", [1, 3])
def test_rounded_continuous_noise_is_refused(scale: int) -> None:
    """Another control: rounded Laplace noise has another law. (Beyond scale 3 150,000 draws cannot tell.)"""
    rounded = np.rint(np.random.default_rng(1).laplace(scale=scale, size=DRAWS)).astype(np.int64)
    assert goodness_of_fit(rounded, scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
def test_both_sources_have_the_same_law(scale: int) -> None:
    """The rank quantile needs it. Two-sample χ² in 20 bins of equal share; the control is off by 20 %."""

    def same(first: np.ndarray, second: np.ndarray) -> float:
        edges = np.unique(np.floor(np.quantile(first, np.linspace(0, 1, 21)[1:-1])) + 0.5)
        tables = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (first, second)]
        return float(stats.chi2_contingency(np.array(tables)).pvalue)

    assert same(exact(scale), simulated(scale)) > FALSE_ALARM
    assert same(exact(scale), simulated(scale * 0.8)) < FALSE_ALARM


@pytest.mark.parametrize("source", [exact, simulated])
def test_draws_are_independent_of_the_ones_before(source: Callable[[int], np.ndarray]) -> None:
    """Signs and sizes of neighbours in the vector; the control draws every second one again."""

    def correlation(draws: np.ndarray) -> float:
        found = [
            abs(np.corrcoef(f(draws[lag:]), f(draws[:-lag]))[0, 1]) for f in (np.sign, np.abs) for lag in (1, 2, 5)
        ]
        return float(max(found))

    draws = source(30)
    limit = 7 / math.sqrt(len(draws))
    assert correlation(draws) < limit
    assert correlation(np.repeat(draws[::2], 2)) > limit


def test_noise_is_added_to_the_values() -> None:
    values = np.array([0, 10**6, -(10**6), 2**40, -(2**60)])
    noisy = ExactNoise().add(values, sensitivity=1, epsilon=Fraction(1)).values
    assert np.abs(noisy - values).max() < 60
    assert noisy.dtype == np.int64
    assert not noisy.flags.writeable


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"), [(0, Fraction(1)), (-1, Fraction(1)), (1, Fraction(0)), (1, Fraction(-1))]
)
def test_noise_without_a_scale_is_refused(sensitivity: int, epsilon: Fraction) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ExactNoise().add(np.zeros(3, np.int64), sensitivity=sensitivity, epsilon=epsilon)


def test_simulated_draws_repeat_for_their_seed_and_have_the_shape_asked_for() -> None:
    first, again = (simulate(np.random.default_rng(5), 7.0, (3, 4)) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.shape == (3, 4)
    # Pinned: whoever verifies a release on another machine must get these.
    assert simulate(np.random.default_rng(5), 7.0, (6,)).tolist() == [8, 11, 5, -47, -7, 2]


# ------------------------------------------------------------ P2: the cost

COSTS = [
    *((d, Fraction(e)) for d in (1, 2, 3, 7, 10, 20, 120, 121, 999, 10**4) for e in
      ("1", "0.1", "0.5", "0.95", "0.05", "1/3", "2/3", "7/11", "3.7", "0.123456789012", "100", "1e-12", "1e-6")),
    *((int(d), Fraction(int(a), int(b))) for d, a, b in np.random.default_rng(6).integers(1, 2_000, size=(400, 3))),
]  # fmt: skip


def test_printed_epsilon_is_a_true_upper_bound_as_a_rational() -> None:
    """530 pairs: Δ/scale ≤ ε exactly, OpenDP's own map agrees, and no smaller float would do."""
    assert len(COSTS) == 530
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    for sensitivity, epsilon in COSTS:
        scale = calibrated_scale(sensitivity, epsilon)
        assert Fraction(sensitivity) / Fraction(scale) <= epsilon
        assert Fraction(dp.m.make_laplace(*space, scale=scale).map(sensitivity)) <= epsilon
        smaller = math.nextafter(scale, 0)
        too_dear = Fraction(dp.m.make_laplace(*space, scale=smaller).map(sensitivity)) > epsilon
        assert too_dear
        assert scale <= float(Fraction(sensitivity) / epsilon) * (1 + 1e-14)


def test_the_nearest_float_scale_is_not_always_enough() -> None:
    """Control: without rounding up, some of these costs would be above the printed ε."""
    assert any(Fraction(d) / Fraction(float(d / e)) > e for d, e in COSTS)


def test_reported_cost_is_the_epsilon_asked_for() -> None:
    noised = ExactNoise().add(np.zeros(2, np.int64), sensitivity=7, epsilon=Fraction(1, 3))
    assert noised.epsilon == Fraction(1, 3)
    assert Fraction(7) / Fraction(noised.scale) <= Fraction(1, 3)


def test_noise_beyond_64_bits_is_refused() -> None:
    """P18: at a scale of 2^60 simulated draws would wrap to 0, and the certificate would be false."""
    with pytest.raises(TooLarge, match="64 bits"):
        calibrated_scale(10**6, Fraction(1, 10**12))
    with pytest.raises(ValueError, match="overflow"):
        simulate(np.random.default_rng(1), 2.0**60, (3,))
    widest = simulate(np.random.default_rng(1), samplers.MAX_SCALE, (100_000,))
    assert stats.kstest(widest / samplers.MAX_SCALE, "laplace").pvalue > FALSE_ALARM


# ------------------------------------------------------------ tails

BETAS = [Fraction(1, 20), Fraction(1, 10), Fraction(1, 200), Fraction(9, 200), Fraction(1, 10**6), Fraction(49, 100)]


@pytest.mark.parametrize("beta", BETAS, ids=str)
@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 3.0, 7.0, 12.5, 200.0])
def test_tail_quantile_is_the_least_that_covers(scale: float, beta: Fraction) -> None:
    t = tail_quantile(scale, beta)
    limit = Decimal(beta.numerator) / Decimal(beta.denominator)
    assert t >= 0
    assert oracles.laplace_tail(scale, t) <= limit
    assert t == 0 or oracles.laplace_tail(scale, t - 1) > limit


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0, 7.0, 30.0])
def test_tail_quantile_is_right_next_to_its_jumps(scale: float) -> None:
    """β a hair above and below P(Z > t): the quantile must be t, and more than t."""
    for t in (0, 1, 2, 5, 40):
        tail = Fraction(oracles.laplace_tail(scale, t))
        assert tail_quantile(scale, tail * (1 + Fraction(1, 10**9))) == t
        assert tail_quantile(scale, tail * (1 - Fraction(1, 10**9))) == t + 1
        for nearer in (Fraction(1, 10**13), Fraction(1, 10**15), Fraction(0), -Fraction(1, 10**15)):
            found = tail_quantile(scale, tail * (1 - nearer))
            assert Fraction(oracles.laplace_tail(scale, found)) <= tail * (1 - nearer)


def test_continuous_tail_would_be_too_small() -> None:
    """Control: b·ln(1/(2β)) rounded down fails to cover, for some scales and β."""
    too_small = [
        (scale, beta)
        for scale in (0.5, 1.0, 3.0, 7.0)
        for beta in BETAS
        if oracles.laplace_tail(scale, math.floor(scale * math.log(1 / (2 * beta)))) > Decimal(float(beta))
    ]
    assert len(too_small) > 3


def test_tail_quantile_covers_real_noise() -> None:
    """150,000 draws at scale 12: exceeding it is as rare as said; half of it would not do."""
    t = tail_quantile(12.0, Fraction(1, 100))
    exceeded = int((exact(12) > t).sum())
    assert stats.binomtest(exceeded, DRAWS, 0.01, alternative="greater").pvalue > FALSE_ALARM
    assert stats.binomtest(int((exact(12) > t / 2).sum()), DRAWS, 0.01, alternative="greater").pvalue < FALSE_ALARM


# ------------------------------------------------------------ P10: no seed


def noise_vector(count: int = 40) -> tuple[int, ...]:
    """40 draws at scale 900: that two vectors agree by chance has a probability below 10^-100."""
    return tuple(ExactNoise().add(np.zeros(count, np.int64), sensitivity=900, epsilon=Fraction(1)).values.tolist())


def test_two_calls_give_different_noise() -> None:
    assert noise_vector() != noise_vector()


def test_seeds_of_other_generators_have_no_influence() -> None:
    seen = set()
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  # on purpose: the old global state
        seen.add(noise_vector())
    assert len(seen) == 3


def test_nothing_that_makes_noise_for_a_release_takes_a_seed() -> None:
    callables: list[Any] = [ExactNoise, ExactNoise.add, measure, calibrated_scale, samplers._laplace, samplers._opendp]
    for function in callables:
        for name in inspect.signature(function).parameters:
            assert not any(word in name.lower() for word in ("seed", "rng", "random", "state", "generator")), function
    assert list(inspect.signature(ExactNoise).parameters) == []
    assert "rng" in inspect.signature(simulate).parameters  # control: the scan would see one


def test_a_noise_object_cannot_be_made_to_repeat() -> None:
    noise = ExactNoise()
    first, second = (noise.add(np.zeros(40, np.int64), sensitivity=900, epsilon=Fraction(1)).values for _ in range(2))
    assert not np.array_equal(first, second)
    assert not vars(noise)


def send_noise(pipe: Connection) -> None:
    pipe.send(noise_vector())
    pipe.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_draw_different_noise() -> None:
    """Children start from the same memory, after the parent has drawn."""
    noise_vector()
    context = multiprocessing.get_context("fork")
    pipes, children = [], []
    for _ in range(4):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=send_noise, args=(there,))
        child.start()
        there.close()
        pipes.append(here)
        children.append(child)
    seen = [noise_vector()] + [pipe.recv() for pipe in pipes]
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    assert len(set(seen)) == 5


def test_threads_draw_different_noise_of_the_same_law() -> None:
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(noise_vector, [500] * 32))
    assert len(set(seen)) == 32
    assert goodness_of_fit(np.concatenate(seen), 900) > FALSE_ALARM


# ------------------------------------------------------------ P19, P8


@pytest.fixture
def fresh_opendp() -> Iterator[None]:
    """Forget what was checked before, and forget the test's own checks afterwards."""
    samplers._opendp.cache_clear()
    samplers._laplace.cache_clear()
    yield
    samplers._opendp.cache_clear()
    samplers._laplace.cache_clear()


@pytest.mark.usefixtures("fresh_opendp")
@pytest.mark.parametrize("version", ["0.14.1", "0.14", "0.13.9", "0.9.2", "0", "", "unknown", "0.x.3", "v1.0"])
def test_an_unsafe_opendp_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    for _ in range(2):  # a refusal is not forgotten
        with pytest.raises(UnsafeNoise, match=r"opendp >= 0\.14\.2"):
            noise_vector()


@pytest.mark.usefixtures("fresh_opendp")
@pytest.mark.parametrize("version", ["0.14.2", "0.15.0", "0.16", "1.0", "1.0.0rc1", "10.0.0"])
def test_a_safe_opendp_is_taken(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    assert len(noise_vector()) == 40


def sound(size: int) -> np.ndarray:
    return simulate(np.random.default_rng(size), 8.0, (size,)).astype(float)


BROKEN: dict[str, Callable[[int], np.ndarray]] = {
    "none at all": lambda size: np.zeros(size),
    "constant": lambda size: np.full(size, 8.0),
    "shifted": lambda size: sound(size) + 4,
    "shifted down": lambda size: sound(size) - 4,
    "half as wide": lambda size: simulate(np.random.default_rng(1), 4.0, (size,)).astype(float),
    "twice as wide": lambda size: simulate(np.random.default_rng(1), 16.0, (size,)).astype(float),
    "positive only": lambda size: np.abs(sound(size)),
    "no number": lambda size: np.full(size, np.nan),
    "nothing": lambda size: np.empty(0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_start_up_test_refuses_broken_noise(name: str) -> None:
    with pytest.raises(UnsafeNoise, match="start-up test"):
        self_test(BROKEN[name](2_000), scale=8.0)


def test_start_up_test_accepts_sound_noise() -> None:
    for seed in range(300):
        self_test(simulate(np.random.default_rng(seed), 8.0, (2_000,)).astype(float), scale=8.0)


@pytest.mark.usefixtures("fresh_opendp")
@pytest.mark.parametrize("name", ["none at all", "shifted", "half as wide"])
def test_noise_is_not_drawn_from_a_source_that_failed_its_start_up_test(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(dp.m, "make_laplace", lambda *space, scale: lambda values: BROKEN[name](len(values)).tolist())
    with pytest.raises(UnsafeNoise, match="start-up test"):
        noise_vector()


CANARY = 918_273_645


@pytest.mark.usefixtures("fresh_opendp")
@pytest.mark.parametrize("fault", ["raises", "too short", "too long"])
def test_errors_of_the_source_of_noise_hold_no_counts(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def broken(values: list[int]) -> list[int]:
        if fault == "raises":
            raise RuntimeError(f"cannot cast {values} to i32")
        return values[:-1] if fault == "too short" else [*values, 0]

    broken.map = lambda change: 0.0  # type: ignore[attr-defined]
    monkeypatch.setattr(samplers, "_laplace", lambda scale: broken)
    with pytest.raises(UnsafeNoise, match="nothing was released") as caught:
        ExactNoise().add(np.array([CANARY, 1]), sensitivity=1, epsilon=Fraction(1))
    assert str(CANARY) not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
