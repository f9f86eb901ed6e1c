"""Bars on stderr while something takes long; none if nobody is looking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from certsynth.base.progress import Progress, silent

_LOOKS_BACK = 24 * 3600.0
"""Seconds from which it is told how long the rest will take: all that a phase has had. Pairs of columns differ a
hundredfold in their work, and of the last half minute alone they would say now six minutes, now thirty."""


@contextmanager
def bars(*, quiet: bool = False) -> Iterator[Progress]:
    """A `progress` callback that draws a bar for the phase that runs, and takes it away at the end.

    It shows how long the phase has taken and, where it is known how much there is to do, about how long it will yet. It
    shows no other numbers: how many rows there are may be private.
    """
    if quiet or not sys.stderr.isatty():
        yield silent
        return
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
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=_LOOKS_BACK
    ) as drawn:
        running: dict[str, TaskID] = {}

        def show(phase: str, done: int, total: int | None) -> None:
            if phase not in running:
                while running:
                    drawn.remove_task(running.popitem()[1])
                running[phase] = drawn.add_task(phase, total=total)
            drawn.update(running[phase], completed=done, total=total)

        yield show
