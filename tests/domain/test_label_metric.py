"""Distances among labels against slow definitions: breadth-first search, all triples, shortest ways."""

from __future__ import annotations

import itertools
from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from certsynth.domain import Category, Schema
from certsynth.domain.label_metric import MAX_UNITS, LabelMetric, matrix_metric, tree_metric
from certsynth.domain.labels import check_metric, paths_of_codes
from certsynth.errors import SchemaError

Path = tuple[str, ...]
Distances = tuple[tuple[Fraction, ...], ...]

paths = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=9, unique=True
)


def ways(listed: list[Path]) -> dict[tuple[Path, Path], int]:
    """Edges between all codes and those above them, by breadth-first search; trees hang on one root, ()."""
    nodes = {path[:depth] for path in listed for depth in range(len(path) + 1)}
    near: dict[Path, list[Path]] = {node: [] for node in nodes}
    for node in nodes - {()}:
        near[node].append(node[:-1])
        near[node[:-1]].append(node)
    found = {}
    for start in nodes:
        away, queue = {start: 0}, deque([start])
        while queue:
            here = queue.popleft()
            for there in near[here]:
                if there not in away:
                    away[there] = away[here] + 1
                    queue.append(there)
        found |= {(start, end): steps for end, steps in away.items()}
    return found


@given(paths)
def test_codes_are_as_far_apart_as_the_shortest_way_along_the_tree(listed: list[Path]) -> None:
    metric, steps = tree_metric(listed), ways(listed)
    expected = [[steps[a, b] for b in listed] for a in listed]
    assert metric.distances[: metric.size, : metric.size].tolist() == expected
    assert metric.unit == max(1, max(map(max, expected)))
    assert metric.diameter == (1 if len(listed) > 1 else 0)


@given(paths)
def test_what_is_kept_of_a_tree_is_what_lies_between_its_codes(listed: list[Path]) -> None:
    """Nodes other than the labels are those that some two labels are connected through, and each edge has length 1."""
    metric, steps = tree_metric(listed), ways(listed)
    pairs = list(itertools.product(listed, repeat=2))
    between = [
        node
        for node in {node for node, _ in steps} - set(listed)
        if any(steps[a, node] + steps[node, b] == steps[a, b] for a, b in pairs)
    ]
    assert metric.inner == len(between)
    found = sorted(tuple(metric.distances[metric.size + i, : metric.size].tolist()) for i in range(metric.inner))
    assert found == sorted(tuple(steps[node, label] for label in listed) for node in between)
    assert metric.parents is not None
    for node, parent in enumerate(metric.parents):
        assert parent < 0 or metric.distances[node, parent] == 1
    assert (metric.parents < 0).sum() == 1


@st.composite
def metrics(draw: st.DrawFn, most: int = 6) -> Distances:
    """Shortest ways in a random graph: many triples are equalities."""
    count = draw(st.integers(1, most))
    given = {
        (i, j): Fraction(draw(st.integers(1, 12)), draw(st.sampled_from([1, 3, 7])))
        for i in range(count)
        for j in range(i)
    }
    direct = [[given[max(i, j), min(i, j)] if i != j else Fraction(0) for j in range(count)] for i in range(count)]
    return tuple(map(tuple, oracles.shortest_ways(direct)))


label_metrics = st.one_of(paths.map(tree_metric), metrics().map(matrix_metric))


def test_shares_of_the_largest_distance_are_exact_where_they_have_a_common_unit() -> None:
    metric = matrix_metric(
        [
            [Fraction(0), Fraction(1, 2), Fraction(3)],
            [Fraction(1, 2), Fraction(0), Fraction(3)],
            [Fraction(3)] * 2 + [Fraction(0)],
        ]
    )
    assert (metric.unit, metric.distances.tolist()) == (6, [[0, 1, 6], [1, 0, 6], [6, 6, 0]])


@given(metrics())
def test_a_table_is_rounded_up_by_less_than_a_unit_and_stays_a_metric(distances: Distances) -> None:
    metric, largest = matrix_metric(distances), max(map(max, distances)) or Fraction(1)
    assert metric.unit <= MAX_UNITS
    for i, j in itertools.product(range(len(distances)), repeat=2):
        rounded, exact = Fraction(int(metric.distances[i, j]), metric.unit), distances[i][j] / largest
        assert 0 <= rounded - exact < Fraction(1, metric.unit)
        assert (rounded == 0) == (i == j)
        if metric.unit < MAX_UNITS:
            assert rounded == exact
    assert broken_triples([[Fraction(int(x)) for x in row] for row in metric.distances]) == []


def test_distances_without_a_small_common_unit_are_rounded_up() -> None:
    near, far = Fraction(1, 10**12), Fraction(10**12)
    metric = matrix_metric([[Fraction(0), near, far], [near, Fraction(0), far], [far, far, Fraction(0)]])
    assert (metric.unit, metric.distances.tolist()) == (
        MAX_UNITS,
        [[0, 1, 10_000], [1, 0, 10_000], [10_000, 10_000, 0]],
    )


