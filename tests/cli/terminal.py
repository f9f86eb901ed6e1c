"""A terminal of some width in which commands run, and what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from certsynth.cli import main

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Screen:
    """What a command showed on a terminal: both streams, with escape codes, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """All lines as a reader sees them, without colour."""
        return _ESCAPE.sub("", self.out + self.err).splitlines()

    @property
    def words(self) -> list[str]:
        """All words in order, wherever lines end; punctuation at their ends, and what joins lines, is left out."""
        return [word for each in " ".join(self.lines).split() if (word := each.strip(",;:.\\"))]


def show(columns: int, *arguments: object) -> Screen:
    """Run a command in a terminal of this width."""
    with pytest.MonkeyPatch.context() as patch, _terminal(columns) as out, _terminal(columns) as err:
        patch.delenv("COLUMNS", raising=False)
        patch.setenv("TERM", "xterm-256color")
        patch.setattr(sys, "stdout", out.stream)
        patch.setattr(sys, "stderr", err.stream)
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return Screen(ended.value.code, out.text(), err.text())


class _Terminal:
    """Our end of a terminal: a thread reads what is written, so that the writer never waits."""

    def __init__(self, columns: int) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.stream = os.fdopen(theirs, "w", encoding="utf-8")
        self.parts: list[bytes] = []
        self.ended = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        while True:
            ended = self.ended.is_set()
            ready, _, _ = select.select([self.ours], [], [], 0 if ended else 0.01)
            if ready:
                self.parts.append(os.read(self.ours, 65536))
            elif ended:  # worker processes may hold the other end open, so that there is no end of the file
                return

    def text(self) -> str:
        return b"".join(self.parts).decode().replace("\r\n", "\n")


@contextmanager
def _terminal(columns: int) -> Iterator[_Terminal]:
    made = _Terminal(columns)
    try:
        yield made
    finally:
        made.stream.flush()
        made.ended.set()
        made.reader.join()
        made.stream.close()
        os.close(made.ours)
