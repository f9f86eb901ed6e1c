"""The experiment on rows of low dimension: its tables, its fits, its page, and that it goes on where it stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dimension
import results
from dimension import KINDS, METHODS, Question, answered, chosen, page, questions, slope, theory


def test_the_committed_page_is_what_the_committed_results_make():
    assert dimension.PAGE.read_text(encoding="utf-8") == page(results.load("dimensions"))


def test_tables_are_the_same_for_all_methods_and_inside_the_cube():
    for kind in KINDS:
        tables = [Question(kind, 4, 300, 1, method).table() for method in METHODS]
        assert all(table.equals(tables[0]) for table in tables)
        assert 0 <= tables[0].to_numpy().min() <= tables[0].to_numpy().max() <= 1
        assert not tables[0].equals(Question(kind, 4, 300, 2, "plain").table())


@pytest.mark.parametrize(("kind", "most"), [("points", 7), ("curve", 40 * 20), ("surface", 40**2 * 6)])
def test_rows_of_low_dimension_fill_few_cells(kind, most):
    cells = np.floor(40 * Question(kind, 5, 20_000, 0, "plain").table().to_numpy())
    assert len(np.unique(cells, axis=0)) <= most


def test_slopes_are_those_of_a_power():
    found = [{"rows": n, "loss": 3 * n**-0.4} for n in (10, 100, 1000)]
    middle, low, high = slope(found)
    assert middle == pytest.approx(0.4)
    assert low == pytest.approx(0.4, abs=1e-6)
    assert high == pytest.approx(0.4, abs=1e-6)


def test_theory_has_the_dimension_of_the_rows():
    assert [theory(kind, 4) for kind in KINDS] == [1, 1 / 2, 1 / 3, 1 / 5]


@pytest.mark.slow
def test_points_are_kept_and_not_made_again(tmp_path, monkeypatch):
    asked = [Question("curve", 3, 200, 0, method) for method in METHODS]
    first = answered(asked[:1], tmp_path)
    made = []
    answer = dimension.answer
    monkeypatch.setattr(dimension, "answer", lambda question: made.append(question) or answer(question))
    every = answered(asked, tmp_path)
    assert made == asked[1:]
    assert every[0] == first[0]
    assert len((tmp_path / "points.jsonl").read_text().splitlines()) == len(METHODS)
    for point in every:
        assert point["loss"] > 0
    assert len(chosen(every, method="paper")) == 1


def test_the_quick_questions_make_a_page(tmp_path):
    points = [
        {**{k: getattr(q, k) for k in ("kind", "columns", "rows", "repetition", "method")}}
        | {"dimension": 1, "resolution": 5, "loss": 1 / q.rows**0.5, "moved": 0.001, "bound": 0.2}
        for q in questions(quick=True)
    ]
    kept = json.loads(results.save("dimensions", {}, points, folder=tmp_path).read_text())
    text = page(kept)
    assert "| curve | 3 |" in text
    dimension.draw(kept, tmp_path)
    assert (tmp_path / "dimensions.svg").exists()


@pytest.mark.slow
def test_the_quick_run_is_quick(tmp_path, monkeypatch):
    monkeypatch.setattr(dimension, "KEPT", tmp_path / "dimension")
    monkeypatch.setattr("sys.argv", ["dimension.py", "--quick"])
    dimension.main()
    assert (tmp_path / "dimension-quick" / "dimensions.md").exists()
