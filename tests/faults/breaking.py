"""Runs commands that break at a given step, each in a process of its own; a script, for `test_faults.py`.

It reads the names of files of cases, one to a line, and answers each with a line of exit codes.

certsynth announces its steps to Python's audit hooks (`sys.audit`), and a hook may do anything: here it kills the
process, interrupts it, or fails as a full disk would. The processes are forked from this one, which has made a release
in memory, so that nothing has to be imported or compiled again, and has started no thread.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise error

    return act


ACTIONS: dict[str, Callable[[], object]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "full disk": raising(OSError(28, "No space left on device", "/SECRET")),
    "no memory": raising(MemoryError("SECRET")),
    "bug": raising(ValueError("SECRET")),
    "none": lambda: None,
}
EVENTS, OUT, ERR = "events.txt", "out.txt", "err.txt"


def child(case: dict[str, Any]) -> NoReturn:
    """One command: breaks at step number `at`, or cannot write more than `limit` bytes to a file."""
    os.chdir(case["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started without it
    events = os.open(EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for name, number in ((OUT, 1), (ERR, 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    seen = [0]

    def watch(event: str, _: tuple[object, ...]) -> None:
        if event.startswith("certsynth."):
            os.write(events, f"{event}\n".encode())
            seen[0] += 1
            if seen[0] == case.get("at"):
                ACTIONS[case["action"]]()

    sys.addaudithook(watch)
    if "limit" in case:
        resource.setrlimit(resource.RLIMIT_FSIZE, (case["limit"], case["limit"]))
    from certsynth.cli import main

    try:
        main([str(argument) for argument in case["command"]])
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(99)


def warm(town: Path) -> None:
    """Import and compile all that commands need."""
    import pandas as pd

    import certsynth.cli  # noqa: F401
    from certsynth import Schema, release
    from certsynth.report import render_report

    rows, schema = pd.read_csv(town / "people.csv"), Schema.load(town / "schema.toml")
    made = release(rows, schema, epsilon=1, resolution=2, mechanism="identity")
    render_report(made.record, made.schema, made.table)


def main() -> None:
    warm(Path(sys.argv[1]))
    for line in sys.stdin:
        codes = []
        for case in json.loads(Path(line.rstrip("\n")).read_text()):
            pid = os.fork()
            if not pid:
                child(case)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
