"""Work on arrays by threads: kernels that hold no lock, each on its own part of what is written; and reading ahead."""

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

MANY_ROWS = 2**16
"""Rows from which on threads pay."""


def in_threads(work: Callable[[T], R], tasks: Iterable[T], *, rows: int, spare: int = 0) -> list[R]:
    """`work` of every task, in order, leaving some cores to others. No two tasks may write to the same place.

    >>> in_threads(lambda x: x + 1, range(3), rows=10**6)
    [1, 2, 3]
    """
    todo = list(tasks)
    cores = min((os.cpu_count() or 1) - spare, len(todo))
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

    others = [_helpers().submit(pull) for _ in range(cores - 1)]
    try:
        pull()
    finally:
        waiting.clear()  # after an error nothing more is begun
        begun = [other for other in others if not other.cancel()]  # who is busy elsewhere is not waited for
        wait(begun)
    for other in begun:
        other.result()
    return [done[j] for j in range(len(todo))]


@cache
def _helpers() -> ThreadPoolExecutor:
    """Threads that stay: a batch has several rounds of work, and starting some for each costs as much as a round."""
    return ThreadPoolExecutor((os.cpu_count() or 1) - 1)


if hasattr(os, "register_at_fork"):  # a forked process has none of these threads, and would wait for them
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def ahead(items: Generator[T]) -> Generator[T]:
    """The same items, made by a thread while the last one is still in use: at most two wait.

    >>> list(ahead(x for x in "abc"))
    ['a', 'b', 'c']
    """
    waiting: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def hand_over(found: tuple[T] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                waiting.put(found, timeout=0.1)
                return

    def make() -> None:
        try:
            for item in items:
                hand_over((item,))
                if stopped.is_set():
                    break
            hand_over(None)
        except BaseException as error:  # raised again by whoever wants the next one
            hand_over(error)
        finally:
            items.close()

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while (found := waiting.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        stopped.set()
        thread.join()
