"""The tight loss against its definition, and against solvers that lie (P16) and masses that overflow (P18)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import ot  # type: ignore[import-untyped]
import pytest
from scipy.stats import wasserstein_distance

import generators as gen
import oracles
from certsynth.errors import TooLarge
from certsynth.transport import Network, flow, transport_bounds, transport_loss
from certsynth.transport.flow import Flow, cheapest_flow, flow_cost, potential_value

SOLVER = 1e-7  # what HiGHS leaves open
HUBS = (None, Fraction(1))
EXACT_SHAPES = {name: shape for name, shape in gen.HARD_SHAPES.items() if name != "three unequal steps"}


def hub_of(network: Network) -> Fraction:
    return Fraction(network.hub, network.unit)


# ------------------------------------------------------------ the definition


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("name", EXACT_SHAPES)
def test_loss_is_the_supremum_over_lipschitz_functions(name: str, hub: Fraction | None) -> None:
    shape = EXACT_SHAPES[name]
    rng = np.random.default_rng(1)
    network, distances = Network.of(shape, hub=hub), oracles.metric(shape)
    for _ in range(4):
        measure = gen.random_signed(rng, gen.size(shape))
        true, _ = oracles.lipschitz_supremum(measure, distances, hub_of(network))
        found = float(transport_loss(measure, np.zeros_like(measure), network))
        assert found == pytest.approx(true, rel=SOLVER, abs=SOLVER)


@pytest.mark.parametrize("hub", HUBS)
def test_loss_is_the_supremum_on_random_spaces(hub: Fraction | None) -> None:
    rng = np.random.default_rng(2)
    for i in range(60):
        shape = gen.random_shape(rng, columns=1 + i % 3, most_cells=27)
        network, distances = Network.of(shape, hub=hub), oracles.metric(shape)
        first, second = gen.random_signed(rng, gen.size(shape)), gen.random_signed(rng, gen.size(shape))
        true, _ = oracles.lipschitz_supremum(first - second, distances, hub_of(network))
        found = float(transport_loss(first, second, network))
        assert true - SOLVER <= found <= true * float(network.stretch) + SOLVER


def test_on_equal_masses_any_hub_gives_w1() -> None:
    rng = np.random.default_rng(3)
    for name, shape in EXACT_SHAPES.items():
        first, second = gen.random_balanced(rng, gen.size(shape))
        true = oracles.wasserstein(first, second, oracles.metric(shape))
        for hub in (None, Fraction(3, 4), Fraction(1), Fraction(5)):
            found = float(transport_loss(first, second, Network.of(shape, hub=hub)))
            assert found == pytest.approx(true, rel=SOLVER, abs=SOLVER), name


def test_on_unequal_masses_the_hub_decides() -> None:
    """Control of the test above: if the hub had no influence, unequal masses would not be tested."""
    shape = (gen.labels(2), gen.line(3))
    measure = np.ones(6)
    near, far = (float(transport_loss(measure, 0 * measure, Network.of(shape, hub=h))) for h in HUBS)
    assert [near, far] == pytest.approx([3.0, 6.0])


def test_a_stretched_network_stays_between_w1_and_its_stretch() -> None:
    rng = np.random.default_rng(4)
    shape = (gen.lattice(2), gen.lattice(3), gen.holes([0, 1, 3, 5], 5))
    network = Network.of(shape)
    assert network.stretch > 1
    for _ in range(5):
        first, second = gen.random_balanced(rng, gen.size(shape))
        true = oracles.wasserstein(first, second, oracles.metric(shape))
        found = float(transport_loss(first, second, network))
        assert true - SOLVER <= found <= true * float(network.stretch) + SOLVER


@pytest.mark.parametrize(
    "shape",
    [
        (gen.line(9), gen.line(9)),
        (gen.lattice(6), gen.lattice(15)),
        (gen.labels(6), gen.holes([0, 1, 5, 8, 13], 16, missing=True)),
    ],
)
def test_another_library_agrees_on_two_columns(shape: gen.Shape) -> None:
    rng = np.random.default_rng(5)
    costs = np.ascontiguousarray(oracles.metric(shape).astype(float))
    for _ in range(5):
        first, second = rng.dirichlet(np.full(gen.size(shape), 0.3), size=2)
        expected = ot.emd2(first / first.sum(), second / second.sum(), costs)
        found = float(transport_loss(first, second, Network.of(shape)))
        assert found == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("column", [gen.line(1), gen.line(12), gen.lattice(30), gen.holes([0, 3, 4, 19], 20)])
def test_scipy_agrees_on_a_line(column: gen.Cells) -> None:
    rng = np.random.default_rng(6)
    places = column.places / column.steps
    for _ in range(10):
        first, second = rng.dirichlet(np.full(column.size, 0.5), size=2)
        expected = wasserstein_distance(places, places, first, second)
        assert float(transport_loss(first, second, Network.of([column]))) == pytest.approx(expected, abs=1e-11)


def test_leading_axes_are_kept() -> None:
    rng = np.random.default_rng(7)
    network = Network.of((gen.line(2), gen.labels(3)))
    first, second = rng.normal(size=(2, 4, 5, 6))
    losses = transport_loss(first, second, network)
    assert losses.shape == (4, 5)
    assert losses[3, 1] == float(transport_loss(first[3, 1], second[3, 1], network))
    assert transport_loss(np.zeros((0, 6)), np.zeros((0, 6)), network).shape == (0,)


# ------------------------------------------------------------ rounding outward


@pytest.mark.parametrize("exponent", [-600, -50, -20, 0, 30, 800])
def test_loss_is_never_below_the_truth_not_even_by_rounding(exponent: int) -> None:
    rng = np.random.default_rng(8)
    for name, shape in EXACT_SHAPES.items():
        network = Network.of(shape)
        measure = gen.random_signed(rng, gen.size(shape))
        true = oracles.exact_supremum(measure, shape, hub_of(network)) * Fraction(2) ** exponent
        scaled = np.ldexp(measure, exponent)  # exactly
        found = Fraction(float(transport_loss(scaled, np.zeros_like(scaled), network)))
        assert found >= true, name
        mass = Fraction(float(np.abs(scaled).sum()))
        assert found <= true + mass / 10**11 + Fraction(1, 10**15), name


def test_the_exact_comparison_sees_rounding_to_nearest() -> None:
    """Control: with nothing added for what rounding hides, some losses come out too small."""
    rng = np.random.default_rng(9)
    shape = (gen.line(3), gen.line(3))
    network = Network.of(shape)
    below = 0
    for _ in range(50):
        measure = np.round(rng.normal(size=9), 3)
        integers = np.rint(measure * 100).astype(np.int64)
        nearest = Fraction(cheapest_flow(network, integers).upper, network.unit * 100)
        below += nearest < oracles.exact_supremum(measure, shape, hub_of(network))
    assert below > 5


@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_infinitely_far(garbage: float) -> None:
    network = Network.of((gen.line(3),))
    assert transport_loss(np.array([garbage, 0.0, 0.0]), np.zeros(3), network) == math.inf


def test_masses_that_sum_beyond_all_floats_are_infinitely_far() -> None:
    network = Network.of((gen.line(3),))
    assert transport_loss(np.full(3, 1e308), np.zeros(3), network) == math.inf
    assert transport_loss(np.array([1e307, 0, -1e307]), np.zeros(3), network) >= 2 / 3 * 1e307


def test_nothing_to_move_costs_nothing() -> None:
    for shape in EXACT_SHAPES.values():
        cells = gen.size(shape)
        assert transport_loss(np.ones(cells), np.ones(cells), Network.of(shape)) == 0


# ------------------------------------------------------------ proofs


def random_tables(seed: int, count: int) -> list[tuple[gen.Shape, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    tables: list[tuple[gen.Shape, np.ndarray, np.ndarray]] = []
    for i in range(count):
        shape = gen.random_shape(rng, columns=1 + i % 3, most_cells=400)
        rows = rng.integers(1, 5_000, size=2)
        first, second = (gen.random_counts(rng, gen.size(shape), int(n)) for n in rows)
        tables.append((shape, first, second))
    return tables


def test_bounds_of_random_tables_are_proved_optimal() -> None:
    for shape, first, second in random_tables(10, 60):
        upper, lower, _ = transport_bounds(Network.of(shape), first, second)
        assert upper == lower


def test_bounds_are_exact_on_a_line() -> None:
    rng = np.random.default_rng(11)
    for rows in [(1, 1), (1, 10**6), (999_983, 1_000_003), (7, 7 * 10**9), (10**9, 10**9)]:
        column = gen.holes([0, 2, 3, 9], 11)
        first, second = (gen.random_counts(rng, 4, n) for n in rows)
        upper, lower, per = transport_bounds(Network.of([column]), first, second)
        assert Fraction(upper, per) == oracles.wasserstein_on_a_line(first.tolist(), second.tolist(), column)
        assert lower == upper


def test_bounds_are_w1_of_the_shares() -> None:
    for shape, first, second in random_tables(12, 30):
        if gen.size(shape) > 60:
            continue
        upper, _, per = transport_bounds(Network.of(shape), first, second)
        true = oracles.wasserstein(first / first.sum(), second / second.sum(), oracles.metric(shape))
        assert true - SOLVER <= upper / per <= true * float(Network.of(shape).stretch) + SOLVER


# ------------------------------------------------------------ P16: solvers that lie

Answer = tuple[Any, Any]
honest = flow.solve


def raises(network: Network, supply: np.ndarray) -> Answer:
    raise RuntimeError("no answer")


def nothing(network: Network, supply: np.ndarray) -> Answer:
    return None, None


def no_pair(network: Network, supply: np.ndarray) -> Answer:
    return np.zeros(3)  # type: ignore[return-value]


def zeros(network: Network, supply: np.ndarray) -> Answer:
    return np.zeros(len(network.tails), np.int64), np.zeros(network.nodes, np.int64)


def not_numbers(network: Network, supply: np.ndarray) -> Answer:
    return np.full(len(network.tails), np.nan), np.full(network.nodes, np.nan)


def as_floats(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x.astype(float) * 0.5, y.astype(float) * 2.0


def as_small_ints(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x.astype(np.int32) // 2, y.astype(np.int32) * 2


def as_objects(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return (x // 2).astype(object), (y * 2).astype(object)


def too_short(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x[:-1], y[:-1]


def as_columns(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x[:, None], y[:, None]


def empty(network: Network, supply: np.ndarray) -> Answer:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def backwards(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return -x, -y


def loses_some(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x // 2, y


def forgets_one_unit(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    x = x.copy()
    x[np.argmax(x)] -= 1
    return x, y


def runs_in_circles(network: Network, supply: np.ndarray) -> Answer:
    """A true flow, and every pair of opposite arcs with a unit more on both: dearer, but valid."""
    x, y = honest(network, supply)
    return x + 1, y - 5


def below_zero_in_circles(network: Network, supply: np.ndarray) -> Answer:
    """Conserves mass, and would cost less than nothing."""
    x, y = honest(network, supply)
    return x - 1_000, y


def overflows(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x + 2**62, y * 2**40


def wraps_around(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x + np.int64(2**60), np.where(y == y.max(), 2**62, y)


def wraps_in_differences(network: Network, supply: np.ndarray) -> Answer:
    """Potentials so far apart that their 64-bit differences come out as −2^63 both ways: no arc seems violated."""
    x, _ = honest(network, supply)
    return x, np.where(supply > 0, 2**62, -(2**62))


def as_huge_floats(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x.astype(float), y.astype(float) + 2.0**55


def most_negative(network: Network, supply: np.ndarray) -> Answer:
    least = np.iinfo(np.int64).min
    return np.full(len(network.tails), least), np.full(network.nodes, least)


def steep(network: Network, supply: np.ndarray) -> Answer:
    """Potentials that would prove too much: some arc violates them."""
    x, y = honest(network, supply)
    return x, y * 2


def steep_at_one_node(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    y = y.copy()
    y[np.argmax(supply)] += network.hub * 4
    return x, y


def flat(network: Network, supply: np.ndarray) -> Answer:
    x, y = honest(network, supply)
    return x, y // 2


def through_the_hub(network: Network, supply: np.ndarray) -> Answer:
    """A valid flow that is not the cheapest."""
    x = np.zeros(len(network.tails), np.int64)
    last = network.nodes - 1
    out, back = network.heads == last, network.tails == last
    x[out] = np.maximum(supply[network.tails[out]], 0)
    x[back] = np.maximum(-supply[network.heads[back]], 0)
    return x, np.zeros(network.nodes, np.int64)


def random_garbage(network: Network, supply: np.ndarray) -> Answer:
    rng = np.random.default_rng(int(np.abs(supply).sum()))
    reach = 2**63 - 1
    return (
        rng.integers(-reach, reach, size=len(network.tails)),
        rng.integers(-reach, reach, size=network.nodes),
    )


LIARS: list[Callable[[Network, np.ndarray], Answer]] = [
    raises, nothing, no_pair, zeros, not_numbers, as_floats, as_small_ints, as_objects, too_short, as_columns, empty,
    backwards, loses_some, forgets_one_unit, runs_in_circles, below_zero_in_circles, overflows, wraps_around,
    wraps_in_differences, as_huge_floats, most_negative, steep, steep_at_one_node, flat, through_the_hub,
    random_garbage,
]  # fmt: skip
SOLVERS = ("solve_line", "solve_priced", "solve_until", "solve", "solve_fallback")


def believe(monkeypatch: pytest.MonkeyPatch, liar: Callable[[Network, np.ndarray], Answer]) -> None:
    """Let every solver give the answer of `liar`."""
    for name in SOLVERS:
        monkeypatch.setattr(flow, name, lambda network, supply, **_: liar(network, supply))


LIED_TO = [(shape, first, second) for shape, first, second in random_tables(13, 24) if gen.size(shape) > 1]


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_bounds_hold_whatever_the_solver_says(
    monkeypatch: pytest.MonkeyPatch, liar: Callable[[Network, np.ndarray], Answer]
) -> None:
    truths = [transport_bounds(Network.of(shape), first, second) for shape, first, second in LIED_TO]
    believe(monkeypatch, liar)
    wider = 0
    for (shape, first, second), (true, proved, per) in zip(LIED_TO, truths, strict=True):
        assert true == proved
        upper, lower, same = transport_bounds(Network.of(shape), first, second)
        assert same == per
        assert lower <= true <= upper
        wider += lower < upper
    assert wider > len(LIED_TO) / 2  # a lie that changes nothing tests nothing


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_loss_stays_an_upper_bound_whatever_the_solver_says(
    monkeypatch: pytest.MonkeyPatch, liar: Callable[[Network, np.ndarray], Answer]
) -> None:
    rng = np.random.default_rng(14)
    cases = []
    for shape in EXACT_SHAPES.values():
        measure = gen.random_signed(rng, gen.size(shape))
        network = Network.of(shape)
        cases.append((network, measure, float(transport_loss(measure, 0 * measure, network))))
    believe(monkeypatch, liar)
    for network, measure, true in cases:
        assert float(transport_loss(measure, 0 * measure, network)) >= true


def test_a_lie_is_believed_without_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: were flow and potentials taken as they come, most of these lies would make false bounds."""
    shape, first, second = max(LIED_TO, key=lambda case: gen.size(case[0]))
    true, _, _ = transport_bounds(Network.of(shape), first, second)

    def taken(network: Network, supply: np.ndarray, y: np.ndarray) -> int:
        """As it comes, but for the potentials that are tried before any solver is asked."""
        return 0 if np.abs(y).max() == network.hub else int(y @ supply)

    monkeypatch.setattr(flow, "flow_cost", lambda network, supply, x: int(x @ network.lengths))
    monkeypatch.setattr(flow, "potential_value", taken)
    for liar in (zeros, loses_some, backwards, below_zero_in_circles):
        believe(monkeypatch, liar)
        assert transport_bounds(Network.of(shape), first, second)[0] < true
    believe(monkeypatch, steep)
    assert transport_bounds(Network.of(shape), first, second)[1] > true


