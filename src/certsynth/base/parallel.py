"""Independent tasks on all cores, or on a cluster (Dask, Ray) that joblib's `parallel_config` selects."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from certsynth.base.progress import Progress, silent
from certsynth.errors import WorkerDied

_R = TypeVar("_R")
_T = TypeVar("_T")

MIN_THREAD_WORK, MIN_PROCESS_WORK = 20_000, 6_000_000
"""Units of work (roughly network nodes × solves) below which starting threads, or processes, does not pay: some
milliseconds, and nine seconds. Threads do help, because the compiled loops release the interpreter lock; a process
takes two seconds to start, and in a new installation compiles the loops again."""

MAX_ATTEMPTS = 2
"""Times that unfinished tasks are given to a pool of processes, in case a worker dies. A cluster retries by itself
before that."""

_WORKER_REPLACED = "A worker stopped while some jobs were given to the executor"
"""The beginning of joblib's warning that it replaces a worker whose memory grew by 300 MB. No task is lost, so there is
nothing to warn of. If warnings are errors, it would end the thread that collects results, and `run` would never return.
"""

_DEAD_WORKER = {
    "KilledWorker",
    "FutureCancelledError",
    "FuturesCancelledError",
    "WorkerCrashedError",
    "NodeDiedError",
}
"""Names of the errors by which Dask and Ray report a dead worker. By name, since neither need be installed."""


@dataclass(frozen=True, slots=True)
class LazyTasks(Generic[_T]):
    """A sequence of tasks, each made when it is sent and not kept: together they may exceed memory."""

    count: int
    make: Callable[[int], _T]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> _T:
        return self.make(index)


class _ThreadState(threading.local):
    in_task = False


_this_thread = _ThreadState()


def run(
    function: Callable[..., _R],
    tasks: Sequence[tuple[Any, ...]] | LazyTasks[Any],
    *,
    work: int,
    phase: str,
    progress: Progress = silent,
) -> list[_R]:
    """Call `function(*task)` for each task; results are in order and do not depend on where the workers run.

    Tasks of a worker that died are run again by others. Tasks may hold private counts, so joblib must not write them to
    files (`max_nbytes=None`). A configured backend and number of workers are respected; by default there is a process
    per core, or a thread per core if there is little `work` (see `MIN_PROCESS_WORK`).
    """
    results: list[_R] = []

    def collect(outcomes: Iterable[_R]) -> list[_R]:
        progress(phase, len(results), len(tasks))
        for outcome in outcomes:
            results.append(outcome)
            progress(phase, len(results), len(tasks))
        return results

    backend, workers = get_active_backend()
    serial = len(tasks) < 2 or _this_thread.in_task or backend.nesting_level  # workers start no workers
    if serial or work < MIN_PROCESS_WORK:
        if serial or work < MIN_THREAD_WORK or workers == 1:
            return collect(function(*tasks[i]) for i in range(len(tasks)))
        with ThreadPoolExecutor(min(os.cpu_count() or 1, len(tasks))) as threads:
            return collect(threads.map(lambda i: _run_task(function, (tasks[i],)), range(len(tasks))))
    for _ in range(MAX_ATTEMPTS):
        pool = Parallel(
            n_jobs=-1 if workers is None else workers,
            return_as="generator" if backend.supports_return_generator else "list",
            max_nbytes=None,
        )
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", _WORKER_REPLACED, UserWarning)
                return collect(pool(delayed(_run_task)(function, (tasks[i],)) for i in range(len(results), len(tasks))))
        except Exception as error:  # its message names a process and a signal, which helps nobody
            if not _is_worker_death(error):
                raise
    raise WorkerDied(
        f"a process died while {phase}, and so did the one in its place: most likely memory ran out. Free some, or ask "
        "for less: a lower resolution or lattice, or fewer columns."
    )


def _run_task(function: Callable[..., _R], packed: tuple[tuple[Any, ...]]) -> _R:
    """Run one task. It is packed so that Dask sends it with the call: data scattered to a worker would die with it."""
    before, _this_thread.in_task = _this_thread.in_task, True
    try:
        return function(*packed[0])
    finally:
        _this_thread.in_task = before


def _is_worker_death(error: Exception) -> bool:
    return isinstance(error, BrokenProcessPool) or type(error).__name__ in _DEAD_WORKER
