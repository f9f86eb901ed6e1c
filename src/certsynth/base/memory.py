"""The memory that may be used: a given number of bytes, or half of the machine's."""

from __future__ import annotations

import os

from certsynth.errors import InputError


def default_memory() -> int:
    """Half of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def allowed_memory(memory: int | None) -> int:
    """The most bytes that may be used: `memory`, checked; by default half of the machine's memory."""
    if memory is None:
        return default_memory()
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 1:
        raise InputError(f"memory must be a whole number of bytes, like 4 * 2**30; got {memory!r:.20}.")
    return memory
