"""What every test has: a cache of its own; and which cases of a test with very many run only in `make test-all`."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

from certsynth.planning.cache import CACHE_VARIABLE

MAX_QUICK_CASES = 10
"""Cases of one test in `make test`, unless its marker `quick_cases` states another number. Of more, as many are taken
at even distances; `make test-all` runs all."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and "[" in item.name and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for each in cases.values():
        stated = each[0].get_closest_marker("quick_cases")
        step = math.ceil(len(each) / (stated.args[0] if stated else MAX_QUICK_CASES))
        for place, item in enumerate(each):
            if place % step:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is planned is remembered for the session, by all its processes, and never in the user's cache."""
    base = tmp_path_factory.getbasetemp()
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(session / "plans"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_stated_width() -> Iterator[None]:
    """Lines are as wide as in a pipe, whatever terminal the tests run in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield
