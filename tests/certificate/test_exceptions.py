"""Exceptions: a few bad subsets get a bound of their own; both bounds hold whatever was chosen, at the stated cost."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Schema, certify, release
from certsynth.algorithm import exceptions as rules
from certsynth.algorithm.exceptions import ExceptionChoice, number_of_exceptions, scoring_query
from certsynth.certificate.comparison import Distance, distances
from certsynth.certificate.direct import exact_query, flow_losses, loss_sensitivity
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.errors import InputError, SolverFailed
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.queries.fine import LatticeCounts, LatticeQuery
from certsynth.queries.marginals import all_subsets
from small import LyingNoise, NoNoise, SeededNoise

TINY = Schema.parse(
    """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 1
missing = true

[[column]]
name = "b"
kind = "boolean"

[[column]]
name = "c"
kind = "category"
values = ["x", "y"]
"""
)
PAIRS = tuple(all_subsets(TINY, 2))
DOMAIN = list(itertools.product(*(column.centres(column.detail()).tolist() for column in TINY)))
Rows = tuple[int, ...]


def count(fine: LatticeQuery, rows: Rows) -> LatticeCounts:
    kinds = [column.centres(column.detail()).dtype for column in TINY]
    batch = [np.array([DOMAIN[i][j] for i in rows], dtype=kind) for j, kind in enumerate(kinds)]
    return fine.count([batch])


def neighbours_of(rows: Rows) -> list[Rows]:
    """Under both relations: one row removed, or replaced by any other."""
    found = []
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        found += [rest, *(tuple(sorted((*rest, new))) for new in range(len(DOMAIN)))]
    return found


def scores_of(fine: LatticeQuery, private: Rows, synthetic: Rows) -> list[int]:
    query = scoring_query(fine)
    return flow_losses(distances(query, count(query, private), count(query, synthetic)), len(private))


@pytest.mark.parametrize("synthetic", [(0,), (0, 5, 11), (3, 3, 8)])
def test_no_neighbours_move_a_score_or_one_of_the_two_losses_by_more_than_a_row(synthetic):
    """All tables of at most two rows and all their neighbours under both relations, for every single exception."""
    fine = LatticeQuery.of(TINY, PAIRS)
    theirs = count(fine, synthetic)
    tables = [t for size in range(3) for t in itertools.combinations_with_replacement(range(len(DOMAIN)), size)]
    found: dict[Rows, list[int]] = {}
    for rows in tables:
        numbers = [0] * len(PAIRS)  # n times any distance
        if rows:
            numbers = scores_of(fine, rows, synthetic)
            solved = distances(fine, count(fine, rows), theirs)
            for apart in range(len(PAIRS)):
                query = exact_query(
                    fine, solved, len(rows), neighbours=Neighbours.ADD_REMOVE, exceptions=(apart,), two_sided=False
                )
                assert query.changes[:2] == (loss_sensitivity(fine, Fraction(0), Neighbours.ADD_REMOVE),) * 2
                numbers += query.losses
        else:
            numbers += [0] * (2 * len(PAIRS))
        found[rows] = numbers
    pairs = [(rows, other) for rows in tables for other in neighbours_of(rows)]
    changes = [abs(x - y) for rows, other in pairs for x, y in zip(found[rows], found[other], strict=True)]
    assert len(changes) > 10_000
    assert max(changes) == LOSS_UNITS


def test_scores_are_flows_on_a_coarse_lattice():
    """Columns of up to 16 steps keep their values; labels stay as they are."""
    columns = {"few": 'kind = "integer"\nlow = 0\nhigh = 12', "many": 'kind = "number"\nlow = 0\nhigh = 1'}
    columns["labels"] = 'kind = "category"\nvalues = ["x", "y", "z"]'
    schema = Schema.parse("\n".join(f'[[column]]\nname = "{name}"\n{kind}\n' for name, kind in columns.items()))
    sizes = [cells.size for cells in scoring_query(LatticeQuery.of(schema, all_subsets(schema, 2))).marginals.cells]
    assert sizes == [13, 17, 3]


def test_a_flow_without_proof_is_no_score():
    unproved = Distance(Fraction(1, 2), Fraction(1, 3), Fraction(1), Fraction(0), Fraction(0))
    with pytest.raises(SolverFailed, match="proved optimality"):
        flow_losses([unproved], 10)


# ------------------------------------------------------------ the rule and its refusals


def test_the_default_follows_a_public_rule():
    wide = Schema.parse("\n".join(f'[[column]]\nname = "c{j}"\nkind = "boolean"\n' for j in range(15)))
    pairs = all_subsets(wide, 2)
    assert [number_of_exceptions(None, pairs[:k]) for k in (1, 99, 100, 105)] == [0, 0, 3, 3]
    assert number_of_exceptions(None, pairs, default=False) == 0
    assert number_of_exceptions(None, [*pairs, (0, 1, 2)]) == 0
    assert number_of_exceptions(None, all_subsets(wide, 3)) == 0
    assert number_of_exceptions(0, pairs) == 0
    assert number_of_exceptions(20, pairs) == 20


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"exceptions": 21}, "`exceptions` must be a whole number from 0 to 20; got 21"),
        ({"exceptions": -1}, "`exceptions` must be a whole number from 0 to 20; got -1"),
        ({"exceptions": True}, "`exceptions` must be a whole number"),
        ({"exceptions": 6}, "`exceptions` must be below the number of subsets that the certificate covers, 6; got 6"),
        ({"exceptions": 1, "sparsity": 3}, "`exceptions` is for subsets of at most 2 columns"),
    ],
)
def test_refuses_exceptions_that_there_cannot_be(asked, message):
    private, synthetic = ruined(20)
    for call in (lambda: release(private, SCHEMA, epsilon=1, **asked), lambda: certified(private, synthetic, **asked)):
        with pytest.raises(InputError, match=message):
            call()


def test_refuses_exceptions_without_a_certificate_that_has_them():
    private, synthetic = ruined(20)
    with pytest.raises(InputError, match="`exceptions` belong to the direct certificate"):
        release(private, SCHEMA, epsilon=1, exceptions=1, certificate_share=0)
    with pytest.raises(InputError, match="every subset has a bound of its own already"):
        certified(private, synthetic, exceptions=1, per_subset=True)


# ------------------------------------------------------------ end to end

SCHEMA = Schema.parse(
    "\n".join(f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 9\n' for name in "abcd")
)


def ruined(rows: int, *, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Independent columns, but in the private table b is a copy of a."""
    rng = np.random.default_rng(seed)
    private, synthetic = ({name: rng.integers(0, 10, rows) for name in "abcd"} for _ in range(2))
    private["b"] = private["a"].copy()
    return pl.DataFrame(private), pl.DataFrame(synthetic)


