"""How the library tells what it is doing, without printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Batch = TypeVar("Batch", bound=Sequence[Any])


class Progress(Protocol):
    """Called with the name of a phase, and how much of it is done. `total` is None where it is not known."""

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


def silent(phase: str, done: int, total: int | None) -> None:
    """Say nothing."""


def watched(
    batches: Iterable[Batch], phase: str, total: int | None, *, hidden: bool, progress: Progress
) -> Iterator[Batch]:
    """The batches (each a sequence of columns), telling how many rows went by; nothing of it if that is `hidden`."""
    progress(phase, 0, None if hidden else total)
    done = 0
    for batch in batches:
        yield batch
        done += len(batch[0])
        if not hidden:
            progress(phase, done, total)
