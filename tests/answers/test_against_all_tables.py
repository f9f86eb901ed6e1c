"""Answers against linear programs over all tables within the bound: all that is possible, and no more where distances
are exact."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pytest

from answering import TINY, World, some_rows
from certsynth.answers import answer
from certsynth.domain.meaning import Reader

SLACK = 1e-6

D = datetime.date.fromisoformat
T = datetime.datetime.fromisoformat

CONDITIONS = [
    ("a > 0", lambda r: r["a"] > 0, True),
    ("-1 <= a < 2", lambda r: -1 <= r["a"] < 2, True),
    ("a in [-2, 3]", lambda r: r["a"] in (-2, 3), True),
    ("a != 1", lambda r: r["a"] != 1, True),
    ("not (a = 1 or a = 2)", lambda r: r["a"] not in (1, 2), True),
    ("2*a + 1 < 3.5", lambda r: 2 * r["a"] + 1 < 3.5, True),
    ("-a >= 1", lambda r: -r["a"] >= 1, True),
    ("a > 1 and a < 1", lambda r: False, True),
    ("a > -9", lambda r: True, True),
    ("b <= 2", lambda r: r["b"] is not None and r["b"] <= 2, True),
    ("not (b <= 2)", lambda r: r["b"] is not None and r["b"] > 2, True),
    ("b is missing", lambda r: r["b"] is None, True),
    ("b is missing or b in [0, 4]", lambda r: r["b"] in (None, 0, 4), True),
    ("not (b is missing) and b != 3", lambda r: r["b"] not in (None, 3), True),
    ("not (b is missing or b < 2)", lambda r: r["b"] is not None and r["b"] >= 2, True),
    ("c = 'x'", lambda r: r["c"] == "x", True),
    ("c != 'x'", lambda r: r["c"] not in ("x", None), True),
    ("c in ['x', 'other'] or c is missing", lambda r: r["c"] in ("x", "other", None), True),
    ("t", lambda r: r["t"] is True, True),
    ("not t", lambda r: r["t"] is False, True),
    ("o >= 'middle'", lambda r: r["o"] in ("middle", "high"), True),
    ("d < '2020-01-03'", lambda r: r["d"] is not None and r["d"] < D("2020-01-03"), True),
    ("s < '2020-01-02 06:00'", lambda r: r["s"] is not None and r["s"] < T("2020-01-02 06:00"), False),
    ("s in ['2020-01-02', '2020-01-03']", lambda r: r["s"] in (T("2020-01-02"), T("2020-01-03")), False),
    ("w <= '2020-01-02'", lambda r: r["w"] <= T("2020-01-02"), True),
    ("w + 1 > '2020-01-02' + 1", lambda r: r["w"] > T("2020-01-02"), True),
    ("job = 'n'", lambda r: r["job"] == "n", True),
    ("job in ['b', 'c']", lambda r: r["job"] in ("b", "c"), True),
    ("job != 'b'", lambda r: r["job"] not in ("b", None), True),
    ("hue = 'r'", lambda r: r["hue"] == "r", True),
    ("not hue in ['r', 'g']", lambda r: r["hue"] == "b", True),
    ("a > 0 and b <= 1", lambda r: r["a"] > 0 and r["b"] is not None and r["b"] <= 1, True),
    ("a > 0 or b <= 1", lambda r: r["a"] > 0 or (r["b"] is not None and r["b"] <= 1), True),
    ("(a < 0 or b > 2) and (a > 1 or b < 1)", None, True),
    ("not (a > 0 and b > 1)", lambda r: r["a"] <= 0 or (r["b"] is not None and r["b"] <= 1), True),
    ("c = 'x' and hue != 'g'", lambda r: r["c"] == "x" and r["hue"] != "g", True),
    ("job = 'n' or t", lambda r: r["job"] == "n" or r["t"] is True, True),
    ("a + b <= 2", lambda r: r["b"] is not None and r["a"] + r["b"] <= 2, False),
    ("not a + b <= 2", lambda r: r["b"] is not None and r["a"] + r["b"] > 2, False),
    ("a - 2*b = 1", lambda r: r["b"] is not None and r["a"] - 2 * r["b"] == 1, False),
    ("a - 2*b != 1", lambda r: r["b"] is not None and r["a"] - 2 * r["b"] != 1, False),
    ("a + b in [0, 3]", lambda r: r["b"] is not None and r["a"] + r["b"] in (0, 3), False),
    ("0.1*a + 0.3*b <= 0.7", lambda r: r["b"] is not None and 0.1 * r["a"] + 0.3 * r["b"] <= 0.7, False),
    ("a + b - b > 1", lambda r: r["b"] is not None and r["a"] > 1, False),
    ("b - b = 0", lambda r: r["b"] is not None, False),
    ("b - b != 0", lambda r: False, False),
    ("d - e <= 1", lambda r: r["d"] is not None and (r["d"] - r["e"]).days <= 1, False),
    ("d > e", lambda r: r["d"] is not None and r["d"] > r["e"], False),
    ("s - w >= 3600", lambda r: r["s"] is not None and (r["s"] - r["w"]).total_seconds() >= 3600, False),
    ("s >= e", lambda r: r["s"] is not None and r["s"] >= T(str(r["e"])), False),
    ("e != w", lambda r: r["w"] != T(str(r["e"])), False),
    ("o < p", lambda r: r["o"] is not None and ("low", "middle", "high").index(r["o"])
     < ("low", "middle", "high").index(r["p"]), False),
    ("c = c2", lambda r: r["c"] is not None and r["c"] == r["c2"], False),
    ("c != c2", lambda r: None not in (r["c"], r["c2"]) and r["c"] != r["c2"], False),
    ("c = c2 or b > 3", lambda r: (r["c"] is not None and r["c"] == r["c2"]) or (r["b"] or 0) > 3, False),
    ("a + b <= 2 and c = 'x'", lambda r: r["b"] is not None and r["a"] + r["b"] <= 2 and r["c"] == "x", False),
]  # fmt: skip


def two_sided(row):
    a, b = row["a"], row["b"]
    left = True if a < 0 else (None if b is None else b > 2)
    right = True if a > 1 else (None if b is None else b < 1)
    return left is True and right is True


def world_of(text: str) -> World:
    return World(*Reader(list(TINY)).read(text).columns)


@pytest.mark.parametrize(("text", "holds", "exact"), CONDITIONS, ids=[text for text, _, _ in CONDITIONS])
def test_a_share_is_bounded_by_the_best_and_the_worst_table(text, holds, exact):
    world, rng = world_of(text), np.random.default_rng(1)
    inside = world.of(holds or two_sided).astype(bool)
    for bound in (0.0, 0.003, 0.02, 0.1, 0.3, 1.0):
        counts = some_rows(rng, world.size)
        found = answer(world.basis(counts, bound), f"fraction({text})")
        high = world.largest(inside.astype(float), counts, bound)
        low = -world.largest(-inside.astype(float), counts, bound)
        assert found.estimate == pytest.approx(np.average(inside, weights=counts))
        assert found.low <= low + 1e-9
        assert found.high >= high - 1e-9
        if exact:
            assert found.low == pytest.approx(low, abs=SLACK)
            assert found.high == pytest.approx(high, abs=SLACK)


GROUPED = [
    ("mean(a | a > 0)", "a", lambda r: r["a"] > 0),
    ("mean(a | c = 'x')", "a", lambda r: r["c"] == "x"),
    ("mean(a | c != 'x' and c is not missing)", "a", lambda r: r["c"] not in ("x", None)),
    ("mean(b)", "b", lambda r: r["b"] is not None),
    ("mean(b | a >= 1)", "b", lambda r: r["b"] is not None and r["a"] >= 1),
    ("mean(b where t)", "b", lambda r: r["b"] is not None and r["t"] is True),
    ("mean(b | hue = 'g')", "b", lambda r: r["b"] is not None and r["hue"] == "g"),
    ("mean(a | a + b > 2)", "a", lambda r: r["b"] is not None and r["a"] + r["b"] > 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("query", "name", "among"), GROUPED, ids=[query for query, _, _ in GROUPED])
def test_a_mean_in_a_group_is_bounded_by_the_best_and_the_worst_table(query, name, among):
    names = [n for n in ("a", "b", "c", "t", "hue") if n in query.replace("mean", "").replace("where", "")]
    names = [n for n in names if n != "t" or query.endswith(" t)")]
    world, rng = World(*names), np.random.default_rng(2)
    inside = world.of(among).astype(bool)
    values = world.of(lambda r: 0.0 if r[name] is None else float(r[name]))
    gaps, tried = [], 0
    for bound in (1e-6, 0.003, 0.01, 0.03, 0.1):
        for _ in range(3):
            counts = some_rows(rng, world.size) + 3 * (np.arange(world.size) == rng.choice(np.flatnonzero(inside)))
            found = answer(world.basis(counts, bound), query)
            high = world.largest_ratio(np.where(inside, values, values[inside].min()), inside, counts, bound)
            low = -world.largest_ratio(np.where(inside, -values, -values[inside].max()), inside, counts, bound)
            assert found.low <= low + 1e-7
            assert found.high >= high - 1e-7
            gaps.append((low - found.low + found.high - high) / np.ptp(values))
            tried += 1
    if "+" not in query:  # whole numbers may not go as near as places do
        assert max(gaps) < 0.12, gaps


@pytest.mark.parametrize(
    ("query", "holds", "among"),
    [
        ("mean(t)", lambda r: r["t"] is True, lambda r: r["t"] is not None),
        ("mean(t | a > 0)", lambda r: r["t"] is True, lambda r: r["t"] is not None and r["a"] > 0),
        ("fraction(t | a > 0)", lambda r: r["t"] is True, lambda r: r["a"] > 0),
        ("fraction(not t | a > 0)", lambda r: r["t"] is False, lambda r: r["a"] > 0),
        ("fraction(a > 1 | a > 0)", lambda r: r["a"] > 1, lambda r: r["a"] > 0),
        ("fraction(b > 2 | b is not missing)", lambda r: (r["b"] or 0) > 2, lambda r: r["b"] is not None),
        ("fraction(c = 'x' | b > 1)", lambda r: r["c"] == "x", lambda r: (r["b"] or 0) > 1),
        ("fraction(job = 'n' | hue != 'r')", lambda r: r["job"] == "n", lambda r: r["hue"] != "r"),
    ],
)
def test_a_share_of_a_group_is_exactly_what_tables_can_have(query, holds, among):
    names = [n for n in ("a", "b", "c", "t", "job", "hue") if re.search(rf"\b{n}\b", query)]
    world, rng = World(*names), np.random.default_rng(3)
    group = world.of(among).astype(bool)
    values = (world.of(holds).astype(bool) & group).astype(float)
    for bound in (1e-6, 0.003, 0.02, 0.1, 0.4):
        for _ in range(2):
            counts = some_rows(rng, world.size) + 3 * (np.arange(world.size) == rng.choice(np.flatnonzero(group)))
            found = answer(world.basis(counts, bound), query)
            assert found.high == pytest.approx(world.largest_ratio(values, group, counts, bound), abs=3e-5)
            assert found.low == pytest.approx(1 - world.largest_ratio(1 - values, group, counts, bound), abs=3e-5)
            assert found.low <= np.average(values[group], weights=counts[group]) <= found.high
