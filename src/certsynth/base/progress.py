"""Progress callbacks: the library reports what it is doing without printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Batch = TypeVar("Batch", bound=Sequence[Any])


class Progress(Protocol):
    """Called with the name of a phase, the units done, and the total (None if unknown)."""

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


def silent(phase: str, done: int, total: int | None) -> None:
    """Report nothing."""


def with_progress(
    batches: Iterable[Batch], phase: str, total: int | None, *, hidden: bool, progress: Progress
) -> Iterator[Batch]:
    """Yield the batches (each a sequence of columns) and report the rows done after each.

    With `hidden` only the phase is reported, so that the number of rows is not disclosed.
    """
    progress(phase, 0, None if hidden else total)
    done = 0
    for batch in batches:
        yield batch
        done += len(batch[0])
        if not hidden:
            progress(phase, done, total)
