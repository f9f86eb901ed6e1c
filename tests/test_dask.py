"""Work on a Dask cluster: two worker processes on this machine, for real."""

from __future__ import annotations

import os
import signal

import dask
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.scheduler import KilledWorker

from certsynth import certify, evaluate
from certsynth.base import parallel
from certsynth.base.parallel import LazyTasks, run
from certsynth.errors import WorkerDied
from small import MIXED, NATIVE, NoNoise, native, people

IN_MEMORY = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}
HERE = os.getpid()


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set(IN_MEMORY),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture
def on_dask(client, monkeypatch):
    """However little there is to do, it goes to the workers."""
    client.wait_for_workers(2)
    monkeypatch.setattr(parallel, "MIN_PROCESS_WORK", 0)
    with joblib.parallel_config(backend="dask"):
        yield client


def squares(i: int, values: np.ndarray) -> tuple[int, int]:
    return i * i + int(values.sum()), os.getpid()


TASKS = LazyTasks(12, lambda i: (i, np.full(50_000, i)))
RIGHT = [i * i + 50_000 * i for i in range(12)]


def test_tasks_are_done_by_the_workers_in_order(on_dask):
    told: list[tuple[str, int, int | None]] = []
    found = run(squares, TASKS, work=1, phase="squaring", progress=lambda *event: told.append(event))
    assert [value for value, _ in found] == RIGHT
    assert HERE not in {worker for _, worker in found}
    assert told == [("squaring", i, 12) for i in range(13)]


def test_what_a_killed_worker_left_undone_is_done_by_others(on_dask, tmp_path):
    def dies_once(i: int, values: np.ndarray) -> int:
        marker = tmp_path / "died"
        if i == 5 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return squares(i, values)[0]

    assert run(dies_once, TASKS, work=1, phase="squaring") == RIGHT
    assert (tmp_path / "died").exists()


def test_tasks_that_cost_dask_too_many_workers_are_tried_once_more_and_told_in_words(monkeypatch):
    """Dask itself gives a task to four workers, one after the other, which takes a while: here it says at once that
    they are dead."""
    tries = []

    def no_worker_left(*_: object) -> list[int]:
        tries.append(1)
        raise KilledWorker("a task", None, 3)

    monkeypatch.setattr(parallel, "Parallel", lambda **_: no_worker_left)
    with pytest.raises(WorkerDied, match="a process died while squaring, and so did the one in its place"):
        run(squares, TASKS, work=parallel.MIN_PROCESS_WORK, phase="squaring")
    assert len(tries) == parallel.MAX_ATTEMPTS


def test_an_error_of_the_work_is_its_own(on_dask):
    def fails(i: int, values: np.ndarray) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(fails, TASKS, work=1, phase="squaring")


@pytest.mark.slow
def test_certificates_and_losses_are_those_of_one_process(client, monkeypatch):
    tables = [(people(300), people(200, seed=1), MIXED), (native(100), native(90, seed=2), NATIVE)]

    def all_found():
        return [
            (
                certify(ours, theirs, schema, epsilon=1, lattice=16, noise=NoNoise()),
                certify(ours, theirs, schema, epsilon=1, lattice=16, per_subset=True, noise=NoNoise()),
                evaluate(ours, theirs, schema, lattice=16),
            )
            for ours, theirs, schema in tables
        ]

    alone = all_found()
    client.wait_for_workers(2)
    monkeypatch.setattr(parallel, "MIN_PROCESS_WORK", 0)
    with joblib.parallel_config(backend="dask"):
        assert all_found() == alone
    with joblib.parallel_config(n_jobs=2):
        assert all_found() == alone


def test_workers_that_are_told_so_have_no_room_on_disk(on_dask):
    """Tasks hold private counts: with memory's limits off, a worker's store is a plain dict."""
    stores = on_dask.run(lambda dask_worker: type(dask_worker.data).__name__)
    assert set(stores.values()) == {"dict"}
