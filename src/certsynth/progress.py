"""How the library tells what it is doing, without printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Batch = TypeVar("Batch", bound=Sequence[Any])


class Progress(Protocol):
    """Called with the name of a phase, and how much of it is done. `total` is None where it is not known."""

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


ROWS_REPORTED = 2**16
"""Rows from one report to the next."""


def silent(phase: str, done: int, total: int | None) -> None:
    """Say nothing."""


def watched(
    batches: Iterable[Batch], phase: str, total: int | None, *, hidden: bool, progress: Progress
) -> Iterator[Batch]:
    """The batches (each a sequence of columns), reporting how many rows went by; nothing of it if that is `hidden`.

    It is reported at multiples of ROWS_REPORTED and at the end, so that it depends on the number of rows alone: where a
    batch ends may depend on what its rows hold.
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
