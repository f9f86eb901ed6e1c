"""The numbers of the calculator, in a real browser, are those of the formulas written out here, rounded outward."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from chromium import CHROMIUM, Browser, Page
from report_specimens import EVERY_KIND, WOVEN, document, record, render_report, table, view
from scipy.optimize import linprog

from certsynth.report import bands
from certsynth.report.binned_counts import BinnedCounts
from certsynth.report.calculator import pair_bounds

ROUNDS = 400
SLACK = 1e-7
"""What the outward allowance for last bits may add."""

Json = dict[str, Any]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser.open(render_report(document(EVERY_KIND), EVERY_KIND, table(EVERY_KIND)))


def ask(core: Page, calls: list[tuple[Any, ...]]) -> list[Any]:
    """Many calls of functions of calculator.js in one go."""
    return list(core.run(f"({json.dumps(calls)}).map(([name, ...given]) => certified[name](...given))"))


def line(rng: np.random.Generator) -> Json:
    """A random column on a line, as the page carries it."""
    whole, missing = bool(rng.integers(2)), bool(rng.integers(2))
    per = int(rng.choice([1, 2, 7, 40, 256]))
    codes = np.sort(rng.choice(per + 1, rng.integers(1, min(per + 1, 30) + 1), replace=False))
    counts = rng.integers(1, 60, len(codes))
    absent = int(rng.integers(0, 50)) if missing else 0
    return {
        "line": True, "whole": whole, "per": float(per), "codes": codes.tolist(), "counts": counts.tolist(),
        "absent": absent, "missing": missing, "rows": int(counts.sum()) + absent,
        "weight": float(rng.choice([1, 0.5, 0.25])), "moved": float(rng.choice([0, 0.003])),
    }  # fmt: skip


def labels(rng: np.random.Generator) -> Json:
    counts = rng.integers(0, 60, rng.integers(1, 6)) + 1
    absent = int(rng.integers(0, 9))
    return {"line": False, "counts": counts.tolist(), "rows": int(counts.sum()) + absent, "absent": absent,
            "missing": True, "closest": float(rng.choice([1, 0.5, 0.2]))}  # fmt: skip


def bounds(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1e-4, rng.uniform(0, 0.05), rng.uniform(0, 0.5), 1.0]))


def own(column: Json, bound: float) -> float:
    return min(1.0, bound / column["weight"] + column["moved"])


def moments(column: Json) -> tuple[float, float]:
    at, counts = np.array(column["codes"]) / column["per"], np.array(column["counts"])
    mean = float(at @ counts / counts.sum())
    return mean, float((at - mean) ** 2 @ counts / counts.sum())


def off(column: Json, bound: float) -> float:
    """How far a mean of the values that are there can be off."""
    spend, there = own(column, bound), 1 - column["absent"] / column["rows"]
    if not column["missing"]:
        return spend
    return min(1.0, spend / (there - spend)) if there > spend else 1.0


def test_means_and_variances(core: Page) -> None:
    rng = np.random.default_rng(1)
    cases = [(line(rng), bounds(rng)) for _ in range(ROUNDS)]
    means, spreads = (ask(core, [(name, *case) for case in cases]) for name in ("mean", "variance"))
    for (column, bound), mean, spread in zip(cases, means, spreads, strict=True):
        m, v = moments(column)
        most = off(column, bound)
        assert mean["value"] == pytest.approx(m)
        assert most <= mean["off"] <= most + SLACK * (1 + most * column["rows"])
        assert max(0, m - most) >= mean["least"] - 1e-12
        assert min(1, m + most) <= mean["largest"] + 1e-12
        most = min(0.25, 2 * most * max(m, 1 - m) + most**2)
        assert spread["value"] == pytest.approx(v, abs=1e-12)
        assert most <= spread["off"] <= most + 3 * SLACK * column["rows"]
        assert 0 <= spread["least"] <= v + 1e-12
        assert v - 1e-12 <= spread["largest"] <= 0.25


def test_shares_in_ranges_are_those_of_the_linear_program(core: Page) -> None:
    rng = np.random.default_rng(2)
    cases = []
    for _ in range(120):
        column, bound = line(rng), bounds(rng)
        column["whole"] = True  # so that tables on the lattice are all there are
        column["codes"] = [c % 13 for c in range(min(len(column["codes"]), 13))]
        column["counts"] = column["counts"][: len(column["codes"])]
        column["rows"] = sum(column["counts"]) + column["absent"]
        column["per"] = 12.0
        first, last = sorted(rng.integers(0, 13, 2))
        cases.append((column, bound, first / 12, last / 12))
    found = ask(core, [("range", *case) for case in cases])
    for (column, bound, first, last), answer in zip(cases, found, strict=True):
        places = np.arange(13) / 12
        inside = np.append((places >= first - 1e-9) & (places <= last + 1e-9), [False] * column["missing"]).astype(bool)
        counts = np.zeros(len(inside))
        counts[column["codes"]] = column["counts"]
        if column["missing"]:
            counts[13] = column["absent"]
        spend = own(column, bound)
        largest, least = _extreme(counts, spend, inside), 1 - _extreme(counts, spend, ~inside)
        assert answer["value"] == pytest.approx(counts[inside].sum() / counts.sum())
        assert answer["least"] <= least + 1e-12
        assert answer["largest"] >= largest - 1e-12
        assert (answer["least"], answer["largest"]) == pytest.approx((least, largest), abs=1e-6)


def _extreme(counts: np.ndarray, bound: float, inside: np.ndarray) -> float:
    """The largest share of a set over tables within `bound`: a linear program over transport plans."""
    size = len(counts)
    cost = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / 12
    cost[13:], cost[:, 13:] = 1.0, 1.0
    np.fill_diagonal(cost, 0.0)
    gain = np.tile(inside.astype(float), (size, 1))
    each = np.kron(np.eye(size), np.ones(size))
    answer = linprog(-gain.ravel(), A_ub=[cost.ravel()], b_ub=[bound], A_eq=each, b_eq=counts / counts.sum())
    return -float(answer.fun)


def test_ranges_and_quantiles_are_those_of_the_drawn_bands(core: Page) -> None:
    rng = np.random.default_rng(3)
    cases = [(line(rng), bounds(rng), float(rng.uniform(0.05, 0.95))) for _ in range(ROUNDS)]
    quantiles = ask(core, [("quantile", *case) for case in cases])
    upto = ask(
        core, [("range", column, bound, 0, round(p * column["per"]) / column["per"]) for column, bound, p in cases]
    )
    for (column, bound, p), quantile, share in zip(cases, quantiles, upto, strict=True):
        given = {key: column[key] for key in ("per", "absent", "missing", "moved")}
        binned = BinnedCounts(codes=tuple(column["codes"]), counts=tuple(column["counts"]), **given)
        scaled = bound / column["weight"]
        assert (quantile["least"], quantile["largest"]) == pytest.approx(
            bands.quantile_range(binned, scaled, p), abs=1e-9
        )
        step = 1 / column["per"] if column["whole"] else 0.0
        t = round(p * column["per"]) / column["per"]
        assert (share["least"], share["largest"]) == pytest.approx(bands.share_up_to(binned, scaled, t, step), abs=1e-9)
        assert quantile["least"] - 1e-9 <= quantile["value"] <= quantile["largest"] + 1e-9
        assert share["least"] - 1e-9 <= share["value"] <= share["largest"] + 1e-9


def test_labels_and_groups(core: Page) -> None:
    rng = np.random.default_rng(4)
    cases = []
    for _ in range(ROUNDS):
        group, other = labels(rng), labels(rng)
        cases.append((group, int(rng.integers(len(group["counts"]))), other, line(rng), bounds(rng)))
    single = ask(core, [("label", g, b, i) for g, i, _, _, b in cases])
    both = ask(core, [("combination", g, o, b) for g, _, o, _, b in cases])
    shares = ask(core, [("shareWithin", g, i, o, b) for g, i, o, _, b in cases])
    means = ask(core, [("meanWithin", g, i, x, b) for g, i, _, x, b in cases])
    for (group, i, other, column, bound), one, two, share, mean in zip(cases, single, both, shares, means, strict=True):
        p, moved = group["counts"][i] / group["rows"], bound / group["closest"]
        assert one["value"] == pytest.approx(p)
        assert min(1, moved) <= one["off"] <= moved + SLACK
        assert min(1, bound / min(group["closest"], other["closest"])) <= two <= 1
        spend = bound / min(group["closest"], other["closest"])
        assert _within(spend, p, moved) <= share <= _within(spend, p, moved) * (1 + 1e-4) + 1e-4
        spend = max(moved, own(column, bound))
        there = p - column["absent"] / group["rows"]
        exact = _within(spend, there, spend if column["missing"] else moved)
        assert exact <= mean["off"] <= exact * (1 + 1e-4) + 1e-4


def _within(spend: float, p: float, moved: float) -> float:
    return min(1.0, spend / (p - moved)) if p > moved else 1.0


def test_means_in_groups_hold_for_tables_within_the_bound(core: Page) -> None:
    """Brute force: rows of (label, value) are moved at a known cost, which the tables are no further apart than."""
    rng = np.random.default_rng(6)
    calls, gaps = [], []
    for _ in range(200):
        n = int(rng.integers(20, 60))
        label, value = rng.integers(0, 2, n), rng.integers(0, 11, n)
        theirs, other = label.copy(), value.copy()
        for row in rng.choice(n, rng.integers(1, 4), replace=False):
            theirs[row], other[row] = rng.integers(0, 2), rng.integers(0, 11)
        cost = np.maximum(label != theirs, np.abs(value - other) / 10).mean()
        if not (label == 0).any() or not (theirs == 0).any():
            continue
        counts = np.bincount(value, minlength=11)
        column = {"per": 10.0, "codes": list(range(11)), "counts": counts.tolist(), "rows": n, "absent": 0,
                  "missing": False, "weight": 1.0, "moved": 0.0}  # fmt: skip
        group = {"counts": np.bincount(label, minlength=2).tolist(), "rows": n, "closest": 1.0}
        calls.append(("meanWithin", group, 0, column, float(cost)))
        gaps.append(abs(value[label == 0].mean() - other[theirs == 0].mean()) / 10)
        calls.append(("covariance", column, column | {"counts": counts.tolist()}, float(cost)))
        x, y = value / 10, other / 10
        gaps.append(abs(x.var() - y.var()))  # the covariance of a column with itself
    found = [each["off"] if isinstance(each, dict) else each for each in ask(core, calls)]
    assert all(gap <= most + 1e-9 for gap, most in zip(gaps, found, strict=True))
    assert max(gap / most for gap, most in zip(gaps, found, strict=True)) > 0.5


def test_missing_values_and_shares_in_groups_hold_for_tables_within_the_bound(core: Page) -> None:
    """Brute force as above: values may go missing and come back, and labels of two columns change."""
    rng = np.random.default_rng(11)
    calls: list[tuple[Any, ...]] = []
    gaps: list[float] = []
    for _ in range(300):
        n = int(rng.integers(20, 60))
        first, second, value = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 12, n)  # 11 is missing
        theirs = [part.copy() for part in (first, second, value)]
        for row in rng.choice(n, rng.integers(1, 4), replace=False):
            for part, values in zip(theirs, (2, 3, 12), strict=True):
                part[row] = rng.integers(0, values)
        far = np.where((value == 11) | (theirs[2] == 11), 1.0 * (value != theirs[2]), np.abs(value - theirs[2]) / 10)
        labels_moved = [first != theirs[0], second != theirs[1]]
        here, there = value[value < 11] / 10, theirs[2][theirs[2] < 11] / 10
        inside = [first == 0, theirs[0] == 0]
        if not (len(here) and len(there) and inside[0].any() and inside[1].any()):
            continue
        column = {"per": 10.0, "codes": list(range(11)), "counts": np.bincount(value, minlength=12)[:11].tolist(),
                  "rows": n, "absent": n - len(here), "missing": True, "weight": 1.0, "moved": 0.0}  # fmt: skip
        group = {"counts": np.bincount(first, minlength=2).tolist(), "rows": n, "closest": 1.0}
        calls += [("mean", column, float(far.mean())), ("variance", column, float(far.mean()))]
        gaps += [abs(here.mean() - there.mean()), abs(here.var() - there.var())]
        calls.append(("shareWithin", group, 0, {"closest": 1.0}, float(np.maximum(*labels_moved).mean())))
        gaps.append(abs((second[inside[0]] == 1).mean() - (theirs[1][inside[1]] == 1).mean()))
        both = [value < 11, theirs[2] < 11]
        if (inside[0] & both[0]).any() and (inside[1] & both[1]).any():
            calls.append(("meanWithin", group, 0, column, float(np.maximum(labels_moved[0], far).mean())))
            ours, other = (v[i & b].mean() / 10 for v, i, b in zip((value, theirs[2]), inside, both, strict=True))
            gaps.append(abs(ours - other))
    found = [answer if isinstance(answer, int | float) else answer["off"] for answer in ask(core, calls)]
    assert all(gap <= most + 1e-9 for gap, most in zip(gaps, found, strict=True))
    for name in ("mean", "variance", "shareWithin"):
        shares = [g / m for g, m, c in zip(gaps, found, calls, strict=True) if c[0] == name and m]
        assert max(shares) > 0.3  # not far from what can be


def test_covariances(core: Page) -> None:
    rng = np.random.default_rng(7)
    cases = [(line(rng), line(rng), bounds(rng)) for _ in range(ROUNDS)]
    for (x, y, bound), most in zip(cases, ask(core, [("covariance", *case) for case in cases]), strict=True):
        reach = [max(m, 1 - m) for m in (moments(x)[0], moments(y)[0])]
        exact = own(x, bound) * reach[1] + own(y, bound) * reach[0] + own(x, bound) * own(y, bound)
        assert min(0.5, exact) <= most <= exact + SLACK


def test_figures_are_never_rounded_inward(core: Page) -> None:
    rng = np.random.default_rng(9)
    values = [float(v) for v in 10.0 ** rng.uniform(-8, 17, 300)]
    values += [-v for v in values[:100]] + [0.0, 0.9999999, 9.9995, 999.96, 1000.4, 1e-7, 123456.7]
    for name in ("up", "down", "figure"):
        for value, text in zip(values, ask(core, [(name, v) for v in values]), strict=True):
            shown = _number(text)
            exact = Decimal(repr(value))
            assert name != "up" or shown >= exact
            assert name != "down" or shown <= exact
            assert abs(shown - exact) <= abs(exact) * Decimal("0.00101")


def _number(text: str) -> Decimal:
    digits, _, power = text.replace(",", "").replace("−", "-").partition(" × 10")
    return Decimal(digits).scaleb(int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0))


def test_pairs_are_those_that_the_certificate_covers() -> None:
    stated = document(EVERY_KIND, subsets=[["age", "income", "school"], ["age", "region"]])
    stated["certificate"]["subsets"][1]["bound"] = 0.01
    names = EVERY_KIND.names
    found = pair_bounds(record(stated).certificate, names)
    three = stated["certificate"]["subsets"][0]["bound"]
    assert found == [[0, 1, three], [0, 3, three], [0, 5, 0.01], [1, 3, three]]
    assert pair_bounds(record(document(EVERY_KIND)).certificate, names) == document(EVERY_KIND)["certificate"]["bound"]
    assert pair_bounds(record(document(EVERY_KIND, sparsity=1)).certificate, names) == []


@pytest.mark.parametrize("schema", [EVERY_KIND, WOVEN])
def test_the_page_carries_the_rows_of_the_table(schema: Any) -> None:
    rows = table(schema)
    data = view(document(schema), schema, rows)["calculator"]
    for column, carried in zip(schema, data["columns"], strict=True):
        assert carried["rows"] == 400
        assert carried["absent"] == int(np.ma.count_masked(rows[column.name]))
        assert sum(carried["counts"]) + carried["absent"] == 400
        if carried["line"]:
            values = column.clean(rows[column.name])
            mean = np.nanmean(values) / max(column.reach, 1)
            assert math.isclose(moments(carried)[0], mean, rel_tol=1e-9, abs_tol=1e-9)
