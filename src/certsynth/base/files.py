"""Small files that people write: read whole, if they are files at all, and small. And what is written, kept."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


class TooLong(Exception):
    """A file that holds more than was asked for."""


def read_small(path: Path, *, most: int, follow: bool = True) -> bytes:
    """All bytes of a regular file, `most` of them at most; a link is followed only if that is allowed.

    Anything else raises an `OSError` with a `strerror`: a pipe would be waited for without end, a device may have no
    end. What is asked is the opened file itself, not its name: nobody can put another one there meanwhile.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    except ValueError:  # a path with a NUL
        raise OSError(errno.EINVAL, "Cannot be read") from None
    with open(handle, "rb") as file:  # noqa: PTH123 — a handle, and no path
        status = os.fstat(handle)
        kind = status.st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "Not a regular file")
        content = file.read(min(most, status.st_size) + 1)  # Python makes room for all that is asked for
    if len(content) > most:
        raise TooLong
    return content


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