def test_an_unproved_optimum_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.of((gen.line(3), gen.line(3)))
    measure = np.array([5, 0, 0, 0, -2, 0, 0, 0, -3])
    assert cheapest_flow(network, measure).optimal
    believe(monkeypatch, through_the_hub)
    assert not cheapest_flow(network, measure).optimal


@pytest.mark.parametrize("liar", [raises, zeros, steep, through_the_hub, random_garbage])
def test_one_honest_solver_is_enough_for_a_proof(
    monkeypatch: pytest.MonkeyPatch, liar: Callable[[Network, np.ndarray], Answer]
) -> None:
    truths = [transport_bounds(Network.of(shape), first, second) for shape, first, second in LIED_TO[:10]]
    for name in SOLVERS:
        with monkeypatch.context() as one:
            one.setattr(flow, name, lambda network, supply, **_: liar(network, supply))
            found = [transport_bounds(Network.of(shape), first, second) for shape, first, second in LIED_TO[:10]]
        assert found == truths
    assert all(upper == lower for upper, lower, _ in truths)


def test_checks_accept_the_honest_answer_and_count_it_exactly() -> None:
    network = Network.of((gen.line(3),))
    supply = network.supply(np.array([4, 0, -4]))
    x, y = honest(network, supply)
    cost = 4 * 2 * network.unit // 3
    assert flow_cost(network, supply, x) == cost
    assert potential_value(network, supply, y) == cost


