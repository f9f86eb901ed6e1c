"""Threads for array kernels that release the interpreter lock, and prefetching of items by a thread."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MIN_THREADED_ROWS = 2**16
"""Rows below which handing work to threads costs more than it saves."""


def in_threads(work: Callable[[T], R], tasks: Iterable[T], *, rows: int, spare: int = 0) -> list[R]:
    """Apply `work` to every task, results in order, leaving `spare` cores free. Tasks must write to disjoint memory.

    >>> in_threads(lambda x: x + 1, range(3), rows=10**6)
    [1, 2, 3]
    """
    todo = list(tasks)
    cores = min((os.cpu_count() or 1) - spare, len(todo))
    if rows < MIN_THREADED_ROWS or cores < 2:
        return [work(task) for task in todo]
    done: dict[int, R] = {}
    waiting = deque(range(len(todo)))  # popleft is atomic; a future for each task would cost more

    def pull() -> None:
        while waiting:
            try:
                j = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            done[j] = work(todo[j])

    others = [_pool().submit(pull) for _ in range(cores - 1)]
    try:
        pull()
    finally:
        waiting.clear()  # after an error no further task starts
        started = [other for other in others if not other.cancel()]  # do not wait for threads that are busy elsewhere
        wait(started)
    for other in started:
        other.result()
    return [done[j] for j in range(len(todo))]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads kept for the whole process: a batch has several rounds, and starting threads costs as much as a round."""
    return ThreadPoolExecutor((os.cpu_count() or 1) - 1)


if hasattr(os, "register_at_fork"):  # a forked process inherits the pool but not its threads, and would wait forever
    os.register_at_fork(after_in_child=_pool.cache_clear)


def prefetch(items: Generator[T]) -> Generator[T]:
    """Yield the items, produced by a thread while the previous one is in use. At most two are ready at a time.

    >>> list(prefetch(x for x in "abc"))
    ['a', 'b', 'c']
    """
    ready: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def hand_over(found: tuple[T] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                ready.put(found, timeout=0.1)
                return

    def produce() -> None:
        try:
            for item in items:
                hand_over((item,))
                if stopped.is_set():
                    break
            hand_over(None)
        except BaseException as error:  # raised again in the consumer
            hand_over(error)
        finally:
            items.close()

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        stopped.set()
        thread.join()
