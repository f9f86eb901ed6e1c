"""Crosstabs and histograms: every row is in one cell, and every cell is answered as `fraction` answers it."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answering import SMALL, World, small, some_rows
from certsynth.answers import Answer, TableAnswer, answer
from certsynth.answers.queries import Query, parse
from certsynth.answers.tables import MAX_CELLS, bins_of
from certsynth.domain import Category, Ordered, Schema
from certsynth.errors import InputError


def tabulated(query: str, basis=SMALL) -> TableAnswer:
    found = answer(basis, query)
    assert isinstance(found, TableAnswer)
    return found


@pytest.mark.parametrize(
    "query",
    [
        "table(c)", "table(c, t)", "table(u, p)", "table(job, hue)", "table(a, b)", "table(d, e)", "table(n, m, 3)",
        "histogram(a)", "histogram(a, 2)", "histogram(b, 3)", "histogram(o)", "histogram(o, 2)", "histogram(d, 4)",
        "histogram(n)", "histogram(m, 3)", "histogram(c2)", "table(a, c | a >= 0)", "histogram(b | a > 0)", "TABLE(t)",
    ],
)  # fmt: skip
def test_every_cell_is_what_its_own_query_answers(query):
    found = tabulated(query)
    assert sum(cell.estimate for _, cell in found.rows) == pytest.approx(1)
    for labels, cell in found.rows:
        alone = answer(SMALL, cell.query)
        assert isinstance(alone, Answer)
        assert (cell.low, cell.estimate, cell.high) == (alone.low, alone.estimate, alone.high)
        assert len(labels) == len(found.columns)
    assert len({labels for labels, _ in found.rows}) == len(found) == len(found.rows)
    assert found.confidence == 0.95


columns = st.one_of(
    st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 5000), st.booleans()).map(
        lambda x: Ordered("x", low=x[0], high=x[0] + x[1], missing=x[2])
    ),
    st.tuples(st.integers(-1000, 1000), st.integers(0, 400), st.booleans()).map(
        lambda x: Ordered("x", kind="date", low=x[0], high=x[0] + x[1], missing=x[2])
    ),
    st.tuples(st.integers(-(10**9), 10**9), st.integers(1, 400), st.sampled_from([1, 60, 900]), st.booleans()).map(
        lambda x: Ordered(
            "x",
            kind="datetime",
            low=x[0],
            high=x[0] + x[1] * x[2],
            step=Fraction(x[2]) if x[2] > 1 else None,
            missing=x[3],
        )
    ),
    st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e9), st.booleans()).map(
        lambda x: Ordered("x", kind="number", low=x[0], high=x[0] + max(x[1], abs(x[0]) * 1e-9), missing=x[2])
    ),
    st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=6, unique=True).map(
        lambda labels: Ordered("x", kind="ordinal", high=len(labels) - 1, values=tuple(labels))
    ),
    st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=6, unique=True).map(
        lambda labels: Category("x", values=tuple(labels), missing=True)
    ),
)


@given(column=columns, most=st.none() | st.integers(1, 30))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_every_value_is_in_one_bin(column, most):
    from certsynth.domain.meaning import Reader

    if isinstance(column, Category):
        values = np.append(np.arange(len(column.labels)), np.nan).astype(float)
    elif column.whole:
        values = column.figures_at(np.arange(column.last_index + 1))
    else:
        values = np.append(np.linspace(column.low, column.high, 200), [column.low, column.high])
        values = np.clip(values, column.low, column.high)
    if isinstance(column, Ordered) and column.missing:
        values = np.append(values, np.nan)
    bins, reader = bins_of(column, most), Reader([column])
    inside = np.array([reader.condition(each.condition).holds({"x": values}) > 0 for each in bins])
    assert (inside.sum(axis=0) == 1).all()
    if isinstance(column, Ordered) and most is not None:
        assert len(bins) - column.missing <= most
        if column.whole:
            sizes = inside.sum(axis=1)[: len(bins) - column.missing]
            assert (sizes[:-1] == sizes[0]).all()
            assert 0 < sizes[-1] <= sizes[0]
    for each in bins:  # the text says the same as the condition
        if all(letter.isprintable() for letter in each.text):
            query = parse(f"fraction({each.text})")
            assert isinstance(query, Query)
            same = reader.condition(query.arguments[0])
            assert (same.holds({"x": values}) == reader.condition(each.condition).holds({"x": values})).all()


def test_a_cell_that_the_group_excludes_is_empty():
    found = tabulated("histogram(a | a >= 0)")
    assert [cell.high for _, cell in found.rows[:2]] == [0.0, 0.0]
    assert all(cell.high > 0 for _, cell in found.rows[2:])


def test_labels_of_bins_are_what_people_read():
    def labels(query):
        return [labels[0] for labels, _ in tabulated(query).rows]

    assert labels("histogram(a)") == ["-2", "-1", "0", "1", "2", "3"]
    assert labels("histogram(a, 4)") == ["-2 to -1", "0 to 1", "2 to 3"]
    assert labels("histogram(b, 2)") == ["0 to 2", "3 to 4", None]
    assert labels("histogram(n, 4)") == ["-0.5 to below 0", "0 to below 0.5", "0.5 to below 1", "1 to 1.5"]
    assert labels("histogram(e, 2)") == ["2020-01-02 to 2020-01-03", "2020-01-04 to 2020-01-05"]
    assert labels("histogram(o, 2)") == ["low to middle", "high", None]
    assert labels("table(t)") == ["false", "true", None]
    assert labels("table(c)") == ["x", "y", "z", "other", None]


def test_bands_are_the_bins_of_a_column_unless_their_number_is_given():
    schema = Schema.parse(
        """
