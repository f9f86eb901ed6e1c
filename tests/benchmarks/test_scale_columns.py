"""The benchmark of many columns: its tables fit their schema, and its certificates say the same in both ways."""

from __future__ import annotations

import json

import pytest

from scale import columns, wide


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
