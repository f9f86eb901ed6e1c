"""Noise that is drawn only where it is large has the law of noise that is drawn everywhere."""

from __future__ import annotations

import decimal
import itertools
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import chisquare

from certsynth.mechanisms import rare
from certsynth.mechanisms.rare import Tail, geometric, rare_cells, rare_noise, secret_words
from certsynth.mechanisms.sparse import thresholds

ALARM = 1e-9
"""The chance that a test of a law that is true fails. A control fails to be refused with a chance below 10⁻¹⁷."""


def laplace(z: int, scale: float) -> float:
    p = math.exp(-1 / scale)
    return (1 - p) / (1 + p) * p ** abs(z)


def seeded(seed: int) -> rare.Words:
    rng = np.random.default_rng(seed)
    return lambda count: np.frombuffer(rng.bytes(8 * count), np.uint64)


def p_value(seen: Counter, law: dict, runs: int) -> float:
    """χ² of counts against a law; outcomes that are expected less than ten times are taken together."""
    common = [outcome for outcome, p in law.items() if p * runs >= 10]
    counts = [seen[outcome] for outcome in common]
    expected = [law[outcome] * runs for outcome in common]
    return float(chisquare([*counts, runs - sum(counts)], [*expected, runs - sum(expected)]).pvalue)


def exactly(rate: float):
    return lambda digits: rare._inverse(1 / rate, digits)


@pytest.mark.parametrize("rate", [2.0, 0.5, 1 / 32])
def test_gaps_are_geometric(rate):
    """200,000 draws by χ²; a rate that is 5 % off must be refused."""
    runs = 200_000
    seen = Counter(geometric(rate, exactly(rate), runs, secret_words).tolist())

    def law(r: float) -> dict[int, float]:
        return {g: math.exp(-r * g) * -math.expm1(-r) for g in range(int(14 / r))}

    assert p_value(seen, law(1 / (1 / rate)), runs) > ALARM
    assert p_value(seen, law(1.05 * rate), runs) < ALARM


@pytest.mark.parametrize("tail", [Tail(2.5, 40), Tail(0.7, 3), Tail(30.0, 10, 200), Tail(2.5, 60, 80, signed=True)])
def test_digits_decide_as_floats_do_where_these_are_sure(tail):
    """Bits that are added to a word do not change what the word had decided."""
    words = seeded(1)(3000)
    by_floats = geometric(tail.rate(), tail.exact_rate, len(words), lambda count: words[:count])
    for more in (0, 2**64 - 1):
        fixed = np.array([more], dtype=np.uint64)
        by_digits = [rare._decided(int(w), tail.exact_rate, lambda count, fixed=fixed: fixed) for w in words[:300]]
        assert np.array_equal(by_floats[:300], by_digits)


def test_floats_that_are_not_sure_ask_for_digits(monkeypatch):
    """With errors of floats taken to be huge, everything is decided by digits, and the law is the same."""
    monkeypatch.setattr(rare, "_RATE", 0.5)
    asked = []
    decided = rare._decided
    monkeypatch.setattr(rare, "_decided", lambda *args: asked.append(1) or decided(*args))
    runs = 4000
    seen = Counter(geometric(0.5, exactly(0.5), runs, secret_words).tolist())
    assert len(asked) > runs / 4
    assert p_value(seen, {g: math.exp(-0.5 * g) * -math.expm1(-0.5) for g in range(30)}, runs) > ALARM


def test_extreme_words_are_decided():
    """All bits 0, where U may be 0, and all bits 1, where it is next to 1."""
    ends = np.array([0, 1, 2**64 - 1, 2**63, 2**63 - 1], dtype=np.uint64)
    feed = itertools.chain([ends], itertools.repeat(np.array([7], dtype=np.uint64)))
    drawn = geometric(1e-3, exactly(1e-3), len(ends), lambda count: next(feed))
    assert drawn[0] > drawn[1] > 44_000
    assert drawn[2] == 0
    assert drawn[3] == drawn[4] == math.floor(math.log(2) / 1e-3)


