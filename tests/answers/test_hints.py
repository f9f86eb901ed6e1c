"""Hints: a column whose name is read as something else, a label without quotes, a misspelt name."""

from __future__ import annotations

import pytest

from answering import small
from certsynth.answers import answer
from certsynth.domain import Category, Ordered, Schema
from certsynth.errors import InputError

NAMES = (
    Ordered("hours-per-week", low=0, high=9),
    Category("marital status", values=("single", "Never-married")),
    Category("income>50K", kind="boolean", values=("false", "true")),
    Ordered("rate.2019", low=0, high=9, missing=True),
    Ordered("hours", low=0, high=9),
    Ordered("a+b", low=0, high=3),
    Ordered("2nd", low=0, high=3),
    Ordered("it's `x`", low=0, high=3),
)
BASIS = small(Schema(columns=NAMES))


def complaint(query: str) -> str:
    with pytest.raises(InputError) as caught:
        answer(BASIS, query)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{' '.join(query.split())}: ")


@pytest.mark.parametrize(
    ("query", "problem", "fixed"),
    [
        ("mean(hours-per-week)", "'hours-per-week' is read as a difference", "mean(`hours-per-week`)"),
        ("mean( Hours - Per - Week )", "'hours-per-week' is read as a difference", "mean( `hours-per-week` )"),
        ("median(hours-per-week | hours >= 0)", "is read as a difference", "median(`hours-per-week` | hours >= 0)"),
        ("mean(a+b)", "'a+b' is read as a sum", "mean(`a+b`)"),
        ("fraction(income>50K)", "'income>50K' is read as a comparison", "fraction(`income>50K`)"),
        ("fraction(income > 50K = true)", "is read as a comparison", "fraction(`income>50K` = true)"),
        ("mean(rate.2019)", "'rate.2019' is not a single word", "mean(`rate.2019`)"),
        ("mean(2nd)", "'2nd' is not a single word", "mean(`2nd`)"),
        ("mean(hours) by marital status", "'marital status' is not a single word", "mean(hours) by `marital status`"),
        ("mean(hours-per-week) by income>50K", "is read as a difference", "mean(`hours-per-week`) by `income>50K`"),
        ("fraction(marital status = 'hours-per-week')", "is not a single word",
         "fraction(`marital status` = 'hours-per-week')"),
    ],
)  # fmt: skip
def test_a_column_that_needs_backquotes_is_written_out(query, problem, fixed):
    said = complaint(query)
    assert problem in said
    assert said.endswith(f"; write {fixed}.")
    if "'hours-per-week')" not in fixed:  # that is not a label
        answer(BASIS, fixed)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("mean(hours_per_week)", "no column is called 'hours_per_week'; did you mean `hours-per-week`?"),
        ("mean(hours-per-wek)", "no column is called 'hours-per-wek'; did you mean mean(`hours-per-week`)?"),
        ("mean(hours per week)", "no column is called 'hours per week'; did you mean mean(`hours-per-week`)?"),
        ("mean(hurs)", "no column is called 'hurs'; did you mean 'hours'?"),
        ("fraction(`marital status` = single)", "no column is called 'single', which is a label of 'marital status'; "
         "write labels in quotes, like 'single'."),
        ("fraction(`marital status` = 'singel')", "which has 'single', 'Never-married'. Did you mean 'single'?"),
        ("avg(hours)", "'avg' is not a statistic; did you mean 'mean'?"),
        ("std(hours)", "'std' is not a statistic; did you mean 'sd'?"),
        ("medain(hours)", "'medain' is not a statistic; did you mean 'median'?"),
        ("fraction(hours > 3 and zz = 1)", "no column is called 'zz'; there are"),
        ("fraction(\"income>50K\" = 1)", "in quotes this is a text, not the column; write `income>50K`."),
        ("fraction(3 <= 'hours')", "in quotes this is a text, not the column; write `hours`."),
        ("fraction('Tom' = 1)", "both sides are constants; name a column."),
        ("mean(hours - hours)", "a constant needs no answer; name a column."),
    ],
)  # fmt: skip
def test_a_misspelt_name_has_a_suggestion(query, said):
    assert said in complaint(query)


def test_what_is_in_quotes_stays_as_it_is():
    assert answer(BASIS, "mean(`it's ``x```)").unit == "it's `x`"
    assert "is read as" not in complaint("fraction(`marital status` = 'income>50K')")


def test_an_expression_of_known_columns_is_no_mistake():
    columns = (Ordered("a", low=0, high=3), Ordered("b", low=0, high=3), Ordered("a-b", low=0, high=3))
    assert answer(small(Schema(columns=columns)), "mean(a-b)").unit == "number"