@given(label_metrics, st.data())
def test_some_labels_are_as_far_apart_as_before_with_all_between_them(metric: LabelMetric, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(metric.size)))
    chosen = np.array(order[: data.draw(st.integers(1, metric.size))])
    taken = metric.take(chosen)
    assert (taken.size, taken.unit) == (len(chosen), metric.unit)
    np.testing.assert_array_equal(taken.distances[: taken.size, : taken.size], metric.distances[np.ix_(chosen, chosen)])
    if metric.parents is not None:
        through = metric.distances[chosen][:, :, None] + metric.distances[:, chosen][None, :, :]
        between = (through == metric.distances[np.ix_(chosen, chosen)][:, None, :]).any(axis=(0, 2))
        assert len(taken.distances) == between.sum()


@given(label_metrics, st.data())
def test_arcs_make_up_all_distances(metric: LabelMetric, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, metric.size - 1), min_size=1, unique=True))
    for some in (metric, metric.take(np.array(chosen))):
        nodes = len(some.distances)
        direct: list[list[Fraction | None]] = [[None] * nodes for _ in range(nodes)]
        for i in range(nodes):
            direct[i][i] = Fraction(0)
        for froms, tos, length in some.arcs():
            for a, b in itertools.product(froms, tos):
                direct[a][b] = Fraction(length)
        assert oracles.shortest_ways(direct) == some.distances.tolist()


def test_arcs_of_a_line_join_neighbours_only() -> None:
    metric = matrix_metric([[Fraction(abs(i - j)) for j in range(6)] for i in range(6)])
    arcs = {(int(a), int(b)) for froms, tos, _ in metric.arcs() for a, b in itertools.product(froms, tos)}
    assert arcs == {(a, b) for a in range(6) for b in range(6) if abs(a - b) == 1}


def test_a_label_metric_cannot_be_changed() -> None:
    for metric in (tree_metric([("a",), ("b",)]), matrix_metric([[Fraction(0)]])):
        with pytest.raises(ValueError, match="read-only"):
            metric.distances[0, 0] = 1


# ------------------------------------------------------------ what is a metric


def broken_triples(distances: list[list[Fraction]]) -> list[tuple[int, int, int]]:
    triples = itertools.product(range(len(distances)), repeat=3)
    return [(a, b, c) for a, b, c in triples if distances[a][c] > distances[a][b] + distances[b][c]]


def refusal(distances: list[list[Fraction]]) -> str:
    """What is said against distances, of labels that are called 0, 1, 2, …"""
    try:
        check_metric([str(i) for i in range(len(distances))], distances, "column 'x'")
    except SchemaError as error:
        return str(error)
    return ""


@st.composite
def nearly_metrics(draw: st.DrawFn) -> list[list[Fraction]]:
    """A metric with many equalities, at any scale that a schema may have, of which a pair is moved by a little."""
    distances = [list(row) for row in draw(metrics())]
    scale = Fraction(draw(st.sampled_from([1, 10**11])), 21)
    distances = [[distance * scale for distance in row] for row in distances]
    a, b = draw(st.tuples(*[st.integers(0, len(distances) - 1)] * 2))
    if a != b:
        moved = draw(st.sampled_from([-1, 0, 1])) * Fraction(1, 10 ** draw(st.sampled_from([1, 9, 20, 26])))
        distances[a][b] = distances[b][a] = max(distances[a][b] + moved, Fraction(1, 10**26))
    return distances


@settings(max_examples=300)
@given(nearly_metrics())
def test_triangles_are_compared_exactly(distances: list[list[Fraction]]) -> None:
    said, broken = refusal(distances), broken_triples(distances)
    assert bool(said) == bool(broken)
    if broken:
        assert any(f"from '{a}' to '{c}' it is" in said and f"but over '{b}' only" in said for a, b, c in broken)


digit = st.sampled_from([0, 1, 2, 3, 4 * 10**14, 6 * 10**14, 10**15 - 1])
long_distance = st.lists(digit, min_size=3, max_size=3).map(
    lambda ds: Fraction(ds[0] * 10**15 + ds[1]) + Fraction(ds[2] + 1, 10**15)
)


@settings(max_examples=300)
@given(long_distance, long_distance, long_distance)
def test_triangles_of_many_digits_are_compared_exactly(a_b: Fraction, b_c: Fraction, a_c: Fraction) -> None:
    distances = [[Fraction(0), a_b, a_c], [a_b, Fraction(0), b_c], [a_c, b_c, Fraction(0)]]
    assert bool(refusal(distances)) == bool(broken_triples(distances))


