"""The benchmark of many, mixed columns: its measures, its tables, and that it goes on where it was stopped."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from certsynth import Schema
from many import page, run
from many.measures import area_under_curve, correlation_error, in_cells, measure, variations
from many.tables import DATA, TABLES, Column, Rows, Table

SMALL_COLUMNS = (
    Column("a", "integer", 0, 63, missing=True),
    Column("b", "number", -1.0, 1.0),
    Column("c", "category", values=("x", "y", "z")),
    Column("d", "category", values=("0", "1")),
)


def drawn(seed: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 64, rows), rng.uniform(-1, 1, rows)
    frame = pd.DataFrame({"a": pd.array(a, "Int64"), "b": b, "c": rng.choice(list("xyz"), rows)})
    frame["d"] = pd.array((a / 64 + b > 0.5).astype(int), "Int64")
    frame.loc[rng.random(rows) < 0.1, "a"] = pd.NA
    return frame


SMALL = Table("small", "Small", SMALL_COLUMNS, lambda: Rows(drawn(1, 300), drawn(2, 200)), target="d")


def test_a_column_is_cut_into_cells_by_its_schema_and_missing_values_have_their_own() -> None:
    integers, numbers = SMALL_COLUMNS[:2]
    frame = pd.DataFrame({"a": pd.array([0, 1, 2, 63, None], "Int64"), "b": [-1.0, -0.94, -0.93, 1.0, 0.0]})
    assert in_cells(integers, integers.codes(frame)).tolist() == [0, 0, 1, 31, 32]
    assert in_cells(numbers, numbers.codes(frame)).tolist() == [0, 0, 1, 31, 16]
    few = Column("a", "integer", 1, 3)
    assert in_cells(few, np.array([1.0, 2.0, 3.0])).tolist() == [0, 1, 2]


def test_variation_is_what_counting_says() -> None:
    rng = np.random.default_rng(3)
    first, second = ([rng.integers(0, 3, rows) for _ in range(3)] for rows in (50, 70))
    slow = []
    for a, b in itertools.combinations(range(3), 2):
        ours, theirs = (Counter(zip(side[a], side[b], strict=True)) for side in (first, second))
        slow.append(sum(abs(ours[cell] / 50 - theirs[cell] / 70) for cell in ours | theirs) / 2)
    assert variations(first, second) == pytest.approx(slow)


def test_a_constant_column_has_no_correlation() -> None:
    line, flat = np.arange(5.0), np.ones(5)
    assert correlation_error([line, line], [line, -line]) == pytest.approx(2)
    assert correlation_error([line, line], [line, flat]) == pytest.approx(1)


def test_a_model_trained_on_the_rows_themselves_knows_the_target_and_one_trained_on_noise_does_not() -> None:
    training, held_out = drawn(1, 600), drawn(2, 300)
    assert area_under_curve(SMALL, training, held_out) > 0.9
    shuffled = training.assign(d=training["d"].sample(frac=1, random_state=1).to_numpy())
    assert area_under_curve(SMALL, shuffled, held_out) < 0.75
    assert area_under_curve(SMALL, training.assign(d=0), held_out) == 0.5


def test_rows_that_are_the_real_ones_have_no_loss(tmp_path: Path) -> None:
    rows, file = SMALL.rows(), tmp_path / "rows.parquet"
    rows.training.to_parquet(file, index=False)
    found = measure(SMALL, rows, file, file, lattice=16)
    assert found["W1 largest, rounded rows"] == found["variation mean"] == 0
    assert found["correlation error"] == found["rank correlation error"] == 0
    assert len(found["W1 of pairs"]) == 6


@pytest.mark.quick_cases(8)
@pytest.mark.skipif(not DATA.is_dir(), reason="no folder CERTSYNTH_DATA")
@pytest.mark.parametrize("key", [key for key in TABLES if key != "fire"])
def test_every_value_of_a_table_is_in_its_schema(key: str) -> None:
    table = TABLES[key]
    frame = table.rows().training
    assert Schema.parse(table.toml).names == tuple(frame.columns)
    for column in table.columns:
        codes = column.codes(frame)
        assert not np.isnan(codes).any()
        assert column.missing or not frame[column.name].isna().any()
        if not column.values:
            present = codes[~frame[column.name].isna().to_numpy(bool)]
            assert column.low <= present.min()
            assert present.max() <= column.high


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> run.Bench:
    """A bench whose processes are not started."""

    def ask(self: run.Bench, work: Path, request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["ask"])
        took = {"outcome": "done", "wall": 2.0, "cpu": 1.0, "peak MB": 100}
        if request["ask"] == "plan":
            return took | {"predicted": 0.1, "low": 0.05, "high": 0.2}
        return took | {"bound": 0.3 if request["seed"] == 2 else 0.1}

    asked: list[str] = []
    monkeypatch.setattr(run.Bench, "ask", ask)
    monkeypatch.setattr(run, "measure", lambda *_: {"W1 largest": 0.08, "W1 mean": 0.02})
    monkeypatch.setattr(run, "TABLES", {"small": SMALL, "california-few": SMALL})
    monkeypatch.setattr(run.Bench, "asked", asked, raising=False)
    return run.Bench(tmp_path, tmp_path / "kept", {}, "", 60.0)


def test_what_is_done_is_not_done_again(bench: run.Bench) -> None:
    run.run(bench, ["small"], ["pure-add"], seeds=2)
    asked: list[str] = bench.asked  # type: ignore[attr-defined]
    assert asked == ["release", "plan", "release", "release"]  # the first warms up
    run.run(bench, ["small"], ["pure-add"], seeds=2)
    assert len(asked) == 4
    (bench.results / "small.pure-add.seed-2.json").unlink()
    run.run(bench, ["small"], ["pure-add"], seeds=2)
    assert asked[4:] == ["release", "release"]


def test_the_page_counts_bounds_inside_the_range_of_the_plan(bench: run.Bench) -> None:
    run.run(bench, ["small"], ["pure-add"], seeds=3)
    late = {"table": "small", "mode": "pure-add", "variant": "", "ask": "release", "outcome": "late"}
    (bench.results / "small.pure-add.seed-4.json").write_text(json.dumps(late))
    row = page.page([bench.results]).splitlines()[-1]
    assert "| small | pure-add (kept) | 3 of 4 | 0.0800 | 0.0200 |" in row
    assert "| 0.1667 | 0.1000 | 0.0500–0.2000 | 2 of 3 |" in row
