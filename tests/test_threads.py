"""Items that a thread makes ahead are the same, in order; what goes wrong there is told, and nobody is left running."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from certsynth.threads import ahead


def counted(upto: int, seen: list[str]) -> Generator[int]:
    try:
        yield from range(upto)
    finally:
        seen.append(threading.current_thread().name)


def test_items_come_in_order_and_from_another_thread() -> None:
    seen: list[str] = []
    assert list(ahead(counted(1_000, seen))) == list(range(1_000))
    assert len(seen) == 1
    assert seen != [threading.current_thread().name]


def test_an_error_comes_after_the_items_before_it() -> None:
    def broken() -> Generator[int]:
        yield 1
        raise KeyError("no more")

    before = threading.active_count()
    items = ahead(broken())
    assert next(items) == 1
    with pytest.raises(KeyError, match="no more"):
        next(items)
    assert threading.active_count() == before


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_whoever_stops_early_stops_the_thread(taken: int) -> None:
    seen: list[str] = []
    before = threading.active_count()
    items = ahead(counted(10**9, seen))
    assert [next(items) for _ in range(taken)] == list(range(taken))
    items.close()
    assert threading.active_count() == before
    assert len(seen) == (taken > 0)  # what never began need not end