[[column]]
name = "age"
kind = "integer"
low = 0
high = 99
bands = [18, 25, 65]

[[column]]
name = "income"
kind = "number"
low = 0
high = 1000
step = 0.5
bands = [0.5, 100]
missing = true

[[column]]
name = "since"
kind = "date"
low = 2020-01-01
high = 2020-12-31
bands = [2020-07-01]

[[column]]
name = "grade"
kind = "ordinal"
values = ["a", "b", "c", "d"]
bands = ["c"]

[[column]]
name = "price"
kind = "integer"
low = 0
high = 1000
step = 100
"""
    )
    basis = small(schema)
    for query, expected in {
        "histogram(age)": ["0 to 17", "18 to 24", "25 to 64", "65 to 99"],
        "histogram(age, 2)": ["0 to 49", "50 to 99"],
        "histogram(income)": ["0 to below 0.5", "0.5 to below 100", "100 to 1000", None],
        "histogram(since)": ["2020-01-01 to 2020-06-30", "2020-07-01 to 2020-12-31"],
        "histogram(grade)": ["a to b", "c to d"],
        "histogram(price, 4)": ["0 to 200", "300 to 500", "600 to 800", "900 to 1000"],
        "histogram(price)": ["0 to 100", "200 to 300", "400 to 500", "600 to 700", "800 to 900", "1000"],
    }.items():
        found = tabulated(query, basis)
        assert [labels[0] for labels, _ in found.rows] == expected
        assert sum(cell.estimate for _, cell in found.rows) == pytest.approx(1)
    assert len(tabulated("table(age, since)", basis)) == 8


@pytest.mark.parametrize("seed", range(6))
def test_no_table_within_the_bound_has_another_share_in_a_cell(seed):
    world = World("a", "c")
    rng = np.random.default_rng(seed)
    counts, bound = some_rows(rng, world.size), 0.03
    for (a, c), cell in tabulated("table(a, c, 3)", world.basis(counts, bound)).rows:
        low, high = (int(x) for x in a.split(" to "))
        inside = world.of(lambda row, low=low, high=high, c=c: low <= row["a"] <= high and row["c"] == c).astype(float)
        assert world.largest(inside, counts, bound) <= cell.high + 1e-7
        assert -world.largest(-inside, counts, bound) >= cell.low - 1e-7


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("table()", "at character 7: table takes one or more columns, like table(region, employed)."),
        ("table(c,)", "table takes one or more columns"),
        ("table(c, t, a)", "'a', 'c', 't' are 3 columns, and this release certifies statistics of at most 2"),
        ("table(c, c)", "at character 10: 'c' is named twice; name each column once."),
        ("table(a > 1)", "at character 7: this must be a column, and nothing else."),
        ("table(3)", "at character 7: this must be a column, and nothing else."),
        ("table(c, 3)", "at character 10: labels are not put into bins; leave out their number."),
        ("table(zz)", "at character 7: no column is called 'zz'; there are 'a'"),
        ("tabel(c)", "'tabel' is not a statistic; did you mean 'table'?"),
        ("histogram()", "histogram takes a column and optionally a number of bins, like histogram(age, 10)."),
        ("histogram(a, b)", "at character 14: a number of bins must follow, like histogram(age, 10); for several "
         "columns ask for table(…)."),
        ("histogram(a, 0)", "at character 14: the number of bins is a whole number from 1 to 2,000, like histogram("),
        ("histogram(a, 2.5)", "the number of bins is a whole number"),
        ("histogram(a, 1e9)", "the number of bins is a whole number"),
        ("histogram(a, -3)", "the number of bins is a whole number"),
        ("histogram(a, '3')", "the number of bins is a whole number"),
        ("table(a, c, 0)", "like table(age, region, 10)."),
        ("histogram(a, 3, 4)", "histogram takes a column and optionally a number of bins"),
        ("histogram(a | )", "a condition must follow"),
        ("histogram(a | a > 99)", "no synthetic row satisfies the condition"),
        ("histogram(a) - 1", "histogram has many cells, which cannot be subtracted"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_remedy(query, complaint):
    with pytest.raises(InputError) as caught:
        answer(SMALL, query)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_with_too_many_cells_is_refused_with_its_remedy():
    labels = ", ".join(f'"{i}"' for i in range(1500))
    schema = Schema.parse(
        f'[[column]]\nname = "c"\nkind = "category"\nvalues = [{labels}]\n[[column]]\nname = "t"\nkind = "boolean"\n'
        '[[column]]\nname = "i"\nkind = "integer"\nlow = 0\nhigh = 9\n'
    )
    basis = small(schema)
    with pytest.raises(InputError, match=r"this table has 3,000 cells, and at most 2,000 are answered at once; leave "):
        answer(basis, "table(c, t)")
    with pytest.raises(InputError, match=r"say how many bins there are at most, like histogram\(age, 10\) or table"):
        answer(basis, "table(c, i)")
    assert len(tabulated("table(c)", basis)) == 1500 <= MAX_CELLS


def test_a_table_is_shown_as_text_as_html_and_as_json():
    found = tabulated("table(c, t | t or not t or t is missing)")
    lines = str(found).splitlines()
    assert lines[0].startswith("table(c, t | t or not t or t is missing): with confidence 95 %, every true share lies")
    assert lines[1].split() == ["c", "t", "share", "low", "high"]
    assert len(lines) == 2 + len(found)
    assert "missing" in lines[-1]
    assert found._repr_html_().count("<tr>") == 1 + len(found)
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert set(plain) == {"query", "columns", "cells", "confidence", "unit", "how", "bound", "alone"}
    assert plain["columns"] == ["c", "t"]
    assert set(plain["cells"][0]) == {"labels", "estimate", "low", "high", "says_nothing"}
    assert plain["cells"][-1]["labels"] == [None, None]


def test_a_table_becomes_a_frame():
    found = tabulated("table(c, u)")
    frame = pl.DataFrame(found.to_dict())
    assert frame.columns == ["c", "u", "share", "low", "high"]
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["c"].null_count() == 2


def test_names_and_labels_cannot_break_a_table():
    schema = Schema.parse(
        '[[column]]\nname = "low"\nkind = "category"\nvalues = ["a\\u202eb", "it\'s", "<b>", "' + "x" * 300 + '"]\n'
        '[[column]]\nname = "where"\nkind = "integer"\nlow = 0\nhigh = 3\n'
    )
    basis = small(schema)
    found = tabulated("table(low, `where`, 2)", basis)
    assert "\u202e" not in str(found) + found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert max(map(len, str(found).splitlines()[1:])) < 120
    assert list(found.to_dict()) == ["low_", "where", "share", "low", "high"]
    for _, cell in found.rows:
        if cell.query.isprintable():
            assert answer(basis, cell.query).high == cell.high


def test_cells_about_which_nothing_is_known_are_dashes():
    basis = small(bound=2.0)
    found = tabulated("table(u)", basis)
    assert all(cell.says_nothing for _, cell in found.rows)
    lines = str(found).splitlines()
    assert lines[2].split()[-2:] == ["–", "–"]
    assert (
        "The certificate says nothing about 2 cells: its bound for this column is 1, the largest possible" in lines[0]
    )
    assert found.to_json()["cells"][0]["says_nothing"].startswith("its bound")
