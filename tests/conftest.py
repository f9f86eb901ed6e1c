"""What every test has: a cache of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from certsynth.planning.cache import CACHE_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is planned is remembered for the session, by all its processes, and never in the user's cache."""
    base = tmp_path_factory.getbasetemp()
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(session / "plans"))
        yield
