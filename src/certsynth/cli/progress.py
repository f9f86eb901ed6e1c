"""Progress bars on stderr; none if stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from certsynth.base.progress import Progress, silent

_SPEED_WINDOW_SECONDS = 24 * 3600.0
"""Window for estimating the remaining time: in effect the whole phase. Pairs of columns differ a hundredfold in their
work, so an estimate from the last half minute would jump between six and thirty minutes."""


@contextmanager
def bars(*, quiet: bool = False) -> Iterator[Progress]:
    """A `progress` callback that draws a bar for the current phase, and removes it at the end.

    It shows the elapsed time and, if the amount of work is known, an estimate of the remaining time. It shows no other
    numbers, since the number of rows may be private.
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
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=_SPEED_WINDOW_SECONDS
    ) as drawn:
        running: dict[str, TaskID] = {}

        def show(phase: str, done: int, total: int | None) -> None:
            if phase not in running:
                while running:
                    drawn.remove_task(running.popitem()[1])
                running[phase] = drawn.add_task(phase, total=total)
            drawn.update(running[phase], completed=done, total=total)

        yield show
