"""The headline states margins in the columns' own units, and none is smaller than what `answer` certifies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.report.report_specimens import EVERY_KIND, WOVEN, document, record, table
from tests.report.test_numerals import read

from certsynth.answers import Answer, Basis, answer
from certsynth.answers.queries import written_name
from certsynth.domain import Category, Ordered, Schema
from certsynth.record.record import StatisticsRecord
from certsynth.report import headline, numerals
from certsynth.report.headline import Headline, Statement

Json = dict[str, Any]


def headline_of(schema: Schema, stated: Json) -> Headline:
    return headline.certified(record(stated), schema, table(schema))


def basis_of(schema: Schema, stated: Json) -> Basis:
    rows = table(schema)
    clean = {column.name: column.encode(np.ma.asarray(rows[column.name])) for column in schema}
    return Basis.read(schema, rows, clean, record(stated))


def margin_of(basis: Basis, query: str) -> float:
    """The longer distance from the estimate to an end of the certified interval."""
    found = answer(basis, query)
    assert isinstance(found, Answer)
    return max(float(found.high) - float(found.estimate), float(found.estimate) - float(found.low))  # type: ignore[arg-type]


def sets_of_one_column(schema: Schema, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Columns, each with the condition of a set of it whose share is certified: labels, or a range of values."""
    for column in schema:
        name = written_name(column.name)
        if isinstance(column, Category) and column.kind != "boolean":
            labels = rng.permutation(list(column.values))[: rng.integers(1, 4)]
            yield column.name, f"{name} in [{', '.join(repr(str(label)) for label in labels)}]"
        elif isinstance(column, Ordered) and column.kind == "integer":
            low, high = sorted(rng.integers(column.low, column.high, 2))
            yield column.name, f"{low} <= {name} <= {high}"


def test_the_headline_reads_as_a_sentence_in_the_columns_own_units() -> None:
    assert headline_of(EVERY_KIND, document(EVERY_KIND)).sentence() == (
        "Shares within ± 1.3 points (two columns ± 2.0), mean age within ± 0.54, mean income within ± 1,200; "
        "95% confidence; ε = 1, one row protected."
    )


def test_delta_and_the_protected_unit_are_named() -> None:
    persons = EVERY_KIND.with_persons(person="id", rows_per_person=3)
    sentence = headline_of(persons, document(persons, concentrated=True)).sentence()
    assert sentence.endswith("; 95% confidence; ε = 1, δ = 0.000001, one person protected.")


def test_means_have_the_margins_that_answers_have() -> None:
    for direct in (0.024989011, None):
        stated = document(EVERY_KIND, direct=direct)
        basis = basis_of(EVERY_KIND, stated)
        means = headline_of(EVERY_KIND, stated).means
        assert [each.what for each in means] == ["mean age", "mean income"]
        for each, name in zip(means, ("age", "income"), strict=True):
            assert each.off == pytest.approx(margin_of(basis, f"mean({name})"))
            assert float(read(each.margin)) >= margin_of(basis, f"mean({name})")


@pytest.mark.parametrize("direct", [0.024989011, None], ids=["shares certified", "plug-in only"])
@pytest.mark.parametrize("schema", [EVERY_KIND, WOVEN], ids=["every kind", "distances between labels"])
def test_no_share_of_one_or_two_columns_has_a_larger_margin_than_the_headline(
    schema: Schema, direct: float | None
) -> None:
    stated, rng = document(schema, direct=direct), np.random.default_rng(3)
    basis, found = basis_of(schema, stated), headline_of(schema, stated)
    kinds = {column.name: column for column in schema}
    for _ in range(4):
        sets = list(sets_of_one_column(schema, rng))
        if direct is None:  # the distance alone bounds shares of labels, not of ranges
            sets = [(name, text) for name, text in sets if isinstance(kinds[name], Category)]
        for _, condition in sets if found.shares else ():
            assert margin_of(basis, f"fraction({condition})") <= float(read(found.shares[0].margin)) / 100
        for (a, first), (b, second) in itertools.combinations(sets, 2) if len(found.shares) > 1 else ():
            if direct and isinstance(kinds[a], Category) and isinstance(kinds[b], Category):
                continue  # certified if one set is a single label, as is tested below
            assert margin_of(basis, f"fraction({first} and {second})") <= float(read(found.shares[1].margin)) / 100


def test_shares_of_a_label_by_a_label_have_no_larger_margin_than_the_headline() -> None:
    stated = document(EVERY_KIND)
    basis, (_, two) = basis_of(EVERY_KIND, stated), headline_of(EVERY_KIND, stated).shares
    for region, job in itertools.product(("north", "south"), ("job 0", "job 7")):
        assert margin_of(basis, f"fraction(region = '{region}' and job = '{job}')") <= float(read(two.margin)) / 100


def test_without_certified_shares_only_those_of_labels_are_stated() -> None:
    shares = headline_of(EVERY_KIND, document(EVERY_KIND, direct=None)).shares
    assert [each.what for each in shares] == ["shares of labels", "shares of labels of two columns"]
    only_numbers = Schema(columns=(EVERY_KIND.columns[0],))
    assert not headline_of(only_numbers, document(only_numbers, sparsity=1, direct=None)).shares


def test_what_says_nothing_is_left_out() -> None:
    stated = document(EVERY_KIND)
    certificate = stated["certificate"]
    certificate |= {"bound": 1.0, "single_column_bound": 1.0}
    certificate["statistics"] = dict.fromkeys(certificate["statistics"], 1.0)
    for subset in certificate["subsets"]:
        subset["bound"] = 1.0
    found = headline_of(EVERY_KIND, stated)
    assert not found.statements
    assert found.sentence().startswith("No share of rows and no mean has a bound that says anything; ε = 1")


def test_at_most_three_means_are_stated_in_the_order_of_the_schema() -> None:
    schema = Schema(columns=tuple(Ordered(name=f"n{i}", kind="integer", low=0, high=9) for i in range(5)))
    assert [each.what for each in headline_of(schema, document(schema)).means] == ["mean n0", "mean n1", "mean n2"]


def test_a_release_without_rows_has_no_means() -> None:
    empty = {name: values[:0] for name, values in table(EVERY_KIND).items()}
    assert not headline.certified(record(document(EVERY_KIND)), EVERY_KIND, empty).means


def test_a_prediction_states_the_predicted_bounds_in_the_columns_own_units() -> None:
    bounds = StatisticsRecord(0.02, 0.03, None, 0.01)
    found = headline.expected(EVERY_KIND, 0.05, bounds, confidence=0.95, epsilon="1")
    assert (
        found.margins
        == "shares within ± 2.0 points (two columns ± 3.0), mean age within ± 0.82, mean income within ± 1,500"
    )
    by_distance = headline.expected(EVERY_KIND, 0.05, None, confidence=0.95, epsilon="1")
    assert (
        by_distance.margins == "shares of labels within ± 5.0 points, mean age within ± 4.1, mean income within ± 7,500"
    )
    assert not headline.expected(EVERY_KIND, 1.0, None, confidence=0.95, epsilon="1").statements


def test_names_cannot_reorder_the_text() -> None:
    schema = Schema(columns=(Ordered(name="a\u202eb", kind="integer", low=0, high=9),))
    (mean,) = headline_of(schema, document(schema, sparsity=1)).means
    assert mean.what == "mean a\ufffdb"
    assert Statement("x", 0.5, numerals.margin(0.5)).text == "x within ± 0.50"
