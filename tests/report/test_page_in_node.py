"""What the calculator says, read back from its sentences: it holds for the extreme tables, and is what `answer` says.

The scripts of the page run in node, on made-up releases. Every statistic, column and control is tried. Where the page
uses the formula of `answer`, both intervals are the same but for the digits shown. That of the page is narrower by no
more than a billionth of the range, by which `answer` moves its ends outward.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_specimens import record
from test_sentences import NUMBER, Page, moment, read, small_schema

import certsynth.report
from certsynth.answers import Basis, answer, queries
from certsynth.domain import Category, Ordered
from certsynth.domain.meaning import Reader
from certsynth.errors import InputError
from within import average, extremes, products, spreads

NODE = shutil.which("node")
PAGES = 60
ASKED = 12
"""Questions for each page."""
SCRIPTS = Path(certsynth.report.__file__).parent
PERCENT = {"0.5": 50, "0.25": 25, "0.9": 90}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is set in the form; the same as a query where `answer` has one; and tables with the value that they have.

    `exact`: the page and `answer` use the same formula.
    """

    controls: dict[str, Any]
    names: list[str]
    tables: Any
    value: Any
    query: str | None = None
    exact: bool = False


def questions(page: Page, rng: np.random.Generator) -> list[Asked]:
    columns = list(page.schema)
    numbers = page.view["calculator"]["columns"]
    found = []
    while len(found) < ASKED:
        i, j = (int(rng.integers(len(columns))) for _ in range(2))
        first, second = columns[i], columns[j]
        makers = _LINES if isinstance(first, Ordered) else _LABELS
        maker = makers[rng.integers(len(makers))]
        asked = maker(page, rng, i, first, j, second, numbers)
        found.append(asked)
    return [each for each in found if each is not None]


def _control(what: str, i: int, **others: Any) -> dict[str, Any]:
    return {"calc-what": what, "calc-first": str(i), **{f"calc-{name}": str(value) for name, value in others.items()}}


def _mean(page: Page, rng: Any, i: int, c: Any, *_: Any) -> Asked | None:
    figures = page.world.figures[c.name] + (c.kind == "ordinal")
    inside = ~np.isnan(figures)
    query = None if c.kind == "ordinal" else f"mean({c.name})"
    return Asked(
        _control("mean", i), [c.name], lambda near: extremes(near, figures, inside),
        lambda table: average(table, figures, inside), query, exact=not c.missing,
    )  # fmt: skip


def _variance(page: Page, rng: Any, i: int, c: Any, *_: Any) -> Asked | None:
    figures = page.world.figures[c.name] - float(c.low)
    inside = ~np.isnan(figures)

    def value(table: np.ndarray) -> float | None:
        mean = average(table, figures, inside)
        return None if mean is None else average(table, (figures - mean) ** 2, inside)

    query = None if c.kind == "ordinal" else f"variance({c.name})"
    return Asked(_control("variance", i), [c.name], lambda near: spreads(near, figures, inside), value, query)


def _typed(c: Any, figure: float) -> tuple[Any, str]:
    """A value as it is put into the form, and as it is written in a query."""
    if c.kind == "ordinal":
        return int(figure), f"'{c.values[int(figure)]}'"
    if c.clock is not None:
        text = str(np.datetime64(int(figure), "D" if c.kind == "date" else "s"))
        return text, f"'{text}'"
    return repr(int(figure) if c.whole else figure), repr(figure)


def _range(page: Page, rng: Any, i: int, c: Any, *_: Any) -> Asked | None:
    figures = page.world.figures[c.name]
    low, high = sorted(rng.choice(figures[~np.isnan(figures)], 2))
    (typed_low, query_low), (typed_high, query_high) = _typed(c, float(low)), _typed(c, float(high))
    with np.errstate(invalid="ignore"):
        between = ((figures >= low) & (figures <= high)).astype(float)
        up_to = (figures <= high).astype(float)
    if rng.integers(2):
        query = f"fraction({c.name} >= {query_low} and {c.name} <= {query_high})"
        controls = _control("range", i) | {"calc-from": str(typed_low), "calc-to": str(typed_high)}
        return Asked(
            controls, [c.name], lambda near: extremes(near, between), lambda t: float(t @ between), query, exact=True
        )
    controls = _control("upto", i, to=typed_high)
    query = f"cdf({c.name}, {query_high})"
    return Asked(controls, [c.name], lambda near: extremes(near, up_to), lambda t: float(t @ up_to), query, exact=True)


