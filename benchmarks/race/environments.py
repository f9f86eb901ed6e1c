"""Environments of the peers, made from the package registry that pip is set up for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from race.contenders import Peer


class NoEnvironment(Exception):
    """A peer that could not be installed; the text says why."""


def environment(peer: Peer, folder: Path) -> Path:
    """Python with the peer's packages, installed when it is not there yet or when its requirements have changed."""
    if peer.requirements is None:
        return Path(sys.executable)
    place = folder / peer.name / "venv"
    python, done, wanted = place / "bin" / "python", place / ".installed", peer.requirements.read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    run([interpreter(peer), "-m", "venv", "--clear", str(place)])
    run([str(python), "-m", "pip", "install", "--disable-pip-version-check", "-r", str(peer.requirements)])
    done.write_text(wanted, encoding="utf-8")
    return python


def interpreter(peer: Peer) -> str:
    """This Python, or an older one where the peer needs that."""
    if peer.below is None or sys.version_info[:2] < peer.below:
        return sys.executable
    for minor in range(peer.below[1] - 1, 9, -1):
        if found := shutil.which(f"python3.{minor}"):
            return found
    raise NoEnvironment(f"{peer.name} needs a Python below {'.'.join(map(str, peer.below))}, and there is none")


def run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoEnvironment(tidy(str(error))) from None
    if done.returncode:
        raise NoEnvironment(tidy(done.stderr))


def tidy(text: str, *, lines: int = 2) -> str:
    """The last lines that say something, without paths and addresses: errors go into a published page."""
    said = (line.strip() for line in text.splitlines() if not line.startswith(("WARNING", "[notice]")))
    kept = [line for line in said if len(re.findall(r"\w", line)) > 2]
    errors = [line for line in kept if line.startswith("ERROR")] or kept
    short = " ".join(errors[-lines:])
    short = re.sub(r"\w+://\S+|(?<![\w.])/[\w.+-]+(?:/[\w.+-]+)+/?", "…", short)
    return short[-400:] or "it failed without a word"
