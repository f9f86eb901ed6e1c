"""Shares of all cells and means of all groups, computed at once, are what the answer to each single question is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from answering import stated
from certsynth.answers import Basis, answer, averages, shares
from certsynth.answers.crosstab_means import GroupMeans
from certsynth.answers.crosstabs import Crosstab
from certsynth.answers.noisy_cells import CellNoise, CellTable, NoisyCells
from certsynth.answers.selection import Selection
from certsynth.answers.sides import Side
from certsynth.answers.tables import bins_of, runs_of
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.condition import And
from certsynth.domain.labels import tree_column
from certsynth.record.record import StatisticsRecord

CLOSE = 1e-11
"""Sums of floats in another order differ by less."""

COLUMNS: tuple[Column, ...] = (
    Ordered("age", low=18, high=100),
    Ordered("rooms", low=0, high=9, missing=True, weight=Fraction(1, 4)),
    Ordered("banded", low=0, high=50, bands=(10, 25, 40), missing=True),
    Ordered("income", kind="number", low=0.0, high=150_000.0, missing=True),
    Ordered("depth", kind="number", low=-3.0, high=0.5, weight=Fraction(1, 2)),
    Ordered("day", kind="date", low=7305, high=19722),
    Ordered("day of year", low=1, high=366),
    Ordered("school", kind="ordinal", low=0, high=2, values=("low", "middle", "high"), missing=True),
    Category("region", values=("north", "south"), other=True),
    Category("job", values=tuple("abcdefg"), missing=True, weight=Fraction(4, 5)),
    Category("owner", kind="boolean", values=("false", "true"), missing=True),
    tree_column("trade", ["a", "a/b", "a/c", "d"], missing=True, other=True),
)


def clean(column: Column, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Cleaned values, skewed as real ones are, or few different ones."""
    if isinstance(column, Category):
        size = len(column.labels) + column.missing
        return rng.choice(size, rows, p=rng.dirichlet(np.full(size, 0.6)))
    assert isinstance(column, Ordered)
    where = rng.beta(*rng.uniform(0.2, 3.0, 2), rows)
    where = np.round(where * 4) / 4 if rng.integers(3) == 0 else where
    found = np.floor(where * column.reach) if column.whole else where
    return np.where(rng.random(rows) < (0.15 if column.missing else 0.0), np.nan, found)


def made_up(rng: np.random.Generator) -> Basis:
    """A release of three columns, with bounds of all sizes that need not be true."""
    schema = Schema(columns=tuple(COLUMNS[i] for i in rng.choice(len(COLUMNS), 3, replace=False)))
    rows = int(rng.choice([1, 7, 60, 900]))
    values = {column.name: clean(column, rng, rows) for column in schema}
    table = {column.name: column.decode(values[column.name]) for column in schema}

    def bound() -> float:
        return float(rng.choice([1e-4, 0.01, rng.uniform(0, 0.1), rng.uniform(0, 0.5), 1.0]))

    pairs = list(itertools.combinations(schema.names, 2))
    certificate = stated([(pair, bound()) for pair in pairs], single=bound())
    known = StatisticsRecord(*(bound() for _ in range(4)), band_of_one_column=bound(), band_of_two_columns=bound())
    basis = Basis(schema, table, values, replace(certificate, statistics=known), rows)
    return replace(basis, noisy=noisy(basis, rng)) if rng.integers(2) else basis


def noisy(basis: Basis, rng: np.random.Generator) -> NoisyCells:
    tables = []
    for size in (1, 2):
        for columns in itertools.combinations(basis.schema, size):
            cells = tuple(column.cells(int(rng.integers(1, 9))) for column in columns)
            codes = [c.to_cells(basis.clean[c.name], each) for c, each in zip(columns, cells, strict=True)]
            shape = tuple(each.size for each in cells)
            counts = np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)
            off = rng.integers(-3, 4, shape) * rng.integers(0, 2)
            noise = CellNoise(("epsilon", "rho")[int(rng.integers(2))], float(rng.uniform(0.05, 4)))
            ordered = slice(None, None, int(rng.choice([-1, 1])))  # axes in any order
            table = (counts + off).astype(float).transpose(np.arange(size)[ordered])
            tables.append(CellTable(columns[ordered], cells[ordered], table, noise, 1, 0.01))
    return NoisyCells(tables, basis.size - 1, basis.size + 1)