def _quantile(page: Page, rng: Any, i: int, c: Any, *_: Any) -> Asked | None:
    p = str(rng.choice(list(PERCENT)))
    figures, share = page.world.figures[c.name], float(p)
    there = ~np.isnan(figures)
    levels = np.unique(figures[there])

    def tables(near: Any) -> list[np.ndarray]:
        with np.errstate(invalid="ignore"):
            sides = [(figures >= level) - (1 - share) for level in levels] + [(figures <= v) - share for v in levels]
        return [near.best(np.where(there, side, 0.0)) for side in sides]

    def value(table: np.ndarray) -> float | None:
        present = float(table @ there)
        if present <= 1e-9:
            return None
        below = np.array([float(table @ (there & (figures <= level))) for level in levels]) / present
        return float(levels[int(np.argmax(below >= share - 1e-12))])

    controls = _control("quantile", i, percent=PERCENT[p])
    return Asked(controls, [c.name], tables, value, f"quantile({c.name}, {p})", exact=True)


def _label(page: Page, rng: Any, i: int, c: Any, j: int, d: Any, numbers: list[Json]) -> Asked | None:
    k = int(rng.integers(len(numbers[i]["labels"])))
    holds = _with_label(page, c, numbers[i]["labels"][k]).astype(float)
    written = numbers[i]["labels"][k]
    query = f"fraction({c.name} = {written if c.kind == 'boolean' else repr(written)})"
    controls = _control("label", i, label=k)
    return Asked(
        controls,
        [c.name],
        lambda near: extremes(near, holds),
        lambda t: float(t @ holds),
        query,
        exact=c.label_metric is None,
    )


def _with_label(page: Page, c: Category, label: str) -> np.ndarray:
    return np.asarray(page.world.figures[c.name] == list(c.labels).index(label))


def _both(page: Page, rng: Any, i: int, c: Any, j: int, d: Any, numbers: list[Json]) -> Asked | None:
    if i == j:
        return None
    controls, query = _control("both", i, second=j), None
    if has_table(page, i, j):
        (first, at), (second, to) = (some_set(page, rng, k) for k in (i, j))
        gain = (holds(page, first) & holds(page, second)).astype(float)
        controls |= set_controls(page, i, at, "calc-part") | set_controls(page, j, to, "calc-other")
        query = f"fraction({first} and {second})"
    elif isinstance(c, Category) and isinstance(d, Category):
        gain = (_some(rng, page, c) & _some(rng, page, d)).astype(float)
    else:
        return None
    names = [c.name, d.name]
    return Asked(controls, names, lambda near: extremes(near, gain), lambda t: float(t @ gain), query)


def has_table(page: Page, i: int, j: int) -> bool:
    answers = page.view["calculator"]["answers"]
    listed = answers["pairs"]
    if listed is None:
        return {str(i), str(j)} <= set(answers["sides"])
    return (min(i, j), max(i, j)) in zip(listed[::2], listed[1::2], strict=True)


def some_set(page: Page, rng: Any, i: int) -> tuple[str, int]:
    """A set of values of a column, as a condition and by its number."""
    conditions = page.view["calculator"]["answers"]["sides"][str(i)]["asked"]
    at = int(rng.integers(len(conditions)))
    return conditions[at].replace("\x01", page.view["calculator"]["columns"][i]["query"]), at


