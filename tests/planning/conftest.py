"""Planning in one process: results do not depend on the number of workers, and starting some takes seconds."""

from __future__ import annotations

import pytest

from certsynth.base import parallel


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_PROCESS_WORK", float("inf"))
