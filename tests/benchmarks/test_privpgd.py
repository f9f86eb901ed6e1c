"""PrivPGD's benchmark: its measures against slow oracles, its tables, that it resumes, and that its page is true."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privpgd import measures, page, run
from privpgd.measures import Box
from privpgd.tables import TABLES, Prepared, Table, balanced, in_cells, prepare

SIZES = (4, 5, 3, 2)
Rows = list[tuple[int, ...]]


def drawn(seed: int, rows: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1)


REAL, MADE = drawn(1, 60), drawn(2, 35)


def placed(rows: np.ndarray) -> list[list[float]]:
    return [[(cell + 0.5) / size for cell, size in zip(row, SIZES, strict=True)] for row in rows.tolist()]


# ------------------------------------------------------------ measures


def w1_on_a_line(first: list[float], second: list[float]) -> float:
    """The area between two distribution functions."""
    ends = sorted(first + second)
    area = 0.0
    for low, high in itertools.pairwise(ends):
        below = [sum(x <= low for x in side) / len(side) for side in (first, second)]
        area += abs(below[0] - below[1]) * (high - low)
    return area


def test_sliced_distances_are_the_mean_area_between_distribution_functions():
    directions = np.random.default_rng(measures.QUERY_SEED).normal(size=(6, measures.DIRECTIONS, 2)).tolist()
    slow = []
    for (a, b), along in zip(itertools.combinations(range(4), 2), directions, strict=True):
        found = []
        for u, v in along:
            length = math.hypot(u, v)
            sides = [[(u * x[a] + v * x[b]) / length for x in placed(rows)] for rows in (REAL, MADE)]
            found.append(w1_on_a_line(*sides))
        slow.append(sum(found) / len(found))
    assert measures.sliced_distances(REAL, MADE, SIZES) == pytest.approx(slow)
    assert measures.sliced_distances(REAL, REAL, SIZES) == pytest.approx([0] * 6)


def test_l1_distances_are_what_counting_says():
    slow = []
    for a, b in itertools.combinations(range(4), 2):
        ours, theirs = (Counter((row[a], row[b]) for row in rows.tolist()) for rows in (REAL, MADE))
        slow.append(sum(abs(ours[cell] / 60 - theirs[cell] / 35) for cell in ours | theirs))
    assert measures.l1_distances(REAL, MADE, SIZES) == pytest.approx(slow)


def test_the_covariance_error_is_that_of_rows_centred_by_their_own_mean():
    found = []
    for rows in (REAL, MADE):
        centred = [[x - sum(row) / 4 for x in row] for row in placed(rows)]
        means = [sum(row[j] for row in centred) / len(centred) for j in range(4)]
        sums = [[sum((row[i] - means[i]) * (row[j] - means[j]) for row in centred) for j in range(4)] for i in range(4)]
        found.append([[each / (len(centred) - 1) for each in line] for line in sums])
    apart = (found[0][i][j] - found[1][i][j] for i, j in itertools.product(range(4), repeat=2))
    assert measures.covariance_error(REAL, MADE, SIZES) == pytest.approx(math.sqrt(sum(x * x for x in apart)))


def inside_box(row: list[float], box: Box) -> bool:
    return all(low <= row[column] <= high for column, (low, high) in zip(box.columns, box.sides, strict=True))


def test_boxes_hold_neither_few_nor_almost_all_rows_and_their_error_is_what_counting_says():
    boxes = measures.random_boxes(REAL, SIZES, count=40)
    assert len(boxes) == 40
    assert len({box.columns for box in boxes}) > 5
    for box in boxes:
        assert len(set(box.columns)) == 3
        assert all(0 <= low <= high <= 1 for low, high in box.sides)
        ours, theirs = (sum(inside_box(row, box) for row in placed(rows)) / len(rows) for rows in (REAL, MADE))
        assert 0.05 <= ours <= 0.95
        assert measures.box_error(REAL, MADE, SIZES, box) == pytest.approx(abs(ours - theirs))
    assert boxes == measures.random_boxes(REAL, SIZES, count=40)


def test_a_box_between_two_centres_is_empty():
    narrow = Box((0, 1, 2), ((0.26, 0.3), (0.0, 1.0), (0.0, 1.0)))
    assert measures.box_error(REAL, MADE, SIZES, narrow) == 0


def test_half_spaces_are_those_of_the_benchmark_for_every_three_columns():
    slow = []
    for columns, along, offsets in measures.half_spaces(4):
        found = []
        for direction, offset in zip(along.tolist(), offsets.tolist(), strict=True):
            heights = [
                [sum(w * row[c] for w, c in zip(direction, columns, strict=True)) for row in placed(rows)]
                for rows in (REAL, MADE)
            ]
            b = min(heights[0]) + offset * (max(heights[0]) - min(heights[0]))
            ours, theirs = (sum(height + b > 0 for height in side) / len(side) for side in heights)
            found.append(abs(ours - theirs))
        slow.append(sum(found) / len(found))
    assert len(slow) == 4
    assert measures.half_space_errors(REAL, MADE, SIZES) == pytest.approx(slow)


def test_all_measures_of_equal_rows_are_zero_and_those_of_others_are_not():
    boxes = measures.random_boxes(REAL, SIZES, count=20)
    same, other = (measures.measure(REAL, rows, SIZES, boxes) for rows in (REAL[::-1], MADE))
    assert set(measures.NAMES) <= {*other, "model error"}
    for name in measures.NAMES.keys() - {"model error"}:
        assert same[name] == pytest.approx(0)
        assert other[name] > 0.001, name
    assert other["sliced W1 mean"] <= other["sliced W1 largest"]
    assert other["half-spaces"] <= other["half-spaces, worst columns"]
    worst = tuple(other["L1 worst pair"])
    assert measures.l1_distances(REAL, MADE, SIZES)[list(itertools.combinations(range(4), 2)).index(worst)] == max(
        measures.l1_distances(REAL, MADE, SIZES)
    )


def test_the_model_error_is_small_for_a_rule_and_that_of_guessing_without_one():
    rng = np.random.default_rng(3)
    known = rng.integers(0, 32, (400, 2))
    rule = np.column_stack([known, known[:, 0] > 15]).astype(np.int64)
    noise = np.column_stack([known, rng.permutation(rule[:, 2])])
    assert measures.model_error(rule[:300], rule[300:], is_class=True) < 0.05
    assert measures.model_error(noise[:300], rule[300:], is_class=True) > 0.25
    constant = rule[rule[:, 2] == 1]
    wrong = sum(row[2] != 1 for row in rule[300:].tolist()) / 100
    assert measures.model_error(constant, rule[300:], is_class=True) == pytest.approx(wrong)
    numbers = np.column_stack([known, known[:, 0]])
    assert measures.model_error(numbers[:300], numbers[300:], is_class=False) < 1
    flat = np.column_stack([known, np.full(400, 7)])
    squares = sum((row[2] - 7) ** 2 for row in numbers[300:].tolist()) / 100
    assert measures.model_error(flat, numbers[300:], is_class=False) == pytest.approx(squares)


# ------------------------------------------------------------ tables


def test_cells_have_equal_width_from_the_smallest_to_the_largest_value_and_are_closed_on_the_right():
    assert in_cells(np.array([0.0, 1.0, 1.001, 16.0, 31.5, 32.0])).tolist() == [0, 0, 1, 15, 31, 31]
    values = np.random.default_rng(1).normal(size=500)
    assert in_cells(values).tolist() == pd.cut(values, 32, labels=False).tolist()
    years = np.arange(17.0, 95)
    assert in_cells(years).tolist() == pd.cut(years, 32, labels=False).tolist()


def test_classes_are_balanced_and_rows_split():
    frame = pd.DataFrame({"a": np.arange(50.0), "class": [0] * 30 + [1] * 20})
    assert balanced(frame)["class"].value_counts().to_dict() == {0: 20, 1: 20}
    rows = prepare(balanced(frame), is_class=True)
    assert (rows.names, rows.sizes) == (("a", "class"), (32, 2))
    assert (rows.training.shape, rows.test.shape) == ((32, 2), (8, 2))
    assert set(rows.training[:, 1]) == {0, 1}
    assert "high = 31" in rows.toml
    assert "high = 1\n" in rows.toml


def test_the_tables_have_the_columns_and_rows_of_the_benchmark():
    if not all(table.exists for table in TABLES.values()):
        pytest.skip("the tables are not there: set CERTSYNTH_DATA to their folder")
    published = page.published()["tables"]
    for key in ("diamonds", "electricity"):
        assert len(TABLES[key].prepared().training) == published[key]["rows"]
    diamonds = TABLES["diamonds"].prepared()
    assert diamonds.names == ("depth", "table", "x", "y", "z", "log price")
    assert diamonds.training.max(axis=0).tolist() == [31] * 6


# ------------------------------------------------------------ runs


SMALL = Table("diamonds", "A small one", "", lambda frame: frame, is_class=True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Prepared(("a b", "b", "c", "d"), SIZES, REAL, MADE)
    monkeypatch.setattr(Table, "exists", True)
    monkeypatch.setattr(Table, "prepared", lambda self: rows)
    monkeypatch.setitem(run.TABLES, "diamonds", SMALL)


def test_a_benchmark_that_was_stopped_resumes_where_it_was(small, tmp_path, monkeypatch):
    asked = []

    def release(self, mode, epsilon, seed, *, limit):
        asked.append((mode, epsilon, seed))
        if len(asked) == 3:
            raise KeyboardInterrupt
        outcome = (
            {"outcome": "failed", "error": "no luck"} if seed == 2 else {"outcome": "done", "measures": {}, "cpu": 1}
        )
        return {"mode": mode, "epsilon": epsilon, "seed": seed, **outcome}

    monkeypatch.setattr(run.Bench, "release", release)
    go = {"seeds": 2, "results": tmp_path}
    settings = [("delta-replace", "1"), ("pure-replace", "1")]
    with pytest.raises(KeyboardInterrupt):
        run.benchmark(["diamonds"], settings, **go)
    kept = json.loads((tmp_path / "diamonds.json").read_text(encoding="utf-8"))
    assert len(kept["runs"]) == 2
    assert kept["rows"] == 60
    assert 0 <= kept["real"]["model error"] <= 1
    run.benchmark(["diamonds"], settings, **go)
    assert asked[3:] == [("pure-replace", "1", 1), ("pure-replace", "1", 2)]
    run.benchmark(["diamonds"], settings, **go)
    assert len(asked) == 5
    run.benchmark(["diamonds"], settings, again=True, **go)
    assert asked[5:] == [("delta-replace", "1", 2), ("pure-replace", "1", 2)]


def test_releases_of_other_rows_are_not_mixed(small, tmp_path):
    (tmp_path / "diamonds.json").write_text(json.dumps({"rows": 61, "runs": []}), encoding="utf-8")
    with pytest.raises(SystemExit, match="other rows"):
        run.benchmark(["diamonds"], [("delta-replace", "1")], seeds=1, results=tmp_path)


def test_a_release_that_fails_is_a_result(small, tmp_path, monkeypatch):
    script = tmp_path / "runner.py"
    script.write_text("raise ValueError('no rows')", encoding="utf-8")
    monkeypatch.setattr(run, "RUNNER", script)
    found = run.Bench.of(SMALL, tmp_path).release("pure-add", "1", 1, limit=60)
    assert (found["outcome"], found["error"]) == ("failed", "raise ValueError('no rows') ValueError: no rows")


@pytest.mark.slow
def test_a_release_is_measured_with_its_versions(small, tmp_path):
    found = run.Bench.of(SMALL, tmp_path).release("delta-add", "2.5", 1, limit=300)
    assert found["outcome"] == "done", found
    assert set(measures.NAMES) <= set(found["measures"])
    assert {"python", "certsynth", "numpy"} <= set(found["versions"])
    assert found["certificate"] > 0


def test_the_settings_of_published_figures_come_first():
    assert page.WANTED[0] == page.COMPARED
    assert len(set(page.WANTED)) == len(page.WANTED) == 13


def test_columns_are_found_by_name_in_any_order(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text('b,"a b"\n1,2\n3,4\n', encoding="utf-8")
    assert run.read_cells(path, ("a b", "b")).tolist() == [[2, 1], [4, 3]]
