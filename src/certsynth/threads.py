"""Work on arrays by threads: kernels that hold no lock, each on its own part of what is written; and reading ahead."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MANY_ROWS = 2**16
"""Rows from which on starting threads pays."""


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

    with ThreadPoolExecutor(cores - 1) as threads:
        others = [threads.submit(pull) for _ in range(cores - 1)]
        pull()
        for other in others:
            other.result()
    return [done[j] for j in range(len(todo))]


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
