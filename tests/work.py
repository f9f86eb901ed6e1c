"""How much work Python does, counted: the same on every machine, unlike seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_made(work: Callable[[], object]) -> int:
    """How many functions are called while `work` runs, those written in C included."""
    calls, before = 0, sys.getprofile()

    def count(frame: FrameType, event: str, about: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
