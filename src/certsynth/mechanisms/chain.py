"""An append-only file of lines, each with the hash of the previous one; safe under concurrent processes and crashes.

A line is a JSON object with a hash of its content, which includes the hash of the previous line. A writer holds a lock,
and the line is on disk when `append` returns. A crash before that can truncate the last line: it stays as it is, and
the next line states that it follows a truncated one (`mends`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certsynth.base.files import sync
from certsynth.errors import CheckFailed, InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

MAX_FILE_BYTES = 64 * 2**20
"""Bytes of a file that is read, at most."""

LOCK_TIMEOUT_SECONDS = 60.0
"""Seconds to wait for a lock, which is held only while one line is written."""

_NO_PREVIOUS_HASH = "0" * 64  # previous hash of the first line
_RETRY_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its hash and its content, which is None if a crash truncated the line or somebody changed it."""

    digest: str
    says: Mapping[str, Any] | None
    cut_off: bool = False


@dataclass(slots=True)
class Chain:
    """An open, locked file: its lines, to which more can be appended."""

    path: Path
    file: int
    content: bytes
    lines: list[Line] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = [_decode_line(text) for text in self.content.split(b"\n") if text]

    @property
    def head(self) -> str:
        """The hash of the last line, which identifies the whole file."""
        return self.lines[-1].digest if self.lines else _NO_PREVIOUS_HASH

    def check(self) -> None:
        """Raise unless every line has the hash of the previous one, and every other line was truncated by a crash."""
        before, mends = _NO_PREVIOUS_HASH, False
        for number, line in enumerate(self.lines, start=1):
            if line.says is None and (mends or number == 1 or not line.cut_off):
                raise self._broken(number)
            if line.says is not None and (line.says["previous"] != before or mends != ("mends" in line.says)):
                raise self._broken(number)
            before, mends = line.digest, line.says is None
        if mends and self.content.endswith(b"\n"):  # a truncated line has no line end
            raise self._broken(len(self.lines))

    def append(self, says: Mapping[str, Any]) -> Line:
        """Append a line, which is on disk when this returns. If it raises, the file is restored as far as possible."""
        mends = {"mends": True} if self.lines and self.lines[-1].says is None else {}
        text = _encode_line({**says, **mends, "previous": self.head})
        start = b"\n" if self.content and not self.content.endswith(b"\n") else b""
        written = start + text + b"\n"
        try:
            os.lseek(self.file, len(self.content), os.SEEK_SET)
            if os.write(self.file, written) < len(written):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sys.audit("certsynth.ledger.sync")
            os.fsync(self.file)
            if not self.content:
                sync(self.path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):  # if this fails too, a truncated line remains
                os.ftruncate(self.file, len(self.content))
            reason = error.strerror or "input/output error"
            raise InputError(f"{self.path} cannot be written ({reason}); nothing was noted in it.") from None
        self.content += written
        self.lines.append(_decode_line(text))
        return self.lines[-1]

    def _broken(self, number: int) -> CheckFailed:
        return CheckFailed(
            f"{self.path} has been changed: line {number} does not follow from the one before it. Find the file as it "
            "was; until then nothing can be charged to it."
        )


def require_locks() -> None:
    """Refuse a system whose processes could charge one ledger at the same time."""
    if fcntl is None:
        raise InputError(
            "there is no ledger on Windows, which lacks the file locks that it needs. Leave `ledger` out and note by "
            "hand what you spend, or use Linux, macOS or WSL."
        )


@contextlib.contextmanager
def open_chain(path: Path, *, write: bool) -> Iterator[Chain]:
    """Open and lock the file, creating it with mode 0600 if `write`. The chain is not checked yet."""
    require_locks()
    flags = (os.O_RDWR | os.O_CREAT) if write else os.O_RDONLY
    try:
        file = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)  # non-blocking: a pipe must not hang
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise InputError(f"{path} cannot be opened ({reason}). Check the path.") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is not a file; choose another.")
        _wait_for_lock(file, path, exclusive=write)
        if os.fstat(file).st_size > MAX_FILE_BYTES:
            raise InputError(f"{path} is too large to be a ledger; choose another file.")
        with open(file, "rb", closefd=False) as reader:
            content = reader.read()
        yield Chain(path, file, content)
    finally:
        os.close(file)  # releases the lock, as the end of the process would


def _wait_for_lock(file: int, path: Path, *, exclusive: bool) -> None:
    until = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise InputError(
                    f"another process has held {path} for {LOCK_TIMEOUT_SECONDS:.0f} seconds; "
                    "try again when it is done."
                ) from None
            time.sleep(_RETRY_SECONDS)
        except OSError as error:
            reason = error.strerror or "no locks"
            raise InputError(f"{path} cannot be locked ({reason}); keep it on a local disk.") from None


def _encode_line(says: Mapping[str, Any]) -> bytes:
    """The line for some content, with its hash."""
    hashed = hashlib.sha256(json.dumps(says, sort_keys=True).encode()).hexdigest()
    return json.dumps({**says, "hash": hashed}, sort_keys=True).encode()


def _decode_line(text: bytes) -> Line:
    """Read a line. An incomplete JSON object was truncated; a complete one with another hash was changed."""
    digest = hashlib.sha256(text).hexdigest()
    try:
        read, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        return Line(digest, None, cut_off=True)
    try:
        says = {key: value for key, value in read.items() if key != "hash"}
        if _encode_line(says) == text and isinstance(says["previous"], str):
            return Line(read["hash"], says)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return Line(digest, None)
