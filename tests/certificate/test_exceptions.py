"""Exceptions: bad subsets get bounds of their own; all bounds hold whatever was chosen, at the stated cost."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from all_sets import largest_errors
from certsynth import Schema, certify, release
from certsynth.algorithm import exceptions as rules
from certsynth.algorithm.exceptions import (
    ExceptionChoice,
    affordable_exceptions,
    number_of_exceptions,
    scores_of,
    scoring_query,
    share_for_all,
    share_for_each,
)
from certsynth.certificate.comparison import Distance, distances
from certsynth.certificate.coverage import statistic_names
from certsynth.certificate.direct import exact_query, flow_losses, loss_sensitivity
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import OF_EXCEPTIONS, StatisticMaxima
from certsynth.errors import InputError, SolverFailed
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.mechanisms.concentrated import pure_epsilon
from certsynth.queries.fine import LatticeCounts, LatticeQuery
from certsynth.queries.marginals import Subset, all_subsets
from certsynth.queries.tally import Batch
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


def batch_of(rows: Rows) -> Batch:
    kinds = [column.centres(column.detail()).dtype for column in TINY]
    return [np.array([DOMAIN[i][j] for i in rows], dtype=kind) for j, kind in enumerate(kinds)]


def count(fine: LatticeQuery, rows: Rows) -> LatticeCounts:
    return fine.count([batch_of(rows)])


def neighbours_of(rows: Rows) -> list[Rows]:
    """Under both relations: one row removed, or replaced by any other."""
    found = []
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        found += [rest, *(tuple(sorted((*rest, new))) for new in range(len(DOMAIN)))]
    return found


def errors_of_pairs(fine: LatticeQuery, private: LatticeCounts, synthetic: LatticeCounts) -> StatisticMaxima:
    found = StatisticMaxima(by_pair={})
    found.update(fine, private, synthetic)
    return found


TABLES = [t for size in range(3) for t in itertools.combinations_with_replacement(range(len(DOMAIN)), size)]
"""All tables of at most two rows."""


def largest_changes(numbers_of: Callable[[Rows], list[int]]) -> list[int]:
    """For each number the largest change between neighbours, under both relations, among all tables."""
    found = {rows: numbers_of(rows) for rows in TABLES}
    pairs = [(rows, other) for rows in TABLES for other in neighbours_of(rows)]
    changes = [[abs(x - y) for x, y in zip(found[rows], found[other], strict=True)] for rows, other in pairs]
    assert len(changes) > 1_000
    return np.max(changes, axis=0).tolist()


@pytest.mark.parametrize("synthetic", [(0,), (0, 5, 11), (3, 3, 8)])
def test_no_neighbours_move_a_score_or_one_of_two_maxima_by_more_than_a_row(synthetic):
    """All tables of at most two rows and all their neighbours, for every single exception: scores, the two losses, and
    the two errors of shares and of totals."""
    fine = LatticeQuery.of(TINY, PAIRS)
    theirs, coarse = count(fine, synthetic), scoring_query(fine)

    def numbers(rows: Rows) -> list[int]:
        ours = count(fine, rows)
        errors = errors_of_pairs(fine, ours, theirs)
        flows = [0] * len(PAIRS)  # n times any distance
        if rows:
            flows = flow_losses(distances(coarse, count(coarse, rows), count(coarse, synthetic)), len(rows))
        found = flows + scores_of(PAIRS, flows, errors.by_pair)
        solved = distances(fine, ours, theirs) if rows else []
        for j, pair in enumerate(PAIRS):
            losses = (0, 0)
            if rows:
                query = exact_query(
                    fine,
                    solved,
                    len(rows),
                    neighbours=Neighbours.ADD_REMOVE,
                    exceptions=(j,),
                    two_sided=False,
                )
                assert query.changes[:2] == (loss_sensitivity(fine, Fraction(0), Neighbours.ADD_REMOVE),) * 2
                losses = query.losses
            found += [*losses, *errors.losses_with({pair}).values()]
        return found

    changes = largest_changes(numbers)
    assert len(changes) == len(PAIRS) * (1 + 1 + 2 + 4)
    assert max(changes) == LOSS_UNITS
    assert min(changes[: 2 * len(PAIRS)]) > LOSS_UNITS // 2


def test_scores_that_stop_early_move_by_more():
    """The control: errors that are dropped where they are no maximum jump, and the test above sees it."""
    fine, synthetic = LatticeQuery.of(TINY, PAIRS), (0, 5, 11)
    theirs = count(fine, synthetic)

    def dropped(rows: Rows) -> list[int]:
        errors = errors_of_pairs(fine, count(fine, rows), theirs)
        largest = errors.losses["share_of_two_columns"]
        scores = scores_of(PAIRS, [0] * len(PAIRS), errors.by_pair)
        return [score if score == largest else 0 for score in scores]

    assert max(largest_changes(dropped)) > LOSS_UNITS


def test_errors_of_pairs_are_those_over_all_functions_of_their_part():
    """By brute force over all boxes and groups, for every set of exceptions."""
    fine, rng = LatticeQuery.of(TINY, PAIRS), np.random.default_rng(0)
    names = statistic_names(TINY, PAIRS, exceptions=True)[1:]  # all but shares of one column
    for _ in range(6):
        private, synthetic = (tuple(rng.integers(0, len(DOMAIN), rng.integers(1, 9))) for _ in range(2))
        errors = errors_of_pairs(fine, count(fine, private), count(fine, synthetic))

        def largest(subsets: list[Subset], private: Rows = private, synthetic: Rows = synthetic) -> dict[str, int]:
            return largest_errors(LatticeQuery.of(TINY, subsets), batch_of(private), batch_of(synthetic))

        for size in range(1, len(PAIRS)):
            for apart in itertools.combinations(PAIRS, size):
                found = errors.losses_with(apart)
                assert set(found) == set(names) - {"moment"}
                others, own = largest([pair for pair in PAIRS if pair not in apart]), largest(list(apart))
                for name, in_exceptions in OF_EXCEPTIONS.items():
                    assert found[name] == others.get(name, 0)
                    assert found[in_exceptions] == own.get(name, 0)


def test_which_numbers_are_measured_does_not_depend_on_what_is_chosen():
    """A pair without an ordered column has no group total: the maximum over it is 0, and measured all the same."""
    fine = LatticeQuery.of(TINY, PAIRS)
    errors = errors_of_pairs(fine, count(fine, (0, 1, 2)), count(fine, (3, 4)))
    assert errors.losses_with([(1, 2)])["group_total_in_exceptions"] == 0
    assert errors.losses_with([(0, 1), (0, 2)])["group_total"] == 0
    assert {tuple(errors.losses_with([pair])) for pair in PAIRS} == {
        ("share_of_two_columns", "group_total", "share_in_exceptions", "group_total_in_exceptions")
    }
    assert tuple(errors.losses_with([])) == tuple(
        name for name in statistic_names(TINY, PAIRS, exceptions=True) if name not in ("share_of_one_column", "moment")
    )


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
    assert [number_of_exceptions(None, pairs[:k]) for k in (1, 99, 100, 105)] == [0, 0, 20, 21]
    assert number_of_exceptions(None, pairs, default=False) == 0
    assert number_of_exceptions(None, [*pairs, (0, 1, 2)]) == 0
    assert number_of_exceptions(None, all_subsets(wide, 3)) == 0
    assert number_of_exceptions(0, pairs) == 0
    assert number_of_exceptions(20, pairs) == 20


def test_the_default_is_a_number_of_choices_that_the_rows_allow():
    """Of a fifth of all pairs at most, as many as are chosen with noise of a hundredth of the rows; at least three."""
    pure, with_delta = Budget(Fraction(1), Unit.EPSILON), Budget(Fraction(1, 50), Unit.RHO)
    assert [affordable_exceptions(87, pure, n) for n in (0, 1_000, 40_000, 250_000, 10**7)] == [3, 3, 6, 37, 87]
    assert [affordable_exceptions(87, with_delta, n) for n in (0, 1_000, 40_000, 250_000)] == [3, 3, 48, 87]
    for budget, rows in ((pure, 40_000), (with_delta, 40_000)):
        number = affordable_exceptions(87, budget, rows)
        noise = [2 / pure_epsilon(budget.share(share_for_each(k))) / rows for k in (number, number + 1)]
        assert noise[0] <= Fraction(1, 100) < noise[1]


def test_the_worst_losses_are_chosen_before_the_worst_scores(monkeypatch):
    """With a budget that leaves nothing to chance."""
    monkeypatch.setattr(rules.Spending, "take", lambda self, budget: None)
    spending = object.__new__(rules.Spending)
    losses, scores = [7, 9, 8, 1, 2, 3], [7, 9, 8, 30, 10, 20]
    for number, expected in ((2, (1, 2)), (3, (1, 2, 0)), (5, (1, 2, 0, 3, 5))):
        choice = ExceptionChoice(number, Budget(Fraction(10**7), Unit.EPSILON), Neighbours.REPLACE_ONE, spending)
        assert choice.choose([LOSS_UNITS * x for x in losses], [LOSS_UNITS * x for x in scores]) == expected


def test_many_choices_share_three_hundredths_of_the_budget():
    assert [share_for_all(number) for number in (0, 1, 3, 4, 200)] == [0, *(Fraction(k, 100) for k in (1, 3, 3, 3))]
    for number in (1, 2, 3, 87):
        assert share_for_each(number) * number == share_for_all(number)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"exceptions": 1_001}, "`exceptions` must be a whole number from 0 to 1,?000; got 1,?001"),
        ({"exceptions": -1}, "`exceptions` must be a whole number from 0 to 1,?000; got -1"),
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
    statistics = found.statistics
    assert found.exceptions.share == statistics.share_of_two_columns < 1.1 * plain.statistics.share_of_two_columns
    assert found.exceptions.group_total == statistics.group_total < 1.2 * plain.statistics.group_total
    assert found.exceptions.share_of_others < statistics.share_of_two_columns / 2
    assert found.exceptions.group_total_of_others < statistics.group_total
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


@pytest.mark.parametrize("releases", [16, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 4}, {"epsilon": None, "rho": "0.5", "neighbours": "add-remove"}], ids=["pure", "hidden rows"]
)
def test_errors_of_pairs_hold_whatever_was_chosen(monkeypatch, budget, releases):
    """Certificates of confidence 0.9, on both sides, with subsets chosen at random; with noise ten times as wide as
    stated, most of them fail."""
    private, synthetic = ruined(150)
    fine = LatticeQuery.of(SCHEMA, all_subsets(SCHEMA, 2))
    ours, theirs = ([table[name].to_numpy() for name in "abcd"] for table in (private, synthetic))
    by_pair = errors_of_pairs(fine, fine.count([ours]), fine.count([theirs])).by_pair
    exact = {
        tuple("abcd"[j] for j in pair): {name: loss / (LOSS_UNITS * 150) for name, loss in each.items()}
        for pair, each in by_pair.items()
    }

    def failures(noise: Callable[[int], Any]) -> int:
        rng, failed = np.random.default_rng(4), 0
        for seed in range(releases):
            chosen = tuple(rng.permutation(6)[: rng.integers(1, 6)].tolist())
            monkeypatch.setattr(rules, "choose_largest", lambda *_, chosen=chosen, **__: chosen)
            asked = {"exceptions": len(chosen), "confidence": "0.9", "noise": noise(seed)} | budget
            found = certified(private, synthetic, **asked).direct
            for name, figures in found.of_pairs.items():
                parts = [], []
                for pair, errors in exact.items():
                    parts[pair in found.exceptions].append(errors[name])
                if any(not f.lower <= max(part) <= f.bound for f, part in zip(figures, parts, strict=True)):
                    failed += 1
                    break
        return failed

    assert failures(SeededNoise) <= 0.1 * releases + 5 * np.sqrt(0.09 * releases)
    assert failures(lambda seed: LyingNoise(10, seed)) > releases / 2


def test_a_choice_is_paid_for_before_it_is_made(monkeypatch):
    taken = []
    monkeypatch.setattr(rules.Spending, "take", lambda self, budget: taken.append(budget.amount))
    monkeypatch.setattr(rules, "choose_largest", lambda *_, **__: (len(taken),))
    spending = object.__new__(rules.Spending)
    choice = ExceptionChoice(2, Budget(Fraction(1, 100), Unit.EPSILON), Neighbours.REPLACE_ONE, spending)
    assert choice.choose([1, 2, 3], [3, 2, 1]) == (1, 1)
    assert taken == [Fraction(1, 50)]
