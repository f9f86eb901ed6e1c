"""Certified against true: the statistics and their true values, models, that it resumes, and that its page is true."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from certsynth import Release, Schema, release
from certsynth.answers import Answer, Basis, answer
from certsynth.sources import cleaned, open_source
from many.run import Bench
from many.tables import Column, Rows, Table
from tightness import models, page, run
from tightness.largest_errors import certified_errors, true_errors
from tightness.statistics import statistics_of
from tightness.tables import TABLES, TARGETS

COLUMNS = (
    Column("a", "integer", 0, 63, missing=True),
    Column("per hour", "number", -1.0, 1.0),
    Column("c", "category", values=("x", "y", "z")),
    Column("n", "integer", 0, 9),
    Column("constant", "integer", 0, 5),
    Column("d", "category", values=("0", "1")),
)


def drawn(seed: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 64, rows), rng.uniform(-1, 1, rows)
    frame = pd.DataFrame({"a": pd.array(a, "Int64"), "per hour": b, "c": rng.choice(list("xyz"), rows)})
    frame["n"] = pd.array(rng.binomial(9, 0.3, rows), "Int64")
    frame["constant"] = pd.array(np.full(rows, 3), "Int64")
    frame["d"] = pd.array((a / 64 + b > 0.5).astype(int), "Int64")
    frame.loc[rng.random(rows) < 0.1, "a"] = pd.NA
    return frame


SMALL = Table("small", "Small, six columns", COLUMNS, lambda: Rows(drawn(1, 400), drawn(2, 200)), target="d")


@pytest.fixture(scope="module")
def small_release(tmp_path_factory) -> tuple[Release, Path]:
    """A release of the small table, written to a folder, and the file of the private rows."""
    place = tmp_path_factory.mktemp("small")
    data = place / "rows.parquet"
    SMALL.rows().training.to_parquet(data, index=False)
    schema, design = Schema.parse(SMALL.toml), {"mechanism": "identity", "resolution": 4}
    return release(str(data), schema, epsilon=1, seed=1, out=place / "release", **design), data


# ------------------------------------------------------------ statistics


def test_there_are_twenty_statistics_of_different_kinds_and_none_of_a_constant_column() -> None:
    found = statistics_of(SMALL, SMALL.rows().training)
    assert len(found) == len({each.kind for each in found}) == 20
    assert found == statistics_of(SMALL, SMALL.rows().training)
    assert all("constant" not in each.query for each in found)
    assert any("`per hour`" in each.query for each in found)


def test_true_values_are_what_answer_says_of_the_rows_themselves(small_release) -> None:
    """Two implementations: NumPy here, and the estimate of `answer` if the real rows were the synthetic ones."""
    made, data = small_release
    (clean,) = cleaned(open_source(str(data)), made.schema)
    columns = dict(zip(made.schema.names, clean, strict=True))
    table = {column.name: column.decode(columns[column.name]) for column in made.schema}
    frame = SMALL.rows().training
    basis = Basis(made.schema, table, columns, made.record.certificate, len(frame))
    for each in statistics_of(SMALL, frame):
        found = answer(basis, each.query)
        assert isinstance(found, Answer)
        assert found.estimate == pytest.approx(each.truth, abs=1e-9), each.query


def test_a_table_without_labels_has_whole_numbers_in_their_place() -> None:
    columns = tuple(column for column in COLUMNS if not column.values)
    table = Table("numbers", "Numbers", columns, lambda: Rows(drawn(1, 50)))
    first = statistics_of(table, table.rows().training)[0]
    assert re.fullmatch(r"fraction\(n = \d\)", first.query)


# ------------------------------------------------------------ models and errors


def test_models_of_the_rows_themselves_know_the_target_and_models_of_noise_do_not() -> None:
    training, held_out = drawn(1, 600), drawn(2, 300)
    known = models.scores(SMALL, training, held_out)
    assert min(known.values()) > 0.85
    shuffled = training.assign(d=training["d"].sample(frac=1, random_state=1).to_numpy())
    assert max(models.scores(SMALL, shuffled, held_out).values()) < 0.75
    assert set(models.scores(SMALL, training.assign(d=0), held_out).values()) == {0.5}


def test_a_number_is_predicted_by_regression() -> None:
    numbers = Table("small", "Small", COLUMNS, SMALL.rows, target="per hour")
    training, held_out = (frame.assign(a=0, n=frame["d"]) for frame in (drawn(1, 600), drawn(2, 300)))
    known = models.scores(numbers, training, held_out)
    assert set(known) == {page.BOOSTING, page.LINEAR}
    assert all(0.2 < score < 0.9 for score in known.values())


def test_certified_errors_are_at_least_the_true_ones_and_the_median_is_no_more_than_the_largest(small_release) -> None:
    """A certificate fails with a probability of 5 % at most: here bounds and true errors are compared with slack."""
    made, data = small_release
    certified, true = certified_errors(made), true_errors(made, data)
    assert set(true) == set(page.ERRORS)
    for name, error in true.items():
        assert 0 <= error["median"] <= error["largest"]
        assert error["largest"] <= certified[name] + 5 * certified["slack"]


# ------------------------------------------------------------ resuming


@pytest.fixture
def small_settings(tmp_path, monkeypatch, small_release) -> run.Settings:
    """Every release is a copy of the one above, and takes no time."""

    def copy(bench: Bench, work: Path, request: dict[str, Any]) -> dict[str, Any]:
        shutil.copytree(small_release[1].parent / "release", request["out"])
        bound = small_release[0].certificate.bound
        return {"outcome": "done", "wall": 1.0, "cpu": 1.0, "peak MB": 1, "bound": bound, "document": {}}

    monkeypatch.setitem(TABLES, "small", SMALL)
    monkeypatch.setattr(run, "warm_up", lambda bench, work: None)
    monkeypatch.setattr(Bench, "ask", copy)
    return run.Settings(tmp_path / "releases", tmp_path / "results")


def test_it_keeps_releases_and_results_and_resumes(small_settings, monkeypatch, capsys) -> None:
    run.benchmark(small_settings, ["small"], ["delta-add"], seeds=1)
    path = small_settings.results / "small.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [page.key_of(each) for each in document["runs"]] == [("delta-add", "", 1), ("delta-add", "target", 1)]
    first, told = document["runs"]
    assert len(first["answers"]) == 20
    assert set(first["models"]) == set(document["models of real rows"]) == {page.BOOSTING, page.LINEAR}
    assert "answers" not in told
    assert "inside" in capsys.readouterr().out

    def refuse(*_: Any) -> None:
        raise AssertionError("nothing is left to release")

    monkeypatch.setattr(Bench, "ask", refuse)
    run.benchmark(small_settings, ["small"], ["delta-add"], seeds=1)
    assert json.loads(path.read_text(encoding="utf-8")) == document
    run.benchmark(small_settings, ["small"], ["delta-add"], seeds=1, ask_again=True)
    assert json.loads(path.read_text(encoding="utf-8")) == document


def test_results_of_other_rows_are_refused(small_settings, tmp_path) -> None:
    small_settings.results.mkdir()
    (small_settings.results / "small.json").write_text('{"table": "small", "rows": 7, "runs": []}', encoding="utf-8")
    with pytest.raises(SystemExit, match=r"small\.json has runs with other rows"):
        run.benchmark(small_settings, ["small"], ["delta-add"], seeds=1)


# ------------------------------------------------------------ the page


def test_the_committed_page_is_what_the_committed_results_make() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_all_tables_have_results_of_both_modes() -> None:
    found = {results.key: results for results in page.load()}
    assert set(found) >= set(TARGETS) - {"loans-47"}
    for results in found.values():
        assert all(len(results.asked(mode)) == 20 for mode in page.MODES)


def test_intervals_contain_the_true_value_almost_always() -> None:
    """Of a release all do with a confidence of 95 %: more than one answer in twenty outside would be a bug."""
    every = [each for _, _, asked in page.settings(page.load()) for each in asked]
    held, answers = sum(each.inside for each in every), sum(len(each.answered) for each in every)
    assert held >= 0.95 * answers
    assert answers >= 200


def test_figures_of_the_summary_are_those_of_the_answers() -> None:
    text = page.page()
    for results, mode, _ in page.settings(page.load()):
        document = results.document
        runs = [each for each in document["runs"] if (each["mode"], each["variant"]) == (mode, "")]
        widths = [
            (found["high"] - found["low"]) / 2 / statistic["unit"]
            for each in runs
            for statistic, found in zip(document["statistics"], each["answers"], strict=True)
            if "error" not in found
        ]
        line = next(
            line for line in text.splitlines() if line.startswith(f"| {results.columns} | {page.MODES[mode]} |")
        )
        assert line.split(" | ")[4] == page.short(statistics.median(widths))


def test_numbers_have_three_digits() -> None:
    assert [page.short(x) for x in (0.012345, 1234.5, 12.0, 0.0, -0.5)] == ["0.0123", "1,234", "12.0", "0", "-0.500"]
