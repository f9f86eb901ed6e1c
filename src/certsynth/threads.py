"""Work on arrays by threads: kernels that hold no lock, each on its own part of what is written."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MANY_ROWS = 2**16
"""Rows from which on starting threads pays."""


def in_threads(work: Callable[[T], R], tasks: Iterable[T], *, rows: int) -> list[R]:
    """`work` of every task, in order. No two tasks may write to the same place.

    >>> in_threads(lambda x: x + 1, range(3), rows=10**6)
    [1, 2, 3]
    """
    todo = list(tasks)
    cores = min(os.cpu_count() or 1, len(todo))
    if rows < MANY_ROWS or cores < 2:
        return [work(task) for task in todo]
    done: dict[int, R] = {}
    waiting = deque(range(len(todo)))  # its ends are safe among threads; a future for each task would cost more

    def pull() -> None:
        while waiting:
            try:
                j = waiting.popleft()
            except IndexError:  # another was faster
                return
            done[j] = work(todo[j])

    with ThreadPoolExecutor(cores - 1) as threads:
        others = [threads.submit(pull) for _ in range(cores - 1)]
        pull()
        for other in others:
            other.result()
    return [done[j] for j in range(len(todo))]
