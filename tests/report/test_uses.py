"""What a release can be used for: margins are those of answers, and verdicts follow the rules on the page."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from report_specimens import EVERY_KIND, WOVEN, document, record, table, view

from certsynth.answers import Answer, Basis, TableAnswer, answer_or_reason
from certsynth.answers.queries import written_name
from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.naming import Naming
from certsynth.report import use_words
from certsynth.report.uses import GOOD_MARGIN, ROUGH_MARGIN, Example, verdict

MARGIN = re.compile(r"± ([\d,.]+)")


def kinds(schema: Schema = EVERY_KIND, **choices: Any) -> dict[str, dict[str, Any]]:
    found = view(document(schema, **choices), schema, table(schema))["uses"]["kinds"]
    return {kind["what"]: kind for kind in found}


def basis(schema: Schema, **choices: Any) -> Basis:
    rows = table(schema)
    clean = {column.name: column.encode(rows[column.name]) for column in schema}
    return Basis.read(schema, rows, clean, record(document(schema, **choices)))


def margin_of(found: Any) -> Fraction:
    assert isinstance(found, Answer)
    low, estimate, high = (Fraction(repr(float(x))) for x in (found.low, found.estimate, found.high))  # type: ignore[arg-type]
    return max(high - estimate, estimate - low)


def shown_margins(text: str) -> list[Fraction]:
    return [Fraction(number.replace(",", "")) for number in MARGIN.findall(text)]


@pytest.mark.parametrize("choices", [{}, {"direct": None}, {"direct": 0.3, "single": 0.2}])
def test_margins_of_numbers_are_those_of_answers_rounded_up(choices: dict[str, Any]) -> None:
    asked, found = basis(EVERY_KIND, **choices), kinds(**choices)
    compared = 0
    for key, statistic in (("mean", "mean"), ("median", "median"), ("sd", "sd")):
        for text in found[use_words.KINDS[key]]["examples"]:
            name = text.split(" ± ")[0].removesuffix(": nothing")
            if name == "moved in":
                continue
            answer = answer_or_reason(asked, f"{statistic}({name})")
            if text.endswith(": nothing"):
                assert isinstance(answer, Answer)
                assert answer.says_nothing
                continue
            exact, (shown,) = margin_of(answer), shown_margins(text)
            assert exact <= shown <= exact * Fraction(11, 10)
            compared += 1
    assert compared >= 3


def test_margins_of_two_columns_are_those_of_answers() -> None:
    asked, found = basis(EVERY_KIND), kinds()
    queries = {
        "cell": "table(region, owner)",
        "mean_in_group": "mean(age) by region",
    }
    for key, query in queries.items():
        answer = answer_or_reason(asked, query)
        assert isinstance(answer, TableAnswer)
        margins = [margin_of(cell) * (100 if key == "cell" else 1) for _, cell in answer.rows]
        (text,) = found[use_words.KINDS[key]]["examples"]
        low, high = shown_margins(text)[0], shown_margins(text)[-1]
        assert min(margins) <= low <= min(margins) * Fraction(11, 10)
        assert max(margins) <= high <= max(margins) * Fraction(11, 10)


def test_shares_of_labels_cover_those_of_answers() -> None:
    for schema in (EVERY_KIND, WOVEN):
        asked = basis(schema)
        examples = kinds(schema)[use_words.KINDS["label"]]["examples"]
        for text in examples:
            name = text.split(" ± ")[0].removesuffix(": nothing")
            column = asked.columns[name]
            labels = column.labels if isinstance(column, Category) else column.values  # type: ignore[attr-defined]
            label = labels[0] if getattr(column, "kind", "") == "boolean" else f"'{labels[0]}'"
            exact = margin_of(answer_or_reason(asked, f"fraction({written_name(name)} = {label})"))
            assert not shown_margins(text) or 100 * exact <= shown_margins(text)[0], text


def test_verdicts_follow_the_rules_on_the_page() -> None:
    rules = dict(use_words.RULES)
    assert f"{GOOD_MARGIN}" in rules["good"]
    assert f"{ROUGH_MARGIN}" in rules["rough"]
    assert f"({100 * GOOD_MARGIN / 2:.1f} points" in rules["good"]
    assert f"({100 * ROUGH_MARGIN / 2:.0f} points" in rules["rough"]
    for rows, margin in ((1_000, GOOD_MARGIN), (100, ROUGH_MARGIN)):  # a survey's margin, about
        assert abs(1.96 / rows**0.5 / margin - 1) < 0.03
    assert [verdict(x, 10.0) for x in (0.62, 0.63, 2.0, 2.1, float("inf"))] == [
        "good",
        "rough",
        "rough",
        "poor",
        "nothing",
    ]
    assert verdict(0.0, 0.0) == "good"


def test_small_bounds_are_good_and_a_bound_of_1_says_nothing() -> None:
    precise = document(EVERY_KIND, direct=1e-4, single=1e-4)
    precise["certificate"]["statistics"] = dict.fromkeys(precise["certificate"]["statistics"], 1e-4)
    found = view(precise, EVERY_KIND, table(EVERY_KIND))["uses"]["kinds"]
    of_one = {use_words.KINDS[key] for key in ("label", "range", "mean", "sd", "cell")}
    assert {kind["verdict"] for kind in found if kind["what"] in of_one} == {"good"}
    vacuous = document(EVERY_KIND)
    vacuous["certificate"] |= {"bound": 1.0, "single_column_bound": 1.0}
    vacuous["certificate"]["statistics"] = dict.fromkeys(vacuous["certificate"]["statistics"], 1.0)
    for subset in vacuous["certificate"]["subsets"]:
        subset["bound"] = 1.0
    found = view(vacuous, EVERY_KIND, table(EVERY_KIND))["uses"]["kinds"]
    assert {kind["worst"] for kind in found} == {"nothing"}
    assert {kind["verdict"] for kind in found if kind["what"] != use_words.KINDS["range"]} == {"nothing"}


def test_what_no_certificate_covers_is_listed_last() -> None:
    found = list(kinds().values())
    assert [kind["verdict"] for kind in found[-2:]] == ["nothing", "nothing"]
    assert "more than 2 columns" in found[-2]["what"]
    alone = list(kinds(sparsity=1))
    assert "any statistic of more than one column at once" in alone
    assert use_words.KINDS["cell"] not in alone
    named = kinds(subsets=[["age", "income"]])
    assert use_words.KINDS["label"] not in named  # neither column has labels
    assert "any statistic of columns that are not together in a named subset" in named
    assert named[use_words.KINDS["correlation"]]["examples"][0].startswith("age and income ±")


def test_odd_names_and_numbers_have_margins() -> None:
    odd = 'it\'s a `name` \\ "here"'
    schema = Schema(
        columns=(
            Ordered(name=odd, kind="number", low=-1e300, high=1e300),
            Ordered(name="tiny", kind="number", low=0.0, high=1e-9, naming=Naming("a title", "metres")),
            Category(name=odd + "2", values=("it's", 'a "b"')),
            Category(name="c", values=("x'y", "z")),
        )
    )
    found = kinds(schema)
    assert all(each[:5] == odd[:5] or "nothing" not in each for kind in found.values() for each in kind["examples"])
    (_, tiny) = found[use_words.KINDS["mean"]]["examples"]
    assert tiny.startswith("a title ±")
    assert tiny.endswith(" metres")


def test_a_constant_column_is_compared_with_nothing() -> None:
    schema = Schema(columns=(Ordered(name="x", kind="integer", low=0, high=9), Category(name="c", values=("a", "b"))))
    rows = {"x": np.ma.masked_array(np.full(400, 3)), "c": np.ma.masked_array(np.array(["a"] * 400, dtype=object))}
    found = {kind["what"]: kind for kind in view(document(schema), schema, rows)["uses"]["kinds"]}
    assert found[use_words.KINDS["mean"]]["verdict"] == "poor"


def test_an_example_names_its_smallest_and_largest_margin() -> None:
    assert Example("a", (0.01, 0.0101), 1.0, "points").text == "a ± 1.0 to ± 1.1 points"
    assert Example("a", (0.01, 0.0099), 1.0, "points").text == "a ± 0.99 to ± 1.0 points"
    assert Example("a", (float("inf"),), 1.0).text == "a: nothing"
