"""Every sentence of the report that has a number holds for the tables within the bound that try it hardest.

Schemas, synthetic rows and certificates are made up: weights, trees, matrices, missing values, columns of one value,
workloads of mixed sizes. What the page says is read back from its texts, and compared with the extreme tables that
linear programs find (`audits/within.py`).
"""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from report_specimens import document, record, view

from certsynth.domain import Category, Ordered, Schema
from certsynth.report import words
from certsynth.report.view import column_bounds
from questions import KINDS, column
from within import Near, World, average, extremes, products, spreads

Json = dict[str, Any]

PAGES = 120
NUMBER = r"−?[\d,]+(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
TINY = 1e-9
"""What floats may lose, beside ranges of length 1."""


def read(text: str) -> float:
    """A number as the page shows it."""
    digits, _, power = text.replace(",", "").replace("−", "-").partition(" × 10")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


class Page:
    """A made-up release: its view, and the tables within the bounds of its certificate."""

    def __init__(self, rng: np.random.Generator, schema: Schema) -> None:
        self.schema, self.world = schema, World(schema, rng)
        self.counts = rng.multinomial(int(rng.integers(1, 25)), rng.dirichlet(np.full(self.world.size, 0.2)))
        self.mass = self.counts / self.counts.sum()
        self.document = self._document(rng)
        rows = {c.name: c.decode(np.repeat(self.world.clean[c.name], self.counts)) for c in schema}
        self.view = view(self.document, schema, rows)
        self.bounds = column_bounds(record(self.document).certificate, schema.names)

    def _document(self, rng: np.random.Generator) -> Json:
        names = self.schema.names
        sparsity, subsets = int(rng.integers(1, len(names) + 1)), None
        if rng.integers(3) == 0:  # a workload: subsets of mixed sizes, which need not hold all columns
            picks = [rng.choice(len(names), int(rng.integers(1, len(names) + 1)), replace=False) for _ in range(2)]
            subsets = [[names[i] for i in sorted(pick)] for pick in {tuple(sorted(pick)) for pick in picks}]
            sparsity = max(map(len, subsets))
        hidden = bool(rng.integers(2))
        made = document(
            self.schema, sparsity=sparsity, subsets=subsets, neighbours="add-remove" if hidden else "replace-one"
        )
        certificate = made["certificate"]
        for subset in certificate["subsets"]:
            subset["bound"] = float(rng.choice([0.0, 1e-4, rng.uniform(0, 0.1), rng.uniform(0, 0.5), 1.0]))
        certificate["bound"] = max(subset["bound"] for subset in certificate["subsets"])
        certificate["single_column_bound"] = float(certificate["bound"] * rng.uniform(0, 1))
        return made

    def near(self, names: list[str], bound: float) -> Near:
        return Near.of(self.counts, self.world.distance(names), bound)

    def covering(self, names: list[str]) -> float:
        """The smallest bound that covers these columns together."""
        certificate = self.document["certificate"]
        found = [s["bound"] for s in certificate["subsets"] if set(names) <= set(s["columns"])]
        found += [certificate["single_column_bound"]] if len(names) == 1 else []
        return float(min(found))

    def gap(self, names: list[str], bound: float, gain: np.ndarray) -> float:
        """The largest distance of a share, or an average of all rows, from that of the synthetic rows."""
        tables = extremes(self.near(names, bound), gain.astype(float))
        return max(abs(float((table - self.mass) @ gain)) for table in tables)


def small_schema(rng: np.random.Generator) -> Schema:
    while True:
        kinds = [str(kind) for kind in rng.choice(KINDS, int(rng.integers(1, 4)))]
        columns = tuple(column(rng, f"c{i}", kind) for i, kind in enumerate(kinds))
        schema = Schema(columns=columns)
        lines = [c for c in columns if isinstance(c, Ordered) and c.kind != "ordinal"]
        if all(c.low < c.high for c in lines) and np.prod([_size(c) for c in columns]) <= 150:
            return schema


