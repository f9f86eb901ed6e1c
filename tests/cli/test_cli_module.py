"""`python -m certsynth` is the command line, too: on executors and in packed environments no script is on the path."""

from __future__ import annotations

import subprocess
import sys


def test_the_module_is_the_command_line() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "certsynth", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("--help").stdout.startswith("Usage: certsynth [OPTIONS] COMMAND")
    failed = run("evaluate", "a.csv", "b.csv", "--schema", "nowhere.toml")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("error: schema nowhere.toml: no such file.")
