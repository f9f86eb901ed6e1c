"""Noise on a grid of all columns: its sensitivity, and that what is kept has the law of noise on all cells."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from certsynth import Schema
from certsynth.mechanisms import Budget, Neighbours, Unit, sparse
from certsynth.mechanisms.measure import coefficients, sensitivity
from certsynth.mechanisms.rare import Tail
from certsynth.mechanisms.samplers import ExactNoise, SimulatedNoise, simulate
from certsynth.mechanisms.sparse import LowDimensional, SparseMeasurement, measure_sparse, thresholds
from certsynth.projection.simplex import project_to_solid_simplex
from certsynth.queries.occupied import OccupiedCells, codes_of, count_occupied, grid_cells, joint_grid
from small import EVERY_KIND, NATIVE, NoNoise, SeededNoise

ALARM = 1e-9
"""The chance that a test of a law that is true fails."""

LINE = Schema.parse('[[column]]\nname = "x"\nkind = "integer"\nlow = 0\nhigh = 5')
PLANE = Schema.parse("\n".join(f'[[column]]\nname = "{n}"\nkind = "integer"\nlow = 0\nhigh = 2' for n in "xyz"))
"""Three columns of three values."""


def grid(schema: Schema, rows: np.ndarray, resolution: int = 10) -> OccupiedCells:
    """Of rows that are cleaned values."""
    (found,) = count_occupied(schema, [joint_grid(schema, resolution)], [list(rows.astype(float).T)])
    return found


def tables(values: int, columns: int, rows: int):
    """All tables of so many rows, up to their order."""
    cells = list(itertools.product(range(values), repeat=columns))
    for table in itertools.combinations_with_replacement(cells, rows):
        yield np.array(table, dtype=float).reshape(rows, columns)


# ------------------------------------------------------------ sensitivity, by exhaustion


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("columns", "resolution"), [(1, 3), (2, 2), (2, 3), (3, 1), (3, 3)])
def test_counts_and_numbers_of_occupied_cells_change_as_little_as_stated(relation, signed, columns, resolution):
    """All neighbours among tables of at most three rows; both sensitivities are attained."""
    schema = PLANE.select(PLANE.names[:columns])
    strategy = LowDimensional(relation, signed=signed)
    marginals = joint_grid(schema, resolution)
    stated = sensitivity(marginals, strategy)
    worst = worst_size = 0
    known: dict[tuple, tuple[np.ndarray, int]] = {}

    def counted(table: np.ndarray) -> tuple[np.ndarray, int]:
        """What gets noise, and how many cells are occupied: the same for rows in any order."""
        key = tuple(sorted(map(tuple, table)))
        if key not in known:
            found = grid(schema, table, resolution)
            known[key] = np.concatenate(coefficients(found.to_counts(), strategy)), len(found.places)
        return known[key]

    cells = [np.array(cell, dtype=float) for cell in itertools.product(range(3), repeat=columns)]
    for table in itertools.chain(tables(3, columns, 1), tables(3, columns, 2)):
        others = [np.vstack([table[1:], cell]) for cell in cells]
        if relation is Neighbours.ADD_REMOVE:
            others = [table[1:]]
        first, size = counted(table)
        for other in others:
            second, other_size = counted(other)
            worst = max(worst, int(np.abs(first - second).sum()))
            worst_size = max(worst_size, abs(size - other_size))
    assert worst == stated.l1 == stated.l2_squared
    assert worst_size == (1 if grid_cells(schema, resolution) > 1 or relation is Neighbours.ADD_REMOVE else 0)


@pytest.mark.parametrize("schema", [NATIVE, EVERY_KIND], ids=["native", "every kind"])
def test_every_row_is_in_one_cell(schema):
    rng = np.random.default_rng(0)
    batches = []
    for size in (7, 0, 50):
        batches.append([c.on_lattice(c.detail())[rng.integers(0, c.detail().size, size)] for c in schema])
    grids = [joint_grid(schema, k) for k in (1, 2, 5)]
    together = count_occupied(schema, grids, batches)
    in_passes = count_occupied(schema, grids, batches, most=3)
    for one, other, marginals in zip(together, in_passes, grids, strict=True):
        assert one.counts.sum() == one.rows == 57
        assert np.array_equal(one.places, other.places)
        assert np.array_equal(one.counts, other.counts)
        codes = codes_of(marginals.cells, one.places)
        assert np.array_equal(marginals.indices(list(codes.T), marginals.subsets[0]), one.places)


def test_exact_counts_do_not_show_themselves():
    import pickle

    found = grid(LINE, np.array([[1.0], [1.0], [4.0]]))
    assert repr(found) == "OccupiedCells(<private>)"
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(found)


# ------------------------------------------------------------ the law of what is kept


def kept_of_all(counts: np.ndarray, scale: float, mass: int, rng: np.random.Generator, *, signed: bool):
    """What is kept if the noise of every cell is drawn: the definition."""
    noisy = counts + simulate(rng, Unit.EPSILON, scale, counts.shape)
    sizes = np.abs(noisy) if signed else noisy
    for above in thresholds(len(counts), scale):
        if np.maximum(sizes - above, 0).sum() >= mass:
            break
    kept = np.flatnonzero(sizes > above)
    return above, kept, noisy[kept]


def outcome(above: int, places: np.ndarray, values: np.ndarray) -> tuple:
    """Coarse enough that there are not too many of them."""
    return above, tuple(places.tolist()), tuple(np.clip(values, -4, 5).tolist())


def same_law(first: Counter, second: Counter) -> float:
    """p-value of the hypothesis that two samples have one law; rare outcomes are taken together."""
    common = [each for each in first | second if first[each] + second[each] >= 40]
    table = [[sample[each] for each in common] for sample in (first, second)]
    rest = [sample.total() - sum(row) for sample, row in zip((first, second), table, strict=True)]
    table = [[*row, more] for row, more in zip(table, rest, strict=True)] if sum(rest) else table
    return float(chi2_contingency(table).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True])
def test_what_is_kept_has_the_law_of_noise_on_all_cells(monkeypatch, signed):
    """A grid of six cells whose thresholds begin high: 3,000 runs against 15,000 of all cells, two-sample χ².

    Three ways to do it wrong must be seen: to stop at the first threshold whatever is there, to keep occupied cells
    that do not stand out, and to draw a band without what is known of it.
    """
    monkeypatch.setattr(sparse, "MAX_CELLS_IN_FULL", 0)
    monkeypatch.setattr(sparse, "FIRST_EXPECTED_CELLS", 0.7)
    monkeypatch.setattr(sparse, "EXPECTED_CELLS_FACTOR", 2)
    runs, few, many, strategy = 3_000, 300, 5_000, LowDimensional(Neighbours.REPLACE_ONE, signed=signed)
    counts = grid(LINE, np.array([[1.0], [1.0], [4.0]]))
    budget = Budget(Fraction(2))  # scale 1
    exact = np.array([0, 2, 0, 0, 1, 0])
    rng = np.random.default_rng(5)
    assert len(list(thresholds(6, 1.0))) > 2

    def made(noise: ExactNoise | SeededNoise) -> SparseMeasurement:
        found = measure_sparse(counts, strategy, budget=budget, noise=noise)
        assert isinstance(found, SparseMeasurement)
        return found

    def plainly(found: SparseMeasurement) -> tuple:
        return outcome(found.above, found.places, found.coefficients[0])

    def favouring(found: SparseMeasurement) -> tuple:
        """Small counts are dropped of empty cells only."""
        places, values = list(found.places), list(found.coefficients[0])
        for cell in counts.places:
            if cell not in places:
                places.append(cell)
                values.append(found.above)
        order = np.argsort(places)
        return outcome(found.above, np.array(places)[order], np.array(values)[order])

    class Forgetful(SeededNoise):
        def rare(self, cells: int, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
            return super().rare(cells, Tail(tail.scale, tail.above, None, tail.signed))

    dense = Counter(outcome(*kept_of_all(exact, 1.0, 3, rng, signed=signed)) for _ in range(5 * runs))
    forgetful = Forgetful()
    honest = [made(ExactNoise()) for _ in range(runs)]
    assert same_law(Counter(map(plainly, honest)), dense) > ALARM
    assert same_law(Counter(map(favouring, honest)), dense) < ALARM
    assert same_law(Counter(plainly(made(forgetful)) for _ in range(many)), dense) < ALARM

    first = next(iter(thresholds(6, 1.0)))
    monkeypatch.setattr(sparse, "thresholds", lambda cells, scale: iter([first]))
    assert same_law(Counter(plainly(made(ExactNoise())) for _ in range(few)), dense) < ALARM


def test_what_is_kept_is_all_that_the_simplex_needs():
    """The projection of all noisy cells has no weight outside of what is kept, on grids of any size."""
    rng = np.random.default_rng(0)
    for cells, rows in ((6, 3), (500, 40), (500, 100_000), (20_000, 1_000)):
        for signed in (False, True):
            counts = np.bincount(rng.integers(0, min(cells, 9), rows), minlength=cells)
            noisy = counts + simulate(rng, Unit.EPSILON, 2.0, counts.shape)
            sizes = np.abs(noisy) if signed else noisy
            for above in thresholds(cells, 2.0):
                if np.maximum(sizes - above, 0).sum() >= rows:
                    break
            whole = project_to_solid_simplex(sizes, rows)
            assert not whole[sizes <= above].any()
            assert np.allclose(whole[sizes > above], project_to_solid_simplex(sizes[sizes > above], rows))


def test_thresholds_fall_to_nothing():
    for cells, scale in ((1, 0.01), (300, 1.0), (10**15, 2.5), (10**18, 900.0)):
        found = list(thresholds(cells, scale))
        assert found[-1] == 0
        assert found == sorted(set(found), reverse=True)
    assert list(thresholds(10, 2.0)) == [0]


def test_the_order_of_cells_does_not_tell_which_hold_rows():
    schema = EVERY_KIND
    rng = np.random.default_rng(0)
    batch = [c.on_lattice(c.detail())[rng.integers(0, c.detail().size, 300)] for c in schema]
    (counts,) = count_occupied(schema, [joint_grid(schema, 4)], [batch])
    made = measure_sparse(counts, LowDimensional(Neighbours.REPLACE_ONE), budget=Budget(Fraction(1)))
    assert isinstance(made, SparseMeasurement)
    assert (np.diff(made.places) > 0).all()
    assert (made.coefficients[0] > made.above).all()


def test_few_cells_are_kept_in_full_and_their_law_is_known():
    counts = grid(LINE, np.array([[1.0], [1.0], [4.0]]))
    made = measure_sparse(counts, LowDimensional(Neighbours.REPLACE_ONE), budget=Budget(Fraction(1)), noise=NoNoise())
    assert not isinstance(made, SparseMeasurement)
    assert made.coefficients[0].tolist() == [0, 2, 0, 0, 1, 0]
    assert made.estimate()[0][0].tolist() == [0, 2, 0, 0, 1, 0]


@pytest.mark.parametrize("relation", list(Neighbours))
def test_a_single_cell_needs_no_noise_on_it(relation):
    counts = grid(LINE, np.array([[1.0], [4.0]]), resolution=1)
    assert counts.size == 1
    made = measure_sparse(counts, LowDimensional(relation), budget=Budget(Fraction(1)))
    assert made.total is not None
    assert not made.coefficients[0].size
    assert made.cost.spent.amount == (0 if relation is Neighbours.REPLACE_ONE else 1)


def test_under_add_remove_the_number_of_rows_is_noisy(monkeypatch):
    monkeypatch.setattr(sparse, "MAX_CELLS_IN_FULL", 0)
    counts = grid(LINE, np.zeros((1000, 1)))
    strategy = LowDimensional(Neighbours.ADD_REMOVE)
    totals = {
        measure_sparse(
            counts, strategy, budget=Budget(Fraction(1)), noise=SimulatedNoise(np.random.default_rng(i))
        ).total
        for i in range(20)
    }
    assert len(totals) > 5


def test_an_empty_table_is_measured_like_any_other():
    schema = EVERY_KIND
    (counts,) = count_occupied(schema, [joint_grid(schema, 3)], [])
    for relation in Neighbours:
        made = measure_sparse(counts, LowDimensional(relation), budget=Budget(Fraction(1)))
        assert isinstance(made, SparseMeasurement)


def test_what_is_not_known_is_not_estimated():
    schema = EVERY_KIND
    (counts,) = count_occupied(schema, [joint_grid(schema, 3)], [])
    made = measure_sparse(counts, LowDimensional(Neighbours.REPLACE_ONE), budget=Budget(Fraction(1)))
    assert not hasattr(made, "estimate")
    assert not hasattr(made, "simulate")


def test_gaussian_noise_is_refused():
    counts = grid(LINE, np.zeros((3, 1)))
    with pytest.raises(ValueError, match="Laplace"):
        measure_sparse(counts, LowDimensional(Neighbours.REPLACE_ONE), budget=Budget(Fraction(1), Unit.RHO))
