"""The difference of two groups, against the most different groups that tables within the bound have."""

from __future__ import annotations

import numpy as np
import pytest

from answering import World, some_rows
from certsynth.answers import Answer, answer
from within import Near

LABELS, RANGES, KINDS = World("a", "u"), World("a", "b"), World("b", "c")
STEPS = 25
"""Of the search for the most different groups."""

GROUPS = {
    "a": (LABELS, lambda r: r["a"]),
    "a > 0": (LABELS, lambda r: float(r["a"] > 0)),
    "a >= 1": (RANGES, lambda r: float(r["a"] >= 1)),
    "b": (KINDS, lambda r: np.nan if r["b"] is None else r["b"]),
    "b >= 2": (KINDS, lambda r: float(r["b"] is not None and r["b"] >= 2)),
}
"""Values, or conditions whose share is meant, with the columns that groups may name."""

CONDITIONS = {
    "u": lambda r: r["u"],
    "not u": lambda r: not r["u"],
    "b >= 2": lambda r: r["b"] is not None and r["b"] >= 2,
    "b < 2": lambda r: r["b"] is not None and r["b"] < 2,
    "b <= 3": lambda r: r["b"] is not None and r["b"] <= 3,
    "b is missing": lambda r: r["b"] is None,
    "c = 'x'": lambda r: r["c"] == "x",
    "not c = 'x'": lambda r: r["c"] not in (None, "x"),
    "c is missing": lambda r: r["c"] is None,
    "": lambda r: True,
}

CASES = [
    ("a", "u", "not u"),
    ("a", "u", ""),
    ("a > 0", "u", "not u"),
    ("a > 0", "", "not u"),
    ("a >= 1", "b >= 2", "b < 2"),
    ("a >= 1", "b >= 2", "b <= 3"),
    ("a >= 1", "b is missing", "b <= 3"),
    ("b", "c = 'x'", "not c = 'x'"),
    ("b", "c = 'x'", ""),
    ("b", "c is missing", "not c = 'x'"),
    ("b >= 2", "c = 'x'", "not c = 'x'"),
]


class Groups:
    """A value of every possible row, and two groups of these."""

    def __init__(self, what: str, first: str, second: str) -> None:
        self.world, value = GROUPS[what]
        values = self.world.of(value).astype(float)
        inside = [self.world.of(CONDITIONS[each]).astype(bool) & ~np.isnan(values) for each in (first, second)]
        self.values, (self.first, self.second) = np.nan_to_num(values), inside
        statistic = "mean" if what.isidentifier() else "fraction"
        texts = [f"{statistic}({what} | {each})" if each else f"{statistic}({what})" for each in (first, second)]
        self.query = " - ".join(texts)

    def difference(self, table: np.ndarray) -> float:
        return float(self._mean(table, self.first) - self._mean(table, self.second))

    def _mean(self, table: np.ndarray, inside: np.ndarray) -> float:
        return float((table * inside) @ self.values / (table @ inside))

    def exist(self, table: np.ndarray) -> bool:
        return min(table @ self.first, table @ self.second) > 1e-9

    def slope(self, table: np.ndarray) -> np.ndarray:
        """By how much the difference grows with the share of each possible row."""
        parts = [inside * (self.values - self._mean(table, inside)) / (table @ inside) for inside in self.groups]
        return parts[0] - parts[1]

    @property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        return self.first, self.second

    def extreme(self, near: Near, table: np.ndarray, sign: float) -> float:
        """The largest (or smallest) difference that is found by steps towards tables within the bound."""
        found = self.difference(table)
        for _ in range(STEPS):
            goal = near.best(sign * self.slope(table))
            ways = [table + share * (goal - table) for share in (1.0, 0.5, 0.2, 0.05)]
            ways = [way for way in ways if self.exist(way)]
            if not ways:
                break
            table = max(ways, key=lambda way: sign * self.difference(way))
            if sign * self.difference(table) <= sign * found + 1e-12:
                break
            found = self.difference(table)
        return found


def asked(basis, query: str) -> Answer:
    found = answer(basis, query)
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case))
def test_no_table_within_the_bound_has_a_larger_difference_of_two_groups(case):
    groups, tried = Groups(*case), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        counts, bound = some_rows(rng, groups.world.size, rows=40), float(rng.choice([0.002, 0.02, 0.1]))
        table = counts / counts.sum()
        if not groups.exist(table):
            continue
        found = asked(groups.world.basis(counts, bound), groups.query)
        near = Near.of(counts, groups.world.apart, bound)
        assert found.estimate == pytest.approx(groups.difference(table))
        assert found.low - 1e-9 <= groups.extreme(near, table, -1.0)
        assert groups.extreme(near, table, 1.0) <= found.high + 1e-9
        tried += 1
    assert tried >= 4


def balanced(rows: int = 40) -> np.ndarray:
    """Half of the rows in either group, in the middle of the range."""
    counts = np.zeros(LABELS.size, dtype=int)
    for i, row in enumerate(LABELS.rows):
        counts[i] = rows // 4 if row["a"] in (0, 1) else 0
    return counts


@pytest.mark.parametrize("what", ["a", "a > 0"])
def test_two_groups_share_the_bound_on_the_distance(what):
    """Rows that move in one group leave less for the other: the interval is half as wide as the difference of two."""
    groups, counts, bound = Groups(what, "u", "not u"), balanced(), 0.01
    basis, near = LABELS.basis(counts, bound), Near.of(counts, LABELS.apart, bound)
    found = asked(basis, groups.query)
    one, other = (asked(basis, part) for part in groups.query.split(" - "))
    most = groups.extreme(near, counts / counts.sum(), 1.0)
    assert found.high - found.low < 0.6 * (one.high - one.low + other.high - other.low)
    assert most - found.estimate > 0.9 * (found.high - found.estimate)
    assert "two groups" in found.how


def test_bounds_a_third_too_small_are_noticed():
    groups, counts, bound = Groups("a", "u", "not u"), balanced(), 0.01
    near = Near.of(counts, LABELS.apart, bound)
    found = asked(LABELS.basis(counts, bound / 1.5), groups.query)
    assert groups.extreme(near, counts / counts.sum(), 1.0) > found.high


def test_a_group_that_may_be_empty_has_the_difference_of_both_intervals():
    counts = balanced()
    found = asked(LABELS.basis(counts, 0.6), "mean(a | u) - mean(a | not u)")
    assert (found.low, found.high) == pytest.approx((-5.0, 5.0))
    assert found.says_nothing
