"""What every test has: a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from certsynth.planning.cache import VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is planned is remembered for the session, and never in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield
