"""The direct certificate in more than three columns: its sensitivity by exhaustion, its truth against exact W1."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import certsynth.queries.net as net_module
from certsynth import certify, evaluate
from certsynth.algorithm.sizes import check_lattice
from certsynth.certificate.comparison import distances
from certsynth.certificate.direct import LOSS_UNITS, distances_to_empty, exact_query
from certsynth.domain import Schema
from certsynth.errors import InputError, SolverFailed
from certsynth.mechanisms import Neighbours
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.net import DISTANCE_LEVELS, Net, nodes_per_net
from nets import TINY, stop_solvers_early, true_loss
from small import EVERY_KIND, MIXED, SURE, FixedOutput, NoNoise, people, workers

MISSING = float("nan")
ALL = (0, 1, 2, 3)


def columns_of(rows):
    return [np.array(column, dtype=float if j < 2 else np.int64) for j, column in enumerate(zip(*rows, strict=True))]


EVERY_ROW = list(itertools.product([0.0, 2.0, 3.0, 5.0], [0.0, MISSING], [0, 1], [0, 1, 2]))
"""Rows of TINY: near and far from any node, 48 of them."""

SYNTHETIC = {
    "one row": [(0.0, 0.0, 0, 0)],
    "heavy at one end": [(0.0, 0.0, 0, 0)] * 9 + [(5.0, 0.0, 0, 0)],
    "labels apart": [(0.0, MISSING, 0, 2), (3.0, 1.0, 1, 0), (3.0, 1.0, 1, 1), (5.0, 0.0, 0, 1)],
}


def queries_of(fine, synthetic, tables, neighbours):
    theirs = fine.count([columns_of(synthetic)])
    found = {}
    for table in tables:
        ours = fine.count([columns_of(table)] if table else [])
        between = distances(fine, ours, theirs) if table else distances_to_empty(fine, theirs)
        found[table] = exact_query(fine, between, len(table), neighbours=neighbours)
    return found


def largest_change(fine, synthetic, neighbours):
    """The largest change of any coordinate over all neighbours of tables of up to two rows, and what is allowed."""
    tables = [()] + [(row,) for row in EVERY_ROW] if neighbours is Neighbours.ADD_REMOVE else []
    tables += itertools.combinations_with_replacement(EVERY_ROW, 2)
    found = queries_of(fine, synthetic, tables, neighbours)
    allowed = {query.loss_sensitivity for query in found.values()}
    assert len(allowed) == 1
    worst, pairs = 0, 0
    ranges: dict[tuple, list[int]] = {}
    for table, query in found.items():
        assert query.moved is None
        (loss,) = query.losses
        for left_out in range(len(table)):
            rest = table[:left_out] + table[left_out + 1 :]
            if neighbours is Neighbours.ADD_REMOVE:
                worst, pairs = max(worst, abs(loss - found[rest].losses[0])), pairs + 1
            else:
                ranges.setdefault(rest, []).append(loss)
    for losses in ranges.values():  # tables that agree but for one row
        worst, pairs = max(worst, max(losses) - min(losses)), pairs + len(losses) * (len(losses) - 1) // 2
    return worst, allowed.pop(), pairs


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("case", SYNTHETIC)
def test_no_pair_of_neighbours_moves_the_query_by_more_than_its_sensitivity(case, neighbours):
    fine = LatticeQuery.of(TINY, [ALL]).with_nets([columns_of(SYNTHETIC[case])])
    worst, allowed, pairs = largest_change(fine, SYNTHETIC[case], neighbours)
    assert worst <= allowed
    assert worst >= 0.6 * LOSS_UNITS  # and it is not far below
    assert allowed <= LOSS_UNITS * (1 + Fraction(1, 32)) + 2
    assert pairs > 2_000


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_few_nodes_and_a_hub_that_takes_rows_do_not_matter(neighbours):
    synthetic = SYNTHETIC["labels apart"]
    fine = LatticeQuery.of(TINY, [ALL]).with_nets([columns_of(synthetic)], most=2)
    assert fine.count([columns_of(EVERY_ROW)]).counts.blocks[0][-1] > 0
    worst, allowed, _ = largest_change(fine, synthetic, neighbours)
    assert worst <= allowed


def test_one_level_for_all_rows_is_seen_to_be_too_few(monkeypatch):
    """A row that is far from its node and whose node is far from the rest would count for more than one."""
    monkeypatch.setattr(net_module, "DISTANCE_LEVELS", 1)
    fine = LatticeQuery.of(TINY, [ALL]).with_nets([columns_of(SYNTHETIC["heavy at one end"])])
    worst, allowed, _ = largest_change(fine, SYNTHETIC["heavy at one end"], Neighbours.REPLACE_ONE)
    assert worst > allowed


def test_a_net_of_private_rows_would_be_seen():
    """Nodes that follow the private rows: one other row takes away the node that all others were at."""
    synthetic, here, there = SYNTHETIC["one row"], (2.0, 0.0, 0, 0), (5.0, 0.0, 0, 2)
    losses = []
    for rows in ([here] * 40, [here] * 39 + [there]):
        fine = LatticeQuery.of(TINY, [ALL]).with_nets([columns_of(list(dict.fromkeys(rows))[-1:])])
        theirs, ours = fine.count([columns_of(synthetic)]), fine.count([columns_of(rows)])
        query = exact_query(fine, distances(fine, ours, theirs), 40, neighbours=Neighbours.REPLACE_ONE)
        losses.append(query.losses[0])
    assert abs(losses[0] - losses[1]) > 10 * query.loss_sensitivity


def cleaned(frame, schema):
    return [column.clean(frame[column.name].to_numpy()) for column in schema]


SOME = [
    ["age", "income", "region", "job"],
    ["age", "hired", "grade", "member", "colour"],
    ["income", "job", "colour", "hired"],
]


@pytest.mark.parametrize("most", [None, 7])
@pytest.mark.parametrize("columns", SOME, ids=len)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_true_for_all_kinds_of_columns(monkeypatch, columns, seed, most):
    if most:  # few nodes: rows are moved far
        monkeypatch.setattr("certsynth.queries.fine.nodes_per_net", lambda _: most)
    schema = EVERY_KIND.select(columns)
    private, synthetic = workers(40, seed=seed), workers(30, seed=seed + 50)
    true = true_loss(schema, cleaned(private, schema), cleaned(synthetic, schema))
    found = evaluate(private, synthetic, schema, sparsity=len(columns))
    assert found.lower <= true + 1e-9
    assert found.upper >= true - 1e-9
    made = certify(private, synthetic, schema, epsilon=1, sparsity=len(columns), noise=NoNoise())
    assert made.direct.whole.estimate >= true - 1e-9
    assert made.direct.lower == 0
    if most is None:  # all rows of both tables are nodes
        assert found.value == pytest.approx(true, abs=1e-5)
        assert found.upper - found.lower < 2e-5


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_brackets_a_table_that_is_broken(neighbours):
    private, some = people(400), ["age", "sex", "income", "education", "employed"]
    broken = private.with_columns(age=people(400, seed=4)["age"])
    asked = {"sparsity": 4, "columns": some}
    true = evaluate(private, broken, MIXED, **asked)
    made = certify(private, broken, MIXED, epsilon=50, confidence=SURE, neighbours=neighbours, **asked)
    assert made.bound >= true.lower
    assert made.lower <= true.upper
    assert made.single_column_bound < made.bound < 1
    assert len(made.to_json()["subsets"]) == 5


def test_subsets_of_all_sizes_are_certified_together():
    private, synthetic = people(300), people(200, seed=7)
    subsets = [["age", "sex", "income", "education", "employed"], ["age", "income"], ["since"]]
    made = certify(private, synthetic, MIXED, epsilon=20, subsets=subsets, per_subset=True, confidence=SURE)
    true = evaluate(private, synthetic, MIXED, subsets=subsets)
    told = made.to_json()["subsets"]
    assert [tuple(each["columns"]) for each in told] == [each.columns for each in true.subsets]
    for mine, truth in zip(told, true.subsets, strict=True):
        assert mine["bound"] >= truth.lower
    again = evaluate(private, synthetic, MIXED, subsets=subsets[1:])
    assert [s.value for s in again.subsets] == [s.value for s in true.subsets[1:]]


def test_batches_do_not_matter():
    clean = cleaned(workers(500), EVERY_KIND)
    fine = LatticeQuery.of(EVERY_KIND, [(0, 1, 2, 6), (0, 1)]).with_nets([cleaned(workers(60, seed=1), EVERY_KIND)])
    whole = fine.count([clean])
    parts = fine.count([[values[a : a + 7] for values in clean] for a in range(0, 500, 7)])
    assert whole.moved == parts.moved
    assert all(np.array_equal(a, b) for a, b in zip(whole.counts, parts.counts, strict=True))


def test_a_net_has_as_many_nodes_as_it_may_and_heavy_points_first():
    clean = [np.concatenate([values, np.repeat(values[:1], 300)]) for values in cleaned(workers(500), EVERY_KIND)]
    net, again = (Net.of(EVERY_KIND, ALL, clean, most=50) for _ in range(2))
    assert len(net.nodes) == 50
    assert np.array_equal(net.nodes, again.nodes)
    where, far = net.attach([values[:1] for values in clean])
    assert far[0] <= 1  # a unit, by rounding
    assert where[0] % DISTANCE_LEVELS == 0
    assert nodes_per_net(1) == net_module.MAX_NODES
    assert nodes_per_net(10**6) == net_module.MIN_NODES


def test_counting_without_a_net_is_refused_and_nothing_is_multiplied_out():
    many = Schema.parse("".join(f'[[column]]\nname = "c{j}"\nkind = "number"\nlow = 0\nhigh = 1\n' for j in range(40)))
    fine = LatticeQuery.of(many, [tuple(range(40))])
    check_lattice(fine, memory=10**9)
    with pytest.raises(ValueError, match="with_nets"):
        fine.count([])


def test_a_solver_that_stops_early_is_caught_before_the_noise(monkeypatch):
    stop_solvers_early(monkeypatch)
    with pytest.raises(SolverFailed, match="budget of the certificate counts as spent"):
        certify(people(30), people(20, seed=2), MIXED, epsilon=1, sparsity=5)


@pytest.mark.parametrize(
    ("neighbours", "rows"), [(Neighbours.REPLACE_ONE, 1), (Neighbours.ADD_REMOVE, 0), (Neighbours.ADD_REMOVE, 1)]
)
def test_hardly_any_private_rows_give_a_true_and_useless_bound(neighbours, rows):
    made = certify(people(rows), people(5), MIXED, epsilon="0.01", sparsity=5, neighbours=neighbours, noise=NoNoise())
    assert made.bound == 1.0


def test_refuses_a_synthetic_table_without_rows():
    with pytest.raises(InputError, match="synthetic table has no rows"):
        certify(people(5), people(0), MIXED, epsilon=1, sparsity=5)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_nothing_but_the_noisy_integers_decides_what_is_printed(neighbours):
    """Private tables that share nothing but their length, coupled noise: the same answer, the same progress."""
    seen = []
    for private in (people(40), people(40, seed=8)):
        told = []
        made = certify(
            private,
            people(20, seed=2),
            MIXED,
            epsilon=1,
            sparsity=5,
            neighbours=neighbours,
            noise=FixedOutput(),
            progress=lambda *event, told=told: told.append(event),
        )
        seen.append((made.to_json(), told))
    assert seen[0] == seen[1]
