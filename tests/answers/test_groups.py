"""Statistics by group: each is exactly what its own query answers, and all tables within the bound are inside."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from answering import SMALL, World, small, some_rows
from certsynth import Release, Schema, release
from certsynth.answers import Answer, TableAnswer, Unanswered, answer
from certsynth.answers.alone import numbers_for_text
from certsynth.answers.groups import MAX_GROUPS
from certsynth.answers.shares import EMPTY
from certsynth.domain import Category, Ordered
from certsynth.errors import InputError
from certsynth.record.record import SubsetRecord
from small import NATIVE, native
from within import Near, extremes

BANDED = Schema(
    columns=(
        Ordered("x", low=0, high=5, missing=True),
        Ordered("age", low=0, high=99, bands=(18.0, 65.0), missing=True),
        Ordered("size", kind="number", low=0.0, high=1.0, step=None, bands=()),
        Category("g", values=("f", "m"), missing=True),
    )
)


def by_groups(query: str, basis=SMALL) -> TableAnswer:
    found = answer(basis, query)
    assert isinstance(found, TableAnswer)
    assert found.figure == "estimate"
    return found


THREE = replace(
    SMALL,
    certificate=replace(
        SMALL.certificate,
        subsets=tuple(SubsetRecord(x, 0.05) for x in [("a", "t", "u"), ("a", "c", "p"), ("b", "u", "p")]),
    ),
)


@pytest.mark.parametrize(
    ("basis", "query"),
    [
        (SMALL, "mean(a) by u"), (SMALL, "mean(b) by t"), (SMALL, "median(a) by c"), (SMALL, "quantile(a, 0.9) by o"),
        (SMALL, "fraction(a > 0) by hue"), (SMALL, "variance(b) by u"), (SMALL, "sd(a) by p"), (SMALL, "mean(u) by p"),
        (SMALL, "mean(d) by job"), (SMALL, "median(o) by c2"), (SMALL, "count(a > 0) by u"),
        (SMALL, "fraction(a > 0 | a < 3) by c"), (SMALL, "mean(a | a > -1 or a = -2) by u"),
        (SMALL, "mean(a | u) - mean(a) by u"), (SMALL, "mean(a) - median(a) by p"), (SMALL, "MEAN(a) BY `u`"),
        (THREE, "mean(a) by t, u"), (THREE, "median(a) by c, p"), (THREE, "fraction(b > 1) by u, p"),
        (THREE, "count(b > 1 or b = 0) by u, p"), (THREE, "mean(a | a > 0) by t, u"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_every_group_is_what_its_own_query_answers(basis, query):
    found = by_groups(query, basis)
    for labels, group in found.rows:
        assert len(labels) == len(found.columns)
        if isinstance(group, Unanswered):
            with pytest.raises(InputError) as caught:
                answer(basis, group.query)
            assert str(caught.value) == str(group)
            continue
        assert group == answer(basis, group.query)
    assert any(isinstance(group, Answer) for _, group in found.rows)
    assert len({labels for labels, _ in found.rows}) == len(found)
    json.dumps(found.to_json(), allow_nan=False)


def test_groups_hold_all_rows_once():
    for query in ("count(a > -3) by c", "count(a > -3) by o", "count(a > -3) by hue"):
        assert sum(group.estimate for _, group in by_groups(query).rows) == 8


def test_no_table_within_the_bound_has_another_mean_in_a_group():
    """All rows of two columns are listed, and the tables that make a group's mean extreme are found by their own
    linear program."""
    rng, asked, attained, world = np.random.default_rng(1), 0, 0, World("b", "c")
    values = world.of(lambda row: np.nan if row["b"] is None else row["b"]).astype(float)
    labels = np.array([row["c"] for row in world.rows], dtype=object)

    def check(bound: float, stated: float) -> int:
        nonlocal asked, attained
        outside, counts = 0, some_rows(rng, world.size, rows=30)
        near = Near.of(counts, world.apart, bound)
        for (label,), group in by_groups("mean(b) by c", world.basis(counts, stated)).rows:
            inside = ~np.isnan(values) & np.array([each == label for each in labels])
            if isinstance(group, Unanswered):
                assert not counts[inside].any()
                continue
            tables = extremes(near, np.nan_to_num(values), inside)
            means = [float(t @ np.where(inside, values, 0.0)) / float(t @ inside) for t in tables if t @ inside > 1e-9]
            outside += any(not group.low - 1e-6 <= mean <= group.high + 1e-6 for mean in means)
            asked, attained = asked + 1, attained + (max(means) > group.high - 1e-3)
        return outside

    assert sum(check(bound, bound) for bound in (0.001, 0.01, 0.03) for _ in range(8)) == 0
    assert asked > 40
    assert attained > asked / 2
    assert sum(check(0.02, 0.8 * 0.02) for _ in range(12)) > 3  # the control: bounds a fifth too small


def test_a_group_without_synthetic_rows_says_so():
    world = World("a", "c")
    counts = world.of(lambda row: 3 if row["c"] == "x" else 0)
    found = by_groups("mean(a) by c", world.basis(counts, 0.01))
    known = dict(found.rows)
    assert isinstance(known["x",], Answer)
    nothing = known[None,]
    assert isinstance(nothing, Unanswered)
    assert (nothing.estimate, nothing.low, nothing.high) == (None, None, None)
    assert nothing.error == nothing.says_nothing == EMPTY
    assert "The certificate says nothing about 4 groups: no synthetic row satisfies" in str(found)
    lines = str(found).splitlines()
    assert [line.split()[1:] for line in lines if line.split()[0] in ("y", "missing")] == [["–", "–", "–"]] * 2
    cells = {cell["labels"][0]: cell for cell in found.to_json()["cells"]}
    assert cells["y"] == {"labels": ["y"], "estimate": None, "low": None, "high": None, "says_nothing": EMPTY}
    frame = pl.DataFrame(found.to_dict())
    assert frame.columns == ["c", "estimate", "low", "high"]
    assert frame["estimate"].null_count() == 4
    assert "<table" in found._repr_html_()


def test_bands_are_groups_and_other_numbers_are_not():
    basis = small(BANDED)
    found = by_groups("mean(x) by age", basis)
    assert [labels[0] for labels, _ in found.rows] == ["0 to 17", "18 to 64", "65 to 99", None]
    assert found.rows[1][1].query == "mean(x | 18 <= age <= 64)"
    with pytest.raises(InputError) as caught:
        answer(basis, "mean(x) by size")
    assert str(caught.value) == (
        "mean(x) by size: at character 12: 'size' has no bands, so it makes no groups; ask for single groups, like "
        "mean(… | size < …), or release with `bands` for it in the schema."
    )
    for query in ("mean(a) by b", "mean(a) by d", "mean(a) by n"):
        with pytest.raises(InputError, match="has no bands, so it makes no groups"):
            answer(SMALL, query)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("mean(a) by", "one or two columns follow 'by', and nothing else, like mean(income) by sex, employed; a cond"),
        ("mean(a) by u,", "at character 14: one or two columns follow 'by'"),
        ("mean(a) by u p", "one or two columns follow 'by'"),
        ("mean(a) by u = true", "a condition belongs inside the brackets, like mean(income | age > 65) by sex."),
        ("mean(a) by u, t, p", "at character 18: groups have at most 2 columns; put others into a condition."),
        ("mean(a) by u, `u`", "at character 15: 'u' is named twice; name each column once."),
        ("mean(a) by uu", "at character 12: no column is called 'uu'; did you mean"),
        ("mean(a by u)", "'by' comes after the closing bracket, like mean(income) by sex, employed."),
        ("mean(a) group by u", "write groups as 'by' and their columns, like mean(income) by sex, employed."),
        ("mean(a) per u", "write groups as 'by' and their columns"),
        ("mean(a) where u", "a condition belongs inside the brackets, like mean(income | age > 65)."),
        ("mean(a) | u", "a condition belongs inside the brackets"),
        ("table(a) by u", "table has cells instead of groups; name all columns in it, like table(region, sex)."),
        ("cdf(a, 1) by u", "cdf does not support groups; mean, variance, sd, covariance, correlation, fraction, "
         "quantile, median, count do, like mean(income) by sex, employed; ask for fraction(age <= 42) by sex."),
        ("sum(a) by u", "sum does not support groups"),
        ("mean(c) by u", "'c' has labels; ask for fraction(c = …)."),
        ("mean(a - b) by u", "'a', 'b', 'u' are 3 columns"),
        ("mean(a) by t, u", "are 3 columns, and this release certifies statistics of at most 2"),
        ("mean(a) by u - mean(b) by u", "one or two columns follow 'by'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_remedy(query, complaint):
    with pytest.raises(InputError) as caught:
        answer(SMALL, query)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_workload_must_hold_the_groups_as_well():
    basis = small(subsets=[("a", "u"), ("c",)], named=True)
    assert by_groups("mean(a) by u", basis).bound == pytest.approx(0.05)
    with pytest.raises(InputError, match="no subset of the release's workload holds 'a', 'c' together"):
        answer(basis, "mean(a) by c")


def test_too_many_groups_are_refused():
    many = tuple(f"v{i}" for i in range(30))
    schema = Schema(columns=(Ordered("x", low=0, high=3), Category("g", values=many), Category("h", values=many)))
    basis = small(schema, subsets=[("x", "g", "h")])
    with pytest.raises(InputError, match=f"there are 900 groups, and at most {MAX_GROUPS} are answered at once"):
        answer(basis, "mean(x) by g, h")


def test_a_column_called_by_is_a_column():
    schema = Schema(columns=(Ordered("by", low=0, high=3), Category("where", values=("p", "q"))))
    found = by_groups("mean(by) by `where`", small(schema))
    assert found.columns == ("where",)
    assert answer(small(schema), "mean(by | by > 0)").unit == "by"


@pytest.fixture(scope="module")
def made() -> Release:
    return release(native(300), NATIVE, seed=1, epsilon=4, confidence=0.8, resolution=4, mechanism="identity")


def test_groups_alone_use_the_numbers_of_all_groups(made):
    found, alone = made.answer("mean(a) by c"), made.answer("mean(a) by c", alone=True)
    assert isinstance(alone, TableAnswer)
    assert alone.alone
    assert "valid for this table alone." in str(alone)
    basis = small(NATIVE)
    basis = replace(basis, certificate=made.record.certificate)
    used = [numbers_for_text(basis, group.query) for _, group in found.rows]
    assert numbers_for_text(basis, "mean(a) by c") == frozenset().union(*used)
    assert [group.estimate for _, group in alone.rows] == [group.estimate for _, group in found.rows]


def test_a_list_of_queries_has_a_list_of_answers(made):
    queries = ["mean(a)", "mean(zz)", "mean(a) by c"]
    good = made.answer(["mean(a)", "mean(a) by c"])
    assert good == [made.answer("mean(a)"), made.answer("mean(a) by c")]
    with pytest.raises(InputError, match=r"^mean\(zz\): at character 6: no column is called 'zz'"):
        made.answer(queries)
    first, bad, last = made.answer(queries, errors="return")
    assert [first, last] == good
    assert isinstance(bad, Unanswered)
    assert (first.error, last.error) == ("", "")
    assert bad.error.startswith("at character 6: no column is called 'zz'")
    assert bad.to_json() == {"query": "mean(zz)", "error": bad.error}
    assert str(bad) == f"mean(zz): {bad.error}"
    assert made.answer("mean(zz)", errors="return") == bad
    assert [each.alone for each in made.answer(("mean(a)", "median(a)"), alone=True)] == [True, True]
    assert made.answer([]) == []
    assert isinstance(made.answer([7], errors="return")[0], Unanswered)
    with pytest.raises(InputError, match='`errors` is "raise" or "return"'):
        made.answer("mean(a)", errors="ignore")
