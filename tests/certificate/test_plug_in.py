"""The plug-in certificate: true of the emitted rows, whatever made them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certsynth import evaluate, release
from certsynth.base.progress import silent
from certsynth.certificate import plug_in as plugging
from certsynth.certificate.plug_in import DEFAULT_PROXIES, DISPLACEMENT_BETA, _shared_scales, _simulate, plug_in
from certsynth.domain import Ordered, Schema
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit, measure, strategy_named
from certsynth.mechanisms.samplers import SimulatedNoise
from certsynth.mechanisms.scalars import measure_scalars
from certsynth.projection.transport_program import TransportProgram
from certsynth.queries import Marginals
from certsynth.queries.displacement import farthest, sum_displacement
from certsynth.queries.fine import MOVE_UNITS
from small import MIXED, NATIVE, WOVEN, NoNoise, SeededNoise, emitted, failures_allowed, native, people, workers

IDENTITY = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
RESOLUTION = 7  # a cell for each value of NATIVE: the discretisation is the only term that is not tight


def _counts(frame, schema, resolution, sparsity=2):
    marginals = Marginals.all_subsets(schema, sparsity=sparsity, resolution=resolution)
    clean = [column.clean(frame[column.name].to_numpy()) for column in schema]
    codes = [c.to_cells(x, cells) for c, x, cells in zip(schema, clean, marginals.cells, strict=True)]
    return marginals.count([codes]), clean


LAPLACE, GAUSSIAN = Budget(Fraction(8)), Budget(Fraction(2), Unit.RHO)


MEASURED = [
    ("identity", LAPLACE),
    ("haar", LAPLACE),
    ("haar-noisy-total", LAPLACE),
    ("haar-tour", LAPLACE),
    ("quad-tree", LAPLACE),
    ("identity", GAUSSIAN),
    ("haar-weighted", GAUSSIAN),
]
"""In turn with one relation and the other; `make test-all` has both of each."""


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("neighbours", "mechanism", "budget"),
    [
        pytest.param(*each, id=" ".join(map(str, each)), marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, relation in enumerate(Neighbours)
        for j, measured in enumerate(MEASURED)
        for each in [(relation, *measured)]
    ],
)
def test_holds_as_often_as_it_says(neighbours, mechanism, budget):
    """100 runs at confidence 0.6 against the exact loss, without the discretisation, which is never tight."""
    frame, other = native(60), native(40, seed=9)
    counts, _ = _counts(frame, NATIVE, RESOLUTION)
    synthetic = [column.clean(other[column.name].to_numpy()) for column in NATIVE]
    strategy = strategy_named(mechanism, neighbours=neighbours)
    true = {s.columns: s.upper for s in evaluate(frame, other, NATIVE).subsets}
    misses = {"transport": 0, "path": 0}
    for seed in range(100):
        measurement = measure(counts, strategy, budget=budget)
        made = plug_in([measurement], NATIVE, synthetic, beta=Fraction(2, 5), draws=30, seed=seed)
        for proxy, certificate in made.items():
            bounds = zip(certificate.subsets, certificate.terms, strict=True)
            misses[proxy] += any(t.privatisation + t.projection < true[columns] - 1e-9 for columns, t in bounds)
    assert max(misses.values()) <= failures_allowed(100, 0.4)


@pytest.mark.parametrize(
    ("schema", "table", "resolution"),
    [(NATIVE, native, RESOLUTION), pytest.param(WOVEN, workers, 20, marks=pytest.mark.slow)],
    ids=["native", "woven"],
)
def test_the_noise_term_covers_the_noise_and_an_understated_scale_does_not(schema, table, resolution):
    """The quantile against the exact loss of the real noise: 200 runs. The control has 0.6 of the scale."""
    counts, clean = _counts(table(200), schema, resolution)
    allowed = failures_allowed(200, 0.3)

    def failures(understate: float, noise: SeededNoise | None = None) -> int:
        """Of 200 runs; what comes after too many is not tried."""
        count = 0
        for seed in range(200):
            if count > allowed:
                break
            measurement = measure(counts, IDENTITY, budget=Budget(Fraction(2)), noise=noise)
            object.__setattr__(measurement, "scale", measurement.scale * understate)
            made = plug_in([measurement], schema, clean, beta=Fraction(3, 10), draws=20, seed=seed)["transport"]
            # The private rows themselves as "synthetic" ones: their fit is the loss of the real noise.
            count += made.diagnostic.fit > max(terms.privatisation for terms in made.terms)
        return count

    assert failures(1.0) <= allowed
    assert failures(0.6, SeededNoise()) > allowed


SUBSETS = ((0, 1, 2), (0, 1), (2,), (1,))


@pytest.mark.parametrize("layers", [((0, 1, 2),), ((0,), (1,), (2,), (0, 1), (1, 2))], ids=["one table", "many"])
def test_subsets_of_mixed_sizes_are_covered_together_and_not_if_the_scale_is_understated(layers):
    """Each is read off the last measurement that holds it. 60 runs at confidence 0.6, and a control at 0.4 of it."""
    frame = native(200)
    clean = [column.clean(frame[column.name].to_numpy()) for column in NATIVE]
    by_size = [tuple(s for s in layers if len(s) == ways) for ways in (1, 2, 3)]
    measured = [Marginals.even(NATIVE, tables, resolution=RESOLUTION) for tables in by_size if tables]
    codes = [c.to_cells(x, cells) for c, x, cells in zip(NATIVE, clean, measured[0].cells, strict=True)]
    counts = [marginals.count([codes]) for marginals in measured]
    subsets = [s for s in SUBSETS if any(set(s) <= set(table) for table in layers)]
    asked = {"subsets": subsets, "beta": Fraction(2, 5), "draws": 20}
    exact = [measure(each, IDENTITY, budget=Budget(Fraction(2)), noise=NoNoise()) for each in counts]
    away = [terms.projection for terms in plug_in(exact, NATIVE, clean, seed=0, **asked)["transport"].terms]

    allowed = failures_allowed(60, 0.4)

    def failures(understate: float, noise: SeededNoise | None = None) -> int:
        """The private rows as "synthetic" ones: beside what is away from centres, their fit is the loss of noise."""
        count = 0
        for seed in range(60):
            if count > allowed:
                break
            made = [measure(each, IDENTITY, budget=Budget(Fraction(2)), noise=noise) for each in counts]
            for measurement in made:
                object.__setattr__(measurement, "scale", measurement.scale * understate)
            found = plug_in(made, NATIVE, clean, seed=seed, **asked)["transport"]
            assert found.subsets == tuple(tuple(NATIVE.names[j] for j in subset) for subset in subsets)
            fits = [terms.projection - least for terms, least in zip(found.terms, away, strict=True)]
            count += any(fit > terms.privatisation + 1e-8 for fit, terms in zip(fits, found.terms, strict=True))
        return count

    assert failures(1.0) <= allowed
    assert failures(0.4, SeededNoise()) > allowed


def test_a_subset_inside_a_table_has_a_bound_of_its_own():
    """It is no further off than what holds it, and its own noise is less: the noise of a sum over other columns."""
    counts, clean = _counts(native(200), NATIVE, RESOLUTION)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(2)))
    subsets = [(0, 1), (0, 2), (0,), (2,)]
    made = plug_in([measurement], NATIVE, clean, subsets=subsets, beta=Fraction(1, 10), draws=50, seed=1)["transport"]
    pair, other, column, category = (terms.privatisation for terms in made.terms)
    assert column < min(pair, other)
    assert category < other


def test_single_columns_beside_tables_that_follow_from_them_share_the_failure_probability():
    """Cells of later measurements may follow from the noise of the first: 19 draws are enough for one kind of table at
    1/20, and for both kinds together they are not."""
    frame = native(50)
    clean = [column.clean(frame[column.name].to_numpy()) for column in NATIVE]
    measured = [Marginals.even(NATIVE, tables, resolution=RESOLUTION) for tables in (((0,), (1,), (2,)), ((0, 1),))]
    codes = [c.to_cells(x, cells) for c, x, cells in zip(NATIVE, clean, measured[0].cells, strict=True)]
    made = [measure(m.count([codes]), IDENTITY, budget=Budget(Fraction(9))) for m in measured]

    def terms(subsets, draws):
        found = plug_in(made, NATIVE, clean, subsets=subsets, beta=Fraction(1, 20), draws=draws, seed=1)["transport"]
        return [each.privatisation for each in found.terms]

    assert max(terms([(2,)], 19) + terms([(0, 1)], 19)) < 0.9
    assert terms([(2,), (0, 1)], 38) == terms([(2,), (0, 1)], 19)
    assert min(terms([(2,), (0, 1)], 38)) > 0.999  # too few: nothing is claimed
    assert max(terms([(2,), (0, 1)], 39)) < 0.9


def test_scales_of_single_columns_do_not_depend_on_tables_that_follow_from_them():
    """The scales of the quantile must be independent of the noise. Later cells, and so the noise in them, follow from
    that of single columns: a later table of the same shape has no say in the scale of an earlier one."""
    twins = Schema((Ordered("a", low=0, high=4), Ordered("b", low=0, high=9), Ordered("c", low=0, high=4)))
    clean = [np.arange(50.0) % 5, np.arange(50.0) % 10, np.arange(50.0) % 5]
    measured = [Marginals.even(twins, tables, resolution=5) for tables in (((0,), (1,), (2,)), ((0, 1),))]
    codes = [c.to_cells(x, cells) for c, x, cells in zip(twins, clean, measured[0].cells, strict=True)]
    single, wide, narrow = (
        measure(m.count([codes]), IDENTITY, budget=Budget(Fraction(amount)))
        for m, amount in ((measured[0], 9), (measured[1], 1), (measured[1], 9))
    )

    def scales(later):
        subsets = [(2,), (0,), (0, 1)]
        drawn = _simulate(
            [single, later], twins, clean, subsets, ["path"], DEFAULT_PROXIES, draws=10, seed=1, progress=silent
        )
        tables, pilot = drawn.tables, drawn.losses["path"][10:-2]
        assert [t.layer for t in tables] == [0, 1, 1]
        assert [c.size for t in tables[:2] for c in t.cells] == [5, 5]
        return _shared_scales(tables, pilot)

    assert scales(wide)[1] > 2 * scales(narrow)[1]
    assert scales(wide)[0] == scales(narrow)[0]


def test_a_displacement_speaks_of_one_measurement_only():
    """It sums distances to the centres of one measurement's cells: of the columns of another it says nothing."""
    counts, clean = _counts(people(50), MIXED.select(["income", "since"]), 4)
    schema = MIXED.select(["income", "since"])
    made = measure(counts, IDENTITY, budget=Budget(Fraction(3)))
    displaced = measure_scalars(
        [1],
        sensitivity=Sensitivity(1, 1),
        budget=Budget(Fraction(1)),
        neighbours=Neighbours.REPLACE_ONE,
        noise=NoNoise(),
    )
    with pytest.raises(ValueError, match="a single measurement"):
        plug_in([made, made], schema, clean, beta=Fraction(1, 10), draws=20, seed=1, displaced=displaced)


