"""The benchmark of many columns: its tables fit their schema, and its certificates say the same in both ways."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from certsynth import evaluate
from scale import columns, wide
from scale.clock import processor_seconds


def test_tables_fit_their_schema_and_differ_as_they_should():
    schema, frame = wide.schema(9), wide.table(9, 500)
    for column in schema:
        values = frame[column.name].drop_nulls().to_list()
        if hasattr(column, "labels"):
            assert set(values) <= set(wide.labels_of(int(column.name[1:])))
        else:
            assert column.low <= min(values) <= max(values) <= column.high
    for other in (wide.apart(frame), wide.one_bad_pair(frame)):
        assert not other.equals(frame)
        for name in frame.columns:
            assert other[name].sort().equals(frame[name].sort())
    assert wide.one_bad_pair(frame).drop("c0").equals(frame.drop("c0"))


@pytest.mark.parametrize("kind", ["good", "apart", "one bad pair"])
def test_both_ways_find_the_same_integer(kind, tmp_path):
    skipping, every = (columns.certified(kind, skip=skip)(5, 300, tmp_path) for skip in (True, False))
    assert skipping["integer"] == every["integer"]
    assert skipping["solved"] <= every["solved"] == 10


def test_a_step_prints_its_figures_as_json(tmp_path, capsys):
    columns.one("certificate of another sample, skipping", 5, 200, tmp_path)
    point = json.loads(capsys.readouterr().out)
    assert point["subsets"] == 10
    assert "large subsets" in columns.line("5 columns: certificate", point)


@pytest.fixture
def two_samples(tmp_path: Path) -> Path:
    """As if another sample had been released."""
    wide.table(5, 300, seed=2).write_parquet(columns.synthetic(5, 300, tmp_path))
    return tmp_path


def test_the_true_loss_is_that_of_every_pair(two_samples, capsys):
    columns.one("evaluate of the release", 5, 300, two_samples)
    point = json.loads(capsys.readouterr().out)
    every = evaluate(wide.table(5, 300), wide.table(5, 300, seed=2), wide.schema(5))
    assert (point["value"], point["lower"], point["upper"]) == (every.value, every.lower, every.upper)
    assert (point["solved"], point["subsets"], point["scaled"]) == (10, 10, 1.0)
    assert f"loss {every.value:.4f}, between" in columns.line("5 columns: evaluate", point)


@pytest.mark.parametrize(("patience", "solved"), [(1e9, 10), (0, 1)])
def test_some_pairs_stand_for_all_only_where_all_would_take_too_long(two_samples, monkeypatch, patience, solved):
    monkeypatch.setattr(columns, "SAMPLE", 1)
    monkeypatch.setattr(columns, "PATIENCE", patience)
    point = columns.evaluated(5, 300, two_samples)
    assert (point["solved"], point["subsets"], point["scaled"]) == (solved, 10, 10 / solved)
    assert point["compare_cpu"] == pytest.approx(point["cpu"] * 10 / solved, abs=1)


def test_what_other_processes_use_counts():
    """Also while they run: joblib keeps its workers."""
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before = processor_seconds()
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        running = processor_seconds() - before
        child.communicate(b"\n")
    assert running >= 0.25
    assert processor_seconds() - before >= 0.25
