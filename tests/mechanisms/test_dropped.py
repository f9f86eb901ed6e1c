"""The share of dropped rows: what one person changes, and intervals that contain the true shares."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

from certsynth.domain.persons import Persons
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.mechanisms.dropped import DROPPED_NUMBERS, dropped_shares, largest_change, measure_dropped
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.samplers import NoisyIntegers, SimulatedNoise
from certsynth.queries.contributions import COUNTED_ROWS_FACTOR, Contributions

relations = pytest.mark.parametrize("neighbours", list(Neighbours))
weights = pytest.mark.parametrize("weigh", ["rows", "persons"])


class NoNoise:
    """Keeps the exact integers, with the sensitivity and the budget that noise would have been drawn for."""

    releasable = False

    def add(self, values, *, sensitivity, budget):
        self.sensitivity, self.budget = sensitivity, budget
        return NoisyIntegers(values, 1.0, budget)


def exact(rows, protection, *, unit=Unit.EPSILON):
    """The integers for persons with these numbers of rows, and what the noise is made for."""
    noise = NoNoise()
    found = Contributions.of(np.array(rows, np.int64), protection.persons.rows)
    budget = protection.per_row(Budget(Fraction(1), unit))
    noisy = measure_dropped(found, protection, protection.persons, budget=budget, noise=noise)
    return np.array(noisy.values), noise


@relations
@weights
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_person_changes_an_integer_by_more_than_the_noise_is_made_for(neighbours, weigh, most):
    """All tables of up to two persons and all replacements of one, from the numbers of rows on."""
    protection = Protection(neighbours, Persons("id", most, weigh))
    sizes = range(1, COUNTED_ROWS_FACTOR * most + 3)
    single = [()] if neighbours is Neighbours.ADD_REMOVE else []
    largest = 0
    for other in [(), (1,), (COUNTED_ROWS_FACTOR * most + 5,)]:
        for first, second in itertools.product([*single, *((size,) for size in sizes)], repeat=2):
            before, noise = exact((*other, *first), protection)
            after, _ = exact((*other, *second), protection)
            change = int(np.abs(after - before).max())
            assert change <= protection.sensitivity_of_unit(noise.sensitivity).each
            largest = max(largest, change)
    assert noise.sensitivity.each == largest_change(protection.persons)
    assert noise.sensitivity.l1 == DROPPED_NUMBERS * noise.sensitivity.each
    if neighbours is Neighbours.ADD_REMOVE:
        assert largest == protection.group * largest_change(protection.persons)


@relations
@weights
def test_the_noise_costs_a_person_what_was_asked_for(neighbours, weigh):
    protection = Protection(neighbours, Persons("id", 3, weigh))
    _, noise = exact([1, 2], protection)
    of_person = protection.sensitivity_of_unit(noise.sensitivity)
    assert noise.budget.amount * protection.group == 1
    assert of_person.each == noise.sensitivity.each * protection.group
    _, noise = exact([1, 2], protection, unit=Unit.RHO)
    assert noise.budget.amount * protection.group**2 == 1


@pytest.mark.parametrize("unit", list(Unit))
@weights
def test_intervals_contain_the_true_shares(unit, weigh):
    """Four hundred draws that must not miss more than a few: a binomial of 1/20 exceeds 60 with probability 1e-14."""
    rng = np.random.default_rng(1)
    protection = Protection(Neighbours.ADD_REMOVE, Persons("id", 3, weigh))
    rows = np.minimum(rng.geometric(0.2, 4_000), 40)
    counted = np.minimum(rows, COUNTED_ROWS_FACTOR * 3)
    true = 1 - np.minimum(rows, 3).sum() / counted.sum(), (rows > 3).mean()
    found, noise = Contributions.of(rows, 3), SimulatedNoise(rng)
    budget = protection.per_row(Budget(Fraction(1, 20), unit))
    missed, widths = 0, []
    for _ in range(400):
        noisy = measure_dropped(found, protection, protection.persons, budget=budget, noise=noise)
        shares = dropped_shares(noisy, protection, protection.persons, Fraction(1, 20))
        missed += not all(s.lower <= share <= s.upper for s, share in zip(shares, true, strict=True))
        widths.append(shares[0].upper - shares[0].lower)
        assert all(0 <= s.lower <= s.estimate <= s.upper <= 1 for s in shares)
    assert missed <= 60
    assert np.median(widths) < 0.3  # it says something


def test_nobody_at_all_has_shares_between_0_and_1():
    protection = Protection(Neighbours.ADD_REMOVE, Persons("id", 3))
    noisy = measure_dropped(
        Contributions(0, 0, 0, 0), protection, protection.persons, budget=Budget(Fraction(1)), noise=NoNoise()
    )
    for share in dropped_shares(noisy, protection, protection.persons, Fraction(1, 20)):
        assert 0 <= share.lower <= share.estimate <= share.upper <= 1


def test_exact_totals_show_nothing_and_do_not_travel():
    found = Contributions(3, 4, 77, 88)
    assert "77" not in repr(found)
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(found)
