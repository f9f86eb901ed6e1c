"""Releases and commands whose every byte is pinned, so that a change of shape that changes behaviour is seen.

`tests/frozen_bytes.json` holds a digest of each file of each release folder and of each command's output, made with
noise and random numbers that are the same in every run. To compare two checkouts, run this in both and compare:

    python tests/frozen_bytes.py --keep DIR     # writes everything that is hashed; then `diff -r DIR OTHER`
    python tests/frozen_bytes.py                # lists what differs from the stored digests
    python tests/frozen_bytes.py --write        # stores the digests of today

The cases are in frozen_cases.py. Whatever is replaced, is replaced in `pinned`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import random
import re
import secrets
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import opendp.mod

import certsynth
from certsynth.mechanisms.sup_norm import draw_sup_norm
from frozen_cases import SEED, Case, Outputs, Run, cases

STORED = Path(__file__).with_name("frozen_bytes.json")
DIGITS = 16
"""Hexadecimal digits of a SHA-256 that are stored: 64 bits tell a change from none."""

NOON = "2024-05-06T12:00:00+00:00"
VERSION = "0.0.0"
"""The time and the version of certsynth in every run."""

CACHE = "CERTSYNTH_CACHE"


# ---------------------------------------------------------------------------------------------------------------------
# The one place where noise and randomness are replaced. All but the clock is replaced below certsynth, in OpenDP, NumPy
# and `secrets`, so that nothing has to follow when its modules move.


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Noise, random numbers, time and version that are the same in every run. What is made protects nobody."""
    draw_sup_norm(1, Fraction(1))  # its test of itself, once in a process, takes random numbers
    drawn: Counter[tuple[Any, ...]] = Counter()
    streams: dict[str, random.Random] = {}

    def noisy(mechanism: Any, values: list[int]) -> list[int]:
        """Noise of the right law, which depends on its scale, its length and how often these two came up before."""
        gaussian = "L2" in str(mechanism.input_metric)
        cost = mechanism.map(1.0 if gaussian else 1)
        scale = (1 / (2 * cost)) ** 0.5 if gaussian else 1 / cost
        what = gaussian, f"{scale:.9g}", len(values)
        drawn[what] += 1
        rng = seeded([*repr(what).encode(), drawn[what]])
        if gaussian:
            noise = np.rint(scale * rng.standard_normal(len(values)))
        else:
            first, second = np.floor(-scale * np.log(1 - rng.random((2, len(values)))))
            noise = first - second
        return [value + int(z) for value, z in zip(values, noise, strict=True)]

    def stream(name: str) -> random.Random:
        return streams.setdefault(name, random.Random(name))

    seeded, exact_version = np.random.default_rng, importlib.metadata.version

    def version(name: str) -> str:
        return VERSION if name == "certsynth" else exact_version(name)

    replaced: list[tuple[Any, str, Any]] = [
        (opendp.mod.Measurement, "__call__", noisy),
        (secrets, "randbits", lambda bits: stream("randbits").getrandbits(bits)),
        (secrets, "randbelow", lambda end: stream("randbelow").randrange(end)),
        (secrets, "token_bytes", lambda count: stream("token_bytes").randbytes(count)),
        (secrets, "token_hex", lambda count: stream(f"token_hex {count}").randbytes(count).hex()),
        (secrets, "SystemRandom", lambda: stream("SystemRandom")),
        (np.random, "default_rng", lambda seed=None: seeded(SEED if seed is None else seed)),
        (importlib.metadata, "version", version),
        (sys.modules[certsynth.Ledger.__module__], "_now", lambda: NOON),
    ]
    with contextlib.ExitStack() as stack:
        for where, name, replacement in replaced:
            stack.enter_context(mock.patch.object(where, name, replacement))
        stack.enter_context(mock.patch.dict(os.environ, {CACHE: "off", "COLUMNS": "100"}))
        yield


# ---------------------------------------------------------------------------------------------------------------------
# Running and comparing


def run(case: Case) -> Run:
    """Run a case in a folder of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        here = Run(Path(folder))
        os.chdir(folder)
        try:
            with pinned():
                case.run(here)
        finally:
            os.chdir(before)
    return here


def digests(outputs: Outputs) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest()[:DIGITS] for name, content in sorted(outputs.items())}


def environment() -> dict[str, str]:
    """What bytes may depend on besides certsynth: versions of libraries, and the processor, whose name is hashed."""
    from llvmlite import binding

    names = sorted(
        {re.split(r"[^\w-]", each)[0] for each in importlib.metadata.requires("certsynth") or [] if "extra" not in each}
    )
    processor = f"{platform.system()} {platform.machine()} {binding.get_host_cpu_name()}"
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "processor": hashlib.sha256(processor.encode()).hexdigest()[:DIGITS],
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        **{name: importlib.metadata.version(name) for name in names},
    }


def load() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The stored environment, and the digests by case."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return stored["environment"], stored["cases"]


def differences(stored: dict[str, str], found: dict[str, str]) -> list[str]:
    """Every output that is not as stored."""
    words = {True: "differs", False: "is missing"}
    gone = [f"{name} {words[name in found]}" for name in stored if found.get(name) != stored[name]]
    return gone + [f"{name} is new" for name in found if name not in stored]


def keep(folder: Path, case: Case, outputs: Outputs) -> None:
    """Write what is hashed to files, for `diff -r`."""
    for name, content in outputs.items():
        path = folder / case.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def command_line(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the frozen cases, and compare them with the stored digests.")
    parser.add_argument("--write", action="store_true", help="store the digests of this run")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write all that is hashed to this folder")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose names hold this text")
    parser.add_argument("--quick", action="store_true", help="leave the slow cases out")
    chosen = parser.parse_args(arguments)
    if chosen.write and (chosen.only or chosen.quick):
        parser.error("--write stores all cases: leave --only and --quick out")
    environment_then, stored = load() if STORED.exists() else ({}, {})
    if not chosen.write and environment_then != environment():
        sys.stdout.write("note: libraries or the processor are not those of the stored digests\n")
    found, failed = {}, 0
    for case in cases():
        if chosen.only not in case.name or (case.slow and chosen.quick):
            continue
        outputs = run(case).outputs
        found[case.name] = digests(outputs)
        if chosen.keep:
            keep(chosen.keep, case, outputs)
        lines = differences(stored.get(case.name, {}), found[case.name])
        failed += bool(lines)
        sys.stdout.write("".join(f"{case.name}: {line}\n" for line in lines))
    if chosen.write:
        text = json.dumps({"environment": environment(), "cases": found}, indent=1, ensure_ascii=False)
        STORED.write_text(f"{text}\n", encoding="utf-8")
        return 0
    sys.stdout.write(f"{failed} of {len(found)} cases differ\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(command_line())