def set_controls(page: Page, i: int, at: int, name: str) -> dict[str, str]:
    """What is chosen in the form for a set: a label, or the ends of a range."""
    side = page.view["calculator"]["answers"]["sides"][str(i)]
    number = len(side["ranges"])
    if not number:
        return {name: str(at)}
    runs = [(a, b) for a in range(number) for b in range(a, number) if a > 0 or b < number - 1]
    if at == len(runs):
        return {name: "missing"}
    return {name: str(runs[at][0]), f"{name}-to": str(runs[at][1])}


def holds(page: Page, condition: str) -> np.ndarray:
    """Which of all rows satisfy a condition."""
    (node,) = queries.parse(f"fraction({condition})").arguments
    return np.asarray(Reader(list(page.schema)).condition(node).holds(page.world.figures) > 0)


def _some(rng: Any, page: Page, c: Category) -> np.ndarray:
    return np.asarray(page.world.figures[c.name] == int(rng.integers(len(c.labels))))


def _share_within(page: Page, rng: Any, i: int, c: Any, j: int, d: Any, numbers: list[Json]) -> Asked | None:
    if i == j or not isinstance(d, Category):
        return None
    k = int(rng.integers(len(numbers[i]["labels"])))
    group, gain = _with_label(page, c, numbers[i]["labels"][k]), _some(rng, page, d).astype(float)
    controls = _control("shareWithin", i, label=k, second=j)
    return Asked(
        controls, [c.name, d.name], lambda near: extremes(near, gain, group), lambda t: average(t, gain, group)
    )


def _mean_within(page: Page, rng: Any, i: int, c: Any, j: int, d: Any, numbers: list[Json]) -> Asked | None:
    if i == j or not isinstance(d, Ordered):
        return None
    figures, controls, query = page.world.figures[d.name] + (d.kind == "ordinal"), _control("meanWithin", i), None
    controls["calc-second"] = str(j)
    sides = page.view["calculator"]["answers"]["sides"]
    if has_table(page, i, j) and sides[str(j)]["means"] is not None:
        condition, at = some_set(page, rng, i)
        group = holds(page, condition) & ~np.isnan(figures)
        controls |= set_controls(page, i, at, "calc-part")
        query = None if d.kind == "ordinal" else f"mean({d.name} | {condition})"
    elif isinstance(c, Category):
        k = int(rng.integers(len(numbers[i]["labels"])))
        group = _with_label(page, c, numbers[i]["labels"][k]) & ~np.isnan(figures)
        controls["calc-label"] = str(k)
    else:
        return None
    names = [c.name, d.name]
    return Asked(
        controls, names, lambda near: extremes(near, figures, group), lambda t: average(t, figures, group), query
    )


def _covariance(page: Page, rng: Any, i: int, c: Any, j: int, d: Any, numbers: list[Json]) -> Asked | None:
    if i == j or not isinstance(d, Ordered) or c.missing or d.missing:
        return None
    x, y = (page.world.figures[each.name] - float(each.low) for each in (c, d))
    everything = np.ones(page.world.size, bool)
    return Asked(
        _control("covariance", i, second=j), [c.name, d.name], lambda near: products(near, x, y, everything),
        lambda t: float(t @ (x * y) - (t @ x) * (t @ y)),
    )  # fmt: skip


_LINES = (_mean, _variance, _range, _range, _quantile, _covariance, _both, _mean_within)
_LABELS = (_label, _both, _share_within, _mean_within)


# ------------------------------------------------------------ what is said


