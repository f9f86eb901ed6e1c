"""Small pictures: the most dependent pairs come first, with the digits of `answer`; noisy counts next to synthetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from answering import stated
from certsynth.answers import Basis, answer
from certsynth.answers.noisy_cells import CellNoise, CellTable, NoisyCells
from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.naming import Naming
from certsynth.record.record import StatisticsRecord
from certsynth.report.noisy_counts import MAX_BARS, noisy_counts_view
from certsynth.report.pair_answers import PairAnswers
from certsynth.report.small_multiples import small_multiples

ROWS = 500
SCHEMA = Schema(
    columns=(
        Category("sex", values=("f", "m"), naming=Naming(labels=(("f", "female"),))),
        Category("job", values=("a", "b", "c"), missing=True),
        Ordered("age", low=0, high=99, naming=Naming(title="Age", unit="years")),
        Ordered("alone", low=0, high=9),
    )
)


@pytest.fixture(scope="module")
def basis() -> Basis:
    rng = np.random.default_rng(1)
    sex = rng.integers(0, 2, ROWS)
    job = np.where(rng.random(ROWS) < 0.8, sex, rng.integers(0, 4, ROWS))
    age = np.clip(np.floor(20 + 20 * job + rng.normal(0, 8, ROWS)), 0, 99)
    clean = {"sex": sex, "job": job, "age": age, "alone": rng.integers(0, 10, ROWS).astype(float)}
    table = {c.name: c.decode(clean[c.name]) for c in SCHEMA}
    pairs = [((a, b), 0.03) for i, a in enumerate(SCHEMA.names) for b in SCHEMA.names[i + 1 :]]
    certificate = replace(stated(pairs, single=0.02), statistics=StatisticsRecord(0.01, 0.02, 0.01, 0.01))
    return Basis(SCHEMA, table, clean, certificate, ROWS)


def test_pairs_that_depend_on_each_other_are_drawn_and_others_are_not(basis: Basis) -> None:
    found = small_multiples(PairAnswers.of(basis, dict(enumerate(SCHEMA))))
    titles = [each["title"] for each in found]
    assert set(titles) == {"job × sex", "Mean of Age (years) by sex", "Mean of Age (years) by job"}
    assert [each["dependence"] for each in found] == sorted((each["dependence"] for each in found), reverse=True)


def test_pictures_have_the_digits_of_answers(basis: Basis) -> None:
    found = {each["title"]: each for each in small_multiples(PairAnswers.of(basis, dict(enumerate(SCHEMA))))}
    crosstab, means = found["job × sex"], found["Mean of Age (years) by job"]
    assert crosstab["columns"] == ["female", "m"]
    assert [row["label"] for row in crosstab["rows"]] == ["a", "b", "c", "missing"]
    cell = answer(basis, "fraction(sex = 'm' and job = 'b')")
    estimate, low, high = (f"{100 * float(each):.1f}" for each in cell.shown())
    assert crosstab["rows"][1]["cells"][1] | {"level": 0} == {
        "estimate": f"{estimate}%",
        "range": f"{low}–{high}%",
        "level": 0,
    }
    group = answer(basis, "mean(age | job = 'b')")
    row = means["rows"][1]
    assert (row["estimate"], row["range"]) == (group.shown()[0], f"{group.shown()[1]} to {group.shown()[2]}")
    assert 0 <= row["from"] <= row["at"] <= row["to"] <= 1


def test_noisy_counts_stand_next_to_those_of_the_rows(basis: Basis) -> None:
    tables = []
    for column in SCHEMA:
        cells = column.cells(64)
        exact = np.bincount(column.to_cells(basis.clean[column.name], cells), minlength=cells.size)
        counts = exact + np.where(np.arange(cells.size) % 2, 1.0, -1.0)
        tables.append(CellTable((column,), (cells,), counts, CellNoise("epsilon", 2.0), 1, 0.01))
    found = noisy_counts_view(replace(basis, noisy=NoisyCells(tables, ROWS, ROWS)))
    assert {each["name"] for each in found} == {"sex", "job", "Age", "alone"}
    for each in found:
        assert len(each["bars"]) <= MAX_BARS + 1
        assert sum(bar["synthetic"] for bar in each["bars"]) == pytest.approx(1)
        assert all(bar["from"] <= bar["synthetic"] <= bar["to"] for bar in each["bars"])  # such noise is within bounds
        assert all(max(bar["synthetic"], bar["noisy"], bar["to"]) <= each["largest"] for bar in each["bars"])
    assert next(each for each in found if each["name"] == "sex")["bars"][0]["label"] == "female"


def test_without_noisy_counts_there_is_no_picture_of_them(basis: Basis) -> None:
    assert noisy_counts_view(basis) == []
