"""Independent tasks on all cores. Backends for clusters (Dask, Ray) can be put in from outside by joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from certsynth.progress import Progress, silent

_R = TypeVar("_R")

SMALL = 2_000_000
"""Work below this many units (about nodes times solves, a few seconds) is not worth starting processes for."""


def run(
    function: Callable[..., _R],
    tasks: Sequence[tuple[Any, ...]],
    *,
    work: int,
    phase: str,
    progress: Progress = silent,
) -> list[_R]:
    """`function(*task)` for each task, in order: the results do not depend on the number of workers.

    Tasks may hold private counts, so that joblib must not put them into files (`max_nbytes=None`).
    """
    results: list[_R] = []
    if work < SMALL or len(tasks) < 2 or get_active_backend()[0].nesting_level:  # workers start no workers
        outcomes: Iterable[_R] = (function(*task) for task in tasks)
    else:
        outcomes = Parallel(n_jobs=-1, return_as="generator", max_nbytes=None)(
            delayed(function)(*task) for task in tasks
        )
    progress(phase, 0, len(tasks))
    for outcome in outcomes:
        results.append(outcome)
        progress(phase, len(results), len(tasks))
    return results
