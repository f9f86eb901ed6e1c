"""Progress on stderr: a bar in a terminal, and elsewhere a line per stage and one every ten seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from certsynth.base.progress import Progress, Stage, silent
from certsynth.cli.failure import say

BEAT_THREAD = "certsynth progress"
"""Name of the thread that prints a line at every beat."""

READING = "reading the release"
"""The phase in which a command reads a release folder."""

PREFIX = "progress: "
"""How a line of progress begins, so that a script can tell it from notes and errors."""

BEAT_SECONDS = 10
"""Seconds from one line to the next while a stage runs, where stderr is not a terminal."""

_SPEED_WINDOW_SECONDS = 24 * 3600.0
"""Window for estimating the remaining time: in effect the whole phase. Pairs of columns differ a hundredfold in their
work, so an estimate from the last half minute would jump between six and thirty minutes."""


@contextmanager
def bars(*, quiet: bool = False) -> Iterator[Progress]:
    """A `progress` callback that shows the current stage and phase on stderr; nothing if `quiet`.

    What is shown depends on the reported progress, which depends on public quantities alone, and on the time
    (docs/explanation/proofs/direct.md). Numbers of rows are not shown, since they may be private.
    """
    if quiet or sys.stderr is None:
        yield silent
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        with _lines() as progress:
            yield progress


class Lines:
    """A `progress` callback that prints a line when a stage begins, and one at every beat.

    A stage begins when a `Stage` is reported, and before the first of these also when a phase is reported for the first
    time. Nothing else is printed between beats: phases may alternate many times a second.
    """

    def __init__(self) -> None:
        self.stage, self.phase, self.share, self.beats = "", "", "", 0
        self.begun: set[str] = set()
        self.lock = threading.Lock()

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        with self.lock:
            begins = phase not in self.begun and (isinstance(phase, Stage) or not self.stage)
            if isinstance(phase, Stage):
                self.stage, self.phase = phase, ""
            else:
                self.phase = phase
            self.share = f"{100 * done // total} %" if total else ""
            if begins:
                self.begun.add(phase)
                _print_line(phase)

    def beat(self) -> None:
        """Print what is going on. The time is rounded to beats: nothing finer should get into a log."""
        with self.lock:
            self.beats += 1
            about = _title(self.stage, self.phase, ": ") or "starting"
            _print_line(", ".join(filter(None, (about, self.share, f"{self.beats * BEAT_SECONDS} s so far"))))


def _title(stage: str, phase: str, between: str) -> str:
    """The stage and what it is doing, unless its name says so already."""
    return stage or phase if phase in stage or not stage else f"{stage}{between}{phase}"


def _print_line(text: str) -> None:
    """Print a line, unless nobody can read it: that must not end a release."""
    with suppress(OSError, ValueError):
        say(f"{PREFIX}{text}")


@contextmanager
def _lines() -> Iterator[Progress]:
    """Lines, with a thread that makes them beat, so that long computations need not report anything."""
    lines, ended = Lines(), threading.Event()
    thread = threading.Thread(target=print_every_beat, args=(lines, ended), name=BEAT_THREAD, daemon=True)
    thread.start()
    try:
        yield lines
    finally:
        ended.set()
        thread.join()


def print_every_beat(lines: Lines, ended: threading.Event) -> None:
    """Print a line every BEAT_SECONDS until the work has ended."""
    while not ended.wait(BEAT_SECONDS):
        lines.beat()


@contextmanager
def _bar() -> Iterator[Progress]:
    """A bar for the current phase, removed at the end, with the elapsed time and, if the amount of work is known, an
    estimate of the remaining time."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("· left:"),
        TimeRemainingColumn(compact=True),
    )
    with RichProgress(
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=_SPEED_WINDOW_SECONDS
    ) as drawn:
        running: dict[str, TaskID] = {}
        stage = ""

        def show(phase: str, done: int, total: int | None) -> None:
            nonlocal stage
            stage = phase if isinstance(phase, Stage) else stage
            title = _title(stage, phase, " · ")
            if title not in running:
                while running:
                    drawn.remove_task(running.popitem()[1])
                running[title] = drawn.add_task(title, total=total)
            drawn.update(running[title], completed=done, total=total)

        yield show
