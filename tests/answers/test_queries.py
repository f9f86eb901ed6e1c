"""Queries as text: what is read, what is refused and in which words; and nothing that a text can do to us."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answering import SMALL, TINY, World, small
from certsynth import Schema
from certsynth.answers import Answer, Basis, TableAnswer, Unanswered, answer, answer_function
from certsynth.answers.queries import FORMS, parse
from certsynth.domain import expression
from certsynth.errors import CertsynthError, InputError
from certsynth.record.record import SubsetRecord

PAIR = World("a", "b")


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("", "a query is a statistic and its arguments, like mean(age); the statistics are mean, sum, variance"),
        ("meen(a)", "at character 1: 'meen' is not a statistic; did you mean 'mean'?"),
        ("mean a", "a query is a statistic and its arguments"),
        ("mean(a", "at character 7: ')' is missing: a query ends with its closing bracket."),
        ("mean(a))", "at character 8: a query ends with its closing bracket, or with groups, like mean(income) by sex"),
        ("mean()", "at character 6: mean takes a column, like mean(age)."),
        ("mean(a, b)", "mean takes a column, like mean(age)."),
        ("covariance(a)", "covariance takes a column and a column, like covariance(age, income)."),
        ("mean(joob)", "at character 6: no column is called 'joob'; did you mean 'job'? There are 'a', 'b', 'c', 't'"),
        ("mean(A)", "no column is called 'A'; did you mean 'a'?"),
        ("fraction(xyzzy > 3)", "at character 10: no column is called 'xyzzy'; there are 'a'"),
        ("mean(c)", "'c' has labels; ask for fraction(c = …)."),
        ("mean(o)", "'o' has labels; ask for quantile(o, 0.5) or fraction(o = …)."),
        ("variance(o)", "'o' has labels; ask for fraction(o = …)."),
        ("sum(c)", "'c' has labels; ask for count(c = …)."),
        ("sum(d)", "dates have no sum; ask for the mean."),
        ("cdf(c, 'x')", "'c' has no order; ask for fraction(c = …)."),
        ("cdf(d, 3)", "a number is compared with a date; write a date as a text, like '2024-12-31'."),
        ("cdf(a, 'x')", "a text is compared with a number; write the number without quotes."),
        ("quantile(a, 1)", "at character 13: a share between 0 and 1 must follow, like quantile(age, 0.9)."),
        ("quantile(a, b)", "a share between 0 and 1 must follow"),
        ("median(c)", "'c' has no order; ask for fraction(c = …)."),
        ("variance(a + b)", "this must be a column, and nothing else."),
        ("covariance(a, a)", "the same column twice; ask for its variance."),
        ("mean(3)", "a constant needs no answer; name a column."),
        ("mean('x')", "a constant needs no answer; name a column."),
        ("mean(a > 3)", "expected a value, found a condition"),
        ("mean(a - a)", "a constant needs no answer; name a column."),
        ("mean(a*b)", "columns cannot be multiplied with each other"),
        ("cdf(s, 3)", "a number is compared with a time; write a time as a text, like '2024-12-31 18:30:00'."),
        ("mean(-s)", "the negative of a time, or a sum with one, has no mean; time - time does."),
        ("mean(s - d)", "a sum holds dates or times, not both; make the columns of one kind."),
        ("cdf(d, '2020-01-02 10:00')", "a date is compared with something else; write a date as a text"),
        ("cdf(s, '2020-01-02 10:00Z')", "a time is compared with something else; write a time as a text"),
        ("sum(a + b)", "a sum over several columns needs columns without missing values; ask for the sum of each "
         "column, or for the mean, which is over rows with values in all of them."),
        ("mean(-d)", "the negative of a date, or a sum with one, has no mean; date - date does."),
        ("fraction(a)", "this is a value, not a condition; compare it with something, like x >= 0."),
        ("fraction(a > 1 | )", "a condition must follow, like mean(income | age > 65)."),
        ("count(a > 1 | b > 1)", "count does not support groups; mean, variance, sd, "
         "covariance, correlation, fraction, quantile, median do, like mean(income | age > 65)."),
        ("fraction(a > 1 and b > 1 and c = 'x')", "'a', 'b', 'c' are 3 columns, and this release certifies statistics "
         "of at most 2; ask about fewer at once, or release with a larger `sparsity`."),
        ("mean(a | a > 99)", "no synthetic row satisfies the condition, so nothing can be said about the rows that do; "
         "ask for fraction(…) of it to see how rare they may be."),
        ("fraction(t = maybe)", "no column is called 'maybe'"),
        ("fraction(c = 'nowhere')", "'nowhere' is not a label of 'c', which has 'x', 'y', 'z', 'other'."),
        ("fraction(a / 2 > 1)", "'/' is not an operator here; write sums and multiples"),
        ("mean(`a)", "at character 6: the quote ` is never closed; close it where the text ends"),
        ("mean(a | b > 1 | c = 'x')", "'|' has no meaning here"),
        ("__import__('os')", "'__import__' is not a statistic"),
        ("x" * 2000, "longer than 1,000 characters; shorten the query."),
        (7, "a query is a text such as"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_remedy(query, complaint):
    with pytest.raises(InputError) as caught:
        answer(SMALL, query)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_workload_covers_what_it_names():
    basis = small(subsets=[("a", "b"), ("c",)], named=True)
    assert answer(basis, "covariance(a, b)").bound == pytest.approx(0.05)
    assert answer(basis, "fraction(c = 'x')").bound == pytest.approx(0.025)
    with pytest.raises(InputError) as caught:
        answer(basis, "fraction(a > 1 and c = 'x')")
    assert str(caught.value) == (
        "fraction(a > 1 and c = 'x'): no subset of the release's workload holds 'a', 'c' together, so nothing is "
        "certified about them; release with a workload that names them."
    )


def test_the_smallest_subset_that_holds_the_columns_decides():
    basis = small(subsets=[("a", "b")])
    more = (*basis.certificate.subsets, SubsetRecord(("a", "b", "c"), 0.01))
    basis = replace(basis, certificate=replace(basis.certificate, subsets=more))
    assert answer(basis, "covariance(a, b)").bound == pytest.approx(0.01)
    assert answer(basis, "mean(a)").bound == pytest.approx(0.01)


@pytest.mark.parametrize("query", ["count(a > 1)", "sum(a)"])
def test_what_needs_the_number_of_rows_is_refused_where_it_is_hidden(query):
    assert answer(SMALL, query).estimate is not None
    with pytest.raises(InputError, match="the number of private rows is hidden, so there is no"):
        answer(small(rows=None), query)


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ("mean(a | b > 1)", "mean(a where b > 1)"),
        ("mean(`a`)", "  MEAN ( a ) "),
        ("fraction(a > 1)", "fraction((((a > 1))))"),
        ("cdf(a, 1)", "fraction(a <= 1)"),
        ("median(a)", "quantile(a, 0.5)"),
        ("fraction(t)", "fraction(t = true)"),
        ("fraction(c in ['x', 'y'])", "fraction(c = 'x' or c = 'y')"),
        ("fraction(not (b > 1))", "fraction(b <= 1)"),
        ("fraction(a between 0 and 2)", "fraction(0 <= a <= 2)"),
    ],
)
def test_two_ways_to_say_the_same(same, other):
    first, second = answer(SMALL, same), answer(SMALL, other)
    assert (first.estimate, first.low, first.high) == pytest.approx((second.estimate, second.low, second.high))


def test_texts_with_brackets_commas_and_bars_in_quotes_are_one_argument():
    schema = Schema.parse(
        '[[column]]\nname = "a, (b) | where"\nkind = "category"\nvalues = ["x), \'|\'", "y"]\n'
        '[[column]]\nname = "where"\nkind = "integer"\nlow = 0\nhigh = 3\n'
    )
    basis = small(schema)
    assert answer(basis, """fraction(`a, (b) | where` = "x), '|'")""").unit == "share"
    assert answer(basis, """fraction(`a, (b) | where` = 'x), ''|''')""").unit == "share"
    assert answer(basis, "mean(`where`)").unit == "where"
    with pytest.raises(InputError, match=r"ask for fraction\(`a, \(b\) \| where` = …\)"):
        answer(basis, "mean(`a, (b) | where`)")


def test_answers_know_their_units():
    date = answer(SMALL, "mean(e)")
    assert isinstance(date.estimate, datetime.date)
    assert date.unit == "date"
    assert date.to_json()["low"] == date.low.isoformat()
    time = answer(SMALL, "mean(s)")
    assert isinstance(time.estimate, datetime.datetime)
    assert time.unit == "datetime"
    assert time.to_json()["low"] == time.shown()[1] == time.low.strftime("%Y-%m-%d %H:%M:%S")
    assert answer(SMALL, "variance(w)").unit == "seconds²"
    assert answer(SMALL, "mean(w - '2020-01-01')").unit == "seconds"
    assert answer(SMALL, "median(p)").estimate in ("low", "middle", "high")
    assert answer(SMALL, "variance(e)").unit == "days²"
    assert answer(SMALL, "sd(e)").unit == "days"
    assert answer(SMALL, "covariance(a, e)").unit == "a × e"
    assert isinstance(answer(SMALL, "median(a)").low, int)
    assert answer(SMALL, "count(a > 0)").unit == "rows"
    assert set(answer(SMALL, "mean(a)").to_json()) >= {"query", "estimate", "low", "high", "confidence"}


def test_what_is_printed_is_rounded_outward():
    shown = Answer("q", 0.123456, 0.12005, 0.12695, 0.95, "", "share", 0.1)
    assert str(shown) == "q = 0.1235, between 0.1200 and 0.1270 with confidence 95 %"
    assert Answer("q", -0.00001, -0.5, 0.4, 0.99, "", "number", 0.1).shown() == ("-0.00", "-0.50", "0.40")
    assert Answer("q", 1e25, 1e24, 2e25, 0.99, "", "number", 0.1).shown()[0].startswith("1000000")
    assert Answer("q", 3, 2, 5, 0.99, "", "rows", 0.1).shown() == ("3", "2", "5")
    assert Answer("q", 0.5, 0.5, 0.5, 0.99, "", "number", 0.1).shown() == ("0.5000", "0.5000", "0.5000")


@given(low=st.floats(-1e9, 1e9), width=st.floats(0, 1e6), part=st.floats(0, 1))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_rounding_makes_an_interval_narrower(low, width, part):
    high = low + width
    estimate = min(max(low + part * width, low), high)
    _, down, up = Answer("q", estimate, low, high, 0.95, "", "number", 0.1).shown()
    assert Decimal(down) <= Decimal(repr(low))
    assert Decimal(up) >= Decimal(repr(high))
    if width:
        assert Decimal(up) - Decimal(down) <= Decimal(repr(high)) - Decimal(repr(low)) + Decimal(max(width, 10) * 0.2)


# ------------------------------------------------------------ anything that a text may hold

WORDS = [
    *FORMS, *TINY.names, "(", ")", ",", "|", "where", "and", "or", "not", "=", "!=", "<", "<=", ">", ">=", "+",
    "-", "*", "by",
    "[", "]", "in", "is", "missing", "between", "true", "false", "'x'", "'2020-01-03'", "'middle'", "`a`", "0",
    "1", "0.5", "-2", "1e308", "1e-300", "'", "`", '"', ".", "/", "\\", "\x00", "é", "∞", "__import__", "lambda", ";",
    "\n", "{}", "%s",
]  # fmt: skip


def asked(basis: Basis, query: str) -> tuple[Answer | TableAnswer | None, str]:
    """The answer, or what is said instead of one."""
    try:
        return answer(basis, query), ""
    except CertsynthError as error:
        return None, str(error)


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.text(max_size=60))
@settings(max_examples=1500, deadline=None, derandomize=True)
def test_whatever_is_asked_there_is_an_answer_or_one_line(text):
    check_answer_or_line(text)


def check_answer_or_line(text: str) -> None:
    found, complaint = asked(SMALL, text)
    if found is None:
        assert "\n" not in complaint
        return
    cells = [cell for _, cell in found.rows] if isinstance(found, TableAnswer) else [found]
    for cell in cells:
        if isinstance(cell, Unanswered):
            assert "\n" not in cell.error
            continue
        assert cell.low <= cell.estimate <= cell.high or isinstance(cell.estimate, str)
    assert str(found)
    json.dumps(found.to_json(), allow_nan=False)


STATISTICS = st.sampled_from(
    ["mean({})", "median({})", "sd({})", "variance({})", "quantile({}, 0.3)", "fraction({} is missing)", "cdf({}, 1)",
     "covariance({}, a)", "correlation(n, {})", "sum({})", "count({} = 1)", "table({})", "table(c, {})",
     "histogram({})", "histogram({}, 3)", "histogram({} | a > 0)", "mean({} | b > 1)", "fraction({} | a > 0)",
     "mean(a) by {}", "mean({}) by u"]
)  # fmt: skip


@given(
    st.tuples(STATISTICS, st.sampled_from(TINY.names)),
    st.sampled_from([" - ", "-", " + ", " − ", " ", "*", " - -", " - 2*"]),
    st.tuples(STATISTICS, st.sampled_from(TINY.names)),
)
@settings(max_examples=500, deadline=None, derandomize=True)
def test_two_statistics_with_anything_between_have_an_answer_or_one_line(first, sign, second):
    check_answer_or_line(first[0].format(first[1]))
    check_answer_or_line(first[0].format(first[1]) + sign + second[0].format(second[1]))


def conditions() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(
        ["a > 0", "a <= 1", "a in [0, 2]", "b >= 2", "b is missing", "b != 1", "not b = 3", "a + b > 2",
         "a - b in [0, 1]", "1e300*a > 3", "b - b = 0", "a between 0 and 1", "0.1*b <= 0.3"]
    )  # fmt: skip
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            inner.map(lambda c: f"not ({c})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        ),
        max_leaves=9,
    )


@given(
    condition=conditions(), group=conditions(), statistic=st.sampled_from(["fraction({})", "mean(b | {})", "count({})"])
)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_all_conditions_have_answers_around_their_estimate(condition, group, statistic):
    counts = np.random.default_rng(len(condition)).multinomial(30, np.full(PAIR.size, 1 / PAIR.size))
    basis = PAIR.basis(counts, 0.01)
    for query in (statistic.format(condition), f"fraction({condition} | {group})"):
        if len(query) > expression.MAX_CHARACTERS:
            continue
        found, complaint = asked(basis, query)
        if found is None:
            assert "no synthetic row satisfies" in complaint or "too large" in complaint
            continue
        assert found.low <= found.estimate <= found.high


def test_a_query_is_read_and_never_run():
    assert parse("mean(a)").arguments == (expression.Name(5, "a"),)
    with pytest.raises(InputError):
        parse("mean(open('x').read())")


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"columns": ("a",)}, "state how fast the function changes: either lipschitz=… or slopes={…}."),
        ({"columns": ("a",), "lipschitz": 1, "slopes": {"a": 1}}, "state how fast"),
        ({"columns": (), "lipschitz": 1}, 'name the columns that the function looks at: columns=("age", "income").'),
        ({"columns": "a", "lipschitz": 1}, "name the columns"),
        ({"columns": ("zz",), "lipschitz": 1}, "no column is called 'zz'; there are 'a'"),
        ({"columns": ("a", "a"), "lipschitz": 1}, "a column is named twice"),
        ({"columns": ("a",), "lipschitz": -1}, "lipschitz must be a non-negative number."),
        ({"columns": ("a",), "lipschitz": "x"}, "lipschitz must be a non-negative"),
        ({"columns": ("a",), "slopes": {"b": 1}}, "slopes must name the columns of the function"),
        ({"columns": ("b",), "slopes": {"b": 1}}, "which slopes do not cover; give bounds=(low, high)."),
        ({"columns": ("a",), "lipschitz": 1, "bounds": (1, 0)}, "bounds are two numbers, the smaller one first"),
        ({"columns": ("a",), "lipschitz": 1, "bounds": (0, 0.1)}, "outside its bounds; widen them."),
        ({"columns": ("a", "b", "c"), "lipschitz": 1}, "are 3 columns"),
    ],
)  # fmt: skip
def test_a_function_says_what_it_must(asked, complaint):
    given = {"lipschitz": None, "slopes": None, "bounds": None, "row_by_row": False} | asked
    with pytest.raises(InputError) as caught:
        answer_function(SMALL, lambda *x: np.asarray(x[0], dtype=float) + 5, **given)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("function", [lambda a: 1.0, lambda a: a[:-1], lambda a: ["x"] * 8, lambda a: a * np.nan])
def test_a_function_gives_a_number_for_each_row(function):
    with pytest.raises(InputError, match=r"one number for each row|not finite"):
        answer_function(SMALL, function, columns=("a",), lipschitz=1, slopes=None, bounds=None, row_by_row=False)