@pytest.mark.parametrize("tiny", [Fraction(1, 10**k) for k in (3, 12, 17, 26)])
def test_a_violation_below_the_precision_of_floats_is_found(tiny: Fraction) -> None:
    one, far = Fraction(10**11), Fraction(2 * 10**11)

    def of(far: Fraction) -> list[list[Fraction]]:
        return [[Fraction(0), one, far], [one, Fraction(0), one], [far, one, Fraction(0)]]

    assert refusal(of(far)) == refusal(of(far - tiny)) == ""
    assert "from '0' to '2' it is 2" in refusal(of(far + tiny))
    assert "but over '1' only 100000000000 + 100000000000: not a metric" in refusal(of(far + tiny))


def test_a_line_of_many_labels_is_a_metric() -> None:
    """All triples are equalities: nothing may be looked at one by one."""
    count = 400
    assert refusal([[Fraction(abs(i - j)) for j in range(count)] for i in range(count)]) == ""


# ------------------------------------------------------------ lists of codes


@given(paths)
def test_a_list_of_codes_and_parents_gives_their_paths(listed: list[Path]) -> None:
    """Codes are whole paths written with dots, so that none repeats; the tops have no parent, or themselves."""
    every = sorted({path[:depth] for path in listed for depth in range(1, len(path) + 1)})
    names = {path: ".".join(path) for path in every}
    rows = [[names[p], names.get(p[:-1], "" if i % 2 else names[p])] for i, p in enumerate(every)]
    expected = tuple("/".join(names[p[:depth]] for depth in range(1, len(p) + 1)) for p in every)
    assert paths_of_codes(rows, "codes") == expected
    assert paths_of_codes([["code", "parent"], *rows], "codes") == expected
    assert sorted(paths_of_codes(rows[::-1], "codes")) == sorted(expected)


CHAIN = [[f"c{i}", f"c{i - 1}" if i else ""] for i in range(60)]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "no code is listed; write a line for each"),
        ([["code", "parent"]], "no code is listed; write a line for each"),
        ([["a", "", "A"]], "has two columns, the code and its parent"),
        ([["a"]], "has two columns, the code and its parent"),
        ([["a", ""], ["b", "c"]], "the parent 'c' of 'b' is not listed; add its line"),
        ([["a", ""], ["b", "a"], ["b", ""]], "the code 'b' is listed twice; a code has one parent"),
        ([["a", "b"], ["b", "a"]], "the code 'a' has no top: its parents go round in a circle"),
        ([["t", ""], ["a", "b"], ["b", "c"], ["c", "b"]], "the code 'a' has no top"),
        ([["a", ""], ["", "a"]], "the code '' is empty or holds a /; rename it"),
        ([["a/b", ""]], "the code 'a/b' is empty or holds a /; rename it"),
        (CHAIN, "more than 49 codes are above 'c50'; leave out some"),
        ([*CHAIN[1:], ["c0", "c59"]], "more than 49 codes are above 'c1'"),
    ],
)
def test_refuses_a_list_of_codes(rows: list[list[str]], says: str) -> None:
    with pytest.raises(SchemaError, match=says) as caught:
        paths_of_codes(rows, "codes of 'x' in codes.csv")
    assert str(caught.value).startswith("codes of 'x' in codes.csv: ")
    assert "\n" not in str(caught.value)


def test_the_deepest_list_of_codes() -> None:
    assert paths_of_codes(CHAIN[:50], "codes")[-1].count("/") == 49


def test_distances_that_were_computed_are_a_metric_after_all_and_never_smaller() -> None:
    """Places on a line and in a plane, as floats: rounding breaks triangles, and by less than a part in 10^9."""
    rng = np.random.default_rng(3)
    broken = 0
    for dimensions in (1, 2) * 10:
        places = rng.random((6, dimensions)) * rng.choice([1e-3, 1.0, 1e6])
        matrix = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)).tolist()
        exact = [[Fraction(repr(d)) for d in row] for row in matrix]
        broken += bool(broken_triples(exact))
        values = [str(i) for i in range(6)]
        text = f'[[column]]\nname = "m"\nkind = "metric"\nvalues = {values}\ndistances = {matrix}\n'.replace("'", '"')
        schema = Schema.parse(text)
        assert Schema.parse(schema.to_toml()) == schema
        column = schema.columns[0]
        assert isinstance(column, Category)
        largest = max(max(row) for row in exact)
        for before, after in zip(itertools.chain(*exact), itertools.chain(*column.distances), strict=True):
            assert before <= after <= before + largest / 10**8
            assert bool(before) == bool(after)
    assert broken > 3


def test_distances_of_few_digits_stay_as_they_are() -> None:
    schema = Schema.parse(
        '[[column]]\nname = "m"\nkind = "metric"\nvalues = ["a", "b"]\ndistances = [[0, 0.123456789012345], '
        "[0.123456789012345, 0]]\n"
    )
    column = schema.columns[0]
    assert isinstance(column, Category)
    assert column.distances[0][1] == Fraction("0.123456789012345")