def test_gaps_beyond_every_grid_count_as_that():
    assert (geometric(1e-30, exactly(1e-30), 20, seeded(0)) == rare.LARGEST).all()


@pytest.mark.parametrize(
    "tail",
    [Tail(2.35, 0), Tail(2.35, 70), Tail(0.3, 1, 5), Tail(40.0, 300, 400, signed=True), Tail(7.0, 0, signed=True)],
)
def test_rates_are_those_of_the_law(tail):
    """−ln(1 − P), P by adding up the law itself, from floats and with digits."""
    sides = 1 + tail.signed

    def beyond(c: int | None) -> float:
        return 0.0 if c is None else sides * sum(laplace(z, tail.scale) for z in range(c + 1, c + 4000))

    chance = (beyond(tail.above) - beyond(tail.before)) / (1 - beyond(tail.before))
    assert tail.chance() == pytest.approx(chance, rel=1e-9)
    assert tail.rate() == pytest.approx(float(tail.exact_rate(40)), rel=rare._RATE)
    assert abs(tail.exact_rate(40) - tail.exact_rate(90)) < tail.exact_rate(40).scaleb(-40)


def rate_by_definition(tail: Tail, digits: int = 220) -> Decimal:
    """−ln(1 − P) as it is defined, with so many digits that nothing that cancels matters."""
    with decimal.localcontext(prec=digits):
        step = 1 / Decimal(tail.scale)

        def beyond(c: int | None) -> Decimal:
            sides = 1 + tail.signed
            return Decimal(0) if c is None else sides * (-(c + 1) * step).exp() / (1 + (-step).exp())

        known = beyond(tail.before)
        return -(1 - (beyond(tail.above) - known) / (1 - known)).ln()


def tails_of(epsilon: float) -> list[Tail]:
    """Tails that are asked for at some ε: all thresholds of some grids; and the narrowest bands, next to them."""
    found = []
    for scale, cells, signed in itertools.product((1 / epsilon, 2 / epsilon), (3000, 2**62), (False, True)):
        steps = list(thresholds(cells, scale))
        found += [Tail(scale, a, b, signed) for b, a in itertools.pairwise([None, *steps])]
        found += [Tail(scale, c, c + 1, signed) for c in (0, 1, steps[0])]
    return found


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.01, 1, 7, 100])
def test_the_stated_error_of_a_rate_holds_at_every_epsilon(epsilon):
    """Less than `_RATE`, and than the (2y + 40)/2^53 of the proof; `exact_rate` has the digits that it is asked for."""
    for tail in tails_of(epsilon):
        exact, y = rate_by_definition(tail), (tail.above + 1) / tail.scale
        error = abs(Decimal(tail.rate()) / exact - 1)
        assert error < (2 * y + 40) * 2.0**-53 < rare._RATE, tail
        assert tail.chance() == pytest.approx(-math.expm1(-float(exact)), rel=1e-12)
        assert abs(tail.exact_rate(40) / exact - 1) < Decimal(10) ** -40


def test_a_rate_whose_terms_cancel_is_noticed():
    """The control: 1 − (beyond − known)/(1 − known) in floats is off by more than is stated."""

    def cancelling(tail: Tail) -> float:
        p, sides = math.exp(-1 / tail.scale), 1 + tail.signed
        beyond, known = (0.0 if c is None else sides * p ** (c + 1) / (1 + p) for c in (tail.above, tail.before))
        return -math.log1p(-(beyond - known) / (1 - known))

    errors = [abs(Decimal(cancelling(tail)) / rate_by_definition(tail) - 1) for tail in tails_of(1e-6)]
    assert max(errors) > 100 * Decimal(rare._RATE)


