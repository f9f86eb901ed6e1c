"""Progress callbacks: the library reports what it is doing without printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Batch = TypeVar("Batch", bound=Sequence[Any])


class Progress(Protocol):
    """Called with the name of a phase, the units done, and the total (None if unknown)."""

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


class Stage(str):
    """The name of a stage of an operation, as in "4 of 6: fitting rows". Reporting it as a phase begins the stage;
    phases that follow are parts of it."""

    __slots__ = ()


def number_stages(*names: str) -> tuple[Stage, ...]:
    """The stages of an operation in order.

    >>> number_stages("reading", "writing")
    ('1 of 2: reading', '2 of 2: writing')
    """
    return tuple(Stage(f"{number} of {len(names)}: {name}") for number, name in enumerate(names, start=1))


ROWS_REPORTED = 2**16
"""Rows from one report to the next."""


def silent(phase: str, done: int, total: int | None) -> None:
    """Report nothing."""


def with_progress(
    batches: Iterable[Batch], phase: str, total: int | None, *, hidden: bool, progress: Progress
) -> Iterator[Batch]:
    """Yield the batches (each a sequence of columns) and report the number of rows done.

    Reports come at multiples of ROWS_REPORTED and at the end, so that they depend on the number of rows alone: where a
    batch ends may depend on what its rows hold. With `hidden` only the phase is reported, and no number of rows.
    """
    progress(phase, 0, None if hidden else total)
    done = 0
    for batch in batches:
        yield batch
        before, done = done, done + len(batch[0])
        if not hidden:
            for passed in range(before // ROWS_REPORTED + 1, done // ROWS_REPORTED + 1):
                progress(phase, passed * ROWS_REPORTED, total)
    if not hidden and done % ROWS_REPORTED:
        progress(phase, done, total)