def end(text: str, c: Any) -> float:
    """An end of an interval as the page shows it."""
    text = text.strip("“”")
    if re.fullmatch(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", text):
        return moment(text)
    if isinstance(c, Ordered) and text in c.values:
        return float(c.values.index(text))
    return read(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


ASKS = "As a question for certsynth answer: "
SAID = re.compile(r"(?:it is|up to it is|exceed is|rows) between (.+?) and (.+?)(?:,|:) ")
OFF = re.compile(rf"± ({NUMBER})")


def judge(page: Page, asked: Asked, said: tuple[str, str, str], tally: Counter[str]) -> None:
    head, says, note = said
    what = asked.controls["calc-what"]
    if ASKS in note:
        compare_digits(page, asked, said, tally)
    measured = asked.names[-1 if what == "meanWithin" else 0]
    c = next(c for c in page.schema if c.name == measured)
    # of columns outside of a workload nothing is said: any table will do
    bound = page.bounds[asked.names[0]] if len(asked.names) == 1 else page.covering(asked.names)
    values = [v for t in asked.tables(page.near(asked.names, bound)) if (v := asked.value(t)) is not None]
    here = asked.value(page.mass)
    tally[what] += 1
    if found := SAID.search(says):
        low, high = (end(each, c) for each in found.groups())
        slack = 1e-9 * max(abs(low), abs(high), 1e-3)
        assert low - slack <= min(values, default=low), (asked, says, min(values))
        assert max(values, default=high) <= high + slack, (asked, says, max(values))
        if ASKS not in note:
            compare(page, asked, low, high, tally)
        return
    off = OFF.search(head)
    assert off, (head, says)
    stated = read(off[1]) / (100 if "points" in head else 1)
    if here is not None:
        gap = max((abs(value - here) for value in values), default=0.0)
        last_bits = 4 * float(np.spacing(max((abs(value) for value in values), default=0.0)))  # of the averages here
        assert gap <= stated * (1 + 1e-9) + 1e-12 + last_bits, (asked, head, says, gap)


def compare_digits(page: Page, asked: Asked, said: tuple[str, str, str], tally: Counter[str]) -> None:
    """The question that the page names is the one that was asked, and its answer has the digits that the page shows."""
    head, says, note = said
    query = note.removeprefix(ASKS)
    assert query == asked.query or asked.controls["calc-what"] == "label", (query, asked.query)
    found = answer(basis(page), query)
    shown = [in_percent(each) if found.unit == "share" else each for each in found.shown()]
    assert plain(head) == f"{shown[1]} to {shown[2]}", (query, head, found)
    assert f" {shown[0]}" in plain(says), (query, says, found)
    assert f"between {shown[1]} and {shown[2]}, with " in plain(says), (query, says, found)
    assert ("too wide to say anything" in says) == bool(found.says_nothing), (query, says, found)
    tally["to the digit"] += 1


def plain(said: str) -> str:
    """Numbers as `answer` writes them."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", said.replace("−", "-"))


def in_percent(share: str) -> str:
    return f"{Decimal(share).scaleb(2):f}%"


def compare(page: Page, asked: Asked, low: float, high: float, tally: Counter[str]) -> None:
    """The interval of `answer` is inside that of the page; the same but for digits, where formulas are."""
    if asked.query is None:
        return
    try:
        found = answer(basis(page), asked.query)
    except InputError:
        return
    c = next(c for c in page.schema if c.name == asked.names[0])
    ends = [end(str(each), c) for each in (found.low, found.high)]
    share = "fraction" in asked.query or "cdf" in asked.query or isinstance(c, Category)
    span = 1.0 if share else float(c.high - c.low) ** (2 if "variance" in asked.query else 1)
    outward = 1.1e-9 * span  # `answer` moves its ends outward by a billionth of the range
    digits = 2e-3 * max(abs(low), abs(high)) + 1e-7 + outward
    whole = 1.0 if isinstance(c, Ordered) and c.clock is not None else 0.0  # rounded outward, by either
    narrower = 1e-7 + whole + outward
    assert low <= ends[0] + 1e-6 * abs(low) + narrower, (asked.query, low, found)
    assert high >= ends[1] - 1e-6 * abs(high) - narrower, (asked.query, high, found)
    tally["as `answer`"] += 1
    if asked.exact and not _coarser(page, c):
        assert abs(low - ends[0]) <= digits + whole, (asked.query, low, found)
        assert abs(high - ends[1]) <= digits + whole, (asked.query, high, found)
        tally["the same as `answer`"] += 1


def _coarser(page: Page, c: Any) -> bool:
    """Whether the page knows less than the rows: near values are put together, or the only value is one of several."""
    carried = page.view["calculator"]["columns"][page.schema.names.index(c.name)]
    return bool(carried.get("moved")) or (c.reach if isinstance(c, Ordered) else len(c.labels) - 1) == 0


def basis(page: Page) -> Basis:
    clean = {name: np.repeat(values, page.counts) for name, values in page.world.clean.items()}
    table = {c.name: c.decode(clean[c.name]) for c in page.schema}
    return Basis(page.schema, table, clean, record(page.document).certificate, int(page.counts.sum()))


def run_in_node(pages: list[Json], scripts: tuple[str, ...] = ("calculator.js", "page.js")) -> list[Any]:
    command = [str(NODE), str(Path(__file__).parent / "page_in_node.js"), *(str(SCRIPTS / name) for name in scripts)]
    done = subprocess.run(command, input=json.dumps(pages), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return list(json.loads(done.stdout))


def shrunk(numbers: Json, which: str) -> Json:
    """The data of the page with one kind of bound that is a fifth too small, or that of other pairs."""

    def narrowed(ends: list[float]) -> list[float]:
        middle = (ends[0] + ends[1]) / 2
        return [middle + 0.8 * (end - middle) for end in ends]

    columns = [dict(column) for column in numbers["columns"]]
    for column in columns:
        if which in ("bound", "share"):
            column[which] *= 0.8
        elif which in column:
            column[which] = narrowed(column[which])
    found = numbers | {"columns": columns}
    if which in ("share of two", "moment"):
        key = which.split()[0]
        found[key] *= 0.8
    if which == "exceptions" and "apart" in found:
        found["share"], found["apart"]["share"] = found["apart"]["share"], found["share"]
    return found


def check_pages(pages: int, seed: int, shrink: str = "") -> Counter[str]:
    """`shrink`: the kind of bound that is made too small before the page is told."""
    rng, tally = np.random.default_rng(seed), Counter[str]()
    made = [Page(rng, small_schema(rng)) for _ in range(pages)]
    asked = [questions(page, rng) for page in made]
    given = []
    for page, each in zip(made, asked, strict=True):
        numbers = shrunk(json.loads(json.dumps(page.view["calculator"])), shrink)
        given.append({"numbers": numbers, "asks": [one.controls for one in each]})
    for page, each, said in zip(made, asked, run_in_node(given), strict=True):
        for one, text in zip(each, said, strict=True):
            if text is not None and text[0] != "–" and _offered(page, one):
                judge(page, one, text, tally)
    return tally


def _offered(page: Page, asked: Asked) -> bool:
    """Whether the form has these columns to choose: a column with values, or a pair that the certificate covers."""
    certificate = page.document["certificate"]
    lines = [c.name for c in page.schema if isinstance(c, Ordered) and c.name in asked.names]
    full = all(page.mass @ ~np.isnan(page.world.figures[name]) > 0 for name in lines)
    together = any(set(asked.names) <= set(s["columns"]) for s in certificate["subsets"])
    return full and (len(asked.names) == 1 or together)


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_what_the_calculator_says_holds_for_extreme_tables_and_is_what_answer_says() -> None:
    tally = check_pages(PAGES, seed=1)
    statistics = {"mean", "upto", "range", "quantile", "variance", "label", "both", "shareWithin", "meanWithin"}
    assert statistics | {"covariance"} <= set(tally), tally
    assert tally["the same as `answer`"] > PAGES
    assert tally["to the digit"] > PAGES


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("which", ["bound", pytest.param("share", marks=pytest.mark.slow)])
def test_bounds_that_are_a_fifth_too_small_are_noticed(which: str) -> None:
    with pytest.raises(AssertionError):
        check_pages(PAGES, seed=1, shrink=which)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("which", ["variance", "share of two", "exceptions"])
def test_other_bounds_that_are_a_fifth_too_small_are_noticed(which: str) -> None:
    with pytest.raises(AssertionError):
        check_pages(10 * PAGES, seed=3, shrink=which)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_calculator_holds_on_many_more_pages() -> None:
    check_pages(25 * PAGES, seed=2)
