"""Bars on stderr: only for people, and what they say of the time that is left is worth saying."""

from __future__ import annotations

import io
from typing import Any

import pytest
import rich.console
import rich.progress

from certsynth.base.progress import silent
from certsynth.cli.progress import bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that are drawn."""
    made: list[Any] = []

    class Watched(rich.progress.Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options, auto_refresh=False)
            made.append(self)

    monkeypatch.setattr(rich.progress, "Progress", Watched)
    return made


def test_nobody_looks_nothing_is_drawn(drawn: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    with bars(quiet=True) as progress:
        assert progress is silent
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with bars() as progress:
        assert progress is silent
    assert drawn == []


def test_one_slow_pair_of_columns_does_not_upset_the_estimate(
    drawn: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(rich.console, "monotonic", lambda: clock[0])
    with bars() as progress:
        progress("comparing", 0, 100)
        for done in range(1, 51):
            clock[0] += 1
            progress("comparing", done, 100)
        clock[0] += 50
        progress("comparing", 51, 100)
        (task,) = drawn[0].tasks
        # 51 in 100 seconds: the other 49 take as long on average, though the last one took fifty times as long.
        assert task.time_remaining == pytest.approx(49 * 100 / 51, rel=0.1)
        progress("solving", 0, None)
        assert [each.description for each in drawn[0].tasks] == ["solving"]