@pytest.mark.parametrize("tail", [Tail(0.01, 0), Tail(0.01, 6), Tail(0.01, 7), Tail(0.01, 9, 10, signed=True)])
def test_events_that_are_next_to_impossible_have_exact_rates(tail):
    """Some are below all floats. A gap is beyond every grid, also where digits have to decide."""
    assert abs(tail.exact_rate(40) / rate_by_definition(tail, 1000) - 1) < Decimal(10) ** -40
    drawn = np.array([1, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
    feed = itertools.chain([drawn], itertools.repeat(np.array([7], dtype=np.uint64)))
    assert (geometric(tail.rate(), tail.exact_rate, 4, lambda count: next(feed)) == rare.LARGEST).all()


@pytest.mark.parametrize("signed", [False, True])
def test_the_noise_of_few_cells_has_the_law_of_all_of_them(signed):
    """Three cells, all outcomes: 12,000 runs by χ². Noise 20 % wider must be refused."""
    tail, runs = Tail(1.5, 1, signed=signed), 12_000

    def kept(z: int) -> int | None:
        return z if (abs(z) if signed else z) > tail.above else None

    def law(scale: float) -> dict[tuple[int | None, ...], float]:
        one = Counter()
        for z in range(-60, 61):
            one[kept(z)] += laplace(z, scale)
        return {
            outcome: math.prod(one[z] for z in outcome)
            for outcome in itertools.product([None, *range(2, 9), *([-2, -3, -4] if signed else [])], repeat=3)
        }

    seen: Counter = Counter()
    for _ in range(runs):
        outcome: list[int | None] = [None] * 3
        for place, value in zip(*rare_noise(3, tail, secret_words), strict=True):
            outcome[place] = int(value)
        seen[tuple(outcome)] += 1
    assert p_value(seen, law(1.5), runs) > ALARM
    assert p_value(seen, law(1.8), runs) < ALARM


@pytest.mark.parametrize("signed", [False, True])
def test_a_band_after_a_tail_is_a_longer_tail(signed):
    """What was not above 4 is drawn again for above 1: together it has the law of above 1. Without the condition on
    what is known it must be refused.
    """
    first, band, whole = Tail(2.0, 4, signed=signed), Tail(2.0, 1, 4, signed=signed), Tail(2.0, 1, signed=signed)
    cells, runs = 50_000, 10
    law = {z: laplace(z, 2.0) for z in range(2, 40)}
    law |= {-z: p for z, p in law.items()} if signed else {}
    law[None] = 1 - sum(law.values())

    def values(second: Tail) -> Counter:
        seen: Counter = Counter()
        for _ in range(runs):
            noise = np.zeros(cells, dtype=np.int64)
            for tail in (first, second):
                places, drawn = rare_noise(cells, tail, secret_words)
                fresh = noise[places] == 0
                noise[places[fresh]] = drawn[fresh]
            seen.update(int(z) if z else None for z in noise)
        return seen

    assert p_value(values(band), law, cells * runs) > ALARM
    assert p_value(values(whole), law, cells * runs) < ALARM


@pytest.mark.slow
def test_places_are_uniform_and_distinct_on_a_grid_of_a_quintillion_cells():
    size, tail = 10**18, Tail(2.0, 70)
    places = np.concatenate([rare_cells(size, tail, seeded(seed)) for seed in range(20)])
    expected = 20 * size * tail.chance()
    assert abs(len(places) - expected) < 6 * math.sqrt(expected)
    parts = np.bincount((places // (size // 8)).astype(int), minlength=8)
    assert chisquare(parts).pvalue > ALARM
    for seed in range(3):
        one = rare_cells(size, tail, seeded(seed))
        assert (np.diff(one) > 0).all()
        assert one.min() >= 0
        assert one.max() < size


def test_no_cells_have_no_noise():
    places, values = rare_noise(0, Tail(2.0, 0), secret_words)
    assert len(places) == len(values) == 0


@pytest.mark.parametrize("wrong", [{"above": -1}, {"above": 3, "before": 3}, {"above": 3, "before": 1}])
def test_tails_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="tail"):
        Tail(2.0, **wrong)
