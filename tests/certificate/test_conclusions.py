"""What follows from bounds on shares, group totals and moments, tried on values off the lattice, with exact maxima."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from certsynth import Schema
from certsynth.base.arrays import Ints
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.domain.column import Ordered
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.statistics import UNITS, offsets, places_in_units, product
from certsynth.queries.tally import Batch

SCHEMA = Schema.parse(
    """
[[column]]
name = "x"
kind = "number"
low = 0
high = 1

[[column]]
name = "y"
kind = "integer"
low = 0
high = 50
weight = 0.3

[[column]]
name = "z"
kind = "number"
low = 0
high = 1
missing = true

[[column]]
name = "g"
kind = "category"
values = ["a", "b", "c"]
missing = true
"""
)
X, Y, Z, G = range(4)
UNIT = Fraction(1, UNITS)
SINGLE = LatticeQuery.of(SCHEMA, [(X,), (Y,), (Z,), (G,)], steps=9)
PAIR = LatticeQuery.of(SCHEMA, [(i, j) for j in range(4) for i in range(j)], steps=6)


def random_table(rng: np.random.Generator) -> Batch:
    rows = int(rng.integers(4, 14))
    x = rng.random(rows)
    y = np.floor(50 * np.clip(x + rng.normal(0, 0.3, rows), 0, 1))
    z = np.where(rng.random(rows) < 0.2, np.nan, rng.beta(0.5, 0.5, rows))
    return [x, y, z, rng.integers(4, size=rows)]


@dataclass(frozen=True)
class Case:
    """Two tables with the largest errors of all classes, each times `scale`, and random groups and thresholds."""

    rng: np.random.Generator
    private: Batch
    synthetic: Batch
    scale: Fraction

    @cached_property
    def errors(self) -> dict[str, Fraction]:
        maxima = StatisticMaxima()
        for fine in (SINGLE, PAIR):
            maxima.update(fine, fine.count([self.private]), fine.count([self.synthetic]))
        rows = len(self.private[0]) * LOSS_UNITS
        return {name: self.scale * Fraction(loss, rows) for name, loss in maxima.losses.items()}

    def codes(self, fine: LatticeQuery, column: int) -> Ints:
        """Of the synthetic rows."""
        return SCHEMA.columns[column].to_lattice(self.synthetic[column], fine.marginals.cells[column])[0]

    def group(self) -> tuple[np.ndarray, np.ndarray]:
        """The private and the synthetic rows of a random set of labels."""
        chosen = self.rng.random(4) < 0.6
        return chosen[self.private[G]], chosen[self.synthetic[G]]

    def threshold(self, fine: LatticeQuery, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Private values up to a random one, and the synthetic rows that are surely and possibly up to it."""
        among = np.concatenate([self.private[column], self.rng.random(3)])
        value = float(self.rng.choice(among[~np.isnan(among)]))
        cut = SCHEMA.columns[column].to_lattice(np.array([value]), fine.marginals.cells[column])[0]
        with np.errstate(invalid="ignore"):
            below = self.private[column] <= value
        codes = self.codes(fine, column)
        return below, codes < cut, codes <= cut

    def away(self, fine: LatticeQuery, column: int) -> Ints:
        """Place minus centre of each synthetic row."""
        cells, codes = fine.marginals.cells[column], self.codes(fine, column)
        return offsets(cells, np.bincount(codes, minlength=cells.size))[codes]

    def centre(self, fine: LatticeQuery, column: int) -> Fraction:
        """In multiples of the column's range."""
        cells, codes = fine.marginals.cells[column], self.codes(fine, column)
        away = offsets(cells, np.bincount(codes, minlength=cells.size))
        return Fraction(int(places_in_units(cells)[0] - away[0]), UNITS)

    def places(self, column: int) -> list[Fraction]:
        """True places of private values in their range, without rounding to a lattice; 0 where there is none."""
        ordered = SCHEMA.columns[column]
        assert isinstance(ordered, Ordered)
        return [Fraction(value) / ordered.reach for value in np.nan_to_num(self.private[column]).tolist()]


def off_lattice(fine: LatticeQuery, column: int) -> Fraction:
    cells, ordered = fine.marginals.cells[column], SCHEMA.columns[column]
    return (Fraction(1, 2 * cells.steps) / cells.weight if ordered.covering_radius(cells) else 0) + UNIT


def mean(values) -> Fraction:
    values = [Fraction(value) if isinstance(value, Fraction) else Fraction(int(value)) for value in values]
    return sum(values, Fraction(0)) / len(values)


def divide(above: Fraction, below: Fraction, otherwise: int) -> Fraction:
    return above / below if below > 0 else Fraction(otherwise)


Statement = tuple[Fraction, Fraction, Fraction]
"""A lower bound, the true value, an upper bound."""


def shares(case: Case) -> Iterator[Statement]:
    for column in (X, Z):
        below, inner, outer = case.threshold(SINGLE, column)
        error = case.errors["share_of_one_column"]
        yield mean(inner) - error, mean(below), mean(outer) + error
        below, inner, outer = case.threshold(PAIR, column)
        ours, theirs = case.group()
        error = case.errors["share_of_two_columns"]
        yield mean(inner & theirs) - error, mean(below & ours), mean(outer & theirs) + error