def _size(each: Any) -> int:
    own = len(each.labels) if isinstance(each, Category) else each.reach + 1 if each.whole else 4
    return int(own) + each.missing


# ------------------------------------------------------------ shares of categories


SHARES = re.compile(
    rf"within ± ({NUMBER}) percentage points(?:; where (.*) among the columns, (?:within ± ({NUMBER}))?)?"
)


def check_shares(page: Page, rng: np.random.Generator) -> float:
    """The promise of the first section; how near a table comes to it, or 0 if nothing is said."""
    said = [sentence for sentence in page.view["promise"]["in_plain_words"] if "The share of rows" in sentence]
    if not said:
        return 0.0
    found = SHARES.search(said[0])
    assert found, said[0]
    labels = {c.name: float(c.min_label_distance) for c in page.schema if isinstance(c, Category)}
    tightest = 0.0
    for subset in page.document["certificate"]["subsets"]:
        names = [name for name in subset["columns"] if name in labels]
        if not names:
            continue
        near = [name for name in names if f"“{name}”" in (found[2] or "")]
        if found[2]:
            assert sorted(near) == sorted(name for name in names if labels[name] < 1)
        stated = found[3] if near else found[1]
        if stated is None:
            continue  # "it can be anything"
        values = np.array([page.world.clean[name] for name in names])
        combinations = np.unique(values, axis=1, return_inverse=True)[1].ravel()
        for _ in range(3):
            chosen = rng.random(combinations.max() + 1) < rng.choice([0.2, 0.5])
            gap = page.gap(names, page.covering(names), chosen[combinations])
            assert 100 * gap <= read(stated) + TINY, said[0]
            if gap > TINY:
                tightest = max(tightest, 100 * gap / read(stated))
    return tightest


# ------------------------------------------------------------ columns


def check_column(page: Page, name: str) -> int:
    """All figures of a column; how many were compared."""
    shown = next(c for c in page.view["columns"]["drawn"] if c["name"] == name)
    each = next(c for c in page.schema if c.name == name)
    facts = {fact["what"].partition(",")[0]: fact for fact in shown["facts"]}
    figures, near = page.world.figures[name], page.near([name], page.bounds[name])
    there, compared = ~np.isnan(figures), 0
    if "share missing" in facts:
        compared += check_share(page, near, facts["share missing"], ~there)
    if "share of true" in facts:
        compared += check_share(page, near, facts["share of true"], figures == 1)
    if isinstance(each, Ordered):
        compared += check_mean(page, near, each, shown["facts"][0])
        compared += check_median(page, near, each, shown["facts"][-1])
    if shown["spread"]["form"] == "bars":
        compared += check_bars(page, near, shown, each)
    else:
        compared += check_band(page, near, shown, each)
    return compared


def check_share(page: Page, near: Near, fact: Json, holds: np.ndarray) -> int:
    ends = {"<0.1%": (0.0, 0.1)}.get(fact["value"], (float(fact["value"].strip("<%")),) * 2)
    off = read(fact["plus_minus_text"].removesuffix(" pp"))
    for table in extremes(near, holds.astype(float)):
        assert ends[0] - off - TINY <= 100 * float(table @ holds) <= ends[1] + off + TINY, fact
    return 1


def check_mean(page: Page, near: Near, each: Ordered, fact: Json) -> int:
    if fact["plus_minus_text"] is None:
        return 0
    figures = page.world.figures[each.name] + (each.kind == "ordinal")
    if each.kind == "date":
        value = float(datetime.date.fromisoformat(fact["value"]).toordinal() - datetime.date(1970, 1, 1).toordinal())
    else:
        value = read(fact["value"])
    off = read(fact["plus_minus_text"].removesuffix(" days"))
    inside = ~np.isnan(figures)
    for table in extremes(near, figures, inside):
        mean = average(table, figures, inside)
        slack = TINY * (each.high - each.low) + 1e-11 * abs(value)
        assert mean is None or abs(mean - value) <= off + slack, (fact, mean)
    example = [s for s in page.view["promise"]["in_plain_words"] if s.startswith(f"Take “{each.name}”")]
    assert all(fact["value"] in s and f"± {fact['plus_minus_text']} of that" in s for s in example)
    return 1 + len(example)