# ------------------------------------------------------------ P18: overflow


def ends(column: gen.Cells, mass: int) -> np.ndarray:
    measure = np.zeros(column.size, dtype=np.int64)
    measure[0], measure[-1] = mass, -mass
    return measure


@pytest.mark.parametrize("column", [gen.line(2), gen.line(128), gen.holes([0, 99], 100), gen.labels(2)])
def test_huge_masses_are_exact_or_refused(column: gen.Cells) -> None:
    network = Network.of((column,))
    length = int(oracles.distance((column,), (0,), (column.size - 1,)) * network.unit)
    outcomes = set()
    for bits in range(1, 63):
        for mass in (2**bits - 1, 2**bits, 3 * 2**bits // 2):
            try:
                found = cheapest_flow(network, ends(column, mass))
            except TooLarge:
                outcomes.add("refused")
                assert 2 * mass >= 2**61
            else:
                outcomes.add("exact")
                assert found == Flow(upper=mass * length, lower=mass * length)
    assert outcomes == {"refused", "exact"}


@pytest.mark.parametrize(
    "measure", [[-(2**63), 0, 0], [2**63 - 1, 1, 0], [2**62, 2**62, 0], [-(2**63), -(2**63), 2**63 - 1]]
)
def test_masses_at_the_end_of_the_integers_are_refused(measure: list[int]) -> None:
    """|−2^63| is no 64-bit integer, nor is the sum of two halves."""
    with pytest.raises(TooLarge, match="fewer rows"):
        cheapest_flow(Network.of((gen.line(3),)), np.array(measure, dtype=np.int64))


def test_tables_of_any_length_are_exact_or_refused() -> None:
    rng = np.random.default_rng(15)
    column = gen.lattice(4)
    network = Network.of((column,))
    outcomes = {"exact": 0, "refused": 0}
    for _ in range(300):
        bits = rng.integers(0, 62, size=2)
        first, second = (gen.random_counts(rng, 5, int(rng.integers(2**b, 2 ** (b + 1)))) for b in bits)
        try:
            upper, lower, per = transport_bounds(network, first, second)
        except TooLarge:
            outcomes["refused"] += 1
            assert sum(bits) > 57
        else:
            outcomes["exact"] += 1
            true = oracles.wasserstein_on_a_line(first.tolist(), second.tolist(), column)
            assert Fraction(lower, per) == Fraction(upper, per) == true
    assert min(outcomes.values()) > 50


def test_whether_there_is_room_depends_on_the_numbers_of_rows_only() -> None:
    """Privacy of the direct certificate: where rows lie must not decide whether it answers."""
    network = Network.of((gen.line(4),))
    outcomes = set()
    for bits in range(25, 36):
        n, m = 2**bits - 1, 2**bits + 1  # no common factor
        synthetic = np.array([m, 0, 0, 0])
        for first in ([n, 0, 0, 0], [0, 0, 0, n], [n // 2, 0, 0, n - n // 2], [1, n - 2, 1, 0]):
            try:
                transport_bounds(network, np.array(first), synthetic)
            except TooLarge:
                outcomes.add((bits, "refused"))
            else:
                outcomes.add((bits, "answered"))
    assert len(outcomes) == 11  # one outcome for each pair of lengths
    assert {outcome for _, outcome in outcomes} == {"refused", "answered"}


@pytest.mark.parametrize("bits", [20, 26, 29])
def test_the_longest_tables_that_are_taken_are_proved(bits: int) -> None:
    """Flows of up to 2^59 over hundreds of arcs: were a sum of them to overflow, the proof would fail."""
    rng = np.random.default_rng(16)
    shape = (gen.line(16), gen.line(16))
    network = Network.of(shape)
    n, m = 2**bits - 1, 2**bits + 1
    corner = np.zeros(256, dtype=np.int64)
    corner[0] = n
    for first in (corner, corner[::-1].copy(), gen.random_counts(rng, 256, n)):
        upper, lower, per = transport_bounds(network, first, gen.random_counts(rng, 256, m))
        assert upper == lower
        assert 0 < upper <= per


def test_fine_lattices_of_unequal_steps_leave_room_for_real_tables() -> None:
    """Steps 82 and 99 to the unit, and tables of a million rows each whose lengths have no common factor."""
    network = Network.of((gen.holes([0, 41, 82], 82), gen.holes([0, 99], 99)))
    first = np.array([999_983, 0, 0, 0, 0, 0])
    second = np.array([0, 0, 0, 0, 0, 1_000_003])
    upper, lower, per = transport_bounds(network, first, second)
    assert upper == lower == per


def test_many_losses_at_once_are_those_one_by_one() -> None:
    """Lines, ways that lead both ways, and neither; rows of nothing, without end, and no numbers among them."""
    rng, seen = np.random.default_rng(31), set()
    shapes = [*gen.HARD_SHAPES.values(), *(gen.random_shape(rng, columns=1 + i % 3, most_cells=60) for i in range(30))]
    for shape in shapes:
        for hub in HUBS:
            network = Network.of(shape, hub=hub)
            rows = np.array([gen.random_signed(rng, gen.size(shape)) * 10.0 ** rng.integers(-9, 9) for _ in range(6)])
            rows[1] = 0
            rows[2, 0] = (np.nan, np.inf)[len(seen) % 2]
            rows[3] = 1e308
            rows[4] = 5e-324
            found = transport_loss(rows, np.zeros_like(rows), network)
            each = [float(transport_loss(row, np.zeros_like(row), network)) for row in rows]
            assert found.tolist() == each
            assert found[1] == 0
            assert found[2] == np.inf
            line = flow.find_line_arcs(network.tails, network.heads, network.nodes).size > 0
            seen.add("line" if line else "both ways" if flow.edges_of(network) else "neither")
    assert seen == {"line", "both ways", "neither"}


def test_many_flows_at_once_are_believed_only_where_they_are_proved() -> None:
    """The method is given wrong lengths: what it finds is optimal for others, and mostly not for these."""
    network = Network.of((gen.line(6), gen.line(6)))
    ways, rng = flow.edges_of(network), np.random.default_rng(32)
    assert ways is not None
    measures = rng.integers(-50, 51, size=(40, network.cells))
    truths = [cheapest_flow(network, measure).upper for measure in measures]
    line = flow.find_line_arcs(network.tails, network.heads, network.nodes)
    arcs = network.tails, network.heads, network.lengths
    rest = (arcs, network.node_of_cell, network.nodes, network.hub, measures)
    proved, digits = flow._prove_many(line, ways, *rest)
    assert proved.all()
    assert [flow._join_digits(*each) for each in digits] == truths
    wrong = ways._replace(lengths=np.where(np.arange(len(ways.lengths)) % 3, ways.lengths, 5 * ways.lengths))
    proved, digits = flow._prove_many(line, wrong, *rest)
    assert [flow._join_digits(*each) for each in digits[proved]] == [
        t for t, sure in zip(truths, proved, strict=True) if sure
    ]
    assert not proved.all()
