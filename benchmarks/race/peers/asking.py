"""What every runner does the same: it reads a request, times the work, and writes tables and a report.

Runners are scripts for the environment of their peer, where certsynth is not installed: they import nothing of it.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()


def request() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return found


def answer(asked: dict[str, Any], work: Callable[[], dict[str, Any]], *, packages: tuple[str, ...]) -> None:
    """Time `work`, which writes tables and says what it did. Imports are over when this is called."""
    importing = time.perf_counter() - STARTED
    begun = time.perf_counter()
    told = work()
    seconds = time.perf_counter() - begun
    versions = {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages}
    # Work for the measurement alone, such as drawing a second table, says itself how long it took.
    told |= {"seconds": seconds - told.pop("not counted", 0.0), "importing": importing, "versions": versions}
    Path(asked["report"]).write_text(json.dumps(told), encoding="utf-8")