def sides(basis: Basis, rng: np.random.Generator) -> list[Side]:
    runs, most = bool(rng.integers(2)), int(rng.integers(2, 7))
    found = [
        Side.of(basis, c, bins_of(c, most if isinstance(c, Ordered) else None), runs=runs and isinstance(c, Ordered))
        for c in basis.schema
    ]
    return [side for side in found if side is not None]


def check_shares(crosstab: Crosstab, rng: np.random.Generator, most: int) -> int:
    """Compare some cells with the answer to their own question; how many."""
    found, (a, b) = crosstab.shares, (crosstab.first.conditions, crosstab.second.conditions)
    cells = list(itertools.product(range(len(a)), range(len(b))))
    for k in rng.permutation(len(cells))[:most]:
        i, j = cells[k]
        estimate, claim = shares.share(crosstab.basis, And((a[i], b[j])))
        assert found.estimate[i, j] == estimate
        assert np.allclose(found.at(i, j)[1:], (claim.low, claim.high), rtol=0, atol=CLOSE), (a[i], b[j], claim)
    return min(most, len(cells))


def check_means(means: GroupMeans, rng: np.random.Generator, most: int) -> int:
    found, number = means.means, 0
    for k in rng.permutation(len(means.groups.conditions))[:most]:
        if not means.present[k]:
            assert np.isnan(found.estimate[k])
            continue
        rows = Selection(means.basis, (means.column,), means.groups.conditions[k])
        estimate, claim = averages.mean(rows, means.column)
        assert np.allclose(found.at(k), (estimate, claim.low, claim.high), rtol=0, atol=CLOSE), (k, claim)
        number += 1
    return number


def check(releases: int, seed: int) -> tuple[int, int]:
    rng, cells, groups = np.random.default_rng(seed), 0, 0
    for _ in range(releases):
        for pair in itertools.combinations(sides(made_up(rng), rng), 2):
            crosstab = Crosstab(*pair)
            cells += check_shares(crosstab, rng, 8)
            for side, first in zip(pair, (True, False), strict=True):
                if isinstance(side.column, Ordered):
                    groups += check_means(GroupMeans(crosstab, first), rng, 2)
    return cells, groups


def test_every_cell_and_every_group_is_what_its_own_question_answers() -> None:
    cells, groups = check(22, seed=1)
    assert cells > 350
    assert groups > 60


@pytest.mark.slow
def test_many_more_cells_and_groups_are_what_their_own_questions_answer() -> None:
    check(1_000, seed=2)


def test_a_wrong_rule_for_leaving_out_the_distance_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: if the bound on the distance were left out wherever it takes a search, answers would differ."""
    monkeypatch.setattr(Crosstab, "_sort_by_distance", lambda *_: None)
    with pytest.raises(AssertionError):
        check(22, seed=1)


@pytest.mark.parametrize("column", [column for column in COLUMNS if isinstance(column, Ordered)], ids=lambda c: c.name)
def test_runs_are_unions_of_bins(column: Ordered) -> None:
    """Each run holds the values of its bins and no others, and its own text is a condition that says so."""
    rng = np.random.default_rng(3)
    values = clean(column, rng, 300)
    basis = Basis(
        Schema(columns=(column,)),
        {column.name: column.decode(values)},
        {column.name: values},
        stated([((column.name,), 0.1)], single=0.1),
    )
    bins = bins_of(column, 4)
    held = [answer(basis, f"fraction({each.text})").estimate for each in bins]
    runs = runs_of(column, bins)
    ranges = len(bins) - column.missing
    assert len(runs) == ranges * (ranges + 1) // 2 - 1
    for first, last, run in runs:
        assert answer(basis, f"fraction({run.text})").estimate == pytest.approx(sum(held[first : last + 1]))