def certified(private: Any, synthetic: Any, **asked: Any) -> Any:
    return certify(private, synthetic, SCHEMA, **({"epsilon": 4} | asked))


@pytest.mark.parametrize("budget", [{"epsilon": 4}, {"rho": "0.5"}, {"epsilon": 4, "delta": "1e-6"}], ids=str)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_ruined_pair_is_named_and_the_others_keep_their_bound(budget, neighbours):
    """The score of the pair is 900 rows above all others: it is missed with a chance below 10⁻⁶."""
    private, synthetic = ruined(4_000)
    found = certify(private, synthetic, SCHEMA, neighbours=neighbours, exceptions=1, **budget)
    plain = certify(private, synthetic, SCHEMA, neighbours=neighbours, **budget)
    assert found.exceptions is not None
    assert plain.exceptions is None
    assert found.exceptions.subsets == (("a", "b"),)
    assert found.exceptions.bound == found.bound
    assert found.exceptions.bound_of_others < found.bound / 5
    assert found.bound < 1.05 * plain.bound
    by_columns = {tuple(each["columns"]): each for each in found.to_json()["subsets"]}
    assert by_columns.pop(("a", "b")) == {"columns": ["a", "b"], "bound": found.bound, "lower": found.lower}
    assert {(each["bound"], each["lower"]) for each in by_columns.values()} == {(found.exceptions.bound_of_others, 0.0)}
    assert found.cost.spent.amount <= found.privacy.budget.amount


