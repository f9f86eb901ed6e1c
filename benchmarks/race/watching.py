"""Runs a script under a time limit, and watches how long it takes and how much memory and processor time it needs."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

THREADS = 2
EVERY = 0.2  # seconds between two looks
_LIMITED = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "POLARS_MAX", "RAYON", "LOKY_MAX_CPU")


@dataclass(frozen=True, slots=True)
class Watched:
    """What a run took. Memory and processor time are summed over all of its processes."""

    code: int
    late: bool
    wall: float
    cpu: float
    peak: float  # megabytes
    errors: str


def watched(command: list[str], *, limit: float, threads: int = THREADS, alone: bool = False) -> Watched:
    """Run `command` in a session of its own, with at most `threads` threads and processors.

    `alone` is for peers: what this project has on its path is not on theirs.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_environment(threads, alone=alone),
        start_new_session=True,
        preexec_fn=lambda: _few_processors(threads),
    ) as process:
        look = _Look(process.pid)
        late = False
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            wall = time.perf_counter() - begun
            look.stop()
            # Workers that outlive their parent would disturb those that come after.
            _end(process.pid)
        if late:
            _, errors = process.communicate()
    return Watched(process.returncode, late, wall, look.cpu, look.peak, errors)


def _environment(threads: int, *, alone: bool) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not (alone and name == "PYTHONPATH")}
    names = {"POLARS_MAX": "POLARS_MAX_THREADS", "LOKY_MAX_CPU": "LOKY_MAX_CPU_COUNT"}
    few = {names.get(name, f"{name}_NUM_THREADS"): str(threads) for name in _LIMITED}
    return {**kept, **few, "CERTSYNTH_CACHE": "off", "JAX_PLATFORMS": "cpu", "PYTHONHASHSEED": "0"}


def _few_processors(threads: int) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:threads])


def _end(session: int) -> None:
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        return


class _Look:
    """Looks at the processes of a session again and again."""

    def __init__(self, session: int) -> None:
        self.session = session
        self.peak = 0.0
        self._spent: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def cpu(self) -> float:
        return sum(self._spent.values())

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE") / 2**20
        while True:
            resident = 0.0
            for stat in Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                except OSError:  # it ended meanwhile
                    continue
                if int(fields[3]) == self.session:
                    # Time of children that were waited for is not added: they were looked at themselves.
                    self._spent[int(stat.parent.name)] = (int(fields[11]) + int(fields[12])) / tick
                    resident += int(fields[21]) * page
            self.peak = max(self.peak, resident)
            if self._over.wait(EVERY):
                return
