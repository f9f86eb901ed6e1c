"""The diagnostic of a fit against literal counting, on rows that are right, wrong, and in between."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from certsynth.algorithm.layers import lattice_points
from certsynth.domain import Category, Cells, Ordered, Schema
from certsynth.mechanisms import Budget, FullMeasurement, Measurement, Neighbours, measure, strategy_named
from certsynth.mechanisms.measure import estimate
from certsynth.mechanisms.samplers import SimulatedNoise
from certsynth.projection.diagnostic import (
    MAX_FUNCTIONS,
    MAX_FURTHEST,
    LikelyFunction,
    diagnose_fit,
    looks_like_function,
    misfits,
)
from certsynth.projection.synthesis import synthesise
from certsynth.queries.marginals import Marginals
from small import NoNoise

ROWS = 3_000
SCHEMA = Schema(
    columns=(
        Category("code", values=tuple("abcdefgh")),
        Category("group", values=("w", "x", "y", "z")),
        Ordered("age", kind="integer", low=0, high=7),
        Category("rare", values=("no", "yes")),
    )
)
PAIRS = tuple(itertools.combinations(range(4), 2))


def real_rows(seed: int, *, off: float = 0.0) -> list[np.ndarray]:
    """`group` is a function of `code` but for a share of about `off`; `rare` is nearly constant."""
    rng = np.random.default_rng(seed)
    code = rng.integers(8, size=ROWS)
    group = np.where(rng.random(ROWS) < off, (code // 2 + 1) % 4, code // 2)
    clean = [code, group, rng.integers(8, size=ROWS), (rng.random(ROWS) < 0.03).astype(np.int64)]
    return [column.clean(column.decode(np.asarray(x))) for column, x in zip(SCHEMA, clean, strict=True)]


def measured(
    rows: list[np.ndarray],
    subsets: tuple[tuple[int, ...], ...] = PAIRS,
    *,
    epsilon: int = 20,
    cells: tuple[Cells, ...] | None = None,
    mechanism: str = "identity",
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    noise: object = None,
) -> FullMeasurement:
    marginals = Marginals(cells or tuple(column.cells(8) for column in SCHEMA), subsets)
    codes = [c.to_cells(x, cells) for c, x, cells in zip(SCHEMA, rows, marginals.cells, strict=True)]
    strategy = strategy_named(mechanism, neighbours=neighbours)
    noise = noise or SimulatedNoise(np.random.default_rng(int(codes[0].sum())))  # other rows have other noise
    return measure(marginals.count([codes]), strategy, budget=Budget(Fraction(epsilon)), noise=noise)


def shuffled(rows: list[np.ndarray]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.permutation(column) for column in rows]


# ------------------------------------------------------------ misfits


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_misfit_is_the_distance_to_the_estimate_over_the_size_of_its_noise(neighbours: Neighbours) -> None:
    rows = real_rows(1)
    made = measured(rows, neighbours=neighbours)
    other = shuffled(rows)
    (blocks,), total = estimate([made])
    draws, _ = made.simulate(np.random.default_rng(5), 400)
    for found, subset, block, errors in zip(misfits([made], SCHEMA, other), PAIRS, blocks, draws, strict=True):
        assert found.columns == tuple(SCHEMA.names[j] for j in subset)
        shape = made.marginals.shape(subset)
        counts = np.zeros(shape)
        for row in zip(*(SCHEMA.columns[j].to_cells(other[j], made.marginals.cells[j]) for j in subset), strict=True):
            counts[row] += 1
        distance = math.sqrt(float(((counts.ravel() / ROWS - block / total) ** 2).sum()))
        noise = float((errors**2).sum(axis=1).mean()) / total**2
        # The diagnostic has ten draws for the size of the noise.
        assert found.misfit == pytest.approx(distance / math.sqrt(noise + len(block) / (2 * ROWS) ** 2), rel=0.5)


@pytest.mark.parametrize("mechanism", ["identity", "haar"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_rows_that_were_measured_have_misfits_of_about_one(mechanism: str, neighbours: Neighbours) -> None:
    found = []
    for seed in range(10):
        rows = real_rows(seed)
        made = measured(rows, mechanism=mechanism, neighbours=neighbours, epsilon=3)
        found += [each.misfit for each in misfits([made], SCHEMA, rows)]
    assert 0.7 < np.mean(found) < 1.3


def test_without_noise_only_whole_rows_are_allowed_for() -> None:
    """Half a row in each cell has a misfit of about 1; nothing less would be fair to any number of rows."""
    rows = real_rows(3)
    made = measured(rows, noise=NoNoise(), epsilon=10**6)
    assert max(each.misfit for each in misfits([made], SCHEMA, rows)) == pytest.approx(0, abs=1e-6)
    assert max(each.misfit for each in misfits([made], SCHEMA, shuffled(rows))) > 100


def test_fitted_rows_are_within_their_noise_and_shuffled_ones_are_named_where_they_are_wrong() -> None:
    rows = real_rows(4)
    made = measured(rows)
    fitted = synthesise([made], SCHEMA, ROWS, np.random.default_rng(0))
    good, bad = (diagnose_fit([made], SCHEMA, each) for each in (fitted, shuffled(rows)))
    assert good is not None
    assert bad is not None
    assert good.furthest[0].misfit < 1.6
    assert bad.furthest[0].columns == ("code", "group")
    assert bad.furthest[0].misfit > 10
    assert bad.functions == good.functions  # they are a matter of the counts alone


def test_the_few_furthest_tables_come_first() -> None:
    rows = shuffled(real_rows(5))
    made = measured(real_rows(5))
    found = diagnose_fit([made], SCHEMA, rows)
    assert found is not None
    assert found.tables == len(PAIRS)
    every = sorted((each.misfit for each in misfits([made], SCHEMA, rows)), reverse=True)
    assert [each.misfit for each in found.furthest] == every[:MAX_FURTHEST]
    assert len(PAIRS) > MAX_FURTHEST


def test_the_same_folder_gives_the_same_figures() -> None:
    rows = real_rows(6)
    made = measured(rows)
    assert diagnose_fit([made], SCHEMA, rows) == diagnose_fit([made], SCHEMA, [x.copy() for x in rows])


def test_layers_may_cover_other_pairs_each_and_triples() -> None:
    rows = real_rows(7)
    covered = (tuple((j,) for j in range(4)), ((0, 1), (2, 3)), ((0, 1, 2), (1, 3)))
    layers = [measured(rows, subsets, epsilon=1, cells=lattice_points(SCHEMA, None)) for subsets in covered]
    found = misfits(layers, SCHEMA, rows)
    assert [each.columns for each in found] == [
        ("code", "group"),
        ("age", "rare"),
        ("code", "group", "age"),
        ("group", "rare"),
    ]
    assert all(0.3 < each.misfit < 2 for each in found)


def test_without_tables_of_several_columns_or_without_all_their_counts_there_is_nothing_to_say() -> None:
    rows = real_rows(8)
    singles = measured(rows, tuple((j,) for j in range(4)))
    assert diagnose_fit([singles], SCHEMA, rows) is None
    full = measured(rows)
    sparse = Measurement(full.marginals, full.strategy, full.coefficients, full.total, full.scale, full.cost)
    assert diagnose_fit([sparse], SCHEMA, rows) is None
    assert diagnose_fit([singles, sparse], SCHEMA, rows) is None


def test_an_empty_table_and_a_single_row_are_no_problem() -> None:
    rows = real_rows(9)
    made = measured([x[:0] for x in rows], neighbours=Neighbours.ADD_REMOVE)
    for emitted in ([x[:1] for x in rows], rows):
        found = diagnose_fit([made], SCHEMA, emitted)
        assert found is not None
        assert all(math.isfinite(each.misfit) for each in found.furthest)


# ------------------------------------------------------------ functions


@pytest.mark.parametrize("off", [0.0, 0.01])
def test_a_function_is_named_with_the_share_of_rows_that_contradict_it(off: float) -> None:
    (found,) = looks_like_function([measured(real_rows(10, off=off))], SCHEMA)
    assert (found.source, found.derived) == ("code", "group")
    assert found.share == pytest.approx(off, abs=0.02)


def test_a_function_of_later_columns_is_found_too() -> None:
    rows = real_rows(11)
    turned = Schema(columns=SCHEMA.columns[1::-1])
    marginals = Marginals.even(turned, [(0, 1)], resolution=8)
    codes = [c.to_cells(x, cells) for c, x, cells in zip(turned, rows[1::-1], marginals.cells, strict=True)]
    strategy = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    made = measure(marginals.count([codes]), strategy, budget=Budget(Fraction(20)))
    (found,) = looks_like_function([made], turned)
    assert (found.source, found.derived) == ("code", "group")


@pytest.mark.parametrize("off", [0.1, 0.3])
def test_a_column_that_often_contradicts_the_map_is_no_function(off: float) -> None:
    assert looks_like_function([measured(real_rows(12, off=off))], SCHEMA) == []


def test_a_nearly_constant_column_is_not_called_a_function_of_all_others() -> None:
    rows = real_rows(13)
    found = looks_like_function([measured(rows, noise=NoNoise(), epsilon=10**6)], SCHEMA)
    assert [(each.source, each.derived) for each in found] == [("code", "group")]
    assert found[0].share == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 10), 1])
def test_noise_is_not_taken_for_a_function(epsilon: Fraction | int) -> None:
    """Independent columns, from hopeless noise to a little."""
    for seed in range(20):
        rows = shuffled(real_rows(seed))
        made = measured(rows, epsilon=epsilon)
        assert looks_like_function([made], SCHEMA) == []


def test_columns_that_determine_each_other_are_named_once() -> None:
    rows = real_rows(14)
    code, _, age, _ = SCHEMA.columns
    rows[2] = age.clean(age.decode(code.to_cells(rows[0], code.cells(8)).astype(float)))
    found = looks_like_function([measured(rows, noise=NoNoise(), epsilon=10**6)], SCHEMA)
    assert {frozenset((each.source, each.derived)) for each in found} == {
        frozenset(("code", "group")),
        frozenset(("code", "age")),
        frozenset(("age", "group")),
    }
    assert len(found) == 3 <= MAX_FUNCTIONS
    assert all(each == LikelyFunction(each.source, each.derived, each.share) for each in found)
