"""Independent tasks on all cores. Backends for clusters (Dask, Ray) can be put in from outside by joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from certsynth.errors import WorkerDied
from certsynth.progress import Progress, silent

_R = TypeVar("_R")

SMALL = 2_000_000
"""Work below this many units (about nodes times solves, a few seconds) is not worth starting processes for."""


ATTEMPTS = 2
"""How often work is given to new processes after one of them died."""


def run(
    function: Callable[..., _R],
    tasks: Sequence[tuple[Any, ...]],
    *,
    work: int,
    phase: str,
    progress: Progress = silent,
) -> list[_R]:
    """`function(*task)` for each task, in order: the results do not depend on the number of workers.

    What a worker did not finish because it died is done again, by others. Tasks may hold private counts, so that joblib
    must not put them into files (`max_nbytes=None`).
    """
    results: list[_R] = []

    def keep(outcomes: Iterable[_R]) -> list[_R]:
        progress(phase, len(results), len(tasks))
        for outcome in outcomes:
            results.append(outcome)
            progress(phase, len(results), len(tasks))
        return results

    if work < SMALL or len(tasks) < 2 or get_active_backend()[0].nesting_level:  # workers start no workers
        return keep(function(*task) for task in tasks)
    for _ in range(ATTEMPTS):
        workers = Parallel(n_jobs=-1, return_as="generator", max_nbytes=None)
        try:
            return keep(workers(delayed(function)(*task) for task in tasks[len(results) :]))
        except BrokenProcessPool:  # its own message names the process and a signal, which helps nobody
            continue
    raise WorkerDied(
        f"a process died while {phase}, and so did the one in its place: most likely memory ran out. Free some, or ask "
        "for less: a lower resolution or lattice, or fewer columns."
    )