def test_refuses_a_subset_that_was_not_measured():
    counts, clean = _counts(native(20), NATIVE, RESOLUTION)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(2)))
    with pytest.raises(ValueError, match="not measured"):
        plug_in([measurement], NATIVE, clean, subsets=[(0, 1, 2)], beta=Fraction(1, 10), draws=10, seed=1)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("runs", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_whole_releases_are_further_off_than_certified_no_more_often_than_stated(neighbours, runs):
    """From noise to rows at confidence 0.9, with and without the direct certificate, on two supports."""
    frame = native(100)
    misses = 0
    for run in range(runs):
        made = release(
            frame,
            NATIVE,
            epsilon=4,
            resolution=RESOLUTION,
            neighbours=neighbours,
            confidence=0.9,
            rows=150,
            certificate_share=0 if run % 2 else "0.3",
            projection="drawn" if run % 4 < 2 else "full-grid",
        )
        misses += evaluate(frame, emitted(made), NATIVE).lower > made.certificate.bound
    assert misses <= failures_allowed(runs, 0.1)


@pytest.mark.parametrize("garbage", [np.nan, -1.0, 0.0, np.inf, "short", "random"])
def test_garbage_from_the_solver_makes_the_bound_larger_never_false(monkeypatch, garbage):
    def nonsense(self, target, points):
        if garbage == "short":
            return np.ones(3)
        if garbage == "random":
            return np.random.default_rng(0).standard_cauchy(len(points))
        return np.full(len(points), garbage)

    frame, schema = people(300), MIXED.select(["age", "sex", "since"])
    monkeypatch.setattr(TransportProgram, "weights", nonsense)
    asked = {"epsilon": 30, "resolution": 4, "certificate_share": 0, "projection": "drawn", "noise": SeededNoise(1)}
    made = release(frame, schema, **asked)
    assert evaluate(frame, emitted(made), schema).lower <= made.certificate.bound


def test_terms_are_those_of_the_formula():
    counts, clean = _counts(people(300), MIXED, 4)
    measurement = measure(counts, strategy_named("haar", neighbours=Neighbours.REPLACE_ONE), budget=Budget(Fraction(3)))
    made = plug_in([measurement], MIXED, clean, beta=Fraction(1, 10), draws=50, seed=1)
    for certificate in made.values():
        for columns, terms in zip(certificate.subsets, certificate.terms, strict=True):
            categories_only = set(columns) <= {"sex", "employed"}
            assert terms.discretisation == (0.0 if categories_only else pytest.approx(1 / 8, abs=1e-8))
            assert terms.bound == min(1.0, terms.discretisation + terms.privatisation + terms.projection)
        assert certificate.bound == max(terms.bound for terms in certificate.terms)
    assert made["transport"].bound <= made["path"].bound


@pytest.mark.parametrize("unit", list(Unit))
def test_a_measured_discretisation_is_what_rows_were_moved_and_slack_for_its_noise(unit):
    """At most the worst case; without it, the worst case. Its share of β is taken off that of the noise."""
    schema = MIXED.select(["income", "since"])
    counts, clean = _counts(people(2_000), schema, 4)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(3)))
    most, moved = farthest(schema, counts.marginals), sum_displacement(schema, counts.marginals, [clean])
    asked = {"sensitivity": Sensitivity(most, most**2), "neighbours": Neighbours.REPLACE_ONE, "noise": NoNoise()}
    beta = Fraction(1, 10)
    for amount, worst in ((Fraction(1), False), (Fraction(1, 10**8), True)):
        displaced = measure_scalars([moved], budget=Budget(amount, unit), **asked)
        made = plug_in([measurement], schema, clean, beta=beta, draws=50, seed=1, displaced=displaced)["transport"]
        found = max(terms.discretisation for terms in made.terms)
        claimed = (moved + displaced.slack(beta * DISPLACEMENT_BETA)) / MOVE_UNITS / 2_000
        assert found == pytest.approx(1 / 8 if worst else claimed, abs=1e-8)
        assert found > moved / MOVE_UNITS / 2_000
        assert (found < 1 / 8) == (not worst)
    assert moved / MOVE_UNITS / 2_000 == pytest.approx(1 / 12, rel=0.2)  # E max of two uniform distances up to 1/8


