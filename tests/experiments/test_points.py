"""Results are kept point by point."""

from __future__ import annotations

import pytest

from points import Points

TASKS = [{"method": "paper", "k": k, "run": run} for run in range(2) for k in (2, 4)]


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path):
    path, done = tmp_path / "deep" / "points.jsonl", []

    def work(task):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task)
        return {"seconds": 1.0, "twice": 2 * task["k"]}

    with pytest.raises(KeyboardInterrupt):
        Points(path).compute(TASKS, work, lambda text: None)
    assert done == TASKS[:2]
    done, said = [], []
    Points(path).compute(TASKS, lambda task: {"seconds": 0.2, "twice": 2 * task["k"]}, said.append)
    assert len(said) == 2
    assert said[0] == "[1/2] method paper, k 2, run 1: 0 s"
    assert [p["twice"] for p in Points(path).whole_runs(TASKS)] == [4, 8, 4, 8]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_torn_last_line_counts_for_nothing_and_spoils_nothing(tmp_path, cut):
    path = tmp_path / "points.jsonl"
    points = Points(path)
    for task in TASKS[:2]:
        points.keep(task, {"seconds": 1.0})
    path.write_bytes(path.read_bytes()[:-cut])
    again = Points(path)
    assert again.get(TASKS[0]) is not None
    if cut > 1:
        assert again.get(TASKS[1]) is None
    again.keep(TASKS[1], {"seconds": 2.0})
    again.keep(TASKS[2], {"seconds": 3.0})
    assert [Points(path).get(task)["seconds"] for task in TASKS[:3]] == [1.0, 2.0, 3.0]


def test_a_run_that_is_not_through_is_left_out(tmp_path):
    points = Points(tmp_path / "points.jsonl")
    assert points.whole_runs(TASKS) == []
    for task in TASKS[:3]:
        points.keep(task, {"seconds": 1.0})
    assert points.whole_runs(TASKS) == [{**task, "seconds": 1.0} for task in TASKS[:2]]
