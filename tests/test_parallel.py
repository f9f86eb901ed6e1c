"""Work on several processes, one of which may die."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pytest

from certsynth.base.parallel import MIN_PROCESS_WORK, MIN_THREAD_WORK, LazyTasks, run
from certsynth.errors import WorkerDied

TASKS = [(i,) for i in range(6)]


def test_results_are_those_of_one_process_and_in_order():
    assert run(lambda i: i * i, TASKS, work=MIN_PROCESS_WORK, phase="squaring") == [i * i for i in range(6)]
    assert run(lambda i: i * i, TASKS, work=0, phase="squaring") == [i * i for i in range(6)]


def test_what_a_dead_worker_left_undone_is_done_again(tmp_path):
    def dies_once(i: int) -> int:
        marker = tmp_path / "died"
        if i == 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return i * i

    told: list[tuple[str, int, int | None]] = []
    found = run(dies_once, TASKS, work=MIN_PROCESS_WORK, phase="squaring", progress=lambda *event: told.append(event))
    assert found == [i * i for i in range(6)]
    assert (tmp_path / "died").exists()
    assert told[-1] == ("squaring", 6, 6)


def test_workers_that_keep_dying_are_told_in_words():
    def dies(i: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return i

    with pytest.raises(WorkerDied, match="a process died while squaring, and so did the one in its place") as caught:
        run(dies, TASKS, work=MIN_PROCESS_WORK, phase="squaring")
    assert "SIGKILL" not in str(caught.value)


def test_a_worker_whose_memory_grows_is_replaced_without_a_word():
    """joblib ends a worker that grew by 300 MB, if psutil is installed, and warns: as an error that would never end."""
    pytest.importorskip("psutil")

    def grows(i: int) -> int:
        hoard = joblib.__dict__.setdefault("hoard", [])  # the module of this worker
        if i >= 2:
            hoard.append(np.ones(45_000_000))
        time.sleep(1.1)  # memory is looked at once a second
        return os.getpid()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(set(run(grows, TASKS, work=MIN_PROCESS_WORK, phase="growing"))) > 2


def test_an_error_of_the_work_is_its_own():
    def fails(i: int) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(fails, TASKS, work=MIN_PROCESS_WORK, phase="squaring")


def test_what_somebody_configured_is_used():
    def where(i: int) -> tuple[int, str]:
        return os.getpid(), threading.current_thread().name

    with joblib.parallel_config(n_jobs=1):
        assert {process for process, _ in run(where, TASKS, work=MIN_PROCESS_WORK, phase="looking")} == {os.getpid()}
    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = run(where, TASKS, work=MIN_PROCESS_WORK, phase="looking")
    assert {process for process, _ in found} == {os.getpid()}
    assert threading.current_thread().name not in {thread for _, thread in found}


def test_workers_start_no_workers():
    def outer(i: int) -> list[str]:
        return run(lambda _: threading.current_thread().name, TASKS, work=MIN_PROCESS_WORK, phase="looking")

    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = run(outer, TASKS, work=MIN_PROCESS_WORK, phase="looking")
    assert all(len(set(names)) == 1 for names in found)


def test_tasks_are_made_when_they_are_sent():
    """Never all at once: they may be more than memory holds."""
    made: list[int] = []

    def make(i: int) -> tuple[int]:
        made.append(i)
        return (i,)

    seen: list[int] = []
    with joblib.parallel_config(n_jobs=2):
        found = run(
            lambda i: i,
            LazyTasks(40, make),
            work=MIN_PROCESS_WORK,
            phase="looking",
            progress=lambda *_: seen.append(len(made)),
        )
    assert found == made == list(range(40))
    assert seen[0] < 40


def test_little_work_is_done_by_threads_in_order():
    def where(i: int) -> tuple[int, int, str]:
        return i, os.getpid(), threading.current_thread().name

    told: list[tuple[str, int, int | None]] = []
    found = run(where, TASKS, work=MIN_THREAD_WORK, phase="looking", progress=lambda *event: told.append(event))
    assert [i for i, _, _ in found] == list(range(6))
    assert {process for _, process, _ in found} == {os.getpid()}
    assert threading.current_thread().name not in {thread for _, _, thread in found}
    assert [done for _, done, _ in told] == list(range(7))
    with joblib.parallel_config(n_jobs=1):
        alone = run(where, TASKS, work=MIN_THREAD_WORK, phase="looking")
    assert {thread for _, _, thread in alone} == {threading.current_thread().name}


def test_an_error_in_a_thread_is_its_own():
    with pytest.raises(ZeroDivisionError):
        run(lambda i: 1 // (i - 3), TASKS, work=MIN_THREAD_WORK, phase="dividing")
