"""Independent tasks on all cores; or on a cluster (Dask, Ray), where joblib's `parallel_config` says so."""

from __future__ import annotations

import os
import threading
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

TINY, SMALL = 20_000, 2_000_000
"""Work below so many units (about nodes times solves: some milliseconds, a few seconds) is not worth starting threads
for, and processes. Much of it is done by compiled loops, during which other threads work."""

ATTEMPTS = 2
"""How often work is given to new processes after one of them died. A cluster's own attempts come before."""

_LOST = {"KilledWorker", "FutureCancelledError", "FuturesCancelledError", "WorkerCrashedError", "NodeDiedError"}
"""What Dask and Ray raise when workers died under a task. Told by names, since neither need be there."""


@dataclass(frozen=True, slots=True)
class Made(Generic[_T]):
    """Tasks that are made when they are sent, and not kept: all together they may be more than memory holds."""

    count: int
    make: Callable[[int], _T]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> _T:
        return self.make(index)


class _Here(threading.local):
    working = False


_here = _Here()


def run(
    function: Callable[..., _R],
    tasks: Sequence[tuple[Any, ...]] | Made[Any],
    *,
    work: int,
    phase: str,
    progress: Progress = silent,
) -> list[_R]:
    """`function(*task)` for each task, in order: the results do not depend on the number of workers, or where they are.

    What a worker did not finish because it died is done again, by others. Tasks may hold private counts, so that joblib
    must not put them into files (`max_nbytes=None`). A backend and a number of workers that somebody configured are
    used; else there is a process for each core, or a thread where there is little to do.
    """
    results: list[_R] = []

    def keep(outcomes: Iterable[_R]) -> list[_R]:
        progress(phase, len(results), len(tasks))
        for outcome in outcomes:
            results.append(outcome)
            progress(phase, len(results), len(tasks))
        return results

    backend, workers = get_active_backend()
    alone = len(tasks) < 2 or _here.working or backend.nesting_level  # workers start no workers
    if alone or work < SMALL:
        if alone or work < TINY or workers == 1:
            return keep(function(*tasks[i]) for i in range(len(tasks)))
        with ThreadPoolExecutor(min(os.cpu_count() or 1, len(tasks))) as threads:
            return keep(threads.map(lambda i: _done(function, (tasks[i],)), range(len(tasks))))
    for _ in range(ATTEMPTS):
        pool = Parallel(
            n_jobs=-1 if workers is None else workers,
            return_as="generator" if backend.supports_return_generator else "list",
            max_nbytes=None,
        )
        try:
            return keep(pool(delayed(_done)(function, (tasks[i],)) for i in range(len(results), len(tasks))))
        except Exception as error:  # its own message names the process and a signal, which helps nobody
            if not _died(error):
                raise
    raise WorkerDied(
        f"a process died while {phase}, and so did the one in its place: most likely memory ran out. Free some, or ask "
        "for less: a lower resolution or lattice, or fewer columns."
    )


def _done(function: Callable[..., _R], packed: tuple[tuple[Any, ...]]) -> _R:
    """One task. It comes packed, so that Dask sends it along: what Dask puts on a worker first dies with that one."""
    before, _here.working = _here.working, True
    try:
        return function(*packed[0])
    finally:
        _here.working = before


def _died(error: Exception) -> bool:
    return isinstance(error, BrokenProcessPool) or type(error).__name__ in _LOST
