"""Small regular files, read whole under a size limit; and syncing to disk."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


class FileTooLarge(Exception):
    """The file exceeds the size limit."""


def read_small_file(path: Path, *, max_bytes: int, follow_links: bool = True) -> bytes:
    """Read a regular file of at most `max_bytes` bytes; raise `FileTooLarge` if it is larger.

    Anything but a regular file raises an `OSError` with a `strerror`: a pipe could block forever and a device may have
    no end. The type is checked on the open handle, not on the path, so the file cannot be swapped in between.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW))
    except ValueError:  # a path with a NUL
        raise OSError(errno.EINVAL, "Cannot be read") from None
    with open(handle, "rb") as file:  # noqa: PTH123 — a handle, not a path
        status = os.fstat(handle)
        kind = status.st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "Not a regular file")
        content = file.read(min(max_bytes, status.st_size) + 1)  # Python allocates as many bytes as are requested
    if len(content) > max_bytes:
        raise FileTooLarge
    return content


def sync(path: Path) -> None:
    """Block until a file's content, or a folder's entries, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