def check_median(page: Page, near: Near, each: Ordered, fact: Json) -> int:
    if "median" not in fact["what"]:
        return 0
    figures = page.world.figures[each.name]
    there = ~np.isnan(figures)
    low, high = (end.strip() for end in fact["value"].split(" and "))
    if each.kind == "ordinal":
        ends = [float(each.values.index(end)) for end in (low, high)]
    elif each.kind == "date":
        ends = [float(datetime.date.fromisoformat(end).toordinal() - 719_163) for end in (low, high)]
    else:
        ends = [read(end) for end in (low, high)]
    for level in np.unique(figures[there]):
        with np.errstate(invalid="ignore"):
            above, below = there & (figures > level), there & (figures < level)
        # some table has more than half of its values above the level: then its median is above it
        for side, beyond in ((above, level < ends[1]), (below, level > ends[0])):
            table = near.best(np.where(there, side - 0.5, 0.0))
            if float(table @ np.where(there, side - 0.5, 0.0)) > TINY:
                assert beyond, (fact, level)
    return 1


def check_bars(page: Page, near: Near, shown: Json, each: Any) -> int:
    figures, spread = page.world.figures[each.name], shown["spread"]
    brackets = re.findall(r"\(([\d.]+)% to ([\d.]+)%\)", shown["described"])
    labels = each.labels if isinstance(each, Category) else each.values
    holds = [figures == i for i in range(len(labels))] + ([np.isnan(figures)] if "missing" in spread else [])
    bars = spread["bars"] + ([spread["missing"]] if "missing" in spread else [])
    assert len(brackets) == len(holds) == len(bars)
    for (low, high), bar, chosen in zip(brackets, bars, holds, strict=True):
        for table in extremes(near, chosen.astype(float)):
            share = float(table @ chosen)
            assert bar["least"] - TINY <= share <= bar["largest"] + TINY
            assert float(low) - TINY <= 100 * share <= float(high) + TINY
    return len(bars)