def test_the_same_seed_gives_the_same_certificate_and_another_seed_another():
    counts, clean = _counts(people(300), MIXED, 4)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(3)))
    first, again, other = (
        plug_in([measurement], MIXED, clean, beta=Fraction(1, 10), draws=50, seed=seed)["transport"].terms
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_too_few_draws_give_the_trivial_bound():
    counts, clean = _counts(people(300), MIXED, 4)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(3)))
    made = plug_in([measurement], MIXED, clean, beta=Fraction(1, 100), draws=50, seed=1)
    assert {certificate.bound for certificate in made.values()} == {1.0}


def test_beyond_three_columns_only_the_path_loss_is_computed():
    counts, clean = _counts(people(100), MIXED, 2, sparsity=4)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(3)))
    assert set(plug_in([measurement], MIXED, clean, beta=Fraction(1, 10), draws=20, seed=1)) == {"path"}


def test_draws_in_parts_are_as_good_as_all_at_once(monkeypatch):
    """Of many tables draws are made in parts, by a rule that verifiers know; the bounds differ by chance only."""
    counts, clean = _counts(native(200), NATIVE, RESOLUTION)
    measurement = measure(counts, IDENTITY, budget=Budget(Fraction(2)), noise=SimulatedNoise(np.random.default_rng(1)))
    asked = {"beta": Fraction(1, 10), "draws": 199, "seed": 1}
    whole = plug_in([measurement], NATIVE, clean, **asked)
    monkeypatch.setattr(plugging, "MAX_DRAWN_CELLS", 3 * sum(measurement.marginals.sizes()) + 1)
    assert plugging.draw_batches(measurement.marginals, 199) == [3] * 66 + [1]
    told: list[tuple[int, int | None]] = []
    parts = plug_in([measurement], NATIVE, clean, **asked, progress=lambda _, done, total: told.append((done, total)))
    for proxy in whole:
        for one, other in zip(whole[proxy].terms, parts[proxy].terms, strict=True):
            assert one.projection == other.projection
            assert abs(one.privatisation / other.privatisation - 1) < 0.2
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]
    assert len({total for _, total in told}) == 1
