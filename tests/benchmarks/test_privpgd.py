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
        done = {"outcome": "done", "measures": {}, "cpu": 1}
        outcome = {"outcome": "failed", "error": "no luck"} if seed == 2 else done
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
    assert len(set(page.WANTED)) == len(page.WANTED) == 14


def test_columns_are_found_by_name_in_any_order(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text('b,"a b"\n1,2\n3,4\n', encoding="utf-8")
    assert run.read_cells(path, ("a b", "b")).tolist() == [[2, 1], [4, 3]]


# ------------------------------------------------------------ the page


def results(tmp_path: Path, **factors: float) -> Path:
    """Two releases of each table with `factor` times the best published figures; and others, of other measures."""
    for key, about in page.published()["tables"].items():
        least = {name: min(float(m[name]) for m in about["methods"].values() if name in m) for name in measures.NAMES}
        runs = []
        for seed in (1, 2):
            found = {name: x * factors.get(name.split()[0], 0.5) for name, x in least.items()}
            found |= {"half-spaces, worst columns": 0.5, "L1 worst pair": [0, 1]}
            run_ = {"mode": "delta-replace", "epsilon": "1", "seed": seed, "outcome": "done", "measures": found}
            runs.append(run_ | {"cpu": 2.0, "peak MB": 512, "certificate": 0.01, "versions": {"certsynth": "9"}})
        document = {"table": key, "rows": 30, "columns": ["a", "b"], "real": {}, "machine": run.machine(), "runs": runs}
        (tmp_path / f"{key}.json").write_text(json.dumps(document), encoding="utf-8")
    return tmp_path


def test_the_page_says_that_we_are_ahead_where_we_are(tmp_path):
    text = page.page(results(tmp_path))
    assert text.count("ahead in 8 of 8 measures. Behind in none.") == 3
    assert "Ours are means of two releases." in text
    table = text.split("## In short")[1].split("certsynth / best")[0]
    assert "**" not in table
    assert "| L1, largest of a pair | 0.100 / 0.20 (MST) |" in table


def test_what_is_behind_or_level_is_bold(tmp_path):
    text = page.page(results(tmp_path, L1=1.2, boxes=1.0))
    assert text.count("ahead in 5 of 8 measures.") == 3
    assert "| **0.240 / 0.20 (MST)** |" in text
    assert "**Behind: L1, mean of pairs (0.115, MST 0.096); L1, largest of a pair (0.240, MST 0.20).**" in text
    assert "**Level: boxes (0.00470, MST 0.0047).**" in text


def test_figures_are_compared_at_the_published_precision():
    assert page.verdict(0.1949, "0.20") == "ahead"
    assert page.verdict(0.1951, "0.20") == "level"
    assert page.verdict(0.2049, "0.20") == "level"
    assert page.verdict(0.2051, "0.20") == "behind"


def test_the_page_names_what_is_not_run_and_what_failed(tmp_path):
    path = results(tmp_path) / "diamonds.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    failed = {"mode": "pure-add", "epsilon": "0.2", "seed": 3, "outcome": "failed", "error": "no `luck`"}
    path.write_text(json.dumps(document | {"runs": [*document["runs"], failed]}), encoding="utf-8")
    text = page.page(tmp_path)
    assert "- Diamonds: ε = 1, with δ (2 of 5); ε = 1, pure ε;" in text
    assert "- Diamonds, ε = 0.2, pure ε, add-remove, seed 3: failed: `no  luck `" in text


def test_the_committed_page_is_what_the_committed_results_make():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), (
        "run python -m privpgd.page with benchmarks on the path"
    )


def test_the_page_has_a_committed_figure_of_each_measure():
    """`tests/test_figures.py` compares these figures with the results."""
    text = page.PAGE.read_text(encoding="utf-8")
    images = set(re.findall(r"\]\((images/[^)]+)\)", text))
    assert images == {f"images/{page.file_name(name)}" for name in measures.NAMES}
    assert all((page.PAGE.parent / image).exists() for image in images)


def test_every_number_in_the_prose_of_the_page_is_a_constant_of_the_benchmark_or_computed():
    """Sentences that are not computed mention settings and sizes, and never a measured figure."""
    prose = "".join((page.INTRODUCTION, page.HOW, page.PURE, page.WHY_L1, page.WHAT_IS_LEFT))
    prose = re.sub(r"\[[^\]]*\]\([^)]*\)", "", prose)
    numbers = set(re.findall(r"(?<![\w.])\d[\d,.e/-]*\d|(?<![\w.])\d", prose))
    sizes = {"62,612", "156,532", "40", "2.5", "11", "200"}
    assert numbers <= {"32", "31", "0", "1", "1e-5", "1/32"} | sizes


def test_committed_results_hold_no_paths_or_addresses():
    for path in page.RESULTS.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, path.name
        assert re.search(r"(?<![\w.])/(?:home|work|tmp|opt|usr|root)/", text) is None, path.name
