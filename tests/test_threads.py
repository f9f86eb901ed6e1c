"""Work by threads is done once, and over when the call is; items made ahead are the same, in order; errors are told."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterator

import pytest

from certsynth.base import threads
from certsynth.base.threads import in_threads, prefetch

MANY = 10**6


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    threads._pool.cache_clear()
    yield
    threads._pool().shutdown()
    threads._pool.cache_clear()


@pytest.mark.usefixtures("four_cores")
def test_every_task_is_done_once_by_threads_that_stay() -> None:
    before = threading.active_count()
    for _ in range(20):
        seen: list[int] = []

        def work(x: int, seen: list[int] = seen) -> int:
            seen.append(x)
            time.sleep(1e-4)
            return -x

        assert in_threads(work, range(50), rows=MANY) == [-x for x in range(50)]
        assert sorted(seen) == list(range(50))
    assert before < threading.active_count() <= before + 3


@pytest.mark.usefixtures("four_cores")
def test_tasks_that_have_tasks_themselves_do_not_wait_for_each_other() -> None:
    def work(depth: int) -> int:
        return 1 if depth == 0 else sum(in_threads(work, [depth - 1] * 8, rows=MANY))

    assert work(3) == 8**3


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize("broken", [0, 1, 2, 39])
def test_after_an_error_nobody_works_on(broken: int) -> None:
    working: list[int] = []

    def work(x: int) -> None:
        if x == broken:
            raise KeyError("no more")
        working.append(x)
        time.sleep(0.01)
        working.remove(x)

    with pytest.raises(KeyError, match="no more"):
        in_threads(work, range(40), rows=MANY)
    assert not working
    assert in_threads(abs, range(9), rows=MANY) == list(range(9))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.usefixtures("four_cores")
def test_a_forked_process_has_threads_of_its_own() -> None:
    in_threads(time.sleep, [0.01] * 9, rows=MANY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: of any fork beside threads
        child = os.fork()
    if not child:
        signal.alarm(60)  # whoever waits for ever is ended
        os._exit(0 if in_threads(abs, range(9), rows=MANY) == list(range(9)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def counted(upto: int, seen: list[str]) -> Generator[int]:
    try:
        yield from range(upto)
    finally:
        seen.append(threading.current_thread().name)


def test_items_come_in_order_and_from_another_thread() -> None:
    seen: list[str] = []
    assert list(prefetch(counted(1_000, seen))) == list(range(1_000))
    assert len(seen) == 1
    assert seen != [threading.current_thread().name]


def test_an_error_comes_after_the_items_before_it() -> None:
    def broken() -> Generator[int]:
        yield 1
        raise KeyError("no more")

    before = threading.active_count()
    items = prefetch(broken())
    assert next(items) == 1
    with pytest.raises(KeyError, match="no more"):
        next(items)
    assert threading.active_count() == before


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_whoever_stops_early_stops_the_thread(taken: int) -> None:
    seen: list[str] = []
    before = threading.active_count()
    items = prefetch(counted(10**9, seen))
    assert [next(items) for _ in range(taken)] == list(range(taken))
    items.close()
    assert threading.active_count() == before
    assert len(seen) == (taken > 0)  # what never began need not end
