"""How the library tells what it is doing, without printing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the name of a phase, and how much of it is done. `total` is None where it is not known."""

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


def silent(phase: str, done: int, total: int | None) -> None:
    """Say nothing."""
