"""Intervals for one question alone: narrower, and right as often as they say if the question chooses the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certsynth import Release, release
from certsynth.algorithm.recompute import certificate_for_one_question
from certsynth.answers import Answer, Basis, TableAnswer
from certsynth.answers.alone import NUMBERS, numbers_for_text
from certsynth.artefact.steps import ERRORS_OF_ROWS, step_on
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.errors import InputError
from certsynth.mechanisms import Neighbours
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from small import NATIVE, SeededNoise, failures_allowed, native

TABLE = native(600)
ASKED = {"epsilon": 4, "confidence": 0.8, "resolution": 4, "mechanism": "identity"}


@pytest.fixture(scope="module", params=[{}, {"neighbours": "add-remove"}, {"delta": 1e-6}], ids=str)
def made(request) -> Release:
    return release(TABLE, NATIVE, seed=1, noise=SeededNoise(1), **ASKED, **request.param)


def basis(made: Release) -> Basis:
    return Basis.read(made.schema, made.table, dict(zip(made.schema.names, made.rows, strict=True)), made.record)


def numbers(made: Release, query: str) -> set[str]:
    return set(numbers_for_text(basis(made), query))


def test_the_question_says_which_numbers_it_uses(made):
    one, two, total, moment = "share_of_one_column", "share_of_two_columns", "group_total", "moment"
    for query, wanted in {
        "fraction(a > 2)": {one},
        "cdf(a, 2)": {one},
        "histogram(a)": {one},
        "fraction(a > 2 and b > 1)": {two},
        "table(a, c)": {two},
        "fraction(a > 2 | b > 1)": {one, two},
        "fraction(c = 'x')": {"loss_of_one_column"},
        "fraction(a = b)": {"loss"},
        "median(a)": {one, "loss_of_one_column"},
        "median(a | b > 1)": {one, two, "loss"},
        "mean(a)": {"loss_of_one_column", moment},
        "mean(a - b)": {one, two, total, "loss"},
        "mean(a) by c": {"loss_of_one_column", two, total, "loss"},
        "mean(b)": {"loss_of_one_column", moment, one},
        "mean(a | b > 1)": {one, two, total, "loss"},
        "fraction(b is missing)": {"loss_of_one_column"},
        "mean(a | a > 1)": {one, "loss_of_one_column"},
        "mean(a | c = 'x')": {"loss_of_one_column", two, total, "loss"},
        "fraction(a > 2 | c = 'x')": {"loss_of_one_column", two},
        "variance(a)": {moment, one, "loss_of_one_column"},
        "sd(a | b > 1)": set(NUMBERS),
        "covariance(a, b)": {moment, one, two, "loss", "loss_of_one_column"},
        "fraction(a > 2) - fraction(a > 3)": {one},
        "mean(a | b > 1) - mean(a)": set(NUMBERS),
        "nonsense": {"loss"},
    }.items():
        assert numbers(made, query) == wanted, query


def test_shares_of_a_column_with_bands_use_their_errors_as_well():
    banded = replace(NATIVE, columns=(replace(NATIVE.columns[0], bands=(3.0,)), *NATIVE.columns[1:]))
    made = release(TABLE, banded, seed=1, **ASKED)
    assert numbers(made, "fraction(a >= 3)") == {"share_of_one_column", "band_of_one_column"}
    assert numbers(made, "fraction(a >= 3 and b > 1)") == {"share_of_two_columns", "band_of_two_columns"}
    assert numbers(made, "fraction(b > 1)") == {"share_of_one_column"}
    assert made.answer("fraction(a >= 3)", alone=True).alone


QUERIES = [
    "fraction(a > 2)", "fraction(a > 2 and b > 1)", "fraction(c = 'x')", "mean(a)", "variance(a)", "mean(a | b > 1)",
    "median(a)", "fraction(a >= 1) - fraction(a > 3)", "covariance(a, b)",
]  # fmt: skip


def test_an_answer_alone_says_so(made):
    for query in QUERIES:
        found, alone = made.answer(query), made.answer(query, alone=True)
        assert isinstance(found, Answer)
        assert isinstance(alone, Answer)
        assert alone.estimate == found.estimate
        assert alone.low <= alone.estimate <= alone.high
        assert (found.alone, alone.alone) == (False, True)
        assert alone.to_json()["alone"] is True
        if not alone.says_nothing:
            assert str(alone).endswith("with confidence 80 %, valid for this question alone")
    table = made.answer("table(c)", alone=True)
    assert isinstance(table, TableAnswer)
    assert "all at once; valid for this table alone." in str(table)
    assert table.to_json()["alone"] is True
    function = made.answer(lambda a: a / 6, columns=("a",), slopes={"a": 1 / 6}, bounds=(0, 1), alone=True)
    assert function.alone


def test_few_numbers_have_less_slack_than_all(made):
    stated = made.record.certificate.statistics
    for name in ("share_of_one_column", "share_of_two_columns", "group_total", "moment"):
        alone = certificate_for_one_question(made, frozenset({name}))
        assert getattr(alone.statistics, name) < getattr(stated, name) <= 1
        others = {other for other in NUMBERS[2:] if other != name}
        assert {getattr(alone.statistics, other) for other in others} == {1.0}
        assert {subset.bound for subset in alone.subsets} == {alone.single_column_bound} == {1.0}
        assert alone.confidence == made.record.certificate.confidence
    alone = certificate_for_one_question(made, frozenset({"loss"}))
    assert alone.bound < made.record.certificate.direct.bound
    assert {subset.bound for subset in alone.subsets} == {alone.bound}


DRAWS = 400
EQUAL = 60
"""The exact value of every number, in rows."""


def with_noise(made: Release, drawn: NoisyScalars) -> Release:
    """The same release with other noisy numbers."""
    privacy = made.record.privacy
    steps = (replace(s, values=drawn.values, scale=drawn.scale) if s.on == ERRORS_OF_ROWS else s for s in privacy.spent)
    return replace(made, record=replace(made.record, privacy=replace(privacy, spent=tuple(steps))))


def test_bounds_hold_as_often_as_they_say_unless_numbers_are_chosen_after_looking():
    """The numbers of one release get new noise; all are equal, so that the least noisy one is chosen by its noise."""
    made = release(TABLE, NATIVE, seed=1, **ASKED)
    noisy = step_on(made.record, ERRORS_OF_ROWS)
    assert noisy is not None
    assert noisy.sensitivity is not None
    exact, names, missed, missed_after_looking = [EQUAL * LOSS_UNITS] * len(noisy.values), NUMBERS[2:], 0, 0

    def misses(again: Release, name: str) -> bool:
        alone = certificate_for_one_question(again, frozenset({name}))
        return bool(getattr(alone.statistics, name) < EQUAL / len(TABLE))

    for _ in range(DRAWS):
        drawn = measure_scalars(
            exact, sensitivity=noisy.sensitivity, budget=noisy.cost.spent, neighbours=Neighbours.REPLACE_ONE
        )
        again = with_noise(made, drawn)
        missed += misses(again, "share_of_one_column")
        missed_after_looking += misses(again, names[int(np.argmin(drawn.values[2:]))])
    allowed = failures_allowed(DRAWS, 0.2)
    assert missed <= allowed
    assert missed_after_looking > allowed


def test_a_release_without_a_direct_certificate_has_nothing_tighter():
    made = release(TABLE, NATIVE, seed=1, certificate_share=0, **ASKED)
    with pytest.raises(InputError, match="no direct certificate, so there is no tighter interval for one question"):
        made.answer("mean(a)", alone=True)


@pytest.mark.parametrize("query", [7, "", "mean(zz)", "mean(a", "fraction(a > 'x')", "mean(a | c)"])
def test_mistakes_are_told_as_ever(query):
    made = release(TABLE, NATIVE, seed=1, **ASKED)
    said = []
    for alone in (False, True):
        with pytest.raises(InputError) as caught:
            made.answer(query, alone=alone)
        said.append(str(caught.value))
    assert said[0] == said[1]
