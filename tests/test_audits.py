"""P23: the audits of `audits/`, in short. Sound mechanisms stay below their claims, and broken ones are caught.

Any of the bounds on sound mechanisms here is above its claim with probability at most 1e-6: there are 20, with the slow
tests, and each gets an equal part of that (`evidence.ALARM`).
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import accounting
import auditor
import distinguish
import evidence
from certsynth.mechanisms import Neighbours
from releases import Case, sample

COPIES = 4_000


def verdict(pair: auditor.Pair, *, epsilon: float, delta: float = 0.0) -> evidence.Verdict:
    """Every integer is a score, and so are their sum and which integers were seen before."""
    scores = []
    for drawn in pair:
        each = {f"integer {j}": drawn[:, j].astype(float) for j in range(drawn.shape[1])}
        prints = np.array([float(hash(row.tobytes()) % 2**48) for row in drawn])
        scores.append({**each, "sum": drawn.sum(axis=1).astype(float), "fingerprint": prints})
    return evidence.judge(*scores, claim="epsilon", stated=epsilon, delta=delta, mild=1e-4)


# ------------------------------------------------------------ the bounds themselves


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_bounds_on_coins_are_below_the_truth_as_often_as_they_say(epsilon: float) -> None:
    """By summing over all that can be seen, of coins that attain ε: no simulation, so no false alarm."""
    runs, alarm = 60, 0.05
    p = 1 / (1 + math.exp(-epsilon))
    counts = np.arange(runs + 1)
    likely, unlikely = np.meshgrid(counts, counts, indexing="ij")
    chance = binom.pmf(likely, runs, p) * binom.pmf(unlikely, runs, 1 - p)
    found = evidence.epsilon_bound(likely.ravel(), unlikely.ravel(), runs, delta=0.0, alarm=alarm)
    assert chance.ravel()[found > epsilon].sum() <= alarm
    assert chance.ravel()[found > epsilon / 8].sum() > 0.1  # and they are not idle


@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_bounds_on_rho_are_below_the_truth_as_often_as_they_say(rho: float) -> None:
    """Of normal noise cut in the middle, which has less than its ρ."""
    runs, alarm, mu = 60, 0.05, math.sqrt(2 * rho)
    p = 0.5 * math.erfc(-mu / 2 / math.sqrt(2))
    likely, unlikely = np.meshgrid(np.arange(runs + 1), np.arange(runs + 1), indexing="ij")
    chance = binom.pmf(likely, runs, p) * binom.pmf(unlikely, runs, 1 - p)
    found = evidence.rho_bound(likely.ravel(), unlikely.ravel(), runs, alarm=alarm)
    assert chance.ravel()[found > rho].sum() <= alarm


def test_bounds_are_the_formula() -> None:
    assert evidence.epsilon_bound(np.array(0), np.array(0), 100, delta=0.0, alarm=1e-6) == 0
    low, high = evidence.rates(np.array(90), np.array(10), 100, 1e-6)
    assert evidence.epsilon_bound(np.array(90), np.array(10), 100, delta=0.01, alarm=1e-6) == pytest.approx(
        max(math.log((low - 0.01) / high), math.log((1 - high - 0.01) / (1 - low)))
    )
    assert binom.sf(89, 100, low) == pytest.approx(5e-7)
    assert binom.cdf(10, 100, high) == pytest.approx(5e-7)


# ------------------------------------------------------------ mechanisms


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(("name", "broken", "epsilon", "delta", "make"), auditor.GREY)
def test_mechanisms_keep_their_epsilon_and_broken_ones_do_not(name, broken, epsilon, delta, make) -> None:
    found = verdict(make(COPIES), epsilon=epsilon, delta=delta)
    assert found.refuted == (broken is not None), found


def test_the_attack_sees_most_of_what_there_is() -> None:
    """Of the noise on one number: the bound is above half of the claim, where it is 0.7 of it on average."""
    pair = auditor.measured(auditor.marginals(1, 2, 1), "haar", Neighbours.REPLACE_ONE, auditor.pure(1), 4 * COPIES)
    assert verdict(pair, epsilon=1).found > 0.5


def test_noise_that_is_a_little_too_narrow_is_caught_by_more_runs() -> None:
    """Control with little wrong: three quarters of the width."""
    pair = auditor.measured(
        auditor.marginals(1, 2, 1),
        "haar",
        Neighbours.REPLACE_ONE,
        auditor.pure(1),
        10 * COPIES,
        width=Fraction(3, 4),
    )
    assert verdict(pair, epsilon=1).refuted


# ------------------------------------------------------------ whole releases


def verdicts(case: Case, runs: int) -> list[evidence.Verdict]:
    return distinguish.verdicts(case, sample(case, runs))


def test_a_sound_release_stays_below_its_claim() -> None:
    assert not any(found.refuted for found in verdicts(distinguish.SOUND[0], 120))


def test_a_broken_release_is_caught() -> None:
    """At half of the ε, so that few runs are enough: 5 of 60 may go wrong on either side."""
    case = next(case for case in distinguish.BROKEN if case.broken == "no noise on the direct certificate")
    small = dataclasses.replace(case, arguments={**case.arguments, "epsilon": "0.5"})
    assert any(found.refuted for found in verdicts(small, 120))


@pytest.mark.slow
@pytest.mark.parametrize("case", distinguish.SOUND[1:], ids=lambda case: case.name)
def test_sound_releases_stay_below_their_claims(case: Case) -> None:
    assert not any(found.refuted for found in verdicts(case, case.runs))


@pytest.mark.slow
@pytest.mark.parametrize("case", distinguish.BROKEN, ids=lambda case: f"{case.broken}, {case.name}")
def test_broken_releases_are_caught(case: Case) -> None:
    assert any(found.refuted for found in verdicts(case, case.runs))


# ------------------------------------------------------------ the accountant from outside


def examined(names: list[str]) -> None:
    for row in accounting.run(names, 1000):
        assert row["ok"] == ("control" not in row["release"]), row


def test_an_outside_accountant_finds_no_more_than_is_claimed() -> None:
    examined(["pure, particles", "Gaussian, hidden n"])


@pytest.mark.slow
def test_an_outside_accountant_finds_no_more_than_any_release_claims() -> None:
    examined(list(accounting.RELEASES))