def bounded_share(low: np.ndarray, high: np.ndarray, error: Fraction) -> tuple[Fraction, Fraction]:
    return max(mean(low) - error, Fraction(0)), min(mean(high) + error, Fraction(1))


def conditional_shares(case: Case) -> Iterator[Statement]:
    below, inner, outer = case.threshold(PAIR, X)
    ours, theirs = case.group()
    if ours.any():
        error = case.errors["share_of_two_columns"]
        a_low, a_high = bounded_share(inner & theirs, outer & theirs, error)
        c_low, c_high = bounded_share(~outer & theirs, ~inner & theirs, error)
        yield divide(a_low, a_low + c_high, 0), mean(below[ours]), divide(a_high, a_high + c_low, 1)


def group_means(case: Case) -> Iterator[Statement]:
    for column in (X, Y, Z):
        ours, theirs = case.group()
        ours &= ~np.isnan(case.private[column])
        present = theirs & ~np.isnan(case.synthetic[column])
        low, high = bounded_share(present, present, case.errors["share_of_two_columns"])
        if not ours.any() or low <= 0:
            continue
        total = mean(case.away(PAIR, column) * theirs) / UNITS
        least, most = total - case.errors["group_total"], total + case.errors["group_total"]
        rounding = off_lattice(PAIR, column)
        true = mean([place for place, inside in zip(case.places(column), ours, strict=True) if inside])
        yield (
            case.centre(PAIR, column) + least / (high if least >= 0 else low) - rounding,
            true,
            case.centre(PAIR, column) + most / (low if most >= 0 else high) + rounding,
        )


def group_quantiles(case: Case) -> Iterator[Statement]:
    """Whether a value is at or above a quantile, as 1 or 0."""
    p = Fraction(int(case.rng.integers(1, 10)), 10)
    below, inner, outer = case.threshold(PAIR, X)
    ours, theirs = case.group()
    if ours.any():
        error = case.errors["share_of_two_columns"]
        low_below, high_below = bounded_share(inner & theirs, outer & theirs, error)
        low_above, high_above = bounded_share(~outer & theirs, ~inner & theirs, error)
        true = mean(below[ours]) >= p
        surely = (1 - p) * low_below >= p * high_above
        possibly = (1 - p) * high_below >= p * low_above
        yield Fraction(surely), Fraction(true), Fraction(possibly)


def moments(case: Case) -> Iterator[Statement]:
    """Means and variances of columns without missing values, covariances of two of them."""
    error, m = case.errors["moment"], case.errors["group_total"]
    for column in (X, Y):
        places, away, rounding = case.places(column), case.away(SINGLE, column), off_lattice(SINGLE, column)
        synthetic_mean = case.centre(SINGLE, column) + mean(away) / UNITS
        yield synthetic_mean - error - rounding, mean(places), synthetic_mean + error + rounding
        spread = covariance([Fraction(a, UNITS) for a in away.tolist()], [Fraction(a, UNITS) for a in away.tolist()])
        slack = error + error**2 + 4 * UNIT + rounding
        yield spread - slack, covariance(places, places), spread + slack
    x, y = ([Fraction(a, UNITS) for a in case.away(PAIR, column).tolist()] for column in (X, Y))
    slack = error + m**2 + 4 * UNIT + (off_lattice(PAIR, X) + off_lattice(PAIR, Y)) / 2
    true = covariance(case.places(X), case.places(Y))
    yield covariance(x, y) - slack, true, covariance(x, y) + slack


def covariance(x: list[Fraction], y: list[Fraction]) -> Fraction:
    return mean([a * b for a, b in zip(x, y, strict=True)]) - mean(x) * mean(y)


CLAIMS = [shares, conditional_shares, group_means, group_quantiles, moments]


def broken(claim: Callable[[Case], Iterator[Statement]], scale: Fraction, cases: int) -> tuple[int, int]:
    """How many statements are wrong, of how many."""
    rng = np.random.default_rng(CLAIMS.index(claim))
    found = [
        low <= true <= high
        for _ in range(cases)
        for low, true, high in claim(Case(rng, random_table(rng), random_table(rng), scale))
    ]
    return found.count(False), len(found)


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_true_value_is_where_the_claim_says(claim):
    wrong, of = broken(claim, Fraction(1), 60)
    assert wrong == 0
    assert of >= 50


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS)
def test_many_true_values_are_where_the_claim_says(claim):
    assert broken(claim, Fraction(1), 2_000)[0] == 0


@pytest.mark.parametrize("claim", CLAIMS)
def test_bounds_that_are_too_small_are_seen(claim):
    assert broken(claim, Fraction(1, 10), 60)[0] > 0


def test_products_of_offsets_are_those_of_the_proof():
    case = Case(np.random.default_rng(0), *(random_table(np.random.default_rng(seed)) for seed in (1, 2)), Fraction(1))
    x, y = case.away(PAIR, X), case.away(PAIR, Y)
    exact = mean([Fraction(int(a) * int(b), UNITS**2) for a, b in zip(x, y, strict=True)])
    assert exact - UNIT < mean(product(x, y)) * UNIT <= exact
    assert 0 <= mean(x) < 1
    assert 0 <= mean(y) < 1