def test_all_steps_together_cost_the_budget():
    private, synthetic = ruined(300)
    for number in (1, 3):
        found = certified(private, synthetic, exceptions=number)
        assert found.choice.spent.amount == Fraction(4 * number, 100)
        assert found.direct.cost.spent.amount == 4 - Fraction(4 * number, 100)
        assert found.cost.spent.amount == 4
        made = release(private, SCHEMA, epsilon=3, exceptions=number, seed=1)
        steps = {step.on: step.epsilon for step in made.record.privacy.spent}
        assert steps[f"choosing {number} exception{'s' * (number > 1)}"] == Fraction(3 * number, 100)
        assert sum(steps.values()) == 3
        concentrated = certified(private, synthetic, epsilon=None, rho=1, exceptions=number)
        choice = concentrated.choice.spent.amount
        assert Fraction(99 * number, 10_000) < choice <= Fraction(number, 100)
        assert concentrated.cost.spent.amount == choice + 1 - Fraction(number, 100)


@pytest.mark.parametrize("subsets", [None, [["a", "b"], ["c"], ["c", "d"], ["d"]], [["a"], ["b"], ["c"]]], ids=str)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_without_noise_the_two_losses_are_the_largest_of_their_subsets(monkeypatch, subsets, neighbours):
    """Whatever is chosen, and also in a workload of single columns and pairs."""
    private, synthetic = ruined(200)
    asked = {"subsets": subsets, "neighbours": neighbours, "noise": NoNoise()}
    each = certified(private, synthetic, per_subset=True, **asked).direct
    exact = dict(zip(each.subsets, each.losses, strict=True))
    number = len(each.subsets)
    for chosen in ((0,), (number - 1, 0), tuple(range(1, number))):
        monkeypatch.setattr(rules, "choose_largest", lambda *_, chosen=chosen, **__: chosen)
        found = certified(private, synthetic, exceptions=len(chosen), **asked).direct
        assert found.exceptions == tuple(each.subsets[j] for j in chosen)
        others = [columns for columns in each.subsets if columns not in found.exceptions]
        for loss, part in zip(found.losses, (others, found.exceptions), strict=True):
            assert loss.estimate == max(exact[columns].estimate for columns in part)


def test_bounds_hold_whatever_was_chosen(monkeypatch):
    """40 certificates of confidence 0.9 with subsets chosen at random; with noise ten times as wide as stated, most
    of them fail."""
    private, synthetic = ruined(150)
    exact = certified(private, synthetic, per_subset=True, noise=NoNoise()).direct
    losses = {columns: loss.estimate for columns, loss in zip(exact.subsets, exact.losses, strict=True)}

    def failures(noise: Callable[[int], Any]) -> int:
        rng, failed = np.random.default_rng(3), 0
        for seed in range(40):
            chosen = tuple(rng.permutation(6)[: rng.integers(1, 6)].tolist())
            monkeypatch.setattr(rules, "choose_largest", lambda *_, chosen=chosen, **__: chosen)
            found = certified(private, synthetic, exceptions=len(chosen), confidence="0.9", noise=noise(seed)).direct
            figures = dict(zip(found.subsets, found.of_each_subset, strict=True))
            failed += any(not figures[s].lower <= losses[s] <= figures[s].bound for s in losses)
        return failed

    assert failures(SeededNoise) <= 8
    assert failures(lambda seed: LyingNoise(10, seed)) > 15


def test_a_choice_is_paid_for_before_it_is_made(monkeypatch):
    taken = []
    monkeypatch.setattr(rules.Spending, "take", lambda self, budget: taken.append(budget.amount))
    monkeypatch.setattr(rules, "choose_largest", lambda *_, **__: (len(taken),))
    spending = object.__new__(rules.Spending)
    choice = ExceptionChoice(2, Budget(Fraction(1, 100), Unit.EPSILON), Neighbours.REPLACE_ONE, spending)
    assert choice.choose([1, 2, 3]) == (1,)
    assert taken == [Fraction(1, 50)]
