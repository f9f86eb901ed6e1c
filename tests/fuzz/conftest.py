"""`fuzzing` made importable whatever import mode pytest is told to use, and folders and guards that fuzzers share."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

sys.path.insert(0, str(Path(__file__).parent))

STUCK = 1200


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all examples of a module share: each writes over the one before."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(autouse=True)
def _never_stuck() -> Iterator[None]:
    """Something that waits forever fails instead of holding up all other tests. No test measures time by it."""

    def stuck(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"stuck for {STUCK} seconds")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(STUCK)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