def check_band(page: Page, near: Near, shown: Json, each: Ordered) -> int:
    within = re.search(rf"the real one is within ({NUMBER}) points", shown["described"])
    assert within
    figures, compared = page.world.figures[each.name], 0
    for level in np.unique(figures[~np.isnan(figures)])[:: max(1, page.world.size // 40)]:
        with np.errstate(invalid="ignore"):
            gain = (figures <= level).astype(float)
        place = (level - each.low) / max(each.high - each.low, 1e-300)
        at = (level - each.low + 0.5) / (each.reach + 1) if each.whole else place
        step = next(s for s in shown["spread"]["band"]["steps"] if s["from"] - TINY <= at <= s["to"] + TINY)
        for table in extremes(near, gain):
            share = float(table @ gain)
            assert step["least"] - TINY <= share or not each.whole
            assert share <= step["largest"] + TINY or not each.whole
            assert 100 * abs(share - float(page.mass @ gain)) <= read(within[1]) + 1e-7, shown["described"]
        compared += 1
    return compared


def check_pages(pages: int, seed: int) -> tuple[int, list[float]]:
    rng, compared, tightest = np.random.default_rng(seed), 0, []
    for _ in range(pages):
        page = Page(rng, small_schema(rng))
        tightest.append(check_shares(page, rng))
        compared += sum(check_column(page, c.name) for c in page.schema) + (tightest[-1] > 0)
    return compared, tightest


def test_figures_of_columns_and_shares_of_categories_hold_for_all_tables_within_the_bound() -> None:
    compared, tightest = check_pages(PAGES, seed=1)
    assert compared > 5 * PAGES
    assert max(tightest) > 0.99  # and what is said of categories is attained


@pytest.mark.slow
def test_figures_hold_on_many_more_pages() -> None:
    check_pages(20 * PAGES, seed=2)


def test_a_light_category_is_named_with_its_own_figure() -> None:
    """With a weight of 0.1 a share can be off by ten times the bound."""
    schema = Schema(
        columns=(Category("region", values=("n", "s")), Category("code", values=("a", "b"), weight=Fraction(1, 10)))
    )
    made = document(schema, direct=0.01727, single=0.0172)
    rows = {c.name: c.decode(np.array([0, 1, 1, 0])) for c in schema}
    (said,) = view(made, schema, rows)["promise"]["in_plain_words"]
    assert "right within ± 1.720 percentage points; where “code” is among the columns, within ± 17.27." in said


def test_a_workload_says_nothing_of_categories_outside_it() -> None:
    schema = Schema(columns=(Category("region", values=("n", "s")), Category("code", values=("a", "b"))))
    made = document(schema, sparsity=1, subsets=[["region"]], direct=0.02, single=0.02)
    rows = {c.name: c.decode(np.array([0, 1, 1, 0])) for c in schema}
    (said,) = view(made, schema, rows)["promise"]["in_plain_words"]
    assert "any category in the columns of one named subset" in said


@pytest.mark.parametrize("kind", ["integer", "date"])
def test_shares_up_to_a_value_of_many_hold(kind: Any) -> None:
    """A step of the band stands for several values: within it the share of synthetic rows may jump."""
    rng = np.random.default_rng(4)
    for missing in (False, True):
        for _ in range(2):
            page = Page(rng, Schema(columns=(Ordered("c0", kind=kind, low=3, high=303, missing=missing),)))
            assert check_column(page, "c0") > 30


# ------------------------------------------------------------ rules of thumb


def test_rules_of_thumb_hold() -> None:
    """Each rule beside the extreme tables, where columns have weight 1, nothing is missing and labels are 1 apart."""
    columns = (Ordered("x", low=-3, high=4), Ordered("y", low=0, high=3), Category("c", values=("p", "q", "r")))
    rng = np.random.default_rng(7)
    world, tried = (
        World(Schema(columns=columns), rng),
        dict.fromkeys((what for what, _, _ in words.RULES_OF_THUMB), 0.0),
    )
    mean, share, _, variance, covariance, grouped = tried
    x, y, label = (world.figures[name] for name in ("x", "y", "c"))
    all_rows, one = np.ones(world.size, bool), (label == 1).astype(float)

    def spread(table: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        return float(table @ (a * b) - (table @ a) * (table @ b))

    for _ in range(25):
        counts = rng.multinomial(20, rng.dirichlet(np.full(world.size, 0.3)))
        mass, bound = counts / counts.sum(), float(rng.uniform(0.001, 0.2))
        near = {names: Near.of(counts, world.distance(names.split()), bound) for names in ("x", "c", "x y", "x c")}
        wider = 2 * bound + bound**2
        group = label == int(np.argmax(np.bincount(label.astype(int), mass)))
        inside = float(mass @ group)
        compared = [
            (mean, [t @ x for t in extremes(near["x"], x)], mass @ x, 7 * bound),
            (share, [t @ one for t in extremes(near["c"], one)], mass @ one, bound),
            (variance, [spread(t, x, x) for t in spreads(near["x"], x, all_rows)], spread(mass, x, x), 49 * wider),
            (
                covariance,
                [spread(t, x, y) for t in products(near["x y"], x, y, all_rows)],
                spread(mass, x, y),
                21 * wider,
            ),
        ]
        if inside > bound:
            means = [average(t, x, group) for t in extremes(near["x c"], x, group)]
            compared.append((grouped, means, average(mass, x, group), 7 * bound / (inside - bound)))
        for rule, values, here, off in compared:
            gap = max(abs(value - here) for value in values)
            assert gap <= off + TINY, (rule, gap, off)
            tried[rule] = max(tried[rule], gap / off)
    assert all(tried[rule] > 0.5 for rule in (mean, share, variance, grouped)), tried
    assert tried[covariance] > 0.2
